/* unwind.c: see unwind.h. */
#include "capture/sample/unwind.h"

#include <stdlib.h>
#include <string.h>

#include "trace/guard.h"

/* ---- The cache of rules ------------------------------------------------------------------ */

enum { CACHE_SLOTS = 8192 };

struct unwind_cache {
    struct {
        const struct code_file *file; /* NULL: free */
        uint64_t offset;
        bool known;
        struct cfi_row row;
    } slot[CACHE_SLOTS];
};

struct unwind_cache *unwind_cache_new(void)
{
    return calloc(1, sizeof(struct unwind_cache));
}

void unwind_cache_free(struct unwind_cache *cache)
{
    free(cache);
}

static const struct cfi_row *find_row(struct unwind_cache *cache,
                                      struct code_file *file, const struct cfi *cfi,
                                      uint64_t offset)
{
    const uint64_t h = ((uint64_t)(uintptr_t)file ^ offset) * 0x9e3779b97f4a7c15ULL;
    const unsigned i = (unsigned)(h >> 40) % CACHE_SLOTS;
    if (cache->slot[i].file != file || cache->slot[i].offset != offset) {
        cache->slot[i].file = NULL; /* a damaged file may take us out of here */
        cache->slot[i].known = cfi_find(cfi, offset, &cache->slot[i].row);
        cache->slot[i].offset = offset;
        cache->slot[i].file = file;
    }
    return cache->slot[i].known ? &cache->slot[i].row : NULL;
}

/* ---- Frames -------------------------------------------------------------------------------- */

static void add_place(struct unwound *u, const struct code_file *file, uint64_t key,
                      bool caller)
{
    if (file && file->number != UINT32_MAX && u->depth < STACK_DEPTH)
        u->stack[u->depth++] = (struct stack_place){ key, file->number,
                                                     caller ? STACK_FRAME_CALLER : 0 };
}

/* Adds the place of an instruction; NULL when nothing is mapped there. */
static const struct mapping *add_pc(struct procs *procs, struct proc *proc, uint64_t pc,
                                    bool caller, struct unwound *u)
{
    const struct mapping *m = proc_find(proc, pc);
    if (m)
        add_place(u, m->file, m->file->pid ? pc : pc - m->start + m->file_offset + 1,
                  caller);
    else if (u->depth == 0) /* code made by mprotect of old memory: a JIT's */
        add_place(u, procs_jit(procs, proc), pc, caller);
    return m;
}

static void add_kernel(struct procs *procs, const struct perf_sample *s,
                       struct unwound *u)
{
    if (s->in_kernel)
        add_place(u, procs_special(procs, "[kernel]"), 1, false);
}

/* ---- Walking ------------------------------------------------------------------------------- */

static bool step_by_frame_pointer(const struct cfi_memory *memory,
                                  uint64_t regs[CFI_REGS])
{
    uint64_t next, pc;
    const uint64_t frame = regs[CFI_RBP];
    if (frame < regs[CFI_RSP] || frame % 8 != 0 || !cfi_peek(memory, frame, &next) ||
        !cfi_peek(memory, frame + 8, &pc))
        return false;
    regs[CFI_RBP] = next;
    regs[CFI_RSP] = frame + 16;
    regs[CFI_PC] = pc;
    return true;
}

struct walk {
    struct unwind_cache *cache;
    struct procs *procs;
    struct proc *proc;
    const struct perf_sample *sample;
    struct unwound *u;
};

/* One step out. False: no further; *whole when that is the end of the stack. */
static bool step(struct walk *w, const struct mapping *m, bool caller,
                 uint64_t regs[CFI_REGS], bool *ret_signal, bool *ret_whole)
{
    const uint64_t pc = regs[CFI_PC] - (caller ? 1 : 0), sp = regs[CFI_RSP];
    const struct cfi *cfi = m ? code_file_cfi(m->file) : NULL;
    const struct cfi_row *row = cfi ? find_row(w->cache, m->file, cfi,
                                               pc - m->start + m->file_offset)
                                    : NULL;
    *ret_signal = row && row->signal_frame;
    if (!row)
        return step_by_frame_pointer(&w->sample->stack, regs);
    if (!cfi_step(cfi, row, &w->sample->stack, regs, ret_whole))
        return false;
    return regs[CFI_RSP] > sp || *ret_signal; /* outwards only: no endless loop */
}

static void walk_stack(void *arg)
{
    struct walk *w = arg;
    uint64_t regs[CFI_REGS];
    bool caller = false, signal = false;
    memcpy(regs, w->sample->regs, sizeof regs);
    while (w->u->depth < STACK_DEPTH) {
        const uint64_t pc = regs[CFI_PC];
        if (pc == 0) {
            w->u->whole = true;
            return;
        }
        const unsigned before = w->u->depth;
        const struct mapping *m = add_pc(w->procs, w->proc, caller ? pc - 1 : pc,
                                         caller, w->u);
        if (w->u->depth == before || !step(w, m, caller, regs, &signal, &w->u->whole))
            return;
        caller = !signal;
    }
}

void unwind_stack(struct unwind_cache *cache, struct procs *procs, struct proc *proc,
                  const struct perf_sample *sample, struct unwound *ret_stack)
{
    ret_stack->depth = 0;
    ret_stack->whole = false;
    add_kernel(procs, sample, ret_stack);
    struct walk w = { cache, procs, proc, sample, ret_stack };
    (void)guard_run(walk_stack, &w); /* what it found before a file shrank stays */
}

void unwind_callchain(struct procs *procs, struct proc *proc,
                      const struct perf_sample *sample, struct unwound *ret_stack)
{
    bool caller = false;
    ret_stack->depth = 0;
    ret_stack->whole = false;
    add_kernel(procs, sample, ret_stack);
    for (size_t i = 0; i < sample->callchain_len; i++) {
        uint64_t pc;
        memcpy(&pc, (const uint8_t *)sample->callchain + i * 8, sizeof pc);
        if (pc >= PERF_CONTEXT_MAX)
            continue; /* a marker: what follows is of user code */
        (void)add_pc(procs, proc, caller ? pc - 1 : pc, caller, ret_stack);
        caller = true;
    }
    if (ret_stack->depth == 0 && !sample->in_kernel)
        (void)add_pc(procs, proc, sample->ip, false, ret_stack);
}
