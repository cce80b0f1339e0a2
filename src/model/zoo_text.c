/* zoo_text.c: transformers over tokens, be they words or patches of an image. */
#include "model/zoo.h"

struct transformer {
    uint64_t layers, tokens, width, heads, hidden;
    int activation, no_bias, gated;
};

static void blocks(struct layer_list *list, const struct transformer *t)
{
    list_add(list, (struct sonde_layer){ .kind = SONDE_LAYER_ATTENTION,
                                         .repeat = t->layers,
                                         .rows = t->tokens,
                                         .in = t->width,
                                         .heads = t->heads,
                                         .no_bias = t->no_bias });
    list_add(list, (struct sonde_layer){ .kind = SONDE_LAYER_FFN,
                                         .repeat = t->layers,
                                         .rows = t->tokens,
                                         .in = t->width,
                                         .hidden = t->hidden,
                                         .no_bias = t->no_bias,
                                         .activation = t->activation,
                                         .gated = t->gated });
    list_add(list, (struct sonde_layer){ .kind = SONDE_LAYER_ELEMENTS,
                                         .component = "residual",
                                         .repeat = 2 * t->layers,
                                         .rows = t->tokens,
                                         .in = t->width });
}

static void norms(struct layer_list *list, const struct transformer *t, uint64_t count)
{
    list_add(list, (struct sonde_layer){ .kind = SONDE_LAYER_NORM,
                                         .repeat = count,
                                         .rows = t->tokens,
                                         .in = t->width,
                                         .no_bias = t->no_bias });
}

static void table(struct layer_list *list, const struct transformer *t,
                  uint64_t entries)
{
    list_add(list, (struct sonde_layer){ .kind = SONDE_LAYER_EMBEDDING,
                                         .rows = t->tokens,
                                         .in = entries,
                                         .out = t->width });
}

static void head(struct layer_list *list, const struct transformer *t, uint64_t rows,
                 uint64_t out, int shared)
{
    list_add(list, (struct sonde_layer){ .kind = SONDE_LAYER_LINEAR,
                                         .component = "head",
                                         .rows = rows,
                                         .in = t->width,
                                         .out = out,
                                         .no_bias = shared || t->no_bias,
                                         .shared = shared });
}

/* ---- Patches ------------------------------------------------------------------------ */

/* The class token is a parameter and one more row; positions are a parameter per row. */
static void vit(struct layer_list *list, uint64_t patch, struct transformer t)
{
    const uint64_t patches = (224 / patch) * (224 / patch);
    t.tokens = patches + 1;
    t.activation = SONDE_GELU;
    list_add(list, (struct sonde_layer){ .kind = SONDE_LAYER_CONV,
                                         .component = "patches",
                                         .rows = patches,
                                         .in = 3,
                                         .out = t.width,
                                         .kernel = patch,
                                         .no_grad = 1 });
    table(list, &t, t.tokens + 1);
    blocks(list, &t);
    norms(list, &t, 2 * t.layers + 1);
    head(list, &t, 1, 1000, 0);
}

void zoo_vit_b_16(struct layer_list *list)
{
    vit(list, 16,
        (struct transformer){
            .layers = 12, .width = 768, .heads = 12, .hidden = 3072 });
}

void zoo_vit_l_16(struct layer_list *list)
{
    vit(list, 16,
        (struct transformer){
            .layers = 24, .width = 1024, .heads = 16, .hidden = 4096 });
}

void zoo_vit_l_32(struct layer_list *list)
{
    vit(list, 32,
        (struct transformer){
            .layers = 24, .width = 1024, .heads = 16, .hidden = 4096 });
}

/* ---- Words -------------------------------------------------------------------------- */

static void gpt2(struct layer_list *list, uint64_t layers, uint64_t width,
                 uint64_t heads)
{
    enum { VOCABULARY = 50257, CONTEXT = 1024 };
    const struct transformer t = { .layers = layers,
                                   .tokens = CONTEXT,
                                   .width = width,
                                   .heads = heads,
                                   .hidden = 4 * width,
                                   .activation = SONDE_GELU_TANH };
    table(list, &t, VOCABULARY);
    table(list, &t, CONTEXT);
    blocks(list, &t);
    norms(list, &t, 2 * t.layers + 1);
    head(list, &t, CONTEXT, VOCABULARY, 1);
}

void zoo_gpt2_124m(struct layer_list *list)
{
    gpt2(list, 12, 768, 12);
}

void zoo_gpt2_xl(struct layer_list *list)
{
    gpt2(list, 48, 1600, 25);
}

/* With the pooler over the first token, without a task's head. */
void zoo_bert_base(struct layer_list *list)
{
    const struct transformer t = { .layers = 12,
                                   .tokens = 128,
                                   .width = 768,
                                   .heads = 12,
                                   .hidden = 3072,
                                   .activation = SONDE_GELU };
    table(list, &t, 30522);
    table(list, &t, 512);
    table(list, &t, 2);
    blocks(list, &t);
    norms(list, &t, 2 * t.layers + 1);
    head(list, &t, 1, t.width, 0);
}

void zoo_llama2_7b(struct layer_list *list)
{
    enum { VOCABULARY = 32000 };
    const struct transformer t = { .layers = 32,
                                   .tokens = 128,
                                   .width = 4096,
                                   .heads = 32,
                                   .hidden = 11008,
                                   .activation = SONDE_SILU,
                                   .no_bias = 1,
                                   .gated = 1 };
    table(list, &t, VOCABULARY);
    blocks(list, &t);
    norms(list, &t, 2 * t.layers + 1);
    head(list, &t, t.tokens, VOCABULARY, 0);
}
