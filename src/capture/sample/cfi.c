/* cfi.c: finding the unwinding rules of an address. Using them: cfistep.c. */
#include "capture/sample/cfi.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/error.h"
#include "base/files.h"
#include "capture/sample/cfi_int.h"

enum {
    MAX_HEADERS = 64,
    MAX_SEGMENT = 1 << 30,
    MAX_INSTRUCTIONS = 4096, /* of one function */
    MAX_REMEMBERED = 8,
    /* Pointer encodings. */
    ENC_ABS8 = 0x00,
    ENC_UDATA4 = 0x03,
    ENC_SDATA4 = 0x0b,
    ENC_SDATA8 = 0x0c,
    ENC_PCREL = 0x10,
    ENC_DATAREL = 0x30,
    ENC_OMIT = 0xff,
};

/* ---- Opening -------------------------------------------------------------------------- */

struct headers {
    Elf64_Phdr load[MAX_HEADERS];
    unsigned load_count;
    Elf64_Phdr index; /* PT_GNU_EH_FRAME; p_type 0: none */
};

static int read_bytes(int fd, const void *image, size_t image_len, uint64_t offset,
                      void *ret_data, size_t len)
{
    if (image) {
        if (offset > image_len || image_len - offset < len)
            return SONDE_E_FORMAT;
        memcpy(ret_data, (const uint8_t *)image + offset, len);
        return 0;
    }
    if (offset > INT64_MAX - len)
        return SONDE_E_FORMAT;
    const ssize_t n = fd_pread_full(fd, ret_data, len, (off_t)offset);
    return n < 0 ? (int)n : (size_t)n == len ? 0 : SONDE_E_FORMAT;
}

static int read_headers(int fd, const void *image, size_t image_len,
                        struct headers *ret_headers)
{
    Elf64_Ehdr h;
    struct headers r = { .load_count = 0 };
    int rc = read_bytes(fd, image, image_len, 0, &h, sizeof h);
    if (rc < 0)
        return rc;
    if (memcmp(h.e_ident, ELFMAG, SELFMAG) != 0 || h.e_ident[EI_CLASS] != ELFCLASS64 ||
        h.e_machine != EM_X86_64 || h.e_phentsize != sizeof(Elf64_Phdr))
        return SONDE_E_NOTFOUND;
    for (unsigned i = 0; i < h.e_phnum && i < MAX_HEADERS; i++) {
        Elf64_Phdr p;
        rc = read_bytes(fd, image, image_len, h.e_phoff + i * sizeof p, &p, sizeof p);
        if (rc < 0)
            return rc;
        if (p.p_type == PT_LOAD)
            r.load[r.load_count++] = p;
        else if (p.p_type == PT_GNU_EH_FRAME)
            r.index = p;
    }
    *ret_headers = r;
    return 0;
}

/* The segment with the index in it has the table as well. */
static const Elf64_Phdr *segment_of_index(const struct headers *h)
{
    for (unsigned i = 0; i < h->load_count; i++) {
        const Elf64_Phdr *p = &h->load[i];
        if (h->index.p_vaddr >= p->p_vaddr &&
            h->index.p_vaddr - p->p_vaddr < p->p_filesz && p->p_filesz <= MAX_SEGMENT)
            return p;
    }
    return NULL;
}

static int map_segment(struct cfi *c, int fd, const void *image, size_t image_len,
                       const Elf64_Phdr *p)
{
    if (image) {
        if (p->p_offset > image_len || image_len - p->p_offset < p->p_filesz)
            return SONDE_E_FORMAT;
        c->bytes = (const uint8_t *)image + p->p_offset;
    } else {
        const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
        const uint64_t lead = p->p_offset % page;
        c->map_len = p->p_filesz + lead;
        c->map = mmap(NULL, c->map_len, PROT_READ, MAP_PRIVATE, fd,
                      (off_t)(p->p_offset - lead));
        if (c->map == MAP_FAILED) {
            c->map = NULL;
            return -errno;
        }
        c->bytes = (const uint8_t *)c->map + lead;
    }
    c->len = p->p_filesz;
    c->vaddr = p->p_vaddr;
    return 0;
}

