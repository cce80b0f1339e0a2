"""sonde.requests: production monitoring, a profile per request.

    monitor = sonde.requests(sla_s=2.0, on_violation=alert)

    with monitor.request("predict"):
        answer = model.predict(data)

    app.wsgi_app = monitor.wsgi(app.wsgi_app)      # Flask and others
    app = monitor.asgi(app)                        # FastAPI and others

    print(monitor.report()["p95_latency"])

Internal latency is the time our code took. User-facing latency ends with the last byte sent
and begins, when a proxy says so (X-Request-Start), with the request's arrival there.

Memory is fixed, however many requests there are: 1 MiB per process. Worker processes write
files of their own into one directory, which report() adds up: forked workers share it by
themselves; give `directory` (or SONDE_REQUESTS) when workers start separately. The files of
workers that have ended become one.
"""

from __future__ import annotations

import functools
import inspect
import logging
import os
import sys
import tempfile
import threading
import time
import weakref
from pathlib import Path
from typing import (
    Any,
    Awaitable,
    Callable,
    Iterable,
    Iterator,
    Optional,
    TypeVar,
    Union,
)

from . import _sonde
from ._histogram import Hour, HourFile, merge_dead, read_hours, remove_files
from ._operation import _MAY_AWAIT, resident_mb

F = TypeVar("F", bound=Callable[..., Any])
_log = logging.getLogger("sonde")
MOST_S = 1e9  # longer is a mistake; NaN is neither below nor above


class Request:
    """One request, for `with` or `async with`. Times in seconds, None while it runs."""

    def __init__(
        self,
        monitor: "RequestMonitor",
        name: str,
        request_id: Optional[str],
        arrived: Optional[float],
    ) -> None:
        self.name, self.request_id = name, request_id
        self._monitor, self._arrived = monitor, arrived
        self._span = _sonde.Span(_sonde.zone(name, component="requests"))
        self.internal_latency: Optional[float] = None
        self.user_facing_latency: Optional[float] = None
        self.cpu_s: Optional[float] = None
        self.failed = False
        self.start_s = 0.0
        self._worked_from: Optional[float] = None

    def begin(self, awaits: bool = False) -> "Request":
        """Begin; `awaits` when others may run on this thread before end(): then the CPU
        time of the thread is not ours."""
        self.start_s = time.time()
        self._awaits = awaits
        self._start = time.perf_counter()
        if awaits and "asyncio" in sys.modules:
            self._span.begin_in_task()
        else:
            self._span.begin()
        self.works()
        return self

    def works(self) -> None:
        """Our code goes on: it makes the next part of an answer."""
        self._worked_from = time.perf_counter()
        self._cpu = time.thread_time()

    def answered(self) -> None:
        """Our code has its answer, or a part of it; what follows is sending it."""
        if self._worked_from is None:
            return
        now, since = time.perf_counter(), self._worked_from
        self._worked_from = None
        self.internal_latency = (self.internal_latency or 0.0) + now - since
        if not self._awaits:
            self.cpu_s = (self.cpu_s or 0.0) + time.thread_time() - self._cpu

    def end(self, failed: bool = False) -> None:
        """The request is over; further calls do nothing."""
        if self.user_facing_latency is not None:
            return
        self.answered()
        self._span.end()
        waited = (
            0.0 if self._arrived is None else max(0.0, self.start_s - self._arrived)
        )
        self.user_facing_latency = waited + time.perf_counter() - self._start
        self.failed = failed
        self._monitor._finished(self)

    def to_dict(self) -> dict[str, Any]:
        return {
            "timestamp": self.start_s,
            "request_id": self.request_id,
            "name": self.name,
            "internal_latency": self.internal_latency,
            "user_facing_latency": self.user_facing_latency,
            "cpu_s": self.cpu_s,
            "memory_mb": self._monitor._memory(),
            "failed": self.failed,
        }

    def __enter__(self) -> "Request":
        code = sys._getframe(1).f_code
        return self.begin(awaits=bool(code.co_flags & _MAY_AWAIT))

    def __exit__(self, kind: Any, *rest: Any) -> None:
        # A generator that is closed early has not failed.
        self.end(failed=kind not in (None, GeneratorExit))

    async def __aenter__(self) -> "Request":
        return self.begin(awaits=True)

    async def __aexit__(self, kind: Any, *rest: Any) -> None:
        self.end(failed=kind not in (None, GeneratorExit))


