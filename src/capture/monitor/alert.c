/* alert.c: reads alert expressions.
 *
 * Whoever writes one wants to know at once, and exactly where, that it is wrong: an alert
 * that can never fire is worse than none. What cannot be known here, whether a metric of
 * that name will be measured, the report says at the end.
 */
#include "capture/monitor/alert.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"

const char *const alert_reference[] = {
    "cpu>90%:10s",
    "memory>85%:10s",
    "disk>80%:10s", /* C5 */
    "memory>16GiB",
    "cpu>95%:10s",
    "gpu<70%:30s",     /* C10 */
    "io_wait>20%:10s", /* C10 */
    "cpu>80%:10s",
    "memory>80%:10s",
    "gpu_memory>80%", /* D8 */
    "batch>100ms",
    "sample>1ms",
    "operation>5s", /* D8 */
    NULL,
};

/* ---- Units ---------------------------------------------------------------------- */

/* `unit` is what monitors use; a value times `scale` is in it. */
static const struct unit {
    const char *text, *unit;
    double scale;
} units[] = {
    { "%", "percent", 1 },
    { "B", "MiB", 0x1p-20 },
    { "K", "MiB", 0x1p-10 },
    { "KB", "MiB", 0x1p-10 },
    { "KiB", "MiB", 0x1p-10 },
    { "M", "MiB", 1 },
    { "MB", "MiB", 1 },
    { "MiB", "MiB", 1 },
    { "G", "MiB", 0x1p10 },
    { "GB", "MiB", 0x1p10 },
    { "GiB", "MiB", 0x1p10 },
    { "T", "MiB", 0x1p20 },
    { "TB", "MiB", 0x1p20 },
    { "TiB", "MiB", 0x1p20 },
    { "KiB/s", "MiB/s", 0x1p-10 },
    { "KB/s", "MiB/s", 0x1p-10 },
    { "MiB/s", "MiB/s", 1 },
    { "MB/s", "MiB/s", 1 },
    { "GiB/s", "MiB/s", 0x1p10 },
    { "GB/s", "MiB/s", 0x1p10 },
    { "/s", "1/s", 1 },
    { "C", "C", 1 },
    { "°C", "C", 1 },
    { "W", "W", 1 },
    { "kW", "W", 1e3 },
    { "J", "J", 1 },
    { "kJ", "J", 1e3 },
    { "MHz", "MHz", 1 },
    { "GHz", "MHz", 1e3 },
    { "ns", "s", 1e-9 },
    { "us", "s", 1e-6 },
    { "µs", "s", 1e-6 },
    { "ms", "s", 1e-3 },
    { "s", "s", 1 },
    { "min", "s", 60 },
};

/* ---- Words of ours ---------------------------------------------------------------- */

/* One line per meaning: a word may mean two things in two units. */
static const struct word {
    const char *name, *unit;
    const char *source, *share_of;
    bool of_all_cores, whole_only, from_trace;
} words[] = {
    { "cpu", "percent", "cpu_system", NULL, true, true, false },
    { "memory", "percent", "memory_used", "memory_total", false, true, false },
    { "memory", "MiB", "rss", NULL, false, true, false },
    { "disk", "percent", "device_busy", NULL, false, false, false },
    { "io_wait", "percent", "cpu_iowait", NULL, true, true, false },
    { "gpu", "percent", "gpu", NULL, false, false, false },
    { "gpu_memory", "percent", "gpu_memory_percent", NULL, false, false, false },
    { "gpu_memory", "MiB", "gpu_memory", NULL, false, false, false },
    { "gpu_temp", "C", "gpu_temp", NULL, false, false, false },
    { "gpu_power", "W", "gpu_power", NULL, false, false, false },
    { "power", "W", "power", NULL, false, false, false },
    { "batch", "s", "step", NULL, false, false, true },
    { "step", "s", "step", NULL, false, false, true },
    { "sample", "s", "sample", NULL, false, false, true },
    { "operation", "s", "operation", NULL, false, false, true },
};

