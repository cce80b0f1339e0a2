/* scaling.h: a scaling experiment as text, JSON and a picture. */
#ifndef SONDE_PRESENT_MODEL_SCALING_H
#define SONDE_PRESENT_MODEL_SCALING_H

#include <stdio.h>

#include "base/json.h"
#include "model/run/scaling.h"

/* "sonde scale nodes · graph_transformer · from 1 graph of 100 nodes …" */
void scaling_title(const struct scaling *s, FILE *out);
/* 0 or −EIO. */
int scaling_text(const struct scaling *s, FILE *out);
/* One object, without schema: a value inside a larger document. */
void scaling_json(const struct scaling *s, struct json_writer *w);
/* The document of `sonde scale --json`, schema sonde.scaling/1. */
int scaling_document(const struct scaling *s, FILE *out);
/* Curves in double logarithms, one SVG file. */
int scaling_svg(const struct scaling *s, FILE *out);

#endif
