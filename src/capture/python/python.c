/* python.c: interpreters, threads, frames.
 *
 * Reading is done in two calls for all threads together: the thread states (with the list
 * they form, the lock and the collector's flag), then for each thread the pointer to its
 * frame, the chunk of memory that holds its frames, and the pointer once more: the kernel
 * copies in that order, so that a stack is seldom gone when it is copied. In 3.11 and 3.12
 * the pointer is in a record on the C stack, a new one for each call of Python from C; the
 * state tells which, and is asked again last: who called us through C meanwhile would be
 * found in its caller, and look as if it had never been called. Frames that live elsewhere
 * (generators, an older chunk, Python before 3.11) cost calls of their own; before 3.11 the
 * frames of the last sample are asked for in one call, because most of a stack stays where
 * it is.
 */
#include "capture/python/python.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "capture/python/python_int.h"
#include "capture/python/remote.h"

enum {
    RETRIES = 6,   /* of a stack that was gone when we had copied it */
    PER_CALL = 16, /* threads whose frames are fetched in one call */
};

/* ---- Opening ------------------------------------------------------------------------ */

static int find_layout(struct python *p, const char **ret_why)
{
    const struct python_layout *known = layout_of(p->place.minor);
    if (known) {
        p->layout = *known;
        return 0;
    }
    uint8_t runtime[LAYOUT_RUNTIME_BYTES];
    int rc = remote_get(p->pid, p->place.runtime, runtime, sizeof runtime);
    if (rc == 0)
        rc = layout_from_runtime(runtime, sizeof runtime, p->place.minor, &p->layout);
    if (rc == SONDE_E_UNSUPPORTED)
        *ret_why = p->place.minor < 9 ? "Python older than 3.9"
                                      : "this version or build of Python has a layout "
                                        "Sonde does not know (free-threaded, or newer)";
    return rc;
}

static int list_interpreters(struct python *p, uint64_t now_ns)
{
    uint64_t at = 0;
    int rc = remote_get(p->pid, p->place.runtime + p->layout.runtime_interpreters, &at,
                        sizeof at);
    if (rc < 0)
        return rc;
    p->interpreter_count = 0;
    while (at && p->interpreter_count < PYTHON_INTERPRETERS) {
        p->interpreters[p->interpreter_count++] = at;
        rc = remote_get(p->pid, at + p->layout.interp_next, &at, sizeof at);
        if (rc < 0)
            return rc;
    }
    p->interpreters_ns = now_ns;
    return p->interpreter_count ? 0 : SONDE_E_NOTFOUND;
}

int python_open(pid_t pid, struct python **ret_python, const char **ret_why)
{
    struct python *p = calloc(1, sizeof *p);
    if (!p)
        return -ENOMEM;
    p->pid = pid;
    *ret_why = "";
    int rc = python_locate(pid, &p->place);
    if (rc == 0)
        rc = find_layout(p, ret_why);
    if (rc == 0)
        rc = list_interpreters(p, 0);
    p->threads = rc == 0 ? calloc(PYTHON_THREADS, sizeof *p->threads) : NULL;
    p->chunks = rc == 0 ? malloc((size_t)PER_CALL * CHUNK_MAX) : NULL;
    p->places = rc == 0 ? malloc((size_t)PYTHON_FRAMES * FRAME_MAX) : NULL;
    if (rc == 0 && (!p->threads || !p->chunks || !p->places))
        rc = -ENOMEM;
    if (rc < 0) {
        python_free(p);
        return rc;
    }
    codes_init(&p->codes, pid, &p->layout);
    *ret_python = p;
    return 0;
}

void python_free(struct python *p)
{
    if (!p)
        return;
    codes_release(&p->codes);
    free(p->threads);
    free(p->chunks);
    free(p->places);
    free(p->loop.ways);
    free(p);
}

unsigned python_minor(const struct python *p)
{
    return p->layout.minor;
}

bool python_is_lock(const struct python *p, uint64_t address)
{
    enum { GIL_SIZE = 256 }; /* with its two condition variables and mutexes */
    return p->gil && address >= p->gil && address < p->gil + GIL_SIZE;
}

