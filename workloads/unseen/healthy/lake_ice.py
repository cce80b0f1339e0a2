# truth: none
# about: heat through a lake's ice on a grid, in numpy with buffers made once and used in place; bound by arithmetic, no training
# needs: numpy
"""Thickness of ice on a lake over a winter: conduction sideways, freezing below.

Explicit steps of an hour on a 432 x 432 grid. All arrays are made once.
"""
import numpy as np

N = 432
HOURS = 24 * 150
SPREAD, MELT, GROW = 0.12, 0.004, 0.011


def shore(n):
    y, x = np.mgrid[:n, :n] / n - 0.5
    return (x ** 2 / 0.2 + y ** 2 / 0.14 + 0.05 * np.sin(9 * x) < 1).astype(np.float64)


def winter(hours, seed):
    rng = np.random.default_rng(seed)
    day = np.arange(hours) / 24.0
    season = -14.0 * np.sin(np.pi * day / day[-1])
    return season + 5.0 * np.sin(2 * np.pi * day) + rng.normal(0, 1.5, hours)


def simulate():
    lake = shore(N)
    inside = lake[1:-1, 1:-1]
    temp = np.zeros((N, N))
    ice = np.full((N, N), 0.02)
    flow = np.empty((N - 2, N - 2))
    part = np.empty_like(flow)
    for hour, air in enumerate(winter(HOURS, seed=77)):
        np.add(temp[:-2, 1:-1], temp[2:, 1:-1], out=flow)
        flow += temp[1:-1, :-2]
        flow += temp[1:-1, 2:]
        np.multiply(temp[1:-1, 1:-1], 4.0, out=part)
        flow -= part
        flow *= SPREAD
        np.subtract(air, temp[1:-1, 1:-1], out=part)
        part *= 0.05
        flow += part
        temp[1:-1, 1:-1] += flow
        core = ice[1:-1, 1:-1]
        np.negative(temp[1:-1, 1:-1], out=part)
        np.multiply(part, GROW * 0.01, out=flow)
        np.divide(flow, core, out=flow)
        np.exp(part, out=part)
        np.minimum(part, 1.0, out=part)
        part -= 1.0
        part *= MELT
        flow += part
        core += flow
        core *= inside
        np.maximum(core, 0.01, out=core)
        if hour % (24 * 30) == 0:
            print(f"day {hour // 24:3d}  air {air:6.1f}  ice {ice[lake > 0].mean():.3f} m")
    return ice[lake > 0]


if __name__ == "__main__":
    left = simulate()
    print(f"spring: {left.mean():.3f} m, thickest {left.max():.3f} m")
