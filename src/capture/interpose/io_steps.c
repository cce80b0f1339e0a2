/* io_steps.c: for whom files are opened and looked at: a zone, or the program's own hands.
 *
 * Loaders and zones tell by themselves what they are for. A loop that opens and reads its
 * files with its own hands does so between zones: that is counted here, for the report to
 * call it loading; and what it writes there, for the report to know that it logs. What a step did is kept apart until the next one begins: behind the
 * last step a program may read whatever it likes.
 *
 * Only the main thread writes here, so that nothing is locked. A handler on it that reads
 * in between may lose its own count, nothing else.
 */
#include "capture/interpose/io.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { SMALL = 4096 };

static bool is_main_in_step(const struct io_state *s)
{
    return !inside_zone() && inside_step() && inside_thread() < INSIDE_THREADS &&
           inside_tid() == (uint32_t)s->pid;
}

bool io_looks_count(void)
{
    const struct io_state *s = io;
    return !inside_busy && s && s->on && (inside_zone() || is_main_in_step(s));
}

static void add(uint64_t *sum, uint64_t more)
{
    __atomic_store_n(sum, *sum + more, __ATOMIC_RELAXED);
}

static void keep_step(struct io_by_hand *sum, const struct io_by_hand *step)
{
    add(&sum->steps, step->opens || step->looks || step->reads);
    add(&sum->opens, step->opens);
    add(&sum->open_ticks, step->open_ticks);
    add(&sum->looks, step->looks);
    add(&sum->look_ticks, step->look_ticks);
    add(&sum->reads, step->reads);
    add(&sum->read_bytes, step->read_bytes);
    add(&sum->read_ticks, step->read_ticks);
    add(&sum->small_reads, step->small_reads);
    add(&sum->write_steps, step->writes > 0);
    add(&sum->writes, step->writes);
    add(&sum->write_bytes, step->write_bytes);
    add(&sum->write_ticks, step->write_ticks);
}

/* The counts of the step that is going on. */
static struct io_by_hand *this_step(struct io_state *s)
{
    const uint64_t number = inside_step();
    if (number != s->step_number) {
        if (s->step_number)
            keep_step(&s->process->by_hand, &s->step);
        s->step = (struct io_by_hand){ 0 };
        s->step_number = number;
    }
    return &s->step;
}

/* Paths beyond the table have no class: they are many, as data are. */
static bool is_file(const struct io_fd *f)
{
    return f->io_class == IO_CLASS_FILE || f->row == io->other;
}

static bool is_to_read(int fd)
{
    return (syscall(SYS_fcntl, fd, F_GETFL) & O_ACCMODE) != O_WRONLY;
}

void io_file_opened(int fd, const struct io_fd *f, uint64_t ticks)
{
    struct io_state *s = io;
    const uint32_t zone = inside_zone();
    if (!is_file(f) || (!zone && !is_main_in_step(s)) || !is_to_read(fd))
        return;
    if (zone) {
        io_count_zone_open(zone, ticks);
        return;
    }
    struct io_by_hand *step = this_step(s);
    step->opens++;
    step->open_ticks += ticks;
}

void io_step_read(const struct io_fd *f, uint64_t bytes, uint64_t ticks)
{
    struct io_state *s = io;
    if (!is_file(f) || !is_main_in_step(s))
        return;
    struct io_by_hand *step = this_step(s);
    step->reads++;
    step->small_reads += bytes < SMALL;
    step->read_bytes += bytes;
    step->read_ticks += ticks;
}

/* Where records go: whatever can be looked at later, and no other process's socket. */
static bool takes_records(const struct io_fd *f)
{
    return is_file(f) || f->io_class == IO_CLASS_TTY ||
           f->io_class == IO_CLASS_DEVICE || f->io_class == IO_CLASS_PIPE;
}

void io_step_written(const struct io_fd *f, uint64_t bytes, uint64_t ticks)
{
    struct io_state *s = io;
    if (!takes_records(f) || !is_main_in_step(s))
        return;
    struct io_by_hand *step = this_step(s);
    step->writes++;
    step->write_bytes += bytes;
    step->write_ticks += ticks;
}

void io_looked(uint64_t looks, uint64_t ticks)
{
    const uint32_t zone = inside_zone();
    if (zone) {
        io_count_zone_looks(zone, looks, ticks);
        return;
    }
    struct io_by_hand *step = this_step(io);
    step->looks += looks;
    step->look_ticks += ticks;
}
