/* bundle_test.c: what comes in one file, and what does not get out of it. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <zlib.h>

#include "base/error.h"
#include "base/files.h"
#include "store/bundle.h"
#include "store/run.h"
#include "unit.h"

static char dir[64], path[80];
static gzFile out;

static int set_up(void **state)
{
    (void)state;
    if (!unit_temp_dir(dir))
        return -1;
    (void)snprintf(path, sizeof path, "%s/x.tgz", dir);
    return setenv("TMPDIR", dir, 1);
}

static int tear_down(void **state)
{
    (void)state;
    (void)unsetenv("TMPDIR");
    return file_remove_tree(dir);
}

/* ---- Making ---------------------------------------------------------------------------- */

static void begin(void)
{
    out = gzopen(path, "wb");
    assert_non_null(out);
}

static void put(const void *bytes, size_t len)
{
    if (len)
        assert_int_equal(gzwrite(out, bytes, (unsigned)len), (int)len);
}

static void finish(void)
{
    static const char zeros[2 * BUNDLE_BLOCK];
    put(zeros, sizeof zeros);
    assert_int_equal(gzclose(out), Z_OK);
}

static void make_header(struct bundle_header *h, const char *name, const char *size)
{
    *h = (struct bundle_header){ .type = '0',
                                 .magic = "ustar",
                                 .version = { '0', '0' } };
    memcpy(h->name, name, strnlen(name, sizeof h->name));
    (void)snprintf(h->size, sizeof h->size, "%s", size);
}

static void put_header(struct bundle_header *h)
{
    (void)snprintf(h->checksum, sizeof h->checksum, "%06o", bundle_checksum(h));
    put(h, sizeof *h);
}

static void put_file(const char *name, const char *text)
{
    static const char zeros[BUNDLE_BLOCK];
    struct bundle_header h;
    char size[12];
    const size_t len = strlen(text);
    (void)snprintf(size, sizeof size, "%011o", (unsigned)len);
    make_header(&h, name, size);
    put_header(&h);
    put(text, len);
    put(zeros, (BUNDLE_BLOCK - len % BUNDLE_BLOCK) % BUNDLE_BLOCK);
}

static void put_first(void)
{
    put_file(BUNDLE_FIRST, "{\"schema\":\"" BUNDLE_SCHEMA "\"}");
}

/* How many entries the scratch folder has besides the bundle: what was left there. */
static int left_behind(void)
{
    struct stat st;
    assert_int_equal(stat(dir, &st), 0);
    return (int)st.st_nlink - 2; /* folders */
}

static int unpack(void)
{
    struct buf made = BUF_INIT;
    const int rc = bundle_unpack(path, &made);
    if (rc == 0)
        assert_int_equal(file_remove_tree(made.data), 0);
    buf_release(&made);
    assert_int_equal(left_behind(), 0);
    return rc;
}

/* ---- Good ones ----------------------------------------------------------------------------- */

static void a_bundle_opens_as_a_run_and_leaves_nothing(void **state)
{
    (void)state;
    struct run *run;
    begin();
    put_first();
    put_file("run.json", "{\"id\":\"abc\",\"name\":\"mine\"}");
    finish();
    assert_true(bundle_is(path));
    assert_int_equal(run_open(path, &run), 0);
    assert_string_equal(run->id, "abc");
    assert_true(run->unpacked);
    assert_int_equal(left_behind(), 1);
    run_free(run);
    assert_int_equal(left_behind(), 0);
}

/* run.json names where files of a live run lie: of somebody else's machine, or ours. */
static void a_bundle_does_not_send_us_elsewhere(void **state)
{
    (void)state;
    struct run *run;
    begin();
    put_first();
    put_file("run.json", "{\"id\":\"abc\",\"live\":\"/etc\"}");
    finish();
    assert_int_equal(run_open(path, &run), 0);
    assert_string_not_equal(run->dir, "/etc");
    run_free(run);
}

/* ---- Bad ones ------------------------------------------------------------------------------ */

static void names_that_lead_elsewhere_are_refused(void **state)
{
    (void)state;
    static const char *const names[] = { "../evil.sonde",
                                         "/tmp/evil.sonde",
                                         "a/b.sonde",
                                         "..",
                                         ".hidden.sonde",
                                         "run.json/../x.sonde",
                                         "evil.so",
                                         "run.json ",
                                         "",
                                         "-rf.txt",
                                         "a\nb.txt" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        assert_false(bundle_is_name(names[i]));
        begin();
        put_first();
        put_file(names[i], "x");
        finish();
        assert_int_equal(unpack(), SONDE_E_FORMAT);
    }
}

