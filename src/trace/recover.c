/* recover.c: see recover.h. */
#include "trace/recover.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"
#include "trace/control.h"
#include "trace/folder.h"
#include "trace/guard.h"

static uint64_t disk_bytes(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 ? (uint64_t)st.st_blocks * 512 : 0;
}

static void note_problem(struct recover_result *r, const char *name, int rc)
{
    r->damaged++;
    if (!r->first_problem[0])
        snprintf(r->first_problem, sizeof r->first_problem, "%.120s: %s", name,
                 error_text(rc));
}

struct job {
    struct tracefile *file;
    bool alive;
    unsigned folded;
    int rc;
};

static void fold_all(void *arg)
{
    struct job *job = arg;
    struct folder folder;
    folder_init(&folder, job->file);
    const struct trace_live *live = tracefile_live(job->file);
    job->alive = !(live->flags & LIVE_EXITED) &&
                 tracefile_owner_alive(tracefile_head(job->file));
    for (int round = 0; round < 100000 && !folder.finished; round++) {
        job->rc = folder_pass(&folder, job->alive, 128);
        if (job->rc < 0 || (job->rc == 0 && job->alive))
            break;
        job->folded += (unsigned)job->rc;
    }
    folder_release(&folder);
}

static void recover_file(const char *path, const char *name, struct control *control,
                         bool compact, struct recover_result *r)
{
    struct tracefile file;
    r->files++;
    r->bytes_before += disk_bytes(path);
    int rc = tracefile_open(path, control, &file);
    if (rc == 0) {
        struct job job = { .file = &file };
        rc = guard_run(fold_all, &job);
        if (rc == 0)
            rc = job.rc < 0 && job.rc != -EAGAIN ? job.rc : 0;
        r->folded_blocks += job.folded;
        r->alive += job.alive;
        tracefile_close(&file);
        uint64_t before, after;
        if (rc == 0 && compact && !job.alive &&
            compact_file(path, &before, &after) == 0)
            r->compacted++;
    } else if (rc == SONDE_E_FORMAT) {
        /* Perhaps compact already: then this does nothing and succeeds. */
        uint64_t before, after;
        rc = compact_file(path, &before, &after);
    }
    if (rc < 0)
        note_problem(r, name, rc);
    r->bytes_after += disk_bytes(path);
}

int recover_run(const char *dir, bool compact, struct recover_result *ret_result)
{
    struct recover_result result = { 0 };
    struct control *control = NULL;
    /* Without a control file there is no budget to keep; the files say enough. */
    static struct control no_limits = { .max_blocks = MAX_BLOCKS, .level = 2 };
    DIR *d = opendir(dir);
    if (!d)
        return -errno;
    (void)control_map(dir, true, &control);
    for (struct dirent *e; (e = readdir(d));) {
        size_t len = strlen(e->d_name);
        char path[1024];
        if (len < 7 || strcmp(e->d_name + len - 6, ".sonde") != 0 ||
            e->d_name[0] < '0' || e->d_name[0] > '9' ||
            snprintf(path, sizeof path, "%s/%s", dir, e->d_name) >= (int)sizeof path)
            continue;
        recover_file(path, e->d_name, control ? control : &no_limits, compact, &result);
    }
    (void)closedir(d);
    control_unmap(control);
    *ret_result = result;
    return 0;
}
