/* signame.h: signals by name. */
#ifndef SONDE_BASE_SIGNAME_H
#define SONDE_BASE_SIGNAME_H

enum { SIGNAL_NAME_LEN = 16 };

/* "SIGKILL", "SIGRTMIN+3", "signal 99". */
const char *signal_name(int signal, char ret_name[SIGNAL_NAME_LEN]);

#endif
