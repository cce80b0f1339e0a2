/* cmd_doctor.c: `sonde doctor`: what can be measured here, and what would mend the rest.
 *
 * A table of at most 80 columns, or JSON (schema sonde.doctor/1). Exit 0 when the core
 * works, 1 when something essential does not.
 */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <sonde/sonde.h>

#include "base/json.h"
#include "cli/cli.h"
#include "cli/doctor.h"
#include "cli/options.h"
#include "present/report/page.h"
#include "present/report/report.h"

enum { WIDEST = 80, STATE_WIDTH = 13, NAME_WIDTH = 17, INDENT = 2 };

struct doctor_options {
    bool json, problems;
};

#define FIELD(name) offsetof(struct doctor_options, name)
static const struct option options[] = {
    { "json", 0, OPTION_FLAG, FIELD(json), .help = "print JSON" },
    { "problems", 0, OPTION_FLAG, FIELD(problems),
      .help = "only what is limited or unavailable" },
};

static const struct command command = {
    .verb = "doctor",
    .usage = "[options]",
    .summary = "what Sonde can measure here, and what would mend the rest",
    .options = options,
    .option_count = sizeof options / sizeof *options,
    .more = "Each check really tries it. Exit status: 0 the core works, 1 something\n"
            "essential does not (marked with *).\n",
};

static const struct doctor_roots real = { "/proc", "/sys" };
static const char *const state_names[] = { "ok", "limited", "unavailable" };
static const enum page_color state_colors[] = { GREEN, BOLD, RED };

struct tally {
    unsigned count[3];
    unsigned broken; /* essential ones */
};

static void count(struct tally *t, const struct doctor_check *c,
                  const struct doctor_answer *a)
{
    t->count[a->state]++;
    t->broken += c->essential && a->state == DOCTOR_UNAVAILABLE;
}

static void ask(const struct doctor_check *c, struct doctor_answer *ret_answer)
{
    *ret_answer = (struct doctor_answer){ 0 };
    c->probe(&real, ret_answer);
}

/* ---- Text ----------------------------------------------------------------------------- */

/* Words behind an indent, broken at blanks; the first line's indent is there already. */
static void put_wrapped(struct page *page, size_t indent, const char *text)
{
    struct buf clean = BUF_INIT;
    char *save = NULL;
    clean_text(&clean, text, 0);
    size_t at = indent;
    for (char *word = strtok_r(clean.data, " ", &save); word;
         word = strtok_r(NULL, " ", &save)) {
        const size_t wide = text_columns(word);
        if (at > indent && at + 1 + wide > (size_t)page->width) {
            page_puts(page, PLAIN, "\n");
            page_fill(page, indent);
            at = indent;
        }
        page_puts(page, PLAIN, at > indent ? " " : "");
        page_puts(page, PLAIN, word);
        at += wide + (at > indent);
    }
    page_puts(page, PLAIN, "\n");
    buf_release(&clean);
}

static void put_line(struct page *page, const char *label, const char *text)
{
    const size_t indent = INDENT + STATE_WIDTH + NAME_WIDTH;
    if (!text[0])
        return;
    page_fill(page, indent);
    page_puts(page, DIM, label);
    put_wrapped(page, indent + strlen(label), text);
}

static void put_check(struct page *page, const struct doctor_check *c,
                      const struct doctor_answer *a)
{
    char state[STATE_WIDTH + 1];
    (void)snprintf(state, sizeof state, "%-*s", STATE_WIDTH, state_names[a->state]);
    page_fill(page, INDENT);
    page_puts(page, state_colors[a->state], state);
    char name[NAME_WIDTH + 1];
    (void)snprintf(name, sizeof name, "%s%s", c->name, c->essential ? "*" : "");
    page_left(page, name, NAME_WIDTH);
    put_wrapped(page, INDENT + STATE_WIDTH + NAME_WIDTH, a->found);
    put_line(page, "", a->why);
    put_line(page, "fix: ", a->fix);
}

