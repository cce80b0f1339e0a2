/* trial_followed.c: see trial_followed.h.
 *
 * Two things are recorded of what a person changed: the command and the settings of the
 * loader that trains. Arguments must be the same but for options that the advice is about;
 * the loader's workers and batch size must be the same, or have moved as advised. What was
 * edited in the program is not seen.
 */
#include "analyse/trial_followed.h"

#include <string.h>
#include <strings.h>

#include "analyse/facts.h"

/* ---- The command --------------------------------------------------------------------- */

static bool ends(const char *text, const char *with)
{
    const size_t len = strlen(text), tail = strlen(with);
    return len >= tail && strcmp(text + len - tail, with) == 0;
}

const char *trial_program(const struct run_meta *m)
{
    for (size_t i = 0; i < m->command_count; i++) {
        if (ends(m->command[i], ".py") || ends(m->command[i], ".sh"))
            return m->command[i];
        if (strcmp(m->command[i], "-m") == 0 && i + 1 < m->command_count)
            return m->command[i + 1];
    }
    return m->command_count ? m->command[0] : "";
}

bool trial_same_program(const struct run_meta *a, const struct run_meta *b)
{
    return trial_program(a)[0] && strcmp(trial_program(a), trial_program(b)) == 0 &&
           strcmp(a->cwd, b->cwd) == 0 && strcmp(a->host, b->host) == 0;
}

/* Words in the names of options that set what the advice is about. */
static const struct {
    const char *kind, *words[5];
} option_words[] = {
    { "data_loading_bound", { "worker", "prefetch", "loader" } },
    { "too_many_workers", { "worker", "loader" } },
    { "epoch_boundary_stall", { "persist", "keep-worker", "keep_worker" } },
    { "transfer_bound", { "pin" } },
    { "padding_waste", { "length", "bucket", "pad" } },
    { "evaluation_heavy", { "eval", "valid", "test" } },
    { "checkpoint_stall", { "save", "checkpoint", "ckpt" } },
    { "logging_stall", { "log" } },
    { "batch_too_small", { "batch", "lr", "learning" } },
    { "precision_unused", { "dtype", "float", "precision", "amp", "bf16" } },
    { "optimizer_bound", { "optim", "foreach", "fused" } },
    { "recompilation", { "compile", "dynamic" } },
    { "oversubscribed", { "thread" } },
    { "gc_pauses", { "gc" } },
};

static bool has_word(const char *name, size_t len, const char *word)
{
    const size_t wide = strlen(word);
    for (size_t i = 0; i + wide <= len; i++)
        if (strncasecmp(name + i, word, wide) == 0)
            return true;
    return false;
}

/* "--workers", "--workers=4", "workers=4" */
static bool is_advised(const char *argument, const char *kind)
{
    const char *equals = strchr(argument, '=');
    if (argument[0] != '-' && !equals)
        return false;
    const size_t len = equals ? (size_t)(equals - argument) : strlen(argument);
    for (size_t i = 0; i < sizeof option_words / sizeof *option_words; i++) {
        if (strcmp(option_words[i].kind, kind) != 0)
            continue;
        for (size_t k = 0; k < 5 && option_words[i].words[k]; k++)
            if (has_word(argument, len, option_words[i].words[k]))
                return true;
    }
    return false;
}

/* Past options that the advice is about, each with its value. */
static size_t skip_advised(const struct run_meta *m, size_t at, const char *kind)
{
    while (at < m->command_count && is_advised(m->command[at], kind)) {
        const bool whole = strchr(m->command[at], '=');
        at++;
        if (!whole && at < m->command_count && m->command[at][0] != '-')
            at++;
    }
    return at;
}

static bool same_arguments(const struct run_meta *a, const struct run_meta *b,
                           const char *kind)
{
    size_t i = 0, k = 0;
    for (;; i++, k++) {
        i = skip_advised(a, i, kind);
        k = skip_advised(b, k, kind);
        if (i >= a->command_count || k >= b->command_count)
            return i >= a->command_count && k >= b->command_count;
        if (strcmp(a->command[i], b->command[k]) != 0)
            return false;
    }
}

/* ---- The loader ------------------------------------------------------------------------ */

static bool is_kind(const struct finding *f, const char *id)
{
    return strcmp(f->id, id) == 0;
}

/* As many workers as were advised; −1: the advice is about something else. */
static int advised_workers(const struct finding *f)
{
    const char *metric = fact_infos[FACT_WORKERS_BEST].metric;
    if (!is_kind(f, "data_loading_bound") && !is_kind(f, "too_many_workers"))
        return -1;
    for (size_t i = 0; i < f->evidence_count; i++)
        if (strcmp(f->evidence[i].metric, metric) == 0)
            return (int)f->evidence[i].value;
    return -1;
}

static enum followed workers_moved(int before, int now, int advised)
{
    if (advised < 0 || advised == before)
        return now == before ? FOLLOWED_PERHAPS : FOLLOWED_NOT;
    if (now == advised)
        return FOLLOWED_SURELY;
    const bool there = advised > before ? now > before : now < before;
    return there ? FOLLOWED_PERHAPS : FOLLOWED_NOT;
}

/* A setting that is on or off, and was advised to be on where it was off. */
static enum followed switched(bool advised, bool before, bool now)
{
    if (!advised || before)
        return FOLLOWED_PERHAPS;
    return now ? FOLLOWED_SURELY : FOLLOWED_NOT;
}

/* Nothing may speak against it, and one thing for it is enough. */
static enum followed together(enum followed a, enum followed b)
{
    if (a == FOLLOWED_NOT || b == FOLLOWED_NOT)
        return FOLLOWED_NOT;
    return a > b ? a : b;
}

static enum followed settings_moved(const struct loader *a, const struct loader *b,
                                    const struct finding *f)
{
    const bool larger = is_kind(f, "batch_too_small");
    if (larger ? b->batch_size <= a->batch_size : b->batch_size != a->batch_size)
        return FOLLOWED_NOT;
    const bool persist = is_kind(f, "epoch_boundary_stall") && a->num_workers > 0;
    enum followed all = workers_moved(a->num_workers, b->num_workers,
                                      advised_workers(f));
    all = together(all,
                   switched(persist, a->persistent_workers, b->persistent_workers));
    return together(
        all, switched(is_kind(f, "transfer_bound"), a->pin_memory, b->pin_memory));
}

enum followed trial_followed(const struct report *before, const struct report *now,
                             const struct finding *f)
{
    const struct loader *a = loaders_training(&before->loaders);
    const struct loader *b = loaders_training(&now->loaders);
    if (!same_arguments(&before->run->meta, &now->run->meta, f->id))
        return FOLLOWED_NOT;
    return a && b ? settings_moved(a, b, f) : FOLLOWED_PERHAPS;
}
