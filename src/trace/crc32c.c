/* crc32c.c: see crc32c.h. The table has 256 entries: only old machines use it. */
#include "trace/crc32c.h"

#include <string.h>

static uint32_t crc_table(uint32_t crc, const uint8_t *p, size_t len)
{
    static uint32_t table[256];
    static int ready; /* racing threads write the same values */
    if (!__atomic_load_n(&ready, __ATOMIC_ACQUIRE)) {
        for (uint32_t i = 0; i < 256; i++) {
            uint32_t c = i;
            for (int bit = 0; bit < 8; bit++)
                c = c & 1 ? c >> 1 ^ 0x82F63B78u : c >> 1;
            __atomic_store_n(&table[i], c, __ATOMIC_RELAXED);
        }
        __atomic_store_n(&ready, 1, __ATOMIC_RELEASE);
    }
    while (len--)
        crc = __atomic_load_n(&table[(crc ^ *p++) & 0xff], __ATOMIC_RELAXED) ^ crc >> 8;
    return crc;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) static uint32_t crc_hardware(uint32_t crc,
                                                               const uint8_t *p,
                                                               size_t len)
{
    uint64_t c = crc;
    for (; len >= 8; p += 8, len -= 8) {
        uint64_t word;
        memcpy(&word, p, 8);
        c = __builtin_ia32_crc32di(c, word);
    }
    uint32_t r = (uint32_t)c;
    while (len--)
        r = __builtin_ia32_crc32qi(r, *p++);
    return r;
}
#endif

uint32_t crc32c(uint32_t crc, const void *data, size_t len)
{
    crc = ~crc;
#if defined(__x86_64__)
    if (__builtin_cpu_supports("sse4.2"))
        return ~crc_hardware(crc, data, len);
#endif
    return ~crc_table(crc, data, len);
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) static void quarters_hardware(const uint64_t *words,
                                                                size_t quarter,
                                                                uint32_t *ret_crc)
{
    uint64_t a = ~0u, b = ~0u, c = ~0u, d = ~0u;
    for (size_t i = 0; i < quarter; i++) {
        a = __builtin_ia32_crc32di(a, words[i]);
        b = __builtin_ia32_crc32di(b, words[i + quarter]);
        c = __builtin_ia32_crc32di(c, words[i + 2 * quarter]);
        d = __builtin_ia32_crc32di(d, words[i + 3 * quarter]);
    }
    ret_crc[0] = ~(uint32_t)a;
    ret_crc[1] = ~(uint32_t)b;
    ret_crc[2] = ~(uint32_t)c;
    ret_crc[3] = ~(uint32_t)d;
}
#endif

uint32_t crc32c_words(const uint64_t *words, size_t count)
{
    uint32_t crc[4] = { 0 };
    size_t quarter = count / 4;
#if defined(__x86_64__)
    if (__builtin_cpu_supports("sse4.2")) {
        quarters_hardware(words, quarter, crc);
        return crc32c(0, crc, sizeof crc);
    }
#endif
    for (size_t i = 0; i < 4; i++)
        crc[i] = crc32c(0, words + i * quarter, quarter * sizeof *words);
    return crc32c(0, crc, sizeof crc);
}
