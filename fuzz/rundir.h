/* rundir.h: a run directory in which one file is whatever the fuzzer thinks of. For targets
 * that go all the way: open, analyse, print as text and as JSON.
 *
 *     LLVMFuzzerInitialize:  rundir_make(RUNDIR_RUN_JSON)
 *     …TestOneInput:         rundir_put("hangs-1-2-3.tables", data, size); rundir_report()
 */
#ifndef SONDE_FUZZ_RUNDIR_H
#define SONDE_FUZZ_RUNDIR_H

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "base/files.h"
#include "present/report/report.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A store with one run in it. */
static char rundir_store[64], rundir[80];

#define RUNDIR_RUN_JSON                                                                \
    "{\"schema\":\"sonde.run/1\",\"id\":\"x\","                                        \
    "\"started_ns\":1700000000000000000,\"ended_ns\":1700000012000000000}"

static void rundir_remove(void)
{
    (void)file_remove_tree(rundir_store);
}

static void rundir_put(const char *name, const void *data, size_t size)
{
    char path[160];
    (void)snprintf(path, sizeof path, "%s/%s", rundir, name);
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0 || fd_write_full(fd, data, size) < 0)
        abort();
    (void)close(fd);
}

static void rundir_make(const char *run_json)
{
    const char *base = getenv("TMPDIR");
    (void)snprintf(rundir_store, sizeof rundir_store, "%.40s/sonde-fuzz-XXXXXX",
                   base ? base : "/tmp");
    if (!mkdtemp(rundir_store))
        abort();
    (void)atexit(rundir_remove);
    (void)snprintf(rundir, sizeof rundir, "%s/runs/abc", rundir_store);
    if (dir_make(rundir, 0700) < 0)
        abort();
    rundir_put("run.json", run_json, strlen(run_json));
}

/* Nothing a terminal would obey in the text; JSON that somebody else reads. */
static void rundir_print(const struct report *report, enum report_format format,
                         bool full)
{
    const struct report_style style = { .format = format,
                                        .full = full,
                                        .unicode = true };
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

static void rundir_report(void)
{
    struct run *run = NULL;
    struct report *report = NULL;
    if (run_open(rundir, &run) == 0 && report_build(run, &report) == 0) {
        rundir_print(report, REPORT_TEXT, false);
        rundir_print(report, REPORT_TEXT, true);
        rundir_print(report, REPORT_JSON, true);
    }
    report_free(report);
    run_free(run);
}

#endif
