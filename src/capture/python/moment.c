/* moment.c: see moment.h. */
#include "capture/python/moment.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "capture/python/python_int.h"
#include "capture/python/remote.h"

static const uint64_t HASH_PRIME = 0x9e3779b97f4a7c15ULL;
enum { WORDS_MAX = 256, CANDIDATES = 24, RECORDS = 64, LOOP_MOST = 8192 };

/* What one loop has in registers and in its piece of the stack. */
struct words {
    unsigned count;
    uint64_t word[WORDS_MAX];
};

struct look {
    struct python *python;
    struct thread *thread;
    const struct moment *moment;
    struct moment_answer *answer;
    unsigned far;
    uint64_t tops[MOMENT_LOOPS]; /* the frame each loop was running; 0: not known */
    struct moment_frame
        found[MOMENT_FRAMES]; /* the innermost of the last loop first … */
    unsigned found_count;
};

/* ---- The sample ----------------------------------------------------------------------- */

static bool peek(const struct moment *m, uint64_t address, uint64_t *ret_word)
{
    if (!remote_within(address, sizeof *ret_word, m->stack_start, m->stack_len))
        return false;
    memcpy(ret_word, m->stack + (address - m->stack_start), sizeof *ret_word);
    return true;
}

static uint64_t peek_or_0(const struct moment *m, uint64_t address)
{
    uint64_t word = 0;
    return peek(m, address, &word) ? word : 0;
}

static void take_words(const struct moment *m, const struct moment_native *n,
                       struct words *ret_words)
{
    static const uint8_t kept[] = { 3, 6, 12, 13, 14, 15 }; /* rbx rbp r12 … r15 */
    struct words *w = ret_words;
    w->count = 0;
    for (unsigned i = 0; n->regs && !n->caller && i < MOMENT_REGS; i++)
        w->word[w->count++] = n->regs[i];
    for (unsigned i = 0; n->regs && n->caller && i < sizeof kept; i++)
        w->word[w->count++] = n->regs[kept[i]];
    for (uint64_t at = (n->low + 7) & ~7ULL;
         at >= n->low && at < n->high && w->count < WORDS_MAX; at += 8)
        if (peek(m, at, &w->word[w->count]))
            w->count++;
}

static bool has_word(const struct words *w, uint64_t word)
{
    for (unsigned i = 0; i < w->count; i++)
        if (w->word[i] == word)
            return true;
    return false;
}

/* ---- Loops ---------------------------------------------------------------------------- */

static bool is_loop_code(const struct python_loop *loop, uint64_t pc)
{
    for (unsigned i = 0; i < loop->range_count; i++)
        if (pc >= loop->ranges[i].start && pc < loop->ranges[i].end)
            return true;
    return false;
}

static const struct moment_native *loop_at(const struct look *k, unsigned loop)
{
    return &k->moment->native[k->answer->loops[loop]];
}

/* 3.11, 3.12: where in a record the one further out is told. */
static unsigned record_previous(const struct python_layout *l)
{
    return l->cframe_frame + 8u;
}

static uint64_t record_at(const struct look *k, const struct moment_native *n)
{
    return n->high - k->python->loop.record;
}

/* A part of the loop's code that the compiler moved away and nobody named: as large a piece
 * of the stack in the same file, and a record in it that leads on to that of another. */
static bool looks_like_loop(const struct look *k, unsigned native)
{
    const struct python_loop *loop = &k->python->loop;
    const struct python_layout *l = &k->python->layout;
    const struct moment_native *n = &k->moment->native[native];
    if (!loop->size || !loop->record || n->high - n->low != loop->size ||
        n->module != loop->module || l->cframe_frame == LAYOUT_NONE)
        return false;
    const uint64_t next = peek_or_0(k->moment, record_at(k, n) + record_previous(l));
    for (unsigned i = native + 1; i < k->moment->count; i++) {
        const struct moment_native *outer = &k->moment->native[i];
        if (outer->high && outer->high - outer->low == loop->size &&
            record_at(k, outer) == next)
            return true;
    }
    return false;
}

