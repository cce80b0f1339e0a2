"""sonde.session: recording without `sonde run`, and the one manager of the process."""

from __future__ import annotations

import atexit
import errno
import logging
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Callable, Optional, Union

from . import _command, _layer, _operation, _sonde
from ._companion import Companion
from ._config import LEVELS, Config
from ._monitor import Monitor
from ._report import Report

Alert = Callable[[str, dict[str, Any]], Any]
SNAPSHOTS = 100_000

_log = logging.getLogger("sonde")
_current: Optional["Session"] = None


def _check_times(**seconds: Any) -> None:
    for name, value in seconds.items():
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise TypeError(f"session({name}=) wants seconds as a number, not {value!r}")
        if not 0 <= value < 1e9:
            raise ValueError(f"session({name}={value!r}): seconds from 0 on")


def _check_steps(steps: Any) -> None:
    if steps is None:
        return
    try:
        first, end = steps
        ok = 0 <= int(first) < int(end)
    except (TypeError, ValueError):
        ok = False
    if not ok:
        raise ValueError(
            f"session(steps={steps!r}) wants (first, end), the end not included: "
            "steps=(10, 20)"
        )


class SessionError(RuntimeError):
    """A session could not start; the text says why and what to do."""


class Session:
    """One recording of this process (and its children), from start() to stop().

        with sonde.session(name="baseline") as session:
            train()
        report = session.report()

    Under `sonde run` the session joins the run: its switches hold, the run is the
    supervisor's to end and to report. With SONDE_DISABLE=1 nothing is recorded.
    """

    def __init__(
        self,
        config: Optional[Config] = None,
        *,
        name: Optional[str] = None,
        output: Optional[Union[str, "os.PathLike[str]"]] = None,
        max_trace: int = 0,
        min_zone: float = 0.0,
        after: float = 0.0,
        duration: float = 0.0,
        steps: Optional[tuple[int, int]] = None,
        lossy: bool = False,
        logger: Optional[logging.Logger] = None,
        **fields: Any,
    ) -> None:
        if config is not None and not isinstance(config, Config):
            raise TypeError(
                f"session() wants a sonde.Config, not {type(config).__name__}"
            )
        _check_times(after=after, duration=duration, min_zone=min_zone)
        _check_steps(steps)
        given = {} if config is None else config.to_dict()
        self.config = Config(**{**given, **fields})
        self._in_store = config is None and "profile_dir" not in fields
        self.name, self.output = name, output
        self._options: dict[str, Any] = {
            "max_trace": max_trace,
            "min_zone_ns": int(min_zone * 1e9),
            "after_ns": int(after * 1e9),
            "duration_ns": int(duration * 1e9),
            "first_step": steps[0] if steps else 0,
            "last_step": steps[1] - 1 if steps else 0,
            "lossy": lossy,
        }
        self.logger = logger or _log
        self.directory: Optional[Path] = None
        self.joined = False
        self.snapshots: list[tuple[float, str, Optional[float]]] = []
        self.monitor: Optional[Monitor] = None
        self._companion: Optional[Companion] = None
        self._alerts: list[Alert] = []
        self._running = self._stopped = False
        self._temporary: Optional[str] = None
        self._report: Optional[Report] = None

    # ---- start and stop ----

    def _output(self) -> Optional[str]:
        """The run directory, None for one in the store (.sonde)."""
        if self.output is not None:
            return os.fspath(self.output)
        if not self.config.save_profiles:
            self._temporary = tempfile.mkdtemp(prefix="sonde-")
            return os.path.join(self._temporary, "run")
        if self._in_store:
            return None
        stamp = time.strftime("%Y%m%d-%H%M%S")
        return os.path.join(
            self.config.profile_dir, f"{self.name or 'run'}-{stamp}-{os.getpid()}"
        )

    def _start_recorder(self) -> None:
        if _sonde.session_active():
            self.joined = True
            self.directory = Path(_sonde.session_directory())
            return
        try:
            directory = _sonde.session_start(
                output=self._output(),
                name=self.name,
                level=1 + LEVELS.index(self.config.profile_level),
                no_energy=not self.config.track_carbon,
                **self._options,
            )
        except OSError as error:
            if error.errno == errno.ECANCELED:
                return  # SONDE_DISABLE: everything goes on, nothing is recorded
            raise SessionError(error.strerror) from None
        self.directory = Path(directory)

    def start(self) -> "Session":
        """Begin to record; SessionError when this process records already."""
        global _current
        if self._running or _current is not None:
            raise SessionError("a session is active already: stop() it first")
        if self.config.records:
            self._start_recorder()
        self._apply_phases(self.config.phases_off())
        _apply_events(self.config.cuda_events())
        self._start_monitor()
        if self.directory is not None and not self.joined:
            self._companion = Companion(self.config, self.directory)
            self._companion.start()
        _operation._listeners.append(self._on_operation)
        self._running = True
        _current = self
        return self

    def _apply_phases(self, off: list[str]) -> None:
        bits = sum(1 << 1 + _sonde.PHASES.index(phase) for phase in off)
        _sonde.set_phases(bits)

    def _start_monitor(self) -> None:
        kinds = self.config.monitors()
        if self.directory is None or self.joined or not kinds:
            return
        intervals = {"system": self.config.system_interval}
        if self.config.detailed_memory:
            intervals["memory"] = min(
                self.config.memory_interval, self.config.interval()
            )
        self.monitor = Monitor(sorted(kinds), self.config.interval(), intervals)
        self.monitor.start()

    def stop(self) -> None:
        """End; stopping twice does nothing. An interrupt (Ctrl-C) while it ends is passed
        on, with nothing left recording."""
        if not self._running:
            return
        try:
            self._stop_watching()
        finally:
            self._stop_recorder()
        if self.directory is not None and not self.joined:
            self._finish()

    def _stop_watching(self) -> None:
        if self._on_operation in _operation._listeners:
            _operation._listeners.remove(self._on_operation)
        if self.monitor is not None:
            self.monitor.stop()
        if self._companion is not None:
            self._companion.stop()
            for note in self._companion.notes:
                self.logger.info("sonde: %s", note)

    def _stop_recorder(self) -> None:
        # Until it is stopped the session stays the current one, so that whoever is
        # interrupted here can stop() again.
        global _current
        if self._on_operation in _operation._listeners:
            _operation._listeners.remove(self._on_operation)
        self._apply_phases([])
        _apply_events(True)
        try:
            if self.directory is not None and not self.joined:
                _sonde.session_stop()
        finally:
            self._running, self._stopped = False, True
            _current = None

    def _finish(self) -> None:
        """Report and files. A failure here is a message, never an exception: the work
        of the program is done."""
        config = self.config
        try:
            if config.generate_reports:
                self._report = self._read()
                self._save(self._report)
                if config.log_metrics:
                    self.logger.info(
                        "sonde: %s (%s)", self._report.verdict, self.directory
                    )
                if config.log_precision:
                    for p in self._report.to_dict().get("provenance") or []:
                        self.logger.info("sonde: %s", p)
        except (_command.CommandError, OSError, ValueError) as error:
            self.logger.warning("sonde: no report of %s: %s", self.directory, error)
        finally:
            if self._temporary is not None:
                shutil.rmtree(self._temporary, ignore_errors=True)

    def _save(self, report: Report) -> None:
        if self._temporary is not None or self.directory is None:
            return
        if self.config.export_to_json:
            report.to_json(self.directory / "report.json")
        if self.config.export_to_csv:
            report.to_csv(self.directory / "operations.csv")
        if self.config.create_visualizations:
            self._save_page(report, self.directory / "report.html")

    def _save_page(self, report: Report, path: Path) -> None:
        try:
            report.to_html(path)
        except _command.CommandError as error:
            self.logger.debug("sonde: no page: %s", error)

    def __enter__(self) -> "Session":
        return self.start()

    def __exit__(self, *exception: Any) -> None:
        self.stop()

    # ---- while it runs ----

    @property
    def active(self) -> bool:
        return self._running

    def pause(self) -> None:
        _sonde.pause()

    def resume(self) -> None:
        _sonde.resume()

    def add_alert_callback(self, callback: Alert) -> None:
        """Call `callback(message, record)` when an operation takes longer than
        `Config.alert_threshold`."""
        self._alerts.append(callback)

    def _on_operation(self, op: "_operation.Operation") -> None:
        config = self.config
        if config.memory_snapshots and config.enable_memory_profiling:
            if len(self.snapshots) < SNAPSHOTS:
                self.snapshots.append((time.time(), op.name, op.mem_after_mb))
        if config.log_memory_usage:
            self.logger.info("sonde: %s: %s MiB", op.name, op.mem_after_mb)
        if (
            config.real_time_monitoring
            and (op.duration or 0.0) > config.alert_threshold
        ):
            text = f"operation {op.name!r} took {op.duration:.2f} s"
            for callback in self._alerts:
                try:
                    callback(text, op.to_dict())
                except Exception:  # an alert must not break the run
                    self.logger.exception("sonde: an alert callback failed")

    # ---- afterwards ----

    def _read(self) -> Report:
        if self.directory is None:
            if not self._running and not self._stopped:
                raise SessionError("this session was not started: start() it, or use `with`")
            raise SessionError("nothing was recorded: profiling is switched off")
        report = Report.of(self.directory)
        report._kept = self._temporary is None
        c = self.config
        report._limits = (
            c.profile_depth,
            c.min_time_threshold,
            c.min_memory_threshold / 2**20,
        )
        return report

    def report(self) -> Report:
        """The report so far; of the whole session once it has stopped."""
        if self._report is not None:
            return self._report
        if self._temporary is not None and not self._running:
            raise SessionError(
                "the run was not kept: set save_profiles=True or generate_reports=True"
            )
        return self._read()

    def __repr__(self) -> str:
        state = "active" if self._running else "stopped" if self.directory else "new"
        return f"<sonde.Session {state} {self.directory or ''}>"


