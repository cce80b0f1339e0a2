/* unwind.c: the stack of the calling thread.
 *
 * Compilers leave frame pointers out; what they do write is, for every instruction,
 * where the caller's frame is (.eh_frame, cfi.c). Reading that takes a microsecond, so
 * the answer is kept per return address: a walk over known frames is a hash and three
 * loads each. Code without such tables (made at run time) is walked by frame pointers.
 *
 * Safe anywhere: no allocation, no locks, and only the mapping that holds the stack
 * pointer is ever read. It is looked up once per thread, and again when the thread
 * changes stacks (coroutines, signal stacks).
 */
#include "capture/interpose/cfi.h"
#include "capture/interpose/inside.h"

/* ---- The stack's limits ------------------------------------------------------------ */

struct limits {
    uint64_t start, end;
};
static THREAD_LOCAL struct limits stack;

struct registers {
    uint64_t pc, sp, fp;
    uint64_t fp_at; /* where fp was read, 0: it is what it was at the start */
    struct inside_walk *log;
    struct limits *limits;
    bool in_handler; /* what is known of the stack has to do, and no lock is taken */
    bool whole;      /* the outermost frame was reached */
};

static bool on_stack(const struct registers *r, uint64_t sp)
{
    struct limits *l = r->limits;
    if (sp >= l->start && sp < l->end)
        return true;
    return !r->in_handler && inside_mapping(sp, &l->start, &l->end) && sp < l->end;
}

static bool readable(const struct registers *r, uint64_t at)
{
    return at >= r->limits->start && at + 8 <= r->limits->end && at % 8 == 0;
}

static uint64_t load(uint64_t at)
{
    return *(const uint64_t *)(uintptr_t)at;
}

/* ---- Frames of this library -------------------------------------------------------- */

extern const char __ehdr_start[] __attribute__((visibility("hidden")));
extern const char etext[] __attribute__((visibility("hidden")));

static bool is_ours(uint64_t pc)
{
    return pc >= (uintptr_t)__ehdr_start && pc <= (uintptr_t)etext;
}

/* ---- What a walk depends on -------------------------------------------------------- */

static void note(struct registers *r, uint64_t at, uint64_t value)
{
    struct inside_walk *w = r->log;
    if (!w)
        return;
    if (w->count == INSIDE_WALK_LOADS) {
        w->sp = 0; /* too long to be known again */
        return;
    }
    w->load[w->count].at = at;
    w->load[w->count++].value = value;
}

/* Most saved frame pointers are never needed; those that are, matter. */
static uint64_t use_fp(struct registers *r)
{
    if (r->log && !r->fp_at)
        r->log->uses_fp = true;
    else
        note(r, r->fp_at, r->fp);
    return r->fp;
}

static uint64_t load_pc(struct registers *r, uint64_t at)
{
    const uint64_t pc = load(at);
    note(r, at, pc);
    return pc;
}

static bool up_by_frame_pointer(struct registers *r)
{
    const uint64_t fp = use_fp(r);
    if (!readable(r, fp) || !readable(r, fp + 8) || fp < r->sp)
        return false;
    r->pc = load_pc(r, fp + 8);
    r->fp = load(fp);
    r->fp_at = fp;
    r->sp = fp + 16;
    return true;
}

#if defined(__x86_64__)

/* ---- Rules, kept ------------------------------------------------------------------- */

/* The product with an odd number is one to one on 47 bits: the upper 15 choose the
 * place, the lower 32 tell whether it is the right one. A word is read and written whole,
 * so threads need no lock. */
enum { KEPT_BITS = 15 };
static uint64_t kept[1 << KEPT_BITS];

static uint64_t mix(uint64_t pc)
{
    return (pc * 0x5851F42D4C957F2DULL) & ((1ULL << 47) - 1);
}

static struct cfi_rule rule_of(const struct registers *r, uint64_t pc)
{
    const uint64_t m = mix(pc);
    uint64_t *place = &kept[m >> 32];
    const uint64_t word = __atomic_load_n(place, __ATOMIC_RELAXED);
    struct cfi_rule rule = { .word = (uint32_t)word };
    if (word >> 32 == (m & 0xffffffff) && rule.word)
        return rule;
    if (r->in_handler && !cfi_takes_no_lock())
        return (struct cfi_rule){ .word = CFI_FRAME_POINTER };
    rule = cfi_find(pc);
    __atomic_store_n(place, m << 32 | rule.word, __ATOMIC_RELAXED);
    return rule;
}

