/* monitors_test.c: every monitor on laid-out machines: what it reads, and that what is
 * not there has no value rather than 0. */
#include "unit.h"

#include "base/error.h"
#include "capture_machine.h"

static struct fake_machine machine;
static struct remembered seen;
static const struct monitor_process processes[] = { { 100, 5000 }, { 101, 5100 } };
static void *monitor_state;
static const struct monitor_ops *ops;
static uint64_t clock_now, joined_ticks;

static int set_up(void **state)
{
    (void)state;
    machine_make(&machine);
    forget(&seen);
    monitor_state = NULL;
    clock_now = 1000000000;
    joined_ticks = 0;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    if (monitor_state)
        ops->close(monitor_state);
    machine_remove(&machine);
    return 0;
}

static void open_monitor(const struct monitor_ops *which)
{
    const char *why = "";
    ops = which;
    assert_int_equal(ops->open(&machine.roots, &monitor_state, &why), 0);
}

/* A round `elapsed_ns` after the last; 0: the first. */
static void round_after(uint64_t elapsed_ns, size_t process_count)
{
    forget(&seen);
    clock_now += elapsed_ns;
    const struct monitor_round round = { .now_ns = clock_now,
                                         .elapsed_ns = elapsed_ns,
                                         .interval_ns = 1000000000,
                                         .processes = processes,
                                         .process_count = process_count,
                                         .joined_ticks = joined_ticks };
    ops->sample(monitor_state, &round, &seen.sink);
}

static void put_proc(const char *path, const char *text)
{
    put_file(machine.proc, path, text);
}

static void put_sys(const char *path, const char *text)
{
    put_file(machine.sys, path, text);
}

/* ---- CPU --------------------------------------------------------------------------- */

static void put_stat(unsigned pid, const char *name, unsigned ppid, unsigned utime,
                     unsigned stime, unsigned cutime, unsigned start)
{
    char path[32], text[512];
    snprintf(path, sizeof path, "%u/stat", pid);
    snprintf(text, sizeof text,
             "%u (%s) S %u 1 1 0 -1 4194304 700 0 3 0 %u %u %u 0 20 0 4 0 %u 1000000 "
             "2000 18446744073709551615 1 1 0 0 0 0 0 0 0 0 0 0 17 0 0 0 0 0 0 0 0 0 0 "
             "0 0 0 9\n",
             pid, name, ppid, utime, stime, cutime, start);
    put_proc(path, text);
}

/* Two sockets of two cores; cpu2 is offline. */
static void put_cores(unsigned busy0, unsigned busy1, unsigned busy3, unsigned idle)
{
    char text[1024];
    snprintf(text, sizeof text,
             "cpu  %u 0 0 %u 7 0 0 5 0 0\n"
             "cpu0 %u 0 0 %u 7 0 0 0 0 0\n"
             "cpu1 %u 0 0 %u 0 0 0 5 0 0\n"
             "cpu3 %u 0 0 %u 0 0 0 0 0 0\n"
             "intr 12345 1 2 3\nctxt %u\nbtime 1\nprocesses 77\nprocs_running 3\n"
             "procs_blocked 1\n",
             busy0 + busy1 + busy3, 3 * idle, busy0, idle, busy1, idle, busy3, idle,
             busy0 * 10);
    put_proc("stat", text);
}

