/* perf.c: see perf.h. */
#include "capture/sample/perf.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/files.h"
#include "trace/process.h"

enum {
    PAGES_MOST = 128,    /* 512 KiB: what the kernel lets anybody lock for a CPU */
    PAGES_AT_ONCE = 512, /* tried first for samples with much of the stack */
    PAGES_MANY = 64,     /* … on machines with more than MANY_CPUS */
    MANY_CPUS = 64,
    PAGES_LEAST = 8,
    RECORD_MAX = 65536, /* its length is 16 bits */
};

/* The kernel's numbers of registers by DWARF's; the return address is the pc. */
#if defined(__x86_64__)
static const uint8_t reg_of[CFI_REGS] = { 0,  3,  2,  1,  4,  5,  6,  7, 16,
                                          17, 18, 19, 20, 21, 22, 23, 8 };
enum { CAN_UNWIND = 1 };
#else
static const uint8_t reg_of[CFI_REGS];
enum { CAN_UNWIND = 0 };
#endif

static uint64_t regs_mask(void)
{
    uint64_t mask = 0;
    for (unsigned i = 0; i < CFI_REGS; i++)
        mask |= 1ULL << reg_of[i];
    return mask;
}

/* ---- Opening ------------------------------------------------------------------------------- */

static void fill_attr(struct perf_event_attr *a, const struct perf_options *o)
{
    *a = (struct perf_event_attr){
        .type = PERF_TYPE_SOFTWARE,
        .size = sizeof *a,
        .config = PERF_COUNT_SW_TASK_CLOCK,
        .sample_period = o->period_ns,
        .sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
                       PERF_SAMPLE_CALLCHAIN,
        .disabled = o->on_exec,
        .enable_on_exec = o->on_exec,
        .inherit = 1,
        .exclude_hv = 1,
        .exclude_callchain_kernel = 1,
        .mmap = 1,
        .mmap2 = 1,
        .comm = 1,
        .comm_exec = 1,
        .task = 1,
        .sample_id_all = 1,
        .use_clockid = 1,
        .clockid = CLOCK_MONOTONIC,
        .build_id = 1,
        .wakeup_events = o->at_once,
    };
    if (CAN_UNWIND && o->stack_size) {
        a->sample_type |= PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
        a->sample_regs_user = regs_mask();
        a->sample_stack_user = o->stack_size;
    }
}

static int open_event(const struct perf_event_attr *a, pid_t pid, int cpu)
{
    struct perf_event_attr attr = *a; /* the kernel writes there when it refuses */
    const long fd = syscall(SYS_perf_event_open, &attr, pid, cpu, -1,
                            PERF_FLAG_FD_CLOEXEC);
    return fd < 0 ? -errno : (int)fd;
}

/* Asks for less until the kernel agrees. */
static int open_first(struct perf_event_attr *a, pid_t pid, int cpu)
{
    int fd = open_event(a, pid, cpu);
    if (fd == -EINVAL && a->build_id) { /* before Linux 5.12 */
        a->build_id = 0;
        fd = open_event(a, pid, cpu);
    }
    if ((fd == -EACCES || fd == -EPERM) && !a->exclude_kernel) {
        a->exclude_kernel = 1;
        fd = open_event(a, pid, cpu);
    }
    return fd;
}

/* ---- Rings --------------------------------------------------------------------------------- */

/* A ring belongs to an event. Ours is one of this process that never happens, so that rings
 * stay when the events of the program go. */
static int open_owner(int cpu)
{
    const struct perf_event_attr attr = { .type = PERF_TYPE_SOFTWARE,
                                          .size = sizeof attr,
                                          .config = PERF_COUNT_SW_DUMMY,
                                          .disabled = 1,
                                          .exclude_kernel = 1,
                                          .exclude_hv = 1,
                                          .use_clockid = 1, /* as theirs, or no match */
                                          .clockid = CLOCK_MONOTONIC };
    return open_event(&attr, 0, cpu);
}

static int map_ring(struct perf *p, int fd, unsigned *pages, struct perf_ring *ring)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    for (; *pages >= PAGES_LEAST; *pages /= 2) {
        void *m = mmap(NULL, (*pages + 1) * page, PROT_READ | PROT_WRITE, MAP_SHARED,
                       fd, 0);
        if (m == MAP_FAILED)
            continue; /* too much memory locked already */
        *ring = (struct perf_ring){ .fd = fd,
                                    .page = m,
                                    .data = (const uint8_t *)m + page,
                                    .size = *pages * page };
        p->ring_bytes = (uint32_t)ring->size;
        return 0;
    }
    return -errno;
}