def arrival(header: Optional[str]) -> Optional[float]:
    """Seconds since the epoch of an X-Request-Start header, which proxies write as
    seconds, milliseconds or microseconds, with or without `t=`."""
    if not header:
        return None
    try:
        value = float(header.strip().lstrip("t="))
    except ValueError:
        return None
    for scale in (1.0, 1e-3, 1e-6):
        if abs(value * scale - time.time()) < 86400:
            return value * scale
    return None


class RequestMonitor:
    """See the module. Any thread may use it; `on_violation` gets the request's record."""

    def __init__(
        self,
        sla_s: float = 2.0,
        on_violation: Optional[Callable[[dict[str, Any]], Any]] = None,
        directory: Optional[Union[str, "os.PathLike[str]"]] = None,
        logger: Optional[logging.Logger] = None,
    ) -> None:
        if isinstance(sla_s, bool) or not isinstance(sla_s, (int, float)):
            raise TypeError(f"sla_s must be a number of seconds, not {sla_s!r}")
        if not sla_s > 0:
            raise ValueError(f"sla_s must be positive seconds, not {sla_s!r}")
        self.sla_s, self.on_violation = sla_s, on_violation
        self.logger = logger or _log
        named = directory or os.environ.get("SONDE_REQUESTS")
        if named:
            self.directory = Path(named)
            self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        else:
            self.directory = Path(tempfile.mkdtemp(prefix="sonde-requests-"))
            weakref.finalize(self, _remove, self.directory, os.getpid())
        self._own: tuple[int, Optional[HourFile]] = (0, None)  # a process, its file
        # By process: a child may be forked while another thread holds its parent's.
        self._making: dict[int, threading.Lock] = {}
        self._memory_at = (0.0, resident_mb())
        self._tasks: set[Any] = set()

    def __reduce__(self) -> tuple[Any, ...]:
        """A spawned worker counts into the same directory, with a file of its own."""
        return RequestMonitor, (self.sla_s, self.on_violation, self.directory)

    # ---- counting ----

    def _own_file(self) -> HourFile:
        pid = os.getpid()
        owner, file = self._own
        if file is not None and owner == pid:
            return file
        with self._making.setdefault(pid, threading.Lock()):
            owner, file = self._own
            if file is None or owner != pid:  # a forked worker gets its own
                file = HourFile(self.directory)
                self._own = (pid, file)
                merge_dead(self.directory)  # workers that come and go leave no files behind
            return file

    def _memory(self) -> Optional[float]:
        """Resident MiB, read at most once a second."""
        now = time.monotonic()
        if now - self._memory_at[0] > 1:
            self._memory_at = (now, resident_mb())
        return self._memory_at[1]

    def _finished(self, request: Request) -> None:
        user, internal = (
            request.user_facing_latency or 0.0,
            request.internal_latency or 0.0,
        )
        violation = user > self.sla_s
        try:
            hour = int(request.start_s // 3600)
            self._own_file().add(
                hour, int(internal * 1e9), int(user * 1e9), violation, request.failed
            )
        except OSError as error:  # a full disk must not fail requests
            self.logger.warning("sonde: request not counted: %s", error)
        if violation and self.on_violation is not None:
            try:
                answer = self.on_violation(request.to_dict())
                if inspect.isawaitable(answer):
                    self._await(answer)
            except Exception:
                self.logger.exception("sonde: on_violation failed")

    def _await(self, answer: Awaitable[Any]) -> None:
        """What an asynchronous on_violation does: a task of the running loop; where there
        is none, here."""
        import asyncio

        async def told() -> None:
            try:
                await answer
            except Exception:
                self.logger.exception("sonde: on_violation failed")

        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            asyncio.run(told())
            return
        task = loop.create_task(told())
        self._tasks.add(task)  # a loop holds its tasks weakly
        task.add_done_callback(self._tasks.discard)

    def log_metrics(
        self, internal_s: float, user_facing_s: float, failed: bool = False
    ) -> None:
        """Count a request that was timed elsewhere."""
        for name, value in (("internal_s", internal_s), ("user_facing_s", user_facing_s)):
            if not 0 <= value < MOST_S:
                raise ValueError(
                    f"log_metrics(): {name} must be seconds from 0 on, not {value!r}"
                )
        request = Request(self, "request", None, None)
        request.start_s = time.time()
        request.internal_latency, request.user_facing_latency = (
            internal_s,
            user_facing_s,
        )
        request.failed = failed
        self._finished(request)

    # ---- profiling requests ----

    def request(
        self,
        name: str = "request",
        request_id: Optional[str] = None,
        arrived: Optional[float] = None,
    ) -> Request:
        """One request. `name` is what is done (a route, not an id): reports group by it.
        `arrived` is when it reached the first of our machines, seconds since the epoch."""
        return Request(self, name, request_id, arrived)

    def profile(
        self, function: Optional[F] = None, *, name: Optional[str] = None
    ) -> Any:
        """Decorator of a handler: a function, a coroutine function, or a generator of
        either kind, whose request lasts until it is exhausted or closed."""
        if function is None:
            return lambda f: self.profile(f, name=name)
        label: str = name or getattr(function, "__qualname__", "") or "request"
        if inspect.isasyncgenfunction(function):
            return _handled_async_generator(self, function, label)
        if inspect.isgeneratorfunction(function):

            @functools.wraps(function)
            def handle_generator(*args: Any, **kwargs: Any) -> Any:
                with self.request(label) as request:
                    return (yield from _Working(function(*args, **kwargs), request))

            return handle_generator
        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def handle_async(*args: Any, **kwargs: Any) -> Any:
                async with self.request(label):
                    return await function(*args, **kwargs)

            return handle_async

        @functools.wraps(function)
        def handle(*args: Any, **kwargs: Any) -> Any:
            with self.request(label):
                return function(*args, **kwargs)

        return handle

    def wsgi(self, app: Callable[..., Iterable[bytes]]) -> "WsgiMiddleware":
        """WSGI middleware: `app.wsgi_app = monitor.wsgi(app.wsgi_app)`."""
        return WsgiMiddleware(app, self)

    def asgi(self, app: Callable[..., Awaitable[Any]]) -> "AsgiMiddleware":
        """ASGI middleware: `app = monitor.asgi(app)`, or
        `app.add_middleware(sonde.AsgiMiddleware, monitor=monitor)`."""
        return AsgiMiddleware(app, self)

    # ---- answers ----

    def report(self, hours: Optional[int] = None) -> dict[str, Any]:
        """Everything of the last `hours` hours (all that is kept without), over all
        processes: totals, and `by_hour`, newest last."""
        found = read_hours(self.directory)
        least = int(time.time() // 3600) - hours + 1 if hours else 0
        whole, rows = Hour(), []
        for number in sorted(h for h in found if h >= least):
            whole.add(found[number].words)
            stamp = time.strftime("%Y-%m-%dT%H:00:00Z", time.gmtime(number * 3600))
            rows.append({"hour": stamp, **found[number].summary()})
        return {"sla_s": self.sla_s, **whole.summary(), "by_hour": rows}

    def hourly_report(self) -> dict[str, Any]:
        """Of the hour that is running."""
        return self.report(hours=1)


def _remove(directory: Path, pid: int) -> None:
    if os.getpid() != pid:
        return  # the parent's to remove
    remove_files(directory)
    try:
        directory.rmdir()
    except OSError:
        pass


# ---- Answers in parts ------------------------------------------------------------------


class _Working:
    """A generator whose request works while it does, and waits between its items."""

    def __init__(self, generator: Any, request: Request) -> None:
        self._generator, self._request = generator, request
        request.answered()

    def __iter__(self) -> "_Working":
        return self

    def _step(self, method: Callable[..., Any], *args: Any) -> Any:
        self._request.works()
        try:
            return method(*args)
        finally:
            self._request.answered()

    def __next__(self) -> Any:
        return self._step(self._generator.__next__)

    def send(self, value: Any) -> Any:
        return self._step(self._generator.send, value)

    def throw(self, *error: Any) -> Any:
        return self._step(self._generator.throw, *error)

    def close(self) -> None:
        self._step(self._generator.close)


def _handled_async_generator(
    monitor: RequestMonitor, function: Callable[..., Any], label: str
) -> Callable[..., Any]:
    @functools.wraps(function)
    async def handle(*args: Any, **kwargs: Any) -> Any:
        request = Request(monitor, label, None, None).begin(awaits=True)
        generator = function(*args, **kwargs)
        step, failed = generator.asend(None), False
        try:
            while True:
                try:
                    item = await step
                except StopAsyncIteration:
                    return
                request.answered()
                try:
                    sent = yield item
                except GeneratorExit:
                    request.works()
                    await generator.aclose()
                    raise
                except BaseException as error:
                    request.works()
                    step = generator.athrow(error)
                else:
                    request.works()
                    step = generator.asend(sent)
        except GeneratorExit:
            raise
        except BaseException:
            failed = True
            raise
        finally:
            request.end(failed)

    return handle


# ---- Middleware ------------------------------------------------------------------------


class _Sent:
    """A WSGI answer that tells when it has been sent: exhausted, or closed before."""

    def __init__(self, answer: Iterable[bytes], request: Request) -> None:
        self._answer, self._request = answer, request

    def __iter__(self) -> Iterator[bytes]:
        request = self._request
        try:
            for part in self._answer:
                request.answered()  # an application that is a generator works until here
                yield part
        except GeneratorExit:
            raise  # left early: close() follows
        except BaseException:
            request.end(failed=True)
            raise
        request.end(request.failed)

    def close(self) -> None:
        try:
            if hasattr(self._answer, "close"):
                self._answer.close()
        finally:
            self._request.end(self._request.failed)


class _SentSized(_Sent):
    """Servers that see one part know the Content-Length."""

    def __len__(self) -> int:
        return len(self._answer)  # type: ignore[arg-type]


class WsgiMiddleware:
    """Counts each request of a WSGI application; server errors (5xx) and exceptions are
    failures."""

    def __init__(
        self, app: Callable[..., Iterable[bytes]], monitor: RequestMonitor
    ) -> None:
        self.monitor, self.app = monitor, app

    def __call__(
        self, environ: dict[str, Any], start_response: Callable[..., Any]
    ) -> Iterable[bytes]:
        request = self.monitor.request(
            environ.get("REQUEST_METHOD", "request"),
            environ.get("HTTP_X_REQUEST_ID"),
            arrival(environ.get("HTTP_X_REQUEST_START")),
        ).begin()

        has_status = False

        def started(status: str, *rest: Any) -> Any:
            nonlocal has_status
            has_status = True
            request.failed = status.startswith("5")
            return start_response(status, *rest)

        try:
            answer = self.app(environ, started)
        except BaseException:
            request.end(failed=True)
            raise
        if has_status:
            request.answered()
        return (_SentSized if hasattr(answer, "__len__") else _Sent)(answer, request)


class AsgiMiddleware:
    """Counts each HTTP request of an ASGI application; 5xx and exceptions are failures."""

    def __init__(
        self, app: Callable[..., Awaitable[Any]], monitor: RequestMonitor
    ) -> None:
        self.monitor, self.app = monitor, app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = {k.lower(): v.decode("latin-1") for k, v in scope.get("headers", ())}
        request = self.monitor.request(
            scope.get("method", "request"),
            headers.get(b"x-request-id"),
            arrival(headers.get(b"x-request-start")),
        ).begin(awaits=True)
        failed = False

        async def sending(message: Any) -> None:
            nonlocal failed
            if message["type"] == "http.response.start":
                request.answered()
                failed = message["status"] >= 500
            await send(message)

        try:
            await self.app(scope, receive, sending)
        except BaseException:
            failed = True
            raise
        finally:
            request.end(failed)


def requests(
    sla_s: float = 2.0,
    on_violation: Optional[Callable[[dict[str, Any]], Any]] = None,
    directory: Optional[Union[str, "os.PathLike[str]"]] = None,
    logger: Optional[logging.Logger] = None,
) -> RequestMonitor:
    """A monitor of requests; see RequestMonitor.

    monitor = sonde.requests(sla_s=2.0, on_violation=lambda r: print(r["name"]))
    """
    return RequestMonitor(sla_s, on_violation, directory, logger)


requests.AsgiMiddleware = AsgiMiddleware  # type: ignore[attr-defined]
requests.WsgiMiddleware = WsgiMiddleware  # type: ignore[attr-defined]
