// truth: none
// about: Lloyd's k-means on points in memory, nothing but arithmetic; no zones and no steps
// link: none
// flags: -O2
#include <float.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { POINTS = 120000, DIMENSIONS = 24, CLUSTERS = 48, ROUNDS = 110 };

static float points[POINTS][DIMENSIONS];
static float centres[CLUSTERS][DIMENSIONS];
static int owner[POINTS];

static unsigned long long seed = 88172645463325252ULL;

static float uniform(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (float)(seed >> 40) / (float)(1 << 24);
}

static float distance(const float *a, const float *b)
{
    float sum = 0;
    for (int d = 0; d < DIMENSIONS; d++)
        sum += (a[d] - b[d]) * (a[d] - b[d]);
    return sum;
}

static double assign(int *moved)
{
    double inertia = 0;
    *moved = 0;
    for (int i = 0; i < POINTS; i++) {
        float best = FLT_MAX;
        int nearest = 0;
        for (int k = 0; k < CLUSTERS; k++) {
            const float away = distance(points[i], centres[k]);
            if (away < best) {
                best = away;
                nearest = k;
            }
        }
        *moved += owner[i] != nearest;
        owner[i] = nearest;
        inertia += best;
    }
    return inertia;
}

static void update(void)
{
    static double sums[CLUSTERS][DIMENSIONS];
    static int members[CLUSTERS];
    memset(sums, 0, sizeof sums);
    memset(members, 0, sizeof members);
    for (int i = 0; i < POINTS; i++) {
        members[owner[i]]++;
        for (int d = 0; d < DIMENSIONS; d++)
            sums[owner[i]][d] += points[i][d];
    }
    for (int k = 0; k < CLUSTERS; k++)
        for (int d = 0; members[k] > 0 && d < DIMENSIONS; d++)
            centres[k][d] = (float)(sums[k][d] / members[k]);
}

int main(void)
{
    for (int i = 0; i < POINTS; i++)
        for (int d = 0; d < DIMENSIONS; d++)
            points[i][d] = uniform() + (float)(i % 7) * 0.1f;
    for (int k = 0; k < CLUSTERS; k++)
        memcpy(centres[k], points[k * (POINTS / CLUSTERS)], sizeof centres[k]);
    double inertia = 0;
    int moved = 1, round = 0;
    for (; round < ROUNDS && moved > 0; round++) {
        inertia = assign(&moved);
        update();
    }
    printf("%d rounds, inertia %.1f, %d moved in the last\n", round, inertia, moved);
    return 0;
}
