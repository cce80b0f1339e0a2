/* pyprofile.c: sum up sampled Python stacks. */
#include "analyse/pyprofile.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyse/report.h"
#include "base/buf.h"
#include "trace/pystack_counts.h"
#include "trace/tablefiles.h"

enum { DEPTH_MOST = 512 };

/* Times by number of code and of frame while they are summed. */
struct sums {
    struct py_time *self, *total; /* by code */
    struct py_time *line;         /* by frame */
    uint32_t *stamp;              /* by code: last stack that counted it */
    uint32_t codes, frames, nodes;
};

struct source {
    struct report *r;
    struct tablefile *file;
    struct pystack_counts counts;
    struct sums sums;
};

static const char *keep(struct report *r, const char *text)
{
    const char *copy = text[0] ? arena_strdup(&r->arena, text) : "";
    return copy ? copy : "";
}

/* ---- Threads ------------------------------------------------------------------------ */

static int read_threads(struct source *s)
{
    struct py_profile *p = &s->r->python;
    const uint32_t count = tablefile_count(s->file, PYSTACKS_TASKS);
    p->threads = arena_alloc_array(&s->r->arena, count ? count : 1, sizeof *p->threads);
    if (!p->threads)
        return -ENOMEM;
    double longest = -1;
    for (uint32_t i = 0; i < count; i++) {
        struct pystack_task_row row;
        struct py_thread *t = &p->threads[p->thread_count++];
        *t = (struct py_thread){ .name = "" };
        if (!tablefile_get(s->file, PYSTACKS_TASKS, i, &row, sizeof row))
            continue; /* its place stays: counts refer to numbers */
        *t = (struct py_thread){ .pid = row.pid,
                                 .tid = row.tid,
                                 .name = keep(s->r,
                                              tablefile_text(s->file, row.thread)),
                                 .forked = row.flags & PYSTACK_TASK_FORKED,
                                 .wall_ns = (double)row.wall_ns,
                                 .cpu_ns = (double)row.cpu_ns,
                                 .gil_ns = (double)row.gil_ns,
                                 .gil_wait_ns = (double)row.gil_wait_ns,
                                 .gc_ns = (double)row.gc_ns,
                                 .invalid_ns = (double)row.invalid_ns };
        /* The program itself, or the first Python of a shell script: the longest. */
        const double wall = row.pid == s->r->run->meta.pid ? 1e30 : t->wall_ns;
        if (row.pid == row.tid && wall > longest) {
            longest = wall;
            p->main_pid = row.pid;
        }
    }
    return 0;
}

static bool is_main(const struct py_profile *p, uint32_t task)
{
    return task < p->thread_count && p->threads[task].pid == p->main_pid &&
           p->threads[task].tid == p->main_pid;
}

/* ---- Counting ----------------------------------------------------------------------- */

static void add(struct py_time *to, const struct py_time *time)
{
    to->cpu_ns += time->cpu_ns;
    to->wall_ns += time->wall_ns;
}

static bool frame_of(const struct source *s, uint32_t node,
                     struct pystack_node_row *ret_node,
                     struct pystack_frame_row *ret_frame)
{
    return node != 0 &&
           tablefile_get(s->file, PYSTACKS_NODES, node, ret_node, sizeof *ret_node) &&
           tablefile_get(s->file, PYSTACKS_FRAMES, ret_node->frame, ret_frame,
                         sizeof *ret_frame) &&
           ret_frame->code < s->sums.codes;
}

/* A function that is on a stack twice is in it once. Parents come before their
 * children, so a chain that does not go down is damage. */
static void count_path(struct source *s, uint32_t node, const struct py_time *time,
                       uint32_t stamp)
{
    struct pystack_node_row n;
    struct pystack_frame_row f;
    if (!frame_of(s, node, &n, &f))
        return;
    add(&s->sums.self[f.code], time);
    add(&s->sums.line[n.frame], time);
    for (unsigned depth = 0; depth < DEPTH_MOST; depth++) {
        if (s->sums.stamp[f.code] != stamp)
            add(&s->sums.total[f.code], time);
        s->sums.stamp[f.code] = stamp;
        const uint32_t at = n.parent;
        if (at >= node || !frame_of(s, at, &n, &f))
            break;
        node = at;
    }
}

