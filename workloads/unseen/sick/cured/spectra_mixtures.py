# The same in one buffer that is kept, in place.
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
        self.shares = torch.empty(len(pixels), MINERALS)

    def gradient(self, weights, labels):
        """The mean cross entropy and its gradient with respect to the weights."""
        shares = torch.mm(self.pixels, weights, out=self.shares)
        shares.sub_(shares.amax(dim=1, keepdim=True))
        shares.exp_()
        shares.div_(shares.sum(dim=1, keepdim=True))
        loss = -torch.log(shares[self.rows, labels]).mean()
        shares[self.rows, labels] -= 1
        shares.div_(len(self.pixels))
        return loss, self.pixels.t() @ shares


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
