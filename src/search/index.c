/* index.c: the store's experiments, ready to be searched.
 *
 * DIR/index/list is replaced whole and names the files that count; others are removed.
 * Who updates holds a lock; who only reads maps what the list names, and looks again
 * when a file has gone meanwhile.
 */
#include "search/index.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/files.h"

enum { LIST_VERSION = 1, LIST_MOST = 256 << 20, NAME_LEN = 40, LEARN_ALWAYS = 64 };

struct list_head {
    char magic[8]; /* "SondeIdx" */
    uint32_t version, parts;
    int64_t last_seq, last_removed;
    uint64_t store; /* whose experiments these are */
    uint64_t space_rows, space_len;
};

/* Behind it (rows + 63) / 64 words when removed_count is not 0. */
struct list_part {
    uint64_t file;
    uint32_t rows, removed_count;
};

static size_t words_of(uint32_t rows)
{
    return (rows + 63) / 64;
}

/* ---- Parts -------------------------------------------------------------------------- */

static void part_release(struct index_part *p)
{
    if (p->vectors_mapped)
        (void)munmap((void *)(uintptr_t)p->vectors, p->vectors_len);
    else
        free((void *)(uintptr_t)p->vectors);
    segment_release(&p->segment);
    free(p->removed);
    *p = (struct index_part){ .file = 0 };
}

static void forget_parts(struct index *x)
{
    for (size_t i = 0; i < x->count; i++)
        part_release(&x->parts[i]);
    x->count = 0;
    x->rows = 0;
}

void index_free(struct index *x)
{
    if (!x)
        return;
    forget_parts(x);
    free(x->parts);
    free(x->dir);
    embed_space_release(&x->space);
    free(x);
}

static int append_part(struct index *x, const struct index_part *p)
{
    if (x->count == x->cap) {
        const size_t cap = x->cap ? x->cap * 2 : 16;
        struct index_part *parts = realloc(x->parts, cap * sizeof *parts);
        if (!parts)
            return -ENOMEM;
        x->parts = parts;
        x->cap = cap;
    }
    x->parts[x->count++] = *p;
    x->rows += p->segment.head->rows;
    return 0;
}

bool index_find_seq(const struct index *x, int64_t seq, size_t *ret_part,
                    uint32_t *ret_row)
{
    for (size_t i = 0; i < x->count; i++) {
        const struct segment *s = &x->parts[i].segment;
        const uint32_t rows = s->head->rows;
        if (rows == 0 || seq < s->seq[0] || seq > s->seq[rows - 1])
            continue;
        uint32_t low = 0, high = rows;
        while (low < high) {
            const uint32_t middle = low + (high - low) / 2;
            if (s->seq[middle] < seq)
                low = middle + 1;
            else
                high = middle;
        }
        if (low < rows && s->seq[low] == seq) {
            *ret_part = i;
            *ret_row = low;
            return true;
        }
    }
    return false;
}

/* ---- Files -------------------------------------------------------------------------- */

static void file_path(const struct index *x, uint64_t file, const char *end,
                      struct buf *out)
{
    char name[NAME_LEN];
    (void)snprintf(name, sizeof name, "%016llx.%s", (unsigned long long)file, end);
    buf_clear(out);
    path_join(out, x->dir, name);
}

