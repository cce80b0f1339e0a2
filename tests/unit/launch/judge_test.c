/* From evidence to a cause: one test per cause and per false alarm. */
#include "launch/judge.h"

#include <math.h>
#include <signal.h>
#include <string.h>

#include "unit.h"

enum { MIB = 1 << 20 };
#define EXITED(code)   ((code) << 8)
#define KILLED(signal) (signal)

/* A program with two workers, all alive. */
struct scene {
    struct kin_process process[3];
    struct kin kin;
    struct evidence e;
    struct runfile_exit exit;
    struct runfile_death death;
};

static void scene_init(struct scene *s, int status)
{
    *s = (struct scene){ 0 };
    for (unsigned i = 0; i < 3; i++) {
        s->process[i] = (struct kin_process){
            .pid = 100 + i, .alive = true, .peak_rss = 10 * MIB, .is_worker = i > 0
        };
        (void)strcpy(s->process[i].comm, "train");
    }
    s->kin = (struct kin){ .process = s->process, .count = 3 };
    s->e = (struct evidence){
        .status = status,
        .kin = &s->kin,
        .growth = NAN,
        .host_kills = 0,
        .now_ns = 100000000000,
        .group = { .readable = true, .limit = MEMCG_UNKNOWN, .peak = MEMCG_UNKNOWN },
        .fault = { .shm_free = MEMCG_UNKNOWN }
    };
}

static void worker_ends(struct scene *s, unsigned i, int status, uint64_t order)
{
    s->process[i].alive = false;
    s->process[i].status_known = true;
    s->process[i].status = status;
    s->process[i].order = order;
}

static void expect(struct scene *s, const char *cause, const char *words)
{
    judge(&s->e, &s->exit, &s->death);
    assert_string_equal(s->exit.cause, cause);
    if (!strstr(s->death.text, words))
        fail_msg("'%s' is not in '%s'", words, s->death.text);
}

static void plain_ends(void **state)
{
    struct scene s;
    (void)state;
    scene_init(&s, EXITED(0));
    expect(&s, "ok", "");
    assert_string_equal(s.death.text, "");
    scene_init(&s, EXITED(3));
    expect(&s, "error", "");
    assert_string_equal(s.death.text, "");
    assert_int_equal(s.exit.code, 3);
    scene_init(&s, KILLED(SIGTERM));
    expect(&s, "signal", "");
    assert_int_equal(s.exit.signal, SIGTERM);
}

static void a_counted_kill_with_a_limit_is_the_groups(void **state)
{
    struct scene s;
    (void)state;
    scene_init(&s, KILLED(SIGKILL));
    s.e.group = (struct memcg_news){
        .readable = true, .kills = 1, .at_limit = true, .limit = 512ULL * MIB
    };
    (void)strcpy(s.e.group.path, "/x");
    s.e.max_rss = 509ULL * MIB;
    s.e.growth = 38.0 * MIB;
    expect(&s, "oom_cgroup",
           "killed by the OOM killer of cgroup /x: limit 512 MiB, the program had 509 "
           "MiB (+38 MiB/s)");
    assert_near(s.death.limit_mb, 512, 0);
    assert_near(s.death.growth_mb_per_s, 38, 1e-9);
    assert_int_equal(s.death.pid, 100);
}

static void a_counted_kill_without_a_limit_is_the_machines(void **state)
{
    struct scene s;
    (void)state;
    scene_init(&s, KILLED(SIGKILL));
    s.e.group.kills = 1;
    expect(&s, "oom_host", "the machine was out of memory");
}

static void a_kill_that_nobody_counted_is_somebodys(void **state)
{
    struct scene s;
    (void)state;
    scene_init(&s, KILLED(SIGKILL));
    s.e.host_kills = 5; /* of others: our group says 0 */
    expect(&s, "signal", "not by the OOM killer");
    scene_init(&s, KILLED(SIGKILL));
    s.e.group.readable = false;
    s.e.host_kills = MEMCG_UNKNOWN;
    expect(&s, "signal", "cannot be told here");
    s.e.host_kills = 1;
    expect(&s, "oom_host", "OOM killer");
}

