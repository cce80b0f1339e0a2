/* nearest.c: which vectors lie nearest, exactly. */
#include "search/nearest.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

/* ---- One plane ---------------------------------------------------------------------- */

uint32_t plane_distance_scalar(const int8_t *a, const int8_t *b)
{
    int32_t sum = 0;
    for (int i = 0; i < EMBED_PLANE; i++) {
        const int32_t d = a[i] - b[i];
        sum += d * d;
    }
    return (uint32_t)sum;
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) static uint32_t distance_avx2(const int8_t *a,
                                                              const int8_t *b)
{
    __m256i sum = _mm256_setzero_si256();
    for (int i = 0; i < EMBED_PLANE; i += 16) {
        const __m256i x = _mm256_cvtepi8_epi16(
            _mm_loadu_si128((const __m128i *)(const void *)(a + i)));
        const __m256i y = _mm256_cvtepi8_epi16(
            _mm_loadu_si128((const __m128i *)(const void *)(b + i)));
        const __m256i d = _mm256_sub_epi16(x, y);
        sum = _mm256_add_epi32(sum, _mm256_madd_epi16(d, d));
    }
    __m128i s = _mm_add_epi32(_mm256_castsi256_si128(sum),
                              _mm256_extracti128_si256(sum, 1));
    s = _mm_add_epi32(s, _mm_shuffle_epi32(s, 0x4e));
    s = _mm_add_epi32(s, _mm_shuffle_epi32(s, 0xb1));
    return (uint32_t)_mm_cvtsi128_si32(s);
}
#elif defined(__aarch64__)
static uint32_t distance_neon(const int8_t *a, const int8_t *b)
{
    int32x4_t sum = vdupq_n_s32(0);
    for (int i = 0; i < EMBED_PLANE; i += 8) {
        const int16x8_t d = vsubl_s8(vld1_s8(a + i), vld1_s8(b + i));
        sum = vmlal_s16(sum, vget_low_s16(d), vget_low_s16(d));
        sum = vmlal_s16(sum, vget_high_s16(d), vget_high_s16(d));
    }
    return (uint32_t)vaddvq_s32(sum);
}
#endif

plane_distance_fn plane_distance(void)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2"))
        return distance_avx2;
#elif defined(__aarch64__)
    return distance_neon;
#endif
    return plane_distance_scalar;
}

const char *plane_distance_name(void)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2"))
        return "avx2";
#elif defined(__aarch64__)
    return "neon";
#endif
    return "scalar";
}

/* ---- The best so far ---------------------------------------------------------------- */

int nearest_init(struct nearest *n, size_t most)
{
    *n = (struct nearest){ .most = most };
    n->heap = calloc(most ? most : 1, sizeof *n->heap);
    return n->heap ? 0 : -ENOMEM;
}

void nearest_release(struct nearest *n)
{
    free(n->heap);
    *n = (struct nearest){ .heap = NULL };
}

static int farther(const struct neighbour *a, const struct neighbour *b)
{
    return a->distance != b->distance ? a->distance > b->distance : a->seq > b->seq;
}

static void swap(struct neighbour *a, struct neighbour *b)
{
    const struct neighbour t = *a;
    *a = *b;
    *b = t;
}

static void sink(struct nearest *n, size_t at)
{
    for (;;) {
        size_t worst = at;
        for (size_t child = 2 * at + 1; child <= 2 * at + 2; child++)
            if (child < n->count && farther(&n->heap[child], &n->heap[worst]))
                worst = child;
        if (worst == at)
            return;
        swap(&n->heap[at], &n->heap[worst]);
        at = worst;
    }
}

static void rise(struct nearest *n, size_t at)
{
    while (at > 0 && farther(&n->heap[at], &n->heap[(at - 1) / 2])) {
        swap(&n->heap[at], &n->heap[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
}

static void offer(struct nearest *n, const struct neighbour *candidate)
{
    if (n->count < n->most) {
        n->heap[n->count] = *candidate;
        rise(n, n->count++);
    } else if (n->most && farther(&n->heap[0], candidate)) {
        n->heap[0] = *candidate;
        sink(n, 0);
    }
}

static uint32_t limit(const struct nearest *n)
{
    return n->count < n->most ? UINT32_MAX : n->most ? n->heap[0].distance : 0;
}

static int nearest_first(const void *a, const void *b)
{
    const struct neighbour *x = a, *y = b;
    if (x->distance != y->distance)
        return x->distance > y->distance ? 1 : -1;
    return (x->seq > y->seq) - (x->seq < y->seq);
}

void nearest_sort(struct nearest *n)
{
    if (n->count)
        qsort(n->heap, n->count, sizeof *n->heap, nearest_first);
}

/* ---- Scanning ----------------------------------------------------------------------- */

struct scan {
    struct nearest *n;
    const int8_t *query, *planes;
    uint32_t rows, segment;
    const int64_t *seq;
    plane_distance_fn distance;
};

/* What the first plane let through. */
static void look_closer(struct scan *s, uint32_t row, uint32_t first)
{
    uint32_t sum = first;
    for (unsigned p = 1; p < EMBED_PLANES; p++) {
        sum += s->distance(s->planes + ((size_t)p * s->rows + row) * EMBED_PLANE,
                           s->query + p * EMBED_PLANE);
        if (sum > limit(s->n))
            return;
    }
    offer(s->n,
          &(struct neighbour){
              .distance = sum, .segment = s->segment, .row = row, .seq = s->seq[row] });
}

static void scan_word(struct scan *s, uint32_t first_row, uint64_t bits)
{
    while (bits) {
        const uint32_t row = first_row + (uint32_t)__builtin_ctzll(bits);
        bits &= bits - 1;
        const uint32_t d = s->distance(s->planes + (size_t)row * EMBED_PLANE, s->query);
        if (d <= limit(s->n))
            look_closer(s, row, d);
    }
}

void nearest_scan(struct nearest *n, const int8_t query[EMBED_DIMS],
                  const int8_t *planes, uint32_t rows, const uint64_t *wanted,
                  uint32_t segment, const int64_t *seq)
{
    struct scan s = { n, query, planes, rows, segment, seq, plane_distance() };
    for (uint32_t at = 0; at < rows; at += 64) {
        uint64_t bits = wanted ? wanted[at / 64] : UINT64_MAX;
        if (rows - at < 64)
            bits &= (UINT64_C(1) << (rows - at)) - 1;
        scan_word(&s, at, bits);
    }
}
