/* plain.h: lets a fuzz target use the helpers of tests/unit without cmocka. Include it
 * before them: it stands in for unit.h. A failed assertion is a bug of the target. */
#ifndef SONDE_TESTS_UNIT_H
#define SONDE_TESTS_UNIT_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define assert_true(x)                 ((x) ? (void)0 : abort())
#define assert_false(x)                assert_true(!(x))
#define assert_null(x)                 assert_true((x) == NULL)
#define assert_non_null(x)             assert_true((x) != NULL)
#define assert_int_equal(a, b)         assert_true((a) == (b))
#define assert_memory_equal(a, b, len) assert_true(memcmp(a, b, len) == 0)

static inline char *unit_temp_dir(char path[64])
{
    const char *base = getenv("TMPDIR");
    (void)snprintf(path, 64, "%s/sonde-fuzz-XXXXXX", base ? base : "/tmp");
    return mkdtemp(path);
}

#endif
