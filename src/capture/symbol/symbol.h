/* symbol.h: names of places in ELF files.
 *
 *     struct symbol_module *m;
 *     rc = symbol_open(&(struct symbol_file){ .path = "/usr/lib/libm.so.6" }, &m);
 *     n = symbol_find(m, offset, frames, SYMBOL_FRAMES);
 *     symbol_close(m);
 *
 * Through elfutils: DWARF with inlined calls, separate debug files (by build id or
 * debug link, /usr/lib/debug; nothing is fetched from the network), symbol tables.
 * Without elfutils only symbol tables (elfsym.c).
 *
 * The files belong to the profiled program: hostile. elfutils is careful but has had
 * its bugs, so call this in a child process that may die (launch/symbolise.c).
 */
#ifndef SONDE_CAPTURE_SYMBOL_SYMBOL_H
#define SONDE_CAPTURE_SYMBOL_SYMBOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SYMBOL_FRAMES = 16 };

struct symbol_file {
    const char *path; /* "[vdso]" is ours, which is everybody's */
    const uint8_t *build_id;
    size_t build_id_len; /* 0: whatever is at the path is right, unless … */
    uint64_t inode;      /* … 0 or the file has another one */
};

/* One function at a place. Texts live as long as the module; "" is unknown. */
struct symbol_frame {
    const char *function;
    const char *function_file; /* where it is defined … */
    unsigned function_line;    /* … 0 unknown */
    const char *file;          /* where in it the place is */
    unsigned line;
};

struct symbol_module;

/* −ENOENT, −EACCES …; SONDE_E_STATE: another file stands there by now; SONDE_E_FORMAT:
 * no ELF file; SONDE_E_UNSUPPORTED: not for this kind. */
int symbol_open(const struct symbol_file *file, struct symbol_module **ret_module);
void symbol_close(struct symbol_module *module);

/* The functions at an offset of the file: the innermost first, then those it is
 * inlined into. Returns how many; 0: unknown. */
unsigned symbol_find(struct symbol_module *module, uint64_t offset,
                     struct symbol_frame *ret_frames, unsigned max);

/* Neither names nor lines in it. */
bool symbol_is_stripped(const struct symbol_module *module);

/* A C++ name as people write it, in memory of malloc; NULL when it is none or there is
 * no libstdc++ to ask. */
char *symbol_demangle(const char *name);

/* Whether lines and inlined calls can be found (elfutils was built in). */
bool symbol_has_lines(void);

#endif
