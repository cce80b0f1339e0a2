/* cmd_top.c: `sonde top`: a run that goes on, or any process, as it happens.
 *
 * The screen is made of the same report that is printed at the end, read again and again
 * from the run directory: whoever may read the run may watch it, and watching does not
 * touch the program. A process that is in no run is watched by a `sonde attach` of our
 * own, whose run is thrown away afterwards.
 */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/files.h"
#include "base/parse.h"
#include "base/moment.h"
#include "cli/cli.h"
#include "cli/options.h"
#include "cli/runs.h"
#include "cli/screen.h"
#include "present/report/live.h"
#include "present/report/report.h"
#include "store/list.h"
#include "trace/process.h"

struct top_options {
    uint64_t interval_ns, count, width;
    bool once, no_color;
};

#define FIELD(name) offsetof(struct top_options, name)

static const struct option options[] = {
    { "interval", 0, OPTION_SECONDS, FIELD(interval_ns), .value = "DURATION",
      .help = "time between two looks (default 1s)" },
    { "count", 'n', OPTION_COUNT, FIELD(count), .value = "N",
      .help = "leave after N looks" },
    { "once", 0, OPTION_FLAG, FIELD(once), .help = "one look as text, then leave" },
    { "width", 0, OPTION_COUNT, FIELD(width), .value = "N",
      .help = "columns of the text form, 60 to 200" },
    { "no-color", 0, OPTION_FLAG, FIELD(no_color), .help = "no colour" },
};

static const struct command command = {
    .verb = "top",
    .usage = "[options] [RUN | PID]",
    .summary = "watch a run, or any process, as it happens",
    .options = options,
    .option_count = sizeof options / sizeof *options,
    .more = "Without an argument: the newest run that goes on. On a terminal:\n"
            "  q  leave              o  operations, Python lines, functions\n"
            "  p  pause              s  sort processes by CPU, memory, number\n"
            "  +  -  faster, slower  up, down, page up, page down: scroll the list\n"
            "Not on a terminal: text, one screen per look, until the run ends.\n",
};

static const char keys_text[] = " q leave  p pause  o list  s sort  +- speed  h help ";
static const char help_text[] =
    " q  leave the screen; the run goes on\n"
    " p  pause: the screen stands still, the run does not\n"
    " o  what the list at the bottom shows: operations (zones), Python lines of the\n"
    "    main thread, Python functions of all threads\n"
    " s  order of the processes: CPU now, memory, number\n"
    " +  look twice as often      -  half as often\n"
    " up, down, page up, page down   scroll the list\n"
    "\n Any key goes back.\n";

struct top {
    const char *dir;
    struct live_style style;
    uint64_t interval_ns;
    struct report *before, *now;
    struct run *before_run, *now_run;
    uint64_t before_ns, now_ns;
    bool paused;
};

static volatile sig_atomic_t interrupted;

static void on_signal(int signal)
{
    (void)signal;
    interrupted = 1;
}

/* ---- Looking ------------------------------------------------------------------- */

static void forget(struct report **report, struct run **run)
{
    report_free(*report);
    run_free(*run);
    *report = NULL;
    *run = NULL;
}

static int look(struct top *t)
{
    struct run *run = NULL;
    struct report *report = NULL;
    int rc = run_open(t->dir, &run);
    if (rc == 0)
        rc = report_build(run, &report);
    if (rc < 0) {
        run_free(run);
        return rc;
    }
    forget(&t->before, &t->before_run);
    t->before = t->now;
    t->before_run = t->now_run;
    t->before_ns = t->now_ns;
    t->now = report;
    t->now_run = run;
    t->now_ns = moment_ns(CLOCK_MONOTONIC);
    return 0;
}

static int draw(struct top *t, struct buf *out)
{
    t->style.elapsed_s = t->before ? (double)(t->now_ns - t->before_ns) / 1e9 : 0;
    buf_clear(out);
    return report_live(t->now, t->before, &t->style, out);
}

static void top_release(struct top *t)
{
    forget(&t->before, &t->before_run);
    forget(&t->now, &t->now_run);
}

/* ---- On a terminal ------------------------------------------------------------- */

