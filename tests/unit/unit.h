/* unit.h: what every unit test includes: cmocka with the headers it forgets, and a
 * scratch directory. */
#ifndef SONDE_TESTS_UNIT_H
#define SONDE_TESTS_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

/* A fresh directory under $TMPDIR or /tmp; the test removes it. */
static inline char *unit_temp_dir(char path[64])
{
    const char *base = getenv("TMPDIR");
    (void)snprintf(path, 64, "%s/sonde-test-XXXXXX", base ? base : "/tmp");
    return mkdtemp(path);
}

#define assert_near(actual, expected, tolerance)                                       \
    do {                                                                               \
        const double actual_ = (actual);                                               \
        const double expected_ = (expected);                                           \
        const double difference_ = actual_ - expected_;                                \
        if (!(difference_ <= (tolerance) && -difference_ <= (tolerance)))              \
            fail_msg("%s is %.17g, not %.17g", #actual, actual_, expected_);           \
    } while (0)

#endif
