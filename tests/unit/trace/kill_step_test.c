// labels: no_asan
// timeout: 400
/* kill_step_test.c: a folder killed at any instruction loses nothing and counts
 * nothing twice.
 *
 * What a killed folder leaves behind is the file as its last instruction left it, and
 * a lock that the kernel gives back. So one folder is run instruction by instruction
 * (ptrace), and whenever the file has changed, the file as it is then goes through
 * what can happen next:
 *   - a reader opens it;
 *   - the program goes on and a new folder counts; then the program dies, and the rest
 *     is counted;
 *   - the same, but the folder is one that was there before and has its cache.
 * The counts must be exact each time. Beside that, folders are killed for good with
 * SIGKILL at random moments.
 *
 * Every state is tried. Functions that do not write to the file (adding up words, CRC,
 * loading) are run through, and of zeroing a block the beginning, the middle and the
 * end are tried; SONDE_SOAK=1 goes through all of these step by step as well, and tries
 * every 64th state of a block that is being zeroed.
 */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/user.h>
#include <time.h>

#include "handmade.h"
#include "num/prng.h"
#include "trace/cells.h"
#include "trace/crc32c.h"
#include "trace/folder.h"
#include "trace/reader.h"

enum { BUDGET = 40, TOKEN = 0x70c3 };

/* ---- What must come out ----------------------------------------------------------- */

struct expected {
    uint64_t zones, inner, steps, values, events; /* while the program lives */
    uint64_t open;                                /* zones more when it is dead */
    uint64_t now;                                 /* ticks of the last event */
};

static uint64_t zones_of(const struct trace *trace, unsigned site)
{
    uint64_t count = 0;
    for (unsigned i = FIRST_NODE; i < trace_node_count(trace); i++)
        if (trace_node(trace, i) && trace_node(trace, i)->site == site)
            count += trace_node(trace, i)->count;
    return count;
}

/* `folded`: the published statistics alone must say so. */
static void check(const char *path, const struct expected *e, bool alive, bool folded)
{
    struct trace *trace;
    uint64_t values = 0;
    assert_int_equal(trace_open(path, NULL, &trace), 0);
    assert_string_equal(trace_damage(trace), "");
    assert_int_equal(trace_info(trace)->alive, alive);
    if (folded)
        assert_int_equal(trace_info(trace)->unfolded_blocks, 0);
    assert_int_equal(zones_of(trace, SITE(0)), e->zones + (alive ? 0 : e->open));
    assert_int_equal(zones_of(trace, SITE(1)), e->inner);
    assert_int_equal(trace_node(trace, NODE_STEP)->count, e->steps);
    for (unsigned i = 0; i < trace_value_count(trace); i++)
        values += trace_value(trace, i)->count;
    assert_int_equal(values, e->values);
    assert_int_equal(trace_info(trace)->events, e->events);
    trace_free(trace);
}

/* ---- The file to be folded -------------------------------------------------------- */

struct scene {
    struct handmade t;
    struct expected expected;
    bool alive;      /* what the folder is told of the owner */
    uint8_t *before; /* the file before the folder comes */
    size_t size;
};

/* A block with zones, an inner zone each, values, and on lane 0 a step. */
static void add_block(struct handmade *t, struct expected *e, unsigned lane,
                      unsigned state, unsigned zones, unsigned left_open)
{
    struct words w = { 0 };
    const uint64_t base = e->now;
    const bool step = lane == 0 && zones;
    for (unsigned i = 0; i < zones; i++) {
        words_begin(&w, SITE(0), e->now += 10);
        words_zone(&w, SITE(1), e->now + 10, e->now + (100ULL << i % 12));
        words_value(&w, SITE(2), VALUE_ZONE, i, e->now += 200000);
        words_end(&w, SITE(0), e->now += 1000);
    }
    if (step)
        words_step(&w, 1, e->now += 10);
    for (unsigned i = 0; i < left_open; i++)
        words_begin(&w, SITE(0), e->now += 10);
    (void)handmade_block(t, lane, state, &w, base);
    e->zones += zones;
    e->inner += zones;
    e->values += zones;
    e->steps += step;
    e->open += left_open;
    e->events += 5 * zones + step + left_open;
    words_release(&w);
}

static void remember(struct scene *s)
{
    struct stat st;
    assert_int_equal(stat(s->t.file.path, &st), 0);
    s->size = (size_t)st.st_size;
    s->before = malloc(s->size);
    memcpy(s->before, s->t.file.base, s->size);
}

