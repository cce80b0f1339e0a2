/* companion.c: what must be seen from outside, for a session inside a program. */
#include "launch/companion.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/moment.h"
#include "launch/symbolise.h"
#include "trace/control.h"
#include "trace/file.h"
#include "trace/guard.h"
#include "trace/process.h"
#include "trace/runfile.h"

enum { LOOK_MS = 100 };

struct companion {
    struct control *control;
    struct runfile file; /* for notes alone: run.json is the session's */
    struct captures captures;
    uint64_t start; /* of the process, in clock ticks since boot */
};

static volatile sig_atomic_t asked_to_end;

static void note_signal(int signal)
{
    (void)signal;
    asked_to_end = 1;
}

static void take_signals(void)
{
    const struct sigaction end = { .sa_handler = note_signal };
    (void)sigaction(SIGTERM, &end, NULL);
    (void)sigaction(SIGINT, &end, NULL);
    (void)sigaction(SIGHUP, &end, NULL);
    const struct sigaction ignore = { .sa_handler = SIG_IGN };
    (void)sigaction(SIGPIPE, &ignore, NULL); /* the session may be gone */
    (void)sigaction(SIGXFSZ, &ignore, NULL);
}

/* Whether the session wrote something, or has gone, within `wait_ms`. */
static bool session_spoke(int wait_ms)
{
    struct pollfd input = { .fd = STDIN_FILENO, .events = POLLIN };
    char byte;
    if (poll(&input, 1, wait_ms) <= 0)
        return false;
    return read(STDIN_FILENO, &byte, 1) >= 0 || errno != EINTR;
}

/* True when it said go. */
static bool wait_for_go(void)
{
    struct pollfd input = { .fd = STDIN_FILENO, .events = POLLIN };
    char byte;
    while (!asked_to_end && poll(&input, 1, -1) < 0 && errno == EINTR)
        ;
    return !asked_to_end && read(STDIN_FILENO, &byte, 1) == 1;
}

static void follow(struct companion *c, pid_t pid)
{
    bool alive = true;
    captures_attach(&c->captures, pid);
    captures_start(&c->captures, pid);
    while (!asked_to_end && alive) {
        const uint64_t now = moment_ns(CLOCK_MONOTONIC);
        const uint64_t next = captures_tick(&c->captures, now);
        const uint64_t wait = next > now ? (next - now) / 1000000 : 0;
        if (session_spoke(!next || wait > LOOK_MS ? LOOK_MS : (int)wait))
            break;
        alive = process_alive(pid, c->start);
    }
    captures_ending(&c->captures);
    captures_finish(&c->captures, 0);
}

static void say_notes(const struct companion *c)
{
    for (size_t i = 0; i < c->file.note_count; i++)
        (void)printf("%s\n", c->file.notes[i]);
    (void)fflush(stdout);
}

static void watch(struct companion *c, const struct companion_options *o)
{
    const struct capture_context context = {
        .options = &o->capture,
        .dir = o->dir,
        .control = c->control,
        .file = &c->file,
        .level = (int)c->control->level,
        .redact = true,
        .attached = true,
    };
    captures_prepare(&c->captures, &context);
    follow(c, o->pid);
    const int rc = symbolise_run(o->dir, c->control);
    if (rc < 0)
        runfile_note(&c->file, "functions could not be named: %s", error_text(rc));
    captures_release(&c->captures);
    say_notes(c);
}

int companion_run(const struct companion_options *options)
{
    struct companion c = { .file = { .redact = true } };
    c.start = process_start_ticks((uint32_t)options->pid);
    if (c.start == 0)
        return -ESRCH;
    int rc = control_map(options->dir, true, &c.control);
    if (rc < 0)
        return rc;
    take_signals();
    guard_install();
    const pid_t background = fork();
    if (background != 0) { /* the first process: says who the other one is */
        rc = background < 0 ? -errno : 0;
        if (background > 0)
            (void)printf("%d\n", (int)background);
        goto done;
    }
    (void)setsid(); /* Ctrl-C is for the program */
    if (wait_for_go())
        watch(&c, options);
done:
    runfile_release(&c.file);
    control_unmap(c.control);
    return rc;
}
