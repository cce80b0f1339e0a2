/* unknown_name.c: "no experiment has 'metrics.acuracy'; did you mean …?"
 *
 * A filter over a name that nobody has finds nothing and is not wrong: names are free.
 * So nothing is refused; who found nothing, or sorts by nothing, is told.
 */
#include "cli/unknown_name.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "cli/cli.h"

enum { NAMES_MOST = 4096, NAME_MOST = 400 };

static const char *const prefixes[] = { "metrics.", "params.", "tags." };

static bool is_fact(const char *name, size_t len)
{
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++) {
        const size_t n = strlen(prefixes[i]);
        if (len > n && memcmp(name, prefixes[i], n) == 0)
            return true;
    }
    return false;
}

static bool has_column(const struct index *index, const char *name, size_t len)
{
    struct column column;
    for (size_t i = 0; i < index->count; i++)
        if (segment_find(&index->parts[i].segment, name, len, &column))
            return true;
    return false;
}

static bool is_there(const struct index *index, const struct filter *f)
{
    char full[NAME_MOST + 16];
    if (!f->bare)
        return !is_fact(f->name, f->name_len) ||
               has_column(index, f->name, f->name_len);
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++) {
        const int n = snprintf(full, sizeof full, "%s%.*s", prefixes[i],
                               (int)f->name_len, f->name);
        if (has_column(index, full, (size_t)n))
            return true;
    }
    return false;
}

struct name_list {
    struct arena arena;
    const char **names;
    unsigned count;
};

static void add(struct name_list *list, const char *name, size_t len)
{
    for (unsigned i = 0; i < list->count; i++)
        if (strncmp(list->names[i], name, len) == 0 && !list->names[i][len])
            return;
    const char *copy = list->count < NAMES_MOST ? arena_strndup(&list->arena, name, len)
                                                : NULL;
    if (copy)
        list->names[list->count++] = copy;
}

/* Names of facts; those without a prefix are meant by the name alone, or by a prefix
 * that is itself misspelt. */
static void collect(const struct index *index, bool bare, struct name_list *list)
{
    for (size_t i = 0; i < index->count; i++) {
        const struct segment *s = &index->parts[i].segment;
        for (uint32_t k = 0; k < s->head->columns; k++) {
            struct column column;
            const char *name;
            size_t len;
            if (!segment_column(s, k, &column, &name, &len) || !is_fact(name, len))
                continue;
            const char *dot = bare ? memchr(name, '.', len) : NULL;
            add(list, name, len);
            if (dot)
                add(list, dot + 1, len - (size_t)(dot + 1 - name));
        }
    }
}

static void tell(const struct index *index, const struct filter *f)
{
    struct name_list list = { .arena = ARENA_INIT };
    list.names = calloc(NAMES_MOST, sizeof *list.names);
    const char *word = arena_strndup(&list.arena, f->name, f->name_len);
    if (list.names && word) {
        collect(index, f->bare, &list);
        const char *near = cli_nearest(word, list.names, list.count);
        cli_error("no experiment has '%s'%s%s%s", word, near ? "; did you mean " : "",
                  near ? near : "", near ? "?" : "");
    }
    free(list.names);
    arena_release(&list.arena);
}

bool cli_name_is_unknown(const struct index *index, const char *name, size_t len)
{
    struct filter f = { .op = FILTER_ALL };
    if (!filter_set_name(&f, name, len) || f.name_len > NAME_MOST ||
        is_there(index, &f))
        return false;
    tell(index, &f);
    return true;
}

void cli_tell_unknown_names(const struct index *index, const struct filter *f)
{
    for (; f; f = f->next) {
        if (f->first)
            cli_tell_unknown_names(index, f->first);
        else if (f->name && f->name_len <= NAME_MOST && f->op != FILTER_MISSING &&
                 !is_there(index, f))
            tell(index, f);
    }
}
