/* model.h: what a model costs, for people and for programs. */
#ifndef SONDE_PRESENT_MODEL_MODEL_H
#define SONDE_PRESENT_MODEL_MODEL_H

#include <stdbool.h>
#include <stdio.h>

#include "base/json.h"
#include "model/answer.h"

/* 0 or −EIO. */
int model_text(const struct model_answer *answer, FILE *out);

/* One document, schema sonde.model/1: timestamp, hardware, model_info, flops, memory …
 * (DESIGN E9). */
int model_json(const struct model_answer *answer, FILE *out);

/* The published models, their figures and ours. */
int zoo_text(FILE *out);
int zoo_json(FILE *out);

#endif
