"""Forward, backward, gradient, checkpoint, evaluation, model creation.

Forward is the outermost call of a module on a thread, whatever module that is: the model,
one of a GAN's two, a loss. It is seen in the interpreter's slot for calls (roots.c), so
that neither instances nor classes nor what torch.compile looks at change. Backward is seen
at torch's engine, where Tensor.backward, autograd.backward and autograd.grad meet.
"""

from __future__ import annotations

from typing import Any, Callable

from .. import _layer, _sonde
from . import models

COMPONENT = "torch"


def zone(name: str, phase: str, **more: Any) -> Any:
    return _sonde.zone(name, phase, COMPONENT, **more)


# ---- modules ----


def _describe(cls: type) -> tuple[Any, Any, Any]:
    """The zones of a module's class: called to train, to evaluate, made."""
    place = {}
    code = getattr(getattr(cls, "forward", None), "__code__", None)
    if code is not None:
        place = {"_file": code.co_filename, "_line": code.co_firstlineno}
    name = cls.__qualname__.replace("<locals>.", "")
    return (
        zone(name, "forward", **place),
        zone(name, "evaluation", **place),
        zone(name, "model_creation"),
    )


_LIBRARIES = ("/site-packages/", "/dist-packages/", "/lib/python")


def _describe_call(cls: type, frame: Any) -> Any:
    """The zone of a module that evaluates: at the innermost line that is no library's, or the
    one that calls."""
    at = frame
    while at is not None and any(part in at.f_code.co_filename for part in _LIBRARIES):
        at = at.f_back
    if at is None:
        at = frame
    name = cls.__qualname__.replace("<locals>.", "")
    return zone(name, "evaluation", _file=at.f_code.co_filename, _line=at.f_lineno)


def _watch_tree(cls: type, seen: set[int]) -> None:
    if id(cls) not in seen:
        seen.add(id(cls))
        _sonde.watch_modules(cls)
        below: list[type] = type.__subclasses__(cls)
        for sub in below:
            _watch_tree(sub, seen)


def _watch_new_classes(module: type) -> None:
    """Classes of the program are made later than this."""
    if "__init_subclass__" not in module.__dict__:
        made: Any = classmethod(_sonde.module_made)
        module.__init_subclass__ = made  # type: ignore[method-assign]


def _modules(torch: Any) -> None:
    module = torch.nn.Module
    _sonde.module_zones(
        _describe, _describe_call, models.first_call, torch._C.is_grad_enabled, module
    )
    _watch_tree(module, set())
    _watch_new_classes(module)


# ---- backward ----

backward: Any = None  # the Watched: it counts


def _engine(torch: Any) -> None:
    """run_backward of torch's engine, as a method of a class below the engine's own."""
    global backward
    holder = torch.autograd.Variable
    engine = holder._execution_engine
    kind = type(engine)
    backward = _sonde.Watched(
        kind.run_backward, zone("backward", "backward"), alone=True
    )
    below = type(kind.__name__, (kind,), {"run_backward": backward, "__slots__": ()})
    below.__module__ = kind.__module__
    holder._execution_engine = below()


# ---- plain functions ----


def watch_function(owners: list[Any], name: str, z: Any) -> None:
    """Calls of the function `name` of the first owner become zones.

    Where the function cannot be watched as it is, something takes its place, in all
    owners that have it.
    """
    function = owners[0].__dict__.get(name)
    if function is None or _sonde.watch_function(function, z):
        return
    watched = _sonde.Watched(function, z)
    for owner in owners:
        if owner.__dict__.get(name) is function:
            setattr(owner, name, watched)


def told_of(owner: Any, name: str, told: Callable[[tuple[Any, ...]], None]) -> None:
    """Calls of the owner's function `name` that went well are told, with arguments."""
    function = owner.__dict__.get(name)
    if function is not None and not _sonde.watch_function(function, told):
        setattr(owner, name, _sonde.Watched(function, told=told))


def _functions(torch: Any) -> None:
    utils = torch.nn.utils
    for name in ("clip_grad_norm_", "clip_grad_value_"):
        watch_function([utils.clip_grad, utils], name, zone(name, "gradient"))
    watch_function([torch.serialization, torch], "save", zone("save", "checkpoint"))
    told_of(utils.rnn, "pad_sequence", _sonde.padded)


def _scalers(torch: Any) -> None:
    amp = getattr(torch, "amp", None)
    found = [getattr(amp, "GradScaler", None), torch.cuda.amp.GradScaler]
    for cls in found:
        if cls is not None and "unscale_" in cls.__dict__:
            watch_function([cls], "unscale_", zone("unscale_", "gradient"))


def install(torch: Any) -> None:
    for part in (_modules, _engine, _functions, _scalers):
        _layer.guarded(f"torch: {part.__name__}", part, torch)
