// link: none
// flags: -O2 -g
/* hot_plugin: the work of hot_work.h in a library that is loaded at run time. */
#include "hot_work.h"

void hot_plugin(double seconds);
void hot_plugin(double seconds)
{
    struct hot_truth t = { 0 };
    hot_work(seconds, &t);
    hot_print(&t);
}
