# One object library per folder of src/, and sonde_all: everything but main().
set(sonde_recording base num trace record monitor)
set(sonde_reading model capture pipeline launch store import analyse search tune present demo cli)

# The folder's sources, main.c apart: tests bring their own main(). What stands in front
# of libc (capture/interpose) is a library of its own (preload.cmake).
# Monitors may also run inside the traced program: capture/monitor is a layer by itself,
# libc alone, like the rest of the recording half.
function(layer_sources layer ret_sources)
    set(skip "/src/(cli/main\\.c$|capture/interpose/|capture/monitor/)")
    if(layer STREQUAL "monitor")
        set(layer capture/monitor)
        set(skip "/src/capture/interpose/")
    endif()
    file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${layer}/*.c)
    list(FILTER sources EXCLUDE REGEX ${skip})
    set(${ret_sources} ${sources} PARENT_SCOPE)
endfunction()

set(sonde_layers)
foreach(layer IN LISTS sonde_recording sonde_reading)
    if(SONDE_LAYERS AND NOT layer IN_LIST SONDE_LAYERS)
        continue()
    endif()
    layer_sources(${layer} sources)
    if(NOT sources)
        continue()
    endif()
    add_library(layer_${layer} OBJECT ${sources})
    target_include_directories(layer_${layer} PUBLIC ${CMAKE_SOURCE_DIR}/include
                               ${CMAKE_SOURCE_DIR}/src)
    if(layer IN_LIST sonde_reading)
        target_link_libraries(layer_${layer} PUBLIC sonde_libraries)
    endif()
    list(APPEND sonde_layers ${layer})
endforeach()

# The reference nets' loops: vectorised, sums in any order the compiler fixes once.
set_source_files_properties(${CMAKE_SOURCE_DIR}/src/model/ref/kernels.c
    ${CMAKE_SOURCE_DIR}/src/model/ref/kernels_edge.c PROPERTIES
    COMPILE_OPTIONS "-O3;-fno-math-errno;-fno-trapping-math;-fno-signed-zeros;-fassociative-math")

add_library(sonde_all STATIC)
target_include_directories(sonde_all PUBLIC ${CMAKE_SOURCE_DIR}/include
                           ${CMAKE_SOURCE_DIR}/src)
target_link_libraries(sonde_all PUBLIC sonde_libraries)
set_target_properties(sonde_all PROPERTIES ARCHIVE_OUTPUT_DIRECTORY
                      ${CMAKE_BINARY_DIR}/internal)
foreach(layer IN LISTS sonde_layers)
    target_sources(sonde_all PRIVATE $<TARGET_OBJECTS:layer_${layer}>)
endforeach()
