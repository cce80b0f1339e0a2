/* whatif.c: see whatif.h.
 *
 * Costs of shipping, where the run had no workers and nobody could measure them: a fresh
 * shared mapping per batch took 4.2 ms for 4.9 MB in the worker on one machine, and
 * 0.72 ms for 0.6 MB on another; receiving limited the second one to 2,920 samples of
 * 0.6 MB a second (BUDGETS). With a byte in every page touched twice that is what page
 * faults cost.
 *
 * Cores: two busy hardware threads of one core do about 1.3 times the work of one, and
 * guests do not always say which of theirs are such pairs. Two workers on two cores beside
 * the step did 0.67 (hydrophone_calls, spinning threads in each) of what the CPU time of a
 * run without workers promised, the measured case with large batches 0.65; others nearly
 * all of it (thread_of_worker). Other programs take cores too: how much of that is felt
 * depends on who the scheduler favours. For the same reason the main thread computes
 * faster once workers leave its core's other thread alone: by 1 − 0.65 where there are
 * such pairs, not at all where there are none. Of eight programs whose workers were
 * relieved of their work on a machine with two cores the CPU time of a step stayed what it
 * was in seven: the usual answer has none of it, the range has it.
 */
#include "analyse/whatif.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCHES = 400, SETTLED = 100, WORKERS_MAX = 512, AHEAD_MAX = 4096 };

struct costs {
    double ship_ns_per_mb, receive_ns_per_mb;
    double thread; /* what a core's second thread is worth: 0.5 none, 1 a core */
    double taken;  /* of the cores that others use: lost to the run */
    double shared; /* of the main thread's speed: lost while all other cores are busy */
};
static const struct costs usual = { 1.15e6, 0.60e6, 0.72, 0.3, 0 };
static const struct costs cheap = { 0.70e6, 0.40e6, 1.00, 0, 0.35 };
static const struct costs dear = { 1.50e6, 0.80e6, 0.50, 0.7, 0 };

/* Two bounds that are near each other are both felt. */
static double both(double a, double b)
{
    const double high = fmax(a, b);
    const double low = fmin(a, b);
    return high > 0 ? high * pow(1 + pow(low / high, 6), 1.0 / 6) : 0;
}

/* ---- Times per batch with given settings ---------------------------------------------- */

struct times {
    double make, make_cpu, ship, receive, compute, compute_cpu;
    bool even;
};

static double known_or(double value, double otherwise)
{
    return isnan(value) ? otherwise : value;
}

/* Shared batches cost the main thread outside of fetching too: its first touch of every
 * page, and giving back the pages with the mapping, 0.1 and 0.2 ms for a MiB of /dev/shm in
 * a program that does nothing else. Without workers batches are its own memory. */
static const double SHARED_USE_NS_PER_MB = 0.3e6;

static double shared_use(const struct pipeline *p, const struct settings *s)
{
    const double mb = p->workers > 0 && s->workers == 0 ? known_or(p->batch_mb, 0) : 0;
    return fmin(SHARED_USE_NS_PER_MB * mb, 0.5 * p->compute_ns);
}

/* What the main thread's own work takes when workers have only `factor` of theirs left, or
 * there are none any more: cores, and halves of cores, that it had to share are its
 * own. */
static double compute_beside(const struct pipeline *p, const struct settings *s,
                             const struct costs *costs, double factor)
{
    if (p->workers == 0)
        return p->compute_ns;
    const double gone = s->workers > 0 ? 1 - factor : 1;
    const double others = fmax(p->cores - 1, 1);
    const double busy = known_or(p->make_cpu_ns, p->make_ns) / p->step_ns / others;
    const double alone = p->compute_ns - known_or(p->compute_wait_ns, 0) * gone;
    return fmax(alone, 0) * (1 - costs->shared * fmin(busy, 1) * gone);
}

/* While a batch is made or waited for, the step's code and weights leave the caches, and
 * the step begins cold. In a program that steps a small model with and without other
 * work in between (one thread, CPU time) a step took 0.1 to 0.2 ms more after 1 ms, 0.3
 * after 10 and 0.5 to 0.6 after 30, for 10 or 50 operators alike. Of fifteen programs whose
 * loading, collecting or preparing in the main process was cured, computing became faster by
 * 1.0 ms times idle / (idle + 10 ms) in the middle (0.5 to 1.7); of steps so short that
 * this is most of them, by 0.55 to 0.8 of what they took. */
double whatif_cold_ns(double compute_ns, double idle_ns)
{
    const double most = fmin(1e6, 0.6 * compute_ns);
    return most * idle_ns / (idle_ns + 10e6);
}

