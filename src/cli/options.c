/* options.c: parse a command line by its table, and print the table as help.
 *
 * Layers are applied from the strongest down: what a flag has set is marked in
 * `given`, and a weaker layer touches only what is not marked. So a broken variable
 * does no harm when a flag overrides it.
 */
#include "cli/options.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/parse.h"
#include "cli/cli.h"

enum { HELP_COLUMN = 28, HELP_WIDTH = 80 };

struct parser {
    const struct command *command;
    char *target;
    uint64_t given; /* bit i: option i has its value */
    int status;
};

static const char *const kind_wants[] = {
    [OPTION_FLAG] = "yes or no",
    [OPTION_TEXT] = "a text",
    [OPTION_COUNT] = "a whole number such as 10",
    [OPTION_SIZE] = "a size such as 512MiB",
    [OPTION_DURATION] = "a duration such as 100ns or 5ms",
    [OPTION_SECONDS] = "a duration such as 30s or 5m",
    [OPTION_RANGE] = "a range such as 100:200",
    [OPTION_PAIRS] = "key=value",
    [OPTION_TEXTS] = "a text",
};

int options_fail(const struct command *command, const char *fmt, ...)
{
    struct buf b = BUF_INIT;
    va_list args;
    va_start(args, fmt);
    buf_vprintf(&b, fmt, args);
    va_end(args);
    (void)fprintf(stderr, "sonde %s: %s\n(sonde %s --help lists the options)\n",
                  command->verb, b.data, command->verb);
    buf_release(&b);
    return command->usage_status ? command->usage_status : CLI_FAILED;
}

/* ---- Values ---------------------------------------------------------------- */

static int set_choice(const struct option *o, const char *text, int *ret_index)
{
    for (int i = 0; o->choices[i]; i++)
        if (strcmp(o->choices[i], text) == 0) {
            *ret_index = i;
            return 0;
        }
    return -EINVAL;
}

static int set_range(const char *text, struct option_range *ret_range)
{
    struct option_range range = { .text = text };
    int rc = parse_range(text, &range.first, &range.end);
    if (rc == 0)
        *ret_range = range;
    return rc;
}

static int add_pair(const char *text, struct option_list *list)
{
    const char *equals = strchr(text, '=');
    if (!equals || equals == text)
        return -EINVAL;
    if (list->count == OPTION_LIST_MAX)
        return -ERANGE;
    list->items[list->count++] = text;
    return 0;
}

static int add_text(const char *text, struct option_list *list)
{
    if (!*text)
        return -EINVAL;
    if (list->count == OPTION_LIST_MAX)
        return -ERANGE;
    list->items[list->count++] = text;
    return 0;
}

static int set_value(const struct option *o, const char *text, void *field)
{
    switch (o->kind) {
    case OPTION_FLAG:
        return parse_bool(text, field);
    case OPTION_TEXT:
        *(const char **)field = text;
        return 0;
    case OPTION_COUNT:
        return parse_uint(text, field);
    case OPTION_SIZE:
        return parse_size(text, field);
    case OPTION_DURATION:
        return parse_duration(text, field);
    case OPTION_SECONDS:
        return parse_duration_s(text, field);
    case OPTION_RANGE:
        return set_range(text, field);
    case OPTION_CHOICE:
        return set_choice(o, text, field);
    case OPTION_PAIRS:
        return add_pair(text, field);
    case OPTION_TEXTS:
        return add_text(text, field);
    }
    return -EINVAL;
}

static void put_choices(struct buf *out, const struct option *o)
{
    buf_puts(out, "one of ");
    for (int i = 0; o->choices[i]; i++)
        buf_printf(out, "%s%s", i ? ", " : "", o->choices[i]);
}

