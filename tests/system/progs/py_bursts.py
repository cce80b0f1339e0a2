"""Computes in bursts and sleeps between them: 11, then 26 ms of CPU time, then 13 ms of sleep.

    py_bursts.py SECONDS
"""

import sys
import time


def burn(seconds):
    end = time.thread_time() + seconds
    n = 0
    while time.thread_time() < end:
        n += sum(range(200))
    return n


def short_burst():
    burn(0.011)


def long_burst():
    burn(0.026)


def rest():
    time.sleep(0.013)


end = time.time() + float(sys.argv[1])
while time.time() < end:
    short_burst()
    long_burst()
    rest()
