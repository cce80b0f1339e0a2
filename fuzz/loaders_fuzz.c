/* loaders_fuzz.c: any bytes as a file of data loaders, through analysis and both reports. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "base/files.h"
#include "present/report/report.h"
#include "trace/control.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char dir[] = "/tmp/sonde-fuzz-XXXXXX";
static char path[64];

static void clean_up(void)
{
    (void)file_remove_tree(dir);
}

static void write_file(const char *name, const void *data, size_t size)
{
    (void)snprintf(path, sizeof path, "%s/%s", dir, name);
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0 || fd_write_full(fd, data, size) < 0)
        abort();
    (void)close(fd);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    static const char json[] = "{\"schema\":\"sonde.run/1\",\"id\":\"x\","
                               "\"started_ns\":1700000000000000000,"
                               "\"ended_ns\":1700000012000000000}";
    (void)argc, (void)argv;
    if (!mkdtemp(dir))
        abort();
    (void)atexit(clean_up);
    write_file("run.json", json, sizeof json - 1);
    /* Without a clock times would not be looked at. */
    struct control *control = NULL;
    if (control_create(dir, &(struct control_options){ .run_id = "x" }, &control) < 0)
        abort();
    (void)usleep(2000);
    control_append_clock(control);
    control_unmap(control);
    return 0;
}

static void print(const struct report *report, enum report_format format)
{
    const struct report_style style = { .format = format, .unicode = true };
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);
    if (!out || report_print(report, &style, out) < 0)
        abort();
    (void)fclose(out);
    for (size_t i = 0; format == REPORT_TEXT && i < len; i++)
        if ((unsigned char)text[i] < 0x20 && text[i] != '\n')
            abort();
    json_t *root = format == REPORT_JSON ? json_loadb(text, len, 0, NULL) : NULL;
    if (format == REPORT_JSON && !root)
        abort();
    json_decref(root);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct run *run = NULL;
    struct report *report = NULL;
    write_file("loader-1-2-3.tables", data, size);
    if (run_open(dir, &run) == 0 && report_build(run, &report) == 0) {
        print(report, REPORT_TEXT);
        print(report, REPORT_JSON);
    }
    report_free(report);
    run_free(run);
    return 0;
}
