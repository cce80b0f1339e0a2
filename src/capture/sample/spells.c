/* spells.c: see spells.h. */
#include "capture/sample/spells.h"

static const uint64_t YOUNG_NS = YOUNG_S * 1000000000ULL;
static const uint64_t SPELL_NS = 500000000;
static const uint64_t BLOCK_NS = SPELL_WEIGHT * 500000000ULL;

static void be_young(struct spells *s, uint64_t now_ns)
{
    s->on = true;
    s->weight = 1;
    s->anew = false;
    if (s->allowed)
        s->next_ns = s->block_ns = now_ns + YOUNG_NS;
}

void spells_init(struct spells *s, bool allowed, uint64_t now_ns, uint64_t seed)
{
    *s = (struct spells){ .allowed = allowed, .next_ns = UINT64_MAX };
    prng_init(&s->random, seed);
    be_young(s, now_ns);
}

void spells_begin_anew(struct spells *s)
{
    s->anew = s->allowed;
}

/* Blocks join without a gap; after a long absence (the machine slept) they begin anew. */
static void begin_block(struct spells *s, uint64_t now_ns)
{
    const uint64_t start = now_ns - s->block_ns < BLOCK_NS ? s->block_ns : now_ns;
    s->block_ns = start + BLOCK_NS;
    s->next_ns = start + prng_below(&s->random, BLOCK_NS - SPELL_NS);
    s->weight = SPELL_WEIGHT;
}

bool spells_follow(struct spells *s, uint64_t now_ns)
{
    if (s->anew) {
        const bool was_young = s->on && s->weight == 1;
        be_young(s, now_ns);
        return !was_young;
    }
    if (now_ns < s->next_ns)
        return false;
    if (!s->on && now_ns - s->next_ns > SPELL_NS) {
        begin_block(s, now_ns); /* the program was stopped, and we with it */
        return false;
    }
    if (!s->on) {
        s->on = true;
        s->next_ns = now_ns + SPELL_NS - (s->late_ns < SPELL_NS / 2 ? s->late_ns : 0);
    } else {
        if (s->weight == SPELL_WEIGHT) /* of a spell; what was young has no length */
            s->late_ns = now_ns - s->next_ns;
        s->on = false;
        begin_block(s, now_ns < s->block_ns ? s->block_ns : now_ns);
    }
    return true;
}
