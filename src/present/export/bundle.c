/* bundle.c: a run in one file that every verb opens (store/bundle.h tells the form).
 *
 * The files of the run are copied, what names somebody or looks like a secret is hidden
 * in the copies (bundle_redact.c) unless the job says otherwise, and the copies are
 * packed one after the other. Traces travel in their compact form. Memory does not grow
 * with the run; the copies need room in TMPDIR.
 */
#include <errno.h>
#include <fcntl.h>
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sonde/sonde.h>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "present/export/bundle_redact.h"
#include "present/export/gzip.h"
#include "store/bundle.h"
#include "trace/recover.h"

struct bundle {
    const struct export_job *job;
    struct gzip gzip;
    struct buf dir; /* of the copies */
    char **names;
    size_t count, cap;
    struct bundle_redaction *redaction; /* NULL: everything as it is */
    struct export_totals totals;
};

/* ---- Which files ------------------------------------------------------------------------ */

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static int add_name(struct bundle *b, const char *name)
{
    if (b->count == b->cap) {
        const size_t cap = b->cap ? b->cap * 2 : 32;
        /* NOLINTNEXTLINE(bugprone-sizeof-expression): an array of pointers it is */
        char **more = realloc(b->names, cap * sizeof *more);
        if (!more)
            return -ENOMEM;
        b->names = more;
        b->cap = cap;
    }
    b->names[b->count] = strdup(name);
    return b->names[b->count] ? (b->count++, 0) : -ENOMEM;
}

static int list_names(struct bundle *b)
{
    int rc = 0;
    DIR *dir = opendir(b->job->run->dir);
    if (!dir)
        return -errno;
    for (const struct dirent *e; rc == 0 && (e = readdir(dir));)
        if (bundle_is_name(e->d_name) && strcmp(e->d_name, BUNDLE_FIRST) != 0)
            rc = b->count < BUNDLE_FILES - 1 ? add_name(b, e->d_name) : SONDE_E_LIMIT;
    (void)closedir(dir);
    if (b->count)
        qsort(b->names, b->count, sizeof *b->names, by_name);
    return rc;
}

/* ---- Copies ------------------------------------------------------------------------------- */

static int copy_bytes(int from, int to)
{
    static char bytes[1 << 17];
    for (;;) {
        const ssize_t n = fd_read_full(from, bytes, sizeof bytes);
        if (n <= 0)
            return (int)n;
        const int rc = fd_write_full(to, bytes, (size_t)n);
        if (rc < 0)
            return rc;
    }
}