static void find_loops(struct look *k)
{
    struct python_loop *loop = &k->python->loop;
    struct moment_answer *a = k->answer;
    for (unsigned i = 0; i < k->moment->count && a->loop_count < MOMENT_LOOPS; i++) {
        const struct moment_native *n = &k->moment->native[i];
        const bool named = n->pc && is_loop_code(loop, n->pc);
        if (named && n->caller && n->high) {
            loop->size = n->high - n->low;
            loop->module = n->module;
        }
        if (named || (n->pc && looks_like_loop(k, i)))
            a->loops[a->loop_count++] = i;
    }
    a->known_from = a->loop_count;
}

/* ---- Threads -------------------------------------------------------------------------- */

static struct thread *known_thread(struct python *p, uint32_t tid)
{
    for (size_t i = 0; i < p->thread_count; i++)
        if (p->threads[i].tid == tid)
            return &p->threads[i];
    return NULL;
}

/* Its state as it is now. */
static int find_thread(struct look *k)
{
    struct python *p = k->python;
    struct thread *t = known_thread(p, k->moment->tid);
    if (t && remote_get(p->pid, t->address, t->state, p->layout.thread_size) == 0) {
        python_name_thread(p, t);
        if (t->tid == k->moment->tid) {
            k->thread = t;
            return 0;
        }
    }
    const int rc = python_list_threads(p);
    k->thread = rc == 0 ? known_thread(p, k->moment->tid) : NULL;
    return rc < 0 ? rc : k->thread ? 0 : -EAGAIN;
}

/* ---- Frames --------------------------------------------------------------------------- */

static const uint8_t *frame_at(struct look *k, uint64_t address, uint8_t *buffer)
{
    return address && address % 8 == 0
               ? python_frame_bytes(k->python, k->thread, address, &k->far, buffer)
               : NULL;
}

static long code_of(const struct look *k, const uint8_t *frame, uint64_t *ret_address)
{
    const struct python_layout *l = &k->python->layout;
    *ret_address = word_at(frame, l->frame_size, l->frame_code) & ~1ull;
    return codes_find(&k->python->codes, *ret_address, k->moment->now_ns);
}

/* Whether the loop's next instruction is in the code of the frame at `top`, and its line:
 * the one that was read when that is the sample's, too. */
static bool witness_line(const struct look *k, long code, const struct words *words,
                         int read_line, int *ret_line)
{
    uint64_t start, len;
    int other = 0;
    if (!codes_instructions(&k->python->codes, code, &start, &len))
        return false;
    for (unsigned i = 0; i < words->count; i++) {
        const uint64_t next = words->word[i];
        if (next <= start || next > start + len)
            continue;
        const int line = codes_line(&k->python->codes, code,
                                    (int64_t)(next - start) - 2);
        if (line == read_line) {
            *ret_line = line;
            return true;
        }
        if (!other)
            other = line;
    }
    *ret_line = other;
    return other != 0;
}

/* Whether the loop's piece of the stack is now what it was at the sample. */
static bool is_unchanged(const struct look *k, uint64_t low, uint64_t high)
{
    uint8_t now[LOOP_MOST];
    const struct moment *m = k->moment;
    return high > low && high - low <= sizeof now &&
           remote_within(low, high - low, m->stack_start, m->stack_len) &&
           remote_get(k->python->pid, low, now, high - low) == 0 &&
           memcmp(now, m->stack + (low - m->stack_start), high - low) == 0;
}

/* The frame at `top` as what the loop was running. */
static bool witness(struct look *k, unsigned loop, uint64_t top,
                    const struct words *words, struct moment_frame *ret_frame,
                    bool *ret_moved)
{
    const struct python_layout *l = &k->python->layout;
    uint8_t buffer[FRAME_MAX];
    uint64_t address;
    const uint8_t *frame = frame_at(k, top, buffer);
    const long code = frame ? code_of(k, frame, &address) : -1;
    if (code < 0)
        return false;
    const int read = codes_line(&k->python->codes, code,
                                python_instruction_offset(l, frame, address));
    const struct moment_native *n = loop_at(k, loop);
    int line = read;
    if (n->regs ? !witness_line(k, code, words, read, &line)
                : !is_unchanged(k, n->low, n->high))
        return false;
    *ret_moved = line != read;
    *ret_frame = (struct moment_frame){ loop, (int32_t)code, line };
    return true;
}

static bool push(struct look *k, struct moment_frame frame)
{
    if (k->found_count == MOMENT_FRAMES)
        return false;
    k->found[k->found_count++] = frame;
    return true;
}

