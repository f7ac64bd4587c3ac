"""Predictions and losses on [0, oo)^d and R^d: these take the place of those for [0, 1]^d without a total.

An entropy is a namespace `f` as for [0, 1]^d, with the ends `low` and `high` of the interval of a coordinate.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from ..errors import InputError
from .arrays import row_name, wide
from .numpy import EPS, TINY
from .numpy_inverse import WRONG, Half

# -- emitted from here --

LOW: float = 0.0  # of the interval; an emitted module sets it
LARGEST = 1.7976931348623157e308
SMALL = 1e-300
FAR = 1e5  # rises beyond which closed forms are checked, as squares may be too large for a double


def inside(t: Any) -> Any:
    """t moved off the end points, where only stored limits make sense."""
    return np.minimum(np.maximum(t, TINY if LOW == 0.0 else -LARGEST), LARGEST)


def value(f: Any, t: Any) -> Any:
    """g(t), infinite at infinite ends."""
    return np.where(np.isinf(t), np.inf, np.where(t <= f.low, f.value_low, f.value(inside(t))))


def slope(f: Any, t: Any) -> Any:
    """g'(t)."""
    return np.where(t <= f.low, f.slope_low, np.where(t >= f.high, f.slope_high, f.slope(inside(t))))


def predict_one(f: Any, r: Any) -> Any:
    """q at a rise r: the lower end at or below the lowest rise, the upper end at or above the highest.

    NaN where code cannot compute it.
    """
    within = (r > f.slope_low - f.anchor) & (r < f.rise_high)
    t = np.where(r >= f.rise_high, f.high, np.where(np.isnan(r), np.nan, f.low))
    t[within] = np.minimum(np.maximum(f.inverse(r[within]), f.low), f.high)
    unsure = within & ((np.abs(r) > FAR) | np.isinf(t))
    if unsure.any():
        t[unsure] = np.where(is_solution(f, t[unsure], r[unsure]), t[unsure], np.nan)
    return t


def is_solution(f: Any, t: Any, r: Any) -> Any:
    """Whether g'(t) is close to r + anchor.

    Of a t that is infinite, or next to the end at 0, it must be on the right side at the last double there.
    """
    bounds = np.minimum(np.maximum(np.abs(t), SMALL if f.low == 0.0 else 0.0), LARGEST)
    at = np.copysign(bounds, t)
    found, rate = f.slope(at), np.abs(at * f.curvature(at))
    off = (found - r) - f.anchor
    unit = EPS * np.abs(r) + EPS * np.abs(f.anchor) + EPS * np.where(np.isfinite(rate), rate, 0.0)
    beyond = np.where(np.isinf(t), off * np.sign(t) <= 8 * EPS * np.abs(r), (t < SMALL) & (f.low == 0.0) & (off >= 0.0))
    return np.isfinite(found) & (beyond | (np.abs(off) <= WRONG * unit))


def weights(f: Any, p: Any, r: Any) -> Any:
    """w = q'(r) = 1/g''(p) between the ends and 0 at them; where p is too large for a double, so is w."""
    between = (p > f.low) & (p < f.high)
    w = np.zeros_like(p)
    w[between] = np.minimum(f.weight(inside(p[between]), r[between]), LARGEST)
    w[np.isinf(p) & (r > f.slope_low - f.anchor) & (r < f.rise_high)] = np.inf
    return w


def inner_weights(f: Any, p: Any, r: Any) -> Any:
    """q'(r), NaN where p is."""
    return np.where(np.isnan(p), np.nan, weights(f, p, r))


def solve(f: Any, theta: Any) -> SimpleNamespace:
    """Predictions `p` of rows of scores, each by itself; `s` are the scores."""
    s = wide(theta)
    return SimpleNamespace(p=predict_one(f, s - f.anchor), s=s, tau=np.zeros(len(s)), masked=np.zeros(s.shape, bool))


def gap(f: Any, solved: Any, y: Any) -> Any:
    """The loss of each row: sum_j (s_j p_j - g(p_j)) - (s_j y_j - g(y_j)), each term at least 0.

    Where s_j p_j is too large for a double, so is the loss.
    """
    p, s = solved.p, solved.s
    terms = np.maximum(s * (p - y) - (value(f, p) - value(f, y)), 0.0)
    terms = np.where(np.isinf(s * p) | np.isinf(p) | np.isinf(s), np.inf, terms)
    return np.where(np.isnan(p), np.nan, np.where(p == y, 0.0, terms)).sum(axis=1)


def conjugate_rows(f: Any, solved: Any) -> Any:
    """Omega*(theta) = sum_j (theta_j p_j - g(p_j))."""
    p, s = solved.p, solved.s
    terms = np.where(p == 0.0, 0.0, s * p) - value(f, p)
    return np.where(np.isinf(s * p) | np.isinf(p), np.inf, terms).sum(axis=1)


def proportions(given: Any, what: str) -> Any:
    """Rows of finite numbers, none below the interval."""
    rows = wide(given.rows)
    good = np.isfinite(rows) & (rows >= LOW)
    if not good.all():
        row = int(np.argmax(~good.all(axis=1)))
        worst = rows[row][~good[row]][0]
        rule = "be finite" if LOW < 0.0 else "be finite and not negative"
        raise InputError(f"{what} must {rule}: {row_name(row, given.batch)} contains {worst:g}")
    return rows


def line_inverse(f: Any) -> Any:
    """inverse(r) by Newton's method from a table of rises, on either side of 0, where the rise is rise_middle."""
    sizes = np.concatenate([np.geomspace(1e-300, 1e-3, 1000)[:-1], np.geomspace(1e-3, 1e3, 1000)[:-1]])
    sizes = np.concatenate([sizes, np.geomspace(1e3, LARGEST, 1000)])
    before, after = f.slope_low - f.anchor, f.slope_low - f.anchor
    if f.low < 0.0:
        before, after = f.rise_middle, f.rise_middle
        for at, low, high in f.kinks:
            before, after = (low, high) if at == 0.0 else (before, after)
    flipped = [(-t, -high, -low) for t, low, high in f.kinks if t < 0.0]
    up = Half(f.rise, f.curvature, [kink for kink in f.kinks if kink[0] > 0.0], sizes)
    down = Half(lambda u: -f.rise(-u), lambda u: f.curvature(-u), flipped, sizes) if f.low < 0.0 else None

    def inverse(r: Any) -> Any:
        t = np.zeros_like(r)
        upper = r > after
        t[upper] = up.solve(r[upper])
        if down is not None:
            lower = r < before
            t[lower] = -down.solve(-r[lower])
        return t

    return inverse
