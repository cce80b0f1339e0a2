/* stacks.c: see stacks.h. */
#include "analyse/stacks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analyse/glue.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/files.h"
#include "base/strmap.h"
#include "trace/tablefiles.h"

/* The functions of a frame: entries[first … first + count), innermost first. */
struct frame {
    uint32_t first, count;
    uint32_t flags; /* enum stack_frame_flag */
};

struct inside {
    struct tablefile *file;
    struct symbols *symbols; /* NULL: nothing was looked up */
    const char *name;        /* of the file */
    int modules, frame_table, nodes, counts;
    int codes, merged_nodes, merged_counts; /* negative: not merged */
    struct frame *frames;
    uint32_t frame_count;
    struct stack_entry *entries;
    size_t entry_count, entry_cap;
    struct strmap functions; /* index by module and name */
};

/* ---- Functions ---------------------------------------------------------------------------- */

static int grow(void **list, size_t *cap, size_t count, size_t size)
{
    if (count < *cap)
        return 0;
    const size_t more = *cap ? *cap * 2 : 256;
    void *p = realloc(*list, more * size);
    if (!p)
        return -ENOMEM;
    *list = p;
    *cap = more;
    return 0;
}

static int enter_function(struct stacks *s, const struct stack_function *f,
                          uint32_t *ret_index)
{
    struct inside *in = s->inside;
    struct buf key = BUF_INIT;
    bool added = false;
    buf_puts(&key, f->module);
    buf_putc(&key, '\0');
    buf_puts(&key, f->name);
    struct strmap_entry *e = key.error ? NULL
                                       : strmap_enter(&in->functions, key.data, key.len,
                                                      &added);
    buf_release(&key);
    if (!e)
        return -ENOMEM;
    if (added) {
        e->value = s->function_count;
        const int rc = grow((void **)&s->functions, &s->function_cap, s->function_count,
                            sizeof *s->functions);
        if (rc < 0)
            return rc;
        struct stack_function *copy = &s->functions[s->function_count++];
        *copy = (struct stack_function){ arena_strdup(&s->arena, f->name),
                                         arena_strdup(&s->arena, f->module),
                                         arena_strdup(&s->arena, f->file), f->line };
        if (!copy->name || !copy->module || !copy->file)
            return -ENOMEM;
    }
    *ret_index = (uint32_t)e->value;
    return 0;
}

static int add_entry(struct stacks *s, const struct stack_function *function,
                     const char *file, uint32_t line)
{
    struct inside *in = s->inside;
    struct stack_entry e = { .file = file, .line = line };
    int rc = enter_function(s, function, &e.function);
    if (rc == 0)
        rc = grow((void **)&in->entries, &in->entry_cap, in->entry_count,
                  sizeof *in->entries);
    if (rc == 0)
        in->entries[in->entry_count++] = e;
    return rc;
}

/* "[libx.so]" for code of /usr/lib/libx.so that has no name. */
static int add_unnamed(struct stacks *s, const char *module, uint32_t jit_pid,
                       const char *file, uint32_t line)
{
    struct buf name = BUF_INIT;
    if (module[0] == '[')
        buf_puts(&name, module);
    else
        buf_printf(&name, "[%s]", jit_pid ? "jit" : path_base(module));
    const struct stack_function f = { name.data, module, "", 0 };
    const int rc = name.error ? name.error : add_entry(s, &f, file, line);
    buf_release(&name);
    return rc;
}

/* ---- Frames ---------------------------------------------------------------------------------- */

/* A Python function; its module is its file, so that names are told apart. */
static int name_python(struct stacks *s, uint64_t key)
{
    const struct inside *in = s->inside;
    struct stack_code_row code = { 0 };
    const uint64_t place = key - 1;
    (void)tablefile_get(in->file, in->codes, (uint32_t)(place >> 32), &code,
                        sizeof code);
    const char *name = tablefile_text(in->file, code.name),
               *file = tablefile_text(in->file, code.file);
    const struct stack_function f = { name[0] ? name : "(unknown Python)", file, file,
                                      code.first_line };
    return add_entry(s, &f, file, (uint32_t)place);
}

