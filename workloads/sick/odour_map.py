# truth: checkpoint_stall
# about: after every second step the whole state, model and momenta, 50 MB, is saved to a new file and synced to the disk before the next step may begin
# also: io_wait
# cure: --save-every 50
# whatif: checkpoint=25
# needs: torch
"""Odour descriptors from molecular fingerprints: a wide perceptron with many labels that keeps its last two states on disk."""
import argparse
import os
import tempfile
import time

import torch
from torch import nn

BITS, DESCRIPTORS, MOLECULES = 2048, 138, 1500


class Keeper:
    def __init__(self, folder, last=2):
        self.folder = folder
        self.last = last
        self.files = []

    def save(self, step, model, optimizer):
        path = os.path.join(self.folder, f"state_{step:06d}.pt")
        with open(path + ".new", "wb") as out:
            torch.save({"step": step, "model": model.state_dict(), "optimizer": optimizer.state_dict()}, out)
            out.flush()
            os.fsync(out.fileno())
        os.replace(path + ".new", path)
        self.files.append(path)
        while len(self.files) > self.last:
            os.remove(self.files.pop(0))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--save-every", type=int, default=2)
    parser.add_argument("--steps", type=int, default=100)
    options = parser.parse_args()
    torch.manual_seed(17)
    fingerprints = (torch.rand(MOLECULES, BITS) < 0.05).float()
    smells = (fingerprints @ torch.randn(BITS, DESCRIPTORS) > 14).float()
    model = nn.Sequential(nn.Linear(BITS, 2048), nn.ReLU(), nn.Linear(2048, 1024), nn.ReLU(), nn.Linear(1024, DESCRIPTORS))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    with tempfile.TemporaryDirectory() as folder:
        keeper = Keeper(folder)
        begin, cpu = time.perf_counter(), time.process_time()
        for step in range(1, options.steps + 1):
            rows = torch.randint(0, MOLECULES, (32,))
            loss = nn.functional.binary_cross_entropy_with_logits(model(fingerprints[rows]), smells[rows])
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            if step % options.save_every == 0:
                keeper.save(step, model, optimizer)
        print(f"loss {loss.item():.3f}")
        print(f"{options.steps} steps, {(time.perf_counter() - begin) / options.steps * 1e3:.1f} ms each, "
              f"{(time.process_time() - cpu) / options.steps * 1e3:.1f} ms of processor")


if __name__ == "__main__":
    main()
