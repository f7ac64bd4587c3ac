"""Predictions and losses of Omega(p) = sum_j w_j g(p_j / w_j) on the simplex, for a prior w.

An entropy is a namespace `f` with value, slope, inverse and weight of g on [0, oo), or as far as ratios p_j / w_j go,
and `perspective`, w g(y/w) of two numbers, for ratios that are too large for a double.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from ..errors import InputError
from . import arrays as rows_of

EPS = 2.0**-52


def read(prior: Any, given: Any) -> Any:
    """A prior for each row: a vector of d, or an array like theta; none is negative, and they sum to 1."""
    n, d = given.rows.shape
    array = np.asarray(prior)
    if array.shape == (d,) and given.shape != (d,):
        vector = rows_of.as_rows(array, -1, "prior")
        return np.broadcast_to(rows_of.proportions(vector, "prior"), (n, d))
    if array.shape != given.shape:
        raise InputError(f"prior has shape {array.shape}; it must be a vector of {d} or have the shape of theta")
    return rows_of.proportions(rows_of.as_rows(array, given.axis, "prior"), "prior")


def solve(f: Any, theta: Any, prior: Any) -> SimpleNamespace:
    """p with p_j = w_j q(theta_j - tau), and s = theta - tau; NaN and rows of only -inf as without a prior."""
    x = np.where(prior > 0.0, rows_of.wide(theta), -np.inf)
    nan = np.isnan(theta).any(axis=1)
    top = np.where(nan, np.nan, x.max(axis=1))
    bad = ~(top > -np.inf)
    infinite = np.isposinf(top)
    x[infinite] = np.where(np.isposinf(x[infinite]), 0.0, -np.inf)
    x[bad] = 0.0
    x -= np.where(infinite | bad, 0.0, top)[:, None]
    u = np.zeros(len(x))
    p = np.zeros_like(x)
    todo = np.flatnonzero(~bad)
    if len(todo) and f.exponential is not None:
        rate, scale = f.exponential
        logs = rate * x[todo] + np.log(np.where(prior[todo] > 0.0, prior[todo], 1.0))
        largest = logs.max(axis=1)
        e = np.exp(logs - largest[:, None])
        total = e.sum(axis=1)
        p[todo], u[todo] = e / total[:, None], (np.log(scale * total) + largest) / rate + f.anchor
    elif len(todo):
        single = np.count_nonzero(x[todo] > -np.inf, axis=1) == 1  # it takes everything, whatever the slope there
        p[todo[single]] = np.where(x[todo[single]] > -np.inf, 1.0, 0.0)
        todo = todo[~single]
        u[todo], p[todo] = search(f, x[todo], prior[todo])
    s = (x - u[:, None]) + f.anchor
    for array in (p, s):
        array[bad] = np.nan
    return SimpleNamespace(p=p, s=s, masked=np.isneginf(x))


def search(f: Any, x: Any, prior: Any) -> tuple[Any, Any]:
    """u with sum_j w_j q(x_j - u) = 1, and that prediction: Newton's method inside a bracket."""
    n = len(x)
    one = np.ones(n)
    used = x > -np.inf
    share = np.where(used, prior, 0.0).sum(axis=1)
    high = -(f.slope(one / share) - f.anchor)  # as if all scores were the largest
    high += 8 * EPS * (1.0 + np.abs(high))
    ratio = 1.0 / np.where(used, prior, 1.0)
    low = np.where(used, x - (f.slope(ratio) - f.anchor), -np.inf).max(axis=1)  # where one takes everything
    low = np.minimum(low - 8 * EPS * (1.0 + np.abs(low)), high)
    u, p, todo = low.copy(), np.zeros_like(x), np.arange(n)
    for iteration in range(300):
        r = x[todo] - u[todo][:, None]
        t = f.q(r)
        w = np.where(t > 0.0, prior[todo] * f.weight(t, r), 0.0)
        found = prior[todo] * t
        over, weight = found.sum(axis=1) - 1.0, w.sum(axis=1)
        usable = (weight > 0.0) & (weight < 1e280)
        step = np.where(usable, over / np.where(usable, weight, 1.0), np.inf)
        done = (np.abs(over) <= 4 * EPS) | (high[todo] - low[todo] <= 2 * EPS * np.abs(high[todo]))
        done |= (np.abs(step) <= 0.5 * EPS * np.abs(u[todo])) | (iteration == 299)
        last = np.where(usable, step, 0.0)[done]
        settled = np.maximum(found[done] - w[done] * last[:, None], 0.0)
        p[todo[done]] = settled / settled.sum(axis=1, keepdims=True)
        low[todo] = np.where(over > 0.0, u[todo], low[todo])
        high[todo] = np.where(over > 0.0, high[todo], u[todo])
        following = u[todo] + step
        outside = ~((following > low[todo]) & (following < high[todo])) | (iteration % 4 == 3)
        following = np.where(outside, 0.5 * (low[todo] + high[todo]), following)
        todo = todo[~done]
        if len(todo) == 0:
            break
        u[todo] = following[~done]
    return u, p


def value(f: Any, t: Any, w: Any) -> Any:
    """w g(t/w) of each entry; those that are too large for a double on the way there, one at a time."""
    found = w * f.value(t / w)
    for at in zip(*np.nonzero(~np.isfinite(found) & (t > 0.0)), strict=True):
        found[at] = f.perspective(float(t[at]), float(w[at]))
    return found


def gap(f: Any, solved: Any, y: Any, prior: Any) -> Any:
    """The loss of each row: sum_j (s_j p_j - w_j g(p_j/w_j)) - (s_j y_j - w_j g(y_j/w_j)), each at least 0."""
    p, w = solved.p, np.where(prior > 0.0, prior, 1.0)
    terms = np.maximum(solved.s * (p - y) - (value(f, p, w) - value(f, y, w)), 0.0)
    terms = np.where(solved.masked, np.where(y > 0.0, np.inf, 0.0), np.where(p == y, 0.0, terms))
    return np.where(np.isnan(p).any(axis=1), np.nan, terms.sum(axis=1))


def call(f: Any, method: str, theta: Any, y: Any, prior: Any, axis: int) -> Any:
    """predict, loss, grad or value_and_grad with a prior, for any array-like."""
    given = rows_of.as_rows(theta, axis)
    with np.errstate(all="ignore"):
        weights = read(prior, given)
        solved = solve(f, given.rows, weights)
        if method == "predict":
            return rows_of.back(given, solved.p)
        wanted = rows_of.targets(y, given)
        loss = rows_of.back_batch(given, gap(f, solved, wanted, weights))
        grad = rows_of.back(given, solved.p - wanted)
    return {"loss": loss, "grad": grad, "value_and_grad": (loss, grad)}[method]
