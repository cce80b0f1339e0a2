/* book.c: intern and count. */
#include "capture/python/book.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Pairs of numbers to row numbers, open addressing; doubles when half full. */
struct pairs {
    struct {
        uint64_t key; /* 0: free */
        uint32_t row;
    } * slots;
    size_t size, used;
};

struct book {
    struct tables tables;
    struct pystack_info_row *info;
    struct pairs codes, frames, nodes, counts; /* codes: by hash of the texts */
};

/* ---- Pairs -------------------------------------------------------------------------- */

static size_t slot_of(const struct pairs *p, uint64_t key)
{
    return (size_t)(key * 0x9e3779b97f4a7c15u >> 24) & (p->size - 1);
}

static uint32_t *pairs_slot(struct pairs *p, uint64_t key)
{
    size_t at = slot_of(p, key);
    while (p->slots[at].key && p->slots[at].key != key)
        at = (at + 1) & (p->size - 1);
    if (!p->slots[at].key) {
        p->slots[at].key = key;
        p->slots[at].row = UINT32_MAX;
        p->used++;
    }
    return &p->slots[at].row;
}

static bool pairs_grow(struct pairs *p)
{
    if (p->used * 2 < p->size)
        return true;
    struct pairs bigger = { .size = p->size ? p->size * 2 : 1024 };
    bigger.slots = calloc(bigger.size, sizeof *bigger.slots);
    if (!bigger.slots)
        return p->used + 1 < p->size;
    for (size_t i = 0; i < p->size; i++)
        if (p->slots[i].key)
            *pairs_slot(&bigger, p->slots[i].key) = p->slots[i].row;
    free(p->slots);
    *p = bigger;
    return true;
}

/* The row number kept for a pair, UINT32_MAX when it is new; NULL without memory. */
static uint32_t *pairs_find(struct pairs *p, uint32_t a, uint32_t b)
{
    return pairs_grow(p) ? pairs_slot(p, ((uint64_t)a << 32 | b) + 1) : NULL;
}

/* ---- New, free ---------------------------------------------------------------------- */

static const struct tables_spec specs[] = {
    { "info", sizeof(struct pystack_info_row), 1 },
    { "codes", sizeof(struct pystack_code_row), PYSTACKS_MAX_CODES },
    { "frames", sizeof(struct pystack_frame_row), PYSTACKS_MAX_FRAMES },
    { "nodes", sizeof(struct pystack_node_row), PYSTACKS_MAX_NODES },
    { "tasks", sizeof(struct pystack_task_row), PYSTACKS_MAX_TASKS },
    { "counts", sizeof(struct pystack_count_row), PYSTACKS_MAX_COUNTS },
};

static void publish(uint64_t *key)
{
    __atomic_store_n(key, 1, __ATOMIC_RELEASE);
}

int book_new(const char *dir, struct control *control, uint64_t period_ns,
             struct book **ret_book)
{
    struct book *b = calloc(1, sizeof *b);
    if (!b)
        return -ENOMEM;
    int rc = tables_create(dir, PYSTACKS_KIND, control, specs,
                           sizeof specs / sizeof *specs, &b->tables);
    uint32_t at;
    struct pystack_node_row *other = NULL;
    if (rc == 0) {
        b->info = tables_append(&b->tables, PYSTACKS_INFO, &at);
        other = tables_append(&b->tables, PYSTACKS_NODES, &at); /* number 0 */
        rc = b->info && other ? 0 : -ENOSPC;
    }
    if (rc < 0) {
        book_free(b);
        return rc;
    }
    b->info->period_ns = period_ns;
    publish(&other->key);
    publish(&b->info->key);
    *ret_book = b;
    return 0;
}

void book_free(struct book *b)
{
    if (!b)
        return;
    tables_close(&b->tables);
    free(b->codes.slots);
    free(b->frames.slots);
    free(b->nodes.slots);
    free(b->counts.slots);
    free(b);
}

struct pystack_info_row *book_info(struct book *b)
{
    return b->info;
}

struct pystack_task_row *book_task(struct book *b, uint32_t pid, uint32_t tid,
                                   const char *name, uint32_t flags, uint32_t *ret_task)
{
    struct pystack_task_row *row = tables_append(&b->tables, PYSTACKS_TASKS, ret_task);
    if (!row)
        return NULL;
    row->pid = pid;
    row->tid = tid;
    row->flags = flags;
    row->thread = tables_text(&b->tables, name, strlen(name));
    publish(&row->key);
    return row;
}

