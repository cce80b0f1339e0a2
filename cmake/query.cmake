# libsonde-query.so: <sonde/query.h>, experiments for C programs. Apart from libsonde,
# which lives inside traced programs and needs libc alone.
include(GNUInstallDirs)
if(TARGET layer_search AND SQLITE_FOUND)
    set(query_map ${CMAKE_SOURCE_DIR}/src/search/libsonde-query.map)
    add_library(sonde_query SHARED ${CMAKE_SOURCE_DIR}/src/search/query.c)
    target_include_directories(sonde_query PUBLIC ${CMAKE_SOURCE_DIR}/include
                               PRIVATE ${CMAKE_SOURCE_DIR}/src)
    target_link_libraries(sonde_query PRIVATE sonde_all)
    target_link_options(sonde_query PRIVATE -Wl,--version-script=${query_map})
    set_target_properties(sonde_query PROPERTIES OUTPUT_NAME sonde-query
                          VERSION ${PROJECT_VERSION} SOVERSION 0 LINK_DEPENDS ${query_map})
    install(TARGETS sonde_query LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()
