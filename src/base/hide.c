/* hide.c: what a document that leaves the machine does not tell.
 *
 * Secrets go first, by base/redact.c; then one pass from left to right replaces homes
 * and names. Names of fewer than three letters are words of everything: they are
 * replaced only where they are all there is.
 */
#include "base/hide.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/redact.h"

static const char *const home_roots[] = { "/home/", "/Users/", NULL };
/* Everybody's: hiding them hides nothing and garbles texts. */
static const char *const common[] = { "root",   "user",  "host",   "localhost", "home",
                                      "nobody", "admin", "ubuntu", "debian",    NULL };

static bool is_word_char(char c)
{
    return isalnum((unsigned char)c) || c == '_' || (c & 0x80);
}

static bool is_common(const char *word, size_t len)
{
    for (const char *const *c = common; *c; c++)
        if (strlen(*c) == len && strncmp(*c, word, len) == 0)
            return true;
    return false;
}

static void add_word(struct hide *h, const char *word, const char *shown)
{
    const size_t len = word ? strlen(word) : 0;
    if (len == 0 || is_common(word, len) || h->count == HIDE_WORDS)
        return;
    h->words[h->count].word = word;
    h->words[h->count].len = len;
    h->words[h->count].shown = shown;
    h->words[h->count].alone = len < 3;
    h->count++;
}

/* The length of "/home/jo" at the start of a path, 0 when it is none. */
static size_t home_length(const char *path)
{
    for (const char *const *root = home_roots; *root; root++) {
        const size_t n = strlen(*root);
        if (strncmp(path, *root, n) != 0)
            continue;
        const size_t name = strcspn(path + n, "/ \t\n:;,\"'()<>|");
        return name > 0 ? n + name : 0;
    }
    if (strncmp(path, "/root", 5) == 0 && !is_word_char(path[5]) && path[5] != '-')
        return 5;
    return 0;
}

static void add_owner(struct hide *h, const char *cwd)
{
    const size_t len = home_length(cwd);
    const char *name = len > 0 ? memrchr(cwd, '/', len) : NULL;
    if (!name)
        return;
    const size_t name_len = len - (size_t)(name + 1 - cwd);
    if (name_len >= sizeof(h->user))
        return;
    memcpy(h->user, name + 1, name_len);
    h->user[name_len] = '\0';
    add_word(h, h->user, "user");
}

void hide_init(struct hide *ret_hide, const char *host, const char *cwd)
{
    struct hide *h = ret_hide;
    *h = (struct hide){ .home = getenv("HOME") };
    /* "/" or "" as a home would hide every path there is. */
    if (h->home && strlen(h->home) < 3)
        h->home = NULL;
    add_word(h, host, "host");
    add_owner(h, cwd);
    add_word(h, getenv("USER"), "user");
    add_word(h, getenv("LOGNAME"), "user");
}

static size_t match_home(const struct hide *h, const char *text)
{
    const size_t own = h->home ? strlen(h->home) : 0;
    if (own > 0 && strncmp(text, h->home, own) == 0 && !is_word_char(text[own]))
        return own;
    return home_length(text);
}

static size_t match_word(const struct hide *h, const char *text, bool first,
                         const char **ret_shown)
{
    for (unsigned i = 0; i < h->count; i++) {
        const size_t len = h->words[i].len;
        const bool ends = h->words[i].alone ? first && text[len] == '\0'
                                            : !is_word_char(text[len]);
        if (strncmp(text, h->words[i].word, len) == 0 && ends) {
            *ret_shown = h->words[i].shown;
            return len;
        }
    }
    return 0;
}

static void hide_names(const struct hide *h, const char *text, struct buf *out)
{
    const char *start = text;
    char before = ' ';
    while (*text) {
        const char *shown = "~";
        size_t len = 0;
        if (!is_word_char(before)) {
            len = *text == '/' ? match_home(h, text)
                               : match_word(h, text, text == start, &shown);
        }
        if (len > 0) {
            buf_puts(out, shown);
            text += len;
            before = 'x'; /* "~/home/…" starts nothing new */
            continue;
        }
        before = *text;
        buf_putc(out, *text++);
    }
}

void hide_text(const struct hide *hide, const char *text, struct buf *out)
{
    struct buf safe = BUF_INIT;
    redact_text(&safe, text);
    hide_names(hide, safe.data, out);
    if (safe.error < 0)
        out->error = safe.error;
    buf_release(&safe);
}