static void scroll(struct top *t, long by)
{
    if (by < 0 && t->style.scroll < (size_t)-by)
        t->style.scroll = 0;
    else
        t->style.scroll = (size_t)((long)t->style.scroll + by);
}

/* False: leave. */
static bool on_key(struct top *t, int key)
{
    switch (key) {
    case 'q':
    case 'Q':
    case 27:
        return false;
    case 'p':
    case ' ':
        t->paused = !t->paused;
        break;
    case 'o':
        t->style.list = (t->style.list + 1) % LIVE_LIST_COUNT;
        t->style.scroll = 0;
        break;
    case 's':
        t->style.sort = (t->style.sort + 1) % LIVE_SORT_COUNT;
        break;
    case '+':
        t->interval_ns = t->interval_ns > 200000000 ? t->interval_ns / 2
                                                    : t->interval_ns;
        break;
    case '-':
        t->interval_ns = t->interval_ns < 30000000000 ? t->interval_ns * 2
                                                      : t->interval_ns;
        break;
    case 'h':
    case '?':
        screen_show(help_text, " any key goes back ");
        (void)screen_key(3600000);
        break;
    case KEY_LINE_UP:
    case KEY_LINE_DOWN:
        scroll(t, key == KEY_LINE_UP ? -1 : 1);
        break;
    case KEY_PAGE_UP:
    case KEY_PAGE_DOWN:
        scroll(t, key == KEY_PAGE_UP ? -10 : 10);
        break;
    default:
        break;
    }
    return true;
}

static void show(struct top *t, struct buf *page)
{
    char status[160];
    int height;
    screen_size(&t->style.width, &height);
    t->style.height = height - 1;
    (void)snprintf(status, sizeof status, "%s%s every %.2g s", keys_text,
                   t->paused                   ? " PAUSED"
                   : t->now->state != RUN_LIVE ? " ENDED"
                                               : "",
                   (double)t->interval_ns / 1e9);
    if (draw(t, page) == 0)
        screen_show(page->data ? page->data : "", status);
}

static int run_screen(struct top *t, uint64_t count)
{
    struct buf page = BUF_INIT;
    int rc = 0;
    bool go_on = true;
    uint64_t next = moment_ns(CLOCK_MONOTONIC) + t->interval_ns;
    for (uint64_t looks = 1; go_on && !interrupted;) {
        show(t, &page);
        const uint64_t now = moment_ns(CLOCK_MONOTONIC);
        const int key = screen_key(next > now ? (next - now) / 1000000 + 1 : 0);
        if (key != KEY_NOTHING) {
            go_on = on_key(t, key);
            continue;
        }
        next = moment_ns(CLOCK_MONOTONIC) + t->interval_ns;
        if (t->paused || t->now->state != RUN_LIVE)
            continue; /* an ended run stays on the screen to be read */
        rc = look(t);
        if (rc < 0 || (count && ++looks > count))
            break;
    }
    buf_release(&page);
    return rc;
}

/* ---- As text ------------------------------------------------------------------- */

static void wait_for(uint64_t ns)
{
    const struct timespec ts = { (time_t)(ns / 1000000000), (long)(ns % 1000000000) };
    (void)nanosleep(&ts, NULL);
}

static int run_text(struct top *t, uint64_t count)
{
    struct buf page = BUF_INIT;
    int rc = 0;
    for (uint64_t looks = 1; rc == 0; looks++) {
        rc = draw(t, &page);
        if (rc == 0 && page.len && fwrite(page.data, 1, page.len, stdout) != page.len)
            rc = -EIO;
        (void)putchar('\n');
        if (fflush(stdout) != 0)
            rc = rc ? rc : -EIO;
        if (interrupted || !t->now || t->now->state != RUN_LIVE ||
            (count && looks >= count))
            break;
        wait_for(t->interval_ns);
        if (!interrupted && rc == 0)
            rc = look(t);
    }
    buf_release(&page);
    return rc;
}

