/* nearest.c: "did you mean …?" for mistyped verbs and options.
 *
 * Optimal string alignment distance (insert, delete, replace, swap neighbours),
 * case ignored. A word is near when at most a third of it is wrong, or when it is
 * the beginning of exactly one candidate.
 */
#include "cli/cli.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

enum { WORD_MAX = 32 };

static int lower(char c)
{
    return tolower((unsigned char)c);
}

static unsigned min3(unsigned a, unsigned b, unsigned c)
{
    const unsigned ab = a < b ? a : b;
    return ab < c ? ab : c;
}

/* Both at most WORD_MAX long. */
static unsigned distance(const char *a, size_t n, const char *b, size_t m)
{
    unsigned d[WORD_MAX + 1][WORD_MAX + 1];
    for (size_t i = 0; i <= n; i++)
        d[i][0] = (unsigned)i;
    for (size_t j = 0; j <= m; j++)
        d[0][j] = (unsigned)j;
    for (size_t i = 1; i <= n; i++) {
        for (size_t j = 1; j <= m; j++) {
            const int x = lower(a[i - 1]), y = lower(b[j - 1]);
            d[i][j] = min3(d[i - 1][j] + 1, d[i][j - 1] + 1,
                           d[i - 1][j - 1] + (x != y));
            if (i > 1 && j > 1 && x == lower(b[j - 2]) && lower(a[i - 2]) == y &&
                d[i - 2][j - 2] + 1 < d[i][j])
                d[i][j] = d[i - 2][j - 2] + 1;
        }
    }
    return d[n][m];
}

static const char *only_completion(const char *word, size_t len,
                                   const char *const *candidates, unsigned count)
{
    const char *found = NULL;
    for (unsigned i = 0; i < count; i++) {
        if (strncasecmp(candidates[i], word, len) != 0)
            continue;
        if (found)
            return NULL;
        found = candidates[i];
    }
    return found;
}

const char *cli_nearest(const char *word, const char *const *candidates, unsigned count)
{
    const size_t len = strlen(word);
    if (len < 2 || len > WORD_MAX)
        return NULL;
    const char *best = only_completion(word, len, candidates, count);
    if (best)
        return best;
    unsigned best_distance = (unsigned)(len < 3 ? 1 : (len + 2) / 3) + 1;
    for (unsigned i = 0; i < count; i++) {
        const size_t other = strlen(candidates[i]);
        if (other > WORD_MAX)
            continue;
        const unsigned d = distance(word, len, candidates[i], other);
        if (d < best_distance) {
            best_distance = d;
            best = candidates[i];
        }
    }
    return best;
}
