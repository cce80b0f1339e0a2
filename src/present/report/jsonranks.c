/* jsonranks.c: the ranks of a job that ran as one, side by side.
 *
 * A rank is a process that said so (RANK, WORLD_SIZE, as torchrun and its like set them);
 * launchers and loader workers are not among them.
 */
#include "present/report/jsonparts.h"

static void put_rank(struct json_writer *w, const struct report_process *p)
{
    const struct phase_split *s = &p->phases;
    json_object_begin(w);
    field_int(w, "rank", p->rank);
    field_uint(w, "pid", p->pid);
    field_uint(w, "steps", p->steps);
    field_seconds(w, "main_s", s->wall_ns);
    json_key(w, "phases");
    json_array_begin(w);
    for (int phase = 1; phase < SONDE_PHASE_COUNT; phase++) {
        if (s->count[phase] == 0 && s->total_ns[phase] <= 0)
            continue;
        json_object_begin(w);
        field_text(w, "phase", sonde_phase_name(phase));
        field_seconds(w, "total_s", s->total_ns[phase]);
        json_object_end(w);
    }
    json_array_end(w);
    json_object_end(w);
}

/* Rows come by rank; there are few. */
static const struct report_process *next_rank(const struct report *r, int after)
{
    const struct report_process *best = NULL;
    for (size_t i = 0; i < r->process_count; i++) {
        const struct report_process *p = &r->processes[i];
        if (p->rank > after && (!best || p->rank < best->rank))
            best = p;
    }
    return best;
}

/* A process that nobody gave a rank counts as rank 0 of itself elsewhere. */
static bool is_told(const struct report *r)
{
    for (size_t i = 0; i < r->layer.interpreter_count; i++)
        if (r->layer.interpreters[i].rank >= 0)
            return true;
    return false;
}

void fields_of_ranks(struct json_writer *w, const struct report *r)
{
    const struct report_process *p = is_told(r) ? next_rank(r, -1) : NULL;
    json_key(w, "ranks");
    json_array_begin(w);
    for (; p; p = next_rank(r, p->rank))
        put_rank(w, p);
    json_array_end(w);
}

int world_size_of(const struct report *r)
{
    int size = r->run->meta.world_size;
    for (size_t i = 0; i < r->layer.interpreter_count; i++)
        if (r->layer.interpreters[i].world_size > size)
            size = r->layer.interpreters[i].world_size;
    return size;
}
