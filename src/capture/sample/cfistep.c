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

static void do_op(struct evaluator *e, unsigned op)
{
    if (op >= 0x30 && op <= 0x4f) {
        push(e, op - 0x30);
    } else if (op >= 0x70 && op < 0x70 + CFI_REGS) {
        push(e, e->regs[op - 0x70] + (uint64_t)take_sleb(&e->k));
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

static bool evaluate(const struct cfi *c, const struct cfi_rule *rule,
                     const struct cfi_memory *memory, const uint64_t *regs,
                     const uint64_t *cfa, uint64_t *ret_value)
{
    const size_t at = (size_t)rule->offset;
    if (at > c->len || rule->expr_len > c->len - at)
        return false;
    struct evaluator e = { .k = { c->bytes, at, at + rule->expr_len, false },
                           .memory = memory,
                           .regs = regs };
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
                     const struct cfi_memory *memory, const uint64_t *regs,
                     uint64_t *ret_cfa)
{
    if (row->cfa.kind == CFI_IS_EXPR)
        return evaluate(c, &row->cfa, memory, regs, NULL, ret_cfa);
    if (row->cfa.kind != CFI_REG)
        return false;
    *ret_cfa = regs[row->cfa.reg] + (uint64_t)(int64_t)row->cfa.offset;
    return true;
}

static bool restore(const struct cfi *c, const struct cfi_rule *rule,
                    const struct cfi_memory *memory, const uint64_t *old, uint64_t cfa,
                    uint64_t *reg)
{
    const uint64_t near = cfa + (uint64_t)(int64_t)rule->offset;
    uint64_t address;
    switch (rule->kind) {
    case CFI_AT_CFA:
        return cfi_peek(memory, near, reg);
    case CFI_IS_CFA:
        *reg = near;
        return true;
    case CFI_REG:
        *reg = old[rule->reg];
        return true;
    case CFI_AT_EXPR:
        return evaluate(c, rule, memory, old, &cfa, &address) &&
               cfi_peek(memory, address, reg);
    case CFI_IS_EXPR:
        return evaluate(c, rule, memory, old, &cfa, reg);
    default: /* the same, or unknown: keep what we have */
        return true;
    }
}

bool cfi_step(const struct cfi *c, const struct cfi_row *row,
              const struct cfi_memory *memory, uint64_t regs[CFI_REGS], bool *ret_end)
{
    uint64_t cfa, old[CFI_REGS];
    *ret_end = false;
    if (row->reg[CFI_PC].kind == CFI_UNDEFINED) {
        *ret_end = true;
        return false;
    }
    if (row->reg[CFI_PC].kind == CFI_SAME || !find_cfa(c, row, memory, regs, &cfa))
        return false;
    memcpy(old, regs, sizeof old);
    regs[CFI_RSP] = cfa; /* unless a rule says otherwise */
    for (unsigned i = 0; i < CFI_REGS; i++)
        if (row->reg[i].kind != CFI_SAME &&
            !restore(c, &row->reg[i], memory, old, cfa, &regs[i]) && i == CFI_PC)
            return false;
    return true;
}
