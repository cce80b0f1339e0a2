/* leftovers.c: see leftovers.h. */
#include "cli/leftovers.h"

#include <ctype.h>
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/files.h"
#include "base/moment.h"

enum { ROUNDS_MOST = 1000, PAUSE_NS = 5000000 };

void leftovers_adopt(void)
{
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
}

/* The state and the parent, behind the name in parentheses, which may hold anything. */
static bool is_running_child(const char *pid)
{
    char path[64], state = '?';
    int parent = 0;
    struct buf text = BUF_INIT;
    (void)snprintf(path, sizeof path, "/proc/%.20s/stat", pid);
    bool is = file_read_all(path, 4096, &text) == 0;
    const char *name_end = is ? strrchr(text.data, ')') : NULL;
    is = name_end && sscanf(name_end + 1, " %c %d", &state, &parent) == 2 &&
         parent == (int)getpid() && state != 'Z' && state != 'X';
    buf_release(&text);
    return is;
}

/* Sends `signal` (0: none) to each; returns how many. */
static size_t each_child(int signal)
{
    size_t count = 0;
    DIR *dir = opendir("/proc");
    if (!dir)
        return 0;
    for (const struct dirent *e; (e = readdir(dir));)
        if (isdigit((unsigned char)e->d_name[0]) && is_running_child(e->d_name)) {
            count++;
            if (signal)
                (void)kill((pid_t)strtol(e->d_name, NULL, 10), signal);
        }
    (void)closedir(dir);
    return count;
}

size_t leftovers_count(void)
{
    return each_child(0);
}

void leftovers_end(uint64_t grace_ns)
{
    const uint64_t start = moment_ns(CLOCK_MONOTONIC);
    int signal = SIGTERM;
    for (int round = 0; round < ROUNDS_MOST; round++) {
        const bool late = moment_ns(CLOCK_MONOTONIC) - start >= grace_ns;
        if (each_child(late ? SIGKILL : signal) == 0)
            break;
        signal = 0; /* asked once */
        const struct timespec pause = { 0, PAUSE_NS };
        (void)nanosleep(&pause, NULL);
        while (waitpid(-1, NULL, WNOHANG) > 0) /* or their children stay theirs */
            ;
    }
}
