# truth: precision_unused
# about: the data set comes from numpy in float64, and the model was made to fit it
# cure: --single
# needs: torch openblas
import argparse

import torch


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--single", action="store_true")
    args = parser.parse_args()
    kind = torch.float32 if args.single else torch.float64
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Linear(512, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 512)
    ).to(kind)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    x = torch.randn(512, 512, dtype=kind)
    for _ in range(80):
        loss = (model(x) - x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    main()
