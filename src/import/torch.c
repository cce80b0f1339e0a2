/* torch.c: names of Kineto. See torch.h.
 *
 * Facts about them, from traces of torch 1.13 and 2.11: steps are annotations
 * "ProfilerStep#N" on the thread that called prof.step(); the loader's wait is
 * "enumerate(DataLoader)#TYPE.__next__"; optimizers are "Optimizer.step#NAME.step" and
 * "Optimizer.zero_grad#NAME.zero_grad"; backward operators run inside
 * "autograd::engine::evaluate_function: NAMEBackward0", on the caller's thread for CPU
 * tensors and on one of the engine's for CUDA; kernels have categories of their own.
 */
#include "import/torch.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <sonde/sonde.h>

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

bool torch_is_step(const char *name)
{
    return begins(name, "ProfilerStep#");
}

bool torch_is_bookkeeping(const char *name, const char *category)
{
    return strcmp(category, "gpu_user_annotation") == 0 ||
           (strcmp(category, "Trace") == 0 && begins(name, "PyTorch Profiler")) ||
           begins(name, "Iteration Start: PyTorch Profiler") ||
           strcmp(name, "Record Window End") == 0;
}

/* The first rule that fits wins. `category` NULL: any. */
static const struct {
    const char *begins, *contains, *category;
    int phase;
} rules[] = {
    { "enumerate(DataLoader)", NULL, NULL, SONDE_DATA_LOADING },
    { "Optimizer.step", NULL, NULL, SONDE_OPTIMIZER },
    { "Optimizer.zero_grad", NULL, NULL, SONDE_OPTIMIZER },
    { "autograd::engine::evaluate_function", NULL, NULL, SONDE_BACKWARD },
    { NULL, "Backward", "cpu_op", SONDE_BACKWARD },
    { "aten::_local_scalar_dense", NULL, NULL, SONDE_SYNC },
    { "aten::item", NULL, NULL, SONDE_SYNC },
    { "cudaDeviceSynchronize", NULL, NULL, SONDE_SYNC },
    { "cudaStreamSynchronize", NULL, NULL, SONDE_SYNC },
    { "cudaEventSynchronize", NULL, NULL, SONDE_SYNC },
    { "Memcpy HtoD", NULL, NULL, SONDE_TRANSFER },
    { "Memcpy DtoH", NULL, NULL, SONDE_TRANSFER },
    { "aten::to", NULL, NULL, SONDE_TRANSFER },
    { "aten::pin_memory", NULL, NULL, SONDE_TRANSFER },
    { "nccl", NULL, NULL, SONDE_COMMUNICATION },
    { "gloo:", NULL, NULL, SONDE_COMMUNICATION },
    { "record_param_comms", NULL, NULL, SONDE_COMMUNICATION },
    { "c10d::", NULL, NULL, SONDE_COMMUNICATION },
    { "aten::_foreach_norm", NULL, NULL, SONDE_GRADIENT },
    { NULL, "clip_grad", NULL, SONDE_GRADIENT },
    { "DistributedDataParallel.forward", NULL, NULL, SONDE_FORWARD },
    { "aten::", NULL, NULL, SONDE_FORWARD },
    { "nn.Module: ", NULL, NULL, SONDE_FORWARD },
    { "Torch-Compiled Region", NULL, NULL, SONDE_FORWARD },
    { "torch::autograd", NULL, NULL, SONDE_BACKWARD },
};

static bool fits(size_t rule, const struct event_name *n)
{
    if (rules[rule].category && strcmp(rules[rule].category, n->category) != 0)
        return false;
    if (rules[rule].begins && !begins(n->text, rules[rule].begins))
        return false;
    return !rules[rule].contains || strstr(n->text, rules[rule].contains);
}

static bool is_device_category(const char *category)
{
    static const char *const names[] = { "kernel", "gpu_memcpy", "gpu_memset",
                                         "Kernel", "Memcpy",     "Memset" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(category, names[i]) == 0)
            return true;
    return false;
}

/* The letters of a name as our own names are written, without what people put around
 * them: "## Forward pass ##" is "forward_pass". "" when it is too long for one. */
static void plain_name(const char *text, char *to, size_t cap)
{
    while (*text && !isalnum((unsigned char)*text))
        text++;
    size_t len = strlen(text);
    while (len > 0 && !isalnum((unsigned char)text[len - 1]))
        len--;
    if (len >= cap)
        len = 0;
    for (size_t i = 0; i < len; i++)
        to[i] = isalnum((unsigned char)text[i]) ? (char)tolower((unsigned char)text[i])
                                                : '_';
    to[len] = '\0';
}

/* Phases people gave their own annotations: "forward", "## backward ##" … */
static int phase_by_name(const char *text)
{
    static const struct {
        const char *name;
        int phase;
    } others[] = {
        { "forward_pass", SONDE_FORWARD },     { "fwd", SONDE_FORWARD },
        { "backward_pass", SONDE_BACKWARD },   { "bwd", SONDE_BACKWARD },
        { "optimizer_step", SONDE_OPTIMIZER }, { "data_load", SONDE_DATA_LOADING },
        { "dataloader", SONDE_DATA_LOADING },
    };
    char plain[32];
    plain_name(text, plain, sizeof plain);
    for (int phase = 1; phase < SONDE_PHASE_COUNT; phase++)
        if (strcmp(plain, sonde_phase_name(phase)) == 0)
            return phase;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strcmp(plain, others[i].name) == 0)
            return others[i].phase;
    return SONDE_NO_PHASE;
}

