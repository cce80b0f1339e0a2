# truth: collate_bound
# about: the collate function joins the circuits of a batch edge by edge and gate by gate in Python lists and makes tensors of the lists; the samples themselves lie ready in memory
# also: data_loading_bound
# cure: cured/netlist_delay.py
# needs: torch numpy
"""Predict the delay of circuits from their netlists with a small message-passing network."""
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

FEATURES = 6


class Netlists(Dataset):
    def __init__(self, count, seed):
        rng = np.random.default_rng(seed)
        self.circuits = []
        for _ in range(count):
            gates = int(rng.integers(180, 260))
            wires = gates * 4
            self.circuits.append({
                "gates": rng.normal(size=(gates, FEATURES)).astype(np.float32),
                "wires": rng.integers(0, gates, size=(wires, 2)),
                "load": rng.uniform(0.2, 1.0, size=wires).astype(np.float32),
                "delay": np.float32(gates / 100.0)})

    def __len__(self):
        return len(self.circuits)

    def __getitem__(self, index):
        return self.circuits[index]


def join(circuits):
    """One large graph of many small ones."""
    gates, wires, load, owner, delay = [], [], [], [], []
    for number, circuit in enumerate(circuits):
        first = len(gates)
        for gate in circuit["gates"]:
            gates.append([float(value) for value in gate])
            owner.append(number)
        for (source, target), strength in zip(circuit["wires"], circuit["load"]):
            wires.append((int(source) + first, int(target) + first))
            load.append(float(strength))
        delay.append(float(circuit["delay"]))
    return (torch.tensor(gates), torch.tensor(wires), torch.tensor(load), torch.tensor(owner),
            torch.tensor(delay))


class DelayNet(nn.Module):
    def __init__(self, width=24, rounds=2):
        super().__init__()
        self.enter = nn.Linear(FEATURES, width)
        self.rounds = nn.ModuleList(nn.Linear(2 * width, width) for _ in range(rounds))
        self.leave = nn.Linear(width, 1)

    def forward(self, gates, wires, load, owner, count):
        state = torch.relu(self.enter(gates))
        for layer in self.rounds:
            message = state[wires[:, 0]] * load[:, None]
            heard = torch.zeros_like(state).index_add(0, wires[:, 1], message)
            state = torch.relu(layer(torch.cat([state, heard], 1)))
        total = torch.zeros(count, 1).index_add(0, owner, self.leave(state) / 100.0)
        return total.squeeze(1)


def main():
    torch.manual_seed(21)
    loader = DataLoader(Netlists(480, 21), batch_size=24, shuffle=True, collate_fn=join)
    model = DelayNet()
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.01)
    start, steps = time.perf_counter(), 0
    for epoch in range(8):
        for gates, wires, load, owner, delay in loader:
            loss = nn.functional.mse_loss(model(gates, wires, load, owner, len(delay)), delay)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            steps += 1
        print("epoch", epoch, "loss %.4f" % loss.item())
    spent = time.perf_counter() - start
    print("%d steps, %.1f ms per step" % (steps, 1e3 * spent / steps))


if __name__ == "__main__":
    main()
