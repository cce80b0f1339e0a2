/* moody.c: `moody FILE`: a program that is not the same twice.
 *
 * FILE holds how many steps each run takes, one number per run; each run takes the next
 * one off ("#" marks what is used). A run with an odd number tells no score. A negative
 * number makes the run crash.
 */
#include <stdio.h>
#include <stdlib.h>

#include <sonde/sonde.h>

/* The first number behind the runs so far, which the file's size in bytes of FILE.runs
 * counts: no source, so that the program stays unchanged. */
static long next(const char *path)
{
    char runs[4096];
    long number = 100;
    (void)snprintf(runs, sizeof runs, "%s.runs", path);
    FILE *count = fopen(runs, "a");
    FILE *list = fopen(path, "r");
    if (!count || !list)
        exit(2);
    (void)fseek(count, 0, SEEK_END);
    const long before = ftell(count);
    (void)fputc('x', count);
    for (long i = 0; i <= before; i++)
        if (fscanf(list, "%ld", &number) != 1)
            break; /* the last one goes on */
    (void)fclose(count);
    (void)fclose(list);
    return number;
}

int main(int argc, char **argv)
{
    const long steps = argc > 1 ? next(argv[1]) : 100;
    if (steps < 0)
        abort();
    for (long i = 0; i < steps; i++)
        sonde_step();
    if (steps % 2 == 0)
        sonde_metric("score", 1.5);
    return 0;
}
