/* modelpy.h: `sonde model --model FILE.py:FACTORY`: the Python package does it. */
#ifndef SONDE_CLI_MODELPY_H
#define SONDE_CLI_MODELPY_H

/* The arguments as given, before parsing moves them; ended by NULL; NULL: out of memory.
 * The texts are borrowed. */
char **modelpy_copy(int argc, char **argv);

/* Replaces this process by `python3 -m sonde._modelrun ARGUMENTS`, with the package beside
 * the command on its path. Returns only when that fails; the exit status. */
int modelpy_run(const char *model, char **arguments);

#endif
