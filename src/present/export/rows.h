/* rows.h: a table, written row by row as CSV or as JSON lines. Private to export/.
 *
 *     struct rows r;
 *     rc = rows_begin(&r, out, ROWS_CSV, columns, 3);
 *     rows_text(&r, "forward");
 *     rows_uint(&r, 7);
 *     rows_real(&r, NAN, 3);       unknown: an empty cell, null
 *     rc = rows_end(&r);
 *     …
 *     rows_release(&r);
 *
 * CSV is RFC 4180 as in the report: a header line, CRLF, texts quoted, and an apostrophe
 * before what a spreadsheet would take for a formula.
 */
#ifndef SONDE_PRESENT_EXPORT_ROWS_H
#define SONDE_PRESENT_EXPORT_ROWS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/json.h"

enum rows_format { ROWS_CSV, ROWS_JSONL };

struct rows {
    FILE *out;
    enum rows_format format;
    const char *const *columns;
    unsigned column_count, at;
    struct buf line;
    struct json_writer w;
    uint64_t count;
};

/* `columns` is borrowed until the end. */
int rows_begin(struct rows *rows, FILE *out, enum rows_format format,
               const char *const *columns, unsigned count);
/* NULL or "": unknown. */
void rows_text(struct rows *rows, const char *text);
void rows_uint(struct rows *rows, uint64_t value);
void rows_int(struct rows *rows, int64_t value);
/* At most nine decimals. */
void rows_real(struct rows *rows, double value, int decimals);
void rows_bool(struct rows *rows, bool value);
void rows_null(struct rows *rows);
/* Writes the row; every column must have had its cell. */
int rows_end(struct rows *rows);
void rows_release(struct rows *rows);

#endif