struct python_code python_code(const struct python *p, int32_t code)
{
    if (code < 0 || (size_t)code >= p->codes.count)
        return (struct python_code){ "", "", 0, 0 };
    const struct code *c = &p->codes.list[code];
    return (struct python_code){ c->name, c->file, c->first_line, c->flags };
}

/* ---- Threads ------------------------------------------------------------------------ */

/* Before 3.11 only the address of the thread's descriptor is known, in which libc keeps
 * the number at a place that has not moved in many years. It is believed when it is one
 * of the process's. */
static uint32_t tid_by_descriptor(const struct python *p, uint64_t descriptor)
{
#if defined(__aarch64__)
    enum { TID_OFFSET = 208 };
#else
    enum { TID_OFFSET = 720 };
#endif
    uint32_t tid = 0;
    char path[64];
    if (remote_get(p->pid, descriptor + TID_OFFSET, &tid, sizeof tid) < 0)
        return 0;
    (void)snprintf(path, sizeof path, "/proc/%d/task/%u", (int)p->pid, tid);
    return access(path, F_OK) == 0 ? tid : 0;
}

/* A new thread's state bears the numbers of the thread that made it until it runs. */
void python_name_thread(const struct python *p, struct thread *t)
{
    const struct python_layout *l = &p->layout;
    if (l->thread_native_id != LAYOUT_NONE) {
        t->tid = (uint32_t)word_at(t->state, l->thread_size, l->thread_native_id);
        return;
    }
    const uint64_t descriptor = word_at(t->state, l->thread_size, l->thread_id);
    if (t->tid && descriptor == t->descriptor)
        return;
    t->descriptor = descriptor;
    t->tid = tid_by_descriptor(p, descriptor);
}

static uint64_t next_of(const struct python *p, const struct thread *t)
{
    return word_at(t->state, p->layout.thread_size, p->layout.thread_next);
}

/* Follows the list from its head, one call per thread: when threads came or went. */
static int walk_threads(struct python *p, uint64_t interp, size_t *count)
{
    uint64_t at;
    int rc = remote_get(p->pid, interp + p->layout.interp_threads, &at, sizeof at);
    while (rc == 0 && at && *count < PYTHON_THREADS) {
        struct thread *t = &p->threads[*count];
        if (t->address != at)
            *t = (struct thread){ .address = at };
        t->interp = interp;
        rc = remote_get(p->pid, at, t->state, p->layout.thread_size);
        if (rc < 0)
            break;
        python_name_thread(p, t);
        ++*count;
        at = next_of(p, t);
    }
    return rc;
}

/* Whether what was read again still is one list. */
static bool list_is_whole(const struct python *p, uint64_t interp, uint64_t head)
{
    uint64_t want = head;
    for (size_t i = 0; i < p->thread_count; i++) {
        if (p->threads[i].interp != interp)
            continue;
        if (p->threads[i].address != want)
            return false;
        want = next_of(p, &p->threads[i]);
    }
    return want == 0;
}

/* Where the lock and the collector of the main interpreter say how they stand. */
static size_t globals_pieces(struct python *p, struct remote_piece *pieces)
{
    const struct python_layout *l = &p->layout;
    const uint64_t interp = p->interpreters[p->interpreter_count - 1];
    size_t n = 0;
    p->globals.gil = p->gil;
    if (l->interp_gil != LAYOUT_NONE)
        pieces[n++] = (struct remote_piece){ interp + l->interp_gil, &p->globals.gil,
                                             sizeof p->globals.gil };
    pieces[n++] = (struct remote_piece){ interp + l->interp_collecting,
                                         &p->globals.collecting,
                                         sizeof p->globals.collecting };
    pieces[n++] = (struct remote_piece){ p->gil + l->gil_holder, &p->globals.holder,
                                         sizeof p->globals.holder };
    pieces[n++] = (struct remote_piece){ p->gil + l->gil_locked, &p->globals.locked,
                                         sizeof p->globals.locked };
    return n;
}

/* Where the lock is; it stays there. */
static void find_gil(struct python *p)
{
    const struct python_layout *l = &p->layout;
    const uint64_t interp = p->interpreters[p->interpreter_count - 1];
    p->gil = p->place.runtime + l->runtime_gil;
    if (l->interp_gil != LAYOUT_NONE &&
        remote_get(p->pid, interp + l->interp_gil, &p->gil, sizeof p->gil) < 0)
        p->gil = 0;
}

