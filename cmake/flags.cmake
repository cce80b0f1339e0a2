# Flags for everything that is compiled here.
set(CMAKE_C_STANDARD 17)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

# -g: a profiler that crashes must say where. It costs disk, not time.
set(CMAKE_C_FLAGS_RELEASE "-O2 -g -DNDEBUG -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2")
set(CMAKE_C_FLAGS_DEBUG "-Og -g")
set(CMAKE_CXX_FLAGS_RELEASE "${CMAKE_C_FLAGS_RELEASE}")
set(CMAKE_CXX_FLAGS_DEBUG "${CMAKE_C_FLAGS_DEBUG}")

add_compile_definitions(_GNU_SOURCE)
add_compile_options(
    -Wall -Wextra -Werror -Wshadow -Wpointer-arith -Wvla
    $<$<COMPILE_LANGUAGE:C>:-Wstrict-prototypes>
    $<$<COMPILE_LANGUAGE:C>:-Wmissing-prototypes>
    -fstack-protector-strong -fstack-clash-protection)
add_link_options(-Wl,-z,relro,-z,now,-z,noexecstack)

include(CheckPIESupported)
check_pie_supported(LANGUAGES C)

if(SONDE_SANITIZE STREQUAL "fuzzer")
    # Coverage everywhere; the driver with its main() only in the fuzz targets.
    set(sonde_sanitizers fuzzer-no-link,address,undefined)
else()
    set(sonde_sanitizers ${SONDE_SANITIZE})
endif()
if(sonde_sanitizers)
    add_compile_options(-fsanitize=${sonde_sanitizers} -fno-sanitize-recover=all
                        -fno-omit-frame-pointer)
    add_link_options(-fsanitize=${sonde_sanitizers})
    add_compile_definitions(SONDE_SANITIZED=1)
endif()
if(SONDE_SANITIZE STREQUAL "thread" AND CMAKE_C_COMPILER_ID MATCHES Clang)
    # gcc defines it by itself; sonde.h then avoids assembler that TSan cannot see.
    add_compile_definitions(__SANITIZE_THREAD__=1)
endif()

# A test program under AddressSanitizer that forks beside threads: see tests/fork_whole.c.
function(fork_whole target)
    get_target_property(libs ${target} LINK_OPTIONS)
    if(SONDE_SANITIZE MATCHES address AND NOT "-fno-sanitize=all" IN_LIST libs)
        target_sources(${target} PRIVATE ${CMAKE_SOURCE_DIR}/tests/fork_whole.c)
    endif()
endfunction()
