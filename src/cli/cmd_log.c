/* cmd_log.c: `sonde log`: remember an experiment, whoever ran it.
 *
 * One from the command line, or any number as JSON lines: campaigns produce thousands
 * of small results. Lines are committed in batches, and whenever the writer pauses: what
 * was logged is found at once, and a kill loses at most the batch that was under way.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/files.h"
#include "base/moment.h"
#include "base/redact.h"
#include "cli/cli.h"
#include "cli/keep.h"
#include "cli/options.h"
#include "store/list.h"
#include "store/store.h"

enum { BATCH = 20000, LINE_MOST = 16 << 20, CHUNK = 1 << 20, SHOWN_ERRORS = 10 };

struct log_options {
    struct option_list params, metrics, tags, artefacts;
    const char *name, *id, *document, *jsonl, *run, *parent;
    uint64_t duration_ns, memory;
    bool replace, quiet;
};

#define FIELD(name) offsetof(struct log_options, name)

static const struct option options[] = {
    { "param", 'p', OPTION_PAIRS, FIELD(params), .value = "KEY=VALUE",
      .help = "a parameter; may be repeated" },
    { "metric", 'm', OPTION_PAIRS, FIELD(metrics), .value = "KEY=NUMBER",
      .help = "a result; may be repeated" },
    { "tag", 't', OPTION_PAIRS, FIELD(tags), .value = "KEY=VALUE",
      .help = "a tag; may be repeated" },
    { "name", 0, OPTION_TEXT, FIELD(name), .value = "NAME", .help = "its name" },
    { "duration", 0, OPTION_SECONDS, FIELD(duration_ns), .value = "DURATION",
      .help = "how long it took" },
    { "memory", 0, OPTION_SIZE, FIELD(memory), .value = "SIZE",
      .help = "its peak memory" },
    { "document", 0, OPTION_TEXT, FIELD(document), .value = "TEXT",
      .help = "free text that search finds" },
    { "artefact", 0, OPTION_TEXTS, FIELD(artefacts), .value = "PATH",
      .help = "a file that belongs to it; may be repeated" },
    { "parent", 0, OPTION_TEXT, FIELD(parent), .value = "ID",
      .help = "the experiment it is part of" },
    { "id", 0, OPTION_TEXT, FIELD(id), .value = "ID",
      .help = "its id (default: a new one)" },
    { "run", 0, OPTION_TEXT, FIELD(run), .value = "RUN",
      .help = "add to an experiment that is there: a RUN or an id" },
    { "jsonl", 0, OPTION_TEXT, FIELD(jsonl), .value = "FILE",
      .help = "read many, one JSON object a line; - is the standard input" },
    { "replace", 0, OPTION_FLAG, FIELD(replace),
      .help = "an experiment with the same id makes way" },
    { "quiet", 'q', OPTION_FLAG, FIELD(quiet), .help = "do not print the id" },
};

static const struct command command = {
    .verb = "log",
    .usage = "[options]",
    .summary = "remember an experiment: parameters, results, tags",
    .options = options,
    .option_count = sizeof options / sizeof *options,
    .more =
        "Numbers, true and false keep their type; anything else is text.\n\n"
        "  sonde log --param lr=1e-3 --metric accuracy=0.93 --duration 12s\n"
        "  sonde log --run @last --metric accuracy=0.93\n"
        "  my_search | sonde log --jsonl -\n\n"
        "A line: {\"params\": {\"lr\": 0.001}, \"metrics\": {\"accuracy\": 0.93},\n"
        "\"duration_s\": 12, \"tags\": {…}, \"name\": …, \"series\": {\"loss\": [[1, "
        "0.7], …]}}\n",
};

/* ---- From the command line ---------------------------------------------------------- */

static bool put_pairs(struct buf *json, const struct option_list *list,
                      enum fact_kind kind, int *ret_status)
{
    for (size_t i = 0; i < list->count; i++) {
        const char *pair = list->items[i];
        const char *equals = strchr(pair, '=');
        struct buf key = BUF_INIT, shown = BUF_INIT;
        buf_append(&key, pair, (size_t)(equals - pair));
        if (kind == FACT_METRIC) /* a number gives nothing away */
            buf_puts(&shown, equals + 1);
        else
            redact_env(&shown, key.data, equals + 1);
        struct value v = value_from_text(shown.data, shown.len);
        const bool number = v.type == VALUE_INT || v.type == VALUE_FLOAT;
        if (kind == FACT_TAG)
            v.type = VALUE_TEXT, v.text = shown.data, v.len = shown.len;
        if (kind != FACT_METRIC || number)
            fact_write(json, key.data, &v);
        else
            *ret_status = options_fail(&command, "--metric %s: '%s' is no number",
                                       key.data, equals + 1);
        buf_release(&key);
        buf_release(&shown);
        if (*ret_status)
            return false;
    }
    return true;
}

static int keep_old(void *arg, const char *key, size_t len, const struct value *value)
{
    char *name = strndup(key, len);
    if (!name)
        return -ENOMEM;
    fact_write(arg, name, value);
    free(name);
    return 0;
}

