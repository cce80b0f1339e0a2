/* sharedtree.h: do both sides of a comparison run the same files after all?
 *
 * A commit is checked out beside this tree, and the command runs there. But a word or a
 * variable that names this tree by its absolute path, or a package installed from it in
 * place (pip install -e), makes both sides run what is here: the change would be compared
 * with itself, and pass.
 */
#ifndef SONDE_CLI_SHAREDTREE_H
#define SONDE_CLI_SHAREDTREE_H

#include "base/buf.h"

/* Adds what it found, in words; nothing when all is well. `top` is this tree. */
void sharedtree_words(const char *top, char *const *argv, struct buf *out);

#endif
