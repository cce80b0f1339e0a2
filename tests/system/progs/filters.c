// link: all
/* filters.c: answers many Chroma filters on one store.
 *
 * Usage: filters DIR < lines of "where TAB where_document" (either may be empty)
 * Prints the ids that match, by blanks, one line each; "error: …" for what is refused. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "search/search.h"

static void print_ids(const struct index *index, const struct search_result *result)
{
    for (size_t i = 0; i < result->count; i++) {
        struct column column;
        const struct segment *s = &index->parts[result->hits[i].part].segment;
        if (!segment_find(s, "id", 2, &column))
            continue;
        const struct value id = column_at(&column, result->hits[i].row);
        printf("%s%.*s", i ? " " : "", (int)id.len, id.text);
    }
    puts("");
}

static void answer(const struct index *index, char *line)
{
    struct arena arena = ARENA_INIT;
    struct filter *where = NULL, *document = NULL;
    struct filter_error error;
    struct search_result result;
    line[strcspn(line, "\n")] = '\0';
    char *tab = strchr(line, '\t');
    int rc = tab ? 0 : -1;
    if (tab)
        *tab = '\0';
    if (rc == 0 && *line)
        rc = filter_parse_where(line, strlen(line), &arena, &where, &error);
    if (rc == 0 && tab[1])
        rc = filter_parse_where_document(tab + 1, strlen(tab + 1), &arena, &document,
                                         &error);
    struct filter *both = rc == 0 ? filter_and(&arena, where, document) : NULL;
    const struct search_query q = { .filter = both, .sort = "id", .ascending = true };
    if (rc < 0)
        printf("error: %s\n", error.message);
    else if (search_run(index, &q, &result) == 0) {
        print_ids(index, &result);
        search_result_release(&result);
    }
    filter_release(both);
    arena_release(&arena);
}

int main(int argc, char **argv)
{
    static char line[1 << 16];
    struct store *store = NULL;
    struct index *index = NULL;
    if (argc != 2 || store_open(argv[1], 0, &store, NULL) < 0 ||
        index_open(store, &index) < 0)
        return 2;
    while (fgets(line, sizeof line, stdin))
        answer(index, line);
    index_free(index);
    store_close(store);
    return 0;
}
