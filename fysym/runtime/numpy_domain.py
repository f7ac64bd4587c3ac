"""Predictions and losses on [0, 1]^d with another total than 1, or with none: these take the place of the simplex's.

An entropy is a namespace `f` as for the simplex, with `total`: a number, or None where each coordinate is by itself.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from ..errors import InputError
from .arrays import indicators, row_name, wide
from .numpy import BELOW_ONE, EPS, NOISE, TINY, inside, pieces, value, weights, where_within
from .numpy_losses import tangent

# -- emitted from here --

TOTAL: float | None = None  # of the domain; an emitted module sets it
LATE = 40  # steps after which a search for the threshold is no longer an ordinary one


def solve(f: Any, theta: Any) -> SimpleNamespace:
    """Predictions `p` of rows of scores, with `s` = theta - tau, `tau`, and `co` = 1 - p where p > 1/2.

    With a total, NaN in a row, or fewer scores above -inf than it takes, makes that row NaN.
    """
    theta = wide(theta)
    masked = np.isneginf(theta)
    if f.total is None:
        s, tau = theta, np.zeros(len(theta))
        p = np.where(np.isnan(s), np.nan, predict_one(f, np.where(np.isnan(s), 0.0, s) - f.anchor))
    else:
        if theta.shape[1] < f.total:
            raise InputError(f"a total of {f.total:.15g} needs as many classes; theta has {theta.shape[1]}")
        s, tau, p, sure = with_total(f, theta, masked)
    co = np.where(p > 0.5, complement(f, np.where(np.isnan(s), 0.0, s) - f.anchor), 1.0 - p)
    if f.total is not None:  # the last step was taken in p
        co = np.where((np.abs(co - (1.0 - p)) <= 4 * EPS) & ~sure[:, None], co, 1.0 - p)
    return SimpleNamespace(p=p, s=s, tau=tau, co=co, masked=masked & (f.total is not None))


def reach(f: Any) -> tuple[float, float]:
    """Rises at and beyond which q is 0 and 1 to the last digit, where closed forms may be too large for a double.

    Where the slope at an end is infinite, that is as far again from the middle as the last double before the end.
    """
    first, last = f.slope(np.array([TINY, BELOW_ONE])) - f.anchor
    low, high = 2.0 * first - f.rise_middle, 2.0 * last - f.rise_middle
    lowest = low if low < f.rise_middle and np.isinf(f.slope_low) else f.slope_low - f.anchor
    return float(lowest), float(high if high > f.rise_middle and np.isinf(f.rise_high) else f.rise_high)


def within_reach(f: Any) -> tuple[float, float]:
    """The reach of f, found once."""
    if not hasattr(f, "reach"):
        f.reach = reach(f)
    return f.reach  # type: ignore[no-any-return]


def predict_one(f: Any, r: Any) -> Any:
    """q at a rise r, which is 0 at or below the lowest rise and 1 at or above the highest."""
    lowest, highest = within_reach(f)
    return where_within((r > lowest) & (r < highest), f.inverse, r, f.rise_middle, r >= highest)


def complement(f: Any, r: Any) -> Any:
    """1 - q at a rise r, without cancellation where q is close to 1."""
    lowest, highest = within_reach(f)
    e = where_within((r > lowest) & (r < f.rise_high), f.coinverse, r, f.rise_middle, r < f.rise_high)
    return np.where((r >= highest) & ~(e <= EPS), 0.0, e)


def predict_rows(f: Any, theta: Any, out: Any) -> None:
    """Predictions of rows of scores, into rows of `out`."""
    for k in pieces(*theta.shape):
        out[k] = solve(f, theta[k]).p
    if len(theta) == 0:
        solve(f, theta)  # its checks


def inner_weights(f: Any, p: Any, r: Any) -> Any:
    """q'(r), which is 0 beyond both ends."""
    w = np.where(p >= 1.0, 0.0, weights(f, p, r))
    w[np.isnan(p)] = np.nan
    return w


