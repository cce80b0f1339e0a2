// link: none
// flags: -O2 -g -fPIE -fno-sanitize=all
// libs: -static-pie -fno-sanitize=all
/* hot_static: the same in a static position-independent program. */
#include "hot_work.h"

int main(int argc, char **argv)
{
    struct hot_truth t = { 0 };
    hot_work(argc > 1 ? atof(argv[1]) : 1, &t);
    hot_print(&t);
    return 0;
}
