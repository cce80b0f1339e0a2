/* list.c: see list.h. */
#include "model/list.h"

#include <errno.h>
#include <stdlib.h>

void list_release(struct layer_list *list)
{
    free(list->layers);
    *list = (struct layer_list)LAYER_LIST_INIT;
}

static int grow(struct layer_list *list)
{
    const size_t cap = list->cap ? 2 * list->cap : 32;
    struct sonde_layer *more = realloc(list->layers, cap * sizeof *more);
    if (!more)
        return -ENOMEM;
    list->layers = more;
    list->cap = cap;
    return 0;
}

void list_add(struct layer_list *list, struct sonde_layer layer)
{
    if (list->error == 0 && list->count == list->cap)
        list->error = grow(list);
    if (list->error < 0)
        return;
    layer.size = sizeof layer;
    list->layers[list->count++] = layer;
}

int list_estimate(const struct layer_list *list, const struct sonde_counting *counting,
                  struct sonde_estimate *ret_estimate)
{
    if (list->error < 0)
        return list->error;
    return sonde_estimate_layers(list->layers, list->count, counting, ret_estimate,
                                 NULL);
}
