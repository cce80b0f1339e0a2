/* net.c: network interfaces and TCP retransmissions, in the program's network name space.
 *
 * A container has its own: /proc/PID/net of the program is read, and kept, since its
 * files stay with the name space they were opened in.
 */
#include "capture/monitor/list.h"

#include <errno.h>
#include <stdlib.h>

#include "base/error.h"
#include "capture/monitor/kept.h"

enum { DEVICES_MOST = 64, BUFFER = 32 << 10, RETRANSMITTED = 12 };
static const double MIB = 1 << 20;

struct counters {
    uint64_t bytes_in, packets_in, errors_in, drops_in;
    uint64_t bytes_out, packets_out, errors_out, drops_out;
};

struct device {
    char name[20];
    bool known;
    struct counters before;
};

struct net {
    const char *proc;
    bool opened;
    int dev_fd, snmp_fd;
    size_t count;
    struct device device[DEVICES_MOST];
    bool retransmits_known;
    uint64_t retransmits;
    char buffer[BUFFER];
};

static void net_close(void *state)
{
    struct net *n = state;
    if (!n)
        return;
    kept_close(&n->dev_fd);
    kept_close(&n->snmp_fd);
    free(n);
}

static int net_open(const struct monitor_roots *roots, void **ret_state,
                    const char **ret_why)
{
    struct net *n = calloc(1, sizeof *n);
    if (!n)
        return -ENOMEM;
    n->proc = proc_root(roots);
    n->snmp_fd = -1;
    n->dev_fd = kept_open(n->proc, "net/dev");
    if (n->dev_fd < 0) {
        *ret_why = "no /proc/net/dev";
        net_close(n);
        return SONDE_E_UNSUPPORTED;
    }
    n->snmp_fd = kept_open(n->proc, "net/snmp");
    *ret_state = n;
    return 0;
}

/* Ours were a makeshift until the program is known. */
static void open_of_program(struct net *n, const struct monitor_round *round)
{
    n->opened = true;
    int dev = kept_open(n->proc, "%u/net/dev", round->processes[0].pid);
    if (dev < 0)
        return;
    kept_close(&n->dev_fd);
    kept_close(&n->snmp_fd);
    n->dev_fd = dev;
    n->snmp_fd = kept_open(n->proc, "%u/net/snmp", round->processes[0].pid);
}

static struct device *device_named(struct net *n, const char *name, size_t len)
{
    if (len == 0 || len >= sizeof n->device[0].name)
        return NULL;
    for (size_t i = 0; i < n->count; i++)
        if (memcmp(n->device[i].name, name, len) == 0 && !n->device[i].name[len])
            return &n->device[i];
    if (n->count == DEVICES_MOST)
        return NULL;
    struct device *d = &n->device[n->count++];
    memcpy(d->name, name, len);
    return d;
}

/* "  eth0: bytes packets errs drop fifo frame compressed multicast  bytes …" */
static struct device *scan_device(struct net *n, struct scan *s, struct counters *ret)
{
    scan_blanks(s);
    const char *name = s->at;
    const char *colon = memchr(name, ':', (size_t)(s->end - name));
    uint64_t v[12];
    if (!colon || memchr(name, '\n', (size_t)(colon - name)))
        return NULL;
    s->at = colon + 1;
    for (unsigned i = 0; i < 12; i++)
        if (!scan_u64(s, &v[i]))
            return NULL;
    *ret = (struct counters){ v[0], v[1], v[2], v[3], v[8], v[9], v[10], v[11] };
    return device_named(n, name, (size_t)(colon - name));
}

struct rates {
    double in, out, packets_in, packets_out, errors;
};

static struct rates rates_of(const struct counters *now, const struct counters *before,
                             double s)
{
    return (struct rates){
        .in = (double)(now->bytes_in - before->bytes_in) / MIB / s,
        .out = (double)(now->bytes_out - before->bytes_out) / MIB / s,
        .packets_in = (double)(now->packets_in - before->packets_in) / s,
        .packets_out = (double)(now->packets_out - before->packets_out) / s,
        .errors = (double)(now->errors_in - before->errors_in + now->errors_out -
                           before->errors_out + now->drops_in - before->drops_in +
                           now->drops_out - before->drops_out) /
                  s,
    };
}

static void set_rates(struct monitor_sink *sink, const char *subject,
                      const struct rates *r)
{
    sink->set(sink, "net_receive", subject, "MiB/s", r->in);
    sink->set(sink, "net_send", subject, "MiB/s", r->out);
    sink->set(sink, "net_packets_in", subject, "1/s", r->packets_in);
    sink->set(sink, "net_packets_out", subject, "1/s", r->packets_out);
    sink->set(sink, "net_errors", subject, "1/s", r->errors);
}

static bool stepped_back(const struct counters *now, const struct counters *before)
{
    return now->bytes_in < before->bytes_in || now->bytes_out < before->bytes_out;
}

static void sample_devices(struct net *n, const struct monitor_round *round,
                           struct monitor_sink *sink)
{
    struct scan s;
    struct rates sum = { 0 };
    size_t summed = 0;
    if (!kept_read(n->dev_fd, n->buffer, sizeof n->buffer, &s))
        return;
    const double seconds = (double)round->elapsed_ns / 1e9;
    do {
        struct counters now;
        struct device *d = scan_device(n, &s, &now);
        if (!d)
            continue;
        if (d->known && round->elapsed_ns && !stepped_back(&now, &d->before)) {
            const struct rates r = rates_of(&now, &d->before, seconds);
            set_rates(sink, d->name, &r);
            if (strcmp(d->name, "lo") != 0) { /* what stays here is no traffic */
                sum.in += r.in, sum.out += r.out, sum.errors += r.errors;
                sum.packets_in += r.packets_in, sum.packets_out += r.packets_out;
                summed++;
            }
        }
        d->before = now;
        d->known = true;
    } while (scan_next_line(&s));
    if (summed)
        set_rates(sink, "", &sum);
}

/* The second line that begins with "Tcp:" has the numbers. */
static void sample_tcp(struct net *n, const struct monitor_round *round,
                       struct monitor_sink *sink)
{
    struct scan s;
    int64_t v = 0;
    unsigned lines = 0, got = 0;
    if (!kept_read(n->snmp_fd, n->buffer, sizeof n->buffer, &s))
        return;
    do
        if (scan_word(&s, "Tcp:") && ++lines == 2)
            while (got < RETRANSMITTED && scan_i64(&s, &v))
                got++;
    while (lines < 2 && scan_next_line(&s));
    if (got < RETRANSMITTED)
        return;
    if (n->retransmits_known && round->elapsed_ns && (uint64_t)v >= n->retransmits)
        sink->set(sink, "tcp_retransmits", "", "1/s",
                  (double)((uint64_t)v - n->retransmits) * 1e9 /
                      (double)round->elapsed_ns);
    n->retransmits = (uint64_t)v;
    n->retransmits_known = true;
}

static void net_sample(void *state, const struct monitor_round *round,
                       struct monitor_sink *sink)
{
    struct net *n = state;
    if (!n->opened && round->process_count)
        open_of_program(n, round);
    sample_devices(n, round, sink);
    sample_tcp(n, round, sink);
}

const struct monitor_ops monitor_net = {
    .name = "net",
    .what = "network interfaces: bytes, packets, errors; TCP retransmissions",
    .open = net_open,
    .sample = net_sample,
    .close = net_close,
};