/* How long the main thread does not compute between two steps, about. */
static double idle_between(const struct pipeline *p, const struct settings *s,
                           double factor)
{
    const double make = p->make_ns * factor;
    if (s->workers <= 0)
        return make;
    return fmax(make / s->workers - p->compute_ns, 0) + known_or(p->receive_ns, 0);
}

static double warmer_by(const struct pipeline *p, const struct settings *s,
                        double factor)
{
    const struct settings now = whatif_now(p);
    const double was = whatif_cold_ns(p->compute_ns, idle_between(p, &now, 1));
    const double is = whatif_cold_ns(p->compute_ns, idle_between(p, s, factor));
    return fmax(was - is, 0);
}

static double receive_beside(const struct pipeline *p, const struct costs *costs,
                             double factor)
{
    const double usual_ns = known_or(p->receive_ns, known_or(p->batch_mb, 0) *
                                                        costs->receive_ns_per_mb);
    const double idle = p->receive_idle_ns > 0 ? fmin(p->receive_idle_ns, usual_ns)
                                               : usual_ns;
    return idle + (usual_ns - idle) * factor;
}

double whatif_copy_ns(double mb)
{
    return isnan(mb) ? 0 : 0.1e6 + 0.3e6 * mb;
}

/* In a worker torch's collate writes into a fresh shared mapping, page fault by page fault;
 * in the main process it is a copy into memory that the allocator has. */
static double unshared_by(const struct pipeline *p, const struct settings *s,
                          const struct costs *costs)
{
    if (p->workers == 0 || s->workers > 0 || !(p->shared_collate_ns > 0))
        return 0;
    const double faults = p->shared_collate_ns - whatif_copy_ns(p->batch_mb);
    return fmax(fmin(faults, costs->ship_ns_per_mb * known_or(p->batch_mb, 0)), 0);
}

/* Of the time to make a batch: what is left with other transforms, or another collate
 * function. A part of it is one or the other. */
static double made_faster(const struct pipeline *p, const struct settings *s)
{
    const double speed = s->transform_speed > 0 ? s->transform_speed : 1;
    const double joins = s->collate_speed > 0 ? s->collate_speed : 1;
    const double collate = joins > 1 || joins < 1
                               ? fmin(fmax(known_or(p->collate_share, 0), 0), 1)
                               : 0;
    const double share = fmin(fmax(known_or(p->transform_share, 1), 0), 1 - collate);
    return 1 - share - collate + share / speed + collate / joins;
}

static struct times times_of(const struct pipeline *p, const struct settings *s,
                             const struct costs *costs)
{
    const double part = s->make_part > 0 ? fmin(s->make_part, 1) : 1;
    const double factor = s->data_free ? 0 : part * made_faster(p, s);
    const double mb = known_or(p->batch_mb, 0);
    const double warm = warmer_by(p, s, factor);
    const double unshared = unshared_by(p, s, costs);
    struct times t = {
        .make = fmax(p->make_ns - unshared, 0) * factor,
        .make_cpu = fmax(known_or(p->make_cpu_ns, p->make_ns) - unshared, 0) * factor,
        .ship = known_or(p->ship_ns, mb * costs->ship_ns_per_mb),
        .receive = receive_beside(p, costs, factor),
        .compute = compute_beside(p, s, costs, factor) - warm,
        .compute_cpu = known_or(p->compute_cpu_ns, p->compute_ns) - warm,
        .even = s->even,
    };
    const double less = s->compute_less_ns + shared_use(p, s);
    t.compute = fmax(t.compute - less, 0);
    t.compute_cpu = fmax(t.compute_cpu - less, 0);
    if (s->workers == 0)
        t.ship = t.receive = 0;
    return t;
}

/* ---- Played through ---------------------------------------------------------------------- */

/* The i-th of evenly spread quantiles, in an order that looks random: the tail comes as
 * often as it came, and the same numbers come out every time. */
static double nth_make(const struct pipeline *p, const struct times *t, int i)
{
    double whole;
    if (!p->make || p->make->count < 20 || t->even)
        return t->make;
    const double u = modf((i + 0.5) * 0.6180339887498949, &whole);
    const double value = distribution_quantile(p->make, fmin(fmax(u, 1e-3), 1));
    return p->make->mean > 0 ? value / p->make->mean * t->make : t->make;
}

struct play {
    double *taken; /* when the main thread took batch i */
    double free_at[WORKERS_MAX];
};

