/* list_test.c: the runs of a store, and which of them a person means. */
#include "fake_run.h"

#include <unistd.h>

#include "store/list.h"

static void make(const char *id, const char *name, int64_t started_s,
                 const char *parent)
{
    struct buf text = BUF_INIT;
    buf_printf(&text,
               "{\"id\":\"%s\",\"name\":\"%s\",\"started_ns\":%lld000000000,"
               "\"ended_ns\":%lld500000000,\"exit\":{\"code\":0,\"signal\":null,"
               "\"cause\":\"ok\"},\"parent_run\":%s%s%s}",
               id, name, (long long)started_s, (long long)started_s, parent ? "\"" : "",
               parent ? parent : "null", parent ? "\"" : "");
    (void)fake_run_dir(id, text.data);
    buf_release(&text);
}

static void make_store(void)
{
    make("aaaa1111", "first", 1000, NULL);
    make("aaaa2222", "twin", 2000, NULL);
    make("bbbb3333", "twin", 3000, NULL);
    make("cccc4444", "trial", 4000, "bbbb3333");
}

/* The id the reference leads to, or the error. */
static int resolve(const char *ref, char ret_id[64], struct buf *note)
{
    struct buf path = BUF_INIT;
    buf_clear(note);
    const int rc = run_resolve(fake_root, ref, &path, note);
    (void)snprintf(ret_id, 64, "%.60s", rc == 0 ? path_base(path.data) : "");
    if (rc < 0)
        assert_int_equal(path.len, 0);
    buf_release(&path);
    return rc;
}

static void the_list_is_newest_first(void **state)
{
    (void)state;
    struct run_list list;
    make_store();
    assert_int_equal(run_list_read(fake_root, &list), 0);
    assert_int_equal(list.count, 4);
    assert_string_equal(list.rows[0].id, "cccc4444");
    assert_false(list.rows[0].top_level);
    assert_string_equal(list.rows[3].id, "aaaa1111");
    assert_false(list.rows[3].live);
    run_list_release(&list);
}

static void a_store_that_is_not_there_has_no_runs(void **state)
{
    (void)state;
    struct run_list list;
    assert_int_equal(run_list_read("/nowhere/at/all", &list), 0);
    assert_int_equal(list.count, 0);
    run_list_release(&list);
}

static void every_kind_of_reference_finds_its_run(void **state)
{
    (void)state;
    static const struct {
        const char *ref, *id;
    } cases[] = {
        { NULL, "bbbb3333" },    { "@last", "bbbb3333" }, { "@0", "bbbb3333" },
        { "@1", "aaaa2222" },    { "@2", "aaaa1111" },    { "cccc4444", "cccc4444" },
        { "first", "aaaa1111" }, { "twin", "bbbb3333" },  { "b", "bbbb3333" },
        { "aaaa2", "aaaa2222" }, { "trial", "cccc4444" },
    };
    char id[64];
    struct buf note = BUF_INIT;
    make_store();
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(resolve(cases[i].ref, id, &note), 0);
        assert_string_equal(id, cases[i].id);
    }
    buf_release(&note);
}

static void a_name_used_twice_is_noted(void **state)
{
    (void)state;
    char id[64];
    struct buf note = BUF_INIT;
    make_store();
    assert_int_equal(resolve("twin", id, &note), 0);
    assert_non_null(strstr(note.data, "2 runs are called 'twin'"));
    assert_int_equal(resolve("first", id, &note), 0);
    assert_int_equal(note.len, 0);
    buf_release(&note);
}

static void errors_say_what_to_do(void **state)
{
    (void)state;
    static const struct {
        const char *ref;
        int rc;
        const char *word;
    } cases[] = {
        { "aaaa", SONDE_E_AMBIGUOUS, "aaaa2222 aaaa1111" },
        { "zzz", SONDE_E_NOTFOUND, "sonde list" },
        { "@3", SONDE_E_NOTFOUND, "has 3" },
        { "@x", SONDE_E_USAGE, "@last" },
        { "", SONDE_E_USAGE, "empty" },
        { "no/such/dir", SONDE_E_NOTFOUND, "no run directory" },
    };
    char id[64];
    struct buf note = BUF_INIT;
    assert_int_equal(resolve(NULL, id, &note), SONDE_E_NOTFOUND);
    assert_non_null(strstr(note.data, "sonde run -- "));
    make_store();
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(resolve(cases[i].ref, id, &note), cases[i].rc);
        assert_non_null(strstr(note.data, cases[i].word));
    }
    buf_release(&note);
}

static void a_path_wins_over_a_name_only_when_it_is_a_run(void **state)
{
    (void)state;
    char id[64];
    char cwd[256];
    struct buf note = BUF_INIT;
    make_store();
    assert_non_null(getcwd(cwd, sizeof(cwd)));
    assert_int_equal(chdir(fake_root), 0);
    assert_int_equal(dir_make("first", 0700), 0);
    assert_int_equal(resolve("first", id, &note), 0);
    assert_string_equal(id, "aaaa1111");
    fake_write("first", "run.json", "{}");
    assert_int_equal(resolve("first", id, &note), 0);
    assert_string_equal(id, "first");
    assert_int_equal(resolve("runs/cccc4444", id, &note), 0);
    assert_string_equal(id, "cccc4444");
    assert_int_equal(chdir(cwd), 0);
    buf_release(&note);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, fake_setup, fake_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_list_is_newest_first),
        TEST(a_store_that_is_not_there_has_no_runs),
        TEST(every_kind_of_reference_finds_its_run),
        TEST(a_name_used_twice_is_noted),
        TEST(errors_say_what_to_do),
        TEST(a_path_wins_over_a_name_only_when_it_is_a_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
