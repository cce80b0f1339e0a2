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

static const uint32_t RESUMED = 1U << CFI_PC | 1U << CFI_RSP;

struct walk {
    struct unwind_cache *cache;
    struct procs *procs;
    struct proc *proc;
    const struct perf_sample *sample;
    struct unwound *u;
    struct unwound_frame *frames; /* NULL: not wanted */
    uint64_t regs[CFI_REGS];
    uint32_t known; /* of regs, a bit each */
    bool caller;
};

/* One step out. False: no further; u->whole when that is the end of the stack. */
static bool step(struct walk *w, const struct mapping *m, bool *ret_signal)
{
    const uint64_t pc = w->regs[CFI_PC] - (w->caller ? 1 : 0), sp = w->regs[CFI_RSP];
    const struct cfi *cfi = m ? code_file_cfi(m->file) : NULL;
    const struct cfi_row *row = cfi ? find_row(w->cache, m->file, cfi,
                                               pc - m->start + m->file_offset)
                                    : NULL;
    *ret_signal = row && row->signal_frame;
    if (!row)
        return w->known >> CFI_RBP & 1 &&
               step_by_frame_pointer(&w->sample->stack, w->regs);
    if (!cfi_step_known(cfi, row, &w->sample->stack, w->regs, &w->known, &w->u->whole))
        return false;
    return w->regs[CFI_RSP] > sp || *ret_signal; /* outwards only: no endless loop */
}

static void keep_frame(const struct walk *w)
{
    if (!w->frames)
        return;
    struct unwound_frame *f = &w->frames[w->u->depth - 1];
    *f = (struct unwound_frame){ .pc = w->regs[CFI_PC] - (w->caller ? 1 : 0),
                                 .low = w->regs[CFI_RSP],
                                 .caller = w->caller,
                                 .resumed = w->known == RESUMED };
    memcpy(f->regs, w->regs, sizeof f->regs);
}

static void keep_high(const struct walk *w)
{
    if (w->frames)
        w->frames[w->u->depth - 1].high = w->regs[CFI_RSP];
}

static void walk_stack(void *arg)
{
    struct walk *w = arg;
    bool signal = false;
    while (w->u->depth < STACK_DEPTH) {
        const uint64_t pc = w->regs[CFI_PC];
        if (pc == 0) {
            w->u->whole = true;
            return;
        }
        const unsigned before = w->u->depth;
        const struct mapping *m = add_pc(w->procs, w->proc, w->caller ? pc - 1 : pc,
                                         w->caller, w->u);
        if (w->u->depth == before)
            return;
        keep_frame(w);
        if (!step(w, m, &signal))
            return;
        keep_high(w);
        w->caller = !signal;
    }
}

void unwind_frames(struct unwind_cache *cache, struct procs *procs, struct proc *proc,
                   const struct perf_sample *sample, struct unwound *ret_stack,
                   struct unwound_frame *ret_frames)
{
    ret_stack->depth = 0;
    ret_stack->whole = false;
    add_kernel(procs, sample, ret_stack);
    if (ret_frames)
        ret_frames[0] = (struct unwound_frame){ .pc = 0 };
    struct walk w = {
        cache, procs, proc, sample, ret_stack, ret_frames, .known = UINT32_MAX
    };
    memcpy(w.regs, sample->regs, sizeof w.regs);
    (void)guard_run(walk_stack, &w); /* what it found before a file shrank stays */
}

void unwind_stack(struct unwind_cache *cache, struct procs *procs, struct proc *proc,
                  const struct perf_sample *sample, struct unwound *ret_stack)
{
    unwind_frames(cache, procs, proc, sample, ret_stack, NULL);
}

void unwind_resume(struct unwind_cache *cache, struct procs *procs, struct proc *proc,
                   const struct perf_sample *sample, uint64_t pc, uint64_t sp,
                   struct unwound *stack, struct unwound_frame *frames)
{
    struct walk w = {
        cache, procs, proc, sample, stack, frames, .known = RESUMED, .caller = true
    };
    w.regs[CFI_PC] = pc;
    w.regs[CFI_RSP] = sp;
    (void)guard_run(walk_stack, &w);
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
