/* trace_fuzz.c: the reader on hostile files.
 *
 * The first byte says what the rest is:
 *   0  changes to a small valid raw file
 *   1  changes to the same file compacted; CRCs are put right afterwards
 *   2  a whole file, as it is
 * (modulo 3; with 128 added, the reader gets no clock table and must make its own).
 *
 * A change is three bytes of position, one of length, and that many bytes (at most 16).
 * Positions count the places that mean something, so that few changes are wasted on the
 * zeros a sparse file is made of.
 */
#include "plain.h"

#include "../tests/unit/small_trace.h"
#include "trace/crc32c.h"
#include "trace/pack.h"
#include "trace/recover.h"

struct range {
    size_t at, len;
};
enum { RANGES = 64 };

static struct file {
    uint8_t *bytes, *work; /* as it was made; as it is after changes */
    size_t size;
    struct range ranges[RANGES];
    unsigned range_count;
    size_t places;
} raw, packed;

static void add_range(struct file *f, size_t at, size_t len)
{
    assert_true(f->range_count < RANGES && at + len <= f->size);
    f->ranges[f->range_count++] = (struct range){ at, len };
    f->places += len;
}

static void add_block_range(struct file *f, uint32_t block, size_t len)
{
    add_range(f, (size_t)block * BLOCK_SIZE, len);
}

static void find_places(struct file *f, const struct handmade *t)
{
    const struct trace_head *h = (const struct trace_head *)f->bytes;
    const uint64_t *table = (const uint64_t *)(f->bytes + 2 * (size_t)BLOCK_SIZE);
    add_range(f, 0, sizeof *h);
    add_range(f, BLOCK_SIZE, sizeof(struct trace_live));
    add_block_range(f, h->table[0], 8 * f->size / BLOCK_SIZE);
    add_block_range(f, h->sites[0], (SITE(4)) * sizeof(struct site_entry));
    add_block_range(f, h->strings[0], 64);
    for (size_t lane = 0; lane < 3; lane++)
        add_range(f, (size_t)h->lanes[0] * BLOCK_SIZE + lane * 8192,
                  offsetof(struct lane_cell, frames) + 64);
    add_block_range(f, h->nodes[0], 64 * (size_t)512);
    add_block_range(f, h->chunks[0], 16 * (size_t)1088);
    add_block_range(f, h->values[0], 4 * (size_t)128);
    for (uint32_t i = 6; i < f->size / BLOCK_SIZE; i++)
        if (block_kind(table[i]) == BLOCK_EVENTS && block_state(table[i]) != STATE_FREE)
            add_block_range(f, i, EVENTS_OFFSET + 120 * sizeof(uint64_t));
    (void)t;
}

static void read_file(struct file *f, const char *path)
{
    struct buf b = BUF_INIT;
    assert_int_equal(file_read_all(path, 64 << 20, &b), 0);
    f->size = b.len;
    f->bytes = malloc(b.len);
    f->work = malloc(b.len);
    memcpy(f->bytes, b.data, b.len);
    memcpy(f->work, b.data, b.len);
    buf_release(&b);
}

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    struct handmade t;
    uint64_t before, after;
    (void)argc, (void)argv;
    small_trace(&t);
    read_file(&raw, t.file.path);
    find_places(&raw, &t);
    handmade_kill_owner(&t);
    assert_int_equal(compact_file(t.file.path, &before, &after), 0);
    read_file(&packed, t.file.path);
    add_range(&packed, 0, packed.size);
    handmade_release(&t);
    return 0;
}

static uint8_t *place(struct file *f, size_t position, size_t *ret_room)
{
    position %= f->places;
    for (unsigned i = 0; i < f->range_count; i++) {
        if (position < f->ranges[i].len) {
            *ret_room = f->ranges[i].len - position;
            return f->work + f->ranges[i].at + position;
        }
        position -= f->ranges[i].len;
    }
    abort();
}

/* Makes the changes, or unmakes them. */
static void change(struct file *f, const uint8_t *data, size_t size, int undo)
{
    while (size >= 5) {
        const size_t position = data[0] | (size_t)data[1] << 8 | (size_t)data[2] << 16;
        size_t len = 1 + data[3] % 16, room;
        uint8_t *at = place(f, position, &room);
        data += 4;
        size -= 4;
        len = len < size ? len : size;
        if (undo)
            memcpy(at, f->bytes + (at - f->work), len < room ? len : room);
        else
            memcpy(at, data, len < room ? len : room);
        data += len;
        size -= len;
    }
}

static void fix_crcs(struct file *f)
{
    struct pack_section s;
    size_t at = sizeof(struct pack_head);
    while (at + sizeof s <= f->size) {
        memcpy(&s, f->work + at, sizeof s);
        if (s.len > f->size - at - sizeof s)
            return;
        s.crc = crc32c(0, f->work + at + sizeof s, (size_t)s.len);
        memcpy(f->work + at, &s, sizeof s);
        at += sizeof s + (((size_t)s.len + 7) & ~(size_t)7);
    }
}

static void read_trace(const uint8_t *bytes, size_t size, int own_clock)
{
    static struct clock_reading readings[2] = {
        { 1ULL << 39, 1000000, 1000000, 1000000, 50 },
        { 1ULL << 41, 9000000000, 9000000000, 9000000000, 50 }
    };
    static const struct clock_table clock = { readings, 2, 0.004, 0.2 };
    struct trace *trace;
    if (trace_open_bytes(bytes, size, own_clock ? NULL : &clock, &trace) < 0)
        return;
    (void)small_use(trace);
    trace_free(trace);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    const int own_clock = data[0] >> 7, mode = (data[0] & 127) % 3;
    data++;
    size--;
    if (mode == 2) {
        read_trace(data, size, own_clock);
        return 0;
    }
    struct file *f = mode == 0 ? &raw : &packed;
    change(f, data, size, 0);
    if (mode == 1)
        fix_crcs(f);
    read_trace(f->work, f->size, own_clock);
    if (mode == 1)
        memcpy(f->work, f->bytes, f->size);
    else
        change(f, data, size, 1);
    return 0;
}