static int name_frame(struct stacks *s, uint32_t number)
{
    struct inside *in = s->inside;
    struct symbol_name names[SYMBOLS_INLINE_MAX];
    struct stack_frame_row row;
    struct stack_module_row module = { 0 };
    struct frame *frame = &in->frames[number];
    frame->first = (uint32_t)in->entry_count;
    if (!tablefile_get(in->file, in->frame_table, number, &row, sizeof row))
        return 0;
    frame->flags = row.flags;
    if (row.flags & STACK_FRAME_PYTHON) {
        const int rc = name_python(s, row.key);
        frame->count = (uint32_t)in->entry_count - frame->first;
        return rc;
    }
    (void)tablefile_get(in->file, in->modules, row.module, &module, sizeof module);
    const char *path = tablefile_text(in->file, module.path);
    const unsigned n = in->symbols
                           ? symbols_find(in->symbols, in->name, (uint64_t)number + 1,
                                          names, SYMBOLS_INLINE_MAX)
                           : 0;
    int rc = n == 0 ? add_unnamed(s, path[0] || module.pid ? path : "[unknown]",
                                  module.pid, "", 0)
                    : 0;
    for (unsigned i = 0; rc == 0 && i < n; i++) {
        const struct symbol_name *f = &names[i];
        if (f->function[0])
            rc = add_entry(s,
                           &(struct stack_function){
                               f->function, path, f->function_file, f->function_line },
                           f->file, f->line);
        else
            rc = add_unnamed(s, path, module.pid, f->file, f->line);
    }
    frame->count = (uint32_t)in->entry_count - frame->first;
    return rc;
}

static int name_frames(struct stacks *s)
{
    struct inside *in = s->inside;
    int rc = 0;
    in->frame_count = tablefile_count(in->file, in->frame_table);
    in->frames = calloc((size_t)in->frame_count + 1, sizeof *in->frames);
    if (!in->frames)
        return -ENOMEM;
    for (uint32_t i = 0; rc == 0 && i < in->frame_count; i++)
        rc = name_frame(s, i);
    return rc;
}

static int read_tasks(struct stacks *s)
{
    struct inside *in = s->inside;
    const int table = tablefile_find(in->file, "tasks");
    const uint32_t count = tablefile_count(in->file, table);
    s->tasks = arena_alloc_array(&s->arena, (size_t)count + 1, sizeof *s->tasks);
    if (!s->tasks)
        return -ENOMEM;
    for (uint32_t i = 0; i < count; i++) {
        struct stack_task_row row = { 0 };
        (void)tablefile_get(in->file, table, i, &row, sizeof row);
        s->tasks[i] = (struct stack_task){ row.pid,
                                           tablefile_text(in->file, row.process),
                                           tablefile_text(in->file, row.thread) };
    }
    s->task_count = count;
    return 0;
}

/* ---- Opening ----------------------------------------------------------------------------------- */

static int open_inside(struct stacks *s, const char *dir)
{
    struct inside *in = s->inside;
    struct buf name = BUF_INIT;
    int rc = tablefiles_newest(dir, STACKS_KIND, &name, &in->file);
    if (rc == 0)
        in->name = arena_strdup(&s->arena, name.data);
    buf_release(&name);
    if (rc < 0)
        return rc;
    in->modules = tablefile_find(in->file, MODULES_TABLE);
    in->frame_table = tablefile_find(in->file, FRAMES_TABLE);
    in->nodes = tablefile_find(in->file, "nodes");
    in->counts = tablefile_find(in->file, "counts");
    in->codes = tablefile_find(in->file, STACK_CODES_TABLE);
    in->merged_nodes = tablefile_find(in->file, STACK_MERGED_NODES_TABLE);
    in->merged_counts = tablefile_find(in->file, STACK_MERGED_COUNTS_TABLE);
    if (!in->name)
        return -ENOMEM;
    (void)tablefile_get(in->file, tablefile_find(in->file, "info"), 0, &s->info,
                        sizeof s->info);
    s->why = tablefile_text(in->file, s->info.why);
    s->has_merged = tablefile_get(in->file, tablefile_find(in->file, STACK_MERGE_TABLE),
                                  0, &s->merge, sizeof s->merge);
    s->merge_why = tablefile_text(in->file, s->merge.why);
    if (symbols_open(dir, &in->symbols) == 0)
        symbols_totals(in->symbols, &s->symbols);
    else
        in->symbols = NULL;
    rc = read_tasks(s);
    return rc < 0 ? rc : name_frames(s);
}

