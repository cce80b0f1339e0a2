/* family_test.c: who belongs to a run: on laid-out trees, and on real processes. */
#include "unit.h"

#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#include "capture_machine.h"
#include "launch/family.h"
#include "trace/tables.h"

static struct fake_machine machine;
static char run_dir[160];
static struct family *family;
static uint64_t now;

static int set_up(void **state)
{
    (void)state;
    machine_make(&machine);
    snprintf(run_dir, sizeof run_dir, "%s/run", machine.root);
    assert_int_equal(mkdir(run_dir, 0700), 0);
    family = NULL;
    now = 1000000000;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    family_free(family);
    machine_remove(&machine);
    return 0;
}

/* children NULL: the kernel has no such file. */
static void put_process(unsigned pid, unsigned ppid, char status, unsigned start,
                        const char *children)
{
    char path[64], text[512];
    snprintf(path, sizeof path, "%u/stat", pid);
    snprintf(
        text, sizeof text,
        "%u (some name) %c %u 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 %u 0 0 1 1 1 0 0 "
        "0 0 0 0 0 0 0 0 17 0 0 0 0 0 0 0 0 0 0 0 0 0 768\n",
        pid, status, ppid, start);
    put_file(machine.proc, path, text);
    snprintf(path, sizeof path, "%u/task/%u/children", pid, pid);
    if (children)
        put_file(machine.proc, path, children);
}

/* A kept descriptor of a process that is gone cannot be read. */
static void end_process(unsigned pid)
{
    char path[64];
    snprintf(path, sizeof path, "%u/stat", pid);
    put_file(machine.proc, path, "");
}

static void put_environ(unsigned pid, const char *run)
{
    char path[200], text[512];
    snprintf(path, sizeof path, "%s/%u/environ", machine.proc, pid);
    const int n = snprintf(text, sizeof text, "A=b%cSONDE_RUN=%s%cZ=1%c", 0, run, 0, 0);
    FILE *out = fopen(path, "wb");
    assert_int_equal(fwrite(text, (size_t)n, 1, out), 1);
    (void)fclose(out);
}

static void make_family(void)
{
    const struct family_options options = {
        .proc = machine.proc, .run_dir = run_dir, .pid = 100, .scan_ns = 1
    };
    assert_int_equal(family_new(&options, &family), 0);
}

static size_t look(void)
{
    now += 10000000000;
    return family_look(family, now);
}

static void children_of_children_belong_to_it(void **state)
{
    (void)state;
    put_process(100, 1, 'S', 5000, "101 103 ");
    put_process(101, 100, 'S', 5001, "102 ");
    put_process(102, 101, 'R', 5002, "");
    put_process(103, 100, 'S', 5003, "");
    put_process(200, 1, 'S', 9000, "201 "); /* somebody else */
    put_process(201, 200, 'S', 9001, "");
    make_family();
    assert_int_equal(look(), 4);
    assert_int_equal(family_at(family, 0)->pid, 100);
    assert_int_equal(family_find(family, 102, 0)->parent, 101);
    assert_int_equal(family_find(family, 102, 0)->source, FAMILY_CHILD);
    assert_null(family_find(family, 201, 0));
    assert_null(family_find(family, 102, 77));
    assert_int_equal(look(), 4);
    assert_int_equal(family_total(family), 4);
}

static void an_orphan_stays_and_the_dead_are_remembered(void **state)
{
    (void)state;
    put_process(100, 1, 'S', 5000, "101 ");
    put_process(101, 100, 'S', 5001, "102 ");
    put_process(102, 101, 'S', 5002, "");
    make_family();
    assert_int_equal(look(), 3);
    put_process(100, 1, 'S', 5000, "");
    end_process(101);
    put_process(102, 1, 'S', 5002, "");
    assert_int_equal(look(), 2);
    assert_true(family_find(family, 102, 0)->alive);
    assert_int_equal(family_find(family, 102, 0)->ppid, 1);
    assert_int_equal(family_find(family, 102, 0)->parent, 101);
    assert_false(family_find(family, 101, 0)->alive);
    assert_int_equal(family_count(family), 3);
}

static void a_zombie_tells_how_it_ended(void **state)
{
    (void)state;
    put_process(100, 1, 'S', 5000, "101 ");
    put_process(101, 100, 'Z', 5001, "");
    make_family();
    assert_int_equal(look(), 2);
    assert_true(family_find(family, 101, 0)->exit_known);
    assert_int_equal(family_find(family, 101, 0)->exit_status, 768);
    assert_false(family_at(family, 0)->exit_known);
}

static void a_reused_number_is_another_process(void **state)
{
    (void)state;
    put_process(100, 1, 'S', 5000, "101 ");
    put_process(101, 100, 'S', 5001, "");
    make_family();
    assert_int_equal(look(), 2);
    put_process(101, 100, 'S', 7777, "");
    assert_int_equal(look(), 2);
    assert_false(family_find(family, 101, 5001)->alive);
    assert_true(family_find(family, 101, 7777)->alive);
    assert_int_equal(family_total(family), 3);
}

