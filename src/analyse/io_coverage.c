/* io_coverage.c: how much of what the kernel counted was seen.
 *
 * Each process keeps the kernel's count beside ours, once a second and at its end. The
 * kernel adds what a child did to the process that waits for it, so of a family only
 * the difference may be added up:
 *
 *   ended by itself      its count is added, and taken off again from its parent, when
 *                        that one was there to wait for it
 *   killed, with parent  its parent's count has all of it: only what we saw is added
 *   killed, alone        the last reading, up to a second before the end
 *   replaced by exec     the last reading; the next program begins where it stood
 */
#include "analyse/io_parts.h"

#include <math.h>

struct sums {
    double seen[2], kernel[2];
    size_t known;
};

static bool is_last_of_pid(const struct io_image *images, size_t count,
                           const struct io_image *image)
{
    for (size_t i = 0; i < count; i++)
        if (images[i].pid == image->pid && images[i].start > image->start)
            return false;
    return true;
}

static bool was_waited_for(const struct io_image *images, size_t count,
                           const struct io_image *image)
{
    for (size_t i = 0; i < count; i++)
        if (images[i].pid == image->ppid && images[i].read &&
            images[i].start <= image->last.ticks &&
            image->last.ticks <= images[i].last.ticks)
            return true;
    return false;
}

static void add(struct sums *sums, const struct io_image *image, bool waited_for)
{
    const bool inherited = waited_for && !image->finished;
    if (!image->read && !inherited)
        return;
    for (int d = 0; d < 2; d++) {
        sums->seen[d] += (double)(inherited ? image->rows[d] : image->last.seen[d]);
        sums->kernel[d] += inherited ? 0 : (double)image->last.kernel[d];
        if (waited_for && image->finished)
            sums->kernel[d] -= (double)image->last.all[d];
    }
    sums->known++;
}

static void judge(struct io_report *io, const struct sums *sums)
{
    const double kernel = (double)(io->kernel[0] + io->kernel[1]);
    const double seen = (double)(io->seen[0] + io->seen[1]);
    io->coverage = NAN;
    io->coverage_why = "";
    if (sums->known == 0)
        io->coverage_why = "no process lived to compare its count with the kernel's";
    else if (!(kernel > 0))
        io->coverage_why = "the kernel counted nothing";
    else
        io->coverage = seen < kernel ? seen / kernel : 1;
    if (io->coverage < 0.95)
        io->coverage_why = "the rest went past libc's calls: reads of libc itself "
                           "(loading libraries, locales, names), raw system calls, "
                           "wide-character streams, programs that cannot be preloaded";
}

/* Quadratic, but a run of so many processes that it matters is rare: then the families
 * are not told apart. */
void io_coverage(const struct io_image *images, size_t count, struct io_report *io)
{
    enum { MANY = 8192 };
    struct sums sums = { .known = 0 };
    for (size_t i = 0; i < count; i++) {
        const bool last = count <= MANY && is_last_of_pid(images, count, &images[i]);
        add(&sums, &images[i], last && was_waited_for(images, count, &images[i]));
    }
    for (int d = 0; d < 2; d++) {
        io->seen[d] = (uint64_t)fmin(sums.seen[d], 9e18);
        io->kernel[d] = sums.kernel[d] > 0 ? (uint64_t)fmin(sums.kernel[d], 9e18) : 0;
    }
    judge(io, &sums);
}
