/* compact.c: rewrite a dead process's file in compact form (pack.h). */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/files.h"
#include "trace/crc32c.h"
#include "trace/image.h"
#include "trace/pack.h"
#include "trace/recover.h"
#include "trace/space.h"
#include "trace/wordpack.h"

struct packer {
    int fd;
    struct buf buf;
    uint32_t sections;
    uint64_t written;
};

static int flush(struct packer *p)
{
    if (p->buf.error)
        return p->buf.error;
    int rc = space_reserve(p->fd, p->written, p->buf.len);
    if (rc == 0)
        rc = fd_pwrite_full(p->fd, p->buf.data, p->buf.len, (off_t)p->written);
    p->written += p->buf.len;
    buf_clear(&p->buf);
    return rc;
}

static void put(struct packer *p, enum pack_kind kind, const void *data, size_t len)
{
    pack_section_put(&p->buf, kind, data, len);
    p->sections++;
}

static void put_lanes(struct packer *p, const struct image *im)
{
    struct buf lanes = BUF_INIT;
    for (unsigned i = 0; i < im->fold->lane_count; i++) {
        const struct fold_lane *l = &im->fold->lanes[i];
        if (!l->used)
            continue;
        struct pack_lane item = { .number = i,
                                  .tid = im->lane_tid[i],
                                  .carry = l->carry };
        memcpy(item.name, im->lane_name[i], sizeof item.name);
        buf_append(&lanes, &item, sizeof item);
        buf_append(&lanes, l->frames, lane_frames(&l->carry) * sizeof l->frames[0]);
    }
    put(p, PACK_LANES, lanes.data, lanes.len);
    if (lanes.error)
        p->buf.error = lanes.error;
    buf_release(&lanes);
}

static void put_statistics(struct packer *p, const struct image *im)
{
    struct trace_live live = im->live;
    live.flags |= LIVE_COMPACTED;
    put(p, PACK_HEAD, &im->head, sizeof im->head);
    put(p, PACK_LIVE, &live, sizeof live);
    put(p, PACK_STRINGS, im->strings, (size_t)im->string_bytes);
    put(p, PACK_SITES, im->sites, (size_t)im->site_count * sizeof *im->sites);
    struct buf b = BUF_INIT;
    pack_nodes(im->fold, &b);
    put(p, PACK_NODES, b.data, b.len);
    put_lanes(p, im);
    buf_clear(&b);
    pack_values(im->fold, &b);
    put(p, PACK_VALUES, b.data, b.len);
    if (b.error)
        p->buf.error = b.error;
    buf_release(&b);
}

static int put_events(struct packer *p, const struct image *im)
{
    const size_t room = sizeof(struct pack_events) + EVENTS_WORDS * WORDPACK_FACTOR + 8;
    uint64_t *words = malloc(EVENTS_WORDS * sizeof *words);
    uint8_t *out = malloc(room);
    int rc = words && out ? 0 : -ENOMEM;
    for (size_t i = 0; rc == 0 && i < im->event_count; i++) {
        struct pack_events head = { .lane = im->events[i].lane,
                                    .seq = im->events[i].seq };
        int n = image_words(im, &im->events[i], words, &head.base_ticks);
        if (n <= 0)
            continue;
        size_t kept;
        size_t len = wordpack_encode(words, (size_t)n, head.base_ticks,
                                     out + sizeof head, &kept);
        head.kept = (uint32_t)kept;
        memcpy(out, &head, sizeof head);
        put(p, PACK_EVENTS, out, sizeof head + len);
        if (p->buf.len > 1 << 20)
            rc = flush(p);
    }
    free(words);
    free(out);
    return rc;
}

static int write_pack(struct packer *p, const struct image *im)
{
    struct pack_head head = { PACK_MAGIC, TRACE_MAJOR, TRACE_MINOR, 0 };
    buf_append(&p->buf, &head, sizeof head);
    put_statistics(p, im);
    int rc = flush(p);
    if (rc == 0)
        rc = put_events(p, im);
    if (rc == 0)
        rc = flush(p);
    head.sections = p->sections;
    if (rc == 0)
        rc = fd_pwrite_full(p->fd, &head, sizeof head, 0);
    return rc;
}

static int pack_to(const struct image *im, const char *path, mode_t mode,
                   uint64_t *ret_bytes)
{
    char temporary[1100];
    if (snprintf(temporary, sizeof temporary, "%s.tmp-%d", path, (int)getpid()) >=
        (int)sizeof temporary)
        return -ENAMETOOLONG;
    struct packer p = { .buf = BUF_INIT };
    p.fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, mode);
    if (p.fd < 0)
        return -errno;
    int rc = write_pack(&p, im);
    (void)close(p.fd);
    buf_release(&p.buf);
    if (rc == 0 && rename(temporary, path) != 0)
        rc = -errno;
    if (rc < 0)
        (void)unlink(temporary);
    else
        *ret_bytes = p.written;
    return rc;
}

int compact_file(const char *path, uint64_t *ret_before, uint64_t *ret_after)
{
    int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return -errno;
    struct stat st;
    struct image im = { 0 };
    bool loaded = false;
    int rc = fstat(fd, &st) != 0 ? -errno : !S_ISREG(st.st_mode) ? SONDE_E_FORMAT : 0;
    const struct source source = { .fd = fd,
                                   .len = rc == 0 ? (uint64_t)st.st_size : 0 };
    if (rc == 0) {
        rc = image_load(&source, &im);
        loaded = rc == 0;
    }
    if (rc == 0)
        *ret_before = *ret_after = (uint64_t)st.st_blocks * 512;
    if (rc == 0 && !im.packed) {
        /* Only one may replace the file, and only when its owner is gone. */
        struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1 };
        if (im.alive || fcntl(fd, F_SETLK, &lock) != 0)
            rc = -EBUSY;
        else
            rc = pack_to(&im, path, st.st_mode & 0777, ret_after);
    }
    if (loaded)
        image_release(&im);
    (void)close(fd);
    return rc;
}
