"""Computes, and asks for its CPU time every so often: where the kernel likes to take a core away."""

import sys
import time


def work():
    return sum(range(20000))


def ask():
    return time.thread_time()


seconds = float(sys.argv[1])
spent, asked = 0.0, 0.0
while spent < seconds:
    begun = ask()
    work()
    spent = ask()
    asked += spent - begun
print(asked, spent)
