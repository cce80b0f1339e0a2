/* crashes.c: faults of the run's processes. */
#include "launch/crashes.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>

#include "base/buf.h"
#include "base/files.h"
#include "trace/crash.h"

static bool from_file(const char *dir, const struct kin_process *p,
                      struct fault *ret_fault)
{
    char name[48];
    struct buf path = BUF_INIT;
    struct crash crash;
    (void)snprintf(name, sizeof name, "crash-%u" CRASH_SUFFIX, p->pid);
    path_join(&path, dir, name);
    const int rc = path.error ? path.error : crash_read(path.data, &crash);
    buf_release(&path);
    if (rc < 0 || crash.pid != p->pid)
        return false;
    *ret_fault = (struct fault){ .signal = crash.signal,
                                 .pid = (pid_t)p->pid,
                                 .address = crash.address,
                                 .shm_free = crash.shm_free };
    if (crash.frame_count && crash.frame[0].module[0])
        (void)snprintf(ret_fault->place, sizeof ret_fault->place, "%.128s+%#" PRIx64,
                       path_base(crash.frame[0].module), crash.frame[0].offset);
    return true;
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

void crashes_find(const char *dir, const struct kin *kin, const struct kernellog *log,
                  int status, struct fault *ret_fault)
{
    for (size_t i = 0; i < kin->count; i++) {
        const struct kin_process *p = &kin->process[i];
        const bool faulted = i == 0 ? died_of_fault(status)
                                    : p->status_known && died_of_fault(p->status);
        if (faulted && (from_file(dir, p, ret_fault) || from_log(log, p, ret_fault)))
            return;
    }
}
