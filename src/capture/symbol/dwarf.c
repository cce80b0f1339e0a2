/* dwarf.c: functions, lines and inlined calls through elfutils.
 *
 * libdwfl finds the separate debug file by build id or debug link; we do not let it ask
 * debuginfod servers. The chain of inlined calls is read by walking down from the
 * compilation unit along the entries that hold the address: dwarf_getscopes() would mix
 * in the scopes where the inlined function was written.
 */
#include "capture/symbol/dwarf.h"

#include "base/error.h"

#ifdef SONDE_HAVE_DW

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/arena.h"
#include "capture/symbol/symtab.h"

enum {
    MAX_NESTING = 64,    /* entries around one another */
    MAX_NAMESPACES = 16, /* of these, namespaces and classes */
    SOFT_LIMIT_S = 3,    /* of CPU time; then names and lines, no inlined calls */
};

struct dwarf {
    Dwfl *dwfl;
    Dwfl_Module *module;
    GElf_Addr bias;
    bool has_dwarf, has_symbols;
    bool has_table;      /* the next has been built, or cannot be */
    struct symtab table; /* most modules are asked for lines alone, or not at all */
    time_t started_s;    /* of CPU time */
    struct arena texts;
};

static const Dwfl_Callbacks callbacks = {
    .find_elf = dwfl_build_id_find_elf,
    .find_debuginfo = dwfl_standard_find_debuginfo,
    .section_address = dwfl_offline_section_address,
};

static time_t cpu_s(void)
{
    struct timespec t = { 0, 0 };
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return t.tv_sec;
}

int dwarf_open(const char *path, int fd, struct dwarf **ret_dwarf)
{
    struct dwarf *d = calloc(1, sizeof *d);
    if (!d)
        return -ENOMEM;
    (void)unsetenv("DEBUGINFOD_URLS"); /* never the network */
    arena_init(&d->texts);
    d->started_s = cpu_s();
    d->dwfl = dwfl_begin(&callbacks);
    int own = dup(fd);
    if (d->dwfl && own >= 0) {
        dwfl_report_begin(d->dwfl);
        d->module = dwfl_report_offline(d->dwfl, path, path, own);
        if (d->module)
            own = -1; /* theirs now */
        (void)dwfl_report_end(d->dwfl, NULL, NULL);
    }
    if (own >= 0)
        (void)close(own);
    if (!d->module || !dwfl_module_getelf(d->module, &d->bias)) {
        dwarf_close(d);
        return SONDE_E_FORMAT;
    }
    Dwarf_Addr bias;
    d->has_dwarf = dwfl_module_getdwarf(d->module, &bias) != NULL;
    d->has_symbols = dwfl_module_getsymtab(d->module) > 1;
    *ret_dwarf = d;
    return 0;
}

void dwarf_close(struct dwarf *d)
{
    if (!d)
        return;
    symtab_release(&d->table);
    if (d->dwfl)
        dwfl_end(d->dwfl);
    arena_release(&d->texts);
    free(d);
}

bool dwarf_has_names(const struct dwarf *d)
{
    return d->has_dwarf || d->has_symbols;
}

/* ---- The chain of functions around an address --------------------------------------- */

struct chain {
    Dwarf_Die die[MAX_NESTING]; /* functions, outermost first */
    unsigned count;
};

static bool is_function(int tag)
{
    return tag == DW_TAG_subprogram || tag == DW_TAG_inlined_subroutine;
}

static bool is_surrounding(int tag)
{
    return tag == DW_TAG_namespace || tag == DW_TAG_class_type ||
           tag == DW_TAG_structure_type || tag == DW_TAG_module;
}

/* Descends from `die` to the entries that hold `pc`. */
static bool descend(Dwarf_Die *die, Dwarf_Addr pc, unsigned depth, struct chain *chain)
{
    Dwarf_Die child;
    if (depth >= MAX_NESTING || dwarf_child(die, &child) != 0)
        return false;
    do {
        const int tag = dwarf_tag(&child);
        if (is_surrounding(tag)) {
            if (depth < MAX_NAMESPACES && descend(&child, pc, depth + 1, chain))
                return true;
            continue;
        }
        if ((!is_function(tag) && tag != DW_TAG_lexical_block) ||
            dwarf_haspc(&child, pc) != 1)
            continue;
        if (is_function(tag) && chain->count < MAX_NESTING)
            chain->die[chain->count++] = child;
        (void)descend(&child, pc, depth + 1, chain);
        return true;
    } while (dwarf_siblingof(&child, &child) == 0);
    return false;
}

static const char *function_name(Dwarf_Die *die)
{
    Dwarf_Attribute attribute;
    static const unsigned linkage[] = { DW_AT_linkage_name, DW_AT_MIPS_linkage_name };
    for (unsigned i = 0; i < 2; i++) {
        const char *name = dwarf_attr_integrate(die, linkage[i], &attribute)
                               ? dwarf_formstring(&attribute)
                               : NULL;
        if (name)
            return name;
    }
    const char *name = dwarf_diename(die);
    return name ? name : "";
}

/* ---- Places --------------------------------------------------------------------------- */

