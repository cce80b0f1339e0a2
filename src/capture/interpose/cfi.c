/* cfi.c: reads .eh_frame_hdr and .eh_frame of loaded modules (x86-64). See cfi.h.
 *
 * Mapped by the loader and trusted as the program's own code is; sizes are still
 * checked, for tools that write odd tables. Encodings other than those every linker
 * uses are not understood and give CFI_UNKNOWN.
 */
#if defined(__x86_64__)

#include "capture/interpose/cfi.h"

#include <dlfcn.h>
#include <link.h>
#include <string.h>

enum {
    RBP = 6,
    RSP = 7,
    RETURN = 16, /* the return address counts as a register */
    PCREL_SDATA4 = 0x1b,
    DATAREL_SDATA4 = 0x3b,
    UDATA4 = 0x03,
    REMEMBERED = 8,
};

struct reader {
    const uint8_t *p, *end;
    bool bad;
};

static uint64_t take(struct reader *r, unsigned bytes)
{
    uint64_t v = 0;
    if ((size_t)(r->end - r->p) < bytes) {
        r->bad = true;
        return 0;
    }
    memcpy(&v, r->p, bytes);
    r->p += bytes;
    return v;
}

static uint64_t uleb(struct reader *r)
{
    uint64_t v = 0;
    for (unsigned shift = 0;; shift += 7) {
        const uint64_t b = take(r, 1);
        if (shift < 64)
            v |= (b & 0x7f) << shift;
        if (!(b & 0x80) || r->bad)
            return v;
    }
}

static int64_t sleb(struct reader *r)
{
    uint64_t v = 0;
    unsigned shift = 0;
    uint64_t b;
    do {
        b = take(r, 1);
        if (shift < 64)
            v |= (b & 0x7f) << shift;
        shift += 7;
    } while ((b & 0x80) && !r->bad);
    if ((b & 0x40) && shift < 64)
        v |= ~0ULL << shift;
    return (int64_t)v;
}

static void skip(struct reader *r, uint64_t bytes)
{
    if ((uint64_t)(r->end - r->p) < bytes)
        r->bad = true;
    else
        r->p += bytes;
}

/* ---- Finding the table ------------------------------------------------------------- */

#ifdef DLFO_STRUCT_HAS_EH_DBASE
extern int _dl_find_object(void *, struct dl_find_object *) __attribute__((weak));
#endif

bool cfi_takes_no_lock(void)
{
#ifdef DLFO_STRUCT_HAS_EH_DBASE
    return _dl_find_object != NULL;
#else
    return false;
#endif
}

struct search {
    uint64_t pc;
    const uint8_t *header;
};

static int look_in(struct dl_phdr_info *info, size_t size, void *arg)
{
    (void)size;
    struct search *s = arg;
    const uint8_t *header = NULL;
    bool holds = false;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
        const uint64_t at = info->dlpi_addr + ph->p_vaddr;
        if (ph->p_type == PT_LOAD && s->pc >= at && s->pc < at + ph->p_memsz)
            holds = true;
        if (ph->p_type == PT_GNU_EH_FRAME)
            header = (const uint8_t *)(uintptr_t)at;
    }
    if (holds)
        s->header = header;
    return holds;
}

static const uint8_t *header_of(uint64_t pc)
{
#ifdef DLFO_STRUCT_HAS_EH_DBASE
    struct dl_find_object found;
    if (_dl_find_object)
        return _dl_find_object((void *)(uintptr_t)pc, &found) == 0 ? found.dlfo_eh_frame
                                                                   : NULL;
#endif
    struct search s = { .pc = pc };
    (void)dl_iterate_phdr(look_in, &s);
    return s.header;
}

/* The entry of .eh_frame for the function that holds pc; NULL: none. */
static const uint8_t *find_entry(const uint8_t *header, uint64_t pc)
{
    if (header[0] != 1 || header[2] != UDATA4 || header[3] != DATAREL_SDATA4 ||
        (header[1] & 0x0f) != 0x0b)
        return NULL;
    uint32_t count;
    memcpy(&count, header + 8, 4);
    const int32_t(*table)[2] = (const int32_t(*)[2])(uintptr_t)(header + 12);
    const int64_t want = (int64_t)(pc - (uint64_t)(uintptr_t)header);
    uint32_t low = 0, high = count;
    while (low < high) { /* the first that begins behind pc */
        const uint32_t middle = low + (high - low) / 2;
        if (table[middle][0] <= want)
            low = middle + 1;
        else
            high = middle;
    }
    return low ? header + table[low - 1][1] : NULL;
}

/* ---- Entries ----------------------------------------------------------------------- */