static bool is_entry(const struct python_layout *l, const uint8_t *frame)
{
    return l->frame_owner != LAYOUT_NONE && frame[l->frame_owner] == l->owner_c_stack;
}

/* Whether this is the frame that its loop began with. 3.11 says so before `owner`. */
static bool is_first(const struct python_layout *l, const uint8_t *frame)
{
    return l->minor < 11 || (l->minor == 11 && frame[l->frame_owner - 1] != 0);
}

/* From the frame at `at`, all that one loop ran, the innermost first. *ret_entry: the
 * loop's own frame, where there is one; *ret_next: what the loop further out ran. */
static bool walk_loop(struct look *k, unsigned loop, uint64_t at, uint64_t *ret_entry,
                      uint64_t *ret_next)
{
    const struct python_layout *l = &k->python->layout;
    *ret_entry = *ret_next = 0;
    for (unsigned steps = 0; at && steps < 2 * MOMENT_FRAMES; steps++) {
        uint8_t buffer[FRAME_MAX];
        uint64_t address;
        const uint8_t *frame = frame_at(k, at, buffer);
        if (!frame)
            return false;
        const uint64_t previous = word_at(frame, l->frame_size, l->frame_previous);
        if (is_entry(l, frame)) {
            *ret_entry = at;
            *ret_next = previous;
            return true;
        }
        const bool first = is_first(l, frame);
        const int64_t offset = python_instruction_offset(
            l, frame, word_at(frame, l->frame_size, l->frame_code) & ~1ull);
        const long code = code_of(k, frame, &address);
        if (code < 0 && l->minor < 13)
            return false;
        if (code >= 0 && !push(k, (struct moment_frame){
                                      loop, (int32_t)code,
                                      codes_line(&k->python->codes, code, offset) }))
            return false;
        if (first) {
            *ret_next = previous;
            return true;
        }
        at = previous;
    }
    return at == 0;
}

/* ---- Which frame each loop was running --------------------------------------------------- */

static bool has_records(const struct look *k)
{
    return k->python->layout.cframe_frame != LAYOUT_NONE;
}

/* 3.11, 3.12: do the records of all loops, if they are there, lead from one to the next,
 * and the last to the one in the thread's state? */
static bool records_agree(const struct look *k)
{
    enum { STATE_MOST = 4096 };
    const struct moment_answer *a = k->answer;
    const unsigned previous = record_previous(&k->python->layout);
    for (unsigned i = 0; i < a->loop_count; i++) {
        const uint64_t next = peek_or_0(k->moment,
                                        record_at(k, loop_at(k, i)) + previous);
        if (i + 1 < a->loop_count
                ? next != record_at(k, loop_at(k, i + 1))
                : k->moment->whole && next - k->thread->address > STATE_MOST)
            return false;
    }
    return true;
}

/* 3.13: is what a loop has at the place of its own frame one? */
static bool is_entry_there(const struct look *k, unsigned loop)
{
    const struct python_layout *l = &k->python->layout;
    const uint64_t at = record_at(k, loop_at(k, loop)) + l->frame_owner;
    return (peek_or_0(k->moment, at & ~7ULL) >> at % 8 * 8 & 0xff) == l->owner_c_stack;
}

static bool entries_agree(const struct look *k)
{
    for (unsigned i = 0; i < k->answer->loop_count; i++)
        if (!is_entry_there(k, i))
            return false;
    return true;
}

static bool learn_record(struct look *k, uint64_t address)
{
    for (unsigned i = 0; i < k->answer->loop_count; i++) {
        const struct moment_native *n = loop_at(k, i);
        if (!n->high || address < n->low || address >= n->high)
            continue;
        k->python->loop.record = n->high - address;
        if (has_records(k) ? records_agree(k) : entries_agree(k))
            return true;
        k->python->loop.record = 0;
    }
    return false;
}

/* Where in the loop's piece of the stack its record is: the list that the thread has now
 * goes through those it had at the sample. */
static void learn_by_records(struct look *k)
{
    const struct python_layout *l = &k->python->layout;
    uint64_t at = word_at(k->thread->state, l->thread_size, l->thread_frame);
    for (unsigned i = 0; at && i < RECORDS; i++) {
        if (learn_record(k, at) ||
            remote_get(k->python->pid, at + record_previous(l), &at, sizeof at) < 0)
            return;
    }
}

