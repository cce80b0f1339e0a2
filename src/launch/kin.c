/* kin.c: what the post-mortem keeps about each process of the run. */
#include "launch/kin.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/files.h"
#include "capture/monitor/kept.h"
#include "capture/monitor/readings.h"

enum { AGAIN_MAX = 16 };
static const uint64_t YOUNG_NS = 5000000000;

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif
#ifndef SYS_pidfd_send_signal
#define SYS_pidfd_send_signal 424
#endif

/* The first version of the kernel's struct (Linux 6.13), which all later ones take. */
struct pidfd_info_v0 {
    uint64_t mask, cgroup;
    uint32_t pid, tgid, ppid, ids[8];
    int32_t exit_code;
};
_Static_assert(sizeof(struct pidfd_info_v0) == 64, "size is part of the request");
#define PIDFD_INFO_REQUEST   _IOWR(0xFF, 11, struct pidfd_info_v0)
#define PIDFD_INFO_WANT_EXIT (1ULL << 3)

int kin_new(const char *proc, struct kin **ret_kin)
{
    struct kin *kin = calloc(1, sizeof *kin);
    struct rlimit files;
    if (!kin)
        return -ENOMEM;
    kin->process = calloc(KIN_MAX, sizeof *kin->process);
    if (!kin->process) {
        free(kin);
        return -ENOMEM;
    }
    kin->proc = proc;
    /* Descriptors are scarce where people set limits; traces need them more. */
    if (getrlimit(RLIMIT_NOFILE, &files) == 0)
        kin->pidfd_max = files.rlim_cur / 4 < KIN_MAX ? (unsigned)(files.rlim_cur / 4)
                                                      : KIN_MAX;
    *ret_kin = kin;
    return 0;
}

void kin_free(struct kin *kin)
{
    if (!kin)
        return;
    for (size_t i = 0; i < kin->count; i++)
        if (kin->process[i].pidfd >= 0)
            (void)close(kin->process[i].pidfd);
    free(kin->process);
    free(kin);
}

/* ---- One process ----------------------------------------------------------------- */

static int read_of(const struct kin *kin, uint32_t pid, const char *name,
                   struct buf *ret_text)
{
    char path[128];
    (void)snprintf(path, sizeof path, "%s/%u/%s", kin->proc, pid, name);
    return file_read_all(path, 65536, ret_text);
}

static void note(struct kin_process *p, const char *comm, uint64_t cpu_ticks,
                 uint64_t pages)
{
    (void)memcpy(p->comm, comm, sizeof p->comm);
    p->cpu_ticks = cpu_ticks;
    if (pages) /* a zombie has none; what it had last is of interest */
        p->rss = pages * (uint64_t)sysconf(_SC_PAGESIZE);
    if (p->rss > p->peak_rss)
        p->peak_rss = p->rss;
}

static void read_stat(const struct kin *kin, struct kin_process *p)
{
    struct process_stat stat;
    int fd = kept_open(kin->proc, "%u/stat", p->pid);
    if (read_process_stat(fd, &stat) && stat.start_ticks == p->start_ticks)
        note(p, stat.comm, stat.utime + stat.stime, stat.rss_pages);
    kept_close(&fd);
}

static void read_exe(const struct kin *kin, struct kin_process *p)
{
    char path[128];
    struct stat st;
    (void)snprintf(path, sizeof path, "%s/%u/exe", kin->proc, p->pid);
    if (stat(path, &st) < 0)
        return;
    p->exe_dev = (uint64_t)st.st_dev;
    p->exe_ino = (uint64_t)st.st_ino;
}

static void judge_kinship(const struct kin *kin, struct kin_process *p)
{
    read_exe(kin, p);
    const struct kin_process *program = &kin->process[0];
    p->is_worker = p != program && p->exe_ino && p->exe_ino == program->exe_ino &&
                   p->exe_dev == program->exe_dev;
}

static void ask_pidfd(struct kin_process *p)
{
    struct pidfd_info_v0 info = { .mask = PIDFD_INFO_WANT_EXIT };
    if (p->pidfd >= 0 && !p->status_known &&
        ioctl(p->pidfd, PIDFD_INFO_REQUEST, &info) == 0 &&
        (info.mask & PIDFD_INFO_WANT_EXIT)) {
        p->status_known = true;
        p->status = info.exit_code;
    }
}

static bool has_ended(const struct kin_process *p)
{
    struct pollfd fd = { .fd = p->pidfd, .events = POLLIN };
    return p->pidfd >= 0 && poll(&fd, 1, 0) == 1;
}

/* ---- All of them ------------------------------------------------------------------- */

static struct kin_process *find(const struct kin *kin, const struct family_member *m)
{
    for (size_t i = 0; i < kin->count; i++)
        if (kin->process[i].pid == m->pid &&
            kin->process[i].start_ticks == m->start_ticks)
            return &kin->process[i];
    return NULL;
}