/* When the states were read one by one. Unknown is: nobody has it, nobody collects. */
static void read_globals(struct python *p)
{
    enum { MOST = 4 };
    struct remote_piece pieces[MOST];
    find_gil(p);
    if (!p->gil || remote_read(p->pid, pieces, globals_pieces(p, pieces)) < 0 ||
        p->globals.gil != p->gil)
        p->globals = (struct globals){ 0 };
}

/* Reads the states of the threads known from last time, with the head of each list, the
 * lock and the collector's flag. */
static bool reread_threads(struct python *p)
{
    enum { GLOBALS = 4 };
    struct remote_piece pieces[REMOTE_PIECES];
    uint64_t heads[PYTHON_INTERPRETERS] = { 0 };
    size_t n = 0;
    if (p->thread_count == 0 || !p->gil ||
        p->thread_count + p->interpreter_count + GLOBALS > REMOTE_PIECES)
        return false;
    for (size_t i = 0; i < p->interpreter_count; i++)
        pieces[n++] = (struct remote_piece){
            p->interpreters[i] + p->layout.interp_threads, &heads[i], 8
        };
    n += globals_pieces(p, pieces + n);
    for (size_t i = 0; i < p->thread_count; i++)
        pieces[n++] = (struct remote_piece){ p->threads[i].address, p->threads[i].state,
                                             p->layout.thread_size };
    if (remote_read(p->pid, pieces, n) < 0 || p->globals.gil != p->gil)
        return false;
    for (size_t i = 0; i < p->interpreter_count; i++)
        if (!list_is_whole(p, p->interpreters[i], heads[i]))
            return false;
    for (size_t i = 0; i < p->thread_count; i++)
        python_name_thread(p, &p->threads[i]);
    return true;
}

int python_list_threads(struct python *p)
{
    if (reread_threads(p))
        return 0;
    size_t count = 0;
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < p->interpreter_count; i++)
        rc = walk_threads(p, p->interpreters[i], &count);
    p->thread_count = count;
    if (rc == 0)
        read_globals(p);
    return rc == -EFAULT ? -EAGAIN : rc;
}

/* ---- Frames ------------------------------------------------------------------------- */

/* 3.11 and 3.12: the record on the C stack that the frame's address is in. */
static uint64_t record_of(const struct python *p, const struct thread *t)
{
    return word_at(t->state, p->layout.thread_size, p->layout.thread_frame);
}

static bool has_records(const struct python *p)
{
    return p->layout.cframe_frame != LAYOUT_NONE;
}

static uint64_t frame_pointer_at(const struct python *p, const struct thread *t)
{
    return has_records(p) ? record_of(p, t) + p->layout.cframe_frame
                          : t->address + p->layout.thread_frame;
}

/* The used part of the chunk that holds the innermost frames, and a little more of it:
 * calls have gone deeper since the state was read. */
static void find_chunk(const struct python *p, struct thread *t)
{
    enum { DEEPER = 1024 };
    const struct python_layout *l = &p->layout;
    t->chunk_len = 0;
    if (l->thread_chunk == LAYOUT_NONE)
        return;
    t->chunk = word_at(t->state, l->thread_size, l->thread_chunk);
    uint64_t top = word_at(t->state, l->thread_size, l->thread_chunk + 8);
    const uint64_t limit = word_at(t->state, l->thread_size, l->thread_chunk + 16);
    if (limit > top && limit - top <= 1 << 24)
        top += limit - top < DEEPER ? limit - top : DEEPER;
    if (t->chunk && top > t->chunk && top - t->chunk <= 1 << 24)
        t->chunk_len = top - t->chunk;
    if (t->chunk_len > CHUNK_MAX) { /* the newest end of it */
        t->chunk = top - CHUNK_MAX;
        t->chunk_len = CHUNK_MAX;
    }
}

/* The second call: frame pointers and chunks of some threads. Each pointer, and where it
 * is, is asked for again behind its chunk. */
