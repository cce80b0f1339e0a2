/* facts_hand.c: loading without a loader: files that the main thread opens and reads by
 * itself in every step, or batches that it makes of data in memory.
 *
 * Two witnesses: calls for files in steps and in no zone (io.h), which are exact, and the
 * stacks of functions that read (handload.h), which know what is made of the bytes. The
 * longer one counts, never both, and never more than the steps have outside of all
 * zones: what torch.save, an evaluation or a loader do is in theirs. */
#include <math.h>
#include <string.h>

#include "analyse/fact_parts.h"
#include "analyse/handload.h"
#include "analyse/loaders.h"
#include "analyse/report.h"
#include "base/files.h"

enum { LEAST_STEPS = 8 };

static const char by_calls[] = "I/O calls of the main thread in steps, in no zone";
static const char by_both[] = "I/O calls and Python stacks, no loader";
static const char by_stacks[] = "Python stacks, no loader";

static bool has_no_loader(const struct report *r)
{
    const struct step_account *a = &r->account;
    return r->io.captured && r->io.hand.known && a->known && a->steps >= LEAST_STEPS &&
           a->mean_ns > 0 && !loaders_training(&r->loaders);
}

/* Reading is a part of every step, or of every other one: else it is something else. */
static bool reads_in_steps(const struct report *r)
{
    return has_no_loader(r) && 2 * r->io.hand.steps >= r->account.steps;
}

static void set(struct facts *f, enum fact fact, double value, const char *source)
{
    f->v[fact] = value;
    f->source[fact] = source;
}

static void set_calls(const struct report *r, struct facts *f)
{
    const struct io_hand *h = &r->io.hand;
    const double steps = (double)r->account.steps;
    set(f, FACT_OPENS_PER_STEP, (double)h->opens / steps, by_calls);
    set(f, FACT_LOOKS_PER_STEP, (double)h->looks / steps, by_calls);
    set(f, FACT_READS_PER_STEP, (double)h->reads / steps, by_calls);
    if (h->reads) {
        set(f, FACT_SMALL_READ_SHARE, (double)h->small_reads / (double)h->reads,
            by_calls);
        set(f, FACT_READ_KB, (double)h->read_bytes / (double)h->reads / 1024, by_calls);
    }
}

/* `load_ns`: of all steps together. */
static void set_parts(const struct report *r, struct facts *f,
                      const struct handload *load, double load_ns, bool stacks)
{
    const struct io_hand *h = &r->io.hand;
    const char *source = stacks ? by_both : by_calls;
    const double looks = fmax(h->look_ns, stacks ? load->look_ns : 0);
    set(f, FACT_OPEN_SHARE, fmin((h->open_ns + looks) / load_ns, 1), source);
    set(f, FACT_READ_SHARE, fmin(h->read_ns / load_ns, 1), by_calls);
    if (!stacks)
        return; /* what is made of the bytes is not known */
    set(f, FACT_SAMPLE_CPU_SHARE, at_most(load->cpu_ns / load->wall_ns, 1), by_stacks);
    set(f, FACT_TRANSFORM_OF_SAMPLE,
        fmax(1 - f->v[FACT_OPEN_SHARE] - f->v[FACT_READ_SHARE], 0), by_both);
}

static void set_place(struct report *r, struct facts *f, const struct handload *load)
{
    struct buf b = BUF_INIT;
    if (!load->file[0])
        return;
    buf_printf(&b, "%s:%u", path_base(load->file), load->line);
    if (load->function[0] && strcmp(load->function, "<module>") != 0)
        buf_printf(&b, " in %s", load->function);
    fact_place(r, f, PLACE_TRANSFORM, &b);
    buf_release(&b);
}

static void take_from_steps(struct report *r, struct facts *f, double share,
                            const char *source)
{
    set(f, FACT_INPUT_SHARE, f->v[FACT_INPUT_SHARE] + share, source);
    f->v[FACT_OTHER_SHARE] -= share;
    r->hand_share = share;
    r->hand_cpu_share = f->v[FACT_SAMPLE_CPU_SHARE];
}

/* Of data in memory: all of it is the transform, nothing is read. */
static void facts_of_made(struct report *r, struct facts *f)
{
    struct handload made = { .known = false };
    if (handload_made(r, &made) < 0 || !made.known)
        return;
    const double share = at_most(made.wall_ns / r->account.mean_ns /
                                     (double)r->account.steps,
                                 f->v[FACT_OTHER_SHARE]);
    if (!(share > 0))
        return;
    set_calls(r, f);
    set(f, FACT_TRANSFORM_OF_SAMPLE, 1, by_stacks);
    set(f, FACT_SAMPLE_CPU_SHARE, at_most(made.cpu_ns / made.wall_ns, 1), by_stacks);
    take_from_steps(r, f, share, by_stacks);
    set_place(r, f, &made);
}

/* Nothing is read from files, and the loop waits for something outside in one of its
 * functions: a store's client. Unless what it waits for is its own files on their way to
 * the disk, which calls tell (fsync, small writes): a diary. */
static void facts_of_waited(struct report *r, struct facts *f)
{
    struct handload load = { .known = false };
    if (handload_read(r, &load) < 0 || !load.known || !(load.wall_ns > 0) ||
        load.cpu_ns > 0.2 * load.wall_ns)
        return;
    const double share = at_most(load.wall_ns / r->account.mean_ns /
                                     (double)r->account.steps,
                                 f->v[FACT_OTHER_SHARE]);
    const double cpu = at_most(load.cpu_ns / load.wall_ns, 1);
    if (!(share > 0) || f->v[FACT_SYNC_IO_SHARE] >= 0.5 * share)
        return;
    set_calls(r, f);
    set(f, FACT_SAMPLE_CPU_SHARE, cpu, by_stacks);
    set(f, FACT_TRANSFORM_OF_SAMPLE, cpu, by_stacks);
    take_from_steps(r, f, share, by_stacks);
    set_place(r, f, &load);
}

void facts_of_hand(struct report *r, struct facts *f)
{
    struct handload load = { .known = false };
    r->hand_share = 0;
    r->hand_cpu_share = NAN;
    if (has_no_loader(r) && !reads_in_steps(r))
        facts_of_made(r, f);
    if (has_no_loader(r) && !reads_in_steps(r) && !(r->hand_share > 0))
        facts_of_waited(r, f);
    if (!reads_in_steps(r) || handload_read(r, &load) < 0)
        return;
    const struct io_hand *h = &r->io.hand;
    const double steps_ns = r->account.mean_ns * (double)r->account.steps;
    const double calls_ns = h->open_ns + h->look_ns + h->read_ns;
    const bool stacks = load.known && load.wall_ns > calls_ns;
    const double share = at_most((stacks ? load.wall_ns : calls_ns) / steps_ns,
                                 f->v[FACT_OTHER_SHARE]);
    if (!(share > 0))
        return;
    set_calls(r, f);
    set_parts(r, f, &load, share * steps_ns, stacks);
    take_from_steps(r, f, share, stacks ? by_both : by_calls);
    set_place(r, f, &load);
}
