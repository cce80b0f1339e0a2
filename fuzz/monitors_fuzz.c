/* monitors_fuzz.c: any bytes as a file of monitors, through analysis and presentation.
 *
 * JSON must parse, text must hold no control character, whatever stands in the rows.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <jansson.h>

#include "base/files.h"
#include "present/report/report.h"

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
    static const char run[] = "{\"id\": \"1\", \"started_ns\": 1767225600000000000}";
    (void)argc, (void)argv;
    if (!mkdtemp(dir))
        abort();
    (void)snprintf(path, sizeof path, "%s/run.json", dir);
    if (file_write_atomic(path, run, sizeof run - 1, 0600) < 0)
        abort();
    (void)snprintf(path, sizeof path, "%s/monitors-1-2-3.tables", dir);
    (void)atexit(clean_up);
    return 0;
}

static void check(enum report_format format, const char *text, size_t len)
{
    json_t *root = format == REPORT_JSON ? json_loadb(text, len, 0, NULL) : NULL;
    if (format == REPORT_JSON && !root)
        abort();
    json_decref(root);
    for (size_t i = 0; format == REPORT_TEXT && i < len; i++)
        if ((unsigned char)text[i] < 0x20 && text[i] != '\n')
            abort();
}

static void print(const struct report *report, enum report_format format)
{
    const struct report_style style = { .format = format,
                                        .full = true,
                                        .unicode = true };
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);
    if (!out || report_print(report, &style, out) < 0 || fclose(out) != 0)
        abort();
    check(format, text, len);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct run *run = NULL;
    struct report *report = NULL;
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0 || fd_write_full(fd, data, size) < 0)
        abort();
    (void)close(fd);
    if (run_open(dir, &run) == 0 && report_build(run, &report) == 0) {
        print(report, REPORT_TEXT);
        print(report, REPORT_JSON);
    }
    report_free(report);
    run_free(run);
    return 0;
}
