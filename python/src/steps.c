/* steps.c: which moments of a training program are the boundaries of its steps.
 *
 * A step goes from one fetch of the training loader to the next on the main thread. Which
 * loader that is shows when something is trained (a backward pass, an optimizer's step)
 * between two of its fetches: an iterator is a candidate at first, its step is taken back
 * when nothing was trained with it. Without a loader steps lie between steps of the first
 * optimizer. Programs that call sonde.step() say it themselves.
 *
 * Of several loaders that are read in turns before anything is trained (zip), the one read
 * first leads: a round is one step, and what the others are waited for is part of it.
 *
 * The last step has no fetch behind it. When its loop is left, or the program ends, it ends
 * there only if that comes about as soon behind its work as a fetch used to come; otherwise
 * it ended with its work, and what followed (an evaluation, an export) is no step.
 *
 * Some read a loader ahead (accelerate, prefetchers): two fetches, then train the first
 * batch, and the last one when the loader has ended. A step then trains the batch that was
 * fetched before it began, and the last one stays open behind the end of the loader until
 * something else is fetched, or the program ends.
 *
 * A fetch without gradients (no_grad, inference_mode), or while the model that was trained
 * is switched to evaluation, is the evaluation's: no step, no training. So is one behind a
 * batch with which a model was only asked, without gradients. That holds in programs that
 * train; one that only infers has its data loading told as such.
 *
 * Runs at every batch, hence C. Everything with the GIL held.
 */
#include <string.h>
#include <time.h>

#include "fetches.h"
#include "torch.h"

enum {
    GIVE_UP = 10
}; /* optimizer steps after which a loader fetched from once is none */

static struct {
    struct fetches
        *iterator;    /* whose steps these are; borrowed, it tells when it goes */
    bool confirmed;   /* something was trained between its fetches */
    bool open;        /* a step has begun … */
    uint64_t samples; /* … with these samples so far */
    uint64_t work;    /* work() at its last fetch */
    uint64_t optimizer_steps, since_fetch;
    uint64_t first_optimizer; /* id, while no loader is in use; 0: none yet */
    bool trains;              /* there is an optimizer */
    uint64_t ahead,
        carried; /* fetches before anything was trained, less one; samples */
    bool has_tail;
    uint64_t tail; /* work() at the end of a loader read ahead */
    bool in_turns; /* ours was fetched before, and something trained with it */
    uint64_t worked, behind; /* ticks: end of the last work; between that of the step
                                before and the fetch that ended it */
    double worked_s;         /* since 1970 */
    uint64_t evaluations;    /* roots_evaluations() then */
    bool evaluated;          /* something was fetched for one since */
    const struct fetches *evaluating; /* whose evaluation goes on; address only */
    uint64_t epoch, epoch_steps, epoch_samples;
    double epoch_began;
} now;

/* Steps that the program tells win over those that are guessed. */
static bool user_steps;
static unsigned long main_thread;
static PyObject *backward;        /* the Watched around torch's engine: it counts */
static PyObject *epoch_told;      /* function(number, start, end, steps, samples) */
static PyObject *which_optimizer; /* function() -> id of the one whose step runs */
static PyObject *step_told;       /* function(by): a trial counts */

/* Grows with everything that is trained. */
static uint64_t work(void)
{
    return (backward ? watched_calls(backward) : 0) + now.optimizer_steps;
}

static bool is_main(void)
{
    return PyThread_get_thread_ident() == main_thread;
}

