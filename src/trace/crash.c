/* crash.c: read what a process left when it faulted. */
#include "trace/crash.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/files.h"

bool crash_is_name(const char *name)
{
    const size_t len = strlen(name), end = sizeof CRASH_SUFFIX - 1;
    return strncmp(name, "crash-", 6) == 0 && len > end + 6 &&
           strcmp(name + len - end, CRASH_SUFFIX) == 0;
}

/* "from-to perms offset dev inode   path" */
static bool take_line(const char *text, size_t len, uint64_t address,
                      struct crash_frame *ret_frame)
{
    char line[512];
    uint64_t from, to, offset;
    int at = 0;
    (void)snprintf(line, sizeof line, "%.*s", (int)(len < 511 ? len : 511), text);
    if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %*s %" SCNx64 " %*s %*s %n", &from, &to,
               &offset, &at) < 3 ||
        address < from || address >= to)
        return false;
    ret_frame->offset = address - from + offset;
    (void)snprintf(ret_frame->module, sizeof ret_frame->module, "%s",
                   at > 0 ? line + at : "");
    return true;
}

bool crash_find_module(const char *maps, size_t len, uint64_t address,
                       struct crash_frame *ret_frame)
{
    for (size_t at = 0; at < len;) {
        const char *end = memchr(maps + at, '\n', len - at);
        const size_t line = end ? (size_t)(end - maps) - at : len - at;
        if (take_line(maps + at, line, address, ret_frame))
            return true;
        at += line + 1;
    }
    return false;
}

int crash_parse(const void *bytes, size_t len, struct crash *ret_crash)
{
    struct crash_record r;
    if (len < sizeof r)
        return SONDE_E_TRUNCATED;
    memcpy(&r, bytes, sizeof r);
    if (r.magic != CRASH_MAGIC || r.signal == 0 || r.signal > 64)
        return SONDE_E_FORMAT;
    struct crash c = { .signal = (int)r.signal,
                       .code = r.code,
                       .pid = r.pid,
                       .tid = r.tid,
                       .address = r.address,
                       .shm_free = r.shm_free };
    const char *maps = (const char *)bytes + sizeof r;
    c.frame_count = r.frame_count < CRASH_FRAMES ? r.frame_count : CRASH_FRAMES;
    for (unsigned i = 0; i < c.frame_count; i++) {
        c.frame[i].address = r.frame[i];
        /* A return address is behind its call, which may be the end of its function. */
        (void)crash_find_module(maps, len - sizeof r, r.frame[i] - (i > 0),
                                &c.frame[i]);
    }
    *ret_crash = c;
    return 0;
}

int crash_read(const char *path, struct crash *ret_crash)
{
    struct buf text = BUF_INIT;
    int rc = file_read_all(path, sizeof(struct crash_record) + CRASH_MAPS_MAX, &text);
    if (rc == 0)
        rc = crash_parse(text.data, text.len, ret_crash);
    buf_release(&text);
    return rc;
}
