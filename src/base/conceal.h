/* conceal.h: who somebody is and where: names of users, hosts and homes, hidden.
 *
 * For what leaves the machine (bundles, HTML). Every name becomes as many stars: texts
 * keep their length, so that they can be changed where they lie, in a trace as in JSON.
 * What goes: the part of a path behind /home/ and /Users/, whoever that is; /root; the
 * present user's name and this machine's, and the run's, where they stand as words.
 */
#ifndef SONDE_BASE_CONCEAL_H
#define SONDE_BASE_CONCEAL_H

#include <stdbool.h>
#include <stddef.h>

enum { CONCEAL_WORDS = 8, CONCEAL_LONGEST = 256 };

struct conceal {
    char words[CONCEAL_WORDS][CONCEAL_LONGEST];
    unsigned count;
};

/* The present user and machine. */
void conceal_init(struct conceal *conceal);
/* One more name. Those that would hide half of everything (short ones, "root") are left
 * out; so is what finds no room. */
void conceal_add(struct conceal *conceal, const char *word);
/* Changes the bytes in place; whether it did. */
bool conceal_bytes(const struct conceal *conceal, char *bytes, size_t len);

#endif
