/* replay.c: runs a fuzz target over its corpus, without libFuzzer.
 *
 * Inputs that once found a bug, or that cover a path, stay tests in every build. Takes
 * files and directories; prints how many inputs were tried. No input at all is a
 * failure: a corpus that went missing must not look like success.
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/files.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv) __attribute__((weak));

enum { INPUT_LIMIT = 64 << 20 };

static int replay_file(const char *path)
{
    struct buf input = BUF_INIT;
    const int rc = file_read_all(path, INPUT_LIMIT, &input);
    if (rc < 0)
        (void)fprintf(stderr, "cannot read %s: %s\n", path, error_text(rc));
    else
        (void)LLVMFuzzerTestOneInput((const uint8_t *)input.data, input.len);
    buf_release(&input);
    return rc < 0 ? rc : 1;
}

/* Returns the number of inputs tried, or a negative number. */
static int replay_directory(const char *path)
{
    struct dirent **entries;
    const int n = scandir(path, &entries, NULL, alphasort);
    int tried = n < 0 ? n : 0;
    for (int i = 0; i < n; i++) {
        if (entries[i]->d_name[0] != '.' && tried >= 0) {
            struct buf file = BUF_INIT;
            path_join(&file, path, entries[i]->d_name);
            const int rc = replay_file(file.data);
            tried = rc < 0 ? rc : tried + rc;
            buf_release(&file);
        }
        free(entries[i]);
    }
    if (n >= 0)
        free(entries);
    return tried;
}

int main(int argc, char **argv)
{
    int tried = 0;
    if (LLVMFuzzerInitialize)
        (void)LLVMFuzzerInitialize(&argc, &argv);
    for (int i = 1; i < argc; i++) {
        const int n = path_is_dir(argv[i]) ? replay_directory(argv[i])
                                           : replay_file(argv[i]);
        if (n < 0)
            return 1;
        tried += n;
    }
    (void)printf("%d inputs tried\n", tried);
    return tried > 0 ? 0 : 1;
}
