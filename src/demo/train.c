/* train.c: see train.h. Read train_epoch() first: it is the loop all else serves. */
#include "demo/train.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sonde/sonde.h>

#include "demo/dataset.h"
#include "demo/image.h"
#include "demo/loader.h"
#include "demo/net.h"
#include "demo/optimizer.h"
#include "demo/scratch.h"

static const double peak_rate = 2e-3, clip_limit = 1.0;
static const float weight_decay = 1e-2F;
enum { WARMUP_STEPS = 50, DEFAULT_EPOCHS = 10 };

struct trainer {
    struct train_options options;
    const char *data_path, *checkpoint_path, *partial_path;
    struct dataset dataset;
    struct net net;
    struct adamw adamw;
    struct loader *loader;
    unsigned step;
};

__attribute__((format(printf, 2, 3))) static void say(const struct trainer *trainer,
                                                      const char *format, ...)
{
    if (!trainer->options.log)
        return;
    va_list args;
    va_start(args, format);
    (void)vfprintf(trainer->options.log, format, args);
    va_end(args);
    (void)fflush(trainer->options.log);
}

/* ---- Setting up ------------------------------------------------------------ */

static unsigned epoch_steps(const struct trainer *trainer)
{
    return trainer->options.pictures / BATCH_SIZE;
}

static void describe(const struct trainer *trainer)
{
    char number[32];
    (void)snprintf(number, sizeof number, "%" PRIu64, trainer->options.seed);
    sonde_param("seed", number);
    (void)snprintf(number, sizeof number, "%d", BATCH_SIZE);
    sonde_param("batch", number);
    (void)snprintf(number, sizeof number, "%g", peak_rate);
    sonde_param("learning_rate", number);
    (void)snprintf(number, sizeof number, "%zu", trainer->net.count);
    sonde_param("parameters", number);
    sonde_tag("program", "sonde demo");
    sonde_tag("task", "digits");
}

/* Draws the pictures. An operation: the report shows its memory and CPU time. */
static int pictures_prepare(struct trainer *trainer)
{
    struct sonde_operation op;
    sonde_operation_begin(&op, "draw pictures", SONDE_OTHER, "data", NULL);
    const unsigned count = trainer->options.pictures + trainer->options.held_out;
    int rc = dataset_generate(trainer->data_path, trainer->options.seed, count);
    if (rc == 0)
        rc = dataset_open(trainer->data_path, &trainer->dataset);
    sonde_operation_value(&op, "pictures", count);
    sonde_operation_end(&op);
    return rc;
}

static int model_create(struct trainer *trainer)
{
    int rc = 0;
    SONDE_ZONE("create model", SONDE_MODEL_CREATION) {
        rc = net_init(&trainer->net, BATCH_SIZE, trainer->options.seed);
        if (rc == 0)
            rc = adamw_init(&trainer->adamw, trainer->net.count, weight_decay);
    }
    return rc;
}

static int trainer_init(struct trainer *trainer)
{
    trainer->data_path = scratch_file("pictures.bin");
    trainer->checkpoint_path = scratch_file("checkpoint.bin");
    trainer->partial_path = scratch_file("checkpoint.part");
    if (!trainer->partial_path)
        return -ENAMETOOLONG;
    int rc = pictures_prepare(trainer);
    if (rc == 0)
        rc = model_create(trainer);
    if (rc == 0)
        rc = loader_new(&trainer->dataset, 0, trainer->options.pictures,
                        trainer->options.seed, &trainer->loader);
    return rc;
}

static void trainer_release(struct trainer *trainer)
{
    loader_free(trainer->loader);
    adamw_release(&trainer->adamw);
    net_release(&trainer->net);
    dataset_close(&trainer->dataset);
}

/* ---- Training --------------------------------------------------------------- */

/* Rises over the first steps, then falls along half a cosine. */
static double learning_rate(const struct trainer *trainer)
{
    if (trainer->step < WARMUP_STEPS)
        return peak_rate * (trainer->step + 1) / WARMUP_STEPS;
    const double done = (double)trainer->step / trainer->options.steps;
    return peak_rate * (0.05 + 0.95 * 0.5 * (1 + cos(done * 3.14159265358979)));
}

static int batch_wait(struct trainer *trainer, const struct batch **ret_batch)
{
    int rc = 0;
    SONDE_ZONE("wait for batch", SONDE_DATA_LOADING) {
        rc = loader_next(trainer->loader, ret_batch);
    }
    return rc;
}

static void parameters_update(struct trainer *trainer)
{
    struct net *net = &trainer->net;
    SONDE_ZONE("clip gradients", SONDE_GRADIENT) {
        sonde_value("norm", gradients_clip(net->gradients, net->count, clip_limit));
    }
    SONDE_ZONE("adamw", SONDE_OPTIMIZER) {
        const double rate = learning_rate(trainer);
        sonde_counter("learning rate", rate);
        adamw_step(&trainer->adamw, net->parameters, net->gradients, (float)rate);
    }
}

static int train_step(struct trainer *trainer, double *ret_loss)
{
    const struct batch *batch = NULL;
    sonde_step_samples(BATCH_SIZE);
    const int rc = batch_wait(trainer, &batch);
    if (rc < 0)
        return rc;
    SONDE_ZONE("forward", SONDE_FORWARD) {
        net_forward(&trainer->net, batch->images[0], BATCH_SIZE);
        *ret_loss = net_loss(&trainer->net, batch->labels, BATCH_SIZE);
    }
    SONDE_ZONE("backward", SONDE_BACKWARD) {
        net_backward(&trainer->net, BATCH_SIZE);
    }
    parameters_update(trainer);
    loader_done(trainer->loader);
    sonde_metric("loss", *ret_loss);
    trainer->step++;
    return 0;
}

