/* reader.c: an image becomes answers in nanoseconds and names. See reader.h. */
#include "trace/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/files.h"
#include "trace/file.h"
#include "trace/image.h"

struct trace {
    struct source source;
    struct image image;
    struct clock_table own_clock; /* when the caller gave none */
    const struct clock_table *clock;
    struct trace_info info;
    struct trace_node nodes[MAX_NODES];
    bool node_used[MAX_NODES];
    struct trace_site *sites;
    struct trace_site beyond[BEYOND_PHASES]; /* by phase */
    struct trace_lane *lanes;
    struct trace_frame *frames;
    size_t lane_count;
    struct trace_value *values;
    size_t value_count;
};

/* ---- Conversions ------------------------------------------------------------------ */

static double to_ns(const struct trace *t, uint64_t ticks)
{
    return (double)ticks * t->clock->ns_per_tick;
}

static int64_t to_time(const struct trace *t, uint64_t ticks)
{
    return clock_real_ns(t->clock, ticks);
}

static const char *text(const struct image *im, uint32_t offset)
{
    return offset < im->string_bytes ? im->strings + offset : "";
}

static double mem_mb(uint32_t kb)
{
    return kb == UINT32_MAX ? NAN : kb / 1024.0;
}

/* ---- Clock ------------------------------------------------------------------------ */

static bool this_boot(const struct trace_head *head)
{
    uint8_t id[16] = { 0 };
    return boot_id_read(id) && memcmp(id, head->boot_id, sizeof id) == 0;
}

static int choose_clock(struct trace *t, const struct clock_table *clock)
{
    if (clock && clock->count >= 1) {
        t->clock = clock;
        return 0;
    }
    const struct trace_head *h = &t->image.head;
    int rc = clock_table_build(&h->start, 1, this_boot(h),
                               (enum tick_source)h->tick_source, &t->own_clock);
    t->clock = &t->own_clock;
    return rc;
}

/* ---- Nodes ------------------------------------------------------------------------ */

static double node_std(const struct node_stats *s)
{
    if (s->count < 2)
        return 0;
    long double n = (long double)s->count, sum = (long double)s->total;
    long double squares = (long double)s->square_hi * 18446744073709551616.0L +
                          (long double)s->square_lo;
    long double variance = (squares - sum * sum / n) / (n - 1);
    return variance > 0 ? sqrt((double)variance) : 0;
}

static bool is_span(const struct fold_node *n)
{
    return n->parent == NODE_SPANS;
}

/* "(other paths)" of one phase stands with the outermost zones of its thread. */
static void place_beyond(struct trace_node *out)
{
    out->parent = out->site >> 5 & (ROOT_NODES - 1);
    out->site = TRACE_BEYOND + out->site % BEYOND_PHASES;
}

static void fill_node(struct trace *t, unsigned i)
{
    const struct fold_node *n = &t->image.fold->nodes[i];
    const struct node_stats *s = &n->stats;
    struct trace_node *out = &t->nodes[i];
    *out = (struct trace_node){
        .parent = n->parent < MAX_NODES ? n->parent : TRACE_NO_NODE,
        .site = n->site,
        .count = s->count,
        .total_ns = to_ns(t, s->total),
        .truncated = s->truncated,
        .unbalanced = s->unbalanced,
        .suspended_ns = is_span(n) ? to_ns(t, s->suspended) : 0,
        .elsewhere_ns = is_span(n) ? 0 : to_ns(t, s->suspended),
        .spans_open = s->begun > s->count ? s->begun - s->count : 0,
        .op_count = s->op_count,
        .op_cpu_ns = (double)s->op_cpu_ns,
        .mem_before_mb = s->op_count ? mem_mb(s->mem_before_kb) : NAN,
        .mem_after_mb = s->op_count ? mem_mb(s->mem_after_kb) : NAN,
        .mem_peak_mb = s->op_count ? mem_mb(s->mem_peak_kb) : NAN,
    };
    t->node_used[i] = n->used;
    if (n->site & BEYOND_SITE)
        place_beyond(out);
    if (s->count == 0)
        return;
    out->mean_ns = out->total_ns / (double)s->count;
    out->std_ns = node_std(s) * t->clock->ns_per_tick;
    out->min_ns = to_ns(t, s->min);
    out->max_ns = to_ns(t, s->max);
    out->first_ns = to_time(t, s->first_ticks);
    out->last_ns = to_time(t, s->last_ticks);
}