/* ---- Paths -------------------------------------------------------------------------- */

void book_codes_release(struct book_codes *codes)
{
    free(codes->rows);
    *codes = (struct book_codes){ 0 };
}

static uint64_t hash_text(uint64_t h, const char *text)
{
    for (; *text; text++)
        h = (h ^ (uint8_t)*text) * 0x100000001b3u;
    return h;
}

/* The same function in forked workers is one row. Two functions whose hashes agree in
 * 64 bits would be one, too. */
static uint32_t code_row(struct book *b, const struct python_code *code)
{
    uint64_t h = hash_text(0xcbf29ce484222325u ^ (uint64_t)code->first_line,
                           code->name);
    h = hash_text(h ^ '\n', code->file);
    uint32_t *known = pairs_find(&b->codes, (uint32_t)(h >> 32), (uint32_t)h | 1);
    if (!known || *known != UINT32_MAX)
        return known ? *known : UINT32_MAX;
    uint32_t at;
    struct pystack_code_row *row = tables_append(&b->tables, PYSTACKS_CODES, &at);
    if (!row)
        return UINT32_MAX;
    row->name = tables_text(&b->tables, code->name, strlen(code->name));
    row->file = tables_text(&b->tables, code->file, strlen(code->file));
    row->first_line = (uint32_t)code->first_line;
    row->flags = code->flags;
    publish(&row->key);
    return *known = at;
}

static uint32_t code_of(struct book *b, const struct python *python,
                        struct book_codes *codes, int32_t number)
{
    const size_t at = (size_t)number;
    if (at >= codes->count) {
        const size_t count = (at + 256) & ~(size_t)255;
        uint32_t *rows = realloc(codes->rows, count * sizeof *rows);
        if (!rows)
            return UINT32_MAX;
        memset(rows + codes->count, 0, (count - codes->count) * sizeof *rows);
        codes->rows = rows;
        codes->count = count;
    }
    if (!codes->rows[at]) {
        const struct python_code code = python_code(python, number);
        codes->rows[at] = code_row(b, &code) + 1; /* 0 again when there is no room */
    }
    return codes->rows[at] - 1;
}

static uint32_t frame_row(struct book *b, uint32_t code, uint32_t line)
{
    uint32_t at, *known = pairs_find(&b->frames, code, line);
    if (!known || *known != UINT32_MAX)
        return known ? *known : UINT32_MAX;
    struct pystack_frame_row *row = tables_append(&b->tables, PYSTACKS_FRAMES, &at);
    if (!row)
        return UINT32_MAX;
    row->code = code;
    row->line = line;
    publish(&row->key);
    return *known = at;
}

static uint32_t node_row(struct book *b, uint32_t parent, uint32_t frame)
{
    uint32_t at, *known = pairs_find(&b->nodes, parent, frame);
    if (!known || *known != UINT32_MAX)
        return known ? *known : 0;
    struct pystack_node_row *row = tables_append(&b->tables, PYSTACKS_NODES, &at);
    if (!row)
        return 0;
    row->frame = frame;
    row->parent = parent;
    publish(&row->key);
    return *known = at;
}

uint32_t book_path(struct book *b, const struct python *python,
                   struct book_codes *codes, const struct python_thread *thread)
{
    uint32_t node = 0;
    for (unsigned i = thread->count; i-- > 0;) {
        const uint32_t code = code_of(b, python, codes, thread->frames[i].code);
        const uint32_t frame = code == UINT32_MAX
                                   ? UINT32_MAX
                                   : frame_row(b, code,
                                               (uint32_t)thread->frames[i].line);
        node = frame == UINT32_MAX ? 0 : node_row(b, node, frame);
        if (node == 0)
            break;
    }
    if (node == 0)
        b->info->other++;
    return node;
}

void book_add(struct book *b, uint32_t path, uint32_t task, uint64_t wall_ns,
              uint64_t cpu_ns)
{
    uint32_t at, *known = pairs_find(&b->counts, path, task);
    struct pystack_count_row *row;
    if (known && *known == UINT32_MAX) {
        row = tables_append(&b->tables, PYSTACKS_COUNTS, &at);
        if (!row)
            return;
        row->node = path;
        row->task = task;
        publish(&row->key);
        *known = at;
    } else {
        row = known ? tables_row(&b->tables, PYSTACKS_COUNTS, *known) : NULL;
    }
    if (!row)
        return;
    row->samples++;
    row->wall_ns += wall_ns;
    row->cpu_ns += cpu_ns;
}
