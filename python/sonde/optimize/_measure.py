"""Is a candidate faster than what the user has? Screened, then proven in pairs.

Screening takes the fastest of the candidates in turns; the proof uses fresh pairs, so that
choosing the luckiest one gains nothing. A pair is one run of each side, one after the
other, who goes first alternating. It is judged after 8, 12 and 20 pairs, each look with a
part of the 5 % (as `sonde check` does): accepted when the lower bound of the share of time
saved clears the threshold, given up when the upper bound stays below it.
"""

from __future__ import annotations

import math
import statistics
import time
from typing import Callable, Optional

from .. import _sonde
from ._receipt import Gain, Receipt, Trial

LOOKS = ((8, 0.010), (12, 0.014), (20, 0.026))
SCREENS = 2  # runs of each candidate before the proof

Timed = Callable[[], float]  # runs once and says how many seconds that stands for


class Candidate:
    """Something that can be timed, with its line in the receipt."""

    def __init__(self, trial: Trial, run: Timed) -> None:
        self.trial, self.run = trial, run

    def measure(self) -> float:
        seconds = max(self.run(), 1e-9)
        self.trial.times_s.append(seconds)
        self.trial.median_s = statistics.median(self.trial.times_s)
        return seconds

    def try_measure(self) -> bool:
        """False when it fails; the reason is in the trial."""
        try:
            self.measure()
            return True
        except Exception as error:  # a candidate may fail, the user's own may not
            self.trial.note = f"failed: {type(error).__name__}: {error}"
            return False


def gain_of(pairs: list[tuple[float, float]], risk: float) -> Gain:
    """The share saved by the second side of each pair, with its interval."""
    logs = [math.log(new / old) for old, new in pairs]
    estimate, low, high, confidence = _sonde.paired(logs, 1 - risk)
    return Gain(
        1 - math.exp(estimate),
        1 - math.exp(high),
        1 - math.exp(low),
        confidence,
        len(pairs),
    )


def fastest(candidates: list[Candidate], deadline: float) -> Optional[Candidate]:
    """The fastest one by a few runs in turns; None when all failed."""
    alive = list(candidates)
    for turn in range(SCREENS + 1):  # the first turn warms up
        for candidate in list(alive):
            if time.monotonic() > deadline:
                if candidate.trial.median_s is None:
                    candidate.trial.note = "not tried: the budget ended"
                    alive.remove(candidate)
            elif not candidate.try_measure():
                alive.remove(candidate)
            elif turn == 0:
                candidate.trial.times_s.clear()
    return min(alive, key=_typical, default=None)


def _typical(candidate: Candidate) -> float:
    times = candidate.trial.times_s
    return statistics.median(times) if times else candidate.trial.median_s or math.inf


def prove(
    own: Candidate, other: Candidate, threshold: float, deadline: float
) -> tuple[Optional[Gain], str]:
    """Whether `other` saves at least `threshold` of the time: the gain, and "" or why it
    is not proven."""
    pairs: list[tuple[float, float]] = []
    gain: Optional[Gain] = None
    for wanted, risk in LOOKS:
        while len(pairs) < wanted:
            if time.monotonic() > deadline:
                return gain, f"the budget ended after {len(pairs)} pairs"
            if len(pairs) % 2:
                new, old = other.measure(), own.measure()
            else:
                old, new = own.measure(), other.measure()
            pairs.append((old, new))
        gain = gain_of(pairs, risk)
        if gain.low >= threshold:
            return gain, ""
        if gain.high < threshold:
            break
    assert gain is not None
    return gain, f"the gain is not proven to reach {threshold:.0%} of the time"


def decide(
    receipt: Receipt,
    own: Candidate,
    candidates: list[Candidate],
    threshold: float,
    deadline: float,
) -> Optional[Candidate]:
    """The candidate that is proven better, or None; the receipt says why."""
    receipt.threshold = threshold
    best = fastest(candidates, deadline)
    if best is None:
        receipt.keep(own.trial.name, "no other way worked")
        return None
    own.measure()
    if _typical(best) > 1.5 * _typical(own):  # far from better: pairs would be wasted
        receipt.keep(own.trial.name, "nothing else is faster")
        return None
    receipt.gain, why = prove(own, best, threshold, deadline)
    if why:
        best.trial.note = best.trial.note or why
        receipt.keep(own.trial.name, f"best is {best.trial.name}; {why}")
        return None
    return best
