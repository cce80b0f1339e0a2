# The Python package: build/python/sonde, with one extension per interpreter and one for all
# others (abi3, from 3.9 on) side by side; an interpreter loads the one made for it.
#
#   SONDE_PYTHON=OFF     leaves it out
#   SONDE_PYTHONS=a:b    environment: these interpreters only (tools/pythons)
set(SONDE_PYTHON ON CACHE BOOL "Build the Python extension")
include(GNUInstallDirs)
set(sonde_pythons "")
if(NOT SONDE_PYTHON OR NOT TARGET layer_record)
    return()
endif()
if(sonde_sanitizers)
    # A sanitized extension needs a sanitized interpreter, or one that is told.
    if(SONDE_SANITIZE MATCHES address AND CMAKE_C_COMPILER_ID STREQUAL "GNU")
        include(${CMAKE_CURRENT_LIST_DIR}/python_sanitized.cmake)
    endif()
    return()
endif()

set(asked ${CMAKE_SOURCE_DIR}/tools/pythons)
if(SONDE_PYTHON_WHEEL) # by pip: for its interpreter alone
    find_package(Python3 REQUIRED COMPONENTS Interpreter)
    set(SONDE_PYTHON_WHEEL_VERSION ${Python3_VERSION_MAJOR}.${Python3_VERSION_MINOR})
    set(asked ${CMAKE_COMMAND} -E env SONDE_PYTHONS=${Python3_EXECUTABLE} ${asked})
endif()
execute_process(COMMAND ${asked} OUTPUT_VARIABLE answer
                OUTPUT_STRIP_TRAILING_WHITESPACE)
string(REPLACE ";" "|" answer "${answer}")
string(REPLACE "\n" ";" sonde_pythons "${answer}")
if(sonde_pythons)
    list(GET sonde_pythons 0 first_python)
endif()

