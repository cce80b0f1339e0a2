/* Maps of JITs: names by address, the last word counts, nobody else's file. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "unit.h"

#include "capture/symbol/jitmap.h"

static struct jitmap *parsed(const char *text)
{
    struct jitmap *map = NULL;
    assert_int_equal(jitmap_parse(text, strlen(text), &map), 0);
    return map;
}

static void names_are_found_by_address(void **state)
{
    (void)state;
    struct jitmap *m = parsed("1000 40 first one\n2000 10 second\n0x3000 0x8 third");
    assert_string_equal(jitmap_find(m, 0x1000), "first one");
    assert_string_equal(jitmap_find(m, 0x103f), "first one");
    assert_string_equal(jitmap_find(m, 0x1040), "");
    assert_string_equal(jitmap_find(m, 0x200f), "second");
    assert_string_equal(jitmap_find(m, 0x3007), "third");
    assert_string_equal(jitmap_find(m, 0xfff), "");
    jitmap_free(m);
}

static void code_written_later_wins(void **state)
{
    (void)state;
    struct jitmap *m = parsed("1000 1000 old\n1800 10 inside\n1000 100 new\n");
    assert_string_equal(jitmap_find(m, 0x1000), "new");
    assert_string_equal(jitmap_find(m, 0x1200), "old");
    assert_string_equal(jitmap_find(m, 0x1808), "inside");
    jitmap_free(m);
}

static void lines_that_are_none_are_left_out(void **state)
{
    (void)state;
    struct jitmap *m = parsed("\nzz 1 a\n10 0 empty\nffffffffffffffff 2 over\n10 10\n"
                              "11111111111111111 1 long\n20 10 good\n");
    assert_int_equal(jitmap_count(m), 1);
    assert_string_equal(jitmap_find(m, 0x25), "good");
    jitmap_free(m);
}

static void only_a_regular_file_of_the_owner_is_read(void **state)
{
    (void)state;
    char dir[64], path[128], link[128];
    struct jitmap *m = NULL;
    assert_non_null(unit_temp_dir(dir));
    (void)snprintf(path, sizeof path, "%s/perf-1.map", dir);
    (void)snprintf(link, sizeof link, "%s/perf-2.map", dir);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    (void)fputs("10 10 name\n", f);
    (void)fclose(f);
    assert_int_equal(symlink(path, link), 0);
    assert_int_equal(jitmap_open(path, geteuid() + 1, &m), -EPERM);
    assert_int_equal(jitmap_open(link, geteuid(), &m), -ELOOP);
    assert_int_equal(jitmap_open(dir, geteuid(), &m), -EPERM);
    assert_int_equal(jitmap_open(path, geteuid(), &m), 0);
    assert_string_equal(jitmap_find(m, 0x18), "name");
    jitmap_free(m);
    (void)unlink(path);
    (void)unlink(link);
    assert_int_equal(mkfifo(path, 0600), 0); /* must not wait for a writer */
    assert_int_equal(jitmap_open(path, geteuid(), &m), -EPERM);
    (void)unlink(path);
    (void)rmdir(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_found_by_address),
        cmocka_unit_test(code_written_later_wins),
        cmocka_unit_test(lines_that_are_none_are_left_out),
        cmocka_unit_test(only_a_regular_file_of_the_owner_is_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