/* When the main thread is through with batch i. */
static double play_batch(struct play *play, const struct pipeline *p,
                         const struct settings *s, const struct times *t, int i,
                         double ready)
{
    const int worker = i % s->workers;
    const int ahead = s->workers * s->prefetch;
    const double asked = i >= ahead ? play->taken[i - ahead] : 0;
    const double begun = fmax(play->free_at[worker], asked);
    const double made = begun + nth_make(p, t, i) + t->ship;
    play->free_at[worker] = made;
    play->taken[i] = fmax(ready, made) + t->receive;
    return play->taken[i] + t->compute;
}

/* Mean time of a step once it runs steadily. */
static double play_through(const struct pipeline *p, const struct settings *s,
                           const struct times *t)
{
    static const double nothing = NAN;
    struct play play = { .taken = malloc(BATCHES * sizeof *play.taken) };
    double ready = 0;
    double from = 0;
    if (!play.taken)
        return nothing;
    for (int i = 0; i < BATCHES; i++) {
        ready = play_batch(&play, p, s, t, i, ready);
        if (i == SETTLED - 1)
            from = ready;
    }
    free(play.taken);
    return (ready - from) / (BATCHES - SETTLED);
}

/* What a worker's core is worth where there were none, samples are arithmetic (they neither
 * wait nor are mostly pages to ship) and one thread computes: CPU time of samples and
 * steps stayed what it was when two workers did them on two cores beside the step, but
 * for the pages they ship (star_plates, weld_seams, engine_hum; both cores were in use 92
 * to 93 % of the time). Where a pool of BLAS's threads spins for work in the one process,
 * every worker has such a pool, and those took 0.29 of the work's time
 * (hydrophone_calls). */
static const double WORKER_CORE = 0.95, BESIDE_SPINNING = 0.70;

static double thread_of_worker(const struct pipeline *p, const struct times *t,
                               const struct costs *costs)
{
    const double spins = fmin(fmax(known_or(p->spinning_cores, 0), 0), 1);
    const bool alone = t->compute_cpu <= 1.05 * t->compute &&
                       t->make_cpu >= 0.9 * t->make && t->ship <= 0.25 * t->make;
    const bool likely = costs->thread > dear.thread && costs->thread < cheap.thread;
    return p->workers == 0 && alone && likely
               ? WORKER_CORE - (WORKER_CORE - BESIDE_SPINNING) * spins
               : costs->thread;
}

/* What the cores need for a step, were they all always busy. */
static double cores_bound(const struct pipeline *p, const struct settings *s,
                          const struct times *t, const struct costs *costs)
{
    const double lost = costs->taken * known_or(p->foreign_cores, 0);
    const double cores = fmax(p->cores - lost, 1);
    const double beside = t->make_cpu / thread_of_worker(p, t, costs) +
                          t->ship / costs->thread + t->receive;
    /* Many processes take turns: caches are filled again each time. */
    const double crowd = fmax((s->workers + 1) / cores - 1, 0);
    return (t->compute_cpu + beside) / cores * (1 + 0.03 * fmin(crowd, 5));
}

static double model(const struct pipeline *p, const struct settings *s,
                    const struct costs *costs, struct forecast *ret_forecast)
{
    const struct times t = times_of(p, s, costs);
    if (s->data_free) {
        ret_forecast->limit = LIMIT_COMPUTE;
        return t.compute;
    }
    if (s->workers <= 0) {
        ret_forecast->limit = t.make > t.compute ? LIMIT_MAKING : LIMIT_COMPUTE;
        return t.make + t.compute;
    }
    const double played = play_through(p, s, &t);
    const double bound = cores_bound(p, s, &t, costs);
    const double main_ns = t.compute + t.receive;
    ret_forecast->limit = bound > played           ? LIMIT_CORES
                          : played > 1.1 * main_ns ? LIMIT_MAKING
                          : t.receive > t.compute  ? LIMIT_SHIPPING
                                                   : LIMIT_COMPUTE;
    /* A core for each of them: nobody has to wait for one. */
    return p->cores > s->workers + 1 && bound < played ? played : both(played, bound);
}

/* ---- Questions ----------------------------------------------------------------------------- */

struct settings whatif_now(const struct pipeline *p)
{
    return (struct settings){ .workers = p->workers,
                              .prefetch = p->prefetch >= 1 ? p->prefetch : 2,
                              .transform_speed = 1 };
}

/* The run itself must come out as it was; a model that is far off is not stretched to
 * fit more than this. What it misses belongs mostly to what limits the run: where
 * something else would, half of it is carried over. */
