/* experiment_fuzz.c: a line of `sonde log --jsonl`, or a baseline file, whoever wrote it. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "store/baselinefile.h"
#include "store/experiment.h"
#include "store/series.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int add_up(void *arg, const struct series_view *s)
{
    for (size_t i = 0; i < s->count; i++)
        *(double *)arg += s->steps[i] + s->values[i];
    return 0;
}

/* What was understood once, and written, is understood again. */
static void try_experiment(const char *text, size_t len)
{
    struct arena arena = ARENA_INIT;
    struct buf message = BUF_INIT, again = BUF_INIT;
    struct experiment e, second;
    if (experiment_parse(text, len, &arena, &e, &message) == 0) {
        experiment_write(&again, &e);
        if (again.error == 0 &&
            experiment_parse(again.data, again.len, &arena, &second, &message) < 0)
            abort();
        for (int kind = 0; kind < FACT_KINDS; kind++)
            (void)facts_get(&second, (enum fact_kind)kind, "lr", &arena);
        double sum = 0;
        if (e.series)
            (void)series_each(e.series, e.series_len, add_up, &sum);
    } else if (message.len == 0) {
        abort();
    }
    buf_release(&message);
    buf_release(&again);
    arena_release(&arena);
}

static void try_baseline(const char *text, size_t len)
{
    struct arena arena = ARENA_INIT;
    struct buf message = BUF_INIT, json = BUF_INIT;
    struct baseline_doc doc, again;
    if (baseline_parse(text, len, &arena, &doc, &message) == 0) {
        if (baseline_write(&doc, &json) < 0 ||
            baseline_parse(json.data, json.len, &arena, &again, &message) < 0 ||
            again.metric_count != doc.metric_count)
            abort();
    } else if (message.len == 0) {
        abort();
    }
    buf_release(&message);
    buf_release(&json);
    arena_release(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1)
        return 0;
    /* Of its own, so that reading beyond the end is seen. */
    char *text = malloc(size);
    if (!text)
        return 0;
    memcpy(text, data + 1, size - 1);
    if (data[0] == 'b')
        try_baseline(text, size - 1);
    else
        try_experiment(text, size - 1);
    free(text);
    return 0;
}
