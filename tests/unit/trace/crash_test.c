/* What a faulting process left, whole and damaged. */
#include "trace/crash.h"

#include <string.h>

#include "base/error.h"
#include "num/prng.h"
#include "unit.h"

static const char maps[] =
    "55d000000000-55d000001000 r--p 00000000 fe:00 12 /opt/my train\n"
    "55d000001000-55d000005000 r-xp 00001000 fe:00 12 /opt/my train\n"
    "7f0000000000-7f0000100000 r-xp 00020000 fe:00 13 /lib/libx.so.6\n"
    "7ffe00000000-7ffe00100000 rw-p 00000000 00:00 0 [stack]\n"
    "7fff00000000-7fff00001000 r-xp 00000000 00:00 0";

static size_t make(char *bytes, uint32_t frames)
{
    struct crash_record r = { .magic = CRASH_MAGIC,
                              .signal = 11,
                              .pid = 7,
                              .tid = 8,
                              .address = 16,
                              .frame_count = frames };
    r.frame[0] = 0x55d000001234;
    r.frame[1] = 0x7f0000000010;
    r.frame[2] = 0x1234;
    memcpy(bytes, &r, sizeof r);
    memcpy(bytes + sizeof r, maps, sizeof maps - 1);
    return sizeof r + sizeof maps - 1;
}

static void frames_find_their_modules(void **state)
{
    char bytes[2048];
    struct crash c;
    (void)state;
    const size_t len = make(bytes, 3);
    assert_int_equal(crash_parse(bytes, len, &c), 0);
    assert_int_equal(c.signal, 11);
    assert_int_equal(c.pid, 7);
    assert_int_equal(c.frame_count, 3);
    assert_string_equal(c.frame[0].module, "/opt/my train");
    assert_true(c.frame[0].offset == 0x1234);
    assert_string_equal(c.frame[1].module, "/lib/libx.so.6");
    assert_string_equal(c.frame[2].module, "");
}

static void damage_is_an_error_not_a_crash(void **state)
{
    char bytes[2048];
    struct crash c;
    struct prng random;
    (void)state;
    const size_t len = make(bytes, 0xffffffff);
    assert_int_equal(crash_parse(bytes, 100, &c), SONDE_E_TRUNCATED);
    assert_int_equal(crash_parse(bytes, len, &c), 0);
    assert_int_equal(c.frame_count, CRASH_FRAMES);
    assert_int_equal(crash_parse(bytes, sizeof(struct crash_record), &c), 0);
    prng_init(&random, 3);
    for (int i = 0; i < 20000; i++) {
        char damaged[2048];
        memcpy(damaged, bytes, len);
        for (int k = 0; k < 8; k++)
            damaged[8 + prng_next(&random) % (len - 8)] = (char)prng_next(&random);
        (void)crash_parse(damaged, len - prng_next(&random) % 200, &c);
        assert_true(c.frame_count <= CRASH_FRAMES);
    }
    bytes[0] ^= 1;
    assert_int_equal(crash_parse(bytes, len, &c), SONDE_E_FORMAT);
}

static void names_are_told_apart(void **state)
{
    (void)state;
    assert_true(crash_is_name("crash-12.fault"));
    assert_false(crash_is_name("crash-.fault"));
    assert_false(crash_is_name("crash-12"));
    assert_false(crash_is_name("x.fault"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frames_find_their_modules),
        cmocka_unit_test(damage_is_an_error_not_a_crash),
        cmocka_unit_test(names_are_told_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