int stacks_open(const char *dir, struct stacks **ret_stacks)
{
    struct stacks *s = calloc(1, sizeof *s);
    struct inside *in = calloc(1, sizeof *in);
    if (!s || !in) {
        free(s);
        free(in);
        return -ENOMEM;
    }
    arena_init(&s->arena);
    strmap_init(&in->functions);
    s->why = s->merge_why = "";
    s->inside = in;
    const int rc = open_inside(s, dir);
    if (rc < 0)
        stacks_free(s);
    else
        *ret_stacks = s;
    return rc;
}

void stacks_free(struct stacks *s)
{
    if (!s)
        return;
    struct inside *in = s->inside;
    if (in) {
        tablefile_free(in->file);
        symbols_free(in->symbols);
        free(in->frames);
        free(in->entries);
        strmap_release(&in->functions);
        free(in);
    }
    free(s->functions);
    arena_release(&s->arena);
    free(s);
}

/* ---- Walking -------------------------------------------------------------------------------------- */

/* One of the two trees of call paths. */
struct tree {
    int nodes, counts;
    unsigned depth; /* no stack is deeper: a damaged file may have a loop */
};

static unsigned fill_stack(const struct inside *in, const struct tree *tree,
                           uint32_t node, struct stack_entry entries[STACK_ENTRIES])
{
    unsigned n = 0;
    for (unsigned depth = 0; node != STACK_OTHER && depth < tree->depth; depth++) {
        struct stack_node_row row;
        if (!tablefile_get(in->file, tree->nodes, node, &row, sizeof row) ||
            row.frame >= in->frame_count)
            break;
        const struct frame *f = &in->frames[row.frame];
        for (uint32_t i = 0; i < f->count && n < STACK_ENTRIES; i++) {
            entries[n] = in->entries[f->first + i];
            entries[n++].flags = f->flags;
        }
        node = row.parent;
    }
    return n;
}

static const struct stack_task *task_at(const struct stacks *s, uint32_t number)
{
    static const struct stack_task unknown = { 0, "", "" };
    return number < s->task_count ? &s->tasks[number] : &unknown;
}