static void files_of_the_run_name_their_owner(void **state)
{
    (void)state;
    put_process(100, 1, 'S', 5000, "");
    put_process(300, 1, 'S', 5500, "");
    put_process(301, 1, 'S', 5600, "");
    make_family();
    struct tables_head head = { .magic = TABLES_MAGIC, .proc_start = 5500 };
    static const char *const names[] = { "heap-99-300-abc.tables",
                                         "heap-99-301-abc.tables", "notes.txt",
                                         "x-301-1", "99-302-a.sonde" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[256];
        snprintf(path, sizeof path, "%.150s/%s", run_dir, names[i]);
        FILE *out = fopen(path, "wb");
        assert_int_equal(fwrite(&head, sizeof head, 1, out), 1);
        (void)fclose(out);
    }
    assert_int_equal(look(), 2);
    assert_int_equal(family_find(family, 300, 0)->source, FAMILY_FILE);
    assert_null(
        family_find(family, 301, 0)); /* born at another time than the file says */
}

static void environments_find_those_nobody_else_does(void **state)
{
    (void)state;
    char other[200] = "";
    put_process(100, 1, 'S', 5000, "");
    put_process(300, 1, 'S', 5500, "");
    put_environ(300, run_dir);
    put_process(301, 1, 'S', 5500, "");
    snprintf(other, sizeof other, "%s2", run_dir);
    put_environ(301, other);
    put_process(302, 1, 'S', 4000, ""); /* older than the run */
    put_environ(302, run_dir);
    make_family();
    assert_int_equal(look(), 2);
    assert_int_equal(family_find(family, 300, 0)->source, FAMILY_ENVIRON);
    assert_null(family_find(family, 301, 0));
    assert_null(family_find(family, 302, 0));
}

static void kernels_without_lists_of_children_are_searched_by_parent(void **state)
{
    (void)state;
    put_process(100, 1, 'S', 5000, NULL);
    put_process(101, 100, 'S', 5001, NULL);
    put_process(102, 101, 'S', 5002, NULL);
    put_process(200, 1, 'S', 9000, NULL);
    make_family();
    assert_int_equal(look(), 3);
    put_process(103, 102, 'S', 5003, NULL);
    assert_int_equal(look(), 4);
    assert_null(family_find(family, 200, 0));
}

static void no_process_no_family(void **state)
{
    (void)state;
    struct family *none = NULL;
    const struct family_options options = { .proc = machine.proc, .pid = 4 };
    assert_int_equal(family_new(&options, &none), -ESRCH);
    assert_null(none);
}

static void more_dead_than_there_is_room_for_are_forgotten(void **state)
{
    (void)state;
    put_process(100, 1, 'S', 5000, "101 ");
    put_process(101, 100, 'S', 1, "");
    make_family();
    for (unsigned start = 1; start <= FAMILY_MAX + 50; start++) {
        put_process(101, 100, 'S', 5000 + start, "");
        now += 10000000000;
        assert_int_equal(family_look(family, now), 2);
    }
    assert_int_equal(family_at(family, 0)->pid, 100);
    assert_true(family_count(family) <= FAMILY_MAX);
    assert_true(family_total(family) > FAMILY_MAX);
    assert_int_equal(family_missed(family), 0);
}

/* ---- Real processes -------------------------------------------------------------------- */

static void sleep_ms(long ms)
{
    const struct timespec t = { 0, ms * 1000000 };
    (void)nanosleep(&t, NULL);
}

static void a_real_tree_with_a_double_fork_is_followed(void **state)
{
    (void)state;
    int told[2];
    assert_int_equal(pipe(told), 0);
    const pid_t program = fork();
    if (program == 0) {
        const pid_t middle = fork();
        if (middle == 0) {
            const pid_t daemon = fork();
            if (daemon == 0) {
                sleep_ms(900);
                sleep_ms(900);
                _exit(0);
            }
            sleep_ms(300); /* long enough to be seen */
            (void)!write(told[1], &daemon, sizeof daemon);
            _exit(0);
        }
        (void)waitpid(middle, NULL, 0);
        sleep_ms(900);
        _exit(0);
    }
    const struct family_options options = { .pid = (uint32_t)program };
    assert_int_equal(family_new(&options, &family), 0);
    pid_t daemon = 0;
    struct timespec t;
    for (int i = 0; i < 40; i++) {
        sleep_ms(10);
        (void)clock_gettime(CLOCK_MONOTONIC, &t);
        (void)family_look(family,
                          (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec);
    }
    assert_int_equal(read(told[0], &daemon, sizeof daemon), sizeof daemon);
    sleep_ms(20);
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    (void)family_look(family, (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec);
    assert_non_null(family_find(family, (uint32_t)daemon, 0));
    assert_true(family_find(family, (uint32_t)daemon, 0)->alive);
    assert_int_not_equal(family_find(family, (uint32_t)daemon, 0)->ppid, program);
    (void)kill(daemon, SIGKILL);
    (void)kill(program, SIGKILL);
    (void)waitpid(program, NULL, 0);
    (void)close(told[0]);
    (void)close(told[1]);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(children_of_children_belong_to_it),
        TEST(an_orphan_stays_and_the_dead_are_remembered),
        TEST(a_zombie_tells_how_it_ended),
        TEST(a_reused_number_is_another_process),
        TEST(files_of_the_run_name_their_owner),
        TEST(environments_find_those_nobody_else_does),
        TEST(kernels_without_lists_of_children_are_searched_by_parent),
        TEST(no_process_no_family),
        TEST(more_dead_than_there_is_room_for_are_forgotten),
        TEST(a_real_tree_with_a_double_fork_is_followed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
