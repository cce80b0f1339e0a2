// truth: none
// about: a C program that multiplies matrices, with steps and phases, and does nothing else
#include <stdio.h>
#include <stdlib.h>

#include <sonde/sonde.h>

enum { N = 160, STEPS = 400 };

static float a[N][N], b[N][N], c[N][N];

static void multiply(float x[N][N], float y[N][N], float out[N][N])
{
    for (int i = 0; i < N; i++)
        for (int k = 0; k < N; k++) {
            const float f = x[i][k];
            for (int j = 0; j < N; j++)
                out[i][j] = out[i][j] * 0.5f + f * y[k][j];
        }
}

int main(void)
{
    srand(1);
    for (int i = 0; i < N * N; i++) {
        (&a[0][0])[i] = (float)rand() / (float)RAND_MAX;
        (&b[0][0])[i] = (float)rand() / (float)RAND_MAX;
    }
    for (int step = 0; step < STEPS; step++) {
        sonde_step();
        SONDE_ZONE("forward", SONDE_FORWARD) {
            multiply(a, b, c);
        }
        SONDE_ZONE("backward", SONDE_BACKWARD) {
            multiply(c, b, a);
            multiply(a, c, b);
        }
    }
    printf("%g\n", (double)c[3][5]);
    return 0;
}
