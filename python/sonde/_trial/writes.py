"""Checkpoints of a trial go into its scratch folder; the program's own stay as they are.

torch.save() to a path writes the same bytes to a file in scratch. What the program does
with that path afterwards (rename, remove, link, stat, open, load) is done there too.
"""

from __future__ import annotations

import builtins
import io
import os
from typing import Any, Callable, Optional

_saved: dict[str, str] = {}  # path of the program's -> file in scratch
_scratch = ""
_count = 0


def _path(o: Any) -> Optional[str]:
    if isinstance(o, (str, os.PathLike)):
        try:
            return os.path.abspath(os.fsdecode(os.fspath(o)))
        except (TypeError, ValueError):
            return None
    return None


def _place_for(path: str) -> str:
    """Where the file that the program calls `path` is, from now on."""
    global _count
    if not _count:
        _moves()
        _looks()
    if path not in _saved:
        _count += 1
        _saved[path] = os.path.join(_scratch, f"saved-{_count}-{os.path.basename(path)}")
    return _saved[path]


def _is_temporary(path: str) -> bool:
    return path.startswith(_scratch + os.sep)


def install(course: Any) -> None:
    global _scratch
    _scratch = os.path.abspath(course.scratch)
    course.on_save = None


def torch_came(course: Any, torch: Any) -> None:
    serialization = torch.serialization
    real = serialization.save

    def save(obj: Any, f: Any, *args: Any, **kwargs: Any) -> Any:
        left_out = course.on_save is not None and course.on_save()
        path = _path(f)
        if path is not None and not _is_temporary(path):
            f = path = _place_for(path)
        if not left_out:
            return real(obj, f, *args, **kwargs)
        if path is not None:  # there, for whoever renames it
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600))
        return None

    # Its own function: the layer's zone stands outside of it.
    save.__module__, save.__name__, save.__qualname__ = "torch.serialization", "save", "save"
    for owner in (serialization, torch):
        if getattr(owner, "save", None) is real:
            owner.save = save


# ---- what follows a save ----


def _moves() -> None:
    for name in ("rename", "replace", "link"):
        setattr(os, name, _moving(getattr(os, name)))
    for name in ("remove", "unlink"):
        setattr(os, name, _removing(getattr(os, name)))


def _moving(real: Callable[..., Any]) -> Callable[..., Any]:
    def move(src: Any, dst: Any, **kwargs: Any) -> Any:
        source, target = _path(src), _path(dst)
        if source not in _saved or target is None:
            return real(src, dst, **kwargs)
        place = _saved[source]
        if real.__name__ != "link":
            del _saved[source]
        _saved[target] = place
        return None

    return move


def _removing(real: Callable[..., Any]) -> Callable[..., Any]:
    def remove(path: Any, **kwargs: Any) -> Any:
        place = _saved.pop(_path(path) or "", None)
        return real(path, **kwargs) if place is None else real(place)

    return remove


def _looks() -> None:
    for owner, name in ((os, "stat"), (os, "lstat")):
        setattr(owner, name, _looking(getattr(owner, name)))
    opened = _looking(io.open)
    builtins.open = io.open = opened


def _looking(real: Callable[..., Any]) -> Callable[..., Any]:
    def look(path: Any, *args: Any, **kwargs: Any) -> Any:
        if _saved:
            place = _saved.get(_path(path) or "")
            if place is not None:
                path = place
        return real(path, *args, **kwargs)

    return look
