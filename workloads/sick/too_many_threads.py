# truth: oversubscribed
# about: the number of threads was copied from a large machine: sixteen of them share two cores, and each of many small operators ends with all of them meeting
# also: optimizer_bound
# cure: --threads 1
# needs: torch openblas
import argparse

import torch


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--threads", type=int, default=16)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    width = 256
    layers = [torch.nn.Linear(64, width), torch.nn.Tanh()]
    for _ in range(3):
        layers += [torch.nn.Linear(width, width), torch.nn.Tanh(), torch.nn.LayerNorm(width)]
    model = torch.nn.Sequential(*layers, torch.nn.Linear(width, 10))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    x = torch.randn(512, 64)
    for _ in range(300):
        loss = model(x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    main()
