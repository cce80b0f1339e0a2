/* attach.c: watch a program that somebody else started. */
#include "launch/attach.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/files.h"
#include "base/moment.h"
#include "trace/file.h"
#include "trace/process.h"

enum { PROC_FILE_MAX = 4 << 20, LOOK_US = 100000 };

/* ---- The target -------------------------------------------------------------- */

static int read_proc(pid_t pid, const char *name, struct buf *ret_text)
{
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
    return file_read_all(path, PROC_FILE_MAX, ret_text);
}

/* Words that end with a zero each, as /proc writes command lines. */
static int split_words(const struct buf *text, char ***ret_words, int *ret_count)
{
    int count = 0, at = 0;
    for (size_t i = 0; i < text->len; i++)
        count += text->data[i] == '\0';
    char **words = calloc((size_t)count + 1, sizeof *words);
    for (const char *p = text->data; words && at < count; p += strlen(p) + 1)
        if (!(words[at++] = strdup(p)))
            break;
    if (!words || at < count || (count && !words[count - 1])) {
        for (int i = 0; words && i < at; i++)
            free(words[i]);
        free(words);
        return -ENOMEM;
    }
    *ret_words = words;
    *ret_count = count;
    return 0;
}

static char *run_of(pid_t pid)
{
    static const char key[] = "SONDE_RUN=";
    struct buf text = BUF_INIT;
    char *run = NULL;
    if (read_proc(pid, "environ", &text) == 0 && text.len > 0)
        for (const char *p = text.data; p < text.data + text.len; p += strlen(p) + 1)
            if (!run && strncmp(p, key, sizeof key - 1) == 0)
                run = strdup(p + sizeof key - 1);
    buf_release(&text);
    return run;
}

static int may_look_at(pid_t pid)
{
    struct buf text = BUF_INIT;
    const int rc = read_proc(pid, "io", &text); /* what ptrace rules guard */
    buf_release(&text);
    return rc == -EPERM ? -EACCES : rc == -ENOENT ? -ESRCH : rc;
}

int attach_target_find(pid_t pid, struct attach_target *ret_target)
{
    struct attach_target t = { .pid = pid };
    if (pid <= 0 || pid == getpid())
        return -EINVAL;
    t.start = process_start_ticks((uint32_t)pid);
    if (t.start == 0)
        return -ESRCH;
    int rc = may_look_at(pid);
    if (rc < 0)
        return rc;
    struct buf text = BUF_INIT;
    rc = read_proc(pid, "cmdline", &text);
    if (rc == 0)
        rc = text.len == 0 ? -EINVAL : split_words(&text, &t.argv, &t.argc);
    buf_release(&text);
    if (rc < 0)
        return rc;
    t.run = run_of(pid);
    *ret_target = t;
    return 0;
}

void attach_target_release(struct attach_target *target)
{
    for (int i = 0; i < target->argc; i++)
        free(target->argv[i]);
    free(target->argv);
    free(target->run);
    *target = (struct attach_target){ 0 };
}

/* ---- Watching ---------------------------------------------------------------- */

/* Waits until `until_ns`, 0.1 s at most; true when somebody wants us to stop. */
static bool wait_interrupted(uint64_t until_ns)
{
    const uint64_t now = moment_ns(CLOCK_MONOTONIC);
    uint64_t wait = until_ns > now ? until_ns - now : 0;
    if (wait > LOOK_US * 1000ull)
        wait = LOOK_US * 1000ull;
    const struct timespec limit = { 0, (long)wait };
    sigset_t set;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGINT);
    (void)sigaddset(&set, SIGTERM);
    (void)sigaddset(&set, SIGHUP);
    return sigtimedwait(&set, NULL, &limit) > 0;
}

void attach_follow(struct launch *launch, const struct attach_target *target,
                   uint64_t duration_ns)
{
    const uint64_t start = moment_ns(CLOCK_MONOTONIC);
    const uint64_t end = duration_ns ? start + duration_ns : UINT64_MAX;
    struct timespec real;
    (void)clock_gettime(CLOCK_REALTIME, &real);
    launch->file.started_ns = (int64_t)real.tv_sec * 1000000000 + real.tv_nsec;
    launch->child.pid = target->pid;
    launch->file.pid = target->pid;
    launch->file.pid_start = target->start;
    (void)runfile_write(&launch->file, launch->dir.path);
    captures_attach(&launch->captures, target->pid);
    captures_start(&launch->captures, target->pid);
    for (uint64_t now = start; now < end && !launch->child.ended;
         now = moment_ns(CLOCK_MONOTONIC)) {
        const uint64_t next = captures_tick(&launch->captures, now);
        launch->child.interrupted = wait_interrupted(next && next < end ? next : end);
        if (launch->child.interrupted)
            break;
        launch->child.ended = !process_alive(target->pid, target->start);
    }
    (void)clock_gettime(CLOCK_REALTIME, &real);
    launch->file.ended_ns = (int64_t)real.tv_sec * 1000000000 + real.tv_nsec;
}
