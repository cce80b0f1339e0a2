/* meta.c: run.json as a struct.
 *
 * jansson checks the syntax; here every value is checked for its type and copied,
 * because the document may say anything. Lists are cut at a number no honest run
 * comes near, so that a hostile file costs bounded memory.
 */
#include "store/meta.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <jansson.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/files.h"
#include "trace/process.h"
#include "base/signame.h"

enum { MAX_BYTES = 4 << 20, MAX_ITEMS = 4096 };

void run_meta_init(struct run_meta *ret_meta)
{
    *ret_meta = (struct run_meta){
        .id = "",
        .name = "",
        .cwd = "",
        .live = "",
        .host = "",
        .level = "",
        .parent_run = "",
        .sonde = "",
        .cpu = "",
        .exit = { .code = -1, .cause = "" },
        .death = { .text = "",
                   .process = "",
                   .group = "",
                   .method = "",
                   .limit_mb = NAN,
                   .size_mb = NAN,
                   .growth_mb_per_s = NAN },
        .rank = -1,
        .world_size = -1,
        .cores = -1,
        .gpus = -1,
        .memory_mb = NAN,
        .cpu_user_s = NAN,
        .cpu_system_s = NAN,
        .max_rss_mb = NAN,
        .minor_faults = NAN,
        .major_faults = NAN,
        .supervisor_cpu_s = NAN,
        .grid_g_per_kwh = NAN,
        .supervisor_rss_mb = NAN,
    };
}

/* ---- One value ------------------------------------------------------------- */

static const char *get_text(const json_t *object, const char *key, struct arena *a)
{
    const char *text = json_string_value(json_object_get(object, key));
    const char *copy = text ? arena_strdup(a, text) : NULL;
    return copy ? copy : "";
}

static double get_number(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    return json_is_number(value) ? json_number_value(value) : NAN;
}

static int64_t get_integer(const json_t *object, const char *key, int64_t missing)
{
    const json_t *value = json_object_get(object, key);
    return json_is_integer(value) ? (int64_t)json_integer_value(value) : missing;
}

/* An integer that must lie in low … high to be believed. */
static int64_t get_within(const json_t *object, const char *key, int64_t low,
                          int64_t high, int64_t missing)
{
    const int64_t value = get_integer(object, key, missing);
    return value >= low && value <= high ? value : missing;
}

/* A value of any simple type as text, the way a person would write it. */
static const char *any_text(const json_t *value, struct arena *a)
{
    char number[40];
    switch (json_typeof(value)) {
    case JSON_STRING:
        return arena_strdup(a, json_string_value(value));
    case JSON_INTEGER:
        (void)snprintf(number, sizeof(number), "%lld",
                       (long long)json_integer_value(value));
        return arena_strdup(a, number);
    case JSON_REAL:
        (void)snprintf(number, sizeof(number), "%.15g", json_real_value(value));
        return arena_strdup(a, number);
    case JSON_TRUE:
        return "true";
    case JSON_FALSE:
        return "false";
    default:
        return "";
    }
}

/* ---- Lists ------------------------------------------------------------------- */

static size_t list_length(const json_t *list)
{
    const size_t n = json_array_size(list); /* 0 for anything but an array */
    return n < MAX_ITEMS ? n : MAX_ITEMS;
}

/* Elements that are no texts read as "?": the positions of the rest matter. */
static int get_texts(const json_t *list, struct arena *a, const char ***ret_texts,
                     size_t *ret_count)
{
    const size_t n = list_length(list);
    const char **texts = arena_alloc_array(a, n + 1, sizeof(*texts));
    if (!texts)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++) {
        const char *text = json_string_value(json_array_get(list, i));
        texts[i] = text ? arena_strdup(a, text) : "?";
        if (!texts[i])
            return -ENOMEM;
    }
    *ret_texts = texts;
    *ret_count = n;
    return 0;
}

