#!/usr/bin/env python3
# truth: none
# about: two models in turn, a generator of fine snow maps and the critic that judges them three times as often; both are convolutions on data in memory and nothing in the loop waits
# needs: torch numpy
"""Snow depth on a finer grid: a Wasserstein GAN draws 32 x 32 maps that fit an 8 x 8 forecast."""
import os
import time

import numpy as np
import torch
from torch import nn

MAPS, BATCH, ROUNDS, TURNS = 2048, 32, 60, 3


def snow_maps(rng):
    """Fine maps with ridges and drifts, by smoothing noise along a wind."""
    field = rng.normal(0, 1, (MAPS, 32, 32)).astype(np.float32)
    spectrum = np.fft.rfft2(field)
    ky, kx = np.fft.fftfreq(32)[:, None], np.fft.rfftfreq(32)[None]
    spectrum *= np.exp(-((kx * 9) ** 2 + (ky * 4) ** 2))
    field = np.fft.irfft2(spectrum, s=(32, 32)).astype(np.float32)
    return torch.from_numpy(np.maximum(field / field.std(), -1)[:, None])


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(1 + 8, 64, 3, padding=1)
        self.body = nn.Sequential(nn.ReLU(), nn.Conv2d(64, 64, 3, padding=1), nn.ReLU(),
                                  nn.ConvTranspose2d(64, 48, 4, 2, 1), nn.ReLU(),
                                  nn.ConvTranspose2d(48, 24, 4, 2, 1), nn.ReLU(), nn.Conv2d(24, 1, 3, padding=1))

    def forward(self, coarse):
        noise = torch.randn(len(coarse), 8, 8, 8)
        return self.body(self.stem(torch.cat([coarse, noise], 1)))


def critic_net():
    return nn.Sequential(nn.Conv2d(2, 32, 4, 2, 1), nn.LeakyReLU(0.2), nn.Conv2d(32, 64, 4, 2, 1), nn.LeakyReLU(0.2),
                         nn.Conv2d(64, 96, 4, 2, 1), nn.LeakyReLU(0.2), nn.Flatten(), nn.Linear(96 * 16, 1))


def beside(coarse, fine):
    return torch.cat([nn.functional.interpolate(coarse, scale_factor=4.0), fine], 1)


def main():
    torch.manual_seed(14)
    torch.set_num_threads(len(os.sched_getaffinity(0)))
    maps = snow_maps(np.random.default_rng(14))
    generator, critic = Generator(), critic_net()
    generator_optimizer = torch.optim.RMSprop(generator.parameters(), lr=2e-4)
    critic_optimizer = torch.optim.RMSprop(critic.parameters(), lr=2e-4)
    begin = time.perf_counter()
    for number in range(ROUNDS):
        for _ in range(TURNS):
            fine = maps[torch.randint(MAPS, (BATCH,))]
            coarse = nn.functional.avg_pool2d(fine, 4)
            with torch.no_grad():
                drawn = generator(coarse)
            gap = critic(beside(coarse, drawn)).mean() - critic(beside(coarse, fine)).mean()
            critic_optimizer.zero_grad()
            gap.backward()
            critic_optimizer.step()
            with torch.no_grad():
                for p in critic.parameters():
                    p.clamp_(-0.05, 0.05)
        coarse = nn.functional.avg_pool2d(maps[torch.randint(MAPS, (BATCH,))], 4)
        drawn = generator(coarse)
        fit = nn.functional.mse_loss(nn.functional.avg_pool2d(drawn, 4), coarse)
        loss = fit - critic(beside(coarse, drawn)).mean()
        generator_optimizer.zero_grad()
        loss.backward()
        generator_optimizer.step()
        if number % 20 == 19:
            print(f"round {number + 1}: gap {gap.item():+.4f} fit {fit.item():.3f}")
    seconds = time.perf_counter() - begin
    print(f"{ROUNDS} rounds in {seconds:.2f} s, {1000 * seconds / ROUNDS:.1f} ms a round")


if __name__ == "__main__":
    main()
