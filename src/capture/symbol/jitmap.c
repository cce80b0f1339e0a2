/* jitmap.c: see jitmap.h. */
#include "capture/symbol/jitmap.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/files.h"

enum { MAX_BYTES = 64 << 20, MAX_ENTRIES = 1 << 20 };

struct jit_entry {
    uint64_t start, end;
    uint32_t name, order;
};

struct jitmap {
    char *text;
    struct jit_entry *list; /* by start */
    uint64_t *reach; /* the largest end of list[0..i]: where looking back stops */
    size_t count;
};

static bool parse_hex(const char **at, const char *end, uint64_t *ret_value)
{
    const char *p = *at;
    uint64_t v = 0;
    unsigned digits = 0;
    if (end - p > 2 && p[0] == '0' && (p[1] == 'x' || p[1] == 'X'))
        p += 2;
    for (; p < end; p++, digits++) {
        const char c = *p;
        const int d = c >= '0' && c <= '9'   ? c - '0'
                      : c >= 'a' && c <= 'f' ? c - 'a' + 10
                      : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                             : -1;
        if (d < 0)
            break;
        v = v << 4 | (unsigned)d;
    }
    *ret_value = v;
    *at = p;
    return digits > 0 && digits <= 16;
}

/* "START SIZE name" in [at, end). */
static bool parse_line(const char *text, const char *at, const char *end,
                       struct jit_entry *ret_entry)
{
    uint64_t start, size;
    if (!parse_hex(&at, end, &start) || at == end || *at++ != ' ' ||
        !parse_hex(&at, end, &size) || at == end || *at++ != ' ' || at == end)
        return false;
    if (size == 0 || start > UINT64_MAX - size)
        return false;
    *ret_entry = (struct jit_entry){ start, start + size, (uint32_t)(at - text), 0 };
    return true;
}

static int by_start(const void *a, const void *b)
{
    const struct jit_entry *x = a, *y = b;
    return x->start != y->start ? (x->start < y->start ? -1 : 1)
                                : (x->order < y->order ? -1 : 1);
}

static int index_entries(struct jitmap *m)
{
    qsort(m->list, m->count, sizeof *m->list, by_start);
    m->reach = malloc((m->count + 1) * sizeof *m->reach);
    if (!m->reach)
        return -ENOMEM;
    uint64_t reach = 0;
    for (size_t i = 0; i < m->count; i++) {
        if (m->list[i].end > reach)
            reach = m->list[i].end;
        m->reach[i] = reach;
    }
    return 0;
}

static int read_lines(struct jitmap *m, size_t len)
{
    size_t lines = 1;
    for (size_t i = 0; i < len; i++)
        lines += m->text[i] == '\n';
    if (lines > MAX_ENTRIES)
        lines = MAX_ENTRIES;
    m->list = malloc(lines * sizeof *m->list);
    if (!m->list)
        return -ENOMEM;
    char *const end = m->text + len;
    for (char *line = m->text; line < end && m->count < lines;) {
        char *stop = memchr(line, '\n', (size_t)(end - line));
        if (!stop)
            stop = end;
        *stop = '\0';
        struct jit_entry e;
        if (parse_line(m->text, line, stop, &e)) {
            e.order = (uint32_t)m->count;
            m->list[m->count++] = e;
        }
        line = stop + 1;
    }
    return index_entries(m);
}

int jitmap_parse(const char *text, size_t len, struct jitmap **ret_map)
{
    if (len > MAX_BYTES)
        return SONDE_E_LIMIT;
    struct jitmap *m = calloc(1, sizeof *m);
    if (!m)
        return -ENOMEM;
    m->text = malloc(len + 1);
    int rc = m->text ? 0 : -ENOMEM;
    if (rc == 0) {
        if (len > 0)
            memcpy(m->text, text, len);
        m->text[len] = '\0';
        rc = read_lines(m, len);
    }
    if (rc < 0)
        jitmap_free(m);
    else
        *ret_map = m;
    return rc;
}

int jitmap_open(const char *path, uid_t owner, struct jitmap **ret_map)
{
    const int fd = open(path,
                        O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return -errno;
    struct stat st;
    char *text = NULL;
    int rc = fstat(fd, &st) == 0 ? 0 : -errno;
    if (rc == 0 && (!S_ISREG(st.st_mode) || st.st_uid != owner))
        rc = -EPERM;
    if (rc == 0 && st.st_size > MAX_BYTES)
        rc = SONDE_E_LIMIT;
    if (rc < 0)
        goto done;
    text = malloc((size_t)st.st_size + 1);
    const ssize_t n = text ? fd_pread_full(fd, text, (size_t)st.st_size, 0) : -ENOMEM;
    rc = n < 0 ? (int)n : jitmap_parse(text, (size_t)n, ret_map);
done:
    free(text);
    (void)close(fd);
    return rc;
}

void jitmap_free(struct jitmap *m)
{
    if (!m)
        return;
    free(m->text);
    free(m->list);
    free(m->reach);
    free(m);
}

size_t jitmap_count(const struct jitmap *m)
{
    return m->count;
}

const char *jitmap_find(const struct jitmap *m, uint64_t address)
{
    enum { LOOK_BACK = 4096 }; /* a hostile map may overlap without end */
    size_t low = 0, high = m->count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (m->list[middle].start <= address)
            low = middle + 1;
        else
            high = middle;
    }
    const struct jit_entry *best = NULL;
    for (size_t i = low, n = 0; i-- > 0 && m->reach[i] > address && n < LOOK_BACK; n++)
        if (m->list[i].end > address && (!best || m->list[i].order > best->order))
            best = &m->list[i];
    return best ? m->text + best->name : "";
}