/* As if the zone ended now (fold.c). */
static void add_open(struct trace *t, const struct fold_lane *l, unsigned depth,
                     double ns)
{
    const unsigned node = l->frames[depth].node;
    const bool beyond = fold_is_beyond(t->image.fold, node);
    const int holder = beyond ? fold_holder(l, depth) : -1;
    if (holder >= 0 && l->frames[holder].node == node)
        return;
    t->nodes[node].total_ns += ns;
    if (holder >= 0)
        t->nodes[l->frames[holder].node].elsewhere_ns += ns;
}

/* Zones still open in a living process: their time so far belongs to their path, or
 * their children would seem to have run outside of them. */
static void add_open_time(struct trace *t)
{
    const struct fold *f = t->image.fold;
    for (unsigned i = 0; i < f->lane_count; i++) {
        const struct fold_lane *l = &f->lanes[i];
        for (unsigned d = 0; l->used && d < l->carry.depth; d++) {
            struct trace_node *n = &t->nodes[l->frames[d].node];
            uint64_t begin = l->frames[d].begin_ticks;
            n->open++;
            if (l->carry.last_ticks > begin && l->frames[d].node != NODE_OTHER)
                add_open(t, l, d, to_ns(t, l->carry.last_ticks - begin));
        }
    }
}

static unsigned root_of(const struct trace *t, unsigned node)
{
    while (t->nodes[node].parent < node)
        node = t->nodes[node].parent;
    return node;
}

static void fill_nodes(struct trace *t)
{
    const unsigned count = t->image.fold->node_count;
    for (unsigned i = 0; i < count; i++)
        fill_node(t, i);
    add_open_time(t);
    for (unsigned i = 0; i < count; i++)
        t->nodes[i].self_ns = t->nodes[i].total_ns - t->nodes[i].elsewhere_ns;
    /* A parent has a smaller number (checked on loading): one pass does depths. */
    for (unsigned i = FIRST_NODE; i < count; i++) {
        if (!t->node_used[i] || t->nodes[i].parent == TRACE_NO_NODE)
            continue;
        struct trace_node *parent = &t->nodes[t->nodes[i].parent];
        t->nodes[i].depth = parent->depth + 1;
        parent->self_ns -= t->nodes[i].total_ns;
    }
    for (unsigned i = FIRST_NODE; i < count; i++)
        if (t->nodes[i].elsewhere_ns > 0)
            t->nodes[root_of(t, i)].self_ns += t->nodes[i].elsewhere_ns;
    for (unsigned i = 0; i < ROOT_NODES; i++) { /* roots have no time of their own */
        t->nodes[i].total_ns = -t->nodes[i].self_ns;
        t->nodes[i].self_ns = 0;
    }
    t->nodes[NODE_SPANS].total_ns = t->nodes[NODE_SPANS].self_ns = 0;
}

/* ---- Names, lanes, values --------------------------------------------------------- */

/* A writer ends what it had to cut with an ellipsis, at most three bytes before the limit:
 * characters stay whole. */
static bool is_cut(const char *text)
{
    static const char ellipsis[] = "\xE2\x80\xA6";
    const size_t len = strlen(text), end = sizeof ellipsis - 1;
    return len + 1 + 3 >= MAX_NAME && strcmp(text + len - end, ellipsis) == 0;
}

static uint64_t count_cut(const struct trace_site *s)
{
    return (uint64_t)is_cut(s->name) + is_cut(s->file) + is_cut(s->component) +
           is_cut(s->category) + is_cut(s->tags);
}

static int fill_sites(struct trace *t)
{
    const struct image *im = &t->image;
    t->sites = calloc((size_t)im->site_count + 1, sizeof *t->sites);
    if (!t->sites)
        return -ENOMEM;
    for (int p = 0; p < BEYOND_PHASES; p++)
        t->beyond[p] = (struct trace_site){ "(other paths)", "", "", "", "", 0, p, 0 };
    for (uint32_t i = 0; i < im->site_count; i++) {
        const struct site_entry *e = &im->sites[i];
        t->sites[i] = (struct trace_site){ text(im, e->name),
                                           text(im, e->file),
                                           text(im, e->component),
                                           text(im, e->category),
                                           text(im, e->tags),
                                           e->line,
                                           e->phase,
                                           e->flags };
        t->info.texts_cut += count_cut(&t->sites[i]);
    }
    return 0;
}

