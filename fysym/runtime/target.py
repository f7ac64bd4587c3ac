"""Which code answers a call: the compiled kernel where there is one, unless `target` says otherwise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..errors import InputError, UnsupportedError

# -- emitted from here --


def answer(
    target: str | None, fast: Callable[[], Any], compiled: Callable[[Any], Any], plain: Callable[[], Any]
) -> Any:
    """`compiled(kernel)` or `plain()`; `fast()` is the kernel, or the reason why there is none."""
    if target not in (None, "numpy", "numba"):
        raise InputError(f"target must be 'numpy' or 'numba', not {target!r}")
    if target == "numpy":
        return plain()
    reason = fast()
    if not isinstance(reason, str):
        try:
            return compiled(reason)
        except UnsupportedError as error:
            reason = str(error)
    if target == "numba":
        raise UnsupportedError(f"there is no Numba code: {reason}; use target='numpy'")
    return plain()


def plainly(target: str | None, reason: str, plain: Callable[[], Any]) -> Any:
    """`plain()`, where there is no kernel for this reason."""
    return answer(target, lambda: reason, lambda kernel: None, plain)
