# Small programs: helpers of system tests, workloads, benchmarks; and the heads that
# describe them.
#
# The first lines of a source may say (`//` in C and C++, `#` in Python):
#   // link: a       libsonde.a (the default)
#   // link: so      libsonde.so
#   // link: all     sonde's insides, for what the public headers do not offer
#   // link: none    nothing of Sonde
#   // flags: -O0 …  compiler flags
#   // libs: -ldl …  linker flags and libraries
# and tests besides:
#   // labels: no_asan …   // timeout: 120   // serial: yes

# The value behind "KEY:" among the file's first lines, or `fallback`.
function(read_head file key fallback ret_value)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
    file(STRINGS ${file} lines LIMIT_COUNT 20)
    set(${ret_value} "${fallback}" PARENT_SCOPE)
    foreach(line IN LISTS lines)
        if(line MATCHES "^(//|#) ${key}: *(.*)$")
            set(${ret_value} "${CMAKE_MATCH_2}" PARENT_SCOPE)
            return()
        endif()
    endforeach()
endfunction()

function(apply_head target file)
    read_head(${file} link a link)
    read_head(${file} flags "" flags)
    read_head(${file} libs "" libs)
    separate_arguments(flags UNIX_COMMAND "${flags}")
    separate_arguments(libs UNIX_COMMAND "${libs}")
    target_include_directories(${target} PRIVATE ${CMAKE_SOURCE_DIR}/include
                               ${CMAKE_SOURCE_DIR}/tests/system/progs)
    target_compile_options(${target} PRIVATE ${flags})
    if(link STREQUAL "a")
        target_link_libraries(${target} PRIVATE sonde_static)
    elseif(link STREQUAL "so")
        target_link_libraries(${target} PRIVATE sonde_shared)
    elseif(link STREQUAL "all")
        target_link_libraries(${target} PRIVATE sonde_all)
    elseif(NOT link STREQUAL "none")
        message(FATAL_ERROR "${file}: link: ${link}? (a, so, all or none)")
    endif()
    if(SONDE_SANITIZE AND "-static" IN_LIST libs)
        # Sanitizers need the dynamic loader; such a program stays what it is without.
        target_compile_options(${target} PRIVATE -fno-sanitize=all)
        target_link_options(${target} PRIVATE -fno-sanitize=all)
    endif()
    target_link_libraries(${target} PRIVATE ${libs})
endfunction()

# Builds every source of `folder` into <build>/`where`/NAME, or NAME.so for modules.
function(add_small_programs folder where kind)
    file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${folder}/*.c
         ${CMAKE_SOURCE_DIR}/${folder}/*.cpp)
    foreach(source IN LISTS sources)
        get_filename_component(name ${source} NAME_WE)
        get_filename_component(extension ${source} EXT)
        if(extension STREQUAL ".cpp" AND NOT CMAKE_CXX_COMPILER)
            continue()
        endif()
        string(REPLACE / _ target ${where}_${name})
        if(kind STREQUAL "MODULE")
            set(target ${target}_so)
            add_library(${target} MODULE ${source})
        else()
            add_executable(${target} ${source})
        endif()
        set_target_properties(${target} PROPERTIES OUTPUT_NAME ${name} PREFIX ""
                              C_VISIBILITY_PRESET default
                              RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/${where}
                              LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/${where})
        apply_head(${target} ${source})
        if(kind STREQUAL "EXECUTABLE")
            fork_whole(${target})
        endif()
    endforeach()
endfunction()

include(CheckLanguage)
check_language(CXX)
if(CMAKE_CXX_COMPILER)
    enable_language(CXX)
endif()

# The libraries do not exist while only some layers are built.
if(TARGET layer_record)
    add_small_programs(tests/system/progs progs EXECUTABLE)
    add_small_programs(tests/system/libs progs MODULE)
    add_small_programs(workloads workloads EXECUTABLE)
    add_small_programs(workloads/sick workloads/sick EXECUTABLE)
    add_small_programs(workloads/healthy workloads/healthy EXECUTABLE)
    foreach(folder sick sick/cured healthy)
        add_small_programs(workloads/unseen/${folder} workloads/unseen/${folder} EXECUTABLE)
    endforeach()
    add_small_programs(bench bench EXECUTABLE)
endif()
