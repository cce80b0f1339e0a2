/* rules_memory.c: rules about memory and descriptors.
 *
 * A leak, a cache that fills, fragmentation: all three make memory grow. A leak goes on
 * growing (its second half grows like its first), and live blocks grow with it. A cache
 * levels off. Fragmentation makes the resident set grow while live blocks do not.
 */
#include "analyse/rules.h"
#include "base/human.h"

static const double MIB = 1 << 20;

/* ---- allocation_churn -------------------------------------------------------------------- */

/* Every operator makes a few small blocks for its result: an allocator that takes a quarter
 * of what calling operators takes, or less, is part of calling them. Fewer calls are
 * another finding's advice. */
static bool is_part_of_operators(const struct rule_case *c)
{
    return FACT_OF(c, ALLOC_SHARE) <= 0.25 * FACT_OF(c, OVERHEAD_SHARE);
}

/* Results of operators come and go in every step; how many of their pages the C library
 * keeps is its affair, and a fault less than usual at stake. Blocks it never keeps, and
 * time in the allocator itself, are the program's. */
static bool is_usual_churn(const struct rule_case *c, double share)
{
    return share < c->t->churn_usual &&
           (is_part_of_operators(c) || !(FACT_OF(c, ALLOC_SHARE) >= c->t->allocator)) &&
           !(FACT_OF(c, HUGE_BLOCKS_SHARE) >= c->t->allocator);
}

/* What the kernel and the allocator take, and what the program itself pays for a fresh page:
 * the way into the kernel and back, and a page that no cache and no TLB has. That is
 * charged to the instruction that touched it, so it can only be counted; it is never all
 * that is left. */
static double churn_gone(const struct rule_case *c, double share, double allocator)
{
    const double kernel = fmin(fmax(share, allocator + FACT_OF(c, FAULT_KERNEL_SHARE)),
                               1);
    const double touch = FACT_OF(c, FAULT_TOUCH_SHARE);
    const double left = 1 - kernel;
    return touch > 0 ? 1 - fmax(left - touch, 0.25 * left) : kernel;
}

/* The same by work, where it is known: while one thread waits for its pages the others of
 * its team spin, which is CPU time and no work. What is left goes on as much side by side
 * as all of it did, but arithmetic, which then has all cores. NaN: not known. */
static double churn_left_of_work(const struct rule_case *c)
{
    const double work = FACT_OF(c, WORK_CORES), used = FACT_OF(c, CPU_CORES);
    const double kernel = used *
                          (FACT_OF(c, FAULT_KERNEL_SHARE) + FACT_OF(c, ALLOC_SHARE));
    const double user = work - kernel;
    const double own = fmax(user - used * FACT_OF(c, FAULT_TOUCH_SHARE), 0.25 * user);
    const double pieces = fmin(fmax(FACT_OF(c, ARITHMETIC_SHARE), 0) * used, own);
    if (isnan(own) || !(user > 0))
        return NAN;
    return fmin((own - pieces) / fmax(work, 1) + rule_in_pieces(c, pieces), 1);
}

