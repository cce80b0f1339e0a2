/* kernels.c: see kernels.h. */
#include "model/ref/kernels.h"

#include <math.h>
#include <string.h>

#include "model/ref/fast.h"

FAST void kernel_fill(float *y, float value, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] = value;
}

FAST void kernel_add(float *restrict y, const float *restrict x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] += x[i];
}

FAST void kernel_sum(float *restrict y, const float *a, const float *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] = a[i] + b[i];
}

FAST void kernel_add_scaled(float *restrict y, const float *restrict x, float factor,
                            size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] += factor * x[i];
}

FAST void kernel_scale(float *y, float factor, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] *= factor;
}

FAST void kernel_triad(float *restrict a, const float *restrict b,
                       const float *restrict c, float s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        a[i] = b[i] + s * c[i];
}

void kernel_bias(float *y, const float *bias, size_t rows, size_t columns)
{
    for (size_t r = 0; r < rows; r++)
        memcpy(y + r * columns, bias, columns * sizeof *y);
}

FAST void kernel_bias_grad(float *restrict dbias, const float *restrict dy, size_t rows,
                           size_t columns)
{
    for (size_t r = 0; r < rows; r++)
        for (size_t c = 0; c < columns; c++)
            dbias[c] += dy[r * columns + c];
}

/* ---- Activations ------------------------------------------------------------------- */

INLINE float fast_tanh(float x)
{
    const float e = fast_exp(2 * (x > 15 ? 15 : x < -15 ? -15 : x));
    return (e - 1) / (e + 1);
}

/* Φ(x), the normal distribution, within 1e-7 (Abramowitz & Stegun 7.1.26). */
INLINE float normal_cdf(float x, float density_exp)
{
    const float z = fabsf(x) * 0.70710678F;
    const float t = 1 / (1 + 0.3275911F * z);
    float p = 1.061405429F;
    p = p * t - 1.453152027F;
    p = p * t + 1.421413741F;
    p = p * t - 0.284496736F;
    p = p * t + 0.254829592F;
    const float tail = 0.5F * p * t * density_exp; /* 1 − Φ(|x|) */
    return x < 0 ? tail : 1 - tail;
}

FAST void kernel_relu(float *y, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] = y[i] > 0 ? y[i] : 0;
}

FAST void kernel_relu_grad(float *restrict dy, const float *restrict y, size_t n)
{
    for (size_t i = 0; i < n; i++)
        dy[i] = y[i] > 0 ? dy[i] : 0;
}

static const float TANH_SCALE = 0.7978845608F, TANH_CUBIC = 0.044715F;

FAST static void gelu_exact(float *restrict y, const float *restrict x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] = x[i] * normal_cdf(x[i], fast_exp(-0.5F * x[i] * x[i]));
}

FAST static void gelu_tanh(float *restrict y, const float *restrict x, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const float u = TANH_SCALE * (x[i] + TANH_CUBIC * x[i] * x[i] * x[i]);
        y[i] = 0.5F * x[i] * (1 + fast_tanh(u));
    }
}

FAST static void gelu_exact_grad(float *dx, const float *dy, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const float e = fast_exp(-0.5F * x[i] * x[i]);
        dx[i] = dy[i] * (normal_cdf(x[i], e) + x[i] * 0.3989422804F * e);
    }
}

FAST static void gelu_tanh_grad(float *dx, const float *dy, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const float square = x[i] * x[i];
        const float t = fast_tanh(TANH_SCALE * x[i] * (1 + TANH_CUBIC * square));
        const float slope = TANH_SCALE * (1 + 3 * TANH_CUBIC * square);
        dx[i] = dy[i] * (0.5F * (1 + t) + 0.5F * x[i] * (1 - t * t) * slope);
    }
}

void kernel_gelu(float *y, const float *x, size_t n, bool tanh_form)
{
    (tanh_form ? gelu_tanh : gelu_exact)(y, x, n);
}

void kernel_gelu_grad(float *dx, const float *dy, const float *x, size_t n,
                      bool tanh_form)
{
    (tanh_form ? gelu_tanh_grad : gelu_exact_grad)(dx, dy, x, n);
}

/* ---- Layer norm --------------------------------------------------------------------- */

static const float NORM_EPSILON = 1e-5F;

