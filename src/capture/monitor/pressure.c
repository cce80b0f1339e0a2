/* pressure.c: pressure stall information: the share of time in which somebody, or
 * everybody, on this machine waited for CPU, memory or disk. The kernel's totals are
 * read, not its averages over 10 s: they are exact over any interval. */
#include "capture/monitor/list.h"

#include <errno.h>
#include <stdlib.h>

#include "base/error.h"
#include "capture/monitor/kept.h"

static const struct {
    const char *file, *some, *full;
} kinds[] = {
    { "pressure/cpu", "pressure_cpu",
      NULL }, /* "full" of the machine's CPU is always 0 */
    { "pressure/memory", "pressure_memory", "pressure_memory_full" },
    { "pressure/io", "pressure_io", "pressure_io_full" },
};
enum { KINDS = sizeof kinds / sizeof *kinds };

struct stall {
    bool known;
    uint64_t us;
};

struct pressure {
    int fd[KINDS];
    struct stall some[KINDS], full[KINDS];
};

static void pressure_close(void *state)
{
    struct pressure *p = state;
    for (unsigned i = 0; p && i < KINDS; i++)
        kept_close(&p->fd[i]);
    free(p);
}

static int pressure_open(const struct monitor_roots *roots, void **ret_state,
                         const char **ret_why)
{
    struct pressure *p = calloc(1, sizeof *p);
    bool any = false;
    if (!p)
        return -ENOMEM;
    for (unsigned i = 0; i < KINDS; i++) {
        p->fd[i] = kept_open(proc_root(roots), "%s", kinds[i].file);
        char buffer[256];
        struct scan s;
        any |= kept_read(p->fd[i], buffer, sizeof buffer, &s);
    }
    if (!any) { /* psi=0: the files are there but cannot be read */
        *ret_why = "the kernel keeps no pressure stall information (boot with psi=1)";
        pressure_close(p);
        return SONDE_E_UNSUPPORTED;
    }
    *ret_state = p;
    return 0;
}

/* "some avg10=0.00 avg60=0.00 avg300=0.00 total=123" */
static bool scan_total(struct scan s, uint64_t *ret_us)
{
    const char *nl = memchr(s.at, '\n', (size_t)(s.end - s.at));
    struct scan line = { s.at, nl ? nl : s.end };
    const char *at = memmem(line.at, (size_t)(line.end - line.at), "total=", 6);
    if (!at)
        return false;
    line.at = at + 6;
    return scan_u64(&line, ret_us);
}

static void set(struct stall *stall, const struct scan *s, const char *metric,
                uint64_t elapsed_ns, struct monitor_sink *sink)
{
    uint64_t us;
    if (!metric || !scan_total(*s, &us))
        return;
    if (stall->known && elapsed_ns && us >= stall->us)
        sink->set(sink, metric, "", "percent",
                  100e3 * (double)(us - stall->us) / (double)elapsed_ns);
    *stall = (struct stall){ true, us };
}

static void pressure_sample(void *state, const struct monitor_round *round,
                            struct monitor_sink *sink)
{
    struct pressure *p = state;
    for (unsigned i = 0; i < KINDS; i++) {
        char buffer[512];
        struct scan s;
        if (!kept_read(p->fd[i], buffer, sizeof buffer, &s))
            continue;
        do {
            if (scan_word(&s, "some "))
                set(&p->some[i], &s, kinds[i].some, round->elapsed_ns, sink);
            else if (scan_word(&s, "full "))
                set(&p->full[i], &s, kinds[i].full, round->elapsed_ns, sink);
        } while (scan_next_line(&s));
    }
}

const struct monitor_ops monitor_pressure = {
    .name = "pressure",
    .what = "waiting for CPU, memory and disk on the whole machine (PSI)",
    .open = pressure_open,
    .sample = pressure_sample,
    .close = pressure_close,
};
