/* import.c: from a file to a run directory. See import.h. */
#include "import/import.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "import/build.h"
#include "import/chrome.h"
#include "import/source.h"
#include "import/sums.h"
#include "launch/rundir.h"
#include "trace/runfile.h"

enum { LOOK = 512, DEFAULT_HZ = 100 };

const char *import_kind_name(enum import_kind kind)
{
    static const char *const names[] = { [IMPORT_DETECT] = "unknown",
                                         [IMPORT_CHROME] = "chrome",
                                         [IMPORT_CPROFILE] = "cprofile",
                                         [IMPORT_FOLDED] = "folded" };
    return names[kind];
}

void import_result_release(struct import_result *result)
{
    free(result->dir);
    result->dir = NULL;
}

/* By the first bytes: names of files say little. */
static int detect(struct import_source *source, enum import_kind *ret_kind)
{
    unsigned char head[LOOK];
    const long got = import_source_read(source, head, sizeof head);
    if (got < 0)
        return (int)got;
    size_t at = 0;
    while (at < (size_t)got && (head[at] == ' ' || head[at] == '\n' ||
                                head[at] == '\r' || head[at] == '\t'))
        at++;
    if (at == (size_t)got)
        return SONDE_E_FORMAT;
    /* '{' with the bit for "referenced" is marshal's dict; a plain one may be either's:
     * JSON goes on with a quote, marshal with a tuple. */
    if (head[0] == ('{' | 0x80) ||
        (head[0] == '{' && got > 1 &&
         ((head[1] & 0x7f) == '(' || (head[1] & 0x7f) == ')')))
        *ret_kind = IMPORT_CPROFILE;
    else if (head[at] == '{' || head[at] == '[')
        *ret_kind = IMPORT_CHROME;
    else
        *ret_kind = IMPORT_FOLDED;
    return import_source_rewind(source);
}

struct job {
    const struct import_options *o;
    struct import_source source;
    struct rundir dir;
    struct events events;
    struct built built;
    struct import_result result;
};

static int import_chrome(struct job *j)
{
    int rc = events_init(&j->events);
    if (rc < 0)
        return rc;
    rc = chrome_read(&j->source, &j->events, j->result.problem,
                     sizeof j->result.problem);
    if (rc == 0)
        rc = build_traces(&j->events, j->dir.path, &j->built);
    j->result.events = j->events.count;
    j->result.left_out += j->events.left_out;
    return rc;
}

static int import_kind(struct job *j)
{
    switch (j->result.kind) {
    case IMPORT_CPROFILE:
        return cprofile_import(&j->source, j->dir.path, &j->built, &j->result);
    case IMPORT_FOLDED:
        return folded_import(&j->source, j->o->rate_hz > 0 ? j->o->rate_hz : DEFAULT_HZ,
                             j->dir.path, &j->built, &j->result);
    default:
        return import_chrome(j);
    }
}

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

static void add_notes(const struct job *j, struct runfile *f, const char *path)
{
    runfile_note(f, "imported from '%s' (%s): what that tool did not record is unknown",
                 last_part(path), import_kind_name(j->result.kind));
    if (j->result.left_out)
        runfile_note(f, "%llu entries of it could not be placed and were left out",
                     (unsigned long long)j->result.left_out);
    if (j->result.kind == IMPORT_FOLDED)
        runfile_note(f, "times are samples at %g per second",
                     j->o->rate_hz > 0 ? j->o->rate_hz : (double)DEFAULT_HZ);
}

static int write_runfile(const struct job *j, const char *path)
{
    char imported[] = "(imported)";
    char *file = strdup(last_part(path));
    char *command[] = { imported, file, NULL };
    struct runfile f = {
        .name = j->o->name ? j->o->name : file,
        .command = command,
        .command_len = 2,
        .started_ns = j->built.start_ns,
        .ended_ns = j->built.end_ns,
        .exit = { .code = -1 },
        .pid = (pid_t)j->built.main_pid,
        .machine = { .memory_mb = NAN },
        .tags = j->o->tags,
        .tag_count = j->o->tag_count,
        .level = "detailed",
        .supervisor_cpu_s = NAN,
        .supervisor_rss_mb = NAN,
        .no_energy = true,
        .redact = true,
        .attached = true, /* a look at a program whose end we did not see */
        .imported = true,
        .gpu = j->events.device,
        .gpus = j->events.device[0] ? j->events.devices : 0,
    };
    memcpy(f.id, j->dir.id, sizeof f.id);
    add_notes(j, &f, path);
    const int rc = file ? runfile_write(&f, j->dir.path) : -ENOMEM;
    runfile_release(&f);
    free(file);
    return rc;
}

static int run_job(struct job *j, const char *path)
{
    j->result.kind = j->o->kind;
    int rc = j->o->kind == IMPORT_DETECT ? detect(&j->source, &j->result.kind) : 0;
    if (rc == 0)
        rc = rundir_create(j->o->sonde_dir, j->o->output, &j->dir);
    if (rc < 0)
        return rc;
    if (j->o->begun)
        j->o->begun(j->dir.path, j->dir.created);
    rc = import_kind(j);
    if (rc == 0)
        rc = write_runfile(j, path);
    if (rc < 0) {
        rundir_discard(&j->dir);
        return rc;
    }
    memcpy(j->result.id, j->dir.id, sizeof j->result.id);
    j->result.processes = j->built.processes;
    j->result.steps = j->built.steps;
    j->result.dir = strdup(j->dir.path);
    rundir_release(&j->dir);
    return j->result.dir ? 0 : -ENOMEM;
}

int import_file(const char *path, const struct import_options *options,
                struct import_result *ret_result)
{
    struct job *j = calloc(1, sizeof *j);
    if (!j)
        return -ENOMEM;
    j->o = options;
    j->events.device = "";
    int rc = import_source_open(path, options, &j->source);
    if (rc == 0) {
        rc = run_job(j, path);
        import_source_close(&j->source);
    }
    events_release(&j->events);
    *ret_result = j->result;
    free(j);
    return rc;
}