int stacks_walk(const struct stacks *s,
                int (*each)(void *arg, const struct stack_task *task,
                            const struct stack_entry *entries, unsigned count,
                            uint64_t samples),
                void *arg)
{
    const struct inside *in = s->inside;
    const struct tree tree = { in->nodes, in->counts, STACK_DEPTH };
    const uint32_t count = tablefile_count(in->file, tree.counts);
    struct stack_entry entries[STACK_ENTRIES];
    for (uint32_t i = 0; i < count; i++) {
        struct stack_count_row row;
        if (!tablefile_get(in->file, tree.counts, i, &row, sizeof row))
            continue;
        const unsigned n = fill_stack(in, &tree, row.node, entries);
        const int rc = each(arg, task_at(s, row.task), entries, n, row.samples);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static unsigned strip(const struct stacks *s, struct stack_entry *entries,
                      unsigned count)
{
    struct glue_frame frames[STACK_ENTRIES];
    bool keep[STACK_ENTRIES];
    unsigned kept = 0;
    for (unsigned i = 0; i < count; i++)
        frames[i] = (struct glue_frame){ s->functions[entries[i].function].name,
                                         entries[i].flags & STACK_FRAME_PYTHON,
                                         entries[i].flags & STACK_FRAME_INTERPRETER };
    glue_strip(frames, count, keep);
    for (unsigned i = 0; i < count; i++)
        if (keep[i])
            entries[kept++] = entries[i];
    return kept;
}

int stacks_walk_merged(const struct stacks *s,
                       int (*each)(void *arg, const struct stack_task *task,
                                   const struct stack_entry *entries, unsigned count,
                                   uint64_t samples),
                       void *arg)
{
    const struct inside *in = s->inside;
    const struct tree tree = { in->merged_nodes, in->merged_counts,
                               STACK_MERGED_DEPTH };
    const uint32_t count = tablefile_count(in->file, tree.counts);
    struct stack_entry entries[STACK_ENTRIES];
    if (!s->has_merged)
        return SONDE_E_NOTFOUND;
    for (uint32_t i = 0; i < count; i++) {
        struct stack_count_row row;
        if (!tablefile_get(in->file, tree.counts, i, &row, sizeof row))
            continue;
        const unsigned n = strip(s, entries, fill_stack(in, &tree, row.node, entries));
        const int rc = each(arg, task_at(s, row.task), entries, n, row.samples);
        if (rc < 0)
            return rc;
    }
    return 0;
}

/* ---- Loops that wait -------------------------------------------------------------------------------- */

enum { TIGHT_LINE = 64, TIGHT_LEAST = 50 };

struct tight_key {
    uint64_t line; /* UINT64_MAX: the module as a whole */
    uint32_t module, pad;
};

static int count_tight(struct strmap *lines, uint32_t module, uint64_t line,
                       uint64_t samples)
{
    struct tight_key key;
    memset(&key, 0, sizeof key);
    key.line = line;
    key.module = module;
    struct strmap_entry *e = strmap_enter(lines, (const char *)&key, sizeof key, NULL);
    if (!e)
        return -ENOMEM;
    e->value += samples;
    return 0;
}

/* Where the innermost frame of a count is code of a JIT. */
static int take_tight(const struct inside *in, const struct stack_count_row *row,
                      struct strmap *lines)
{
    struct stack_node_row node;
    struct stack_frame_row frame;
    struct stack_module_row module;
    if (row->node == STACK_OTHER ||
        !tablefile_get(in->file, in->nodes, row->node, &node, sizeof node) ||
        !tablefile_get(in->file, in->frame_table, node.frame, &frame, sizeof frame) ||
        !tablefile_get(in->file, in->modules, frame.module, &module, sizeof module) ||
        !module.pid || tablefile_text(in->file, module.path)[0])
        return 0;
    const int rc = count_tight(lines, frame.module, UINT64_MAX, row->samples);
    return rc < 0
               ? rc
               : count_tight(lines, frame.module, frame.key / TIGHT_LINE, row->samples);
}

static uint64_t sum_tight(const struct strmap *lines)
{
    uint64_t samples = 0;
    for (size_t i = 0; i < lines->count; i++) {
        struct tight_key key;
        memcpy(&key, lines->entries[i].key, sizeof key);
        const uint64_t here = lines->entries[i].value;
        if (key.line == UINT64_MAX || here < TIGHT_LEAST)
            continue;
        key.line = UINT64_MAX;
        uint64_t all = 0;
        if (strmap_get(lines, (const char *)&key, sizeof key, &all) && 2 * here >= all)
            samples += here;
    }
    return samples;
}

int stacks_tight_loops(const struct stacks *s, uint64_t *ret_samples)
{
    const struct inside *in = s->inside;
    const uint32_t count = tablefile_count(in->file, in->counts);
    struct strmap lines;
    int rc = 0;
    strmap_init(&lines);
    for (uint32_t i = 0; rc == 0 && i < count; i++) {
        struct stack_count_row row;
        if (tablefile_get(in->file, in->counts, i, &row, sizeof row))
            rc = take_tight(in, &row, &lines);
    }
    if (rc == 0)
        *ret_samples = sum_tight(&lines);
    strmap_release(&lines);
    return rc;
}