/* `source` is what the user wrote: "--level" or "SONDE_LEVEL". */
static bool apply(struct parser *p, const struct option *o, const char *source,
                  const char *text)
{
    int rc = set_value(o, text, p->target + o->target);
    p->given |= 1ULL << (o - p->command->options);
    if (rc == 0)
        return true;
    struct buf wants = BUF_INIT;
    if (rc == -ERANGE && (o->kind == OPTION_PAIRS || o->kind == OPTION_TEXTS))
        buf_printf(&wants, "at most %d of them", OPTION_LIST_MAX);
    else if (o->kind == OPTION_CHOICE)
        put_choices(&wants, o);
    else
        buf_puts(&wants, rc == -ERANGE ? "a smaller value" : kind_wants[o->kind]);
    p->status = options_fail(p->command, "%s wants %s, got '%s'", source, wants.data,
                             text);
    buf_release(&wants);
    return false;
}

/* ---- Arguments ------------------------------------------------------------- */

static const struct option *find_long(const struct command *c, const char *name,
                                      size_t len)
{
    for (size_t i = 0; i < c->option_count; i++)
        if (strlen(c->options[i].name) == len &&
            memcmp(c->options[i].name, name, len) == 0)
            return &c->options[i];
    return NULL;
}

static const struct option *find_letter(const struct command *c, char letter)
{
    for (size_t i = 0; i < c->option_count; i++)
        if (c->options[i].letter == letter)
            return &c->options[i];
    return NULL;
}

static bool unknown_long(struct parser *p, const char *name, size_t len)
{
    const char *names[OPTIONS_MAX + 1];
    for (size_t i = 0; i < p->command->option_count; i++)
        names[i] = p->command->options[i].name;
    names[p->command->option_count] = "help";

    struct buf word = BUF_INIT;
    buf_append(&word, name, len);
    const char *near = cli_nearest(word.data, names,
                                   (unsigned)p->command->option_count + 1);
    if (near)
        p->status = options_fail(
            p->command, "there is no option --%s; did you mean --%s?", word.data, near);
    else
        p->status = options_fail(p->command, "there is no option --%s", word.data);
    buf_release(&word);
    return false;
}

/* The value of a flag's neighbour: the next argument, but never a lone "--", which
 * is far more often a forgotten value than a wanted one. */
static const char *next_argument(int argc, char **argv, int *at)
{
    if (*at + 1 >= argc || strcmp(argv[*at + 1], "--") == 0)
        return NULL;
    return argv[++*at];
}

static bool value_missing(struct parser *p, const struct option *o, const char *source)
{
    p->status = options_fail(p->command, "%s wants a value: %s %s", source, source,
                             o->value ? o->value : "VALUE");
    return false;
}

static bool parse_long(struct parser *p, int argc, char **argv, int *at)
{
    const char *name = argv[*at] + 2;
    const size_t len = strcspn(name, "=");
    const struct option *o = find_long(p->command, name, len);
    if (!o)
        return unknown_long(p, name, len);

    char source[64];
    (void)snprintf(source, sizeof source, "--%s", o->name);
    const char *value = name[len] == '=' ? name + len + 1 : NULL;
    if (o->kind == OPTION_FLAG)
        return apply(p, o, source, value ? value : "yes");
    if (!value)
        value = next_argument(argc, argv, at);
    return value ? apply(p, o, source, value) : value_missing(p, o, source);
}

/* "-q", "-o DIR", "-oDIR", and flags in one word: "-qf". */
static bool parse_letters(struct parser *p, int argc, char **argv, int *at)
{
    for (const char *c = argv[*at] + 1; *c; c++) {
        const char source[] = { '-', *c, '\0' };
        const struct option *o = find_letter(p->command, *c);
        if (!o) {
            p->status = options_fail(p->command, "there is no option %s", source);
            return false;
        }
        if (o->kind == OPTION_FLAG) {
            if (!apply(p, o, source, "yes"))
                return false;
            continue;
        }
        const char *value = c[1] ? c + 1 : next_argument(argc, argv, at);
        return value ? apply(p, o, source, value) : value_missing(p, o, source);
    }
    return true;
}

static bool is_help(const char *argument)
{
    return strcmp(argument, "--help") == 0 || strcmp(argument, "-h") == 0;
}

