/* redact.c: finds secrets in command lines, environments and texts.
 *
 * Names are cut into lower-case words at punctuation, at digits and at camelCase
 * humps. A *strong* word (password, secret) anywhere makes the name secret, unless
 * its last word says that the value only describes a secret (password-file). A
 * *weak* word (key, token) counts only as the last one, and not behind a word that
 * makes it something else (pad-token, sort-key).
 *
 * Texts are scanned once, left to right; at each position the first of these that
 * matches wins: a token of known shape, a URL's password, a "name: value" pair.
 */
#include "base/redact.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <strings.h>

enum { MAX_WORDS = 16, WORD_LEN = 24, SHORT_NUMBER = 6 };

static bool in_list(const char *word, const char *const *list)
{
    for (; *list; list++)
        if (strcmp(word, *list) == 0)
            return true;
    return false;
}

/* Filled by hand: one word a line would push the code off the screen. */
/* clang-format off */

/* Compared with the ends of words, so that PGPASSWORD and clientsecret match. */
static const char *const strong_endings[] = {
    "password", "passwords", "passwd", "passphrase", "secret", "secrets", "pwd",
    "credential", "credentials", "apikey", "accesskey", "secretkey", "privatekey",
    "authkey", "authtoken", "accesstoken", "sshpass", "bearer", NULL,
};
static const char *const weak_words[] = {
    "key", "token", "auth", "oauth", "authorization", "pass", "cookie", "jwt", NULL,
};
/* As the last word: the value is about a secret, not one. */
static const char *const describing_words[] = {
    "file", "path", "dir", "url", "uri", "name", "type", "method", "mode", "sock",
    "socket", "length", "len", "size", "count", "ttl", "timeout", "policy", "enabled",
    "required", "endpoint", "host", "port", "provider", "manager", "version", "class",
    "prefix", "suffix", "env", "format", "expiry", "rotation", NULL,
};
/* In front of a weak word: this key, token or pass is part of the training. */
static const char *const harmless_before[] = {
    "eos", "bos", "pad", "unk", "mask", "cls", "sep", "special", "image", "start",
    "end", "next", "per", "stop", "max", "min", "num", "class", "audio", "video",
    "text", "prompt", "separator", "padding", "unknown", "blank", "decoder", "encoder",
    "sort", "primary", "foreign", "label", "monitor", "group", "cache", "partition",
    "feature", "dict", "target", "input", "output", "data", "index", "column", "public",
    "metric", "state", "sample", "batch", "json", "map", "hash", "attention", "attn",
    "query", "by", "forward", "backward", "multi", "single", "one", "two", "first",
    "second", NULL,
};
/* As the first word: a switch, which takes no value. */
static const char *const switch_words[] = {
    "no", "use", "with", "without", "enable", "disable", "skip", "require", "has", "is",
    NULL,
};
static const char *const harmless_values[] = {
    "true", "false", "yes", "no", "on", "off", "none", "null", "auto", "default",
    "basic", "digest", NULL,
};
/* clang-format on */

struct words {
    char text[MAX_WORDS][WORD_LEN];
    int count;
};

static bool starts_word(const char *name, size_t i, size_t len)
{
    const unsigned char before = (unsigned char)name[i - 1];
    const unsigned char here = (unsigned char)name[i];
    if (!isalpha(before))
        return true;
    /* apiKey: a hump; APIKey: the last capital of a run belongs to the next word. */
    const unsigned char after = i + 1 < len ? (unsigned char)name[i + 1] : 0;
    return isupper(here) && (islower(before) || islower(after));
}

/* Names longer than the table keep their last words, the ones that decide. */
static void drop_first(struct words *w)
{
    memmove(w->text[0], w->text[1], sizeof(w->text) - sizeof(w->text[0]));
    w->count--;
}

static void split(struct words *w, const char *name, size_t len)
{
    size_t used = 0;
    w->count = 0;
    for (size_t i = 0; i < len; i++) {
        const unsigned char c = (unsigned char)name[i];
        if (!isalpha(c))
            continue;
        if (i == 0 || w->count == 0 || starts_word(name, i, len)) {
            if (w->count == MAX_WORDS)
                drop_first(w);
            w->count++;
            used = 0;
        }
        if (used + 1 < WORD_LEN)
            w->text[w->count - 1][used++] = (char)tolower(c);
        w->text[w->count - 1][used] = '\0';
    }
}

static bool ends_strongly(const char *word)
{
    const size_t len = strlen(word);
    for (const char *const *s = strong_endings; *s; s++) {
        const size_t n = strlen(*s);
        if (len >= n && strcmp(word + len - n, *s) == 0)
            return true;
    }
    return false;
}

enum secrecy { PLAIN, WEAK, STRONG };

static enum secrecy judge_words(const struct words *w)
{
    if (w->count == 0)
        return PLAIN;
    const char *last = w->text[w->count - 1];
    const char *before = w->count > 1 ? w->text[w->count - 2] : "";
    if (in_list(last, describing_words))
        return PLAIN;
    for (int i = 0; i < w->count; i++)
        if (ends_strongly(w->text[i]))
            return STRONG;
    return in_list(last, weak_words) && !in_list(before, harmless_before) ? WEAK
                                                                          : PLAIN;
}

