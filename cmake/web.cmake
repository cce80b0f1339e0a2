# The app of web/ inside the binary. What is embedded is web/dist/report.html, which is
# committed: building Sonde needs no Node. `npm run build` in web/ makes it anew and a
# test (tests/system/test_html.py) sees that it was.
set(sonde_web_page ${CMAKE_SOURCE_DIR}/web/dist/report.html)
set_source_files_properties(src/present/html/html.c PROPERTIES
    COMPILE_DEFINITIONS "SONDE_WEB_PAGE=\"${sonde_web_page}\""
    OBJECT_DEPENDS ${sonde_web_page})
