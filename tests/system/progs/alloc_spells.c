// link: a
// flags: -O1 -fno-builtin
/* alloc_spells: a thread that makes millions of calls a second, and knows how many.
 *
 *     alloc_spells SECONDS [fork | clone]
 *
 * Prints {"zone": [count, bytes, frees], …, "live": bytes, "peak": bytes} of its own calls.
 * Zone "many" has twenty small blocks, "few" one large and two small ones, in turn; a
 * tenth of a megabyte stays each hundredth of the way. With a second word it then makes a
 * child in that way, which allocates and frees CHILDS blocks of CHILD_BYTES, and waits.
 */
#include <malloc.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <sonde/sonde.h>

enum { BATCH = 1000, KEPT = 100, KEPT_BYTES = 100000 };
enum { CHILDS = 1000, CHILD_BYTES = 20000 };

struct tally {
    uint64_t count, bytes, frees;
};

static void *take(struct tally *t, size_t size)
{
    t->count++;
    t->bytes += size;
    return malloc(size);
}

static void put(struct tally *t, void *p)
{
    t->frees++;
    free(p);
}

static void many(struct tally *t)
{
    void *p[20];
    SONDE_ZONE("many", SONDE_FORWARD) {
        for (unsigned i = 0; i < 20; i++)
            p[i] = take(t, 16 + 24 * i);
        for (unsigned i = 0; i < 20; i++)
            put(t, p[i]);
    }
}

static void few(struct tally *t)
{
    SONDE_ZONE("few", SONDE_BACKWARD) {
        void *large = take(t, 40000), *a = take(t, 100), *b = take(t, 700);
        put(t, b);
        put(t, a);
        put(t, large);
    }
}

static double now_s(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* clone() itself runs no handlers of pthread_atfork(). */
static int make_child(const char *how)
{
    const pid_t pid = strcmp(how, "fork") == 0
                          ? fork()
                          : (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
    if (pid == 0) {
        for (unsigned i = 0; i < CHILDS; i++)
            free(malloc(CHILD_BYTES));
        _exit(0);
    }
    int status = 1;
    return pid > 0 && waitpid(pid, &status, 0) == pid ? status : 1;
}

int main(int argc, char **argv)
{
    static void *kept[KEPT];
    const double seconds = argc > 1 ? atof(argv[1]) : 1, start = now_s();
    struct tally tally[2] = { { 0, 0, 0 }, { 0, 0, 0 } };
    uint64_t live = 0;
    for (double spent = 0; spent < seconds; spent = now_s() - start) {
        const unsigned at = (unsigned)(spent / seconds * KEPT);
        if (!kept[at]) {
            kept[at] = malloc(KEPT_BYTES);
            live += malloc_usable_size(kept[at]);
        }
        for (unsigned i = 0; i < BATCH; i++) {
            many(&tally[0]);
            few(&tally[1]);
        }
    }
    char text[300];
    (void)snprintf(
        text, sizeof text,
        "{\"many\": [%llu, %llu, %llu], \"few\": [%llu, %llu, %llu], "
        "\"live\": %llu}\n",
        (unsigned long long)tally[0].count, (unsigned long long)tally[0].bytes,
        (unsigned long long)tally[0].frees, (unsigned long long)tally[1].count,
        (unsigned long long)tally[1].bytes, (unsigned long long)tally[1].frees,
        (unsigned long long)live);
    (void)fputs(text, stdout);
    return argc > 2 ? make_child(argv[2]) : 0;
}
