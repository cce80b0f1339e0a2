/* cmd_list.c: `sonde list`: the runs kept here, newest first. */
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/human.h"
#include "base/json.h"
#include "cli/cli.h"
#include "cli/keep.h"
#include "cli/options.h"
#include "trace/runfile.h"
#include "base/signame.h"
#include "present/report/page.h"
#include "present/report/report.h"
#include "store/list.h"

enum { DEFAULT_ROWS = 20, EXIT_LEN = 64 };

struct list_options {
    bool json, all;
    uint64_t limit;
};

#define FIELD(name) offsetof(struct list_options, name)

static const struct option options[] = {
    { "json", 0, OPTION_FLAG, FIELD(json), .help = "print JSON" },
    { "limit", 'n', OPTION_COUNT, FIELD(limit), .value = "N",
      .help = "at most N runs (default 20)" },
    { "all", 'a', OPTION_FLAG, FIELD(all),
      .help = "every run and logged experiment, also trials and parts of others" },
};

static const struct command command = {
    .verb = "list",
    .usage = "[options]",
    .summary = "the runs kept here, newest first",
    .options = options,
    .option_count = sizeof options / sizeof *options,
};

/* ---- One run ------------------------------------------------------------------ */

static double duration_ns(const struct run_row *row)
{
    const struct run_meta *m = &row->meta;
    if (!m->started_ns)
        return NAN;
    if (m->ended_ns)
        return (double)(m->ended_ns - m->started_ns);
    struct timespec now;
    if (!row->live || clock_gettime(CLOCK_REALTIME, &now) != 0)
        return NAN;
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec - (double)m->started_ns;
}

static const char *exit_words(const struct run_row *row, char ret_text[EXIT_LEN])
{
    const struct run_exit *e = &row->meta.exit;
    char name[SIGNAL_NAME_LEN];
    if (row->live)
        (void)snprintf(ret_text, EXIT_LEN, "running");
    else if (e->signal)
        (void)snprintf(ret_text, EXIT_LEN, "%s", signal_name(e->signal, name));
    else if (e->code >= 0)
        (void)snprintf(ret_text, EXIT_LEN, "%d", e->code);
    else if (!row->dir[0])
        (void)snprintf(ret_text, EXIT_LEN, "–"); /* logged: nobody ran it here */
    else
        (void)snprintf(ret_text, EXIT_LEN, "unknown");
    return ret_text;
}

static void started_words(int64_t ns, char *ret_text, size_t len)
{
    const time_t seconds = (time_t)(ns / 1000000000);
    struct tm tm;
    if (ns <= 0 || !localtime_r(&seconds, &tm) ||
        strftime(ret_text, len, "%Y-%m-%d %H:%M:%S", &tm) == 0)
        (void)snprintf(ret_text, len, "–");
}

static void join_command(struct buf *out, const struct run_meta *m)
{
    for (size_t i = 0; i < m->command_count; i++)
        buf_printf(out, "%s%s", i ? " " : "", m->command[i]);
}

/* ---- Text --------------------------------------------------------------------- */

enum { ID = 10, NAME = 14, STARTED = 21, DURATION = 9, EXIT = 10 };

static void put_cell(struct page *page, const char *text, size_t columns)
{
    struct buf clean = BUF_INIT;
    clean_text(&clean, text, columns - 1);
    page_left(page, clean.data, columns);
    buf_release(&clean);
}

static void put_row(struct page *page, const struct run_row *row)
{
    char text[EXIT_LEN];
    char time[HUMAN_LEN];
    struct buf line = BUF_INIT;
    put_cell(page, row->id, ID);
    put_cell(page, row->meta.name[0] ? row->meta.name : "–", NAME);
    started_words(row->started_ns, text, sizeof text);
    put_cell(page, text, STARTED);
    page_right(page, human_duration(time, duration_ns(row)), DURATION - 1);
    page_fill(page, 2);
    put_cell(page, exit_words(row, text), EXIT);
    join_command(&line, &row->meta);
    const size_t used = ID + NAME + STARTED + DURATION + 1 + EXIT;
    put_cell(page, line.data,
             (size_t)page->width > used + 12 ? (size_t)page->width - used : 12);
    page_puts(page, PLAIN, "\n");
    buf_release(&line);
}

static void put_titles(struct page *page)
{
    page_left(page, "ID", ID);
    page_left(page, "NAME", NAME);
    page_left(page, "STARTED", STARTED);
    page_right(page, "TOOK", DURATION - 1);
    page_fill(page, 2);
    page_left(page, "EXIT", EXIT);
    page_puts(page, PLAIN, "COMMAND\n");
}

static bool is_listed(const struct run_row *row, const struct list_options *o)
{
    return o->all || row->top_level;
}