static void cpu_of_processes_cores_and_machine(void **state)
{
    (void)state;
    put_stat(100, "a b) (c", 1, 100, 50, 0, 5000);
    put_stat(101, "worker", 100, 10, 0, 0, 5100);
    put_cores(100, 100, 100, 1000);
    put_proc("loadavg", "1.25 0.50 0.10 2/345 999\n");
    open_monitor(&monitor_cpu);
    round_after(0, 2);
    assert_unset(&seen, "cpu", "");
    assert_value(&seen, "cpu_time", "", 1.6);
    assert_value(&seen, "load", "", 1.25);
    assert_value(&seen, "processes", "", 2);
    assert_value(&seen, "threads", "", 8);

    put_stat(100, "a b) (c", 1, 150, 50, 0, 5000);
    put_stat(101, "worker", 100, 110, 0, 0, 5100);
    put_cores(180, 100, 130, 1020);
    round_after(1000000000, 2);
    assert_value(&seen, "cpu", "100", 50);
    assert_value(&seen, "cpu", "101", 100);
    assert_value(&seen, "cpu", "", 150);
    assert_value(&seen, "cpu_core", "cpu0", 80);
    assert_value(&seen, "cpu_core", "cpu1", 0);
    assert_value(&seen, "cpu_core", "cpu3", 60);
    assert_unset(&seen, "cpu_core", "cpu2");
    assert_value(&seen, "context_switches", "", 800);
    assert_value(&seen, "cpu_iowait", "", 0);
    assert_true(fabs(seen.total[0][TOTAL_CPU_S] - 2.0) < 1e-9);
    assert_true(fabs(seen.total[1][TOTAL_CPU_S] - 1.1) < 1e-9);
}

static void put_switches(unsigned pid, unsigned tid, unsigned voluntary,
                         unsigned involuntary)
{
    char path[48], text[256];
    snprintf(path, sizeof path, "%u/task/%u/status", pid, tid);
    snprintf(text, sizeof text,
             "Name:\tx\nvoluntary: 5\nvoluntary_ctxt_switches:\t%u\n"
             "nonvoluntary_ctxt_switches:\t%u\n",
             voluntary, involuntary);
    put_proc(path, text);
}

static void remove_thread(unsigned pid, unsigned tid)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%u/task/%u", machine.proc, pid, tid);
    assert_int_equal(file_remove_tree(path), 0);
}

static void switches_are_those_of_all_threads_the_ended_ones_too(void **state)
{
    (void)state;
    put_switches(100, 100, 10, 1);
    put_switches(100, 102, 20, 2);
    put_switches(101, 101, 500, 0);
    open_monitor(&monitor_switches);
    round_after(0, 2);
    assert_unset(&seen, "context_switches_voluntary", "");
    assert_true(seen.total[0][TOTAL_VOLUNTARY_SWITCHES] == 30);
    assert_true(seen.total[0][TOTAL_INVOLUNTARY_SWITCHES] == 3);

    remove_thread(100, 102);
    put_switches(100, 100, 15, 3);
    put_switches(100, 103, 7, 0);
    put_switches(101, 101, 600, 0);
    round_after(20000000000, 2); /* however slow the machine is, a round is due */
    assert_true(seen.total[0][TOTAL_VOLUNTARY_SWITCHES] == 15 + 20 + 7);
    assert_true(seen.total[0][TOTAL_INVOLUNTARY_SWITCHES] == 3 + 2);
    assert_value(&seen, "context_switches_voluntary", "100", 12.0 / 20);
    assert_value(&seen, "context_switches_involuntary", "100", 2.0 / 20);
    assert_value(&seen, "context_switches_voluntary", "", 112.0 / 20);

    round_after(20000000000, 1); /* what a process had does not go with it */
    assert_value(&seen, "context_switches_voluntary", "", 0);
}

static void a_child_that_was_waited_for_is_counted_once(void **state)
{
    (void)state;
    put_cores(1, 1, 1, 1);
    put_stat(100, "main", 1, 100, 0, 0, 5000);
    put_stat(101, "worker", 100, 200, 0, 0, 5100);
    open_monitor(&monitor_cpu);
    round_after(0, 2);
    assert_value(&seen, "cpu_time", "", 3);
    put_stat(100, "main", 1, 110, 0, 250, 5000); /* half a second more unseen */
    round_after(1000000000, 1);
    assert_value(&seen, "cpu_time", "", 3.6);
    assert_value(&seen, "cpu", "", 60);
}