static bool judge_churn(const struct rule_case *c, struct draft *d)
{
    const double allocator = FACT_OF(c, ALLOC_SHARE);
    const double faults = FACT_OF(c, FAULT_SHARE);
    const double share = fmin(
        (isnan(allocator) ? 0 : allocator) + (isnan(faults) ? 0 : faults), 1);
    if (!(share >= c->t->allocator) || FACT_OF(c, TURNOVER) < c->t->turnover)
        return false;
    d->stake = share;
    d->always_low = is_usual_churn(c, share);
    const double left = churn_left_of_work(c);
    const double most = isnan(left)
                            ? churn_gone(c, share, isnan(allocator) ? 0 : allocator)
                            : fmax(1 - left, share);
    /* Beside it, caches and a team's waits gain too: as much again, where there is much. */
    const double high = fmin(fmax(2.5 * share, 1.3 * most), most + 0.9 * (1 - most));
    d->gain = (struct gain){ 0.5 * fmax(share, 0.9 * most), most, fmax(high, most) };
    char size[HUMAN_LEN], blocks[HUMAN_LEN];
    buf_printf(&d->text, "Allocating and giving back memory takes %.0f %% of CPU time",
               100 * share);
    if (fact_known(c->f, FACT_ALLOC_MB_PER_STEP))
        buf_printf(&d->text, ": %s in %s blocks a step",
                   human_bytes(size, FACT_OF(c, ALLOC_MB_PER_STEP) * MIB),
                   human_number(blocks, FACT_OF(c, ALLOCS_PER_STEP), 3));
    buf_putc(&d->text, '.');
    d->place = PLACE_OF(c, ALLOC);
    buf_puts(&d->advice, "Allocate once and use it again (out=, preallocated buffers)");
    put_place(&d->advice, " at ", PLACE_OF(c, ALLOC));
    if (faults > 0.05)
        buf_puts(&d->advice,
                 "; large blocks come from the kernel page by page: "
                 "MALLOC_MMAP_THRESHOLD_ and MALLOC_TRIM_THRESHOLD_, jemalloc, "
                 "tcmalloc keep them");
    return true;
}

/* ---- memory_leak -------------------------------------------------------------------------- */

/* Hours until the limit at this rate decide how bad it is. */
static double leak_stake(double rate_mb_per_min, double room_mb)
{
    const double hours = room_mb / rate_mb_per_min / 60;
    if (!(rate_mb_per_min > 0) || isnan(hours))
        return 0.15;
    return hours < 1 ? 0.6 : hours < 8 ? 0.3 : hours < 72 ? 0.15 : 0.05;
}

static bool is_leak_of_sites(const struct rule_case *c)
{
    const double leaked = FACT_OF(c, LEAK_MB);
    const double limit = FACT_OF(c, MEMORY_LIMIT_MB);
    const double rss = FACT_OF(c, RSS_MB);
    const bool much = leaked >= c->t->leak_mb || leaked >= c->t->leak_of_limit * limit;
    return much && (isnan(rss) || leaked >= c->t->leak_of_rss * rss);
}

/* Seen from outside: it grows, and goes on. Blocks that are freed again are none. */
static bool is_leak_of_growth(const struct rule_case *c)
{
    const double growth = FACT_OF(c, GROWTH_MB);
    return growth >= c->t->leak_mb &&
           growth >= c->t->leak_of_rss * FACT_OF(c, RSS_MB) &&
           FACT_OF(c, GROWTH_LATE) >= c->t->leak_steady;
}

/* Of all growth live blocks were never much. At their end programs let go of everything:
 * what was live then says nothing of what was kept until then. */
static bool is_mostly_not_live(const struct rule_case *c, double much)
{
    return FACT_OF(c, FRAGMENTATION) >= 2 && FACT_OF(c, LIVE_PEAK_MB) < 0.5 * much;
}

static void put_growth(const struct rule_case *c, struct draft *d, double much,
                       bool apart, bool fragments)
{
    const double rate = FACT_OF(c, GROWTH_MB_PER_MIN);
    char size[HUMAN_LEN];
    buf_printf(&d->text, "Memory grew by %s and went on growing",
               human_bytes(size, much * MIB));
    if (rate > 0)
        buf_printf(&d->text, ", %s a minute", human_bytes(size, rate * MIB));
    if (fragments)
        buf_puts(&d->text, "; live blocks did not: the heap is fragmented");
    else if (apart)
        buf_printf(&d->text, "; at most %s of it are live blocks of the heap",
                   human_bytes(size, FACT_OF(c, LIVE_PEAK_MB) * MIB));
    else if (FACT_OF(c, LEAK_KB_PER_STEP) > 0)
        buf_printf(&d->text, ", %s a step",
                   human_bytes(size, FACT_OF(c, LEAK_KB_PER_STEP) * 1024));
    buf_putc(&d->text, '.');
}

