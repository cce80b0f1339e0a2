# truth: none
# about: subspace iteration over a matrix of recordings that lies in memory; large single-precision products and a small factorization, no steps of training
# needs: numpy
"""The main shapes of ground motion in a year of quarry blasts: leading singular vectors by subspace iteration."""
import sys
import time

import numpy as np

BLASTS, SAMPLES, SHAPES = 3000, 4000, 256
ROUNDS = int(sys.argv[1]) if len(sys.argv) > 1 else 75


def recordings(rng):
    t = np.linspace(0, 1, SAMPLES, dtype=np.float32)
    pulses = np.stack([np.exp(-k * t) * np.sin(40 * k * t) for k in np.linspace(1, 9, 30)]).astype(np.float32)
    weights = rng.standard_normal((BLASTS, 30), dtype=np.float32)
    motion = weights @ pulses
    motion += 0.1 * rng.standard_normal(motion.shape, dtype=np.float32)
    return motion


def leading(motion, rng, rounds):
    basis = rng.standard_normal((SAMPLES, SHAPES), dtype=np.float32)
    seen = np.empty((BLASTS, SHAPES), np.float32)
    overlap = np.empty((SHAPES, SHAPES), np.float32)
    for _ in range(rounds):
        np.matmul(motion, basis, out=seen)
        np.matmul(motion.T, seen, out=basis)
        np.matmul(basis.T, basis, out=overlap)
        scale = np.trace(overlap) / SHAPES
        lower = np.linalg.cholesky(overlap / scale + 1e-3 * np.eye(SHAPES, dtype=np.float32))
        basis[:] = basis @ (np.linalg.inv(lower).T / np.sqrt(scale)).astype(np.float32)
    return np.linalg.norm(motion @ basis, axis=0)


rng = np.random.default_rng(88)
motion = recordings(rng)
began, cpu = time.perf_counter(), time.process_time()
strength = leading(motion, rng, ROUNDS)
took = time.perf_counter() - began
print(f"strongest {np.sort(strength)[-3:].round(1)}; {1000 * took / ROUNDS:.1f} ms a round, {time.process_time() - cpu:.1f} s of CPU, {took:.2f} s")
