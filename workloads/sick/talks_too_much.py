# truth: logging_stall
# about: every step logs each parameter's norm through a handler that syncs its file to disk
# cure: --every 100
# whatif: logging=100
# needs: torch
import argparse
import logging
import os
import tempfile

import torch


class Durable(logging.FileHandler):
    def emit(self, record):
        super().emit(record)
        os.fsync(self.stream.fileno())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--every", type=int, default=1)
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        log = logging.getLogger("train")
        log.setLevel(logging.INFO)
        log.propagate = False
        log.addHandler(Durable(os.path.join(folder, "train.log")))
        model = torch.nn.Sequential(*[torch.nn.Linear(256, 256) for _ in range(6)])
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
        x = torch.randn(64, 256)
        for step in range(300):
            loss = model(x).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step % args.every == 0:
                for name, p in model.named_parameters():
                    log.info("step %d %s %.4f", step, name, p.detach().norm().item())


if __name__ == "__main__":
    main()