static int open_rings(struct perf *p, unsigned cpus, bool at_once)
{
    unsigned pages = cpus > MANY_CPUS ? PAGES_MANY
                     : at_once        ? PAGES_AT_ONCE
                                      : PAGES_MOST;
    for (unsigned cpu = 0; cpu < cpus; cpu++) {
        const int fd = open_owner((int)cpu);
        if (fd == -ENODEV || fd == -ENXIO)
            continue; /* that one is switched off */
        int rc = fd < 0 ? fd : map_ring(p, fd, &pages, &p->rings[p->ring_count]);
        p->rings[p->ring_count].cpu = (int)cpu;
        if (rc < 0) {
            if (fd >= 0)
                (void)close(fd);
            return rc;
        }
        p->ring_count++;
    }
    return p->ring_count ? 0 : -ENODEV;
}

/* ---- Events -------------------------------------------------------------------------------- */

static int keep_event(struct perf *p, int fd, const struct perf_ring *ring)
{
    if (p->event_count == p->event_cap) {
        const size_t cap = p->event_cap ? p->event_cap * 2 : 64;
        int *list = realloc(p->events, cap * sizeof *list);
        if (!list) {
            (void)close(fd);
            return -ENOMEM;
        }
        p->events = list;
        p->event_cap = cap;
    }
    if (ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, ring->fd) < 0) {
        const int rc = -errno;
        (void)close(fd);
        return rc;
    }
    p->events[p->event_count++] = fd;
    return 0;
}

/* An event belongs to one thread and what that starts from then on; one for each CPU,
 * since the kernel lets several of one CPU write to one ring. */
static void watch(struct perf *p, pid_t tid)
{
    for (unsigned i = 0; i < p->ring_count; i++) {
        const int fd = open_event(&p->attr, tid, p->rings[i].cpu);
        if (fd >= 0)
            (void)keep_event(p, fd, &p->rings[i]);
    }
}

/* Our own limit; the program had its before we came to this. */
static void allow_descriptors(size_t more)
{
    struct rlimit limit;
    const rlim_t want = (rlim_t)more + 256; /* and what else we have open */
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur >= want)
        return;
    limit.rlim_cur = limit.rlim_max < want ? limit.rlim_max : want;
    (void)setrlimit(RLIMIT_NOFILE, &limit);
}

void perf_watch_all(struct perf *p, const pid_t *tids, size_t count)
{
    allow_descriptors(count * p->ring_count);
    for (size_t i = 0; i < count; i++)
        watch(p, tids[i]);
}

struct others {
    struct perf *perf;
    pid_t first;
};

static void watch_other(void *arg, pid_t tid)
{
    const struct others *o = arg;
    if (tid != o->first)
        watch(o->perf, tid);
}

/* The threads a process has besides its first. */
static void watch_threads(struct perf *p, pid_t pid)
{
    struct others others = { p, pid };
    process_each_thread(pid, watch_other, &others);
}

static int watch_first(struct perf *p, const struct perf_options *o)
{
    fill_attr(&p->attr, o);
    for (unsigned i = 0; i < p->ring_count; i++) {
        const int fd = open_first(&p->attr, o->pid, p->rings[i].cpu);
        const int rc = fd < 0 ? fd : keep_event(p, fd, &p->rings[i]);
        if (rc < 0)
            return rc;
    }
    /* From here on events begin at once. */
    p->attr.disabled = p->attr.enable_on_exec = 0;
    if (!o->on_exec)
        watch_threads(p, o->pid);
    p->kernel_seen = !p->attr.exclude_kernel;
    p->has_stack = p->attr.sample_type & PERF_SAMPLE_STACK_USER;
    p->build_ids = p->attr.build_id;
    return 0;
}

void perf_leave(struct perf *p)
{
    for (size_t i = 0; i < p->event_count; i++)
        (void)close(p->events[i]);
    p->event_count = 0;
}

static int list_waits(struct perf *p)
{
    p->waits = calloc(p->ring_count, sizeof *p->waits);
    for (unsigned i = 0; p->waits && i < p->ring_count; i++)
        p->waits[i] = (struct pollfd){ .fd = p->rings[i].fd, .events = POLLIN };
    return p->waits ? 0 : -ENOMEM;
}

