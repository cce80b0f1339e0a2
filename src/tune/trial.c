/* trial.c: see trial.h.
 *
 * The trial has a process group of its own: Ctrl-C reaches us alone, and all of it is
 * ended by one signal. Its temporary files (TMPDIR) lie in the scratch folder, since it is
 * ended without its own clean-up.
 */
#include "tune/trial.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <jansson.h>

#include "base/error.h"
#include "base/files.h"
#include "base/moment.h"
#include "base/redact.h"

enum { TICK_MS = 200, GRACE_MS = 3000, OUTCOME_MAX = 1 << 16, STDERR_MAX = 1 << 20 };

/* ---- May it run? -------------------------------------------------------------------------- */

static bool refuse(struct buf *why, const char *text)
{
    buf_puts(why, text);
    return false;
}

static bool is_there(const char *dir, const char *path)
{
    struct buf full = BUF_INIT;
    if (path[0] == '/')
        buf_puts(&full, path);
    else
        path_join(&full, dir, path);
    const bool there = !full.error && access(full.data, F_OK) == 0;
    buf_release(&full);
    return there;
}

/* The program, and the script that an interpreter is given. */
static bool files_are_there(const struct run_meta *m, struct buf *why)
{
    if (strchr(m->command[0], '/') && !is_there(m->cwd, m->command[0])) {
        buf_printf(why, "'%s' is no longer there", m->command[0]);
        return false;
    }
    for (size_t i = 1; i < m->command_count; i++) {
        const char *word = m->command[i];
        const size_t len = strlen(word);
        if (len > 3 && word[0] != '-' && strcmp(word + len - 3, ".py") == 0) {
            if (is_there(m->cwd, word))
                return true;
            buf_printf(why, "'%s' is no longer there", word);
            return false;
        }
        if (strcmp(word, "-m") == 0 || strcmp(word, "-c") == 0)
            break;
    }
    return true;
}

static bool has_secrets(const struct run_meta *m)
{
    for (size_t i = 0; i < m->command_count; i++)
        if (strstr(m->command[i], REDACTED_TEXT))
            return true;
    return false;
}

bool trial_is_possible(const struct report *r, struct buf *why)
{
    const struct run_meta *m = &r->run->meta;
    if (!m->present || m->command_count == 0)
        return refuse(why, "its command is not known");
    if (m->imported || m->attached || m->session)
        return refuse(why,
                      "Sonde did not start this program, and cannot start it again");
    if (r->state == RUN_LIVE)
        return refuse(why, "the run goes on");
    if (!r->layer.present || !r->layer.torch[0])
        return refuse(why, "trials are for Python programs that train with torch");
    if (m->world_size > 1)
        return refuse(why, "trials are for programs of one rank");
    if (!r->account.known || r->account.steady == 0)
        return refuse(why, "the run had no steps");
    if (has_secrets(m))
        return refuse(why, "its command line was redacted (sonde run --no-redact)");
    if (!m->cwd[0] || !path_is_dir(m->cwd)) {
        buf_printf(why, "its folder '%s' is no longer there", m->cwd);
        return false;
    }
    return files_are_there(m, why);
}

/* ---- How long ------------------------------------------------------------------------------ */

static double seconds_of(const struct trial_options *o)
{
    return o->seconds > 0 ? o->seconds : TRIAL_SECONDS;
}

/* What this one may take. */
static double left_of(const struct trial_options *o)
{
    return fmax(seconds_of(o) - o->spent_s, 1);
}

static uint64_t steps_of(const struct trial_options *o)
{
    return o->steps ? o->steps : TRIAL_STEPS;
}

/* 60 steps of 3 ms are over in 0.2 s, which is as long as one thing that somebody else does
 * on the machine. Of five trials on a busy one the first 60 steps took 7 to 59 % longer
 * than the rest in four, and 10 % less in one. Whoever says how many steps means it. */
static double least_of(const struct trial_options *o)
{
    return o->steps ? 0 : TRIAL_LEAST_S;
}

/* The whole loop is measured where it lies between steps, if there is time for it. All
 * trials of a question do the same: what is spent does not count here. */