static uint64_t *first_in(struct scene *s, unsigned state, uint32_t *ret_block)
{
    for (uint32_t i = 6; i < tracefile_live(&s->t.file)->next_block; i++) {
        uint64_t *entry = tracefile_entry(&s->t.file, i);
        if (block_kind(*entry) == BLOCK_EVENTS && block_state(*entry) == state) {
            *ret_block = i;
            return entry;
        }
    }
    return NULL;
}

static void spoil(struct scene *s)
{
    uint32_t block;
    uint64_t *entry = first_in(s, STATE_FOLDED, &block);
    assert_non_null(entry);
    handmade_state(&s->t, block, STATE_SEALED, block_lane(*entry), block_seq(*entry));
    entry = first_in(s, STATE_FREE, &block);
    assert_non_null(entry);
    handmade_state(&s->t, block, STATE_CLEANING, 0, 0);
    memset(tracefile_block(&s->t.file, block) + 30000, 7, 9000);
    /* The free ones are taken by threads that have not recorded yet. */
    for (unsigned lane = 2; first_in(s, STATE_FREE, &block); lane++)
        add_block(&s->t, &s->expected, lane, STATE_OPEN, 0, 0);
}

/* A file that was folded before, with everything in it that a pass can meet: a counted
 * block not marked as such, one left half cleaned, sealed and open blocks. */
static void make_scene(struct scene *s, bool alive)
{
    *s = (struct scene){ .expected = { .now = 1ULL << 40 }, .alive = alive };
    struct expected *e = &s->expected;
    handmade_init(&s->t, BUDGET);
    (void)handmade_site(&s->t, "zone");
    (void)handmade_site(&s->t, "inner");
    (void)handmade_site(&s->t, "value");
    add_block(&s->t, e, 0, STATE_SEALED, 3, 0);
    add_block(&s->t, e, 0, STATE_SEALED, 2, 0);
    add_block(&s->t, e, 1, STATE_SEALED, 4, 0);
    e->steps--; /* counted from one to the next */
    struct folder earlier;
    folder_init(&earlier, &s->t.file);
    earlier.token = TOKEN;
    assert_int_equal(folder_pass(&earlier, true, 100), 3);
    folder_release(&earlier);
    add_block(&s->t, e, 0, STATE_SEALED, 14, 0);
    add_block(&s->t, e, 1, STATE_OPEN, 9, 2);
    /* The file may not grow: what is needed must be cleaned. */
    assert_true(control_take(s->t.control, BUDGET - s->t.control->used_blocks));
    spoil(s);
    if (!alive)
        handmade_kill_owner(&s->t);
    check(s->t.file.path, e, alive, false);
    remember(s);
}

static void free_scene(struct scene *s)
{
    free(s->before);
    handmade_release(&s->t);
}

/* Puts the file back to what it was before the folder came. */
static void restore(struct scene *s)
{
    memcpy(s->t.file.base, s->before, s->size);
    assert_int_equal(truncate(s->t.file.path, (off_t)s->size), 0);
}

/* ---- What can happen next --------------------------------------------------------- */

struct trial {
    struct handmade t; /* a second file, where the states are tried */
    struct scene *scene;
    unsigned states;
};

static void make_trial(struct trial *trial, struct scene *s)
{
    *trial = (struct trial){ .scene = s };
    handmade_init(&trial->t, 10 * BUDGET);
}

static void free_trial(struct trial *trial)
{
    handmade_release(&trial->t);
}

static void put_bytes(struct trial *trial, const uint8_t *bytes, size_t size)
{
    assert_int_equal(truncate(trial->t.file.path, 0), 0);
    assert_int_equal(fd_pwrite_full(trial->t.file.fd, bytes, size, 0), 0);
    trial->t.control->used_blocks = size / BLOCK_SIZE;
}

static void fold_on(struct folder *f, bool alive)
{
    for (unsigned i = 0; i < 10 && !f->finished; i++)
        if (folder_pass(f, alive, 100) == 0 && alive)
            return;
    assert_true(f->finished);
}

/* The program fills two blocks more. */
static void record_on(struct trial *trial, struct expected *e)
{
    memcpy(trial->t.seq, trial->scene->t.seq, sizeof trial->t.seq);
    add_block(&trial->t, e, 0, STATE_SEALED, 3, 0);
    add_block(&trial->t, e, 7, STATE_SEALED, 5, 0);
}

