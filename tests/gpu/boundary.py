"""What a phase costs on a GPU: a zone with and without marks on the device."""

import time

import torch
from _sonde_layer import _sonde

x = torch.ones(8, device="cuda")
torch.cuda.synchronize()
plain = _sonde.Watched(int, _sonde.zone("plain"))
phase = _sonde.Watched(int, _sonde.zone("phase", "gradient"))


def cost(call, n=4000):
    best = 1e9
    for _ in range(5):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(n):
            call()
        best = min(best, time.perf_counter() - start)
    return best / n * 1e6


print(f"a call {cost(int):.2f} us, with a zone {cost(plain):.2f}, with marks {cost(phase):.2f}")
event = torch.cuda.Event(enable_timing=True)
print(f"torch's Event.record {cost(event.record):.2f} us, query {cost(event.query):.2f}")