static void count_all(struct source *s)
{
    struct py_profile *p = &s->r->python;
    for (uint32_t i = 0; i < s->counts.count; i++) {
        struct pystack_count_row row;
        if (!pystack_counts_get(&s->counts, i, &row))
            continue;
        const struct py_time time = { .cpu_ns = (double)row.cpu_ns,
                                      .wall_ns = is_main(p, row.task)
                                                     ? (double)row.wall_ns
                                                     : 0 };
        p->cpu_ns += time.cpu_ns;
        p->wall_ns += time.wall_ns;
        count_path(s, row.node, &time, i + 1);
    }
    /* Threads that ran and were never found running have no rows. */
    double used = 0;
    for (size_t i = 0; i < p->thread_count; i++)
        used += p->threads[i].cpu_ns;
    p->cpu_ns = fmax(p->cpu_ns, used);
}

/* ---- Lists -------------------------------------------------------------------------- */

static int by_cpu(const void *a, const void *b)
{
    const struct py_function *x = a, *y = b;
    if (x->self.cpu_ns != y->self.cpu_ns)
        return x->self.cpu_ns < y->self.cpu_ns ? 1 : -1;
    if (x->total.wall_ns != y->total.wall_ns)
        return x->total.wall_ns < y->total.wall_ns ? 1 : -1;
    return strcmp(x->name, y->name);
}

static int by_place(const void *a, const void *b)
{
    const struct py_line *x = a, *y = b;
    const int file = strcmp(x->file, y->file);
    return file ? file : (x->line > y->line) - (x->line < y->line);
}

static int by_wall(const void *a, const void *b)
{
    const struct py_line *x = a, *y = b;
    if (x->self.wall_ns != y->self.wall_ns)
        return x->self.wall_ns < y->self.wall_ns ? 1 : -1;
    if (x->self.cpu_ns != y->self.cpu_ns)
        return x->self.cpu_ns < y->self.cpu_ns ? 1 : -1;
    return by_place(a, b);
}

static int by_line_cpu(const void *a, const void *b)
{
    const struct py_line *const *x = a, *const *y = b;
    const double mine = (*x)->self.cpu_ns, others = (*y)->self.cpu_ns;
    return mine != others ? (mine < others ? 1 : -1) : by_wall(*x, *y);
}

/* A generator expression is a function of its own on the line of the one around it: to a
 * person it is one line. It is named after the function that took most of it. */
static void merge_lines(struct py_profile *p)
{
    size_t kept = 0;
    double most = 0;
    qsort(p->lines, p->line_count, sizeof *p->lines, by_place);
    for (size_t i = 0; i < p->line_count; i++) {
        struct py_line *l = &p->lines[i], *last = kept ? &p->lines[kept - 1] : NULL;
        const double weight = l->self.wall_ns + l->self.cpu_ns;
        if (!last || by_place(last, l) != 0) {
            p->lines[kept++] = *l;
            most = weight;
            continue;
        }
        if (weight > most) {
            last->function = l->function;
            most = weight;
        }
        add(&last->self, &l->self);
    }
    p->line_count = kept;
}

static void list_functions(struct source *s, const char **files, const char **names)
{
    struct py_profile *p = &s->r->python;
    for (uint32_t i = 0; i < s->sums.codes; i++) {
        struct pystack_code_row row;
        const struct py_time *t = &s->sums.total[i];
        files[i] = names[i] = "";
        if (!tablefile_get(s->file, PYSTACKS_CODES, i, &row, sizeof row))
            continue;
        files[i] = keep(s->r, tablefile_text(s->file, row.file));
        names[i] = keep(s->r, tablefile_text(s->file, row.name));
        if (t->cpu_ns > 0 || t->wall_ns > 0)
            p->functions[p->function_count++] = (struct py_function){
                names[i], files[i], row.first_line, s->sums.self[i], *t
            };
    }
    qsort(p->functions, p->function_count, sizeof *p->functions, by_cpu);
}

