"""FLINT and its working precision, which is one for all threads and therefore used under a lock."""

from __future__ import annotations

import importlib.util
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_LOCK = threading.RLock()


def available() -> bool:
    """Is python-flint installed?"""
    return importlib.util.find_spec("flint") is not None


@contextmanager
def precision(bits: int) -> Iterator[Any]:
    """The module flint at this working precision."""
    import flint

    with _LOCK, flint.ctx.workprec(bits):
        yield flint
