/* run_test.c: run directories of every condition open, or say why not. */
#include "fake_run.h"

#include <sys/stat.h>
#include <unistd.h>

#include "store/run.h"

static const char good_json[] =
    "{\"schema\":\"sonde.run/1\",\"id\":\"7f3a0001\",\"name\":\"base\","
    "\"command\":[\"./train\",\"--lr\",\"0.1\"],\"cwd\":\"/x\","
    "\"started_ns\":1700000000000000000,\"ended_ns\":1700000012000000000,"
    "\"exit\":{\"code\":null,\"signal\":\"SIGKILL\",\"cause\":\"oom_cgroup\"},"
    "\"pid\":4242,\"proc_start\":77,\"supervisor\":{\"pid\":4241,\"proc_start\":76},"
    "\"host\":\"box\",\"hardware\":{\"cpu\":\"EPYC\",\"cores\":16,\"memory_mb\":1024.5,"
    "\"gpus\":[]},\"tags\":{\"team\":\"x\"},\"params\":{\"batch\":32,\"lr\":0.5,"
    "\"amp\":true},\"level\":\"detailed\",\"rank\":0,\"world_size\":1,"
    "\"parent_run\":null,\"rusage\":{\"cpu_user_s\":1.5,\"cpu_system_s\":0.5,"
    "\"max_rss_mb\":100,\"minor_faults\":1,\"major_faults\":2},"
    "\"overhead\":{\"supervisor_cpu_s\":0.25,\"supervisor_rss_mb\":4},"
    "\"notes\":[\"one\",\"two\"],\"sonde\":\"0.1.0\"}";

static void a_complete_run_opens_with_everything_run_json_says(void **state)
{
    (void)state;
    struct run *run = NULL;
    (void)fake_trace("0002-4243-b.sonde", 4243);
    (void)fake_trace("0001-4242-a.sonde", 4242);
    const char *dir = fake_run_dir("7f3a0001", good_json);
    fake_run_files(dir);
    fake_write(dir, "notes.txt", "no trace");
    fake_write(dir, "control.sonde", "no control file either");
    assert_int_equal(run_open(dir, &run), 0);

    const struct run_meta *m = &run->meta;
    assert_string_equal(run->id, "7f3a0001");
    assert_string_equal(m->name, "base");
    assert_int_equal(m->command_count, 3);
    assert_string_equal(m->command[2], "0.1");
    assert_int_equal(m->exit.signal, 9);
    assert_int_equal(m->exit.code, -1);
    assert_true(m->exit.known);
    assert_string_equal(m->exit.cause, "oom_cgroup");
    assert_int_equal(m->pid, 4242);
    assert_int_equal(m->cores, 16);
    assert_int_equal(m->gpus, 0);
    assert_near(m->memory_mb, 1024.5, 0);
    assert_near(m->supervisor_cpu_s, 0.25, 0);
    assert_int_equal(m->param_count, 3);
    assert_string_equal(m->params[0].value, "32");
    assert_string_equal(m->params[1].value, "0.5");
    assert_string_equal(m->params[2].value, "true");
    assert_int_equal(run->file_count, 2);
    assert_string_equal(run->files[0], "0001-4242-a.sonde");
    run_free(run);
}

static void without_run_json_the_traces_are_enough(void **state)
{
    (void)state;
    struct run *run = NULL;
    (void)fake_trace("0001-4242-a.sonde", 4242);
    const char *dir = fake_run_dir("abc", NULL);
    fake_run_files(dir);
    assert_int_equal(run_open(dir, &run), 0);
    assert_string_equal(run->id, "abc");
    assert_false(run->meta.exit.known);
    assert_true(isnan(run->meta.max_rss_mb));
    assert_true(run->note_count >= 1);
    assert_non_null(strstr(run->notes[0], "run.json"));
    run_free(run);
}

static void a_directory_without_run_or_trace_is_no_run(void **state)
{
    (void)state;
    struct run *run = NULL;
    assert_int_equal(run_open(fake_run_dir("empty", NULL), &run), SONDE_E_NOTFOUND);
    assert_int_equal(run_open("/nowhere/at/all", &run), SONDE_E_NOTFOUND);
    assert_null(run);
}

