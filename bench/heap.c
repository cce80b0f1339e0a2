// link: none
// libs: -ldl
/* heap.c: what a malloc and its free cost with something in front of them.
 *
 *     heap pairs=N passes=N form=hot|random|deep
 *
 * Floor: libc's own functions, called by the names nobody stands in front of
 * (__libc_malloc, __libc_free); subject: malloc and free, whoever that is. Both in one
 * process, in turn. Run it bare (the difference must be nothing), under `sonde run`,
 * and under the peers.
 *
 * hot     16 B to 1 KiB, freed at once: the allocator's fastest path
 * random  64 Ki blocks of random size held at once, one replaced each time
 * deep    as hot, 24 calls deep: what stacks cost
 */
#include "measure.h"

#include <malloc.h>

extern void *__libc_malloc(size_t);
extern void __libc_free(void *);

static void *(*volatile allocate)(size_t);
static void (*volatile release)(void *);

enum { HELD = 65536, DEPTH = 24 };
static void *held[HELD];

static size_t hot_size(unsigned long i)
{
    return 16 + (i * 40 & 1008);
}

MEASURED static void hot_loop(void *(*get)(size_t), void (*put)(void *),
                              unsigned long n)
{
    for (unsigned long i = 0; i < n; i++) {
        void *p = get(hot_size(i));
        OPAQUE();
        put(p);
    }
}

MEASURED static void random_loop(void *(*get)(size_t), void (*put)(void *),
                                 unsigned long n)
{
    uint64_t x = 88172645463325252u;
    for (unsigned long i = 0; i < n; i++) {
        x ^= x << 13, x ^= x >> 7, x ^= x << 17;
        void **at = &held[x % HELD];
        put(*at);
        *at = get(8 + (x >> 32) % 2000);
    }
    for (unsigned i = 0; i < HELD; i++) {
        put(held[i]);
        held[i] = NULL;
    }
}

/* Not a tail call, so that every level has a frame. */
__attribute__((noinline)) static unsigned long descend(unsigned depth, unsigned long n)
{
    if (depth == 0) {
        hot_loop(allocate, release, n);
        return n;
    }
    const unsigned long done = descend(depth - 1, n);
    OPAQUE();
    return done + 1;
}

static void floor_hot(unsigned long n)
{
    hot_loop(__libc_malloc, __libc_free, n);
}
static void subject_hot(unsigned long n)
{
    hot_loop(allocate, release, n);
}
static void floor_random(unsigned long n)
{
    random_loop(__libc_malloc, __libc_free, n);
}
static void subject_random(unsigned long n)
{
    random_loop(allocate, release, n);
}
static void subject_deep(unsigned long n)
{
    (void)descend(DEPTH, n);
}

int main(int argc, char **argv)
{
    (void)argc;
    const unsigned long pairs = argument_number(argv, "pairs", 5000000);
    const unsigned passes = (unsigned)argument_number(argv, "passes", 5);
    const char *form = argument(argv, "form", "hot");
    allocate = malloc;
    release = free;
    loop_fn *floor = floor_hot, *subject = subject_hot;
    if (strcmp(form, "random") == 0)
        floor = floor_random, subject = subject_random;
    else if (strcmp(form, "deep") == 0)
        subject = subject_deep;
    else if (strcmp(form, "hot") != 0)
        die(form, "no such form (hot, random or deep)");
    subject(pairs / 10);
    floor(pairs / 10);
    static struct passes p;
    alternate(&p, passes, pairs, floor, subject);
    put_passes(&p);
    put_number("pairs", (double)pairs);
    put_end();
    return 0;
}
