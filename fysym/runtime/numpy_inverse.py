"""The inverse of g' in NumPy where it has no closed form."""

from __future__ import annotations

from typing import Any

import numpy as np

from .numpy import EPS, TINY

# -- emitted from here --


def make_inverse(f: Any) -> tuple[Any, Any]:
    """Functions inverse(s) and coinverse(s) by Newton's method from a table of slopes.

    Below slope_middle = g'(1/2) the unknown is t, above it e = 1 - t, so both ends keep their digits.
    `kinks` lists (t, g'(t-), g'(t+)) where h has a corner: between those two slopes q stays at t.
    """
    grid = np.concatenate([np.geomspace(1e-300, 1 / 64, 320)[:-1], np.linspace(1 / 64, 0.5, 63)])
    left = table(grid, f.slope(grid), [k for k in f.kinks if k[0] <= 0.5])
    flipped = [(1.0 - t, -after, -before) for t, before, after in f.kinks if t >= 0.5]
    right = table(grid, -f.coslope(grid), flipped)

    def halves(s: Any) -> tuple[Any, Any]:
        s = np.asarray(s, dtype=np.float64)
        upper = s > f.slope_middle
        t = np.empty_like(s)
        t[~upper] = descend(s[~upper], left, f.slope, f.curvature)
        t[upper] = descend(-s[upper], right, lambda e: -f.coslope(e), f.cocurvature)
        return t, upper

    def inverse(s: Any) -> Any:
        t, upper = halves(s)
        return np.where(upper, 1.0 - t, t)

    def coinverse(s: Any) -> Any:
        t, upper = halves(s)
        return np.where(upper, t, 1.0 - t)

    return inverse, coinverse


def table(t: Any, slopes: Any, kinks: list[tuple[float, float, float]]) -> tuple[Any, Any]:
    """Increasing points and slopes that bracket every inverse; a kink is a flat step in it."""
    for at, before, after in kinks:
        k = np.searchsorted(t, at)
        t = np.concatenate([t[:k], [at, at], t[k:]])
        slopes = np.concatenate([slopes[:k], [before, after], slopes[k:]])
    return t, np.maximum.accumulate(slopes)


def descend(s: Any, points: tuple[Any, Any], slope: Any, curvature: Any) -> Any:
    """The t with slope(t) = s: Newton's method kept inside its cell of the table."""
    grid, slopes = points
    cell = np.searchsorted(slopes, s)
    low = np.where(cell > 0, grid[np.maximum(cell - 1, 0)], 0.0)
    high = grid[np.minimum(cell, len(grid) - 1)]
    t = 0.5 * (low + high)
    for _ in range(64):
        miss = slope(np.maximum(t, TINY)) - s
        low, high = np.where(miss < 0.0, t, low), np.where(miss < 0.0, high, t)
        following = t - miss / curvature(np.maximum(t, TINY))
        outside = ~((following >= low) & (following <= high))
        following = np.where(outside, 0.5 * (low + high), following)
        moved = np.abs(following - t) > 2 * EPS * t
        t = np.where(low == high, low, following)
        if not moved.any():
            break
    return t
