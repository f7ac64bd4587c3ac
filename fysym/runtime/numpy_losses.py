"""Losses and derivatives in NumPy, from solved rows, and the methods that a user calls."""

from __future__ import annotations

from typing import Any

import numpy as np

from .arrays import as_rows, back, back_batch, like, proportions, quiet, targets
from .numpy import inside, pieces, predict_rows, slope, solve, value, weights

# -- emitted from here --


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
        out = np.zeros(given.rows.shape, given.dtype)
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
