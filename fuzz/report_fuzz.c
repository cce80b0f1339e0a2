/* report_fuzz.c: any bytes as a trace, through analysis and every presentation.
 *
 * The reader has its own target; here what it lets through must not upset those above
 * it, and what they print must keep its promises: JSON that parses, text without a
 * control character.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "base/files.h"
#include "present/export/export.h"
#include "present/html/html.h"
#include "present/report/report.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char dir[] = "/tmp/sonde-fuzz-XXXXXX";
static char trace_path[64];

static void clean_up(void)
{
    (void)file_remove_tree(dir);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    if (!mkdtemp(dir))
        abort();
    (void)snprintf(trace_path, sizeof trace_path, "%s/1-2-3.sonde", dir);
    (void)atexit(clean_up);
    return 0;
}

static void write_input(const uint8_t *data, size_t size)
{
    const int fd = open(trace_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0 || fd_write_full(fd, data, size) < 0)
        abort();
    (void)close(fd);
}

static void check_text(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)text[i] < 0x20 && text[i] != '\n' && text[i] != '\r')
            abort();
}

static void check_json(const char *text, size_t len)
{
    json_t *root = json_loadb(text, len, 0, NULL);
    if (!root)
        abort();
    json_decref(root);
}

static void print_reports(const struct report *report)
{
    for (int format = REPORT_TEXT; format <= REPORT_MARKDOWN; format++) {
        if (format == REPORT_HTML)
            continue; /* print_page() */
        const struct report_style style = { .format = (enum report_format)format,
                                            .full = true,
                                            .unicode = true };
        char *text = NULL;
        size_t len = 0;
        FILE *out = open_memstream(&text, &len);
        if (!out || report_print(report, &style, out) < 0 || fclose(out) != 0)
            abort();
        if (format == REPORT_JSON)
            check_json(text, len);
        else
            check_text(text, len);
        free(text);
    }
}

static int put_report(const struct report *report, struct json_writer *w)
{
    const struct report_style style = { .format = REPORT_JSON, .limit = 50 };
    return report_json_value(report, &style, w);
}

/* The page's document parses, and nothing in it ends the element it stands in. */
static void print_page(const struct report *report)
{
    static const char mark[] = "id=\"sonde-document\">";
    const struct html_options options = { .put_report = put_report, .hide = true };
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);
    if (!out || html_write(&report, 1, &options, out) < 0 || fclose(out) != 0)
        abort();
    const char *start = memmem(text, len, mark, sizeof mark - 1);
    if (!start)
        abort();
    start += sizeof mark - 1;
    const char *end = memmem(start, len - (size_t)(start - text), "</script", 8);
    if (!end || memchr(start, '<', (size_t)(end - start)))
        abort();
    check_json(start, (size_t)(end - start));
    free(text);
}

static void print_export(const struct run *run, const struct exporter *exporter)
{
    struct export_totals totals;
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);
    if (!out)
        abort();
    const struct export_job job = {
        .run = run,
        .out = out,
        .what = exporter->whats >> EXPORT_ZONES & 1 ? EXPORT_ZONES : exporter->usual,
    };
    const int rc = exporter->write(&job, &totals);
    if (fclose(out) != 0)
        abort();
    const char *form = exporter->extension;
    if (rc == 0 && (strcmp(form, "json") == 0 || strcmp(form, "speedscope.json") == 0))
        check_json(text, len);
    free(text);
}

/* A bundle copies files and reads none: it has a target of its own. */
static void print_exports(const struct run *run)
{
    for (size_t i = 0; i < exporter_count; i++)
        if (exporters[i].write != export_bundle)
            print_export(run, &exporters[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct run *run = NULL;
    struct report *report = NULL;
    write_input(data, size);
    if (run_open(dir, &run) == 0) {
        if (report_build(run, &report) == 0) {
            print_reports(report);
            print_page(report);
        }
        print_exports(run);
    }
    report_free(report);
    run_free(run);
    return 0;
}
