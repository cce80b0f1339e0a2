// link: all
/* fold.c: how fast events become statistics, on one core.
 *
 *     fold pattern=tight|nested|random zones=N passes=7 output=DIR
 *
 * Each pass folds a fresh copy of one raw file from opening it to the last publish
 * (`folder`), opens it as a report does (`reader`), and reads all of its words
 * (`floor`). Numbers are events per second of CPU time.
 */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>

#include "rawfile.h"
#include "trace/folder.h"
#include "trace/reader.h"

static void copy_file(const char *from, const char *to)
{
    const int in = open(from, O_RDONLY | O_CLOEXEC);
    const int out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    struct stat st;
    if (in < 0 || out < 0 || fstat(in, &st) != 0)
        die(to, strerror(errno));
    for (off_t at = 0; at < st.st_size;)
        if (sendfile(out, in, &at, (size_t)(st.st_size - at)) <= 0)
            die(to, strerror(errno));
    (void)close(in);
    (void)close(out);
}

static double read_words(const char *path)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) != 0)
        die(path, strerror(errno));
    const size_t len = (size_t)st.st_size;
    const uint64_t *words = mmap(NULL, len, PROT_READ, MAP_SHARED, fd, 0);
    if (words == MAP_FAILED)
        die(path, strerror(errno));
    uint64_t found = 0;
    for (size_t i = 0; i < len / 8; i++)
        found += words[i] != 0;
    (void)munmap((void *)(uintptr_t)words, len);
    (void)close(fd);
    return (double)found;
}

static double fold_once(const char *path, struct control *control)
{
    struct tracefile file;
    struct folder folder;
    if (tracefile_open(path, control, &file) < 0)
        die(path, "cannot open it");
    folder_init(&folder, &file);
    while (!folder.finished)
        if (folder_pass(&folder, false, 64) < 0)
            die(path, "cannot fold it");
    const double events = (double)folder.events;
    folder_release(&folder);
    tracefile_close(&file);
    return events;
}

static double open_once(const char *path)
{
    struct trace *trace;
    if (trace_open(path, NULL, &trace) < 0)
        die(path, "cannot read it");
    const double events = (double)trace_info(trace)->events;
    trace_free(trace);
    return events;
}

int main(int argc, char **argv)
{
    (void)argc;
    char path[4096], copy[4200];
    const char *dir = argument(argv, "output", "fold.run");
    const unsigned passes = (unsigned)argument_number(argv, "passes", 7) % MAX_PASSES;
    pin(0, 0);
    rawfile_make(dir, pattern_named(argument(argv, "pattern", "tight")),
                 argument_number(argv, "zones", 4000000), path, sizeof path);
    struct control *control;
    if (control_map(dir, true, &control) < 0)
        die(dir, "no control file");

    double floor[MAX_PASSES], folder[MAX_PASSES], reader[MAX_PASSES], events = 0;
    (void)snprintf(copy, sizeof copy, "%s.copy", path);
    for (unsigned i = 0; i < passes; i++) {
        copy_file(path, copy);
        const double t0 = clock_ns(CLOCK_THREAD_CPUTIME_ID);
        const double words = read_words(copy);
        const double t1 = clock_ns(CLOCK_THREAD_CPUTIME_ID);
        const double opened = open_once(copy);
        const double t2 = clock_ns(CLOCK_THREAD_CPUTIME_ID);
        events = fold_once(copy, control);
        const double t3 = clock_ns(CLOCK_THREAD_CPUTIME_ID);
        floor[i] = words / (t1 - t0) * 1e9;
        reader[i] = opened / (t2 - t1) * 1e9;
        folder[i] = events / (t3 - t2) * 1e9;
        if (opened != events)
            die(path, "reader and folder disagree on the number of events");
    }
    put_number("events", events);
    put_numbers("floor", floor, passes);
    put_numbers("folder", folder, passes);
    put_numbers("reader", reader, passes);
    put_end();
    return 0;
}