/* "version, three encodings, address of .eh_frame, count, table". */
static int read_index(struct cfi *c, uint64_t index_vaddr)
{
    struct cursor k = { c->bytes, index_vaddr - c->vaddr, c->len, false };
    const uint64_t version = take_fixed(&k, 1), frame_enc = take_fixed(&k, 1);
    const uint64_t count_enc = take_fixed(&k, 1), table_enc = take_fixed(&k, 1);
    if (k.bad || version != 1 || count_enc != ENC_UDATA4 ||
        table_enc != (ENC_DATAREL | ENC_SDATA4) || (frame_enc & 0x0f) != ENC_SDATA4)
        return SONDE_E_NOTFOUND;
    skip(&k, 4);
    const uint64_t count = take_fixed(&k, 4);
    if (k.bad || count == 0 || count > (c->len - k.at) / 8)
        return SONDE_E_NOTFOUND;
    c->index_vaddr = index_vaddr;
    c->table = k.at;
    c->table_count = (uint32_t)count;
    return 0;
}

int cfi_open(int fd, const void *image, size_t image_len, struct cfi **ret_cfi)
{
    struct headers h;
    int rc = read_headers(fd, image, image_len, &h);
    if (rc < 0)
        return rc;
    const Elf64_Phdr *segment = h.index.p_type ? segment_of_index(&h) : NULL;
    if (!segment)
        return SONDE_E_NOTFOUND;
    struct cfi *c = calloc(1, sizeof *c);
    if (!c)
        return -ENOMEM;
    c->load_count = h.load_count < CFI_SEGMENTS ? h.load_count : CFI_SEGMENTS;
    for (unsigned i = 0; i < c->load_count; i++)
        c->load[i] = (struct cfi_segment){ h.load[i].p_offset, h.load[i].p_filesz,
                                           h.load[i].p_vaddr };
    rc = map_segment(c, fd, image, image_len, segment);
    if (rc == 0)
        rc = read_index(c, h.index.p_vaddr);
    if (rc < 0)
        cfi_free(c);
    else
        *ret_cfi = c;
    return rc;
}

void cfi_free(struct cfi *c)
{
    if (!c)
        return;
    if (c->map)
        (void)munmap(c->map, c->map_len);
    free(c);
}

/* ---- The entry of an address ------------------------------------------------------------ */

static int64_t table_word(const struct cfi *c, uint32_t entry, unsigned word)
{
    struct cursor k = { c->bytes, c->table + (size_t)entry * 8 + word * 4, c->len,
                        false };
    return take_signed(&k, 4);
}

static bool find_entry(const struct cfi *c, uint64_t pc, uint64_t *ret_start,
                       uint64_t *ret_vaddr)
{
    const int64_t wanted = (int64_t)(pc - c->index_vaddr);
    uint32_t low = 0, high = c->table_count;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (table_word(c, middle, 0) <= wanted)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0)
        return false;
    *ret_start = c->index_vaddr + (uint64_t)table_word(c, low - 1, 0);
    *ret_vaddr = c->index_vaddr + (uint64_t)table_word(c, low - 1, 1);
    return true;
}

static uint64_t take_pointer(const struct cfi *c, struct cursor *k, unsigned enc)
{
    const uint64_t here = c->vaddr + k->at;
    uint64_t v;
    switch (enc & 0x0f) {
    case ENC_ABS8:
        v = take_fixed(k, 8);
        break;
    case ENC_UDATA4:
        v = take_fixed(k, 4);
        break;
    case ENC_SDATA4:
        v = (uint64_t)take_signed(k, 4);
        break;
    case ENC_SDATA8:
        v = take_fixed(k, 8);
        break;
    default:
        k->bad = true;
        return 0;
    }
    const unsigned base = enc & 0x70;
    if (base == ENC_PCREL)
        v += here;
    else if (base != 0)
        k->bad = true;
    return v;
}

