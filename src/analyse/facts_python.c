/* facts_python.c: facts about the interpreter, and the lines of the program that other
 * facts are about. */
#include <math.h>
#include <string.h>

#include "analyse/fact_parts.h"
#include "analyse/loaders.h"
#include "analyse/pylines.h"
#include "analyse/report.h"
#include "base/files.h"

static const struct py_thread *main_thread(const struct py_profile *p)
{
    for (size_t i = 0; i < p->thread_count; i++)
        if (p->threads[i].pid == p->main_pid && p->threads[i].tid == p->main_pid)
            return &p->threads[i];
    return NULL;
}

static void put_line(struct report *r, struct facts *f, enum fact_place place,
                     const struct py_place *line)
{
    struct buf b = BUF_INIT;
    if (!line->file[0])
        return;
    buf_printf(&b, "%s:%u", path_base(line->file), line->line);
    if (line->function[0] && strcmp(line->function, "<module>") != 0)
        buf_printf(&b, " in %s", line->function);
    fact_place(r, f, place, &b);
    buf_release(&b);
}

static void set_lines(struct report *r, struct facts *f, const struct py_lines *l)
{
    put_line(r, f, PLACE_HOT, &l->top[PY_ANY]);
    put_line(r, f, PLACE_LOG, &l->top[PY_LOGGING]);
    put_line(r, f, PLACE_OPTIMIZER, &l->top[PY_OPTIMIZER]);
    put_line(r, f, PLACE_CHECKPOINT, &l->top[PY_CHECKPOINT]);
    put_line(r, f, PLACE_STARTUP, &l->top[PY_PLAIN]);
    put_line(r, f, PLACE_GIL, &l->thread);
    put_line(r, f, PLACE_LOCK, &l->top[PY_LOCK]);
    put_line(r, f, PLACE_HOLDER, l->worker.file[0] ? &l->worker : &l->thread);
    put_line(r, f, PLACE_COLLATE, &l->top[PY_COLLATE]);
    /* Of a loader with workers the main thread's line is where it waits. */
    const struct loader *loader = loaders_training(&r->loaders);
    if (l->worker.file[0])
        put_line(r, f, PLACE_TRANSFORM, &l->worker);
    else if (!loader || loader->num_workers == 0)
        put_line(r, f, PLACE_TRANSFORM, &l->top[PY_LOADING]);
}

/* From one look at a thread to the next: long runs are looked at more seldom. */
static double mean_look(const struct py_profile *p)
{
    double watched_ns = 0;
    for (size_t i = 0; i < p->thread_count; i++)
        watched_ns += p->threads[i].wall_ns;
    return p->samples ? fmax(watched_ns / (double)p->samples, p->period_ns)
                      : p->period_ns;
}

/* Imports make so many objects that the collector takes a fifth of them, and it walks
 * over everything once more when the interpreter ends. Neither is the program's doing. */
static const double BY_CHANCE = 3; /* looks: a thread that waits has ten a second */

static double gc_share(const struct report *r, const struct py_thread *t,
                       double import_s, double loop_ns)
{
    const double end_ns = r->account.known ? r->account.end_ns : 0.3e9;
    const double usual = 0.2e9 * import_s + 0.5 * end_ns;
    const double start_ns = r->account.known ? r->account.startup_ns - 1e9 * import_s
                                             : 0;
    /* When is not recorded: a long start may have had all of it, and of a shorter one
     * that makes many objects half may be the collector's. */
    const double in_loop = t->gc_ns - usual - 0.5 * fmax(start_ns, 0) -
                           BY_CHANCE * mean_look(&r->python);
    return start_ns > 0.5 * loop_ns ? NAN : at_most(fmax(in_loop, 0) / loop_ns, 1);
}

/* The same as it most likely was: the rule fires by the cautious number, but what is left
 * of a step without the collector is a small difference, and caution would be most of
 * it. Imports spend a fifth on it, and so does setting up; the end a third of its time. */
