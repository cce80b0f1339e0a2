/* hide.h: what a document that leaves the machine does not tell.
 *
 * Secrets (base/redact.h), home folders, the names of the person and of the machine:
 *
 *     /home/jo/exp/train.py     ~/exp/train.py
 *     jo@gpu-17                 user@host
 *
 * Any folder below /home or /Users is a home folder, whoever's. Names are replaced
 * where they stand as words; "root" and other names of everybody are left alone.
 */
#ifndef SONDE_BASE_HIDE_H
#define SONDE_BASE_HIDE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

enum { HIDE_WORDS = 8 };

struct hide {
    struct {
        const char *word, *shown;
        size_t len;
        bool alone; /* short: only where it is the whole text */
    } words[HIDE_WORDS];
    unsigned count;
    const char *home; /* of whoever writes the document; NULL none */
    char user[64];    /* of words[]: found in the path */
};

/* `host` is the run's, `cwd` the folder it ran in (its owner's name may be in it); both
 * may be "". Also hides who runs us now. Texts are borrowed. */
void hide_init(struct hide *ret_hide, const char *host, const char *cwd);

/* Appends the text as it may be shown. */
void hide_text(const struct hide *hide, const char *text, struct buf *out);

#endif
