// link: a
// truth: resident memory of the operations, in MiB relative to their start
// truth:   flat      after  +0, peak  +0
// truth:   grow      after +64, peak +64
// truth:   outer     after +16, peak +48; around "inner": after +0, peak +32
// truth:   spike     after  +0, peak +96
// truth:   low spike after  +0, peak +24, below what the process has used before
// truth:   shrink    after −64, peak  +0
/* known_memory: operations that map, touch and unmap known amounts of memory.
 *
 * Prints what each operation's own record says, as JSON lines:
 * name, before, after, peak (MiB), CPU seconds, and whether the peak is exact.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include <sonde/sonde.h>

static char *take(size_t mib)
{
    char *at = mmap(NULL, mib << 20, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED)
        exit(3);
    memset(at, 1, mib << 20);
    return at;
}

static void give(char *at, size_t mib)
{
    (void)munmap(at, mib << 20);
}

/* Long enough for a sampled peak to be seen. */
static void hold(void)
{
    const struct timespec t = { 0, 300000000 };
    (void)nanosleep(&t, NULL);
}

static void begin(struct sonde_operation *op, const char *name)
{
    sonde_operation_begin(op, name, SONDE_OTHER, "memory", NULL);
}

static void end(struct sonde_operation *op)
{
    sonde_operation_end(op);
    (void)printf(
        "{\"name\": \"%s\", \"before\": %.3f, \"after\": %.3f, \"peak\": %.3f, "
        "\"cpu_s\": %.6f, \"exact\": %d}\n",
        op->name, op->mem_before_mb, op->mem_after_mb, op->mem_peak_mb, op->cpu_s,
        op->mem_peak_exact);
}

static void nested(void)
{
    struct sonde_operation outer, inner;
    begin(&outer, "outer");
    char *kept = take(16);
    begin(&inner, "inner");
    give(take(32), 32);
    end(&inner);
    end(&outer);
    give(kept, 16);
}

int main(void)
{
    struct sonde_operation op;
    begin(&op, "flat");
    end(&op);

    begin(&op, "grow");
    char *kept = take(64);
    end(&op);

    /* Each peak above the last: the kernel's high-water mark sees all of them. */
    nested();

    begin(&op, "spike");
    give(take(96), 96);
    end(&op);

    begin(&op, "low spike");
    char *low = take(24);
    hold();
    give(low, 24);
    end(&op);

    begin(&op, "shrink");
    give(kept, 64);
    end(&op);
    return 0;
}