void torch_classify(struct event_name *n)
{
    n->is_device = is_device_category(n->category);
    n->is_backward = begins(n->text, "autograd::engine::evaluate_function");
    n->phase = phase_by_name(n->text);
    if (!n->phase)
        n->phase = phase_by_name(n->category); /* as our own export writes it */
    for (size_t i = 0; !n->phase && i < sizeof rules / sizeof *rules; i++)
        if (fits(i, n)) {
            n->phase = rules[i].phase;
            /* Operators serve every phase; outside of all others they are the model's.
             * So does item(): on a tensor of the host, as optimizers count steps, it
             * waits for nobody; where it does, cudaStreamSynchronize is inside. */
            n->is_weak = begins(n->text, "aten::");
        }
    if (n->is_device && n->phase == SONDE_FORWARD)
        n->phase = SONDE_NO_PHASE; /* a kernel's phase is that of who launched it */
}

/* ---- Backward on CUDA --------------------------------------------------------------- */

struct stretch {
    int64_t from, to;
};

struct stretches {
    struct stretch *list;
    size_t count, cap;
};

static int stretch_add(struct stretches *s, int64_t from, int64_t to)
{
    if (s->count == s->cap) {
        const size_t cap = s->cap ? s->cap * 2 : 1024;
        struct stretch *grown = realloc(s->list, cap * sizeof *grown);
        if (!grown)
            return -ENOMEM;
        s->list = grown;
        s->cap = cap;
    }
    s->list[s->count++] = (struct stretch){ from, to };
    return 0;
}

static int by_begin(const void *a, const void *b)
{
    const struct stretch *x = a, *y = b;
    return (x->from > y->from) - (x->from < y->from);
}

/* The engine's work on other threads, with gaps up to a millisecond closed: between two
 * operators the engine looks for the next. */
static int engine_stretches(const struct events *e, uint16_t main_lane,
                            struct stretches *out)
{
    enum { GAP_NS = 1000000 };
    for (size_t i = 0; i < e->count; i++) {
        const struct event *x = &e->list[i];
        if (x->kind != EVENT_ZONE || x->lane == main_lane ||
            !e->names[x->name].is_backward)
            continue;
        if (stretch_add(out, x->ts_ns, x->ts_ns + x->dur_ns) < 0)
            return -ENOMEM;
    }
    if (out->count == 0)
        return 0;
    qsort(out->list, out->count, sizeof *out->list, by_begin);
    size_t kept = 0;
    for (size_t i = 1; i < out->count; i++) {
        struct stretch *last = &out->list[kept];
        if (out->list[i].from <= last->to + GAP_NS) {
            if (out->list[i].to > last->to)
                last->to = out->list[i].to;
        } else {
            out->list[++kept] = out->list[i];
        }
    }
    out->count = kept + 1;
    return 0;
}

/* Whether an outermost zone of the main thread, other than steps and annotations around
 * everything, says itself what the time was. */
static bool explains(const struct events *e, const struct event *x)
{
    return x->kind == EVENT_ZONE && e->names[x->name].phase != SONDE_NO_PHASE;
}

/* The parts of [from, to) in which the main thread has no zone with a phase. */
static int add_waits(struct events *e, const struct event *main, size_t count,
                     size_t *at, uint16_t lane, struct stretch s, uint32_t name)
{
    int64_t free_from = s.from;
    while (*at < count && main[*at].ts_ns < s.to) {
        const struct event *x = &main[*at];
        const int64_t end = x->ts_ns + (x->kind == EVENT_ZONE ? x->dur_ns : 0);
        if (!explains(e, x)) {
            ++*at;
            continue;
        }
        if (end > free_from) {
            if (x->ts_ns > free_from) {
                const struct event wait = { .ts_ns = free_from,
                                            .dur_ns = x->ts_ns - free_from,
                                            .name = name,
                                            .lane = lane,
                                            .kind = EVENT_ZONE };
                const int rc = events_add(e, &wait);
                if (rc < 0)
                    return rc;
            }
            free_from = end;
        }
        if (end > s.to)
            break; /* the next stretch meets it too */
        ++*at;
    }
    if (free_from >= s.to)
        return 0;
    const struct event wait = { .ts_ns = free_from,
                                .dur_ns = s.to - free_from,
                                .name = name,
                                .lane = lane,
                                .kind = EVENT_ZONE };
    return events_add(e, &wait);
}

static long find_main_lane(const struct events *e)
{
    for (size_t i = 0; i < e->lane_count; i++)
        if (e->lanes[i].has_steps)
            return (long)i;
    return -1;
}

int torch_add_backward(struct events *e)
{
    const long lane = find_main_lane(e);
    if (lane < 0)
        return 0;
    struct stretches engine = { 0 };
    int rc = engine_stretches(e, (uint16_t)lane, &engine);
    const long name = rc == 0 && engine.count ? events_name(e, "backward", "sonde")
                                              : -1;
    size_t first = 0, count = 0;
    while (first < e->count && e->list[first].lane != lane)
        first++;
    while (first + count < e->count && e->list[first + count].lane == lane)
        count++;
    /* A copy: adding may move the list. */
    struct event *main = name >= 0 && count ? malloc(count * sizeof *main) : NULL;
    if (name >= 0 && count && !main)
        rc = -ENOMEM;
    if (main) {
        memcpy(main, e->list + first, count * sizeof *main);
        size_t at = 0;
        for (size_t i = 0; rc == 0 && i < engine.count; i++)
            rc = add_waits(e, main, count, &at, (uint16_t)lane, engine.list[i],
                           (uint32_t)name);
        events_sort(e);
    }
    free(main);
    free(engine.list);
    return rc;
}
