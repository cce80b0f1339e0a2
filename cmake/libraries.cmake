# Libraries of the reading half. The recording half needs libc alone.
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
pkg_check_modules(JANSSON REQUIRED IMPORTED_TARGET jansson)
pkg_check_modules(ZLIB REQUIRED IMPORTED_TARGET zlib)
pkg_check_modules(ZSTD IMPORTED_TARGET libzstd)
pkg_check_modules(NCURSES IMPORTED_TARGET ncursesw)
pkg_check_modules(CMOCKA IMPORTED_TARGET cmocka)

add_library(sonde_libraries INTERFACE)
target_link_libraries(sonde_libraries INTERFACE PkgConfig::JANSSON PkgConfig::ZLIB
                      Threads::Threads m)
if(ZSTD_FOUND)
    target_link_libraries(sonde_libraries INTERFACE PkgConfig::ZSTD)
    target_compile_definitions(sonde_libraries INTERFACE SONDE_HAVE_ZSTD=1)
endif()
if(NCURSES_FOUND) # sonde top on a terminal
    target_link_libraries(sonde_libraries INTERFACE PkgConfig::NCURSES)
    target_compile_definitions(sonde_libraries INTERFACE SONDE_HAVE_NCURSES=1)
endif()
