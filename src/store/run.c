/* run.c: a run directory, opened for reading.
 *
 * Nothing here follows the content further than it must: file names are checked to
 * be plain regular files, control.sonde is read, never mapped (its owner could
 * shorten it under us), and damage becomes a note.
 */
#include "store/run.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/files.h"
#include "store/bundle.h"
#include "trace/control.h"

/* A run of more processes than this is cut, with a note. */
enum { MAX_FILES = 65536, MAX_NOTES = 256 };

static const char suffix[] = ".sonde";
static const char control_name[] = "control.sonde";

static bool is_trace_name(const char *name)
{
    const size_t len = strlen(name);
    const size_t tail = sizeof(suffix) - 1;
    return len > tail && name[0] != '.' && strcmp(name + len - tail, suffix) == 0 &&
           strcmp(name, control_name) != 0;
}

static bool is_regular_at(int dir_fd, const char *name)
{
    struct stat st;
    return fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode);
}

void run_note(struct run *run, const char *fmt, ...)
{
    if (run->note_count == MAX_NOTES)
        return;
    if (run->note_count == run->note_cap) {
        const size_t cap = run->note_cap ? run->note_cap * 2 : 8;
        const char **notes = arena_alloc_array(&run->arena, cap, sizeof(*notes));
        if (!notes)
            return;
        if (run->note_count)
            memcpy(notes, run->notes, run->note_count * sizeof(*notes));
        run->notes = notes;
        run->note_cap = cap;
    }
    struct buf text = BUF_INIT;
    va_list args;
    va_start(args, fmt);
    buf_vprintf(&text, fmt, args);
    va_end(args);
    const char *copy = arena_strdup(&run->arena, text.data);
    buf_release(&text);
    if (copy)
        run->notes[run->note_count++] = copy;
}

/* ---- Files ----------------------------------------------------------------------- */

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int append_name(struct run *run, size_t *cap, const char *name)
{
    if (run->file_count == *cap) {
        const size_t more = *cap ? *cap * 2 : 16;
        const char **files = arena_alloc_array(&run->arena, more, sizeof(*files));
        if (!files)
            return -ENOMEM;
        if (run->file_count)
            memcpy(files, run->files, run->file_count * sizeof(*files));
        run->files = files;
        *cap = more;
    }
    const char *copy = arena_strdup(&run->arena, name);
    if (!copy)
        return -ENOMEM;
    run->files[run->file_count++] = copy;
    return 0;
}

/* Names begin with the start time in digits of equal number: sorting is by age. */
static int list_traces(struct run *run)
{
    int rc = 0;
    size_t cap = 0;
    DIR *dir = opendir(run->dir);
    if (!dir)
        return -errno;

    for (struct dirent *entry; rc == 0 && (entry = readdir(dir));) {
        if (!is_trace_name(entry->d_name) || !is_regular_at(dirfd(dir), entry->d_name))
            continue;
        if (run->file_count == MAX_FILES) {
            run_note(run, "more than %d traces: the rest is left out", MAX_FILES);
            break;
        }
        rc = append_name(run, &cap, entry->d_name);
    }
    (void)closedir(dir);
    if (run->file_count)
        qsort(run->files, run->file_count, sizeof(*run->files), compare_names);
    return rc;
}

/* ---- control.sonde ------------------------------------------------------------------ */

