# The recording half as people link it.
#
# libsonde.a is one object: `ld -r` joins the layers and objcopy makes every hidden
# symbol local, so that our buf_append() cannot meet the user's.
set(sonde_library_objects)
foreach(layer IN LISTS sonde_recording)
    if(TARGET layer_${layer})
        list(APPEND sonde_library_objects $<TARGET_OBJECTS:layer_${layer}>)
    endif()
endforeach()

set(sonde_archive ${CMAKE_BINARY_DIR}/libsonde.a)
set(sonde_joined ${CMAKE_BINARY_DIR}/internal/libsonde.o)
add_custom_command(
    OUTPUT ${sonde_archive}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_BINARY_DIR}/internal
    COMMAND ${CMAKE_LINKER} -r -o ${sonde_joined} ${sonde_library_objects}
    COMMAND ${CMAKE_OBJCOPY} --localize-hidden ${sonde_joined}
    COMMAND ${CMAKE_COMMAND} -E rm -f ${sonde_archive}
    COMMAND ${CMAKE_AR} rcs ${sonde_archive} ${sonde_joined}
    DEPENDS ${sonde_library_objects}
    COMMENT "Joining libsonde.a"
    COMMAND_EXPAND_LISTS VERBATIM)
add_custom_target(sonde_archive ALL DEPENDS ${sonde_archive})

add_library(sonde_static STATIC IMPORTED GLOBAL)
set_target_properties(sonde_static PROPERTIES IMPORTED_LOCATION ${sonde_archive})
target_include_directories(sonde_static INTERFACE ${CMAKE_SOURCE_DIR}/include)
target_link_libraries(sonde_static INTERFACE Threads::Threads m)
add_dependencies(sonde_static sonde_archive)

set(sonde_exports ${CMAKE_SOURCE_DIR}/src/record/libsonde.map)
if(NOT EXISTS ${sonde_exports})
    set(sonde_exports ${CMAKE_SOURCE_DIR}/cmake/provisional.map)
endif()
add_library(sonde_shared SHARED ${sonde_library_objects})
target_include_directories(sonde_shared INTERFACE ${CMAKE_SOURCE_DIR}/include)
target_link_libraries(sonde_shared PRIVATE Threads::Threads m)
target_link_options(sonde_shared PRIVATE -Wl,--version-script=${sonde_exports})
if(NOT sonde_sanitizers) # their symbols come with the program
    target_link_options(sonde_shared PRIVATE -Wl,--no-undefined)
endif()
set_target_properties(sonde_shared PROPERTIES OUTPUT_NAME sonde VERSION ${PROJECT_VERSION}
                      SOVERSION 0 LINKER_LANGUAGE C LINK_DEPENDS ${sonde_exports})

# The cost formulas as people link them: include/sonde/model.h, libc and libm alone. They
# are apart from libsonde, which lives inside traced programs and stays small.
add_library(sonde_model STATIC src/model/cost.c src/model/dense.c src/model/attend.c
            src/model/message.c src/model/encoding.c src/model/layer.c
            src/model/estimate.c src/model/list.c src/model/config.c)
target_include_directories(sonde_model PUBLIC ${CMAKE_SOURCE_DIR}/include
                           PRIVATE ${CMAKE_SOURCE_DIR}/src)
set_target_properties(sonde_model PROPERTIES OUTPUT_NAME sonde-model)
