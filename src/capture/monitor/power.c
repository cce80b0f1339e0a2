/* power.c: what the machine draws: RAPL counters and ACPI power meters.
 *
 * RAPL: /sys/class/powercap/intel-rapl:N and intel-rapl:N:M, the same names on AMD. Each
 * zone counts microjoules up to max_energy_range_uj and begins again, after some 4 to 60
 * minutes at full power. Zones of interest: packages (sockets; on some machines dies),
 * DRAM, and psys, the whole board. Parts of packages (core, uncore) would count twice.
 * intel-rapl-mmio:N repeats the packages and is left out.
 *
 * Metrics: "power" in W and "energy" in J since the first round, by "package-0", "dram-0",
 * "psys". They are the machine's, not the run's alone.
 *
 * Since CVE-2020-8694 energy_uj is root's. A power meter (hwmon "power_meter") gives the
 * whole machine as "power" of "system" to anybody.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "capture/monitor/kept.h"
#include "capture/monitor/power_monitors.h"

enum { ZONES_MAX = 64, METERS_MAX = 4, PATH_LEN = 4096 };

/* More than any zone draws for long. With a pause in which it could have counted round
 * more than once, nobody knows how often it did. */
static const double MOST_WATTS = 500;

struct zone {
    int fd;
    char subject[40];
    uint64_t range_uj; /* 0 unknown: counting round cannot be told from a reset */
    bool started, said;
    uint64_t last_uj, last_ns;
    double joules; /* since the first round */
};

struct meter {
    int fd;
};

struct power {
    struct zone zones[ZONES_MAX];
    size_t zone_count;
    struct meter meters[METERS_MAX];
    size_t meter_count;
};

/* ---- Reading ------------------------------------------------------------------- */

static bool read_number(int fd, uint64_t *ret_value)
{
    char text[32], *end;
    const ssize_t len = kept_is_own(fd) ? pread(fd, text, sizeof text - 1, 0) : -1;
    if (len <= 0 || text[0] < '0' || text[0] > '9')
        return false;
    text[len] = '\0';
    errno = 0;
    const unsigned long long value = strtoull(text, &end, 10);
    if (errno || (*end && *end != '\n'))
        return false;
    *ret_value = value;
    return true;
}

/* Microjoules since the last reading; false when they cannot be told. */
static bool advance(const struct zone *z, uint64_t now_uj, double elapsed_s,
                    uint64_t *ret_uj)
{
    if (z->range_uj && elapsed_s * MOST_WATTS * 1e6 > (double)z->range_uj &&
        elapsed_s > 60)
        return false;
    if (now_uj >= z->last_uj) {
        *ret_uj = now_uj - z->last_uj;
        return true;
    }
    if (now_uj > z->range_uj || z->last_uj > z->range_uj)
        return false;
    *ret_uj = now_uj + (z->range_uj - z->last_uj);
    return true;
}

static void lost_count(struct zone *z, struct monitor_sink *sink)
{
    char name[64];
    if (z->said)
        return;
    (void)snprintf(name, sizeof name, "energy/%s", z->subject);
    sink->unavailable(sink, name,
                      "not sampled for so long that the counter may have gone round "
                      "more than once: energy of that pause is missing");
    z->said = true;
}

static void sample_zone(struct zone *z, uint64_t now_ns, struct monitor_sink *sink)
{
    uint64_t now_uj, uj;
    if (!read_number(z->fd, &now_uj))
        return;
    const double elapsed_s = (double)(now_ns - z->last_ns) / 1e9;
    if (!z->started) {
        sink->set(sink, "energy", z->subject, "J", 0);
    } else if (now_ns <= z->last_ns) {
        return;
    } else if (advance(z, now_uj, elapsed_s, &uj)) {
        z->joules += (double)uj / 1e6;
        sink->set(sink, "power", z->subject, "W", (double)uj / 1e6 / elapsed_s);
        sink->set(sink, "energy", z->subject, "J", z->joules);
    } else {
        lost_count(z, sink);
    }
    z->started = true;
    z->last_uj = now_uj;
    z->last_ns = now_ns;
}

static void power_sample(void *state, const struct monitor_round *round,
                         struct monitor_sink *sink)
{
    struct power *m = state;
    uint64_t uw;
    for (size_t i = 0; i < m->zone_count; i++)
        sample_zone(&m->zones[i], round->now_ns, sink);
    for (size_t i = 0; i < m->meter_count; i++)
        if (read_number(m->meters[i].fd, &uw))
            sink->set(sink, "power", "system", "W", (double)uw / 1e6);
}

/* ---- Opening ------------------------------------------------------------------- */

static int open_in(const char *dir, const char *file)
{
    char path[PATH_LEN];
    if (snprintf(path, sizeof path, "%s/%s", dir, file) >= (int)sizeof path)
        return -ENAMETOOLONG;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    return fd < 0 ? -errno : kept_own(fd);
}

static bool read_name(const char *dir, char *ret_name, size_t len)
{
    const int fd = open_in(dir, "name");
    if (fd < 0)
        return false;
    const ssize_t got = read(fd, ret_name, len - 1);
    (void)close(fd);
    if (got <= 0)
        return false;
    ret_name[got] = '\0';
    ret_name[strcspn(ret_name, "\n")] = '\0';
    return ret_name[0] != '\0';
}

