"""The inverse of g' in NumPy where it has no closed form."""

from __future__ import annotations

from typing import Any

import numpy as np

from .numpy import EPS, TINY

# -- emitted from here --

SOME = 1536
WRONG = 2.0**32  # units in the last place of a slope that are no rounding


def make_inverse(f: Any) -> tuple[Any, Any]:
    """Functions inverse(r) and coinverse(r) by Newton's method from a table of rises.

    Below rise_middle, the rise of t = 1/2, the unknown is t, above it e = 1 - t, so both ends keep their digits.
    `kinks` lists each corner of h with the rises before and after it, between which q stays there.
    """
    flipped = [(1.0 - t, -after, -before) for t, before, after in f.kinks if t >= 0.5]
    left = Half(f.rise, f.curvature, [kink for kink in f.kinks if kink[0] <= 0.5])
    right = Half(lambda e: -f.corise(e), f.cocurvature, flipped)

    def halves(s: Any) -> tuple[Any, Any]:
        s = np.asarray(s, dtype=np.float64)
        upper = s > f.rise_middle
        t = np.empty_like(s)
        t[~upper] = left.solve(s[~upper])
        t[upper] = right.solve(-s[upper])
        return t, upper

    def inverse(s: Any) -> Any:
        t, upper = halves(s)
        return np.where(upper, 1.0 - t, t)

    def coinverse(s: Any) -> Any:
        t, upper = halves(s)
        return np.where(upper, t, 1.0 - t)

    return inverse, coinverse


def trusted(t: Any, slopes: Any) -> Any:
    """Which of increasing points have slopes that code can compute: those with numbers, up to where these decrease.

    Next to 0 a decrease is but rounding; beyond 1 it shows a square, or another part, that is too large for a double.
    """
    known = ~np.isnan(slopes)
    so_far = np.maximum.accumulate(np.where(known, slopes, -np.inf))
    falls = known & (t > 1.0) & (slopes < so_far - 1e-9 * np.abs(so_far))
    return known & ~np.logical_or.accumulate(falls)


class Half:
    """The solution t of slope(t) = s on 0 < t <= 1/2, or up to the last of `t`, for an increasing slope with its
    derivative; `t` are the points of the table.

    Where code cannot compute the slope of the solution it is NaN; beyond the slope of the largest double, infinite.
    """

    def __init__(self, slope: Any, curvature: Any, kinks: list[tuple[float, float, float]], t: Any = None) -> None:
        self.slope, self.curvature = slope, curvature
        if t is None:
            t = np.concatenate([np.geomspace(1e-300, 1 / 64, 2000)[:-1], np.linspace(1 / 64, 0.5, 200)])
        slopes, rates = slope(t), 1.0 / curvature(t)
        known = trusted(t, slopes)
        self.beyond = t[-1] if t[-1] <= 0.5 else (np.inf if known[-1] else np.nan)
        t, slopes, rates = t[known], slopes[known], rates[known]
        for at, before, after in kinks:
            k = np.searchsorted(t, at)
            t = np.concatenate([t[:k], [at, at], t[k:]])
            slopes = np.concatenate([slopes[:k], [before, after], slopes[k:]])
            rates = np.concatenate([rates[:k], [0.0, 0.0], rates[k:]])
        self.t, self.slopes = t, np.maximum.accumulate(slopes)
        self.rates = np.where(np.isfinite(rates), rates, 0.0)

    def solve(self, s: Any) -> Any:
        """The solutions, not too many at a time: they take some twenty arrays of their length."""
        if len(s) <= SOME:
            return self.solve_some(s)
        return np.concatenate([self.solve_some(s[k : k + SOME]) for k in range(0, len(s), SOME)])

    def solve_some(self, s: Any) -> Any:
        """Newton's method from an interpolated guess, kept inside its cell of the table."""
        above = np.searchsorted(self.slopes, s)
        beyond = above == len(self.t)
        below, above = np.maximum(above - 1, 0), np.minimum(above, len(self.t) - 1)
        low, high = np.where(s < self.slopes[0], 0.0, self.t[below]), self.t[above]
        t = self.guess(s, low, high, below, above)
        searched = (low > 0.0) & (low < high) & ~beyond
        wrong = np.zeros(len(s), bool)
        todo = np.arange(len(s))
        for _ in range(64):
            at = np.maximum(t[todo], TINY)
            curvature = self.curvature(at)
            miss = self.slope(at) - s[todo]
            low[todo] = np.where(miss < 0.0, at, low[todo])
            high[todo] = np.where(miss < 0.0, high[todo], at)
            following = at - miss / curvature
            large = np.isinf(curvature)
            outside = ~((following >= low[todo]) & (following <= high[todo])) | large
            rate = at * curvature
            unit = EPS * np.where(np.isfinite(rate), rate, 0.0) + EPS * np.abs(s[todo])
            settled = np.abs(miss) <= 2 * unit
            wrong[todo] = (~(np.abs(miss) <= WRONG * unit) & ~large) | ~np.isfinite(miss)
            following = np.where(outside, np.where(settled, at, 0.5 * low[todo] + 0.5 * high[todo]), following)
            t[todo] = following
            todo = todo[~settled & (high[todo] - low[todo] > EPS * at)]
            if len(todo) == 0:
                break
        t[beyond] = self.beyond
        t[wrong & searched] = np.nan
        return t

    def guess(self, s: Any, low: Any, high: Any, below: Any, above: Any) -> Any:
        """The cubic that has the values and derivatives of the inverse at both ends of the cell."""
        width = self.slopes[above] - self.slopes[below]
        x = np.where(width > 0.0, (s - self.slopes[below]) / np.where(width > 0.0, width, 1.0), 0.5)
        start, end = self.rates[below] * width, self.rates[above] * width
        rise = high - low
        cubic = low + x * (start + x * (3.0 * rise - 2.0 * start - end + x * (start + end - 2.0 * rise)))
        return np.where((cubic >= low) & (cubic <= high), cubic, 0.5 * low + 0.5 * high)