static void links_folders_and_devices_are_refused(void **state)
{
    (void)state;
    for (const char *type = "123456789xgLK"; *type; type++) {
        struct bundle_header h;
        begin();
        put_first();
        make_header(&h, "run.json", "00000000000");
        h.type = *type;
        memcpy(h.link, "/etc/passwd", 11);
        put_header(&h);
        finish();
        assert_int_equal(unpack(), SONDE_E_FORMAT);
    }
}

static void a_prefix_is_part_of_a_name(void **state)
{
    (void)state;
    struct bundle_header h;
    begin();
    put_first();
    make_header(&h, "run.json", "00000000000");
    memcpy(h.prefix, "..", 2);
    put_header(&h);
    finish();
    assert_int_equal(unpack(), SONDE_E_FORMAT);
}

static void a_name_twice_is_refused(void **state)
{
    (void)state;
    begin();
    put_first();
    put_file("run.json", "{}");
    put_file("run.json", "{}");
    finish();
    assert_int_equal(unpack(), SONDE_E_FORMAT);
}

static void sizes_that_lie_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *size;
        int rc;
    } cases[] = {
        { "00000000777", SONDE_E_TRUNCATED }, /* more than there is */
        { "77777777777", SONDE_E_LIMIT },     /* 8 GiB: a bomb's promise */
        { "02000000000", SONDE_E_LIMIT },     /* 256 MiB, and others went before */
        { "-0000000001", SONDE_E_FORMAT },
        { "garbage", SONDE_E_FORMAT },
        { "", SONDE_E_FORMAT },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct bundle_header h;
        begin();
        put_first();
        make_header(&h, "run.json", cases[i].size);
        put_header(&h);
        assert_int_equal(gzclose(out), Z_OK);
        assert_int_equal(unpack(), cases[i].rc);
    }
}

/* A megabyte of zeros a block: small here, large there. */
static void what_swells_beyond_measure_is_refused(void **state)
{
    (void)state;
    static char zeros[1 << 20];
    begin();
    put_first();
    for (int i = 0; i < 300; i++) {
        struct bundle_header h;
        char name[32];
        (void)snprintf(name, sizeof name, "x%d.tables", i);
        make_header(&h, name, "00004000000");
        put_header(&h);
        put(zeros, sizeof zeros);
    }
    finish();
    assert_int_equal(unpack(), SONDE_E_LIMIT);
}

static void a_bundle_cut_anywhere_is_not_whole(void **state)
{
    (void)state;
    struct stat st;
    begin();
    put_first();
    put_file("run.json", "{\"id\":\"abc\"}");
    finish();
    assert_int_equal(stat(path, &st), 0);
    for (off_t len = st.st_size - 1; len >= 0; len--) {
        assert_int_equal(truncate(path, len), 0);
        assert_true(unpack() < 0);
    }
}

static void other_files_are_no_bundles(void **state)
{
    (void)state;
    static const char *const contents[] = { "", "\x1f", "\x1f\x8b", "hello, world" };
    for (size_t i = 0; i < sizeof contents / sizeof *contents; i++) {
        assert_int_equal(
            file_write_atomic(path, contents[i], strlen(contents[i]), 0600), 0);
        assert_false(bundle_is(path));
        assert_int_equal(unpack() < 0, 1);
    }
    begin();
    put_file("run.json", "{}"); /* a tar like others */
    finish();
    assert_false(bundle_is(path));
    assert_int_equal(unpack(), SONDE_E_FORMAT);
    assert_false(bundle_is(dir));
    assert_false(bundle_is("/nowhere/at/all"));
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_bundle_opens_as_a_run_and_leaves_nothing),
        TEST(a_bundle_does_not_send_us_elsewhere),
        TEST(names_that_lead_elsewhere_are_refused),
        TEST(links_folders_and_devices_are_refused),
        TEST(a_prefix_is_part_of_a_name),
        TEST(a_name_twice_is_refused),
        TEST(sizes_that_lie_are_refused),
        TEST(what_swells_beyond_measure_is_refused),
        TEST(a_bundle_cut_anywhere_is_not_whole),
        TEST(other_files_are_no_bundles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
