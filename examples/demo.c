/* demo.c: the training program of `sonde demo` on its own (README.md). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "demo/train.h"

int main(int argc, char **argv)
{
    const struct train_options options = {
        .steps = argc > 1 ? (unsigned)atoi(argv[1]) : 0,
        .log = stdout,
    };
    struct train_result result;
    const int rc = train_run(&options, &result);
    if (rc < 0)
        fprintf(stderr, "demo: %s\n", strerror(-rc));
    return rc < 0;
}
