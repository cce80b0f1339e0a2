/* machine.h: the computer a run takes place on. */
#ifndef SONDE_TRACE_MACHINE_H
#define SONDE_TRACE_MACHINE_H

struct machine {
    char host[256];   /* "" unknown */
    char cpu[128];    /* model name; "" unknown */
    int cores;        /* that this process may use; 0 unknown */
    double memory_mb; /* NaN unknown */
};

void machine_read(struct machine *ret_machine);

#endif
