# truth: none
# about: boosted stumps on histograms with numpy alone, without steps of any library; the time goes into counting and adding
# needs: numpy
"""Yield of a vineyard's plots from soil and weather, by boosting."""
import argparse
import os
import shutil
import tempfile

import numpy as np

BINS = 64


def harvest(path, plots, features, seed):
    rng = np.random.default_rng(seed)
    soil = rng.random((features, plots), dtype=np.float32)
    tons = 3 * soil[0] + np.sin(6 * soil[1]) + 2 * (soil[2] > 0.6) + rng.normal(0, 0.2, plots)
    np.savez(path, soil=soil, tons=tons)


def to_bins(soil):
    return np.minimum(soil * BINS, BINS - 1).astype(np.intp)


class Booster:
    def __init__(self, rounds, rate):
        self.rounds = rounds
        self.rate = rate
        self.stumps = []

    def best_split(self, bins, counts, rest):
        total, number = rest.sum(), len(rest)
        best = (-1.0, 0, 0, 0.0, 0.0)
        for feature in range(len(bins)):
            sums = np.bincount(bins[feature], weights=rest, minlength=BINS).cumsum()[:-1]
            left = counts[feature]
            right = number - left
            gain = sums ** 2 / np.maximum(left, 1) + (total - sums) ** 2 / np.maximum(right, 1)
            cut = int(gain.argmax())
            if gain[cut] > best[0]:
                best = (gain[cut], feature, cut, sums[cut] / max(left[cut], 1),
                        (total - sums[cut]) / max(right[cut], 1))
        return best[1:]

    def fit(self, bins, tons):
        counts = [np.bincount(row, minlength=BINS).cumsum()[:-1] for row in bins]
        rest = tons - tons.mean()
        steps = np.empty(BINS)
        change = np.empty_like(rest)
        for number in range(self.rounds):
            feature, cut, low, high = self.best_split(bins, counts, rest)
            steps[:cut + 1] = self.rate * low
            steps[cut + 1:] = self.rate * high
            np.take(steps, bins[feature], out=change, mode="clip")
            rest -= change
            self.stumps.append((feature, cut, low, high))
            if number % 40 == 0:
                print(f"{number} stumps: error {np.sqrt(np.dot(rest, rest) / len(rest)):.4f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--plots", type=int, default=400000)
    parser.add_argument("--features", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=400)
    parser.add_argument("--rate", type=float, default=0.15)
    parser.add_argument("--seed", type=int, default=1855)
    options = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="vineyard_")
    try:
        path = os.path.join(folder, "plots.npz")
        harvest(path, options.plots, options.features, options.seed)
        with np.load(path) as data:
            bins, tons = to_bins(data["soil"]), data["tons"]
        Booster(options.rounds, options.rate).fit(bins, tons)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
