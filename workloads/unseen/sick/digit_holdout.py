# truth: evaluation_heavy
# about: the whole holdout set, larger than what is trained on in between, is scored after every eight training steps
# cure: --score-every 160
# whatif: evaluation=20
# gain: run
# needs: torch
import argparse

import torch
import torch.nn.functional as F


def make_digits(n, seed):
    """seven-segment digits, noisy and shifted"""
    g = torch.Generator().manual_seed(seed)
    lit = ["abcdef", "bc", "abged", "abgcd", "fgbc", "afgcd", "afgedc", "abc", "abcdefg", "abcdfg"]
    strokes = dict(a=(2, 3, 4, 12), b=(3, 10, 11, 12), c=(10, 18, 11, 12), d=(17, 18, 4, 12),
                   e=(10, 18, 4, 5), f=(3, 10, 4, 5), g=(9, 10, 4, 12))
    base = torch.zeros(10, 20, 16)
    for d, segments in enumerate(lit):
        for s in segments:
            top, bottom, left, right = strokes[s]
            base[d, top : bottom + 1, left : right + 1] = 1
    labels = torch.randint(0, 10, (n,), generator=g)
    images = base[labels]
    shift = int(torch.randint(0, 3, (1,), generator=g))
    images = torch.roll(images, shift, 2) + 0.7 * torch.randn(n, 20, 16, generator=g)
    return images[:, None], labels


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.c1 = torch.nn.Conv2d(1, 12, 3, padding=1)
        self.c2 = torch.nn.Conv2d(12, 24, 3, padding=1)
        self.bn = torch.nn.BatchNorm2d(24)
        self.fc = torch.nn.Linear(24 * 5 * 4, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.c1(x)), 2)
        x = F.max_pool2d(F.relu(self.bn(self.c2(x))), 2)
        return self.fc(x.flatten(1))


def accuracy(net, images, labels, chunk=250):
    net.eval()
    right = 0
    with torch.no_grad():
        for x, y in zip(images.split(chunk), labels.split(chunk)):
            right += (net(x).argmax(1) == y).sum().item()
    net.train()
    return right / len(labels)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--score-every", type=int, default=8)
    parser.add_argument("--steps", type=int, default=320)
    args = parser.parse_args()
    torch.manual_seed(0)
    train_x, train_y = make_digits(6000, 1)
    hold_x, hold_y = make_digits(3000, 2)
    net, best = Net(), 0.0
    opt = torch.optim.SGD(net.parameters(), lr=0.02, momentum=0.9, nesterov=True)
    for it in range(1, args.steps + 1):
        pick = torch.randint(0, len(train_x), (64,))
        loss = F.cross_entropy(net(train_x[pick]), train_y[pick])
        opt.zero_grad()
        loss.backward()
        opt.step()
        if it % args.score_every == 0:
            best = max(best, accuracy(net, hold_x, hold_y))
    print(f"best holdout accuracy {best:.3f}")


if __name__ == "__main__":
    main()
