/* wordpack_fuzz.c: packed words, hostile ones and our own.
 *
 * First byte even: two bytes of count, then packed words to decode. What they mean is
 * packed again and must come back. Odd: the rest are words, to be packed and to come
 * back. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "trace/format.h"
#include "trace/wordpack.h"

static void check(int good)
{
    if (!good)
        abort();
}

static void round_trip(const uint64_t *words, size_t count, uint64_t base)
{
    uint8_t *packed = malloc(count * WORDPACK_FACTOR + 1);
    uint64_t *out = malloc(count * sizeof *out + 1);
    size_t kept, at = 0;
    const size_t len = wordpack_encode(words, count, base, packed, &kept);
    check(len <= count * WORDPACK_FACTOR + 1 && kept <= count);
    check(wordpack_decode(packed, len, kept, base, out) == 0);
    for (size_t i = 0; i < count; i++)
        if (words[i] != 0 && (words[i] & 0xffff) != TAG_PAD)
            check(out[at++] == words[i]);
    check(at == kept);
    free(packed);
    free(out);
}

static void decode(const uint8_t *data, size_t size)
{
    const size_t kept = data[0] | (size_t)data[1] << 8;
    const uint64_t base = (1ULL << 48) - 1000;
    uint64_t *out = malloc(EVENTS_WORDS * sizeof *out);
    uint8_t *in = malloc(size - 1); /* of its own, for AddressSanitizer */
    memcpy(in, data + 2, size - 2);
    if (wordpack_decode(in, size - 2, kept, base, out) == 0)
        round_trip(out, kept, base);
    free(in);
    free(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 3)
        return 0;
    if (data[0] % 2 == 0) {
        decode(data + 1, size - 1);
        return 0;
    }
    const size_t count = (size - 1) / 8 < EVENTS_WORDS ? (size - 1) / 8 : EVENTS_WORDS;
    uint64_t *words = malloc(count * sizeof *words + 1);
    memcpy(words, data + 1, count * sizeof *words);
    round_trip(words, count, count ? words[0] >> 16 : 0);
    free(words);
    return 0;
}
