/* symbolise.c: see symbolise.h. */
#include "launch/symbolise.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/strmap.h"
#include "capture/symbol/jitmap.h"
#include "capture/symbol/symbol.h"
#include "launch/symbol_jobs.h"
#include "launch/symbolise_child.h"
#include "trace/symbol_rows.h"
#include "trace/tables.h"

enum {
    MODULE_S = 8,      /* wall time for one module */
    ALL_S = 20,        /* for all of them: a person waits for the report */
    MAX_CHILDREN = 16, /* as many modules may be deadly */
};

/* Shared by us and the children, one after the other. */
struct shared {
    struct tables tables;
    uint32_t next; /* target to begin with */
    bool busy;     /* `next` is being looked into */
    uint64_t named;
};

struct work {
    const struct symbol_jobs *jobs;
    struct shared *shared;
    time_t until_s;
    struct strmap texts, functions; /* what is in the file already: place, number */
};

/* ---- Writing, in the child --------------------------------------------------------------- */

static uint32_t put_text(struct work *w, const char *text)
{
    const size_t len = strlen(text);
    if (len == 0)
        return 0;
    bool added;
    struct strmap_entry *e = strmap_enter(&w->texts, text, len, &added);
    if (!e)
        return 0;
    if (added)
        e->value = tables_text(&w->shared->tables, text, len);
    return (uint32_t)e->value;
}

/* The number of the function + 1, 0 when there is no room. */
static uint32_t put_function(struct work *w, const struct symbol_frame *f,
                             uint32_t module)
{
    struct symbol_function_row row = { .name = put_text(w, f->function),
                                       .file = put_text(w, f->function_file),
                                       .line = f->function_line,
                                       .module = module };
    if (row.name == 0)
        return 0;
    bool added;
    struct strmap_entry *e = strmap_enter(&w->functions, (const char *)&row, sizeof row,
                                          &added);
    if (!e)
        return 0;
    if (added) {
        uint32_t index;
        struct symbol_function_row *r = tables_append(&w->shared->tables,
                                                      SYMBOLS_FUNCTIONS, &index);
        if (r) {
            *r = row;
            __atomic_store_n(&r->key, 1, __ATOMIC_RELEASE);
            e->value = (uint64_t)index + 1;
        }
    }
    return (uint32_t)e->value;
}

/* Outer places first, so that `outer` never points to nothing. */
static void put_places(struct work *w, const struct symbol_job *job, uint32_t module,
                       const struct symbol_frame *frames, unsigned count)
{
    uint32_t outer = 0;
    for (unsigned i = count; i-- > 0;) {
        uint32_t index;
        struct symbol_place_row *r = tables_append(&w->shared->tables, SYMBOLS_PLACES,
                                                   &index);
        if (!r)
            return;
        r->source = job->source;
        r->function = put_function(w, &frames[i], module);
        r->file = put_text(w, frames[i].file);
        r->line = frames[i].line;
        r->outer = outer;
        r->depth = i;
        __atomic_store_n(&r->key, job->key, __ATOMIC_RELEASE);
        outer = index + 1;
    }
}

/* ---- Looking, in the child --------------------------------------------------------------- */

/* What answers for one target. */
struct finder {
    struct symbol_module *module;
    struct jitmap *jit;
};

static uint32_t state_of(int rc)
{
    return rc == SONDE_E_STATE         ? SYMBOL_REPLACED
           : rc == SONDE_E_FORMAT      ? SYMBOL_BROKEN
           : rc == SONDE_E_UNSUPPORTED ? SYMBOL_UNSUPPORTED
                                       : SYMBOL_NO_FILE;
}

static int finder_open(const struct symbol_target *t, struct finder *ret_finder)
{
    *ret_finder = (struct finder){ 0 };
    if (t->pid) {
        char path[64];
        (void)snprintf(path, sizeof path, "/tmp/perf-%u.map", t->pid);
        return jitmap_open(path, geteuid(), &ret_finder->jit);
    }
    const struct symbol_file file = { .path = t->path,
                                      .build_id = t->build_id,
                                      .build_id_len = t->build_id_len,
                                      .inode = t->inode };
    return symbol_open(&file, &ret_finder->module);
}

static void finder_close(struct finder *f)
{
    symbol_close(f->module);
    jitmap_free(f->jit);
}

static unsigned finder_find(const struct finder *f, uint64_t offset,
                            struct symbol_frame *frames)
{
    if (f->module)
        return symbol_find(f->module, offset, frames, SYMBOL_FRAMES);
    const char *name = jitmap_find(f->jit, offset);
    frames[0] = (struct symbol_frame){ name, "", 0, "", 0 };
    return name[0] ? 1 : 0;
}

static void look_up(struct work *w, const struct finder *f,
                    struct symbol_module_row *row, const struct symbol_job *job)
{
    struct symbol_frame frames[SYMBOL_FRAMES];
    const unsigned n = finder_find(f, job->offset, frames);
    row->addresses++;
    if (n == 0)
        return;
    row->named += frames[n - 1].function[0] != '\0';
    row->with_line += frames[0].line != 0;
    w->shared->named += frames[n - 1].function[0] != '\0';
    put_places(w, job, row->path, frames, n);
}

