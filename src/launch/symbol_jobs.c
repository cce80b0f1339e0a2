/* symbol_jobs.c: see symbol_jobs.h. */
#include "launch/symbol_jobs.h"

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/files.h"
#include "trace/stack_rows.h"
#include "trace/symbol_rows.h"
#include "trace/tables.h"

enum { MAX_JOBS = 400000, MAX_TARGETS = 16384 };

/* ---- Lists ---------------------------------------------------------------------------- */

static int grow(void **list, size_t *cap, size_t count, size_t size)
{
    if (count < *cap)
        return 0;
    const size_t more = *cap ? *cap * 2 : 64;
    void *p = realloc(*list, more * size);
    if (!p)
        return -ENOMEM;
    *list = p;
    *cap = more;
    return 0;
}

static int add_source(struct symbol_jobs *j, const char *name, uint32_t *ret_source)
{
    int rc = grow((void **)&j->sources, &j->source_cap, j->source_count,
                  sizeof *j->sources);
    const char *copy = rc == 0 ? arena_strdup(&j->arena, name) : NULL;
    if (!copy)
        return -ENOMEM;
    *ret_source = (uint32_t)j->source_count;
    j->sources[j->source_count++] = copy;
    return 0;
}

/* Equal files are one target, whoever mapped them. */
static int add_target(struct symbol_jobs *j, const struct symbol_target *wanted,
                      uint32_t *ret_target)
{
    struct buf key = BUF_INIT;
    buf_append(&key, wanted->build_id, wanted->build_id_len);
    buf_printf(&key, "|%u|%llu|%s", wanted->pid, (unsigned long long)wanted->inode,
               wanted->path);
    bool added = false;
    struct strmap_entry *e = key.error
                                 ? NULL
                                 : strmap_enter(&j->names, key.data, key.len, &added);
    buf_release(&key);
    if (!e)
        return -ENOMEM;
    if (added) {
        e->value = j->target_count;
        int rc = j->target_count < MAX_TARGETS
                     ? grow((void **)&j->targets, &j->target_cap, j->target_count,
                            sizeof *j->targets)
                     : -ENOMEM;
        const char *path = rc == 0 ? arena_strdup(&j->arena, wanted->path) : NULL;
        if (!path)
            return -ENOMEM;
        j->targets[j->target_count] = *wanted;
        j->targets[j->target_count++].path = path;
    }
    *ret_target = (uint32_t)e->value;
    return 0;
}

static int add_job(struct symbol_jobs *j, const struct symbol_job *job)
{
    if (j->job_count >= MAX_JOBS)
        return 0; /* those left out stay without a name */
    const int rc = grow((void **)&j->jobs, &j->job_cap, j->job_count, sizeof *j->jobs);
    if (rc == 0)
        j->jobs[j->job_count++] = *job;
    return rc;
}

static void set_build_id(struct symbol_target *t, const uint8_t *id, size_t len)
{
    t->build_id_len = (uint8_t)(len <= MODULE_BUILD_ID_MAX ? len : 0);
    memcpy(t->build_id, id, t->build_id_len);
}

/* ---- Stacks: offsets in modules -------------------------------------------------------- */

static int stack_target(struct symbol_jobs *j, const struct tablefile *f, int modules,
                        uint32_t number, uint32_t *ret_target)
{
    struct stack_module_row m;
    if (!tablefile_get(f, modules, number, &m, sizeof m))
        return -ENOENT;
    struct symbol_target t = { .path = tablefile_text(f, m.path),
                               .pid = m.pid,
                               .inode = m.inode };
    if (t.path[0] != '/' && t.pid == 0 && strcmp(t.path, "[vdso]") != 0)
        return -ENOENT; /* "[kernel]" and the like are names already */
    set_build_id(&t, m.build_id, m.build_id_len);
    return add_target(j, &t, ret_target);
}

static int collect_stacks(struct symbol_jobs *j, const struct tablefile *f,
                          uint32_t source)
{
    const int modules = tablefile_find(f, MODULES_TABLE);
    const int frames = tablefile_find(f, FRAMES_TABLE);
    const uint32_t count = tablefile_count(f, frames);
    int rc = 0;
    for (uint32_t i = 0; rc == 0 && i < count; i++) {
        struct stack_frame_row row;
        struct symbol_job job = { .source = source, .key = (uint64_t)i + 1 };
        if (!tablefile_get(f, frames, i, &row, sizeof row))
            continue;
        rc = stack_target(j, f, modules, row.module, &job.target);
        if (rc == 0) {
            job.offset = j->targets[job.target].pid ? row.key : row.key - 1;
            rc = add_job(j, &job);
        } else if (rc == -ENOENT) {
            rc = 0;
        }
    }
    return rc;
}