struct entry {
    uint64_t start, range;
    uint64_t code_align;
    int64_t data_align;
    bool is_signal;
    struct reader first, then; /* instructions: common ones, its own */
};

/* Length and body; false for what is not 32-bit or empty. */
static bool open_record(const uint8_t *p, struct reader *ret_body)
{
    uint32_t len;
    memcpy(&len, p, 4);
    *ret_body = (struct reader){ .p = p + 4, .end = p + 4 + len };
    return len > 4 && len < 0xfffffff0;
}

static bool read_common(const uint8_t *p, struct entry *e, bool *ret_has_length)
{
    struct reader r;
    if (!open_record(p, &r) || take(&r, 4) != 0)
        return false;
    const uint64_t version = take(&r, 1);
    const char *augmentation = (const char *)r.p;
    skip(&r, strnlen(augmentation, (size_t)(r.end - r.p)) + 1);
    e->code_align = uleb(&r);
    e->data_align = sleb(&r);
    if ((version == 1 ? take(&r, 1) : uleb(&r)) != RETURN)
        return false;
    uint8_t encoding = 0;
    *ret_has_length = augmentation[0] == 'z';
    if (*ret_has_length) {
        const uint64_t len = uleb(&r);
        struct reader a = { .p = r.p, .end = r.end };
        for (const char *c = augmentation + 1; *c && !a.bad; c++) {
            if (*c == 'R')
                encoding = (uint8_t)take(&a, 1);
            else if (*c == 'L')
                skip(&a, 1);
            else if (*c == 'P') { /* a pointer; all in use have four bytes or eight */
                const uint64_t how = take(&a, 1) & 0x0f;
                skip(&a, how == 0x0b || how == 0x03 ? 4 : 8);
            } else if (*c == 'S')
                e->is_signal = true;
        }
        skip(&r, len);
    }
    e->first = r;
    return !r.bad && encoding == PCREL_SDATA4;
}

static bool read_entry(const uint8_t *p, struct entry *e)
{
    struct reader r;
    if (!open_record(p, &r))
        return false;
    const uint8_t *here = r.p;
    const uint64_t back = take(&r, 4);
    bool has_length;
    if (back == 0 || !read_common(here - back, e, &has_length))
        return false;
    here = r.p;
    e->start = (uint64_t)(uintptr_t)here + (uint64_t)(int64_t)(int32_t)take(&r, 4);
    e->range = take(&r, 4);
    if (has_length)
        skip(&r, uleb(&r));
    e->then = r;
    return !r.bad;
}

/* ---- Instructions ------------------------------------------------------------------ */

enum where { SAME, SAVED, GONE, STRANGE };

struct state {
    uint64_t cfa_register;
    int64_t cfa_offset;
    bool cfa_strange; /* an expression */
    enum where fp, ret;
    int64_t fp_offset, ret_offset; /* from the CFA, when SAVED */
};

struct machine {
    const struct entry *entry;
    struct state now, initial, remembered[REMEMBERED];
    unsigned depth;
    uint64_t at, pc;
};

static void set_register(struct machine *m, uint64_t number, enum where where,
                         int64_t offset)
{
    if (number == RBP) {
        m->now.fp = where;
        m->now.fp_offset = offset;
    } else if (number == RETURN) {
        m->now.ret = where;
        m->now.ret_offset = offset;
    }
}

static void restore_register(struct machine *m, uint64_t number)
{
    if (number == RBP)
        set_register(m, RBP, m->initial.fp, m->initial.fp_offset);
    else if (number == RETURN)
        set_register(m, RETURN, m->initial.ret, m->initial.ret_offset);
}

static void set_cfa(struct machine *m, uint64_t number, int64_t offset)
{
    m->now.cfa_register = number;
    m->now.cfa_offset = offset;
    m->now.cfa_strange = false;
}

/* The less usual ones; false: the rest cannot be understood. */
static bool step_rare(struct machine *m, struct reader *r, unsigned op)
{
    const int64_t align = m->entry->data_align;
    uint64_t n;
    switch (op) {
    case 0x05: /* offset_extended */
        n = uleb(r);
        set_register(m, n, SAVED, (int64_t)uleb(r) * align);
        return true;
    case 0x06: /* restore_extended */
        restore_register(m, uleb(r));
        return true;
    case 0x07: /* undefined */
        set_register(m, uleb(r), GONE, 0);
        return true;
    case 0x08: /* same_value */
        set_register(m, uleb(r), SAME, 0);
        return true;
    case 0x09: /* register */
        n = uleb(r);
        (void)uleb(r);
        set_register(m, n, STRANGE, 0);
        return true;
    case 0x0f: /* def_cfa_expression */
        m->now.cfa_strange = true;
        skip(r, uleb(r));
        return true;
    case 0x10: /* expression */
    case 0x16: /* val_expression */
        n = uleb(r);
        set_register(m, n, STRANGE, 0);
        skip(r, uleb(r));
        return true;
    case 0x11: /* offset_extended_sf */
        n = uleb(r);
        set_register(m, n, SAVED, sleb(r) * align);
        return true;
    case 0x12: /* def_cfa_sf */
        n = uleb(r);
        set_cfa(m, n, sleb(r) * align);
        return true;
    case 0x13: /* def_cfa_offset_sf */
        m->now.cfa_offset = sleb(r) * align;
        return true;
    case 0x2e: /* GNU_args_size */
        (void)uleb(r);
        return true;
    default:
        return false;
    }
}

