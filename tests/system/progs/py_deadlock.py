"""Two threads each hold a lock and want the other's, until SIGUSR1 frees them.

    LIBSONDE=…/libsonde.so python3 py_deadlock.py
"""

import ctypes
import os
import signal
import threading

first, second = threading.Lock(), threading.Lock()
both_have_one = threading.Barrier(2)


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
    take_second_too()
    thread.join()


signal.signal(signal.SIGUSR1, lambda *_: first.release())
sonde = ctypes.CDLL(os.environ["LIBSONDE"])
for _ in range(3):
    sonde.sonde_step()
train()
print("freed")