/* What a zone is called in reports; false for those that are parts of others. `entry`
 * is "intel-rapl:0" or "intel-rapl:0:2". */
static bool name_zone(const char *entry, const char *name, char *ret_subject,
                      size_t len)
{
    unsigned package;
    const bool is_part = strchr(strchr(entry, ':') + 1, ':') != NULL;
    if (!is_part &&
        (strncmp(name, "package-", 8) == 0 || strncmp(name, "psys", 4) == 0)) {
        (void)snprintf(ret_subject, len, "%s", name);
        return true;
    }
    if (is_part && strcmp(name, "dram") == 0 &&
        sscanf(entry, "intel-rapl:%u", &package) == 1) {
        (void)snprintf(ret_subject, len, "dram-%u", package);
        return true;
    }
    return false;
}

static void read_range(const char *dir, struct zone *z)
{
    const int fd = open_in(dir, "max_energy_range_uj");
    if (fd < 0)
        return;
    if (!read_number(fd, &z->range_uj))
        z->range_uj = 0;
    (void)close(fd);
}

/* −errno when the zone is one of ours and cannot be read. */
static int add_zone(struct power *m, const char *class_dir, const char *entry)
{
    char dir[PATH_LEN], name[40];
    struct zone *z = &m->zones[m->zone_count];
    if (m->zone_count == ZONES_MAX ||
        snprintf(dir, sizeof dir, "%s/%s", class_dir, entry) >= (int)sizeof dir ||
        !read_name(dir, name, sizeof name) ||
        !name_zone(entry, name, z->subject, sizeof z->subject))
        return 0;
    const int fd = open_in(dir, "energy_uj");
    uint64_t value;
    if (fd < 0)
        return fd;
    if (!read_number(fd, &value)) { /* some machines open it and then refuse */
        (void)close(fd);
        return -ENODATA;
    }
    z->fd = fd;
    read_range(dir, z);
    m->zone_count++;
    return 0;
}

static int compare_zones(const void *a, const void *b)
{
    const struct zone *x = a, *y = b;
    return strcmp(x->subject, y->subject);
}

/* The worst that happened to a zone. */
static int find_zones(struct power *m, const char *sys)
{
    char class_dir[PATH_LEN];
    int worst = -ENOENT;
    (void)snprintf(class_dir, sizeof class_dir, "%s/class/powercap", sys);
    DIR *dir = opendir(class_dir);
    for (struct dirent *e; dir && (e = readdir(dir));) {
        if (strncmp(e->d_name, "intel-rapl:", 11) != 0)
            continue;
        const int rc = add_zone(m, class_dir, e->d_name);
        if (rc < 0)
            worst = rc;
    }
    if (dir)
        (void)closedir(dir);
    qsort(m->zones, m->zone_count, sizeof *m->zones, compare_zones);
    return worst;
}

static void find_meters(struct power *m, const char *sys)
{
    char class_dir[PATH_LEN - 300], entry[PATH_LEN], name[40];
    (void)snprintf(class_dir, sizeof class_dir, "%s/class/hwmon", sys);
    DIR *dir = opendir(class_dir);
    for (struct dirent *e; dir && (e = readdir(dir)) && m->meter_count < METERS_MAX;) {
        (void)snprintf(entry, sizeof entry, "%s/%s", class_dir, e->d_name);
        if (e->d_name[0] == '.' || !read_name(entry, name, sizeof name) ||
            strcmp(name, "power_meter") != 0)
            continue;
        int fd = open_in(entry, "power1_average");
        if (fd < 0)
            fd = open_in(entry, "power1_input");
        if (fd >= 0)
            m->meters[m->meter_count++].fd = fd;
    }
    if (dir)
        (void)closedir(dir);
}

static void power_close(void *state)
{
    struct power *m = state;
    if (!m)
        return;
    for (size_t i = 0; i < m->zone_count; i++)
        kept_close(&m->zones[i].fd);
    for (size_t i = 0; i < m->meter_count; i++)
        kept_close(&m->meters[i].fd);
    free(m);
}

static const char *why_nothing(int rc)
{
    if (rc == -EACCES || rc == -EPERM)
        return "the energy counters are readable by root only: sudo chmod a+r "
               "/sys/class/powercap/intel-rapl:*/energy_uj (until the next boot)";
    if (rc == -ENOENT)
        return "no RAPL counters and no power meter: usual in virtual machines; else "
               "sudo modprobe intel_rapl_msr";
    return "the energy counters cannot be read here";
}

static int power_open(const struct monitor_roots *roots, void **ret_state,
                      const char **ret_why)
{
    const char *sys = roots->sys && *roots->sys ? roots->sys : "/sys";
    struct power *m = calloc(1, sizeof *m);
    if (!m) {
        *ret_why = "out of memory";
        return SONDE_E_UNSUPPORTED;
    }
    const int rc = find_zones(m, sys);
    find_meters(m, sys);
    if (m->zone_count == 0 && m->meter_count == 0) {
        *ret_why = why_nothing(rc);
        power_close(m);
        return SONDE_E_UNSUPPORTED;
    }
    *ret_state = m;
    return 0;
}

const struct monitor_ops monitor_power = {
    .name = "power",
    .what = "power and energy of processors, memory and board (RAPL, power meters)",
    .open = power_open,
    .sample = power_sample,
    .close = power_close,
};