static void a_child_nobody_waited_for_stays_in_the_sum(void **state)
{
    (void)state;
    put_cores(1, 1, 1, 1);
    put_stat(100, "main", 1, 100, 0, 0, 5000);
    put_stat(101, "worker", 100, 200, 0, 0, 5100);
    open_monitor(&monitor_cpu);
    round_after(0, 2);
    put_stat(100, "main", 1, 110, 0, 0, 5000);
    round_after(1000000000, 1);
    assert_value(&seen, "cpu_time", "", 3.1);
    round_after(1000000000, 1);
    assert_value(&seen, "cpu_time", "", 3.1);
}

static void what_was_used_before_the_run_is_not_the_runs(void **state)
{
    (void)state;
    put_cores(1, 1, 1, 1);
    put_stat(100, "main", 1, 300, 0, 50, 5000);
    put_stat(101, "worker", 100, 20, 0, 0, 5100);
    joined_ticks = 5050; /* the worker was born in the run */
    open_monitor(&monitor_cpu);
    round_after(0, 2);
    assert_value(&seen, "cpu_time", "", 0.2);
    put_stat(100, "main", 1, 310, 0, 75, 5000);
    round_after(1000000000, 1);
    assert_value(&seen, "cpu_time", "", 0.35);
    assert_value(&seen, "cpu", "", 15);
}

static void a_reused_pid_is_another_process(void **state)
{
    (void)state;
    put_cores(1, 1, 1, 1);
    put_stat(100, "main", 1, 100, 0, 0, 4999); /* not the one we were told of */
    open_monitor(&monitor_cpu);
    round_after(0, 1);
    round_after(1000000000, 1);
    assert_unset(&seen, "cpu", "100");
    assert_true(isnan(seen.total[0][TOTAL_CPU_S]));
}

/* ---- Memory ------------------------------------------------------------------------- */

static void put_memory(unsigned rss_pages, unsigned private_kb, unsigned shared_kb)
{
    char text[1024];
    snprintf(text, sizeof text, "99999 %u 300 1 0 500 0\n", rss_pages);
    put_proc("100/statm", text);
    snprintf(text, sizeof text,
             "Name:\tmain\nVmPeak:\t  9000 kB\nVmHWM:\t  %u kB\nVmRSS:\t 1 kB\n"
             "VmSwap:\t  2048 kB\nThreads:\t1\n",
             rss_pages * 4 + 1024);
    put_proc("100/status", text);
    snprintf(text, sizeof text,
             "55d0-7fff ---p 00000000 00:00 0   [rollup]\nRss:  %u kB\nPss:  %u kB\n"
             "Pss_Dirty: 1 kB\nShared_Clean:  %u kB\nShared_Dirty:  0 kB\n"
             "Private_Clean:  1024 kB\nPrivate_Dirty:  %u kB\nSwap: 0 kB\n",
             rss_pages * 4, private_kb + shared_kb / 2, shared_kb, private_kb - 1024);
    put_proc("100/smaps_rollup", text);
    put_stat(100, "main", 1, 0, 0, 0, 5000);
    put_proc("meminfo", "MemTotal:  8192000 kB\nMemFree:  1 kB\nMemAvailable: 2048000 "
                        "kB\nBuffers: 1 kB\nSwapTotal: 4096 kB\nSwapFree: 1024 kB\n");
}

static void memory_of_a_process_and_the_machine(void **state)
{
    (void)state;
    put_memory(4096, 8192, 8192);
    open_monitor(&monitor_mem);
    round_after(0, 1);
    assert_value(&seen, "rss", "100", 16);
    assert_value(&seen, "rss", "", 16);
    assert_value(&seen, "rss_private", "100", 8);
    assert_value(&seen, "rss_shared", "100", 8);
    assert_value(&seen, "pss", "", 12);
    assert_value(&seen, "swap", "", 2);
    assert_value(&seen, "memory_used", "", 6000);
    assert_value(&seen, "memory_total", "", 8000);
    assert_value(&seen, "swap_used", "", 3);
    assert_true(seen.total[0][TOTAL_PEAK_RSS_MB] == 17); /* VmHWM */
    assert_true(seen.total[0][TOTAL_PEAK_PRIVATE_MB] == 8);
}