enum { WORDS = sizeof words / sizeof *words };

static const struct word *find_word(const char *name, const char *unit)
{
    for (size_t i = 0; i < WORDS; i++)
        if (strcmp(words[i].name, name) == 0 &&
            (!unit || strcmp(words[i].unit, unit) == 0))
            return &words[i];
    return NULL;
}

/* ---- Parsing ---------------------------------------------------------------------- */

struct cursor {
    const char *text, *at;
    struct alert_error *error;
};

__attribute__((format(printf, 2, 3))) static int fail(struct cursor *c, const char *fmt,
                                                      ...)
{
    va_list args;
    c->error->position = (size_t)(c->at - c->text) + 1;
    va_start(args, fmt);
    (void)vsnprintf(c->error->message, sizeof c->error->message, fmt, args);
    va_end(args);
    return -EINVAL;
}

static void skip_blanks(struct cursor *c)
{
    while (*c->at == ' ' || *c->at == '\t')
        c->at++;
}

/* Letters, digits and `also`; the length. */
static size_t name_length(const char *text, const char *also)
{
    size_t n = 0;
    while ((text[n] >= 'a' && text[n] <= 'z') || (text[n] >= 'A' && text[n] <= 'Z') ||
           (text[n] >= '0' && text[n] <= '9') || (text[n] && strchr(also, text[n])))
        n++;
    return n;
}

static int take_name(struct cursor *c, const char *also, const char *what,
                     char ret_name[ALERT_NAME_LEN])
{
    const size_t len = name_length(c->at, also);
    if (len == 0)
        return fail(c, "expected %s", what);
    if (len >= ALERT_NAME_LEN)
        return fail(c, "%s is longer than %d characters", what, ALERT_NAME_LEN - 1);
    memcpy(ret_name, c->at, len);
    ret_name[len] = '\0';
    c->at += len;
    return 0;
}

static int take_operator(struct cursor *c, enum alert_op *ret_op)
{
    if (*c->at != '<' && *c->at != '>')
        return fail(c, *c->at ? "expected >, >=, < or <="
                              : "expected >, >=, < or <= and a value");
    const bool above = *c->at++ == '>';
    const bool equal = *c->at == '=';
    c->at += equal;
    *ret_op = above ? (equal ? ALERT_AT_LEAST : ALERT_ABOVE)
                    : (equal ? ALERT_AT_MOST : ALERT_BELOW);
    return 0;
}

static int take_number(struct cursor *c, double *ret_value)
{
    char digits[32];
    const bool negative = *c->at == '-';
    const size_t len = strspn(c->at + negative, "0123456789.");
    if (len == 0 || c->at[negative] == '.')
        return fail(c, "expected a number such as 80 or 0.5");
    if (len >= sizeof digits)
        return fail(c, "the number has too many digits");
    memcpy(digits, c->at + negative, len);
    digits[len] = '\0';
    if (strchr(digits, '.') != strrchr(digits, '.') || digits[len - 1] == '.')
        return fail(c, "'%s' is not a number", digits);
    *ret_value = negative ? -strtod(digits, NULL) : strtod(digits, NULL);
    c->at += negative + len;
    return 0;
}

/* NULL unit: none was given. */
static int take_unit(struct cursor *c, const struct unit **ret_unit)
{
    const size_t len = strcspn(c->at, ": \t");
    *ret_unit = NULL;
    if (len == 0)
        return 0;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (strlen(units[i].text) == len && memcmp(units[i].text, c->at, len) == 0)
            *ret_unit = &units[i];
    if (!*ret_unit)
        return fail(c,
                    "unknown unit '%.*s' (known: %% KiB MiB GiB TiB MiB/s /s C W J "
                    "MHz GHz us ms s min)",
                    len < 20 ? (int)len : 20, c->at);
    c->at += len;
    return 0;
}