static int get_pairs(json_t *object, struct arena *a, struct run_pair **ret_pairs,
                     size_t *ret_count)
{
    const size_t size = json_object_size(object);
    const size_t room = size < MAX_ITEMS ? size : MAX_ITEMS;
    struct run_pair *pairs = arena_alloc_array(a, room + 1, sizeof(*pairs));
    if (!pairs)
        return -ENOMEM;

    size_t count = 0;
    const char *key;
    json_t *value;
    json_object_foreach(object, key, value)
    {
        if (count == room)
            break;
        pairs[count] = (struct run_pair){ arena_strdup(a, key), any_text(value, a) };
        if (!pairs[count].key || !pairs[count].value)
            return -ENOMEM;
        count++;
    }
    *ret_pairs = pairs;
    *ret_count = count;
    return 0;
}

/* ---- The document -------------------------------------------------------------- */

/* Signals go by name; a number is understood as well. */
static int signal_number(const json_t *value)
{
    char name[SIGNAL_NAME_LEN];
    const char *text = json_string_value(value);
    for (int i = 1; text && i < NSIG; i++)
        if (strcmp(text, signal_name(i, name)) == 0)
            return i;
    const int64_t number = json_is_integer(value) ? json_integer_value(value) : 0;
    return number > 0 && number < NSIG ? (int)number : 0;
}

static void parse_exit(const json_t *root, struct arena *a, struct run_exit *ret_exit)
{
    const json_t *object = json_object_get(root, "exit");
    if (!json_is_object(object))
        return;
    ret_exit->code = (int)get_within(object, "code", 0, 255, -1);
    ret_exit->signal = signal_number(json_object_get(object, "signal"));
    ret_exit->cause = get_text(object, "cause", a);
    ret_exit->known = ret_exit->code >= 0 || ret_exit->signal > 0;
}

static void parse_death(const json_t *root, struct arena *a,
                        struct run_death *ret_death)
{
    const json_t *object = json_object_get(root, "death");
    if (!json_is_object(object))
        return;
    ret_death->text = get_text(object, "text", a);
    ret_death->process = get_text(object, "process", a);
    ret_death->group = get_text(object, "cgroup", a);
    ret_death->method = get_text(object, "method", a);
    ret_death->pid = (uint32_t)get_within(object, "pid", 1, INT32_MAX, 0);
    ret_death->limit_mb = get_number(object, "limit_mb");
    ret_death->size_mb = get_number(object, "size_mb");
    ret_death->growth_mb_per_s = get_number(object, "growth_mb_per_s");
}

static void parse_machine(const json_t *root, struct arena *a, struct run_meta *m)
{
    const json_t *hardware = json_object_get(root, "hardware");
    const json_t *gpus = json_object_get(hardware, "gpus");
    m->cpu = get_text(hardware, "cpu", a);
    m->cores = (int)get_within(hardware, "cores", 1, 1 << 20, -1);
    m->gpus = json_is_array(gpus) ? (int)list_length(gpus) : -1;
    m->memory_mb = get_number(hardware, "memory_mb");

    const json_t *rusage = json_object_get(root, "rusage");
    m->cpu_user_s = get_number(rusage, "cpu_user_s");
    m->cpu_system_s = get_number(rusage, "cpu_system_s");
    m->max_rss_mb = get_number(rusage, "max_rss_mb");
    m->minor_faults = get_number(rusage, "minor_faults");
    m->major_faults = get_number(rusage, "major_faults");

    const json_t *overhead = json_object_get(root, "overhead");
    m->supervisor_cpu_s = get_number(overhead, "supervisor_cpu_s");
    m->supervisor_rss_mb = get_number(overhead, "supervisor_rss_mb");
    const json_t *options = json_object_get(root, "options");
    m->energy_off = json_is_false(json_object_get(options, "energy"));
    m->grid_g_per_kwh = get_number(options, "grid_g_per_kwh");
}

