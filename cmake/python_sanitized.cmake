# The extension with the sanitizers, for one interpreter: build-asan/python-sanitized. An
# interpreter that is not sanitized loads it when the sanitizers' libraries are preloaded
# (tests/system/test_sanitized_extension.py). Kept apart: nothing finds it by chance.
execute_process(COMMAND ${CMAKE_COMMAND} -E env SONDE_PYTHONS=/usr/bin/python3
                        ${CMAKE_SOURCE_DIR}/tools/pythons
                OUTPUT_VARIABLE answer OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
if(NOT answer MATCHES "^[^;]*;[^;]*;([^;]*);([^;]*)$")
    return()
endif()
set(suffix ${CMAKE_MATCH_1})
set(include ${CMAKE_MATCH_2})
set(folder ${CMAKE_BINARY_DIR}/python-sanitized/sonde)

file(GLOB extension_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/python/src/*.c)
list(APPEND extension_sources ${CMAKE_SOURCE_DIR}/src/num/ranktest.c
     ${CMAKE_SOURCE_DIR}/src/num/student.c)
add_library(python_sanitized MODULE ${extension_sources})
target_include_directories(python_sanitized SYSTEM PRIVATE ${include})
target_include_directories(python_sanitized PRIVATE ${CMAKE_SOURCE_DIR}/src)
target_link_libraries(python_sanitized PRIVATE sonde_static sonde_model)
target_link_options(python_sanitized PRIVATE -Wl,--exclude-libs,ALL)
target_compile_options(python_sanitized PRIVATE -Wno-cast-function-type
                       -Wno-missing-field-initializers)
set_target_properties(python_sanitized PROPERTIES PREFIX "" OUTPUT_NAME _sonde
    SUFFIX ${suffix} LIBRARY_OUTPUT_DIRECTORY ${folder})

file(GLOB_RECURSE package_sources CONFIGURE_DEPENDS
     RELATIVE ${CMAKE_SOURCE_DIR}/python/sonde ${CMAKE_SOURCE_DIR}/python/sonde/*.py)
foreach(source IN LISTS package_sources)
    get_filename_component(part ${folder}/${source} DIRECTORY)
    file(MAKE_DIRECTORY ${part})
    file(CREATE_LINK ${CMAKE_SOURCE_DIR}/python/sonde/${source} ${folder}/${source}
         SYMBOLIC)
endforeach()
