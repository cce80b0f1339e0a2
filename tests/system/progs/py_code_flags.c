// link: all
/* py_code_flags DIR: what a run's file of Python stacks says of every function: its flags and
 * its name. */
#include <stdio.h>

#include "trace/pystack_rows.h"
#include "trace/tablefiles.h"

int main(int argc, char **argv)
{
    struct tablefile *file;
    struct pystack_code_row row;
    if (argc != 2 || tablefiles_newest(argv[1], PYSTACKS_KIND, NULL, &file) < 0)
        return 1;
    for (uint32_t i = 0; i < tablefile_count(file, PYSTACKS_CODES); i++)
        if (tablefile_get(file, PYSTACKS_CODES, i, &row, sizeof row))
            (void)printf("%u %s\n", row.flags, tablefile_text(file, row.name));
    tablefile_free(file);
    return 0;
}