static int print_text(const struct run_list *list, const struct list_options *o)
{
    struct report_style style = { 0 };
    struct page page;
    uint64_t shown = 0;
    uint64_t more = 0;
    report_style_detect(&style, STDOUT_FILENO);
    /* What goes into a file or a pipe is not cut: somebody will search it. */
    const int width = isatty(STDOUT_FILENO) ? style.width ? style.width : 100 : 1000;
    page_init(&page, width, false, style.unicode);
    for (size_t i = 0; i < list->count; i++) {
        if (!is_listed(&list->rows[i], o))
            continue;
        if (shown == o->limit) {
            more++;
            continue;
        }
        if (shown++ == 0)
            put_titles(&page);
        put_row(&page, &list->rows[i]);
    }
    const int rc = page_flush(&page, stdout);
    page_release(&page);
    if (more)
        printf("(%llu more: sonde list --all, or -n N)\n", (unsigned long long)more);
    if (shown == 0)
        cli_error("no runs in '%s' yet (record one with `sonde run -- COMMAND`)",
                  store_directory());
    return rc;
}

/* ---- JSON --------------------------------------------------------------------- */

static void put_text(struct json_writer *w, const char *key, const char *text)
{
    json_key(w, key);
    json_put_string(w, text && text[0] ? text : NULL);
}

static void put_exit(struct json_writer *w, const struct run_exit *e)
{
    char name[SIGNAL_NAME_LEN];
    json_key(w, "exit");
    json_object_begin(w);
    json_key(w, "code");
    if (e->code >= 0)
        json_put_int(w, e->code);
    else
        json_put_null(w);
    put_text(w, "signal", e->signal ? signal_name(e->signal, name) : NULL);
    put_text(w, "cause", e->cause);
    json_object_end(w);
}

static void put_run(struct json_writer *w, const struct run_row *row)
{
    char time[ISO_TIME_LEN];
    json_object_begin(w);
    put_text(w, "id", row->id);
    put_text(w, "name", row->meta.name);
    put_text(w, "started",
             row->started_ns > 0 ? iso_time(row->started_ns, time) : NULL);
    json_key(w, "duration_s");
    json_put_fixed(w, duration_ns(row) / 1e9, 6);
    put_exit(w, &row->meta.exit);
    json_key(w, "running");
    json_put_bool(w, row->live);
    json_key(w, "command");
    json_array_begin(w);
    for (size_t i = 0; i < row->meta.command_count; i++)
        json_put_string(w, row->meta.command[i]);
    json_array_end(w);
    put_text(w, "parent_run", row->meta.parent_run);
    put_text(w, "directory", row->dir); /* null: only the store remembers it */
    json_object_end(w);
}

static int print_json(const struct run_list *list, const struct list_options *o)
{
    struct json_writer w;
    uint64_t shown = 0;
    json_init_file(&w, stdout, JSON_STYLE_PRETTY);
    json_array_begin(&w);
    for (size_t i = 0; i < list->count && shown < o->limit; i++)
        if (is_listed(&list->rows[i], o)) {
            put_run(&w, &list->rows[i]);
            shown++;
        }
    json_array_end(&w);
    json_newline(&w);
    return json_finish(&w);
}

/* ---- What only the store remembers ------------------------------------------------ */

static int add_remembered(void *arg, const struct experiment *e)
{
    return run_list_add(arg, e);
}

/* Runs whose directories made way, and with --all what was logged. Without a store, or
 * with a damaged one, the directories are the list. */
static void add_from_store(struct run_list *list, const struct list_options *o)
{
    struct store *store = NULL;
    struct buf why = BUF_INIT;
    int rc = store_open(store_directory(), 0, &store, &why);
    if (rc == 0)
        rc = store_recent(store, o->all, o->limit, add_remembered, list);
    if (rc < 0 && rc != -ENOENT && rc != SONDE_E_UNSUPPORTED)
        cli_error("%s", why.len ? why.data : error_text(rc));
    store_close(store);
    run_list_sort(list);
    buf_release(&why);
}

int cmd_list(int argc, char **argv)
{
    struct list_options o = { 0 };
    struct run_list list;
    int status;
    if (!options_parse(&command, &argc, argv, &o, &status))
        return status;
    if (argc > 1)
        return options_fail(&command, "list takes no RUN, got '%s' (sonde show %s?)",
                            argv[1], argv[1]);
    if (o.limit == 0)
        o.limit = o.all ? UINT64_MAX : DEFAULT_ROWS;
    cli_adopt_orphans(0);
    int rc = run_list_read(store_directory(), &list);
    if (rc < 0) {
        cli_error("cannot read the runs in '%s': %s", store_directory(),
                  error_text(rc));
        return CLI_FAILED;
    }
    add_from_store(&list, &o);
    rc = o.json ? print_json(&list, &o) : print_text(&list, &o);
    run_list_release(&list);
    return rc < 0 ? CLI_FAILED : CLI_GOOD;
}
