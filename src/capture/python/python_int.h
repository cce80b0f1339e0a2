/* python_int.h: the insides of struct python. Private to python.c and moment.c. */
#ifndef SONDE_CAPTURE_PYTHON_PYTHON_INT_H
#define SONDE_CAPTURE_PYTHON_PYTHON_INT_H

#include "capture/python/codes.h"
#include "capture/python/layout.h"
#include "capture/python/locate.h"
#include "capture/python/python.h"

enum {
    STATE_MAX = 1024,
    FRAME_MAX = 256,
    LOOP_RANGES = 4,
    LOOP_WAYS = 4096, /* a power of two */
    CHUNK_MAX = 32768,
    FAR_FRAMES = 48, /* frames fetched one by one in a sample of a thread */
};

/* By which callers in its loop a frame was reached, whenever it was looked at. */
struct python_way {
    uint64_t key;      /* of the frame: where it is and its code */
    uint64_t way;      /* of the callers, the last time */
    uint64_t other_ns; /* when they were others than before; 0: never */
    unsigned seen;     /* times in a row */
};

/* The interpreter's loop, _PyEval_EvalFrameDefault: where its code is and what was learnt
 * of its piece of the C stack. */
struct python_loop {
    bool looked_for;
    unsigned range_count;
    struct python_range ranges[LOOP_RANGES];
    uint32_t module;   /* as struct moment_native has it */
    uint64_t size;     /* of its piece; 0: not known yet */
    uint64_t record;   /* its record of the frame it runs: so far below the upper end */
    unsigned failures; /* of samples in a row of which nothing is known */
    struct python_way *ways; /* LOOP_WAYS */
};

struct thread {
    uint64_t address, interp;
    uint64_t descriptor; /* of libc, before 3.11: what tid was found by */
    uint32_t tid;
    bool has_gil;
    uint8_t state[STATE_MAX];
    /* One sample: */
    uint64_t frame, frame_after; /* current, before and after the chunk was copied */
    uint64_t record_after; /* what the state says of where `frame` is, afterwards */
    uint64_t chunk, chunk_len;
    uint8_t *bytes; /* of the chunk */
    /* Before 3.11: where the frames were the last time. */
    uint64_t places[PYTHON_FRAMES];
    unsigned place_count;
};

struct python {
    pid_t pid;
    struct python_place place;
    struct python_layout layout;
    struct codes codes;
    uint64_t interpreters[PYTHON_INTERPRETERS];
    size_t interpreter_count;
    uint64_t interpreters_ns; /* when they were listed */
    struct thread *threads;   /* PYTHON_THREADS */
    size_t thread_count;
    uint8_t *chunks; /* PER_CALL × CHUNK_MAX */
    uint8_t *places; /* PYTHON_FRAMES × FRAME_MAX */
    uint64_t gil;    /* address; 0: not known */
    struct globals {
        uint64_t gil, holder;
        uint32_t locked;
        int32_t collecting;
    } globals;               /* of the main interpreter, at this sample */
    struct python_loop loop; /* of moment.c */
};

/* Reads the list of threads, and their states. */
int python_list_threads(struct python *python);
/* Which thread of the kernel the state is of, after it was read anew. */
void python_name_thread(const struct python *python, struct thread *thread);
/* Pointers to the frames of some threads, and the memory that holds them. */
bool python_fetch_frames(struct python *python, struct thread **threads, size_t count);
/* Before 3.11: the frames of the last time, in one call. */
void python_fetch_places(struct python *python, struct thread *thread);
/* The bytes of a frame; NULL when it cannot be read. `far` counts those that cost a call,
 * `buffer` has room for FRAME_MAX. */
const uint8_t *python_frame_bytes(struct python *python, struct thread *thread,
                                  uint64_t address, unsigned *far, uint8_t *buffer);
int64_t python_instruction_offset(const struct python_layout *layout,
                                  const uint8_t *frame, uint64_t code);

#endif