static double real_s(void)
{
    struct timespec t = { 0, 0 };
    (void)clock_gettime(CLOCK_REALTIME, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* ---- The open step ------------------------------------------------------------------------ */

static void count_stepped(struct fetches *f, int64_t by)
{
    if (!f || !f->life || f->life != book()->life)
        return;
    put64(&f->row->stepped, f->row->stepped + (uint64_t)by);
    if (f->epoch)
        put64(&f->epoch->stepped, f->epoch->stepped + (uint64_t)by);
}

/* Of the open step, in the pass under way. */
static void count_samples(struct fetches *f, int64_t by)
{
    if (f && f->life && f->life == book()->life && f->epoch)
        put64(&f->epoch->samples, f->epoch->samples + (uint64_t)by);
}

/* An evaluation began since the last work. */
static bool has_evaluated(void)
{
    return now.evaluated || now.evaluations != roots_evaluations();
}

/* Whoever counts steps (sonde/_trial) runs before the step does, outside of it; −1: the
 * one that began last was none. */
static void tell_step(int by)
{
    if (!step_told || !is_main())
        return;
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyObject *answer = PyObject_CallFunction(step_told, "i", by);
    Py_XDECREF(answer);
    swallow("steps");
    PyErr_Restore(type, value, traceback);
}

static void begin(void)
{
    tell_step(1);
    if (now.open && now.worked && !has_evaluated())
        now.behind = sonde_ticks() - now.worked;
    now.worked = 0;
    sonde_step();
    count_stepped(now.iterator, 1);
    now.open = true;
    now.samples = 0;
}

static void take_back(void)
{
    if (now.open && !user_steps) {
        sonde_step_cancel(now.samples);
        tell_step(-1);
        count_stepped(now.iterator, -1);
        count_samples(now.iterator, -(int64_t)now.samples);
    }
    now.open = false;
}

static void count_step(void)
{
    now.epoch_steps++;
    now.epoch_samples += now.samples;
}

static void end(void)
{
    if (now.open && !user_steps) {
        sonde_step_end();
        count_step();
    }
    now.open = false;
}

/* Its work was over for longer than a fetch used to take, or an evaluation has begun. */
static bool is_over(void)
{
    return now.worked &&
           (has_evaluated() || sonde_ticks() - now.worked > 2 * now.behind);
}

/* No fetch follows. Whether it ended with its work, and not now. */
static bool end_with_work(void)
{
    const bool earlier = now.open && !user_steps && is_over();
    if (earlier) {
        sonde_step_ended(now.worked);
        count_step();
        now.open = false;
    }
    end();
    return earlier;
}

void steps_worked(void)
{
    if (!is_main())
        return;
    now.worked = sonde_ticks();
    now.worked_s = real_s();
    now.evaluations = roots_evaluations();
    now.evaluated = false;
    now.evaluating = NULL;
}

/* ---- Epochs ------------------------------------------------------------------------------- */

static void tell_epoch(double end)
{
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyObject *answer = PyObject_CallFunction(epoch_told, "KddKK", now.epoch,
                                             now.epoch_began, end, now.epoch_steps,
                                             now.epoch_samples);
    Py_XDECREF(answer);
    swallow("steps");
    PyErr_Restore(type, value, traceback);
}

/* `with_work`: when the last work ended; else now. */
static void epoch_ended(bool with_work)
{
    if (!now.confirmed || now.epoch_steps == 0)
        return;
    now.epoch++;
    if (epoch_told)
        tell_epoch(with_work ? now.worked_s : real_s());
}

static void epoch_ends(void)
{
    epoch_ended(false);
}

/* ---- Which iterator ----------------------------------------------------------------------- */

static void flag(struct fetches *f, uint32_t what)
{
    if (f && f->life && f->life == book()->life)
        __atomic_fetch_or(&f->row->flags, what, __ATOMIC_RELAXED);
}

static void confirm(void)
{
    now.confirmed = true;
    flag(now.iterator, LOADER_TRAINS);
}

/* Something was trained since its last fetch. */
static bool trained_with(const struct fetches *f)
{
    return f->seen.fetched && f->seen.work != work();
}

static void adopt(struct fetches *f, bool confirmed)
{
    now.iterator = f;
    now.confirmed = false;
    if (confirmed)
        confirm();
    now.first_optimizer = 0;
    now.ahead = now.carried = 0;
    now.in_turns = !confirmed && trained_with(f);
    if (!f->seen.fetched)
        f->seen.began = real_s();
    /* In turns with another, who was taken for the one that leads: one step is behind it. */
    now.epoch_began = now.in_turns ? f->seen.began : real_s();
    now.epoch_steps = now.in_turns;
    now.epoch_samples = now.in_turns ? f->seen.samples : 0;
}

static void next_of_ours(void)
{
    const bool trained = work() > now.work;
    if (!now.confirmed && trained && now.open)
        confirm();
    if (now.confirmed) {
        if (now.open)
            count_step();
        begin();
        return;
    }
    /* No training yet: not a training loader, or one that is read ahead. */
    if (now.open) {
        now.ahead++;
        now.carried += now.samples;
    }
    take_back();
    if (trained) /* without a step so far: from here on they count */
        confirm();
    begin();
}

/* Ours leads: nothing was trained since it was fetched, and it is known to train, by its
 * loader or because both were there before. */
static bool is_led(const struct fetches *f)
{
    if (!now.iterator || !now.open || work() != now.work)
        return false;
    const struct loader_row *ours = now.iterator->row;
    return now.confirmed || (now.in_turns && trained_with(f)) ||
           (ours != f->row && ours->flags & LOADER_TRAINS);
}

/* Another iterator: while ours goes on, it must train without ours to take over. */
static void first_of_another(struct fetches *f)
{
    if (is_led(f)) {
        confirm();
        if (trained_with(f))
            flag(f, LOADER_TRAINS);
    }
    if (now.iterator && now.confirmed) {
        const bool again = f->seen.other && f->seen.other_work != work() &&
                           f->seen.other_ours == now.work;
        f->seen.other = true;
        f->seen.other_work = work();
        f->seen.other_ours = now.work;
        if (!again)
            return;
        end();
        epoch_ends();
        adopt(f, true);
    } else {
        if (now.open && work() > now.work)
            end();
        else
            take_back();
        adopt(f, false);
    }
    begin();
}

/* The loader was read ahead and had ended: was its last batch trained? */
static void end_tail(void)
{
    if (!now.has_tail)
        return;
    now.has_tail = false;
    bool earlier = false;
    if (work() > now.tail)
        earlier = end_with_work();
    else
        take_back();
    epoch_ended(earlier);
}

/* ---- Evaluation --------------------------------------------------------------------------- */

/* With its last batch a model was asked, and none called to be trained. */
static bool only_asked(const struct fetches *f)
{
    return f->seen.fetched && f->seen.asked != roots_asked() &&
           f->seen.trained == roots_trained();
}

static bool is_evaluation(struct fetches *f)
{
    if (!now.trains && !work())
        return false;
    if (now.iterator == f && (now.confirmed || work() > now.work))
        return false;
    if (trained_with(f))
        return false; /* however it is fetched */
    if (!roots_gradients())
        return true;
    if (only_asked(f)) {
        if (work()) /* before, it may be a look at what will be trained with */
            flag(f, LOADER_EVALUATES);
        return true;
    }
    if (f->row->flags & LOADER_TRAINS)
        return false;
    if (f->seen.fetched &&
        (f->seen.evaluating || f->seen.evaluations != roots_evaluations()))
        return true;
    return roots_switched() || f->row->flags & LOADER_EVALUATES;
}

bool steps_evaluating(void)
{
    return now.evaluating && is_main();
}

static void remember(struct fetches *f, bool evaluating)
{
    f->seen.fetched = true;
    f->seen.evaluating = evaluating;
    f->seen.work = work();
    f->seen.evaluations = roots_evaluations();
    f->seen.trained = roots_trained();
    f->seen.asked = roots_asked();
    now.evaluating = evaluating ? f : NULL;
    now.evaluated |= evaluating;
}

/* The program tells its steps: who feeds them? */
static void fetch_of_users(struct fetches *f, bool evaluating)
{
    const uint64_t steps = sonde_steps();
    if (!evaluating && f->seen.fetched && steps > f->seen.steps)
        count_stepped(f, 1);
    f->seen.steps = steps;
}

static void evaluation_over(const struct fetches *f)
{
    if (now.evaluating == f)
        now.evaluating = NULL;
}

/* ---- From the loader ---------------------------------------------------------------------- */

static void fetch_of_ours(struct fetches *f)
{
    if (now.iterator == f)
        next_of_ours();
    else
        first_of_another(f);
    if (now.iterator == f) {
        now.work = work();
        now.since_fetch = 0;
    }
}

static void drop_candidate(const struct fetches *f)
{
    if (now.iterator != f)
        return;
    take_back();
    now.iterator = NULL;
}

bool steps_fetch_begins(struct fetches *f)
{
    if (!is_main())
        return false;
    const bool evaluating = is_evaluation(f);
    if (user_steps) {
        fetch_of_users(f, evaluating);
    } else {
        end_tail();
        if (evaluating)
            drop_candidate(f);
        else
            fetch_of_ours(f);
    }
    remember(f, evaluating);
    return evaluating;
}

void steps_fetch_ends(struct fetches *f, uint64_t samples)
{
    f->seen.samples = samples;
    if (!now.open || now.iterator != f || user_steps || !is_main())
        return;
    if (samples) {
        now.samples += samples;
        sonde_step_add(samples);
        count_samples(f, (int64_t)samples);
    }
}

void steps_exhausted(struct fetches *f)
{
    evaluation_over(f);
    if (now.iterator != f)
        return;
    if (now.ahead && now.confirmed && now.open && !user_steps) {
        now.has_tail = true;
        now.tail = work();
        now.samples += now.carried;
        sonde_step_add(now.carried);
    } else {
        take_back();
        epoch_ends();
    }
    now.iterator = NULL;
}

/* The iterator was dropped: its loop was left before it ended. */
void steps_gone(struct fetches *f)
{
    evaluation_over(f);
    if (now.iterator != f)
        return;
    if (!user_steps) {
        bool earlier = false;
        if (work() > now.work) {
            confirm();
            earlier = end_with_work();
        } else {
            take_back();
        }
        epoch_ended(earlier);
    }
    now.iterator = NULL;
}

/* ---- From optimizers ---------------------------------------------------------------------- */

static uint64_t optimizer_in_call(void)
{
    PyObject *answer = which_optimizer ? PyObject_CallObject(which_optimizer, NULL)
                                       : NULL;
    const unsigned long long id = answer ? PyLong_AsUnsignedLongLong(answer) : 0;
    Py_XDECREF(answer);
    if (PyErr_Occurred()) {
        swallow("steps");
        return 0;
    }
    return id;
}

/* optimizer_begins(_): an optimizer's step() has been called. */
PyObject *py_optimizer_begins(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    now.optimizer_steps++;
    now.since_fetch++;
    if (!is_main() || user_steps || now.has_tail)
        return new_none();
    if (now.iterator && !now.confirmed) {
        if (now.since_fetch < GIVE_UP)
            return new_none();
        take_back();
        now.iterator = NULL;
    }
    if (!now.iterator) {
        const uint64_t optimizer = optimizer_in_call();
        if (!now.first_optimizer)
            now.first_optimizer = optimizer;
        if (now.first_optimizer == optimizer)
            begin();
    }
    return new_none();
}

/* optimizer_made(_): this program trains. */
PyObject *py_optimizer_made(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    now.trains = true;
    return new_none();
}

/* ---- From the program --------------------------------------------------------------------- */

PyObject *py_step(PyObject *module, PyObject *args, PyObject *kwargs)
{
    (void)module;
    static char *names[] = { "samples", NULL };
    Py_ssize_t samples = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|n:step", names, &samples))
        return NULL;
    if (samples < 0) {
        PyErr_SetString(PyExc_ValueError, "step(samples=…) cannot be negative");
        return NULL;
    }
    if (!user_steps && now.open) { /* began by a guess; the program knows better */
        sonde_step_cancel(0);
        tell_step(-1);
        count_stepped(now.iterator, -1);
        now.open = false;
    }
    user_steps = true;
    tell_step(1);
    sonde_step_samples((uint64_t)samples);
    return new_none();
}

/* ---- From sonde/_torch/steps.py ------------------------------------------------------------- */

static void replace(PyObject **place, PyObject *o)
{
    PyObject *old = *place;
    *place = o == Py_None ? NULL : new_ref(o);
    Py_XDECREF(old);
}

/* steps_start(main thread, backward, epoch_told, which_optimizer) */
PyObject *py_steps_start(PyObject *module, PyObject *args)
{
    (void)module;
    unsigned long thread;
    PyObject *watched, *told, *which;
    if (!PyArg_ParseTuple(args, "kOOO:steps_start", &thread, &watched, &told, &which))
        return NULL;
    if (watched != Py_None && !watched_check(watched))
        return PyErr_Format(PyExc_TypeError, "not a Watched: %R", watched);
    main_thread = thread;
    replace(&backward, watched);
    replace(&epoch_told, told);
    replace(&which_optimizer, which);
    return new_none();
}

/* steps_told(function or None): called with 1 when a step is about to begin, with −1 when
 * it turned out to be none: a loader had no more batches. */
PyObject *py_steps_told(PyObject *module, PyObject *told)
{
    (void)module;
    replace(&step_told, told);
    return new_none();
}

/* steps_end(): the program ends; what trains the last batch has been seen. */
PyObject *py_steps_end(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    end_tail();
    if (now.iterator)
        steps_gone(now.iterator);
    return new_none();
}

/* steps_forget(): a forked child has no steps yet. */
PyObject *py_steps_forget(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    const bool trains = now.trains;
    memset(&now, 0, sizeof now);
    now.trains = trains;
    main_thread = PyThread_get_thread_ident();
    return new_none();
}
