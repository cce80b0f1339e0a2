# truth: none
# about: numpy alone and no training loop: spectra of hammer blows, their principal axes, and the nearest neighbours of each blow by blocks of matrix products
# needs: numpy
"""Can a smith's anvil be known by its ring? Leave-one-out test on recorded blows."""
import numpy as np

ANVILS = 25
RATE = 8000


def blows(count, samples, rng):
    anvil = rng.integers(0, ANVILS, count)
    partials = rng.uniform(400, 3500, (ANVILS, 6)).astype(np.float32)
    time = np.arange(samples, dtype=np.float32) / RATE
    sound = rng.normal(0, 0.2, (count, samples)).astype(np.float32)
    for k in range(6):
        pitch = partials[anvil, k] * rng.normal(1, 0.004, count).astype(np.float32)
        sound += np.sin(2 * np.pi * pitch[:, None] * time) * np.exp(-(3 + 2 * k) * time)
    return sound, anvil


def spectra(sound, block=500):
    window = np.hanning(sound.shape[1]).astype(np.float32)
    parts = [np.log1p(np.abs(np.fft.rfft(sound[i:i + block] * window))) for i in range(0, len(sound), block)]
    return np.concatenate(parts).astype(np.float32)


def axes(features, keep, rounds=12):
    """Leading principal axes by subspace iteration."""
    centred = features - features.mean(0)
    base = np.random.default_rng(1).normal(size=(features.shape[1], keep)).astype(np.float32)
    covariance = centred.T @ centred / len(centred)
    for _ in range(rounds):
        base, _ = np.linalg.qr(covariance @ base)
    return centred @ base


def leave_one_out(points, labels, neighbours=5, block=500):
    length = (points ** 2).sum(1)
    right = 0
    for start in range(0, len(points), block):
        rows = slice(start, start + block)
        distance = length[rows, None] - 2 * points[rows] @ points.T + length
        distance[np.arange(len(distance)), np.arange(start, start + len(distance))] = np.inf
        nearest = labels[np.argpartition(distance, neighbours, axis=1)[:, :neighbours]]
        votes = (nearest[:, :, None] == np.arange(ANVILS)).sum(1)
        right += int((votes.argmax(1) == labels[rows]).sum())
    return right / len(points)


rng = np.random.default_rng(1066)
sound, anvil = blows(12000, 2048, rng)
features = spectra(sound)
print("spectra", features.shape)
points = axes(features, keep=64)
print("variance kept on %d axes: %.0f" % (points.shape[1], points.var(0).sum()))
print("known by their ring: %.1f %%" % (100 * leave_one_out(points, anvil)))