static void advise_against_growth(struct draft *d, bool apart, bool fragments)
{
    if (!fragments)
        buf_puts(&d->advice,
                 "Let go of what is kept: history lists, tensors with their "
                 "graph (use .item() or .detach()), caches without a bound");
    if (apart)
        buf_printf(&d->advice,
                   "%sllocate long-lived and short-lived blocks apart, try "
                   "MALLOC_ARENA_MAX=2 or jemalloc",
                   fragments ? "A"
                             : "; against a heap that is larger than its blocks a");
}

static bool judge_leak(const struct rule_case *c, struct draft *d)
{
    const bool sites = is_leak_of_sites(c);
    if (!sites && !is_leak_of_growth(c))
        return false;
    /* Sites tell of windows over the run; memory that stands still is no leak. */
    if (sites && FACT_OF(c, GROWTH_LATE) < c->t->leak_steady / 2)
        return false;
    const double room = FACT_OF(c, MEMORY_LIMIT_MB) - FACT_OF(c, RSS_MB);
    const double much = sites ? FACT_OF(c, LEAK_MB) : FACT_OF(c, GROWTH_MB);
    const double rate = FACT_OF(c, GROWTH_MB_PER_MIN);
    d->stake = leak_stake(isnan(rate) ? much / (FACT_OF(c, RUN_S) / 60) : rate, room);
    const bool apart = !sites && is_mostly_not_live(c, much);
    const bool fragments = apart && FACT_OF(c, LIVE_PEAK_AT) < 0.8;
    put_growth(c, d, much, apart, fragments);
    d->place = PLACE_OF(c, LEAK);
    advise_against_growth(d, apart, fragments);
    put_place(&d->advice, "; allocated at ", PLACE_OF(c, LEAK));
    return true;
}

/* ---- memory_pressure ------------------------------------------------------------------------ */

/* One batch in 10,000 is one in most runs. What takes the largest sample many times over
 * hardly ever comes, and a little room may be enough: a word. */
double rule_batch_too_large(const struct rule_case *c, struct rule_fit fit,
                            const char *where, struct draft *d)
{
    enum { NOTHING, MAYBE, LIKELY, CAME } how = NOTHING;
    char size[HUMAN_LEN];
    const double fits = FACT_OF(c, LARGEST_BATCH_MB) * fit.fits * MIB;
    if (fit.fits < 1)
        how = CAME;
    else if (fit.likely >= 1)
        how = LIKELY;
    else if (fit.possible >= 1 ||
             (fit.fits <= c->t->batch_room && FACT_OF(c, BATCH_ALL_SEEN) != 1))
        how = MAYBE;
    if (how == NOTHING)
        return 0;
    buf_printf(&d->text, "%sA batch of more than %s, %.2f times the largest seen, ",
               d->text.len ? " " : "", human_bytes(size, fits), fit.fits);
    buf_printf(&d->text, "will not fit into %s", where);
    buf_puts(&d->text, how == CAME        ? "; the largest was one."
                       : how == LIKELY    ? "; the data set has the samples for it."
                       : fit.possible > 1 ? "; its largest samples together make one."
                                          : ".");
    if (!d->place)
        d->place = PLACE_OF(c, LOADER);
    return how == CAME ? 0.5 : how == LIKELY ? 0.3 : 0.05;
}

static void advise_on_batches(const struct rule_case *c, struct draft *d)
{
    buf_printf(&d->advice,
               "%sound what a batch holds, not how many samples: batches by length or "
               "by number of nodes and edges (a batch sampler), long samples cut",
               d->advice.len ? "; b" : "B");
    put_place(&d->advice, " at ", PLACE_OF(c, LOADER));
}

