// link: none
// flags: -O2 -g -fomit-frame-pointer
/* deep_paths: works at the end of call paths that are hardly ever the same.
 *
 *     deep_paths SECONDS [deep]      deep: below 2000 frames
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double cpu_s(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

__attribute__((noinline)) static uint64_t deep_leaf(uint64_t x)
{
    for (int i = 0; i < 200000; i++) {
        x = x * 6364136223846793005ULL + 1;
        __asm__ volatile("" : "+r"(x));
    }
    return x;
}

static uint64_t left(uint64_t path, unsigned depth);

/* Either way at every level: 2^depth paths. */
__attribute__((noinline)) static uint64_t right(uint64_t path, unsigned depth)
{
    volatile uint64_t room[4] = { path };
    if (depth == 0)
        return deep_leaf(path) + room[0];
    return (path >> (depth % 64) & 1 ? left : right)(path, depth - 1) + room[0];
}

__attribute__((noinline)) static uint64_t left(uint64_t path, unsigned depth)
{
    volatile uint64_t room[8] = { path };
    if (depth == 0)
        return deep_leaf(path) + room[0];
    return (path >> (depth % 64) & 1 ? right : left)(path, depth - 1) + room[0];
}

int main(int argc, char **argv)
{
    const double end = cpu_s() + (argc > 1 ? atof(argv[1]) : 1);
    volatile uint64_t path = 88172645463325252ULL;
    uint64_t sum = 0;
    while (cpu_s() < end) {
        uint64_t p = path;
        p ^= p << 13, p ^= p >> 7, p ^= p << 17;
        path = p;
        sum += left(p, argc > 2 ? 2000 : 60);
    }
    return sum == 42;
}