/* ---- Others: absolute addresses --------------------------------------------------------- */

/* The last module that covers the address. */
static bool find_module(const struct tablefile *f, int modules, uint64_t address,
                        struct module_row *ret_row)
{
    for (uint32_t i = tablefile_count(f, modules); i-- > 0;) {
        struct module_row m;
        if (tablefile_get(f, modules, i, &m, sizeof m) && address >= m.start &&
            address < m.end) {
            *ret_row = m;
            return true;
        }
    }
    return false;
}

static int collect_address(struct symbol_jobs *j, const struct tablefile *f,
                           int modules, uint32_t source, uint64_t address)
{
    struct module_row m = { 0 };
    struct symbol_job job = { .source = source, .key = address };
    const uint64_t call = address - 1; /* behind the call may be another line */
    const bool known = find_module(f, modules, call, &m);
    struct symbol_target t = { .path = tablefile_text(f, m.path), .inode = m.inode };
    set_build_id(&t, m.build_id, m.build_id_len);
    if (!known || !t.path[0])
        t.pid = tablefile_head(f)->pid;
    if (t.pid == 0 && t.path[0] != '/' && strcmp(t.path, "[vdso]") != 0)
        return 0;
    job.offset = t.pid ? call : call - m.start + m.file_offset;
    const int rc = add_target(j, &t, &job.target);
    return rc < 0 ? rc : add_job(j, &job);
}

static int collect_addresses(struct symbol_jobs *j, const struct tablefile *f,
                             uint32_t source)
{
    const int modules = tablefile_find(f, MODULES_TABLE);
    const int frames = tablefile_find(f, FRAMES_TABLE);
    const uint32_t count = tablefile_count(f, frames);
    int rc = 0;
    for (uint32_t i = 0; rc == 0 && i < count; i++) {
        struct frame_row row;
        if (tablefile_get(f, frames, i, &row, sizeof row))
            rc = collect_address(j, f, modules, source, row.address);
    }
    return rc;
}

/* ---- All ------------------------------------------------------------------------------- */

static int collect_file(struct symbol_jobs *j, const char *dir, const char *name)
{
    struct buf path = BUF_INIT;
    struct tablefile *f = NULL;
    path_join(&path, dir, name);
    int rc = path.error ? path.error : tablefile_open(path.data, &f);
    buf_release(&path);
    if (rc < 0)
        return rc == -ENOMEM ? rc : 0;
    uint32_t source;
    if (tablefile_find(f, FRAMES_TABLE) > 0) {
        rc = add_source(j, name, &source);
        if (rc == 0)
            rc = tablefile_is_name(name, STACKS_KIND) ? collect_stacks(j, f, source)
                                                      : collect_addresses(j, f, source);
    }
    tablefile_free(f);
    return rc;
}

static int by_place(const void *a, const void *b)
{
    const struct symbol_job *x = a, *y = b;
    return x->target != y->target   ? (x->target < y->target ? -1 : 1)
           : x->offset != y->offset ? (x->offset < y->offset ? -1 : 1)
                                    : 0;
}

int symbol_jobs_collect(const char *dir, struct symbol_jobs *ret_jobs)
{
    struct symbol_jobs j = { 0 };
    DIR *d = opendir(dir);
    if (!d)
        return -errno;
    arena_init(&j.arena);
    strmap_init(&j.names);
    int rc = 0;
    for (const struct dirent *e; rc == 0 && (e = readdir(d));)
        if (tablefile_is_name(e->d_name, NULL) &&
            !tablefile_is_name(e->d_name, SYMBOLS_KIND))
            rc = collect_file(&j, dir, e->d_name);
    (void)closedir(d);
    if (rc < 0) {
        symbol_jobs_release(&j);
        return rc;
    }
    if (j.job_count > 0)
        qsort(j.jobs, j.job_count, sizeof *j.jobs, by_place);
    *ret_jobs = j;
    return 0;
}

void symbol_jobs_release(struct symbol_jobs *j)
{
    free(j->sources);
    free(j->targets);
    free(j->jobs);
    strmap_release(&j->names);
    arena_release(&j->arena);
    *j = (struct symbol_jobs){ 0 };
}
