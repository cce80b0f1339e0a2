# The Python package: build/python/sonde, one extension per interpreter and one for all
# others (abi3, from 3.9 on) side by side; an interpreter loads the one made for it.
#
#   SONDE_PYTHON=OFF     leaves it out
#   SONDE_PYTHONS=a:b    environment: these interpreters only (tools/pythons)
set(SONDE_PYTHON ON CACHE BOOL "Build the Python extension")
if(NOT SONDE_PYTHON OR NOT TARGET layer_record OR sonde_sanitizers)
    # A sanitized extension needs a sanitized interpreter.
    return()
endif()

execute_process(COMMAND ${CMAKE_SOURCE_DIR}/tools/pythons OUTPUT_VARIABLE answer
                OUTPUT_STRIP_TRAILING_WHITESPACE)
string(REPLACE ";" "|" answer "${answer}")
string(REPLACE "\n" ";" sonde_pythons "${answer}")

set(sonde_package ${CMAKE_BINARY_DIR}/python/sonde)
file(GLOB extension_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/python/src/*.c)
file(GLOB package_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/python/sonde/*.py
     ${CMAKE_SOURCE_DIR}/python/sonde/*.pyi ${CMAKE_SOURCE_DIR}/python/sonde/py.typed)

# Links, so that an edit is there at once.
file(MAKE_DIRECTORY ${sonde_package})
foreach(source IN LISTS package_sources)
    get_filename_component(name ${source} NAME)
    file(CREATE_LINK ${source} ${sonde_package}/${name} SYMBOLIC)
endforeach()

add_custom_target(python)
function(add_extension target include suffix)
    add_library(${target} MODULE ${extension_sources})
    target_include_directories(${target} SYSTEM PRIVATE ${include})
    # Static TLS for the two pointers of ours; nothing of ours is anybody else's business.
    target_link_libraries(${target} PRIVATE sonde_static)
    target_link_options(${target} PRIVATE -Wl,--exclude-libs,ALL)
    set_target_properties(${target} PROPERTIES PREFIX "" OUTPUT_NAME _sonde
        SUFFIX ${suffix} LIBRARY_OUTPUT_DIRECTORY ${sonde_package})
    # Tables of a type's methods are function pointers of many kinds.
    target_compile_options(${target} PRIVATE -Wno-cast-function-type
                           -Wno-missing-field-initializers)
    add_dependencies(python ${target})
endfunction()

set(oldest "")
foreach(line IN LISTS sonde_pythons)
    string(REPLACE "|" ";" parts "${line}")
    list(GET parts 1 version)
    list(GET parts 2 suffix)
    list(GET parts 3 include)
    add_extension(python_${version} ${include} ${suffix})
    if(NOT oldest OR version VERSION_LESS oldest)
        set(oldest ${version})
        set(oldest_include ${include})
    endif()
endforeach()
if(oldest)
    add_extension(python_abi3 ${oldest_include} .abi3.so)
    target_compile_definitions(python_abi3 PRIVATE Py_LIMITED_API=0x03090000)
    message(STATUS "Python extension for: ${sonde_pythons}")
else()
    message(STATUS "No Python from 3.9 on with headers: no Python extension")
endif()
