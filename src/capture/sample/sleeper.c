/* sleeper.c: see sleeper.h. */
#include "capture/sample/sleeper.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/strmap.h"
#include "capture/sample/cfi.h"
#include "trace/guard.h"

enum { MAPS_MAX = 65536, STACK_BYTES = 1 << 20, SEARCHED = 16384 };

struct module {
    const char *path;
    uint64_t inode;
    struct cfi *cfi;
    bool tried;
};

struct range {
    uint64_t start, end, offset;
    struct module *module; /* NULL: no file */
    bool code;
};

struct sleeper {
    struct strmap modules; /* struct module by path and inode */
    struct arena arena;
    pid_t pid;
    struct range *range; /* by start, as the kernel lists them */
    size_t count, cap;
    uint8_t *stack;
};

struct sleeper *sleeper_new(void)
{
    struct sleeper *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    strmap_init(&s->modules);
    arena_init(&s->arena);
    s->stack = malloc(STACK_BYTES);
    if (s->stack)
        return s;
    sleeper_free(s);
    return NULL;
}

void sleeper_free(struct sleeper *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->modules.count; i++)
        cfi_free(((struct module *)s->modules.entries[i].ptr)->cfi);
    strmap_release(&s->modules);
    arena_release(&s->arena);
    free(s->range);
    free(s->stack);
    free(s);
}

bool sleeper_where(const char *text, struct sleeper_place *ret_place)
{
    unsigned long long arg, sp, pc;
    long call;
    if (sscanf(text, "%ld %llx %*x %*x %*x %*x %*x %llx %llx", &call, &arg, &sp, &pc) ==
        4) {
        *ret_place = (struct sleeper_place){ call, arg, sp, pc };
        return true;
    }
    if (sscanf(text, "-1 %llx %llx", &sp, &pc) != 2) /* in the kernel, in no call */
        return false;
    *ret_place = (struct sleeper_place){ -1, 0, sp, pc };
    return true;
}

/* ---- What is mapped ---------------------------------------------------------------------- */

static struct module *enter_module(struct sleeper *s, const char *path, uint64_t inode)
{
    char key[4200];
    bool added = false;
    const int len = snprintf(key, sizeof key, "%llu %s", (unsigned long long)inode,
                             path);
    if (path[0] != '/' || len < 0 || (size_t)len >= sizeof key)
        return NULL;
    struct strmap_entry *e = strmap_enter(&s->modules, key, (size_t)len, &added);
    if (!e || !added)
        return e ? e->ptr : NULL;
    struct module *m = arena_alloc(&s->arena, sizeof *m);
    const char *copy = arena_strdup(&s->arena, path);
    static struct module lost = { .path = "", .tried = true }; /* without memory */
    e->ptr = &lost;
    if (m && copy) {
        *m = (struct module){ .path = copy, .inode = inode };
        e->ptr = m;
    }
    return e->ptr;
}

static int add_line(struct sleeper *s, const char *line)
{
    unsigned long long start, end, offset, inode;
    char rights[8];
    int at = 0;
    if (sscanf(line, "%llx-%llx %7s %llx %*x:%*x %llu %n", &start, &end, rights,
               &offset, &inode, &at) < 5 ||
        !at || s->count == MAPS_MAX)
        return 0;
    if (s->count == s->cap) {
        const size_t cap = s->cap ? s->cap * 2 : 256;
        struct range *more = realloc(s->range, cap * sizeof *more);
        if (!more)
            return -ENOMEM;
        s->range = more;
        s->cap = cap;
    }
    s->range[s->count++] = (struct range){ start, end, offset,
                                           enter_module(s, line + at, inode),
                                           strchr(rights, 'x') != NULL };
    return 0;
}

int sleeper_process(struct sleeper *s, pid_t pid, const char *maps)
{
    char text[4400];
    int rc = 0;
    s->pid = pid;
    s->count = 0;
    for (const char *line = maps; rc == 0 && *line;) {
        const size_t len = strcspn(line, "\n");
        if (len < sizeof text) {
            memcpy(text, line, len);
            text[len] = '\0';
            rc = add_line(s, text);
        }
        line += len + (line[len] == '\n');
    }
    return rc;
}

