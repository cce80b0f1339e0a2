/* ogb.c: see ogb.h. */
#include "model/ref/ogb.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <zlib.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/files.h"

enum {
    MAX_FILE = 1 << 30,
    MAX_NODES = 1 << 26,
    MAX_BARE_NODES =
        1 << 22, /* without a line each: a few bytes could ask for gigabytes */
    MAX_COLUMNS = 4096
};

static const char *const names[OGB_FILES] = {
    [OGB_NODES] = "num-node-list.csv", [OGB_EDGE_COUNTS] = "num-edge-list.csv",
    [OGB_EDGES] = "edge.csv",          [OGB_FEATURES] = "node-feat.csv",
    [OGB_LABELS] = "graph-label.csv",
};

const char *ogb_file_name(enum ogb_file file)
{
    return names[file];
}

/* ---- Lines --------------------------------------------------------------------------- */

struct lines {
    const char *at, *end;
    size_t number; /* of the line last read, from 1 */
    enum ogb_file file;
    char *error;
};

static int __attribute__((format(printf, 2, 3)))
bad(struct lines *l, const char *fmt, ...)
{
    char text[128];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    (void)snprintf(l->error, OGB_ERROR_LEN, "%s, line %zu: %s", names[l->file],
                   l->number, text);
    return SONDE_E_FORMAT;
}

static struct lines lines_of(const struct ogb_text *texts, enum ogb_file file,
                             char *error)
{
    static const struct ogb_text none = { "", 0 };
    const struct ogb_text *text = texts[file].data ? &texts[file] : &none;
    return (struct lines){
        .at = text->data, .end = text->data + text->len, .file = file, .error = error
    };
}

/* The next line that is not empty; false at the end. */
static bool next_line(struct lines *l, const char **ret_line, size_t *ret_len)
{
    while (l->at < l->end) {
        const char *newline = memchr(l->at, '\n', (size_t)(l->end - l->at));
        const char *end = newline ? newline : l->end;
        const char *line = l->at;
        l->at = newline ? newline + 1 : l->end;
        l->number++;
        if (end > line && end[-1] == '\r')
            end--;
        if (end > line) {
            *ret_line = line;
            *ret_len = (size_t)(end - line);
            return true;
        }
    }
    return false;
}

static size_t count_lines(struct lines l)
{
    const char *line;
    size_t len, count = 0;
    while (next_line(&l, &line, &len))
        count++;
    return count;
}

/* A number up to a comma or the end, moved over. False when there is none. */
static bool take_number(const char **at, const char *end, double *ret_value)
{
    char text[64];
    const char *comma = memchr(*at, ',', (size_t)(end - *at));
    const size_t len = (size_t)((comma ? comma : end) - *at);
    char *rest = text;
    if (len == 0 || len >= sizeof text) {
        *at = comma ? comma + 1 : end;
        return false;
    }
    memcpy(text, *at, len);
    text[len] = '\0';
    *ret_value = strtod(text, &rest);
    *at = comma ? comma + 1 : end;
    return rest != text && *rest == '\0';
}

static bool take_whole(const char **at, const char *end, uint64_t max, uint64_t *ret)
{
    double value;
    if (!take_number(at, end, &value) || !(value >= 0) || value > (double)max ||
        value != floor(value))
        return false;
    *ret = (uint64_t)value;
    return true;
}

/* ---- Files ------------------------------------------------------------------------------- */

/* One number per graph. */
static int parse_counts(struct lines l, size_t count, uint64_t *ret_counts,
                        uint64_t *ret_total)
{
    const char *line;
    size_t len;
    uint64_t total = 0;
    for (size_t i = 0; i < count; i++) {
        if (!next_line(&l, &line, &len))
            return bad(&l, "%zu graphs expected, it ends here", count);
        if (!take_whole(&line, line + len, MAX_NODES, &ret_counts[i]))
            return bad(&l, "not a count");
        total += ret_counts[i];
        if (total > MAX_NODES)
            return bad(&l, "more than %d in all", MAX_NODES);
    }
    *ret_total = total;
    return 0;
}

static int parse_edges(struct lines l, const uint64_t *edges, struct graphs *g)
{
    const char *line;
    size_t len, at = 0;
    for (size_t i = 0; i < g->count; i++) {
        const uint64_t base = g->first[i], nodes = g->first[i + 1] - base;
        for (uint64_t e = 0; e < edges[i]; e++, at++) {
            uint64_t a, b;
            if (!next_line(&l, &line, &len))
                return bad(&l, "it ends in graph %zu, with edges missing", i);
            const char *end = line + len;
            if (!take_whole(&line, end, MAX_NODES, &a) ||
                !take_whole(&line, end, MAX_NODES, &b) || line != end)
                return bad(&l, "not an edge: two numbers were expected");
            if (a >= nodes || b >= nodes)
                return bad(&l, "node %llu in a graph of %llu",
                           (unsigned long long)(a > b ? a : b),
                           (unsigned long long)nodes);
            g->source[at] = (uint32_t)(base + a);
            g->target[at] = (uint32_t)(base + b);
        }
    }
    return 0;
}