set(sonde_package ${CMAKE_BINARY_DIR}/python/sonde)
file(GLOB extension_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/python/src/*.c)
# libsonde.a keeps its insides to itself; of them the extension needs these.
list(APPEND extension_sources ${CMAKE_SOURCE_DIR}/src/num/ranktest.c
     ${CMAKE_SOURCE_DIR}/src/num/student.c)
file(GLOB_RECURSE package_sources CONFIGURE_DEPENDS
     RELATIVE ${CMAKE_SOURCE_DIR}/python/sonde ${CMAKE_SOURCE_DIR}/python/sonde/*.py
     ${CMAKE_SOURCE_DIR}/python/sonde/*.pyi ${CMAKE_SOURCE_DIR}/python/sonde/py.typed)

# Links, so that an edit is there at once. The second folder has the abi3 extension alone.
set(sonde_package_abi3 ${CMAKE_BINARY_DIR}/python-abi3/sonde)
foreach(folder ${sonde_package} ${sonde_package_abi3})
    file(MAKE_DIRECTORY ${folder})
    foreach(source IN LISTS package_sources)
        get_filename_component(part ${folder}/${source} DIRECTORY)
        file(MAKE_DIRECTORY ${part})
        file(CREATE_LINK ${CMAKE_SOURCE_DIR}/python/sonde/${source} ${folder}/${source}
             SYMBOLIC)
    endforeach()
endforeach()

add_custom_target(python)
function(add_extension target include suffix folder)
    add_library(${target} MODULE ${extension_sources})
    target_include_directories(${target} SYSTEM PRIVATE ${include})
    # For trace/loader_rows.h, a layout both sides share; code comes by public headers.
    target_include_directories(${target} PRIVATE ${CMAKE_SOURCE_DIR}/src)
    # Nothing of ours is anybody else's business: the module's init function is exported.
    target_link_libraries(${target} PRIVATE sonde_static sonde_model)
    target_link_options(${target} PRIVATE -Wl,--exclude-libs,ALL)
    set_target_properties(${target} PROPERTIES PREFIX "" OUTPUT_NAME _sonde
        SUFFIX ${suffix} LIBRARY_OUTPUT_DIRECTORY ${folder})
    # Tables of a type's methods are function pointers of many kinds.
    target_compile_options(${target} PRIVATE -Wno-cast-function-type
                           -Wno-missing-field-initializers)
    add_dependencies(python ${target})
endfunction()

# What the benchmark compares with (bench/python.py).
function(add_floor version include suffix)
    add_library(bench_python_${version} MODULE
                ${CMAKE_SOURCE_DIR}/bench/python_ext/floor_module.c)
    target_include_directories(bench_python_${version} SYSTEM PRIVATE ${include})
    target_compile_options(bench_python_${version} PRIVATE -Wno-missing-field-initializers)
    set_target_properties(bench_python_${version} PROPERTIES PREFIX "" SUFFIX ${suffix}
        OUTPUT_NAME python_floor LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bench/python)
endfunction()

set(oldest "")
foreach(line IN LISTS sonde_pythons)
    string(REPLACE "|" ";" parts "${line}")
    list(GET parts 1 version)
    list(GET parts 2 suffix)
    list(GET parts 3 include)
    add_extension(python_${version} ${include} ${suffix} ${sonde_package})
    add_floor(${version} ${include} ${suffix})
    if(version MATCHES d) # Debian's headers of it are links, which gcc follows too far
        target_compile_definitions(python_${version} PRIVATE Py_DEBUG=1)
    endif()
    if(NOT version MATCHES d AND (NOT oldest OR version VERSION_LESS oldest))
        set(oldest ${version})
        set(oldest_include ${include})
    endif()
endforeach()
if(oldest)
    add_extension(python_abi3 ${oldest_include} .abi3.so ${sonde_package_abi3})
    add_custom_command(TARGET python_abi3 POST_BUILD
        COMMAND ${CMAKE_COMMAND} -E copy ${sonde_package_abi3}/_sonde.abi3.so
                ${sonde_package}/_sonde.abi3.so)
    target_compile_definitions(python_abi3 PRIVATE Py_LIMITED_API=0x03090000)
    message(STATUS "Python extension for: ${sonde_pythons}")
else()
    message(STATUS "No Python from 3.9 on with headers: no Python extension")
endif()

# The command as wheels carry it: with the libraries it needs beside it (tools/wheel).
# RPATH rather than RUNPATH, so that those libraries find each other there too.
if(TARGET layer_cli)
    add_executable(sonde_wheel src/cli/main.c)
    target_link_libraries(sonde_wheel PRIVATE sonde_all)
    target_link_options(sonde_wheel PRIVATE -Wl,--disable-new-dtags)
    set_target_properties(sonde_wheel PROPERTIES OUTPUT_NAME sonde
        RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/wheel
        BUILD_RPATH "\$ORIGIN/lib" INSTALL_RPATH "\$ORIGIN/lib")
    add_dependencies(python sonde_wheel)
    if(TARGET sonde_preload)
        add_dependencies(python sonde_preload)
    endif()
endif()

# `pip install ./python`: scikit-build-core installs the component "python" into the wheel
# and brings the .py files itself.
if(SONDE_PYTHON_WHEEL AND oldest)
    install(TARGETS python_${SONDE_PYTHON_WHEEL_VERSION} LIBRARY DESTINATION sonde
            COMPONENT python)
    install(TARGETS sonde_wheel RUNTIME DESTINATION sonde/bin COMPONENT python)
    if(TARGET sonde_preload) # the command looks for it beside itself
        install(TARGETS sonde_preload LIBRARY DESTINATION sonde/bin COMPONENT python)
    endif()
endif()

# make install: the package beside the command, where `sonde run` will find it for any
# interpreter.
if(NOT SONDE_PYTHON_WHEEL AND oldest)
    set(installed_package ${CMAKE_INSTALL_LIBDIR}/sonde/inject/sonde)
    foreach(source IN LISTS package_sources)
        get_filename_component(part ${source} DIRECTORY)
        install(FILES ${CMAKE_SOURCE_DIR}/python/sonde/${source}
                DESTINATION ${installed_package}/${part})
    endforeach()
    foreach(line IN LISTS sonde_pythons)
        string(REPLACE "|" ";" parts "${line}")
        list(GET parts 1 version)
        if(NOT version MATCHES d)
            install(TARGETS python_${version} LIBRARY DESTINATION ${installed_package})
        endif()
    endforeach()
    install(TARGETS python_abi3 LIBRARY DESTINATION ${installed_package})
endif()
