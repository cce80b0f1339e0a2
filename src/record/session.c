/* session.c: recording without `sonde run`.
 *
 * The program itself makes the run directory, the control file and run.json, and a
 * drain thread does what the supervisor would do. Under `sonde run` there is a
 * session already and starting another one is refused.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/files.h"
#include "base/parse.h"
#include "record/copies.h"
#include "record/drainer.h"
#include "trace/git.h"
#include "trace/machine.h"
#include "trace/process.h"
#include "trace/runfile.h"

static struct session {
    bool ours; /* started here, not by a supervisor */
    pid_t pid;
    char id[9];
    char name[128];
    char steps[48]; /* "first:end", as `sonde run --steps` takes it; "" none */
    int64_t started_ns;
    uint64_t min_zone_ns, after_ns, duration_ns;
    bool no_energy;
    struct control *control;
} session;

void sonde_options_standard(struct sonde_options *options)
{
    *options = (struct sonde_options){ .size = sizeof *options,
                                       .level = SONDE_DETAILED };
}

void sonde_options_lightweight(struct sonde_options *options)
{
    *options = (struct sonde_options){ .size = sizeof *options,
                                       .level = SONDE_BASIC,
                                       .max_trace = 64u << 20 };
}

static int fail(int rc, const char *what, const char *on)
{
    snprintf(recorder.error, sizeof recorder.error, "%s '%.80s': %s", what, on,
             error_text(rc));
    return rc;
}

/* ---- Options --------------------------------------------------------------------- */

static int level_from_text(const char *text)
{
    return strcmp(text, "basic") == 0           ? SONDE_BASIC
           : strcmp(text, "detailed") == 0      ? SONDE_DETAILED
           : strcmp(text, "comprehensive") == 0 ? SONDE_COMPREHENSIVE
                                                : -EINVAL;
}

/* The drain thread opens and closes the window of time; a window that nobody opens, or
 * that holds nothing, would be a run without events and without a word on why. */
static int check_windows(const struct sonde_options *o)
{
    const bool time = o->after_ns || o->duration_ns;
    const bool steps = o->first_step || o->last_step;
    if (time && steps)
        return fail(-EINVAL, "choose one window", "of time or of steps");
    if (time && o->no_drainer)
        return fail(-EINVAL, "a window of time needs the drain thread", "no_drainer");
    if (o->last_step && o->last_step < o->first_step)
        return fail(-EINVAL, "the window ends before it begins", "last_step");
    return 0;
}

/* The caller's options, then the environment for what the caller left at default. */
static int merge_options(const struct sonde_options *given, struct sonde_options *o)
{
    sonde_options_standard(o);
    o->level = SONDE_LEVEL_DEFAULT;
    if (given) {
        if (given->size == 0 || given->size > 4096)
            return fail(-EINVAL, "options",
                        "size must be sizeof(struct sonde_options)");
        memcpy(o, given, given->size < sizeof *o ? given->size : sizeof *o);
    }
    const char *level = secure_getenv("SONDE_LEVEL");
    if (o->level == SONDE_LEVEL_DEFAULT && level)
        o->level = level_from_text(level);
    const char *max = secure_getenv("SONDE_MAX_TRACE");
    if (o->max_trace == 0 && max && parse_size(max, &o->max_trace) < 0)
        return fail(-EINVAL, "SONDE_MAX_TRACE wants a size such as 512MiB, got", max);
    if (o->level < 0 || o->level > SONDE_COMPREHENSIVE)
        return fail(-EINVAL, "level", level ? level : "out of range");
    if (!o->name)
        o->name = secure_getenv("SONDE_NAME");
    return check_windows(o);
}

/* ---- Run directory --------------------------------------------------------------- */

static int make_directory(const struct sonde_options *o, struct buf *ret_dir)
{
    if (o->output) {
        int rc = dir_make(o->output, 0700);
        buf_puts(ret_dir, o->output);
        return rc < 0 ? rc : 0;
    }
    const char *root = secure_getenv("SONDE_DIR");
    struct buf runs = BUF_INIT;
    path_join(&runs, root && *root ? root : ".sonde", "runs");
    int rc = dir_make(runs.data, 0700);
    for (int attempt = 0; rc >= 0 && attempt < 8; attempt++) {
        uint32_t random = (uint32_t)ticks_now();
        (void)!getrandom(&random, sizeof random, GRND_NONBLOCK);
        snprintf(session.id, sizeof session.id, "%08x", random);
        buf_clear(ret_dir);
        path_join(ret_dir, runs.data, session.id);
        rc = mkdir(ret_dir->data, 0700) == 0 ? 0 : -errno;
        if (rc != -EEXIST)
            break;
        rc = 0;
    }
    buf_release(&runs);
    return rc < 0 ? rc : ret_dir->error;
}

