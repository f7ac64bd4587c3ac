"""Predictions and losses in NumPy, for any entropy given by a handful of scalar functions.

With g = -h and q = (g')^{-1}, an entropy is a namespace `f` that holds
  value, slope, curvature   g, g', g'' at 0 < t < 1
  inverse, coinverse        q and 1 - q at a rise r = s - anchor between those of 0 and 1
  weight                    q'(r), given t = q(r) and the rise r
  covalue                   g(1 - e), where g'(1) is infinite; None elsewhere
  value_low, ..., slope_high, curvature_high   limits of g, g', g'' at 0 and 1
  anchor                    slope_low unless it is far or infinite, else 0: scores near the cut-off keep their digits
  rise_high, rise_middle    rises at 1 and 1/2
  newton, exponential       whether q is convex, and whether it is a multiple of exp(rate * s)
Scores come as rows (n, d). They are solved a piece at a time, so that what a step works on stays in the cache.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from .arrays import as_rows, back, back_batch, like, proportions, quiet, targets

# -- emitted from here --

EPS = 2.0**-52
TINY = 2.0**-1022
BELOW_ONE = 1.0 - 2.0**-53
PIECE = 8192  # entries of a working array


# Scalar functions, extended to the closed interval and beyond the slopes at its ends.


def inside(t: Any) -> Any:
    """t moved off the end points, where only stored limits make sense."""
    return np.minimum(np.maximum(t, TINY), BELOW_ONE)


def value(f: Any, t: Any) -> Any:
    """g(t) on [0, 1]."""
    return np.where(t <= 0.0, f.value_low, np.where(t >= 1.0, f.value_high, f.value(inside(t))))


def slope(f: Any, t: Any) -> Any:
    """g'(t) on [0, 1]."""
    return np.where(t <= 0.0, f.slope_low, np.where(t >= 1.0, f.slope_high, f.slope(inside(t))))


def where_within(within: Any, function: Any, x: Any, safe: float, otherwise: Any) -> Any:
    """function(x) clipped to [0, 1] where `within`, else `otherwise`; `safe` is an x at which it has a value."""
    count = np.count_nonzero(within)
    if 2 * count >= within.size:
        t = function(x if count == within.size else np.where(within, x, safe))
        t = np.minimum(np.maximum(t, 0.0), 1.0)
        return t if count == within.size else np.where(within, t, otherwise)
    t = np.array(otherwise, dtype=np.float64)
    t[within] = np.minimum(np.maximum(function(x[within]), 0.0), 1.0)
    return t


def predict_one(f: Any, r: Any) -> Any:
    """q at a rise r, which is 0 at or below the lowest rise and 1 at or above the highest."""
    within = (r > f.slope_low - f.anchor) & (r < f.rise_high)
    return where_within(within, f.inverse, r, f.rise_middle, r >= f.rise_high)


def complement(f: Any, r: Any) -> Any:
    """1 - q at a rise r, without cancellation where q is close to 1."""
    within = (r > f.slope_low - f.anchor) & (r < f.rise_high)
    return where_within(within, f.coinverse, r, f.rise_middle, r < f.rise_high)


def weights(f: Any, p: Any, r: Any) -> Any:
    """w = q'(r) = 1/g''(p) on the support and 0 off it; at p = 1 by the stored limit."""
    between = (p > 0.0) & (p < 1.0)
    count = np.count_nonzero(between)
    if 2 * count >= p.size:
        w = f.weight(inside(p), r)
        if count < p.size:
            w = np.where(between, w, np.where(p >= 1.0, 1.0 / np.float64(f.curvature_high), 0.0))
    else:
        w = np.where(p >= 1.0, 1.0 / np.float64(f.curvature_high), 0.0)
        w[between] = f.weight(inside(p[between]), r[between])
    return np.minimum(w, 1e290)


# The threshold: the root tau of sum_j q(theta_j - tau) = 1. What is solved for is u = tau + anchor on rows whose
# largest score is 0: with the anchor at the slope at 0, u is the score at which a probability becomes 0.