FAST void kernel_norm(float *restrict y, const float *restrict x, const float *gain,
                      const float *bias, float *ret_mean, float *ret_rstd, size_t rows,
                      size_t columns)
{
    for (size_t r = 0; r < rows; r++, x += columns, y += columns) {
        float sum = 0, squares = 0;
        for (size_t c = 0; c < columns; c++)
            sum += x[c];
        const float mean = sum / (float)columns;
        for (size_t c = 0; c < columns; c++)
            squares += (x[c] - mean) * (x[c] - mean);
        const float rstd = 1 / sqrtf(squares / (float)columns + NORM_EPSILON);
        for (size_t c = 0; c < columns; c++)
            y[c] = (x[c] - mean) * rstd * gain[c] + bias[c];
        ret_mean[r] = mean;
        ret_rstd[r] = rstd;
    }
}

/* With x̂ = (x − mean) · rstd and g = dy · gain:
 * dx = rstd · (g − mean(g) − x̂ · mean(g · x̂)). */
FAST void kernel_norm_grad(float *dx, float *restrict dgain, float *restrict dbias,
                           const float *dy, const float *x, const float *gain,
                           const float *mean, const float *rstd, size_t rows,
                           size_t columns)
{
    for (size_t r = 0; r < rows; r++, x += columns, dy += columns, dx += columns) {
        float sum = 0, dot = 0;
        for (size_t c = 0; c < columns; c++) {
            const float hat = (x[c] - mean[r]) * rstd[r], g = dy[c] * gain[c];
            sum += g;
            dot += g * hat;
            dgain[c] += dy[c] * hat;
            dbias[c] += dy[c];
        }
        sum /= (float)columns;
        dot /= (float)columns;
        for (size_t c = 0; c < columns; c++) {
            const float hat = (x[c] - mean[r]) * rstd[r];
            dx[c] = rstd[r] * (dy[c] * gain[c] - sum - hat * dot);
        }
    }
}

/* ---- Softmax ------------------------------------------------------------------------ */

FAST void kernel_softmax(float *s, size_t rows, size_t columns, bool causal)
{
    for (size_t r = 0; r < rows; r++, s += columns) {
        const size_t seen = causal && r + 1 < columns ? r + 1 : columns;
        float top = s[0], sum = 0;
        for (size_t c = 0; c < seen; c++)
            top = s[c] > top ? s[c] : top;
        for (size_t c = 0; c < seen; c++) {
            const float e = fast_exp(s[c] - top);
            s[c] = e;
            sum += e;
        }
        const float scale = 1 / sum;
        for (size_t c = 0; c < seen; c++)
            s[c] *= scale;
        for (size_t c = seen; c < columns; c++)
            s[c] = 0;
    }
}

/* ds = p · (dp − Σ dp · p); where p is 0, masked, so is ds. */
FAST void kernel_softmax_grad(float *restrict dp, const float *restrict p, size_t rows,
                              size_t columns)
{
    for (size_t r = 0; r < rows; r++, dp += columns, p += columns) {
        float dot = 0;
        for (size_t c = 0; c < columns; c++)
            dot += dp[c] * p[c];
        for (size_t c = 0; c < columns; c++)
            dp[c] = p[c] * (dp[c] - dot);
    }
}

/* ---- Dropout and the optimizer -------------------------------------------------------- */

/* 32 well-mixed bits of a counter (Wellons' lowbias32). */
INLINE uint32_t mixed(uint32_t x)
{
    x ^= x >> 16;
    x *= 0x21f0aaadU;
    x ^= x >> 15;
    x *= 0xd35a2d97U;
    x ^= x >> 15;
    return x;
}

FAST void kernel_dropout(float *y, size_t n, float rate, uint64_t seed)
{
    const uint32_t low = (uint32_t)seed, high = (uint32_t)(seed >> 32);
    const uint32_t limit = (uint32_t)((double)rate * 4294967296.0);
    const float keep = 1 / (1 - rate);
    for (size_t i = 0; i < n; i++) {
        const uint32_t drawn = mixed(mixed((uint32_t)i ^ low) + high);
        y[i] = drawn < limit ? 0 : y[i] * keep;
    }
}

FAST void kernel_adamw(float *restrict value, const float *restrict grad,
                       float *restrict moment1, float *restrict moment2, size_t n,
                       const struct adamw *rule)
{
    const struct adamw r = *rule;
    const float step = r.rate / r.correct1, root = 1 / sqrtf(r.correct2);
    for (size_t i = 0; i < n; i++) {
        const float g = grad[i];
        const float m = moment1[i] + (1 - r.beta1) * (g - moment1[i]);
        const float v = r.beta2 * moment2[i] + (1 - r.beta2) * g * g;
        moment1[i] = m;
        moment2[i] = v;
        value[i] -= r.rate * r.decay * value[i];
        value[i] -= step * m / (sqrtf(v) * root + r.epsilon);
    }
}