def with_total(f: Any, theta: Any, masked: Any) -> tuple[Any, Any, Any, Any]:
    """s, tau and p of rows whose predictions have the total, and which have no more classes than that."""
    n, d = theta.shape
    infinite = np.isposinf(theta)
    bad = np.isnan(theta).any(axis=1) | (d - np.count_nonzero(masked, axis=1) < f.total)
    count = np.count_nonzero(infinite, axis=1)  # scores of +inf come first
    crowd = (count > 0) & (count >= f.total)  # or share the total, as equal scores do
    theta = np.where(crowd[:, None], np.where(infinite, 0.0, -np.inf), theta)
    infinite &= ~crowd[:, None]
    left = f.total - np.where(crowd, 0, count)
    p = np.where(np.isneginf(theta), 0.0, 1.0)
    sure = p.sum(axis=1) <= f.total
    finite = np.where(infinite | bad[:, None], -np.inf, theta)
    rank = np.clip(np.ceil(left), 1, d).astype(int)
    origin = -np.sort(-finite, axis=1)[np.arange(n), rank - 1]  # scores close to it decide, so these keep their digits
    origin = np.where(np.isfinite(origin), origin, 0.0)
    x = finite - origin[:, None]
    u = np.zeros(n)
    todo = np.flatnonzero(~(bad | sure))
    if len(todo):
        u[todo], found = search_total(f, x[todo], left[todo])
        p[todo] = np.where(infinite[todo], 1.0, found)
    bad |= ~(np.abs(p.sum(axis=1) - f.total) <= 1e-12 * f.total) & ~sure  # code cannot compute q there
    s = np.where(infinite, np.inf, (x - u[:, None]) + f.anchor)
    tau = np.where(crowd, np.inf, origin + (u - f.anchor))
    for array in (p, s, tau):
        array[bad] = np.nan
    return s, tau, p, sure


def search_total(f: Any, x: Any, total: Any) -> tuple[Any, Any]:
    """u with sum_j q(x_j - u) = total, and that prediction: Newton's method inside a bracket.

    The scores are 0 at the rank of the total. At the left end of the bracket all that are not below 0 have q = 1; the
    right end is where the total is if those of a higher rank have q = 1, and all others are 0.
    """
    n = len(x)
    higher = np.ceil(total) - 1.0
    level = -f.slope(inside((total - higher) / (np.count_nonzero(x > -np.inf, axis=1) - higher)))
    high = (level + f.anchor) + 8 * EPS * (np.abs(f.anchor) + np.abs(level))
    low = np.full(n, -(f.rise_high if np.isfinite(f.rise_high) else f.rise_middle))
    width, short = np.ones(n), np.arange(0 if np.isfinite(f.rise_high) else n)
    while len(short):
        under = excess_total(f, x[short], low[short], total[short])[0] < 0.0
        short = short[under & (width[short] <= 1e300)]
        low[short] -= width[short]
        width[short] *= 2.0
    low = np.minimum(low, high)
    u, p = low.copy(), np.zeros_like(x)
    todo = np.arange(n)
    for iteration in range(300):
        over, scale, w, q = excess_total(f, x[todo], u[todo], total[todo])
        weight = w.sum(axis=1)
        step = over / np.where(weight > 0.0, weight, 1.0)
        usable = (weight > 0.0) & (weight < 1e280)
        small = np.abs(over) <= 4 * EPS * scale
        narrow = EPS * np.maximum(2.0 * np.maximum(np.abs(low[todo]), np.abs(high[todo])), TINY)
        steep = ~small & (high[todo] - low[todo] <= narrow)
        tiny = usable & (np.abs(step) <= 0.5 * EPS * np.abs(u[todo])) & (np.abs(over) <= NOISE * scale)
        done = small | steep | tiny | (iteration == 299)
        if steep.any():  # the sum jumps past the total: a mix of both sides has it
            at = todo[steep]
            q[steep], step[steep] = between_total(f, x[at], low[at], high[at], total[at]), 0.0
        p[todo[done]] = settle_total(q[done], w[done], step[done], total[todo[done]])
        low[todo] = np.where(over > 0.0, u[todo], low[todo])
        high[todo] = np.where(over > 0.0, high[todo], u[todo])
        following = u[todo] + np.where(usable, step, np.inf)
        outside = ~((following > low[todo]) & (following < high[todo]))
        outside |= iteration % 3 == 2 and (iteration > LATE or not f.newton)
        following = np.where(outside, middle(low[todo], high[todo], iteration), following)
        todo = todo[~done]
        if len(todo) == 0:
            break
        u[todo] = following[~done]
    return u, p


def middle(low: Any, high: Any, iteration: int) -> Any:
    """Where to halve a bracket; late, by order of magnitude, as the root may be tiny against the first bracket."""
    half = 0.5 * low + 0.5 * high
    if iteration <= LATE:
        return half
    small = np.maximum(np.minimum(np.abs(low), np.abs(high)), TINY)
    large = np.maximum(np.abs(low), np.abs(high))
    mean = np.copysign(np.sqrt(small) * np.sqrt(large), half)
    return np.where((low < 0.0) & (high > 0.0), 0.0, np.where(large > 4.0 * small, mean, half))


def excess_total(f: Any, x: Any, u: Any, total: Any) -> tuple[Any, ...]:
    """sum_j q(x_j - u) - total with its scale, the derivative's weights and q; what is close to 1 enters as 1 - q."""
    r = x - u[:, None]
    p = predict_one(f, r)
    large = p > 0.5
    parts = np.where(large, -complement(f, r), p)
    whole = np.count_nonzero(large, axis=1) - total
    return parts.sum(axis=1) + whole, np.abs(parts).sum(axis=1) + np.abs(whole), inner_weights(f, p, r), p