static void go_on_with(struct trial *trial, struct folder *f)
{
    struct expected e = trial->scene->expected;
    const char *path = trial->t.file.path;
    const bool alive = trial->scene->alive;
    check(path, &e, alive, false);
    if (alive) {
        record_on(trial, &e);
        fold_on(f, true);
        check(path, &e, true, false);
        handmade_kill_owner(&trial->t);
        check(path, &e, false, false);
    }
    fold_on(f, false);
    check(path, &e, false, true);
}

static void try_state(struct trial *trial, const uint8_t *bytes, size_t size)
{
    struct folder f;
    trial->states++;
    put_bytes(trial, bytes, size);
    folder_init(&f, &trial->t.file);
    go_on_with(trial, &f);
    folder_release(&f);

    /* The folder that committed last has not been here for a while; it is back. */
    put_bytes(trial, trial->scene->before, trial->scene->size);
    folder_init(&f, &trial->t.file);
    f.token = TOKEN;
    assert_int_equal(folder_pass(&f, true, 0), 0); /* only loads its cache */
    put_bytes(trial, bytes, size);
    go_on_with(trial, &f);
    folder_release(&f);
}

/* ---- Stepping --------------------------------------------------------------------- */

static bool soak(void)
{
    const char *text = getenv("SONDE_SOAK");
    return text && *text && strcmp(text, "0") != 0;
}

/* The child: one pass, between two stops. */
static _Noreturn void fold_in_child(struct scene *s, bool traced)
{
    struct tracefile file;
    struct folder f;
    if (traced && ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0)
        _exit(77);
    if (tracefile_open(s->t.file.path, s->t.control, &file) < 0)
        _exit(1);
    folder_init(&f, &file);
    (void)raise(SIGSTOP);
    const int n = folder_pass(&f, s->alive, 100);
    _exit(n >= 0 ? 0 : 2);
}

struct stepper {
    pid_t pid;
    uint64_t steps;
    bool done;
};

static uint64_t registers(const struct stepper *p, uint64_t *ret_sp)
{
    struct user_regs_struct r;
    assert_int_equal(ptrace(PTRACE_GETREGS, p->pid, NULL, &r), 0);
    *ret_sp = r.rsp;
    return r.rip;
}

static void wait_stop(struct stepper *p)
{
    int status;
    assert_int_equal(waitpid(p->pid, &status, __WALL), p->pid);
    p->done = WIFEXITED(status);
    if (p->done)
        assert_int_equal(WEXITSTATUS(status), 0);
    else
        assert_true(WIFSTOPPED(status) && WSTOPSIG(status) == SIGTRAP);
}

static void step(struct stepper *p)
{
    assert_int_equal(ptrace(PTRACE_SINGLESTEP, p->pid, NULL, NULL), 0);
    wait_stop(p);
    p->steps++;
}

/* At the first instruction of a function: runs to where it returns. */
static void run_to_return(struct stepper *p, uint64_t sp)
{
    struct user_regs_struct r;
    errno = 0;
    const uint64_t back = (uint64_t)ptrace(PTRACE_PEEKDATA, p->pid,
                                           (void *)(uintptr_t)sp, NULL);
    void *at = (void *)(uintptr_t)back;
    const long code = ptrace(PTRACE_PEEKTEXT, p->pid, at, NULL);
    assert_int_equal(errno, 0);
    const long trap = (long)(((uint64_t)code & ~0xffULL) | 0xcc);
    assert_int_equal(ptrace(PTRACE_POKETEXT, p->pid, at, (void *)trap), 0);
    assert_int_equal(ptrace(PTRACE_CONT, p->pid, NULL, NULL), 0);
    wait_stop(p);
    assert_false(p->done);
    assert_int_equal(ptrace(PTRACE_POKETEXT, p->pid, at, (void *)code), 0);
    assert_int_equal(ptrace(PTRACE_GETREGS, p->pid, NULL, &r), 0);
    r.rip = back;
    assert_int_equal(ptrace(PTRACE_SETREGS, p->pid, NULL, &r), 0);
}

/* Functions that write nothing to the file. */
static bool is_dull(uint64_t ip)
{
    return ip == (uint64_t)(uintptr_t)fold_words ||
           ip == (uint64_t)(uintptr_t)crc32c_words ||
           ip == (uint64_t)(uintptr_t)cells_load;
}

/* The parts of the file that a pass writes to, a block each; events are left out. */
static bool may_change(struct scene *s, uint32_t block)
{
    const uint64_t *entry = tracefile_entry(&s->t.file, block);
    const unsigned kind = block < 2 ? BLOCK_LIVE : entry ? block_kind(*entry) : 0;
    return kind != BLOCK_EVENTS && kind != BLOCK_SITES && kind != BLOCK_STRINGS;
}