/* The kernel left the interrupted registers on the stack: a ucontext. */
static bool up_from_signal(struct registers *r)
{
    enum { GREGS = 40, RBP = 10, RSP = 15, RIP = 16 };
    const uint64_t at = r->sp + GREGS;
    if (!readable(r, at) || !readable(r, at + 8 * RIP))
        return false;
    const uint64_t sp = load_pc(r, at + 8 * RSP);
    r->fp = load(at + 8 * RBP);
    r->fp_at = at + 8 * RBP;
    r->pc = load_pc(r, at + 8 * RIP) + 1; /* as if it were a return address */
    if (!on_stack(r, sp))
        return false;
    r->sp = sp;
    return true;
}

static bool up(struct registers *r, bool innermost)
{
    const struct cfi_rule rule = rule_of(r, innermost ? r->pc : r->pc - 1);
    switch (cfi_kind(rule)) {
    case CFI_FRAME_POINTER:
        return up_by_frame_pointer(r);
    case CFI_SIGNAL:
        return up_from_signal(r);
    case CFI_RULE:
        break;
    default:
        r->whole = cfi_kind(rule) == CFI_OUTERMOST;
        return false;
    }
    const uint64_t cfa = (cfi_base_is_fp(rule) ? use_fp(r) : r->sp) + cfi_offset(rule);
    if (cfa <= r->sp || !readable(r, cfa - 8))
        return false;
    if (cfi_saves_fp(rule)) {
        const uint64_t at = cfa - cfi_fp_below(rule);
        if (!readable(r, at))
            return false;
        r->fp = load(at);
        r->fp_at = at;
    }
    r->pc = load_pc(r, cfa - 8);
    r->sp = cfa;
    return true;
}

#define HERE(r)                                                                        \
    __asm__ volatile("lea 0(%%rip), %0\n\tmov %%rsp, %1\n\tmov %%rbp, %2"              \
                     : "=r"((r).pc), "=r"((r).sp), "=r"((r).fp))

#else /* frame pointers are the rule elsewhere */

static bool up(struct registers *r, bool innermost)
{
    (void)innermost;
    return up_by_frame_pointer(r);
}

#define HERE(r)                                                                        \
    (r).fp = (r).sp = (uint64_t)(uintptr_t)__builtin_frame_address(0), (r).pc = 0

#endif

static unsigned walk(struct registers *r, uint64_t *ret_frames, unsigned max)
{
    unsigned count = 0;
    for (bool innermost = true; count < max && up(r, innermost); innermost = false) {
        if (r->pc < 4096) {
            r->whole = true;
            break;
        }
        if (count || !is_ours(r->pc))
            ret_frames[count++] = r->pc;
    }
    return count;
}

__attribute__((noinline)) unsigned inside_stack(uint64_t *ret_frames, unsigned max)
{
    struct registers r = { .limits = &stack };
    HERE(r);
    return on_stack(&r, r.sp) ? walk(&r, ret_frames, max) : 0;
}

unsigned inside_stack_from(const struct inside_registers *from, uint64_t *ret_frames,
                           unsigned max, bool *ret_whole)
{
    struct limits limits = { from->sp & ~7ULL, from->stack_end };
    struct registers r = { .pc = from->pc,
                           .sp = from->sp,
                           .fp = from->fp,
                           .limits = &limits,
                           .in_handler = true };
    const unsigned count = from->sp < from->stack_end ? walk(&r, ret_frames, max) : 0;
    *ret_whole = r.whole;
    return count;
}

/* ---- The same stack again ---------------------------------------------------------- */

/* These loads do not wait for one another: that is what makes it fast. */
static bool is_same(const struct inside_walk *w, const struct registers *r)
{
    if (w->sp != r->sp || (w->uses_fp && w->fp != r->fp))
        return false;
    uint64_t differs = 0;
    for (uint32_t i = 0; i < w->count; i++)
        differs |= load(w->load[i].at) ^ w->load[i].value;
    return differs == 0;
}

__attribute__((noinline)) struct inside_walk *inside_stack_again(
    struct inside_walks *walks, uint64_t *ret_frames, unsigned max, unsigned *ret_count)
{
    struct registers r = { .limits = &stack };
    HERE(r);
    *ret_count = 0;
    if (!on_stack(&r, r.sp))
        return NULL;
    const unsigned set = (unsigned)((r.sp >> 4) * 0x9E3779B9u >> 16) % INSIDE_WALK_SETS;
    for (unsigned way = 0; way < INSIDE_WALK_WAYS; way++)
        if (is_same(&walks->walk[set][way], &r))
            return &walks->walk[set][way];
    struct inside_walk *w = &walks->walk[set][walks->next++ % INSIDE_WALK_WAYS];
    w->count = 0;
    w->uses_fp = false;
    w->answer = 0;
    w->sp = r.sp;
    w->fp = r.fp;
    r.log = w;
    *ret_count = walk(&r, ret_frames, max);
    return w;
}
