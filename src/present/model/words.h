/* words.h: numbers of models as people read them. Private to present/model. */
#ifndef SONDE_PRESENT_MODEL_WORDS_H
#define SONDE_PRESENT_MODEL_WORDS_H

#include <stdio.h>

#include "base/human.h"
#include "base/json.h"

/* "9.12 G", "151 M", "3.2 T", "512": powers of 1000, three digits. */
char *words_si(char ret_text[HUMAN_LEN], double value);

/* "3,105,802" for whole numbers below 2^53. */
char *words_whole(char ret_text[HUMAN_LEN], double value);

/* The text and blanks up to so many columns; UTF-8, one column each. */
void words_left(FILE *out, const char *text, int columns);
/* The same to the right. */
void words_right(FILE *out, const char *text, int columns);

/* A key and a number; whole numbers without a point or an exponent. */
void put_number(struct json_writer *w, const char *key, double value);
void put_text(struct json_writer *w, const char *key, const char *text);
/* MiB with six digits. */
void put_mb(struct json_writer *w, const char *key, double bytes);

#endif
