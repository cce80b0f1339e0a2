/* parts.h: sections of a model's answer. Private to present/model. */
#ifndef SONDE_PRESENT_MODEL_PARTS_H
#define SONDE_PRESENT_MODEL_PARTS_H

#include "present/model/model.h"

void flops_text(const struct model_answer *a, FILE *out);
void estimated_memory_text(const struct model_answer *a, FILE *out);
void flops_json(const struct model_answer *a, struct json_writer *w);
void padding_json(const struct model_answer *a, struct json_writer *w);

/* Of what was measured; each only where the answer has it. */
void runtime_text(const struct model_answer *a, FILE *out);
void roofline_text(const struct model_answer *a, FILE *out);
void measured_memory_text(const struct model_answer *a, FILE *out);
void runtime_json(const struct model_answer *a, struct json_writer *w);
void roofline_json(const struct model_answer *a, struct json_writer *w);

struct summary;
void summary_json(struct json_writer *w, const char *key, const struct summary *s);

#endif