void perf_wait(const struct perf *p, int timeout_ms)
{
    if (poll(p->waits, p->ring_count, timeout_ms) > 0)
        for (unsigned i = 0; i < p->ring_count; i++)
            p->waits[i].revents = 0;
}

int perf_open(struct perf *p, const struct perf_options *o)
{
    const long cpus = sysconf(_SC_NPROCESSORS_CONF);
    *p = (struct perf){ .ring_count = 0 };
    if (cpus <= 0)
        return -ENODEV;
    p->rings = calloc((size_t)cpus, sizeof *p->rings);
    p->scratch = malloc(RECORD_MAX);
    int rc = p->rings && p->scratch ? open_rings(p, (unsigned)cpus, o->at_once)
                                    : -ENOMEM;
    if (rc == 0)
        rc = watch_first(p, o);
    if (rc == 0 && o->at_once)
        rc = list_waits(p);
    if (rc < 0)
        perf_close(p);
    return rc;
}

void perf_close(struct perf *p)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    perf_leave(p);
    for (unsigned i = 0; p->rings && i < p->ring_count; i++) {
        (void)munmap(p->rings[i].page, p->rings[i].size + page);
        (void)close(p->rings[i].fd);
    }
    free(p->events);
    free(p->rings);
    free(p->scratch);
    free(p->waits);
    *p = (struct perf){ .ring_count = 0 };
}

void perf_switch(struct perf *p, bool on)
{
    const unsigned long what = on ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE;
    for (size_t i = 0; i < p->event_count; i++)
        (void)ioctl(p->events[i], what, 0);
}

int perf_paranoid_level(void)
{
    struct buf text = BUF_INIT;
    int level = -1;
    if (file_read_all("/proc/sys/kernel/perf_event_paranoid", 64, &text) == 0)
        level = (int)strtol(text.data, NULL, 10);
    buf_release(&text);
    return level;
}

/* ---- Records ------------------------------------------------------------------------------ */

/* Bytes of the ring at a position, in one piece. */
static const void *piece(const struct perf *p, const struct perf_ring *r, uint64_t at,
                         size_t len)
{
    const uint64_t offset = at % r->size, first = r->size - offset;
    if (first >= len)
        return r->data + offset;
    memcpy(p->scratch, r->data + offset, first);
    memcpy(p->scratch + first, r->data, len - first);
    return p->scratch;
}

/* The record at the tail: its header; false when the ring is used up (or damaged: then
 * all of it is thrown away). */
static bool peek_header(const struct perf *p, struct perf_ring *r,
                        struct perf_event_header *ret_header)
{
    if (r->head - r->tail < sizeof *ret_header)
        return false;
    memcpy(ret_header, piece(p, r, r->tail, sizeof *ret_header), sizeof *ret_header);
    if (ret_header->size < sizeof *ret_header || ret_header->size > r->head - r->tail) {
        r->tail = r->head;
        return false;
    }
    return true;
}

/* When the record at the tail was made. Samples have it after ip and pid, the others as
 * their last word. */
static bool peek_time(const struct perf *p, struct perf_ring *r)
{
    struct perf_event_header h;
    if (!peek_header(p, r, &h))
        return false;
    const uint64_t at = h.type == PERF_RECORD_SAMPLE ? sizeof h + 16 : h.size - 8u;
    if (at + 8 > h.size) {
        r->tail = r->head;
        return false;
    }
    memcpy(&r->time, piece(p, r, r->tail + at, 8), 8);
    return true;
}

/* Takes words of a sample; beyond its end `bad`. */
struct words {
    const uint8_t *at, *end;
    bool bad;
};

static uint64_t take_word(struct words *w)
{
    uint64_t v = 0;
    if (w->bad || w->end - w->at < 8) {
        w->bad = true;
        return 0;
    }
    memcpy(&v, w->at, 8);
    w->at += 8;
    return v;
}

static const uint8_t *take_bytes(struct words *w, uint64_t len)
{
    const uint8_t *at = w->at;
    if (w->bad || (uint64_t)(w->end - w->at) < len) {
        w->bad = true;
        return NULL;
    }
    w->at += len;
    return at;
}

