/* embed.c: an experiment as 256 signed bytes. */
#include "search/embed.h"

#include <math.h>
#include <string.h>

/* ---- Numbers ------------------------------------------------------------------------ */

/* Squaring x in [1, 2) doubles its logarithm: when the square reaches 2, the next bit
 * of the logarithm is 1. Integers only: libm's log2 differs in the last bit from one
 * machine to the next. */
int64_t embed_log2(double x)
{
    int exponent;
    const double half = frexp(x, &exponent); /* [0.5, 1) */
    uint64_t m = (uint64_t)ldexp(half, 64);  /* [2^63, 2^64): x / 2^(e−1) in Q1.63 */
    int64_t log = (int64_t)(exponent - 1) * (INT64_C(1) << 32);
    for (int bit = 31; bit >= 0; bit--) {
        const unsigned __int128 square = (unsigned __int128)m * m; /* Q2.126 */
        if (square >> 127) {
            log |= INT64_C(1) << bit;
            m = (uint64_t)(square >> 64);
        } else {
            m = (uint64_t)(square >> 63);
        }
    }
    return log;
}

static uint32_t place_log(const struct embed_name *name, double x)
{
    const int64_t low = embed_log2(name->low);
    const int64_t high = embed_log2(name->high);
    const int64_t at = embed_log2(x);
    return (uint32_t)(((__int128)(at - low) << 16) / (high - low));
}

uint32_t embed_place(const struct embed_name *name, double x)
{
    if (isnan(x))
        return 0;
    if (x <= name->low)
        return 0;
    if (x >= name->high)
        return 65536;
    if (name->is_log)
        return place_log(name, x);
    /* Halves, for the range of doubles is twice the largest. */
    const double range = name->high / 2 - name->low / 2;
    const double share = (x / 2 - name->low / 2) / range;
    return (uint32_t)(share * 65536.0);
}

/* Byte i of d: hot below the place, cold above, part hot where it lies. */
static int8_t thermometer(uint32_t place, unsigned i, unsigned d)
{
    int64_t heat = (int64_t)place * d - (int64_t)i * 65536;
    heat = heat < 0 ? 0 : heat > 65536 ? 65536 : heat;
    return (int8_t)((heat * (2 * EMBED_HOT) + 32768) / 65536 - EMBED_HOT);
}

/* ---- Words -------------------------------------------------------------------------- */

static unsigned largest_power(unsigned d)
{
    unsigned p = 1;
    while (p * 2 <= d)
        p *= 2;
    return p;
}

/* FNV-1a: words beyond the Hadamard rows get signs from a hash, which differ in half
 * the bytes on average. */
static uint64_t hash_word(const char *text, size_t len)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < len; i++)
        h = (h ^ (unsigned char)text[i]) * UINT64_C(0x100000001b3);
    h ^= h >> 32;
    h *= UINT64_C(0x9e3779b97f4a7c15);
    return h ^ h >> 29;
}

static int find_word(const struct embed_name *name, const char *text, size_t len)
{
    size_t low = 0, high = name->word_count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const size_t n = name->word_lens[middle];
        int order = memcmp(text, name->words[middle], len < n ? len : n);
        if (order == 0)
            order = (len > n) - (len < n);
        if (order == 0)
            return (int)middle;
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return -1;
}

static int8_t word_byte(const struct embed_name *name, int word, uint64_t hash,
                        unsigned i, unsigned d)
{
    const unsigned rows = largest_power(d);
    bool minus;
    if (word >= 0 && name->word_count <= rows)
        minus = __builtin_parity((unsigned)word & i % rows);
    else
        minus = (hash >> (i % 64) & 1) != 0;
    return (int8_t)(minus ? -EMBED_WORD : EMBED_WORD);
}

/* ---- One value ---------------------------------------------------------------------- */