static void a_peak_before_the_run_is_not_the_runs(void **state)
{
    (void)state;
    joined_ticks = 5000;
    put_memory(4096, 8192, 8192); /* VmHWM says 17 MiB, from before */
    open_monitor(&monitor_mem);
    round_after(0, 1);
    assert_true(seen.total[0][TOTAL_PEAK_RSS_MB] == 16);
    put_memory(8192, 8192, 8192); /* now it has risen: 33 MiB between the rounds */
    round_after(1000000000, 1);
    assert_true(seen.total[0][TOTAL_PEAK_RSS_MB] == 33);
}

static void without_smaps_private_memory_has_no_value(void **state)
{
    (void)state;
    put_memory(4096, 8192, 8192);
    char path[160];
    snprintf(path, sizeof path, "%s/100/smaps_rollup", machine.proc);
    assert_int_equal(unlink(path), 0);
    open_monitor(&monitor_mem);
    round_after(0, 1);
    assert_unset(&seen, "rss_private", "100");
    assert_unset(&seen, "pss", "");
    assert_value(&seen, "rss_shared", "100", 300 * 4 / 1024.0);
}

static void a_zombie_has_no_memory_rather_than_none(void **state)
{
    (void)state;
    put_memory(4096, 8192, 8192);
    open_monitor(&monitor_mem);
    put_proc("100/statm", "0 0 0 0 0 0 0\n");
    round_after(0, 1);
    assert_unset(&seen, "rss", "100");
    assert_unset(&seen, "rss", "");
}

static void sondes_own_pages_are_taken_off(void **state)
{
    (void)state;
    put_memory(4096, 8192, 8192);
    char run[160], path[256], maps[1024];
    snprintf(run, sizeof run, "%s/run", machine.root);
    put_file(machine.root, "run/1-100-a.sonde", "");
    snprintf(path, sizeof path, "%s/1-100-a.sonde", run);
    assert_int_equal(truncate(path, 1024 * 4096), 0);
    /* 2 MiB mapped beyond the 4 MiB the file has; another folder's file beside it. */
    snprintf(maps, sizeof maps,
             "00100000-00700000 rw-s 00000000 fe:00 7     %s\n"
             "00900000-00a00000 rw-s 00000000 fe:00 8     %s2/other\n"
             "00b00000-00c00000 rw-p 00000000 00:00 0     [heap]\n",
             path, run);
    put_proc("100/maps", maps);
    static uint64_t pages[0x700];            /* of 4 KiB, from address 0 */
    for (unsigned i = 0x100; i < 0x300; i++) /* 2 MiB there, half of them ours alone */
        pages[i] = 1ull << 63 | (i < 0x200 ? 1ull << 56 : 0);
    snprintf(path, sizeof path, "%s/100/pagemap", machine.proc);
    FILE *out = fopen(path, "wb");
    assert_int_equal(fwrite(pages, sizeof pages, 1, out), 1);
    (void)fclose(out);
    machine.roots.run_dir = run;
    open_monitor(&monitor_mem);
    round_after(0, 1);
    round_after(1000000000, 1);
    assert_value(&seen, "sonde_rss", "100", 2);
    assert_value(&seen, "rss", "100", 14);
    assert_value(&seen, "rss_private", "100", 7);
    assert_value(&seen, "rss_shared", "100", 7);
}

/* ---- Disk ----------------------------------------------------------------------------- */