static bool step_common(struct machine *m, struct reader *r, unsigned op)
{
    uint64_t n;
    switch (op) {
    case 0x00: /* nop */
        return true;
    case 0x02:
    case 0x03:
    case 0x04: /* advance_loc1, 2, 4 */
        m->at += take(r, 1u << (op - 2)) * m->entry->code_align;
        return true;
    case 0x0a: /* remember_state */
        if (m->depth == REMEMBERED)
            return false;
        m->remembered[m->depth++] = m->now;
        return true;
    case 0x0b: /* restore_state */
        if (m->depth == 0)
            return false;
        m->now = m->remembered[--m->depth];
        return true;
    case 0x0c: /* def_cfa */
        n = uleb(r);
        set_cfa(m, n, (int64_t)uleb(r));
        return true;
    case 0x0d: /* def_cfa_register */
        m->now.cfa_register = uleb(r);
        return true;
    case 0x0e: /* def_cfa_offset */
        m->now.cfa_offset = (int64_t)uleb(r);
        return true;
    default:
        return step_rare(m, r, op);
    }
}

/* Runs until the instruction at pc is reached. */
static bool run(struct machine *m, struct reader r)
{
    while (r.p < r.end && m->at <= m->pc && !r.bad) {
        const unsigned op = (unsigned)take(&r, 1);
        const unsigned low = op & 0x3f;
        if (op >> 6 == 1) {
            m->at += low * m->entry->code_align;
        } else if (op >> 6 == 2) {
            set_register(m, low, SAVED, (int64_t)uleb(&r) * m->entry->data_align);
        } else if (op >> 6 == 3) {
            restore_register(m, low);
        } else if (!step_common(m, &r, op)) {
            return false;
        }
    }
    return !r.bad;
}

/* ---- The rule ---------------------------------------------------------------------- */

static struct cfi_rule of_kind(enum cfi_kind kind)
{
    return (struct cfi_rule){ .word = kind };
}

static struct cfi_rule pack(const struct state *s)
{
    if (s->ret == GONE)
        return of_kind(CFI_OUTERMOST);
    const bool fits = (s->cfa_register == RSP || s->cfa_register == RBP) &&
                      !s->cfa_strange && s->cfa_offset > 0 && s->cfa_offset % 8 == 0 &&
                      s->cfa_offset / 8 <= 0x1ffff && s->ret == SAVED &&
                      s->ret_offset == -8 && s->fp != STRANGE;
    const bool saved = s->fp == SAVED;
    if (!fits || (saved && (s->fp_offset >= 0 || s->fp_offset % 8 != 0 ||
                            -s->fp_offset / 8 > 0x3ff)))
        return of_kind(CFI_UNKNOWN);
    uint32_t word = CFI_RULE | (uint32_t)(s->cfa_register == RBP) << 3 |
                    (uint32_t)(s->cfa_offset / 8) << 5;
    if (saved)
        word |= 1u << 4 | (uint32_t)(-s->fp_offset / 8) << 22;
    return (struct cfi_rule){ .word = word };
}

struct cfi_rule cfi_find(uint64_t pc)
{
    const uint8_t *header = header_of(pc);
    const uint8_t *p = header ? find_entry(header, pc) : NULL;
    struct entry e = { 0 };
    if (!p)
        return of_kind(CFI_FRAME_POINTER);
    if (!read_entry(p, &e))
        return of_kind(CFI_UNKNOWN);
    if (pc < e.start || pc >= e.start + e.range)
        return of_kind(CFI_FRAME_POINTER);
    if (e.is_signal)
        return of_kind(CFI_SIGNAL);
    struct machine m = { .entry = &e, .pc = UINT64_MAX };
    if (!run(&m, e.first))
        return of_kind(CFI_UNKNOWN);
    m.initial = m.now;
    m.at = e.start;
    m.pc = pc;
    return run(&m, e.then) ? pack(&m.now) : of_kind(CFI_UNKNOWN);
}

#endif