static bool judge_pressure(const struct rule_case *c, struct draft *d)
{
    const double share = FACT_OF(c, MEMORY_SHARE);
    const bool absolute = FACT_OF(c, RSS_MB) >= c->t->memory_mb;
    const bool full = share >= c->t->memory || absolute;
    if (full)
        buf_printf(&d->text, "Memory reached %.0f %% of its limit of %.0f MiB.",
                   100 * share, FACT_OF(c, MEMORY_LIMIT_MB));
    const struct rule_fit fit = { FACT_OF(c, BATCH_FITS), FACT_OF(c, BATCH_POSSIBLE),
                                  FACT_OF(c, BATCH_LIKELY) };
    const double batch = rule_batch_too_large(c, fit, "memory", d);
    if (!full && !(batch > 0))
        return false;
    d->stake = absolute ? 0.2 : full ? rule_nearness(share, c->t->memory, 1) + 0.05 : 0;
    d->stake = fmax(d->stake, batch);
    if (full)
        buf_puts(&d->advice,
                 "A smaller batch, fewer workers or prefetched batches, float32 "
                 "instead of float64, mapped files instead of copies; or a higher "
                 "limit");
    if (batch > 0)
        advise_on_batches(c, d);
    return true;
}

/* ---- worker_memory_growth ------------------------------------------------------------------- */

/* How much a worker may get of its own and nobody should care. A collector that runs in it
 * walks over the interpreter's objects, and copies their pages: 24 to 26 MiB with torch in
 * five programs whose data sets hold none. What a data set's own add to that counts. */
static double usual_growth_mb(const struct rule_case *c)
{
    const bool copies = FACT_OF(c, WORKER_COPIED_MB) >=
                        0.5 * FACT_OF(c, WORKER_GROWTH_MB);
    return !copies                            ? c->t->worker_growth_each_mb
           : FACT_OF(c, DATASET_OBJECTS) == 0 ? c->t->worker_growth_own_mb
                                              : c->t->worker_growth_copied_mb;
}

static bool judge_workers(const struct rule_case *c, struct draft *d)
{
    const double growth = FACT_OF(c, WORKER_GROWTH_MB);
    const double limit = FACT_OF(c, MEMORY_LIMIT_MB);
    const bool much = growth >= c->t->worker_growth_mb &&
                      !(growth / FACT_OF(c, WORKERS) < usual_growth_mb(c));
    if (!much && !(growth >= c->t->worker_growth * limit))
        return false;
    const double of_limit = growth / limit;
    d->stake = fmin(0.15 + (isnan(of_limit) ? 0 : 2 * of_limit), 1);
    buf_printf(&d->text, "Private memory of the loader's workers grew by %.0f MiB",
               growth);
    if (FACT_OF(c, WORKER_COPIED_MB) < 0.5 * growth) {
        buf_puts(&d->text, ", most of it allocated by themselves.");
        buf_puts(&d->advice, "Bound what the data set keeps in its workers (caches, "
                             "lists that grow), or use fewer workers");
        return true;
    }
    buf_puts(&d->text, ": pages they shared with the main process were copied when "
                       "reference counts were written.");
    d->place = PLACE_OF(c, OBJECT);
    buf_puts(&d->advice, "Keep the data set's many small Python objects");
    put_place(&d->advice, " (", PLACE_OF(c, OBJECT));
    if (PLACE_OF(c, OBJECT)[0])
        buf_putc(&d->advice, ')');
    buf_puts(&d->advice, " in one array (numpy, torch, Arrow), which has one reference "
                         "count; or use fewer workers");
    return true;
}

/* ---- swapping, fd_leak ------------------------------------------------------------------------ */

static bool judge_swapping(const struct rule_case *c, struct draft *d)
{
    const double faults = FACT_OF(c, MAJOR_FAULTS);
    if (!(FACT_OF(c, SWAP_MB) >= 1) || !(faults >= c->t->swap_faults))
        return false;
    /* A page from a disk takes some milliseconds, from an SSD a tenth of one. */
    d->stake = fmin(0.1 + faults * 1e-3, 1);
    d->gain = (struct gain){ fmin(faults * 1e-4, 0.5), fmin(faults * 1e-3, 0.8),
                             fmin(faults * 5e-3, 0.95) };
    buf_printf(&d->text, "%.0f MiB are swapped out, and %.0f pages a second come back.",
               FACT_OF(c, SWAP_MB), faults);
    buf_puts(&d->advice,
             "Use less memory: a smaller batch, fewer workers, mapped files; "
             "or a machine with more");
    return true;
}

