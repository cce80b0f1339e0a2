# truth: checkpoint_stall
# about: the whole model and the optimizer's state are written after every second step
# also: logging_stall
# cure: --every 1000
# whatif: checkpoint=500
# gain: run
# needs: torch
import argparse
import os
import tempfile

import torch


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--every", type=int, default=2)
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = torch.nn.Sequential(
        torch.nn.Linear(512, 2048), torch.nn.ReLU(), torch.nn.Linear(2048, 2048), torch.nn.ReLU(),
        torch.nn.Linear(2048, 10),
    )  # fmt: skip
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    x = torch.randn(64, 512)
    y = torch.randint(0, 10, (64,))
    with tempfile.TemporaryDirectory() as folder:
        for step in range(1, 151):
            loss = torch.nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step % args.every == 0:
                path = os.path.join(folder, "last.pt")
                torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, path)


if __name__ == "__main__":
    main()
