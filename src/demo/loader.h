/* loader.h: a thread that prepares batches ahead of the training loop.
 *
 * Each epoch visits every picture once, in an order shuffled by the seed. Finished
 * batches stand in a queue of QUEUE_SLOTS; when it is full the loader waits, when it
 * is empty the training loop does. Batches come in order and depend on the seed
 * alone.
 */
#ifndef SONDE_DEMO_LOADER_H
#define SONDE_DEMO_LOADER_H

#include <stdint.h>

#include "demo/dataset.h"
#include "demo/image.h"

enum { BATCH_SIZE = 32, QUEUE_SLOTS = 4 };

struct batch {
    float images[BATCH_SIZE][IMAGE_PIXELS];
    uint8_t labels[BATCH_SIZE];
};

struct loader;

/* Pictures first … first + count − 1 of `dataset`, which must outlive the loader. */
int loader_new(const struct dataset *dataset, unsigned first, unsigned count,
               uint64_t seed, struct loader **ret_loader);
/* Stops the thread; NULL is fine. */
void loader_free(struct loader *loader);
/* Waits for the next batch; it is the caller's until loader_done(). Negative when
 * reading failed. */
int loader_next(struct loader *loader, const struct batch **ret_batch);
void loader_done(struct loader *loader);

#endif