static enum secrecy judge_name(const char *name, size_t len)
{
    struct words w;

    /* The shell's working directories. */
    if ((len == 3 && memcmp(name, "PWD", 3) == 0) ||
        (len == 6 && memcmp(name, "OLDPWD", 6) == 0))
        return PLAIN;
    split(&w, name, len);
    return judge_words(&w);
}

bool redact_name_is_secret(const char *name, size_t len)
{
    return judge_name(name, len) != PLAIN;
}

static bool is_short_number(const char *value, size_t len)
{
    return len <= SHORT_NUMBER && strspn(value, "0123456789.+-eE") >= len;
}

/* A number behind a weak name is a dimension or an id; a number behind "password"
 * is a password. */
static bool value_is_harmless(enum secrecy secrecy, const char *value, size_t len)
{
    if (len == 0 || (secrecy == WEAK && is_short_number(value, len)))
        return true;
    for (const char *const *s = harmless_values; *s; s++)
        if (strlen(*s) == len && strncasecmp(value, *s, len) == 0)
            return true;
    return false;
}

/* Tokens that are recognised by shape. */
struct shape {
    const char *prefix;
    const char *extra; /* characters besides letters and digits */
    size_t min_tail;
    size_t max_tail; /* 0: no limit */
};

static const struct shape shapes[] = {
    { "sk-", "-_", 20, 0 },       { "sk_live_", "", 16, 0 },
    { "sk_test_", "", 16, 0 },    { "rk_live_", "", 16, 0 },
    { "ghp_", "", 20, 0 },        { "gho_", "", 20, 0 },
    { "ghu_", "", 20, 0 },        { "ghs_", "", 20, 0 },
    { "ghr_", "", 20, 0 },        { "github_pat_", "_", 20, 0 },
    { "glpat-", "-_", 20, 0 },    { "hf_", "", 20, 0 },
    { "AKIA", "", 16, 16 },       { "ASIA", "", 16, 16 },
    { "AIza", "-_", 30, 0 },      { "xoxb-", "-", 20, 0 },
    { "xoxp-", "-", 20, 0 },      { "xoxa-", "-", 20, 0 },
    { "npm_", "", 30, 0 },        { "pypi-", "-_", 40, 0 },
    { "dckr_pat_", "-_", 20, 0 }, { "ya29.", "-_", 20, 0 },
    { "eyJ", "-_.=", 20, 0 },
};

/* Words joined by dashes are long too, but have neither digits nor mixed case. */
static bool looks_random(const char *text, size_t len)
{
    bool digit = false;
    bool upper = false;
    bool lower = false;
    for (size_t i = 0; i < len; i++) {
        digit |= isdigit((unsigned char)text[i]) != 0;
        upper |= isupper((unsigned char)text[i]) != 0;
        lower |= islower((unsigned char)text[i]) != 0;
    }
    return digit || (upper && lower);
}

static size_t match_shape(const struct shape *s, const char *text)
{
    const size_t n = strlen(s->prefix);
    if (strncmp(text, s->prefix, n) != 0)
        return 0;
    const char *tail = text + n;
    size_t len = 0;
    while (isalnum((unsigned char)tail[len]) ||
           (tail[len] && strchr(s->extra, tail[len])))
        len++;
    if (len < s->min_tail || (s->max_tail > 0 && len > s->max_tail))
        return 0;
    if (strcmp(s->prefix, "eyJ") == 0 && !memchr(tail, '.', len))
        return 0; /* Base64 of any JSON starts so; a JWT has parts */
    return looks_random(tail, len) ? n + len : 0;
}

/* The length of the known token at text, 0 if there is none. */
static size_t match_token(const char *text)
{
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        const size_t len = match_shape(&shapes[i], text);
        if (len > 0)
            return len;
    }
    return 0;
}

/* At "://": the place and length of the password in user:password@host. */
static size_t match_url_password(const char *text, size_t *ret_skip)
{
    if (strncmp(text, "://", 3) != 0)
        return 0;
    const char *authority = text + 3;
    const size_t len = strcspn(authority, "/?# \t\n\"'<>");
    const char *at = memrchr(authority, '@', len);
    const char *colon = at ? memchr(authority, ':', (size_t)(at - authority)) : NULL;
    if (!colon)
        return 0;
    *ret_skip = (size_t)(colon + 1 - text);
    return (size_t)(at - colon - 1);
}

static bool is_name_char(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '-' || c == '.';
}

/* Steps over a quote, also one that a shell line escaped; 0 if there is none. */
static char take_quote(const char **p)
{
    const char *quote = *p + (**p == '\\');
    if (*quote != '"' && *quote != '\'')
        return 0;
    *p = quote + 1;
    return *quote;
}

/* What follows a secret name in running text. Sets where its value starts and
 * returns the value's length, 0 if this is no pair. */
