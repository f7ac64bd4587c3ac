"""What is measured: the entropies with what is promised of them, and the shape of a table."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import fysym

GRID = ((4096, 10), (4096, 100), (1024, 1000), (128, 32000))
QUICK = ((64, 10), (16, 100))
# Name, how to make it, and the promised ratio to torch.softmax: geometric mean, worst cell.
ENTROPIES: dict[str, tuple[Callable[[], Any], float, float]] = {
    "shannon": (lambda: fysym.catalog.shannon, 1.3, 2.0),
    "gini": (lambda: fysym.catalog.gini, 1.5, 2.5),
    "tsallis 1.5": (lambda: fysym.catalog.tsallis.bind(alpha=1.5), 1.5, 2.5),
    "tsallis 1.3": (lambda: fysym.catalog.tsallis.bind(alpha=1.3), 4.0, 7.0),
    "fermi_dirac": (lambda: fysym.catalog.fermi_dirac, 4.0, 7.0),
    "sine": (lambda: fysym.catalog.sine, 4.0, 7.0),
    "jensen_shannon": (lambda: fysym.catalog.jensen_shannon, 4.0, 7.0),
    "t(1-t) + sin(pi t)/pi": (lambda: fysym.catalog.gini_sine, 6.0, 10.0),
}
TSALLIS = {"gini": 2.0, "tsallis 1.5": 1.5, "tsallis 1.3": 1.3}
EXACT = {"gini": "sparsemax", "tsallis 1.5": "entmax15"}


@dataclass
class Table:
    """One table of the page: a title, what it says, the head, and rows of text."""

    title: str
    words: str
    head: list[str]
    rows: list[list[str]] = field(default_factory=list)


def targets() -> list[str]:
    from fysym import fast

    return ["numba", "numpy"] if fast.installed() else ["numpy"]


@functools.cache
def regularizers() -> dict[str, Any]:
    return {name: make() for name, (make, _, _) in ENTROPIES.items()}
