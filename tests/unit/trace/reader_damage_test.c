/* reader_damage_test.c: a file cut off or changed anywhere is refused, or read without
 * harm.
 *
 * The file is a small one with something of everything (small_trace.h), raw and
 * compacted. In the raw file every byte that means something is changed; in the
 * compacted one every byte, once as it is and once with the CRC of its section put
 * right, so that what lies behind the CRC is reached too. Sanitized builds try every
 * fifth. */
#include <errno.h>

#include "base/error.h"
#include "num/prng.h"
#include "small_trace.h"
#include "trace/crc32c.h"
#include "trace/pack.h"
#include "trace/recover.h"

#ifdef SONDE_SANITIZED
enum { EVERY = 5 };
#else
enum { EVERY = 1 };
#endif

struct file {
    uint8_t *bytes;
    size_t size;
    struct clock_table clock; /* so that no time goes into looking at clocks */
};

static struct clock_reading readings[2] = {
    { 1ULL << 39, 1000000, 1000000, 1000000, 50 },
    { 1ULL << 41, 9000000000, 9000000000, 9000000000, 50 }
};

static struct file read_file(const char *path)
{
    struct buf b = BUF_INIT;
    assert_int_equal(file_read_all(path, 64 << 20, &b), 0);
    struct file f = { .size = b.len, .clock = { readings, 2, 0.004, 0.2 } };
    f.bytes = malloc(b.len);
    memcpy(f.bytes, b.data, b.len);
    buf_release(&b);
    return f;
}

static int make_raw(void **state)
{
    struct handmade t;
    struct file *f = malloc(sizeof *f);
    small_trace(&t);
    *f = read_file(t.file.path);
    handmade_release(&t);
    *state = f;
    return 0;
}

static int make_packed(void **state)
{
    struct handmade t;
    struct file *f = malloc(sizeof *f);
    uint64_t before, after;
    small_trace(&t);
    handmade_kill_owner(&t);
    assert_int_equal(compact_file(t.file.path, &before, &after), 0);
    *f = read_file(t.file.path);
    handmade_release(&t);
    *state = f;
    return 0;
}

static int clear(void **state)
{
    struct file *f = *state;
    free(f->bytes);
    free(f);
    return 0;
}

/* ---- Trying ----------------------------------------------------------------------- */

static unsigned tried, refused;

static void try_bytes(const struct file *f, size_t size)
{
    struct trace *trace;
    const int rc = trace_open_bytes(f->bytes, size, &f->clock, &trace);
    tried++;
    refused += rc < 0;
    if (rc < 0)
        return;
    (void)small_use(trace);
    trace_free(trace);
}

static void start_counting(void)
{
    tried = refused = 0;
}

static void say(const char *what)
{
    print_message("%s: %u tried, %u refused\n", what, tried, refused);
    assert_true(tried > 100);
}

/* One bit of the byte, or all of them. */
static uint8_t changed(uint8_t old, struct prng *random)
{
    return old ^
           (prng_below(random, 3) ? (uint8_t)(1u << prng_below(random, 8)) : 0xff);
}

static void try_byte(struct file *f, size_t at, struct prng *random)
{
    const uint8_t old = f->bytes[at];
    if (EVERY > 1 && prng_below(random, EVERY))
        return;
    f->bytes[at] = changed(old, random);
    try_bytes(f, f->size);
    f->bytes[at] = old;
}

/* ---- Whole ------------------------------------------------------------------------ */

struct totals {
    double zones, total_ns, values;
    size_t nodes, lanes, events;
};

static int count_event(void *arg, const struct trace_event *e)
{
    (void)e;
    ++*(size_t *)arg;
    return 0;
}

static struct totals totals_of(const struct file *f)
{
    struct totals t = { 0 };
    struct trace *trace;
    assert_int_equal(trace_open_bytes(f->bytes, f->size, &f->clock, &trace), 0);
    assert_string_equal(trace_damage(trace), "");
    for (unsigned i = 0; i < trace_node_count(trace); i++)
        if (trace_node(trace, i)) {
            t.nodes++;
            t.zones += (double)trace_node(trace, i)->count;
            t.total_ns += trace_node(trace, i)->total_ns;
        }
    for (unsigned i = 0; i < trace_value_count(trace); i++)
        t.values += trace_value(trace, i)->sum;
    t.lanes = trace_lane_count(trace);
    assert_int_equal(trace_events(trace, count_event, &t.events), 0);
    trace_free(trace);
    return t;
}

static void raw_and_compacted_say_the_same(void **state)
{
    void *raw, *packed;
    (void)state;
    assert_int_equal(make_raw(&raw), 0);
    assert_int_equal(make_packed(&packed), 0);
    const struct totals a = totals_of(raw), b = totals_of(packed);
    assert_true(a.zones > 20 && a.events > 100 && a.lanes == 3);
    assert_true(a.zones == b.zones && a.total_ns == b.total_ns && a.values == b.values);
    assert_int_equal(a.nodes, b.nodes);
    assert_int_equal(a.lanes, b.lanes);
    assert_int_equal(a.events, b.events);
    assert_true(((struct file *)packed)->size < 16384);
    (void)clear(&raw);
    (void)clear(&packed);
}

/* ---- Cut off ---------------------------------------------------------------------- */

static void a_raw_file_cut_off_anywhere(void **state)
{
    const struct file *f = *state;
    start_counting();
    for (size_t size = 0; size < f->size; size += 512)
        try_bytes(f, size);
    for (size_t size = 0; size < 200; size++)
        try_bytes(f, size);
    say("raw, cut off");
}