static void fill_lane(struct trace *t, unsigned number, struct trace_frame **frames)
{
    const struct image *im = &t->image;
    const struct fold_lane *l = &im->fold->lanes[number];
    const struct lane_carry *c = &l->carry;
    struct trace_lane *out = &t->lanes[t->lane_count++];
    unsigned open = im->alive ? c->depth : (unsigned)c->left_open;
    *out = (struct trace_lane){
        .number = number,
        .tid = c->tid ? c->tid : im->lane_tid[number],
        .events = c->events,
        .orphan_ends = c->orphan_ends,
        .unbalanced = c->unbalanced,
        .deep_zones = c->deep_zones,
        .steps = c->steps,
        .samples = c->samples,
        .first_time_ns = to_time(t, im->head.start.ticks),
        .last_time_ns = c->last_ticks ? to_time(t, c->last_ticks) : 0,
        .open_count = open,
        .open = *frames,
    };
    out->is_main = out->tid == im->head.pid;
    memcpy(out->name, im->lane_name[number], sizeof out->name);
    for (unsigned i = 0; i < open; i++)
        *(*frames)++ = (struct trace_frame){ l->frames[i].node, l->frames[i].site,
                                             to_time(t, l->frames[i].begin_ticks) };
}

static int fill_lanes(struct trace *t)
{
    const struct fold *f = t->image.fold;
    size_t lanes = 0, frames = 0;
    for (unsigned i = 0; i < f->lane_count; i++) {
        lanes += f->lanes[i].used;
        frames += f->lanes[i].used ? lane_frames(&f->lanes[i].carry) : 0;
    }
    t->lanes = calloc(lanes + 1, sizeof *t->lanes);
    t->frames = calloc(frames + 1, sizeof *t->frames);
    if (!t->lanes || !t->frames)
        return -ENOMEM;
    struct trace_frame *next = t->frames;
    for (unsigned i = 0; i < f->lane_count; i++)
        if (f->lanes[i].used)
            fill_lane(t, i, &next);
    return 0;
}

static int fill_values(struct trace *t)
{
    const struct fold *f = t->image.fold;
    t->values = calloc((size_t)f->value_count + 1, sizeof *t->values);
    if (!t->values)
        return -ENOMEM;
    for (unsigned i = 0; i < f->value_count; i++) {
        const struct fold_value *v = &f->values[i];
        if (v->kind > VALUE_METRIC || (v->node != 0xffff && v->node >= MAX_NODES))
            continue;
        t->values[t->value_count++] = (struct trace_value){
            .node = v->node == 0xffff ? TRACE_NO_NODE : v->node,
            .name = trace_site(t, v->name)->name,
            .kind = (enum value_kind)v->kind,
            .count = v->stats.count,
            .sum = v->stats.sum,
            .min = v->stats.min,
            .max = v->stats.max,
            .last = v->stats.last,
            .last_time_ns = to_time(t, v->stats.last_ticks),
        };
    }
    return 0;
}

/* ---- Summary ---------------------------------------------------------------------- */

/* Every lane that ever had a block still has its first: the oldest go first. */
static bool complete_timeline(const struct image *im)
{
    size_t at = 0;
    for (unsigned lane = 0; lane < im->fold->lane_count; lane++) {
        const struct fold_lane *l = &im->fold->lanes[lane];
        while (at < im->event_count && im->events[at].lane < lane)
            at++;
        bool first = at < im->event_count && im->events[at].lane == lane &&
                     im->events[at].seq == 1;
        if (l->used && l->carry.next_seq > 1 && !first)
            return false;
    }
    return true;
}