bool python_fetch_frames(struct python *p, struct thread **threads, size_t count)
{
    struct remote_piece pieces[REMOTE_PIECES];
    size_t n = 0;
    for (size_t i = 0; i < count; i++) {
        struct thread *t = threads[i];
        find_chunk(p, t);
        t->bytes = p->chunks + i * CHUNK_MAX;
        pieces[n++] = (struct remote_piece){ frame_pointer_at(p, t), &t->frame, 8 };
        if (t->chunk_len)
            pieces[n++] = (struct remote_piece){ t->chunk, t->bytes, t->chunk_len };
        pieces[n++] = (struct remote_piece){ frame_pointer_at(p, t), &t->frame_after,
                                             8 };
        if (has_records(p))
            pieces[n++] = (struct remote_piece){ t->address + p->layout.thread_frame,
                                                 &t->record_after, 8 };
    }
    return remote_read(p->pid, pieces, n) == 0;
}

/* Before 3.11: fetches the frames of last time in one call, into p->places. */
void python_fetch_places(struct python *p, struct thread *t)
{
    struct remote_piece pieces[REMOTE_PIECES];
    unsigned count = t->place_count < REMOTE_PIECES ? t->place_count : REMOTE_PIECES;
    for (unsigned i = 0; i < count; i++)
        pieces[i] = (struct remote_piece){ t->places[i],
                                           p->places + (size_t)i * FRAME_MAX,
                                           p->layout.frame_size };
    if (remote_read(p->pid, pieces, count) < 0)
        count = 0;
    t->place_count = count;
}

/* The bytes of a frame: from the chunk, from last time's places, or by a call. */
const uint8_t *python_frame_bytes(struct python *p, struct thread *t, uint64_t address,
                                  unsigned *far, uint8_t *buffer)
{
    const size_t size = p->layout.frame_size;
    if (remote_within(address, size, t->chunk, t->chunk_len))
        return t->bytes + (address - t->chunk);
    for (unsigned i = 0; i < t->place_count; i++)
        if (t->places[i] == address)
            return p->places + (size_t)i * FRAME_MAX;
    if (++*far > FAR_FRAMES || remote_get(p->pid, address, buffer, size) < 0)
        return NULL;
    return buffer;
}

int64_t python_instruction_offset(const struct python_layout *l, const uint8_t *frame,
                                  uint64_t code)
{
    if (l->frame_instr != LAYOUT_NONE)
        return (int64_t)(word_at(frame, l->frame_size, l->frame_instr) -
                         (code + l->code_code));
    const int32_t lasti = (int32_t)half_at(frame, l->frame_size, l->frame_lasti);
    return l->minor >= 10 ? (int64_t)lasti * 2 : lasti;
}

/* Addresses of the frames of a copy, innermost first. */
struct chain {
    uint64_t at[PYTHON_FRAMES];
    unsigned count;
    unsigned far; /* that were fetched one by one, after the others */
};

/* From the innermost frame outwards. False when the copy is not one stack. */
static bool walk_frames(struct python *p, struct thread *t, uint64_t now_ns,
                        struct python_thread *out, struct chain *chain)
{
    const struct python_layout *l = &p->layout;
    uint64_t at = t->frame;
    out->count = 0;
    out->cut = false;
    for (unsigned steps = 0; at; steps++) {
        uint8_t buffer[FRAME_MAX];
        if (out->count == PYTHON_FRAMES || steps > 4 * PYTHON_FRAMES) {
            out->cut = true;
            break;
        }
        const uint8_t *frame = python_frame_bytes(p, t, at, &chain->far, buffer);
        if (!frame) {
            out->cut = chain->far > FAR_FRAMES;
            if (out->cut)
                break;
            return false;
        }
        const uint64_t code = word_at(frame, l->frame_size, l->frame_code) & ~1ull;
        const bool in_c = l->frame_owner != LAYOUT_NONE &&
                          frame[l->frame_owner] == l->owner_c_stack;
        const long index = in_c ? -1 : codes_find(&p->codes, code, now_ns);
        if (index >= 0) {
            out->frames[out->count++] = (struct python_frame){
                (int32_t)index,
                codes_line(&p->codes, index, python_instruction_offset(l, frame, code))
            };
            if (chain->count < PYTHON_FRAMES)
                chain->at[chain->count++] = at;
        } else if (!in_c && l->minor < 13) {
            return false; /* from 3.13 on some entries have no code */
        }
        at = word_at(frame, l->frame_size, l->frame_previous);
    }
    if (l->thread_chunk == LAYOUT_NONE) {
        memcpy(t->places, chain->at, chain->count * sizeof *chain->at);
        t->place_count = chain->count;
    }
    return true;
}