static int take_duration(struct cursor *c, uint64_t *ret_ns)
{
    *ret_ns = 0;
    if (*c->at == '\0')
        return 0;
    if (*c->at != ':')
        return fail(c, "expected ':' and a duration, or the end");
    c->at++;
    skip_blanks(c);
    if (parse_duration(c->at, ret_ns) < 0)
        return fail(c, "expected a duration with its unit, such as 10s or 500ms");
    return 0;
}

/* What the word means in this unit. `at` is where the unit stands or should. */
static int find_meaning(struct cursor *c, const char *at, struct alert_rule *rule,
                        const struct unit *unit)
{
    const struct word *word = find_word(rule->metric, unit ? unit->unit : NULL);
    c->at = at;
    if (!find_word(rule->metric, NULL)) { /* some monitor's, taken as it is */
        rule->source = rule->metric;
        return 0;
    }
    if (!word)
        return fail(c, "%s is not measured in '%s'", rule->metric,
                    unit ? unit->text : "");
    if (!unit && find_word(rule->metric, "MiB") && find_word(rule->metric, "percent"))
        return fail(c, "%s wants a unit: %% or MiB, GiB …", rule->metric);
    if (!unit && word->from_trace)
        return fail(c, "%s wants a unit: us, ms or s", rule->metric);
    if (word->share_of && rule->subject[0])
        return fail(c, "%s in %% is the machine's: leave '%s' out, or use MiB",
                    rule->metric, rule->subject);
    rule->unit = word->unit;
    rule->from_trace = word->from_trace;
    rule->source = word->source;
    rule->whole_only = word->whole_only && !rule->subject[0];
    rule->of_all_cores = word->of_all_cores && !rule->subject[0];
    rule->share_of = word->share_of;
    if (strcmp(rule->metric, "cpu") == 0 && rule->subject[0])
        rule->source = "cpu"; /* of one process: 100 = one core */
    return 0;
}

static int parse(struct cursor *c, struct alert_rule *rule)
{
    const struct unit *unit = NULL;
    int rc;
    skip_blanks(c);
    if ((rc = take_name(c, "_", "a metric such as cpu or gpu_memory", rule->metric)) <
        0)
        return rc;
    skip_blanks(c);
    if (*c->at && *c->at != '<' && *c->at != '>' && *c->at != '=' && *c->at != '!') {
        if ((rc = take_name(c, "_./:-", "a subject such as gpu0", rule->subject)) < 0)
            return rc;
        skip_blanks(c);
    }
    if ((rc = take_operator(c, &rule->op)) < 0)
        return rc;
    skip_blanks(c);
    if ((rc = take_number(c, &rule->threshold)) < 0)
        return rc;
    skip_blanks(c);
    const char *at = c->at;
    if ((rc = take_unit(c, &unit)) < 0)
        return rc;
    skip_blanks(c);
    const char *behind = c->at;
    if (unit) {
        rule->unit = unit->unit;
        rule->threshold *= unit->scale;
    }
    if ((rc = find_meaning(c, at, rule, unit)) < 0)
        return rc;
    c->at = behind;
    return take_duration(c, &rule->duration_ns);
}

int alert_parse(const char *text, struct alert_rule *ret_rule,
                struct alert_error *ret_error)
{
    struct alert_rule rule = { .unit = "" };
    struct cursor c = { text, text, ret_error };
    if (strlen(text) >= ALERT_TEXT_LEN)
        return fail(&c, "longer than %d characters", ALERT_TEXT_LEN - 1);
    const int rc = parse(&c, &rule);
    if (rc < 0)
        return rc;
    (void)snprintf(rule.text, sizeof rule.text, "%s", text);
    alert_rule_copy(ret_rule, &rule);
    return 0;
}

void alert_rule_copy(struct alert_rule *to, const struct alert_rule *from)
{
    *to = *from;
    if (from->source == from->metric)
        to->source = to->metric;
}