/* Moves the words to the front of argv; false when the verb is done. */
static bool parse_arguments(struct parser *p, int *argc, char **argv)
{
    int words = 1, at = 1;
    for (; at < *argc; at++) {
        char *argument = argv[at];
        if (strcmp(argument, "--") == 0) {
            at++;
            break;
        }
        if (is_help(argument)) {
            options_help(p->command);
            return false;
        }
        if (argument[0] != '-' || argument[1] == '\0') {
            if (p->command->stop_at_word)
                break;
            argv[words++] = argument;
        } else if (!(argument[1] == '-' ? parse_long(p, *argc, argv, &at)
                                        : parse_letters(p, *argc, argv, &at))) {
            return false;
        }
    }
    while (at < *argc)
        argv[words++] = argv[at++];
    argv[words] = NULL; /* argv[argc] is ours too, and words <= argc */
    *argc = words;
    return true;
}

static bool apply_environment(struct parser *p)
{
    for (size_t i = 0; i < p->command->option_count; i++) {
        const struct option *o = &p->command->options[i];
        const char *text = o->env ? getenv(o->env) : NULL;
        if (!text || !*text || p->given >> i & 1)
            continue;
        if (!apply(p, o, o->env, text))
            return false;
    }
    return true;
}

bool options_disabled(void)
{
    const char *text = getenv("SONDE_DISABLE");
    bool disabled = true;
    if (!text || !*text)
        return false;
    return parse_bool(text, &disabled) != 0 || disabled;
}

bool options_parse(const struct command *command, int *argc, char **argv, void *target,
                   int *ret_status)
{
    struct parser p = { .command = command, .target = target };
    /* sonde.yaml will be the third layer, applied like the environment. */
    if (parse_arguments(&p, argc, argv) &&
        (options_disabled() || apply_environment(&p)))
        return true;
    *ret_status = p.status;
    return false;
}

/* ---- Help ------------------------------------------------------------------ */

/* Columns of UTF-8 text, all characters being one wide. */
static size_t columns(const char *text, size_t len)
{
    size_t n = 0;
    for (size_t i = 0; i < len; i++)
        n += (text[i] & 0xc0) != 0x80;
    return n;
}

/* Prints words from `column` on, breaking lines at HELP_WIDTH. */
static void print_wrapped(const char *text, size_t column)
{
    size_t at = column;
    while (*text) {
        const size_t len = strcspn(text, " ");
        const size_t wide = columns(text, len);
        if (at > column && at + 1 + wide > HELP_WIDTH) {
            printf("\n%*s", (int)column, "");
            at = column;
        } else if (at > column) {
            (void)putchar(' ');
            at++;
        }
        printf("%.*s", (int)len, text);
        at += wide;
        text += len + strspn(text + len, " ");
    }
    (void)putchar('\n');
}

static void print_option(const struct option *o)
{
    struct buf left = BUF_INIT, right = BUF_INIT;
    if (o->letter)
        buf_printf(&left, "  -%c, --%s", o->letter, o->name);
    else
        buf_printf(&left, "      --%s", o->name);
    if (o->kind != OPTION_FLAG)
        buf_printf(&left, " %s", o->value ? o->value : "VALUE");
    buf_puts(&right, o->help);
    if (o->kind == OPTION_CHOICE) {
        buf_puts(&right, ": ");
        put_choices(&right, o);
    }
    if (o->env)
        buf_printf(&right, " [%s]", o->env);

    const size_t wide = columns(left.data, left.len);
    if (wide + 2 > HELP_COLUMN)
        printf("%s\n%*s", left.data, HELP_COLUMN, "");
    else
        printf("%s%*s", left.data, (int)(HELP_COLUMN - wide), "");
    print_wrapped(right.data, HELP_COLUMN);
    buf_release(&left);
    buf_release(&right);
}

void options_help(const struct command *command)
{
    printf("sonde %s: %s\n\nUsage: sonde %s %s\n\n", command->verb, command->summary,
           command->verb, command->usage);
    puts("Options ([NAME] is the environment variable that sets the same)");
    for (size_t i = 0; i < command->option_count; i++)
        print_option(&command->options[i]);
    printf("%-*sshow this text\n", HELP_COLUMN, "  -h, --help");
    if (command->more)
        printf("\n%s", command->more);
}
