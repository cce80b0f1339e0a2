/* wordpack_test.c: packed words come back bit for bit, hostile bytes do no harm, and
 * the loops people write take at most 7 bytes a zone. */
#include "trace/wordpack.h"

#include "base/error.h"
#include "handmade.h"
#include "num/prng.h"

/* ---- There and back --------------------------------------------------------------- */

/* Packs, unpacks, compares; returns the packed length. The output has exactly the
 * room the header promises, so that AddressSanitizer watches it. */
static size_t round_trip(const uint64_t *words, size_t count, uint64_t base)
{
    uint8_t *packed = malloc(count * WORDPACK_FACTOR + 1);
    uint64_t *out = malloc(count * sizeof *out + 1);
    size_t kept = 0, want = 0;
    const size_t len = wordpack_encode(words, count, base, packed, &kept);
    uint8_t *tight = malloc(len + 1);
    memcpy(tight, packed, len);
    assert_true(len <= count * WORDPACK_FACTOR + 1);
    assert_int_equal(wordpack_decode(tight, len, kept, base, out), 0);
    for (size_t i = 0; i < count; i++) {
        if (words[i] == 0 || (words[i] & 0xffff) == TAG_PAD)
            continue;
        assert_true(want < kept);
        assert_int_equal(out[want], words[i]);
        want++;
    }
    assert_int_equal(want, kept);
    free(packed);
    free(tight);
    free(out);
    return len;
}

static void nothing_packs_to_nothing(void **state)
{
    (void)state;
    const uint64_t words[4] = { 0, TAG_PAD, 0, 5ULL << 16 | TAG_PAD };
    assert_int_equal(round_trip(words, 0, 7), 0);
    assert_int_equal(round_trip(words, 4, 7), 0);
}

static void random_words_come_back(void **state)
{
    (void)state;
    struct prng random;
    uint64_t words[EVENTS_WORDS];
    prng_init(&random, 1);
    for (unsigned round = 0; round < 60; round++) {
        const size_t count = prng_below(&random, EVENTS_WORDS + 1);
        for (size_t i = 0; i < count; i++) {
            words[i] = prng_next(&random);
            if (round % 3 == 1) /* small tags: all the kinds, zero and PAD among them */
                words[i] = (words[i] & ~0xffffULL) | prng_below(&random, 40);
            if (prng_below(&random, 10) == 0)
                words[i] = 0;
        }
        (void)round_trip(words, count, prng_next(&random));
    }
}

/* Ticks forward by every size of step, small steps back, and running over. */
static void steps_of_all_sizes_come_back(void **state)
{
    (void)state;
    struct prng random;
    struct words w = { 0 };
    uint64_t now = (1ULL << 48) - 1000;
    prng_init(&random, 2);
    for (unsigned bits = 0; bits < 48; bits++)
        for (unsigned i = 0; i < 40; i++) {
            now += (1ULL << bits) - prng_below(&random, 2);
            words_begin(&w, SITE(prng_below(&random, 5)), now);
            words_end(&w, SITE(prng_below(&random, 5)), now - prng_below(&random, 90));
        }
    (void)round_trip(w.data, w.count, (1ULL << 48) - 1000);
    words_release(&w);
}

static void deep_nesting_comes_back(void **state)
{
    (void)state;
    struct words w = { 0 };
    uint64_t now = 1000;
    for (unsigned i = 0; i < 2000; i++)
        words_begin(&w, SITE(i % 300), now += 10);
    for (unsigned i = 2000; i-- > 0;)
        words_end(&w, SITE(i % 300), now += 10);
    for (unsigned i = 0; i < 50; i++)
        words_end(&w, SITE(1), now += 10); /* more ends than begins */
    (void)round_trip(w.data, w.count, 1000);
    words_release(&w);
}

