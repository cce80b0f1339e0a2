/* space.c: which names the embedding knows, learned from experiments.
 *
 * Configuration and results count: params.*, metrics.* and the numbers every experiment
 * may have, but not what is derived from others (efficiency), tags, which are labels,
 * or names under which nothing varies. Of more than EMBED_NAMES the commonest are
 * taken. Numbers that are all positive and span three decades are taken by their
 * logarithm: 1e-4 and 1e-3 of a learning rate are as far apart as 1e-3 and 1e-2.
 */
#include "search/embed.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/strmap.h"

static const double LOG_SPAN = 1000;

struct seen {
    uint64_t numbers, texts;
    double low, high;
    bool other; /* infinities, or too many words */
    struct strmap words;
};

struct embed_learner {
    struct strmap names; /* → struct seen * */
    uint64_t rows;
};

struct embed_learner *embed_learner_new(void)
{
    return calloc(1, sizeof(struct embed_learner));
}

void embed_learner_free(struct embed_learner *l)
{
    if (!l)
        return;
    for (size_t i = 0; i < l->names.count; i++) {
        struct seen *s = l->names.entries[i].ptr;
        if (s)
            strmap_release(&s->words);
        free(s);
    }
    strmap_release(&l->names);
    free(l);
}

void embed_space_release(struct embed_space *space)
{
    arena_release(&space->arena);
    *space = (struct embed_space){ .count = 0 };
}

static bool has_prefix(const char *name, size_t len, const char *prefix)
{
    const size_t n = strlen(prefix);
    return len > n && memcmp(name, prefix, n) == 0;
}

static bool counts(const char *name, size_t len)
{
    if (has_prefix(name, len, "params.") || has_prefix(name, len, "metrics."))
        return true;
    const int field = core_find(name, len);
    return field >= 0 && field != CORE_EFFICIENCY && field != CORE_ACCURACY_PER_S;
}

/* ---- Learning ----------------------------------------------------------------------- */

static void see_word(struct seen *s, const struct value *v)
{
    const char *word = v->type == VALUE_TEXT ? v->text : v->integer ? "true" : "false";
    const size_t len = v->type == VALUE_TEXT ? v->len : strlen(word);
    s->texts++;
    if (s->words.count <= EMBED_WORDS && !strmap_enter(&s->words, word, len, NULL))
        s->other = true;
}

static void see_number(struct seen *s, double x)
{
    if (!isfinite(x))
        return;
    if (s->numbers++ == 0)
        s->low = s->high = x;
    s->low = x < s->low ? x : s->low;
    s->high = x > s->high ? x : s->high;
}

static int see_column(struct embed_learner *l, const char *name, size_t len,
                      const struct column *column)
{
    struct strmap_entry *entry = strmap_enter(&l->names, name, len, NULL);
    if (entry && !entry->ptr)
        entry->ptr = calloc(1, sizeof(struct seen));
    if (!entry || !entry->ptr)
        return -ENOMEM;
    struct seen *s = entry->ptr;
    for (uint32_t i = 0; i < column->count; i++) {
        const struct value v = column_value(column, i);
        if (v.type == VALUE_INT || v.type == VALUE_FLOAT)
            see_number(s, v.number);
        else if (v.type != VALUE_NONE)
            see_word(s, &v);
    }
    return 0;
}

int embed_learn(struct embed_learner *l, const struct segment *segment)
{
    int rc = 0;
    struct column column;
    const char *name;
    size_t len;
    for (uint32_t i = 0; rc == 0 && i < segment->head->columns; i++)
        if (segment_column(segment, i, &column, &name, &len) && counts(name, len))
            rc = see_column(l, name, len, &column);
    l->rows += segment->head->rows;
    return rc;
}

/* ---- Choosing ----------------------------------------------------------------------- */

static int commonest_first(const void *a, const void *b)
{
    const struct embed_name *x = a, *y = b;
    if (x->coverage != y->coverage)
        return x->coverage < y->coverage ? 1 : -1;
    const int order = memcmp(x->name, y->name, x->len < y->len ? x->len : y->len);
    return order ? order : (x->len > y->len) - (x->len < y->len);
}

