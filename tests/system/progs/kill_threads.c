// link: a
/* kill_threads: THREADS threads record as fast as they can until they are killed.
 *
 *     kill_threads PAGE THREADS [ZONES]
 *
 * Thread i records zones "t<i>" with four "t<i>.in" inside. PAGE is a file that the
 * test has made, large enough for struct page; it outlives every process. Each thread
 * counts a zone in `begun` before it begins and in `ended` after it has ended, so at
 * any instant ended <= zones in a correct trace <= begun.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <sonde/sonde.h>

enum { MAX_THREADS = 64, INNER = 4 };

/* Read by test_kill.py: keep the two alike. */
struct page {
    uint64_t ready, stop, pid, pad[5];
    struct {
        uint64_t begun, ended, inner_begun, inner_ended, pad[4];
    } thread[MAX_THREADS];
};

static volatile struct page *page;
static uint64_t zones_each;

/* The count and the event are stores to two files; x86 and the kernel keep their
 * order, this keeps the compiler's hands off it. */
#define IN_ORDER() atomic_signal_fence(memory_order_seq_cst)

static void record_one(int i, struct sonde_site *outer, struct sonde_site *inner)
{
    page->thread[i].begun++;
    IN_ORDER();
    sonde_begin(outer);
    for (int k = 0; k < INNER; k++) {
        page->thread[i].inner_begun++;
        IN_ORDER();
        sonde_begin(inner);
        sonde_end(inner);
        IN_ORDER();
        page->thread[i].inner_ended++;
    }
    sonde_end(outer);
    IN_ORDER();
    page->thread[i].ended++;
}

static void *record(void *arg)
{
    const int i = (int)(intptr_t)arg;
    char name[16];
    (void)snprintf(name, sizeof name, "t%d", i);
    struct sonde_site *outer = sonde_site_named(name, SONDE_FORWARD, NULL, NULL, NULL);
    (void)snprintf(name, sizeof name, "t%d.in", i);
    struct sonde_site *inner = sonde_site_named(name, SONDE_NO_PHASE, NULL, NULL, NULL);
    for (uint64_t n = 0; !page->stop && (zones_each == 0 || n < zones_each); n++)
        record_one(i, outer, inner);
    return NULL;
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    const int threads = atoi(argv[2]);
    zones_each = argc > 3 ? strtoull(argv[3], NULL, 10) : 0;
    const int fd = open(argv[1], O_RDWR | O_CLOEXEC);
    if (fd < 0 || threads < 1 || threads > MAX_THREADS)
        return 2;
    page = mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (page == MAP_FAILED)
        return 2;
    page->pid = (uint64_t)getpid();

    pthread_t thread[MAX_THREADS];
    for (int i = 1; i < threads; i++)
        if (pthread_create(&thread[i], NULL, record, (void *)(intptr_t)i) != 0)
            return 2;
    page->ready = 1;
    record((void *)(intptr_t)0);
    for (int i = 1; i < threads; i++)
        (void)pthread_join(thread[i], NULL);
    return 0;
}