static void put_io(unsigned pid, unsigned long read, unsigned long written,
                   unsigned long from_disk)
{
    char path[32], text[256];
    snprintf(path, sizeof path, "%u/io", pid);
    snprintf(text, sizeof text,
             "rchar: %lu\nwchar: %lu\nsyscr: 5\nsyscw: 6\nread_bytes: %lu\n"
             "write_bytes: 4096\ncancelled_write_bytes: 0\n",
             read, written, from_disk);
    put_proc(path, text);
}

static void put_disks(unsigned sectors, unsigned ms)
{
    char text[512];
    snprintf(text, sizeof text,
             "   7       0 loop0 9 0 9 9 9 0 9 9 0 9 9 0 0 0 0\n"
             " 259       0 nvme0n1 %u 0 %u 5 20 0 100 5 0 %u %u 0 0 0 0\n"
             " 259       1 nvme0n1p1 10 0 80 5 20 0 100 5 0 10 20 0 0 0 0\n",
             10 + sectors / 8, sectors, ms, 3 * ms);
    put_proc("diskstats", text);
}

static void bytes_of_processes_and_devices(void **state)
{
    (void)state;
    put_stat(100, "main", 1, 0, 0, 0, 5000);
    put_stat(101, "worker", 100, 0, 0, 0, 5100);
    put_io(100, 1000, 2000, 0);
    put_io(101, 500, 0, 0);
    put_sys("block/nvme0n1/size", "1\n");
    put_disks(0, 0);
    open_monitor(&monitor_disk);
    round_after(0, 2);
    assert_unset(&seen, "read", "");
    put_io(100, 1000 + (4 << 20), 2000, 0);
    put_io(101, 500 + (2 << 20), 1 << 20, 1 << 20);
    put_disks(4096, 500);
    round_after(2000000000, 2);
    assert_value(&seen, "read", "100", 2);
    assert_value(&seen, "read", "101", 1);
    assert_value(&seen, "read", "", 3);
    assert_value(&seen, "write", "", 0.5);
    assert_value(&seen, "disk_read", "101", 0.5);
    assert_value(&seen, "device_read", "nvme0n1", 1);
    assert_value(&seen, "device_operations", "nvme0n1", 256);
    assert_value(&seen, "device_busy", "nvme0n1", 25);
    assert_value(&seen, "device_queue", "nvme0n1", 0.75);
    assert_unset(&seen, "device_read", "nvme0n1p1");
    assert_unset(&seen, "device_read", "loop0");
    assert_true(seen.total[0][TOTAL_READ_BYTES] == 1000 + (4 << 20));

    put_io(100, 1000 + (6 << 20) + 500, 2000 + (1 << 20),
           1 << 20); /* it waited for 101 */
    round_after(1000000000, 1);
    assert_value(&seen, "read", "", 0);
    assert_value(&seen, "read", "100", 0);
    assert_true(seen.total[0][TOTAL_READ_BYTES] == 1000 + (4 << 20));
}

static void io_that_is_not_ours_to_read_is_unavailable(void **state)
{
    (void)state;
    put_stat(100, "main", 1, 0, 0, 0, 5000);
    open_monitor(&monitor_disk);
    round_after(0, 1);
    round_after(1000000000, 1);
    assert_unset(&seen, "read", "");
    assert_unset(&seen, "read", "100");
    assert_int_equal(seen.gap_count, 2); /* no io, no diskstats */
}

/* ---- cgroups ---------------------------------------------------------------------------- */

