/* timer_ring.h: stacks on their way from a process that samples itself to the supervisor.
 *
 * Where perf_event is forbidden, libsonde-preload.so samples from inside with timers
 * (capture/interpose/timer_sample.c). The signal handler does the least it can: it puts
 * addresses into a slot of this file, timer-<start>-<pid>-<rand>.ring, mapped by the
 * process; the supervisor (capture/sample/timers.c) reads the slots, counts the stacks in
 * its file of tables and removes the file when the process is gone.
 *
 * A slot goes FREE, TAKEN (by a handler, with compare and swap), FULL, and, by the
 * supervisor's writing one byte, FREE. A slot whose writer was killed stays TAKEN and is
 * no sample. A handler that finds its slot not FREE counts a loss.
 */
#ifndef SONDE_TRACE_TIMER_RING_H
#define SONDE_TRACE_TIMER_RING_H

#include <stdint.h>

#define TIMER_RING_PREFIX "timer-"
#define TIMER_RING_SUFFIX ".ring"
#define TIMER_RING_MAGIC  0x31676e6972646e73ULL /* "sndring1" */

enum {
    TIMER_HEAD = 65536,
    TIMER_MAPS = 30720,
    TIMER_SLOTS = 448,
    TIMER_FRAMES = 124,
    TIMER_BLOCKS = 8, /* of the run's budget */
};

enum timer_slot_state { TIMER_FREE, TIMER_TAKEN, TIMER_FULL };
enum timer_slot_flag { TIMER_CUT = 1 }; /* the outermost frames are not known */

struct timer_slot {
    uint8_t state; /* enum timer_slot_state, atomic */
    uint8_t flags;
    uint16_t count; /* of frames */
    uint32_t tid;
    uint32_t
        weight; /* periods: 1, and those that passed before the handler could run */
    uint32_t pad;
    char name[16];                /* of the thread; "" unknown */
    uint64_t frame[TIMER_FRAMES]; /* the instruction, then return addresses */
};
_Static_assert(sizeof(struct timer_slot) == 1024, "on-disk layout");

enum timer_end {
    TIMER_RUNS,
    TIMER_SIGNAL_TAKEN, /* the program wanted the signal for itself */
    TIMER_SEALED,       /* it gave up system calls */
};

struct timer_ring {
    uint64_t magic; /* last */
    uint32_t pid;
    uint32_t ended;     /* enum timer_end */
    uint64_t pid_space; /* inode of its namespace of process numbers */
    uint64_t head;      /* slots ever taken */
    uint64_t lost;      /* periods without a slot */
    char process[16];
    /* Lines of /proc/self/maps with code: at the start; at the end. Length last. */
    uint32_t maps_len[2];
    uint8_t pad[TIMER_HEAD - 64 - 2 * TIMER_MAPS];
    char maps[2][TIMER_MAPS];
    struct timer_slot slot[TIMER_SLOTS];
};
_Static_assert(sizeof(struct timer_ring) == TIMER_BLOCKS * 65536, "on-disk layout");

#endif
