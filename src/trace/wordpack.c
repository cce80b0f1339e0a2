/* wordpack.c: see wordpack.h. Encoder and decoder share the prediction, so what one
 * predicts the other does; the decoder treats its input as hostile. */
#include "trace/wordpack.h"

#include <string.h>

#include "base/error.h"
#include "trace/format.h"

enum { CODE_NEXT = 0, CODE_END = 1, CODE_TAG = 2, CODE_RAW = 3, STACK = 64 };

struct predictor {
    uint16_t follows[256]; /* by the low byte of the previous tag, mixed */
    uint16_t stack[STACK];
    unsigned depth;
    uint16_t previous;
    uint64_t ticks; /* low 48 bits */
};

static unsigned context(const struct predictor *p)
{
    return (p->previous ^ p->previous >> 8 ^ p->depth * 37) & 255;
}

static void learn(struct predictor *p, uint16_t tag)
{
    p->follows[context(p)] = tag;
    p->previous = tag;
    if (tag < 16)
        return;
    if (tag & 1) {
        if (p->depth > 0)
            p->depth--;
    } else {
        if (p->depth < STACK)
            p->stack[p->depth] = tag;
        p->depth++;
    }
}

/* The tag that ends the innermost zone; 0 when unknown. */
static uint16_t end_of_top(const struct predictor *p)
{
    return p->depth > 0 && p->depth <= STACK ? p->stack[p->depth - 1] | 1 : 0;
}

static const uint8_t WIDTH[4] = { 1, 2, 3, 5 };
static const uint64_t MASK48 = 0xffffffffffffULL;

static unsigned width_class(uint64_t dt)
{
    return dt < 1u << 8 ? 0 : dt < 1u << 16 ? 1 : dt < 1u << 24 ? 2 : 3;
}

static size_t put(uint8_t *out, uint64_t value, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++)
        out[i] = (uint8_t)(value >> 8 * i);
    return bytes;
}

static uint64_t get(const uint8_t *in, unsigned bytes)
{
    uint64_t value = 0;
    for (unsigned i = 0; i < bytes; i++)
        value |= (uint64_t)in[i] << 8 * i;
    return value;
}

/* After a word that was stored whole: a step back in time is a handler's, and the next
 * word is compared with the one before it. */
static void learn_raw(struct predictor *p, uint64_t w)
{
    if ((w & 0xffff) == TAG_CONT)
        return;
    if (!((((w >> 16) - p->ticks) & MASK48) >> 47))
        p->ticks = w >> 16;
    learn(p, w & 0xffff);
}

/* Writes the data of one word; returns its control nibble. */
static unsigned encode_word(struct predictor *p, uint64_t w, uint8_t *data, size_t *len)
{
    uint16_t tag = w & 0xffff;
    uint64_t dt = ((w >> 16) - p->ticks) & MASK48;
    if (tag == TAG_CONT || dt >> 40) { /* payload, a step back, or one of minutes */
        *len += put(data + *len, w, 8);
        learn_raw(p, w);
        return CODE_RAW;
    }
    unsigned code = tag == p->follows[context(p)] ? CODE_NEXT
                    : tag == end_of_top(p)        ? CODE_END
                                                  : CODE_TAG;
    unsigned width = width_class(dt);
    *len += put(data + *len, dt, WIDTH[width]);
    if (code == CODE_TAG)
        *len += put(data + *len, tag, 2);
    p->ticks = w >> 16;
    learn(p, tag);
    return code | width << 2;
}

size_t wordpack_encode(const uint64_t *words, size_t count, uint64_t base_ticks,
                       uint8_t *out, size_t *ret_kept)
{
    struct predictor p = { .ticks = base_ticks & MASK48 };
    size_t kept = 0, len = 0;
    for (size_t i = 0; i < count; i++)
        kept += words[i] != 0 && (words[i] & 0xffff) != TAG_PAD;
    uint8_t *data = out + (kept + 1) / 2;
    memset(out, 0, (kept + 1) / 2);
    for (size_t i = 0, n = 0; i < count; i++) {
        if (words[i] == 0 || (words[i] & 0xffff) == TAG_PAD)
            continue;
        unsigned nibble = encode_word(&p, words[i], data, &len);
        out[n / 2] |= (uint8_t)(nibble << 4 * (n % 2));
        n++;
    }
    *ret_kept = kept;
    return (kept + 1) / 2 + len;
}

static uint64_t decode_word(struct predictor *p, unsigned nibble, const uint8_t *in)
{
    unsigned code = nibble & 3, width = WIDTH[nibble >> 2];
    if (code == CODE_RAW) {
        uint64_t w = get(in, 8);
        learn_raw(p, w);
        return w;
    }
    p->ticks = (p->ticks + get(in, width)) & MASK48;
    uint16_t tag = code == CODE_NEXT  ? p->follows[context(p)]
                   : code == CODE_END ? end_of_top(p)
                                      : (uint16_t)get(in + width, 2);
    learn(p, tag);
    return p->ticks << 16 | tag;
}

int wordpack_decode(const uint8_t *in, size_t len, size_t kept, uint64_t base_ticks,
                    uint64_t *out)
{
    struct predictor p = { .ticks = base_ticks & MASK48 };
    size_t controls = (kept + 1) / 2, at = controls;
    if (kept > EVENTS_WORDS || controls > len)
        return SONDE_E_FORMAT;
    for (size_t i = 0; i < kept; i++) {
        unsigned nibble = in[i / 2] >> 4 * (i % 2) & 15, code = nibble & 3;
        size_t need = code == CODE_RAW
                          ? 8
                          : WIDTH[nibble >> 2] + (code == CODE_TAG ? 2u : 0u);
        if (need > len - at)
            return SONDE_E_FORMAT;
        out[i] = decode_word(&p, nibble, in + at);
        at += need;
    }
    return at == len ? 0 : SONDE_E_FORMAT;
}
