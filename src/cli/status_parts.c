/* status_parts.c: pieces of the status line. */
#include "cli/status_parts.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files.h"
#include "base/parse.h"

/* ---- Words ---------------------------------------------------------------------------------- */

void status_text_init(struct status_text *text, size_t room, bool unicode)
{
    *text = (struct status_text){ .buf = BUF_INIT, .room = room, .unicode = unicode };
}

void status_text_release(struct status_text *text)
{
    buf_release(&text->buf);
}

/* Ours alone: no wide characters, nothing from the program. */
static size_t count_columns(const char *text)
{
    size_t n = 0;
    for (; *text; text++)
        n += ((unsigned char)*text & 0xc0) != 0x80;
    return n;
}

static void put_plain(struct buf *out, const char *text, bool unicode)
{
    for (; *text; text++) {
        if (unicode || !(*text & 0x80))
            buf_putc(out, *text);
        else if (((unsigned char)*text & 0xc0) == 0xc0)
            buf_putc(out, 'u'); /* µ: all there is */
    }
}

void status_text_add(struct status_text *text, const char *between, const char *fmt,
                     ...)
{
    struct buf word = BUF_INIT;
    va_list args;
    va_start(args, fmt);
    buf_vprintf(&word, fmt, args);
    va_end(args);
    if (!between)
        between = text->unicode ? " \xc2\xb7 " : " | ";
    if (text->columns == 0)
        between = "";
    const size_t wide = count_columns(between) + count_columns(word.data);
    if (word.error == 0 && text->columns + wide <= text->room) {
        buf_puts(&text->buf, between);
        put_plain(&text->buf, word.data, text->unicode);
        text->columns += wide;
    }
    buf_release(&word);
}

/* ---- Memory --------------------------------------------------------------------------------- */

static bool read_small(const char *path, struct buf *text)
{
    buf_clear(text);
    return file_read_all(path, 65536, text) == 0;
}

static double resident(pid_t pid, struct buf *text)
{
    char path[64];
    unsigned long long size, pages;
    (void)snprintf(path, sizeof path, "/proc/%d/statm", (int)pid);
    if (!read_small(path, text) || sscanf(text->data, "%llu %llu", &size, &pages) != 2)
        return NAN;
    return (double)pages * (double)sysconf(_SC_PAGESIZE);
}

static unsigned add_children(pid_t pid, pid_t *list, unsigned count, unsigned most,
                             struct buf *text)
{
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)pid, (int)pid);
    if (!read_small(path, text))
        return count;
    char *p = text->data, *end;
    for (long child = strtol(p, &end, 10); end != p && count < most;
         p = end, child = strtol(p, &end, 10))
        list[count++] = (pid_t)child;
    return count;
}

double tree_memory(pid_t pid, unsigned most)
{
    struct buf text = BUF_INIT;
    pid_t *list = calloc(most, sizeof *list);
    unsigned count = 0;
    double sum = NAN;
    if (list)
        list[count++] = pid;
    for (unsigned i = 0; i < count; i++) {
        const double bytes = resident(list[i], &text);
        if (isfinite(bytes))
            sum = (isfinite(sum) ? sum : 0) + bytes;
        count = add_children(list[i], list, count, most, &text);
    }
    free(list);
    buf_release(&text);
    return sum;
}

/* ---- Plans ---------------------------------------------------------------------------------- */

uint64_t trace_planned_steps(const struct trace *trace)
{
    static const char *const names[] = { "steps",       "max_steps",
                                         "total_steps", "num_steps",
                                         "train_steps", "num_training_steps",
                                         "global_steps" };
    uint64_t planned = 0;
    for (size_t i = 0; i < trace_site_count(trace); i++) {
        const struct trace_site *s = trace_site(trace, (unsigned)i);
        if (!(s->flags & SITE_PARAM))
            continue;
        for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
            uint64_t value;
            if (strcmp(s->name, names[k]) == 0 && parse_uint(s->tags, &value) == 0)
                planned = value;
        }
    }
    return planned;
}
