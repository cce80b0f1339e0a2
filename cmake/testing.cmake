# Tests for ctest. Labels: unit, system, fuzz, tools choose a kind; `tsan` marks those
# that are worth running under ThreadSanitizer, `no_asan` those that cannot run under
# AddressSanitizer.
enable_testing()

# Everything the label `tsan` needs: ThreadSanitizer's build stops there.
add_custom_target(tsan_tests)

set(sonde_test_environment
    "UBSAN_OPTIONS=print_stacktrace=1"
    "TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1"
    "PYTHONDONTWRITEBYTECODE=1"
    "SONDE_BUILD=${CMAKE_BINARY_DIR}"
    "SONDE_SOURCE=${CMAKE_SOURCE_DIR}")

function(describe_test name file timeout labels)
    read_head(${file} labels "" more_labels)
    read_head(${file} timeout ${timeout} timeout)
    read_head(${file} serial no serial)
    # A core has room for two tests that mostly wait (`waits: yes` in their head): tools/test
    # gives ctest twice as many places as there are cores, and others take two of them.
    read_head(${file} waits no waits)
    set(places 2)
    if(waits)
        set(places 1)
    endif()
    separate_arguments(more_labels)
    set_tests_properties(${name} PROPERTIES
        LABELS "${labels};${more_labels}" TIMEOUT ${timeout} RUN_SERIAL ${serial}
        PROCESSORS ${places}
        ENVIRONMENT "${sonde_test_environment}")
endfunction()

# tests/unit/LAYER/X_test.c -> test unit/LAYER/X
function(add_unit_test source)
    file(RELATIVE_PATH path ${CMAKE_SOURCE_DIR}/tests/unit ${source})
    string(REGEX REPLACE "_test\\.c$" "" path ${path})
    string(REGEX MATCH "^[^/]+" layer ${path})
    if(layer STREQUAL "capture" AND NOT TARGET layer_capture)
        set(layer monitor) # so far all there is of it
    endif()
    if(NOT layer IN_LIST sonde_layers)
        return()
    endif()
    string(REPLACE / _ target unit_${path})
    get_filename_component(folder ${path} DIRECTORY)
    get_filename_component(name ${path} NAME)

    add_executable(${target} ${source})
    set_target_properties(${target} PROPERTIES OUTPUT_NAME ${name}_test
        RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/unit/${folder})
    target_include_directories(${target} PRIVATE ${CMAKE_SOURCE_DIR}/tests/unit)
    target_link_libraries(${target} PRIVATE sonde_all PkgConfig::CMOCKA)
    fork_whole(${target})
    add_test(NAME unit/${path} COMMAND ${target})
    set(labels unit)
    # Tests of damaged files have one thread and many rounds: TSan would only be slow.
    if((layer MATCHES "^(trace|record)$" AND NOT name MATCHES "damage|kill_step") OR
       "${path}_" MATCHES "_threads_")
        list(APPEND labels tsan)
        add_dependencies(tsan_tests ${target})
    endif()
    describe_test(unit/${path} ${source} 240 "${labels}")
endfunction()

# fuzz/X_fuzz.c -> a replay of its corpus everywhere, the fuzzer in the fuzz preset.
function(add_fuzz_target source)
    get_filename_component(name ${source} NAME_WE)
    string(REGEX REPLACE "_fuzz$" "" name ${name})
    add_executable(fuzz_${name}_replay ${source} ${CMAKE_SOURCE_DIR}/fuzz/replay.c)
    set(targets fuzz_${name}_replay)
    add_test(NAME fuzz/${name}
             COMMAND fuzz_${name}_replay ${CMAKE_SOURCE_DIR}/fuzz/corpus/${name})
    describe_test(fuzz/${name} ${source} 240 fuzz)
    if(SONDE_SANITIZE STREQUAL "fuzzer")
        add_executable(fuzz_${name} ${source})
        target_link_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
        list(APPEND targets fuzz_${name})
    endif()
    foreach(target IN LISTS targets)
        string(REPLACE fuzz_ "" output ${target})
        target_link_libraries(${target} PRIVATE sonde_all)
        set_target_properties(${target} PROPERTIES OUTPUT_NAME ${output}
            RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/fuzz)
    endforeach()
endfunction()

function(add_python_test source label)
    get_filename_component(name ${source} NAME_WE)
    string(REGEX REPLACE "^test_" "" name ${name})
    # Debian's interpreter, which has Debian's pytest; the first python3 may have none.
    add_test(NAME ${label}/${name}
             COMMAND /usr/bin/python3 -m pytest -q -rR -p no:cacheprovider ${source})
    describe_test(${label}/${name} ${source} 300 ${label})
endfunction()

file(GLOB_RECURSE unit_tests CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/unit/*_test.c)
file(GLOB fuzz_targets CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/fuzz/*_fuzz.c)
file(GLOB system_tests CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/system/test_*.py)
file(GLOB tool_tests CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/tools/test_*.py)

if(CMOCKA_FOUND)
    foreach(source IN LISTS unit_tests)
        add_unit_test(${source})
    endforeach()
endif()
if(NOT SONDE_LAYERS)
    foreach(source IN LISTS fuzz_targets)
        add_fuzz_target(${source})
    endforeach()
    foreach(source IN LISTS system_tests)
        add_python_test(${source} system)
    endforeach()
endif()
# The tools do not depend on how the C code was compiled: once is enough.
if(NOT SONDE_SANITIZE)
    foreach(source IN LISTS tool_tests)
        add_python_test(${source} tools)
    endforeach()
    add_test(NAME tools/layers COMMAND /usr/bin/python3 tools/check_layers
             WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
    set_tests_properties(tools/layers PROPERTIES LABELS tools TIMEOUT 60)
endif()

# tests/python with every interpreter the extension was built for; with the first one
# also the extension for all others.
function(add_interpreter_test name interpreter package)
    add_test(NAME python/${name}
             COMMAND ${CMAKE_SOURCE_DIR}/tools/test_python ${interpreter})
    # The longest of all: first, so that none is alone at the end. Hundreds of small
    # programs one after the other, which wait for a third of the time and more.
    set_tests_properties(python/${name} PROPERTIES LABELS python TIMEOUT 900
        PROCESSORS 1 COST 200
        ENVIRONMENT "${sonde_test_environment};SONDE_PACKAGE=${package}")
endfunction()

foreach(line IN LISTS sonde_pythons)
    string(REPLACE "|" ";" parts "${line}")
    list(GET parts 0 interpreter)
    list(GET parts 1 version)
    add_interpreter_test(${version} ${interpreter} ${CMAKE_BINARY_DIR}/python)
    if(line STREQUAL first_python)
        add_interpreter_test(abi3 ${interpreter} ${CMAKE_BINARY_DIR}/python-abi3)
    endif()
endforeach()
