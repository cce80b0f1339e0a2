/* Control groups of both versions, laid out. */
#include "launch/memcg.h"

#include <unistd.h>

#include "base/error.h"
#include "fake_root.h"

static void put_mounts(const struct fake_root *r, const char *line)
{
    char text[512];
    (void)snprintf(text, sizeof text,
                   "20 1 0:20 / /proc rw - proc proc rw\n"
                   "30 1 0:30 / %s/cg rw,relatime %s\n",
                   r->path, line);
    fake_root_put(r, "proc/self/mountinfo", text);
}

static void proc_of(const struct fake_root *r, char ret_proc[96])
{
    (void)snprintf(ret_proc, 96, "%s/proc", r->path);
}

static void make_v2(const struct fake_root *r)
{
    put_mounts(r, "- cgroup2 cgroup2 rw");
    fake_root_put(r, "proc/7/cgroup", "0::/job/step\n");
    fake_root_put(r, "cg/job/memory.max", "536870912\n");
    fake_root_put(r, "cg/job/memory.events",
                  "low 0\nhigh 0\nmax 9\noom 1\noom_kill 4\n");
    fake_root_put(r, "cg/job/memory.peak", "536870000\n");
    fake_root_put(r, "cg/job/step/memory.max", "max\n");
    fake_root_put(r, "cg/job/step/memory.events",
                  "low 0\nhigh 0\nmax 0\noom 0\noom_kill 2\noom_group_kill 0\n");
}

static void a_limit_of_an_ancestor_is_found(void **state)
{
    struct fake_root r;
    struct memcg g;
    struct memcg_news news;
    char proc[96];
    (void)state;
    fake_root_make(&r);
    make_v2(&r);
    proc_of(&r, proc);
    assert_int_equal(memcg_open(proc, 7, &g), 0);
    assert_int_equal(g.version, 2);
    assert_true(memcg_limit(&g) == 536870912);
    memcg_look(&g, &news);
    assert_true(news.readable);
    assert_int_equal(news.kills, 0);
    assert_false(news.at_limit);

    fake_root_put(&r, "cg/job/memory.events", "max 20\noom 2\noom_kill 5\n");
    fake_root_put(&r, "cg/job/step/memory.events", "max 0\noom 0\noom_kill 3\n");
    memcg_look(&g, &news);
    assert_int_equal(news.kills, 1);
    assert_true(news.at_limit);
    assert_true(news.limit == 536870912);
    assert_true(news.peak == 536870000);
    assert_string_equal(news.path, "/job");
    fake_root_remove(&r);
}

/* The machine's memory ran out: a kill is counted, but no limit was reached. */
static void a_kill_without_a_limit_reached_is_the_machines(void **state)
{
    struct fake_root r;
    struct memcg g;
    struct memcg_news news;
    char proc[96];
    (void)state;
    fake_root_make(&r);
    make_v2(&r);
    proc_of(&r, proc);
    assert_int_equal(memcg_open(proc, 7, &g), 0);
    fake_root_put(&r, "cg/job/step/memory.events", "max 0\noom 0\noom_kill 3\n");
    memcg_look(&g, &news);
    assert_int_equal(news.kills, 1);
    assert_false(news.at_limit);
    fake_root_remove(&r);
}

static void the_first_version_counts_in_other_files(void **state)
{
    struct fake_root r;
    struct memcg g;
    struct memcg_news news;
    char proc[96];
    (void)state;
    fake_root_make(&r);
    put_mounts(&r, "- cgroup cgroup rw,cpu,memory");
    fake_root_put(&r, "proc/7/cgroup", "5:cpu,memory:/a\n1:name=systemd:/x\n0::/\n");
    fake_root_put(&r, "cg/memory.limit_in_bytes", "9223372036854771712\n");
    fake_root_put(&r, "cg/a/memory.limit_in_bytes", "104857600\n");
    fake_root_put(&r, "cg/a/memory.oom_control",
                  "oom_kill_disable 0\nunder_oom 0\noom_kill 0\n");
    fake_root_put(&r, "cg/a/memory.failcnt", "3\n");
    proc_of(&r, proc);
    assert_int_equal(memcg_open(proc, 7, &g), 0);
    assert_int_equal(g.version, 1);
    fake_root_put(&r, "cg/a/memory.oom_control",
                  "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n");
    fake_root_put(&r, "cg/a/memory.failcnt", "99\n");
    fake_root_put(&r, "cg/a/memory.max_usage_in_bytes", "104857600\n");
    memcg_look(&g, &news);
    assert_int_equal(news.kills, 1);
    assert_true(news.at_limit);
    assert_true(news.limit == 104857600);
    assert_string_equal(news.path, "/a");
    fake_root_remove(&r);
}

static void a_part_of_the_tree_mounted_in_a_container(void **state)
{
    struct fake_root r;
    struct memcg g;
    char proc[96], mounts[256];
    (void)state;
    fake_root_make(&r);
    (void)snprintf(mounts, sizeof mounts,
                   "30 1 0:30 /docker/abc %s/cg rw - cgroup2 cgroup rw\n", r.path);
    fake_root_put(&r, "proc/self/mountinfo", mounts);
    fake_root_put(&r, "proc/7/cgroup", "0::/docker/abc\n");
    fake_root_put(&r, "cg/memory.max", "1048576\n");
    proc_of(&r, proc);
    assert_int_equal(memcg_open(proc, 7, &g), 0);
    assert_true(memcg_limit(&g) == 1048576);
    fake_root_remove(&r);
}

static void what_cannot_be_read_is_unknown_not_zero(void **state)
{
    struct fake_root r;
    struct memcg g;
    struct memcg_news news;
    char proc[96];
    (void)state;
    fake_root_make(&r);
    proc_of(&r, proc);
    assert_true(memcg_open(proc, 7, &g) < 0);
    put_mounts(&r, "- tmpfs none rw");
    fake_root_put(&r, "proc/7/cgroup", "0::/x\n");
    assert_int_equal(memcg_open(proc, 7, &g), SONDE_E_NOTFOUND);
    put_mounts(&r, "- cgroup2 none rw");
    assert_int_equal(memcg_open(proc, 7, &g), 0);
    memcg_look(&g, &news);
    assert_false(news.readable);
    assert_true(memcg_limit(&g) == MEMCG_UNKNOWN);
    assert_true(memcg_usage(&g) == MEMCG_UNKNOWN);
    fake_root_remove(&r);
}

static void a_process_that_moved_is_noticed(void **state)
{
    struct fake_root r;
    struct memcg g;
    char proc[96];
    (void)state;
    fake_root_make(&r);
    make_v2(&r);
    proc_of(&r, proc);
    assert_int_equal(memcg_open(proc, 7, &g), 0);
    assert_true(memcg_holds(&g, proc, 7));
    fake_root_put(&r, "proc/7/cgroup", "0::/elsewhere\n");
    assert_false(memcg_holds(&g, proc, 7));
    assert_true(memcg_holds(&g, proc, 8)); /* gone: no news */
    fake_root_remove(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_limit_of_an_ancestor_is_found),
        cmocka_unit_test(a_kill_without_a_limit_reached_is_the_machines),
        cmocka_unit_test(the_first_version_counts_in_other_files),
        cmocka_unit_test(a_part_of_the_tree_mounted_in_a_container),
        cmocka_unit_test(what_cannot_be_read_is_unknown_not_zero),
        cmocka_unit_test(a_process_that_moved_is_noticed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