static size_t match_value(const char *name, size_t name_len, size_t *ret_skip)
{
    const char *p = name + name_len;
    const bool quoted_name = take_quote(&p);
    const size_t blanks = strspn(p, " \t");
    p += blanks;

    bool to_line_end = false;
    if (*p == '=' && p[1] != '=') {
        p++;
    } else if (*p == ':' && (quoted_name || isspace((unsigned char)p[1]))) {
        p++;
        to_line_end = !quoted_name; /* a header: "Authorization: Bearer abc" */
    } else if (!(blanks > 0 && name[0] == '-' && *p != '-')) {
        return 0; /* not even "--token abc" inside a shell line */
    }
    p += strspn(p, " \t");
    const char end_quote[] = { take_quote(&p), '\0' };
    *ret_skip = (size_t)(p - name);
    if (end_quote[0])
        return strcspn(p, end_quote);
    return strcspn(p, to_line_end ? "\n\"'" : " \t\n&;,\"'})]");
}

/* At the start of a word: the same for a whole "name=value". */
static size_t match_pair(const char *text, size_t *ret_skip)
{
    size_t len = 0;
    while (is_name_char(text[len]))
        len++;
    const enum secrecy secrecy = judge_name(text, len);
    if (secrecy == PLAIN)
        return 0;
    size_t skip;
    const size_t value_len = match_value(text, len, &skip);
    if (value_len == 0 || value_is_harmless(secrecy, text + skip, value_len))
        return 0;
    *ret_skip = skip;
    return value_len;
}

/* Looks for a secret that starts here, after the character `before`; ret_skip
 * bytes of it may be shown. */
static size_t match_secret(const char *text, char before, size_t *ret_skip)
{
    *ret_skip = 0;
    size_t len = 0;
    if (!isalnum((unsigned char)before) && before != '_')
        len = match_token(text);
    if (len == 0)
        len = match_url_password(text, ret_skip);
    if (len == 0 && !is_name_char(before))
        len = match_pair(text, ret_skip);
    return len;
}

void redact_text(struct buf *out, const char *text)
{
    char before = ' ';
    while (*text) {
        size_t skip;
        const size_t len = match_secret(text, before, &skip);
        if (len > 0) {
            buf_append(out, text, skip);
            buf_puts(out, REDACTED_TEXT);
            text += skip + len;
            before = ' ';
            continue;
        }
        before = *text;
        buf_putc(out, *text++);
    }
}

void redact_env(struct buf *out, const char *name, const char *value)
{
    const enum secrecy secrecy = judge_name(name, strlen(name));
    if (secrecy != PLAIN && !value_is_harmless(secrecy, value, strlen(value)))
        buf_puts(out, REDACTED_TEXT);
    else
        redact_text(out, value);
}

/* "--name", which may take the next argument as its value. */
static enum secrecy judge_option(const char *arg)
{
    struct words w;

    if (arg[0] != '-' || strlen(arg) < 3 || strspn(arg, "-") == strlen(arg))
        return PLAIN;
    for (const char *p = arg; *p; p++)
        if (!is_name_char(*p))
            return PLAIN;
    split(&w, arg, strlen(arg));
    if (w.count > 1 && in_list(w.text[0], switch_words))
        return PLAIN;
    return judge_words(&w);
}

/* "name=value" as a whole argument: the value may contain anything. */
static bool redact_assignment(struct buf *out, const char *arg)
{
    const char *equals = strchr(arg, '=');
    if (!equals || equals == arg)
        return false;
    for (const char *p = arg; p < equals; p++)
        if (!is_name_char(*p) && *p != '+' && *p != '~' && *p != '/')
            return false;
    buf_append(out, arg, (size_t)(equals - arg) + 1);
    char name[256];
    const size_t len = (size_t)(equals - arg);
    const size_t kept = len < sizeof(name) - 1 ? len : sizeof(name) - 1;
    memcpy(name, equals - kept, kept); /* the end of a long name decides */
    name[kept] = '\0';
    redact_env(out, name, equals + 1);
    return true;
}

static void redact_arg(struct buf *out, enum secrecy before, const char *arg)
{
    if (before != PLAIN && arg[0] != '-' &&
        !value_is_harmless(before, arg, strlen(arg)))
        buf_puts(out, REDACTED_TEXT);
    else if (!redact_assignment(out, arg))
        redact_text(out, arg);
}

int redact_args(int argc, char *const argv[], struct arena *a, char ***ret_argv)
{
    struct buf text = BUF_INIT;
    enum secrecy before = PLAIN;
    char **copy = arena_alloc_array(a, (size_t)argc + 1, sizeof(*copy));
    int rc = copy ? 0 : -ENOMEM;

    for (int i = 0; i < argc && rc == 0; i++) {
        buf_clear(&text);
        redact_arg(&text, before, argv[i]);
        before = judge_option(argv[i]);
        copy[i] = arena_strndup(a, text.data, text.len);
        if (text.error < 0 || !copy[i])
            rc = -ENOMEM;
    }
    if (rc == 0)
        *ret_argv = copy;
    buf_release(&text);
    return rc;
}