static bool measures_whole(const struct report *r, const struct plan *p,
                           const struct trial_options *o)
{
    const double sick_s = report_duration_s(r);
    return p->by_loop && !(p->batch > 0) && o->steps == 0 &&
           sick_s <= 0.7 * seconds_of(o);
}

double trial_guess_s(const struct report *r, const struct plan *p,
                     const struct trial_options *o)
{
    const double start_s = r->account.startup_ns / 1e9;
    const double step_s = r->account.mean_ns / 1e9;
    const double steps = (double)(steps_of(o) + 2 * TRIAL_WARMUP);
    const double some_s = fmax(step_s * steps, least_of(o));
    const double guess = measures_whole(r, p, o) ? report_duration_s(r)
                                                 : start_s + some_s;
    return fmin(isnan(guess) ? left_of(o) : guess, left_of(o));
}

/* ---- The child ------------------------------------------------------------------------------ */

struct place {
    char dir[PATH_MAX]; /* scratch; "" none yet */
    struct buf run, spec, outcome, log, tmp;
};

static int make_place(struct place *p)
{
    /* Workers of a loader meet at sockets in the program's TMPDIR, which is in there: a
     * socket's path has 107 bytes at most. */
    enum { BASE_MOST = 40 };
    const char *tmp = getenv("TMPDIR");
    if (tmp && (tmp[0] != '/' || strlen(tmp) > BASE_MOST))
        tmp = NULL;
    char path[PATH_MAX];
    const int len = snprintf(path, sizeof path, "%s/sonde-trial-XXXXXX",
                             tmp ? tmp : "/tmp");
    if (len < 0 || (size_t)len >= sizeof path)
        return -ENAMETOOLONG;
    if (!mkdtemp(path)) /* 0700 */
        return -errno;
    memcpy(p->dir, path, sizeof p->dir);
    path_join(&p->run, p->dir, "run");
    path_join(&p->spec, p->dir, "trial.json");
    path_join(&p->outcome, p->dir, "outcome.json");
    path_join(&p->log, p->dir, "stderr");
    path_join(&p->tmp, p->dir, "tmp");
    if (p->run.error || p->spec.error || p->outcome.error || p->log.error ||
        p->tmp.error)
        return -ENOMEM;
    return mkdir(p->tmp.data, 0700) < 0 ? -errno : 0;
}

static void release_place(struct place *p)
{
    if (p->dir[0])
        (void)file_remove_tree(p->dir);
    struct buf *const bufs[] = { &p->run, &p->spec, &p->outcome, &p->log, &p->tmp };
    for (size_t i = 0; i < sizeof bufs / sizeof *bufs; i++)
        buf_release(bufs[i]);
}

static int write_spec(const struct report *r, const struct plan *plan,
                      const struct trial_options *o, const struct place *p)
{
    const bool whole = measures_whole(r, plan, o);
    const struct plan_course course = {
        .scratch = p->dir,
        .outcome = p->outcome.data,
        .steps = whole ? r->account.steps : steps_of(o),
        .warmup = TRIAL_WARMUP,
        .last = (uint64_t)((double)r->account.steps / fmax(plan->batch, 1)),
        .seconds = left_of(o),
        .least_s = least_of(o),
        .whole = whole,
    };
    struct buf text = BUF_INIT;
    plan_write(plan, &course, &text);
    const int rc = text.error
                       ? text.error
                       : file_write_atomic(p->spec.data, text.data, text.len, 0600);
    buf_release(&text);
    return rc;
}

static void set_threads(int threads)
{
    static const char *const names[] = { "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS",
                                         "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS",
                                         "NUMBA_NUM_THREADS" };
    char count[16];
    (void)snprintf(count, sizeof count, "%d", threads);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        (void)setenv(names[i], count, 1);
}

/* Read by libsonde-preload.so (capture/interpose/heap_kept.c). */
static void set_keep(double mb)
{
    char bytes[32];
    (void)snprintf(bytes, sizeof bytes, "%.0f", mb * (1 << 20));
    (void)setenv("SONDE_TRIAL_KEEP", bytes, 1);
}

