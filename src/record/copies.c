/* copies.c: find the other copies of this library and agree on one. See copies.h.
 *
 * Symbols cannot be used for this: a copy linked statically into a program is not in
 * its dynamic symbol table. Instead every copy carries an ELF note that points at its
 * own record (`here`), and dl_iterate_phdr() shows the notes of all loaded objects.
 * The first record in that order (the program, then libraries in load order) is the
 * meeting place: who stores its table there first is the recorder.
 */
#include "record/copies.h"

#include <errno.h>
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>

/* What a note points at. `elected` is used only in the first record found. */
struct copy {
    uint64_t magic;
    uint32_t version, size;
    const struct table *elected; /* atomic */
};
#define COPY_MAGIC 0x7970636564646e6fULL

/* Referenced from the note by name, hence not static. */
extern struct copy sonde_copy_here_;
struct copy sonde_copy_here_ = { COPY_MAGIC, TABLE_VERSION, sizeof(struct copy), NULL };

__asm__(".pushsection .note.sonde, \"a\", %note\n"
        ".balign 4\n"
        ".long 6, 8, 1\n" /* name size, descriptor size, type */
        ".asciz \"Sonde\"\n"
        ".balign 4\n"
        ".quad sonde_copy_here_ - .\n" /* distance, so that nothing is relocated */
        ".popsection\n");

static const struct table table_here = {
    .version = TABLE_VERSION,
    .size = sizeof(struct table),
    .gate = record_gate,
    .begin = record_begin,
    .end = record_end,
    .site_named = record_site_named,
    .site_enable = record_site_enable,
    .value = record_value,
    .mark = record_mark,
    .step = record_step,
    .note = record_note,
    .thread_name = record_thread_name,
    .operation_begin = operation_begin,
    .operation_end = operation_end,
    .span_begin = span_begin,
    .span_change = span_change,
    .session_start = session_start,
    .session_stop = session_stop,
    .session_active = session_active,
    .session_directory = session_directory,
    .session_error = session_error,
    .pause = record_pause,
    .recording = record_recording,
    .lost = record_lost,
    .lane_follow = lanes_follow,
    .steps = record_steps,
    .monitor_start = watch_start,
    .monitor_stop = watch_stop,
    .monitor_stats = watch_stats,
    .alert_add = watch_alert_add,
    .alert_error = watch_alert_error,
    .tables_open = layer_tables_open,
    .tables_append = layer_tables_append,
    .tables_row = layer_tables_row,
    .tables_text = layer_tables_text,
    .role = layer_role,
};

/* ---- Finding --------------------------------------------------------------------- */

static struct copy *copy_in_notes(const char *p, size_t len)
{
    while (len >= 12) {
        Elf64_Nhdr note;
        memcpy(&note, p, sizeof note);
        size_t name = (note.n_namesz + 3u) & ~3u, desc = (note.n_descsz + 3u) & ~3u;
        size_t size = sizeof note + name + desc;
        if (size > len || note.n_namesz > len || note.n_descsz > len)
            return NULL;
        if (note.n_type == 1 && note.n_namesz == 6 && note.n_descsz == 8 &&
            memcmp(p + sizeof note, "Sonde", 6) == 0) {
            const char *at = p + sizeof note + name;
            int64_t distance;
            memcpy(&distance, at, sizeof distance);
            return (struct copy *)(uintptr_t)(at + distance);
        }
        p += size;
        len -= size;
    }
    return NULL;
}

static int visit_object(struct dl_phdr_info *info, size_t size, void *arg)
{
    (void)size;
    struct copy **first = arg;
    for (int i = 0; i < info->dlpi_phnum && !*first; i++) {
        const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
        if (ph->p_type != PT_NOTE || ph->p_align > 4)
            continue; /* ours are aligned to 4 */
        const char *p = (const char *)(uintptr_t)(info->dlpi_addr + ph->p_vaddr);
        struct copy *copy = copy_in_notes(p, ph->p_memsz);
        if (copy && copy->magic == COPY_MAGIC)
            *first = copy;
    }
    return *first != NULL;
}

/* Weak: a static program has neither, nor anything that could be unloaded. */
extern void *dlopen(const char *, int) __attribute__((weak));
extern int dladdr(const void *, Dl_info *) __attribute__((weak));

/* The recorder's code, and the meeting place, must outlive dlclose(). */
static void pin(const void *address)
{
    Dl_info info;
    if (!dlopen || !dladdr || !dladdr(address, &info) || !info.dli_fname)
        return;
    (void)dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
}

