// link: none
// flags: -O2 -g
/* hot_jit: generated code that says in /tmp/perf-PID.map how it is called.
 *
 *     hot_jit SECONDS [MAP]     writes the map to MAP instead, "none" for nowhere
 *
 * x86-64 only; elsewhere it exits with 77.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#if defined(__x86_64__)
/* push %rbp; mov %rsp,%rbp; 1: sub $1,%rdi; jnz 1b; pop %rbp; ret */
static const uint8_t code[] = { 0x55, 0x48, 0x89, 0xe5, 0x48, 0x83,
                                0xef, 0x01, 0x75, 0xfa, 0x5d, 0xc3 };

static double cpu_s(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
    char path[64];
    (void)snprintf(path, sizeof path, "/tmp/perf-%d.map", (int)getpid());
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                      -1, 0);
    if (page == MAP_FAILED)
        return 1;
    memcpy(page, code, sizeof code);
    if (mprotect(page, 4096, PROT_READ | PROT_EXEC) != 0)
        return 1;
    const char *to = argc > 2 ? argv[2] : path;
    FILE *map = strcmp(to, "none") ? fopen(to, "w") : NULL;
    if (map) {
        fprintf(map, "%lx %zx jit::hot loop\n", (unsigned long)page, sizeof code);
        fclose(map);
    }
    void (*spin)(uint64_t);
    *(void **)&spin = page;
    const double start = cpu_s(), end = start + (argc > 1 ? atof(argv[1]) : 1);
    while (cpu_s() < end)
        spin(1000000);
    printf("{\"jit::hot loop\": %.6f, \"pid\": %d}\n", cpu_s() - start, (int)getpid());
    return 0;
}
#else
int main(void)
{
    return 77;
}
#endif
