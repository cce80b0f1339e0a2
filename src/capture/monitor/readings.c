/* readings.c: see readings.h. */
#include "capture/monitor/readings.h"

#include "capture/monitor/kept.h"

/* "pid (name) S ppid …": the name may hold anything, so the last ')' counts. */
bool scan_process_stat(struct scan s, struct process_stat *ret)
{
    const char *open = memchr(s.at, '(', (size_t)(s.end - s.at));
    const char *shut = memrchr(s.at, ')', (size_t)(s.end - s.at));
    if (!open || !shut || shut < open || s.end - shut < 4)
        return false;
    struct process_stat p = { .state = shut[2] };
    size_t len = (size_t)(shut - open - 1);
    if (len >= sizeof p.comm)
        len = sizeof p.comm - 1;
    memcpy(p.comm, open + 1, len);
    s.at = shut + 3;
    int64_t f[50]; /* from field 4 on; numbers beyond 63 bits wrap harmlessly */
    unsigned n = 0;
    while (n < 49 && scan_i64(&s, &f[n]))
        n++;
    if (n < 21)
        return false;
    p.ppid = (uint32_t)f[0];
    p.minor_faults = (uint64_t)f[6];
    p.major_faults = (uint64_t)f[8];
    p.utime = (uint64_t)f[10];
    p.stime = (uint64_t)f[11];
    p.cutime = (uint64_t)f[12];
    p.cstime = (uint64_t)f[13];
    p.threads = (uint32_t)f[16];
    p.start_ticks = (uint64_t)f[18];
    p.rss_pages = (uint64_t)f[20];
    p.exit_status = n == 49 ? (int32_t)f[48] : 0;
    *ret = p;
    return true;
}

bool read_process_stat(int fd, struct process_stat *ret_stat)
{
    char buffer[1024];
    struct scan s;
    return kept_read(fd, buffer, sizeof buffer, &s) && scan_process_stat(s, ret_stat);
}

bool read_process_statm(int fd, struct process_statm *ret_statm)
{
    char buffer[128];
    struct scan s;
    uint64_t size;
    struct process_statm m;
    if (!kept_read(fd, buffer, sizeof buffer, &s) || !scan_u64(&s, &size) ||
        !scan_u64(&s, &m.resident) || !scan_u64(&s, &m.shared))
        return false;
    *ret_statm = m;
    return true;
}

bool read_process_io(int fd, struct process_io *ret_io)
{
    char buffer[256];
    struct scan s;
    uint64_t v[7];
    if (!kept_read(fd, buffer, sizeof buffer, &s))
        return false;
    for (unsigned i = 0; i < 7; i++) { /* "rchar: 1\nwchar: 2\n…", in this order */
        if (!scan_skip_word(&s) || !scan_u64(&s, &v[i]))
            return false;
        (void)scan_next_line(&s);
    }
    *ret_io = (struct process_io){ v[0], v[1], v[2], v[3], v[4], v[5], v[6] };
    return true;
}

static bool scan_cpu_times(struct scan *s, struct cpu_times *ret)
{
    struct cpu_times t = { 0 };
    uint64_t *const field[] = { &t.user,   &t.nice, &t.system,  &t.idle,
                                &t.iowait, &t.irq,  &t.softirq, &t.steal };
    unsigned n = 0;
    while (n < 8 && scan_u64(s, field[n]))
        n++;
    if (n < 4)
        return false;
    *ret = t;
    return true;
}

static void scan_cpu_line(struct scan *s, struct system_stat *ret)
{
    uint64_t cpu;
    if (*s->at == ' ') {
        (void)scan_cpu_times(s, &ret->all);
        return;
    }
    if (ret->cpu_count == CPUS_MAX || !scan_u64(s, &cpu) || cpu > UINT16_MAX)
        return;
    if (scan_cpu_times(s, &ret->of_cpu[ret->cpu_count]))
        ret->cpu[ret->cpu_count++] = (uint16_t)cpu;
}

bool read_system_stat(int fd, char *buffer, size_t size, struct system_stat *ret)
{
    struct scan s;
    if (!kept_read(fd, buffer, size, &s) || s.end - s.at < 5 ||
        memcmp(s.at, "cpu ", 4) != 0)
        return false;
    ret->cpu_count = 0;
    ret->context_switches = ret->forks = ret->running = ret->blocked = 0;
    do {
        if (scan_word(&s, "cpu"))
            scan_cpu_line(&s, ret);
        else if (scan_word(&s, "ctxt "))
            (void)scan_u64(&s, &ret->context_switches);
        else if (scan_word(&s, "processes "))
            (void)scan_u64(&s, &ret->forks);
        else if (scan_word(&s, "procs_running "))
            (void)scan_u64(&s, &ret->running);
        else if (scan_word(&s, "procs_blocked "))
            (void)scan_u64(&s, &ret->blocked);
    } while (scan_next_line(&s));
    return true;
}