/* In the child: what `sonde run` would take for wishes about this run are not. */
static void set_environment(const struct plan *plan, const struct place *p)
{
    static const char *const not_ours[] = { "SONDE_STEPS",     "SONDE_AFTER",
                                            "SONDE_DURATION",  "SONDE_TIMEOUT",
                                            "SONDE_NAME",      "SONDE_FORMAT",
                                            "SONDE_NO_PYTHON", "SONDE_DISABLE",
                                            "SONDE_TRIAL_KEEP" };
    for (size_t i = 0; i < sizeof not_ours / sizeof *not_ours; i++)
        (void)unsetenv(not_ours[i]);
    (void)setenv("SONDE_TRIAL", p->spec.data, 1);
    (void)setenv("TMPDIR", p->tmp.data, 1);
    (void)setenv("PYTHONDONTWRITEBYTECODE", "1", 1);
    if (plan->threads > 0)
        set_threads(plan->threads);
    if (plan->keep_mb > 0)
        set_keep(plan->keep_mb);
}

static bool set_output(const struct place *p)
{
    const int in = open("/dev/null", O_RDONLY);
    const int out = open("/dev/null", O_WRONLY);
    const int err = open(p->log.data, O_WRONLY | O_CREAT | O_APPEND, 0600);
    return in >= 0 && out >= 0 && err >= 0 && dup2(in, 0) >= 0 && dup2(out, 1) >= 0 &&
           dup2(err, 2) >= 0;
}

static char **make_words(const struct run_meta *m, const struct place *p,
                         const char *timeout)
{
    const char *level = m->level[0] ? m->level : "detailed";
    const char *const head[] = { "sonde",     "run",   "--quiet", "--level",   level,
                                 "--timeout", timeout, "-o",      p->run.data, "--" };
    enum { HEAD = sizeof head / sizeof *head };
    char **words = calloc(HEAD + m->command_count + 1, sizeof *words);
    for (size_t i = 0; words && i < HEAD; i++)
        words[i] = (char *)head[i];
    for (size_t i = 0; words && i < m->command_count; i++)
        words[HEAD + i] = (char *)m->command[i];
    return words;
}

