"""apart: the thread that keeps the GIL goes on in a process of its own.

Which thread that is shows when steps begin: the main thread has the lock then, and the
stacks of all others stand still. Where the place that was told of is among their frames
(without one: where a thread computes in every step) their outermost function is what is
meant, and every thread of it.

Such a thread stops at a line of the program's own and forks there when the next step
begins: not while the main thread is inside of a library, some of which wait for their
threads in a fork. The child goes on with the work in the same state, and the thread itself
waits for the trial's end, so that nothing of the program sees it return, fail or let go of
what it has. Where no steps come any more and the main
thread does not compute, it may have been stopped while it held a lock: it goes on, and is
stopped elsewhere. Where that does not help the loop waits for this thread, and the trial
says so and measures nothing.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from types import CodeType, FrameType
from typing import Any, Optional

from .. import _layer
from . import intercept

_LOOKS = 4  # before anybody is stopped: stacks at the beginning of so many steps
_MOST_LOOKS = 40
_VOTES = 2
_BUSY = 0.1  # of the time from one step to the next: it computes
_TRIES = 3
_ASLEEP_S = 3.0  # without a step, while the main thread does nothing
_IDLE = 0.05  # of its time, at most, that is CPU time
_OVER_S = 1.0  # … when the program has no more steps
_LONG_S = 10.0  # without a step whatever it does, or …
_LONG = 20  # … so many of the longest step
_POLL_S = 0.2
_SOON_S = 0.001
_PR_SET_PDEATHSIG = 1
_WAITS = "the loop waits for the thread of {}(): it cannot be left out"


def install(course: Any) -> None:
    spec = course.spec.get("apart")
    if spec:
        _Apart(course, str(spec["place"]))


# ---- stacks ----


def is_library(code: CodeType) -> bool:
    """Python's own code, which may hold locks of its own."""
    file = code.co_filename
    own = file.startswith("<") or "/lib/python3" in file
    return own and "-packages/" not in file


def is_at(place: str, frame: Optional[FrameType]) -> bool:
    """Whether the function of "x.py:12 in f" is on the stack."""
    where, _, name = place.partition(" in ")
    file, _, line = where.rpartition(":")
    if not line.isdigit():
        return False
    while frame is not None:
        code = frame.f_code
        if (
            os.path.basename(code.co_filename) == file
            and (not name or code.co_name == name.rpartition(".")[2])
            and code.co_firstlineno <= int(line) <= intercept.last_line(code)
        ):
            return True
        frame = frame.f_back
    return False


def root_of(frame: Optional[FrameType]) -> Optional[CodeType]:
    """A thread's outermost function that is not Python's own, the program's first."""
    found: Optional[CodeType] = None
    while frame is not None:
        code = frame.f_code
        if intercept.is_users(code) or (
            not is_library(code) and not (found and intercept.is_users(found))
        ):
            found = code
        frame = frame.f_back
    return found


def may_stop(frame: Optional[FrameType], root: CodeType) -> bool:
    """Nothing of Python's own is between here and the thread's root: a queue or a log in
    the middle of its work has locks that others want."""
    while frame is not None:
        if is_library(frame.f_code):
            return False
        if frame.f_code is root and root_of(frame.f_back) is None:
            return True
        frame = frame.f_back
    return False


def _cpu_s(tid: int) -> float:
    """CPU time of a thread of this process; 0 where the kernel does not tell."""
    try:
        fd = os.open(f"/proc/self/task/{tid}/schedstat", os.O_RDONLY | os.O_CLOEXEC)
        try:
            return int(os.read(fd, 100).split()[0]) / 1e9
        finally:
            os.close(fd)
    except (OSError, ValueError, IndexError):
        return 0.0


# ---- the threads ----


