/* hangfile.h: what every process of a run is doing, written down.
 *
 * One text file per hang, hang-N.txt, mode 0600: for each process its command line, for
 * each thread its zones, its Python and its native stack, its state, where in the kernel
 * it waits and in which system call. The same in short goes into a file of tables, for
 * reports (trace/hang_rows.h). Nothing is stopped for it.
 */
#ifndef SONDE_LAUNCH_HANGFILE_H
#define SONDE_LAUNCH_HANGFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "launch/hangpicture.h"
#include "launch/kin.h"
#include "trace/control.h"
#include "trace/hang_rows.h"
#include "trace/tables.h"

struct hangfile {
    const char *dir;         /* of the run; borrowed */
    struct control *control; /* may be NULL */
    struct tables tables;    /* there from the first hang on */
    struct hang_row *row;    /* of the last hang; NULL */
};

/* Writes DIR/hang-NUMBER.txt and its rows. */
int hangfile_write(struct hangfile *file, unsigned number, const char *why,
                   uint64_t waited_ns, const struct kin *kin);
/* The last one has ended by itself. */
void hangfile_ended(struct hangfile *file, uint64_t lasted_ns);
void hangfile_close(struct hangfile *file);

/* Whether a living process of the run has a zone open; `ret_zone` gets the innermost
 * one of the program's main thread or of any other, "" without (hangzones.c). */
bool hangfile_zones_open(const char *dir, char *ret_zone, size_t len);

/* hangrows.c */
void hangrows_write(struct hangfile *file, unsigned number, const char *why,
                    uint64_t waited_ns, const struct hang_picture *picture);

#endif