static bool is_in(const struct chain *chain, uint64_t frame)
{
    for (unsigned i = 0; i < chain->count; i++)
        if (chain->at[i] == frame)
            return true;
    return false;
}

/* Whether the thread is still in the stack that was copied: in the same innermost frame,
 * back in one of its callers, or in something one of them has just called (a generator
 * comes and goes faster than we read). The callers are the same then. */
static bool still_there(struct python *p, struct thread *t, const struct chain *chain)
{
    uint64_t frame = t->frame_after;
    uint8_t bytes[FRAME_MAX];
    /* What was copied later wants to be asked later. */
    if ((p->layout.thread_chunk == LAYOUT_NONE || chain->far) &&
        remote_get(p->pid, frame_pointer_at(p, t), &frame, sizeof frame) < 0)
        return false;
    if (frame == t->frame || is_in(chain, frame))
        return true;
    return frame && remote_get(p->pid, frame, bytes, p->layout.frame_size) == 0 &&
           is_in(chain, word_at(bytes, p->layout.frame_size, p->layout.frame_previous));
}

static bool copy_stack(struct python *p, struct thread *t, uint64_t now_ns,
                       struct python_thread *out)
{
    struct chain chain = { .count = 0 };
    if (has_records(p) && t->record_after != record_of(p, t))
        return false;
    if (p->layout.thread_chunk == LAYOUT_NONE && t->place_count)
        python_fetch_places(p, t);
    return walk_frames(p, t, now_ns, out, &chain) && still_there(p, t, &chain);
}

/* Again from the thread state on, for one thread. */
static bool copy_stack_again(struct python *p, struct thread *t, uint64_t now_ns,
                             struct python_thread *out)
{
    if (remote_get(p->pid, t->address, t->state, p->layout.thread_size) < 0)
        return false;
    return python_fetch_frames(p, &t, 1) && copy_stack(p, t, now_ns, out);
}

static void sample_some(struct python *p, struct thread **threads,
                        struct python_thread **outs, size_t count, uint64_t now_ns,
                        struct python_sample *sample)
{
    const bool fetched = python_fetch_frames(p, threads, count);
    for (size_t i = 0; i < count; i++) {
        outs[i]->valid = fetched && copy_stack(p, threads[i], now_ns, outs[i]);
    }
    for (size_t i = 0; i < count; i++) {
        for (unsigned again = 0; again < RETRIES && !outs[i]->valid; again++)
            outs[i]->valid = copy_stack_again(p, threads[i], now_ns, outs[i]);
        sample->invalid += !outs[i]->valid;
    }
}

int python_sample(struct python *p, uint64_t now_ns,
                  bool (*wanted)(void *arg, uint32_t tid), void *arg,
                  struct python_sample *ret_sample)
{
    int rc = now_ns - p->interpreters_ns > 1000000000 ? list_interpreters(p, now_ns)
                                                      : 0;
    if (rc == 0)
        rc = python_list_threads(p);
    if (rc < 0)
        return rc;
    struct thread *batch[PER_CALL];
    struct python_thread *outs[PER_CALL];
    size_t n = 0;
    struct python_sample *s = ret_sample;
    s->count = 0;
    s->invalid = 0;
    s->collecting = p->globals.collecting == 1;
    s->gil_held = p->globals.locked == 1;
    for (size_t i = 0; i < p->thread_count; i++) {
        struct thread *t = &p->threads[i];
        if (wanted && !wanted(arg, t->tid))
            continue;
        struct python_thread *out = &s->threads[s->count++];
        out->state = t->address;
        out->tid = t->tid;
        out->has_gil = s->gil_held && p->globals.holder == t->address;
        out->valid = false;
        out->count = 0;
        batch[n] = t;
        outs[n++] = out;
        if (n == PER_CALL) {
            sample_some(p, batch, outs, n, now_ns, s);
            n = 0;
        }
    }
    if (n)
        sample_some(p, batch, outs, n, now_ns, s);
    return 0;
}
