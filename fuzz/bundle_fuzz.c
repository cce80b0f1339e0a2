/* bundle_fuzz.c: any bytes as a bundle: packed as they are, and with a gzip around them
 * (or the fuzzer would never get behind the checksum).
 *
 * Whatever comes, nothing is written but plain files in a folder of ours, and that folder
 * is gone afterwards.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <zlib.h>

#include "base/files.h"
#include "store/bundle.h"
#include "store/run.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char dir[] = "/tmp/sonde-fuzz-XXXXXX";
static char path[64];

static void clean_up(void)
{
    (void)file_remove_tree(dir);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    if (!mkdtemp(dir) || setenv("TMPDIR", dir, 1) != 0)
        abort();
    (void)snprintf(path, sizeof path, "%s/x.tgz", dir);
    (void)atexit(clean_up);
    return 0;
}

static void write_plain(const uint8_t *data, size_t size)
{
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0 || fd_write_full(fd, data, size) < 0)
        abort();
    (void)close(fd);
}

/* Headers get their checksums: a fuzzer does not find them. */
static void write_packed(const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size + 1);
    gzFile gz = gzopen(path, "wb1");
    if (!copy || !gz)
        abort();
    if (size)
        memcpy(copy, data, size);
    for (size_t at = 0; at + BUNDLE_BLOCK <= size; at += BUNDLE_BLOCK) {
        struct bundle_header h;
        memcpy(&h, copy + at, sizeof h);
        if (memcmp(h.magic, "ustar", 5) != 0)
            continue;
        char sum[8];
        (void)snprintf(sum, sizeof sum, "%06o", bundle_checksum(&h) & 0777777);
        memcpy(h.checksum, sum, sizeof h.checksum);
        memcpy(copy + at, &h, sizeof h);
    }
    if (size)
        (void)gzwrite(gz, copy, (unsigned)size);
    (void)gzclose(gz);
    free(copy);
}

/* Plain files, owned by nobody else, straight in the folder. */
static void check_folder(const char *place)
{
    DIR *d = opendir(place);
    if (!d)
        abort();
    for (const struct dirent *e; (e = readdir(d));) {
        struct stat st;
        if (e->d_name[0] == '.' && (!e->d_name[1] || !strcmp(e->d_name, "..")))
            continue;
        if (fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0 ||
            !S_ISREG(st.st_mode) || (st.st_mode & 077) || !bundle_is_name(e->d_name))
            abort();
    }
    (void)closedir(d);
}

static void look(void)
{
    struct run *run;
    if (run_open(path, &run) == 0) {
        check_folder(run->dir);
        run_free(run);
    }
    struct stat st;
    if (stat(dir, &st) != 0 || st.st_nlink != 2)
        abort(); /* something was left */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    write_plain(data, size);
    look();
    write_packed(data, size);
    look();
    return 0;
}