static const struct table *elect(void)
{
    struct copy *first = NULL;
    (void)dl_iterate_phdr(visit_object, &first);
    if (!first)
        first = &sonde_copy_here_; /* the note was stripped: we are on our own */
    const struct table *none = NULL;
    if (__atomic_compare_exchange_n(&first->elected, &none, &table_here, false,
                                    __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
        pin(&table_here);
        pin(first);
        return &table_here;
    }
    /* Another copy was faster. If it speaks another version, ours stays silent. */
    return none->version == TABLE_VERSION ? none : NULL;
}

/* ---- Attaching ------------------------------------------------------------------- */

static const uint32_t gate_cold;                 /* 0: the next call comes here */
static const uint32_t gate_off = SONDE_GATE_OFF; /* for ever */
const volatile uint32_t *sonde_gate_ = &gate_cold;
__thread struct sonde_lane *sonde_lane_ __attribute__((tls_model("initial-exec")));

/* The table of a copy that may not record: everything is off. */
static const volatile uint32_t *silent_gate(void)
{
    return &gate_off;
}
static void silent_site(struct sonde_site *s, struct sonde_lane **l)
{
    (void)s, (void)l;
}
static int silent_alert_add(const char *expression,
                            void (*fn)(const struct sonde_alert *, void *), void *arg)
{
    (void)expression;
    (void)fn;
    (void)arg;
    return -EOPNOTSUPP;
}

static const char *silent_alert_error(void)
{
    return "another version of libsonde records here";
}

static const struct table *silent_table(void);

const struct table *copies_meet(void)
{
    static const struct table *met; /* set once; racing threads agree */
    const struct table *t = __atomic_load_n(&met, __ATOMIC_ACQUIRE);
    if (t)
        return t;
    t = elect();
    if (!t)
        t = silent_table();
    __atomic_store_n(&met, t, __ATOMIC_RELEASE);
    return t;
}

const struct table *copies_table(void)
{
    static const struct table *known;
    const struct table *t = __atomic_load_n(&known, __ATOMIC_ACQUIRE);
    if (t)
        return t;
    t = copies_meet();
    __atomic_store_n(&sonde_gate_, t->gate(), __ATOMIC_RELEASE);
    __atomic_store_n(&known, t, __ATOMIC_RELEASE);
    return t;
}

static struct sonde_site *silent_named(const struct site_spec *spec)
{
    static struct sonde_site nowhere = { .name = "(other names)" };
    (void)spec;
    return &nowhere;
}
static void silent_enable(struct sonde_site *s, int on)
{
    (void)s, (void)on;
}
static void silent_value(const char *n, int k, double v)
{
    (void)n, (void)k, (void)v;
}
static void silent_text(const char *n)
{
    (void)n;
}
static void silent_step(uint64_t n)
{
    (void)n;
}
static void silent_note(const char *k, const char *v, unsigned f)
{
    (void)k, (void)v, (void)f;
}
static void silent_span(struct sonde_span *s, struct sonde_site *p)
{
    (void)s, (void)p;
}
static void silent_span_change(struct sonde_span *s, int k)
{
    (void)s, (void)k;
}
static int silent_start(const struct sonde_options *o)
{
    (void)o;
    return -95;
}
static int silent_zero(void)
{
    return 0;
}
static const char *silent_empty(void)
{
    return "";
}
static const char *silent_error(void)
{
    return "another version of Sonde records in this process";
}
static void silent_pause(int p)
{
    (void)p;
}
static void silent_follow(struct sonde_lane **slot)
{
    (void)slot;
}
static uint64_t silent_lost(void)
{
    return 0;
}

static int silent_watch_start(uint64_t interval_ns)
{
    (void)interval_ns;
    return -95;
}
static int silent_watch_stop(void)
{
    return -2;
}
static int silent_watch_stats(const char *m, const char *s,
                              struct sonde_monitor_summary *r)
{
    (void)m, (void)s, (void)r;
    return -2;
}

static struct sonde_tables *silent_tables_open(const char *k,
                                               const struct sonde_table *t, unsigned n)
{
    (void)k, (void)t, (void)n;
    return NULL;
}
static void *silent_append(struct sonde_tables *t, unsigned n)
{
    (void)t, (void)n;
    return NULL;
}
static void *silent_row(struct sonde_tables *t, unsigned n, uint32_t i)
{
    (void)t, (void)n, (void)i;
    return NULL;
}
static uint32_t silent_tables_text(struct sonde_tables *t, const char *s)
{
    (void)t, (void)s;
    return 0;
}

static const struct table *silent_table(void)
{
    static const struct table t = {
        .version = TABLE_VERSION,
        .size = sizeof t,
        .gate = silent_gate,
        .begin = silent_site,
        .end = silent_site,
        .site_named = silent_named,
        .site_enable = silent_enable,
        .value = silent_value,
        .mark = silent_text,
        .step = silent_step,
        .note = silent_note,
        .thread_name = silent_text,
        .operation_begin = operation_begin,
        .operation_end = operation_end,
        .span_begin = silent_span,
        .span_change = silent_span_change,
        .session_start = silent_start,
        .session_stop = silent_zero,
        .session_active = silent_zero,
        .session_directory = silent_empty,
        .session_error = silent_error,
        .pause = silent_pause,
        .recording = silent_zero,
        .lost = silent_lost,
        .lane_follow = silent_follow,
        .steps = silent_lost,
        .monitor_start = silent_watch_start,
        .monitor_stop = silent_watch_stop,
        .monitor_stats = silent_watch_stats,
        .alert_add = silent_alert_add,
        .alert_error = silent_alert_error,
        .tables_open = silent_tables_open,
        .tables_append = silent_append,
        .tables_row = silent_row,
        .tables_text = silent_tables_text,
        .role = silent_text,
    };
    return &t;
}

/* Under `sonde run`, meet before main(): later the loader may be busy, or we may be
 * in a signal handler. The preloaded copy is in every program, most of which record
 * nothing: it meets by itself and makes no trace. */
__attribute__((constructor)) static void attach_early(void)
{
    if (!copies_preloaded && secure_getenv("SONDE_RUN"))
        (void)copies_table();
}
