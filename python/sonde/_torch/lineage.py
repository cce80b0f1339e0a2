"""What a sample is called.

Asked for the few slowest samples.
Properties of the program are not read: they may do anything.
"""

from __future__ import annotations

import os
from typing import Any, Optional

_LISTS = (
    "samples",
    "imgs",
    "image_paths",
    "img_paths",
    "paths",
    "files",
    "filenames",
    "file_list",
    "images",
)
_LONGEST = 512
_DEEPEST = 4


def _fields(o: Any) -> dict[str, Any]:
    fields = getattr(o, "__dict__", None)
    return fields if type(fields) is dict else {}


def _as_path(entry: Any) -> str:
    if isinstance(entry, (tuple, list)) and entry:
        entry = entry[0]
    if isinstance(entry, os.PathLike):
        entry = os.fspath(entry)
    return entry[-_LONGEST:] if isinstance(entry, str) else ""


def path_of(dataset: Any, index: int) -> str:
    fields = _fields(dataset)
    for name in _LISTS:
        entries: Any = fields.get(name)
        if type(entries) in (list, tuple) and -len(entries) <= index < len(entries):
            path = _as_path(entries[index])
            if path:
                return path
    return ""


def describe(dataset: Any, index: Any) -> Optional[tuple[int, str]]:
    """(index in the data set under any Subset, path or "")."""
    if index is None:
        return None
    index = int(index)
    for _ in range(_DEEPEST):
        fields = _fields(dataset)
        indices, inner = fields.get("indices"), fields.get("dataset")
        if inner is None or not isinstance(indices, (list, tuple, range)):
            break
        dataset, index = inner, int(indices[index])
    return index, path_of(dataset, index)
