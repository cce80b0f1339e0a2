/* doctor_kernel.c: what the kernel lets us see of other processes. */
#include "cli/doctor.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/human.h"
#include "launch/kin.h"
#include "launch/memcg.h"
#include "launch/syscalls.h"

/* ---- Other processes ---------------------------------------------------------------- */

/* A child that waits to be looked at; its memory is a copy of ours. */
static pid_t start_child(void)
{
    const pid_t pid = fork();
    if (pid == 0)
        for (;;)
            (void)pause();
    return pid;
}

static void end_child(pid_t pid)
{
    if (pid <= 0)
        return;
    (void)kill(pid, SIGKILL);
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
}

static void probe_processes(const struct doctor_roots *roots, struct doctor_answer *a)
{
    char mounts[65536], text[64];
    if (!doctor_read(roots->proc, "self/mountinfo", mounts, sizeof mounts)) {
        doctor_found(a, DOCTOR_UNAVAILABLE, "no /proc");
        doctor_why(a, "processes cannot be followed or measured");
        doctor_fix(a, "mount -t proc proc /proc");
        return;
    }
    const char *hide = strstr(mounts, "hidepid=");
    const bool hidden = hide && hide[8] != '0' && strncmp(hide + 8, "off", 3) != 0 &&
                        !doctor_read(roots->proc, "1/stat", text, sizeof text);
    if (hidden) {
        doctor_found(a, DOCTOR_LIMITED, "/proc shows only our own processes");
        doctor_why(a, "hidepid: other users' use of CPU and memory is not seen");
        doctor_fix(a, "mount -o remount,hidepid=0 /proc");
    } else {
        doctor_found(a, DOCTOR_OK, "/proc shows every process");
    }
}

static void probe_memory_of_others(const struct doctor_roots *roots,
                                   struct doctor_answer *a)
{
    static volatile uint64_t secret = 0x50e7e5eed;
    uint64_t got = 0;
    char scope[16] = "0";
    struct iovec here = { &got, sizeof got };
    struct iovec there = { (void *)(uintptr_t)&secret, sizeof got };
    const pid_t pid = start_child();
    const ssize_t n = pid > 0 ? process_vm_readv(pid, &here, 1, &there, 1, 0) : -1;
    const int error = errno;
    end_child(pid);
    (void)doctor_read(roots->proc, "sys/kernel/yama/ptrace_scope", scope, sizeof scope);
    if (n != sizeof got || got != secret) {
        doctor_found(a, DOCTOR_UNAVAILABLE, "a child's memory cannot be read");
        doctor_why(a, "process_vm_readv: %s; no Python stacks from outside",
                   error_text(-error));
        doctor_fix(a, "docker run --cap-add SYS_PTRACE, or a seccomp profile with it");
    } else if (scope[0] >= '1' && scope[0] <= '9' && geteuid() != 0) {
        doctor_found(a, DOCTOR_LIMITED, "of programs we start; ptrace_scope is %c",
                     scope[0]);
        doctor_why(a, "attach to running programs is not allowed");
        doctor_fix(a, "sudo sysctl kernel.yama.ptrace_scope=0");
    } else {
        doctor_found(a, DOCTOR_OK, "of children and of running programs");
    }
}

static void probe_ends(const struct doctor_roots *roots, struct doctor_answer *a)
{
    (void)roots;
    if (kin_learns_ends()) {
        doctor_found(a, DOCTOR_OK, "how every process of a run ended (pidfd)");
        return;
    }
    doctor_found(a, DOCTOR_LIMITED, "of processes seen before their parent reaps them");
    doctor_why(a, "PIDFD_GET_INFO tells exit statuses from Linux 6.15 on");
}

/* ---- perf ------------------------------------------------------------------------------ */

static int perf_open(uint32_t type, uint64_t config, pid_t pid)
{
    struct perf_event_attr attr = { .type = type,
                                    .size = sizeof attr,
                                    .config = config,
                                    .sample_period = 1000000,
                                    .sample_type = PERF_SAMPLE_IP,
                                    .disabled = 1,
                                    .exclude_kernel = 1,
                                    .exclude_hv = 1 };
    const long fd = syscall(SYS_perf_event_open, &attr, pid, -1, -1,
                            PERF_FLAG_FD_CLOEXEC);
    if (fd < 0)
        return -errno;
    (void)close((int)fd);
    return 0;
}

static void probe_perf(const struct doctor_roots *roots, struct doctor_answer *a)
{
    char level[16] = "?";
    (void)doctor_read(roots->proc, "sys/kernel/perf_event_paranoid", level,
                      sizeof level);
    const pid_t pid = start_child();
    const int software = perf_open(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK, pid);
    const int hardware = perf_open(PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, pid);
    end_child(pid);
    if (software < 0) {
        doctor_found(a, DOCTOR_LIMITED, "perf_event_open: %s (paranoid %s)",
                     error_text(software), level);
        doctor_why(a,
                   "timers inside the program are used instead, for native stacks of "
                   "programs that are not statically linked");
        doctor_fix(a, software == -ENOSYS
                          ? "a kernel with CONFIG_PERF_EVENTS"
                          : "sudo sysctl kernel.perf_event_paranoid=1, in containers "
                            "--cap-add PERFMON");
    } else if (hardware < 0) {
        doctor_found(a, DOCTOR_LIMITED, "CPU clock only (paranoid %s)", level);
        doctor_why(a, "hardware counters: %s; virtual machines often have none",
                   error_text(hardware));
    } else {
        doctor_found(a, DOCTOR_OK, "CPU clock and hardware counters (paranoid %s)",
                     level);
    }
}

