/* handload.c: see handload.h. Walks over the stacks: where the loop is, who reads, who is
 * at it longest, whose time it is. */
#include "analyse/handload.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analyse/pylines.h"
#include "analyse/pystacks.h"
#include "analyse/report.h"
#include "base/buf.h"
#include "base/strmap.h"
#include "trace/pystack_rows.h"

enum { CHAIN_MOST = 64, FUNCTIONS_MOST = 65536 };
enum { FILES_A_STEP = 4 }; /* a batch of them, no note that a step takes */

/* Libraries that read for their callers, by a part of their files' names. */
static const char *const readers[] = {
    "numpy/lib/npyio",
    "numpy/lib/_npyio",
    "numpy/lib/format",
    "numpy/lib/_format",
    "/PIL/",
    "/imageio/",
    "/json/__init__.py",
    "/json/decoder.py",
    "/genericpath.py",
    "<frozen genericpath>",
    "/glob.py",
    "/pathlib",
    "/gzip.py",
    "/zipfile",
    "/tarfile.py",
    "/bz2.py",
    "/lzma.py",
    "/codecs.py",
    "<frozen codecs>",
    "/pandas/io/",
    "/pyarrow/",
    "/h5py/",
    "/soundfile.py",
    "/librosa/core/audio",
    "/torchaudio/",
    "/torchvision/io/",
    "/safetensors/",
    "torch/serialization.py",
    "/_compression.py",
    "/fileinput.py",
};

/* Of them, and besides, those who only deal with names. */
static const char *const lookers[] = {
    "/genericpath.py", "<frozen genericpath>", "/posixpath.py", "<frozen posixpath>",
    "/glob.py",        "/fnmatch.py",          "/pathlib",      "<frozen os>",
    "/os.py",
};

/* … and what they call the other direction. */
static const char *const writers[] = { "save",   "write", "dump",
                                       "encode", "_save", "_write" };

/* What programs call the functions that prepare their data. Of time outside of training
 * nobody else tells what it is for: a simulator, a copy of the weights and a batch of
 * samples are all made by the loop's own functions. */
static const char *const preparing[] = {
    "batch",  "sample",      "augment",    "preproc",    "prepare",    "collate",
    "tokeni", "featur",      "load_",      "_load",      "loader",     "dataset",
    "crop",   "resample",    "transform_", "_transform", "transforms", "rasteri",
    "decode", "__getitem__", "__iter__",   "__next__",
};

struct walk {
    struct report *r;
    struct strmap functions;   /* "file:first line" → bits below */
    struct strmap lines;       /* "file:line" → wall time in ns */
    uint64_t loop[CHAIN_MOST]; /* own functions from the outermost to the loop */
    unsigned loop_len;
    bool has_loop;
    struct handload *out;
    double top_ns;
    struct strmap times; /* "file:first line" → wall time outside of training */
    struct strmap waits; /* … of it, without running */
    double outside_ns, longest_ns; /* of all functions, of `longest` */
    double waited_ns;              /* of longest_ns */
    uint64_t longest;              /* its id; 0: none */
    bool made;                     /* who prepares data counts, reader or not */
};

enum {
    TRAINS = 1,
    READS = 2,
    READS_IN_LOOP = 4,
    FUNCTION_ID = 3
}; /* bits, then the id */

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

static bool has_any(const char *text, const char *const *parts, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strstr(text, parts[i]))
            return true;
    return false;
}

/* ---- What a frame says ---------------------------------------------------------------- */

static bool is_reader(const struct pystack_place *p)
{
    for (size_t i = 0; i < sizeof writers / sizeof *writers; i++)
        if (begins(p->function, writers[i]))
            return false;
    return has_any(p->file, readers, sizeof readers / sizeof *readers);
}

static bool is_looker(const struct pystack_place *p)
{
    return has_any(p->file, lookers, sizeof lookers / sizeof *lookers);
}

/* An update or a backward pass: what a training loop is known by. */
static bool is_training(const struct pystack_place *p)
{
    return (strstr(p->file, "torch/optim/") && strstr(p->function, "step")) ||
           ((strstr(p->file, "torch/autograd/") || strstr(p->file, "torch/_tensor")) &&
            strstr(p->function, "backward"));
}

