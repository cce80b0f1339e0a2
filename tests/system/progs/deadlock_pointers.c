// link: a
// flags: -O0 -g -fno-omit-frame-pointer
// libs: -pthread
/* deadlock_pointers: the same with frames that are found by the frame pointer, which
 * nobody outside can see. */
#include "deadlock.c"
