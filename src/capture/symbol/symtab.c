/* symtab.c: see symtab.h. */
#ifdef SONDE_HAVE_DW

#include "capture/symbol/symtab.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

enum { LOOK_BACK = 64 }; /* symbols inside one another are few */

struct symtab_function {
    GElf_Addr start;
    uint64_t size;
    const char *name;
    uint8_t rank; /* of names for one place: the lower the better */
};

/* Global names are what people write; weak and local ones are aliases and parts. */
static uint8_t rank_of(const GElf_Sym *s)
{
    switch (GELF_ST_BIND(s->st_info)) {
    case STB_GLOBAL:
        return 0;
    case STB_WEAK:
        return 1;
    default:
        return 2;
    }
}

static bool is_code(const GElf_Sym *s, const char *name)
{
    const int type = GELF_ST_TYPE(s->st_info);
    return name && name[0] && s->st_shndx != SHN_UNDEF &&
           (type == STT_FUNC || type == STT_GNU_IFUNC || type == STT_NOTYPE);
}

static int by_address(const void *left, const void *right)
{
    const struct symtab_function *a = left, *b = right;
    if (a->start != b->start)
        return a->start < b->start ? -1 : 1;
    if (a->rank != b->rank) /* the best last: it is met first on the way back */
        return a->rank < b->rank ? 1 : -1;
    return a->size == b->size ? 0 : a->size < b->size ? -1 : 1;
}

int symtab_build(Dwfl_Module *module, struct symtab *ret_table)
{
    const int all = dwfl_module_getsymtab(module);
    struct symtab t = { NULL, 0 };
    *ret_table = t;
    if (all <= 1)
        return 0;
    t.functions = calloc((size_t)all, sizeof *t.functions);
    if (!t.functions)
        return -ENOMEM;
    for (int i = 1; i < all; i++) {
        GElf_Sym symbol;
        GElf_Addr address;
        const char *name = dwfl_module_getsym_info(module, i, &symbol, &address, NULL,
                                                   NULL, NULL);
        if (is_code(&symbol, name))
            t.functions[t.count++] = (struct symtab_function){ address, symbol.st_size,
                                                               name, rank_of(&symbol) };
    }
    qsort(t.functions, t.count, sizeof *t.functions, by_address);
    *ret_table = t;
    return 0;
}

void symtab_release(struct symtab *t)
{
    free(t->functions);
    *t = (struct symtab){ NULL, 0 };
}

/* How many begin at the address or before. */
static size_t up_to(const struct symtab *t, GElf_Addr address)
{
    size_t low = 0, high = t->count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (t->functions[middle].start <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

const char *symtab_name_at(const struct symtab *t, GElf_Addr address)
{
    const size_t end = up_to(t, address);
    const char *label = "";
    bool passed = false; /* a function that ended before the address */
    for (size_t i = end; i-- > 0 && end - i <= LOOK_BACK;) {
        const struct symtab_function *f = &t->functions[i];
        if (f->size && address - f->start < f->size)
            return f->name;
        if (!f->size && !passed && !label[0])
            label = f->name;
        passed |= f->size > 0;
    }
    return label;
}

#else
typedef int symtab_needs_libdw; /* an empty file is no C */
#endif
