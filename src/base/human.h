/* human.h: numbers as people read them.
 *
 * Each function writes into the caller's buffer of HUMAN_LEN bytes and returns it,
 * so that it can stand in a printf argument list:
 *
 *     char t[HUMAN_LEN];
 *     printf("%s\n", human_duration(t, 52.1e6));
 *
 * NaN, for "not known", reads "–" in all of them: missing is not zero.
 */
#ifndef SONDE_BASE_HUMAN_H
#define SONDE_BASE_HUMAN_H

#include <stdint.h>

enum { HUMAN_LEN = 32 };

/* Nanoseconds: "19.3 ns", "4.20 µs", "52.1 ms", "3.21 s", "1m 58s", "2h 03m",
 * "3d 04h". */
char *human_duration(char *ret_text, double ns);

/* "512 B", "3.1 GiB", "128 GiB": powers of 1024, two digits at least. */
char *human_bytes(char *ret_text, double bytes);

/* "1,488" */
char *human_count(char *ret_text, uint64_t count);

/* "6,440", "12.3", "0.0042": at most `digits` of them count, and never an exponent. */
char *human_number(char *ret_text, double value, int digits);

/* A share of 0 to 1: "74.0 %" */
char *human_percent(char *ret_text, double share);

#endif