static void fill_info(struct trace *t)
{
    const struct image *im = &t->image;
    const struct trace_live *live = &im->live;
    struct trace_info *info = &t->info;
    const struct node_stats *losses = &im->fold->nodes[NODE_LOSSES].stats;
    info->pid = im->head.pid;
    info->ppid = im->head.ppid;
    info->alive = im->alive;
    info->exited = live->flags & LIVE_EXITED;
    info->forked = im->head.forked_from_ns != 0;
    memcpy(info->exe, im->head.exe, sizeof info->exe - 1);
    memcpy(info->role, im->head.role, sizeof info->role - 1);
    info->level = im->head.level;
    info->start_ns = to_time(t, im->head.start.ticks);
    info->ns_per_tick = t->clock->ns_per_tick;
    info->clock_error_ns = t->clock->error_ns;
    info->lost = live->lost;
    info->lost_reason = (unsigned)live->lost_reason;
    info->filtered = live->filtered;
    info->names_lost = live->names_lost;
    info->paths_lost = im->fold->nodes[NODE_OTHER].stats.count;
    for (unsigned i = FIRST_NODE; i < im->fold->node_count; i++)
        if (fold_is_beyond(im->fold, i))
            info->paths_lost += im->fold->nodes[i].stats.count;
    info->steps = live->steps;
    info->self_folds = live->self_folds;
    info->waits = live->waits;
    info->wait_ns = (double)live->wait_ns;
    info->unrecorded_ns = (double)live->unrecorded * t->clock->ns_per_tick;
    info->shut_since_ns = live->shut_ticks ? to_time(t, live->shut_ticks) : 0;
    info->event_cost_ns = im->head.event_cost_ps ? (double)im->head.event_cost_ps / 1000
                                                 : NAN;
    info->unfolded_blocks = im->unfolded_blocks;
    info->timeline_complete = complete_timeline(im);
    info->last_ns = info->start_ns;
    for (size_t i = 0; i < t->lane_count; i++) {
        const struct fold_lane *l = &im->fold->lanes[t->lanes[i].number];
        info->events += l->carry.events;
        info->holes += l->carry.holes;
        if (t->lanes[i].last_time_ns > info->last_ns)
            info->last_ns = t->lanes[i].last_time_ns;
    }
    info->lost += info->holes + losses->total; /* values past MAX_VALUES */
    if (info->holes)
        info->lost_reason |= LOST_HOLE;
    for (size_t i = 0; i < im->event_count; i++)
        info->timeline_words += im->events[i].packed_len ? im->events[i].packed_len / 3
                                                         : EVENTS_WORDS;
    info->timeline_zones = info->timeline_words / 2;
}

/* ---- Opening ---------------------------------------------------------------------- */

static int open_source(const struct source *source, const struct clock_table *clock,
                       struct trace **ret_trace)
{
    struct trace *t = calloc(1, sizeof *t);
    if (!t)
        return -ENOMEM;
    t->source = *source;
    int rc = image_load(&t->source, &t->image);
    if (rc < 0) {
        free(t);
        return rc;
    }
    rc = choose_clock(t, clock);
    if (rc == 0)
        rc = fill_sites(t);
    if (rc == 0) {
        fill_nodes(t);
        rc = fill_lanes(t);
    }
    if (rc == 0)
        rc = fill_values(t);
    if (rc < 0) {
        t->source.fd = -1; /* both stay the caller's */
        t->source.memory = NULL;
        trace_free(t);
        return rc;
    }
    fill_info(t);
    *ret_trace = t;
    return 0;
}

int trace_open(const char *path, const struct clock_table *clock,
               struct trace **ret_trace)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return -errno;
    struct stat st;
    int rc = 0;
    if (fstat(fd, &st) != 0)
        rc = -errno;
    else if (!S_ISREG(st.st_mode))
        rc = SONDE_E_FORMAT;
    const struct source source = { .fd = fd,
                                   .len = rc == 0 ? (uint64_t)st.st_size : 0 };
    struct trace *t = NULL;
    if (rc == 0)
        rc = open_source(&source, clock, &t);
    if (rc < 0 || !t) {
        (void)close(fd);
        return rc;
    }
    snprintf(t->info.file, sizeof t->info.file, "%s", path_base(path));
    t->info.file_bytes = (uint64_t)st.st_size;
    t->info.disk_bytes = (uint64_t)st.st_blocks * 512;
    *ret_trace = t;
    return 0;
}

int trace_open_bytes(const void *bytes, size_t len, const struct clock_table *clock,
                     struct trace **ret_trace)
{
    uint8_t *copy = malloc(len ? len : 1);
    if (!copy)
        return -ENOMEM;
    memcpy(copy, bytes, len);
    const struct source source = { .fd = -1, .memory = copy, .len = len };
    int rc = open_source(&source, clock, ret_trace);
    if (rc < 0)
        free(copy);
    return rc;
}