struct watch {
    uint8_t *last; /* the file as it was last seen */
    size_t size;
    unsigned zeroing; /* changes in a row that were of no cell and no state */
};

/* Only a part of each block is in use in so small a file; of events, the head. */
enum { IN_USE = 36 * 1024, HEAD = sizeof(struct events_head) };

static bool has_changed(struct scene *s, struct watch *w)
{
    const size_t size = tracefile_live(&s->t.file)->next_block * (size_t)BLOCK_SIZE;
    bool changed = size != w->size, cells = changed;
    for (uint32_t i = 0; i < size / BLOCK_SIZE && i < w->size / BLOCK_SIZE; i++) {
        const uint8_t *last = w->last + (size_t)i * BLOCK_SIZE;
        const uint8_t *now = s->t.file.base + (size_t)i * BLOCK_SIZE;
        const bool events = !may_change(s, i);
        cells |= memcmp(last, now, events ? HEAD : i == 2 ? 1024 : IN_USE) != 0;
        changed |= events && soak() && memcmp(last, now, BLOCK_SIZE) != 0;
    }
    changed |= cells;
    if (!changed)
        return false;
    w->zeroing = cells ? 0 : w->zeroing + 1;
    struct stat st;
    assert_int_equal(stat(s->t.file.path, &st), 0);
    w->size = (size_t)st.st_size < size ? (size_t)st.st_size : size;
    w->last = realloc(w->last, w->size);
    memcpy(w->last, s->t.file.base, w->size);
    return true;
}

static void start(struct stepper *p, struct scene *s)
{
    int status;
    *p = (struct stepper){ 0 };
    (void)fflush(NULL);
    p->pid = fork();
    if (p->pid == 0)
        fold_in_child(s, true);
    assert_true(p->pid > 0);
    assert_int_equal(waitpid(p->pid, &status, 0), p->pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
        print_message("ptrace is not allowed here\n");
        skip();
    }
    assert_true(WIFSTOPPED(status));
}

/* Parent and child by turns: on one processor they need not wake each other. */
static void use_one_processor(bool on)
{
    static cpu_set_t all;
    cpu_set_t one;
    if (!on) {
        (void)sched_setaffinity(0, sizeof all, &all);
        return;
    }
    (void)sched_getaffinity(0, sizeof all, &all);
    const int cpu = sched_getcpu();
    CPU_ZERO(&one);
    CPU_SET((unsigned)(cpu < 0 ? 0 : cpu), &one);
    (void)sched_setaffinity(0, sizeof one, &one);
}

/* A block half zeroed, as a state of its own. */
static void try_half_zeroed(struct trial *trial, const struct watch *w)
{
    uint8_t *bytes = malloc(w->size);
    memcpy(bytes, w->last, w->size);
    for (uint32_t i = 6; i < w->size / BLOCK_SIZE; i++) {
        uint64_t word;
        memcpy(&word, bytes + 2 * (size_t)BLOCK_SIZE + 8 * (size_t)i, sizeof word);
        if (block_kind(word) == BLOCK_EVENTS && block_state(word) == STATE_CLEANING)
            memset(bytes + (size_t)i * BLOCK_SIZE, 0, BLOCK_SIZE / 2);
    }
    try_state(trial, bytes, w->size);
    free(bytes);
}

static void advance(struct stepper *p, struct trial *trial, const struct watch *w)
{
    uint64_t sp;
    const uint64_t ip = registers(p, &sp);
    const bool zeroing = ip == (uint64_t)(uintptr_t)memset;
    if (soak() || (!zeroing && !is_dull(ip))) {
        step(p);
        return;
    }
    if (zeroing)
        try_half_zeroed(trial, w);
    run_to_return(p, sp);
}

/* Steps through a pass and tries the states in between. */
static void step_through(struct scene *s, const char *name)
{
    struct stepper p;
    struct trial trial;
    struct watch w = { malloc(s->size), s->size, 0 };
    unsigned seen = 0;
    memcpy(w.last, s->before, s->size);
    make_trial(&trial, s);
    use_one_processor(true);
    start(&p, s);
    while (!p.done) {
        advance(&p, &trial, &w);
        if (!has_changed(s, &w))
            continue;
        if (w.zeroing % 64 == 0)
            try_state(&trial, w.last, w.size);
        seen++;
    }
    use_one_processor(false);
    print_message("%s: %llu instructions, %u states, %u tried\n", name,
                  (unsigned long long)p.steps, seen, trial.states);
    assert_true(seen > 60);
    check(s->t.file.path, &s->expected, s->alive, !s->alive);
    free_trial(&trial);
    free(w.last);
}

