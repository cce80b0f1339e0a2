/* cmd_store.c: `sonde store`: look after the store of experiments. */
#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/files.h"
#include "base/human.h"
#include "base/json.h"
#include "cli/cli.h"
#include "cli/keep.h"
#include "cli/options.h"
#include "cli/progress.h"
#include "store/list.h"
#include "store/retain.h"
#include "store/run.h"

struct store_options {
    bool repair, dry, json;
    int format;
    uint64_t runs, size;
};

static const char *const formats[] = { "table", "csv", "json", NULL };
enum { FORMAT_TABLE, FORMAT_CSV, FORMAT_JSON };

#define FIELD(name) offsetof(struct store_options, name)

static const struct option options[] = {
    { "repair", 0, OPTION_FLAG, FIELD(repair),
      .help = "verify: build a damaged store anew" },
    { "dry-run", 0, OPTION_FLAG, FIELD(dry), .help = "gc: only say what would go" },
    { "runs", 0, OPTION_COUNT, FIELD(runs), .value = "N",
      .help = "gc: keep at most N unnamed runs (default 50)",
      .env = "SONDE_KEEP_RUNS" },
    { "size", 0, OPTION_SIZE, FIELD(size), .value = "SIZE",
      .help = "gc: … and at most so much (default 20GiB)", .env = "SONDE_KEEP_SIZE" },
    { "format", 0, OPTION_CHOICE, FIELD(format), .value = "FORMAT",
      .help = "sql: table, csv or json", .choices = formats },
    { "json", 0, OPTION_FLAG, FIELD(json), .help = "the same as --format json" },
};

static const struct command command = {
    .verb = "store",
    .usage = "[options] [info | verify | gc | backup FILE | sql QUERY | add DIR… | "
             "config KEY=VALUE]",
    .summary = "look after the store of experiments",
    .options = options,
    .option_count = sizeof options / sizeof *options,
    .more =
        "  info      what is in it (the default)\n"
        "  verify    check it; exit status 1 when something is wrong\n"
        "  gc        remove the directories of old unnamed runs, keep their records\n"
        "  backup    a copy in one file, whole even while others write\n"
        "  sql       read with SQL: tables runs, phases, operations, findings; views\n"
        "            experiments, params, metrics, tags, metric_points\n"
        "  add       take in run directories from elsewhere (sonde run -o DIR)\n"
        "  config    profiles=inside (default) or profiles=files: one JSON per run in\n"
        "            .sonde/profiles\n",
};

/* ---- info --------------------------------------------------------------------------- */

static int show_info(const struct store_options *o)
{
    struct store *store;
    struct store_counts c;
    if (!cli_store_ready(&store))
        return CLI_FAILED;
    int rc = store_counts(store, &c);
    store_close(store);
    if (rc < 0) {
        cli_error("cannot read the store: %s", error_text(rc));
        return CLI_FAILED;
    }
    const struct {
        const char *key;
        int64_t value;
    } rows[] = { { "experiments", c.experiments },
                 { "runs", c.runs },
                 { "trials", c.trials },
                 { "logs", c.logs },
                 { "series", c.series },
                 { "profiles", c.profiles },
                 { "baselines", c.baselines },
                 { "receipts", c.receipts },
                 { "bytes", c.bytes },
                 { "schema", c.schema } };
    struct json_writer w;
    if (o->json || o->format == FORMAT_JSON) {
        json_init_file(&w, stdout, JSON_STYLE_PRETTY);
        json_object_begin(&w);
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
            json_key(&w, rows[i].key);
            json_put_int(&w, rows[i].value);
        }
        json_key(&w, "journal");
        json_put_string(&w, c.journal);
        json_object_end(&w);
        json_newline(&w);
        return json_finish(&w) < 0 ? CLI_FAILED : CLI_GOOD;
    }
    char text[HUMAN_LEN];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        printf("%-12s %s\n", rows[i].key,
               strcmp(rows[i].key, "bytes") == 0
                   ? human_bytes(text, (double)rows[i].value)
                   : human_count(text, (uint64_t)rows[i].value));
    printf("%-12s %s\n", "journal", c.journal);
    return CLI_GOOD;
}

/* ---- verify ------------------------------------------------------------------------- */

static int repair(void)
{
    struct buf note = BUF_INIT;
    struct store *store;
    int64_t saved = 0;
    uint64_t added = 0;
    int rc = store_salvage(store_directory(), &saved, &note);
    if (rc == 0 && cli_store_open(STORE_WRITE, &store)) {
        rc = keep_all(store, &added);
        store_close(store);
    }
    if (rc < 0)
        cli_error("cannot repair the store: %s%s%s", error_text(rc),
                  note.len ? "; " : "", note.data);
    else
        printf("repaired: %" PRId64 " experiments saved, %" PRIu64
               " read again from run directories; %s\n",
               saved, added, note.data);
    buf_release(&note);
    return rc < 0 ? CLI_FAILED : CLI_GOOD;
}

