/* conceal.c: see conceal.h. */
#include "base/conceal.h"

#include <ctype.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SHORTEST = 3 };

static const char *const homes[] = { "/home/", "/Users/" };
/* Names that say nothing about anybody, and are words of other meanings. */
static const char *const nobodies[] = { "root",   "user", "localhost", "home",
                                        "nobody", "main", "runner" };

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

void conceal_add(struct conceal *c, const char *word)
{
    const size_t len = word ? strlen(word) : 0;
    if (len < SHORTEST || len >= CONCEAL_LONGEST || c->count == CONCEAL_WORDS)
        return;
    for (size_t i = 0; i < sizeof nobodies / sizeof *nobodies; i++)
        if (strcmp(word, nobodies[i]) == 0)
            return;
    for (unsigned i = 0; i < c->count; i++)
        if (strcmp(c->words[i], word) == 0)
            return;
    memcpy(c->words[c->count++], word, len + 1);
}

static void add_host(struct conceal *c, const char *host)
{
    char first[CONCEAL_LONGEST];
    const size_t len = strcspn(host, ".");
    conceal_add(c, host);
    if (len < sizeof first) {
        memcpy(first, host, len);
        first[len] = '\0';
        conceal_add(c, first);
    }
}

void conceal_init(struct conceal *c)
{
    char host[CONCEAL_LONGEST] = "";
    const struct passwd *user = getpwuid(getuid());
    const char *home = getenv("HOME");
    c->count = 0;
    if (user)
        conceal_add(c, user->pw_name);
    if (home && strrchr(home, '/'))
        conceal_add(c, strrchr(home, '/') + 1);
    if (gethostname(host, sizeof host - 1) == 0)
        add_host(c, host);
}

static bool hide(char *bytes, size_t len)
{
    const bool changed = len > 0 && bytes[0] != '*';
    memset(bytes, '*', len);
    return changed;
}

/* The part of a path behind `prefix`, up to the next slash or whatever ends paths. */
static bool hide_behind(char *bytes, size_t len, const char *prefix)
{
    const size_t n = strlen(prefix);
    bool changed = false;
    for (char *at = bytes, *end = bytes + len;
         at < end && (at = memmem(at, (size_t)(end - at), prefix, n));) {
        at += n;
        char *stop = at;
        while (stop < end && *stop && !strchr("/\"'\\:; \t\n,", *stop))
            stop++;
        changed |= hide(at, (size_t)(stop - at));
        at = stop;
    }
    return changed;
}

static bool hide_word(char *bytes, size_t len, const char *word)
{
    const size_t n = strlen(word);
    bool changed = false;
    for (char *at = bytes, *end = bytes + len;
         at < end && (at = memmem(at, (size_t)(end - at), word, n)); at += n)
        if ((at == bytes || !is_word(at[-1])) && (at + n == end || !is_word(at[n])))
            changed |= hide(at, n);
    return changed;
}

/* "/root" where it is a whole part of a path. */
static bool hide_root(char *bytes, size_t len)
{
    static const char root[] = "/root";
    const size_t n = sizeof root - 1;
    bool changed = false;
    for (char *at = bytes, *end = bytes + len;
         at < end && (at = memmem(at, (size_t)(end - at), root, n)); at += n)
        if ((at == bytes || (!is_word(at[-1]) && at[-1] != '.')) &&
            (at + n == end || !is_word(at[n])))
            changed |= hide(at + 1, n - 1);
    return changed;
}

bool conceal_bytes(const struct conceal *c, char *bytes, size_t len)
{
    bool changed = hide_root(bytes, len);
    for (size_t i = 0; i < sizeof homes / sizeof *homes; i++)
        changed |= hide_behind(bytes, len, homes[i]);
    for (unsigned i = 0; i < c->count; i++)
        changed |= hide_word(bytes, len, c->words[i]);
    return changed;
}