def _apply_events(on: bool) -> None:
    """For the torch layer of this session, and for that of the run it has joined."""
    layers: list[tuple[Optional[str], Any]] = [(__package__, _layer)]
    if "_sonde_layer._layer" in sys.modules:
        layers.append(("_sonde_layer", sys.modules["_sonde_layer._layer"]))
    for package, layer in layers:
        layer.cuda_events = on
        cuda: Any = sys.modules.get(f"{package}._torch.cuda")
        if cuda is not None:
            cuda.switch_events()


def session(config: Optional[Config] = None, **options: Any) -> Session:
    """A session for `with`, or for start() and stop(). Fields of Config may be given as
    keywords; `name`, `output`, `max_trace`, `steps=(a, b)` (the first is
    1, b is not included), `after`, `duration`, `min_zone`
    and `logger` besides.

        with sonde.session(profile_level="basic", name="quick"):
            train()
    """
    return Session(config, **options)


def current_session() -> Optional[Session]:
    """The active session of this process: the process-wide manager; None without."""
    return _current


def _after_fork() -> None:
    # The child records by itself, with a file of its own; the session is the parent's.
    global _current
    if _current is not None:
        _current._running = False
        _current.monitor = None
        if _current._companion is not None:
            _current._companion.forget()
        _operation._listeners.clear()
        _current = None


def _at_exit() -> None:
    if _current is not None:  # started without `with` and never stopped
        _current.stop()


os.register_at_fork(after_in_child=_after_fork)
atexit.register(_at_exit)
