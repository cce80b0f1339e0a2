/* file_test.c: a process file is made, opened, grown and locked. */
#include "trace/file.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "base/error.h"
#include "handmade.h"

enum { FIRST_BLOCKS = 6 }; /* head, live, table, sites, strings, lanes */

static int make(void **state)
{
    struct handmade *t = calloc(1, sizeof *t);
    *state = t;
    handmade_init(t, 64);
    return 0;
}

static int clear(void **state)
{
    handmade_release(*state);
    free(*state);
    return 0;
}

static unsigned files_in(const char *dir)
{
    char command[128];
    unsigned count = 0;
    (void)snprintf(command, sizeof command, "ls '%s' | wc -l", dir);
    FILE *p = popen(command, "r");
    assert_non_null(p);
    assert_int_equal(fscanf(p, "%u", &count), 1);
    (void)pclose(p);
    return count;
}

/* Runs fn in a child; true when it returned true there. */
static bool in_child(bool (*fn)(struct handmade *), struct handmade *t)
{
    int status;
    (void)fflush(NULL);
    const pid_t pid = fork();
    if (pid == 0)
        _exit(fn(t) ? 0 : 1);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* ---- Making and opening ----------------------------------------------------------- */

static void a_new_file_says_whose_it_is(void **state)
{
    struct handmade *t = *state;
    const struct trace_head *h = tracefile_head(&t->file);
    struct stat st;
    assert_int_equal(stat(t->file.path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    assert_int_equal(h->magic, TRACE_MAGIC);
    assert_int_equal(h->major, TRACE_MAJOR);
    assert_int_equal(h->pid, getpid());
    assert_true(h->proc_start != 0);
    assert_true(tracefile_owner_alive(h));
    assert_true(h->start.ticks != 0 && h->start.real_ns != 0);
    assert_string_equal(h->exe, "file_test");
    assert_int_equal(t->control->used_blocks, FIRST_BLOCKS);
    for (uint32_t i = 0; i < FIRST_BLOCKS; i++)
        assert_true(block_kind(*tracefile_entry(&t->file, i)) != BLOCK_NONE);
}

static void a_dead_owner_is_known_to_be_dead(void **state)
{
    struct handmade *t = *state;
    struct trace_head *h = tracefile_head(&t->file);
    h->proc_start ^= 1; /* our pid, used by somebody else before */
    assert_false(tracefile_owner_alive(h));
    handmade_kill_owner(t);
    assert_false(tracefile_owner_alive(h));
}

static void an_opened_file_is_the_same_memory(void **state)
{
    struct handmade *t = *state;
    struct tracefile second;
    assert_int_equal(tracefile_open(t->file.path, t->control, &second), 0);
    tracefile_live(&t->file)->lost = 12345;
    assert_int_equal(tracefile_live(&second)->lost, 12345);
    /* Also blocks taken after it was opened. */
    uint32_t block;
    assert_int_equal(tracefile_take_block(&t->file, &block), 0);
    tracefile_block(&t->file, block)[77] = 7;
    assert_int_equal(tracefile_block(&second, block)[77], 7);
    tracefile_close(&second);
}

static void what_is_no_process_file_is_refused(void **state)
{
    struct handmade *t = *state;
    struct tracefile f;
    struct trace_head *h = tracefile_head(&t->file);
    char path[128];

    h->major = TRACE_MAJOR + 1;
    assert_int_equal(tracefile_open(t->file.path, NULL, &f), SONDE_E_VERSION);
    h->major = TRACE_MAJOR;
    h->minor = 99; /* minors only add */
    assert_int_equal(tracefile_open(t->file.path, NULL, &f), 0);
    tracefile_close(&f);
    h->block_size = 4096;
    assert_int_equal(tracefile_open(t->file.path, NULL, &f), SONDE_E_FORMAT);
    h->block_size = BLOCK_SIZE;
    h->magic++;
    assert_int_equal(tracefile_open(t->file.path, NULL, &f), SONDE_E_FORMAT);
    h->magic--;

    assert_int_equal(tracefile_open(t->dir, NULL, &f), -EISDIR);
    (void)snprintf(path, sizeof path, "%s/link", t->dir);
    assert_int_equal(symlink(t->file.path, path), 0);
    assert_int_equal(tracefile_open(path, NULL, &f), -ELOOP);
    (void)snprintf(path, sizeof path, "%s/fifo", t->dir);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(tracefile_open(path, NULL, &f), SONDE_E_FORMAT);
    (void)snprintf(path, sizeof path, "%s/short", t->dir);
    assert_int_equal(file_write_atomic(path, h, sizeof *h, 0600), 0);
    assert_int_equal(tracefile_open(path, NULL, &f), SONDE_E_FORMAT);
    (void)snprintf(path, sizeof path, "%s/none", t->dir);
    assert_int_equal(tracefile_open(path, NULL, &f), -ENOENT);
}

static void numbers_beyond_the_file_give_no_pointer(void **state)
{
    struct handmade *t = *state;
    const uint32_t numbers[] = { FIRST_BLOCKS, 63, 64, 1000, MAX_BLOCKS, UINT32_MAX };
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        assert_null(tracefile_block(&t->file, numbers[i]));
    assert_null(tracefile_entry(&t->file, UINT32_MAX));
    assert_null(tracefile_site(&t->file, MAX_SITES));
    assert_null(tracefile_lane(&t->file, MAX_LANES));
    assert_null(tracefile_node(&t->file, 0)); /* not made yet */
    tracefile_head(&t->file)->nodes[0] = 4000000000u;
    assert_null(tracefile_node(&t->file, 0));
}

/* ---- Blocks ----------------------------------------------------------------------- */

static void the_budget_of_the_run_is_kept(void **state)
{
    struct handmade *t = *state;
    uint32_t block, taken = 0;
    int rc;
    while ((rc = tracefile_take_block(&t->file, &block)) == 0) {
        assert_int_equal(block, FIRST_BLOCKS + taken);
        taken++;
    }
    assert_int_equal(rc, -EDQUOT);
    assert_int_equal(taken, 64 - FIRST_BLOCKS);
    assert_int_equal(t->control->used_blocks, 64);
    control_give(t->control, 1);
    assert_int_equal(tracefile_take_block(&t->file, &block), 0);
    assert_int_equal(tracefile_take_block(&t->file, &block), -EDQUOT);
    assert_int_equal(t->control->used_blocks, 64);
}

static void a_process_beyond_the_budget_leaves_nothing_behind(void **state)
{
    struct handmade *t = *state;
    struct tracefile f;
    const unsigned files = files_in(t->dir);
    assert_true(control_take(t->control, 64 - FIRST_BLOCKS - 3));
    assert_int_equal(tracefile_create(t->dir, t->control, 0, &f), -EDQUOT);
    assert_int_equal(t->control->used_blocks, 61);
    assert_int_equal(files_in(t->dir), files);
}

static void a_directory_s_block_is_made_once(void **state)
{
    struct handmade *t = *state;
    struct trace_head *h = tracefile_head(&t->file);
    assert_int_equal(tracefile_need(&t->file, h->nodes, 3, BLOCK_NODES), 0);
    const uint32_t block = h->nodes[3];
    assert_int_equal(block, FIRST_BLOCKS);
    assert_int_equal(*tracefile_entry(&t->file, block),
                     block_word(BLOCK_NODES, 0, 0, 0));
    assert_int_equal(tracefile_need(&t->file, h->nodes, 3, BLOCK_NODES), 0);
    assert_int_equal(h->nodes[3], block);
    assert_int_equal(t->control->used_blocks, FIRST_BLOCKS + 1);
    assert_non_null(tracefile_node(&t->file, 3 * NODES_PER_BLOCK));
}

static bool limit_file_size(uint64_t bytes)
{
    const struct rlimit limit = { bytes, bytes };
    return setrlimit(RLIMIT_FSIZE, &limit) == 0;
}

/* SIGXFSZ would kill the program: the limit must be an error instead. */
static bool meets_the_limit(struct handmade *t)
{
    uint32_t block;
    const uint64_t used = t->control->used_blocks;
    if (!limit_file_size((FIRST_BLOCKS + 2) * (uint64_t)BLOCK_SIZE))
        return false;
    return tracefile_take_block(&t->file, &block) == 0 &&
           tracefile_take_block(&t->file, &block) == 0 &&
           tracefile_take_block(&t->file, &block) == -EFBIG &&
           t->control->used_blocks == used + 2 &&
           tracefile_live(&t->file)->next_block == FIRST_BLOCKS + 2;
}

static bool cannot_be_created(struct handmade *t)
{
    struct tracefile f;
    const uint64_t used = t->control->used_blocks;
    return limit_file_size(3 * BLOCK_SIZE) &&
           tracefile_create(t->dir, t->control, 0, &f) == -EFBIG &&
           t->control->used_blocks == used;
}

static void the_file_size_limit_is_an_error_not_a_signal(void **state)
{
    struct handmade *t = *state;
    const unsigned files = files_in(t->dir);
    assert_true(in_child(meets_the_limit, t));
    assert_true(in_child(cannot_be_created, t));
    assert_int_equal(files_in(t->dir), files);
}

/* Daemons close all descriptors and open their own, which get the same numbers. */
static void a_stranger_with_our_descriptor_s_number_is_left_alone(void **state)
{
    struct handmade *t = *state;
    char path[128];
    struct stat st;
    (void)snprintf(path, sizeof path, "%s/stranger", t->dir);
    const int fd = open(path, O_RDWR | O_CREAT, 0600);
    assert_true(fd >= 0);
    assert_int_equal(dup2(fd, t->file.fd), t->file.fd); /* closes ours */
    uint32_t block;
    assert_int_equal(tracefile_take_block(&t->file, &block), 0);
    assert_int_equal(tracefile_lock(&t->file), 0);
    tracefile_unlock(&t->file);
    assert_int_equal(fstat(fd, &st), 0);
    assert_int_equal(st.st_size, 0);
    (void)close(fd);
}

static void a_file_that_was_replaced_is_not_mistaken_for_ours(void **state)
{
    struct handmade *t = *state;
    uint32_t block;
    assert_int_equal(unlink(t->file.path), 0);
    assert_int_equal(file_write_atomic(t->file.path, "other", 5, 0600), 0);
    assert_int_equal(close(t->file.fd), 0);
    assert_int_equal(tracefile_take_block(&t->file, &block), -ESTALE);
    t->file.fd = -1;
}

/* ---- The lock --------------------------------------------------------------------- */

static bool is_locked_out(struct handmade *t)
{
    struct tracefile f;
    return tracefile_open(t->file.path, t->control, &f) == 0 &&
           tracefile_lock(&f) == -EAGAIN;
}

static bool can_lock(struct handmade *t)
{
    struct tracefile f;
    return tracefile_open(t->file.path, t->control, &f) == 0 && tracefile_lock(&f) == 0;
}

static void one_folder_at_a_time(void **state)
{
    struct handmade *t = *state;
    assert_int_equal(tracefile_lock(&t->file), 0);
    assert_int_equal(tracefile_lock(&t->file), -EAGAIN); /* as from another thread */
    assert_true(in_child(is_locked_out, t));
    tracefile_unlock(&t->file);
    assert_true(in_child(can_lock, t)); /* and ends with the lock held */
    assert_int_equal(tracefile_lock(&t->file), 0);
    tracefile_unlock(&t->file);
}

static void a_killed_folder_s_lock_is_given_back(void **state)
{
    struct handmade *t = *state;
    int ready[2];
    char byte;
    assert_int_equal(pipe(ready), 0);
    const pid_t pid = fork();
    if (pid == 0) {
        if (!can_lock(t) || write(ready[1], "x", 1) != 1)
            _exit(1);
        for (;;)
            (void)pause();
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    assert_int_equal(tracefile_lock(&t->file), -EAGAIN);
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_int_equal(tracefile_lock(&t->file), 0);
    tracefile_unlock(&t->file);
    (void)close(ready[0]);
    (void)close(ready[1]);
}

int main(void)
{
#define ONE(test) cmocka_unit_test_setup_teardown(test, make, clear)
    const struct CMUnitTest tests[] = {
        ONE(a_new_file_says_whose_it_is),
        ONE(a_dead_owner_is_known_to_be_dead),
        ONE(an_opened_file_is_the_same_memory),
        ONE(what_is_no_process_file_is_refused),
        ONE(numbers_beyond_the_file_give_no_pointer),
        ONE(the_budget_of_the_run_is_kept),
        ONE(a_process_beyond_the_budget_leaves_nothing_behind),
        ONE(a_directory_s_block_is_made_once),
        ONE(the_file_size_limit_is_an_error_not_a_signal),
        ONE(a_stranger_with_our_descriptor_s_number_is_left_alone),
        ONE(a_file_that_was_replaced_is_not_mistaken_for_ours),
        ONE(one_folder_at_a_time),
        ONE(a_killed_folder_s_lock_is_given_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
