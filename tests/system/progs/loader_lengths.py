"""Batches padded to their longest sample, with steps of 5 ms or none; tells its bytes."""

import json
import sys
import time

import torch
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader

STEP_S = float(sys.argv[1])
lengths = [5 + 37 * i % 200 for i in range(600)]
samples = [torch.ones(n) for n in lengths]
weights = torch.zeros(1, requires_grad=True)
optimizer = torch.optim.SGD([weights], lr=0.1)
total = 0
for batch in DataLoader(samples, batch_size=5, collate_fn=pad_sequence):
    optimizer.zero_grad()
    (weights * batch.sum()).sum().backward()
    optimizer.step()
    total += batch.nelement() * batch.element_size()
    time.sleep(STEP_S)
print(json.dumps({"bytes": total}))