/* Children find the run by an absolute path wherever they go. */
static int absolute(struct buf *dir)
{
    char *full = realpath(dir->data, NULL);
    if (!full)
        return -errno;
    buf_clear(dir);
    buf_puts(dir, full);
    free(full);
    return dir->error;
}

static int64_t now_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_REALTIME, &ts);
    return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

/* ---- run.json -------------------------------------------------------------------- */

/* The program's words, NUL-separated as the kernel keeps them. */
static int read_command(struct buf *line, char *argv[], int max)
{
    int count = 0;
    if (file_read_all("/proc/self/cmdline", 1 << 16, line) == 0)
        for (char *p = line->data; p < line->data + line->len && count < max;
             p += strlen(p) + 1)
            argv[count++] = p;
    return count;
}

enum session_state { SESSION_GOES_ON, SESSION_STOPPED, SESSION_EXITED };

/* A session that was stopped saw no end of its program: how the block was left, and how
 * the program will end, nobody knows. `code` is that of SESSION_EXITED. */
static int write_run_json(enum session_state state, int code)
{
    static const char *const levels[] = { "", "basic", "detailed", "comprehensive" };
    struct buf line = BUF_INIT;
    char *argv[256], cwd[PATH_MAX];
    uint64_t start = process_start_ticks((uint32_t)session.pid);
    struct runfile f = {
        .name = session.name[0] ? session.name : NULL,
        .command = argv,
        .command_len = read_command(&line, argv, 256),
        .cwd = getcwd(cwd, sizeof cwd),
        .started_ns = session.started_ns,
        .ended_ns = state == SESSION_GOES_ON ? 0 : now_ns(),
        .pid = session.pid,
        .pid_start = start,
        .supervisor = session.pid, /* the program looks after itself */
        .supervisor_start = start,
        .pid_namespace = process_pid_namespace(),
        .level = levels[session.control->level & 3],
        .supervisor_cpu_s = NAN,
        .supervisor_rss_mb = NAN,
        .max_trace = session.control->max_blocks * BLOCK_SIZE,
        .min_zone_ns = session.min_zone_ns,
        .after_ns = session.after_ns,
        .duration_ns = session.duration_ns,
        .steps = session.steps[0] ? session.steps : NULL,
        .no_energy = session.no_energy,
        .lossy = session.control->flags & CONTROL_LOSSY,
        .redact = true,
        .session = true,
    };
    snprintf(f.id, sizeof f.id, "%s", session.id);
    (void)process_boot_id(f.boot_id);
    machine_read(&f.machine);
    f.has_git = f.cwd && git_read(f.cwd, &f.git);
    if (state == SESSION_EXITED)
        f.exit = (struct runfile_exit){ .code = code,
                                        .cause = code == 0 ? "ok" : "error" };
    int rc = runfile_write(&f, recorder.dir);
    runfile_release(&f);
    buf_release(&line);
    return rc;
}

/* ---- Start and stop -------------------------------------------------------------- */

static void at_exit(int status, void *arg)
{
    (void)arg;
    if (session.ours && session.pid == getpid()) {
        drainer_stop();
        (void)write_run_json(SESSION_EXITED, status & 0xff);
    }
}

/* What run.json says of the options. */
static void keep_options(const struct sonde_options *o)
{
    snprintf(session.name, sizeof session.name, "%s", o->name ? o->name : "");
    session.min_zone_ns = o->min_zone_ns;
    session.after_ns = o->after_ns;
    session.duration_ns = o->duration_ns;
    session.no_energy = o->no_energy != 0;
    session.steps[0] = '\0';
    if (o->last_step)
        snprintf(session.steps, sizeof session.steps, "%" PRIu64 ":%" PRIu64,
                 o->first_step ? o->first_step : 1, o->last_step + 1);
    else if (o->first_step)
        snprintf(session.steps, sizeof session.steps, "%" PRIu64 ":", o->first_step);
}