static void put_group(struct page *page, const struct doctor_group *g, bool problems,
                      struct tally *t)
{
    bool titled = false;
    for (const struct doctor_check *c = g->checks; c->id; c++) {
        struct doctor_answer a;
        ask(c, &a);
        count(t, c, &a);
        if (problems && a.state == DOCTOR_OK)
            continue;
        if (!titled) {
            page_puts(page, PLAIN, " ");
            page_puts(page, BOLD, g->title);
            page_puts(page, PLAIN, "\n");
        }
        titled = true;
        put_check(page, c, &a);
    }
    if (titled)
        page_puts(page, PLAIN, "\n");
}

static int print_text(const struct doctor_options *o, struct tally *t)
{
    struct report_style style = { 0 };
    struct utsname u;
    struct page page;
    report_style_detect(&style, STDOUT_FILENO);
    page_init(&page, style.width > 0 && style.width < WIDEST ? style.width : WIDEST,
              style.color, style.unicode);
    if (uname(&u) == 0)
        page_printf(&page, "sonde doctor · %.30s · Linux %.30s · %s\n\n", u.nodename,
                    u.release, u.machine);
    for (const struct doctor_group *g = doctor_groups; g->title; g++)
        put_group(&page, g, o->problems, t);
    page_printf(&page, " %u ok, %u limited, %u unavailable. %s\n", t->count[DOCTOR_OK],
                t->count[DOCTOR_LIMITED], t->count[DOCTOR_UNAVAILABLE],
                t->broken ? "Something essential (*) does not work."
                          : "The core works.");
    const int rc = page_flush(&page, stdout);
    page_release(&page);
    return rc;
}

/* ---- JSON -------------------------------------------------------------------------------- */

static void put_text(struct json_writer *w, const char *key, const char *text)
{
    json_key(w, key);
    json_put_string(w, text[0] ? text : NULL);
}

static void put_json_check(struct json_writer *w, const struct doctor_group *g,
                           const struct doctor_check *c, const struct doctor_answer *a)
{
    json_object_begin(w);
    put_text(w, "id", c->id);
    put_text(w, "group", g->title);
    put_text(w, "name", c->name);
    json_key(w, "essential");
    json_put_bool(w, c->essential);
    put_text(w, "state", state_names[a->state]);
    put_text(w, "found", a->found);
    put_text(w, "why", a->why);
    put_text(w, "fix", a->fix);
    json_object_end(w);
}

static int print_json(const struct doctor_options *o, struct tally *t)
{
    struct json_writer w;
    json_init_file(&w, stdout, JSON_STYLE_PRETTY);
    json_object_begin(&w);
    put_text(&w, "schema", "sonde.doctor/1");
    put_text(&w, "sonde", SONDE_VERSION);
    json_key(&w, "checks");
    json_array_begin(&w);
    for (const struct doctor_group *g = doctor_groups; g->title; g++)
        for (const struct doctor_check *c = g->checks; c->id; c++) {
            struct doctor_answer a;
            ask(c, &a);
            count(t, c, &a);
            if (!o->problems || a.state != DOCTOR_OK)
                put_json_check(&w, g, c, &a);
        }
    json_array_end(&w);
    json_key(&w, "core_works");
    json_put_bool(&w, t->broken == 0);
    json_object_end(&w);
    json_newline(&w);
    return json_finish(&w);
}

int cmd_doctor(int argc, char **argv)
{
    struct doctor_options o = { 0 };
    struct tally tally = { 0 };
    int status;
    if (!options_parse(&command, &argc, argv, &o, &status))
        return status;
    if (argc > 1)
        return options_fail(&command, "doctor takes no words, got '%s'", argv[1]);
    const int rc = o.json ? print_json(&o, &tally) : print_text(&o, &tally);
    if (rc < 0)
        return CLI_FAILED;
    return tally.broken ? CLI_NO : CLI_GOOD;
}
