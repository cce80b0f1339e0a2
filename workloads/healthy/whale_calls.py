# truth: none
# about: prepares hydrophone recordings for later: spectra, bands, normalisation, all in whole arrays of float32, one process a core; there are no steps and nothing waits
# needs: numpy
"""Log-band spectrograms of whale calls, a shard a file, for a training that happens elsewhere."""
import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")   # a process a core: the products need no threads of their own

import multiprocessing
import tempfile

import numpy as np

RATE, WINDOW, HOP, BANDS = 4000, 512, 128, 48
SECONDS, SHARDS = 60, 48


def bands():
    """Triangles on a logarithmic axis from 20 Hz to 1800 Hz."""
    centres = np.geomspace(20, 1800, BANDS + 2)
    frequencies = np.fft.rfftfreq(WINDOW, 1 / RATE)
    up = (frequencies[:, None] - centres[:-2]) / (centres[1:-1] - centres[:-2])
    down = (centres[2:] - frequencies[:, None]) / (centres[2:] - centres[1:-1])
    return np.clip(np.minimum(up, down), 0, None).astype(np.float32)


def recording(seed):
    generator = np.random.default_rng(seed)
    sound = generator.standard_normal(RATE * SECONDS, dtype=np.float32)
    t = np.arange(RATE, dtype=np.float32) / RATE
    for start in generator.integers(0, RATE * (SECONDS - 1), 12):
        sound[start:start + RATE] += 2 * np.sin(2 * np.pi * (60 + 200 * t) * t)
    return sound


def prepare(task):
    folder, seed = task
    sound = recording(seed)
    frames = np.lib.stride_tricks.sliding_window_view(sound, WINDOW)[::HOP]
    hann, filters = np.hanning(WINDOW).astype(np.float32), bands()
    picture = np.empty((len(frames), BANDS), np.float32)
    for at in range(0, len(frames), 64):   # parts that stay in the cache
        spectrum = np.fft.rfft(frames[at:at + 64] * hann)
        power = (spectrum.real ** 2 + spectrum.imag ** 2).astype(np.float32)
        picture[at:at + 64] = power @ filters
    np.log1p(picture, out=picture)
    picture -= picture.mean(0)
    picture /= picture.std(0) + 1e-5
    np.save(os.path.join(folder, f"shard_{seed:03d}.npy"), picture)
    return float(picture.max())


def main():
    with tempfile.TemporaryDirectory() as folder:
        with multiprocessing.Pool(len(os.sched_getaffinity(0))) as pool:
            loudest = pool.map(prepare, [(folder, seed) for seed in range(SHARDS * 4)], chunksize=4)
        size = sum(entry.stat().st_size for entry in os.scandir(folder))
    print(f"{len(loudest)} shards, {size >> 20} MB, loudest {max(loudest):.2f}")


if __name__ == "__main__":
    main()
