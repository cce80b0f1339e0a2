// link: all
/* analyse.c: how long a report takes, beside the time to fold what it is about.
 *
 *     analyse zones=N processes=8 passes=5 output=DIR
 *
 * One process's file, with steps and nested zones, is there as many times as there are
 * processes. Each pass folds fresh copies (`fold`: seconds of CPU time for all of them),
 * then makes the report of the folded run, diagnosis included (`report`). `peak_kib` is
 * the most memory the program held.
 */
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/stat.h>

/* Before measure.h, whose macro MEASURED would hide the word of provenance. */
#include "analyse/report.h"
#include "store/run.h"
#include "trace/folder.h"

#include "rawfile.h"

enum { PROCESSES_MAX = 64 };

/* A step, and eight zones in it. */
static void pattern_steps(unsigned long n)
{
    for (unsigned long i = 0; i < n; i += 8) {
        sonde_step();
        SONDE_ZONE("load", SONDE_DATA_LOADING) {
            SONDE_ZONE("read", SONDE_NO_PHASE) {}
        }
        SONDE_ZONE("forward", SONDE_FORWARD) {
            SONDE_ZONE("attention", SONDE_NO_PHASE) {}
            SONDE_ZONE("mlp", SONDE_NO_PHASE) {}
        }
        SONDE_ZONE("backward", SONDE_BACKWARD) {}
        SONDE_ZONE("gradient", SONDE_GRADIENT) {}
        SONDE_ZONE("optimizer", SONDE_OPTIMIZER) {}
    }
}

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

static double report_once(const char *dir)
{
    struct run *run;
    struct report *report;
    if (run_open(dir, &run) < 0 || report_build(run, &report) < 0)
        die(dir, "cannot report on it");
    if (!report->account.known)
        die(dir, "its steps were not found");
    const double events = (double)report->events;
    report_free(report);
    run_free(run);
    return events;
}

int main(int argc, char **argv)
{
    (void)argc;
    char found[4096], raw[4200], copies[PROCESSES_MAX][4200];
    const char *dir = argument(argv, "output", "analyse.run");
    const unsigned passes = (unsigned)argument_number(argv, "passes", 5) % MAX_PASSES;
    const unsigned processes = (unsigned)argument_number(argv, "processes", 8) %
                               PROCESSES_MAX;
    double fold[MAX_PASSES], report[MAX_PASSES], events = 0;
    struct control *control;
    struct rusage usage;
    pin(0, 0);
    rawfile_make(dir, pattern_steps, argument_number(argv, "zones", 1000000), found,
                 sizeof found);
    (void)snprintf(raw, sizeof raw, "%s.raw", found); /* no file of the run any more */
    if (rename(found, raw) != 0)
        die(raw, strerror(errno));
    if (control_map(dir, true, &control) < 0)
        die(dir, "no control file");
    for (unsigned k = 0; k < processes; k++)
        (void)snprintf(copies[k], sizeof copies[k], "%.*s-%u.sonde",
                       (int)(strlen(found) - 6), found, k);
    for (unsigned i = 0; i < passes; i++) {
        for (unsigned k = 0; k < processes; k++)
            copy_file(raw, copies[k]);
        const double t0 = clock_ns(CLOCK_THREAD_CPUTIME_ID);
        double folded = 0;
        for (unsigned k = 0; k < processes; k++)
            folded += fold_once(copies[k], control);
        const double t1 = clock_ns(CLOCK_THREAD_CPUTIME_ID);
        events = report_once(dir);
        const double t2 = clock_ns(CLOCK_THREAD_CPUTIME_ID);
        fold[i] = (t1 - t0) / 1e9;
        report[i] = (t2 - t1) / 1e9;
        if (folded <= 0)
            die(dir, "nothing was folded");
    }
    (void)getrusage(RUSAGE_SELF, &usage);
    put_number("events", events);
    put_number("peak_kib", (double)usage.ru_maxrss);
    put_numbers("fold", fold, passes);
    put_numbers("report", report, passes);
    put_end();
    return 0;
}
