/* parse.h: strict parsers for options and environment variables.
 *
 * The whole text must be the value: no blanks around it, no trailing characters,
 * no sign. -EINVAL when it is not, -ERANGE when it does not fit. Outputs stay
 * untouched on failure. NULL and "" are -EINVAL.
 */
#ifndef SONDE_BASE_PARSE_H
#define SONDE_BASE_PARSE_H

#include <stdbool.h>
#include <stdint.h>

/* Decimal digits. */
int parse_uint(const char *text, uint64_t *ret_value);

/* A number with optional decimals and a unit: ns us µs ms s m h d. The unit may be
 * left out only for 0: "5" of what? */
int parse_duration(const char *text, uint64_t *ret_ns);

/* The same where a number without unit means seconds ("--interval 0.5"). */
int parse_duration_s(const char *text, uint64_t *ret_ns);

/* A number with optional decimals and a unit: none or B, k K KB KiB, M …, G …, T ….
 * All are powers of 1024: nobody who writes --max-trace 1GB means otherwise. */
int parse_size(const char *text, uint64_t *ret_bytes);

/* "A:B" means A <= x < B; "A:" and ":B" leave one side open (0, UINT64_MAX).
 * -EINVAL when A >= B or both are missing. */
int parse_range(const char *text, uint64_t *ret_first, uint64_t *ret_end);

/* 1 0 true false yes no on off, in any case. */
int parse_bool(const char *text, bool *ret_value);

#endif
