"""rows: batches that the loop takes out of tensors itself are K times as large.

Where the program asks a tensor for as many rows as a batch has (`x[i:i + b]`, an index of
b numbers, `narrow()`, pieces of `split()` and `chunk()`) it gets K times as many. How many
those are shows in the first steps: what was asked for and what the first module of a step
got agree. What the plan says may be more than that, where the model has rows of its own;
pieces of just that length are longer from the start, since all of them may be taken out at
once, before the first step. An index that is K times as long already (`rows = order[i:i +
b]; x[rows]; y[rows]`) is left alone.

What the model sees is looked at: where it is not K times the rows, and otherwise as before,
the trial says so and measures nothing. Batches that are made outside of torch stay as they
are, since what a larger one costs there is not known.
"""

from __future__ import annotations

import sys
from types import CodeType
from typing import Any, Callable, Iterator, Optional

from .. import _layer
from . import intercept

_WATCHED = 3  # steps whose batches must be as they should
_LATEST = 12  # steps after the first larger ones are due
_INDICES = 8  # that are kept with what they became


def torch_came(course: Any, torch: Any) -> None:
    spec = course.spec.get("rows")
    if spec:
        _Rows(course, torch, int(spec["from"]), float(spec["times"]))


class _Rows:
    def __init__(self, course: Any, torch: Any, rows: int, times: float) -> None:
        self.course, self.torch = course, torch
        self.rows, self.times = max(rows, 1), max(round(times), 2)
        self.many = self.rows * self.times
        self.part = course.part("rows")
        self.real: dict[str, Callable[..., Any]] = {}
        self.users: dict[CodeType, bool] = {}
        self.longer: list[tuple[Any, Any]] = []  # an index, and what it became
        self.asked: set[int] = set()  # so many rows, by the program, before it gets more
        self.got: list[int] = []  # so many rows of that, by the first modules of steps
        self.learned = False
        self.grown = 0  # how often somebody got more rows
        self.step = 0  # whose first module was seen
        self.shapes: set[tuple[int, ...]] = set()  # of batches as the program has them
        self.seen = 0  # rows that the model saw last
        self.good = 0
        tensor = torch.Tensor
        self.stand(tensor, "__getitem__", self.item)
        self.stand(tensor, "narrow", self.narrow)
        self.stand(tensor, "index_select", self.select)
        for owner in (tensor, torch):  # the function and the method take the same
            self.stand(owner, "split", self.split)
            self.stand(owner, "chunk", self.chunk)
        self.hook = torch.nn.modules.module.register_module_forward_pre_hook(self.forward)
        course.looks.append(self.look)

    def stand(self, owner: Any, name: str, change: Callable[..., Any]) -> None:
        """`change` says what to ask for instead; None: as it is."""
        real = getattr(owner, name)
        users = self.users

        def ask(*args: Any, **kwargs: Any) -> Any:
            code = sys._getframe(1).f_code
            ours = users.get(code)
            if ours is None:
                ours = users[code] = may_ask(code)
            if ours:
                try:
                    instead = change(*args, **kwargs)
                except Exception:  # asked in a way that nobody thought of
                    instead = None
                if instead is not None:
                    return instead()
            return real(*args, **kwargs)

        ask.__name__ = ask.__qualname__ = name
        ask.__module__ = getattr(owner, "__module__", None) or owner.__name__
        setattr(owner, name, ask)
        self.real.setdefault(name, real)

    # ---- what is asked for ----

    def item(self, this: Any, key: Any) -> Any:
        kind, rest = type(key), ()
        if kind is tuple and key:
            key, rest = key[0], key[1:]
            if any(type(k) is not slice and type(k) is not int for k in rest):
                return None  # rows and columns by two indices
            kind = type(key)
        if kind is slice:
            larger = self.longer_slice(this, key)
        elif kind is self.torch.Tensor or kind is list or kind.__name__ == "ndarray":
            larger = self.longer_index(this, key)
        else:
            return None
        if larger is None:
            return None
        return lambda: self.real["__getitem__"](this, (larger, *rest) if rest else larger)

    def longer_slice(self, this: Any, key: slice) -> Optional[slice]:
        start = 0 if key.start is None else key.start
        if key.step not in (None, 1) or type(key.stop) is not int or type(start) is not int:
            return None
        if start < 0 or not self.wants(this, key.stop - start):
            return None
        self.grown += 1
        first = max(min(start, this.shape[0] - self.many), 0)
        return slice(first, first + self.many)

    def longer_index(self, this: Any, key: Any) -> Any:
        """The same numbers K times, so that all are rows of whatever they are rows of."""
        if not self.wants(this, self.length_of(key)):
            return None
        self.grown += 1
        for known, longer in self.longer:
            if known is key:
                return longer
        if type(key) is list:
            longer = key * self.times
        elif type(key) is self.torch.Tensor:
            longer = key.repeat(self.times)
        else:
            longer = sys.modules["numpy"].tile(key, self.times)
        self.longer = [(key, longer), *self.longer[: _INDICES - 1]]
        return longer

    def length_of(self, key: Any) -> int:
        """Of an index; 0 where it is none."""
        if type(key) is list:
            return len(key) if all(type(k) is int for k in key) else 0
        if len(key.shape) != 1:
            return 0
        if type(key) is self.torch.Tensor:
            whole = key.dtype in (self.torch.int64, self.torch.int32)
        else:
            whole = key.dtype.kind in "iu"
        return int(key.shape[0]) if whole else 0

    def wants(self, this: Any, count: int) -> bool:
        """Whether so many rows of it are a batch, and it has more."""
        if count < 1 or this.dim() == 0 or this.shape[0] <= count:
            return False
        if not self.learned:
            self.asked.add(count)
        return self.learned and count == self.rows

    def narrow(self, this: Any, dim: Any, start: Any, length: Any) -> Any:
        if dim != 0 or type(length) is not int or type(start) is not int:
            return None
        return self.item(this, slice(start, start + length))

    def select(self, this: Any, dim: Any, index: Any) -> Any:
        if dim != 0 or type(index) is not self.torch.Tensor:
            return None
        longer = self.longer_index(this, index)
        if longer is None:
            return None
        return lambda: self.real["index_select"](this, 0, longer)

    def split(self, this: Any, size: Any = None, dim: int = 0, **more: Any) -> Any:
        size = more.get("split_size", more.get("split_size_or_sections", size))
        return self.pieces(this, size) if type(size) is int and dim == 0 else None

    def chunk(self, this: Any, chunks: Any, dim: int = 0) -> Any:
        if type(chunks) is not int or chunks < 1 or dim != 0 or this.dim() == 0:
            return None
        return self.pieces(this, -(-this.shape[0] // chunks))

    def pieces(self, this: Any, size: int) -> Any:
        if self.wants(this, size) or (not self.learned and size == self.rows):
            if this.shape[0] > size:
                self.grown += 1
                return lambda: self.real["split"](this, self.many)
        if self.learned or not 0 < size < this.shape[0]:
            return None
        return lambda: _Pieces.of(self, this, self.real["split"](this, size))

    # ---- what the model sees ----

    def forward(self, module: Any, args: Any) -> None:
        _layer.guarded("trial", self.check, args)

    def check(self, args: Any) -> None:
        """The first module of a step gets the batch."""
        tensors = [a for a in args if isinstance(a, self.torch.Tensor) and a.dim() > 0]
        if self.step == self.course.step or not tensors:
            return
        if not self.torch.is_grad_enabled():
            return
        self.step = self.course.step
        shape = tuple(tensors[0].shape)
        if not self.learned:
            self.learn(shape)
        at = next((n for n in (0, 1) if shape[n : n + 1] == (self.many,)), None)
        self.seen = shape[0]
        if at is None:
            self.good = 0
            self.shapes.add(shape)
            return
        as_before = (*shape[:at], self.rows, *shape[at + 1 :])
        if len(self.shapes) == 1 and as_before not in self.shapes:
            self.part.why = f"a batch of {self.shapes.pop()} became one of {shape}"
        self.good += 1

    def learn(self, shape: tuple[int, ...]) -> None:
        if self.many in shape[:2] and self.rows in self.asked:  # from the start
            self.got.append(self.rows)
        else:
            self.got += [n for n in shape[:2] if n in self.asked][:1]

    def settle_rows(self) -> None:
        """What most batches had; else what was told."""
        self.learned = True
        self.rows = max(self.got, key=self.got.count, default=self.rows)
        self.many = self.rows * self.times
        self.asked.clear()

    def look(self) -> None:
        if not self.learned and self.course.past_start:
            self.settle_rows()
        if self.part.settled or self.part.why:
            return
        if self.good >= _WATCHED and self.grown:
            self.hook.remove()
            self.part.settled = True
        elif self.course.past_start and self.course.step >= _LATEST:
            self.part.why = self.why_not()

    def why_not(self) -> str:
        if not self.grown:
            return "its batches are not rows of a tensor that the loop asks for"
        return f"the model sees {self.seen} rows instead of {self.many}"


class _Pieces(tuple):  # type: ignore[type-arg]
    """Of a tensor, one after the other; longer once it is known what a batch is."""

    rows: _Rows
    whole: Any

    @classmethod
    def of(cls, rows: _Rows, whole: Any, pieces: Any) -> _Pieces:
        made = cls(pieces)
        made.rows, made.whole = rows, whole
        return made

    def __iter__(self) -> Iterator[Any]:
        start = 0
        for piece in super().__iter__():
            size = piece.shape[0]
            longer = self.rows.longer_slice(self.whole, slice(start, start + size))
            start += size
            if longer is not None:
                piece = self.rows.real["__getitem__"](self.whole, longer)
            yield piece


def may_ask(code: CodeType) -> bool:
    """The program's own code, but no module's; data sets of tensors are asked by it."""
    if code.co_name == "forward":
        return False
    return intercept.is_users(code) or code.co_filename.endswith("utils/data/dataset.py")
