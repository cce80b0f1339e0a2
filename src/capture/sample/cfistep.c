/* cfistep.c: from a frame to its caller's. */
#include <string.h>

#include "capture/sample/cfi_int.h"

bool cfi_peek(const struct cfi_memory *m, uint64_t address, uint64_t *ret_value)
{
    if (address < m->start || m->len < 8 || address - m->start > m->len - 8)
        return false;
    memcpy(ret_value, m->bytes + (address - m->start), 8);
    return true;
}

/* ---- Expressions: signal frames and PLT stubs have them ----------------------------------- */

enum { STACK_MAX = 16, OPS_MAX = 256 };

struct evaluator {
    struct cursor k;
    const struct cfi_memory *memory;
    const uint64_t *regs;
    uint32_t known; /* of the registers, a bit each */
    uint64_t stack[STACK_MAX];
    unsigned depth;
    bool bad;
};

static void push(struct evaluator *e, uint64_t value)
{
    if (e->depth < STACK_MAX)
        e->stack[e->depth++] = value;
    else
        e->bad = true;
}

static uint64_t pop(struct evaluator *e)
{
    if (e->depth > 0)
        return e->stack[--e->depth];
    e->bad = true;
    return 0;
}

static void do_binary(struct evaluator *e, unsigned op)
{
    const uint64_t b = pop(e), a = pop(e);
    const int64_t sa = (int64_t)a, sb = (int64_t)b;
    switch (op) {
    case 0x1a:
        push(e, a & b);
        break;
    case 0x1c:
        push(e, a - b);
        break;
    case 0x21:
        push(e, a | b);
        break;
    case 0x22:
        push(e, a + b);
        break;
    case 0x24:
        push(e, b < 64 ? a << b : 0);
        break;
    case 0x25:
        push(e, b < 64 ? a >> b : 0);
        break;
    case 0x29:
        push(e, sa == sb);
        break;
    case 0x2a:
        push(e, sa >= sb);
        break;
    case 0x2b:
        push(e, sa > sb);
        break;
    case 0x2c:
        push(e, sa <= sb);
        break;
    case 0x2d:
        push(e, sa < sb);
        break;
    case 0x2e:
        push(e, sa != sb);
        break;
    default:
        e->bad = true;
    }
}

static void do_deref(struct evaluator *e)
{
    uint64_t value = 0;
    if (!cfi_peek(e->memory, pop(e), &value))
        e->bad = true;
    push(e, value);
}

static void do_constant(struct evaluator *e, unsigned op)
{
    const size_t size = (size_t)1 << ((op - 0x08) / 2);
    if (op == 0x10)
        push(e, take_uleb(&e->k));
    else if (op == 0x11)
        push(e, (uint64_t)take_sleb(&e->k));
    else
        push(e, op & 1 ? (uint64_t)take_signed(&e->k, size) : take_fixed(&e->k, size));
}

static void do_register(struct evaluator *e, unsigned reg)
{
    if (!(e->known >> reg & 1))
        e->bad = true;
    push(e, e->regs[reg] + (uint64_t)take_sleb(&e->k));
}

static void do_op(struct evaluator *e, unsigned op)
{
    if (op >= 0x30 && op <= 0x4f) {
        push(e, op - 0x30);
    } else if (op >= 0x70 && op < 0x70 + CFI_REGS) {
        do_register(e, op - 0x70);
    } else if (op >= 0x08 && op <= 0x11) {
        do_constant(e, op);
    } else if (op == 0x06) {
        do_deref(e);
    } else if (op == 0x12) { /* dup */
        const uint64_t v = pop(e);
        push(e, v);
        push(e, v);
    } else if (op == 0x23) { /* plus_uconst */
        push(e, pop(e) + take_uleb(&e->k));
    } else {
        do_binary(e, op);
    }
}

/* A frame of which perhaps not all registers are known. */
struct frame {
    const struct cfi_memory *memory;
    const uint64_t *regs;
    uint32_t known;
};

static bool evaluate(const struct cfi *c, const struct cfi_rule *rule,
                     const struct frame *f, const uint64_t *cfa, uint64_t *ret_value)
{
    const size_t at = (size_t)rule->offset;
    if (at > c->len || rule->expr_len > c->len - at)
        return false;
    struct evaluator e = { .k = { c->bytes, at, at + rule->expr_len, false },
                           .memory = f->memory,
                           .regs = f->regs,
                           .known = f->known };
    if (cfa)
        push(&e, *cfa);
    for (unsigned i = 0; i < OPS_MAX && !e.bad && !e.k.bad && e.k.at < e.k.end; i++)
        do_op(&e, (unsigned)take_fixed(&e.k, 1));
    if (e.bad || e.k.bad || e.depth == 0)
        return false;
    *ret_value = e.stack[e.depth - 1];
    return true;
}

/* ---- A step ------------------------------------------------------------------------------- */

static bool find_cfa(const struct cfi *c, const struct cfi_row *row,
                     const struct frame *f, uint64_t *ret_cfa)
{
    if (row->cfa.kind == CFI_IS_EXPR)
        return evaluate(c, &row->cfa, f, NULL, ret_cfa);
    if (row->cfa.kind != CFI_REG || !(f->known >> row->cfa.reg & 1))
        return false;
    *ret_cfa = f->regs[row->cfa.reg] + (uint64_t)(int64_t)row->cfa.offset;
    return true;
}

/* False: not known; *reg is what it was. */
static bool restore(const struct cfi *c, const struct cfi_rule *rule,
                    const struct frame *old, uint64_t cfa, uint64_t *reg)
{
    const uint64_t near = cfa + (uint64_t)(int64_t)rule->offset;
    uint64_t address;
    switch (rule->kind) {
    case CFI_AT_CFA:
        return cfi_peek(old->memory, near, reg);
    case CFI_IS_CFA:
        *reg = near;
        return true;
    case CFI_REG:
        *reg = old->regs[rule->reg];
        return old->known >> rule->reg & 1;
    case CFI_AT_EXPR:
        return evaluate(c, rule, old, &cfa, &address) &&
               cfi_peek(old->memory, address, reg);
    case CFI_IS_EXPR:
        return evaluate(c, rule, old, &cfa, reg);
    default: /* nobody knows: keep what we have */
        return false;
    }
}

bool cfi_step_known(const struct cfi *c, const struct cfi_row *row,
                    const struct cfi_memory *memory, uint64_t regs[CFI_REGS],
                    uint32_t *known, bool *ret_end)
{
    uint64_t cfa, regs_then[CFI_REGS];
    const struct frame old = { memory, regs_then, *known };
    *ret_end = false;
    if (row->reg[CFI_PC].kind == CFI_UNDEFINED) {
        *ret_end = true;
        return false;
    }
    memcpy(regs_then, regs, sizeof regs_then);
    if (row->reg[CFI_PC].kind == CFI_SAME || !find_cfa(c, row, &old, &cfa))
        return false;
    regs[CFI_RSP] = cfa; /* unless a rule says otherwise */
    for (unsigned i = 0; i < CFI_REGS; i++) {
        if (row->reg[i].kind == CFI_SAME)
            continue;
        const bool got = restore(c, &row->reg[i], &old, cfa, &regs[i]);
        if (!got && i == CFI_PC)
            return false;
        *known = got ? *known | 1U << i : *known & ~(1U << i);
    }
    return true;
}

bool cfi_step(const struct cfi *c, const struct cfi_row *row,
              const struct cfi_memory *memory, uint64_t regs[CFI_REGS], bool *ret_end)
{
    uint32_t known = UINT32_MAX;
    return cfi_step_known(c, row, memory, regs, &known, ret_end);
}
