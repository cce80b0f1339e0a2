/* symtab.h: the functions of a module by address.
 *
 * libdwfl looks at every symbol of the module for each address it is asked for; torch's
 * libraries have some hundred thousand, and a run asks for thousands of addresses. Here
 * they are looked at once and sorted.
 */
#ifndef SONDE_CAPTURE_SYMBOL_SYMTAB_H
#define SONDE_CAPTURE_SYMBOL_SYMTAB_H

#include <elfutils/libdwfl.h>
#include <stddef.h>

struct symtab {
    struct symtab_function *functions; /* ascending by address */
    size_t count;
};

/* Names stay those of the module, and live as long as it. */
int symtab_build(Dwfl_Module *module, struct symtab *ret_table);
void symtab_release(struct symtab *table);
/* The function that holds the address, else the nearest label before it that has no size;
 * "" when there is none. */
const char *symtab_name_at(const struct symtab *table, GElf_Addr address);

#endif
