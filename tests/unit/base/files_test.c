#include "base/files.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "unit.h"

struct scratch {
    char dir[64];
    char path[128];
};

static int make_scratch(void **state)
{
    struct scratch *s = calloc(1, sizeof(*s));
    if (!s || !unit_temp_dir(s->dir))
        return -1;
    *state = s;
    return 0;
}

static int remove_scratch(void **state)
{
    struct scratch *s = *state;
    const int rc = file_remove_tree(s->dir);
    free(s);
    return rc;
}

static const char *in(struct scratch *s, const char *name)
{
    (void)snprintf(s->path, sizeof(s->path), "%s/%s", s->dir, name);
    return s->path;
}

static void what_was_written_is_read_back(void **state)
{
    struct scratch *s = *state;
    struct buf text = BUF_INIT;
    assert_int_equal(file_write_atomic(in(s, "f"), "one\0two", 7, 0640), 0);
    buf_puts(&text, "before ");
    assert_int_equal(file_read_all(s->path, 100, &text), 0);
    assert_int_equal(text.len, 14);
    assert_memory_equal(text.data, "before one\0two", 15);

    struct stat st;
    assert_int_equal(stat(s->path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0640);
    buf_release(&text);
}

static void a_rewrite_replaces_and_leaves_no_temporary_file(void **state)
{
    struct scratch *s = *state;
    struct buf text = BUF_INIT;
    assert_int_equal(file_write_atomic(in(s, "f"), "long content", 12, 0600), 0);
    assert_int_equal(file_write_atomic(s->path, "new", 3, 0600), 0);
    assert_int_equal(file_read_all(s->path, 100, &text), 0);
    assert_string_equal(text.data, "new");
    assert_int_equal(unlink(s->path), 0);
    assert_int_equal(rmdir(s->dir), 0); /* fails if anything is left */
    assert_int_equal(mkdir(s->dir, 0700), 0);
    buf_release(&text);
}

static void a_failed_write_leaves_nothing(void **state)
{
    struct scratch *s = *state;
    assert_int_equal(file_write_atomic(in(s, "no/such/dir"), "x", 1, 0600), -ENOENT);
    assert_int_equal(mkdir(in(s, "dir"), 0700), 0);
    assert_int_equal(file_write_atomic(s->path, "x", 1, 0600), -EISDIR);
    assert_int_equal(rmdir(s->path), 0);
    assert_int_equal(rmdir(s->dir), 0);
    assert_int_equal(mkdir(s->dir, 0700), 0);
}

static void a_file_over_the_limit_is_refused_and_the_buffer_kept(void **state)
{
    struct scratch *s = *state;
    struct buf text = BUF_INIT;
    char content[200000];
    memset(content, 'x', sizeof(content));
    assert_int_equal(file_write_atomic(in(s, "f"), content, sizeof(content), 0600), 0);
    buf_puts(&text, "kept");
    assert_int_equal(file_read_all(s->path, sizeof(content) - 1, &text), SONDE_E_LIMIT);
    assert_string_equal(text.data, "kept");
    assert_int_equal(file_read_all(s->path, 0, &text), SONDE_E_LIMIT);
    assert_int_equal(file_read_all(in(s, "absent"), 10, &text), -ENOENT);
    assert_int_equal(file_read_all(s->dir, 10, &text), -EISDIR);
    assert_string_equal(text.data, "kept");
    assert_int_equal(file_read_all(in(s, "f"), sizeof(content), &text), 0);
    assert_int_equal(text.len, 4 + sizeof(content));
    buf_release(&text);
}

static void files_of_unknown_size_are_read(void **state)
{
    (void)state;
    struct buf text = BUF_INIT;
    assert_int_equal(file_read_all("/proc/self/status", 1 << 20, &text), 0);
    assert_non_null(strstr(text.data, "VmRSS"));
    buf_release(&text);
}

static void directories_are_made_with_their_parents(void **state)
{
    struct scratch *s = *state;
    assert_int_equal(dir_make(in(s, "a/b//c/"), 0700), 0);
    assert_true(path_is_dir(in(s, "a/b/c")));
    assert_int_equal(dir_make(s->path, 0700), 0); /* again */
    struct stat st;
    assert_int_equal(stat(in(s, "a"), &st), 0);
    assert_int_equal(st.st_mode & 0777, 0700);
    assert_int_equal(dir_make("/", 0700), 0);
    assert_int_equal(dir_make("", 0700), -ENOENT);
}

static void a_file_in_the_way_of_a_directory_is_an_error(void **state)
{
    struct scratch *s = *state;
    assert_int_equal(file_write_atomic(in(s, "f"), "", 0, 0600), 0);
    assert_int_equal(dir_make(s->path, 0700), -ENOTDIR);
    assert_int_equal(dir_make(in(s, "f/sub"), 0700), -ENOTDIR);
}

static void a_tree_is_removed_but_not_what_its_links_point_to(void **state)
{
    struct scratch *s = *state;
    char outside[128];
    (void)snprintf(outside, sizeof(outside), "%s", in(s, "outside"));
    assert_int_equal(dir_make(in(s, "outside/deep"), 0700), 0);
    assert_int_equal(dir_make(in(s, "tree/x/y/z"), 0700), 0);
    assert_int_equal(file_write_atomic(in(s, "tree/x/file"), "1", 1, 0400), 0);
    assert_int_equal(symlink(outside, in(s, "tree/x/link")), 0);
    assert_int_equal(symlink("/nowhere", in(s, "tree/dangling")), 0);
    assert_int_equal(mkfifo(in(s, "tree/fifo"), 0600), 0); /* opening it would hang */

    assert_int_equal(file_remove_tree(in(s, "tree")), 0);
    assert_int_equal(access(s->path, F_OK), -1);
    assert_true(path_is_dir(in(s, "outside/deep")));

    assert_int_equal(symlink(outside, in(s, "link")), 0);
    assert_int_equal(file_remove_tree(s->path), 0);
    assert_true(path_is_dir(in(s, "outside/deep")));
    assert_int_equal(file_remove_tree(in(s, "absent")), 0);
}

static void pipes_with_short_reads_are_read_to_the_end(void **state)
{
    (void)state;
    int fds[2];
    assert_int_equal(pipe(fds), 0);
    const pid_t child = fork();
    if (child == 0) {
        for (int i = 0; i < 100; i++) {
            if (fd_write_full(fds[1], "0123456789", 10) < 0)
                _exit(1);
            if (i % 10 == 0)
                (void)usleep(1000);
        }
        _exit(0);
    }
    (void)close(fds[1]);
    char data[2000];
    assert_int_equal(fd_read_full(fds[0], data, sizeof(data)), 1000);
    assert_int_equal(fd_read_full(-1, data, 1), -EBADF);
    assert_int_equal(fd_write_full(-1, data, 1), -EBADF);
    (void)close(fds[0]);
}

static void positioned_io_reaches_every_byte(void **state)
{
    struct scratch *s = *state;
    const int fd = open(in(s, "f"), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    assert_int_equal(fd_pwrite_full(fd, "world", 5, 6), 0);
    assert_int_equal(fd_pwrite_full(fd, "hello ", 6, 0), 0);
    char data[32] = "";
    assert_int_equal(fd_pread_full(fd, data, sizeof(data), 2), 9);
    assert_memory_equal(data, "llo world", 9);
    (void)close(fd);
}

static void expect_path(void (*append)(struct buf *, const char *), const char *in_path,
                        const char *expected)
{
    struct buf b = BUF_INIT;
    append(&b, in_path);
    assert_string_equal(b.data, expected);
    buf_release(&b);
}

static void expect_join(const char *a, const char *b, const char *expected)
{
    struct buf out = BUF_INIT;
    path_join(&out, a, b);
    assert_string_equal(out.data, expected);
    buf_release(&out);
}

static void paths_are_joined_and_taken_apart(void **state)
{
    (void)state;
    expect_join("a", "b", "a/b");
    expect_join("a/", "b", "a/b");
    expect_join("", "b", "b");
    expect_join("a", "/b", "/b");
    expect_join("/", "b", "/b");
    expect_path(path_parent, "a/b", "a");
    expect_path(path_parent, "a", ".");
    expect_path(path_parent, "/a", "/");
    assert_string_equal(path_base("a/b.c"), "b.c");
    assert_string_equal(path_base("b.c"), "b.c");
    assert_string_equal(path_base("a/"), "");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_scratch, remove_scratch)
    const struct CMUnitTest tests[] = {
        TEST(what_was_written_is_read_back),
        TEST(a_rewrite_replaces_and_leaves_no_temporary_file),
        TEST(a_failed_write_leaves_nothing),
        TEST(a_file_over_the_limit_is_refused_and_the_buffer_kept),
        TEST(files_of_unknown_size_are_read),
        TEST(directories_are_made_with_their_parents),
        TEST(a_file_in_the_way_of_a_directory_is_an_error),
        TEST(a_tree_is_removed_but_not_what_its_links_point_to),
        TEST(pipes_with_short_reads_are_read_to_the_end),
        TEST(positioned_io_reaches_every_byte),
        TEST(paths_are_joined_and_taken_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
