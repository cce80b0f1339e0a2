/* facts_hand.c: loading without a loader: files that the main thread opens and reads by
 * itself in every step.
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

/* Reading is a part of every step, or of every other one: else it is something else. */
static bool reads_in_steps(const struct report *r)
{
    const struct step_account *a = &r->account;
    const struct io_hand *h = &r->io.hand;
    return r->io.captured && h->known && a->known && a->steps >= LEAST_STEPS &&
           a->mean_ns > 0 && 2 * h->steps >= a->steps && !loaders_training(&r->loaders);
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
    set(f, FACT_SAMPLE_CPU_SHARE, at_most(load->cpu_ns / load->wall_ns, 1),
        "Python stacks, no loader");
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

void facts_of_hand(struct report *r, struct facts *f)
{
    struct handload load = { .known = false };
    r->hand_share = 0;
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
    set(f, FACT_INPUT_SHARE, f->v[FACT_INPUT_SHARE] + share,
        stacks ? by_both : by_calls);
    f->v[FACT_OTHER_SHARE] -= share;
    r->hand_share = share;
    set_place(r, f, &load);
}