/* What was there, then what is new: of two with one name the last counts. */
static int merge_facts(struct experiment *e, const struct log_options *o,
                       struct arena *arena, int *ret_status)
{
    const struct option_list *lists[FACT_KINDS] = { &o->params, &o->metrics, &o->tags };
    int rc = 0;
    for (int kind = 0; rc == 0 && kind < FACT_KINDS; kind++) {
        struct buf json = BUF_INIT;
        if (lists[kind]->count == 0)
            continue;
        buf_putc(&json, '{');
        rc = facts_each(e->facts[kind], e->facts_len[kind], arena, keep_old, &json);
        if (!put_pairs(&json, lists[kind], (enum fact_kind)kind, ret_status))
            rc = SONDE_E_USAGE;
        buf_putc(&json, '}');
        e->facts[kind] = arena_strndup(arena, json.data, json.len);
        e->facts_len[kind] = json.len;
        if (rc == 0 && (json.error || !e->facts[kind]))
            rc = -ENOMEM;
        buf_release(&json);
    }
    return rc;
}

static void set_fields(struct experiment *e, const struct log_options *o)
{
    if (o->name)
        e->name = o->name;
    if (o->document)
        e->document = o->document;
    if (o->parent)
        e->parent = o->parent;
    if (o->duration_ns)
        e->core[CORE_DURATION_S] = (double)o->duration_ns / 1e9;
    if (o->memory)
        e->core[CORE_MEMORY_PEAK_MB] = (double)o->memory / 1048576;
    e->core[CORE_EFFICIENCY] = e->core[CORE_ACCURACY_PER_S] = NAN;
    experiment_derive(e);
}

