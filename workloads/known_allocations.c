// link: a
// flags: -O1 -fno-builtin
// truth: calls, bytes asked for, frees, freed bytes and the most live bytes: counted by
// truth: the program itself with malloc_usable_size() and printed as JSON, by zone
/* known_allocations: every function of the malloc family, counted by the caller.
 *
 *     known_allocations [THREADS]
 *
 * Counts only what it does between its first and last own call; libc allocates a little
 * besides (stdout's buffer, threads), which the program avoids: it writes with write().
 */
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sonde/sonde.h>

static uint64_t count, bytes, frees, freed, reallocs;
static int64_t live, peak;

static void got(void *p, size_t size)
{
    if (!p)
        exit(3);
    count++;
    bytes += size;
    live += (int64_t)malloc_usable_size(p);
    if (live > peak)
        peak = live;
}

static void gone(size_t usable)
{
    frees++;
    freed += usable;
    live -= (int64_t)usable;
}

static void put(void *p)
{
    gone(malloc_usable_size(p));
    free(p);
}

static void *again(void *p, size_t size)
{
    const size_t usable = malloc_usable_size(p);
    void *q = realloc(p, size);
    gone(usable);
    reallocs++;
    got(q, size);
    return q;
}

static void plain(void)
{
    static void *held[2000];
    for (unsigned i = 0; i < 2000; i++) {
        held[i] = malloc(i * 7);
        got(held[i], i * 7);
    }
    for (unsigned i = 0; i < 2000; i += 2)
        put(held[i]);
    for (unsigned i = 1; i < 2000; i += 2)
        held[i] = again(held[i], i * 9 + 1);
    for (unsigned i = 1; i < 2000; i += 2)
        put(held[i]);
}

static void others(void)
{
    void *p = calloc(10, 100);
    got(p, 1000);
    const size_t before = malloc_usable_size(p);
    p = reallocarray(p, 30, 100);
    gone(before);
    reallocs++;
    got(p, 3000);
    put(p);
    if (posix_memalign(&p, 256, 5000) != 0)
        exit(3);
    got(p, 5000);
    put(p);
    p = aligned_alloc(64, 640);
    got(p, 640);
    put(p);
    p = memalign(1024, 100);
    got(p, 100);
    put(p);
    p = valloc(10000);
    got(p, 10000);
    put(p);
    p = strdup("a text of 23 characters");
    got(p, 24);
    put(p);
    p = realloc(NULL, 77);
    got(p, 77);
    put(p);
    free(NULL);
}

static void large(void)
{
    void *p = malloc(40 << 20), *q = malloc(24 << 20);
    got(p, 40 << 20);
    got(q, 24 << 20);
    put(p);
    p = malloc(8 << 20);
    got(p, 8 << 20);
    put(q);
    put(p);
}

/* Cannot be counted with plain variables: the sums are known instead. */
enum { PER_THREAD = 10000 };

static void *in_thread(void *arg)
{
    (void)arg;
    for (int i = 0; i < PER_THREAD; i++)
        free(malloc(100 + (size_t)i % 50));
    return NULL;
}

static void threads(unsigned n)
{
    static pthread_t t[256];
    for (unsigned i = 0; i < n && i < 256; i++)
        if (pthread_create(&t[i], NULL, in_thread, NULL) != 0)
            exit(3);
    for (unsigned i = 0; i < n && i < 256; i++)
        (void)pthread_join(t[i], NULL);
}

int main(int argc, char **argv)
{
    static struct {
        uint64_t count, bytes, frees;
    } zone[3];
    static void (*const parts[])(void) = { plain, others, large };
    const unsigned extra = argc > 1 ? (unsigned)atoi(argv[1]) : 0;
    for (int i = 0; i < 3; i++) {
        const uint64_t c = count, b = bytes, f = frees;
        struct sonde_site *site = NULL;
        static const char *const names[] = { "plain", "others", "large" };
        site = sonde_site_named(names[i], SONDE_OTHER, NULL, NULL, NULL);
        SONDE_ZONE_OF(site) parts[i]();
        zone[i].count = count - c;
        zone[i].bytes = bytes - b;
        zone[i].frees = frees - f;
    }
    threads(extra);
    char text[1024];
    int n = snprintf(
        text, sizeof text,
        "{\"count\": %llu, \"bytes\": %llu, \"frees\": %llu, \"freed\": %llu, "
        "\"reallocs\": %llu, \"peak\": %lld, \"live\": %lld, \"zones\": {",
        (unsigned long long)count, (unsigned long long)bytes, (unsigned long long)frees,
        (unsigned long long)freed, (unsigned long long)reallocs, (long long)peak,
        (long long)live);
    static const char *const names[] = { "plain", "others", "large" };
    for (int i = 0; i < 3; i++)
        n += snprintf(text + n, sizeof text - (size_t)n, "%s\"%s\": [%llu, %llu, %llu]",
                      i ? ", " : "", names[i], (unsigned long long)zone[i].count,
                      (unsigned long long)zone[i].bytes,
                      (unsigned long long)zone[i].frees);
    n += snprintf(text + n, sizeof text - (size_t)n, "}}\n");
    return write(1, text, (size_t)n) == n ? 0 : 4;
}
