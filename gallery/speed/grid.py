"""The grid of array sizes: predictions and gradients beside torch.softmax, entmax and a SciPy loop."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from . import peers
from .clock import best, geometric_mean, progress
from .promises import ENTROPIES, EXACT, GRID, QUICK, TSALLIS, Table, regularizers, targets


@dataclass
class Times:
    """Seconds of each runner in each cell of the grid, and largest errors where a peer has them."""

    cells: list[str]
    seconds: dict[tuple[str, str], float] = field(default_factory=dict)
    errors: dict[str, float] = field(default_factory=dict)

    def ratios(self, over: str, under: str) -> list[float]:
        """over / under in each cell that has both."""
        return [
            self.seconds[over, cell] / self.seconds[under, cell]
            for cell in self.cells
            if (over, cell) in self.seconds and (under, cell) in self.seconds
        ]


def contestants(theta: Any, labels: Any, few: int) -> dict[str, Callable[[], Any]]:
    """Everything that is timed on one array of scores; the brentq loop on its first few rows only."""
    torch, entmax = peers.optional("torch"), peers.optional("entmax")
    found: dict[str, Callable[[], Any]] = {}
    for name, reg in regularizers().items():
        if name in TSALLIS:  # the ones that peers have
            found[f"numpy {name}"] = functools.partial(reg.predict, theta, target="numpy")
        if "numba" in targets():
            found[f"numba {name}"] = functools.partial(reg.predict, theta, target="numba")
            found[f"both {name}"] = functools.partial(reg.value_and_grad, theta, labels, target="numba")
    found["one pass"] = lambda: (theta.max(axis=1), theta >= 0.0, np.zeros_like(theta))
    for name, alpha in TSALLIS.items():
        found[f"brentq {name}"] = functools.partial(peers.brentq_rows, theta[:few].astype(np.float64), alpha)
    if torch is not None:
        torch.set_num_threads(2)
        tensor = torch.from_numpy(theta)
        found["softmax"] = functools.partial(torch.softmax, tensor, -1)
        if entmax is not None:
            for name, alpha in TSALLIS.items():
                found[f"bisect {name}"] = functools.partial(entmax.entmax_bisect, tensor, alpha, -1)
            for name, function in EXACT.items():
                found[f"exact {name}"] = functools.partial(getattr(entmax, function), tensor, -1)
    return found


def run_grid(quick: bool) -> Times:
    """All contestants on every cell of the grid, taking turns."""
    for name in ("torch", "entmax"):
        if peers.optional(name) is None:
            progress(f"{name} is not installed: its rows are left out")
    grid = QUICK if quick else GRID
    times = Times([f"float{bits} {n}x{d}" for bits in (32, 64) for n, d in grid])
    cells = [(bits, n, d) for bits in (32, 64) for n, d in grid]
    for cell, (bits, n, d) in zip(times.cells, cells, strict=True):
        progress(f"grid: {cell}")
        rng = np.random.default_rng(n + d)
        theta = rng.normal(0.0, 2.0, (n, d)).astype(f"float{bits}")
        few = 8 if quick else min(n, max(4, 64000 // d))
        runners = contestants(theta, rng.integers(0, d, n), few)
        found = best(runners, 0.1 if quick else 8.0)
        for name, seconds in found.items():
            times.seconds[name, cell] = seconds * n / few if name.startswith("brentq") else seconds
        for name in TSALLIS:
            truth = regularizers()[name].predict(theta[::8].astype(np.float64), target="numpy")
            for who in ("numba", "bisect", "exact"):
                if f"{who} {name}" in runners:
                    key = f"{who} {name} float{bits}"
                    error = np.abs(np.asarray(runners[f"{who} {name}"]())[::8] - truth).max()
                    times.errors[key] = max(float(error), times.errors.get(key, 0.0))
    return times


def table_softmax(times: Times) -> Table:
    table = Table(
        "Predictions over `torch.softmax`",
        "Time of `predict` (Numba target) over the time of `torch.softmax` on the same scores, two threads each.",
        ["entropy", *times.cells, "geometric mean", "asked", "worst", "asked"],
    )
    for name, (_, mean, worst) in ENTROPIES.items():
        ratios = times.ratios(f"numba {name}", "softmax")
        row = [f"{x:.2f}" for x in ratios] or ["-"] * len(times.cells)
        means = [f"{geometric_mean(ratios):.2f}", f"{max(ratios):.2f}"] if ratios else ["-", "-"]
        table.rows.append([name, *row, means[0], f"{mean:g}", means[1], f"{worst:g}"])
    return table


def table_peers(times: Times) -> Table:
    table = Table(
        "How many times faster than entmax and a SciPy loop",
        "Geometric mean over the grid, worst cell in brackets. `entmax_bisect` takes its default 50 steps. "
        "The brentq loop solves one row at a time; where there are many rows it was timed on the first ones. "
        "One pass is NumPy's time to read the scores for their maxima, to compare them with a number, and to make the "
        "output: no NumPy code can be faster. "
        "Errors are the largest in float64 | float32, against the NumPy target in float64.",
        ["entropy", "target", "peer", "times faster", "asked", "error", "peer's error"],
    )
    asked = {("numba", "exact"): 12, ("numba", "bisect"): 25, ("numpy", "bisect"): 5, ("numpy", "brentq"): 30}
    for name in TSALLIS:
        for (target, peer), want in asked.items():
            ratios = times.ratios(f"{peer} {name}", f"{target} {name}")
            if ratios:
                words = {"exact": f"entmax.{EXACT.get(name)}", "bisect": "entmax_bisect", "brentq": "brentq loop"}[peer]
                errors = [
                    " | ".join(f"{times.errors[key]:.0e}" for key in (f"{who} {name} float{b}" for b in (64, 32)))
                    if f"{who} {name} float64" in times.errors
                    else ""
                    for who in (target, peer)
                ]
                mean = f"{geometric_mean(ratios):.1f} ({min(ratios):.1f})"
                table.rows.append([name, target, words, mean, f">= {want}", *errors])
        ratios = times.ratios(f"brentq {name}", "one pass")
        mean = f"{geometric_mean(ratios):.1f} ({min(ratios):.1f})"
        table.rows.append([name, "one pass", "brentq loop", mean, "", "", ""])
    return table


def table_gradient(times: Times) -> Table:
    table = Table(
        "Loss, prediction and gradient over the prediction alone",
        "Time of `value_and_grad` with labels over the time of `predict`; asked: at most 1.8.",
        ["entropy", *times.cells, "worst"],
    )
    for name in ENTROPIES:
        ratios = times.ratios(f"both {name}", f"numba {name}")
        row = [f"{x:.2f}" for x in ratios] + [f"{max(ratios):.2f}"] if ratios else ["-"] * (len(times.cells) + 1)
        table.rows.append([name, *row])
    return table