/* What the common part of several entries says. */
struct common {
    uint64_t code_align;
    int64_t data_align;
    uint64_t return_reg;
    unsigned pointer_enc;
    bool has_length, signal_frame;
    size_t program, end; /* in the segment */
};

/* A record: its length, then [at, end). */
static bool take_record(struct cursor *k)
{
    const uint64_t len = take_fixed(k, 4);
    if (k->bad || len < 4 || len >= 0xfffffff0 || len > k->end - k->at)
        return false;
    k->end = k->at + len;
    return true;
}

static bool read_augmentation(const struct cfi *c, struct cursor *k, const char *text,
                              struct common *ret)
{
    const uint64_t len = take_uleb(k);
    const size_t program = k->at + len;
    if (k->bad || len > k->end - k->at)
        return false;
    for (const char *p = text + 1; *p; p++) {
        if (*p == 'R')
            ret->pointer_enc = (unsigned)take_fixed(k, 1);
        else if (*p == 'L')
            skip(k, 1);
        else if (*p == 'P')
            (void)take_pointer(c, k, (unsigned)take_fixed(k, 1) & 0x7f);
        else if (*p == 'S')
            ret->signal_frame = true;
        else if (*p != 'B')
            return false;
    }
    k->at = program;
    ret->has_length = true;
    return true;
}

static bool read_common(const struct cfi *c, size_t at, struct common *ret)
{
    struct cursor k = { c->bytes, at, c->len, at >= c->len };
    if (k.bad || !take_record(&k) || take_fixed(&k, 4) != 0)
        return false;
    const uint64_t version = take_fixed(&k, 1);
    const char *text = (const char *)c->bytes + k.at;
    const size_t room = k.end - k.at, len = strnlen(text, room < 16 ? room : 16);
    if (k.bad || (version != 1 && version != 3) || len >= 16 || len >= room)
        return false;
    k.at += len + 1;
    *ret = (struct common){ .pointer_enc = ENC_ABS8 };
    ret->code_align = take_uleb(&k);
    ret->data_align = take_sleb(&k);
    ret->return_reg = version == 1 ? take_fixed(&k, 1) : take_uleb(&k);
    if (k.bad || (text[0] && text[0] != 'z') ||
        (text[0] == 'z' && !read_augmentation(c, &k, text, ret)))
        return false;
    ret->program = k.at;
    ret->end = k.end;
    return !k.bad && ret->return_reg == CFI_PC;
}

/* ---- The program of an entry -------------------------------------------------------------- */

struct machine {
    const struct cfi *cfi;
    const struct common *common;
    struct cfi_row row, initial, remembered[MAX_REMEMBERED];
    unsigned depth;
    uint64_t pc, wanted;
    unsigned left; /* instructions it may still take */
};

/* Offsets are written in units of the data alignment; hostile ones wrap around. */
static int64_t scaled(const struct machine *m, uint64_t offset)
{
    return (int64_t)(offset * (uint64_t)m->common->data_align);
}

static void set_rule(struct machine *m, uint64_t reg, unsigned kind, int64_t offset)
{
    if (reg < CFI_REGS && offset >= INT32_MIN && offset <= INT32_MAX)
        m->row.reg[reg] = (struct cfi_rule){ .kind = (uint8_t)kind,
                                             .offset = (int32_t)offset };
}

static void set_cfa(struct machine *m, struct cursor *k, uint64_t reg, int64_t offset)
{
    if (reg >= CFI_REGS || offset < INT32_MIN || offset > INT32_MAX) {
        k->bad = true;
        return;
    }
    m->row.cfa = (struct cfi_rule){ .kind = CFI_REG,
                                    .reg = (uint8_t)reg,
                                    .offset = (int32_t)offset };
}

