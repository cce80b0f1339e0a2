/* spells.h: when a run that is no longer young is sampled.
 *
 * An event of the kernel costs a program almost two microseconds each time that one of
 * its threads goes and comes back, sampled or not: a loop that talks to its workers pays
 * a hundredth of its time for that. An event that is switched off costs a third. So after
 * the first ten seconds, which know the program's functions to a few percent, samples are
 * taken for half a second in each four, at a random moment of them; each stands for eight.
 * The ten seconds are those of its work: with the first step they begin anew, or a program
 * that takes so long to import would be looked at closely while it does only that.
 */
#ifndef SONDE_CAPTURE_SAMPLE_SPELLS_H
#define SONDE_CAPTURE_SAMPLE_SPELLS_H

#include <stdbool.h>
#include <stdint.h>

#include "num/prng.h"

enum {
    SPELL_WEIGHT = 8,
    YOUNG_S = 10, /* so long a run is looked at closely, here and elsewhere */
};

struct spells {
    bool allowed;      /* not: always on */
    bool anew;         /* asked to be young again */
    bool on;           /* samples are taken … */
    unsigned weight;   /* … and stand for so many each */
    uint64_t next_ns;  /* the next change; UINT64_MAX: none */
    uint64_t block_ns; /* end of the present block of spells */
    uint64_t late_ns;  /* by which a spell was too long: the next is shorter */
    struct prng random;
};

/* Of a run that starts now. */
void spells_init(struct spells *ret_spells, bool allowed, uint64_t now_ns,
                 uint64_t seed);
/* The program's first step has been seen: it is young from now on. */
void spells_begin_anew(struct spells *spells);
/* True: `on` has changed, or what a sample stands for. A spell that comes late by more than its length is given up for
 * another: we were stopped, and the program likely with us. */
bool spells_follow(struct spells *spells, uint64_t now_ns);

#endif