static int verify_shown(struct store *store, struct buf *ret_problems)
{
    struct progress progress;
    progress_begin(&progress, "verifying the store", false);
    const int rc = store_verify(store, ret_problems);
    progress_end(&progress);
    return rc;
}

static int verify(const struct store_options *o)
{
    struct buf problems = BUF_INIT, why = BUF_INIT;
    struct store *store = NULL;
    int rc = store_open(store_directory(), 0, &store, &why);
    if (rc == 0)
        rc = verify_shown(store, &problems);
    store_close(store);
    int status = CLI_NO;
    if (rc == 0) {
        puts("the store is sound");
        status = CLI_GOOD;
    } else if (rc == -ENOENT && !o->repair) {
        cli_error("%s", why.data);
        status = CLI_FAILED;
    } else {
        if (problems.len)
            printf("%s", problems.data);
        if (o->repair)
            status = repair();
        else
            cli_error("%s", why.len ? why.data
                                    : "the store is damaged (sonde store verify "
                                      "--repair builds it anew)");
    }
    buf_release(&problems);
    buf_release(&why);
    return status;
}

/* ---- gc ----------------------------------------------------------------------------- */

struct collecting {
    const struct store_options *options;
    struct progress progress;
};

static void say_removed(void *arg, const char *id, uint64_t bytes)
{
    char size[HUMAN_LEN];
    struct collecting *c = arg;
    progress_hide(&c->progress);
    printf("%s %s (%s)\n", c->options->dry ? "would remove" : "removed", id,
           human_bytes(size, (double)bytes));
    progress_show(&c->progress);
}

static int collect(struct store_options *o)
{
    struct retain_limits limits;
    struct retain_result r = { 0 };
    struct store *store = NULL;
    struct buf why = BUF_INIT;
    uint64_t added;
    struct collecting c = { .options = o };
    retain_defaults(&limits);
    if (o->runs)
        limits.runs = o->runs;
    if (o->size)
        limits.bytes = o->size;
    cli_adopt_orphans(0);
    int rc = store_open(store_directory(), STORE_WRITE, &store, &why);
    progress_begin(&c.progress, "collecting old runs", false);
    if (rc == 0)
        rc = keep_all(store, &added); /* nothing goes that has no record */
    if (rc == 0)
        rc = retain_apply(store_directory(), &limits, store, o->dry, say_removed, &c,
                          &r);
    store_close(store);
    progress_end(&c.progress);
    if (rc < 0) {
        cli_error("nothing removed: %s", why.len ? why.data : error_text(rc));
        buf_release(&why);
        return CLI_FAILED;
    }
    buf_release(&why);
    char gone[HUMAN_LEN], kept[HUMAN_LEN];
    printf("%" PRIu64 " %s (%s), %" PRIu64 " kept (%s), %" PRIu64
           " never touched (named, running, baselines)\n",
           r.removed, o->dry ? "would go" : "removed",
           human_bytes(gone, (double)r.removed_bytes), r.kept,
           human_bytes(kept, (double)r.kept_bytes), r.protected_runs);
    return CLI_GOOD;
}

/* ---- sql ---------------------------------------------------------------------------- */

struct rows {
    int format;
    uint64_t count;
    struct json_writer json;
};

static void put_csv(const char *text)
{
    if (!strpbrk(text, ",\"\r\n")) {
        (void)fputs(text, stdout);
        return;
    }
    (void)putchar('"');
    for (; *text; text++) {
        if (*text == '"')
            (void)putchar('"');
        (void)putchar(*text);
    }
    (void)putchar('"');
}

static void put_plain(const char *text)
{
    for (; *text; text++)
        (void)putchar((unsigned char)*text < ' ' || *text == 0x7f ? ' ' : *text);
}

static void put_line(const struct rows *r, int columns, const char *const *texts)
{
    for (int i = 0; i < columns; i++) {
        if (i)
            (void)fputs(r->format == FORMAT_CSV ? "," : "\t", stdout);
        if (r->format == FORMAT_CSV)
            put_csv(texts[i] ? texts[i] : "");
        else
            put_plain(texts[i] ? texts[i] : "");
    }
    (void)fputs(r->format == FORMAT_CSV ? "\r\n" : "\n", stdout);
}

