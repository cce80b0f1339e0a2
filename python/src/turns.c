/* turns.c: which calls of a phase get marks on the device, once a run is long.
 *
 * Two marks cost some 7 to 12 µs: nothing for one call, 0.3 % of a training loop. The first
 * calls of each site are all timed, so short runs are exact. Later the calls of a site go
 * in groups, and one of each group, drawn at random, is timed and stands for the others: a
 * fixed turn would meet the same step of every gradient accumulation, or never. Each call
 * has the same chance, so sums are right on average whatever the pattern.
 *
 * Groups are as large as it takes to spend no more than a thousandth of the time on marks,
 * and no larger than a SURE-th of the calls so far. The first 2 × SURE are timed, 430 of
 * the first thousand: a sum is then off by about 6 % of the spread between calls.
 *
 * With the GIL held; for the main thread alone.
 */
#include "torch.h"

#include <string.h>

#include <sonde/tables.h>

enum { SITES = 256, SURE = 128, LARGEST = 64, WINDOW = 256, SHARE = 1000 };

static struct turn {
    const struct sonde_site *site;
    uint64_t calls;
    unsigned size, at, chosen; /* of the group */
} turns[SITES + 1];            /* the last: of all that found no place */

static struct {
    uint64_t calls, timed;     /* since turns_take() */
    uint64_t cost, costed;     /* ticks spent on marks, calls they were for … */
    uint64_t began, in_window; /* … since; calls since, timed or not */
    unsigned wanted;           /* size of groups that would keep to the share */
    uint64_t random;
} now = { .wanted = 1, .random = 88172645463325252u };

void turns_reset(void)
{
    memset(turns, 0, sizeof turns);
    now.calls = now.timed = now.cost = now.costed = now.in_window = 0;
    now.wanted = 1;
}

static struct turn *turn_of(const struct sonde_site *site)
{
    const size_t at = (uintptr_t)site / sizeof(void *) * 31;
    for (size_t i = 0; i < 8; i++) {
        struct turn *t = &turns[(at + i) % SITES];
        if (!t->site)
            t->site = site;
        if (t->site == site)
            return t;
    }
    return &turns[SITES];
}

/* xorshift: the program's random numbers are its own. */
static unsigned below(unsigned n)
{
    now.random ^= now.random << 13;
    now.random ^= now.random >> 7;
    now.random ^= now.random << 17;
    return (unsigned)((now.random >> 32) * n >> 32);
}

static void new_group(struct turn *t)
{
    const uint64_t most = t->calls / SURE;
    t->size = most < 2 ? 1 : most < now.wanted ? (unsigned)most : now.wanted;
    t->at = 0;
    t->chosen = below(t->size);
}

/* What marks for every call would have cost of the last window's time. */
static void end_window(void)
{
    const uint64_t ticks = sonde_ticks(), took = ticks - now.began;
    if (now.began && now.costed && took) {
        const double each = (double)now.cost / (double)now.costed;
        const double size = each * WINDOW / (double)took * SHARE;
        now.wanted = size < 1 ? 1 : size < LARGEST ? (unsigned)size + 1 : LARGEST;
    }
    now.began = ticks;
    now.cost = now.costed = now.in_window = 0;
}

unsigned turns_next(const struct sonde_site *site)
{
    struct turn *t = turn_of(site);
    if (++now.in_window >= WINDOW)
        end_window();
    now.calls++;
    if (t->at == t->size)
        new_group(t);
    t->calls++;
    if (t->at++ != t->chosen)
        return 0;
    now.timed++;
    now.costed++;
    return t->size;
}

void turns_cost(uint64_t ticks)
{
    now.cost += ticks;
}

void turns_take(uint64_t *ret_calls, uint64_t *ret_timed)
{
    *ret_calls = now.calls;
    *ret_timed = now.timed;
    now.calls = now.timed = 0;
}
