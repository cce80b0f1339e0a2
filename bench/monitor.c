// link: all
/* monitor.c: what one sample costs.
 *
 *     monitor passes=N samples=N
 *
 * floor: stat, statm and io of one process and /proc/stat through kept descriptors and
 * pread, not parsed. subject: the same four, parsed into numbers by what the monitors
 * use. round: a whole round of all monitors over one process, kept in memory.
 */
#include <fcntl.h>

#include "measure.h"

#include "capture/monitor/kept.h"
#include "capture/monitor/readings.h"
#include "capture/monitor/sampler.h"
#include "trace/file.h"

static int stat_fd, statm_fd, io_fd, system_fd;
static char buffer[64 << 10];
static struct process_stat process;
static struct process_statm memory;
static struct process_io io;
static struct system_stat machine;
static struct sampler *sampler;
static struct monitor_process self;
static uint64_t at_ns;

static void read_unparsed(unsigned long n)
{
    const int fds[] = { stat_fd, statm_fd, io_fd, system_fd };
    while (n--)
        for (int i = 0; i < 4; i++)
            if (pread(fds[i], buffer, sizeof buffer, 0) <= 0)
                die("/proc", "cannot read it");
}

static void read_parsed(unsigned long n)
{
    while (n--)
        if (!read_process_stat(stat_fd, &process) ||
            !read_process_statm(statm_fd, &memory) || !read_process_io(io_fd, &io) ||
            !read_system_stat(system_fd, buffer, sizeof buffer, &machine))
            die("/proc", "cannot read it");
}

static void whole_round(unsigned long n)
{
    while (n--) {
        at_ns += 1000000000; /* as at 1 s: once-a-second readings are in every round */
        sampler_round(sampler, at_ns, &self, 1);
    }
}

static void open_files(void)
{
    const unsigned pid = (unsigned)getpid();
    stat_fd = kept_open("/proc", "%u/stat", pid);
    statm_fd = kept_open("/proc", "%u/statm", pid);
    io_fd = kept_open("/proc", "%u/io", pid);
    system_fd = kept_open("/proc", "stat");
    self = (struct monitor_process){ pid, process_start_ticks(pid) };
}

int main(int argc, char **argv)
{
    (void)argc;
    const unsigned passes = (unsigned)argument_number(argv, "passes", 11);
    const unsigned long n = argument_number(argv, "samples", 2000);
    const struct sampler_options options = { .pid = (uint32_t)getpid() };
    struct passes p = { 0 };
    open_files();
    if (sampler_new(&options, &sampler) < 0)
        die("sampler", "cannot make it");
    at_ns = sampler_next_ns(sampler);
    alternate(&p, passes, n, read_unparsed, read_parsed);
    put_passes(&p);
    struct timing rounds[64];
    const unsigned count = passes < 64 ? passes : 64;
    for (unsigned i = 0; i < count; i++)
        rounds[i] = time_loop(whole_round, n / 10 + 1);
    put_timings("round", rounds, count);
    put_number("cores", machine.cpu_count);
    put_end();
    return 0;
}