static void a_compacted_file_cut_off_anywhere(void **state)
{
    const struct file *f = *state;
    start_counting();
    for (size_t size = 0; size < f->size; size++)
        try_bytes(f, size);
    say("compacted, cut off");
}

/* ---- Changed ---------------------------------------------------------------------- */

static void try_range(struct file *f, size_t from, size_t to, struct prng *random)
{
    for (size_t at = from; at < to && at < f->size; at++)
        try_byte(f, at, random);
}

/* Bytes that are zero but mean something; the others are found by not being zero. */
static void try_zeros(struct file *f, struct prng *random)
{
    const struct trace_head *h = (const struct trace_head *)f->bytes;
    for (unsigned i = 0; i < 6; i++) { /* the next entries of each directory */
        const uint32_t *dirs[] = { h->table, h->sites,  h->strings, h->lanes,
                                   h->nodes, h->chunks, h->values };
        const size_t at = (size_t)((const uint8_t *)(dirs[i] + 1) - f->bytes);
        try_range(f, at, at + 16, random);
    }
    try_range(f, BLOCK_SIZE, BLOCK_SIZE + sizeof(struct trace_live), random);
    const size_t nodes = (size_t)h->nodes[0] * BLOCK_SIZE;
    try_range(f, nodes + 36 * (size_t)512, nodes + 37 * (size_t)512, random);
    try_range(f, nodes + FIRST_NODE * (size_t)512,
              nodes + (FIRST_NODE + 1) * (size_t)512, random);
    const size_t lanes = (size_t)h->lanes[0] * BLOCK_SIZE;
    try_range(f, lanes + offsetof(struct lane_cell, seq),
              lanes + offsetof(struct lane_cell, frames) + 64, random);
    const size_t chunks = (size_t)h->chunks[0] * BLOCK_SIZE;
    try_range(f, chunks, chunks + 64, random);
    const size_t values = (size_t)h->values[0] * BLOCK_SIZE;
    try_range(f, values, values + sizeof(struct value_cell), random);
}

/* PAD fills most of a sealed block: a few of them are enough. */
static bool is_filler(const struct file *f, size_t at)
{
    uint64_t word;
    memcpy(&word, f->bytes + at / 8 * 8, sizeof word);
    return word == 0 || (word == TAG_PAD && at % 4096 >= 16);
}

static void any_byte_of_a_raw_file_changed(void **state)
{
    struct file *f = *state;
    struct prng random;
    prng_init(&random, 5);
    start_counting();
    try_zeros(f, &random);
    for (size_t at = 0; at < f->size; at++)
        if (f->bytes[at] && !is_filler(f, at))
            try_byte(f, at, &random);
    say("raw, changed");
}

static void any_byte_of_a_compacted_file_changed(void **state)
{
    struct file *f = *state;
    struct prng random;
    prng_init(&random, 6);
    start_counting();
    try_range(f, 0, f->size, &random);
    say("compacted, changed");
}

static void fix_crc(struct file *f, size_t section)
{
    struct pack_section s;
    memcpy(&s, f->bytes + section, sizeof s);
    s.crc = crc32c(0, f->bytes + section + sizeof s, (size_t)s.len);
    memcpy(f->bytes + section, &s, sizeof s);
}

static void any_byte_of_a_compacted_file_changed_behind_its_crc(void **state)
{
    struct file *f = *state;
    struct prng random;
    struct pack_section s;
    prng_init(&random, 7);
    start_counting();
    for (size_t at = sizeof(struct pack_head); at + sizeof s <= f->size;
         at += sizeof s + ((size_t)(s.len + 7) & ~(size_t)7)) {
        memcpy(&s, f->bytes + at, sizeof s);
        for (size_t i = at + sizeof s; i < at + sizeof s + s.len; i++) {
            const uint8_t old = f->bytes[i];
            if (EVERY > 1 && prng_below(&random, EVERY))
                continue;
            f->bytes[i] = changed(old, &random);
            fix_crc(f, at);
            try_bytes(f, f->size);
            f->bytes[i] = old;
        }
        fix_crc(f, at);
    }
    say("compacted, changed behind the CRC");
}

/* A changed block of events does not pass for what was recorded. */
static void changed_events_are_noticed(void **state)
{
    struct file *f = *state;
    struct pack_section s;
    struct trace *trace;
    size_t at = sizeof(struct pack_head), events = 0, all = 0;
    for (memcpy(&s, f->bytes + at, sizeof s); s.kind != PACK_EVENTS;
         memcpy(&s, f->bytes + at, sizeof s))
        at += sizeof s + ((size_t)(s.len + 7) & ~(size_t)7);
    assert_int_equal(trace_open_bytes(f->bytes, f->size, &f->clock, &trace), 0);
    assert_int_equal(trace_events(trace, count_event, &all), 0);
    trace_free(trace);
    f->bytes[at + sizeof s + s.len - 1] ^= 1; /* the last tick, say */
    assert_int_equal(trace_open_bytes(f->bytes, f->size, &f->clock, &trace), 0);
    assert_int_equal(trace_events(trace, count_event, &events), 0);
    assert_true(events < all);
    trace_free(trace);
}

int main(void)
{
#define RAW(test)    cmocka_unit_test_setup_teardown(test, make_raw, clear)
#define PACKED(test) cmocka_unit_test_setup_teardown(test, make_packed, clear)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(raw_and_compacted_say_the_same),
        RAW(a_raw_file_cut_off_anywhere),
        PACKED(a_compacted_file_cut_off_anywhere),
        RAW(any_byte_of_a_raw_file_changed),
        PACKED(any_byte_of_a_compacted_file_changed),
        PACKED(any_byte_of_a_compacted_file_changed_behind_its_crc),
        PACKED(changed_events_are_noticed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
