#!/usr/bin/env python3
# truth: none
# about: a mixer of large linear layers learns from short spectra that one worker cuts out ahead of time, in a tenth of the time that the network needs; it is bound by its arithmetic, and tested once an epoch on a small set
# needs: torch numpy
"""Which strings of a harp sound in a recording, several at once."""
import os
import tempfile
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

STRINGS, FRAME, HOP = 24, 256, 128


def record(path, seconds):
    rng = np.random.default_rng(14)
    rate = 4000
    sound = rng.normal(0, 0.01, seconds * rate).astype(np.float32)
    events = []
    ring = np.exp(-np.arange(rate) / 1200.0)
    for _ in range(seconds * 4):
        string, at = int(rng.integers(STRINGS)), int(rng.integers(0, (seconds - 1) * rate))
        pitch = 110.0 * 2 ** (string / 12)
        sound[at:at + rate] += ring * np.sin(2 * np.pi * pitch * np.arange(rate) / rate)
        events.append((at, string))
    np.save(path, sound)
    return np.array(events)


class Snippets(Dataset):
    def __init__(self, path, events, begins):
        self.sound = np.load(path, mmap_mode="r")
        self.events, self.begins = events, begins

    def __len__(self):
        return len(self.begins)

    def __getitem__(self, index):
        begin = self.begins[index]
        piece = torch.from_numpy(np.array(self.sound[begin:begin + 4096]))
        spectrum = torch.stft(piece, FRAME, HOP, window=torch.hann_window(FRAME), return_complex=True).abs()[:64, :32]
        target = torch.zeros(STRINGS)
        at = self.events[:, 0]
        target[self.events[(at > begin - 1000) & (at < begin + 3000), 1]] = 1.0
        return torch.log1p(spectrum)[None], target


class Mixer(nn.Module):
    """Across time, then across pitch, as in an MLP-Mixer."""

    def __init__(self, width, hidden):
        super().__init__()
        self.norm_time, self.norm_pitch = nn.LayerNorm(width), nn.LayerNorm(width)
        self.time = nn.Linear(32, 32)
        self.up, self.down = nn.Linear(width, hidden), nn.Linear(hidden, width)

    def forward(self, x):
        x = x + self.time(self.norm_time(x).transpose(1, 2)).transpose(1, 2)
        return x + self.down(torch.relu(self.up(self.norm_pitch(x))))


class Listener(nn.Module):
    def __init__(self, width=192):
        super().__init__()
        self.inside = nn.Linear(64, width)
        self.body = nn.Sequential(Mixer(width, 512), Mixer(width, 512), Mixer(width, 512))
        self.head = nn.Linear(width, STRINGS)

    def forward(self, x):
        return self.head(self.body(self.inside(x.squeeze(1).transpose(1, 2))).mean(1))


def main():
    torch.manual_seed(5)
    with tempfile.TemporaryDirectory(prefix="harp") as folder:
        path = os.path.join(folder, "take.npy")
        events = record(path, 120)
        begins = np.random.default_rng(1).integers(0, 118 * 4000, 800)
        train = DataLoader(Snippets(path, events, begins[:720]), batch_size=24, shuffle=True, num_workers=1,
                           persistent_workers=True)
        test = DataLoader(Snippets(path, events, begins[720:]), batch_size=40)
        held = [batch for batch in test]
        model = Listener()
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
        begin, steps = time.perf_counter(), 0
        for epoch in range(6):
            model.train()
            for spectrum, strings in train:
                loss = nn.functional.binary_cross_entropy_with_logits(model(spectrum), strings)
                optimizer.zero_grad(set_to_none=False)
                loss.backward()
                optimizer.step()
                steps += 1
            model.eval()
            with torch.no_grad():
                right = torch.cat([(model(x) > 0) == (y > 0.5) for x, y in held]).float().mean()
            print(f"epoch {epoch}: {100 * float(right):.1f} % of strings right")
        took = time.perf_counter() - begin
        print(f"{steps} steps, {took:.2f} s, {1e3 * took / steps:.1f} ms a step")


if __name__ == "__main__":
    main()
