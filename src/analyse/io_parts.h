/* io_parts.h: what the files io*.c of analyse/ share; private to them. */
#ifndef SONDE_ANALYSE_IO_PARTS_H
#define SONDE_ANALYSE_IO_PARTS_H

#include "analyse/io.h"

/* A program in a process: from one exec to the next, or to the end. */
struct io_image {
    uint32_t pid, ppid;
    uint64_t start; /* ticks */
    bool finished;  /* the last reading is of its end */
    bool read;      /* there is a reading; else last.ticks is the start */
    struct io_reading last;
    uint64_t rows[2]; /* bytes seen in all, without `uncounted` */
};

/* Sets coverage and what it was made of. */
void io_coverage(const struct io_image *images, size_t count, struct io_report *io);

#endif
