/* image.c: see image.h. Resampling averages TAPS × TAPS points of each pixel. */
#include "demo/image.h"

#include <math.h>

enum { TAPS = 4 };

/* Where a point of the small picture lies in the scan. */
struct placement {
    float cosine, sine; /* times scan pixels per image pixel */
    float row, column;  /* of the centre */
};

void image_normalise(const struct scan *scan, float ret_pixels[SCAN_PIXELS])
{
    uint64_t sum = 0, squares = 0;
    for (int i = 0; i < SCAN_PIXELS; i++) {
        sum += scan->pixels[i];
        squares += (uint64_t)scan->pixels[i] * scan->pixels[i];
    }
    const double mean = (double)sum / SCAN_PIXELS;
    const double variance = (double)squares / SCAN_PIXELS - mean * mean;
    const float scale = (float)(1.0 / sqrt(variance + 1e-3));
    for (int i = 0; i < SCAN_PIXELS; i++)
        ret_pixels[i] = ((float)scan->pixels[i] - (float)mean) * scale;
}

/* Linear between the four neighbours; the edge continues outwards. */
static float pixel_at(const float *pixels, float row, float column)
{
    row = fminf(fmaxf(row, 0), SCAN_SIDE - 1.001F);
    column = fminf(fmaxf(column, 0), SCAN_SIDE - 1.001F);
    const int r = (int)row, c = (int)column;
    const float fr = row - (float)r, fc = column - (float)c;
    const float *p = pixels + r * SCAN_SIDE + c;
    const float top = p[0] + (p[1] - p[0]) * fc;
    const float bottom = p[SCAN_SIDE] + (p[SCAN_SIDE + 1] - p[SCAN_SIDE]) * fc;
    return top + (bottom - top) * fr;
}

static float area_at(const float *pixels, const struct placement *place, int r, int c)
{
    float sum = 0;
    for (int i = 0; i < TAPS; i++) {
        for (int j = 0; j < TAPS; j++) {
            const float dr = (float)r + ((float)i + 0.5F) / TAPS - IMAGE_SIDE * 0.5F;
            const float dc = (float)c + ((float)j + 0.5F) / TAPS - IMAGE_SIDE * 0.5F;
            sum += pixel_at(pixels, place->row + place->cosine * dr - place->sine * dc,
                            place->column + place->sine * dr + place->cosine * dc);
        }
    }
    return sum / (TAPS * TAPS);
}

static void resample(const float *pixels, const struct placement *place, float *image)
{
    for (int r = 0; r < IMAGE_SIDE; r++)
        for (int c = 0; c < IMAGE_SIDE; c++)
            image[r * IMAGE_SIDE + c] = area_at(pixels, place, r, c);
}

void image_augment(const float pixels[SCAN_PIXELS], struct rng *rng,
                   float ret_image[IMAGE_PIXELS])
{
    const float angle = rng_uniform(rng, -0.2F, 0.2F);
    const float scale = (float)SCAN_SIDE / IMAGE_SIDE * rng_uniform(rng, 0.9F, 1.1F);
    const struct placement place = {
        .cosine = cosf(angle) * scale,
        .sine = sinf(angle) * scale,
        .row = SCAN_SIDE * 0.5F + rng_uniform(rng, -5, 5),
        .column = SCAN_SIDE * 0.5F + rng_uniform(rng, -5, 5),
    };
    resample(pixels, &place, ret_image);
    for (int i = 0; i < IMAGE_PIXELS; i++)
        ret_image[i] += 0.2F * rng_normal(rng);
}

void image_resize(const float pixels[SCAN_PIXELS], float ret_image[IMAGE_PIXELS])
{
    const struct placement place = {
        .cosine = (float)SCAN_SIDE / IMAGE_SIDE,
        .row = SCAN_SIDE * 0.5F,
        .column = SCAN_SIDE * 0.5F,
    };
    resample(pixels, &place, ret_image);
}
