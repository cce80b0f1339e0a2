# truth: oversubscribed
# about: eight threads of a pool each multiply matrices on two cores, and all of them want to run at once
# or: gil_contention
# also: allocation_churn
# cure: --threads 1
# needs: torch openblas
import argparse
from concurrent.futures import ThreadPoolExecutor

import torch


def work(seed):
    g = torch.Generator().manual_seed(seed)
    a = torch.randn(256, 256, generator=g)
    for _ in range(12):
        a = torch.tanh(a @ a.T)
    return a.sum()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--threads", type=int, default=8)
    args = parser.parse_args()
    torch.manual_seed(0)
    model = torch.nn.Linear(256, 10)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    with ThreadPoolExecutor(args.threads) as pool:
        for step in range(80):
            features = list(pool.map(work, range(step * 8, step * 8 + 8)))
            x = torch.stack(features).reshape(8, 1).expand(8, 256)
            loss = model(x).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


if __name__ == "__main__":
    main()