/* Relative names are relative to where the compiler ran. */
static const char *whole_path(struct dwarf *d, const char *dir, const char *file)
{
    if (!file)
        return "";
    if (file[0] == '/' || !dir)
        return file;
    const size_t n = strlen(dir), m = strlen(file);
    char *path = n + m < 4096 ? arena_alloc(&d->texts, n + m + 2) : NULL;
    if (!path)
        return file;
    memcpy(path, dir, n);
    path[n] = '/';
    memcpy(path + n + 1, file, m + 1);
    return path;
}

static const char *unit_dir(Dwarf_Die *unit)
{
    Dwarf_Attribute attribute;
    return dwarf_attr(unit, DW_AT_comp_dir, &attribute) ? dwarf_formstring(&attribute)
                                                        : NULL;
}

static const char *call_file(struct dwarf *d, Dwarf_Die *unit, Dwarf_Die *inlined)
{
    Dwarf_Attribute attribute;
    Dwarf_Word number;
    Dwarf_Files *files;
    if (!dwarf_attr(inlined, DW_AT_call_file, &attribute) ||
        dwarf_formudata(&attribute, &number) != 0 ||
        dwarf_getsrcfiles(unit, &files, NULL) != 0)
        return "";
    return whole_path(d, unit_dir(unit), dwarf_filesrc(files, number, NULL, NULL));
}

static unsigned call_line(Dwarf_Die *inlined)
{
    Dwarf_Attribute attribute;
    Dwarf_Word line;
    return dwarf_attr(inlined, DW_AT_call_line, &attribute) &&
                   dwarf_formudata(&attribute, &line) == 0 && line < INT32_MAX
               ? (unsigned)line
               : 0;
}

static void innermost_line(struct dwarf *d, Dwarf_Addr address,
                           struct symbol_frame *frame)
{
    Dwfl_Line *found = dwfl_module_getsrc(d->module, address);
    int line = 0;
    const char *file = found ? dwfl_lineinfo(found, NULL, &line, NULL, NULL, NULL)
                             : NULL;
    if (!file)
        return;
    frame->file = whole_path(d, dwfl_line_comp_dir(found), file);
    frame->line = line > 0 ? (unsigned)line : 0;
}

static void describe_function(struct dwarf *d, Dwarf_Die *unit, Dwarf_Die *die,
                              struct symbol_frame *frame)
{
    int line = 0;
    frame->function = function_name(die);
    frame->function_file = whole_path(d, unit_dir(unit), dwarf_decl_file(die));
    if (dwarf_decl_line(die, &line) == 0 && line > 0)
        frame->function_line = (unsigned)line;
}

static unsigned find_in_dwarf(struct dwarf *d, Dwarf_Addr address,
                              struct symbol_frame *frames, unsigned max)
{
    Dwarf_Addr bias;
    Dwarf_Die *unit = dwfl_module_addrdie(d->module, address, &bias);
    struct chain chain = { .count = 0 };
    if (!unit || cpu_s() - d->started_s > SOFT_LIMIT_S ||
        !descend(unit, address - bias, 0, &chain) || chain.count == 0)
        return 0;
    unsigned n = 0;
    for (unsigned i = chain.count; i-- > 0 && n < max; n++) {
        describe_function(d, unit, &chain.die[i], &frames[n]);
        if (i + 1 < chain.count) { /* the place is where the next inner one is called */
            frames[n].file = call_file(d, unit, &chain.die[i + 1]);
            frames[n].line = call_line(&chain.die[i + 1]);
        }
    }
    return n;
}

static const char *symbol_name_at(struct dwarf *d, Dwarf_Addr address)
{
    if (!d->has_table)
        (void)symtab_build(d->module,
                           &d->table); /* without memory there are no names */
    d->has_table = true;
    return symtab_name_at(&d->table, address);
}

unsigned dwarf_find(struct dwarf *d, uint64_t address, struct symbol_frame *frames,
                    unsigned max)
{
    const Dwarf_Addr at = address + d->bias;
    for (unsigned i = 0; i < max; i++)
        frames[i] = (struct symbol_frame){ "", "", 0, "", 0 };
    if (max == 0)
        return 0;
    unsigned n = d->has_dwarf ? find_in_dwarf(d, at, frames, max) : 0;
    if (n == 0 || frames[n - 1].function[0] == '\0')
        frames[n ? n - 1 : 0].function = symbol_name_at(d, at);
    if (d->has_dwarf)
        innermost_line(d, at, &frames[0]);
    if (n == 0)
        n = frames[0].function[0] || frames[0].line ? 1 : 0;
    return n;
}

#else

int dwarf_open(const char *path, int fd, struct dwarf **ret_dwarf)
{
    (void)path, (void)fd, (void)ret_dwarf;
    return SONDE_E_UNSUPPORTED;
}

void dwarf_close(struct dwarf *d)
{
    (void)d;
}

bool dwarf_has_names(const struct dwarf *d)
{
    (void)d;
    return false;
}

unsigned dwarf_find(struct dwarf *d, uint64_t address, struct symbol_frame *frames,
                    unsigned max)
{
    (void)d, (void)address, (void)frames, (void)max;
    return 0;
}

#endif
