/* redact.h: keeps secrets out of what Sonde stores, shows and sends.
 *
 * Two signs give a secret away: the name it is given under (--api-key=…,
 * HF_TOKEN=…, "password": "…", Authorization: …) and its own shape (sk-…, ghp_…,
 * AKIA…, eyJ…, user:password@ in a URL). Values found either way become
 * REDACTED_TEXT.
 *
 * Names are judged word by word, for training programs are full of keys and tokens
 * that are no secrets: --tokenizer, --max-tokens, --key-dim, --pad-token.
 * A leak is worse than a lost value: in doubt the value goes.
 */
#ifndef SONDE_BASE_REDACT_H
#define SONDE_BASE_REDACT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/buf.h"

#define REDACTED_TEXT "[redacted]"

/* A copy of the command line in the arena, NULL-terminated, secrets replaced.
 * Knows "--name value" pairs that span two arguments. 0 or -ENOMEM. */
int redact_args(int argc, char *const argv[], struct arena *a, char ***ret_argv);

/* Appends the value as it may be shown. */
void redact_env(struct buf *out, const char *name, const char *value);

/* Appends free text (a path, a URL, a shell line, JSON) with secrets replaced. */
void redact_text(struct buf *out, const char *text);

/* Whether something called so is likely to be a secret. */
bool redact_name_is_secret(const char *name, size_t len);

#endif
