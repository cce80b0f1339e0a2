/* tablefiles_test.c: going through the files of one kind. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/files.h"
#include "trace/tablefiles.h"
#include "unit.h"

static char dir[64];

static int set_up(void **state)
{
    (void)state;
    return unit_temp_dir(dir) ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    return file_remove_tree(dir);
}

static void make(const char *kind, const char *name)
{
    static const struct tables_spec spec = { "rows", 8, 10 };
    struct tables t;
    char path[200];
    assert_int_equal(tables_create(dir, kind, NULL, &spec, 1, &t), 0);
    (void)snprintf(path, sizeof path, "%s/%s", dir, name);
    assert_int_equal(rename(t.path, path), 0);
    tables_close(&t);
}

static void make_damaged(const char *name)
{
    char path[200];
    (void)snprintf(path, sizeof path, "%s/%s", dir, name);
    const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
    assert_true(fd >= 0 && write(fd, "nothing", 7) == 7);
    (void)close(fd);
}

struct seen {
    struct buf names;
    unsigned damaged, stop_at;
};

static int see(void *arg, const char *name, struct tablefile *file, int rc)
{
    struct seen *s = arg;
    assert_true((file != NULL) == (rc == 0));
    s->damaged += rc < 0;
    buf_printf(&s->names, "%s ", name);
    return s->stop_at && --s->stop_at == 0 ? -ECANCELED : 0;
}

static void files_of_a_kind_come_oldest_first(void **state)
{
    (void)state;
    struct seen s = { .names = BUF_INIT };
    make("heap", "heap-3-1-c.tables");
    make("heap", "heap-1-1-a.tables");
    make("io", "io-0-1-a.tables");
    make_damaged("heap-2-1-b.tables");
    make_damaged("heap-2-1-b.other");
    assert_int_equal(tablefiles_each(dir, "heap", see, &s), 0);
    assert_string_equal(s.names.data,
                        "heap-1-1-a.tables heap-2-1-b.tables heap-3-1-c.tables ");
    assert_int_equal(s.damaged, 1);
    buf_clear(&s.names);
    s.stop_at = 2;
    assert_int_equal(tablefiles_each(dir, "heap", see, &s), -ECANCELED);
    assert_string_equal(s.names.data, "heap-1-1-a.tables heap-2-1-b.tables ");
    buf_clear(&s.names);
    assert_int_equal(tablefiles_each("/nowhere/at/all", "heap", see, &s), 0);
    assert_string_equal(s.names.data, "");
    buf_release(&s.names);
}

static void the_newest_is_the_newest_that_opens(void **state)
{
    (void)state;
    struct buf name = BUF_INIT;
    struct tablefile *file = NULL;
    assert_int_equal(tablefiles_newest(dir, "heap", &name, &file), -ENOENT);
    make("heap", "heap-1-1-a.tables");
    make("heap", "heap-2-1-b.tables");
    make_damaged("heap-3-1-c.tables");
    assert_int_equal(tablefiles_newest(dir, "heap", &name, &file), 0);
    assert_string_equal(name.data, "heap-2-1-b.tables");
    tablefile_free(file);
    buf_release(&name);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(files_of_a_kind_come_oldest_first),
        TEST(the_newest_is_the_newest_that_opens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
