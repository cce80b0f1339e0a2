/* facts_files.c: facts about files: what loading them costs, what stays open.
 *
 * The program's own data only: libraries, byte code, /proc and what belongs to the system
 * are opened by every program and are nobody's illness. */
#include <math.h>
#include <string.h>

#include "analyse/fact_parts.h"
#include "analyse/loaders.h"
#include "analyse/report.h"
#include "base/files.h"

static bool starts(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

static bool ends(const char *text, const char *with)
{
    const size_t len = strlen(text), tail = strlen(with);
    return len >= tail && strcmp(text + len - tail, with) == 0;
}

/* Paths that found no row are together in one: libraries come first, so they are data. */
static bool is_rest(const struct io_path *p)
{
    return strcmp(p->path, "(other files)") == 0;
}

static bool is_data(const struct io_path *p)
{
    if (p->path[0] == '(') /* pipes, installed modules */
        return is_rest(p);
    static const char *const system[] = { "/usr/", "/lib",  "/etc/", "/proc/",
                                          "/sys/", "/dev/", "/opt/" };
    static const char *const code[] = { ".py",  ".pyc",       ".so",
                                        ".pth", ".dist-info", ".egg-info" };
    if (p->io_class != IO_CLASS_FILE)
        return false;
    for (size_t i = 0; i < sizeof system / sizeof *system; i++)
        if (starts(p->path, system[i]))
            return false;
    for (size_t i = 0; i < sizeof code / sizeof *code; i++)
        if (ends(p->path, code[i]))
            return false;
    return !strstr(p->path, "/site-packages/") && !strstr(p->path, "/lib/python") &&
           !strstr(p->path, ".so.");
}

struct data_sums {
    double opens, reads, small, read_ns, read_bytes, write_ns, sync_ns;
    double log_ns; /* writing to files that get a little in every step */
    double cold_pages, pages;
    const struct io_path *most_read, *most_open, *most_log;
    double most_log_ns;
};

static double written_ns(const struct io_path *p)
{
    return p->side[1].ns + p->sync_ns;
}

/* Small writes, again and again: a log, wherever it goes. */
static bool is_log(const struct io_path *p, double steps)
{
    const struct io_sum *w = &p->side[1];
    return w->calls >= 0.5 * steps && steps > 0 &&
           (double)w->bytes < 65536.0 * (double)w->calls;
}

/* Where a log may go. Pipes are not told from each other: beside a loader's workers they
 * are its queues, and what all workers wait there is no time of the main thread. */
static bool is_sink(const struct io_path *p, bool queues)
{
    return p->io_class == IO_CLASS_FILE || p->io_class == IO_CLASS_TTY ||
           (p->io_class == IO_CLASS_PIPE && !queues);
}

static void add_writes(struct data_sums *s, const struct io_path *p,
                       const struct report *r, bool queues)
{
    if (!is_sink(p, queues) || !is_log(p, (double)r->account.steps))
        return;
    s->log_ns += written_ns(p);
    if (written_ns(p) > s->most_log_ns) {
        s->most_log_ns = written_ns(p);
        s->most_log = p;
    }
}

static void add_path(struct data_sums *s, const struct io_path *p)
{
    const struct io_sum *r = &p->side[0];
    const uint64_t moved = r->calls - r->sizes[0];
    s->opens += (double)p->opens;
    s->reads += (double)moved;
    s->small += (double)(r->sizes[1] + r->sizes[2]);
    s->read_ns += r->ns;
    s->read_bytes += (double)r->bytes;
    s->write_ns += p->side[1].ns;
    s->sync_ns += p->sync_ns;
    s->pages += (double)p->cache_pages;
    s->cold_pages += (double)(p->cache_pages - p->cache_warm);
    if (!is_rest(p) && (!s->most_read || r->ns > s->most_read->side[0].ns))
        s->most_read = p;
    if (p->open_at_end && (!s->most_open || p->open_at_end > s->most_open->open_at_end))
        s->most_open = p;
}

/* The folder when there are many, as "/data/train/…". */
static void put_path(struct report *r, struct facts *f, enum fact_place place,
                     const struct io_path *p, double files)
{
    struct buf b = BUF_INIT;
    if (!p)
        return;
    const char *base = path_base(p->path);
    if (files > 4 && base > p->path)
        buf_printf(&b, "%.*s…", (int)(base - p->path), p->path);
    else
        buf_puts(&b, p->path);
    fact_place(r, f, place, &b);
    buf_release(&b);
}

/* ---- What loading does ------------------------------------------------------------------
 *
 * Zones of the phases of input, in all processes. Files that are opened elsewhere, to
 * prepare data before the first step say, are not theirs. */
struct input_io {
    bool known;
    double open_ns, look_ns, read_ns;
    double opens, looks;
};

static bool is_input(int phase)
{
    return phase == SONDE_DATA_LOADING || phase == SONDE_PREPROCESSING ||
           phase == SONDE_AUGMENTATION || phase == SONDE_COLLATE;
}

/* Where workers load, what the main process reads inside next() are their batches, from
 * pipes and sockets, and most of it is waiting: none of that is a file. */
static bool is_receiving(const struct io_by_zone *z, const struct loader *l)
{
    return l && l->num_workers > 0 && strcmp(z->zone, "DataLoader.next") == 0;
}

static struct input_io io_of_input(const struct report *r)
{
    const struct io_report *io = &r->io;
    const struct loader *l = loaders_training(&r->loaders);
    struct input_io in = { .known = false };
    for (size_t i = 0; io->hand.known && i < io->zone_count; i++) {
        const struct io_by_zone *z = &io->zones[i];
        if (!is_input(z->phase) || is_receiving(z, l))
            continue;
        in.known |= z->calls[0] || z->opens || z->looks;
        in.open_ns += z->open_ns;
        in.look_ns += z->look_ns;
        in.read_ns += z->ns[0];
        in.opens += (double)z->opens;
        in.looks += (double)z->looks;
    }
    return in;
}

/* All the time of loading that such calls can be a part of; NaN unknown. */
static double input_ns(const struct report *r)
{
    const struct loader *l = loaders_training(&r->loaders);
    const struct phase_split *p = &r->phases;
    double share = 0;
    if (r->readers_ns > 0)
        return r->readers_ns;
    if (l && l->make.d.count)
        return loader_times_total_s(&l->make) * 1e9;
    for (int phase = 0; phase < SONDE_PHASE_COUNT; phase++)
        share += is_input(phase) ? p->share[phase] : 0;
    return p->has_main && share > 0 ? share * p->wall_ns : NAN;
}

static void set_input(const struct report *r, struct facts *f)
{
    const struct input_io in = io_of_input(r);
    const double all_ns = input_ns(r);
    const double steps = (double)r->account.steps;
    if (!in.known || !(all_ns > 0))
        return;
    f->v[FACT_OPEN_SHARE] = fmin((in.open_ns + in.look_ns) / all_ns, 1);
    f->v[FACT_READ_SHARE] = fmin(in.read_ns / all_ns, 1);
    if (steps > 0) {
        f->v[FACT_OPENS_PER_STEP] = in.opens / steps;
        f->v[FACT_LOOKS_PER_STEP] = in.looks / steps;
    }
}

/* The time of those who read: the workers', or what the main thread spends on input. */
static double readers_ns(const struct report *r, const struct facts *f)
{
    const struct step_account *a = &r->account;
    const double run_ns = report_duration_s(r) * 1e9;
    if (r->readers_ns > 0)
        return r->readers_ns;
    if (a->known && f->v[FACT_INPUT_SHARE] > 0)
        return f->v[FACT_INPUT_SHARE] * a->steady_ns;
    return run_ns;
}

static void set_shares(struct report *r, struct facts *f, const struct data_sums *s)
{
    const struct io_report *io = &r->io;
    const double readers = readers_ns(r, f);
    const double steps = (double)r->account.steps;
    const double open_ns = io->opens ? io->open_ns * s->opens / (double)io->opens : 0;
    f->v[FACT_OPEN_SHARE] = open_ns / readers;
    f->v[FACT_READ_SHARE] = s->read_ns / readers;
    if (s->reads > 0) {
        f->v[FACT_SMALL_READ_SHARE] = s->small / s->reads;
        f->v[FACT_READ_KB] = s->read_bytes / s->reads / 1024;
    }
    if (steps > 0) {
        f->v[FACT_OPENS_PER_STEP] = s->opens / steps;
        f->v[FACT_READS_PER_STEP] = s->reads / steps;
    }
    set_input(r, f);
    /* Without a list of transforms all of a sample's CPU time counts as one; calls for
     * files are not, nor is what goes with each of them. */
    if (r->transforms_unknown)
        f->v[FACT_TRANSFORM_OF_SAMPLE] -= fact_of_calls(f) + f->v[FACT_READ_SHARE] -
                                          fact_small_reads(f);
    if (s->pages > 0)
        f->v[FACT_COLD_SHARE] = s->cold_pages / s->pages;
}

void facts_of_files(struct report *r, struct facts *f)
{
    const struct io_report *io = &r->io;
    const double loop_ns = account_loop_ns(&r->account);
    const double wall_ns = loop_ns > 0 ? loop_ns : report_duration_s(r) * 1e9;
    struct data_sums s = { 0 };
    if (!io->captured)
        return;
    size_t files = 0;
    const bool queues = f->v[FACT_WORKERS] > 0;
    for (size_t i = 0; i < io->path_count; i++) {
        add_writes(&s, &io->paths[i], r, queues);
        if (is_data(&io->paths[i])) {
            add_path(&s, &io->paths[i]);
            files += io->paths[i].side[0].calls > 0;
        }
    }
    set_shares(r, f, &s);
    if (wall_ns > 0) {
        f->v[FACT_SYNC_IO_SHARE] = s.log_ns / wall_ns;
        f->v[FACT_WRITE_SHARE] = (s.write_ns + s.sync_ns) / wall_ns;
    }
    f->v[FACT_OPEN_AT_END] = (double)io->open_at_end;
    f->v[FACT_OPEN_GROWS] = io->open_grows;
    put_path(r, f, PLACE_READ, s.most_read, (double)files);
    put_path(r, f, PLACE_FD, s.most_open, 0);
    put_path(r, f, PLACE_LOG_FILE, s.most_log, 0);
}
