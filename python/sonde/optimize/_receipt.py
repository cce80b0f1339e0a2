"""What an optimiser tried, measured and decided."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any, Optional


@dataclass
class Trial:
    """One way of doing it, and how long that took."""

    name: str
    settings: dict[str, Any] = field(default_factory=dict)
    median_s: Optional[float] = None
    times_s: list[float] = field(default_factory=list, repr=False)
    note: str = ""  # why it was not measured, or not taken


@dataclass
class Gain:
    """The share of time saved (0.25: a quarter), from interleaved pairs.

    `low` and `high` bound it with the confidence given; `ratio` is old time over new."""

    share: float
    low: float
    high: float
    confidence: float
    pairs: int

    @property
    def ratio(self) -> float:
        return 1 / (1 - self.share) if self.share < 1 else float("inf")

    def __str__(self) -> str:
        return (
            f"{self.share:.0%} less time [{self.low:.0%}, {self.high:.0%}], "
            f"{self.pairs} pairs"
        )


@dataclass
class Receipt:
    """The decisions of one call of sonde.optimize.

    print(receipt)                      # readable
    receipt.accepted, receipt.reason    # the decision
    receipt.gain.low                    # what is certain of the gain
    receipt.to_dict(), receipt.to_json()
    """

    subject: str  # what was to be optimised
    accepted: bool = False
    reason: str = ""  # why, or why not
    chosen: str = ""  # name of the trial in use afterwards
    settings: dict[str, Any] = field(default_factory=dict)  # of what is in use
    gain: Optional[Gain] = None  # of the best one, taken or not
    threshold: Optional[float] = None
    trials: list[Trial] = field(default_factory=list)  # the first one is the user's own
    analysis: dict[str, Any] = field(default_factory=dict)
    bottlenecks: list[dict[str, Any]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    seconds: float = 0.0  # what measuring took

    def note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)

    def bottleneck(self, name: str, description: str, advice: str) -> None:
        row = {"id": name, "description": description, "recommendation": advice}
        self.bottlenecks.append(row)

    def keep(self, chosen: str, reason: str) -> None:
        """Nothing is changed."""
        self.accepted, self.chosen, self.reason = False, chosen, reason

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def to_json(self, indent: Optional[int] = 2) -> str:
        return json.dumps(self.to_dict(), indent=indent, default=str)

    def __str__(self) -> str:
        lines = [f"{self.subject}: {'accepted' if self.accepted else 'kept'}"
                 f" {self.chosen or 'as it is'}: {self.reason}"]
        for trial in self.trials:
            lines.append(_trial_words(trial))
        if self.gain is not None:
            wanted = "" if self.threshold is None else f" (wanted {self.threshold:.0%})"
            lines.append(f"  gain: {self.gain}{wanted}")
        for row in self.bottlenecks:
            lines.append(
                f"  {row['id']}: {row['description']}; {row['recommendation']}"
            )
        lines += [f"  note: {text}" for text in self.notes]
        return "\n".join(lines)


def _trial_words(trial: Trial) -> str:
    median = trial.median_s
    took = "not measured" if median is None else f"{median * 1e3:.3f} ms"
    return f"  {trial.name}: {took}" + (f" ({trial.note})" if trial.note else "")
