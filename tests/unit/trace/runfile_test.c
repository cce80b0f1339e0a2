#include "trace/runfile.h"

#include <math.h>
#include <string.h>
#include <sys/stat.h>

#include <jansson.h>

#include "base/buf.h"
#include "base/files.h"
#include "unit.h"

static char top[64];

static int set_up(void **state)
{
    (void)state;
    return unit_temp_dir(top) ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    return file_remove_tree(top);
}

/* Writes the file and reads it back with somebody else's parser. */
static json_t *written(const struct runfile *file)
{
    struct buf path = BUF_INIT;
    struct stat st;
    assert_int_equal(runfile_write(file, top), 0);
    path_join(&path, top, RUNFILE_NAME);
    assert_int_equal(stat(path.data, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    json_t *root = json_load_file(path.data, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(root);
    buf_release(&path);
    return root;
}

static const char *text(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

static void a_run_that_has_just_begun_has_no_end(void **state)
{
    (void)state;
    char *command[] = { "train", "--lr", "0.1", NULL };
    const struct runfile file = {
        .id = "0123abcd",
        .command = command,
        .command_len = 3,
        .started_ns = 1700000000123456789,
        .supervisor = 77,
        .machine = { .memory_mb = NAN },
        .level = "basic",
        .redact = true,
    };
    json_t *root = written(&file);
    assert_string_equal(text(root, "schema"), "sonde.run/1");
    assert_string_equal(text(root, "id"), "0123abcd");
    assert_string_equal(text(root, "started"), "2023-11-14T22:13:20.123Z");
    static const char *const nulls[] = { "name", "cwd",  "ended_ns",   "exit",
                                         "pid",  "host", "parent_run", "rusage" };
    for (size_t i = 0; i < sizeof nulls / sizeof *nulls; i++)
        assert_true(json_is_null(json_object_get(root, nulls[i])));
    const json_t *hardware = json_object_get(root, "hardware");
    assert_true(json_is_null(json_object_get(hardware, "memory_mb")));
    assert_true(json_is_null(json_object_get(hardware, "cores")));
    assert_int_equal(json_array_size(json_object_get(root, "command")), 3);
    json_decref(root);
}

static void an_end_by_signal_has_no_code(void **state)
{
    (void)state;
    const struct runfile file = { .exit = { -1, 9, "signal" }, .ended_ns = 5 };
    json_t *root = written(&file);
    const json_t *end = json_object_get(root, "exit");
    assert_true(json_is_null(json_object_get(end, "code")));
    assert_string_equal(text(end, "signal"), "SIGKILL");
    assert_string_equal(text(end, "cause"), "signal");
    assert_int_equal(json_integer_value(json_object_get(root, "ended_ns")), 5);
    json_decref(root);
}

static void secrets_are_left_out_wherever_they_stand(void **state)
{
    (void)state;
    char *command[] = { "train", "--api-key", "HUNTER2", NULL };
    static const char *const pairs[] = { "password=HUNTER2", "batch=32" };
    struct runfile file = {
        .command = command,
        .command_len = 3,
        .name = "https://u:HUNTER2@host/",
        .tags = pairs,
        .tag_count = 2,
        .params = pairs,
        .param_count = 2,
        .redact = true,
    };
    json_t *root = written(&file);
    char *all = json_dumps(root, 0);
    assert_null(strstr(all, "HUNTER2"));
    assert_non_null(strstr(all, "\"batch\": \"32\""));
    free(all);
    json_decref(root);

    file.redact = false;
    root = written(&file);
    all = json_dumps(root, 0);
    assert_non_null(strstr(all, "HUNTER2"));
    free(all);
    json_decref(root);
}

static void the_last_value_of_a_key_holds(void **state)
{
    (void)state;
    static const char *const pairs[] = { "a=1", "ab=2", "a=3=4" };
    const struct runfile file = { .tags = pairs, .tag_count = 3 };
    json_t *root = written(&file); /* would refuse a key that came twice */
    const json_t *tags = json_object_get(root, "tags");
    assert_string_equal(text(tags, "a"), "3=4");
    assert_string_equal(text(tags, "ab"), "2");
    json_decref(root);
}

static void names_of_any_bytes_stay_json(void **state)
{
    (void)state;
    char *command[] = { "a\"b\\c\n\x01", "\xff\xfe", NULL };
    const struct runfile file = { .command = command,
                                  .command_len = 2,
                                  .name = "\xc3" };
    json_decref(written(&file));
}

static void notes_that_do_not_fit_are_dropped(void **state)
{
    (void)state;
    struct runfile file = { 0 };
    for (int i = 0; i < RUNFILE_NOTES + 5; i++)
        runfile_note(&file, "note %d", i);
    json_t *root = written(&file);
    assert_int_equal(json_array_size(json_object_get(root, "notes")), RUNFILE_NOTES);
    json_decref(root);
    runfile_release(&file);
}

#define WITH_DIR(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_DIR(a_run_that_has_just_begun_has_no_end),
        WITH_DIR(an_end_by_signal_has_no_code),
        WITH_DIR(secrets_are_left_out_wherever_they_stand),
        WITH_DIR(the_last_value_of_a_key_holds),
        WITH_DIR(names_of_any_bytes_stay_json),
        WITH_DIR(notes_that_do_not_fit_are_dropped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
