"""Functions that write and functions that do not, each long enough to be seen."""
import csv
import os
import time

COUNT = [f"name_{i}" for i in range(4)]


def rows(file):
    writer, end = csv.writer(file), time.monotonic() + 0.5
    while time.monotonic() < end:
        writer.writerow(COUNT)


def tells(file):
    end = time.monotonic() + 0.5
    while time.monotonic() < end:
        print("\N{GREEK SMALL LETTER MU}", file=file)


def counts(größe):
    end, number = time.monotonic() + 0.5, 0
    while time.monotonic() < end:
        number += len(COUNT) + größe.bit_length()
    return number


with open(os.devnull, "w") as out:
    rows(out)
    tells(out)
    counts(3)
