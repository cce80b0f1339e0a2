# truth: logging_stall
# about: after every step one log line per gauge and span goes through the logging module to a rotating file that is flushed line by line, and the lines of a step cost several times the step
# cure: --log-every 40
# whatif: logging=40
# needs: torch numpy
"""Strain of a road bridge: a recurrent network forecasts every gauge from the last minute of all gauges."""
import argparse
import logging
import logging.handlers
import os
import tempfile
import time

import numpy as np
import torch
from torch import nn

GAUGES, WINDOW, AHEAD = 48, 24, 5


def season(samples, seed=31):
    """Traffic and temperature as the gauges felt them."""
    rng = np.random.default_rng(seed)
    t = np.arange(samples)[:, None] / 600.0
    phase, pull = rng.uniform(0, 6.28, GAUGES), rng.uniform(0.3, 1.0, GAUGES)
    lorries = np.convolve(rng.random(samples) < 0.02, np.hanning(25), "same")
    shift = np.stack([np.roll(lorries, 2 * g) for g in range(GAUGES)], 1)
    strain = pull * np.sin(t + phase) + shift + rng.normal(0, 0.05, (samples, GAUGES))
    return torch.from_numpy(strain.astype(np.float32))


class Forecast(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.rnn = nn.GRU(GAUGES, width, batch_first=True)
        self.out = nn.Linear(width, GAUGES)

    def forward(self, window):
        return self.out(self.rnn(window)[0][:, -1])


def make_log(folder):
    log = logging.getLogger("bridge")
    log.setLevel(logging.DEBUG)
    log.propagate = False
    handler = logging.handlers.RotatingFileHandler(os.path.join(folder, "train.log"), maxBytes=4 << 20, backupCount=1)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)-7s %(name)s %(module)s:%(lineno)d  %(message)s"))
    log.addHandler(handler)
    return log, handler


def report(log, step, loss, forecast, truth):
    error = forecast - truth
    log.info("step %d loss %.6f", step, loss)
    bias, spread, worst = error.mean(0), error.std(0), error.abs().amax(0)
    for gauge in range(GAUGES):
        for span in range(8):
            log.debug("step %d gauge %02d span %d bias %+.5f spread %.5f worst %.5f last %+.4f", step, gauge, span,
                      bias[gauge].item(), spread[gauge].item(), worst[gauge].item(), error[span::8, gauge][-1].item())


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--log-every", type=int, default=1)
    ap.add_argument("--steps", type=int, default=400)
    args = ap.parse_args()
    torch.manual_seed(31)
    strain = season(20000)
    windows = strain.unfold(0, WINDOW + AHEAD, 1).transpose(1, 2)
    net = Forecast()
    opt = torch.optim.RMSprop(net.parameters(), 1e-3)
    with tempfile.TemporaryDirectory(prefix="bridge") as folder:
        log, handler = make_log(folder)
        began = time.perf_counter()
        for step in range(1, args.steps + 1):
            pick = torch.randint(len(windows), (64,))
            piece = windows[pick]
            window, truth = piece[:, :WINDOW], piece[:, -1]
            forecast = net(window)
            loss = nn.functional.smooth_l1_loss(forecast, truth)
            opt.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            opt.step()
            if step % args.log_every == 0:
                report(log, step, loss.item(), forecast.detach(), truth)
        took = time.perf_counter() - began
        handler.close()
    print("last loss %.5f" % loss.item())
    print("%d steps, %.1f s, %.2f ms each" % (args.steps, took, 1e3 * took / args.steps))


if __name__ == "__main__":
    main()