class _Apart:
    def __init__(self, course: Any, place: str) -> None:
        self.course, self.place = course, place
        self.part = course.part("apart")
        self.votes: dict[CodeType, int] = {}
        self.looked = self.tries = self.parked = 0
        self.root: Optional[CodeType] = None
        self.stopping = False  # whoever of them comes by is to stop
        self.forking = False  # the main thread stands still
        self.waiting = 0  # for that
        self.leave = False  # whoever has stopped is to go on
        self.again_at = 0  # the step from which they may be stopped again
        self.children: list[int] = []
        self.main = threading.get_native_id()
        self.used: dict[int, tuple[float, float]] = {}  # by thread: when, CPU time
        self.longest = 0.0
        self.last = (0, 0.0)
        self.all_at_once = hasattr(threading, "settrace_all_threads")
        if not self.all_at_once:
            threading.settrace(self.traced)
        course.looks.append(self.look)
        course.at_end.append(self.end_children)

    # ---- the main thread ----

    def look(self) -> None:
        self.time_steps()
        if self.root is None:
            if self.course.past_start:
                self.seek()
        elif not self.stopping and self.course.step >= self.again_at:
            self.leave = False
            self.stop()
        elif self.parked and not self.part.settled:
            self.settle()

    def time_steps(self) -> None:
        step, began = self.last
        self.last = (self.course.step, time.monotonic())
        if step:
            self.longest = max(self.longest, self.last[1] - began)

    def others(self) -> list[FrameType]:
        own = threading.get_ident()
        return [f for tid, f in sys._current_frames().items() if tid != own]

    def suspects(self) -> list[FrameType]:
        if self.place:
            return [f for f in self.others() if is_at(self.place, f)]
        now, before = time.monotonic(), self.used
        self.used, found = {}, []
        frames = sys._current_frames()
        for thread in threading.enumerate():
            if thread.native_id in (None, self.main) or thread.ident not in frames:
                continue
            assert thread.native_id is not None and thread.ident is not None
            self.used[thread.ident] = now, _cpu_s(thread.native_id)
            then, cpu = before.get(thread.ident, (now, 0.0))
            if self.used[thread.ident][1] - cpu > _BUSY * (now - then) > 0:
                found.append(frames[thread.ident])
        return found

    def seek(self) -> None:
        self.looked += 1
        for root in filter(None, map(root_of, self.suspects())):
            self.votes[root] = self.votes.get(root, 0) + 1
        best = max(self.votes, key=self.votes.__getitem__, default=None)
        if best is None or self.votes[best] < _VOTES or self.looked < _LOOKS:
            if self.looked >= _MOST_LOOKS:
                where = f"is at {self.place}" if self.place else "computes all the time"
                self.part.why = f"no other thread {where}"
            return
        self.root = best
        self.part.told["function"] = f"the thread of {best.co_name}(), now a process"
        self.stop()

    def settle(self) -> None:
        """All have stopped; some may sleep for long, and stop when they come by."""
        self.looked += 1
        end = time.monotonic() + _ASLEEP_S
        self.forking = True
        while self.waiting and time.monotonic() < end:
            time.sleep(_SOON_S)
        self.forking = False
        running = sum(root_of(f) is self.root for f in self.others())
        if self.parked >= running or self.looked >= _MOST_LOOKS:
            self.watch_all(False)
            self.part.settled = True

    def stop(self) -> None:
        """From now on they stop at a line of theirs."""
        self.stopping, self.looked = True, 0
        self.watch_all(True)
        for frame in self.others():
            if root_of(frame) is self.root:
                walk: Optional[FrameType] = frame
                while walk is not None:
                    walk.f_trace = self.traced
                    walk = walk.f_back

    def watch_all(self, on: bool) -> None:
        """Before Python 3.12 a thread can only be traced by itself, from its beginning
        on. Since then tracing one makes all of them slower, while it lasts."""
        if self.all_at_once:
            threading.settrace_all_threads(self.traced if on else None)  # type: ignore[attr-defined]
            threading.settrace(self.traced)  # who starts from now on

    # ---- the other thread ----

    def traced(self, frame: FrameType, event: str, arg: Any) -> Any:
        if os.getpid() != self.course.pid:
            return None
        if not self.stopping or self.root is None:
            return None
        root = root_of(frame)
        if root is not self.root:
            if root is not None and self.part.settled:
                sys.settrace(None)  # another thread, and none more is to be found
            return None
        if event in ("line", "call") and may_stop(frame, self.root):
            _layer.guarded("trial", self.park)
            return None
        return self.traced

    def park(self) -> None:
        frame: Optional[FrameType] = sys._getframe(1)
        while frame is not None:
            frame.f_trace = None
            frame = frame.f_back
        self.parked += 1
        # Who comes when all have stopped is one of many short ones: no process for each.
        forks = not self.part.settled
        self.waiting += forks
        if self.wait(forks) and self.fork() == 0:
            return
        self.waiting -= forks
        self.wait(False)
        self.parked -= 1
        self.end_children()

    def wait(self, to_fork: bool) -> bool:
        """Until it is to go on, or (true) to fork."""
        step, since, cpu = self.course.step, time.monotonic(), _cpu_s(self.main)
        while not self.leave:
            if to_fork and self.forking:
                return True
            time.sleep(_SOON_S if to_fork else _POLL_S)
            now = time.monotonic()
            if step != self.course.step:
                step, since, cpu = self.course.step, now, _cpu_s(self.main)
                continue
            idle = _cpu_s(self.main) - cpu < _IDLE * (now - since)
            limit = _ASLEEP_S if idle else max(_LONG_S, _LONG * self.longest)
            if step >= self.course.last:
                limit = _OVER_S
            if now - since > limit:
                self.stalled()
        return False

    def stalled(self) -> None:
        course = self.course
        if self.leave:  # another of them was first
            return
        if course.step >= course.last:  # it waits for its threads to end
            course.end("program")
        self.tries += 1
        if course.from_step or self.tries >= _TRIES:
            assert self.root is not None
            self.part.why = _WAITS.format(self.root.co_name)
            course.end("failed")
        self.part.settled = False
        self.again_at = course.step + 2
        self.stopping = False
        self.leave = True

    # ---- the process ----

    def fork(self) -> int:
        """0 in the child; −1 where there is none, and the work is just gone."""
        try:
            pid = os.fork()
        except Exception:
            return -1
        if pid == 0:
            _layer.guarded("trial", self.become)
            return 0
        self.children.append(pid)
        return pid

    def become(self) -> None:
        """It ends with its thread's function or with its parent, and says nothing."""
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        sys.settrace(None)
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 2)
        threading.current_thread()._delete = lambda: os._exit(0)  # type: ignore[attr-defined]

    def end_children(self) -> None:
        children, self.children = self.children, []
        for pid in children:
            try:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
            except OSError:
                pass
