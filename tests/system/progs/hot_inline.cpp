// link: none
// flags: -O2 -g -fomit-frame-pointer
// hot_inline: two methods that the compiler inlines, three quarters and one quarter of
// the work; the truth is the CPU time around them.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>

namespace grid
{

template <typename T> struct Cell {
    T x = 1;
    __attribute__((always_inline)) inline void relax(uint64_t n)
    {
        /* clang-format off */
        for (uint64_t i = 0; i < n; i++) { x = x * 6364136223846793005ULL + 1; asm volatile("" : "+r"(x)); } /* LINE relax */
        /* clang-format on */
    }
    __attribute__((always_inline)) inline void smooth(uint64_t n)
    {
        /* clang-format off */
        for (uint64_t i = 0; i < n; i++) { x = x * 6364136223846793005ULL + 7; asm volatile("" : "+r"(x)); } /* LINE smooth */
        /* clang-format on */
    }
};

double cpu_s()
{
    timespec t;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

__attribute__((noinline)) uint64_t sweep(double *relaxing, double *smoothing)
{
    Cell<uint64_t> cell;
    static uint32_t seed = 12345; // of changing length: no beat with the samples
    seed = seed * 1664525 + 1013904223;
    const uint64_t unit = 100000 + (seed >> 8) % 200000;
    const double a = cpu_s();
    cell.relax(6 * unit);
    const double b = cpu_s();
    cell.smooth(2 * unit);
    *relaxing += b - a;
    *smoothing += cpu_s() - b;
    return cell.x;
}

} // namespace grid

int main(int argc, char **argv)
{
    double relaxing = 0, smoothing = 0;
    volatile uint64_t sink = 0;
    const double end = grid::cpu_s() + (argc > 1 ? atof(argv[1]) : 1);
    while (grid::cpu_s() < end)
        sink = sink + grid::sweep(&relaxing, &smoothing);
    printf("{\"relax\": %.6f, \"smooth\": %.6f}\n", relaxing, smoothing);
    return 0;
}