static void put_object(struct json_writer *w, int columns, const char *const *names,
                       const char *const *texts, const char *types)
{
    json_object_begin(w);
    for (int i = 0; i < columns; i++) {
        json_key(w, names[i]);
        if (types[i] == 'i')
            json_put_int(w, strtoll(texts[i], NULL, 10));
        else if (types[i] == 'f')
            json_put_double(w, strtod(texts[i], NULL));
        else
            json_put_string(w, texts[i]);
    }
    json_object_end(w);
}

static int put_row(void *arg, int columns, const char *const *names,
                   const char *const *texts, const char *types)
{
    struct rows *r = arg;
    if (r->format == FORMAT_JSON)
        put_object(&r->json, columns, names, texts, types);
    else {
        if (r->count == 0)
            put_line(r, columns, names);
        put_line(r, columns, texts);
    }
    r->count++;
    return 0;
}

static int sql(const struct store_options *o, const char *text)
{
    struct store *store;
    struct buf why = BUF_INIT;
    struct rows r = { .format = o->json ? FORMAT_JSON : o->format };
    if (!cli_store_ready(&store))
        return CLI_FAILED;
    if (r.format == FORMAT_JSON) {
        json_init_file(&r.json, stdout, JSON_STYLE_PRETTY);
        json_array_begin(&r.json);
    }
    const int rc = store_sql(store, text, put_row, &r, &why);
    if (r.format == FORMAT_JSON) {
        json_array_end(&r.json);
        json_newline(&r.json);
        (void)json_finish(&r.json);
    }
    if (rc < 0)
        cli_error("%s", why.len ? why.data : error_text(rc));
    store_close(store);
    buf_release(&why);
    return rc < 0 ? CLI_FAILED : CLI_GOOD;
}

/* ---- backup, add, config ------------------------------------------------------------ */

static int backup(const char *path)
{
    struct store *store;
    if (!cli_store_ready(&store))
        return CLI_FAILED;
    const int rc = store_backup(store, path);
    store_close(store);
    if (rc < 0)
        cli_error("cannot copy the store to '%s': %s", path, error_text(rc));
    return rc < 0 ? CLI_FAILED : CLI_GOOD;
}

static int add_one(struct store *store, const char *dir)
{
    struct run *run = NULL;
    struct report *report = NULL;
    int rc = run_open(dir, &run);
    if (rc == 0)
        rc = report_build(run, &report);
    if (rc == 0)
        rc = keep_report(store, report);
    if (rc < 0)
        cli_error("cannot take in '%s': %s", dir, error_text(rc));
    else
        printf("%s\n", run->id);
    report_free(report);
    run_free(run);
    return rc;
}

static int add(int count, char **dirs)
{
    struct store *store;
    int status = CLI_GOOD;
    if (!cli_store_open(STORE_WRITE, &store))
        return CLI_FAILED;
    for (int i = 0; i < count; i++)
        if (add_one(store, dirs[i]) < 0)
            status = CLI_FAILED;
    store_close(store);
    return status;
}

static int config(const char *setting)
{
    struct store *store;
    if (strcmp(setting, "profiles=inside") != 0 &&
        strcmp(setting, "profiles=files") != 0)
        return options_fail(&command,
                            "settings are profiles=inside and profiles=files, "
                            "not '%s'",
                            setting);
    if (!cli_store_open(STORE_WRITE, &store))
        return CLI_FAILED;
    const int rc = store_setting(store, "profiles", strchr(setting, '=') + 1, NULL);
    store_close(store);
    if (rc < 0)
        cli_error("cannot change the store: %s", error_text(rc));
    return rc < 0 ? CLI_FAILED : CLI_GOOD;
}

int cmd_store(int argc, char **argv)
{
    struct store_options o = { 0 };
    int status;
    if (!options_parse(&command, &argc, argv, &o, &status))
        return status;
    const char *what = argc > 1 ? argv[1] : "info";
    if (strcmp(what, "info") == 0 && argc <= 2)
        return show_info(&o);
    if (strcmp(what, "verify") == 0 && argc == 2)
        return verify(&o);
    if (strcmp(what, "gc") == 0 && argc == 2)
        return collect(&o);
    if (strcmp(what, "backup") == 0 && argc == 3)
        return backup(argv[2]);
    if (strcmp(what, "sql") == 0 && argc == 3)
        return sql(&o, argv[2]);
    if (strcmp(what, "add") == 0 && argc > 2)
        return add(argc - 2, argv + 2);
    if (strcmp(what, "config") == 0 && argc == 3)
        return config(argv[2]);
    return options_fail(&command,
                        "what about '%s'? (info, verify, gc, backup FILE, sql "
                        "QUERY, add DIR, config KEY=VALUE)",
                        what);
}
