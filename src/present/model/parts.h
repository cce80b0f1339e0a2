/* parts.h: sections of a model's answer. Private to present/model. */
#ifndef SONDE_PRESENT_MODEL_PARTS_H
#define SONDE_PRESENT_MODEL_PARTS_H

#include "present/model/model.h"

void flops_text(const struct model_answer *a, FILE *out);
void estimated_memory_text(const struct model_answer *a, FILE *out);
void flops_json(const struct model_answer *a, struct json_writer *w);
void padding_json(const struct model_answer *a, struct json_writer *w);

/* "1 graph of 500 nodes, 2500 edges · hidden 256, …" */
void sizes_text(const struct model_config *c, FILE *out);
/* Keys of a document's head: timestamp, hardware. */
void head_json(struct json_writer *w);
/* The sizes as keys of an object that is open. */
void sizes_json(struct json_writer *w, const struct model_config *c);

/* Of what was measured; each only where the answer has it. */
void runtime_text(const struct model_answer *a, FILE *out);
void roofline_text(const struct model_answer *a, FILE *out);
void measured_memory_text(const struct model_answer *a, FILE *out);
void runtime_json(const struct model_answer *a, struct json_writer *w);
void roofline_json(const struct model_answer *a, struct json_writer *w);

struct summary;
void summary_json(struct json_writer *w, const char *key, const struct summary *s);

#endif