static void probe_syscalls(const struct doctor_roots *roots, struct doctor_answer *a)
{
    char why[SYSCALLS_WHY] = "";
    (void)roots;
    if (syscalls_countable(why)) {
        doctor_found(a, DOCTOR_OK, "counted by the kernel when asked for (--syscalls)");
        return;
    }
    doctor_found(a, DOCTOR_UNAVAILABLE, "they cannot be counted");
    doctor_why(a, "%s", why);
}

/* ---- Pressure, groups, log ---------------------------------------------------------------- */

static void probe_pressure(const struct doctor_roots *roots, struct doctor_answer *a)
{
    char text[256];
    if (doctor_read(roots->proc, "pressure/memory", text, sizeof text) && text[0]) {
        doctor_found(a, DOCTOR_OK, "stalls for CPU, memory and I/O");
        return;
    }
    doctor_found(a, DOCTOR_UNAVAILABLE, "no /proc/pressure");
    doctor_why(a, "stalls for memory and I/O are not measured");
    doctor_fix(a, "boot with psi=1");
}

static void probe_groups(const struct doctor_roots *roots, struct doctor_answer *a)
{
    struct memcg group;
    struct memcg_news news;
    char limit[HUMAN_LEN];
    if (memcg_open(roots->proc, getpid(), &group) < 0) {
        doctor_found(a, DOCTOR_LIMITED, "no memory controller to be seen");
        doctor_why(a, "a kill for memory is told by the kernel log or /proc/vmstat");
        return;
    }
    memcg_look(&group, &news);
    const uint64_t most = memcg_limit(&group);
    if (!news.readable) {
        doctor_found(a, DOCTOR_LIMITED, "v%d, its kills cannot be read", group.version);
        doctor_why(a, "a kill for memory is told by the kernel log or /proc/vmstat");
        return;
    }
    doctor_found(a, DOCTOR_OK, "v%d, memory limit %s", group.version,
                 most == MEMCG_UNKNOWN ? "none" : human_bytes(limit, (double)most));
}

static void probe_log(const struct doctor_roots *roots, struct doctor_answer *a)
{
    (void)roots;
    const int fd = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd >= 0) {
        (void)close(fd);
        doctor_found(a, DOCTOR_OK, "kills for memory and faults are read from it");
        return;
    }
    doctor_found(a, DOCTOR_LIMITED, "/dev/kmsg: %s", error_text(-errno));
    doctor_why(a, "the post-mortem relies on counters alone");
    doctor_fix(a, "sudo sysctl kernel.dmesg_restrict=0; sudo chmod a+r /dev/kmsg");
}

/* ---- Page cache ------------------------------------------------------------------------------ */

#ifndef SYS_cachestat
#define SYS_cachestat 451
#endif

static void probe_cache(const struct doctor_roots *roots, struct doctor_answer *a)
{
    struct {
        uint64_t offset, len;
    } range = { 0, 4096 };
    uint64_t counts[5];
    (void)roots;
    const int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    const bool direct = fd >= 0 && syscall(SYS_cachestat, fd, &range, counts, 0) == 0;
    unsigned char resident;
    void *page = fd < 0 ? MAP_FAILED : mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
    const bool mapped = page != MAP_FAILED && mincore(page, 4096, &resident) == 0;
    if (page != MAP_FAILED)
        (void)munmap(page, 4096);
    if (fd >= 0)
        (void)close(fd);
    doctor_found(a,
                 direct   ? DOCTOR_OK
                 : mapped ? DOCTOR_LIMITED
                          : DOCTOR_UNAVAILABLE,
                 direct   ? "cold and warm files are told apart (cachestat)"
                 : mapped ? "cold and warm files are told apart (mincore)"
                          : "neither cachestat nor mincore");
    if (!direct)
        doctor_why(a, mapped ? "mincore tells only of files we may write"
                             : "whether files were cached is not known");
}

const struct doctor_check doctor_kernel[] = {
    { "processes", "processes", true, probe_processes },
    { "process_memory", "process memory", false, probe_memory_of_others },
    { "process_ends", "process ends", false, probe_ends },
    { "perf", "perf events", false, probe_perf },
    { "syscalls", "system calls", false, probe_syscalls },
    { "pressure", "pressure (PSI)", false, probe_pressure },
    { "cgroup", "control groups", false, probe_groups },
    { "kernel_log", "kernel log", false, probe_log },
    { "page_cache", "page cache", false, probe_cache },
    { 0 },
};