static bool is_model(const struct pystack_place *p)
{
    return strstr(p->file, "torch/nn/modules/") != NULL;
}

/* What passes through these is no loading, whatever else is on the stack. */
static bool is_else(const struct pystack_place *p)
{
    const unsigned uses = pylines_uses(p->file);
    return uses & (1u << PY_IMPORT | 1u << PY_LOGGING | 1u << PY_COMPILE |
                   1u << PY_LOADING | 1u << PY_COLLATE);
}

struct kind {
    bool trains, models, reads, looks, other;
    unsigned own; /* the innermost place of the program's own; depth: none */
};

static struct kind kind_of(const struct pystack *s)
{
    struct kind k = { .own = s->depth };
    for (unsigned i = 0; i < s->depth; i++) {
        const struct pystack_place *p = &s->places[i];
        if (k.own == s->depth && !pylines_is_library(p->file))
            k.own = i;
        k.trains |= is_training(p);
        k.models |= is_model(p);
        k.other |= is_else(p);
        k.reads |= k.own == s->depth && is_reader(p);
        k.looks |= k.own == s->depth && is_looker(p);
    }
    return k;
}

static bool is_main(const struct walk *w, const struct pystack *s)
{
    return s->pid == w->r->python.main_pid && s->tid == s->pid;
}

/* ---- Functions -------------------------------------------------------------------------- */

/* The entry for a file and one of its lines; NULL for want of memory or room. */
static struct strmap_entry *entry_at(struct strmap *map, const char *file,
                                     uint32_t line, bool *ret_added)
{
    struct buf name = BUF_INIT;
    buf_printf(&name, "%s:%u", file, line);
    *ret_added = false;
    struct strmap_entry *e = name.error || map->count > FUNCTIONS_MOST
                                 ? NULL
                                 : strmap_enter(map, name.data, name.len, ret_added);
    buf_release(&name);
    return e;
}

/* A function of the program's own. */
static struct strmap_entry *function_at(struct walk *w, const struct pystack_place *p)
{
    bool added;
    struct strmap_entry *e = entry_at(&w->functions, p->file, p->first_line, &added);
    if (e && added)
        e->value = (uint64_t)w->functions.count << FUNCTION_ID;
    return e;
}

/* Ids of its own functions, the outermost first. */
static unsigned chain_of(struct walk *w, const struct pystack *s,
                         uint64_t ret_chain[CHAIN_MOST])
{
    unsigned n = 0;
    for (unsigned i = s->depth; i-- > 0 && n < CHAIN_MOST;) {
        if (pylines_is_library(s->places[i].file))
            continue;
        const struct strmap_entry *e = function_at(w, &s->places[i]);
        ret_chain[n++] = e ? e->value >> FUNCTION_ID : 0;
    }
    return n;
}

static bool in_loop(struct walk *w, const struct pystack *s)
{
    uint64_t chain[CHAIN_MOST];
    const unsigned n = chain_of(w, s, chain);
    return n >= w->loop_len && memcmp(chain, w->loop, w->loop_len * sizeof *chain) == 0;
}

/* ---- The walks ---------------------------------------------------------------------------- */

/* The loop: the innermost function that everything that trains has above it. */
static int find_loop(void *arg, const struct pystack *s)
{
    struct walk *w = arg;
    uint64_t chain[CHAIN_MOST];
    const struct kind k = is_main(w, s) ? kind_of(s) : (struct kind){ .other = true };
    if (k.other || !k.trains)
        return 0;
    const unsigned n = chain_of(w, s, chain);
    if (!w->has_loop) {
        memcpy(w->loop, chain, n * sizeof *chain);
        w->loop_len = n;
        w->has_loop = true;
        return 0;
    }
    unsigned same = 0;
    while (same < n && same < w->loop_len && chain[same] == w->loop[same])
        same++;
    w->loop_len = same;
    return 0;
}

