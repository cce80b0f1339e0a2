/* unwind.c: the stack of the calling thread.
 *
 * Only the mapping that holds the stack pointer is ever read: it is looked up once per
 * thread (and again when the thread changes stacks: coroutines, signal stacks).
 */
#include "capture/interpose/inside.h"

static THREAD_LOCAL struct {
    uint64_t start, end;
} stack;

static bool on_stack(uint64_t sp)
{
    if (sp >= stack.start && sp < stack.end)
        return true;
    return inside_mapping(sp, &stack.start, &stack.end) && sp < stack.end;
}

__attribute__((noinline)) unsigned inside_stack(uint64_t *ret_frames, unsigned max)
{
    uint64_t fp = (uint64_t)(uintptr_t)__builtin_frame_address(0);
    unsigned count = 0;
    if (!on_stack(fp))
        return 0;
    while (count < max && fp % 8 == 0 && fp + 16 <= stack.end) {
        const uint64_t *frame = (const uint64_t *)(uintptr_t)fp;
        const uint64_t up = frame[0], pc = frame[1];
        if (pc < 4096)
            break;
        ret_frames[count++] = pc;
        if (up <= fp)
            break;
        fp = up;
    }
    return count;
}