static struct cfi_rule take_expression(struct cursor *k, unsigned kind)
{
    const uint64_t len = take_uleb(k);
    const struct cfi_rule rule = { .kind = (uint8_t)kind,
                                   .expr_len = (uint16_t)len,
                                   .offset = (int32_t)k->at };
    if (len > 4096)
        k->bad = true;
    skip(k, len);
    return rule;
}

static void restore_reg(struct machine *m, uint64_t reg)
{
    if (reg < CFI_REGS)
        m->row.reg[reg] = m->initial.reg[reg];
}

/* Instructions whose number is in the upper two bits. */
static void do_short(struct machine *m, struct cursor *k, unsigned op)
{
    const unsigned low = op & 0x3f;
    switch (op >> 6) {
    case 1:
        m->pc += low * m->common->code_align;
        break;
    case 2:
        set_rule(m, low, CFI_AT_CFA, scaled(m, take_uleb(k)));
        break;
    default:
        restore_reg(m, low);
    }
}

static void do_state(struct machine *m, struct cursor *k, unsigned op)
{
    if (op == 0x0a && m->depth < MAX_REMEMBERED)
        m->remembered[m->depth++] = m->row;
    else if (op == 0x0b && m->depth > 0)
        m->row = m->remembered[--m->depth];
    else
        k->bad = true;
}

static void do_cfa(struct machine *m, struct cursor *k, unsigned op)
{
    uint64_t reg = m->row.cfa.reg;
    switch (op) {
    case 0x0c: /* def_cfa */
        reg = take_uleb(k);
        set_cfa(m, k, reg, (int64_t)take_uleb(k));
        break;
    case 0x0d: /* def_cfa_register */
        set_cfa(m, k, take_uleb(k), m->row.cfa.offset);
        break;
    case 0x0e: /* def_cfa_offset */
        set_cfa(m, k, reg, (int64_t)take_uleb(k));
        break;
    case 0x0f: /* def_cfa_expression */
        m->row.cfa = take_expression(k, CFI_IS_EXPR);
        break;
    case 0x12: /* def_cfa_sf */
        reg = take_uleb(k);
        set_cfa(m, k, reg, scaled(m, (uint64_t)take_sleb(k)));
        break;
    default: /* 0x13 def_cfa_offset_sf */
        set_cfa(m, k, reg, scaled(m, (uint64_t)take_sleb(k)));
    }
}

static void do_register(struct machine *m, struct cursor *k, unsigned op)
{
    const uint64_t reg = take_uleb(k);
    switch (op) {
    case 0x05: /* offset_extended */
        set_rule(m, reg, CFI_AT_CFA, scaled(m, take_uleb(k)));
        break;
    case 0x06:
        restore_reg(m, reg);
        break;
    case 0x07:
        set_rule(m, reg, CFI_UNDEFINED, 0);
        break;
    case 0x08:
        set_rule(m, reg, CFI_SAME, 0);
        break;
    case 0x09: {
        const uint64_t from = take_uleb(k);
        set_rule(m, reg, CFI_REG, 0);
        if (reg < CFI_REGS && from < CFI_REGS)
            m->row.reg[reg].reg = (uint8_t)from;
        break;
    }
    case 0x10: /* expression */
    case 0x16: /* val_expression */ {
        const struct cfi_rule rule = take_expression(k, op == 0x10 ? CFI_AT_EXPR
                                                                   : CFI_IS_EXPR);
        if (reg < CFI_REGS)
            m->row.reg[reg] = rule;
        break;
    }
    case 0x11: /* offset_extended_sf */
        set_rule(m, reg, CFI_AT_CFA, scaled(m, (uint64_t)take_sleb(k)));
        break;
    case 0x14: /* val_offset */
        set_rule(m, reg, CFI_IS_CFA, scaled(m, take_uleb(k)));
        break;
    default: /* 0x15 val_offset_sf */
        set_rule(m, reg, CFI_IS_CFA, scaled(m, (uint64_t)take_sleb(k)));
    }
}

