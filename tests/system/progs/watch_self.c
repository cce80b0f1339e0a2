// link: a
/* watch_self: a program that watches itself through the C API.
 *
 *     watch_self [session DIR] [fork]
 *
 * Grows by 64 MiB, spins for half a second of CPU time, and prints what the monitors
 * say of it as JSON. With "fork" a child does the same afterwards.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <sonde/sonde.h>

enum { MIB = 64 };

/* Kept until the end: AddressSanitizer takes another eighth to mark what is freed, and
 * who looks from outside just then sees more than we did. */
static char *grown;

static double cpu_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void nap(void)
{
    const struct timespec t = { 0, 200000000 };
    nanosleep(&t, NULL);
}

static void work(const char *who)
{
    struct sonde_monitor_summary rss, cpu;
    double before, now, unknown = 7, time_s = -1;
    /* −2: as −ENOENT is on Linux; 0 when a fork is not noticed. */
    const int early = sonde_monitor_current("rss", NULL, &unknown);
    const int started = sonde_monitor_start(20000000);
    const int again = sonde_monitor_start(20000000);
    sonde_monitor_current("rss", NULL, &before);
    grown = malloc((size_t)MIB << 20);
    for (size_t i = 0; i < (size_t)MIB << 20; i += 4096)
        *(volatile char *)(grown + i) = 1;
    const double from = cpu_s();
    while (cpu_s() - from < 0.5)
        ;
    nap();
    sonde_monitor_current("rss", "", &now);
    const int stopped = sonde_monitor_stop();
    const double used = cpu_s();
    const int after = sonde_monitor_stop();
    sonde_monitor_stats("rss", NULL, &rss);
    sonde_monitor_stats("cpu", NULL, &cpu);
    sonde_monitor_current("cpu_time", NULL, &time_s);
    printf("{\"who\": \"%s\", \"early\": %d, \"started\": %d, \"again\": %d, "
           "\"stopped\": %d, \"after\": %d, \"grown\": %.3f, \"peak\": %.3f, "
           "\"least\": %.3f, \"samples\": %llu, \"cpu_peak\": %.3f, \"cpu_s\": %.4f, "
           "\"used_s\": %.4f, \"nothing\": %d, \"unknown\": %g, \"bad\": %d}\n",
           who, early, started, again, stopped, after, now - before, rss.peak,
           rss.least, (unsigned long long)rss.samples, cpu.peak, time_s, used,
           sonde_monitor_current("no such metric", NULL, &unknown), unknown,
           sonde_monitor_start(1000));
    fflush(stdout);
}

static void in_child(void)
{
    sonde_monitor_start(10000000); /* forks while the thread runs */
    for (int i = 0; i < 20; i++) {
        const pid_t pid = fork();
        if (pid == 0) {
            double value;
            const int rc = sonde_monitor_current("rss", NULL, &value);
            if (rc != -ENOENT || sonde_monitor_stop() != -ENOENT)
                _exit(4);
            if (i == 19)
                work("child");
            _exit(0);
        }
        int status;
        waitpid(pid, &status, 0);
        if (status != 0)
            exit(5);
    }
    sonde_monitor_stop();
}

int main(int argc, char **argv)
{
    struct sonde_options options;
    sonde_options_standard(&options);
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "session") == 0 && i + 1 < argc) {
            options.output = argv[i + 1];
            if (sonde_session_start(&options) < 0)
                return 3;
            SONDE_ZONE("some", SONDE_OTHER) {
                nap();
            }
        }
    work("parent");
    if (argc > 1 && strcmp(argv[argc - 1], "fork") == 0)
        in_child();
    return 0;
}
