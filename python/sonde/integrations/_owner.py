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


def torch_layer() -> bool:
    """Whether zones of torch's phases are recorded already, without our help."""
    layer = sys.modules.get("sonde._torch")
    return bool(layer is not None and getattr(layer, "active", lambda: False)())


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