/* Numbers and truths that happen to stand where texts do are texts too. */
static size_t spell(const struct value *v, char ret_text[32], const char **ret_word)
{
    *ret_word = ret_text;
    if (v->type == VALUE_TEXT) {
        *ret_word = v->text;
        return v->len;
    }
    if (v->type == VALUE_BOOL) {
        *ret_word = v->integer ? "true" : "false";
        return strlen(*ret_word);
    }
    /* Its bits: printing a double would cost more and say the same. */
    memcpy(ret_text, &v->number, sizeof v->number);
    return sizeof v->number;
}

static bool is_number(const struct value *v)
{
    return (v->type == VALUE_INT || v->type == VALUE_FLOAT) && !isnan(v->number);
}

/* The d bytes of one name into `code`; false: nothing known, they are zero. */
static bool encode(const struct embed_name *name, const struct value *v, unsigned d,
                   int8_t *code)
{
    if (v->type == VALUE_NONE || (!name->is_text && !is_number(v)))
        return false;
    if (!name->is_text) {
        const uint32_t place = embed_place(name, v->number);
        for (unsigned i = 0; i < d; i++)
            code[i] = thermometer(place, i, d);
        return true;
    }
    char text[32];
    const char *word;
    const size_t len = spell(v, text, &word);
    const int number = find_word(name, word, len);
    const uint64_t hash = hash_word(word, len);
    for (unsigned i = 0; i < d; i++)
        code[i] = word_byte(name, number, hash, i, d);
    return true;
}

/* Byte i of name k in its plane. */
static unsigned slot(unsigned k, unsigned i, unsigned d)
{
    return k * (d / EMBED_PLANES) + i / EMBED_PLANES;
}

/* ---- Whole segments ----------------------------------------------------------------- */

/* Segments repeat values: the code of the last one is kept. */
static void put_rows(const struct embed_space *space, unsigned k,
                     const struct column *column, uint32_t rows, int8_t *out)
{
    const unsigned d = space->dims;
    int8_t code[EMBED_DIMS];
    for (uint32_t n = 0; n < column->count; n++) {
        const uint32_t row = column->rows ? column->rows[n] : n;
        const struct value v = column_value(column, n);
        if (row >= rows || !encode(&space->names[k], &v, d, code))
            continue;
        for (unsigned p = 0; p < EMBED_PLANES; p++) {
            int8_t *at = out + ((size_t)p * rows + row) * EMBED_PLANE +
                         k * (d / EMBED_PLANES);
            for (unsigned i = p; i < d; i += EMBED_PLANES)
                *at++ = code[i];
        }
    }
}

void embed_segment(const struct embed_space *space, const struct segment *segment,
                   int8_t *out)
{
    const uint32_t rows = segment->head->rows;
    memset(out, 0, (size_t)rows * EMBED_DIMS);
    for (unsigned k = 0; k < space->count; k++) {
        struct column column;
        if (segment_find(segment, space->names[k].name, space->names[k].len, &column))
            put_rows(space, k, &column, rows, out);
    }
}

void embed_row(const struct embed_space *space, const struct segment *segment,
               uint32_t row, int8_t ret_vector[EMBED_DIMS])
{
    const unsigned d = space->dims;
    int8_t code[EMBED_DIMS];
    memset(ret_vector, 0, EMBED_DIMS);
    for (unsigned k = 0; k < space->count; k++) {
        struct column column;
        if (!segment_find(segment, space->names[k].name, space->names[k].len, &column))
            continue;
        const struct value v = column_at(&column, row);
        if (!encode(&space->names[k], &v, d, code))
            continue;
        for (unsigned i = 0; i < d; i++)
            ret_vector[i % EMBED_PLANES * EMBED_PLANE + slot(k, i, d)] = code[i];
    }
}

uint32_t embed_scale(const struct embed_space *space)
{
    return (uint32_t)space->count * space->dims * (2 * EMBED_HOT) * (2 * EMBED_HOT);
}
