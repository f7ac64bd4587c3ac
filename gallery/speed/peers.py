"""What others do for Tsallis predictions: a SciPy root finder for each row, and the solvers of the paper's figure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import optimize


def optional(name: str) -> Any:
    """A module, or None where it is not installed."""
    try:
        return __import__(name)
    except ImportError:
        return None


def tsallis_sum(x: Any, alpha: float) -> Callable[[float], Any]:
    """The prediction at a threshold: q of the scores above it."""
    if alpha == 2.0:
        return lambda u: np.maximum(x - u, 0.0)
    if alpha == 1.5:
        return lambda u: np.square(np.maximum(0.5 * (x - u), 0.0))
    return lambda u: np.maximum((alpha - 1.0) * (x - u), 0.0) ** (1.0 / (alpha - 1.0))


def bracket(x: Any, alpha: float) -> tuple[float, float]:
    top = float(x.max())
    return top - 1.0 / (alpha - 1.0), top - (1.0 / len(x)) ** (alpha - 1.0) / (alpha - 1.0)


def brentq_rows(rows: Any, alpha: float) -> Any:
    """One call of scipy.optimize.brentq for each row."""
    out = np.empty_like(rows)
    for i, x in enumerate(rows):
        q = tsallis_sum(x, alpha)
        low, high = bracket(x, alpha)
        p = q(optimize.brentq(lambda u, q=q: q(u).sum() - 1.0, low, high + 1e-12, xtol=1e-15))
        out[i] = p / p.sum()
    return out


# The paper's figure: Brent, bisection and FISTA, each until the prediction is within 1e-5 of the truth.


def brent(x: Any, tolerance: float) -> Any:
    q = tsallis_sum(x, 1.5)
    low, high = bracket(x, 1.5)
    return q(optimize.brentq(lambda u: q(u).sum() - 1.0, low, high + 1e-12, xtol=tolerance))


def bisection(x: Any, steps: int) -> Any:
    q = tsallis_sum(x, 1.5)
    low, high = bracket(x, 1.5)
    for _ in range(steps):
        middle = 0.5 * (low + high)
        if q(middle).sum() > 1.0:
            low = middle
        else:
            high = middle
    return q(0.5 * (low + high))


def project(x: Any) -> Any:
    """The Euclidean projection onto the simplex, by sorting."""
    down = np.sort(x)[::-1]
    excess = np.cumsum(down) - 1.0
    k = np.count_nonzero(down - excess / np.arange(1, len(x) + 1) > 0.0)
    return np.maximum(x - excess[k - 1] / k, 0.0)


def tsallis_value(p: Any) -> Any:
    """-H for Tsallis 1.5."""
    return (p * np.sqrt(p) - p).sum() / 0.75


def tsallis_slope(p: Any) -> Any:
    """Its gradient."""
    return (1.5 * np.sqrt(p) - 1.0) / 0.75


def fista(
    x: Any,
    close: Callable[[Any], bool],
    most: int = 2000,
    value: Callable[[Any], Any] = tsallis_value,
    slope: Callable[[Any], Any] = tsallis_slope,
) -> Any:
    """Accelerated projected gradient on -H(p) - <x, p>, with backtracking; -H and its gradient are given."""

    def objective(p: Any) -> float:
        return float(value(p) - x @ p)

    p = y = np.full(len(x), 1.0 / len(x))
    size, momentum = 1.0, 1.0
    for _ in range(most):
        gradient = slope(y) - x
        at_y = objective(y)
        while True:
            new = project(y - size * gradient)
            move = new - y
            if objective(new) <= at_y + gradient @ move + move @ move / (2.0 * size) + 1e-15 or size < 1e-12:
                break
            size *= 0.5
        following = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * momentum**2))
        y = np.maximum(new + (momentum - 1.0) / following * (new - p), 0.0)
        p, momentum = new, following
        if close(p):
            break
    return p
