/* crashes.c: faults of the run's processes. */
#include "launch/crashes.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/buf.h"
#include "base/files.h"
#include "launch/symbolise.h"
#include "trace/crash.h"

/* "function at file:line", "function in module", "module+0x12" */
static void put_frame(const struct symbolise_frame *named,
                      const struct crash_frame *raw, char ret_text[DEATH_GROUP])
{
    const char *module = path_base(raw->module);
    if (named->function[0] && named->file[0] && named->line)
        (void)snprintf(ret_text, DEATH_GROUP, "%.150s at %.80s:%u", named->function,
                       path_base(named->file), named->line);
    else if (named->function[0])
        (void)snprintf(ret_text, DEATH_GROUP, "%.150s in %.80s", named->function,
                       module);
    else if (module[0])
        (void)snprintf(ret_text, DEATH_GROUP, "%.200s+%#" PRIx64, module, raw->offset);
    else
        (void)snprintf(ret_text, DEATH_GROUP, "%#" PRIx64, raw->address);
}

/* Calls that were inlined give several frames for one address. */
static void put_frames(const struct crash *crash, const char *maps,
                       struct fault *ret_fault)
{
    static struct symbolise_frame named[DEATH_FRAMES];
    uint64_t addresses[CRASH_FRAMES];
    const struct symbolise_frame none = { 0 };
    for (unsigned i = 0; i < crash->frame_count; i++)
        addresses[i] = crash->frame[i].address;
    const int n = symbolise_addresses(maps, addresses, crash->frame_count, named,
                                      DEATH_FRAMES);
    unsigned raw = 0, count = 0;
    for (int i = 0; i < n && raw < crash->frame_count; i++) {
        while (raw + 1 < crash->frame_count &&
               crash->frame[raw].address != named[i].address)
            raw++;
        put_frame(&named[i], &crash->frame[raw], ret_fault->frame[count++]);
    }
    for (; n <= 0 && count < crash->frame_count && count < DEATH_FRAMES; count++)
        put_frame(&none, &crash->frame[count], ret_fault->frame[count]);
    ret_fault->frame_count = count;
}

static void take_crash(const struct crash *crash, const char *maps,
                       struct fault *ret_fault)
{
    *ret_fault = (struct fault){ .signal = crash->signal,
                                 .pid = (pid_t)crash->pid,
                                 .address = crash->address,
                                 .shm_free = crash->shm_free };
    if (crash->frame_count && crash->frame[0].module[0])
        (void)snprintf(ret_fault->place, sizeof ret_fault->place, "%.128s+%#" PRIx64,
                       path_base(crash->frame[0].module), crash->frame[0].offset);
    put_frames(crash, maps, ret_fault);
    if (ret_fault->frame_count && strstr(ret_fault->frame[0], " at "))
        (void)snprintf(ret_fault->place, sizeof ret_fault->place, "%.159s",
                       ret_fault->frame[0]);
}

bool crashes_read(const char *dir, uint32_t pid, struct fault *ret_fault)
{
    char name[48];
    struct buf path = BUF_INIT, text = BUF_INIT;
    struct crash crash;
    (void)snprintf(name, sizeof name, "crash-%u" CRASH_SUFFIX, pid);
    path_join(&path, dir, name);
    int rc = path.error
                 ? path.error
                 : file_read_all(path.data,
                                 sizeof(struct crash_record) + CRASH_MAPS_MAX, &text);
    if (rc == 0)
        rc = crash_parse(text.data, text.len, &crash);
    if (rc == 0 && crash.pid == pid)
        take_crash(&crash, text.data + sizeof(struct crash_record), ret_fault);
    else
        rc = -1;
    buf_release(&path);
    buf_release(&text);
    return rc == 0;
}

static bool from_log(const struct kernellog *log, const struct kin_process *p,
                     struct fault *ret_fault)
{
    const struct kernellog_fault *f = log ? kernellog_find_fault(log, (pid_t)p->pid,
                                                                 p->comm)
                                          : NULL;
    if (!f)
        return false;
    *ret_fault = (struct fault){ .signal = SIGSEGV,
                                 .pid = f->pid,
                                 .address = f->address,
                                 .shm_free = MEMCG_UNKNOWN };
    if (f->module[0])
        (void)snprintf(ret_fault->place, sizeof ret_fault->place, "%s+%#" PRIx64,
                       f->module, f->offset);
    return true;
}

static bool died_of_fault(int status)
{
    static const int faults[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP };
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
        if (WIFSIGNALED(status) && WTERMSIG(status) == faults[i])
            return true;
    return false;
}

static bool is_before(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec != b->tv_sec ? a->tv_sec < b->tv_sec : a->tv_nsec < b->tv_nsec;
}

uint32_t crashes_first(const char *dir, uint32_t but)
{
    unsigned pid = 0;
    uint32_t found = 0;
    struct timespec earliest = { 0 };
    struct stat st;
    DIR *d = opendir(dir);
    for (const struct dirent *e; d && (e = readdir(d));) {
        if (!crash_is_name(e->d_name) || sscanf(e->d_name, "crash-%u", &pid) != 1 ||
            pid == but || fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
            continue;
        if (!found || is_before(&st.st_mtim, &earliest)) {
            found = pid;
            earliest = st.st_mtim;
        }
    }
    if (d)
        (void)closedir(d);
    return found;
}

void crashes_find(const char *dir, const struct kin *kin, const struct kernellog *log,
                  int status, struct fault *ret_fault)
{
    for (size_t i = 0; i < kin->count; i++) {
        const struct kin_process *p = &kin->process[i];
        const bool faulted = i == 0 ? died_of_fault(status)
                                    : p->status_known && died_of_fault(p->status);
        if (faulted &&
            (crashes_read(dir, p->pid, ret_fault) || from_log(log, p, ret_fault)))
            return;
    }
    const uint32_t unseen = crashes_first(dir, kin->count ? kin->process[0].pid : 0);
    if (unseen)
        (void)crashes_read(dir, unseen, ret_fault);
}