struct word {
    const char *text;
    size_t len;
};

static int by_bytes(const void *a, const void *b)
{
    const struct word *x = a, *y = b;
    const int order = memcmp(x->text, y->text, x->len < y->len ? x->len : y->len);
    return order ? order : (x->len > y->len) - (x->len < y->len);
}

/* More words than Hadamard has rows need no numbers: their hashes are used. */
static int keep_words(struct embed_space *space, const struct seen *s,
                      struct embed_name *n)
{
    const size_t count = s->words.count;
    if (count > EMBED_WORDS)
        return 0;
    struct word *sorted = arena_alloc_array(&space->arena, count, sizeof *sorted);
    n->words = arena_alloc_array(&space->arena, count, sizeof *n->words);
    n->word_lens = arena_alloc_array(&space->arena, count, sizeof *n->word_lens);
    if (!sorted || !n->words || !n->word_lens)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++)
        sorted[i] = (struct word){ s->words.entries[i].key, s->words.entries[i].len };
    qsort(sorted, count, sizeof *sorted, by_bytes);
    for (size_t i = 0; i < count; i++) {
        n->words[i] = arena_strndup(&space->arena, sorted[i].text, sorted[i].len);
        n->word_lens[i] = sorted[i].len;
        if (!n->words[i])
            return -ENOMEM;
    }
    n->word_count = count;
    return 0;
}

/* 1: varies and counts, 0: not. */
static int make_name(struct embed_space *space, const struct strmap_entry *entry,
                     struct embed_name *ret_name)
{
    const struct seen *s = entry->ptr;
    struct embed_name n = { .len = entry->len, .coverage = s->numbers + s->texts };
    n.is_text = s->texts > s->numbers;
    if (n.is_text ? s->words.count < 2 && s->numbers == 0 : !(s->low < s->high))
        return 0;
    n.low = s->low;
    n.high = s->high;
    n.is_log = !n.is_text && n.low > 0 && n.high / LOG_SPAN >= n.low;
    n.name = arena_strndup(&space->arena, entry->key, entry->len);
    if (!n.name || (n.is_text && keep_words(space, s, &n) < 0))
        return -ENOMEM;
    *ret_name = n;
    return 1;
}

static uint64_t mix(uint64_t h, const void *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++)
        h = (h ^ ((const unsigned char *)bytes)[i]) * UINT64_C(0x100000001b3);
    return h;
}

static void finish_space(struct embed_space *space)
{
    struct buf bytes = BUF_INIT;
    space->dims = space->count ? EMBED_DIMS / (unsigned)space->count / 4 * 4 : 4;
    space->fingerprint = 0;
    (void)embed_space_write(space, &bytes);
    space->fingerprint = mix(UINT64_C(0xcbf29ce484222325), bytes.data, bytes.len);
    buf_release(&bytes);
}

int embed_learner_finish(struct embed_learner *l, struct embed_space *ret_space)
{
    struct embed_space space = { .arena = ARENA_INIT, .learned_from = l->rows };
    int rc = 0;
    space.names = arena_alloc_array(&space.arena, l->names.count + 1,
                                    sizeof *space.names);
    if (!space.names)
        rc = -ENOMEM;
    for (size_t i = 0; rc >= 0 && i < l->names.count; i++) {
        rc = make_name(&space, &l->names.entries[i], &space.names[space.count]);
        space.count += rc > 0;
    }
    if (rc < 0) {
        embed_space_release(&space);
        return rc;
    }
    if (space.count)
        qsort(space.names, space.count, sizeof *space.names, commonest_first);
    if (space.count > EMBED_NAMES)
        space.count = EMBED_NAMES;
    finish_space(&space);
    *ret_space = space;
    return 0;
}

/* ---- As bytes ----------------------------------------------------------------------- */

struct space_head {
    char magic[8]; /* "SondeSpc" */
    uint64_t learned_from;
    uint64_t fingerprint;
    uint32_t count, dims;
};

