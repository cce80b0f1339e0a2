// link: a
/* zone.c: what a zone costs, one variant per process.
 *
 *     state=recorded   in a session of its own, or of `sonde run` when there is one
 *     state=off        no session was ever started
 *     state=paused     a session, but sonde_pause() was called
 *     state=site-off   a session, but the site is switched off
 *     form=site        sonde_begin(&site) … sonde_end(&site)
 *     form=block       SONDE_ZONE { … }
 *     form=site8       eight zones per iteration, form=site otherwise
 *     drainer=elsewhere   the session's drain thread on another core than the zones
 *     drainer=same        on the same core    drainer=anywhere   nothing is pinned
 *     drainer=none        no such thread: recording threads fold for themselves
 *     drainer=supervisor  our parent is `sonde run`: it goes to another core
 *     threads=1  zones=10000000 (per thread and pass)  passes=11  warmup=0 (zones)
 *     max_trace=0 (bytes, 0: the default)  output=DIR (of the session)
 *
 * Recorded zones are compared with the floor, those that are off with an empty loop.
 * The driver counts the zones in DIR afterwards: a benchmark that lost one is void.
 */
#include "floor.h"

#include <pthread.h>

#include <sonde/sonde.h>

/* ---- Loops ----------------------------------------------------------------- */

static struct sonde_site site = { .name = "bench", .file = __FILE__, .line = __LINE__ };

MEASURED static void site_loop(unsigned long n)
{
    for (unsigned long i = 0; i < n; i++) {
        sonde_begin(&site);
        OPAQUE();
        sonde_end(&site);
        OPAQUE();
    }
}

MEASURED static void block_loop(unsigned long n)
{
    for (unsigned long i = 0; i < n; i++) {
        SONDE_ZONE("bench", SONDE_NO_PHASE) {
            OPAQUE();
        }
        OPAQUE();
    }
}

MEASURED static void empty_loop(unsigned long n)
{
    for (unsigned long i = 0; i < n; i++) {
        OPAQUE();
        OPAQUE();
    }
}

#define EIGHT(x) x x x x x x x x

MEASURED static void site8_loop(unsigned long n)
{
    for (unsigned long i = 0; i < n; i += 8) {
        EIGHT(sonde_begin(&site); OPAQUE(); sonde_end(&site); OPAQUE();)
    }
}

MEASURED static void empty8_loop(unsigned long n)
{
    for (unsigned long i = 0; i < n; i += 8) {
        EIGHT(OPAQUE(); OPAQUE();)
    }
}

static const struct form {
    const char *name;
    loop_fn *loop, *empty;
} forms[] = {
    { "site", site_loop, empty_loop },
    { "block", block_loop, empty_loop },
    { "site8", site8_loop, empty8_loop },
};

static const struct form *form_named(const char *name)
{
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        if (strcmp(forms[i].name, name) == 0)
            return &forms[i];
    die(name, "no such form (site, block or site8)");
}

/* ---- Threads --------------------------------------------------------------- */

enum { MAX_THREADS = 64 };

static struct crew {
    unsigned threads;
    unsigned long zones;
    loop_fn *loop; /* what to run next; NULL: go home */
    pthread_barrier_t start, end;
    struct timing timing[MAX_THREADS];
} crew;

static void crew_work(unsigned me)
{
    crew.timing[me] = time_loop(crew.loop, crew.zones);
}

static void *crew_member(void *arg)
{
    const unsigned me = (unsigned)(uintptr_t)arg;
    for (;;) {
        (void)pthread_barrier_wait(&crew.start);
        if (!crew.loop)
            return NULL;
        crew_work(me);
        (void)pthread_barrier_wait(&crew.end);
    }
}

/* All threads run the loop at once. CPU time is the mean of the threads. Wall time is
 * from the start of all to the end of all, per zone of one thread: with several they
 * may take the core from each other. */
static struct timing crew_run(loop_fn *loop)
{
    crew.loop = loop;
    (void)pthread_barrier_wait(&crew.start);
    const double start = clock_ns(CLOCK_MONOTONIC);
    crew_work(0);
    (void)pthread_barrier_wait(&crew.end);
    const double ns = (clock_ns(CLOCK_MONOTONIC) - start) / (double)crew.zones;
    if (crew.threads == 1)
        return crew.timing[0];
    struct timing all = { .ns = ns };
    for (unsigned i = 0; i < crew.threads; i++)
        all.cpu_ns += crew.timing[i].cpu_ns / crew.threads;
    return all;
}

