/* options.h: command lines as tables.
 *
 * A verb lists its options once; the list parses the arguments, falls back to the
 * environment, and prints the help. Values go into the verb's own struct:
 *
 *     struct list_options { bool json; uint64_t limit; };
 *     static const struct option options[] = {
 *         { "json", 0, OPTION_FLAG, offsetof(struct list_options, json),
 *           .help = "print JSON" },
 *         { "limit", 'n', OPTION_COUNT, offsetof(struct list_options, limit),
 *           .value = "N", .help = "show at most N runs", .env = "SONDE_LIMIT" },
 *     };
 *     static const struct command command = {
 *         .verb = "list", .usage = "[options]", .summary = "show the runs",
 *         .options = options, .option_count = 2,
 *     };
 *
 *     struct list_options o = { .limit = 20 };
 *     int status;
 *     if (!options_parse(&command, &argc, argv, &o, &status))
 *         return status;
 *     … argv[1] to argv[argc - 1] are the words that are no options
 *
 * Precedence: flags over environment over (later) sonde.yaml over what the struct
 * held before.
 */
#ifndef SONDE_CLI_OPTIONS_H
#define SONDE_CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { OPTION_LIST_MAX = 64, OPTIONS_MAX = 64 };

struct option_list {
    const char *items[OPTION_LIST_MAX]; /* borrowed from argv */
    size_t count;
};

/* first <= x < end; text is NULL while not given. */
struct option_range {
    uint64_t first, end;
    const char *text;
};

enum option_kind {
    OPTION_FLAG,     /* bool */
    OPTION_TEXT,     /* const char *, borrowed from argv or the environment */
    OPTION_COUNT,    /* uint64_t */
    OPTION_SIZE,     /* uint64_t, bytes */
    OPTION_DURATION, /* uint64_t, nanoseconds; the unit must be given */
    OPTION_SECONDS,  /* uint64_t, nanoseconds; a bare number is seconds */
    OPTION_RANGE,    /* struct option_range */
    OPTION_CHOICE,   /* int: index in `choices` */
    OPTION_PAIRS,    /* struct option_list of "key=value"; may be repeated */
    OPTION_TEXTS,    /* struct option_list of any texts; may be repeated */
};

struct option {
    const char *name; /* long form without dashes */
    char letter;      /* short form or 0 */
    enum option_kind kind;
    size_t target;     /* offset in the verb's struct */
    const char *value; /* what the help calls the value: "DIR" */
    const char *help;
    const char *env;            /* fallback variable or NULL */
    const char *const *choices; /* NULL-terminated; OPTION_CHOICE only */
};

struct command {
    const char *verb;
    const char *usage; /* behind "sonde VERB" */
    const char *summary;
    const struct option *options;
    size_t option_count; /* at most OPTIONS_MAX */
    const char *more;    /* printed below the options; may be NULL */
    bool stop_at_word;   /* the first word ends the options: a command follows */
    int usage_status;    /* exit status of wrong usage; 0 means CLI_FAILED */
};

/* True: go on; argv and *argc now hold argv[0] and the words only. False: help was
 * asked for and printed, or the usage was wrong and the error printed; leave with
 * *ret_status. */
bool options_parse(const struct command *command, int *argc, char **argv, void *target,
                   int *ret_status);

/* Prints "sonde VERB: …" and where to find help; returns the status to leave with. */
int options_fail(const struct command *command, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

void options_help(const struct command *command);

/* SONDE_DISABLE is set to anything but an empty string or a word for "no". */
bool options_disabled(void);

#endif
