# truth: memory_leak
# about: a hook on the discriminator keeps the features of every batch in a list, but only the newest are ever looked at
# gain: none
# cure: --keep 2
# needs: torch
"""DCGAN in small, with feature matching for the generator, on coloured blobs."""
import argparse
from collections import deque

import torch
from torch import nn, optim


def blobs(batch, generator):
    yy, xx = torch.meshgrid(torch.linspace(-1, 1, 16), torch.linspace(-1, 1, 16), indexing="ij")
    centre = torch.rand(batch, 2, 1, 1, generator=generator) * 1.4 - 0.7
    colour = torch.rand(batch, 3, 1, 1, generator=generator)
    shape = torch.exp(-((yy - centre[:, :1]) ** 2 + (xx - centre[:, 1:]) ** 2) * 6)
    return colour * shape * 2 - 1


class Generator(nn.Module):
    def __init__(self, z=32):
        super().__init__()
        self.net = nn.Sequential(
            nn.ConvTranspose2d(z, 32, 4), nn.BatchNorm2d(32), nn.ReLU(),
            nn.ConvTranspose2d(32, 16, 4, 2, 1), nn.BatchNorm2d(16), nn.ReLU(),
            nn.ConvTranspose2d(16, 3, 4, 2, 1), nn.Tanh())

    def forward(self, z):
        return self.net(z[:, :, None, None])


class Discriminator(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 24, 3, 1, 1), nn.LeakyReLU(0.2), nn.Conv2d(24, 48, 4, 2, 1), nn.LeakyReLU(0.2))
        self.judge = nn.Sequential(nn.Flatten(), nn.Linear(48 * 64, 1))

    def forward(self, x):
        return self.judge(self.features(x)).squeeze(1)


class Tap:
    """Remembers what went through a module."""

    def __init__(self, module, keep):
        self.seen = deque(maxlen=keep or None)
        module.register_forward_hook(lambda module, args, output: self.seen.append(output.detach()))

    @property
    def last(self):
        return self.seen[-1]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--keep", type=int, default=0, help="how many batches of features to remember, 0: all")
    parser.add_argument("--iterations", type=int, default=160)
    args = parser.parse_args()
    torch.manual_seed(77)
    rng = torch.Generator().manual_seed(78)
    G, D = Generator(), Discriminator()
    tap = Tap(D.features, args.keep)
    opt_g = optim.Adam(G.parameters(), 2e-4, betas=(0.5, 0.999))
    opt_d = optim.Adam(D.parameters(), 2e-4, betas=(0.5, 0.999))
    bce = nn.BCEWithLogitsLoss()
    n = 64
    ones, zeros = torch.ones(n), torch.zeros(n)
    for it in range(args.iterations):
        real = blobs(n, rng)
        fake = G(torch.randn(n, 32, generator=rng))

        opt_d.zero_grad()
        loss_d = bce(D(real), ones)
        wanted = tap.last.mean(0)
        loss_d = loss_d + bce(D(fake.detach()), zeros)
        loss_d.backward()
        opt_d.step()

        opt_g.zero_grad()
        loss_g = bce(D(fake), ones)
        drift = (tap.last.mean(0) - wanted).abs().mean()
        loss_g.backward()
        opt_g.step()
        if it % 40 == 0:
            print(f"{it:4d}  D {loss_d.item():.3f}  G {loss_g.item():.3f}  features apart {drift.item():.3f}")


if __name__ == "__main__":
    main()
