# truth: none
# about: a small GAN of convolutions on pictures in memory, both optimizers from the library, a line of print every 40 steps
# needs: torch numpy
"""A GAN that drapes stage curtains: 32 x 32 height maps of folded velvet."""
import argparse
import time

import torch
from torch import nn

NOISE = 32


def velvet(count, generator):
    x = torch.linspace(0, 1, 32)
    folds = 3 + 5 * torch.rand(count, 1, 1, generator=generator)
    shift = torch.rand(count, 1, 1, generator=generator)
    sag = 0.3 * torch.rand(count, 1, 1, generator=generator) * x[None, :, None] ** 2
    return (torch.sin(6.283 * (folds * (x[None, None, :] + sag) + shift)) * (0.5 + 0.5 * x[None, :, None]))[:, None]


drape = nn.Sequential(
    nn.Linear(NOISE, 64 * 8 * 8), nn.Unflatten(1, (64, 8, 8)), nn.BatchNorm2d(64), nn.ReLU(),
    nn.ConvTranspose2d(64, 32, 4, 2, 1), nn.BatchNorm2d(32), nn.ReLU(),
    nn.ConvTranspose2d(32, 1, 4, 2, 1), nn.Tanh())
critic = nn.Sequential(
    nn.Conv2d(1, 32, 4, 2, 1), nn.LeakyReLU(0.2),
    nn.Conv2d(32, 64, 4, 2, 1), nn.LeakyReLU(0.2),
    nn.Flatten(), nn.Linear(64 * 8 * 8, 1))


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=130)
    args = ap.parse_args()
    torch.manual_seed(14)
    generator = torch.Generator().manual_seed(14)
    pictures = velvet(4096, generator)
    opt_d = torch.optim.Adam(critic.parameters(), 2e-4, betas=(0.5, 0.99))
    opt_g = torch.optim.Adam(drape.parameters(), 2e-4, betas=(0.5, 0.99))
    began = time.perf_counter()
    for step in range(1, args.steps + 1):
        real = pictures[torch.randint(0, len(pictures), (64,), generator=generator)]
        fake = drape(torch.randn(64, NOISE, generator=generator))

        loss_d = torch.relu(1 - critic(real)).mean() + torch.relu(1 + critic(fake.detach())).mean()
        opt_d.zero_grad(set_to_none=True)
        loss_d.backward()
        opt_d.step()

        loss_g = -critic(fake).mean()
        opt_g.zero_grad(set_to_none=True)
        loss_g.backward()
        opt_g.step()
        if step % 40 == 0:
            print("%4d  critic %.3f  drape %.3f" % (step, loss_d.item(), loss_g.item()))
    print("%.2f s, cpu %.2f" % (time.perf_counter() - began, time.process_time()))


if __name__ == "__main__":
    main()