static double correction(const struct pipeline *p, const struct costs *costs,
                         enum forecast_limit limit)
{
    struct forecast as_it_was = { .limit = LIMIT_COMPUTE };
    const struct settings now = whatif_now(p);
    const double ratio = p->step_ns / model(p, &now, costs, &as_it_was);
    if (!isfinite(ratio))
        return 1;
    const double bounded = fmin(fmax(ratio, 0.6), 1.7);
    return as_it_was.limit == limit ? bounded : sqrt(bounded);
}

/* Where workers kept all cores busy, CPU times are of threads that shared cores already,
 * and what such a thread is worth is measured: all of them together took the step. */
static struct costs costs_of_run(const struct pipeline *p, const struct costs *assumed)
{
    struct costs c = *assumed;
    struct forecast as_it_was = { .limit = LIMIT_COMPUTE };
    const struct settings now = whatif_now(p);
    if (p->workers == 0 || !(model(p, &now, &c, &as_it_was) > 0) ||
        as_it_was.limit != LIMIT_CORES)
        return c;
    const struct times t = times_of(p, &now, &c);
    const double beside = p->cores * p->step_ns - t.compute_cpu - t.receive;
    const double thread = beside > 0 ? (t.make_cpu + t.ship) / beside : 1;
    c.thread = fmin(fmax(thread, 0.5), 1);
    return c;
}

static double corrected(const struct pipeline *p, const struct settings *s,
                        const struct costs *assumed, struct forecast *ret_forecast)
{
    const struct costs costs = costs_of_run(p, assumed);
    const double ns = model(p, s, &costs, ret_forecast);
    /* What it misses of a run with workers are they and their batches on the way, mostly:
     * it goes with them. */
    if (p->workers > 0 && s->workers == 0)
        return ns;
    return ns * correction(p, &costs, ret_forecast->limit);
}

double forecast_unsure(double gain)
{
    return 1.08 + 0.27 * sqrt(fmin(fmax(gain, 0), 1));
}

/* Run to run it moves by some percent, on a machine with others by more (they may be gone
 * by then, and nobody waits for a core any longer), and every doubling of the workers is a step further from what was measured. */
static void widen(const struct pipeline *p, const struct settings *s,
                  struct forecast *f)
{
    const double steps = fabs(log2((s->workers + 1.0) / (p->workers + 1.0)));
    const double others = p->cores > 0
                              ? fmin(known_or(p->foreign_cores, 0) / p->cores, 1)
                              : 0;
    const double unsure = forecast_unsure(1 - f->step_ns / p->step_ns);
    f->low_ns = fmin(f->low_ns, f->step_ns / unsure) *
                (0.95 - 0.02 * fmin(steps, 5) - 0.4 * others);
    f->high_ns = fmax(f->high_ns, unsure * f->step_ns) *
                 (1.05 + 0.03 * steps + 0.2 * others);
}

struct forecast whatif_predict(const struct pipeline *p, const struct settings *s)
{
    struct settings asked = *s;
    struct forecast f = { NAN, NAN, NAN, NAN, LIMIT_COMPUTE };
    struct forecast other = f;
    if (asked.workers > WORKERS_MAX)
        asked.workers = WORKERS_MAX;
    if (asked.prefetch < 1)
        asked.prefetch = 1;
    if (asked.workers > 0 && asked.prefetch > AHEAD_MAX / asked.workers)
        asked.prefetch = AHEAD_MAX / asked.workers;
    const double low = corrected(p, &asked, &cheap, &other);
    const double high = corrected(p, &asked, &dear, &other);
    f.step_ns = corrected(p, &asked, &usual, &f);
    f.low_ns = fmin(low, high);
    f.high_ns = fmax(low, high);
    widen(p, &asked, &f);
    f.wait_ns = fmax(f.step_ns - p->compute_ns, 0);
    return f;
}

struct settings whatif_best(const struct pipeline *p)
{
    static const int counts[] = { 0, 1, 2, 3, 4, 6, 8, 10, 12, 16, 24, 32 };
    enum { COUNTS = sizeof counts / sizeof *counts };
    const int most = p->cores > 0 ? (int)fmax(4 * p->cores, 8) : 8;
    double ns[COUNTS] = { 0 };
    double least = INFINITY;
    struct settings s = whatif_now(p);
    for (int i = 0; i < COUNTS && counts[i] <= most; i++) {
        s.workers = counts[i];
        ns[i] = whatif_predict(p, &s).step_ns;
        least = fmin(least, ns[i]);
    }
    for (int i = 0; i < COUNTS && counts[i] <= most; i++)
        if (ns[i] <= 1.03 * least) {
            s.workers = counts[i];
            break;
        }
    return s;
}

const char *forecast_limit_name(enum forecast_limit limit)
{
    static const char *const names[] = { "compute", "making batches",
                                         "shipping batches", "cores" };
    return names[limit];
}

