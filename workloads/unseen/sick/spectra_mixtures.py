# truth: allocation_churn
# about: every step of the unmixing makes several new 35 MB tensors for intermediate results and drops them, so the kernel hands out and takes back fresh pages all the time
# cure: cured/spectra_mixtures.py
# needs: torch
"""Which minerals is each pixel of a hyperspectral scene made of? A softmax unmixing with gradients derived by hand."""
import time

import torch

PIXELS = 60000
BANDS = 32
MINERALS = 144
STEPS = 64


def scene():
    """Pixels that belong mostly to one mineral, with a little of another."""
    library = torch.rand(MINERALS, BANDS)
    first = torch.randint(MINERALS, (PIXELS,))
    second = torch.randint(MINERALS, (PIXELS,))
    pixels = 0.8 * library[first] + 0.2 * library[second] + 0.3 * torch.randn(PIXELS, BANDS)
    return pixels - pixels.mean(dim=0), first


class Unmixer:
    def __init__(self, pixels):
        self.pixels = pixels
        self.rows = torch.arange(len(pixels))

    def gradient(self, weights, labels):
        """The mean cross entropy and its gradient with respect to the weights."""
        scores = self.pixels @ weights
        scores = scores - scores.amax(dim=1, keepdim=True)
        raised = torch.exp(scores)
        shares = raised / raised.sum(dim=1, keepdim=True)
        loss = -torch.log(shares[self.rows, labels]).mean()
        wrong = shares.clone()
        wrong[self.rows, labels] -= 1
        wrong = wrong / len(self.pixels)
        return loss, self.pixels.t() @ wrong


@torch.no_grad()
def main():
    torch.manual_seed(101)
    pixels, labels = scene()
    weights = torch.zeros(BANDS, MINERALS)
    optimizer = torch.optim.SGD([weights], lr=2.0, momentum=0.9)
    unmixer = Unmixer(pixels)
    losses = []
    began = time.perf_counter()
    for step in range(STEPS):
        loss, weights.grad = unmixer.gradient(weights, labels)
        optimizer.step()
        losses.append(loss)
        if step % 20 == 0:
            print(f"step {step}: loss {loss.item():.4f}")
    took = time.perf_counter() - began
    print(f"loss {losses[-1].item():.4f}; {STEPS} steps, {1000 * took / STEPS:.2f} ms each, {took:.2f} s")


if __name__ == "__main__":
    main()
