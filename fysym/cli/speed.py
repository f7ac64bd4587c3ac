"""How long a prediction takes, for `fysym compare`."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..regularizer import Regularizer

ROWS, CLASSES, TRIES = 64, 1000, 5


def measured(reg: Regularizer) -> dict[str, Any]:
    """Microseconds for one row, the best of a few tries, and how many times NumPy's softmax that is."""
    import numpy as np

    theta = np.random.default_rng(0).normal(size=(ROWS, CLASSES))

    def softmax() -> None:
        p = np.exp(theta - theta.max(axis=-1, keepdims=True))
        p /= p.sum(axis=-1, keepdims=True)

    reg.predict(theta)  # compiles, where there is something to compile
    ours, base = best(lambda: reg.predict(theta)), best(softmax)
    each = ours / ROWS * 1e6
    return {"microseconds": each, "words": f"{each:.3g} us ({ours / base:.2g}x softmax)"}


def best(call: Callable[[], Any]) -> float:
    """The shortest of a few tries, in seconds."""
    times = []
    for _ in range(TRIES):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)
