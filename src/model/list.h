/* list.h: a model as a growing list of layers (include/sonde/model.h).
 *
 *     struct layer_list list = LAYER_LIST_INIT;
 *     list_add(&list, (struct sonde_layer){ .kind = SONDE_LAYER_NORM, … });
 *     rc = list_estimate(&list, NULL, &estimate);
 *     list_release(&list);
 *
 * As with struct buf, the first failure sticks and is looked at once, at the end.
 */
#ifndef SONDE_MODEL_LIST_H
#define SONDE_MODEL_LIST_H

#include <stddef.h>

#include <sonde/model.h>

struct layer_list {
    struct sonde_layer *layers;
    size_t count, cap;
    int error;
};

/* clang-format off */
#define LAYER_LIST_INIT { .layers = NULL }
/* clang-format on */

void list_release(struct layer_list *list);

/* Sets the layer's size itself. Component names are borrowed: literals. */
void list_add(struct layer_list *list, struct sonde_layer layer);

int list_estimate(const struct layer_list *list, const struct sonde_counting *counting,
                  struct sonde_estimate *ret_estimate);

#endif