static int map_vectors(struct index *x, struct index_part *p)
{
    struct buf path = BUF_INIT;
    struct stat st;
    const size_t len = (size_t)p->segment.head->rows * EMBED_DIMS;
    file_path(x, p->file, "vec", &path);
    const int fd = path.error ? -1 : open(path.data, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    int rc = fd < 0 ? -ENOENT : fstat(fd, &st) < 0 ? -errno : 0;
    if (rc == 0 && ((size_t)st.st_size != len || len == 0))
        rc = SONDE_E_FORMAT;
    void *base = rc < 0 ? MAP_FAILED : mmap(NULL, len, PROT_READ, MAP_SHARED, fd, 0);
    if (rc == 0 && base == MAP_FAILED)
        rc = -errno;
    if (fd >= 0)
        (void)close(fd);
    buf_release(&path);
    if (rc < 0)
        return rc;
    p->vectors = base;
    p->vectors_len = len;
    p->vectors_mapped = true;
    return 0;
}

static int map_part(struct index *x, const struct list_part *entry,
                    const uint64_t *removed)
{
    struct buf path = BUF_INIT;
    struct index_part p = { .file = entry->file,
                            .removed_count = entry->removed_count };
    file_path(x, entry->file, "seg", &path);
    int rc = path.error ? path.error : segment_map(path.data, &p.segment);
    buf_release(&path);
    if (rc == 0 && p.segment.head->rows != entry->rows)
        rc = SONDE_E_FORMAT;
    if (rc == 0)
        rc = map_vectors(x, &p);
    if (rc == 0 && removed) {
        p.removed = calloc(words_of(entry->rows), sizeof *p.removed);
        if (p.removed)
            memcpy(p.removed, removed, words_of(entry->rows) * sizeof *p.removed);
        else
            rc = -ENOMEM;
    }
    if (rc == 0)
        rc = append_part(x, &p);
    if (rc < 0)
        part_release(&p);
    return rc;
}

struct cursor {
    const char *at;
    size_t left;
};

static bool take(struct cursor *c, void *out, size_t len)
{
    if (c->left < len)
        return false;
    if (out)
        memcpy(out, c->at, len);
    c->at += len;
    c->left -= len;
    return true;
}

static int read_parts(struct index *x, struct cursor *c, uint32_t count)
{
    int rc = 0;
    for (uint32_t i = 0; rc == 0 && i < count; i++) {
        struct list_part entry;
        uint64_t *removed = NULL;
        if (!take(c, &entry, sizeof entry) || entry.rows > SEGMENT_ROWS)
            return SONDE_E_FORMAT;
        const size_t len = words_of(entry.rows) * sizeof *removed;
        if (entry.removed_count) {
            removed = malloc(len ? len : 1);
            if (!removed)
                return -ENOMEM;
            if (!take(c, removed, len))
                rc = SONDE_E_FORMAT;
        }
        if (rc == 0)
            rc = map_part(x, &entry, removed);
        free(removed);
    }
    return rc;
}

static int read_list(struct index *x)
{
    struct buf path = BUF_INIT, text = BUF_INIT;
    struct list_head head;
    path_join(&path, x->dir, "list");
    int rc = path.error ? path.error : file_read_all(path.data, LIST_MOST, &text);
    struct cursor c = { text.data, text.len };
    if (rc == 0 &&
        (!take(&c, &head, sizeof head) || memcmp(head.magic, "SondeIdx", 8) != 0 ||
         head.version != LIST_VERSION || head.store != x->store ||
         head.space_len > c.left))
        rc = SONDE_E_FORMAT;
    if (rc == 0)
        rc = embed_space_read(c.at, head.space_len, &x->space);
    if (rc == 0) {
        (void)take(&c, NULL, head.space_len);
        x->last_seq = head.last_seq;
        x->last_removed = head.last_removed;
        x->space_rows = head.space_rows;
        rc = read_parts(x, &c, head.parts);
    }
    buf_release(&path);
    buf_release(&text);
    return rc;
}

static int write_list(struct index *x)
{
    struct buf path = BUF_INIT, text = BUF_INIT, space = BUF_INIT;
    int rc = embed_space_write(&x->space, &space);
    const struct list_head head = { .magic = "SondeIdx",
                                    .version = LIST_VERSION,
                                    .parts = (uint32_t)x->count,
                                    .last_seq = x->last_seq,
                                    .last_removed = x->last_removed,
                                    .store = x->store,
                                    .space_rows = x->space_rows,
                                    .space_len = space.len };
    buf_append(&text, &head, sizeof head);
    buf_append(&text, space.data, space.len);
    for (size_t i = 0; i < x->count; i++) {
        const struct index_part *p = &x->parts[i];
        const struct list_part entry = { .file = p->file,
                                         .rows = p->segment.head->rows,
                                         .removed_count = p->removed_count };
        buf_append(&text, &entry, sizeof entry);
        if (p->removed_count)
            buf_append(&text, p->removed, words_of(entry.rows) * sizeof *p->removed);
    }
    path_join(&path, x->dir, "list");
    if (rc == 0)
        rc = path.error ? path.error : text.error;
    if (rc == 0)
        rc = file_replace(path.data, text.data, text.len, 0600);
    buf_release(&path);
    buf_release(&text);
    buf_release(&space);
    return rc;
}

/* Files that the list does not name. */
static void sweep(const struct index *x)
{
    DIR *dir = opendir(x->dir);
    if (!dir)
        return;
    for (const struct dirent *e; (e = readdir(dir));) {
        unsigned long long file;
        char end[4] = "";
        if (sscanf(e->d_name, "%16llx.%3s", &file, end) != 2 ||
            (strcmp(end, "seg") != 0 && strcmp(end, "vec") != 0))
            continue;
        bool known = false;
        for (size_t i = 0; !known && i < x->count; i++)
            known = x->parts[i].file == file;
        if (!known)
            (void)unlinkat(dirfd(dir), e->d_name, 0);
    }
    (void)closedir(dir);
}

/* ---- Building ----------------------------------------------------------------------- */

static int make_vectors(struct index *x, struct index_part *p)
{
    const size_t len = (size_t)p->segment.head->rows * EMBED_DIMS;
    int8_t *vectors = malloc(len ? len : 1);
    if (!vectors)
        return -ENOMEM;
    embed_segment(&x->space, &p->segment, vectors);
    if (p->vectors_mapped)
        (void)munmap((void *)(uintptr_t)p->vectors, p->vectors_len);
    else
        free((void *)(uintptr_t)p->vectors);
    p->vectors = vectors;
    p->vectors_len = len;
    p->vectors_mapped = false;
    return 0;
}

/* Gives the part a file of its own name; on failure the index lives on in memory. */
static void save_part(struct index *x, struct index_part *p)
{
    struct buf path = BUF_INIT;
    if (!x->dir)
        return;
    if (getrandom(&p->file, sizeof p->file, 0) != (ssize_t)sizeof p->file)
        p->file = 0;
    file_path(x, p->file, "seg", &path);
    int rc = p->file == 0 ? -EIO : path.error;
    if (rc == 0)
        rc = file_replace(path.data, p->segment.base, p->segment.len, 0600);
    file_path(x, p->file, "vec", &path);
    if (rc == 0)
        rc = path.error ? path.error
                        : file_replace(path.data, p->vectors, p->vectors_len, 0600);
    if (rc < 0) {
        free(x->dir);
        x->dir = NULL;
    }
    buf_release(&path);
}

static int attach_part(struct index *x, struct segment_builder *b)
{
    struct buf bytes = BUF_INIT;
    struct index_part p = { .file = 0 };
    int rc = segment_builder_write(b, &bytes);
    const size_t len = bytes.len;
    char *base = rc < 0 ? NULL : buf_steal(&bytes);
    if (rc == 0)
        rc = base ? segment_attach(base, len, false, &p.segment) : -ENOMEM;
    if (rc < 0)
        free(base);
    if (rc == 0)
        rc = append_part(x, &p);
    if (rc < 0)
        part_release(&p);
    buf_release(&bytes);
    return rc;
}

struct filling {
    struct index *index;
    struct segment_builder *builder;
    int64_t last;
};

static int flush(struct filling *f)
{
    int rc = 0;
    if (f->builder && segment_builder_rows(f->builder))
        rc = attach_part(f->index, f->builder);
    segment_builder_free(f->builder);
    f->builder = NULL;
    return rc;
}

static int take_experiment(void *arg, const struct experiment *e)
{
    struct filling *f = arg;
    if (f->builder && segment_builder_rows(f->builder) == SEGMENT_ROWS) {
        const int rc = flush(f);
        if (rc < 0)
            return rc;
    }
    if (!f->builder)
        f->builder = segment_builder_new();
    if (!f->builder)
        return -ENOMEM;
    f->last = e->seq;
    return segment_builder_add(f->builder, e);
}

/* The last parts that are no larger than what comes join it: their rows are read again
 * and their number stays logarithmic. Returns the seq from which to read. */
static int64_t give_up_small_parts(struct index *x, uint64_t coming)
{
    int64_t after = x->last_seq;
    uint64_t sum = coming;
    while (x->count) {
        struct index_part *p = &x->parts[x->count - 1];
        const uint32_t rows = p->segment.head->rows;
        if (rows > 2 * sum || sum + rows > SEGMENT_ROWS)
            break;
        sum += rows;
        after = p->segment.seq[0] - 1;
        x->rows -= rows;
        part_release(p);
        x->count--;
    }
    return after;
}

static int fill(struct index *x, struct store *store, int64_t up_to)
{
    struct filling f = { .index = x };
    const int64_t after = give_up_small_parts(x, (uint64_t)(up_to - x->last_seq));
    const size_t kept = x->count;
    int rc = store_each(store, after, up_to, take_experiment, &f);
    if (rc == 0)
        rc = flush(&f);
    segment_builder_free(f.builder);
    if (rc < 0)
        return rc;
    x->last_seq = up_to;
    for (size_t i = kept; rc == 0 && i < x->count; i++)
        rc = make_vectors(x, &x->parts[i]);
    return rc;
}

static int mark_removed(void *arg, int64_t n, int64_t seq)
{
    struct index *x = arg;
    size_t part;
    uint32_t row;
    x->last_removed = n;
    if (!index_find_seq(x, seq, &part, &row))
        return 0;
    struct index_part *p = &x->parts[part];
    if (!p->removed)
        p->removed = calloc(words_of(p->segment.head->rows), sizeof *p->removed);
    if (!p->removed)
        return -ENOMEM;
    const uint64_t bit = UINT64_C(1) << row % 64;
    p->removed_count += !(p->removed[row / 64] & bit);
    p->removed[row / 64] |= bit;
    return 0;
}

/* ---- The space ---------------------------------------------------------------------- */

static bool space_is_old(const struct index *x)
{
    return x->rows != x->space_rows &&
           (x->rows < LEARN_ALWAYS || x->rows >= 2 * x->space_rows ||
            x->rows < x->space_rows);
}

/* What is gone still counts here until its segment is made anew: ranges change little,
 * and the bytes stay a function of what was put. */
static int learn_space(struct index *x)
{
    struct embed_learner *l = embed_learner_new();
    struct embed_space space;
    int rc = l ? 0 : -ENOMEM;
    for (size_t i = 0; rc == 0 && i < x->count; i++)
        rc = embed_learn(l, &x->parts[i].segment);
    if (rc == 0)
        rc = embed_learner_finish(l, &space);
    embed_learner_free(l);
    if (rc < 0)
        return rc;
    embed_space_release(&x->space);
    x->space = space;
    x->space_rows = x->rows;
    for (size_t i = 0; rc == 0 && i < x->count; i++) {
        rc = make_vectors(x, &x->parts[i]);
        x->parts[i].file = 0; /* its files hold the old ones */
    }
    return rc;
}

static void start_over(struct index *x)
{
    forget_parts(x);
    embed_space_release(&x->space);
    x->space_rows = 0;
    x->last_seq = x->last_removed = 0;
}

static bool mostly_removed(const struct index *x)
{
    uint64_t removed = 0;
    for (size_t i = 0; i < x->count; i++)
        removed += x->parts[i].removed_count;
    return removed > LEARN_ALWAYS && removed > x->rows / 2;
}

/* ---- Up to date --------------------------------------------------------------------- */

static int update(struct index *x, struct store *store, int64_t seq, int64_t removed)
{
    int rc = 0;
    if (seq > x->last_seq)
        rc = fill(x, store, seq);
    if (rc == 0 && removed > x->last_removed)
        rc = store_each_removed(store, x->last_removed, mark_removed, x);
    if (rc == 0 && mostly_removed(x)) {
        start_over(x);
        x->last_removed = removed;
        rc = fill(x, store, seq);
    }
    if (rc == 0 && space_is_old(x))
        rc = learn_space(x);
    for (size_t i = 0; rc == 0 && x->dir && i < x->count; i++)
        if (x->parts[i].file == 0)
            save_part(x, &x->parts[i]);
    if (rc == 0 && x->dir && write_list(x) == 0)
        sweep(x);
    return rc;
}

/* A store that was built anew gives out the same numbers to other experiments. */
static uint64_t identity_of(struct store *store)
{
    struct buf text = BUF_INIT;
    uint64_t identity = 0;
    if (store_setting(store, "identity", NULL, &text) == 0)
        identity = strtoull(text.data, NULL, 16);
    buf_release(&text);
    return identity;
}

static int lock(const struct index *x)
{
    struct buf path = BUF_INIT;
    path_join(&path, x->dir, "lock");
    const int fd = path.error ? -1
                              : open(path.data,
                                     O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    buf_release(&path);
    if (fd >= 0)
        (void)fchmod(fd, 0600); /* whatever the umask */
    if (fd >= 0)
        while (flock(fd, LOCK_EX) < 0 && errno == EINTR)
            ;
    return fd;
}

static bool is_current(const struct index *x, int64_t seq, int64_t removed)
{
    return x->last_seq == seq && x->last_removed == removed;
}

/* A list from another store (restored from a copy, say) runs ahead of it. */
static bool is_ahead(const struct index *x, int64_t seq, int64_t removed)
{
    return x->last_seq > seq || x->last_removed > removed;
}

static int load(struct index *x, int64_t seq, int64_t removed)
{
    const int rc = x->dir ? read_list(x) : -ENOENT;
    if (rc < 0 || is_ahead(x, seq, removed)) {
        start_over(x);
        return rc < 0 ? rc : SONDE_E_STATE;
    }
    return 0;
}

int index_open(struct store *store, struct index **ret_index)
{
    struct buf dir = BUF_INIT;
    int64_t seq = 0, removed = 0;
    struct index *x = calloc(1, sizeof *x);
    if (!x)
        return -ENOMEM;
    x->store = identity_of(store);
    path_join(&dir, store->dir, "index");
    int rc = dir.error ? dir.error : store_last_seq(store, &seq, &removed);
    const bool new_dir = rc == 0 && !path_is_dir(dir.data);
    if (rc == 0 && dir_make(dir.data, 0700) == 0)
        x->dir = strdup(dir.data);
    if (new_dir)
        (void)chmod(dir.data, 0700);
    buf_release(&dir);
    if (rc == 0 && (load(x, seq, removed) < 0 || !is_current(x, seq, removed))) {
        /* Somebody may have done it while we waited for the lock. */
        const int fd = x->dir ? lock(x) : -1;
        if (fd < 0) {
            free(x->dir);
            x->dir = NULL;
        }
        start_over(x);
        (void)load(x, seq, removed);
        if (!is_current(x, seq, removed))
            rc = update(x, store, seq, removed);
        if (fd >= 0)
            (void)close(fd);
    }
    if (rc < 0) {
        index_free(x);
        return rc;
    }
    *ret_index = x;
    return 0;
}