static void take_regs(struct words *w, struct perf_sample *s)
{
    const uint64_t abi = take_word(w), mask = regs_mask();
    uint64_t by_kernel[64] = { 0 };
    if (abi == PERF_SAMPLE_REGS_ABI_NONE)
        return;
    for (unsigned i = 0; i < 64; i++)
        if (mask >> i & 1)
            by_kernel[i] = take_word(w);
    for (unsigned i = 0; i < CFI_REGS; i++)
        s->regs[i] = by_kernel[reg_of[i]];
    s->has_regs = !w->bad && abi == PERF_SAMPLE_REGS_ABI_64;
}

static void take_stack(struct words *w, struct perf_sample *s)
{
    const uint64_t size = take_word(w);
    if (size == 0)
        return;
    const uint8_t *bytes = take_bytes(w, size);
    const uint64_t used = take_word(w);
    if (!w->bad && s->has_regs && used <= size)
        s->stack = (struct cfi_memory){ bytes, s->regs[CFI_RSP], used };
}

static bool parse_sample(const struct perf *p, const struct perf_event_header *h,
                         const uint8_t *record, struct perf_sample *s)
{
    struct words w = { record + sizeof *h, record + h->size, false };
    *s = (struct perf_sample){ .ip = take_word(&w) };
    const uint64_t ids = take_word(&w);
    s->pid = (uint32_t)ids;
    s->tid = (uint32_t)(ids >> 32);
    s->time = take_word(&w);
    s->in_kernel = (h->misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_KERNEL;
    const uint64_t count = take_word(&w);
    if (w.bad || count > RECORD_MAX / 8)
        return false;
    s->callchain = (const uint64_t *)(const void *)take_bytes(&w, count * 8);
    s->callchain_len = count;
    if (p->has_stack) {
        take_regs(&w, s);
        take_stack(&w, s);
    }
    return !w.bad;
}

static void hand_over(const struct perf *p, const struct perf_ring *r,
                      const struct perf_visitor *v)
{
    struct perf_event_header h;
    memcpy(&h, piece(p, r, r->tail, sizeof h), sizeof h);
    const uint8_t *record = piece(p, r, r->tail, h.size);
    struct perf_sample sample;
    if (h.type != PERF_RECORD_SAMPLE)
        v->other(v->arg, (const struct perf_event_header *)(const void *)record,
                 h.size);
    else if (parse_sample(p, &h, record, &sample))
        v->sample(v->arg, &sample);
}

static void open_ring(const struct perf *p, struct perf_ring *r)
{
    /* Acquire: the records before the head are whole. */
    r->head = __atomic_load_n(&r->page->data_head, __ATOMIC_ACQUIRE);
    r->tail = r->page->data_tail;
    if (!peek_time(p, r))
        r->tail = r->head;
}

static struct perf_ring *oldest(struct perf *p)
{
    struct perf_ring *best = NULL;
    for (unsigned i = 0; i < p->ring_count; i++) {
        struct perf_ring *r = &p->rings[i];
        if (r->tail < r->head && (!best || r->time < best->time))
            best = r;
    }
    return best;
}

static uint64_t monotonic_ns(void)
{
    struct timespec t = { 0, 0 };
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

bool perf_read(struct perf *p, const struct perf_visitor *v)
{
    bool all = true;
    /* Rings are looked at one after the other. What came after the first look stays for
     * the next time: a sample must not overtake the mapping it lies in. */
    const uint64_t until = monotonic_ns();
    for (unsigned i = 0; i < p->ring_count; i++)
        open_ring(p, &p->rings[i]);
    for (struct perf_ring *r; (r = oldest(p)) && r->time <= until;) {
        struct perf_event_header h;
        hand_over(p, r, v);
        memcpy(&h, piece(p, r, r->tail, sizeof h), sizeof h);
        r->tail += h.size;
        /* Release: the kernel may write there again. */
        __atomic_store_n(&r->page->data_tail, r->tail, __ATOMIC_RELEASE);
        if (r->tail < r->head && !peek_time(p, r))
            r->tail = r->head;
        if (v->enough(v->arg)) {
            all = false;
            break;
        }
    }
    for (unsigned i = 0; all && i < p->ring_count; i++)
        __atomic_store_n(&p->rings[i].page->data_tail, p->rings[i].tail,
                         __ATOMIC_RELEASE);
    return all;
}
