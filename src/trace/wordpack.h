/* wordpack.h: event words in fewer bytes, exactly.
 *
 * Per word one nibble of control and a few bytes of data:
 *
 *     control  bits 0–1: what    0 the tag that followed the previous tag last time
 *                                1 the end of the innermost open zone
 *                                2 another tag: 2 bytes in the data
 *                                3 the whole word: 8 bytes in the data
 *              bits 2–3: bytes of the tick difference in the data: 1, 2, 3 or 5
 *
 * Nibbles come first (low half first), then the data. Zero and PAD words are left
 * out. A zone in a steady loop takes 1 + 1–3 + 1–3 bytes. */
#ifndef SONDE_TRACE_WORDPACK_H
#define SONDE_TRACE_WORDPACK_H

#include <stddef.h>
#include <stdint.h>

enum {
    /* Worst case of `count` words. */
    WORDPACK_FACTOR = 9, /* bytes per word, plus one */
};
/* Packs words of one block; returns the bytes written into out (room for
 * count × 9 + 1) and the words kept in *ret_kept. */
size_t wordpack_encode(const uint64_t *words, size_t count, uint64_t base_ticks,
                       uint8_t *out, size_t *ret_kept);
/* Unpacks `kept` words into out. Returns 0, or E_FORMAT. */
int wordpack_decode(const uint8_t *in, size_t len, size_t kept, uint64_t base_ticks,
                    uint64_t *out);

#endif
