/* Lines as kernels have written them. */
#include "launch/kernellog.h"

#include "unit.h"

static void a_kill_of_a_group_is_read(void **state)
{
    struct kernellog log = { .fd = -1 };
    (void)state;
    kernellog_line(&log,
                   "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,"
                   "mems_allowed=0,oom_memcg=/job/x,task_memcg=/job/x/y,"
                   "task=python3,pid=3109,uid=0");
    kernellog_line(&log, "Memory cgroup out of memory: Killed process 3109 (python3) "
                         "total-vm:119020kB, anon-rss:102016kB, file-rss:6572kB, "
                         "shmem-rss:4kB, UID:0 pgtables:260kB oom_score_adj:0");
    const struct kernellog_kill *k = kernellog_find_kill(&log, 3109, "python3");
    assert_non_null(k);
    assert_true(k->by_group);
    assert_string_equal(k->group, "/job/x");
    assert_true(k->rss == (102016ULL + 6572 + 4) * 1024);
    assert_null(kernellog_find_kill(&log, 3109, "other"));
    assert_null(kernellog_find_kill(&log, 3110, "python3"));
}

static void a_kill_of_the_machine_is_read(void **state)
{
    struct kernellog log = { .fd = -1 };
    (void)state;
    kernellog_line(&log, "Out of memory: Killed process 12 (a (b) c) total-vm:1kB, "
                         "anon-rss:2kB, file-rss:0kB, shmem-rss:0kB");
    assert_int_equal(log.kill_count, 1);
    assert_false(log.kill[0].by_group);
    assert_int_equal(log.kill[0].pid, 12);
}

static void faults_of_three_kinds_of_kernels_are_read(void **state)
{
    struct kernellog log = { .fd = -1 };
    (void)state;
    kernellog_line(&log, "deaths[77]: segfault at 10 ip 000055d0c0de1234 sp "
                         "00007ffe00000000 error 6 in deaths[55d0c0de0000+5000]");
    kernellog_line(&log, "deaths[78]: segfault at 10 ip 000055d0c0de1234 sp "
                         "00007ffe00000000 error 6 in deaths[1234,55d0c0de0000+5000] "
                         "likely on CPU 1 (core 1, socket 0)");
    kernellog_line(&log, "traps: deaths[79] general protection fault ip:401136 sp:7ffe "
                         "error:0 in deaths[401000+1000]");
    assert_int_equal(log.fault_count, 3);
    assert_true(log.fault[0].address == 0x10);
    for (int i = 0; i < 2; i++) {
        assert_string_equal(log.fault[i].module, "deaths");
        assert_true(log.fault[i].offset == 0x1234);
    }
    assert_true(log.fault[2].offset == 0x136);
    assert_non_null(kernellog_find_fault(&log, 79, "deaths"));
}

static void other_lines_and_too_many_do_no_harm(void **state)
{
    struct kernellog log = { .fd = -1 };
    (void)state;
    kernellog_line(&log, "");
    kernellog_line(&log, "oom-kill:");
    kernellog_line(&log, "oom-kill:task=x,pid=");
    kernellog_line(&log, "Out of memory: Killed process ");
    kernellog_line(&log, "x[: segfault at ");
    kernellog_line(&log, "usb 1-1: new device in [a]");
    for (int i = 0; i < 100; i++)
        kernellog_line(&log, "a[1]: segfault at 0 ip 1 sp 2 error 4 in b[0+1]");
    assert_int_equal(log.fault_count, KERNELLOG_FAULTS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_kill_of_a_group_is_read),
        cmocka_unit_test(a_kill_of_the_machine_is_read),
        cmocka_unit_test(faults_of_three_kinds_of_kernels_are_read),
        cmocka_unit_test(other_lines_and_too_many_do_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
