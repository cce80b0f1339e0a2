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

static THREAD_LOCAL struct {
    uint64_t start, end;
} stack;

static bool on_stack(uint64_t sp)
{
    if (sp >= stack.start && sp < stack.end)
        return true;
    return inside_mapping(sp, &stack.start, &stack.end) && sp < stack.end;
}

static bool readable(uint64_t at)
{
    return at >= stack.start && at + 8 <= stack.end && at % 8 == 0;
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

struct registers {
    uint64_t pc, sp, fp;
};

static bool up_by_frame_pointer(struct registers *r)
{
    if (!readable(r->fp) || !readable(r->fp + 8) || r->fp < r->sp)
        return false;
    const uint64_t fp = r->fp;
    r->pc = load(fp + 8);
    r->fp = load(fp);
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

static struct cfi_rule rule_of(uint64_t pc)
{
    const uint64_t m = mix(pc);
    uint64_t *place = &kept[m >> 32];
    const uint64_t word = __atomic_load_n(place, __ATOMIC_RELAXED);
    struct cfi_rule rule = { .word = (uint32_t)word };
    if (word >> 32 == (m & 0xffffffff) && rule.word)
        return rule;
    rule = cfi_find(pc);
    __atomic_store_n(place, m << 32 | rule.word, __ATOMIC_RELAXED);
    return rule;
}

/* The kernel left the interrupted registers on the stack: a ucontext. */
static bool up_from_signal(struct registers *r)
{
    enum { GREGS = 40, RBP = 10, RSP = 15, RIP = 16 };
    const uint64_t at = r->sp + GREGS;
    if (!readable(at) || !readable(at + 8 * RIP))
        return false;
    const uint64_t sp = load(at + 8 * RSP);
    r->fp = load(at + 8 * RBP);
    r->pc = load(at + 8 * RIP) + 1; /* as if it were a return address */
    if (!on_stack(sp))
        return false;
    r->sp = sp;
    return true;
}

static bool up(struct registers *r, bool innermost)
{
    const struct cfi_rule rule = rule_of(innermost ? r->pc : r->pc - 1);
    switch (cfi_kind(rule)) {
    case CFI_FRAME_POINTER:
        return up_by_frame_pointer(r);
    case CFI_SIGNAL:
        return up_from_signal(r);
    case CFI_RULE:
        break;
    default:
        return false;
    }
    const uint64_t cfa = (cfi_base_is_fp(rule) ? r->fp : r->sp) + cfi_offset(rule);
    if (cfa <= r->sp || !readable(cfa - 8))
        return false;
    if (cfi_saves_fp(rule)) {
        const uint64_t at = cfa - cfi_fp_below(rule);
        if (!readable(at))
            return false;
        r->fp = load(at);
    }
    r->pc = load(cfa - 8);
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

__attribute__((noinline)) unsigned inside_stack(uint64_t *ret_frames, unsigned max)
{
    struct registers r;
    HERE(r);
    unsigned count = 0;
    if (!on_stack(r.sp))
        return 0;
    for (bool innermost = true; count < max && up(&r, innermost); innermost = false) {
        if (r.pc < 4096)
            break;
        if (count || !is_ours(r.pc))
            ret_frames[count++] = r.pc;
    }
    return count;
}
