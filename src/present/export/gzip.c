/* gzip.c: see gzip.h. */
#include "present/export/gzip.h"

#include <errno.h>
#include <limits.h>

#include "present/export/export.h"

enum { GZIP_WINDOW = 15 + 16 }; /* + 16: gzip, not zlib */

int gzip_begin(struct gzip *g, FILE *out)
{
    g->out = out;
    g->z = (z_stream){ 0 };
    return deflateInit2(&g->z, 6, Z_DEFLATED, GZIP_WINDOW, 8, Z_DEFAULT_STRATEGY) ==
                   Z_OK
               ? 0
               : -ENOMEM;
}

static int run(struct gzip *g, int flush)
{
    int state;
    do {
        g->z.next_out = g->room;
        g->z.avail_out = sizeof g->room;
        state = deflate(&g->z, flush);
        const int rc = export_put(g->out, g->room, sizeof g->room - g->z.avail_out);
        if (rc < 0)
            return rc;
    } while (g->z.avail_out == 0 || (flush == Z_FINISH && state != Z_STREAM_END));
    return 0;
}

int gzip_put(struct gzip *g, const void *bytes, size_t len)
{
    int rc = 0;
    g->z.next_in = (unsigned char *)bytes; /* not written to, says zlib */
    while (rc == 0 && len) {
        const unsigned now = len < UINT_MAX ? (unsigned)len : UINT_MAX;
        g->z.avail_in = now;
        rc = run(g, Z_NO_FLUSH);
        len -= now;
    }
    return rc;
}

int gzip_end(struct gzip *g, int rc)
{
    if (rc == 0) {
        g->z.avail_in = 0;
        rc = run(g, Z_FINISH);
    }
    (void)deflateEnd(&g->z);
    return rc;
}