static void do_long(struct machine *m, struct cursor *k, unsigned op)
{
    const uint64_t align = m->common->code_align;
    if (op == 0x00)
        return;
    if (op == 0x01)
        m->pc = take_pointer(m->cfi, k, m->common->pointer_enc);
    else if (op >= 0x02 && op <= 0x04)
        m->pc += take_fixed(k, (size_t)1 << (op - 2)) * align;
    else if (op == 0x0a || op == 0x0b)
        do_state(m, k, op);
    else if ((op >= 0x0c && op <= 0x0f) || op == 0x12 || op == 0x13)
        do_cfa(m, k, op);
    else if (op <= 0x16)
        do_register(m, k, op);
    else if (op == 0x2e) /* GNU_args_size */
        (void)take_uleb(k);
    else
        k->bad = true;
}

/* Runs until the location passes `wanted`. */
static bool run_program(struct machine *m, size_t at, size_t end)
{
    struct cursor k = { m->cfi->bytes, at, end, at > end };
    while (!k.bad && k.at < k.end) {
        if (m->left-- == 0)
            return false;
        const unsigned op = (unsigned)take_fixed(&k, 1);
        if (op & 0xc0)
            do_short(m, &k, op);
        else
            do_long(m, &k, op);
        if (m->pc > m->wanted) /* only advancing changes it: the row is still right */
            return !k.bad;
    }
    return !k.bad;
}

static bool run_entry(const struct cfi *c, uint64_t entry_vaddr, uint64_t pc,
                      struct cfi_row *ret_row)
{
    const size_t start = entry_vaddr - c->vaddr;
    struct cursor k = { c->bytes, start, c->len, start >= c->len };
    struct common common;
    if (k.bad || !take_record(&k))
        return false;
    const size_t here = k.at;
    const uint64_t back = take_fixed(&k, 4);
    if (back == 0 || back > here || !read_common(c, here - back, &common))
        return false;
    const uint64_t begin = take_pointer(c, &k, common.pointer_enc);
    const uint64_t length = take_pointer(c, &k, common.pointer_enc & 0x0f);
    if (common.has_length)
        skip(&k, take_uleb(&k));
    if (k.bad || pc < begin || pc - begin >= length)
        return false;
    struct machine m = { .cfi = c,
                         .common = &common,
                         .pc = begin,
                         .wanted = UINT64_MAX,
                         .left = MAX_INSTRUCTIONS };
    if (!run_program(&m, common.program, common.end))
        return false;
    m.initial = m.row;
    m.pc = begin;
    m.wanted = pc;
    if (!run_program(&m, k.at, k.end))
        return false;
    *ret_row = m.row;
    ret_row->signal_frame = common.signal_frame;
    return true;
}

static bool find_address(const struct cfi *c, uint64_t file_offset, uint64_t *ret_pc)
{
    for (unsigned i = 0; i < c->load_count; i++) {
        const struct cfi_segment *s = &c->load[i];
        if (file_offset < s->offset || file_offset - s->offset >= s->len)
            continue;
        *ret_pc = s->vaddr + (file_offset - s->offset);
        return true;
    }
    return false;
}

bool cfi_find(const struct cfi *c, uint64_t file_offset, struct cfi_row *ret_row)
{
    uint64_t pc, start, entry;
    return find_address(c, file_offset, &pc) && find_entry(c, pc, &start, &entry) &&
           entry >= c->vaddr && run_entry(c, entry, pc, ret_row);
}

bool cfi_start(const struct cfi *c, uint64_t file_offset, uint64_t *ret_distance)
{
    uint64_t pc, start, entry;
    if (!find_address(c, file_offset, &pc) || !find_entry(c, pc, &start, &entry) ||
        start > pc)
        return false;
    *ret_distance = pc - start;
    return true;
}
