/* own.c: see own.h. */
#include "capture/monitor/own.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/scan.h"

/* Bits of a word of pagemap. */
#define PAGE_PRESENT   (1ull << 63)
#define PAGE_EXCLUSIVE (1ull << 56)

enum { BATCH = 1024, RANGES_MOST = 64, PATH_LEN = 1280 };

struct range {
    uint64_t first, end; /* page numbers */
};

static bool scan_hex(struct scan *s, uint64_t *ret_value)
{
    const char *begin = s->at;
    uint64_t v = 0;
    for (; s->at < s->end; s->at++) {
        const char c = *s->at;
        const unsigned d = c >= '0' && c <= '9'   ? (unsigned)(c - '0')
                           : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a') + 10
                                                  : 16;
        if (d == 16)
            break;
        v = v << 4 | d;
    }
    *ret_value = v;
    return s->at > begin;
}

/* Files are mapped far beyond their end, for them to grow into. */
static uint64_t pages_behind(const char *path, uint64_t offset, uint64_t page)
{
    struct stat st;
    if (stat(path, &st) < 0 || (uint64_t)st.st_size <= offset)
        return 0;
    return ((uint64_t)st.st_size - offset + page - 1) / page;
}

/* "7f00-7f80 rw-s 00000000 fe:00 123   /run/dir/file" */
static bool scan_mapping(struct scan s, const char *run_dir, uint64_t page,
                         struct range *ret)
{
    char path[PATH_LEN];
    uint64_t first, end, offset;
    if (!scan_hex(&s, &first) || s.at == s.end || *s.at++ != '-' ||
        !scan_hex(&s, &end) || !scan_skip_word(&s))
        return false;
    scan_blanks(&s);
    if (!scan_hex(&s, &offset) || !scan_skip_word(&s) || !scan_skip_word(&s))
        return false;
    scan_blanks(&s);
    const size_t len = (size_t)(s.end - s.at), dir = strlen(run_dir);
    if (len <= dir || len >= sizeof path || memcmp(s.at, run_dir, dir) != 0 ||
        s.at[dir] != '/')
        return false;
    memcpy(path, s.at, len);
    path[len] = '\0';
    const uint64_t most = pages_behind(path, offset, page);
    *ret = (struct range){ first / page, end / page };
    if (ret->end - ret->first > most)
        ret->end = ret->first + most;
    return ret->end > ret->first;
}

/* The file is read in pieces that end with whole lines. */
static size_t find_ranges(int fd, const char *run_dir, char *buffer, size_t size,
                          struct range *ret, bool *ret_readable)
{
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    size_t count = 0;
    off_t at = 0;
    for (ssize_t n; (n = pread(fd, buffer, size, at)) > 0;) {
        const char *last = memrchr(buffer, '\n', (size_t)n);
        if (!last)
            break;
        *ret_readable = true;
        for (const char *line = buffer; line <= last;) {
            const char *nl = memchr(line, '\n', (size_t)(last + 1 - line));
            if (count < RANGES_MOST && memchr(line, '/', (size_t)(nl - line)) &&
                scan_mapping((struct scan){ line, nl }, run_dir, page, &ret[count]))
                count++;
            line = nl + 1;
        }
        at += last + 1 - buffer;
    }
    return count;
}

static bool count_pages(int fd, const struct range *r, struct own_pages *sum)
{
    uint64_t word[BATCH];
    for (uint64_t at = r->first; at < r->end;) {
        const uint64_t left = r->end - at;
        const size_t n = left < BATCH ? (size_t)left : BATCH;
        const ssize_t got = pread(fd, word, n * sizeof *word,
                                  (off_t)(at * sizeof *word));
        if (got <= 0)
            return false;
        const size_t words = (size_t)got / sizeof *word;
        for (size_t i = 0; i < words; i++) {
            sum->present += (word[i] & PAGE_PRESENT) != 0;
            sum->exclusive += (word[i] & PAGE_PRESENT) && (word[i] & PAGE_EXCLUSIVE);
        }
        if (words == 0)
            return false;
        at += words;
    }
    return true;
}

bool own_pages_read(int maps_fd, int pagemap_fd, const char *run_dir, char *buffer,
                    size_t size, struct own_pages *ret_pages)
{
    struct range range[RANGES_MOST];
    struct own_pages sum = { 0 };
    bool readable = false;
    if (maps_fd < 0 || pagemap_fd < 0)
        return false;
    const size_t count = find_ranges(maps_fd, run_dir, buffer, size, range, &readable);
    for (size_t i = 0; i < count; i++)
        (void)count_pages(pagemap_fd, &range[i], &sum); /* unmapped meanwhile: none */
    if (readable)
        *ret_pages = sum;
    return readable;
}