/* Who reads, and who has training below. */
static int find_readers(void *arg, const struct pystack *s)
{
    struct walk *w = arg;
    const struct kind k = is_main(w, s) ? kind_of(s) : (struct kind){ .other = true };
    if (k.other)
        return 0;
    for (unsigned i = 0; i < s->depth && (k.trains || k.models); i++) {
        struct strmap_entry *e = pylines_is_library(s->places[i].file)
                                     ? NULL
                                     : function_at(w, &s->places[i]);
        if (e)
            e->value |= TRAINS;
    }
    struct strmap_entry *reader = k.reads && k.own < s->depth
                                      ? function_at(w, &s->places[k.own])
                                      : NULL;
    if (reader)
        reader->value |= in_loop(w, s) ? READS | READS_IN_LOOP : READS;
    return 0;
}

/* Some function of the loop is known to read, and does not train as well. */
static bool has_reader(const struct walk *w)
{
    for (size_t i = 0; i < w->functions.count; i++) {
        const uint64_t bits = w->functions.entries[i].value;
        if ((bits & READS_IN_LOOP) && !(bits & TRAINS))
            return true;
    }
    return false;
}

/* Adds to what is known of a place; the sum, 0 for want of memory. */
static uint64_t add_time(struct strmap *times, const char *file, uint32_t line,
                         uint64_t ns)
{
    bool added;
    struct strmap_entry *e = entry_at(times, file, line, &added);
    return e ? e->value = (added ? 0 : e->value) + ns : 0;
}

/* For another thread or process of the program: what they do is their affair. */
static bool is_own_wait(const struct pystack *s)
{
    static const char *const parts[] = { "/threading.py",     "/queue.py",
                                         "/multiprocessing/", "/concurrent/",
                                         "/subprocess.py",    "/asyncio/" };
    for (unsigned i = 0; i < s->depth; i++)
        if (has_any(s->places[i].file, parts, sizeof parts / sizeof *parts))
            return true;
    return false;
}

/* Below a function that writes, while every other step writes to files: on a busy machine
 * whoever computes seems to wait, and a log would be taken for a store. */
static bool is_writing(struct walk *w, const struct pystack *s)
{
    const struct io_hand *h = &w->r->io.hand;
    if (!h->writes_known || 2 * h->write_steps < w->r->account.steps)
        return false;
    for (unsigned i = 0; i < s->depth; i++) {
        const struct strmap_entry *e = s->places[i].flags & PYSTACK_CODE_WRITES
                                           ? function_at(w, &s->places[i])
                                           : NULL;
        if (e && !(e->value & TRAINS))
            return true;
    }
    return false;
}

/* Who is at it longest, of those that never train. */
static int find_longest(void *arg, const struct pystack *s)
{
    struct walk *w = arg;
    const struct kind k = is_main(w, s) ? kind_of(s) : (struct kind){ .other = true };
    if (k.other || k.trains || k.models || k.own == s->depth || !in_loop(w, s))
        return 0;
    const struct pystack_place *p = &s->places[k.own];
    const struct strmap_entry *e = function_at(w, p);
    w->outside_ns += (double)s->wall_ns;
    if (!e || (e->value & TRAINS))
        return 0;
    const uint64_t waited = s->wall_ns > s->cpu_ns ? s->wall_ns - s->cpu_ns : 0;
    const double ns = (double)add_time(&w->times, p->file, p->first_line, s->wall_ns);
    const double waits = (double)add_time(&w->waits, p->file, p->first_line,
                                          is_own_wait(s) || is_writing(w, s) ? 0
                                                                             : waited);
    if (ns >= w->longest_ns) {
        w->longest_ns = ns;
        w->waited_ns = waits;
        w->longest = e->value >> FUNCTION_ID;
    }
    return 0;
}

/* Each step opens several files, and no frame tells who does. A program that reads back
 * what it has written (rollouts, spilled work) may do anything else meanwhile. */
static bool opens_files(const struct walk *w)
{
    const struct report *r = w->r;
    const struct io_hand *h = &r->io.hand;
    return h->known && r->account.known &&
           h->opens >= FILES_A_STEP * r->account.steps &&
           r->io.total[1].bytes < h->read_bytes / 2;
}