static double gc_likely(const struct report *r, const struct py_thread *t,
                        double import_s, double loop_ns)
{
    const struct step_account *a = &r->account;
    const double start_ns = a->known ? fmax(a->startup_ns - 1e9 * import_s, 0) : 0;
    const double end_ns = a->known ? a->end_ns : 0.3e9;
    const double outside = 0.2 * (1e9 * import_s + start_ns) + 0.3 * end_ns;
    return at_most(fmax(t->gc_ns - outside, 0) / loop_ns, 1);
}

/* All of its time is collecting, and most collecting is at it. */
static bool calls_collector(const struct py_thread *t, const struct py_place *line)
{
    return line->ns > 0 && line->ns <= 1.03 * t->gc_ns && line->ns >= 0.5 * t->gc_ns;
}

/* Where one line calls the collector, what is outside of phases and not at that line is the program's own work, and
 * stays. Both ends of every call fall between two looks at the stack: what is less than
 * that makes of it is not known. */
static double beside_collector(const struct report *r, const struct py_thread *t,
                               const struct py_place *line, const struct facts *f)
{
    const double steps = (double)r->account.steps;
    const double look_ns = mean_look(&r->python);
    if (!r->account.known || !(steps > 0) || !calls_collector(t, line))
        return NAN;
    /* One call for every step; steps are counted from one to the next. */
    const double beside = f->v[FACT_OTHER_SHARE] -
                          line->ns / (steps + 1) / r->account.mean_ns;
    const double unsure = look_ns * sqrt(2 / 12.0 / steps) / r->account.mean_ns;
    return beside > 2 * unsure ? beside : NAN;
}

/* The time these shares are of: the loop where there is one. */
static double judged_ns(const struct report *r, double main_ns)
{
    const double loop = account_loop_ns(&r->account);
    return loop > 0 && loop < main_ns ? loop : main_ns;
}

/* The lock is fought over while another thread lives: one that was started before the loop,
 * and goes on behind it, made the main thread wait there too. */
double python_gil_wait_ns(const struct py_profile *p, double loop_ns)
{
    const struct py_thread *t = main_thread(p);
    double beside_ns = 0;
    for (size_t i = 0; i < p->thread_count; i++)
        if (p->threads[i].pid == p->main_pid && &p->threads[i] != t)
            beside_ns = fmax(beside_ns, p->threads[i].wall_ns);
    return !t                    ? NAN
           : beside_ns > loop_ns ? t->gil_wait_ns * loop_ns / beside_ns
                                 : t->gil_wait_ns;
}

double python_main_cpu_share(const struct py_profile *p, const struct step_account *a,
                             double busy)
{
    const struct py_thread *t = main_thread(p);
    const double loop = account_loop_ns(a);
    if (!a->known || !(loop > 0) || !t || !(t->cpu_ns > 0))
        return NAN;
    const double outside = busy * (a->startup_ns + a->end_ns);
    return at_most(fmax(t->cpu_ns - outside, 0) / loop, 1);
}

/* Where every step writes a checkpoint, none tells what steps take without: but what the
 * function that calls torch.save() does besides goes with it, putting the new file in the
 * place of the old one say. A function that also trains is no such function. */
static double beside_saving(const struct py_lines *l, double loop_ns)
{
    const double saves = l->used_ns[PY_CHECKPOINT], all = l->save_function_ns;
    return saves > 0 && saves >= 0.3 * all ? at_most((all - saves) / loop_ns, 1) : NAN;
}

/* Compiling once, before the steady steps, is what compilers are for. As much of it may
 * have been there as there was time besides the imports, which some programs have ten
 * seconds of. */
static double before_steady(const struct report *r, const struct py_lines *l)
{
    const struct step_account *a = &r->account;
    return a->known ? a->warmup_ns + fmax(a->startup_ns - l->used_ns[PY_IMPORT], 0) : 0;
}

