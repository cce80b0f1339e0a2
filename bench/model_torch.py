"""Training steps of the reference nets in torch, timed one by one: what bench/model_ref.c
does, with the same arguments and answers."""

import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "system"))

import torch  # noqa: E402

import ref_torch  # noqa: E402


def graphs(n, batch):
    base = torch.arange(batch).repeat_interleave(5 * n) * n
    source, target = (torch.randint(n, (5 * n * batch,)) + base for _ in range(2))
    return (torch.randn(n * batch, 16), source, target, batch), torch.randint(2, (batch, 10)).float()


def main(family, threads, steps, hidden, layers, heads, n, batch, message="gin"):
    torch.set_num_threads(threads)
    if family == "gpt2":
        model = ref_torch.GPT2(256, n, hidden, layers, heads)
        inputs, labels = (torch.randint(256, (batch, n)),), torch.randint(256, (batch, n))
    else:
        model = ref_torch.GraphTransformer(16, hidden, layers, heads, message=message)
        inputs, labels = graphs(n, batch)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for i in range(-2, steps):
        wall, cpu = time.perf_counter(), time.process_time()
        optimizer.zero_grad()
        model.loss(model(*inputs), labels).backward()
        optimizer.step()
        if i >= 0:
            print((time.perf_counter() - wall) * 1e3, (time.process_time() - cpu) * 1e3)


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:9]), *sys.argv[9:])
