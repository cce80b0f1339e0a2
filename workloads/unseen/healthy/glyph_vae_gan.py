# truth: none
# about: a variational autoencoder with an adversary draws glyphs; all images lie in memory, two optimizers take turns, the networks' arithmetic takes the time
# needs: torch
"""Draws new glyphs: an autoencoder learns them, an adversary tells drawn ones from real ones."""
import time

import torch
from torch import nn
from torch.nn import functional as F

COUNT, SIDE, CODE, BATCH, STEPS = 3000, 32, 16, 64, 90


def glyphs(seed=51):
    """Rings and strokes, as images."""
    gen = torch.Generator().manual_seed(seed)
    axis = torch.linspace(-1, 1, SIDE)
    y, x = axis[None, :, None], axis[None, None, :]
    where = torch.rand(COUNT, 4, 1, 1, generator=gen)
    ring = ((x - where[:, 0] + 0.5) ** 2 + (y - where[:, 1] + 0.5) ** 2).sqrt() - 0.2 - 0.4 * where[:, 2]
    stroke = x * torch.cos(6.3 * where[:, 3]) + y * torch.sin(6.3 * where[:, 3])
    return torch.exp(-(torch.minimum(ring.abs(), stroke.abs()) / 0.08) ** 2).unsqueeze(1)


class Autoencoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.look = nn.Sequential(nn.Conv2d(1, 32, 4, 2, 1), nn.ReLU(), nn.Conv2d(32, 64, 4, 2, 1), nn.ReLU(),
                                  nn.Conv2d(64, 96, 3, 1, 1), nn.ReLU(), nn.Flatten(), nn.Linear(96 * 64, 2 * CODE))
        self.draw = nn.Sequential(nn.Linear(CODE, 64 * 64), nn.ReLU(), nn.Unflatten(1, (64, 8, 8)),
                                  nn.Upsample(scale_factor=2), nn.Conv2d(64, 48, 3, 1, 1), nn.ReLU(),
                                  nn.Upsample(scale_factor=2), nn.Conv2d(48, 32, 3, 1, 1), nn.ReLU(),
                                  nn.Conv2d(32, 1, 3, 1, 1))

    def forward(self, image):
        mean, spread = self.look(image).chunk(2, 1)
        code = mean + torch.randn_like(mean) * (0.5 * spread).exp()
        return self.draw(code), mean, spread


def main():
    torch.manual_seed(7)
    images = glyphs()
    artist = Autoencoder()
    critic = nn.Sequential(nn.Conv2d(1, 32, 4, 2, 1), nn.LeakyReLU(0.2), nn.Conv2d(32, 64, 4, 2, 1),
                           nn.LeakyReLU(0.2), nn.Flatten(), nn.Linear(64 * 64, 1))
    artist_optimizer = torch.optim.Adam(artist.parameters(), lr=1e-3)
    critic_optimizer = torch.optim.Adam(critic.parameters(), lr=2e-4, betas=(0.5, 0.999))
    order = torch.randperm(COUNT)
    place = 0
    begin = time.perf_counter()
    for step in range(1, STEPS + 1):
        if place + BATCH > COUNT:
            order, place = torch.randperm(COUNT), 0
        real = images[order[place: place + BATCH]]
        place += BATCH

        logits, mean, spread = artist(real)
        drawn = torch.sigmoid(logits)

        critic.requires_grad_(True)
        verdict = critic(torch.cat([real, drawn.detach()]))
        critic_loss = F.softplus(-verdict[:BATCH]).mean() + F.softplus(verdict[BATCH:]).mean()
        critic_optimizer.zero_grad(set_to_none=True)
        critic_loss.backward()
        critic_optimizer.step()

        critic.requires_grad_(False)
        likeness = F.binary_cross_entropy_with_logits(logits, real, reduction="sum") / BATCH
        prior = -0.5 * (1 + spread - mean ** 2 - spread.exp()).sum() / BATCH
        loss = likeness + prior + 5 * F.softplus(-critic(drawn)).mean()
        artist_optimizer.zero_grad(set_to_none=True)
        loss.backward()
        artist_optimizer.step()
        if step % 30 == 0:
            print(f"step {step}: artist {loss.item():.2f}, critic {critic_loss.item():.3f}")
    took = time.perf_counter() - begin
    print(f"{STEPS} steps, {took:.2f} s, {1e3 * took / STEPS:.1f} ms a step")


if __name__ == "__main__":
    main()
