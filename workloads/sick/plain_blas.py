# truth: slow_blas
# about: numpy multiplies its matrices with the reference BLAS, as on a machine where nobody installed a better one
# sickenv: LD_LIBRARY_PATH={blas}
# cure: --as-it-is
# gain: run
# needs: numpy openblas reference-blas
import numpy as np


def main():
    rng = np.random.default_rng(0)
    weights = rng.standard_normal((512, 512), dtype=np.float32) / 23
    x = rng.standard_normal((256, 512), dtype=np.float32)
    for _ in range(60):
        hidden = np.maximum(x @ weights, 0)
        error = hidden @ weights.T - x
        weights -= 1e-4 * (x.T @ error)
    print(float(np.square(error).mean()))


if __name__ == "__main__":
    main()
