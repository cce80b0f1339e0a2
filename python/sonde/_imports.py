"""Being told when the program has imported something, without importing it.

A finder at the front of sys.meta_path sees the name, lets the others find the module, and
puts a Watched in the place of the loader's exec_module for this one time. The module's
__spec__ and __loader__ are those it would have had; while the module runs there is no
frame of ours on the stack.
"""

from __future__ import annotations

import sys

from . import _sonde

TYPE_CHECKING = False  # typing is slow to import, and every interpreter gets here
if TYPE_CHECKING:
    from typing import Any, Callable, Optional


class _Finder:
    def __init__(self, wanted: dict[str, Callable[[Any], None]]) -> None:
        self.wanted = wanted

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name not in self.wanted:
            return None
        spec = _spec_by_others(self, name, path, target)
        if spec is not None and spec.loader is not None:
            _hook(spec, self.wanted.pop(name))
        if not self.wanted:
            _leave(self)
        return spec


def _leave(finder: Any) -> None:
    # A new list, at once: somebody may be walking along the old one.
    sys.meta_path[:] = [f for f in sys.meta_path if f is not finder]


def _spec_by_others(finder: Any, name: str, path: Any, target: Any) -> Any:
    after = False
    for other in list(sys.meta_path):
        if other is finder:
            after = True
        elif after and hasattr(other, "find_spec"):
            spec = other.find_spec(name, path, target)
            if spec is not None:
                return spec
    return None


def _hook(spec: Any, came: Callable[[Any], None]) -> None:
    loader = spec.loader
    zone = _sonde.zone(f"import {spec.name}", None, "startup")

    def after(_: Any) -> None:
        loader.__dict__.pop("exec_module", None)
        module = sys.modules.get(spec.name)
        if module is not None:
            came(module)

    loader.exec_module = _sonde.Watched(loader.exec_module, zone, None, after)


def watch(wanted: dict[str, Callable[[Any], None]]) -> None:
    for name in [n for n in wanted if n in sys.modules]:
        wanted.pop(name)(sys.modules[name])
    if wanted:
        sys.meta_path.insert(0, _Finder(dict(wanted)))


class _Offer:
    """`import sonde` works under `sonde run` where nobody has installed it.

    The last finder to be asked: a module of the program's own, or an installed package,
    goes first.
    """

    def __init__(self, package: str) -> None:
        self.package = package

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name != "sonde":
            return None
        from importlib.machinery import PathFinder
        from os.path import basename, dirname

        if basename(self.package) != "sonde":
            return None
        return PathFinder.find_spec(name, [dirname(self.package)], target)


def offer(package: Optional[str]) -> None:
    if package:
        sys.meta_path.append(_Offer(package))
