/* merge.c: see merge.h. */
#include "capture/sample/merge.h"

enum merge_kind merge_kind(const struct merge_answer *a)
{
    if (a->loop_count == 0)
        return a->has_python ? MERGE_UNMERGED : MERGE_NATIVE;
    return a->known_from == 0 && !a->gap   ? MERGE_WHOLE
           : a->known_from < a->loop_count ? MERGE_PARTLY
                                           : MERGE_UNMERGED;
}

struct merging {
    const struct merge_answer *answer;
    unsigned loop, frame; /* the next of each */
    struct merge_place *places;
    unsigned count, max;
};

static void put(struct merging *m, enum merge_from from, unsigned at)
{
    if (m->count < m->max)
        m->places[m->count++] = (struct merge_place){ from, at };
}

/* The frames of one loop. Those of loops that are not known are none of ours. */
static void put_frames(struct merging *m, unsigned loop)
{
    const struct merge_answer *a = m->answer;
    while (m->frame < a->frame_count && a->frames[m->frame].loop < loop)
        m->frame++;
    for (; m->frame < a->frame_count && a->frames[m->frame].loop == loop; m->frame++)
        put(m, MERGE_FROM_PYTHON, m->frame);
}

static bool is_loop(const struct merging *m, unsigned native)
{
    const struct merge_answer *a = m->answer;
    return m->loop < a->loop_count && a->loops[m->loop] == native;
}

unsigned merge_stacks(unsigned native_depth, const struct merge_answer *answer,
                      struct merge_place *ret_places, unsigned max)
{
    struct merging m = { .answer = answer, .places = ret_places, .max = max };
    for (unsigned i = 0; i < native_depth; i++) {
        if (!is_loop(&m, i))
            put(&m, MERGE_FROM_NATIVE, i);
        else if (m.loop < answer->known_from)
            put(&m, MERGE_FROM_UNKNOWN, i);
        else
            put_frames(&m, m.loop);
        m.loop += is_loop(&m, i);
    }
    if (answer->known_from < answer->loop_count)
        put_frames(&m, answer->loop_count);
    return m.count;
}
