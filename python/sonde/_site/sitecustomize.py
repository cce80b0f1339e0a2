"""Brings Sonde's Python layer into an interpreter that `sonde run` started.

The launcher puts this file's folder in front of PYTHONPATH, so that every interpreter
of the run finds it, whatever environment it has. It takes its folder off sys.path,
starts the layer, and then steps aside for the sitecustomize the interpreter would have
found without us. Must be readable by any Python there is: one it is not meant for gets
its own sitecustomize and nothing else.
"""

import os
import sys


def _clear_traces():
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [p for p in sys.path if not p or os.path.abspath(p) != here]
    sys.path_importer_cache.pop(here, None)
    return os.path.dirname(here)


def _start(package):
    if not os.environ.get("SONDE_RUN") or os.environ.get("SONDE_DISABLE") == "1":
        return
    if sys.version_info < (3, 9) or sys.implementation.name != "cpython":
        return
    # A name of its own: what the program calls `sonde` is the program's business.
    layer = type(sys)("_sonde_layer")
    layer.__path__ = [package]
    sys.modules["_sonde_layer"] = layer
    from _sonde_layer import _layer

    _layer.start(package)


try:
    _start(_clear_traces())
except Exception:  # never the program's problem; the layer's absence is in the report
    pass

# Kept: an old interpreter would empty a module that nobody holds while it runs.
_this = sys.modules.pop("sitecustomize", None)
import sitecustomize  # noqa: E402, F401, I001  the one behind us, or the usual ImportError
