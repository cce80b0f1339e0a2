#!/usr/bin/env python3
# truth: none
# about: a wave equation in plain numpy: time steps over arrays that fit the cache, in single precision and in place, no files, no model, no training steps to find
# needs: numpy
"""How long a clap rings in a concert hall: the sound field on a grid, stepped through time.

Second order finite differences, walls that swallow a little, a microphone in the gallery.
"""
import time

import numpy as np

ROWS, COLUMNS, TICKS = 240, 320, 45000


def hall():
    """Square of the Courant number everywhere, and what is left of the sound after one tick."""
    speed = np.full((ROWS, COLUMNS), 0.24, np.float32)
    left = np.ones((ROWS, COLUMNS), np.float32)
    for edge in range(6):
        left[edge], left[-1 - edge], left[:, edge], left[:, -1 - edge] = (0.97 + 0.005 * edge,) * 4
    left[150:160, 60:260] = 0.985
    left[:, 200:204] *= np.where(np.arange(ROWS)[:, None] % 12 < 2, 0.97, 1.0).astype(np.float32)
    return speed, left


def main():
    speed, left = hall()
    now = np.zeros((ROWS, COLUMNS), np.float32)
    before = np.zeros_like(now)
    bend = np.empty((ROWS - 2, COLUMNS - 2), np.float32)
    y, x = np.mgrid[0:ROWS, 0:COLUMNS]
    now += np.exp(-((y - 40) ** 2 + (x - 80) ** 2) / 18.0).astype(np.float32)
    before += now
    inner = (slice(1, -1), slice(1, -1))
    heard = np.zeros(TICKS, np.float32)
    begin = time.perf_counter()
    for tick in range(TICKS):
        centre, last = now[inner], before[inner]
        np.add(now[:-2, 1:-1], now[2:, 1:-1], out=bend)
        bend += now[1:-1, :-2]
        bend += now[1:-1, 2:]
        bend *= speed[inner]
        np.subtract(bend, last, out=last)
        np.multiply(centre, 2 - 4 * 0.24, out=bend)
        last += bend
        last *= left[inner]
        now, before = before, now
        heard[tick] = now[200, 290]
    seconds = time.perf_counter() - begin
    power = np.cumsum(heard[::-1].astype(np.float64) ** 2)[::-1]
    ring = int(np.argmax(power < power[0] * 1e-3)) if power[0] > 0 else 0
    print(f"down by 30 dB after {ring} ticks")
    print(f"{TICKS} ticks in {seconds:.2f} s, {1e6 * seconds / TICKS:.0f} us a tick")


if __name__ == "__main__":
    main()
