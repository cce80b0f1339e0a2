"""A program whose time by line is known: it measures itself with its own CPU clock.

Prints "LINE CPU_SECONDS" for each of the two lines that burn, and sleeps as told.
"""

import sys
import threading
import time


def burn_cheap(seconds):
    end = time.thread_time() + seconds
    total = 0
    while time.thread_time() < end:
        total += sum(range(2000))  # CHEAP
    return total


def burn_dear(seconds):
    end = time.thread_time() + seconds
    total = 0
    while time.thread_time() < end:
        total += sum(i * i for i in range(400))  # DEAR
    return total


def deep(levels, seconds):
    if levels:
        return deep(levels - 1, seconds)
    return burn_dear(seconds)


def sleeper(stop):
    while not stop.is_set():
        stop.wait(0.2)  # IDLE


stop = threading.Event()
thread = threading.Thread(target=sleeper, args=(stop,), name="sleeper")
thread.start()
rounds = int(sys.argv[1])
for _ in range(rounds):
    # The short one is not the first after the sleep: a thread that slept is looked at ten
    # times a second until it is seen awake, and what it did meanwhile goes to what it does.
    deep(20, 0.3)
    burn_cheap(0.1)
    time.sleep(0.1)  # SLEEP
stop.set()
thread.join()
print(rounds * 0.1, rounds * 0.3, rounds * 0.1)