static void a_worker_killed_for_memory_explains_the_failure(void **state)
{
    struct scene s;
    (void)state;
    scene_init(&s, EXITED(1));
    worker_ends(&s, 2, KILLED(SIGKILL), 1);
    s.e.group.kills = 1;
    s.e.group.at_limit = true;
    s.e.group.limit = 64ULL * MIB;
    expect(&s, "oom_cgroup", "worker 102 (train) had 10 MiB");
    s.e.status = EXITED(0); /* the program coped */
    expect(&s, "ok", "");
}

static void the_kernel_log_beats_the_counters(void **state)
{
    struct scene s;
    struct kernellog log = { .fd = -1 };
    (void)state;
    scene_init(&s, KILLED(SIGKILL));
    kernellog_line(&log, "oom-kill:constraint=CONSTRAINT_MEMCG,oom_memcg=/deep/down,"
                         "task_memcg=/x,task=train,pid=100,uid=0");
    kernellog_line(&log, "Memory cgroup out of memory: Killed process 100 (train) "
                         "total-vm:1kB, anon-rss:20480kB, file-rss:0kB, shmem-rss:0kB");
    s.e.log = &log;
    s.e.group.readable = false;
    s.e.host_kills = MEMCG_UNKNOWN;
    expect(&s, "oom_cgroup", "cgroup /deep/down: the program had 20 MiB");
}

static void our_own_limits_are_told_as_ours(void **state)
{
    struct scene s;
    (void)state;
    scene_init(&s, KILLED(SIGTERM));
    s.e.over_limit = true;
    s.e.memory_limit = 80ULL * MIB;
    s.e.size_over = 90ULL * MIB;
    expect(&s, "signal", "ended by Sonde at --memory-limit 80 MiB");
    scene_init(&s, KILLED(SIGKILL));
    s.e.memory_limit = 80ULL * MIB;
    s.e.limit_is_group = true;
    s.e.group.kills = 1;
    s.e.group.at_limit = true;
    expect(&s, "oom_cgroup", "OOM killer at --memory-limit 80 MiB");
    scene_init(&s, KILLED(SIGTERM));
    s.e.timed_out = true;
    s.e.timeout_ns = 3000000000;
    expect(&s, "timeout", "ended by --timeout after 3.00 s");
}

static void a_hang_needs_somebody_who_ends_it(void **state)
{
    struct scene s;
    struct hang hang = {
        .hanging = true, .steps = 5, .since_ns = 1000000000, .count = 1
    };
    (void)state;
    scene_init(&s, KILLED(SIGTERM));
    s.e.hang = &hang;
    s.e.asked.signal = SIGTERM;
    s.e.asked.sender = 4;
    expect(&s, "hang", "hung: no step for 1m 39s");
    scene_init(&s, KILLED(SIGTERM));
    s.e.hang = &hang;
    s.e.timed_out = true;
    expect(&s, "hang", "ended by --timeout");
    scene_init(&s, EXITED(0)); /* it went on and ended well */
    s.e.hang = &hang;
    expect(&s, "ok", "");
}

static void preemption_needs_a_scheduler(void **state)
{
    struct scene s;
    (void)state;
    scene_init(&s, EXITED(0)); /* a checkpoint was written in time */
    s.e.asked = (struct asked){ .signal = SIGTERM, .sender = 7, .at_ns = 90000000000 };
    expect(&s, "ok", "");
    (void)strcpy(s.e.asked.scheduler, "Slurm job 9");
    expect(&s, "preempted",
           "SIGTERM from Slurm job 9 10.0 s before the end, then exit 0");
    s.e.asked.scheduler[0] = '\0';
    s.e.asked.sender = 0;
    expect(&s, "preempted", "outside the container");
    s.e.asked.signal = SIGINT; /* Ctrl-C is nobody's preemption */
    expect(&s, "ok", "");
}

static void full_file_systems(void **state)
{
    struct scene s;
    struct filling filling = { .count = 1 };
    (void)state;
    filling.place[0] = (struct filling_place){
        .path = "/dev/shm", .is_shm = true, .total = 64ULL * MIB, .least_free = 0
    };
    scene_init(&s, KILLED(SIGBUS));
    s.e.filling = &filling;
    expect(&s, "shm_exhausted", "the program got SIGBUS: /dev/shm was full");
    scene_init(&s, EXITED(1));
    s.e.filling = &filling;
    worker_ends(&s, 1, KILLED(SIGBUS), 1);
    expect(&s, "shm_exhausted", "worker 101 (train) got SIGBUS");
    scene_init(&s, KILLED(SIGSEGV)); /* a full disk makes no segfaults */
    s.e.filling = &filling;
    expect(&s, "signal", "");
    filling.place[0].is_shm = false;
    scene_init(&s, EXITED(1));
    s.e.filling = &filling;
    expect(&s, "disk_full", "failed with exit 1 when /dev/shm was full");
    filling.place[0].least_free = 32ULL * MIB;
    expect(&s, "error", "");
}

