/* looks.c: see looks.h.
 *
 * smaps_rollup walks the page tables: 8 ms for 340 MiB that are shared, as much as fork()
 * took to copy them. So only some workers look (workers.py), and the looks in between are at least PAUSE times their cost apart and twice as
 * late each time: three in the first seconds, ten in an hour.
 *
 * The calls are the kernel's own: through libc they would be counted as the program's
 * files (capture/interpose).
 */
#include "looks.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "book.h"
#include "module.h"

enum { PAUSE = 500, TEXT_SIZE = 4096 };
static const double SOON_NS = 0.25e9;

/* The whole file, or "". */
static void read_text(const char *path, char *text, size_t size)
{
    size_t len = 0;
    const long fd = syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
    while (fd >= 0 && len + 1 < size) {
        const long n = syscall(SYS_read, (int)fd, text + len, size - 1 - len);
        if (n <= 0)
            break;
        len += (size_t)n;
    }
    if (fd >= 0)
        (void)syscall(SYS_close, (int)fd);
    text[len] = '\0';
}

/* "\nName:   123 kB"; false: no such line. */
static bool line_kb(const char *text, const char *name, uint64_t *ret_kb)
{
    const char *at = strstr(text, name);
    if (!at)
        return false;
    *ret_kb = strtoull(at + strlen(name), NULL, 10);
    return true;
}

/* Files do not count: fork() leaves their pages to be found again, and those that are
 * mapped for reading are nobody's copies. */
static bool look_at(struct loader_look *ret_look)
{
    char text[TEXT_SIZE];
    uint64_t anonymous, shm, dirty;
    struct rusage used;
    read_text("/proc/self/smaps_rollup", text, sizeof text);
    if (!line_kb(text, "\nAnonymous:", &anonymous) ||
        !line_kb(text, "\nPrivate_Dirty:", &dirty))
        return false;
    read_text("/proc/self/status", text, sizeof text);
    if (!line_kb(text, "\nRssShmem:", &shm) || getrusage(RUSAGE_SELF, &used) < 0)
        return false;
    ret_look->private_kb = dirty;
    ret_look->resident_kb = anonymous + shm;
    ret_look->faulted_kb = (uint64_t)used.ru_minflt *
                           ((uint64_t)sysconf(_SC_PAGESIZE) / 1024);
    return true;
}

static void put_look(struct loader_look *to, const struct loader_look *look)
{
    put64(&to->ticks, look->ticks);
    put64(&to->private_kb, look->private_kb);
    put64(&to->resident_kb, look->resident_kb);
    put64(&to->faulted_kb, look->faulted_kb);
}

static void keep(struct loader_self_row *self, const struct loader_look *look)
{
    put_look(self->looks ? &self->last_look : &self->first_look, look);
    publish(&self->looks, self->looks + 1);
}

static bool is_due(const struct looks *l, const struct loader_self_row *self,
                   uint64_t now, bool ending)
{
    if (!l->wanted)
        return false;
    return self->looks ? ending || now >= l->due : !ending;
}

void looks_take(struct looks *l, struct loader_self_row *self, uint64_t now,
                bool ending)
{
    struct loader_look look = { .ticks = now };
    if (!is_due(l, self, now, ending))
        return;
    PyThreadState *state = PyEval_SaveThread();
    const bool good = look_at(&look);
    PyEval_RestoreThread(state);
    l->cost = sonde_ticks() - now;
    if (!good) {
        l->wanted = false;
        return;
    }
    keep(self, &look);
    const uint64_t age = now - self->first_look.ticks;
    uint64_t pause = l->cost * PAUSE;
    if (pause < age)
        pause = age;
    const uint64_t soon = (uint64_t)(SOON_NS *
                                     book_ticks_per_ns()); /* or 0: not known */
    l->due = now + (pause < soon ? soon : pause);
}
