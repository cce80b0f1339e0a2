/* pylayer_fuzz.c: any bytes as python.jsonl, what Python processes tell, through the
 * reports. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/files.h"
#include "present/report/report.h"
#include "store/run.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char store[] = "/tmp/sonde-fuzz-XXXXXX";
static char dir[64], file[96];

static void clean_up(void)
{
    (void)file_remove_tree(store);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    if (!mkdtemp(store))
        abort();
    (void)snprintf(dir, sizeof dir, "%s/runs/abc", store);
    (void)snprintf(file, sizeof file, "%s/python.jsonl", dir);
    if (dir_make(dir, 0700) < 0)
        abort();
    char other[96];
    (void)snprintf(other, sizeof other, "%s/run.json", dir);
    FILE *out = fopen(other, "we"); /* or it would be no run */
    if (!out || fputs("{}", out) < 0 || fclose(out) != 0)
        abort();
    (void)atexit(clean_up);
    return 0;
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
    json_t *root = format == REPORT_JSON ? json_loadb(text, len, 0, NULL) : NULL;
    if (format == REPORT_JSON && !root)
        abort();
    json_decref(root);
    for (size_t i = 0; format == REPORT_TEXT && i < len; i++)
        if ((unsigned char)text[i] < 0x20 && text[i] != '\n')
            abort();
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct run *run = NULL;
    struct report *report = NULL;
    FILE *out = fopen(file, "we");
    if (!out || fwrite(data, 1, size, out) != size || fclose(out) != 0)
        abort();
    if (run_open(dir, &run) == 0 && report_build(run, &report) == 0) {
        print(report, REPORT_TEXT);
        print(report, REPORT_JSON);
    }
    report_free(report);
    run_free(run);
    return 0;
}