void trace_free(struct trace *t)
{
    if (!t)
        return;
    uint32_t owner = t->image.packed ? 0 : t->image.head.pid;
    image_release(&t->image);
    clock_table_release(&t->own_clock);
    free(t->sites);
    free(t->lanes);
    free(t->frames);
    free(t->values);
    if (t->source.fd >= 0)
        tracefile_read_close(t->source.fd, owner);
    free((void *)(uintptr_t)t->source.memory);
    free(t);
}

/* ---- Answers ---------------------------------------------------------------------- */

const struct trace_info *trace_info(const struct trace *t)
{
    return &t->info;
}

const char *trace_damage(const struct trace *t)
{
    return t->image.damage;
}

size_t trace_node_count(const struct trace *t)
{
    return t->image.fold->node_count < MAX_NODES ? t->image.fold->node_count
                                                 : MAX_NODES;
}

const struct trace_node *trace_node(const struct trace *t, unsigned node)
{
    return node < MAX_NODES && t->node_used[node] ? &t->nodes[node] : NULL;
}

const struct trace_site *trace_site(const struct trace *t, unsigned site)
{
    static const struct trace_site unknown = { "?", "", "", "", "", 0, 0, 0 };
    if (site > TRACE_BEYOND && site < TRACE_BEYOND + BEYOND_PHASES)
        return &t->beyond[site - TRACE_BEYOND];
    if (site == 0 || site >= t->image.site_count || !t->sites[site].name[0])
        return &unknown;
    return &t->sites[site];
}

size_t trace_site_count(const struct trace *t)
{
    return t->image.site_count;
}

size_t trace_lane_count(const struct trace *t)
{
    return t->lane_count;
}

const struct trace_lane *trace_lane(const struct trace *t, unsigned index)
{
    return index < t->lane_count ? &t->lanes[index] : NULL;
}

size_t trace_value_count(const struct trace *t)
{
    return t->value_count;
}

const struct trace_value *trace_value(const struct trace *t, unsigned index)
{
    return index < t->value_count ? &t->values[index] : NULL;
}

void trace_node_histogram(const struct trace *t, unsigned node, trace_bucket_fn *visit,
                          void *arg)
{
    if (node >= MAX_NODES)
        return;
    const struct fold *f = t->image.fold;
    const struct node_stats *s = &f->nodes[node].stats;
    for (unsigned octave = 0; octave < LOGHIST_CHUNKS; octave++) {
        if (!s->chunk[octave])
            continue;
        const uint64_t *counts = f->chunks[s->chunk[octave] - 1];
        for (unsigned sub = 0; sub < LOGHIST_SUBS; sub++)
            if (counts[sub])
                visit(arg, loghist_middle(octave, sub) * t->clock->ns_per_tick,
                      counts[sub]);
    }
}

struct quantile {
    double target, before, value;
    bool found;
};

static void sum_bucket(void *arg, double middle, uint64_t count)
{
    (void)middle;
    *(double *)arg += (double)count;
}

static void find_bucket(void *arg, double middle, uint64_t count)
{
    struct quantile *q = arg;
    q->before += (double)count;
    if (!q->found && q->before >= q->target) {
        q->value = middle;
        q->found = true;
    }
}

double trace_node_quantile(const struct trace *t, unsigned node, double q)
{
    double total = 0;
    trace_node_histogram(t, node, sum_bucket, &total);
    if (total == 0)
        return NAN;
    struct quantile find = { .target = fmax(1, ceil(q * total)) };
    trace_node_histogram(t, node, find_bucket, &find);
    /* A bucket's middle may lie outside what was seen. */
    return fmin(fmax(find.value, t->nodes[node].min_ns), t->nodes[node].max_ns);
}

/* ---- Timeline --------------------------------------------------------------------- */

struct walk {
    const struct trace *trace;
    trace_event_fn *visit;
    void *arg;
    uint64_t ticks;
};

static double mem_of(uint64_t kb)
{
    return mem_mb(kb > UINT32_MAX ? UINT32_MAX : (uint32_t)kb);
}

/* Fills `e` from a longer record; the number of payload words it needs, −1 for a
 * record that is no event. */