struct space_name {
    uint32_t len, words;
    uint8_t is_text, is_log, pad[6];
    double low, high;
    uint64_t coverage;
};

int embed_space_write(const struct embed_space *space, struct buf *out)
{
    const struct space_head head = { .magic = "SondeSpc",
                                     .learned_from = space->learned_from,
                                     .fingerprint = space->fingerprint,
                                     .count = (uint32_t)space->count,
                                     .dims = space->dims };
    buf_append(out, &head, sizeof head);
    for (size_t k = 0; k < space->count; k++) {
        const struct embed_name *n = &space->names[k];
        const struct space_name record = { .len = (uint32_t)n->len,
                                           .words = (uint32_t)n->word_count,
                                           .is_text = n->is_text,
                                           .is_log = n->is_log,
                                           .low = n->low,
                                           .high = n->high,
                                           .coverage = n->coverage };
        buf_append(out, &record, sizeof record);
        buf_append(out, n->name, n->len);
        for (size_t i = 0; i < n->word_count; i++) {
            const uint32_t len = (uint32_t)n->word_lens[i];
            buf_append(out, &len, sizeof len);
            buf_append(out, n->words[i], len);
        }
    }
    return out->error;
}

struct cursor {
    const char *at;
    size_t left;
};

static bool take(struct cursor *c, void *out, size_t len)
{
    if (c->left < len)
        return false;
    memcpy(out, c->at, len);
    c->at += len;
    c->left -= len;
    return true;
}

static const char *take_text(struct cursor *c, struct arena *arena, size_t len)
{
    if (c->left < len)
        return NULL;
    const char *copy = arena_strndup(arena, c->at, len);
    c->at += len;
    c->left -= len;
    return copy;
}

static bool take_name(struct cursor *c, struct arena *arena, struct embed_name *ret)
{
    struct space_name record;
    if (!take(c, &record, sizeof record) || record.words > EMBED_WORDS)
        return false;
    struct embed_name n = { .len = record.len,
                            .is_text = record.is_text,
                            .is_log = record.is_log,
                            .low = record.low,
                            .high = record.high,
                            .coverage = record.coverage,
                            .word_count = record.words };
    n.name = take_text(c, arena, n.len);
    n.words = arena_alloc_array(arena, n.word_count + 1, sizeof *n.words);
    n.word_lens = arena_alloc_array(arena, n.word_count + 1, sizeof *n.word_lens);
    if (!n.name || !n.words || !n.word_lens ||
        (!n.is_text && !(n.low < n.high && isfinite(n.low) && isfinite(n.high))) ||
        (n.is_log && !(n.low > 0)))
        return false;
    for (size_t i = 0; i < n.word_count; i++) {
        uint32_t len;
        if (!take(c, &len, sizeof len) || !(n.words[i] = take_text(c, arena, len)))
            return false;
        n.word_lens[i] = len;
    }
    *ret = n;
    return true;
}

int embed_space_read(const void *bytes, size_t len, struct embed_space *ret_space)
{
    struct cursor c = { bytes, len };
    struct space_head head;
    struct embed_space space = { .arena = ARENA_INIT };
    if (!take(&c, &head, sizeof head) || memcmp(head.magic, "SondeSpc", 8) != 0 ||
        head.count > EMBED_NAMES || head.dims % 4 || head.dims == 0 ||
        (uint64_t)head.count * head.dims > EMBED_DIMS)
        return SONDE_E_FORMAT;
    space.names = arena_alloc_array(&space.arena, head.count + 1, sizeof *space.names);
    bool good = space.names != NULL;
    for (; good && space.count < head.count; space.count++)
        good = take_name(&c, &space.arena, &space.names[space.count]);
    if (!good || c.left) {
        embed_space_release(&space);
        return SONDE_E_FORMAT;
    }
    space.dims = head.dims;
    space.learned_from = head.learned_from;
    space.fingerprint = head.fingerprint;
    *ret_space = space;
    return 0;
}