static void become(const struct run_meta *m, const struct plan *plan,
                   const struct place *p, char **words, const sigset_t *mask)
{
    (void)setpgid(0, 0);
    (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (chdir(m->cwd) < 0 || !set_output(p))
        _exit(126);
    set_environment(plan, p);
    (void)sigprocmask(SIG_SETMASK, mask, NULL);
    (void)execv("/proc/self/exe", words);
    _exit(126);
}

/* Nothing of it stays: whoever is left when the grace is over is killed. */
static void end_group(pid_t pid)
{
    const struct timespec pause = { 0, 20000000 };
    (void)kill(-pid, SIGTERM);
    (void)kill(-pid, SIGCONT);
    for (int i = 0; i < GRACE_MS / 20; i++) {
        (void)waitpid(pid, NULL, WNOHANG);
        if (kill(-pid, 0) < 0)
            return;
        (void)nanosleep(&pause, NULL);
    }
    (void)kill(-pid, SIGKILL);
    (void)waitpid(pid, NULL, 0);
}

/* Waits for its end; the signal that interrupted us, or 0. */
static int follow(pid_t pid, const struct trial_options *o, const sigset_t *set,
                  int *ret_status)
{
    const uint64_t start = moment_ns(CLOCK_MONOTONIC);
    const double most_s = left_of(o) + 25; /* `sonde run --timeout` comes first */
    for (;;) {
        const struct timespec tick = { 0, TICK_MS * 1000000L };
        const double now_s = (double)(moment_ns(CLOCK_MONOTONIC) - start) / 1e9;
        if (waitpid(pid, ret_status, WNOHANG) == pid)
            return 0;
        if (o->tick)
            o->tick(o->arg, now_s);
        if (now_s > most_s)
            return SIGALRM;
        const int signal = sigtimedwait(set, NULL, &tick);
        if (signal > 0 && signal != SIGCHLD)
            return signal;
    }
}

/* Signals that end us are taken when nothing of a trial is left, or by follow(). */
struct signals {
    sigset_t taken, before;
};

static void signals_block(struct signals *s)
{
    (void)sigemptyset(&s->taken);
    (void)sigaddset(&s->taken, SIGINT);
    (void)sigaddset(&s->taken, SIGTERM);
    (void)sigaddset(&s->taken, SIGHUP);
    (void)sigaddset(&s->taken, SIGCHLD);
    (void)sigprocmask(SIG_BLOCK, &s->taken, &s->before);
}

static int start(const struct report *r, const struct plan *plan,
                 const struct trial_options *o, const struct place *p,
                 const struct signals *signals, int *ret_signal, int *ret_status)
{
    char timeout[32];
    (void)snprintf(timeout, sizeof timeout, "%.0fs", left_of(o) + 10);
    char **words = make_words(&r->run->meta, p, timeout);
    if (!words)
        return -ENOMEM;
    const pid_t pid = fork();
    int rc = pid < 0 ? -errno : 0;
    if (pid == 0)
        become(&r->run->meta, plan, p, words, &signals->before);
    if (pid > 0) {
        (void)setpgid(pid, pid);
        *ret_signal = follow(pid, o, &signals->taken, ret_status);
        end_group(pid);
    }
    free(words);
    return rc;
}

/* ---- What came of it ----------------------------------------------------------------------- */

struct outcome {
    bool known, settled;
    uint64_t steps;
    struct trial_counts counts;
    char ended[16], why[256], function[96], instead[96];
};

static void take_text(const json_t *o, const char *key, char *ret_text, size_t room)
{
    const char *text = json_string_value(json_object_get(o, key));
    if (text && text[0])
        (void)snprintf(ret_text, room, "%s", text);
}

static void read_outcome(const char *path, struct outcome *ret)
{
    struct buf text = BUF_INIT;
    json_t *root = file_read_all(path, OUTCOME_MAX, &text) == 0
                       ? json_loadb(text.data, text.len, 0, NULL)
                       : NULL;
    const json_t *parts = json_object_get(root, "parts");
    *ret = (struct outcome){ .known = json_is_object(root), .settled = true };
    take_text(root, "ended", ret->ended, sizeof ret->ended);
    ret->steps = (uint64_t)json_integer_value(json_object_get(root, "steps"));
    for (size_t i = 0; i < json_array_size(parts); i++) {
        const json_t *one = json_array_get(parts, i);
        take_text(one, "why", ret->why, sizeof ret->why);
        take_text(one, "function", ret->function, sizeof ret->function);
        take_text(one, "instead", ret->instead, sizeof ret->instead);
        ret->settled = ret->settled && json_is_true(json_object_get(one, "settled"));
        if (json_object_get(one, "kept")) {
            ret->counts.kept = json_number_value(json_object_get(one, "kept"));
            ret->counts.seen = json_number_value(json_object_get(one, "seen"));
            ret->counts.times = json_number_value(json_object_get(one, "times"));
        }
    }
    json_decref(root);
    buf_release(&text);
}

/* The last line a failing program wrote: mostly its error. */
static void put_last_line(struct buf *out, const char *path)
{
    struct buf text = BUF_INIT;
    if (file_read_all(path, STDERR_MAX, &text) == 0) {
        while (text.len && strchr("\r\n ", text.data[text.len - 1]))
            buf_truncate(&text, text.len - 1);
        const char *line = strrchr(text.data, '\n');
        line = line ? line + 1 : text.data;
        if (*line)
            buf_printf(out, ": %.200s", line);
    }
    buf_release(&text);
}

static bool is_elsewhere(const struct io_path *path, const struct place *p)
{
    return path->io_class == IO_CLASS_FILE && path->side[1].bytes > 0 &&
           strncmp(path->path, p->dir, strlen(p->dir)) != 0 &&
           strncmp(path->path, "/dev/", 5) != 0 &&
           strncmp(path->path, "/proc/", 6) != 0;
}

static void list_written(const struct report *trial, const struct place *p,
                         struct buf *out)
{
    enum { SHOWN = 5 };
    size_t count = 0;
    for (size_t i = 0; i < trial->io.path_count; i++)
        if (is_elsewhere(&trial->io.paths[i], p) && count++ < SHOWN)
            buf_printf(out, "%s%s", out->len ? ", " : "", trial->io.paths[i].path);
    if (count > SHOWN)
        buf_printf(out, " and %zu more", count - SHOWN);
}

static bool explain_failure(const struct outcome *o, int status, const struct place *p,
                            struct buf *why)
{
    if (o->why[0])
        buf_printf(why, "it cannot be taken out: %s", o->why);
    else if (WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM)
        buf_puts(why, "its steps did not fit its time (--budget)");
    else if (WIFSIGNALED(status))
        buf_printf(why, "the program was ended by signal %d", WTERMSIG(status));
    else if (WEXITSTATUS(status) != 0) {
        buf_printf(why, "the program failed in it (exit %d)", WEXITSTATUS(status));
        put_last_line(why, p->log.data);
    } else if (!o->known)
        buf_puts(why, "the Python layer did not take part");
    else if (!o->settled)
        buf_puts(why, "nothing of what is to be left out was seen");
    else
        return false;
    return true;
}

static void note_of(const struct outcome *o, struct trial_entry *e)
{
    struct buf note = BUF_INIT;
    if (o->function[0])
        buf_printf(&note, "left out: %s", o->function);
    if (o->instead[0])
        buf_printf(&note, "%sin its place: %s", note.len ? "; " : "", o->instead);
    if (strcmp(o->ended, "time") == 0)
        buf_printf(&note, "%sended by its time limit", note.len ? "; " : "");
    (void)snprintf(e->note, sizeof e->note, "%s", note.data);
    buf_release(&note);
}

static enum trial_end judge(const struct report *r, const struct plan *plan,
                            const struct trial_options *o, const struct place *p,
                            int status, struct trial_result *result)
{
    struct outcome outcome;
    struct run *run = NULL;
    struct report *trial = NULL;
    enum trial_end end = TRIAL_FAILED;
    read_outcome(p->outcome.data, &outcome);
    if (explain_failure(&outcome, status, p, &result->why))
        return end;
    outcome.counts.whole = measures_whole(r, plan, o);
    int rc = run_open(p->run.data, &run);
    if (rc == 0)
        rc = report_build(run, &trial);
    if (rc < 0)
        buf_printf(&result->why, "its recording cannot be read: %s", error_text(rc));
    else if (!trial->account.known || trial->account.steady < 5)
        buf_printf(
            &result->why,
            "only %llu steps could be measured: give it more time (--budget)",
            (unsigned long long)(trial->account.known ? trial->account.steady : 0));
    else {
        trial_judge(&r->account, &trial->account, plan, &outcome.counts,
                    &result->entry);
        if (plan->persistent && isnan(result->entry.loop_ns)) {
            buf_puts(&result->why,
                     "no epoch ended in its steps: more of them (--steps)");
        } else {
            note_of(&outcome, &result->entry);
            list_written(trial, p, &result->wrote);
            end = TRIAL_GOOD;
        }
    }
    report_free(trial);
    run_free(run);
    return end;
}

enum trial_end trial_run(const struct report *r, const struct plan *plan,
                         const struct trial_options *o, struct trial_result *ret_result)
{
    struct place p = { "", BUF_INIT, BUF_INIT, BUF_INIT, BUF_INIT, BUF_INIT };
    enum trial_end end = TRIAL_FAILED;
    struct signals signals;
    int status = 0, signal = 0;
    signals_block(&signals);
    *ret_result = (struct trial_result){ .why = BUF_INIT, .wrote = BUF_INIT };
    struct trial_entry *e = &ret_result->entry;
    e->time_ns = (int64_t)moment_ns(CLOCK_REALTIME);
    (void)snprintf(e->asked, sizeof e->asked, "%s", plan->asked);
    (void)snprintf(e->finding, sizeof e->finding, "%s", plan->finding);
    int rc = make_place(&p);
    if (rc == 0)
        rc = write_spec(r, plan, o, &p);
    if (rc == 0)
        rc = start(r, plan, o, &p, &signals, &signal, &status);
    if (rc < 0)
        buf_printf(&ret_result->why, "cannot start it: %s", error_text(rc));
    else if (signal == SIGALRM)
        buf_printf(&ret_result->why, "it did not end in %.0f s", left_of(o));
    else if (signal)
        end = TRIAL_INTERRUPTED;
    else
        end = judge(r, plan, o, &p, status, ret_result);
    ret_result->signal = signal;
    release_place(&p);
    (void)sigprocmask(SIG_SETMASK, &signals.before, NULL);
    return end;
}

void trial_result_release(struct trial_result *result)
{
    buf_release(&result->why);
    buf_release(&result->wrote);
}
