# truth: slow_blas
# about: the reservoir that numpy drives is nothing but matrix products, and numpy finds the reference BLAS, as on a machine where nobody installed a better one
# sickenv: LD_LIBRARY_PATH={blas}
# cure: --as-it-is
# needs: torch numpy openblas reference-blas
"""Forecasts the current in a fjord from tide and wind: a fixed random reservoir in numpy, a readout learnt with torch."""
import sys
import time

import numpy as np
import torch

UNITS, MOORINGS, SPAN, STEPS = 400, 64, 12, 150
CONFIG = {"leak": 0.4, "reach": 0.9, "lr": 1e-2}


def reservoir(rng):
    inner = rng.normal(0, 1, (UNITS, UNITS)).astype(np.float32)
    inner *= CONFIG["reach"] / (np.sqrt(UNITS))
    return inner, rng.normal(0, 0.5, (3, UNITS)).astype(np.float32)


def weather(rng, at):
    """Tide, wind and rain at every mooring for SPAN hours, and the current one hour later."""
    hour = at * SPAN + np.arange(SPAN + 1)
    phase = np.linspace(0, 1, MOORINGS)[:, None]
    tide = np.sin(2 * np.pi * (hour / 12.4 + phase))
    wind = np.cos(hour / 30 + 4 * phase) + rng.normal(0, 0.1, (MOORINGS, SPAN + 1))
    rain = rng.gamma(1, 0.3, (MOORINGS, SPAN + 1))
    drive = np.stack([tide, wind, rain], 2).astype(np.float32)
    return drive[:, :SPAN], (0.7 * tide[:, 1:] + 0.2 * wind[:, :-1] ** 2).astype(np.float32)


def echo(state, drive, inner, inlet):
    seen = np.empty((SPAN, MOORINGS, UNITS), np.float32)
    for hour in range(SPAN):
        fresh = np.tanh(state @ inner + drive[:, hour] @ inlet)
        state = (1 - CONFIG["leak"]) * state + CONFIG["leak"] * fresh
        seen[hour] = state
    return state, seen


def main(steps):
    rng = np.random.default_rng(70)
    torch.manual_seed(70)
    inner, inlet = reservoir(rng)
    readout = torch.nn.Linear(UNITS, 1)
    optimizer = torch.optim.Adam(readout.parameters(), lr=CONFIG["lr"])
    state = np.zeros((MOORINGS, UNITS), np.float32)
    began, cpu = time.perf_counter(), time.process_time()
    for step in range(steps):
        drive, current = weather(rng, step)
        state, seen = echo(state, drive, inner, inlet)
        guess = readout(torch.from_numpy(seen)).squeeze(2)
        loss = (guess - torch.from_numpy(current.T.copy())).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    took = time.perf_counter() - began
    print(f"error {loss.item():.3f}; {1000 * took / steps:.2f} ms a step, {time.process_time() - cpu:.1f} s of CPU, {took:.2f} s")


if __name__ == "__main__":
    rest = [a for a in sys.argv[1:] if a != "--as-it-is"]
    main(int(rest[0]) if rest else STEPS)
