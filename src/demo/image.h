/* image.h: from a scan to the picture the net sees. */
#ifndef SONDE_DEMO_IMAGE_H
#define SONDE_DEMO_IMAGE_H

#include "demo/dataset.h"
#include "demo/random.h"

enum { IMAGE_SIDE = 24, IMAGE_PIXELS = IMAGE_SIDE * IMAGE_SIDE };

/* Bytes to floats of mean 0 and standard deviation 1. */
void image_normalise(const struct scan *scan, float ret_pixels[SCAN_PIXELS]);
/* Turned, scaled and shifted at random, then brought to the net's size. */
void image_augment(const float pixels[SCAN_PIXELS], struct rng *rng,
                   float ret_image[IMAGE_PIXELS]);
/* Brought to the net's size and nothing else: for held-out pictures. */
void image_resize(const float pixels[SCAN_PIXELS], float ret_image[IMAGE_PIXELS]);

#endif