#if defined(SONDE_SANITIZED) || !defined(__x86_64__)
#define NEEDS_PLAIN_CODE() skip()
#else
#define NEEDS_PLAIN_CODE()
#endif

static void a_pass_over_a_living_program_s_file(void **state)
{
    (void)state;
    NEEDS_PLAIN_CODE();
    struct scene s;
    make_scene(&s, true);
    step_through(&s, "alive");
    free_scene(&s);
}

static void the_last_pass_over_a_dead_program_s_file(void **state)
{
    (void)state;
    NEEDS_PLAIN_CODE();
    struct scene s;
    make_scene(&s, false);
    step_through(&s, "dead");
    free_scene(&s);
}

/* The folder before was itself killed in the middle of its publish. */
static void a_pass_that_must_first_repair(void **state)
{
    (void)state;
    NEEDS_PLAIN_CODE();
    struct scene s;
    struct folder killed;
    make_scene(&s, true);
    folder_init(&killed, &s.t.file);
    const uint64_t commit = tracefile_live(&s.t.file)->commit;
    uint64_t states[BUDGET];
    for (uint32_t i = 0; i < BUDGET; i++) {
        const uint64_t *entry = tracefile_entry(&s.t.file, i);
        states[i] = entry ? *entry : 0;
    }
    uint8_t *events = malloc(s.size);
    memcpy(events, s.t.file.base, s.size);
    assert_true(folder_pass(&killed, true, 100) > 0);
    folder_release(&killed);
    /* Blocks and commit are as before; the cells keep what was written. */
    tracefile_live(&s.t.file)->commit = commit;
    for (uint32_t i = 6; i < s.size / BLOCK_SIZE; i++) {
        *tracefile_entry(&s.t.file, i) = states[i];
        if (block_kind(states[i]) == BLOCK_EVENTS)
            memcpy(s.t.file.base + (size_t)i * BLOCK_SIZE,
                   events + (size_t)i * BLOCK_SIZE, BLOCK_SIZE);
    }
    free(events);
    free(s.before);
    remember(&s);
    check(s.t.file.path, &s.expected, true, false);
    step_through(&s, "repair");
    free_scene(&s);
}

/* ---- Killed for good -------------------------------------------------------------- */

static void nap_ns(uint64_t ns)
{
    const struct timespec ts = { 0, (long)ns };
    (void)nanosleep(&ts, NULL);
}

static double kill_once(struct scene *s, uint64_t delay_ns)
{
    int status;
    struct timespec a, b;
    (void)fflush(NULL);
    const pid_t pid = fork();
    if (pid == 0)
        fold_in_child(s, false);
    assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
    assert_true(WIFSTOPPED(status));
    (void)clock_gettime(CLOCK_MONOTONIC, &a);
    assert_int_equal(kill(pid, SIGCONT), 0);
    if (delay_ns != UINT64_MAX) {
        nap_ns(delay_ns);
        assert_int_equal(kill(pid, SIGKILL), 0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    (void)clock_gettime(CLOCK_MONOTONIC, &b);
    return (double)(b.tv_sec - a.tv_sec) * 1e9 + (double)(b.tv_nsec - a.tv_nsec);
}

static void sigkill_at_random_moments(void **state)
{
    (void)state;
    struct scene s;
    struct trial trial;
    struct prng random;
    const unsigned kills = soak() ? 2000 : 100;
    unsigned before = 0, after = 0;
    prng_init(&random, 99);
    make_scene(&s, true);
    make_trial(&trial, &s);
    const double whole_ns = kill_once(&s, UINT64_MAX);
    for (unsigned i = 0; i < kills; i++) {
        restore(&s);
        const uint64_t commit = tracefile_live(&s.t.file)->commit;
        (void)kill_once(&s, prng_below(&random, (uint64_t)whole_ns + 1000));
        before += tracefile_live(&s.t.file)->commit == commit;
        after += tracefile_live(&s.t.file)->commit != commit;
        struct stat st;
        assert_int_equal(stat(s.t.file.path, &st), 0);
        try_state(&trial, s.t.file.base, (size_t)st.st_size);
    }
    print_message("%u killed before the commit, %u after it\n", before, after);
    free_trial(&trial);
    free_scene(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pass_over_a_living_program_s_file),
        cmocka_unit_test(the_last_pass_over_a_dead_program_s_file),
        cmocka_unit_test(a_pass_that_must_first_repair),
        cmocka_unit_test(sigkill_at_random_moments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
