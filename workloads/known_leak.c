// link: none
// flags: -O1 -g -fno-builtin
// truth: leak     make_node() at the line marked LEAK keeps 4 KiB, a thousand times and more
// truth: cache    fill_cache() keeps 8 MiB in the first eighth of the run, then only reads
// truth: replace  the ring of replace() keeps 4 MiB at any time, ever new ones
// truth: churn    work() frees all it allocates
/* known_leak: one leak at a known line among things that look like one.
 *
 *     known_leak leak|clean [ROUNDS]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define NOINLINE __attribute__((noinline))

struct node {
    struct node *next;
    char payload[4088];
};
static struct node *list;

NOINLINE static void make_node(void)
{
    struct node *n = malloc(sizeof *n); /* LEAK */
    if (!n)
        exit(3);
    n->next = list;
    list = n;
}

static void *cache[2048];

NOINLINE static void fill_cache(unsigned i)
{
    cache[i % 2048] = malloc(4096);
}

static void *ring[1024];

NOINLINE static void replace(unsigned long i)
{
    free(ring[i % 1024]);
    ring[i % 1024] = malloc(4096);
}

NOINLINE static void work(void)
{
    void *p = malloc(100000);
    if (p)
        memset(p, 1, 100);
    free(p);
}

int main(int argc, char **argv)
{
    const int leak = argc > 1 && strcmp(argv[1], "leak") == 0;
    const unsigned rounds = argc > 2 ? (unsigned)atoi(argv[2]) : 400;
    const struct timespec nap = { 0, 1000000 };
    for (unsigned i = 0; i < rounds; i++) {
        for (unsigned k = 0; k < 2048 * 8 / rounds && i < rounds / 8; k++)
            fill_cache(i * (2048 * 8 / rounds) + k);
        for (unsigned k = 0; k < 50; k++)
            replace(i * 50ul + k);
        for (unsigned k = 0; leak && k < 8; k++)
            make_node();
        work();
        (void)nanosleep(&nap, NULL);
    }
    return 0;
}