static void dead_workers(void **state)
{
    struct scene s;
    (void)state;
    scene_init(&s, EXITED(1));
    worker_ends(&s, 1, KILLED(SIGTERM), 2); /* put away by the program */
    worker_ends(&s, 2, KILLED(SIGSEGV), 1);
    expect(&s, "worker_died",
           "worker 102 (train) was killed by SIGSEGV, then the "
           "program with exit 1");
    scene_init(&s, EXITED(1));
    worker_ends(&s, 1, KILLED(SIGTERM), 1);
    expect(&s, "error", "");
    scene_init(&s, EXITED(1));
    worker_ends(&s, 1, EXITED(4), 1);
    expect(&s, "worker_died", "ended with exit 4");
    s.process[1].is_worker = false; /* a command that failed */
    expect(&s, "error", "");
    scene_init(&s, KILLED(SIGINT)); /* whoever is killed takes its workers along */
    worker_ends(&s, 1, KILLED(SIGKILL), 1);
    expect(&s, "signal", "");
}

static void faults_and_hints(void **state)
{
    struct scene s;
    (void)state;
    scene_init(&s, KILLED(SIGSEGV));
    s.e.fault = (struct fault){ .signal = SIGSEGV, .pid = 100, .address = 0x10 };
    (void)strcpy(s.e.fault.place, "libx.so+0x12");
    expect(&s, "signal", "killed by SIGSEGV at address 0x10 in libx.so+0x12");
    scene_init(&s, EXITED(1));
    s.e.hint = (struct hint){ .pid = 100, .cause = "oom_gpu", .text = "CUDA is full" };
    expect(&s, "oom_gpu", "CUDA is full");
    s.e.status = EXITED(0);
    expect(&s, "ok", "");
}

static void a_fault_of_one_that_nobody_met(void **state)
{
    struct scene s;
    (void)state;
    scene_init(&s, EXITED(1));
    s.e.fault = (struct fault){ .signal = SIGSEGV, .pid = 777, .address = 0x10 };
    (void)strcpy(s.e.fault.place, "libx.so+0x12");
    expect(&s, "worker_died",
           "process 777 was killed by SIGSEGV in libx.so+0x12, then "
           "the program with exit 1");
    assert_int_equal(s.death.pid, 777);
    s.e.status = EXITED(0); /* it did without */
    expect(&s, "ok", "");
    s.e.status = KILLED(SIGABRT); /* its own end, not that one's */
    expect(&s, "signal", "");
    assert_string_equal(s.death.text, "");
    s.e.status = EXITED(1); /* one that was seen to die is surer */
    worker_ends(&s, 1, KILLED(SIGBUS), 1);
    expect(&s, "worker_died", "101 (train) was killed by SIGBUS");
}

static void without_any_evidence(void **state)
{
    struct scene s;
    (void)state;
    scene_init(&s, KILLED(SIGKILL));
    s.e.kin = NULL;
    s.e.group.readable = false;
    s.e.host_kills = MEMCG_UNKNOWN;
    expect(&s, "signal", "SIGKILL");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_ends),
        cmocka_unit_test(a_counted_kill_with_a_limit_is_the_groups),
        cmocka_unit_test(a_counted_kill_without_a_limit_is_the_machines),
        cmocka_unit_test(a_kill_that_nobody_counted_is_somebodys),
        cmocka_unit_test(a_worker_killed_for_memory_explains_the_failure),
        cmocka_unit_test(the_kernel_log_beats_the_counters),
        cmocka_unit_test(our_own_limits_are_told_as_ours),
        cmocka_unit_test(a_hang_needs_somebody_who_ends_it),
        cmocka_unit_test(preemption_needs_a_scheduler),
        cmocka_unit_test(full_file_systems),
        cmocka_unit_test(dead_workers),
        cmocka_unit_test(faults_and_hints),
        cmocka_unit_test(a_fault_of_one_that_nobody_met),
        cmocka_unit_test(without_any_evidence),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
