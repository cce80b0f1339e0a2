"""A torch program that knows nothing of Sonde, for pictures: images, workers, a small net.

    sonde run -- python torch_training.py [STEPS] [WORKERS]
"""

import math
import sys
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Scale:
    def __call__(self, image):
        return (image - 0.5) / 0.25


class Blur:
    def __call__(self, image):
        kernel = torch.ones(1, 1, 3, 3) / 9
        return nn.functional.conv2d(image[None], kernel, padding=1)[0]


class RandomFlip:
    def __call__(self, image):
        return image.flip(-1) if torch.rand(()) < 0.5 else image


class Compose:
    def __init__(self, transforms):
        self.transforms = transforms

    def __call__(self, image):
        for transform in self.transforms:
            image = transform(image)
        return image


class Shapes(Dataset):
    """Drawn circles; every 97th takes long, as a broken file would."""

    def __init__(self, count):
        self.count = count
        self.transform = Compose([Scale(), Blur(), RandomFlip()])

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        if index % 97 == 0:
            time.sleep(0.02)
        label = index % 2
        axis = torch.linspace(-1, 1, 32)
        distance = (axis[None] ** 2 + (axis[:, None] * (1 + label)) ** 2).sqrt()
        image = (distance < 0.5 + 0.2 * math.sin(index)).float()[None]
        return self.transform(image), label


def main(steps, workers):
    torch.manual_seed(1)
    torch.set_num_threads(1)
    loader = DataLoader(Shapes(32 * 25), batch_size=32, shuffle=True, num_workers=workers)
    model = nn.Sequential(
        nn.Conv2d(1, 8, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 16, 3), nn.ReLU(),
        nn.Flatten(), nn.Linear(16 * 13 * 13, 2),
    )  # fmt: skip
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    done = 0
    while done < steps:
        for images, labels in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(images), labels)
            loss.backward()
            optimizer.step()
            done += 1
            if done == steps:
                break
    print(f"loss {loss.item():.4f} after {done} steps")


if __name__ == "__main__":
    main(*(int(a) for a in (sys.argv[1:] + ["150", "2"][len(sys.argv) - 1 :])[:2]))
