# truth: preprocessing_bound
# about: each X-ray of a walnut passes a list of transforms whose median filter sorts the neighbourhood of every pixel one pixel at a time, in Python; both workers are busy with it all the time on both cores, and the steps wait
# also: data_loading_bound
# cure: cured/walnut_kernels.py
# whatif: transform=10
# env: OMP_NUM_THREADS=1
# needs: torch numpy
"""Sound or shrivelled: walnut kernels in X-ray images on the sorting belt."""
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

SIDE = 96


class Compose:
    def __init__(self, steps):
        self.steps = steps

    def __call__(self, image):
        for step in self.steps:
            image = step(image)
        return image


class Despeckle:
    """3 x 3 median against the speckle of the X-ray sensor."""

    def __call__(self, image):
        high, wide = image.shape
        padded = np.pad(image, 1, mode="edge")
        out = np.empty_like(image)
        for y in range(high):
            for x in range(wide):
                out[y, x] = np.sort(padded[y:y + 3, x:x + 3].ravel())[4]
        return out


class Flatten:
    """Takes the belt's shading out, line by line."""

    def __call__(self, image):
        return image - np.median(image, axis=0, keepdims=True)


class Stretch:
    def __call__(self, image):
        low, high = np.percentile(image, (1, 99))
        return np.clip((image - low) / (high - low + 1e-6), 0, 1)


class ToTensor:
    def __call__(self, image):
        return torch.from_numpy(image.astype(np.float32)).unsqueeze(0)


class Walnuts(Dataset):
    def __init__(self, images, sound, transform):
        self.images, self.sound, self.transform = images, sound, transform

    def __len__(self):
        return len(self.images)

    def __getitem__(self, i):
        return self.transform(self.images[i].astype(np.float32)), self.sound[i]


def xrays(count, seed=64):
    rng = np.random.default_rng(seed)
    yy, xx = np.mgrid[:SIDE, :SIDE] - SIDE / 2
    sound = rng.integers(0, 2, count)
    images = np.empty((count, SIDE, SIDE), dtype=np.uint16)
    for i in range(count):
        radius = rng.uniform(20, 26) + 10 * sound[i]
        kernel = (xx ** 2 + yy ** 2 < radius ** 2) * 600.0
        image = 900 + kernel + 4 * xx + rng.normal(0, 60, (SIDE, SIDE))
        image[rng.random((SIDE, SIDE)) < 0.02] = 4000
        images[i] = image
    return images, torch.from_numpy(sound).float()


def model():
    return nn.Sequential(nn.Conv2d(1, 16, 5, stride=2, padding=2), nn.ReLU(), nn.Conv2d(16, 32, 3, padding=1),
                         nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(32, 32, 3, padding=1), nn.ReLU(),
                         nn.AdaptiveMaxPool2d(3), nn.Flatten(), nn.Linear(288, 1))


def main():
    torch.manual_seed(64)
    images, sound = xrays(480)
    transform = Compose([Despeckle(), Flatten(), Stretch(), ToTensor()])
    loader = DataLoader(Walnuts(images, sound, transform), batch_size=8, shuffle=True, num_workers=2,
                        persistent_workers=True)
    net = model()
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    for epoch in range(2):
        right = 0
        for image, label in loader:
            logit = net(image).squeeze(1)
            loss = nn.functional.binary_cross_entropy_with_logits(logit, label)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            right += ((logit > 0) == (label > 0.5)).sum().item()
        print(f"epoch {epoch}: {right / len(sound):.1%} right")


if __name__ == "__main__":
    main()
