"""A training loop in plain Python, marked for Sonde.

    sonde run -- python training.py

Prints nothing; the report shows the phases, the steps and the loss.
"""

import random

import sonde


@sonde.profile(phase="data_loading", component="loader")
def batches(count, size):
    """A generator: the time between two batches is the loop's, not its own."""
    for _ in range(count):
        yield [(x, 3 * x + 1) for x in (random.random() for _ in range(size))]


def train(count=50, size=64, rate=0.1):
    slope = offset = 0.0
    sonde.param("batch", size)
    for batch in batches(count, size):
        sonde.step(samples=len(batch))
        with sonde.zone("forward", phase="forward"):
            errors = [(slope * x + offset - y, x) for x, y in batch]
            loss = sum(e * e for e, _ in errors) / size
        with sonde.zone("backward", phase="backward"):
            grad_slope = sum(2 * e * x for e, x in errors) / size
            grad_offset = sum(2 * e for e, _ in errors) / size
        with sonde.zone("update", phase="optimizer"):
            slope -= rate * grad_slope
            offset -= rate * grad_offset
        sonde.metric("loss", loss)
    return loss


if __name__ == "__main__":
    random.seed(1)
    with sonde.operation("training") as op:
        op.metrics["loss"] = train()
