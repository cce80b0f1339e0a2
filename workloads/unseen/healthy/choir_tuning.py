# truth: none
# about: an LSTM follows the pitch of a choir in windows of equal length, 64 a batch, one cheap slice for a sample; the recurrent layers are the step
# needs: torch numpy
"""Does the choir sink? Two LSTM layers follow the deviation from the written pitch, in cents."""
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

BANDS, WINDOW, BATCH, EPOCHS = 48, 40, 64, 3


class Rehearsal(Dataset):
    """Windows of one long recording, as band energies with the deviation at every frame."""

    def __init__(self, frames, hop, seed):
        rng = np.random.default_rng(seed)
        drift = np.cumsum(rng.normal(0, 0.02, frames)).astype(np.float32)
        drift -= np.convolve(drift, np.ones(400, np.float32) / 400, "same")
        centre = BANDS / 2 + 6 * drift[:, None]
        bands = np.exp(-0.5 * ((np.arange(BANDS)[None] - centre) / 3) ** 2)
        bands += 0.1 * rng.standard_normal((frames, BANDS))
        self.bands = torch.from_numpy(bands.astype(np.float32))
        self.drift = torch.from_numpy(drift.astype(np.float32))
        self.starts = range(0, frames - WINDOW, hop)

    def __len__(self):
        return len(self.starts)

    def __getitem__(self, i):
        at = self.starts[i]
        return self.bands[at:at + WINDOW], self.drift[at:at + WINDOW]


class Follower(nn.Module):
    def __init__(self, width=192):
        super().__init__()
        self.ear = nn.LSTM(BANDS, width, num_layers=2, batch_first=True)
        self.cents = nn.Linear(width, 1)

    def forward(self, x):
        return self.cents(self.ear(x)[0]).squeeze(2)


def main():
    torch.manual_seed(14)
    data = Rehearsal(WINDOW + 1280 * 8, 8, 14)
    loader = DataLoader(data, batch_size=BATCH, shuffle=True, drop_last=True)
    model = Follower()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    began, steps = time.perf_counter(), 0
    for epoch in range(EPOCHS):
        total = torch.zeros(())
        for x, y in loader:
            loss = nn.functional.mse_loss(model(x), y)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            total += loss.detach()
            steps += 1
        print(f"epoch {epoch + 1} loss {total.item() / len(loader):.4f}")
    took = time.perf_counter() - began
    print(f"{steps} steps, {1000 * took / steps:.1f} ms a step")


if __name__ == "__main__":
    main()
