# truth: none
# about: a wide net of residual layers on rows already in memory; large products in float32 on both cores, a little evaluation, nothing to gain
# needs: torch
"""Surface speed of glaciers from slope, thickness, temperature and melt, with a distribution over speed classes."""
import time

import torch
from torch import nn

ROWS, FEATURES, CLASSES = 40960, 96, 48


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, x):
        return x + self.down(torch.relu(self.up(self.norm(x))))


class Trainer:
    def __init__(self, width=448, batch=512):
        torch.manual_seed(64)
        self.batch = batch
        self.x = torch.randn(ROWS, FEATURES)
        speed = (self.x @ torch.randn(FEATURES) * 0.1 + torch.sin(self.x[:, 0] * 2)).sigmoid()
        self.y = (speed * CLASSES).long().clamp_(0, CLASSES - 1)
        self.held = slice(ROWS - 1024, ROWS)
        self.net = nn.Sequential(nn.Linear(FEATURES, width), Block(width), Block(width), Block(width), nn.Linear(width, CLASSES))
        self.opt = torch.optim.SGD(self.net.parameters(), 0.02, momentum=0.9)
        self.loss = nn.CrossEntropyLoss(label_smoothing=0.05)

    def train(self, steps):
        order = torch.randperm(ROWS - 1024)
        for step in range(steps):
            pick = order[step * self.batch % (len(order) - self.batch):][:self.batch]
            self.opt.zero_grad()
            loss = self.loss(self.net(self.x[pick]), self.y[pick])
            loss.backward()
            self.opt.step()
        return loss.item()

    @torch.no_grad()
    def hits(self):
        return (self.net(self.x[self.held]).argmax(1) == self.y[self.held]).float().mean().item()


def main():
    torch.set_num_threads(2)
    trainer = Trainer()
    began = time.perf_counter()
    for stage in range(4):
        loss = trainer.train(25)
        print("stage %d: loss %.4f, held out %.3f" % (stage, loss, trainer.hits()))
    print("%.2f ms per step" % (1e3 * (time.perf_counter() - began) / 100))


if __name__ == "__main__":
    main()