/* ---- Words ------------------------------------------------------------------------------------ */

/* Times more seldom, or as large: 1 and more. */
static bool set_times(struct settings *s, const char *key, double times)
{
    double *const fields[] = { &s->evaluation, &s->checkpoint, &s->logging, &s->gc,
                               &s->batch,      &s->optimizer,  &s->exchange };
    static const char *const names[] = { "evaluation", "checkpoint", "logging", "gc",
                                         "batch",      "optimizer",  "exchange" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(key, names[i]) == 0 && times >= 1 && times <= 1e6) {
            *fields[i] = times;
            return true;
        }
    return false;
}

static bool set_one(struct settings *s, const char *key, const char *value)
{
    char *end;
    errno = 0;
    const double number = strtod(value, &end);
    const bool good = end != value && *end == '\0' && errno == 0 && isfinite(number);
    const bool whole = good && number == floor(number) && number <= WORKERS_MAX;
    if (good && set_times(s, key, number))
        return true;
    if (strcmp(key, "threads") == 0 && whole && number >= 1) {
        s->threads = (int)number;
        return true;
    }
    s->loader = true;
    if (strcmp(key, "workers") == 0 && whole && number >= 0)
        s->workers = (int)number;
    else if (strcmp(key, "prefetch") == 0 && whole && number >= 1)
        s->prefetch = (int)number;
    else if (strcmp(key, "transform") == 0 && good && number > 0)
        s->transform_speed = number;
    else if (strcmp(key, "collate") == 0 && good && number > 0)
        s->collate_speed = number;
    else if (strcmp(key, "data") == 0 && strcmp(value, "free") == 0)
        s->data_free = true;
    else
        return false;
    return true;
}

/* What is wrong with a word that does not fit: its value where the name is known. */
static void explain_word(const char *word, const char *key, const char *value,
                         char ret_error[WHATIF_ERROR_LEN])
{
    static const struct {
        const char *names, *range;
    } rows[] = {
        { " workers ", "a whole number from 0 to 512" },
        { " prefetch threads ", "a whole number from 1 to 512" },
        { " transform collate ", "a number above 0: how many times as fast" },
        { " evaluation checkpoint logging gc batch optimizer exchange ",
          "1 or more, 1,000,000 at most: how many times" },
        { " data ", "free" },
    };
    char name[72];
    (void)snprintf(name, sizeof name, " %.64s ", key);
    for (size_t i = 0; value && i < sizeof rows / sizeof *rows; i++)
        if (strstr(rows[i].names, name)) {
            (void)snprintf(ret_error, WHATIF_ERROR_LEN, "%.40s cannot be '%.40s': %s",
                           key, value, rows[i].range);
            return;
        }
    (void)snprintf(ret_error, WHATIF_ERROR_LEN,
                   "'%.40s' is not workers=N, prefetch=N, threads=N, transform=TIMES, "
                   "collate=TIMES, data=free, or evaluation, checkpoint, "
                   "logging, gc, exchange, optimizer, batch=TIMES (1 or more)",
                   word);
}

/* The same name before `at`: one of the two cannot be meant. */
static bool is_named_before(const char *text, const char *at, const char *key)
{
    const size_t len = strlen(key);
    for (const char *p = text; p < at; p += strcspn(p, ", "), p += strspn(p, ", "))
        if (strncmp(p, key, len) == 0 && p[len] == '=')
            return true;
    return false;
}

int whatif_parse(const char *text, struct settings *settings,
                 char ret_error[WHATIF_ERROR_LEN])
{
    struct settings s = *settings;
    const char *p = text + strspn(text, ", ");
    if (!*p) {
        (void)snprintf(ret_error, WHATIF_ERROR_LEN,
                       "'%.40s' names no setting (workers=4, say)", text);
        return -EINVAL;
    }
    for (; *p; p += strspn(p, ", ")) {
        char word[64], key[64];
        const size_t len = strcspn(p, ", ");
        const size_t used = len < sizeof word ? len : sizeof word - 1;
        (void)snprintf(word, sizeof word, "%.*s", (int)used, p);
        memcpy(key, word, sizeof key);
        char *value = strchr(key, '=');
        if (value)
            *value++ = '\0';
        if (len >= sizeof word || !value || !set_one(&s, key, value)) {
            explain_word(word, key, value, ret_error);
            return -EINVAL;
        }
        if (is_named_before(text, p, key)) {
            (void)snprintf(ret_error, WHATIF_ERROR_LEN, "%.40s stands there twice",
                           key);
            return -EINVAL;
        }
        p += len;
    }
    *settings = s;
    return 0;
}