static void cgroup_v2(void **state)
{
    (void)state;
    put_proc("100/cgroup", "0::/jobs/train\n");
    put_sys("fs/cgroup/jobs/memory.max", "1073741824\n"); /* tighter, above */
    put_sys("fs/cgroup/jobs/train/memory.max", "max\n");
    put_sys("fs/cgroup/jobs/train/memory.current", "536870912\n");
    put_sys("fs/cgroup/jobs/train/memory.events",
            "low 0\nhigh 4\nmax 7\noom 1\noom_kill 1\n");
    put_sys("fs/cgroup/jobs/train/cpu.max", "150000 100000\n");
    put_sys("fs/cgroup/jobs/train/cpu.stat",
            "usage_usec 5\nnr_periods 100\nnr_throttled 10\nthrottled_usec 1000\n");
    open_monitor(&monitor_cgroup);
    round_after(0, 1);
    assert_value(&seen, "cgroup_memory", "", 512);
    assert_value(&seen, "cgroup_memory_limit", "", 1024);
    assert_value(&seen, "cgroup_cpu_limit", "", 150);
    assert_value(&seen, "cgroup_oom_kills", "", 1);
    assert_value(&seen, "cgroup_memory_at_limit", "", 7);
    assert_unset(&seen, "cgroup_throttled", "");
    put_sys("fs/cgroup/jobs/train/cpu.stat",
            "usage_usec 5\nnr_periods 110\nnr_throttled 15\nthrottled_usec 251000\n");
    round_after(1000000000, 1);
    assert_value(&seen, "cgroup_throttled", "", 50);
    assert_value(&seen, "cgroup_throttled_time", "", 25);
}

