"""Predictions and losses on [0, 1]^d with another total than 1, or with none: these take the place of the simplex's.

An entropy is a namespace `f` as for the simplex, with `total`: a number, or None where each coordinate is by itself.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from ..errors import InputError
from .arrays import indicators, row_name, wide
from .numpy import EPS, complement, inside, pieces, predict_one, tangent, value, weights

# -- emitted from here --

TOTAL: float | None = None  # of the domain; an emitted module sets it


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
            raise InputError(f"a total of {f.total:g} needs as many classes; theta has {theta.shape[1]}")
        s, tau, p = with_total(f, theta, masked)
    co = np.where(p > 0.5, complement(f, np.where(np.isnan(s), 0.0, s) - f.anchor), 1.0 - p)
    if f.total is not None:  # the last step was taken in p
        co = np.where(np.abs(co - (1.0 - p)) <= 4 * EPS, co, 1.0 - p)
    return SimpleNamespace(p=p, s=s, tau=tau, co=co, masked=masked & (f.total is not None))


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


def with_total(f: Any, theta: Any, masked: Any) -> tuple[Any, Any, Any]:
    """s, tau and p of rows whose predictions have the total."""
    n, d = theta.shape
    infinite = np.isposinf(theta)
    classes = d - np.count_nonzero(masked, axis=1)
    bad = np.isnan(theta).any(axis=1) | (classes < f.total)
    sure = ~bad & (classes <= f.total)
    p = np.where(masked, 0.0, 1.0)
    left = f.total - np.count_nonzero(infinite, axis=1)  # scores of +inf come first
    crowd = ~bad & ~sure & infinite.any(axis=1) & (left <= 0.0)
    p[crowd] = np.where(
        infinite[crowd], (f.total / np.maximum(np.count_nonzero(infinite, axis=1), 1))[crowd, None], 0.0
    )
    finite = np.where(infinite | masked | bad[:, None], -np.inf, theta)
    largest = np.where(np.isfinite(finite.max(axis=1)), finite.max(axis=1), 0.0)
    x = finite - largest[:, None]
    u = np.zeros(n)
    todo = np.flatnonzero(~(bad | sure | crowd))
    if len(todo):
        u[todo], found = search_total(f, x[todo], left[todo])
        p[todo] = np.where(infinite[todo], 1.0, found)
    s = np.where(infinite, np.inf, np.where(masked, -np.inf, (x - u[:, None]) + f.anchor))
    tau = largest + (u - f.anchor)
    for array in (p, s, tau):
        array[bad] = np.nan
    return s, tau, p


def search_total(f: Any, x: Any, total: Any) -> tuple[Any, Any]:
    """u with sum_j q(x_j - u) = total, and that prediction: Newton's method inside a bracket."""
    n = len(x)
    classes = np.count_nonzero(x > -np.inf, axis=1)
    share = np.minimum(total / classes, 1.0 - EPS)
    high = -f.slope(inside(share)) + f.anchor
    high = high + 8 * EPS * (1.0 + np.abs(high))  # as if all scores were the largest
    sorted_x = -np.sort(-x, axis=1)
    last = sorted_x[np.arange(n), np.minimum(np.ceil(total), classes).astype(int) - 1]
    lowest = f.rise_high if np.isfinite(f.rise_high) else f.rise_middle
    low = last - lowest  # as many scores as it takes have q = 1 there
    width = np.ones(n)
    while not np.isfinite(f.rise_high):
        short = excess_total(f, x, low, total)[0] < 0.0
        if not short.any() or width.max() > 1e300:
            break
        low = np.where(short, low - width, low)
        width = np.where(short, 2.0 * width, width)
    low = np.minimum(low, high)
    u, p = low.copy(), np.zeros_like(x)
    todo = np.arange(n)
    for iteration in range(300):
        over, scale, w, q = excess_total(f, x[todo], u[todo], total[todo])
        weight = w.sum(axis=1)
        step = over / np.where(weight > 0.0, weight, 1.0)
        usable = (weight > 0.0) & (weight < 1e280)
        done = (np.abs(over) <= 4 * EPS * scale) | (high[todo] - low[todo] <= 2 * EPS * np.abs(high[todo]))
        done |= usable & (np.abs(step) <= 0.5 * EPS * np.abs(u[todo]))
        done |= iteration == 299
        p[todo[done]] = settle_total(q[done], w[done], step[done], total[todo[done]])
        low[todo] = np.where(over > 0.0, u[todo], low[todo])
        high[todo] = np.where(over > 0.0, high[todo], u[todo])
        following = u[todo] + np.where(usable, step, np.inf)
        outside = ~((following > low[todo]) & (following < high[todo])) | (iteration % 3 == 2 and not f.newton)
        following = np.where(outside, 0.5 * (low[todo] + high[todo]), following)
        todo = todo[~done]
        if len(todo) == 0:
            break
        u[todo] = following[~done]
    return u, p


def excess_total(f: Any, x: Any, u: Any, total: Any) -> tuple[Any, ...]:
    """sum_j q(x_j - u) - total with its scale, the derivative's weights and q; what is close to 1 enters as 1 - q."""
    r = x - u[:, None]
    p = predict_one(f, r)
    large = p > 0.5
    parts = np.where(large, -complement(f, r), p)
    whole = np.count_nonzero(large, axis=1) - total
    return parts.sum(axis=1) + whole, np.abs(parts).sum(axis=1) + np.abs(whole), inner_weights(f, p, r), p


def settle_total(p: Any, w: Any, step: Any, total: Any) -> Any:
    """The last Newton step, taken in p, and the total restored among the coordinates below 1."""
    p = np.minimum(np.maximum(p - w * step[:, None], 0.0), 1.0)
    below = np.where(p < 1.0, p, 0.0)
    rest = total - np.count_nonzero(p >= 1.0, axis=1)
    amount = below.sum(axis=1)
    ratio = np.where(amount > 0.0, rest / np.where(amount > 0.0, amount, 1.0), 1.0)
    return np.where(p < 1.0, np.minimum(below * ratio[:, None], 1.0), 1.0)


def gap(f: Any, solved: Any, y: Any) -> Any:
    """The loss of each row: sum_j (s_j p_j - g(p_j)) - (s_j y_j - g(y_j)), each term at least 0."""
    p, s, co = solved.p, solved.s, solved.co
    large = p > 0.5
    move = np.where(large, (1.0 - y) - co, p - y)
    at_p = value(f, p)
    if f.covalue is not None:
        at_p = np.where(large, np.where(co > 0.0, f.covalue(inside(co)), f.value_high), at_p)
    terms = np.where(move == 0.0, 0.0, np.maximum(s * move - (at_p - value(f, y)), 0.0))
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
        return np.where(w == 0.0, 0.0, w * v)
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
        bad = ~(np.abs(total - TOTAL) <= (1e-6 if given.dtype == np.float64 else 1e-3) * max(1.0, TOTAL))
        if bad.any():
            row = int(np.argmax(bad))
            raise InputError(f"{what} must sum to {TOTAL:g}: {row_name(row, given.batch)} sums to {total[row]:g}")
    return rows


def one_hot(labels: Any, n: int, d: int, batch: tuple[int, ...]) -> Any:
    """A label names the one coordinate that is 1; with a total it cannot name them all."""
    if TOTAL is not None:
        raise InputError(f"y must be rows of proportions that sum to {TOTAL:g}, not labels")
    return indicators(labels, n, d, batch)
