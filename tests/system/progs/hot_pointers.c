// link: none
// flags: -O2 -g -fno-omit-frame-pointer -fno-asynchronous-unwind-tables -fno-unwind-tables
/* hot_pointers: the same with frame pointers and without unwinding tables. */
#include "hot_work.h"

int main(int argc, char **argv)
{
    struct hot_truth t = { 0 };
    hot_work(argc > 1 ? atof(argv[1]) : 1, &t);
    hot_print(&t);
    return 0;
}
