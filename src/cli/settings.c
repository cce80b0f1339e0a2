/* settings.c: see settings.h. */
#include "cli/settings.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

void settings_words(struct buf *out)
{
    static const char *const names[] = {
        "OMP_NUM_THREADS",
        "OMP_PROC_BIND",
        "OMP_WAIT_POLICY",
        "MKL_NUM_THREADS",
        "OPENBLAS_NUM_THREADS",
        "NUMEXPR_NUM_THREADS",
        "KMP_AFFINITY",
        "KMP_BLOCKTIME",
        "CUDA_VISIBLE_DEVICES",
        "CUDA_LAUNCH_BLOCKING",
        "PYTORCH_CUDA_ALLOC_CONF",
        "TORCH_COMPILE_DISABLE",
        "TORCHDYNAMO_DISABLE",
        "XLA_FLAGS",
        "TF_NUM_INTRAOP_THREADS",
        "LD_PRELOAD",
        "MALLOC_ARENA_MAX",
        "GLIBC_TUNABLES",
        "PYTHONMALLOC",
        "PYTHONDEVMODE",
        "PYTHONOPTIMIZE",
        "PYTHONHASHSEED",
        "GOMAXPROCS",
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *value = getenv(names[i]);
        if (value)
            buf_printf(out, "%s=%.200s\n", names[i], value);
    }
}

/* Goes to the next line, of texts that may end without a line's end. */
static const char *next_line(const char *line)
{
    line += strcspn(line, "\n");
    return line + (*line == '\n');
}

static bool has_line(const char *lines, const char *line, size_t len)
{
    for (; *lines; lines = next_line(lines))
        if (strcspn(lines, "\n") == len && memcmp(lines, line, len) == 0)
            return true;
    return false;
}

/* The lines of one that the other has not. */
static void put_missing(struct buf *out, const char *lines, const char *other,
                        const char *word)
{
    for (; *lines; lines = next_line(lines)) {
        const size_t len = strcspn(lines, "\n");
        if (len && !has_line(other, lines, len))
            buf_printf(out, "%s%s %.*s", out->len ? ", " : "", word, (int)len, lines);
    }
}

void settings_compare(const char *then, struct buf *ret_differ)
{
    struct buf now = BUF_INIT;
    settings_words(&now);
    const char *words = now.len ? now.data : "";
    put_missing(ret_differ, then, words, "then");
    put_missing(ret_differ, words, then, "now");
    buf_release(&now);
}