static void longer_records_come_back(void **state)
{
    (void)state;
    struct words w = { 0 };
    uint64_t now = 1000;
    for (unsigned i = 0; i < 500; i++) {
        words_begin(&w, SITE(0), now += 100);
        words_step(&w, 32, now += 10);
        words_value(&w, SITE(4), VALUE_METRIC, 1.0 / (i + 1), now += 10);
        words_op(&w, 123456, 1, 2, UINT32_MAX, now += 10);
        words_span(&w, SITE(5), SPAN_END, i, 10, 20, now += 10);
        words_end(&w, SITE(0), now += 10000);
    }
    (void)round_trip(w.data, w.count, 900);
    words_release(&w);
}

/* ---- Size ------------------------------------------------------------------------- */

/* Ticks are those of a 2.5 GHz counter; every time varies by up to ±20 %. */
#define US 2500ULL
#define MS 2500000ULL

struct loop {
    struct words words;
    struct prng random;
    uint64_t now;
    unsigned zones;
};

static void pass(struct loop *l, uint64_t ticks)
{
    l->now += ticks - ticks / 5 + prng_below(&l->random, 2 * ticks / 5 + 1);
}

static void leaf(struct loop *l, unsigned site, uint64_t ticks)
{
    pass(l, 40);
    words_begin(&l->words, site, l->now);
    pass(l, ticks);
    words_end(&l->words, site, l->now);
    l->zones++;
}

static void tight_loop(struct loop *l)
{
    leaf(l, SITE(0), 60);
}

/* Eight items decoded and augmented in a loading zone. */
static void loader_loop(struct loop *l)
{
    words_begin(&l->words, SITE(0), l->now += 300);
    for (unsigned i = 0; i < 8; i++) {
        leaf(l, SITE(1), 900 * US);
        leaf(l, SITE(2), 120 * US);
    }
    leaf(l, SITE(3), 50 * US);
    words_end(&l->words, SITE(0), l->now += 200);
    l->zones++;
}

/* Forward and backward over 12 layers of 3 zones each, as on a GPU host: tens of
 * microseconds a zone. */
static void layers_loop(struct loop *l)
{
    for (unsigned pass_number = 0; pass_number < 2; pass_number++) {
        words_begin(&l->words, SITE(10 + pass_number), l->now += 500);
        for (unsigned layer = 0; layer < 12; layer++)
            for (unsigned part = 0; part < 3; part++)
                leaf(l, SITE(20 + part), (20 + 15 * part) * US);
        words_end(&l->words, SITE(10 + pass_number), l->now += 400);
        l->zones++;
    }
    leaf(l, SITE(30), 3 * MS);
}

/* A small model on a CPU: few zones, all of them long. */
static void slow_loop(struct loop *l)
{
    static const unsigned ms[4] = { 12, 45, 90, 15 };
    for (unsigned i = 0; i < 4; i++)
        leaf(l, SITE(i), ms[i] * MS);
}

/* Short zones with an evaluation of half an hour now and then. */
static void paused_loop(struct loop *l)
{
    leaf(l, SITE(9), 30 * 60 * 1000 * MS);
    for (unsigned i = 0; i < 100; i++)
        leaf(l, SITE(0), 10 * US);
}

/* Calls of functions picked at random, four deep: nothing to predict. */
static void random_loop(struct loop *l)
{
    const unsigned site = SITE(prng_below(&l->random, 40));
    pass(l, 500);
    words_begin(&l->words, site, l->now);
    if (prng_below(&l->random, 4))
        leaf(l, SITE(prng_below(&l->random, 40)), 2 * US);
    pass(l, 500);
    words_end(&l->words, site, l->now);
    l->zones++;
}

static double bytes_per_zone(void (*round)(struct loop *))
{
    struct loop l = { .now = 1ULL << 45 };
    prng_init(&l.random, 3);
    while (l.words.count < EVENTS_WORDS - 256)
        round(&l);
    const size_t len = round_trip(l.words.data, l.words.count, 1ULL << 45);
    words_release(&l.words);
    return (double)len / l.zones;
}

