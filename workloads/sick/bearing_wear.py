# truth: memory_leak
# about: a forward hook meant for a look at the features keeps every batch's activations in a list that nobody reads, so some 4 MB a step stay until the end
# gain: none
# cure: --summary
# needs: torch
"""Remaining life of bearings from vibration spectra: a one-dimensional convolutional regression, with a watch on its features."""
import argparse
import time

import torch
from torch import nn

SENSORS, BANDS = 4, 512


class Watch:
    """Follows what a layer gives."""

    def __init__(self, layer):
        self.seen = []
        layer.register_forward_hook(self.look)

    def look(self, layer, inputs, output):
        self.seen.append(output.detach().clone())

    def tell(self):
        return f"last mean {float(self.seen[-1].mean()):.3f}"


class Summary(Watch):
    """The same with the mean and the number alone."""

    def __init__(self, layer):
        super().__init__(layer)
        self.mean = 0.0

    def look(self, layer, inputs, output):
        self.mean = float(output.detach().mean())

    def tell(self):
        return f"last mean {self.mean:.3f}"


def vibrations(count, generator):
    wear = torch.rand(count, generator=generator)
    bands = torch.linspace(0, 1, BANDS)
    peak = torch.exp(-((bands[None] - 0.2 - 0.6 * wear[:, None]) / 0.05) ** 2)
    noise = torch.randn(count, SENSORS, BANDS, generator=generator)
    return peak[:, None] * (0.5 + wear)[:, None, None] + 0.3 * noise, wear


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--summary", action="store_true")
    parser.add_argument("--steps", type=int, default=300)
    options = parser.parse_args()
    generator = torch.Generator().manual_seed(8)
    torch.manual_seed(8)
    spectra, wear = vibrations(3000, generator)
    features = nn.Sequential(nn.Conv1d(SENSORS, 24, 7, padding=3), nn.ReLU(), nn.Conv1d(24, 24, 5, padding=2), nn.ReLU())
    model = nn.Sequential(features, nn.AvgPool1d(8), nn.Flatten(), nn.Linear(24 * BANDS // 8, 64), nn.ReLU(), nn.Linear(64, 1))
    watch = (Summary if options.summary else Watch)(features)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-4)
    begin, cpu = time.perf_counter(), time.process_time()
    for step in range(options.steps):
        picked = torch.randint(0, len(wear), (64,), generator=generator)
        guess = model(spectra[picked]).squeeze(1)
        loss = nn.functional.mse_loss(guess, wear[picked])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if step % 100 == 99:
            print(f"step {step + 1}: loss {loss.item():.4f}, {watch.tell()}")
    print(f"{options.steps} steps, {(time.perf_counter() - begin) / options.steps * 1e3:.1f} ms each, "
          f"{(time.process_time() - cpu) / options.steps * 1e3:.1f} ms of processor")


if __name__ == "__main__":
    main()