static size_t columns_of(struct lines l)
{
    const char *line;
    size_t len, columns = 1;
    if (!next_line(&l, &line, &len))
        return 0;
    for (size_t i = 0; i < len; i++)
        columns += line[i] == ',';
    return columns;
}

/* `lenient`: what is no finite number counts as 0 (missing labels). */
static int parse_table(struct lines l, size_t rows, size_t columns, bool lenient,
                       float *ret_table)
{
    const char *line;
    size_t len;
    for (size_t r = 0; r < rows; r++) {
        if (!next_line(&l, &line, &len))
            return bad(&l, "%zu lines expected, it ends here", rows);
        const char *end = line + len;
        for (size_t c = 0; c < columns; c++) {
            double value = 0;
            const bool good = take_number(&line, end, &value) && isfinite(value);
            if (!good && !lenient)
                return bad(&l, "value %zu is no number", c + 1);
            ret_table[r * columns + c] = good ? (float)value : 0;
        }
        if (line != end)
            return bad(&l, "more than %zu values", columns);
    }
    return 0;
}

/* ---- Reverses ------------------------------------------------------------------------------ */

static int by_ends(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* 1 when every edge has its reverse, 0 when not, −ENOMEM. */
static int is_symmetric(const struct graphs *g)
{
    uint64_t *keys = malloc((g->edges + 1) * sizeof *keys);
    int symmetric = 1;
    if (!keys)
        return -ENOMEM;
    for (size_t e = 0; e < g->edges; e++)
        keys[e] = (uint64_t)g->source[e] << 32 | g->target[e];
    qsort(keys, g->edges, sizeof *keys, by_ends);
    for (size_t e = 0; symmetric && e < g->edges; e++) {
        const uint64_t reverse = (uint64_t)g->target[e] << 32 | g->source[e];
        symmetric = bsearch(&reverse, keys, g->edges, sizeof *keys, by_ends) != NULL;
    }
    free(keys);
    return symmetric;
}

/* Moves everything into a batch with room for both directions. */
static int add_reverses(struct graphs *g)
{
    struct graphs both;
    const int rc = graphs_alloc(&both, g->count, g->nodes, 2 * g->edges, g->features,
                                g->outputs);
    if (rc < 0)
        return rc;
    memcpy(both.first, g->first, (g->count + 1) * sizeof *g->first);
    memcpy(both.x, g->x, g->nodes * g->features * sizeof *g->x);
    memcpy(both.labels, g->labels, g->count * g->outputs * sizeof *g->labels);
    for (size_t e = 0; e < g->edges; e++) {
        both.source[2 * e] = both.target[2 * e + 1] = g->source[e];
        both.target[2 * e] = both.source[2 * e + 1] = g->target[e];
    }
    graphs_release(g);
    *g = both;
    return 0;
}

/* ---- All ------------------------------------------------------------------------------------- */

static int fill(struct graphs *g, const struct ogb_text *texts, const uint64_t *nodes,
                const uint64_t *edges, char *error)
{
    for (size_t i = 0; i < g->count; i++)
        g->first[i + 1] = g->first[i] + nodes[i];
    int rc = parse_edges(lines_of(texts, OGB_EDGES, error), edges, g);
    if (rc == 0 && texts[OGB_FEATURES].data)
        rc = parse_table(lines_of(texts, OGB_FEATURES, error), g->nodes, g->features,
                         false, g->x);
    for (size_t i = 0; !texts[OGB_FEATURES].data && i < g->nodes; i++)
        g->x[i] = 1;
    if (rc == 0 && texts[OGB_LABELS].data)
        rc = parse_table(lines_of(texts, OGB_LABELS, error), g->count, g->outputs, true,
                         g->labels);
    const int symmetric = rc == 0 ? is_symmetric(g) : rc;
    if (symmetric == 0)
        rc = add_reverses(g);
    else if (symmetric < 0)
        rc = symmetric;
    return rc < 0 ? rc : graphs_index(g);
}

/* Columns of a table that may be missing; 1 then. */
static size_t width(const struct ogb_text *texts, enum ogb_file file, char *error)
{
    return texts[file].data ? columns_of(lines_of(texts, file, error)) : 1;
}

/* What a folder's tables can hold: no more rows than lines, or the memory for the rows is
 * asked for in vain. */
static int check_sizes(const struct ogb_text *texts, uint64_t nodes, uint64_t edges,
                       size_t features, size_t outputs, char *error)
{
    struct lines l = lines_of(texts, OGB_EDGES, error);
    if (edges > count_lines(l))
        return bad(&l, "fewer edges than %s says", names[OGB_EDGE_COUNTS]);
    l = lines_of(texts, OGB_FEATURES, error);
    if (texts[OGB_FEATURES].data && nodes > count_lines(l))
        return bad(&l, "fewer nodes than %s says", names[OGB_NODES]);
    if (!texts[OGB_FEATURES].data && nodes > MAX_BARE_NODES)
        return bad(&l, "more than %d nodes without features", MAX_BARE_NODES);
    if (features == 0 || features > MAX_COLUMNS || outputs == 0 ||
        outputs > MAX_COLUMNS)
        return bad(&l, "between 1 and %d columns are possible", MAX_COLUMNS);
    return 0;
}

int ogb_parse(const struct ogb_text texts[OGB_FILES], size_t limit,
              struct graphs *ret_graphs, char ret_error[OGB_ERROR_LEN])
{
    struct graphs g = { .count = 0 };
    uint64_t all_nodes = 0, all_edges = 0;
    ret_error[0] = '\0';
    for (int f = 0; f <= OGB_EDGES; f++)
        if (!texts[f].data) {
            (void)snprintf(ret_error, OGB_ERROR_LEN, "%s(.gz) is missing", names[f]);
            return SONDE_E_FORMAT;
        }
    size_t count = count_lines(lines_of(texts, OGB_NODES, ret_error));
    if (limit && count > limit)
        count = limit;
    if (count == 0) {
        (void)snprintf(ret_error, OGB_ERROR_LEN, "%s holds no graph", names[OGB_NODES]);
        return SONDE_E_FORMAT;
    }
    uint64_t *nodes = calloc(count, sizeof *nodes),
             *edges = calloc(count, sizeof *edges);
    int rc = nodes && edges ? parse_counts(lines_of(texts, OGB_NODES, ret_error), count,
                                           nodes, &all_nodes)
                            : -ENOMEM;
    rc = rc < 0 ? rc
                : parse_counts(lines_of(texts, OGB_EDGE_COUNTS, ret_error), count,
                               edges, &all_edges);
    const size_t features = width(texts, OGB_FEATURES, ret_error),
                 outputs = width(texts, OGB_LABELS, ret_error);
    rc = rc < 0
             ? rc
             : check_sizes(texts, all_nodes, all_edges, features, outputs, ret_error);
    rc = rc < 0 ? rc : graphs_alloc(&g, count, all_nodes, all_edges, features, outputs);
    if (rc == 0) {
        rc = fill(&g, texts, nodes, edges, ret_error);
        if (rc < 0)
            graphs_release(&g);
    }
    free(nodes);
    free(edges);
    if (rc == 0)
        *ret_graphs = g;
    return rc;
}

/* zlib reads what is not compressed as it is. −ENOENT when there is none. */
static int read_file(const char *path, struct buf *out)
{
    char piece[1 << 16];
    gzFile file = gzopen(path, "rb");
    if (!file)
        return -errno;
    int n, rc = 0;
    while ((n = gzread(file, piece, sizeof piece)) > 0 && rc == 0) {
        buf_append(out, piece, (size_t)n);
        rc = out->error < 0 ? out->error : out->len > MAX_FILE ? SONDE_E_LIMIT : 0;
    }
    if (n < 0)
        rc = SONDE_E_FORMAT;
    (void)gzclose(file);
    return rc;
}

/* FOLDER/NAME.gz, FOLDER/NAME, FOLDER/raw/NAME.gz, FOLDER/raw/NAME. */
static int find_file(const char *folder, const char *name, struct buf *out)
{
    int rc = -ENOENT;
    for (int i = 0; rc == -ENOENT && i < 4; i++) {
        char path[PATH_MAX];
        const int len = snprintf(path, sizeof path, "%s/%s%s%s", folder,
                                 i >= 2 ? "raw/" : "", name, i % 2 ? "" : ".gz");
        rc = len > 0 && (size_t)len < sizeof path ? read_file(path, out)
                                                  : -ENAMETOOLONG;
    }
    return rc;
}

int ogb_load(const char *folder, size_t limit, struct graphs *ret_graphs,
             char ret_error[OGB_ERROR_LEN])
{
    struct buf files[OGB_FILES];
    struct ogb_text texts[OGB_FILES] = { { NULL, 0 } };
    int rc = 0;
    for (int f = 0; f < OGB_FILES; f++)
        buf_init(&files[f]);
    for (int f = 0; f < OGB_FILES && rc == 0; f++) {
        rc = find_file(folder, names[f], &files[f]);
        if (rc == 0)
            texts[f] = (struct ogb_text){ files[f].data, files[f].len };
        else if (rc == -ENOENT)
            rc = 0; /* ogb_parse() knows which ones must be there */
        else
            (void)snprintf(ret_error, OGB_ERROR_LEN, "%s/%s: %s", folder, names[f],
                           error_text(rc));
    }
    if (rc == 0)
        rc = ogb_parse(texts, limit, ret_graphs, ret_error);
    for (int f = 0; f < OGB_FILES; f++)
        buf_release(&files[f]);
    return rc;
}