/* Most bytes are allocated outside of all zones, and there one line of the program has
 * most of the time: a person finds that line sooner than the library it calls. */
static bool is_allocated_in(const struct report *r, const struct py_lines *l)
{
    const struct alloc_site *most = NULL;
    for (size_t i = 0; i < r->allocations.site_count; i++)
        if (!most || r->allocations.sites[i].bytes > most->bytes)
            most = &r->allocations.sites[i];
    return most && !most->zone[0] && r->phases.wall_ns > 0 &&
           l->top[PY_PLAIN].ns >= 0.5 * l->used_ns[PY_PLAIN] && l->top[PY_PLAIN].ns > 0;
}

void facts_of_python(struct report *r, struct facts *f)
{
    const struct py_profile *p = &r->python;
    const struct py_thread *t = main_thread(p);
    struct py_lines lines;
    if (!p->present || !t || !(t->wall_ns > 0))
        return;
    const double loop = judged_ns(r, t->wall_ns);
    f->v[FACT_GIL_WAIT_SHARE] = at_most(python_gil_wait_ns(p, loop) / loop, 1);
    if (pylines_read(r, &lines) < 0 || !lines.present)
        return;
    const double early = before_steady(r, &lines);
    /* In no zone, so it is no more than steps have outside of them. */
    f->v[FACT_LOCK_SHARE] = at_most(lines.used_ns[PY_LOCK] / loop,
                                    f->v[FACT_OTHER_SHARE]);
    f->v[FACT_LOG_SHARE] = at_most(lines.used_ns[PY_LOGGING] / loop, 1);
    /* A function that mostly logs goes whole; a loop that also logs stays. */
    if (lines.used_ns[PY_LOGGING] >= 0.5 * lines.log_function_ns)
        f->v[FACT_LOG_WHOLE_SHARE] = at_most(lines.log_function_ns / loop, 1);
    if (isnan(f->v[FACT_CHECKPOINT_BESIDE]))
        f->v[FACT_CHECKPOINT_BESIDE] = beside_saving(&lines, loop);
    f->v[FACT_IMPORT_CPU_S] = lines.import_cpu_ns / 1e9;
    f->v[FACT_IMPORT_S] = lines.used_ns[PY_IMPORT] / 1e9;
    f->source[FACT_IMPORT_S] = NULL;
    f->v[FACT_COMPILE_SHARE] = at_most(
        fmax(lines.used_ns[PY_COMPILE] - early, 0) / loop, 1);
    const double load_ns = lines.used_ns[PY_LOADING] + lines.used_ns[PY_COLLATE];
    const struct loader *l = loaders_training(&r->loaders);
    if (load_ns > 0 && l && l->num_workers == 0)
        f->v[FACT_LOAD_LINE_SHARE] = lines.top[PY_LOADING].ns / load_ns;
    const double imports = lines.used_ns[PY_IMPORT];
    const double busy = imports > 0 ? at_most(lines.import_cpu_ns / imports, 1) : 1;
    f->v[FACT_MAIN_CPU_SHARE] = python_main_cpu_share(p, &r->account, busy);
    f->v[FACT_GC_SHARE] = gc_share(r, t, f->v[FACT_IMPORT_S], loop);
    f->v[FACT_GC_LIKELY_SHARE] = gc_likely(r, t, f->v[FACT_IMPORT_S], loop);
    f->v[FACT_GC_BESIDE_SHARE] = beside_collector(r, t, &lines.top[PY_ANY], f);
    set_lines(r, f, &lines);
    if (calls_collector(t, &lines.top[PY_ANY]))
        put_line(r, f, PLACE_COLLECT, &lines.top[PY_ANY]);
    if (is_allocated_in(r, &lines))
        put_line(r, f, PLACE_ALLOC, &lines.top[PY_PLAIN]);
}