/* −ENOENT: not a plain file, or gone since. */
static int copy_file(const char *from, const char *to)
{
    struct stat st;
    const int in = open(from, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (in < 0)
        return -ENOENT;
    int rc = fstat(in, &st) == 0 && S_ISREG(st.st_mode) ? 0 : -ENOENT;
    const int out = rc < 0 ? -1
                           : open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (rc == 0 && out < 0)
        rc = -errno;
    if (rc == 0)
        rc = copy_bytes(in, out);
    if (out >= 0 && close(out) < 0 && rc == 0)
        rc = -errno;
    (void)close(in);
    return rc;
}

static bool is_trace(const char *name)
{
    const size_t len = strlen(name);
    return name[0] >= '0' && name[0] <= '9' && len > 6 &&
           strcmp(name + len - 6, ".sonde") == 0;
}

/* The copy as it may travel; a file that cannot be made so stays behind. */
static int prepare(struct bundle *b, const char *name, const char *path)
{
    uint64_t before, after;
    int rc = is_trace(name) ? compact_file(path, &before, &after) : 0;
    if (rc == SONDE_E_FORMAT)
        rc = 0; /* compact already, or damaged: the next finds out */
    if (b->redaction && rc == 0)
        rc = bundle_redact(b->redaction, name, path);
    if (rc == -ENOMEM || rc == -ENOSPC || rc == 0)
        return rc;
    if (!b->redaction)
        return 0; /* as it is, then */
    b->totals.unreadable++;
    return -ENOENT;
}

/* ---- The tar ------------------------------------------------------------------------------ */

/* As many digits as there is room for, and a zero. */
static void put_octal(char *field, size_t len, uint64_t value)
{
    field[--len] = '\0';
    for (; len > 0; value >>= 3)
        field[--len] = (char)('0' + (value & 7));
}

static int put_header(struct bundle *b, const char *name, uint64_t size)
{
    struct bundle_header h = { .type = '0', .magic = "ustar", .version = { '0', '0' } };
    const int64_t started = b->job->run->meta.started_ns / 1000000000;
    if (size >= UINT64_C(1) << 33)
        return SONDE_E_LIMIT; /* more than eleven octal digits */
    memcpy(h.name, name, strnlen(name, sizeof h.name - 1));
    put_octal(h.mode, sizeof h.mode, 0600);
    put_octal(h.uid, sizeof h.uid, 0);
    put_octal(h.gid, sizeof h.gid, 0);
    put_octal(h.size, sizeof h.size, size);
    put_octal(h.mtime, sizeof h.mtime, started > 0 ? (uint64_t)started : 0);
    put_octal(h.checksum, sizeof h.checksum - 1, bundle_checksum(&h));
    h.checksum[7] = ' ';
    return gzip_put(&b->gzip, &h, sizeof h);
}

static int put_padding(struct bundle *b, uint64_t size)
{
    static const char zeros[BUNDLE_BLOCK];
    const size_t over = (size_t)(size % BUNDLE_BLOCK);
    return over ? gzip_put(&b->gzip, zeros, BUNDLE_BLOCK - over) : 0;
}

static int put_first(struct bundle *b)
{
    struct buf text = BUF_INIT;
    struct json_writer w;
    json_init_buf(&w, &text, JSON_STYLE_PRETTY);
    json_object_begin(&w);
    json_key(&w, "schema");
    json_put_string(&w, BUNDLE_SCHEMA);
    json_key(&w, "run");
    json_put_string(&w, b->job->run->id);
    json_key(&w, "sonde");
    json_put_string(&w, SONDE_VERSION);
    json_key(&w, "redacted");
    json_put_bool(&w, b->redaction != NULL);
    json_object_end(&w);
    json_newline(&w);
    int rc = json_finish(&w);
    if (rc == 0)
        rc = put_header(b, BUNDLE_FIRST, text.len);
    if (rc == 0)
        rc = gzip_put(&b->gzip, text.data, text.len);
    if (rc == 0)
        rc = put_padding(b, text.len);
    buf_release(&text);
    return rc;
}

/* Exactly the size the header told: the copies are ours, and nobody writes them. */
static int put_copy(struct bundle *b, const char *name, const char *path)
{
    static char bytes[1 << 17];
    struct stat st;
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return -errno;
    int rc = fstat(fd, &st) == 0 ? put_header(b, name, (uint64_t)st.st_size) : -errno;
    uint64_t left = rc == 0 ? (uint64_t)st.st_size : 0;
    while (rc == 0 && left) {
        const size_t len = left < sizeof bytes ? (size_t)left : sizeof bytes;
        const ssize_t n = fd_read_full(fd, bytes, len);
        rc = n < 0 ? (int)n : (size_t)n < len ? SONDE_E_TRUNCATED : 0;
        if (rc == 0)
            rc = gzip_put(&b->gzip, bytes, len);
        left -= len;
    }
    if (rc == 0)
        rc = put_padding(b, (uint64_t)st.st_size);
    (void)close(fd);
    return rc;
}

static int put_file(struct bundle *b, const char *name)
{
    struct buf from = BUF_INIT, to = BUF_INIT;
    path_join(&from, b->job->run->dir, name);
    path_join(&to, b->dir.data, name);
    int rc = from.error ? from.error : to.error;
    if (rc == 0)
        rc = copy_file(from.data, to.data);
    if (rc == 0)
        rc = prepare(b, name, to.data);
    if (rc == 0) {
        rc = put_copy(b, name, to.data);
        b->totals.files++;
    } else if (rc == -ENOENT) {
        rc = 0;
    }
    (void)unlink(to.data); /* one copy at a time */
    buf_release(&from);
    buf_release(&to);
    return rc;
}

static int put_all(struct bundle *b)
{
    static const char zeros[2 * BUNDLE_BLOCK];
    int rc = put_first(b);
    for (size_t i = 0; rc == 0 && i < b->count; i++) {
        if (b->job->progress)
            b->job->progress(b->job->progress_arg, (double)i / (double)b->count);
        rc = put_file(b, b->names[i]);
    }
    return rc < 0 ? rc : gzip_put(&b->gzip, zeros, sizeof zeros);
}

static int make_place(struct buf *dir)
{
    const char *place = getenv("TMPDIR");
    path_join(dir, place && place[0] ? place : "/tmp", "sonde-copies-XXXXXX");
    return dir->error ? dir->error : mkdtemp(dir->data) ? 0 : -errno;
}

int export_bundle(const struct export_job *job, struct export_totals *ret_totals)
{
    struct bundle b = { .job = job, .dir = BUF_INIT };
    struct bundle_redaction redaction;
    if (job->run->single)
        return SONDE_E_UNSUPPORTED;
    if (run_meta_alive(&job->run->meta))
        return SONDE_E_BUSY;
    if (!job->unredacted) {
        bundle_redaction_init(&redaction, job->run);
        b.redaction = &redaction;
    }
    int rc = make_place(&b.dir);
    if (rc == 0)
        rc = list_names(&b);
    if (rc == 0) {
        rc = gzip_begin(&b.gzip, job->out);
        if (rc == 0)
            rc = gzip_end(&b.gzip, put_all(&b));
    }
    if (b.dir.len)
        (void)file_remove_tree(b.dir.data);
    for (size_t i = 0; i < b.count; i++)
        free(b.names[i]);
    free(b.names);
    buf_release(&b.dir);
    if (rc == 0)
        *ret_totals = b.totals;
    return rc;
}
