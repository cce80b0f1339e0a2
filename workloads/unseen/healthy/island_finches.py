# truth: none
# about: two islands, a process and a core each, train their own networks and now and then exchange the better one through a pipe; both have the same work and nobody waits long
# needs: torch numpy cores:2
"""Island training: beak depth from song features. Each island has its own learning rate; every 60 steps the better weights go round."""
import multiprocessing as mp

import numpy as np
import torch

STEPS = 840
TALK_EVERY = 60


def songs(seed, n=4096):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 96)).astype(np.float32)
    w = np.random.default_rng(0).normal(size=(96, 2)).astype(np.float32)
    y = np.tanh(x @ w / 5).sum(1, keepdims=True)
    return torch.from_numpy(x), torch.from_numpy(y)


def island(name, rate, pipe):
    torch.set_num_threads(1)
    torch.manual_seed(ord(name))
    x, y = songs(ord(name))
    net = torch.nn.Sequential(torch.nn.Linear(96, 384), torch.nn.Tanh(), torch.nn.Linear(384, 384), torch.nn.Tanh(),
                              torch.nn.Linear(384, 1))
    opt = torch.optim.SGD(net.parameters(), lr=rate, momentum=0.9)
    smooth = 1.0
    for step in range(1, STEPS + 1):
        rows = torch.randint(len(x), (512,))
        loss = torch.nn.functional.mse_loss(net(x[rows]), y[rows])
        opt.zero_grad()
        loss.backward()
        opt.step()
        smooth += 0.05 * (loss.item() - smooth)
        if step % TALK_EVERY == 0:
            mine = {k: v.numpy() for k, v in net.state_dict().items()}
            if name == "A":
                pipe.send((smooth, mine))
                theirs, weights = pipe.recv()
            else:
                theirs, weights = pipe.recv()
                pipe.send((smooth, mine))
            if theirs < smooth:
                net.load_state_dict({k: torch.from_numpy(v) for k, v in weights.items()})
            print(f"island {name} step {step} loss {smooth:.4f}", flush=True)


if __name__ == "__main__":
    a, b = mp.Pipe()
    other = mp.Process(target=island, args=("B", 0.02, b))
    other.start()
    island("A", 0.05, a)
    other.join()
