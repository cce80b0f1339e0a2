# truth: oversubscribed
# about: the number of torch threads, 24, was right for the server the script came from; here every convolution is cut into 24 pieces whose threads push each other off two cores
# also: cpu_saturated
# cure: --threads 2
# needs: torch
"""Grades of short ultrasound clips: a convolutional net per frame, a recurrent one over the frames."""
import argparse
import time

import torch
from torch import nn

FRAMES, SIZE, GRADES = 6, 32, 4


class Grader(nn.Module):
    def __init__(self):
        super().__init__()
        self.frame = nn.Sequential(
            nn.Conv2d(1, 12, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(12, 24, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(24, 24, 3, padding=1), nn.ReLU(), nn.Conv2d(24, 24, 3, padding=1), nn.ReLU(),
            nn.AdaptiveAvgPool2d(2), nn.Flatten())
        self.time = nn.GRU(96, 64, batch_first=True)
        self.grade = nn.Linear(64, GRADES)

    def forward(self, clips):
        batch = clips.shape[0]
        frames = self.frame(clips.reshape(batch * FRAMES, 1, SIZE, SIZE))
        _, last = self.time(frames.reshape(batch, FRAMES, -1))
        return self.grade(last[-1])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--threads", type=int, default=24)
    parser.add_argument("--steps", type=int, default=240)
    options = parser.parse_args()
    torch.manual_seed(23)
    torch.set_num_threads(options.threads)
    clips = torch.randn(400, FRAMES, SIZE, SIZE) * 0.5
    grades = torch.randint(0, GRADES, (400,))
    clips[:, :, 8:24, 8:24] += grades[:, None, None, None] * 0.3
    model = Grader()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    begin, cpu = time.perf_counter(), time.process_time()
    for step in range(options.steps):
        rows = torch.randint(0, 400, (16,))
        loss = nn.functional.cross_entropy(model(clips[rows]), grades[rows])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
    print(f"loss {loss.item():.3f}")
    print(f"{options.steps} steps, {(time.perf_counter() - begin) / options.steps * 1e3:.1f} ms each, "
          f"{(time.process_time() - cpu) / options.steps * 1e3:.1f} ms of processor")


if __name__ == "__main__":
    main()
