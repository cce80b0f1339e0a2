"""torch in a session: the phases, steps and loaders that `sonde run` sees by itself.

    import torch, sonde
    from sonde.integrations.torch import watch

    with sonde.session() as session:
        watch()
        train()

Under `sonde run` it is there already, and watch() does nothing.
"""

from __future__ import annotations

from ._owner import bring_torch_layer


def watch() -> bool:
    """Record torch's phases from here on; False when torch is not imported, or is not as
    Sonde knows it. Modules, tensors and results stay as they are; when no session
    records, it costs next to nothing."""
    return bring_torch_layer()
