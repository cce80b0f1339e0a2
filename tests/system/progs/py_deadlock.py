"""Two threads each hold a lock and want the other's, until SIGUSR1 frees them.

    LIBSONDE=…/libsonde.so python3 py_deadlock.py
    LIBSONDE=…/libsonde.so python3 py_deadlock.py gil    one sleeps with the interpreter lock
"""

import ctypes
import os
import signal
import sys
import threading

first, second = threading.Lock(), threading.Lock()
both_have_one = threading.Barrier(2)


def last_steps():
    """Here, so that on a busy machine, too, the silence after them is the hang."""
    for _ in range(3):
        sonde.sonde_step()


def take_first_too():
    first.acquire()  # the other thread waits here
    first.release()


def other():
    with second:
        both_have_one.wait()
        take_first_too()


def take_second_too():
    second.acquire()  # the main thread waits here
    second.release()


def train():
    thread = threading.Thread(target=other)
    first.acquire()
    thread.start()
    both_have_one.wait()
    last_steps()
    take_second_too()
    thread.join()


working = True


def work():
    while working:
        pass


def sleep_with_the_lock():
    ctypes.PyDLL(None).pause()


def starve():
    global working
    thread = threading.Thread(target=work)
    thread.start()
    last_steps()
    sleep_with_the_lock()
    working = False
    thread.join()


signal.signal(signal.SIGUSR1, lambda *_: first.locked() and first.release())
sonde = ctypes.CDLL(os.environ["LIBSONDE"])
starve() if "gil" in sys.argv else train()
print("freed")