static void read_budget(struct run *run)
{
    struct buf path = BUF_INIT;
    struct control control;
    path_join(&path, run->dir, control_name);
    const int fd = path.error ? -1 : open(path.data, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    buf_release(&path);
    if (fd < 0)
        return;
    const ssize_t got = fd_pread_full(fd, &control, sizeof(control), 0);
    (void)close(fd);
    if (got != (ssize_t)sizeof(control) || control.magic != CONTROL_MAGIC ||
        control.major != TRACE_MAJOR)
        return;
    const uint64_t most = UINT64_MAX / BLOCK_SIZE;
    if (control.max_blocks > most || control.used_blocks > most)
        return;
    run->budget = (struct run_budget){
        .known = true,
        .max_bytes = control.max_blocks * BLOCK_SIZE,
        .used_bytes = control.used_blocks * BLOCK_SIZE,
        .processes = control.processes,
        .refused = control.refused,
        .capture_refused = control.capture_refused,
        .lossy = control.flags & CONTROL_LOSSY,
        .supervised = control.flags & CONTROL_SUPERVISED,
        .first_step = control.first_step,
        .last_step = control.last_step,
    };
}

static void read_control(struct run *run)
{
    const int rc = control_read_clock(run->dir, &run->clock);
    if (rc < 0 && run->meta.imported) {
        run->clock = (struct clock_table){ 0 }; /* its ticks are nanoseconds */
        return;
    }
    if (rc < 0) {
        run->clock = (struct clock_table){ 0 };
        run_note(run,
                 "no clock table (control.sonde: %s): order between processes "
                 "is approximate",
                 error_text(rc));
    }
    read_budget(run);
    if (run->budget.capture_refused)
        run_note(run,
                 "%llu processes found no room for their allocations or I/O "
                 "(--max-trace)",
                 (unsigned long long)run->budget.capture_refused);
    if (run->budget.refused)
        run_note(run,
                 "%llu processes were not recorded: the space of --max-trace was "
                 "used up",
                 (unsigned long long)run->budget.refused);
}

/* ---- Opening ------------------------------------------------------------------------ */

static void read_meta(struct run *run)
{
    const int rc = run_meta_read(run->dir, &run->arena, &run->meta);
    if (rc == -ENOENT)
        run_note(run, "no run.json: command, start and exit are unknown");
    else if (rc < 0)
        run_note(run,
                 "run.json cannot be used (%s): command, start and exit are unknown",
                 error_text(rc));
    for (size_t i = 0; i < run->meta.note_count; i++)
        run_note(run, "%s", run->meta.notes[i]);
}

static int unpack(struct run *run, const char *path, const char **ret_file)
{
    struct buf dir = BUF_INIT;
    int rc = bundle_unpack(path, &dir);
    if (rc == 0) {
        run->dir = arena_strdup(&run->arena, dir.data);
        run->unpacked = run->dir != NULL;
        if (!run->dir) {
            (void)file_remove_tree(dir.data);
            rc = -ENOMEM;
        }
    }
    *ret_file = NULL;
    buf_release(&dir);
    return rc;
}

/* "runs/x/" → "runs/x"; a trace → its directory, with the name in ret_file. */
static int split_path(struct run *run, const char *path, const char **ret_file)
{
    struct stat st;
    if (stat(path, &st) < 0)
        return errno == ENOENT || errno == ENOTDIR ? SONDE_E_NOTFOUND : -errno;
    if (S_ISREG(st.st_mode)) {
        struct buf parent = BUF_INIT;
        if (bundle_is(path))
            return unpack(run, path, ret_file);
        if (!is_trace_name(path_base(path)))
            return SONDE_E_NOTFOUND;
        path_parent(&parent, path);
        run->dir = parent.error ? NULL : arena_strdup(&run->arena, parent.data);
        *ret_file = arena_strdup(&run->arena, path_base(path));
        buf_release(&parent);
        return run->dir && *ret_file ? 0 : -ENOMEM;
    }
    if (!S_ISDIR(st.st_mode))
        return SONDE_E_NOTFOUND;
    size_t len = strlen(path);
    while (len > 1 && path[len - 1] == '/')
        len--;
    run->dir = arena_strndup(&run->arena, path, len);
    *ret_file = NULL;
    return run->dir ? 0 : -ENOMEM;
}

static void choose_id(struct run *run)
{
    run->id = run->meta.id;
    if (run->id[0])
        return;
    const char *base = path_base(run->dir);
    run->id = base[0] && strcmp(base, ".") != 0 && strcmp(base, "..") != 0 ? base : "?";
}

static int open_into(struct run *run, const char *path)
{
    const char *file = NULL;
    size_t cap = 0;
    int rc = split_path(run, path, &file);
    if (rc == 0)
        rc = file ? append_name(run, &cap, file) : list_traces(run);
    run->single = file != NULL;
    if (rc < 0)
        return rc;
    read_meta(run);
    /* What a bundle says of this machine's folders is not to be believed. */
    if (!file && !run->unpacked && run->meta.live[0] && path_is_dir(run->meta.live)) {
        run->dir = run->meta.live; /* it runs, and its files lie in scratch */
        run->file_count = 0;
        rc = list_traces(run);
        if (rc < 0)
            return rc;
    }
    if (!run->meta.present && run->file_count == 0)
        return SONDE_E_NOTFOUND;
    choose_id(run);
    read_control(run);
    return 0;
}

int run_open(const char *path, struct run **ret_run)
{
    struct run *run = calloc(1, sizeof(*run));
    if (!run)
        return -ENOMEM;
    arena_init(&run->arena);
    run_meta_init(&run->meta);
    const int rc = open_into(run, path);
    if (rc < 0) {
        run_free(run);
        return rc;
    }
    *ret_run = run;
    return 0;
}

void run_free(struct run *run)
{
    if (!run)
        return;
    if (run->unpacked)
        (void)file_remove_tree(run->dir);
    run_meta_release(&run->meta);
    clock_table_release(&run->clock);
    arena_release(&run->arena);
    free(run);
}

int run_trace_open(const struct run *run, size_t index, struct trace **ret_trace)
{
    struct buf path = BUF_INIT;
    path_join(&path, run->dir, run->files[index]);
    int rc = path.error;
    if (rc == 0)
        rc = trace_open(path.data, run->clock.count ? &run->clock : NULL, ret_trace);
    buf_release(&path);
    return rc;
}

bool run_is_directory(const char *path)
{
    bool found = false;
    DIR *dir = opendir(path);
    if (!dir)
        return false;
    for (struct dirent *entry; !found && (entry = readdir(dir));)
        found = strcmp(entry->d_name, "run.json") == 0 || is_trace_name(entry->d_name);
    (void)closedir(dir);
    return found;
}
