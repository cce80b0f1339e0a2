/* peaks.h: what this machine can do at best, measured: the roof of a roofline. */
#ifndef SONDE_MODEL_RUN_PEAKS_H
#define SONDE_MODEL_RUN_PEAKS_H

struct peaks {
    double flops_per_s; /* a large matrix product, the best of several */
    double bytes_per_s; /* triad a = b + s·c over arrays beyond the caches */
    int threads;        /* of the product; the triad uses as many */
};

/* Takes about `seconds`, half for each. −ENOMEM. */
int peaks_measure(double seconds, struct peaks *ret_peaks);

#endif
