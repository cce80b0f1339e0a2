/* procrows.c: see procrows.h.
 *
 * A process is described when it is seen first, and again at its second, fourth,
 * eighth … round: it may have become another program (exec) meanwhile.
 */
#include "capture/monitor/procrows.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/redact.h"
#include "capture/monitor/kept.h"
#include "capture/monitor/readings.h"

enum { COMMAND_MOST = 4096, WORDS_MOST = 256 };
static const uint64_t OLD_NS = 100000000;
_Static_assert((int)MONITOR_TOTALS <= (int)MONITOR_ROW_TOTALS, "room for every total");

struct row_slot {
    struct proc_slot base;
    struct monitor_process_row *row;
    uint64_t rounds, first_ns;
    uint64_t command_hash;
    bool lived_before;             /* the run */
    uint64_t known;                /* bits: totals whose start is known */
    double before[MONITOR_TOTALS]; /* … used before the run */
};

/* ---- Describing ------------------------------------------------------------------------ */

static uint32_t exe_text(struct procrows *r, uint32_t pid)
{
    char path[PATH_MAX], exe[PATH_MAX];
    (void)snprintf(path, sizeof path, "%.1024s/%u/exe", proc_root(r->roots), pid);
    const ssize_t n = readlink(path, exe, sizeof exe - 1);
    if (n <= 0)
        return 0;
    exe[n] = '\0';
    const char *slash = strrchr(exe, '/');
    const char *name = slash ? slash + 1 : exe;
    return tables_text(r->tables, name, strlen(name));
}

static void join_words(struct buf *line, char *words, size_t len, bool keep_secrets)
{
    struct arena arena;
    char *argv[WORDS_MOST + 1], **shown = argv;
    int argc = 0;
    for (char *p = words; p < words + len && argc < WORDS_MOST; p += strlen(p) + 1)
        argv[argc++] = p;
    argv[argc] = NULL;
    arena_init(&arena);
    if (!keep_secrets && redact_args(argc, argv, &arena, &shown) < 0)
        argc = 0; /* rather nothing than a secret */
    for (int i = 0; i < argc; i++)
        buf_printf(line, "%s%s", i ? " " : "", shown[i]);
    arena_release(&arena);
}

static uint64_t hash(const char *bytes, size_t len)
{
    uint64_t h = 14695981039346656037ull;
    for (size_t i = 0; i < len; i++)
        h = (h ^ (uint8_t)bytes[i]) * 1099511628211ull;
    return h | 1;
}

/* What it runs now; nothing when that is what it ran before. */
static void describe(struct procrows *r, struct row_slot *slot)
{
    char words[COMMAND_MOST + 1];
    struct scan s;
    const uint32_t pid = slot->base.process.pid;
    int fd = kept_open(proc_root(r->roots), "%u/cmdline", pid);
    const bool any = kept_read(fd, words, sizeof words, &s);
    kept_close(&fd);
    const size_t len = any ? (size_t)(s.end - s.at) : 0;
    const uint64_t now = hash(words, len);
    if (now == slot->command_hash || (!any && slot->command_hash))
        return; /* a zombie has no words: keep those it had */
    slot->command_hash = now;
    struct buf line = BUF_INIT;
    join_words(&line, words, len, r->keep_secrets);
    const uint32_t exe = exe_text(r, pid);
    if (exe)
        slot->row->exe = exe;
    if (line.len)
        slot->row->command = tables_text(r->tables, line.data, line.len);
    buf_release(&line);
}

static uint32_t parent_of(const struct procrows *r, uint32_t pid)
{
    struct process_stat stat = { 0 };
    int fd = kept_open(proc_root(r->roots), "%u/stat", pid);
    (void)read_process_stat(fd, &stat);
    kept_close(&fd);
    return stat.ppid;
}

/* ---- Following --------------------------------------------------------------------------- */

