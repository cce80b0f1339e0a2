/* dwarf.h: what elfutils knows of a module. Private to capture/symbol. */
#ifndef SONDE_CAPTURE_SYMBOL_DWARF_H
#define SONDE_CAPTURE_SYMBOL_DWARF_H

#include <stdbool.h>
#include <stdint.h>

#include "capture/symbol/symbol.h"

struct dwarf;

/* The descriptor stays the caller's; `path` tells where to look for a separate debug
 * file. SONDE_E_UNSUPPORTED without elfutils. */
int dwarf_open(const char *path, int fd, struct dwarf **ret_dwarf);
void dwarf_close(struct dwarf *dwarf);
bool dwarf_has_names(const struct dwarf *dwarf);

/* As symbol_find(), by virtual address; names as they are in the file. */
unsigned dwarf_find(struct dwarf *dwarf, uint64_t address,
                    struct symbol_frame *ret_frames, unsigned max);

#endif