static int put_artefacts(struct store *store, const char *id,
                         const struct log_options *o)
{
    for (size_t i = 0; i < o->artefacts.count; i++) {
        struct stat st;
        const char *path = o->artefacts.items[i];
        if (stat(path, &st) < 0) {
            cli_error("cannot note the artefact '%s': %s", path, strerror(errno));
            return -errno;
        }
        char *real = realpath(path, NULL);
        const int rc = store_put_artefact(store, id, real ? real : path,
                                          S_ISDIR(st.st_mode) ? "directory" : "file",
                                          (int64_t)st.st_size);
        free(real);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static int log_one(struct store *store, const struct log_options *o)
{
    struct arena arena = ARENA_INIT;
    struct experiment e;
    char id[EXPERIMENT_ID_LEN];
    int status = 0;
    int rc = 0;
    experiment_init(&e);
    e.id = o->id ? o->id : id;
    e.started_ns = (int64_t)moment_ns(CLOCK_REALTIME);
    if (o->run)
        rc = cli_find_experiment(store, o->run, &arena, &e) ? 0 : SONDE_E_NOTFOUND;
    else if (!o->id)
        rc = experiment_new_id(id);
    if (rc == 0)
        rc = merge_facts(&e, o, &arena, &status);
    if (rc == 0) {
        set_fields(&e, o);
        rc = store_put(store, &e, o->replace || o->run ? PUT_REPLACE : 0);
    }
    if (rc == 0)
        rc = put_artefacts(store, e.id, o);
    if (rc == 0 && !o->quiet)
        printf("%s\n", e.id);
    else if (rc == -EEXIST)
        cli_error("there is an experiment '%s' already (--replace takes its place)",
                  e.id);
    else if (rc < 0 && !status && rc != SONDE_E_NOTFOUND)
        cli_error("cannot log: %s", error_text(rc));
    arena_release(&arena);
    return rc < 0 ? CLI_FAILED : CLI_GOOD;
}

/* ---- Many --------------------------------------------------------------------------- */

struct bulk {
    struct store *store;
    const struct log_options *options;
    struct arena arena;
    struct buf text, message;
    uint64_t lines, logged, bad, pending;
    int rc; /* of the store: ends it */
};

static void say_bad(struct bulk *b, const char *why)
{
    if (b->bad++ < SHOWN_ERRORS)
        cli_error("line %" PRIu64 ": %s", b->lines, why);
}

static void commit(struct bulk *b)
{
    if (b->pending == 0)
        return;
    const int rc = store_commit(b->store);
    if (rc < 0) {
        store_rollback(b->store);
        b->rc = b->rc < 0 ? b->rc : rc;
    } else {
        b->logged += b->pending;
    }
    b->pending = 0;
    arena_release(&b->arena);
    arena_init(&b->arena);
}

static void put_line(struct bulk *b, const struct experiment *e)
{
    if (b->pending == 0 && (b->rc = store_begin(b->store)) < 0)
        return;
    const int rc = store_put(b->store, e, b->options->replace ? PUT_REPLACE : 0);
    if (rc == -EEXIST) {
        buf_clear(&b->message);
        buf_printf(&b->message, "there is an experiment '%s' already (--replace)",
                   e->id);
        say_bad(b, b->message.data);
        if (b->pending == 0)
            store_rollback(b->store);
        return;
    }
    b->pending++;
    if (rc < 0)
        b->rc = rc;
    if (b->pending >= BATCH || rc < 0)
        commit(b);
}

static void take_line(struct bulk *b, const char *line, size_t len)
{
    struct experiment e;
    char id[EXPERIMENT_ID_LEN];
    b->lines++;
    while (len && (line[len - 1] == '\r' || line[len - 1] == ' '))
        len--;
    if (len == 0)
        return;
    buf_clear(&b->message);
    int rc = experiment_parse(line, len, &b->arena, &e, &b->message);
    if (rc == 0 && !e.id && (rc = experiment_new_id(id)) == 0)
        e.id = id;
    if (rc < 0)
        say_bad(b, b->message.len ? b->message.data : error_text(rc));
    else
        put_line(b, &e);
}

/* Whole lines out of the buffer; the last one without its end stays unless `all`. */
static void take_lines(struct bulk *b, bool all)
{
    const char *at = b->text.data;
    const char *end = at + b->text.len;
    while (b->rc == 0 && at < end) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        if (!stop && !all)
            break;
        take_line(b, at, (size_t)((stop ? stop : end) - at));
        at = stop ? stop + 1 : end;
    }
    const size_t left = (size_t)(end - at);
    memmove(b->text.data, at, left);
    buf_truncate(&b->text, left);
}

static bool nothing_waits(int fd)
{
    struct pollfd p = { .fd = fd, .events = POLLIN };
    return poll(&p, 1, 0) == 0;
}

static int read_lines(struct bulk *b, int fd)
{
    for (;;) {
        if (b->pending && nothing_waits(fd))
            commit(b);
        int rc = buf_reserve(&b->text, CHUNK);
        if (rc < 0)
            return rc;
        const ssize_t n = read(fd, b->text.data + b->text.len, CHUNK);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        b->text.len += (size_t)n;
        b->text.data[b->text.len] = '\0';
        take_lines(b, n == 0);
        if (n == 0 || b->rc < 0)
            return b->rc;
        if (b->text.len > LINE_MOST)
            return SONDE_E_LIMIT;
    }
}

static int log_many(struct store *store, const struct log_options *o)
{
    struct bulk b = { .store = store, .options = o };
    const bool standard = strcmp(o->jsonl, "-") == 0;
    const int fd = standard ? STDIN_FILENO : open(o->jsonl, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        cli_error("cannot read '%s': %s", o->jsonl, strerror(errno));
        return CLI_FAILED;
    }
    buf_init(&b.text);
    buf_init(&b.message);
    int rc = read_lines(&b, fd);
    commit(&b);
    rc = rc < 0 ? rc : b.rc;
    if (!standard)
        (void)close(fd);
    if (rc < 0)
        cli_error("stopped at line %" PRIu64 ": %s", b.lines, error_text(rc));
    if (b.bad > SHOWN_ERRORS)
        cli_error("… and %" PRIu64 " more lines with errors", b.bad - SHOWN_ERRORS);
    if (!o->quiet)
        printf("%" PRIu64 " logged%s\n", b.logged,
               b.bad ? ", some lines left out" : "");
    buf_release(&b.text);
    buf_release(&b.message);
    arena_release(&b.arena);
    return rc < 0 || b.bad ? CLI_FAILED : CLI_GOOD;
}

/* ---- The verb ----------------------------------------------------------------------- */

static bool check_options(const struct log_options *o, int argc, char **argv,
                          int *ret_status)
{
    const bool one = o->params.count || o->metrics.count || o->tags.count || o->name ||
                     o->duration_ns || o->memory || o->document || o->artefacts.count ||
                     o->id || o->run || o->parent;
    *ret_status = 0;
    if (argc > 1)
        *ret_status = options_fail(&command, "'%s'? (--param, --metric …)", argv[1]);
    else if (o->jsonl && one)
        *ret_status = options_fail(&command, "--jsonl brings everything itself");
    else if (!o->jsonl && !one)
        *ret_status = options_fail(&command,
                                   "nothing to log (--param, --metric … or --jsonl -)");
    else if (o->id && !experiment_id_is_good(o->id, strlen(o->id)))
        *ret_status = options_fail(&command, "--id may not be '%s'", o->id);
    else if (o->id && o->run)
        *ret_status = options_fail(&command, "--run adds to an experiment, --id makes "
                                             "one: give one of them");
    else if (o->name && (!*o->name || *o->name == '@'))
        *ret_status = options_fail(&command,
                                   "--name may not be empty or begin with '@'");
    return *ret_status == 0;
}

int cmd_log(int argc, char **argv)
{
    struct log_options o = { 0 };
    struct store *store;
    int status;
    if (!options_parse(&command, &argc, argv, &o, &status) ||
        !check_options(&o, argc, argv, &status))
        return status;
    if (!cli_store_open(STORE_WRITE, &store))
        return CLI_FAILED;
    if (o.run) {
        uint64_t added;
        (void)keep_all(store, &added);
    }
    status = o.jsonl ? log_many(store, &o) : log_one(store, &o);
    store_close(store);
    return status;
}