/* Nothing was recorded there; a second try may take the same place. */
static void forget_directory(const char *dir, const struct sonde_options *o)
{
    struct buf path = BUF_INIT;
    path_join(&path, dir, "control.sonde");
    if (!path.error)
        (void)unlink(path.data);
    if (!o->output) /* else somebody else may have made it */
        (void)rmdir(dir);
    buf_release(&path);
}

static int start(const struct sonde_options *o)
{
    struct buf dir = BUF_INIT;
    struct control *control = NULL;
    int rc = make_directory(o, &dir);
    if (rc < 0) {
        rc = fail(rc, "cannot create the run directory (set SONDE_DIR or output)",
                  dir.data);
        goto done;
    }
    rc = absolute(&dir);
    if (rc == 0 && !session.id[0])
        snprintf(session.id, sizeof session.id, "%08x", (unsigned)ticks_now());
    const struct control_options c = { .run_id = session.id,
                                       .level = (unsigned)o->level,
                                       .max_trace = o->max_trace,
                                       .min_zone_ns = o->min_zone_ns,
                                       .first_step = o->first_step,
                                       .last_step = o->last_step,
                                       .gate_off = o->after_ns > 0,
                                       .lossy = o->lossy };
    if (rc == 0)
        rc = control_create(dir.data, &c, &control);
    if (rc < 0) {
        rc = fail(rc, "cannot use the run directory", dir.data);
        goto done;
    }
    session.pid = getpid();
    session.control = control;
    session.started_ns = now_ns();
    keep_options(o);
    recorder.quiet = o->quiet;
    /* Before anything is recorded: a session that cannot be had leaves nothing on. */
    if (!o->no_drainer)
        rc = drainer_start(dir.data, control, o->after_ns, o->duration_ns);
    if (rc < 0) {
        rc = fail(rc, "cannot start the drain thread of", dir.data);
        forget_directory(dir.data, o);
        goto done;
    }
    sigset_t old;
    signals_block(&old);
    rc = recorder_start(dir.data, control);
    signals_restore(&old);
    if (rc < 0) {
        drainer_stop();
        goto done;
    }
    session.ours = true;
    (void)write_run_json(SESSION_GOES_ON, 0);
    (void)setenv("SONDE_RUN", recorder.dir, 1); /* programs we exec join the run */
    static bool exit_hooked;
    if (!exit_hooked)
        exit_hooked = on_exit(at_exit, NULL) == 0;
done:
    buf_release(&dir);
    return rc;
}

int session_start(const struct sonde_options *given)
{
    const char *disable = secure_getenv("SONDE_DISABLE");
    sigset_t old;
    signals_block(&old);
    bool active = recorder_ensure() || recorder.on;
    signals_restore(&old);
    recorder.error[0] = '\0';
    if (disable && *disable && strcmp(disable, "0") != 0)
        return fail(-ECANCELED, "recording is switched off by", "SONDE_DISABLE");
    if (active)
        return fail(-EBUSY, "a session is active already in", recorder.dir);
    if (!recorder.ready)
        return fail(-ENOMEM, "cannot start", "the recorder");
    struct sonde_options o;
    int rc = merge_options(given, &o);
    session.id[0] = '\0';
    return rc < 0 ? rc : start(&o);
}

int session_stop(void)
{
    if (!recorder.on)
        return -ENOENT;
    if (!session.ours)
        return -EBUSY; /* the supervisor's to end */
    sigset_t old;
    signals_block(&old);
    recorder_stop();
    signals_restore(&old);
    drainer_stop(); /* folds the rest: our file says its session is over */
    (void)write_run_json(SESSION_STOPPED, 0);
    (void)unsetenv("SONDE_RUN");
    session.ours = false;
    recorder_retire();
    return 0;
}

int session_active(void)
{
    sigset_t old;
    signals_block(&old);
    bool on = recorder_ensure();
    signals_restore(&old);
    return on;
}

const char *session_directory(void)
{
    return recorder.on ? recorder.dir : "";
}

const char *session_error(void)
{
    return recorder.error;
}
