"""Norms, squared norms and Renyi: beside the separable entropy inside them, and beside projected gradient."""

from __future__ import annotations

import functools
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import fysym

from . import peers
from .clock import best, progress
from .promises import GRID, QUICK, Table, targets

# Name, family, its parameter, and the exponent of ||p||_q in H; 0 stands for a logarithm.
COMPOSITES: dict[str, tuple[str, float, int]] = {
    "norm 1.5": ("norm", 1.5, 1),
    "norm 2": ("norm", 2.0, 1),
    "norm 3": ("norm", 3.0, 1),
    "squared norm 1.5": ("squared_norm", 1.5, 2),
    "squared norm 2": ("squared_norm", 2.0, 2),
    "renyi 0.5": ("renyi", 0.5, 0),
}


TOGETHER = 64  # vectors of one call


@functools.cache
def composite(name: str) -> Any:
    family, number, _ = COMPOSITES[name]
    return fysym.catalog[family].bind(**{"beta" if family == "renyi" else "q": number})


def formulas(name: str) -> tuple[Callable[[Any], Any], Callable[[Any], Any]]:
    """-H and its gradient."""
    _, x, power = COMPOSITES[name]
    if power == 0:
        safe = functools.partial(np.maximum, 1e-12)
        return (
            lambda p: -np.log((p**x).sum()) / (1 - x),
            lambda p: -x / (1 - x) * safe(p) ** (x - 1) / (p**x).sum(),
        )
    return (
        lambda p: (p**x).sum() ** (power / x) / power,
        lambda p: (p**x).sum() ** (power / x - 1) * p ** (x - 1),
    )


def table_separable(quick: bool) -> Table:
    """How many times the prediction of the sum inside a composite prediction takes."""
    sizes = QUICK if quick else GRID
    table = Table(
        "Entropies of a sum: `predict` over that of the sum inside",
        "float64. Each is the prediction of a separable entropy at a temperature that one more root "
        "finds. Asked: at most 12.",
        ["entropy", "target", *(f"{n}x{d}" for n, d in sizes)],
    )
    for name in COMPOSITES:
        reg = composite(name)
        for target in targets():
            cells = []
            for n, d in sizes:
                progress(f"composite: {name} {target} {n}x{d}")
                theta = np.random.default_rng(0).normal(0.0, 2.0, (n, d))
                runners = {
                    "whole": functools.partial(reg.predict, theta, target=target),
                    "inside": functools.partial(reg.separable.predict, theta, target=target),
                }
                found = best(runners, 0.05 if quick else 1.0)
                cells.append(f"{found['whole'] / found['inside']:.1f} ({1e3 * found['whole']:.2f} ms)")
            table.rows.append([name, target, *cells])
    return table


def table_gradient_descent(quick: bool) -> Table:
    """Projected gradient to 1e-5, for one vector of 1000 scores."""
    d = 100 if quick else 1000
    table = Table(
        f"Entropies of a sum: projected gradient, d = {d}",
        "Median milliseconds a vector to an error of 1e-5 in the 2-norm; theta ~ N(0, sigma I), log sigma ~ U(-4, 4). "
        "FISTA starts at the uniform distribution and stops as soon as it is there, or after 2000 steps; fysym solves "
        f"to the last digit, each vector in a call of its own, or {TOGETHER} of them in one. Asked: 50 times less than "
        "FISTA. For the squared norm 2, Gini's entropy, FISTA's projection is the prediction itself, and a single call "
        "costs most of what it takes.",
        ["entropy", "FISTA", *(f"fysym, {target}" for target in targets()), f"{targets()[0]}, {TOGETHER} together",
         "FISTA not there", "FISTA over fysym", "over fysym, together"],
    )  # fmt: skip
    for name in COMPOSITES:
        progress(f"composite: FISTA for {name}")
        reg, rng, (value, slope) = composite(name), np.random.default_rng(d), formulas(name)
        times: dict[str, list[float]] = {}
        missed = 0
        rows = [rng.normal(0.0, np.sqrt(np.exp(rng.uniform(-4.0, 4.0))), d) for _ in range(TOGETHER)]
        for x in rows[: 2 if quick else 15]:
            truth = reg.predict(x, target="numpy")

            def close(p: Any, truth: Any = truth) -> bool:
                return float(np.linalg.norm(p - truth)) <= 1e-5

            runners = {target: functools.partial(reg.predict, x, target=target) for target in targets()}
            found = best(runners, 0.01, 1 if quick else 5)
            start = time.perf_counter()
            missed += not close(peers.fista(x, close, 20 if quick else 2000, value, slope))
            found["FISTA"] = time.perf_counter() - start
            for who, seconds in found.items():
                times.setdefault(who, []).append(1e3 * seconds)
        middle = {who: statistics.median(values) for who, values in times.items()}
        whole = best({"together": functools.partial(reg.predict, np.array(rows))}, 0.01 if quick else 0.3)
        together = 1e3 * whole["together"] / TOGETHER
        ratios = [f"{middle['FISTA'] / one:.0f}" for one in (middle[targets()[0]], together)]
        ours = [f"{middle[target]:.4f}" for target in targets()]
        row = [name, f"{middle['FISTA']:.2f}", *ours, f"{together:.4f}", f"{missed} of {len(times['FISTA'])}", *ratios]
        table.rows.append(row)
    return table
