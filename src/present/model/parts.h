/* parts.h: sections of a model's answer. Private to present/model. */
#ifndef SONDE_PRESENT_MODEL_PARTS_H
#define SONDE_PRESENT_MODEL_PARTS_H

#include "present/model/model.h"

void flops_text(const struct model_answer *a, FILE *out);
void estimated_memory_text(const struct model_answer *a, FILE *out);
void flops_json(const struct model_answer *a, struct json_writer *w);
void padding_json(const struct model_answer *a, struct json_writer *w);

#endif
