# make install PREFIX=… DESTDIR=…
include(GNUInstallDirs)

if(TARGET layer_cli)
    install(TARGETS sonde RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
install(TARGETS sonde_shared LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
if(TARGET sonde_preload)
    install(TARGETS sonde_preload LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/sonde)
endif()
install(FILES ${sonde_archive} DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS sonde_model ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY include/sonde DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
        FILES_MATCHING PATTERN "*.h")

install(FILES docs/sonde.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(FILES tools/completion/sonde.bash RENAME sonde
        DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
install(FILES tools/completion/_sonde
        DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)

# Written while installing: only then is the prefix certain.
install(CODE "
    set(SONDE_PREFIX \"\${CMAKE_INSTALL_PREFIX}\")
    set(SONDE_LIBDIR \"${CMAKE_INSTALL_LIBDIR}\")
    set(SONDE_INCLUDEDIR \"${CMAKE_INSTALL_INCLUDEDIR}\")
    set(SONDE_VERSION \"${PROJECT_VERSION}\")
    # Elsewhere the loader looks only when told, or after ldconfig, which needs root.
    if(NOT SONDE_PREFIX STREQUAL \"/usr\")
        set(SONDE_RPATH \" -Wl,-rpath,\\\${libdir}\")
    endif()
    configure_file(\"${CMAKE_SOURCE_DIR}/cmake/sonde.pc.in\"
                   \"${CMAKE_BINARY_DIR}/internal/sonde.pc\" @ONLY)")
install(FILES ${CMAKE_BINARY_DIR}/internal/sonde.pc
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