static int watch(const struct top_options *o, const char *dir)
{
    struct top t = { .dir = dir, .interval_ns = o->interval_ns };
    struct report_style style = { 0 };
    report_style_detect(&style, STDOUT_FILENO);
    t.style.width = o->width ? (int)(o->width < 200 ? o->width : 200) : style.width;
    t.style.color = style.color && !o->no_color;
    t.style.unicode = style.unicode;
    int rc = look(&t);
    if (rc == 0 && !o->once && screen_open() == 0) {
        rc = run_screen(&t, o->count);
        screen_close();
    } else if (rc == 0) {
        rc = run_text(&t, o->once ? 1 : o->count);
    }
    top_release(&t);
    if (rc < 0)
        cli_error("cannot read the run '%s': %s", dir, error_text(rc));
    return rc < 0 ? CLI_FAILED : CLI_GOOD;
}

/* ---- What to watch ------------------------------------------------------------- */

/* The newest run that goes on; NULL and a message when there is none. */
static char *newest_live(void)
{
    struct run_list list;
    char *dir = NULL;
    if (run_list_read(store_directory(), &list) < 0) {
        cli_error("cannot read the runs in '%s'", store_directory());
        return NULL;
    }
    for (size_t i = 0; !dir && i < list.count; i++)
        if (list.rows[i].live && list.rows[i].top_level)
            dir = strdup(list.rows[i].dir);
    run_list_release(&list);
    if (!dir)
        cli_error("no run goes on here; start one with sonde run -- COMMAND, or give "
                  "the number of a process");
    return dir;
}

/* Waits until the run of our `sonde attach` can be read. */
static bool attached(const char *dir, pid_t helper)
{
    for (int i = 0; i < 200 && !interrupted; i++) {
        struct buf path = BUF_INIT;
        path_join(&path, dir, "run.json");
        const bool there = !path.error && access(path.data, R_OK) == 0;
        buf_release(&path);
        if (there)
            return true;
        if (waitpid(helper, NULL, WNOHANG) == helper)
            return false;
        wait_for(20000000);
    }
    return false;
}

static int watch_process(const struct top_options *o, char *pid)
{
    char dir[] = "/tmp/sonde-top-XXXXXX";
    char *const argv[] = { "sonde", "attach", "--quiet", "--output", dir, pid, NULL };
    if (!mkdtemp(dir)) {
        cli_error("cannot make a directory in /tmp: %s", error_text(-errno));
        return CLI_FAILED;
    }
    const pid_t helper = fork();
    if (helper == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
        (void)execv("/proc/self/exe", argv);
        _exit(127);
    }
    int status = CLI_FAILED;
    if (helper > 0 && attached(dir, helper)) {
        wait_for(300000000); /* two rounds of monitors, so that there are rates */
        status = watch(o, dir);
    }
    if (helper > 0) {
        (void)kill(helper, SIGTERM);
        (void)waitpid(helper, NULL, 0);
    }
    (void)file_remove_tree(dir);
    return status;
}

static bool is_process(const char *word)
{
    uint64_t pid;
    return parse_uint(word, &pid) == 0 && pid > 0 && pid <= INT32_MAX &&
           kill((pid_t)pid, 0) != -1;
}

int cmd_top(int argc, char **argv)
{
    struct top_options o = { .interval_ns = 1000000000 };
    const struct sigaction action = { .sa_handler = on_signal };
    const char *ref;
    int status;
    if (!options_parse(&command, &argc, argv, &o, &status) ||
        !cli_run_argument(&command, argc, argv, &ref, &status))
        return status;
    if (o.interval_ns < 100000000)
        return options_fail(&command, "--interval wants at least 100ms");
    (void)sigaction(SIGINT, &action, NULL);
    (void)sigaction(SIGTERM, &action, NULL);
    (void)sigaction(SIGHUP, &action, NULL);
    if (ref && is_process(ref))
        return watch_process(&o, argv[1]);
    if (!ref) {
        char *dir = newest_live();
        status = dir ? watch(&o, dir) : CLI_NO;
        free(dir);
        return status;
    }
    struct run *run;
    if (!cli_run_open(ref, &run))
        return CLI_FAILED;
    char *dir = strdup(run->dir);
    run_free(run);
    status = dir ? watch(&o, dir) : CLI_FAILED;
    free(dir);
    return status;
}
