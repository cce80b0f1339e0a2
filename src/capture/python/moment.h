/* moment.h: which Python functions ran in a native stack, at the moment it was sampled.
 *
 * A sample of the kernel has the registers and the stack of one instant; the frames of
 * Python are elsewhere in memory and are read a little later. What is read counts only as
 * far as the sample itself bears witness to it:
 *
 *  (1) Where the interpreter's loop (_PyEval_EvalFrameDefault) stands in the native stack is
 *      known by the places of its code.
 *  (2) Which frame each loop was running is in the sampled stack. 3.11 and 3.12 keep a record
 *      there (_PyCFrame), linked to that of the loop further out; 3.13 keeps a frame of its
 *      own there (entry_frame), whose caller is the frame that the loop further out was
 *      running; before 3.11 each loop runs one frame, whose address it has in a register or
 *      in its piece of the stack.
 *  (3) The frames from there to the loop's first one must end where the loop further out
 *      goes on.
 *  (4) The address of the next instruction, which every loop has in a register or in its
 *      piece of the stack, must lie in the code of the frame it runs. It also tells the line
 *      at the instant of the sample, should the function have gone on.
 *
 * Where the native stack was cut (generated code, assembler that describes its frames wrongly)
 * a return address into the loop is looked for further out. Stacks are full of old ones: it
 * counts when that loop is the innermost that the thread has afterwards, too, and not one
 * byte of its piece of the stack has changed. The same takes the place of (4) for it, as its
 * registers are not known.
 *
 * Where (1), (2) or (4) fails, that loop and those that were called from it are not known.
 * What the sample does not witness: from 3.11 on a loop runs Python functions that call one
 * another, and has in hand the innermost alone. Its callers in the loop are as they were
 * read. They are the sample's, too, when the loop's piece of the stack has not changed until
 * then: the thread was still in the same call (`exact`). When it has changed, they count if
 * it is less than 2 ms ago, the innermost is still at the same line, and that frame has had
 * the same callers whenever it was looked at in the last ten seconds, a dozen times at least;
 * otherwise there is a gap in their place.
 */
#ifndef SONDE_CAPTURE_PYTHON_MOMENT_H
#define SONDE_CAPTURE_PYTHON_MOMENT_H

#include "capture/python/python.h"

enum { MOMENT_LOOPS = 64, MOMENT_FRAMES = PYTHON_FRAMES, MOMENT_REGS = 16 };
enum { MOMENT_GAP = -1 };

/* A native frame. */
struct moment_native {
    uint64_t pc;          /* of a caller, in its call instruction; 0: the kernel */
    uint64_t low, high;   /* its piece of the stack; high 0: not known */
    const uint64_t *regs; /* MOMENT_REGS, numbered as DWARF does; NULL: not known */
    uint32_t module;      /* any number that tells files apart */
    bool caller;          /* of the registers only those that calls keep are its */
};

struct moment {
    uint32_t tid;
    uint64_t now_ns, sampled_ns; /* monotonic: now, and when the sample was taken */
    const struct moment_native *native; /* innermost first */
    unsigned count;
    bool whole; /* the outermost native frame is there */
    const uint8_t *stack;
    uint64_t stack_start, stack_len;
};

/* All lists have the innermost first. */
struct moment_answer {
    unsigned loop_count;
    unsigned loops[MOMENT_LOOPS]; /* which of the native frames */
    unsigned known_from;          /* loops before this: not known what they ran */
    unsigned frame_count;
    struct moment_frame {
        uint32_t loop; /* that ran it; loop_count: further out than the native stack */
        int32_t code;  /* for python_code(); MOMENT_GAP: callers that are not known */
        int32_t line;  /* 0 unknown */
    } frames[MOMENT_FRAMES];
    bool moved;      /* the innermost had gone on to another line when it was read */
    bool gap;        /* there is a MOMENT_GAP */
    bool exact;      /* all loops that are known were still in the same call then */
    bool has_python; /* without loops: a thread of Python, its native stack was cut */
    /* Then: where a loop is further out, for another try with the stack from there on. */
    uint64_t resume_pc, resume_sp;
};

/* −ESRCH: the process is gone; −EAGAIN: it could not be read this time. The answer says
 * where the loops are then, too. */
int python_moment(struct python *python, const struct moment *moment,
                  struct moment_answer *ret_answer);

#endif