static const struct range *find_range(const struct sleeper *s, uint64_t address)
{
    size_t low = 0, high = s->count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (s->range[middle].end <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low < s->count && address >= s->range[low].start ? &s->range[low] : NULL;
}

/* A file that was replaced since it was mapped has other tables. */
static const struct cfi *cfi_of(struct module *m)
{
    struct stat st;
    if (m->tried)
        return m->cfi;
    m->tried = true;
    const int fd = open(m->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return NULL;
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || (uint64_t)st.st_ino != m->inode ||
        cfi_open(fd, NULL, 0, &m->cfi) < 0)
        m->cfi = NULL;
    (void)close(fd);
    return m->cfi;
}

/* ---- Walking ------------------------------------------------------------------------------- */

struct walk {
    struct sleeper *s;
    struct sleeper_stack *stack;
    struct cfi_memory memory;
    uint64_t regs[CFI_REGS];
    uint32_t known;
};

static bool is_known(const struct walk *w, unsigned reg)
{
    return w->known >> reg & 1;
}

static bool step_by_frame_pointer(struct walk *w)
{
    uint64_t next, pc;
    const uint64_t frame = w->regs[CFI_RBP];
    if (!is_known(w, CFI_RBP) || frame < w->regs[CFI_RSP] || frame % 8 != 0 ||
        !cfi_peek(&w->memory, frame, &next) || !cfi_peek(&w->memory, frame + 8, &pc))
        return false;
    w->regs[CFI_RBP] = next;
    w->regs[CFI_RSP] = frame + 16;
    w->regs[CFI_PC] = pc;
    return true;
}

/* ---- A frame pointer nobody has saved yet -------------------------------------------------- */

static bool peek_process(const struct walk *w, uint64_t address, void *ret, size_t len)
{
    struct iovec to = { ret, len };
    struct iovec from = { (void *)(uintptr_t)address, len };
    return process_vm_readv(w->s->pid, &to, 1, &from, 1, 0) == (ssize_t)len;
}

static uint64_t relative(uint64_t next, const uint8_t *four)
{
    int32_t distance;
    memcpy(&distance, four, sizeof distance);
    return next + (uint64_t)(int64_t)distance;
}

/* Where a stub of the PLT jumps: [endbr64] [bnd] jmp *slot; 0: it is none. */
static uint64_t stub_target(const struct walk *w, uint64_t stub)
{
    static const uint8_t endbr64[] = { 0xf3, 0x0f, 0x1e, 0xfa };
    uint8_t code[16];
    uint64_t target;
    size_t at = 0;
    if (!peek_process(w, stub, code, sizeof code))
        return 0;
    at += memcmp(code, endbr64, sizeof endbr64) == 0 ? sizeof endbr64 : 0;
    at += code[at] == 0xf2;
    if (code[at] != 0xff || code[at + 1] != 0x25 ||
        !peek_process(w, relative(stub + at + 6, code + at + 2), &target, 8))
        return 0;
    return target;
}

/* Whether the instruction before a return address calls the function. */
static bool calls(const struct walk *w, uint64_t after, uint64_t function)
{
    uint8_t code[6];
    uint64_t target;
    if (!peek_process(w, after - sizeof code, code, sizeof code))
        return false;
    if (code[0] == 0xff && code[1] == 0x15) /* call *slot */
        return peek_process(w, relative(after, code + 2), &target, 8) &&
               target == function;
    if (code[1] != 0xe8)
        return false;
    target = relative(after, code + 2);
    return target == function || stub_target(w, target) == function;
}

/* The frame is where its saved pointer and return address lie: the nearest return
 * address whose call goes to this very function. */
static bool search_frame_pointer(struct walk *w, const struct cfi_row *row,
                                 uint64_t function)
{
    const uint64_t sp = w->regs[CFI_RSP];
    const int64_t to_return = (int64_t)row->cfa.offset + row->reg[CFI_PC].offset;
    for (uint64_t s = (sp + 7) & ~7ULL; s < sp + SEARCHED; s += 8) {
        uint64_t after;
        if (!cfi_peek(&w->memory, s + (uint64_t)to_return, &after))
            return false;
        const struct range *r = find_range(w->s, after - 1);
        if (r && r->code && calls(w, after, function)) {
            w->regs[CFI_RBP] = s;
            w->known |= 1U << CFI_RBP;
            return true;
        }
    }
    return false;
}

static void need_frame_pointer(struct walk *w, const struct cfi *cfi,
                               const struct cfi_row *row, const struct range *r,
                               uint64_t pc)
{
    uint64_t distance;
    if (row->cfa.kind == CFI_REG && row->cfa.reg == CFI_RBP && !is_known(w, CFI_RBP) &&
        row->reg[CFI_PC].kind == CFI_AT_CFA &&
        cfi_start(cfi, pc - r->start + r->offset, &distance))
        (void)search_frame_pointer(w, row, pc - distance);
}

/* ---- Steps ----------------------------------------------------------------------------------- */

/* One step out; *ret_signal: the caller was interrupted and did not call. */
static bool step(struct walk *w, const struct range *r, uint64_t pc, bool *ret_signal)
{
    struct cfi_row row;
    const uint64_t sp = w->regs[CFI_RSP];
    const struct cfi *cfi = r && r->module ? cfi_of(r->module) : NULL;
    *ret_signal = false;
    if (!cfi || !cfi_find(cfi, pc - r->start + r->offset, &row))
        return step_by_frame_pointer(w);
    *ret_signal = row.signal_frame;
    need_frame_pointer(w, cfi, &row, r, pc);
    return cfi_step_known(cfi, &row, &w->memory, w->regs, &w->known,
                          &w->stack->whole) &&
           (w->regs[CFI_RSP] > sp || *ret_signal); /* outwards: no endless loop */
}

static const struct range *add_frame(struct walk *w, uint64_t pc, bool caller)
{
    const struct range *r = find_range(w->s, caller ? pc - 1 : pc);
    struct sleeper_frame *f = &w->stack->frame[w->stack->count++];
    *f = (struct sleeper_frame){ .address = pc, .path = "", .caller = caller };
    if (r && r->module) {
        f->path = r->module->path;
        f->inode = r->module->inode;
        f->offset = pc - r->start + r->offset;
    }
    return r;
}

static void walk_stack(void *arg)
{
    struct walk *w = arg;
    bool caller = false, signal;
    while (w->stack->count < SLEEPER_FRAMES) {
        const uint64_t pc = w->regs[CFI_PC];
        if (pc == 0) {
            w->stack->whole = true;
            return;
        }
        const struct range *r = add_frame(w, pc, caller);
        if (!step(w, r, caller ? pc - 1 : pc, &signal))
            return;
        caller = !signal;
    }
}

/* From the stack pointer to the end of its mapping, as much as we keep. */
static void copy_stack(struct sleeper *s, uint64_t sp, struct cfi_memory *ret_memory)
{
    const struct range *r = find_range(s, sp);
    const uint64_t room = r ? r->end - sp : 0;
    const size_t len = room < STACK_BYTES ? (size_t)room : STACK_BYTES;
    struct iovec to = { s->stack, len };
    struct iovec from = { (void *)(uintptr_t)sp, len };
    const ssize_t got = len ? process_vm_readv(s->pid, &to, 1, &from, 1, 0) : 0;
    *ret_memory = (struct cfi_memory){ s->stack, sp, got > 0 ? (uint64_t)got : 0 };
}

void sleeper_walk(struct sleeper *s, const struct sleeper_place *place,
                  struct sleeper_stack *ret_stack)
{
    struct walk w = { .s = s,
                      .stack = ret_stack,
                      .regs = { [CFI_RSP] = place->sp, [CFI_PC] = place->pc },
                      .known = 1U << CFI_RSP | 1U << CFI_PC };
    ret_stack->count = 0;
    ret_stack->whole = false;
    copy_stack(s, place->sp, &w.memory);
    (void)guard_run(walk_stack, &w); /* what it found before a file shrank stays */
}
