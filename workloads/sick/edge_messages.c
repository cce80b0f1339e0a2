// truth: allocation_churn
// about: a graph network allocates its edge messages and their gradients (some 130 MB in all) anew in every step and frees them, so every page is faulted in and zeroed again
// cure: --keep
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sonde/sonde.h>

enum { NODES = 1500, EDGES = 170000, WIDTH = 64, STEPS = 60 };

typedef struct {
    float *messages;   // EDGES x WIDTH
    float *gates;      // EDGES x WIDTH
    float *d_messages; // EDGES x WIDTH
} scratch;

static float nodes[NODES][WIDTH], sums[NODES][WIDTH], targets[NODES][WIDTH],
    d_sums[NODES][WIDTH];
static float weight[WIDTH], gradient[WIDTH];
static int from[EDGES], to[EDGES];
static unsigned long state = 88172645463325252UL;

static unsigned next_random(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (unsigned)(state >> 32);
}

static float *edge_buffer(void)
{
    float *p = malloc((size_t)EDGES * WIDTH * sizeof *p);
    if (!p)
        abort();
    return p;
}

static void scratch_make(scratch *s)
{
    s->messages = edge_buffer();
    s->gates = edge_buffer();
    s->d_messages = edge_buffer();
}

static void scratch_drop(scratch *s)
{
    free(s->messages);
    free(s->gates);
    free(s->d_messages);
}

static float forward(scratch *s)
{
    float loss = 0;
    memset(sums, 0, sizeof sums);
    for (int e = 0; e < EDGES; e++) {
        const float *x = nodes[from[e]];
        float *m = s->messages + (size_t)e * WIDTH, *g = s->gates + (size_t)e * WIDTH,
              *out = sums[to[e]];
        for (int k = 0; k < WIDTH; k++) {
            g[k] = x[k] * weight[k] > 0 ? 1.0f : 0.1f;
            m[k] = x[k] * weight[k] * g[k];
            out[k] += m[k];
        }
    }
    for (int n = 0; n < NODES; n++)
        for (int k = 0; k < WIDTH; k++) {
            d_sums[n][k] = sums[n][k] / 100 - targets[n][k];
            loss += d_sums[n][k] * d_sums[n][k];
        }
    return loss / (NODES * WIDTH);
}

static void backward(scratch *s)
{
    memset(gradient, 0, sizeof gradient);
    for (int e = 0; e < EDGES; e++) {
        const float *g = s->gates + (size_t)e * WIDTH, *d = d_sums[to[e]],
                    *x = nodes[from[e]];
        float *dm = s->d_messages + (size_t)e * WIDTH;
        for (int k = 0; k < WIDTH; k++) {
            dm[k] = d[k] * g[k];
            gradient[k] += dm[k] * x[k];
        }
    }
}

static void update(void)
{
    for (int k = 0; k < WIDTH; k++)
        weight[k] -= 1e-3f * gradient[k] / NODES;
}

int main(int argc, char **argv)
{
    const int keep = argc > 1 && strcmp(argv[1], "--keep") == 0;
    scratch s = { 0 };
    float loss = 0;
    for (int n = 0; n < NODES; n++)
        for (int k = 0; k < WIDTH; k++) {
            nodes[n][k] = (float)(next_random() % 2000) / 1000.0f - 1.0f;
            targets[n][k] = nodes[n][k] * 0.5f;
        }
    for (int e = 0; e < EDGES; e++) {
        from[e] = (int)(next_random() % NODES);
        to[e] = (int)(next_random() % NODES);
    }
    for (int k = 0; k < WIDTH; k++)
        weight[k] = 0.5f;
    if (keep)
        scratch_make(&s);
    for (int step = 0; step < STEPS; step++) {
        sonde_step();
        if (!keep)
            scratch_make(&s);
        SONDE_ZONE("messages", SONDE_FORWARD) {
            loss = forward(&s);
        }
        SONDE_ZONE("gradients", SONDE_BACKWARD) {
            backward(&s);
        }
        SONDE_ZONE("sgd", SONDE_OPTIMIZER) {
            update();
        }
        if (!keep)
            scratch_drop(&s);
    }
    if (keep)
        scratch_drop(&s);
    printf("%g\n", (double)loss);
    return 0;
}