/* The place of a process that ended well, when there is no other. */
static struct kin_process *make_room(struct kin *kin)
{
    if (kin->count < KIN_MAX)
        return &kin->process[kin->count++];
    for (size_t i = 1; i < kin->count; i++) {
        struct kin_process *p = &kin->process[i];
        if (p->alive || !p->status_known || p->status != 0)
            continue;
        if (p->pidfd >= 0) {
            (void)close(p->pidfd);
            kin->pidfds--;
        }
        return p;
    }
    return NULL;
}

static struct kin_process *add(struct kin *kin, const struct family_member *m)
{
    struct kin_process *p = make_room(kin);
    if (!p)
        return NULL;
    *p = (struct kin_process){ .pid = m->pid,
                               .parent = m->parent,
                               .start_ticks = m->start_ticks,
                               .pidfd = -1,
                               .alive = true };
    if (kin->pidfds < kin->pidfd_max)
        p->pidfd = (int)syscall(SYS_pidfd_open, (pid_t)m->pid, 0);
    kin->pidfds += p->pidfd >= 0;
    return p;
}

static void note_death(struct kin *kin, struct kin_process *p,
                       const struct family_member *m)
{
    if (p->alive)
        p->order = ++kin->deaths;
    p->alive = false;
    ask_pidfd(p);
    if (!p->status_known && m->exit_known) {
        p->status_known = true;
        p->status = m->exit_status;
    }
}

static void look_at(struct kin *kin, const struct family_member *m, uint64_t now_ns)
{
    struct kin_process *p = find(kin, m);
    if (!p && m->alive)
        p = add(kin, m);
    if (!p)
        return;
    if (!m->alive || m->state == 'Z' || has_ended(p)) {
        note_death(kin, p, m);
        return;
    }
    p->last_ns = now_ns;
    /* Between fork and exec a command looks like a worker. Who is past its first seconds
     * and becomes another program has another name then. */
    const bool renamed = memcmp(p->comm, m->comm, sizeof p->comm) != 0;
    kin->program_changed |= renamed && p == &kin->process[0];
    note(p, m->comm, m->cpu_ticks, m->rss_pages);
    if (renamed || kin->program_changed || now_ns - m->seen_ns < YOUNG_NS)
        judge_kinship(kin, p);
}

static void sum_up(struct kin *kin)
{
    kin->rss = kin->cpu_ticks = 0;
    for (size_t i = 0; i < kin->count; i++) {
        kin->cpu_ticks += kin->process[i].cpu_ticks;
        kin->rss += kin->process[i].alive ? kin->process[i].rss : 0;
    }
}

void kin_look(struct kin *kin, const struct family *family, uint64_t now_ns)
{
    kin->program_changed = false;
    for (size_t i = 0; i < family_count(family); i++)
        look_at(kin, family_at(family, i), now_ns);
    sum_up(kin);
}

void kin_look_again(struct kin *kin)
{
    int looks = AGAIN_MAX;
    for (size_t i = 0; i < kin->count && looks > 0; i++)
        if (kin->process[i].alive) {
            read_stat(kin, &kin->process[i]);
            looks--;
        }
    sum_up(kin);
}

/* ---- Sums ---------------------------------------------------------------------------- */

static uint64_t number_behind(const char *text, const char *word)
{
    const char *at = strstr(text, word);
    return at ? strtoull(at + strlen(word), NULL, 10) : 0;
}

uint64_t kin_pss(const struct kin *kin)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < kin->count; i++) {
        struct buf text = BUF_INIT;
        if (kin->process[i].alive &&
            read_of(kin, kin->process[i].pid, "smaps_rollup", &text) == 0)
            sum += number_behind(text.data, "\nPss:") * 1024;
        buf_release(&text);
    }
    return sum;
}

uint64_t kin_io(const struct kin *kin)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < kin->count; i++) {
        struct buf text = BUF_INIT;
        if (kin->process[i].alive &&
            read_of(kin, kin->process[i].pid, "io", &text) == 0)
            sum += number_behind(text.data, "rchar: ") +
                   number_behind(text.data, "wchar: ");
        buf_release(&text);
    }
    return sum;
}

/* Through pidfds, so that nobody who got a number again is hit. */
void kin_signal(const struct kin *kin, int signal)
{
    for (size_t i = kin->count; i-- > 0;) {
        const struct kin_process *p = &kin->process[i];
        if (p->alive && p->pidfd >= 0)
            (void)syscall(SYS_pidfd_send_signal, p->pidfd, signal, NULL, 0);
    }
}

bool kin_learns_ends(void)
{
    const pid_t pid = fork();
    if (pid == 0)
        _exit(3);
    if (pid < 0)
        return false;
    struct kin_process p = { .pidfd = (int)syscall(SYS_pidfd_open, pid, 0) };
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
    ask_pidfd(&p);
    if (p.pidfd >= 0)
        (void)close(p.pidfd);
    return p.status_known && WIFEXITED(p.status) && WEXITSTATUS(p.status) == 3;
}