static bool judge_descriptors(const struct rule_case *c, struct draft *d)
{
    const double open = FACT_OF(c, OPEN_AT_END);
    if (FACT_OF(c, OPEN_GROWS) != 1 || !(open >= c->t->descriptors))
        return false;
    /* 1,024 is the usual limit of a process. */
    d->stake = fmin(0.1 + 0.5 * open / 1024, 0.8);
    buf_printf(&d->text,
               "%.0f descriptors are open at the end, more and more throughout.", open);
    d->place = PLACE_OF(c, FD);
    buf_puts(&d->advice, "Close files (with open(…) as f)");
    put_place(&d->advice, "; most of them: ", PLACE_OF(c, FD));
    return true;
}

const struct rule rules_memory[] = {
    { "allocation_churn", "ALLOCATION CHURN", RULES_MEMORY, .judge = judge_churn,
      .needs = { FACT_ALLOC_SHARE },
      .shows = { FACT_FAULT_SHARE, FACT_ALLOC_MB_PER_STEP, FACT_ALLOCS_PER_STEP,
                 FACT_TURNOVER, FACT_FAULTS_PER_STEP, FACT_WORK_CORES, FACT_STEP_MS } },
    { "memory_leak", "MEMORY LEAK", RULES_MEMORY, .judge = judge_leak,
      .needs = { FACT_GROWTH_MB },
      .shows = { FACT_LEAK_MB, FACT_LEAK_KB_PER_STEP, FACT_GROWTH_MB_PER_MIN,
                 FACT_GROWTH_LATE, FACT_LIVE_MB, FACT_LIVE_PEAK_MB, FACT_LIVE_PEAK_AT,
                 FACT_RSS_MB, FACT_MEMORY_LIMIT_MB },
      /* What was compiled is kept: the growth goes with the compiling. */
      .yields_to = { "worker_memory_growth", "fd_leak", "recompilation" } },
    { "memory_pressure", "MEMORY NEARLY FULL", RULES_MEMORY, true,
      .judge = judge_pressure, .needs = { FACT_MEMORY_SHARE },
      .shows = { FACT_RSS_MB, FACT_MEMORY_LIMIT_MB, FACT_MEMORY_PRESSURE,
                 FACT_GROWTH_MB, FACT_LARGEST_BATCH_MB, FACT_BATCH_FITS,
                 FACT_BATCH_POSSIBLE, FACT_BATCH_LIKELY, FACT_BATCH_ALL_SEEN },
      .yields_to = { "memory_leak", "worker_memory_growth", "too_many_workers",
                     "swapping", "shm_pressure" } },
    { "worker_memory_growth", "WORKERS GROW", RULES_MEMORY, .judge = judge_workers,
      .needs = { FACT_WORKER_GROWTH_MB },
      .shows = { FACT_WORKER_COPIED_MB, FACT_WORKERS, FACT_WORKER_PRIVATE_MB,
                 FACT_MEMORY_LIMIT_MB } },
    { "swapping", "SWAPPING", RULES_MEMORY, .judge = judge_swapping,
      .needs = { FACT_SWAP_MB, FACT_MAJOR_FAULTS },
      .shows = { FACT_RSS_MB, FACT_MEMORY_LIMIT_MB, FACT_MEMORY_PRESSURE },
      .yields_to = { "memory_leak", "worker_memory_growth" } },
    { "fd_leak", "DESCRIPTORS LEAK", RULES_MEMORY, .judge = judge_descriptors,
      .needs = { FACT_OPEN_AT_END, FACT_OPEN_GROWS },
      .shows = { FACT_OPENS_PER_STEP } },
    { 0 },
};
