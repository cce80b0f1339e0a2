// link: a
/* visit_static: a library with a recorder of its own (copies, test_attach_copies.py). */
#include <sonde/sonde.h>

__attribute__((visibility("default"))) void visit(void (*inside)(void *), void *arg);

void visit(void (*inside)(void *), void *arg)
{
    SONDE_ZONE("visit static", SONDE_BACKWARD) {
        inside(arg);
    }
}
