/* output.h: where a verb's answer goes: the standard output, or a file that is
 * complete or not there.
 *
 *     struct output out;
 *     if (!output_open(&out, o.output))
 *         return CLI_FAILED;
 *     rc = write_it(out.file);
 *     return output_close(&out, rc, "the report") ? CLI_GOOD : CLI_FAILED;
 */
#ifndef SONDE_CLI_OUTPUT_H
#define SONDE_CLI_OUTPUT_H

#include <stdbool.h>
#include <stdio.h>

struct output {
    FILE *file;
    const char *path; /* NULL: standard output; borrowed */
    char *temporary;  /* NULL: written in place (a device, a pipe) */
};

/* NULL or "-" is the standard output. A regular file is written beside its place
 * with mode 0600. Prints the error and returns false when that is not possible. */
bool output_open(struct output *ret_output, const char *path);

/* Whether output_open() would work, for verbs that measure for a minute before they have
 * anything to write. Prints the error. */
bool output_possible(const char *path);

/* Ends it. With rc 0 a file takes its place; otherwise it is removed and the error
 * printed: "cannot write WHAT to 'PATH': …". */
bool output_close(struct output *output, int rc, const char *what);

/* Ends it as if it had never been begun, without a word. */
void output_cancel(struct output *output);

#endif
