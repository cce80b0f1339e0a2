"""A slow data set and slow preprocessing, made faster with proof; needs torch.

python optimize.py
"""

import time

from torch.utils.data import DataLoader, Dataset

import sonde


class SlowDisk(Dataset):
    """Each sample waits, as for a network file system."""

    def __len__(self) -> int:
        return 200

    def __getitem__(self, index: int) -> float:
        time.sleep(0.005)
        return float(index)


def download(number: int) -> int:
    time.sleep(0.004)
    return number


def main() -> None:
    config = sonde.Config(num_workers=4, preprocessing_workers=4, enable_caching=False)
    loader, receipt = sonde.optimize.loader(DataLoader(SlowDisk(), 8), config)
    print(receipt)
    print("epoch:", sum(len(batch) for batch in loader), "samples")

    with sonde.optimize.preprocessing([download], range(24), config) as pipeline:
        print(pipeline.receipt)
        print("results:", sum(pipeline(list(range(100)))))


if __name__ == "__main__":
    main()