static struct symbol_module_row *module_row(const struct work *w, uint32_t target)
{
    return tables_row(&w->shared->tables, SYMBOLS_MODULES, target);
}

static size_t first_job(const struct symbol_jobs *j, uint32_t target)
{
    size_t i = 0;
    while (i < j->job_count && j->jobs[i].target < target)
        i++;
    return i;
}

/* Looks up what is wanted of one target; `at` moves behind its jobs. */
static void do_target(struct work *w, uint32_t target, size_t *at)
{
    const struct symbol_jobs *j = w->jobs;
    struct symbol_module_row *row = module_row(w, target);
    struct finder finder;
    const int rc = finder_open(&j->targets[target], &finder);
    uint32_t state = rc < 0 ? state_of(rc) : SYMBOL_DONE;
    for (; *at < j->job_count && j->jobs[*at].target == target; ++*at) {
        if (rc == 0)
            look_up(w, &finder, row, &j->jobs[*at]);
        else
            row->addresses++;
    }
    if (rc == 0 && finder.module && symbol_is_stripped(finder.module))
        state = SYMBOL_NO_NAMES;
    if (rc == 0)
        finder_close(&finder);
    __atomic_store_n(&row->state, state, __ATOMIC_RELEASE);
}

static void child_work(void *arg)
{
    struct work *w = arg;
    struct shared *s = w->shared;
    size_t at = first_job(w->jobs, s->next);
    while (s->next < w->jobs->target_count && time(NULL) < w->until_s) {
        s->busy = true;
        (void)alarm(MODULE_S);
        do_target(w, s->next, &at);
        (void)alarm(0);
        s->next++;
        s->busy = false;
    }
}

/* ---- The file, and the children ----------------------------------------------------------- */

static const struct tables_spec specs[] = {
    { "sources", sizeof(struct symbol_source_row), 65536 },
    { "modules", sizeof(struct symbol_module_row), 65536 },
    { "functions", sizeof(struct symbol_function_row), 262144 },
    { "places", sizeof(struct symbol_place_row), 400000 },
};

static int write_lists(struct shared *s, const struct symbol_jobs *j)
{
    uint32_t index;
    for (size_t i = 0; i < j->source_count; i++) {
        struct symbol_source_row *r = tables_append(&s->tables, SYMBOLS_SOURCES,
                                                    &index);
        if (!r)
            return -ENOSPC;
        r->name = tables_text(&s->tables, j->sources[i], strlen(j->sources[i]));
        __atomic_store_n(&r->key, 1, __ATOMIC_RELEASE);
    }
    for (size_t i = 0; i < j->target_count; i++) {
        struct symbol_module_row *r = tables_append(&s->tables, SYMBOLS_MODULES,
                                                    &index);
        const char *path = j->targets[i].pid ? "[jit]" : j->targets[i].path;
        if (!r)
            return -ENOSPC;
        r->path = tables_text(&s->tables, path, strlen(path));
        __atomic_store_n(&r->key, 1, __ATOMIC_RELEASE);
    }
    return 0;
}

/* The child is gone: by itself, by an alarm, by a crash. */
static void after_child(struct shared *s, int status)
{
    s->tables.lock = 0; /* it may have died holding it */
    if (!s->busy)
        return;
    struct symbol_module_row *row = tables_row(&s->tables, SYMBOLS_MODULES, s->next);
    if (row)
        row->state = WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM
                         ? SYMBOL_TOO_SLOW
                         : SYMBOL_CRASHED;
    s->next++;
    s->busy = false;
}

static int run_children(struct work *w)
{
    struct shared *s = w->shared;
    for (unsigned i = 0; i < MAX_CHILDREN && s->next < w->jobs->target_count; i++) {
        int status;
        const int rc = symbolise_in_child(child_work, w, &status);
        if (rc < 0)
            return rc;
        const bool died = s->busy || !WIFEXITED(status) || WEXITSTATUS(status) != 0;
        after_child(s, status);
        if (!died)
            break; /* done, or out of time */
    }
    return 0;
}

static int symbolise_jobs(const char *dir, struct control *control,
                          const struct symbol_jobs *jobs)
{
    struct shared *s = mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (s == MAP_FAILED)
        return -errno;
    struct work w = { .jobs = jobs, .shared = s, .until_s = time(NULL) + ALL_S };
    strmap_init(&w.texts);
    strmap_init(&w.functions);
    int rc = tables_create(dir, SYMBOLS_KIND, control, specs,
                           sizeof specs / sizeof *specs, &s->tables);
    if (rc == 0) {
        rc = write_lists(s, jobs);
        if (rc == 0)
            rc = run_children(&w);
        tables_close(&s->tables);
    }
    if (rc == 0)
        rc = (int)(s->named < INT32_MAX ? s->named : INT32_MAX);
    strmap_release(&w.texts);
    strmap_release(&w.functions);
    (void)munmap(s, sizeof *s);
    return rc;
}

int symbolise_run(const char *dir, struct control *control)
{
    struct symbol_jobs jobs;
    int rc = symbol_jobs_collect(dir, &jobs);
    if (rc < 0)
        return rc;
    if (jobs.job_count > 0)
        rc = symbolise_jobs(dir, control, &jobs);
    symbol_jobs_release(&jobs);
    return rc;
}