static void crew_alternate(struct passes *p, unsigned count, loop_fn *floor,
                           loop_fn *subject)
{
    p->count = count < MAX_PASSES ? count : MAX_PASSES;
    for (unsigned i = 0; i < p->count; i++) {
        p->floor[i] = crew_run(floor);
        const double before = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
        p->subject[i] = crew_run(subject);
        settle();
        p->process_cpu_ns[i] = (clock_ns(CLOCK_PROCESS_CPUTIME_ID) - before) /
                               (double)crew.zones / crew.threads;
    }
}

static void measure_crew(struct passes *p, unsigned count, loop_fn *floor,
                         loop_fn *subject)
{
    (void)pthread_barrier_init(&crew.start, NULL, crew.threads);
    (void)pthread_barrier_init(&crew.end, NULL, crew.threads);
    pthread_t thread[MAX_THREADS];
    for (unsigned i = 1; i < crew.threads; i++)
        if (pthread_create(&thread[i], NULL, crew_member, (void *)(uintptr_t)i) != 0)
            die("pthread_create", "no more threads");
    crew_alternate(p, count, floor, subject);
    crew.loop = NULL;
    (void)pthread_barrier_wait(&crew.start);
    for (unsigned i = 1; i < crew.threads; i++)
        (void)pthread_join(thread[i], NULL);
}

/* ---- Sessions -------------------------------------------------------------- */

/* Where things run: the drain thread inherits the core its creator is pinned to. */
static void start_session(char **argv, const char *drainer)
{
    const struct sonde_options options = {
        .size = sizeof options,
        .output = argument(argv, "output", NULL),
        .max_trace = argument_number(argv, "max_trace", 0),
        .no_drainer = strcmp(drainer, "none") == 0,
        .quiet = 1,
    };
    if (strcmp(drainer, "supervisor") == 0)
        pin(getppid(), 1);
    else if (strcmp(drainer, "elsewhere") == 0)
        pin(0, 1);
    else if (strcmp(drainer, "same") == 0)
        pin(0, 0);
    if (!sonde_session_active() && sonde_session_start(&options) < 0)
        die("cannot record", sonde_session_error());
}

static bool set_state(const char *state)
{
    if (strcmp(state, "paused") == 0)
        sonde_pause();
    else if (strcmp(state, "site-off") == 0)
        sonde_site_enable(&site, 0);
    else
        return strcmp(state, "recorded") == 0;
    return false;
}

int main(int argc, char **argv)
{
    (void)argc;
    const struct form *form = form_named(argument(argv, "form", "site"));
    const char *state = argument(argv, "state", "recorded");
    const char *drainer = argument(argv, "drainer", "elsewhere");
    const unsigned long warmup = argument_number(argv, "warmup", 0);
    const unsigned passes = (unsigned)argument_number(argv, "passes", 11);
    crew.threads = (unsigned)argument_number(argv, "threads", 1);
    crew.zones = argument_number(argv, "zones", 10000000) & ~7ul;
    if (crew.threads < 1 || crew.threads > MAX_THREADS)
        die("threads", "1 to 64");

    if (strcmp(state, "off") != 0)
        start_session(argv, drainer);
    if (strcmp(drainer, "anywhere") != 0)
        pin(0, 0);

    const bool recorded = set_state(state);
    form->loop(8);
    form->loop(warmup & ~7ul);
    settle();
    const struct resident before = resident_now();
    static struct passes result;
    measure_crew(&result, passes, recorded ? floor_loop : form->empty, form->loop);
    put_passes(&result);
    put_growth(before);
    const double each = (double)crew.zones * result.count;
    put_number("zones",
               recorded ? each * crew.threads + (double)(8 + (warmup & ~7ul)) : 0);
    put_number("lost", (double)sonde_lost());
    put_end();
    if (sonde_session_active())
        (void)sonde_session_stop();
    return 0;
}