static void a_zone_of_a_common_loop_takes_at_most_seven_bytes(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        void (*round)(struct loop *);
    } loops[] = { { "tight", tight_loop },   { "loader", loader_loop },
                  { "layers", layers_loop }, { "slow", slow_loop },
                  { "paused", paused_loop }, { "random", random_loop } };
    double worst = 0;
    for (size_t i = 0; i < sizeof loops / sizeof loops[0]; i++) {
        const double bytes = bytes_per_zone(loops[i].round);
        print_message("%s: %.2f bytes a zone\n", loops[i].name, bytes);
        worst = bytes > worst ? bytes : worst;
    }
    assert_true(worst < 7.01); /* 7, and a block's first naming of its sites */
}

/* ---- Hostile input ---------------------------------------------------------------- */

static int decode_exactly(const uint8_t *bytes, size_t len, size_t kept)
{
    uint8_t *in = malloc(len ? len : 1); /* AddressSanitizer sees a byte too far */
    uint64_t *out = malloc(EVENTS_WORDS * sizeof *out);
    memcpy(in, bytes, len);
    const int rc = wordpack_decode(in, len, kept, 12345, out);
    assert_true(rc == 0 || rc == SONDE_E_FORMAT);
    free(in);
    free(out);
    return rc;
}

static void every_cut_and_every_wrong_count_is_refused(void **state)
{
    (void)state;
    struct words w = { 0 };
    for (unsigned i = 0; i < 40; i++) {
        words_zone(&w, SITE(i % 3), 1000 + 100 * i, 1000 + 90 * i + (i << i % 20));
        words_value(&w, SITE(4), VALUE_METRIC, i, 1000 + 100 * i);
    }
    uint8_t packed[2048];
    size_t kept;
    const size_t len = wordpack_encode(w.data, w.count, 12345, packed, &kept);
    assert_int_equal(decode_exactly(packed, len, kept), 0);
    for (size_t cut = 0; cut < len; cut++)
        assert_int_equal(decode_exactly(packed, cut, kept), SONDE_E_FORMAT);
    packed[len] = 0;
    assert_int_equal(decode_exactly(packed, len + 1, kept), SONDE_E_FORMAT);
    assert_int_equal(decode_exactly(packed, len, EVENTS_WORDS + 1), SONDE_E_FORMAT);
    assert_int_equal(decode_exactly(packed, len, SIZE_MAX), SONDE_E_FORMAT);
    words_release(&w);
}

/* All would be well with them, but for the room they need. */
static void more_words_than_a_block_holds_are_refused(void **state)
{
    (void)state;
    enum { MANY = EVENTS_WORDS + 2 };
    uint8_t *bytes = calloc(MANY, 2); /* each word: a nibble 0 and a byte 0 */
    assert_int_equal(
        decode_exactly(bytes, EVENTS_WORDS / 2 + EVENTS_WORDS, EVENTS_WORDS), 0);
    assert_int_equal(decode_exactly(bytes, MANY / 2 + MANY, MANY), SONDE_E_FORMAT);
    assert_int_equal(decode_exactly(bytes, MANY / 2 + MANY - 1, MANY - 1),
                     SONDE_E_FORMAT);
    free(bytes);
}

static void noise_is_decoded_or_refused(void **state)
{
    (void)state;
    struct prng random;
    uint8_t bytes[600];
    unsigned decoded = 0;
    prng_init(&random, 4);
    for (unsigned round = 0; round < 20000; round++) {
        const size_t len = prng_below(&random, sizeof bytes);
        for (size_t i = 0; i < len; i++)
            bytes[i] = (uint8_t)prng_next(&random);
        decoded += decode_exactly(bytes, len, prng_below(&random, len + 2)) == 0;
    }
    print_message("%u of 20000 made sense\n", decoded);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_packs_to_nothing),
        cmocka_unit_test(random_words_come_back),
        cmocka_unit_test(steps_of_all_sizes_come_back),
        cmocka_unit_test(deep_nesting_comes_back),
        cmocka_unit_test(longer_records_come_back),
        cmocka_unit_test(a_zone_of_a_common_loop_takes_at_most_seven_bytes),
        cmocka_unit_test(every_cut_and_every_wrong_count_is_refused),
        cmocka_unit_test(more_words_than_a_block_holds_are_refused),
        cmocka_unit_test(noise_is_decoded_or_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
