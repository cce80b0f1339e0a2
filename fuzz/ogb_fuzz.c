/* ogb_fuzz.c: a folder of CSV files, whoever made it: the texts one after another, a NUL
 * between them. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "model/ref/ogb.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ogb_text texts[OGB_FILES] = { { NULL, 0 } };
    struct graphs g;
    char error[OGB_ERROR_LEN];
    const char *at = (const char *)data, *end = at + size;
    for (int f = 0; f < OGB_FILES && at < end; f++) {
        const char *nul = memchr(at, '\0', (size_t)(end - at));
        texts[f] = (struct ogb_text){ at, (size_t)((nul ? nul : end) - at) };
        at = nul ? nul + 1 : end;
    }
    if (ogb_parse(texts, 0, &g, error) < 0)
        return 0;
    if (g.first[g.count] != g.nodes || g.in_first[g.nodes] != g.edges)
        abort(); /* what was accepted holds together */
    for (size_t e = 0; e < g.edges; e++)
        if (g.in_source[e] >= g.nodes || g.out_target[e] >= g.nodes)
            abort();
    graphs_release(&g);
    return 0;
}
