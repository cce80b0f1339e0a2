"""@sonde.profile: zones around functions of every kind.

Plain functions are wrapped in C. Coroutines, generators and asynchronous generators are
driven by `_sonde.Drive`, which sees each time they wait; what a caller can notice
(exceptions, return values, `send`, `throw`, `close`, iscoroutinefunction) stays.
"""

from __future__ import annotations

import functools
import inspect
import re
from typing import Any, Callable, Optional, TypeVar, Union, overload

from ._sonde import Drive, Profiled, Span, Zone, zone

F = TypeVar("F", bound=Callable[..., Any])


def joined_tags(tags: dict[str, Any]) -> str:
    """As the recorder keeps them: "key=value,…", a comma of theirs after a backslash."""
    pairs = (f"{key}={value}" for key, value in tags.items())
    return ",".join(p.replace("\\", r"\\").replace(",", r"\,") for p in pairs)


def _tags_of(text: Optional[str]) -> dict[str, str]:
    """The tags behind joined_tags()."""
    pairs = re.findall(r"((?:[^\\,]|\\.)+)", text or "", re.DOTALL)
    plain = (re.sub(r"\\([\\,])", r"\1", pair) for pair in pairs)
    return dict(pair.split("=", 1) for pair in plain if "=" in pair)


def zone_again(
    name: str,
    phase: int,
    component: Optional[str],
    category: Optional[str],
    tags: Optional[str],
) -> Zone:
    """The zone of an unpickled record."""
    more: dict[str, Any] = {**_tags_of(tags), "category": category}
    return zone(name, phase or None, component, **more)


def zone_of(
    function: Callable[..., Any],
    name: Optional[str] = None,
    phase: Optional[str] = None,
    component: Optional[str] = None,
    category: Optional[str] = None,
    **tags: Any,
) -> Zone:
    """The zone that stands for a function, with its file and line."""
    name = name or getattr(function, "__qualname__", None) or repr(function)
    name = name.replace(".<locals>", "")
    code = getattr(inspect.unwrap(function), "__code__", None)
    if code is None:
        return zone(name, phase, component, category=category, **tags)
    return zone(
        name,
        phase,
        component,
        category=category,
        _file=code.co_filename,
        _line=code.co_firstlineno,
        **tags,
    )


def _of_coroutine(function: Callable[..., Any], z: Zone) -> Callable[..., Any]:
    @functools.wraps(function)
    async def profiled(*args: Any, **kwargs: Any) -> Any:
        return await Drive(function(*args, **kwargs), Span(z))

    return profiled


def _slices(z: Zone) -> Zone:
    """The stretches in which a generator runs are zones of the thread that runs it."""
    more: dict[str, Any] = {**_tags_of(z.tags), "category": "generator"}
    return zone(z.name, z.phase, z.component, **more)


def _of_generator(function: Callable[..., Any], z: Zone) -> Callable[..., Any]:
    slices = _slices(z)

    @functools.wraps(function)
    def profiled(*args: Any, **kwargs: Any) -> Any:
        return (yield from Drive(function(*args, **kwargs), Span(z), slices))

    return profiled


def _of_async_generator(function: Callable[..., Any], z: Zone) -> Callable[..., Any]:
    @functools.wraps(function)
    async def profiled(*args: Any, **kwargs: Any) -> Any:
        generator, span = function(*args, **kwargs), Span(z)
        step = generator.asend(None)
        try:
            while True:
                try:
                    item = await Drive(step, span, keep=True)
                except StopAsyncIteration:
                    return
                try:
                    step = generator.asend((yield item))
                except GeneratorExit:
                    span.resume()
                    await generator.aclose()
                    raise
                except BaseException as error:
                    step = generator.athrow(error)
        finally:
            span.end()

    return profiled


def wrap(function: Any, z: Zone) -> Any:
    """`function`, recorded as zone `z`."""
    if isinstance(function, (classmethod, staticmethod)):
        return type(function)(wrap(function.__func__, z))
    if isinstance(function, type) or not callable(function):
        kind = "class" if isinstance(function, type) else type(function).__name__
        raise TypeError(f"sonde.profile wants a function or method, not a {kind}")
    if inspect.isasyncgenfunction(function):
        return _of_async_generator(function, z)
    if inspect.iscoroutinefunction(function):
        return _of_coroutine(function, z)
    if inspect.isgeneratorfunction(function):
        return _of_generator(function, z)
    return functools.update_wrapper(Profiled(function, z), function)


@overload
def profile(function: F) -> F: ...
@overload
def profile(function: str, **more: Any) -> Zone: ...
@overload
def profile(**more: Any) -> Callable[[F], F]: ...


def profile(function: Union[None, str, Callable[..., Any]] = None, **more: Any) -> Any:
    """Record a zone around each call of a function, or around a block.

        @sonde.profile
        def load(path): ...

        @sonde.profile("training_step", phase="forward", component="trainer")
        async def train(batch): ...

        with sonde.profile("evaluate", phase="evaluation"):
            evaluate(model)

    Works for functions, methods, class and static methods, coroutines, generators and
    asynchronous generators; of the last three the time spent waiting is kept apart. The
    arguments after the name are those of `sonde.zone`.
    """
    if isinstance(function, str):
        return zone(function, **more)
    if function is None:
        return lambda f: profile(f, **more)
    inner = (
        function.__func__
        if isinstance(function, (classmethod, staticmethod))
        else function
    )
    if isinstance(inner, type) or not callable(inner):
        return wrap(inner, zone("?"))  # says what is wrong
    return wrap(function, zone_of(inner, **more))


def profile_async(function: F) -> F:
    """`profile` under the name some people look for."""
    return profile(function)