/* 3.13: the same with the loops' own frames. */
static void learn_by_entries(struct look *k)
{
    uint64_t at = k->thread->frame, entry;
    for (unsigned i = 0; at && i < RECORDS; i++) {
        k->found_count = 0;
        if (!walk_loop(k, 0, at, &entry, &at) || (entry && learn_record(k, entry)))
            return;
    }
}

static void tops_by_records(struct look *k)
{
    const unsigned frame = k->python->layout.cframe_frame;
    for (unsigned i = 0; i < k->answer->loop_count; i++)
        k->tops[i] = peek_or_0(k->moment, record_at(k, loop_at(k, i)) + frame);
}

/* The innermost loop's frame is what the thread runs now, if it had that frame in hand; or
 * else one that it had in hand, from the memory that holds frames. */
static uint64_t top_in_hand(struct look *k)
{
    const struct thread *t = k->thread;
    struct words words;
    struct moment_frame frame;
    bool moved;
    unsigned tried = 0;
    take_words(k->moment, loop_at(k, 0), &words);
    if (has_word(&words, t->frame) && witness(k, 0, t->frame, &words, &frame, &moved))
        return t->frame;
    for (unsigned i = 0; i < words.count && tried < CANDIDATES; i++) {
        const uint64_t at = words.word[i];
        if (at % 8 != 0 ||
            !remote_within(at, k->python->layout.frame_size, t->chunk, t->chunk_len))
            continue;
        tried++;
        if (witness(k, 0, at, &words, &frame, &moved))
            return at;
    }
    return 0;
}

static void tops_by_entries(struct look *k)
{
    const unsigned previous = k->python->layout.frame_previous;
    k->tops[0] = top_in_hand(k);
    for (unsigned i = 1; i < k->answer->loop_count; i++)
        if (is_entry_there(k, i - 1))
            k->tops[i] = peek_or_0(k->moment,
                                   record_at(k, loop_at(k, i - 1)) + previous);
}

/* Before 3.11: a frame a loop, all in the list that the thread has now. Of a whole stack the
 * outermost are the same; of one that was cut the innermost must still be there. */
static void tops_by_list(struct look *k)
{
    const unsigned loops = k->answer->loop_count;
    uint64_t list[MOMENT_FRAMES], entry, at = k->thread->frame;
    struct words words;
    unsigned n = 0, first = 0;
    for (k->found_count = 0; at && n < MOMENT_FRAMES; n++) {
        list[n] = at;
        if (!walk_loop(k, 0, at, &entry, &at))
            return;
    }
    memcpy(k->thread->places, list, n * sizeof *list); /* for what follows */
    k->thread->place_count = n;
    python_fetch_places(k->python, k->thread);
    if (k->moment->whole && !at) {
        for (unsigned i = 1; i <= loops && i <= n; i++)
            k->tops[loops - i] = list[n - i];
        return;
    }
    take_words(k->moment, loop_at(k, 0), &words);
    while (first < n && !has_word(&words, list[first]))
        first++;
    for (unsigned i = 0; i < loops && first + i < n; i++)
        k->tops[i] = list[first + i];
}

static void find_tops(struct look *k)
{
    const struct python_layout *l = &k->python->layout;
    if (l->minor < 11) {
        tops_by_list(k);
        return;
    }
    if (!k->python->loop.record) {
        if (has_records(k))
            learn_by_records(k);
        else
            learn_by_entries(k);
    }
    if (!k->python->loop.record)
        return;
    if (has_records(k))
        tops_by_records(k);
    else
        tops_by_entries(k);
}

/* ---- All together --------------------------------------------------------------------------- */

/* Whether the thread was in the same call until now: the loop's piece of the stack is what
 * it was, and so are, of the functions it called, where they return to and the registers
 * they saved first. The loop's next instruction is in one of these. */
static bool is_same_call(const struct look *k, unsigned loop)
{
    enum { CALLEES = 3, SAVED = 7 * 8 };
    const struct moment_native *n = loop_at(k, loop);
    const unsigned at = k->answer->loops[loop],
                   inner = loop ? k->answer->loops[loop - 1] + 1 : 0;
    if (!is_unchanged(k, n->regs ? n->low : n->low - SAVED, n->high))
        return false;
    for (unsigned i = at; n->regs && i > inner && i + CALLEES > at; i--) {
        const struct moment_native *c = &k->moment->native[i - 1];
        const uint64_t low = c->high - c->low > SAVED ? c->high - SAVED : c->low;
        if (c->pc && !is_unchanged(k, low, c->high))
            return false;
    }
    return true;
}