static int decode_record(const struct trace *t, unsigned tag, const uint64_t *p,
                         struct trace_event *e)
{
    uint64_t bits;
    switch (tag) {
    case TAG_VALUE:
        e->kind = TRACE_VALUE;
        e->site = (unsigned)(p[0] >> 32) & (MAX_SITES - 1);
        e->sub = (unsigned)(p[1] >> 32) & 0xff;
        bits = (p[0] & 0xffffffff) << 32 | (p[1] & 0xffffffff);
        memcpy(&e->value, &bits, sizeof e->value);
        return e->sub <= VALUE_METRIC ? 2 : -1;
    case TAG_STEP:
        e->kind = TRACE_STEP;
        e->sub = (unsigned)(p[0] >> STEP_KIND_SHIFT) & 0xff;
        e->number = p[0] & STEP_SAMPLES_MASK;
        if (e->sub == STEP_END) {
            e->wall_ns = to_ns(t, e->number << STEP_AGO_SHIFT);
            e->number = 0;
        }
        return e->sub <= STEP_SAMPLES ? 1 : -1;
    case TAG_THREAD:
        e->kind = TRACE_THREAD;
        e->number = p[0];
        return 1;
    case TAG_OP:
        e->kind = TRACE_OP;
        e->cpu_ns = (double)p[0];
        e->mem_before_mb = mem_of(p[1]);
        e->mem_after_mb = mem_of(p[2]);
        e->mem_peak_mb = mem_of(p[3]);
        return 4;
    case TAG_SPAN:
        e->kind = TRACE_SPAN;
        e->site = (unsigned)(p[0] >> 32) & (MAX_SITES - 1);
        e->sub = (unsigned)(p[0] >> 24) & 0xff;
        e->number = p[0] & 0xffffff;
        e->active_ns = to_ns(t, p[1]);
        e->wall_ns = to_ns(t, p[2]);
        return e->sub <= SPAN_END ? 3 : -1;
    case TAG_MARK:
        e->kind = TRACE_MARK;
        e->site = (unsigned)p[0] & (MAX_SITES - 1);
        return 1;
    case TAG_LOST:
        e->kind = TRACE_LOST;
        e->number = p[0];
        return 1;
    case TAG_FILTERED:
        e->kind = TRACE_FILTERED;
        e->number = p[0];
        return 1;
    default:
        return -1;
    }
}

static int walk_words(struct walk *w, unsigned lane, const uint64_t *words,
                      size_t count)
{
    for (size_t i = 0; i < count; i++) {
        unsigned tag = words[i] & 0xffff;
        if (words[i] == 0 || tag == TAG_PAD || tag == TAG_CONT)
            continue;
        int64_t passed = (int64_t)((words[i] & ~0xffffULL) - (w->ticks << 16)) >> 16;
        w->ticks += passed > 0 ? (uint64_t)passed : 0;
        struct trace_event e = { .time_ns = to_time(w->trace, w->ticks), .lane = lane };
        if (tag >= 16) {
            e.kind = tag & 1 ? TRACE_END : TRACE_BEGIN;
            e.site = tag >> 1;
        } else {
            uint64_t p[4] = { 0 };
            unsigned have = 0;
            while (have < 4 && i + 1 + have < count &&
                   (words[i + 1 + have] & 0xffff) == TAG_CONT) {
                p[have] = words[i + 1 + have] >> 16;
                have++;
            }
            int need = decode_record(w->trace, tag, p, &e);
            if (need < 0 || (unsigned)need > have)
                continue;
        }
        int rc = w->visit(w->arg, &e);
        if (rc != 0)
            return rc;
    }
    return 0;
}

int trace_events(const struct trace *t, trace_event_fn *visit, void *arg)
{
    const struct image *im = &t->image;
    uint64_t *words = malloc(EVENTS_WORDS * sizeof *words);
    if (!words)
        return -ENOMEM;
    struct walk w = { t, visit, arg, 0 };
    uint32_t lane = UINT32_MAX;
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < im->event_count; i++) {
        const struct event_block *b = &im->events[i];
        uint64_t base = 0;
        int n = image_words(im, b, words, &base);
        if (n <= 0)
            continue; /* recycled meanwhile, or damaged: the statistics have it */
        w.ticks = fold_start(words, (size_t)n, base, b->lane == lane ? w.ticks : 0);
        lane = b->lane;
        rc = walk_words(&w, lane, words, (size_t)n);
    }
    free(words);
    return rc;
}
