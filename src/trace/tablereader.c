/* tablereader.c: reading a file of tables, whoever wrote it. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "trace/tables.h"

struct tablefile {
    uint8_t *bytes;
    size_t blocks; /* whole ones, and a partial last one filled with zeros */
    struct tables_head head;
    uint16_t block_of[TABLES_MAX][TABLES_CHUNKS]; /* 0: not there */
};

/* ---- Checking ---------------------------------------------------------------------- */

static int check_head(struct tablefile *f)
{
    struct tables_head *h = &f->head;
    memcpy(h, f->bytes, sizeof *h);
    if (h->magic != TABLES_MAGIC)
        return SONDE_E_FORMAT;
    if (h->major != TABLES_MAJOR)
        return SONDE_E_VERSION;
    if (h->block_size != TABLES_BLOCK || h->table_count == 0 ||
        h->table_count > TABLES_MAX)
        return SONDE_E_FORMAT;
    h->kind[sizeof h->kind - 1] = h->exe[sizeof h->exe - 1] = '\0';
    for (unsigned i = 0; i < h->table_count; i++) {
        struct tables_entry *e = &h->table[i];
        e->name[sizeof e->name - 1] = '\0';
        if (i == TABLES_TEXT
                ? e->row_size != 1
                : e->row_size < 8 || e->row_size % 8 != 0 || e->row_size > TABLES_BLOCK)
            return SONDE_E_FORMAT;
        const uint64_t room = (uint64_t)(TABLES_BLOCK / e->row_size) * TABLES_CHUNKS;
        if (e->count > room)
            e->count = room;
    }
    return 0;
}

static void find_chunks(struct tablefile *f)
{
    const size_t count = f->blocks < TABLES_BLOCKS ? f->blocks : TABLES_BLOCKS;
    for (size_t block = 2; block < count; block++) {
        uint32_t word;
        memcpy(&word, f->bytes + TABLES_BLOCK + block * 4, sizeof word);
        const uint32_t table = (word & 0xff) - 1, chunk = word >> 8;
        if (table < f->head.table_count && chunk < TABLES_CHUNKS &&
            f->block_of[table][chunk] == 0)
            f->block_of[table][chunk] = (uint16_t)block;
    }
}

/* Takes the bytes over, whatever comes of it. */
static int adopt(uint8_t *bytes, size_t blocks, struct tablefile **ret_file)
{
    struct tablefile *f = calloc(1, sizeof *f);
    if (!f) {
        free(bytes);
        return -ENOMEM;
    }
    f->bytes = bytes;
    f->blocks = blocks;
    int rc = blocks >= 2 ? check_head(f) : SONDE_E_TRUNCATED;
    if (rc < 0) {
        tablefile_free(f);
        return rc;
    }
    find_chunks(f);
    *ret_file = f;
    return 0;
}

/* ---- Opening ----------------------------------------------------------------------- */

static size_t blocks_of(uint64_t len)
{
    const uint64_t blocks = (len + TABLES_BLOCK - 1) / TABLES_BLOCK;
    return blocks < TABLES_BLOCKS ? (size_t)blocks : TABLES_BLOCKS;
}

int tablefile_parse(const void *bytes, size_t len, struct tablefile **ret_file)
{
    const size_t blocks = blocks_of(len);
    uint8_t *copy = calloc(blocks + 1, TABLES_BLOCK);
    if (!copy)
        return -ENOMEM;
    const size_t room = blocks * TABLES_BLOCK;
    if (len > 0)
        memcpy(copy, bytes, len < room ? len : room);
    return adopt(copy, blocks, ret_file);
}

static int read_all(int fd, uint8_t *bytes, size_t len)
{
    for (size_t at = 0; at < len;) {
        ssize_t n = pread(fd, bytes + at, len - at, (off_t)at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        if (n == 0)
            return 0; /* shorter than it was: zeros */
        at += (size_t)n;
    }
    return 0;
}

int tablefile_open(const char *path, struct tablefile **ret_file)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return -errno;
    struct stat st;
    int rc = fstat(fd, &st) == 0 ? 0 : -errno;
    if (rc == 0 && !S_ISREG(st.st_mode))
        rc = SONDE_E_FORMAT;
    if (rc < 0)
        goto done;
    const size_t blocks = blocks_of((uint64_t)st.st_size);
    uint8_t *bytes = calloc(blocks + 1, TABLES_BLOCK);
    if (!bytes) {
        rc = -ENOMEM;
        goto done;
    }
    rc = read_all(fd, bytes, blocks * TABLES_BLOCK);
    if (rc == 0)
        rc = adopt(bytes, blocks, ret_file);
    else
        free(bytes);
done:
    (void)close(fd);
    return rc;
}

void tablefile_free(struct tablefile *f)
{
    if (!f)
        return;
    free(f->bytes);
    free(f);
}

/* ---- Asking ------------------------------------------------------------------------ */

const struct tables_head *tablefile_head(const struct tablefile *f)
{
    return &f->head;
}

int tablefile_find(const struct tablefile *f, const char *name)
{
    for (unsigned i = 0; i < f->head.table_count; i++)
        if (strcmp(f->head.table[i].name, name) == 0)
            return (int)i;
    return -1;
}

uint32_t tablefile_count(const struct tablefile *f, int table)
{
    return table >= 0 && (uint32_t)table < f->head.table_count
               ? (uint32_t)f->head.table[table].count
               : 0;
}

static const uint8_t *row_at(const struct tablefile *f, int table, uint32_t index)
{
    if (index >= tablefile_count(f, table))
        return NULL;
    const uint32_t size = f->head.table[table].row_size, per = TABLES_BLOCK / size;
    const uint32_t block = f->block_of[table][index / per];
    return block
               ? f->bytes + (size_t)block * TABLES_BLOCK + (size_t)(index % per) * size
               : NULL;
}

bool tablefile_get(const struct tablefile *f, int table, uint32_t index, void *ret_row,
                   size_t size)
{
    const uint8_t *row = row_at(f, table, index);
    uint64_t key = 0;
    if (!row || table == TABLES_TEXT)
        return false;
    memcpy(&key, row, sizeof key);
    if (key == 0)
        return false;
    const size_t have = f->head.table[table].row_size;
    memset(ret_row, 0, size);
    memcpy(ret_row, row, have < size ? have : size);
    return true;
}

const char *tablefile_text(const struct tablefile *f, uint32_t place)
{
    const char *text = place ? (const char *)row_at(f, TABLES_TEXT, place) : NULL;
    if (!text)
        return "";
    const size_t left = TABLES_BLOCK - place % TABLES_BLOCK;
    return memchr(text, '\0', left) ? text : "";
}

bool tablefile_is_name(const char *name, const char *kind)
{
    const size_t len = strlen(name), end = strlen(".tables");
    if (len <= end || strcmp(name + len - end, ".tables") != 0)
        return false;
    const size_t n = kind ? strlen(kind) : 0;
    return !kind || (strncmp(name, kind, n) == 0 && name[n] == '-');
}