/* Too late to believe what the sample does not witness. */
static bool is_late(const struct moment *m)
{
    enum { LATE_NS = 2000000 };
    return m->now_ns > m->sampled_ns && m->now_ns - m->sampled_ns > LATE_NS;
}

/* Whether the frame at `top` has had these callers in its loop whenever it was looked at
 * lately, a few times at least. */
static bool has_one_way(const struct look *k, uint64_t top,
                        const struct moment_frame *frames, unsigned count)
{
    enum { OFTEN = 12 }; /* two ways in turn look like one that often: once in 2048 */
    static const uint64_t LATELY_NS = 10000000000;
    uint64_t key = (top ^ (uint64_t)frames[0].code << 48) * HASH_PRIME, way = 1;
    struct python_way *w = &k->python->loop.ways[key >> 40 & (LOOP_WAYS - 1)];
    for (unsigned i = 1; i < count; i++)
        way = (way ^
               ((uint64_t)(uint32_t)frames[i].code << 32 | (uint32_t)frames[i].line)) *
              HASH_PRIME;
    if (w->key != key)
        *w = (struct python_way){ .key = key };
    if (w->seen && w->way != way)
        w->other_ns = k->moment->now_ns;
    w->seen = w->way == way ? w->seen + 1 : 1;
    w->way = way;
    return w->seen >= OFTEN &&
           (!w->other_ns || k->moment->now_ns - w->other_ns > LATELY_NS);
}

/* The callers of a loop's innermost frame are not known. */
static bool leave_gap(struct look *k, unsigned loop, unsigned from)
{
    k->found_count = from + 1;
    k->answer->gap = true;
    return push(k, (struct moment_frame){ loop, MOMENT_GAP, 0 });
}

/* What one loop ran, as far as the sample agrees. `expected` is what the loop further out
 * was running. *ret_rest: what comes further out than the native stack shows. */
static bool take_loop(struct look *k, unsigned loop, uint64_t expected,
                      uint64_t *ret_rest)
{
    const struct python_layout *l = &k->python->layout;
    const struct moment_native *n = loop_at(k, loop);
    const bool last = loop + 1 == k->answer->loop_count;
    struct words words;
    struct moment_frame top;
    uint64_t entry, next;
    bool moved;
    const unsigned from = k->found_count;
    *ret_rest = 0;
    take_words(k->moment, n, &words);
    if (!k->tops[loop] || (l->minor < 11 && !has_word(&words, k->tops[loop])) ||
        !witness(k, loop, k->tops[loop], &words, &top, &moved))
        return false;
    const bool walked = walk_loop(k, loop, k->tops[loop], &entry, &next) &&
                        k->found_count > from &&
                        (l->minor < 13 || entry == record_at(k, n)) &&
                        (last ? !k->moment->whole || next == 0 : next == expected);
    const bool exact = walked && !moved && is_same_call(k, loop);
    const unsigned count = k->found_count - from;
    const bool one_way = walked &&
                         has_one_way(k, k->tops[loop], &k->found[from], count);
    k->answer->exact &= exact;
    if (loop == 0)
        k->answer->moved = moved;
    if (!walked && l->minor < 11)
        return false;
    if (k->found_count == from && !push(k, top))
        return false;
    k->found[from] = top;
    const bool believed = exact || count == 1 ||
                          (one_way && !moved && !is_late(k->moment));
    if (!walked || !believed)
        return leave_gap(k, loop, from);
    *ret_rest = last ? next : 0;
    return true;
}

/* Frames further out than the native stack shows. */
static void take_rest(struct look *k, uint64_t at)
{
    uint64_t entry;
    while (at && walk_loop(k, k->answer->loop_count, at, &entry, &at)) {}
}

/* From the outermost loop inwards, as far as the sample agrees. Frames are collected loop
 * by loop and handed over the other way round. */
