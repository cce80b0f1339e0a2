/* status.c: one line that tells how a run goes, at the bottom of the terminal. */
#include "cli/status.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "analyse/phases.h"
#include "base/buf.h"
#include "base/files.h"
#include "base/human.h"
#include "base/moment.h"
#include "base/parse.h"
#include "cli/status_parts.h"
#include "present/report/report.h"
#include "store/run.h"

static const uint64_t SECOND = 1000000000;

enum {
    LEAST_ROWS = 6,
    LEAST_COLUMNS = 40,
    WAIT_S = 1, /* short programs are left alone */
    PHASES_SHOWN = 3,
    TREE_MOST = 512, /* processes whose memory is summed */
};

/* ---- What the terminal allows ------------------------------------------------------------ */

bool status_line_init(struct status_line *status, int fd)
{
    const char *term = getenv("TERM");
    struct report_style style = { 0 };
    *status = (struct status_line){ .fd = fd };
    if (!isatty(fd) || !term || !term[0] || strcmp(term, "dumb") == 0)
        return false;
    report_style_detect(&style, fd);
    status->color = style.color;
    status->unicode = style.unicode;
    status->started_ns = moment_ns(CLOCK_MONOTONIC);
    return true;
}

/* Raw or without echo: somebody paints the screen or reads a password. */
static bool may_draw(const struct status_line *s)
{
    struct termios mode;
    return tcgetpgrp(s->fd) == getpgrp() && tcgetattr(s->fd, &mode) == 0 &&
           (mode.c_lflag & (ICANON | ECHO)) == (ICANON | ECHO);
}

static bool screen_size(const struct status_line *s, int *ret_rows, int *ret_columns)
{
    struct winsize size;
    if (ioctl(s->fd, TIOCGWINSZ, &size) < 0 || size.ws_row < LEAST_ROWS ||
        size.ws_col < LEAST_COLUMNS)
        return false;
    *ret_rows = size.ws_row;
    *ret_columns = size.ws_col;
    return true;
}

/* ---- What it says ------------------------------------------------------------------------- */

static double steps_per_s(struct status_line *s, uint64_t now, uint64_t steps)
{
    enum { MARKS = sizeof s->marks / sizeof s->marks[0] };
    if (s->mark_count == MARKS) {
        memmove(&s->marks[0], &s->marks[1], sizeof s->marks - sizeof s->marks[0]);
        s->mark_count--;
    }
    s->marks[s->mark_count].at_ns = now;
    s->marks[s->mark_count++].steps = steps;
    const uint64_t past = now - s->marks[0].at_ns;
    if (past < SECOND / 2 || steps <= s->marks[0].steps)
        return NAN;
    return (double)(steps - s->marks[0].steps) / ((double)past / 1e9);
}

static void put_phases(const struct status_line *s, struct status_text *text)
{
    int order[SONDE_PHASE_COUNT] = { 0 };
    int count = 0;
    for (int p = 1; p < SONDE_PHASE_COUNT; p++) {
        int at = count;
        while (at > 0 && s->share[order[at - 1]] < s->share[p])
            at--;
        memmove(&order[at + 1], &order[at], (size_t)(count - at) * sizeof order[0]);
        order[at] = p;
        count++;
    }
    for (int i = 0; i < PHASES_SHOWN && s->share[order[i]] >= 0.01; i++)
        status_text_add(text, i ? "  " : NULL, "%s %.0f %%", sonde_phase_name(order[i]),
                        s->share[order[i]] * 100);
}

static void put_steps(struct status_line *s, struct status_text *text, uint64_t now,
                      uint64_t steps)
{
    char n[HUMAN_LEN], of[HUMAN_LEN], left[HUMAN_LEN];
    const double rate = steps_per_s(s, now, steps);
    if (steps == 0)
        return;
    if (s->total_steps >= steps)
        status_text_add(text, NULL, "step %s of %s", human_count(n, steps),
                        human_count(of, s->total_steps));
    else
        status_text_add(text, NULL, "step %s", human_count(n, steps));
    if (isfinite(rate))
        status_text_add(text, NULL, "%s steps/s", human_number(n, rate, 3));
    if (isfinite(rate) && s->total_steps > steps)
        status_text_add(
            text, NULL, "%s left",
            human_duration(left, (double)(s->total_steps - steps) / rate * 1e9));
}

static void compose(struct status_line *s, struct status_text *text, pid_t pid,
                    uint64_t now, uint64_t steps)
{
    char time[HUMAN_LEN], memory[HUMAN_LEN];
    const double bytes = tree_memory(pid, TREE_MOST);
    status_text_add(text, NULL, "sonde %s",
                    human_duration(time, (double)(now - s->started_ns)));
    put_steps(s, text, now, steps);
    if (isfinite(bytes))
        status_text_add(text, NULL, "RSS %s", human_bytes(memory, bytes));
    if (s->has_phases)
        put_phases(s, text);
}

