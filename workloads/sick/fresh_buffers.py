# truth: allocation_churn
# about: every step makes large temporary arrays anew, and the kernel hands out and clears their pages each time
# cure: --reuse
# needs: torch numpy
import argparse

import numpy as np
import torch

SIZE = 48 << 20


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--reuse", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = torch.nn.Linear(64, 10)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    buffer = np.zeros(SIZE // 4, np.float32)
    for step in range(400):
        if not args.reuse:
            buffer = np.zeros(SIZE // 4, np.float32)
        buffer[::512] = step  # sparse features: a value here and there
        x = torch.from_numpy(buffer[: 32 * 64].reshape(32, 64).copy())
        loss = model(x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    main()
