# truth: none
# about: numpy alone: non-negative factors of a fresco's spectra by multiplicative updates, in float32, all buffers made once; nearly all of it is large matrix products
# needs: numpy
"""Which pigments are on the fresco? Factors the spectra of its pixels, pixels x bands = amounts x pigments."""
import time

import numpy as np

PIXELS, BANDS, PIGMENTS, ROUNDS = 12_000, 384, 96, 220


def scan(seed):
    rng = np.random.default_rng(seed)
    pigments = rng.random((PIGMENTS, BANDS), dtype=np.float32) ** 3
    amounts = rng.random((PIXELS, PIGMENTS), dtype=np.float32) ** 6
    spectra = amounts @ pigments
    spectra += np.float32(0.01) * rng.random(spectra.shape, dtype=np.float32)
    return spectra


def main():
    spectra = scan(17)
    rng = np.random.default_rng(18)
    amounts = rng.random((PIXELS, PIGMENTS), dtype=np.float32) + np.float32(0.1)
    pigments = rng.random((PIGMENTS, BANDS), dtype=np.float32) + np.float32(0.1)
    up_a, down_a = np.empty_like(amounts), np.empty_like(amounts)
    up_p, down_p = np.empty_like(pigments), np.empty_like(pigments)
    gram = np.empty((PIGMENTS, PIGMENTS), np.float32)
    tiny = np.float32(1e-9)
    norm = float(np.vdot(spectra, spectra))
    began = time.perf_counter()
    for turn in range(ROUNDS):
        np.matmul(amounts.T, spectra, out=up_p)
        np.matmul(amounts.T, amounts, out=gram)
        np.matmul(gram, pigments, out=down_p)
        down_p += tiny
        up_p /= down_p
        pigments *= up_p
        np.matmul(spectra, pigments.T, out=up_a)
        np.matmul(pigments, pigments.T, out=gram)
        np.matmul(amounts, gram, out=down_a)
        if turn % 55 == 54:
            # |V - WH|^2 from what is at hand
            left = norm - 2 * float(np.vdot(amounts, up_a)) + float(np.vdot(amounts, down_a))
            print(f"round {turn + 1} unexplained {100 * left / norm:.3f} %")
        down_a += tiny
        up_a /= down_a
        amounts *= up_a
    took = time.perf_counter() - began
    print(f"{ROUNDS} rounds, {1000 * took / ROUNDS:.1f} ms a round")


if __name__ == "__main__":
    main()
