"""Who records: the run we are inside of, or a session of our own."""

from __future__ import annotations

import logging
import sys
from typing import Any, Optional

from .. import _command, _sonde
from .._config import Config
from .._report import Report
from .._session import Session, SessionError, current_session

_log = logging.getLogger("sonde")
_brought = False


def torch_layer() -> bool:
    """Whether zones of torch's phases are recorded: by `sonde run` (whose layer has a
    name of its own), or since bring_torch_layer()."""
    return "_sonde_layer._torch" in sys.modules or _brought


def bring_torch_layer() -> bool:
    """What `sonde run` puts into torch, put there by a session. It stays when the session
    ends, and costs nothing then; a part that fails is left out."""
    global _brought
    torch = sys.modules.get("torch")
    if torch is None or torch_layer():
        return torch_layer()
    try:
        from .. import _layer, _torch

        _layer._directory = _sonde.session_directory() or None
        _sonde.on_problem(_layer.problem)
        _torch.install(torch)
        _brought = True
    except Exception as error:  # a torch that is not as we know it
        _log.warning("sonde: no phases of torch: %s", error)
    return _brought


class Owner:
    """Starts a session where nobody records yet, and ends only what it started.

    Training must not fail because of profiling: a session that cannot start is a warning.
    """

    def __init__(self, config: Optional[Config], options: dict[str, Any]) -> None:
        self._config, self._options = config, options
        self.session: Optional[Session] = None
        self._started = False

    def start(self) -> None:
        if self.session is not None or _sonde.session_active():
            self.session = self.session or current_session()
            return
        session = Session(self._config, **self._options)
        try:
            self.session = session.start()
            self._started = True
            bring_torch_layer()
        except SessionError as error:
            _log.warning("sonde: training is not profiled: %s", error)

    def stop(self) -> Optional[Report]:
        """The report; None while the run goes on, or when nothing was recorded."""
        if not self._started or self.session is None:
            return None
        self._started = False
        self.session.stop()
        try:
            return self.session.report()
        except (SessionError, _command.CommandError) as error:
            _log.warning("sonde: no report: %s", error)
            return None
