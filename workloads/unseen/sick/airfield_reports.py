# truth: startup_bound
# about: every run decodes the same archive of coded weather telegrams, group by group in Python, before its first step; the decoded table could be kept in a file
# cure: --decoded
# gain: none
# needs: torch numpy
"""Fog within three hours from the coded weather telegrams of airfields.

--decoded: the table that an earlier run has decoded is there, and is read instead."""
import argparse
import datetime
import math
import os
import re
import tempfile
import time

import numpy as np
import torch
from torch import nn

FIELDS = ["station", "hour", "cloud", "wind_from", "wind_knots", "visibility", "warmth", "dew", "pressure", "change",
          "weather", "rain"]


def truth_table(count, seed=41):
    rng = np.random.default_rng(seed)
    cols = [rng.integers(3000, 3900, count), rng.integers(0, 24, count), rng.integers(0, 9, count),
            rng.integers(0, 36, count), rng.integers(0, 60, count), rng.integers(0, 90, count),
            rng.integers(-250, 350, count), rng.integers(-300, 250, count), rng.integers(9500, 10500, count),
            rng.integers(-60, 60, count), rng.integers(0, 100, count), rng.integers(0, 300, count)]
    when = np.datetime64("2015-01-01T00") + rng.integers(0, 24 * 365 * 5, count).astype("m8[h]")
    return when, np.stack(cols, 1).astype(np.int32)


def telegrams(when, table):
    """The table as the stations sent it, with the time at which the collector got it."""
    lines = []
    stamps = np.datetime_as_string(when, unit="m").tolist()
    for stamp, (st, hour, cloud, way, knots, vis, t, d, p, ch, ww, rain) in zip(stamps, table.tolist()):
        lines.append("%s AAXX 01%02d4 %05d 415%02d %d%02d%02d 1%d%03d 2%d%03d 4%04d 5%d%03d 6%03d1 7%02d82=" %
                     (stamp, hour, st, vis, cloud, way, knots, t < 0, abs(t), d < 0, abs(d), p % 10000, ch < 0, abs(ch),
                      rain, ww))
    return lines


GROUP = re.compile(r"^(\d)(\d)(\d{3})$")


def signed(group):
    match = GROUP.match(group)
    if match is None:
        raise ValueError(group)
    value = int(match.group(3))
    return -value if match.group(2) == "1" else value


def decode(line):
    """One telegram; groups come in their order, but any of them may be missing."""
    stamp, *groups = line.strip().rstrip("=").split()
    if not groups or groups[0] != "AAXX":
        raise ValueError("not a land station: " + line)
    row = dict.fromkeys(FIELDS, 0)
    row["hour"] = int(groups[1][2:4])
    row["station"] = int(groups[2])
    row["visibility"] = int(groups[3][3:])
    row["cloud"], row["wind_from"], row["wind_knots"] = int(groups[4][0]), int(groups[4][1:3]), int(groups[4][3:])
    for group in groups[5:]:
        kind = group[0]
        if kind == "1":
            row["warmth"] = signed(group)
        elif kind == "2":
            row["dew"] = signed(group)
        elif kind == "4":
            tenths = int(group[1:])
            row["pressure"] = tenths + 10000 if tenths < 5000 else tenths
        elif kind == "5":
            row["change"] = signed(group)
        elif kind == "6":
            row["rain"] = int(group[1:4])
        elif kind == "7":
            row["weather"] = int(group[1:3])
    day = datetime.datetime.strptime(stamp, "%Y-%m-%dT%H:%M").timetuple().tm_yday
    return [row[name] for name in FIELDS] + derived(day, row["warmth"] / 10, row["dew"] / 10, row["wind_from"], row["wind_knots"])


def derived(day, warmth, dew, way, knots):
    """The season, humidity by Magnus' formula, and the wind's two components."""
    humidity = math.exp(17.62 * dew / (243.12 + dew) - 17.62 * warmth / (243.12 + warmth))
    return [math.sin(2 * math.pi * day / 365), humidity, knots * math.cos(math.radians(10 * way)), knots * math.sin(math.radians(10 * way))]


def archive(folder, count, decoded):
    when, table = truth_table(count)
    with open(os.path.join(folder, "telegrams.txt"), "w") as f:
        f.write("\n".join(telegrams(when, table)))
    if decoded:
        warmth, dew, way = table[:, 6] / 10, table[:, 7] / 10, np.radians(10 * table[:, 3])
        day = (when.astype("M8[D]") - when.astype("M8[Y]")).astype(int) + 1
        humidity = np.exp(17.62 * dew / (243.12 + dew) - 17.62 * warmth / (243.12 + warmth))
        more = np.stack([np.sin(2 * np.pi * day / 365), humidity, table[:, 4] * np.cos(way), table[:, 4] * np.sin(way)], 1)
        np.save(os.path.join(folder, "table.npy"), np.concatenate([table, more], 1).astype(np.float32))


def load(folder):
    kept = os.path.join(folder, "table.npy")
    if os.path.exists(kept):
        return np.load(kept)
    with open(os.path.join(folder, "telegrams.txt")) as f:
        return np.array([decode(line) for line in f], np.float32)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--decoded", action="store_true")
    ap.add_argument("--reports", type=int, default=420000)
    ap.add_argument("--steps", type=int, default=360)
    args = ap.parse_args()
    torch.manual_seed(41)
    with tempfile.TemporaryDirectory(prefix="airfield") as folder:
        archive(folder, args.reports, args.decoded)
        began = time.perf_counter()
        table = load(folder)
    print("%d reports, %.1f s" % (len(table), time.perf_counter() - began))
    x = torch.from_numpy(table[:, 1:])
    x = (x - x.mean(0)) / x.std(0)
    fog = ((x[:, 5] - x[:, 6]).abs() + 0.3 * x[:, 3] < 0.6).float()
    net = nn.Sequential(nn.Linear(x.shape[1], 320), nn.SiLU(), nn.Linear(320, 320), nn.SiLU(), nn.Linear(320, 320),
                        nn.SiLU(), nn.Linear(320, 1))
    opt = torch.optim.AdamW(net.parameters(), 1e-3)
    began, batch = time.perf_counter(), 1024
    order = torch.randperm(len(x))
    for step in range(args.steps):
        pick = order[step * batch % (len(x) - batch):][:batch]
        loss = nn.functional.binary_cross_entropy_with_logits(net(x[pick]).squeeze(1), fog[pick])
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        if step % 90 == 89:
            print("step %d: loss %.4f" % (step + 1, loss.item()))
    took = time.perf_counter() - began
    print("%d steps, %.1f s, %.2f ms each" % (args.steps, took, 1e3 * took / args.steps))


if __name__ == "__main__":
    main()
