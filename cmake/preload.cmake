# libsonde-preload.so: what `sonde run` puts in front of libc in other people's programs.
#
# The recording half is in it, so that the process has a recorder whoever links what;
# copies find each other by an ELF note (src/record/copies.c), not by symbols. Exported
# is what preload.map lists and nothing else.
#
# The command looks for it where it will be installed.
include(GNUInstallDirs)
if(TARGET layer_launch)
    target_compile_definitions(layer_launch PRIVATE
                               SONDE_LIBDIR="${CMAKE_INSTALL_LIBDIR}")
endif()

# Not in sanitised builds: sanitizers want to be first themselves.
if(SONDE_SANITIZE OR NOT TARGET layer_record)
    return()
endif()

file(GLOB preload_sources CONFIGURE_DEPENDS
     ${CMAKE_SOURCE_DIR}/src/capture/interpose/*.c)
set(preload_exports ${CMAKE_SOURCE_DIR}/src/capture/interpose/preload.map)

add_library(sonde_preload SHARED ${preload_sources} ${sonde_library_objects})
target_include_directories(sonde_preload PRIVATE ${CMAKE_SOURCE_DIR}/include
                           ${CMAKE_SOURCE_DIR}/src)
# initial-exec: other models may call malloc to get at a thread variable. No builtins of
# the malloc family: the compiler must not turn our malloc + memset into our calloc.
# No stack protector: its guard is not set up when libc calls us for the first time. No
# vectors: a counter must change in one instruction, or a signal handler's count is lost.
target_compile_options(sonde_preload PRIVATE -ftls-model=initial-exec -fno-builtin-malloc
                       -fno-builtin-calloc -fno-builtin-realloc -fno-builtin-free
                       -fno-stack-protector -U_FORTIFY_SOURCE
                       -fno-tree-vectorize -fno-tree-slp-vectorize)
# Cancelled threads unwind through these and give back the lock of a FILE.
file(GLOB preload_stdio ${CMAKE_SOURCE_DIR}/src/capture/interpose/io_f[orw]*.c
     ${CMAKE_SOURCE_DIR}/src/capture/interpose/io_stdio.c)
set_source_files_properties(${preload_stdio} PROPERTIES COMPILE_OPTIONS -fexceptions)
target_link_libraries(sonde_preload PRIVATE Threads::Threads m)
target_link_options(sonde_preload PRIVATE -Wl,--version-script=${preload_exports}
                    -Wl,--no-undefined -Wl,-z,nodelete)
set_target_properties(sonde_preload PROPERTIES OUTPUT_NAME sonde-preload
                      LINKER_LANGUAGE C LINK_DEPENDS ${preload_exports})
# The command without it would say so in every report.
if(TARGET sonde)
    add_dependencies(sonde sonde_preload)
endif()
