/* dataset.c: see dataset.h. Drawing, writing and reading the pictures. */
#include "demo/dataset.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "demo/random.h"

#define DATASET_MAGIC 0x31736e6163736473ULL

struct dataset_head {
    uint64_t magic;
    uint32_t count, record_bytes;
};

/* Seven rows of five dots, the leftmost in bit 4. */
static const uint8_t font[CLASSES][7] = {
    { 0x0e, 0x11, 0x13, 0x15, 0x19, 0x11, 0x0e }, /* 0 */
    { 0x04, 0x0c, 0x04, 0x04, 0x04, 0x04, 0x0e }, /* 1 */
    { 0x0e, 0x11, 0x01, 0x02, 0x04, 0x08, 0x1f }, /* 2 */
    { 0x1f, 0x02, 0x04, 0x02, 0x01, 0x11, 0x0e }, /* 3 */
    { 0x02, 0x06, 0x0a, 0x12, 0x1f, 0x02, 0x02 }, /* 4 */
    { 0x1f, 0x10, 0x1e, 0x01, 0x01, 0x11, 0x0e }, /* 5 */
    { 0x06, 0x08, 0x10, 0x1e, 0x11, 0x11, 0x0e }, /* 6 */
    { 0x1f, 0x01, 0x02, 0x04, 0x08, 0x08, 0x08 }, /* 7 */
    { 0x0e, 0x11, 0x11, 0x0e, 0x11, 0x11, 0x0e }, /* 8 */
    { 0x0e, 0x11, 0x11, 0x0f, 0x01, 0x02, 0x0c }, /* 9 */
};

static float font_dot(unsigned label, int row, int column)
{
    if (row < 0 || row >= 7 || column < 0 || column >= 5)
        return 0.0F;
    return (float)(font[label][row] >> (4 - column) & 1);
}

/* Ink at a point of the font's grid, smooth between the dots. */
static float font_ink(unsigned label, float row, float column)
{
    const float row0 = floorf(row), column0 = floorf(column);
    const float fr = row - row0, fc = column - column0;
    const int r = (int)row0, c = (int)column0;
    const float top = font_dot(label, r, c) * (1 - fc) + font_dot(label, r, c + 1) * fc;
    const float bottom = font_dot(label, r + 1, c) * (1 - fc) +
                         font_dot(label, r + 1, c + 1) * fc;
    return top * (1 - fr) + bottom * fr;
}

static void scan_draw(struct rng *rng, struct scan *scan)
{
    scan->label = rng_below(rng, CLASSES);
    const float angle = rng_uniform(rng, -0.45F, 0.45F);
    const float dots_per_pixel = rng_uniform(rng, 0.13F, 0.22F);
    const float centre_row = rng_uniform(rng, 22, 42);
    const float centre_column = rng_uniform(rng, 22, 42);
    const float contrast = rng_uniform(rng, 40, 110);
    const float paper = rng_uniform(rng, 60, 110);
    const float slope = rng_uniform(rng, -0.5F, 0.5F);
    const float noise = rng_uniform(rng, 40, 120);
    const float cosine = cosf(angle) * dots_per_pixel;
    const float sine = sinf(angle) * dots_per_pixel;

    for (int r = 0; r < SCAN_SIDE; r++) {
        for (int c = 0; c < SCAN_SIDE; c++) {
            const float dr = (float)r - centre_row, dc = (float)c - centre_column;
            const float ink = font_ink(scan->label, 3 + cosine * dr - sine * dc,
                                       2 + sine * dr + cosine * dc);
            const float light = paper + slope * (float)c + contrast * ink +
                                rng_uniform(rng, -noise, noise);
            scan->pixels[r * SCAN_SIDE + c] = (uint8_t)fminf(255, fmaxf(0, light));
        }
    }
}

static int write_all(int fd, const void *bytes, size_t len)
{
    const char *at = bytes;
    while (len > 0) {
        const ssize_t n = write(fd, at, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        at += n;
        len -= (size_t)n;
    }
    return 0;
}

int dataset_generate(const char *path, uint64_t seed, unsigned count)
{
    int rc = 0;
    const size_t len = count * sizeof(struct scan);
    struct scan *scans = malloc(len);
    if (!scans)
        return -ENOMEM;
    for (unsigned i = 0; i < count; i++) {
        struct rng rng = rng_for(seed, 1, i);
        scan_draw(&rng, &scans[i]);
    }

    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0) {
        rc = -errno;
        goto done;
    }
    const struct dataset_head head = { DATASET_MAGIC, count, sizeof(struct scan) };
    rc = write_all(fd, &head, sizeof head);
    if (rc == 0)
        rc = write_all(fd, scans, len);
    if (close(fd) < 0 && rc == 0)
        rc = -errno;
done:
    free(scans);
    return rc;
}

int dataset_open(const char *path, struct dataset *ret_dataset)
{
    int rc = -EINVAL;
    struct dataset_head head;
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    if (fstat(fd, &st) < 0 || pread(fd, &head, sizeof head, 0) != sizeof head)
        goto done;
    if (head.magic != DATASET_MAGIC || head.record_bytes != sizeof(struct scan) ||
        (uint64_t)st.st_size != sizeof head + (uint64_t)head.count * head.record_bytes)
        goto done;
    *ret_dataset = (struct dataset){ .fd = fd, .count = head.count };
    return 0;
done:
    (void)close(fd);
    return rc;
}

void dataset_close(struct dataset *dataset)
{
    if (dataset->fd >= 0)
        (void)close(dataset->fd);
    *dataset = (struct dataset){ .fd = -1 };
}

int dataset_read(const struct dataset *dataset, unsigned index, struct scan *ret_scan)
{
    if (index >= dataset->count)
        return -EINVAL;
    const off_t at = (off_t)(sizeof(struct dataset_head) + index * sizeof(struct scan));
    struct scan scan;
    ssize_t n = 0;
    do {
        n = pread(dataset->fd, &scan, sizeof scan, at);
    } while (n < 0 && errno == EINTR);
    if (n < 0)
        return -errno;
    if (n != sizeof scan || scan.label >= CLASSES)
        return -EIO;
    *ret_scan = scan;
    return 0;
}