static void hostile_run_json_is_unknown_not_fatal(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",
        "{",
        "[1,2]",
        "\"text\"",
        "{}",
        "{\"id\":7,\"name\":[],\"command\":\"x\",\"started_ns\":\"now\",\"exit\":3,"
        "\"pid\":-5,\"hardware\":[],\"tags\":[],\"params\":7,\"rusage\":\"\","
        "\"notes\":{},\"supervisor\":null,\"rank\":-3,\"level\":{}}",
        "{\"started_ns\":9223372036854775807,\"ended_ns\":1,\"pid\":99999999999999,"
        "\"exit\":{\"code\":99999,\"signal\":\"SIGNONE\",\"cause\":[]},"
        "\"command\":[1,null,{}],\"notes\":[null,3]}",
        "{\"exit\":{\"signal\":-9}}",
    };
    (void)fake_trace("0001-1-a.sonde", 1);
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct run *run = NULL;
        const char *dir = fake_run_dir("hostile", texts[i]);
        fake_run_files(dir);
        assert_int_equal(run_open(dir, &run), 0);
        assert_string_equal(run->id, "hostile");
        assert_string_equal(run->meta.name, "");
        assert_false(run->meta.exit.known);
        assert_int_equal(run->meta.pid, 0);
        assert_int_equal(run->meta.rank, -1);
        assert_int_equal(run->meta.ended_ns, 0);
        run_free(run);
    }
}

static void deeply_nested_or_huge_run_json_is_refused(void **state)
{
    (void)state;
    struct run *run = NULL;
    struct buf text = BUF_INIT;
    (void)fake_trace("0001-1-a.sonde", 1);
    for (int i = 0; i < 100000; i++)
        buf_putc(&text, '[');
    fake_run_files(fake_run_dir("deep", text.data));
    assert_int_equal(run_open(fake_run_dir("deep", NULL), &run), 0);
    assert_false(run->meta.present);
    run_free(run);

    buf_clear(&text);
    buf_puts(&text, "{\"name\":\"");
    for (int i = 0; i < 5 << 20; i++)
        buf_putc(&text, 'a');
    buf_puts(&text, "\"}");
    fake_run_files(fake_run_dir("huge", text.data));
    assert_int_equal(run_open(fake_run_dir("huge", NULL), &run), 0);
    assert_false(run->meta.present);
    run_free(run);
    buf_release(&text);
}

static void pipes_and_links_are_not_taken_for_files(void **state)
{
    (void)state;
    struct run *run = NULL;
    char path[300];
    (void)fake_trace("0001-1-a.sonde", 1);
    const char *dir = fake_run_dir("pipes", NULL);
    fake_run_files(dir);
    (void)snprintf(path, sizeof(path), "%s/run.json", dir);
    assert_int_equal(mkfifo(path, 0600), 0);
    (void)snprintf(path, sizeof(path), "%s/0002-1-b.sonde", dir);
    assert_int_equal(mkfifo(path, 0600), 0);
    (void)snprintf(path, sizeof(path), "%s/0003-1-c.sonde", dir);
    assert_int_equal(symlink("/etc/passwd", path), 0);
    assert_int_equal(run_open(dir, &run), 0);
    assert_int_equal(run->file_count, 1);
    run_free(run);
}

static void a_single_trace_opens_as_a_run_of_its_directory(void **state)
{
    (void)state;
    struct run *run = NULL;
    char path[300];
    (void)fake_trace("0001-1-a.sonde", 1);
    (void)fake_trace("0002-2-b.sonde", 2);
    const char *dir = fake_run_dir("7f3a0001", good_json);
    fake_run_files(dir);
    (void)snprintf(path, sizeof(path), "%s/0002-2-b.sonde", dir);
    assert_int_equal(run_open(path, &run), 0);
    assert_int_equal(run->file_count, 1);
    assert_string_equal(run->files[0], "0002-2-b.sonde");
    assert_string_equal(run->id, "7f3a0001");
    run_free(run);
}

static void notes_of_the_launcher_are_kept(void **state)
{
    (void)state;
    struct run *run = NULL;
    assert_int_equal(run_open(fake_run_dir("n", good_json), &run), 0);
    size_t found = 0;
    for (size_t i = 0; i < run->note_count; i++)
        found += strcmp(run->notes[i], "one") == 0 || strcmp(run->notes[i], "two") == 0;
    assert_int_equal(found, 2);
    run_free(run);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, fake_setup, fake_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_complete_run_opens_with_everything_run_json_says),
        TEST(without_run_json_the_traces_are_enough),
        TEST(a_directory_without_run_or_trace_is_no_run),
        TEST(hostile_run_json_is_unknown_not_fatal),
        TEST(deeply_nested_or_huge_run_json_is_refused),
        TEST(pipes_and_links_are_not_taken_for_files),
        TEST(a_single_trace_opens_as_a_run_of_its_directory),
        TEST(notes_of_the_launcher_are_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