static void take_loops(struct look *k)
{
    struct moment_answer *a = k->answer;
    struct {
        unsigned from, count;
    } parts[MOMENT_LOOPS + 1] = { { 0, 0 } };
    uint64_t rest = 0;
    unsigned loop = a->loop_count;
    k->found_count = 0;
    a->exact = true;
    while (loop-- > 0) {
        const bool last = loop + 1 == a->loop_count;
        const unsigned from = k->found_count;
        if (!take_loop(k, loop, last ? 0 : k->tops[loop + 1], &rest))
            break;
        parts[loop].from = from;
        parts[loop].count = k->found_count - from;
        a->known_from = loop;
        if (last) {
            parts[loop + 1].from = k->found_count;
            take_rest(k, rest);
            parts[loop + 1].count = k->found_count - parts[loop + 1].from;
        }
    }
    for (unsigned i = a->known_from; i <= a->loop_count; i++)
        for (unsigned f = 0; f < parts[i].count; f++)
            a->frames[a->frame_count++] = k->found[parts[i].from + f];
}

/* What was learnt of the loop may have been wrong. */
static void check_record(struct look *k)
{
    enum { FAILURES = 20 };
    struct python_loop *loop = &k->python->loop;
    const bool failed = k->answer->known_from == k->answer->loop_count;
    loop->failures = failed ? loop->failures + 1 : 0;
    if (loop->failures >= FAILURES) {
        loop->record = 0;
        loop->failures = 0;
    }
}

/* ---- Stacks that were cut ----------------------------------------------------------------------- */

/* Whether the loop with this piece of the stack is the innermost that the thread has now. */
static bool is_innermost_now(struct look *k, uint64_t low, uint64_t high)
{
    const struct python_layout *l = &k->python->layout;
    const struct moment_native n = { .low = low, .high = high };
    struct words words;
    uint64_t entry, next;
    if (has_records(k))
        return word_at(k->thread->state, l->thread_size, l->thread_frame) ==
               record_at(k, &n);
    if (l->minor < 11) {
        take_words(k->moment, &n, &words);
        return has_word(&words, k->thread->frame);
    }
    k->found_count = 0;
    return walk_loop(k, 0, k->thread->frame, &entry, &next) &&
           entry == record_at(k, &n);
}

static void find_resume(struct look *k)
{
    const struct moment *m = k->moment;
    const struct python_loop *loop = &k->python->loop;
    const struct moment_native *last = m->count ? &m->native[m->count - 1] : NULL;
    const uint64_t end = m->stack_start + m->stack_len;
    uint64_t word;
    if (!loop->size || (k->python->layout.minor >= 11 && !loop->record))
        return;
    for (uint64_t at =
             (last && last->low > m->stack_start ? last->low : m->stack_start + 7) &
             ~7ULL;
         at < end && end - at > loop->size; at += 8)
        if (peek(m, at, &word) && is_loop_code(loop, word - 1) &&
            is_innermost_now(k, at + 8, at + 8 + loop->size) &&
            is_unchanged(k, at + 8, at + 8 + loop->size)) {
            k->answer->resume_pc = word;
            k->answer->resume_sp = at + 8;
            return;
        }
}

int python_moment(struct python *p, const struct moment *m, struct moment_answer *ret)
{
    struct look k = { .python = p, .moment = m, .answer = ret };
    *ret = (struct moment_answer){ 0 };
    if (!p->loop.looked_for) {
        p->loop.ways = calloc(LOOP_WAYS, sizeof *p->loop.ways);
        if (!p->loop.ways)
            return -ENOMEM;
        p->loop.range_count = python_locate_loop(p->pid, &p->place, p->loop.ranges,
                                                 LOOP_RANGES);
        p->loop.looked_for = true;
    }
    find_loops(&k);
    if (ret->loop_count == 0) {
        ret->has_python = !m->whole && known_thread(p, m->tid);
        if (!ret->has_python)
            return 0;
    }
    int rc = find_thread(&k);
    if (rc < 0)
        return rc;
    struct thread *t = k.thread;
    if (!python_fetch_frames(p, &t, 1))
        return -EAGAIN;
    if (ret->loop_count == 0) {
        find_resume(&k);
        return 0;
    }
    if (p->layout.thread_chunk == LAYOUT_NONE && t->place_count)
        python_fetch_places(p, t);
    find_tops(&k);
    take_loops(&k);
    check_record(&k);
    return 0;
}
