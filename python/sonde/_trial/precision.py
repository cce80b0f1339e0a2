"""precision: what the program computes in double precision, it computes in single.

Whoever asks torch for doubles gets floats: `torch.float64` and its other names as the
program reads them, `double()`, arrays that become tensors, what was loaded. torch's own
code reads its own names. Where doubles are left after all, in parameters, in gradients or
in what a module gives, the trial says so and measures nothing.
"""

from __future__ import annotations

import gc
import sys
from types import FrameType, ModuleType
from typing import Any, Callable

from .. import _layer

# What the program reads of torch, and what it gets.
_NAMES = {
    "float64": "float32",
    "double": "float32",
    "complex128": "complex64",
    "cdouble": "complex64",
    "DoubleTensor": "FloatTensor",
    "DoubleStorage": "FloatStorage",
}
_MAKERS = ("tensor", "as_tensor", "asarray", "from_numpy", "from_dlpack")
_BYTES = ("frombuffer", "from_file")  # doubles in memory cannot be read as floats
_WATCHED = 4  # steps in which all that modules give is looked at


def torch_came(course: Any, torch: Any) -> None:
    if course.spec.get("precision"):
        _Single(course, torch)


class _Single:
    def __init__(self, course: Any, torch: Any) -> None:
        self.course, self.torch = course, torch
        self.part = course.part("precision")
        self.asked = 0  # the program wanted doubles of torch, not of its arrays alone
        self.watch: Any = None
        self.until = 0
        self.doubles = {torch.float64: torch.float32, torch.complex128: torch.complex64}
        _keep_tables(torch)
        self.names()
        self.casts()
        for name in _MAKERS:
            self.after(torch, name)
        self.after(torch, "load")
        for name in _BYTES:
            self.refuse(torch, name)
        course.looks.append(self.look)

    # ---- what the program asks for ----

    def names(self) -> None:
        """A class of its own for the module: reading one of these names is a call."""
        torch = self.torch
        kind = type("module", (type(torch),), {})
        for name, instead in _NAMES.items():
            if hasattr(torch, name):
                own = getattr(torch, name)
                setattr(kind, name, self.name(own, getattr(torch, instead)))
        torch.__class__ = kind

    def name(self, own: Any, instead: Any) -> property:
        def read(module: ModuleType) -> Any:
            if _is_torch(sys._getframe(1)):
                return own
            self.asked += 1
            return instead

        def write(module: ModuleType, value: Any) -> None:
            raise AttributeError("a trial reads this name otherwise")

        return property(read, write)

    def casts(self) -> None:
        torch = self.torch
        for cls in (torch.Tensor, torch.nn.Module):
            self.cast(cls, "double", cls.float)
        complex_ = torch.complex64
        if hasattr(torch.Tensor, "cdouble"):
            self.cast(torch.Tensor, "cdouble", lambda t: t.to(complex_))
        self.renamed(torch.Tensor, "type")
        self.renamed(torch.nn.Module, "type")
        self.renamed(torch, "set_default_tensor_type")

    def cast(self, cls: Any, name: str, instead: Callable[..., Any]) -> None:
        real = getattr(cls, name)

        def single(this: Any, *args: Any, **kwargs: Any) -> Any:
            if _is_torch(sys._getframe(1)):  # to print one
                return real(this, *args, **kwargs)
            self.asked += 1
            return instead(this)

        single.__name__ = name
        setattr(cls, name, single)

    def renamed(self, owner: Any, name: str) -> None:
        """Types that are named by a text."""
        real = getattr(owner, name)

        def call(*args: Any, **kwargs: Any) -> Any:
            if any(isinstance(a, str) for a in (*args, *kwargs.values())):
                self.asked += 1
                args = tuple(_float_of(a) for a in args)
                kwargs = {k: _float_of(a) for k, a in kwargs.items()}
            return real(*args, **kwargs)

        call.__name__ = name
        setattr(owner, name, call)

    # ---- what becomes a tensor ----

    def after(self, owner: Any, name: str) -> None:
        real = getattr(owner, name, None)
        if real is None:
            return

        def make(*args: Any, **kwargs: Any) -> Any:
            return self.single(real(*args, **kwargs))

        # Its own function, for whoever sends it to a worker by name.
        make.__module__, make.__name__, make.__qualname__ = owner.__name__, name, name
        setattr(owner, name, make)

    def single(self, o: Any, depth: int = 0) -> Any:
        """The same with floats; containers stay what they are."""
        if isinstance(o, self.torch.Tensor):
            dtype = self.doubles.get(o.dtype)
            if dtype is None:
                return o
            made = o.detach().to(dtype)
            return made.requires_grad_() if o.requires_grad else made
        if depth < 4 and type(o) in (list, tuple):
            return type(o)(self.single(v, depth + 1) for v in o)
        if depth < 4 and isinstance(o, dict):
            for key, value in list(o.items()):
                o[key] = self.single(value, depth + 1)
        return o

    def refuse(self, owner: Any, name: str) -> None:
        real = getattr(owner, name, None)
        if real is None:
            return

        def read(*args: Any, **kwargs: Any) -> Any:
            if kwargs.get("dtype") in self.doubles.values() and self.asked:
                self.part.why = f"bytes may be read as doubles (torch.{name})"
            return real(*args, **kwargs)

        setattr(owner, name, read)

    # ---- is anything left? ----

    def look(self) -> None:
        if self.part.settled or self.part.why or not self.course.past_start:
            return
        if not self.asked:
            self.part.why = "the program asks torch for no doubles"
        elif self.watch is None:
            module = self.torch.nn.modules.module
            self.watch = module.register_module_forward_hook(self.gave)
            self.until = self.course.step + _WATCHED
        elif self.course.step >= self.until:
            self.watch.remove()
            self.part.why = self.part.why or self.left()
            self.part.settled = not self.part.why

    def gave(self, module: Any, args: Any, output: Any) -> None:
        _layer.guarded("trial", self.check, module, output)

    def check(self, module: Any, output: Any) -> None:
        outputs = output if isinstance(output, (list, tuple)) else [output]
        if any(getattr(o, "dtype", None) in self.doubles for o in outputs):
            self.part.why = f"{type(module).__name__} still gives doubles"

    def left(self) -> str:
        """Where doubles are left in what is trained; "" nowhere."""
        optimizer, module = self.torch.optim.Optimizer, self.torch.nn.Module
        for o in gc.get_objects():
            kinds = type(o).__mro__
            if optimizer in kinds:
                owned = [p for g in o.param_groups for p in g["params"]]
                owned += [p.grad for p in owned if p.grad is not None]
            elif module in kinds:
                tables = (o.__dict__.get("_parameters"), o.__dict__.get("_buffers"))
                owned = [t for table in tables if table for t in table.values()]
            else:
                continue
            if any(getattr(t, "dtype", None) in self.doubles for t in owned):
                return f"doubles are left in a {type(o).__name__}"
        return ""


def _is_torch(frame: FrameType) -> bool:
    name = str(frame.f_globals.get("__name__") or "")
    return name.partition(".")[0] in ("torch", "sonde")


def _float_of(text: Any) -> Any:
    return text.replace("Double", "Float") if isinstance(text, str) else text


def _keep_tables(torch: Any) -> None:
    """Tables that torch makes of its types when they are first wanted: made now."""
    for name in ("_dtype_to_storage_type_map", "_storage_type_to_dtype_map"):
        table = getattr(torch.storage, name, None)
        if table is not None:
            table()