/* ---- Evaluation and checkpoint ---------------------------------------------- */

static int held_out_batch(const struct trainer *trainer, unsigned start, unsigned count,
                          struct batch *batch)
{
    struct scan scan;
    float pixels[SCAN_PIXELS];
    for (unsigned i = 0; i < count; i++) {
        const unsigned index = trainer->options.pictures + start + i;
        const int rc = dataset_read(&trainer->dataset, index, &scan);
        if (rc < 0)
            return rc;
        image_normalise(&scan, pixels);
        image_resize(pixels, batch->images[i]);
        batch->labels[i] = (uint8_t)scan.label;
    }
    return 0;
}

static int evaluate(struct trainer *trainer, double *ret_accuracy)
{
    struct batch batch;
    size_t correct = 0;
    const unsigned total = trainer->options.held_out;
    for (unsigned at = 0; at < total; at += BATCH_SIZE) {
        const unsigned count = total - at < BATCH_SIZE ? total - at : BATCH_SIZE;
        int rc = 0;
        SONDE_ZONE("load held-out", SONDE_EVALUATION) {
            rc = held_out_batch(trainer, at, count, &batch);
        }
        if (rc < 0)
            return rc;
        SONDE_ZONE("predict", SONDE_EVALUATION) {
            net_forward(&trainer->net, batch.images[0], count);
            correct += net_correct(&trainer->net, batch.labels, count);
        }
    }
    *ret_accuracy = (double)correct / total;
    return 0;
}

/* Written beside, then renamed: a checkpoint is old or new, never half. */
static int checkpoint_write(const struct trainer *trainer)
{
    int rc = 0;
    const struct net *net = &trainer->net;
    FILE *file = fopen(trainer->partial_path, "wbe");
    if (!file)
        return -errno;
    if (fwrite(net->parameters, sizeof(float), net->count, file) != net->count ||
        fwrite(trainer->adamw.mean, sizeof(float), net->count, file) != net->count ||
        fwrite(trainer->adamw.square, sizeof(float), net->count, file) != net->count)
        rc = -EIO;
    if (fclose(file) != 0 && rc == 0)
        rc = -errno;
    if (rc == 0 && rename(trainer->partial_path, trainer->checkpoint_path) < 0)
        rc = -errno;
    return rc;
}

static int epoch_end(struct trainer *trainer, struct train_result *result)
{
    int rc = 0;
    SONDE_ZONE("evaluate", SONDE_EVALUATION) {
        rc = evaluate(trainer, &result->accuracy);
        sonde_value("pictures", trainer->options.held_out);
    }
    if (rc < 0)
        return rc;
    sonde_metric("accuracy", result->accuracy);
    SONDE_ZONE("checkpoint", SONDE_CHECKPOINT) {
        rc = checkpoint_write(trainer);
    }
    return rc;
}

/* ---- The loop --------------------------------------------------------------- */

static int train_epoch(struct trainer *trainer, struct train_result *result)
{
    char mark[32];
    (void)snprintf(mark, sizeof mark, "epoch %u", result->epochs + 1);
    sonde_mark(mark);

    double sum = 0;
    unsigned steps = 0;
    while (steps < epoch_steps(trainer) && trainer->step < trainer->options.steps) {
        double loss = 0;
        const int rc = train_step(trainer, &loss);
        if (rc < 0)
            return rc;
        sum += loss;
        steps++;
    }
    result->last_loss = sum / steps;
    if (result->epochs == 0)
        result->first_loss = result->last_loss;
    result->epochs++;
    const int rc = epoch_end(trainer, result);
    if (rc == 0)
        say(trainer, "epoch %2u   loss %.4f   accuracy %5.1f %%\n", result->epochs,
            result->last_loss, 100 * result->accuracy);
    return rc;
}

/* FNV-1a over the bytes of all parameters. */
static uint64_t net_checksum(const struct net *net)
{
    uint64_t hash = 0xcbf29ce484222325ULL;
    const unsigned char *bytes = (const unsigned char *)net->parameters;
    for (size_t i = 0; i < net->count * sizeof(float); i++)
        hash = (hash ^ bytes[i]) * 0x100000001b3ULL;
    return hash;
}

static void options_default(struct train_options *options)
{
    if (options->seed == 0)
        options->seed = 1;
    if (options->pictures == 0)
        options->pictures = 6000;
    if (options->held_out == 0)
        options->held_out = 1000;
    if (options->steps == 0)
        options->steps = DEFAULT_EPOCHS * (options->pictures / BATCH_SIZE);
}

int train_run(const struct train_options *options, struct train_result *ret_result)
{
    struct trainer trainer = { .options = *options, .dataset.fd = -1 };
    struct train_result result = { 0 };
    options_default(&trainer.options);
    if (trainer.options.pictures < BATCH_SIZE)
        return -EINVAL;
    int rc = scratch_open();
    if (rc < 0)
        return rc;
    rc = trainer_init(&trainer);
    if (rc < 0)
        goto done;
    describe(&trainer);
    say(&trainer, "%u pictures, %u held out, %zu parameters, %u steps of %d\n",
        trainer.options.pictures, trainer.options.held_out, trainer.net.count,
        trainer.options.steps, BATCH_SIZE);
    while (rc == 0 && trainer.step < trainer.options.steps)
        rc = train_epoch(&trainer, &result);
    if (rc < 0)
        goto done;

    result.steps = trainer.step;
    result.checksum = net_checksum(&trainer.net);
    say(&trainer,
        "loss %.4f → %.4f, accuracy %.1f %% (chance 10 %%), checksum %016" PRIx64 "\n",
        result.first_loss, result.last_loss, 100 * result.accuracy, result.checksum);
    *ret_result = result;
done:
    trainer_release(&trainer);
    scratch_close();
    return rc;
}