static void slot_open(void *owner, void *at)
{
    struct procrows *r = owner;
    struct row_slot *slot = at;
    uint32_t index;
    slot->first_ns = r->at_ns;
    if (!r->tables->base)
        return;
    slot->row = tables_append(r->tables, MONITOR_TABLE_PROCESSES, &index);
    if (!slot->row) {
        r->lost++;
        return;
    }
    slot->row->pid = slot->base.process.pid;
    slot->row->start_ticks = slot->base.process.start_ticks;
    slot->row->ppid = parent_of(r, slot->base.process.pid);
    slot->row->first_ns = r->at_ns;
    describe(r, slot);
    __atomic_store_n(&slot->row->key, index + 1ull, __ATOMIC_RELEASE);
}

static void slot_close(void *owner, void *at)
{
    (void)owner, (void)at; /* the row stays */
}

void procrows_init(struct procrows *r, struct tables *tables,
                   const struct monitor_roots *roots, bool keep_secrets)
{
    *r = (struct procrows){ .tables = tables,
                            .roots = roots,
                            .keep_secrets = keep_secrets,
                            .tab = { .slot_size = sizeof(struct row_slot),
                                     .open = slot_open,
                                     .close = slot_close } };
}

void procrows_release(struct procrows *r)
{
    proctab_release(&r->tab);
}

void procrows_follow(struct procrows *r, const struct monitor_round *round,
                     uint64_t at_ns)
{
    r->at_ns = at_ns;
    r->tab.owner = r;
    proctab_follow(&r->tab, round);
    for (size_t i = 0; i < r->tab.count; i++) {
        struct row_slot *slot = proctab_at(&r->tab, i);
        slot->lived_before = monitor_lived_before(round, &slot->base.process);
        if (!slot->row)
            continue;
        __atomic_store_n(&slot->row->last_ns, at_ns, __ATOMIC_RELAXED);
        if (++slot->rounds > 1 && (slot->rounds & (slot->rounds - 1)) == 0)
            describe(r, slot);
    }
}

const char *procrows_subject(const struct procrows *r, size_t process)
{
    if (process >= r->tab.count)
        return NULL;
    const struct row_slot *slot = proctab_at(&r->tab, process);
    return process == 0 || r->at_ns - slot->first_ns >= OLD_NS ? slot->base.subject
                                                               : NULL;
}

/* Totals that grow from the birth of a process on. */
static bool is_sum(enum monitor_total what)
{
    return what != TOTAL_PEAK_RSS_MB && what != TOTAL_PEAK_PRIVATE_MB &&
           what != TOTAL_THREADS;
}

static double since_run_began(struct row_slot *slot, enum monitor_total what,
                              double value)
{
    if (!slot->lived_before || !is_sum(what))
        return value;
    if (!(slot->known >> what & 1)) {
        slot->known |= 1ull << what;
        slot->before[what] = value;
    }
    return value - slot->before[what];
}

void procrows_total(struct procrows *r, size_t process, enum monitor_total what,
                    double value)
{
    struct row_slot *slot = process < r->tab.count ? proctab_at(&r->tab, process)
                                                   : NULL;
    if (!slot || !slot->row || what >= MONITOR_TOTALS)
        return;
    value = since_run_began(slot, what, value);
    __atomic_store(&slot->row->total[what], &value, __ATOMIC_RELAXED);
    __atomic_store_n(&slot->row->set, slot->row->set | 1ull << what, __ATOMIC_RELEASE);
}

void procrows_ended(struct procrows *r, const struct monitor_process *process,
                    int status)
{
    /* The newest first: rows are in the order of their births. */
    const struct tables *t = r->tables;
    const uint64_t count = t->base
                               ? tables_head(t)->table[MONITOR_TABLE_PROCESSES].count
                               : 0;
    for (uint64_t i = count; i-- > 0;) {
        struct monitor_process_row *row = tables_row(t, MONITOR_TABLE_PROCESSES,
                                                     (uint32_t)i);
        if (!row || row->pid != process->pid ||
            row->start_ticks != process->start_ticks)
            continue;
        __atomic_store_n(&row->end, (uint32_t)status | MONITOR_EXIT_KNOWN,
                         __ATOMIC_RELAXED);
        return;
    }
}
