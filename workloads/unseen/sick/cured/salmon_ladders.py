# truth: none
# about: the same, the arithmetic done in place in one buffer that is kept
# also: preprocessing_bound
# needs: torch numpy
"""Counts fish that pass the window of a fish ladder.

Clips of the counting window, 16 frames of 160 x 160 grey pixels. The water is
taken out (mean of the quiet hours), the lamp evened out, and a small network
over pooled motion gives the count.
"""
import torch
import torch.nn as nn

FRAMES, SIDE = 16, 160
BATCH = 24
STEPS = 66


def film(clips, seed):
    gen = torch.Generator().manual_seed(seed)
    tape = torch.randint(90, 130, (clips, FRAMES, SIDE, SIDE), dtype=torch.uint8, generator=gen)
    counts = torch.randint(0, 5, (clips,), generator=gen)
    for c in range(clips):
        for fish in range(int(counts[c])):
            y = int(torch.randint(0, SIDE - 12, (1,), generator=gen))
            for f in range(FRAMES):
                x = (fish * 37 + f * 8) % (SIDE - 24)
                tape[c, f, y:y + 12, x:x + 24] = 30
    return tape, counts.float()


class Ladder:
    """Hands out prepared batches of the tape."""

    def __init__(self, tape, counts, batch):
        self.tape, self.counts, self.batch = tape, counts, batch
        self.water = tape.float().mean((0, 1))
        self.room = torch.empty(batch, FRAMES, SIDE, SIDE)
        self.lamp = torch.linspace(0.8, 1.2, SIDE).expand(SIDE, SIDE).contiguous()

    def prepare(self, clips):
        x = self.room
        x.copy_(clips)
        x.sub_(self.water)
        x.mul_(self.lamp)
        x.div_(64.0)
        x.clamp_(-2.0, 2.0)
        return x

    def batches(self, steps, seed):
        gen = torch.Generator().manual_seed(seed)
        for _ in range(steps):
            start = int(torch.randint(0, len(self.tape) - self.batch + 1, (1,), generator=gen))
            rows = slice(start, start + self.batch)
            yield self.prepare(self.tape[rows]), self.counts[rows]


class Counter(nn.Module):
    def __init__(self):
        super().__init__()
        self.look = nn.Conv2d(FRAMES, 8, 8, stride=8)
        self.head = nn.Sequential(nn.ReLU(), nn.Conv2d(8, 16, 3, stride=2), nn.ReLU(),
                                  nn.Flatten(), nn.Linear(16 * 9 * 9, 1))

    def forward(self, x):
        return self.head(self.look(x)).squeeze(1)


torch.manual_seed(9)
ladder = Ladder(*film(96, seed=21), batch=BATCH)
net = Counter()
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
error = 0.0
for step, (clips, counts) in enumerate(ladder.batches(STEPS, seed=2), 1):
    loss = nn.functional.smooth_l1_loss(net(clips), counts)
    opt.zero_grad()
    loss.backward()
    opt.step()
    error += loss.item()
    if step % 25 == 0:
        print(f"step {step:3d}  mean error {error / 25:.3f}")
        error = 0.0