/* ---- What is known of the trace ------------------------------------------------------------ */

static void take_phases(struct status_line *s, const struct trace *trace)
{
    struct tree tree;
    struct phase_split split;
    double sum = 0, gained[SONDE_PHASE_COUNT];
    if (tree_build(trace, &tree) < 0)
        return;
    phase_split_read(trace, &tree, &split);
    tree_release(&tree);
    const struct trace_info *info = trace_info(trace);
    phase_split_close(&split, (double)(info->last_ns - info->start_ns),
                      info->unrecorded_ns);
    for (int p = 0; p < SONDE_PHASE_COUNT; p++) {
        gained[p] = fmax(split.total_ns[p] - s->total_ns[p], 0);
        s->total_ns[p] = split.total_ns[p];
        sum += gained[p];
    }
    if (!(sum > 0))
        return; /* nothing new since the last time: what it said still holds */
    for (int p = 0; p < SONDE_PHASE_COUNT; p++)
        s->share[p] = gained[p] / sum;
    s->has_phases = split.has_main;
}

static void read_trace(struct status_line *s, const char *dir, pid_t pid)
{
    struct run *run = NULL;
    if (run_open(dir, &run) < 0)
        return;
    for (size_t i = 0; i < run->file_count && i < TREE_MOST; i++) {
        struct trace *trace;
        if ((s->file[0] && strcmp(run->files[i], s->file) != 0) ||
            run_trace_open(run, i, &trace) < 0)
            continue;
        const struct trace_info *info = trace_info(trace);
        if (s->file[0] || info->steps > 0 || (pid_t)info->pid == pid) {
            if (info->steps > 0) /* the one to look at from now on */
                (void)snprintf(s->file, sizeof s->file, "%s", run->files[i]);
            take_phases(s, trace);
            s->total_steps = trace_planned_steps(trace);
            trace_free(trace);
            break;
        }
        trace_free(trace);
    }
    run_free(run);
}

/* Once a second, or so rarely that it takes a thousandth of our time. */
static void read_when_due(struct status_line *s, const char *dir, pid_t pid,
                          uint64_t now)
{
    if (now < s->read_ns)
        return;
    read_trace(s, dir, pid);
    const uint64_t took = moment_ns(CLOCK_MONOTONIC) - now;
    const uint64_t pause = took * 1000 > SECOND ? took * 1000 : SECOND;
    s->read_ns = now + pause;
}

/* ---- Drawing ------------------------------------------------------------------------------- */

/* One write: two programs never mix within one. A terminal that does not take it at once
 * (Ctrl-S) gets no line rather than holding us up. */
static void send_bytes(const struct status_line *s, const struct buf *bytes)
{
    int queued = 0;
    if (bytes->error < 0 || bytes->len > 1500 ||
        (ioctl(s->fd, TIOCOUTQ, &queued) == 0 && queued > 0))
        return;
    (void)!write(s->fd, bytes->data, bytes->len);
}

/* ESC 7 and 8 keep the cursor; "ESC D, up" makes sure, once, that there is a row below
 * it that scrolls with the others. */
static void draw(struct status_line *s, const char *text)
{
    struct buf out = BUF_INIT;
    int rows, columns;
    if (!screen_size(s, &rows, &columns))
        return;
    if (!s->drawn)
        buf_puts(&out, "\033D\033[A");
    buf_printf(&out, "\0337\033[1;%dr\033[%d;1H\033[2K%s%s%s\0338", rows - 1, rows,
               s->color ? "\033[2m" : "", text, s->color ? "\033[0m" : "");
    send_bytes(s, &out);
    buf_release(&out);
    s->drawn = true;
    s->rows = rows;
    s->columns = columns;
}

void status_line_hide(void *arg)
{
    struct status_line *s = arg;
    struct buf out = BUF_INIT;
    if (!s->drawn)
        return;
    buf_printf(&out, "\0337\033[r\033[%d;1H\033[2K\0338", s->rows);
    (void)!write(s->fd, out.data, out.len);
    buf_release(&out);
    s->drawn = false;
}

void status_line_release(struct status_line *status)
{
    status_line_hide(status);
}

void status_line_tick(void *arg, const char *dir, pid_t pid, uint64_t steps)
{
    struct status_line *s = arg;
    struct status_text text;
    int rows, columns;
    const uint64_t now = moment_ns(CLOCK_MONOTONIC);
    if (now - s->started_ns < WAIT_S * SECOND)
        return;
    const bool may = may_draw(s) && screen_size(s, &rows, &columns);
    if (s->drawn && (!may || rows != s->rows || columns != s->columns))
        status_line_hide(s);
    if (!may)
        return;
    read_when_due(s, dir, pid, now);
    status_text_init(&text, (size_t)columns - 1, s->unicode);
    compose(s, &text, pid, now, steps);
    draw(s, text.buf.data);
    status_text_release(&text);
}