def pieces(n: int, d: int) -> list[slice]:
    """The rows (n, d) in slices of about PIECE entries."""
    some = max(1, PIECE // max(d, 1))
    return [slice(k, min(k + some, n)) for k in range(0, n, some)]


def columns(n: int, d: int) -> list[slice]:
    """The columns of rows that are too long for one piece."""
    return pieces(d, n)


def predict_rows(f: Any, theta: Any, out: Any) -> None:
    """Predictions of rows of scores, into rows of `out`; what is left of rows after the margin, many rows at a time."""
    n, d = theta.shape
    if not has_margin(f):
        for k in pieces(n, d):
            out[k] = solve_rows(f, theta[k]).p
        return
    flat = out.reshape(-1)
    waiting: list[Any] = []
    for k in pieces(n, d):
        places, x, counts, bad = within_margin(f, theta[k])
        out[k] = 0.0
        if bad.any():
            out[k][bad] = np.nan
        waiting.append((places + k.start * d, x, counts))
        if k.stop == n or sum(len(x) for _, x, _ in waiting) >= PIECE:
            places, x, counts = (np.concatenate(parts) for parts in zip(*waiting, strict=True))
            flat[places] = solve_kept(f, x, counts, d)[1]
            waiting = []


def has_margin(f: Any) -> bool:
    """Whether only scores within some distance of the largest can have p > 0."""
    return f.exponential is None and bool(np.isfinite(f.slope_low) and np.isfinite(f.rise_high))


def within_margin(f: Any, theta: Any) -> tuple[Any, Any, Any, Any]:
    """The flat places of the scores that can have p > 0, these scores less the largest of their row, how many of them
    each row has, and which rows are NaN."""
    largest = theta.max(axis=1)
    bad = ~(largest > -np.inf)
    least = largest.astype(np.float64) - (f.slope_high - f.slope_low) * (1.0 + 8 * EPS)
    least -= np.where(np.isinf(least), 0.0, 4 * EPS * np.abs(least))
    lowest = least.astype(theta.dtype)
    kept = theta >= np.where(lowest > least, np.nextafter(lowest, theta.dtype.type(-np.inf)), lowest)[:, None]
    kept[bad] = False
    places = np.flatnonzero(kept)
    rows = places // theta.shape[1]
    x = theta.reshape(-1)[places].astype(np.float64) - largest.astype(np.float64)[rows]
    x[np.isnan(x)] = 0.0  # of +inf and +inf
    return places, x, np.bincount(rows, minlength=len(theta)), bad


def solve_kept(f: Any, x: Any, counts: Any, d: int) -> tuple[Any, Any]:
    """Thresholds of rows and predictions of their scores x, which stand one row after another, `counts` of each.

    Rows of like length share a matrix. Its width is set by the row alone, so that no row's digits depend on others.
    """
    u, p = np.full(len(counts), -f.rise_high), np.ones(len(x))
    starts = np.cumsum(counts) - counts
    widths = np.minimum(2 ** np.ceil(np.log2(np.maximum(counts, 1))).astype(np.int64), d)
    for width in np.unique(widths[counts > 1]):
        rows = np.flatnonzero((widths == width) & (counts > 1))
        column = np.arange(width)
        for k in pieces(len(rows), width):
            some = rows[k]
            real = column < counts[some][:, None]
            at = starts[some][:, None] + np.where(real, column, 0)
            scores = np.where(real, x[at], -np.inf)
            u[some], found = search(f, scores, np.argmax(scores, axis=1), counts[some])
            p[at[real]] = found[real]
    return u, p


def solve(f: Any, theta: Any) -> SimpleNamespace:
    """Predictions `p` of rows of scores, with `s` = theta - tau, `tau`, and where scores are `masked`.

    NaN in a row, or a row of only -inf, makes that row NaN; +inf shares all of the mass.
    """
    solved = solve_rows(f, theta)
    x, u, masked, bad = solved.x, solved.u, solved.masked, solved.bad
    largest = theta[np.arange(len(theta)), solved.top].astype(np.float64)
    solved.s = (x - u[:, None]) + f.anchor
    solved.tau = largest + (u - f.anchor)
    for array in (solved.s, solved.tau):
        array[bad] = np.nan
    solved.far = np.isneginf(x) & ~masked  # the difference of two scores is larger than a double can be
    solved.half = 0.5 * theta - 0.5 * largest[:, None] if solved.far.any() else None
    return solved


def solve_rows(f: Any, theta: Any) -> SimpleNamespace:
    """Predictions `p` of rows of scores, and the threshold `u` of `x`, the scores less the row's largest, at `top`."""
    top = np.argmax(theta, axis=1)
    rows = np.arange(len(theta))
    largest = theta[rows, top].astype(np.float64)
    x = theta - largest[:, None]
    unbounded = np.isposinf(largest)
    if unbounded.any():
        x[unbounded] = np.where(np.isposinf(theta[unbounded]), 0.0, -np.inf)
    masked = np.isneginf(x)
    if masked.any():
        masked &= np.isneginf(theta) | unbounded[:, None]
    bad = np.isnan(largest) | np.isneginf(largest)
    x[bad] = 0.0
    if f.exponential is not None:
        u, p = exponential_threshold(f, x)
    elif has_margin(f):
        places, kept, counts, _ = within_margin(f, theta)
        p = np.zeros(x.shape)  # in C order, whatever the order of x
        u, p.reshape(-1)[places] = solve_kept(f, kept, counts, x.shape[1])
    else:
        u, p = newton_threshold(f, x, top, masked)
    p[bad] = np.nan
    return SimpleNamespace(p=p, u=u, x=x, top=top, masked=masked, bad=bad)


def exponential_threshold(f: Any, x: Any) -> tuple[Any, Any]:
    """The closed form where q(s) = scale * exp(rate * s): a softmax."""
    rate, scale = f.exponential
    e = np.exp(rate * x)
    total = e.sum(axis=1)
    e /= total[:, None]
    return np.log(scale * total) / rate, e


def newton_threshold(f: Any, x: Any, top: Any, masked: Any) -> tuple[Any, Any]:
    """Newton's method inside a bracket, on rows whose largest score is 0."""
    n, _ = x.shape
    classes = x.shape[1] - np.count_nonzero(masked, axis=1)
    sure = classes <= 1
    if not sure.any():
        return search(f, x, top, classes)
    u = np.full(n, -(f.rise_high if np.isfinite(f.rise_high) else f.rise_middle))
    p = np.zeros_like(x)
    p[sure, top[sure]] = 1.0
    todo = np.flatnonzero(~sure)
    if len(todo):
        u[todo], p[todo] = search(f, x[todo], top[todo], classes[todo])
    return u, p


def excess(f: Any, x: Any, top: Any, u: Any) -> tuple[Any, ...]:
    """sum_j q(x_j - u) - 1 with its scale, the derivative's weights and q itself.

    The largest probability enters through its complement, so that tiny remainders keep their digits.
    """
    n, d = x.shape
    rest, p, w = np.zeros(n), np.empty_like(x), np.empty_like(x)
    for k in columns(n, d):
        r = x[:, k] - u[:, None]
        p[:, k] = predict_one(f, r)
        w[:, k] = weights(f, p[:, k], r)
    rows = np.arange(n)
    largest = p[rows, top]
    p[rows, top] = 0.0
    rest = p.sum(axis=1)
    p[rows, top] = largest
    missing = complement(f, -u)
    return rest - missing, rest + missing, w, p


def search(f: Any, x: Any, top: Any, classes: Any) -> tuple[Any, Any]:
    """The threshold and the prediction of each row, which has at least two scores above -inf."""
    high = -f.slope(1.0 / classes)
    high = (high + f.anchor) + 8 * EPS * (1.0 + np.abs(high))
    low = np.full(len(x), -f.rise_high) if np.isfinite(f.rise_high) else expand(f, x, top, high)
    low = np.minimum(low, high)
    u, out = np.empty_like(low), np.empty_like(x)
    todo, xs, tops, width = np.arange(len(x)), x, top, high - low
    at = np.maximum(low, start(f, x, high)) if has_margin(f) else low
    for iteration in range(200):
        f_u, scale, w, p = excess(f, xs, tops, at)
        total = w.sum(axis=1)
        usable = (total > 0.0) & (total < 1e280)
        step = f_u / np.where(total > 0.0, total, 1.0)
        small = np.abs(f_u) <= 4 * EPS * scale
        collapsed = high - low <= 2 * EPS * np.maximum(np.abs(low), np.abs(high))
        done = small | collapsed | (usable & (np.abs(step) <= 0.5 * EPS * np.abs(at))) | ((f_u <= 0.0) & (at <= low))
        if iteration == 199:
            done[:] = True
        above = f_u > 0.0
        if done.any():
            rows = todo[done]
            u[rows] = at[done]
            out[rows] = settle(p[done], w[done], step[done])
            steep = np.flatnonzero(done & collapsed & ~small)
            if len(steep):
                out[todo[steep]] = between(f, xs[steep], tops[steep], low[steep], high[steep])
            left = ~done
            if not left.any():
                break
            todo, xs, tops, at, low, high, width, above, usable, step = (
                a[left] for a in (todo, xs, tops, at, low, high, width, above, usable, step)
            )
        low, high = np.where(above, at, low), np.where(above, high, at)
        at = at + np.where(usable, step, np.inf)
        halve = ~((at > low) & (at < high))
        if iteration % 3 == 2:
            now = high - low
            if not f.newton or iteration > 30:
                halve |= now > 0.5 * width
            width = now
        at = np.where(halve, 0.5 * (low + high), at)
    return u, out


def start(f: Any, x: Any, high: Any) -> Any:
    """Where Newton begins: the largest of mean(x_1, ..., x_k) - r(1/k) over the k largest scores, r being the rise.

    Where q is convex, the sum is at least k q(mean - u), so this is left of the root.
    """
    k = np.arange(2.0, x.shape[1] + 1.0)
    means = np.cumsum(np.sort(x, axis=1)[:, ::-1], axis=1)[:, 1:] / k
    best = (means - (f.slope(1.0 / k) - f.anchor)).max(axis=1)
    return np.where(best < high, best, -np.inf)


def between(f: Any, x: Any, top: Any, low: Any, high: Any) -> Any:
    """Where q is so steep that the sum jumps past 1 between neighbouring doubles: the mix of both that sums to 1."""
    above, _, _, p_low = excess(f, x, top, low)
    below, _, _, p_high = excess(f, x, top, high)
    jump = above - below
    share = np.where(jump > 0.0, np.minimum(np.maximum(-below, 0.0) / np.where(jump > 0.0, jump, 1.0), 1.0), 0.5)
    p = p_high + share[:, None] * (p_low - p_high)
    return p / p.sum(axis=1)[:, None]


def expand(f: Any, x: Any, top: Any, high: Any) -> Any:
    """A left end of the bracket where g'(1) is infinite: go left until the sum is at least 1."""
    distance = np.ones(len(x))
    low = high - distance
    todo = np.arange(len(x))
    while len(todo):
        f_u = excess(f, x[todo], top[todo], low[todo])[0]
        todo = todo[(f_u < 0.0) & (distance[todo] < 1e300)]
        distance[todo] *= 2.0
        low[todo] = high[todo] - distance[todo]
    return low


def settle(p: Any, w: Any, step: Any) -> Any:
    """The last Newton step, taken in p: it restores the sum beyond the resolution of tau."""
    w *= step[:, None]
    p -= w
    np.minimum(np.maximum(p, 0.0, out=p), 1.0, out=p)
    p /= p.sum(axis=1)[:, None]
    return p


# Losses and derivatives, from a solved row.


def gap(f: Any, solved: Any, y: Any) -> Any:
    """The loss of each row: sum_j (s_j p_j - g(p_j)) - (s_j y_j - g(y_j)), each term at least 0.

    For the largest probability, 1 - p is the sum of the others, which keeps its digits.
    """
    p, s = solved.p, solved.s
    rows = np.arange(len(p))
    move = p - y
    others = p.copy()
    others[rows, solved.top] = 0.0
    rest = others.sum(axis=1)
    move[rows, solved.top] = (1.0 - y[rows, solved.top]) - rest
    at_p = value(f, p)
    if f.covalue is not None:
        at_p[rows, solved.top] = np.where(rest > 0.0, f.covalue(inside(rest)), f.value_high)
    terms = np.where((p == y) & (move == 0.0), 0.0, np.maximum(s * move - (at_p - value(f, y)), 0.0))
    if solved.half is not None:
        terms = np.where(solved.far, 2.0 * y * -solved.half, terms)
    terms = np.where(solved.masked, np.where(y > 0.0, np.inf, 0.0), terms)
    total = terms.sum(axis=1)
    total[np.isnan(p).any(axis=1)] = np.nan
    return total


def conjugate_rows(f: Any, solved: Any) -> Any:
    """Omega*(theta) = tau + sum_j (s_j p_j - g(p_j))."""
    p, s = solved.p, solved.s
    terms = np.where(p > 0.0, s * p, 0.0) - value(f, p)
    total = np.where(solved.masked, 0.0, terms).sum(axis=1)
    total[np.isnan(p).any(axis=1)] = np.nan
    return solved.tau + total


def jvp_rows(f: Any, solved: Any, v: Any) -> Any:
    """J v with J = diag(w) - w w^T / sum(w)."""
    p = solved.p
    w = weights(f, p, solved.x - solved.u[:, None])
    w[np.isnan(p)] = np.nan
    return tangent(w, v)


def tangent(w: Any, v: Any) -> Any:
    """w (v - mean), with the mean of v under the weights w, so that rows sum to 0.

    The coordinate with the largest weight is minus the sum of the others, so that w = oo does no harm.
    """
    v = np.where(w == 0.0, 0.0, v)
    total = w.sum(axis=1, keepdims=True)
    mean = (w * v).sum(axis=1, keepdims=True) / np.where(total == 0.0, 1.0, total)
    result = w * (v - mean)
    rows, heaviest = np.arange(len(w)), np.argmax(w, axis=1)
    result[rows, heaviest] = 0.0
    result[rows, heaviest] = -result.sum(axis=1)
    return result


def jacobian_rows(f: Any, solved: Any) -> Any:
    """J of each row, (n, d, d), symmetric, rows summing to 0."""
    p = solved.p
    w = weights(f, p, solved.x - solved.u[:, None])
    w[np.isnan(p)] = np.nan
    total = w.sum(axis=1)[:, None, None]
    share = w[:, :, None] / np.where(total == 0.0, 1.0, total)
    result = -share * w[:, None, :]
    k = np.arange(w.shape[1])
    result[:, k, k] = 0.0
    result[:, k, k] = -result.sum(axis=2)
    return result


def bregman_rows(f: Any, y: Any, p: Any) -> Any:
    """B(y || p) = sum_j g(y_j) - g(p_j) - g'(p_j) (y_j - p_j), each term at least 0."""
    terms = value(f, y) - value(f, p) - slope(f, p) * (y - p)
    return np.where(y == p, 0.0, np.maximum(terms, 0.0)).sum(axis=1)


def score_rows(f: Any, y: Any, p: Any) -> Any:
    """S(p; y) = B(y || p) - Omega(y) = -Omega(p) - <grad Omega(p), y - p>."""
    terms = -value(f, p) - np.where(y == p, 0.0, slope(f, p) * (y - p))
    return terms.sum(axis=1)


class Kernel:
    """What a user calls: any array-like in, the same shape and precision out."""

    def __init__(self, f: Any) -> None:
        self.f = f

    def each(self, given: Any, work: Any, *others: Any) -> Any:
        """work(solved rows, the same rows of the others), piece by piece, joined."""
        n, d = given.rows.shape
        parts = [work(solve(self.f, given.rows[k]), *(other[k] for other in others)) for k in pieces(n, d)]
        return np.concatenate(parts) if parts else work(solve(self.f, given.rows), *others)

    @quiet
    def predict(self, theta: Any, axis: int = -1) -> Any:
        """The probabilities that maximise <theta, p> + H(p)."""
        given = as_rows(theta, axis)
        out = np.empty(given.rows.shape, given.dtype)
        predict_rows(self.f, given.rows, out)
        return back(given, out)

    @quiet
    def threshold(self, theta: Any, axis: int = -1) -> Any:
        """The tau of each row, with p_j = q(theta_j - tau)."""
        given = as_rows(theta, axis)
        return back_batch(given, self.each(given, lambda solved: solved.tau))

    @quiet
    def conjugate(self, theta: Any, axis: int = -1) -> Any:
        """Omega*(theta), the largest <theta, p> + H(p)."""
        given = as_rows(theta, axis)
        return back_batch(given, self.each(given, lambda solved: conjugate_rows(self.f, solved)))

    @quiet
    def value_and_grad(self, theta: Any, y: Any, axis: int = -1) -> tuple[Any, Any]:
        """The loss of each row and its gradient p - y; y are labels or proportions."""
        given = as_rows(theta, axis)
        grad = np.empty(given.rows.shape, given.dtype)
        rest = grad

        def work(solved: Any, wanted: Any) -> Any:
            nonlocal rest
            rest[: len(wanted)] = solved.p - wanted
            rest = rest[len(wanted) :]
            return gap(self.f, solved, wanted)

        loss = self.each(given, work, targets(y, given))
        return back_batch(given, loss), back(given, grad)

    def loss(self, theta: Any, y: Any, axis: int = -1) -> Any:
        """The loss of each row."""
        return self.value_and_grad(theta, y, axis)[0]

    def grad(self, theta: Any, y: Any, axis: int = -1) -> Any:
        """The gradient p - y of each row's loss."""
        return self.value_and_grad(theta, y, axis)[1]

    @quiet
    def jvp(self, theta: Any, v: Any, axis: int = -1) -> Any:
        """The derivative of the prediction in the direction v."""
        given = as_rows(theta, axis)
        direction = like(v, given)
        return back(given, self.each(given, lambda solved, v: jvp_rows(self.f, solved, v), direction))

    def vjp(self, theta: Any, v: Any, axis: int = -1) -> Any:
        """v times the Jacobian, which is symmetric: the same as jvp."""
        return self.jvp(theta, v, axis)

    @quiet
    def jacobian(self, theta: Any, axis: int = -1) -> Any:
        """The Jacobian of each row's prediction, in two last dimensions."""
        given = as_rows(theta, axis)
        d = given.rows.shape[1]
        found = self.each(given, lambda solved: jacobian_rows(self.f, solved))
        return found.reshape(*given.batch, d, d).astype(given.dtype)

    @quiet
    def entropy(self, p: Any, axis: int = -1) -> Any:
        """H(p), the sum of h over each row."""
        given = as_rows(p, axis, "p")
        return back_batch(given, -value(self.f, proportions(given, "p")).sum(axis=1))

    @quiet
    def bregman(self, y: Any, p: Any, axis: int = -1) -> Any:
        """The Bregman divergence B(y || p) of Omega = -H."""
        given = as_rows(p, axis, "p")
        return back_batch(given, bregman_rows(self.f, targets(y, given), proportions(given, "p")))

    @quiet
    def score(self, p: Any, y: Any, axis: int = -1) -> Any:
        """The proper scoring rule S(p; y) = B(y || p) - Omega(y); lower is better."""
        given = as_rows(p, axis, "p")
        return back_batch(given, score_rows(self.f, targets(y, given), proportions(given, "p")))
