/* symbolise_addresses.c: names for a few addresses of one process, in a child. */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "capture/symbol/symbol.h"
#include "launch/symbolise.h"
#include "launch/symbolise_child.h"

enum { FRAMES_MAX = 1024, LOOK_S = 5, PATH_LONGEST = 4096 };

/* Shared with the child: what it has brought back so far. */
struct answer {
    uint32_t count;
    struct symbolise_frame frames[FRAMES_MAX];
};

struct question {
    const char *maps;
    const uint64_t *addresses;
    size_t count, max;
    struct answer *answer;
    char path[PATH_LONGEST]; /* of the module that is open */
    struct symbol_module *module;
};

/* ---- Where an address is ------------------------------------------------------------------- */

struct place {
    char path[PATH_LONGEST];
    uint64_t offset, inode;
};

static bool parse_line(const char *line, size_t len, uint64_t address,
                       struct place *ret_place)
{
    unsigned long long start, end, offset, inode;
    unsigned major, minor;
    char text[PATH_LONGEST + 128], perms[8];
    int at = 0;
    if (len >= sizeof text)
        return false;
    memcpy(text, line, len);
    text[len] = '\0';
    if (sscanf(text, "%llx-%llx %7s %llx %x:%x %llu %n", &start, &end, perms, &offset,
               &major, &minor, &inode, &at) < 7 ||
        at == 0 || address < start || address >= end)
        return false;
    (void)snprintf(ret_place->path, sizeof ret_place->path, "%.*s", PATH_LONGEST - 1,
                   text + at);
    ret_place->offset = address - start + offset;
    ret_place->inode = inode;
    if (strcmp(ret_place->path, "[vdso]") == 0)
        ret_place->offset = address - start;
    return true;
}

static bool find_place(const char *maps, uint64_t address, struct place *ret_place)
{
    for (const char *line = maps; *line;) {
        const char *end = strchr(line, '\n');
        const size_t len = end ? (size_t)(end - line) : strlen(line);
        if (parse_line(line, len, address, ret_place))
            return true;
        line += len + (end ? 1 : 0);
    }
    return false;
}

/* ---- In the child ------------------------------------------------------------------------------ */

static void keep_module_open(struct question *q, const struct place *p)
{
    if (q->module && strcmp(q->path, p->path) == 0)
        return;
    symbol_close(q->module);
    q->module = NULL;
    (void)snprintf(q->path, sizeof q->path, "%s", p->path);
    const struct symbol_file file = { .path = p->path,
                                      .inode = p->path[0] == '/' ? p->inode : 0 };
    if (symbol_open(&file, &q->module) < 0)
        q->module = NULL;
}

static struct symbolise_frame *next_frame(struct question *q, uint64_t address,
                                          const char *module)
{
    struct answer *a = q->answer;
    if (a->count >= q->max)
        return NULL;
    struct symbolise_frame *f = &a->frames[a->count];
    memset(f, 0, sizeof *f);
    f->address = address;
    (void)snprintf(f->module, sizeof f->module, "%.*s", (int)sizeof f->module - 1,
                   module);
    return f;
}

static void name_address(struct question *q, uint64_t address, bool caller)
{
    struct place p = { .path = "" };
    struct symbol_frame found[SYMBOL_FRAMES];
    unsigned n = 0;
    if (find_place(q->maps, address - (caller ? 1 : 0), &p) && p.path[0]) {
        keep_module_open(q, &p);
        if (q->module)
            n = symbol_find(q->module, p.offset, found, SYMBOL_FRAMES);
    }
    for (unsigned i = 0; i < (n ? n : 1); i++) {
        struct symbolise_frame *f = next_frame(q, address, p.path);
        if (!f)
            return;
        if (n) {
            (void)snprintf(f->function, sizeof f->function, "%s", found[i].function);
            (void)snprintf(f->file, sizeof f->file, "%s", found[i].file);
            f->line = found[i].line;
            f->inlined = i + 1 < n;
        }
        __atomic_store_n(&q->answer->count, q->answer->count + 1, __ATOMIC_RELEASE);
    }
}

static void answer_question(void *arg)
{
    struct question *q = arg;
    (void)alarm(LOOK_S);
    for (size_t i = 0; i < q->count; i++)
        name_address(q, q->addresses[i], i > 0);
}

/* ---- Outside ------------------------------------------------------------------------------------- */

/* What a child did not come to stays an address. */
static void add_unnamed(struct question *q)
{
    const struct answer *a = q->answer;
    size_t done = 0;
    for (uint32_t i = 0; i < a->count; i++)
        done += !a->frames[i].inlined;
    for (; done < q->count; done++) {
        if (!next_frame(q, q->addresses[done], ""))
            return;
        q->answer->count++;
    }
}

int symbolise_addresses(const char *maps, const uint64_t *addresses, size_t count,
                        struct symbolise_frame *ret_frames, size_t max)
{
    struct answer *answer = mmap(NULL, sizeof *answer, PROT_READ | PROT_WRITE,
                                 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (answer == MAP_FAILED)
        return -errno;
    static struct question q;
    q = (struct question){ .maps = maps,
                           .addresses = addresses,
                           .count = count,
                           .max = max < FRAMES_MAX ? max : FRAMES_MAX,
                           .answer = answer };
    int status;
    (void)symbolise_in_child(answer_question, &q, &status);
    add_unnamed(&q);
    memcpy(ret_frames, answer->frames, answer->count * sizeof *ret_frames);
    const int found = (int)answer->count;
    (void)munmap(answer, sizeof *answer);
    return found;
}
