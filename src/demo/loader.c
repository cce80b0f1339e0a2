/* loader.c: see loader.h.
 *
 * Invariants: (1) taken <= made <= taken + QUEUE_SLOTS
 *             (2) slot made % QUEUE_SLOTS belongs to the loader thread, the slots
 *                 from taken to made − 1 to the training loop.
 */
#include "demo/loader.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <sonde/sonde.h>

struct loader {
    const struct dataset *dataset;
    unsigned first, count;
    uint64_t seed;
    unsigned *order; /* this epoch's permutation; the loader thread's */

    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint64_t made, taken; /* batches, under `lock` like the rest below */
    bool stop;
    int error;
    struct batch slots[QUEUE_SLOTS];
};

static void order_shuffle(struct loader *loader, uint64_t epoch)
{
    struct rng rng = rng_for(loader->seed, 2, epoch);
    for (unsigned i = 0; i < loader->count; i++)
        loader->order[i] = loader->first + i;
    for (unsigned i = loader->count - 1; i > 0; i--) {
        const unsigned j = rng_below(&rng, i + 1);
        const unsigned kept = loader->order[i];
        loader->order[i] = loader->order[j];
        loader->order[j] = kept;
    }
}

/* One picture: read, normalise, augment. */
static int sample_prepare(const struct loader *loader, uint64_t epoch, unsigned index,
                          float *ret_image, uint8_t *ret_label)
{
    struct scan scan;
    float pixels[SCAN_PIXELS];
    int rc = 0;
    SONDE_ZONE_EX("read", SONDE_DATA_LOADING, "loader", NULL, NULL) {
        rc = dataset_read(loader->dataset, index, &scan);
    }
    if (rc < 0)
        return rc;
    SONDE_ZONE_EX("normalise", SONDE_PREPROCESSING, "loader", NULL, NULL) {
        image_normalise(&scan, pixels);
    }
    SONDE_ZONE_EX("augment", SONDE_AUGMENTATION, "loader", NULL, NULL) {
        struct rng rng = rng_for(loader->seed, 100 + epoch, index);
        image_augment(pixels, &rng, ret_image);
    }
    *ret_label = (uint8_t)scan.label;
    return 0;
}

static int batch_make(struct loader *loader, uint64_t epoch, unsigned start,
                      struct batch *batch)
{
    float images[BATCH_SIZE][IMAGE_PIXELS];
    uint8_t labels[BATCH_SIZE];
    for (unsigned i = 0; i < BATCH_SIZE; i++) {
        const unsigned index = loader->order[start + i];
        const int rc = sample_prepare(loader, epoch, index, images[i], &labels[i]);
        if (rc < 0)
            return rc;
    }
    SONDE_ZONE_EX("collate", SONDE_COLLATE, "loader", NULL, NULL) {
        memcpy(batch->images, images, sizeof images);
        memcpy(batch->labels, labels, sizeof labels);
    }
    return 0;
}

/* Waits for a free slot; NULL when the loader is to stop. */
static struct batch *slot_wait(struct loader *loader)
{
    struct batch *slot = NULL;
    SONDE_ZONE_EX("wait for space", SONDE_SYNC, "loader", NULL, NULL) {
        pthread_mutex_lock(&loader->lock);
        while (!loader->stop && loader->made - loader->taken == QUEUE_SLOTS)
            pthread_cond_wait(&loader->changed, &loader->lock);
        if (!loader->stop)
            slot = &loader->slots[loader->made % QUEUE_SLOTS];
        pthread_mutex_unlock(&loader->lock);
    }
    return slot;
}

static void slot_publish(struct loader *loader, int error)
{
    pthread_mutex_lock(&loader->lock);
    loader->error = error;
    if (error == 0)
        loader->made++;
    const uint64_t depth = loader->made - loader->taken;
    pthread_cond_broadcast(&loader->changed);
    pthread_mutex_unlock(&loader->lock);
    sonde_counter("queue depth", (double)depth);
}

static void *loader_main(void *arg)
{
    struct loader *loader = arg;
    sonde_thread_name("loader");
    for (uint64_t epoch = 0;; epoch++) {
        order_shuffle(loader, epoch);
        for (unsigned at = 0; at + BATCH_SIZE <= loader->count; at += BATCH_SIZE) {
            struct batch *slot = slot_wait(loader);
            if (!slot)
                return NULL;
            int rc = 0;
            SONDE_ZONE_EX("prepare batch", SONDE_DATA_LOADING, "loader", NULL, NULL) {
                rc = batch_make(loader, epoch, at, slot);
            }
            slot_publish(loader, rc);
            if (rc < 0)
                return NULL;
        }
    }
}

int loader_new(const struct dataset *dataset, unsigned first, unsigned count,
               uint64_t seed, struct loader **ret_loader)
{
    if (count < BATCH_SIZE || first + count > dataset->count)
        return -EINVAL;
    struct loader *loader = calloc(1, sizeof *loader);
    if (!loader)
        return -ENOMEM;
    loader->dataset = dataset;
    loader->first = first;
    loader->count = count;
    loader->seed = seed;
    pthread_mutex_init(&loader->lock, NULL);
    pthread_cond_init(&loader->changed, NULL);

    int rc = -ENOMEM;
    loader->order = calloc(count, sizeof *loader->order);
    if (loader->order)
        rc = -pthread_create(&loader->thread, NULL, loader_main, loader);
    if (rc < 0) {
        free(loader->order);
        free(loader);
        return rc;
    }
    *ret_loader = loader;
    return 0;
}

void loader_free(struct loader *loader)
{
    if (!loader)
        return;
    pthread_mutex_lock(&loader->lock);
    loader->stop = true;
    pthread_cond_broadcast(&loader->changed);
    pthread_mutex_unlock(&loader->lock);
    pthread_join(loader->thread, NULL);
    pthread_cond_destroy(&loader->changed);
    pthread_mutex_destroy(&loader->lock);
    free(loader->order);
    free(loader);
}

int loader_next(struct loader *loader, const struct batch **ret_batch)
{
    pthread_mutex_lock(&loader->lock);
    while (loader->made == loader->taken && loader->error == 0)
        pthread_cond_wait(&loader->changed, &loader->lock);
    const int rc = loader->made > loader->taken ? 0 : loader->error;
    if (rc == 0)
        *ret_batch = &loader->slots[loader->taken % QUEUE_SLOTS];
    pthread_mutex_unlock(&loader->lock);
    return rc;
}

void loader_done(struct loader *loader)
{
    pthread_mutex_lock(&loader->lock);
    loader->taken++;
    pthread_cond_broadcast(&loader->changed);
    pthread_mutex_unlock(&loader->lock);
}
