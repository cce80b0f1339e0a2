/* zoo.h: published models, layer by layer, with the figures their authors give.
 *
 * They make `sonde flops resnet50` possible, and they test the formulas: every figure in
 * the table is checked to the digits it was published with.
 */
#ifndef SONDE_MODEL_ZOO_H
#define SONDE_MODEL_ZOO_H

#include "model/list.h"

struct zoo_model {
    const char *name, *title;
    const char *input;  /* "1 image of 3×224×224" */
    const char *source; /* where the figures are from */
    double published;   /* 0: not */
    int decimals;       /* … with so many digits behind the point */
    const char *unit;   /* "GMAC" or "GFLOP" */
    double parameters;  /* 0: not published exactly */
    void (*layers)(struct layer_list *list);
};

/* NULL when there is none. */
const struct zoo_model *zoo_find(const char *name);
const struct zoo_model *zoo_at(size_t index);

/* Called by zoo.c alone. */
void zoo_resnet50(struct layer_list *list);
void zoo_vgg16(struct layer_list *list);
void zoo_mobilenet_v2(struct layer_list *list);
void zoo_vit_b_16(struct layer_list *list);
void zoo_vit_l_16(struct layer_list *list);
void zoo_vit_l_32(struct layer_list *list);
void zoo_gpt2_124m(struct layer_list *list);
void zoo_gpt2_xl(struct layer_list *list);
void zoo_bert_base(struct layer_list *list);
void zoo_llama2_7b(struct layer_list *list);
void zoo_gcn_pattern(struct layer_list *list);
void zoo_gat_pattern(struct layer_list *list);
void zoo_gatedgcn_pattern(struct layer_list *list);
void zoo_gcn_arxiv(struct layer_list *list);
void zoo_sage_arxiv(struct layer_list *list);
void zoo_gps_zinc(struct layer_list *list);

#endif