/* Who has at least half of the loop's time outside of training is taken for the reader:
 * where files are opened, and where it waits, for nothing of the program's own (an answer
 * of a server, a disk) and all the time. */
static bool longest_reads(const struct walk *w)
{
    return w->longest_ns > 0 && w->longest_ns >= 0.5 * w->outside_ns &&
           (opens_files(w) || w->waited_ns >= 0.8 * w->longest_ns);
}

static bool is_reading(const struct walk *w, const struct strmap_entry *function)
{
    return (function->value & READS) ||
           (longest_reads(w) && function->value >> FUNCTION_ID == w->longest);
}

static bool is_preparing(const struct pystack_place *p)
{
    char name[128];
    size_t n = 0;
    for (; n < sizeof name - 1 && p->function[n]; n++) {
        const char c = p->function[n];
        name[n] = c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
    }
    name[n] = '\0';
    return has_any(name, preparing, sizeof preparing / sizeof *preparing);
}

/* A function that reads and does not train is on the stack. */
static bool has_loader(struct walk *w, const struct pystack *s)
{
    for (unsigned i = 0; i < s->depth; i++) {
        const struct strmap_entry *e = pylines_is_library(s->places[i].file)
                                           ? NULL
                                           : function_at(w, &s->places[i]);
        if (e && !(e->value & TRAINS) &&
            (w->made ? is_preparing(&s->places[i]) : is_reading(w, e)))
            return true;
    }
    return false;
}

static const char *kept(struct walk *w, const char *text)
{
    const char *copy = arena_strdup(&w->r->arena, text);
    return copy ? copy : "";
}

static void count_line(struct walk *w, const struct pystack_place *p, uint64_t ns)
{
    const uint64_t sum_ns = add_time(&w->lines, p->file, p->line, ns);
    if ((double)sum_ns <= w->top_ns)
        return;
    w->top_ns = (double)sum_ns;
    if (w->out->line == p->line && strcmp(w->out->file, p->file) == 0)
        return;
    w->out->file = kept(w, p->file);
    w->out->function = kept(w, p->function);
    w->out->line = p->line;
}

static int count_time(void *arg, const struct pystack *s)
{
    struct walk *w = arg;
    const struct kind k = is_main(w, s) ? kind_of(s) : (struct kind){ .other = true };
    if (k.other || k.trains || k.models || k.own == s->depth || !in_loop(w, s) ||
        !((k.reads && !w->made) || has_loader(w, s)))
        return 0;
    w->out->wall_ns += (double)s->wall_ns;
    w->out->cpu_ns += (double)s->cpu_ns;
    w->out->look_ns += k.looks ? (double)s->wall_ns : 0;
    count_line(w, &s->places[k.own], s->wall_ns);
    return 0;
}

static int read_stacks(struct report *r, bool made, struct handload *ret_load)
{
    struct handload load = { .file = "", .function = "" };
    struct walk w = { .r = r, .out = &load, .made = made };
    const char *dir = r->run->dir;
    *ret_load = load;
    if (!r->python.present)
        return 0;
    int rc = pystacks_walk(dir, find_loop, &w);
    if (rc == 0 && w.has_loop)
        rc = pystacks_walk(dir, find_readers, &w);
    if (rc == 0 && w.has_loop && !made && !has_reader(&w))
        rc = pystacks_walk(dir, find_longest, &w);
    if (rc == 0 && w.has_loop)
        rc = pystacks_walk(dir, count_time, &w);
    if (rc == 0 && w.has_loop) {
        load.known = true;
        *ret_load = load;
    }
    strmap_release(&w.functions);
    strmap_release(&w.lines);
    strmap_release(&w.times);
    strmap_release(&w.waits);
    return rc == -ENOMEM ? rc : 0;
}

int handload_read(struct report *r, struct handload *ret_load)
{
    return read_stacks(r, false, ret_load);
}

int handload_made(struct report *r, struct handload *ret_made)
{
    return read_stacks(r, true, ret_made);
}