static void list_lines(struct source *s, const char **files, const char **names)
{
    struct py_profile *p = &s->r->python;
    for (uint32_t i = 0; i < s->sums.frames; i++) {
        struct pystack_frame_row row;
        const struct py_time *t = &s->sums.line[i];
        if ((t->cpu_ns > 0 || t->wall_ns > 0) &&
            tablefile_get(s->file, PYSTACKS_FRAMES, i, &row, sizeof row) &&
            row.code < s->sums.codes)
            p->lines[p->line_count++] = (struct py_line){ files[row.code],
                                                          names[row.code], row.line,
                                                          *t };
    }
    merge_lines(p);
    qsort(p->lines, p->line_count, sizeof *p->lines, by_wall);
    for (size_t i = 0; i < p->line_count; i++)
        p->lines_by_cpu[i] = &p->lines[i];
    qsort(p->lines_by_cpu, p->line_count, sizeof *p->lines_by_cpu, by_line_cpu);
}

static int list_all(struct source *s)
{
    struct py_profile *p = &s->r->python;
    struct arena *a = &s->r->arena;
    p->functions = arena_alloc_array(a, s->sums.codes + 1, sizeof *p->functions);
    p->lines = arena_alloc_array(a, s->sums.frames + 1, sizeof *p->lines);
    p->lines_by_cpu = arena_alloc_array(a, s->sums.frames + 1, sizeof *p->lines_by_cpu);
    const char **texts = calloc(2 * ((size_t)s->sums.codes + 1), sizeof *texts);
    int rc = p->functions && p->lines && p->lines_by_cpu && texts ? 0 : -ENOMEM;
    if (rc == 0) {
        list_functions(s, texts, texts + s->sums.codes);
        list_lines(s, texts, texts + s->sums.codes);
    }
    free(texts);
    return rc;
}

/* ---- All of it ---------------------------------------------------------------------- */

static void read_info(struct source *s)
{
    struct py_profile *p = &s->r->python;
    struct pystack_info_row row;
    if (!tablefile_get(s->file, PYSTACKS_INFO, 0, &row, sizeof row))
        return;
    p->present = row.processes > 0;
    p->minor = row.minor;
    p->period_ns = (double)row.period_ns;
    p->samples = row.samples;
    p->invalid = row.invalid;
    p->processes = row.processes;
    p->unknown = row.unknown;
    p->cut = row.cut;
    p->other = row.other;
    p->cost_ns = (double)row.cost_ns;
}

static int sum_up(struct source *s)
{
    struct sums *m = &s->sums;
    m->codes = tablefile_count(s->file, PYSTACKS_CODES);
    m->frames = tablefile_count(s->file, PYSTACKS_FRAMES);
    m->self = calloc(m->codes + 1u, sizeof *m->self);
    m->total = calloc(m->codes + 1u, sizeof *m->total);
    m->line = calloc(m->frames + 1u, sizeof *m->line);
    m->stamp = calloc(m->codes + 1u, sizeof *m->stamp);
    int rc = m->self && m->total && m->line && m->stamp ? 0 : -ENOMEM;
    if (rc == 0)
        rc = read_threads(s);
    if (rc == 0) {
        count_all(s);
        rc = list_all(s);
    }
    free(m->self);
    free(m->total);
    free(m->line);
    free(m->stamp);
    return rc;
}

int pyprofile_read(struct report *r)
{
    struct source s = { .r = r };
    r->python = (struct py_profile){ 0 };
    int rc = tablefiles_newest(r->run->dir, PYSTACKS_KIND, NULL, &s.file);
    if (rc < 0)
        return rc == -ENOMEM ? rc : 0;
    read_info(&s);
    rc = pystack_counts_init(&s.counts, s.file);
    if (rc == 0)
        rc = sum_up(&s);
    pystack_counts_release(&s.counts);
    tablefile_free(s.file);
    return rc;
}