static void cgroup_v1_beside_an_empty_v2(void **state)
{
    (void)state;
    put_proc("100/cgroup", "12:memory:/docker/abc\n5:cpu,cpuacct:/docker/abc\n0::/\n");
    /* The container sees its own cgroup as the root. */
    put_sys("fs/cgroup/memory/memory.usage_in_bytes", "104857600\n");
    put_sys("fs/cgroup/memory/memory.limit_in_bytes", "209715200\n");
    put_sys("fs/cgroup/memory/memory.failcnt", "3\n");
    put_sys("fs/cgroup/memory/memory.oom_control",
            "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n");
    put_sys("fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "50000\n");
    put_sys("fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
    put_sys("fs/cgroup/cpu,cpuacct/cpu.stat",
            "nr_periods 10\nnr_throttled 0\nthrottled_time 0\n");
    open_monitor(&monitor_cgroup);
    round_after(0, 1);
    put_sys("fs/cgroup/cpu,cpuacct/cpu.stat",
            "nr_periods 20\nnr_throttled 10\nthrottled_time 500000000\n");
    round_after(1000000000, 1);
    assert_value(&seen, "cgroup_memory", "", 100);
    assert_value(&seen, "cgroup_memory_limit", "", 200);
    assert_value(&seen, "cgroup_memory_at_limit", "", 3);
    assert_value(&seen, "cgroup_oom_kills", "", 2);
    assert_value(&seen, "cgroup_cpu_limit", "", 50);
    assert_value(&seen, "cgroup_throttled", "", 100);
    assert_value(&seen, "cgroup_throttled_time", "", 50);
}

static void cgroups_without_limits_have_none(void **state)
{
    (void)state;
    put_proc("100/cgroup", "4:memory:/\n");
    put_sys("fs/cgroup/memory/memory.usage_in_bytes", "1048576\n");
    put_sys("fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    open_monitor(&monitor_cgroup);
    round_after(0, 1);
    round_after(1000000000, 1);
    assert_value(&seen, "cgroup_memory", "", 1);
    assert_unset(&seen, "cgroup_memory_limit", "");
    assert_unset(&seen, "cgroup_cpu_limit", "");
    assert_unset(&seen, "cgroup_throttled", "");
}

/* ---- The others --------------------------------------------------------------------------- */

static void pressure_from_totals(void **state)
{
    (void)state;
    put_proc("pressure/cpu", "some avg10=1.00 avg60=0.00 avg300=0.00 total=1000000\n");
    put_proc("pressure/memory",
             "some avg10=0.00 avg60=0.00 avg300=0.00 total=5\nfull avg10=0.00 "
             "avg60=0.00 avg300=0.00 total=5\n");
    open_monitor(&monitor_pressure);
    round_after(0, 0);
    put_proc("pressure/cpu", "some avg10=1.00 avg60=0.00 avg300=0.00 total=1250000\n");
    put_proc("pressure/memory",
             "some avg10=0.00 avg60=0.00 avg300=0.00 total=500005\nfull avg10=0.00 "
             "avg60=0.00 avg300=0.00 total=100005\n");
    round_after(1000000000, 0);
    assert_value(&seen, "pressure_cpu", "", 25);
    assert_value(&seen, "pressure_memory", "", 50);
    assert_value(&seen, "pressure_memory_full", "", 10);
    assert_unset(&seen, "pressure_io", "");
}

static void network_of_the_programs_name_space(void **state)
{
    (void)state;
    static const char head[] = "Inter-|   Receive  |  Transmit\n face |bytes packets "
                               "errs drop fifo frame compressed multicast|bytes\n";
    char text[1024];
    put_proc("net/dev", head);
    snprintf(text, sizeof text,
             "%s    lo: 1000 10 0 0 0 0 0 0 1000 10 0 0 0 0 0 0\n"
             "  eth0: 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n",
             head);
    put_proc("100/net/dev", text);
    put_proc("100/net/snmp", "Ip: A B\nIp: 1 2\nTcp: RtoAlgorithm a b\nTcp: 1 200 "
                             "120000 -1 5 6 7 8 9 10 11 100 13 14\nUdp: x\nUdp: 1\n");
    open_monitor(&monitor_net);
    round_after(0, 1);
    snprintf(text, sizeof text,
             "%s    lo: 99999999 10 0 0 0 0 0 0 99999999 10 0 0 0 0 0 0\n"
             "  eth0:2097152 30 1 2 0 0 0 0 1048576 40 3 0 0 0 0 0\n",
             head);
    put_proc("100/net/dev", text);
    put_proc("100/net/snmp", "Ip: A B\nIp: 1 2\nTcp: RtoAlgorithm a b\nTcp: 1 200 "
                             "120000 -1 5 6 7 8 9 10 11 150 13 14\nUdp: x\nUdp: 1\n");
    round_after(1000000000, 1);
    assert_value(&seen, "net_receive", "eth0", 2);
    assert_value(&seen, "net_send", "eth0", 1);
    assert_value(&seen, "net_receive", "", 2); /* without lo */
    assert_value(&seen, "net_packets_in", "", 30);
    assert_value(&seen, "net_packets_out", "", 40);
    assert_value(&seen, "net_errors", "eth0", 6);
    assert_value(&seen, "tcp_retransmits", "", 50);
}

static void temperatures_of_two_sockets(void **state)
{
    (void)state;
    put_sys("class/hwmon/hwmon0/name", "coretemp\n");
    put_sys("class/hwmon/hwmon0/temp1_input", "45000\n");
    put_sys("class/hwmon/hwmon0/temp1_label", "Package id 0\n");
    put_sys("class/hwmon/hwmon1/name", "coretemp\n");
    put_sys("class/hwmon/hwmon1/temp1_input", "51500\n");
    put_sys("class/hwmon/hwmon1/temp1_label", "Package id 1\n");
    put_sys("class/hwmon/hwmon2/name", "nvme\n");
    put_sys("class/hwmon/hwmon2/temp1_input", "30000\n");
    put_sys("class/hwmon/hwmon3/name", "nvme\n");
    put_sys("class/hwmon/hwmon3/temp1_input", "-5000\n");
    put_sys("class/thermal/thermal_zone0/temp", "99000\n");
    open_monitor(&monitor_temp);
    round_after(0, 0);
    assert_value(&seen, "temperature", "coretemp Package id 0", 45);
    assert_value(&seen, "temperature", "coretemp Package id 1", 51.5);
    assert_value(&seen, "temperature", "nvme temp1", 30);
    assert_value(&seen, "temperature", "nvme temp1 #3", -5);
    assert_int_equal(seen.count, 4); /* zones only where there are no chips */
}

static void thermal_zones_where_there_are_no_chips(void **state)
{
    (void)state;
    put_sys("class/thermal/thermal_zone0/type", "x86_pkg_temp\n");
    put_sys("class/thermal/thermal_zone0/temp", "61000\n");
    put_sys("class/thermal/cooling_device0/type", "Processor\n");
    open_monitor(&monitor_temp);
    round_after(0, 0);
    assert_value(&seen, "temperature", "x86_pkg_temp", 61);
}

static void an_empty_machine_is_unsupported_with_a_reason(void **state)
{
    (void)state;
    static const struct monitor_ops *const list[] = {
        &monitor_cpu,      &monitor_mem, &monitor_cgroup,
        &monitor_pressure, &monitor_net, &monitor_temp
    };
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        const char *why = "";
        void *made = NULL;
        assert_int_equal(list[i]->open(&machine.roots, &made, &why),
                         SONDE_E_UNSUPPORTED);
        assert_true(strlen(why) > 5);
        assert_null(made);
    }
}

/* Whatever stands in the files: no crash, no value that is no number. */
static void damaged_files_are_no_danger(void **state)
{
    (void)state;
    static const char *const texts[] = { "",
                                         "\n",
                                         "x",
                                         "100 (",
                                         "100 (a)",
                                         "100 (a) S",
                                         "cpu ",
                                         "cpu  1 2\ncpu",
                                         "-",
                                         ":",
                                         "::::\n:::",
                                         "rchar: ",
                                         "Tcp:\nTcp:",
                                         "99999999999999999999",
                                         "\xff\xfe\n\n\n" };
    static const char *const files[] = {
        "stat",       "loadavg",      "meminfo",          "diskstats",
        "net/dev",    "net/snmp",     "100/stat",         "100/statm",
        "100/status", "100/io",       "100/smaps_rollup", "100/maps",
        "100/cgroup", "pressure/cpu", "100/net/dev"
    };
    put_sys("fs/cgroup/memory.current", "x");
    for (size_t t = 0; t < sizeof texts / sizeof *texts; t++) {
        for (size_t f = 0; f < sizeof files / sizeof *files; f++)
            put_proc(files[f], texts[t]);
        for (size_t i = 0; monitor_list[i]; i++) {
            const char *why = "";
            ops = monitor_list[i];
            monitor_state = NULL;
            if (ops->open(&machine.roots, &monitor_state, &why) == 0) {
                round_after(0, 1);
                round_after(1000000000, 1);
                for (size_t k = 0; k < seen.count; k++)
                    assert_true(isfinite(seen.value[k].value));
                ops->close(monitor_state);
                monitor_state = NULL;
            }
        }
    }
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(cpu_of_processes_cores_and_machine),
        TEST(switches_are_those_of_all_threads_the_ended_ones_too),
        TEST(a_child_that_was_waited_for_is_counted_once),
        TEST(a_child_nobody_waited_for_stays_in_the_sum),
        TEST(what_was_used_before_the_run_is_not_the_runs),
        TEST(a_peak_before_the_run_is_not_the_runs),
        TEST(a_reused_pid_is_another_process),
        TEST(memory_of_a_process_and_the_machine),
        TEST(without_smaps_private_memory_has_no_value),
        TEST(a_zombie_has_no_memory_rather_than_none),
        TEST(sondes_own_pages_are_taken_off),
        TEST(bytes_of_processes_and_devices),
        TEST(io_that_is_not_ours_to_read_is_unavailable),
        TEST(cgroup_v2),
        TEST(cgroup_v1_beside_an_empty_v2),
        TEST(cgroups_without_limits_have_none),
        TEST(pressure_from_totals),
        TEST(network_of_the_programs_name_space),
        TEST(temperatures_of_two_sockets),
        TEST(thermal_zones_where_there_are_no_chips),
        TEST(an_empty_machine_is_unsupported_with_a_reason),
        TEST(damaged_files_are_no_danger),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