static void parse_identity(const json_t *root, struct arena *a, struct run_meta *m)
{
    m->id = get_text(root, "id", a);
    m->name = get_text(root, "name", a);
    m->cwd = get_text(root, "cwd", a);
    m->live = get_text(root, "live", a);
    m->host = get_text(root, "host", a);
    m->parent_run = get_text(root, "parent_run", a);
    m->sonde = get_text(root, "sonde", a);
    const json_t *level = json_object_get(root, "level");
    const char *text = level ? any_text(level, a) : "";
    m->level = text ? text : "";
    m->started_ns = get_within(root, "started_ns", 1, INT64_MAX, 0);
    m->ended_ns = get_within(root, "ended_ns", 1, INT64_MAX, 0);
    if (m->ended_ns < m->started_ns)
        m->ended_ns = 0;
    m->pid = (uint32_t)get_within(root, "pid", 1, INT32_MAX, 0);
    m->pid_start = (uint64_t)get_within(root, "proc_start", 0, INT64_MAX, 0);
    m->attached = json_is_true(json_object_get(root, "attached"));
    m->session = json_is_true(json_object_get(root, "session"));
    m->imported = json_is_true(json_object_get(root, "imported"));
    m->rank = (int)get_within(root, "rank", 0, 1 << 24, -1);
    m->world_size = (int)get_within(root, "world_size", 1, 1 << 24, -1);
    const json_t *supervisor = json_object_get(root, "supervisor");
    m->supervisor_pid = (uint32_t)get_within(supervisor, "pid", 1, INT32_MAX, 0);
    m->supervisor_start = (uint64_t)get_within(supervisor, "proc_start", 0, INT64_MAX,
                                               0);
}

static int parse_lists(const json_t *root, struct arena *a, struct run_meta *m)
{
    int rc = get_texts(json_object_get(root, "command"), a, &m->command,
                       &m->command_count);
    if (rc == 0)
        rc = get_texts(json_object_get(root, "notes"), a, &m->notes, &m->note_count);
    if (rc == 0)
        rc = get_texts(json_object_get(json_object_get(root, "death"), "stack"), a,
                       &m->death.stack, &m->death.stack_count);
    if (rc == 0)
        rc = get_pairs(json_object_get(root, "tags"), a, &m->tags, &m->tag_count);
    if (rc == 0)
        rc = get_pairs(json_object_get(root, "params"), a, &m->params, &m->param_count);
    return rc;
}

/* A pipe or a device called run.json must not make us wait. */
static int read_text(const char *dir, struct buf *ret_text)
{
    struct buf path = BUF_INIT;
    path_join(&path, dir, "run.json");
    int rc = path.error;
    struct stat st;
    if (rc == 0 && stat(path.data, &st) < 0)
        rc = -errno;
    if (rc == 0 && !S_ISREG(st.st_mode))
        rc = SONDE_E_FORMAT;
    if (rc == 0)
        rc = file_read_all(path.data, MAX_BYTES, ret_text);
    buf_release(&path);
    return rc;
}

int run_meta_read(const char *dir, struct arena *arena, struct run_meta *ret_meta)
{
    struct run_meta meta;
    struct buf text = BUF_INIT;
    json_t *root = NULL;

    run_meta_init(&meta);
    int rc = read_text(dir, &text);
    if (rc < 0)
        goto done;
    root = json_loadb(text.data, text.len, 0, NULL);
    if (!json_is_object(root)) {
        rc = SONDE_E_FORMAT;
        goto done;
    }
    parse_identity(root, arena, &meta);
    parse_exit(root, arena, &meta.exit);
    parse_death(root, arena, &meta.death);
    parse_machine(root, arena, &meta);
    rc = parse_lists(root, arena, &meta);
    if (rc < 0)
        goto done;
    meta.present = true;
    meta.root = root;
    root = NULL;
    *ret_meta = meta;
done:
    json_decref(root);
    buf_release(&text);
    return rc;
}

void run_meta_release(struct run_meta *meta)
{
    json_decref(meta->root);
    meta->root = NULL;
}

bool run_meta_alive(const struct run_meta *meta)
{
    char host[256] = "";
    if (meta->ended_ns || meta->exit.known)
        return false;
    if (gethostname(host, sizeof(host) - 1) == 0 && meta->host[0] &&
        strcmp(host, meta->host) != 0)
        return false;
    return (meta->supervisor_pid &&
            process_alive((pid_t)meta->supervisor_pid, meta->supervisor_start)) ||
           (meta->pid && process_alive((pid_t)meta->pid, meta->pid_start));
}
