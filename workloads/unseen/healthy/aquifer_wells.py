# truth: none
# about: kriging of a water table without steps: one covariance matrix, one Cholesky factor, predictions by blocks; float64 is needed (in float32 the factor fails), and BLAS and LAPACK have all the time
# needs: numpy
"""Water table between the wells: simple kriging with a Gaussian covariance, and its variance on a grid."""
import numpy as np

WELLS, RANGE, SILL, NUGGET = 2600, 0.11, 4.0, 1e-7


def measured(rng):
    at = rng.random((WELLS, 2))
    head = 40 + 3 * np.sin(5 * at[:, 0]) + 2 * np.cos(7 * at[:, 1]) + at[:, 0] * at[:, 1]
    return at, head


def covariance(a, b):
    d2 = a @ b.T
    d2 *= -2
    d2 += (a * a).sum(1)[:, None]
    d2 += (b * b).sum(1)[None]
    np.maximum(d2, 0, out=d2)
    d2 *= -1 / RANGE ** 2
    np.exp(d2, out=d2)
    d2 *= SILL
    return d2


def main():
    rng = np.random.default_rng(1856)
    at, head = measured(rng)
    k = covariance(at, at)
    k[np.diag_indices(WELLS)] += NUGGET
    factor = np.linalg.cholesky(k)
    whiten = np.linalg.inv(factor)
    weights = whiten.T @ (whiten @ (head - head.mean()))
    side = np.linspace(0.02, 0.98, 64)
    grid = np.stack(np.meshgrid(side, side), -1).reshape(-1, 2)
    table, sigma = np.empty(len(grid)), np.empty(len(grid))
    for block in np.array_split(np.arange(len(grid)), 8):
        c = covariance(at, grid[block])
        table[block] = head.mean() + c.T @ weights
        w = whiten @ c
        sigma[block] = np.sqrt(np.maximum(SILL - np.einsum("ij,ij->j", w, w), 0))
    true = 40 + 3 * np.sin(5 * grid[:, 0]) + 2 * np.cos(7 * grid[:, 1]) + grid[:, 0] * grid[:, 1]
    print(f"{WELLS} wells, {len(grid)} points: rmse {np.sqrt(np.mean((table - true) ** 2)):.5f} m, "
          f"largest sigma {sigma.max():.4f} m")


if __name__ == "__main__":
    main()
