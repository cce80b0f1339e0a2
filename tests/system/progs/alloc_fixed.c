// link: none
// flags: -O1 -fno-builtin -fno-pie
// libs: -no-pie
/* alloc_fixed: an executable at a fixed address that takes malloc's address, as Debian's
 * Python does: its stub is `malloc` to the whole process. 1,000 blocks of 5,000 bytes. */
#include <stdlib.h>

static void *(*volatile allocate)(size_t);

int main(void)
{
    allocate = malloc; /* in code, not in data: that makes the stub */
    for (int i = 0; i < 1000; i++)
        free(i % 2 ? allocate(5000) : malloc(5000));
    return 0;
}