def between_total(f: Any, x: Any, low: Any, high: Any, total: Any) -> Any:
    """The mix of the predictions at two thresholds that has the total."""
    above, _, _, p_low = excess_total(f, x, low, total)
    below, _, _, p_high = excess_total(f, x, high, total)
    jump = above - below
    share = np.where(jump > 0.0, np.minimum(np.maximum(-below, 0.0) / np.where(jump > 0.0, jump, 1.0), 1.0), 0.5)
    return p_high + share[:, None] * (p_low - p_high)


def settle_total(p: Any, w: Any, step: Any, total: Any) -> Any:
    """The last Newton step, taken in p, and the total restored among the coordinates below 1."""
    p = np.minimum(np.maximum(p - w * step[:, None], 0.0), 1.0)
    below = np.where(p >= 1.0, 0.0, p)
    rest = total - np.count_nonzero(p >= 1.0, axis=1)
    amount = below.sum(axis=1)
    ratio = np.where((amount > 0.0) & (rest > 0.0), rest / np.where(amount > 0.0, amount, 1.0), 1.0)
    return np.where(p >= 1.0, 1.0, np.minimum(below * ratio[:, None], 1.0))


def gap(f: Any, solved: Any, y: Any) -> Any:
    """The loss of each row: sum_j (s_j p_j - g(p_j)) - (s_j y_j - g(y_j)), each term at least 0."""
    p, s, co = solved.p, solved.s, solved.co
    large = p > 0.5
    move = np.where(large, (1.0 - y) - co, p - y)
    at_p = value(f, p)
    if f.covalue is not None:
        at_p = np.where(large, np.where(co > 0.0, f.covalue(inside(co)), f.value_high), at_p)
    terms = np.where(np.isinf(s), np.inf, np.maximum(s * move - (at_p - value(f, y)), 0.0))
    terms = np.where(move == 0.0, 0.0, terms)
    total = np.where(np.isnan(p), np.nan, terms).sum(axis=1)
    return total


def conjugate_rows(f: Any, solved: Any) -> Any:
    """Omega*(theta) = tau total + sum_j (s_j p_j - g(p_j))."""
    p, s = solved.p, solved.s
    total = (np.where((p > 0.0) | np.isnan(p), s * p, 0.0) - value(f, p)).sum(axis=1)
    if f.total is None:
        return np.where(np.isnan(p).any(axis=1), np.nan, total)
    unused = np.where(solved.masked, value(f, np.zeros(())), 0.0).sum(axis=1)
    return np.where(np.isnan(p).any(axis=1), np.nan, solved.tau * f.total + total + unused)


def jvp_rows(f: Any, solved: Any, v: Any) -> Any:
    """J v with J = diag(w), less w w^T / sum(w) where there is a total."""
    w = inner_weights(f, solved.p, solved.s - f.anchor)
    if f.total is None:
        return np.where((w == 0.0) | (np.isinf(w) & (v == 0.0)), 0.0, w * v)
    return tangent(w, v)


def jacobian_rows(f: Any, solved: Any) -> Any:
    """J of each row, (n, d, d)."""
    n, d = solved.p.shape
    return np.stack([jvp_rows(f, solved, np.tile(row, (n, 1))) for row in np.eye(d)], axis=1)


def proportions(given: Any, what: str) -> Any:
    """Rows with entries between 0 and 1 that have the total, if there is one."""
    rows = wide(given.rows)
    bad = ~((rows >= 0.0) & (rows <= 1.0)).all(axis=1)
    if bad.any():
        row = int(np.argmax(bad))
        worst = rows[row][~((rows[row] >= 0.0) & (rows[row] <= 1.0))][0]
        raise InputError(f"{what} must be between 0 and 1: {row_name(row, given.batch)} contains {worst:g}")
    if TOTAL is not None:
        total = rows.sum(axis=1)
        bad = ~(np.abs(total - TOTAL) <= (1e-6 if given.dtype == np.float64 else 1e-3) * TOTAL)
        if bad.any():
            row = int(np.argmax(bad))
            raise InputError(f"{what} must sum to {TOTAL:.15g}: {row_name(row, given.batch)} sums to {total[row]:g}")
    return rows


def one_hot(labels: Any, n: int, d: int, batch: tuple[int, ...]) -> Any:
    """A label names the one coordinate that is 1; with a total it cannot name them all."""
    if TOTAL is not None:
        raise InputError(f"y must be rows of proportions that sum to {TOTAL:.15g}, not labels")
    return indicators(labels, n, d, batch)
