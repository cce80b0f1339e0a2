// link: so
/* visit_so: a library linked with libsonde.so (copies, test_attach_copies.py). */
#include <sonde/sonde.h>

__attribute__((visibility("default"))) void visit(void (*inside)(void *), void *arg);

void visit(void (*inside)(void *), void *arg)
{
    SONDE_ZONE("visit so", SONDE_BACKWARD) {
        inside(arg);
    }
}
