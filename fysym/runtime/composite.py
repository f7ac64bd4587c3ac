"""Predictions and losses of F(v(p)) for a separable v: its kernel at theta / w, with w found for all rows at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from . import numpy as rows

EPS = 2.0**-52


class Kernel:
    """H = G(u), u = sum_j s(p_j); `outer` are G, G', G'', `inner` is s, and `ends` are its limits at 0 and 1.

    `separable` is a Regularizer of v = sign * u, so that w = sign * G'(u).
    """

    def __init__(
        self,
        separable: Any,
        sign: int,
        outer: Sequence[Callable[..., Any]],
        inner: Callable[..., Any],
        ends: tuple[float, float],
    ) -> None:
        self.separable = separable
        self.sign = sign
        self.outer = outer
        self.inner = inner
        self.ends = ends

    def u(self, p: Any) -> Any:
        """sum_j s(p_j), with the limits of s at 0 and 1."""
        row, column = np.nonzero(p)
        positive = p[row, column]
        terms = np.where(positive >= 1.0, self.ends[1], self.inner(positive))
        zeros = p.shape[1] - np.bincount(row, minlength=len(p))
        return np.bincount(row, terms, minlength=len(p)) + np.where(zeros > 0, zeros * self.ends[0], 0.0)

    def solve(self, theta: Any) -> tuple[Any, Any]:
        """p and w of each row: p is the prediction of v at theta / w, and w that of p."""
        theta = rows.wide(theta)
        n, d = theta.shape
        bad = np.isnan(theta).any(axis=1) | ~(theta > -np.inf).any(axis=1)
        x = np.where(bad[:, None], 0.0, theta)
        classes = np.count_nonzero(x > -np.inf, axis=1)
        off = (d - classes) * self.ends[0]

        def first(u: Any) -> Any:
            return self.sign * self.outer[1](u) + 0.0 * u

        at_vertex = first((self.ends[1] + (classes - 1) * self.ends[0]) + off)
        at_middle = first(self.inner(1.0 / classes) * classes + off)
        low, high = np.minimum(at_vertex, at_middle), np.maximum(at_vertex, at_middle)
        low = np.maximum(low, 1e-300)
        w = np.clip(at_vertex, low, high)  # beyond the margin that is it
        p = np.empty_like(x)
        last_w, last_miss = np.full(n, np.nan), np.full(n, np.nan)
        todo = np.arange(n)
        for iteration in range(100):
            p[todo] = self.separable.predict(x[todo] / w[todo, None])
            miss = first(self.u(p[todo])) - w[todo]  # falls through 0 at the root
            here = w[todo]
            done = (np.abs(miss) <= 4 * EPS * here) | (high[todo] - low[todo] <= 4 * EPS * high[todo])
            low[todo] = np.where(miss > 0.0, here, low[todo])
            high[todo] = np.where(miss > 0.0, high[todo], here)
            with np.errstate(all="ignore"):
                rate = (miss - last_miss[todo]) / (here - last_w[todo])
                following = np.where(np.isfinite(rate) & (rate < 0.0), here - miss / rate, here + miss)
            last_w[todo], last_miss[todo] = here, miss
            outside = ~((following > low[todo]) & (following < high[todo])) | (iteration % 8 == 7)
            following = np.where(outside, 0.5 * (low[todo] + high[todo]), following)
            todo = todo[~done]
            if len(todo) == 0:
                break
            w[todo] = following[~done]
        p[bad], w[bad] = np.nan, np.nan
        return p, w

    def predict(self, theta: Any, axis: int = -1) -> Any:
        """The probabilities that maximise <theta, p> + H(p)."""
        given = rows.as_rows(theta, axis)
        given.rows = rows.wide(given.rows)
        with np.errstate(all="ignore"):
            return rows.back(given, self.solve(given.rows)[0])

    def value_and_grad(self, theta: Any, y: Any, axis: int = -1) -> tuple[Any, Any]:
        """Loss and gradient: w times the loss of v at theta / w, and how far G is from its tangent."""
        given = rows.as_rows(theta, axis)
        given.rows = rows.wide(given.rows)
        wanted = rows.targets(y, given)
        with np.errstate(all="ignore"):
            p, w = self.solve(given.rows)
            inside = self.separable.loss(given.rows / w[:, None], wanted)
            at_p, at_y = self.u(p), self.u(wanted)
            apart = self.outer[0](at_p) - self.outer[0](at_y) - self.sign * w * (at_p - at_y)
            loss = np.maximum(w * inside + np.where((p == wanted).all(axis=1), 0.0, apart), 0.0)
            loss[np.isnan(p).any(axis=1)] = np.nan
            return rows.back_batch(given, loss), rows.back(given, p - wanted)

    def jvp(self, theta: Any, direction: Any, axis: int = -1) -> Any:
        """The derivative of the prediction, by the implicit function theorem."""
        given = rows.as_rows(theta, axis)
        given.rows = rows.wide(given.rows)
        moves = rows.like(direction, given)
        with np.errstate(all="ignore"):
            p, w = self.solve(given.rows)
            x = np.where(np.isfinite(given.rows), rows.wide(given.rows), 0.0)
            at = given.rows / w[:, None]
            along, own = self.separable.jvp(at, moves), self.separable.jvp(at, x)
            second = self.outer[2](self.u(p)) + 0.0 * w  # of v, too: the sign comes in twice
            a, b = (x * along).sum(axis=1), (x * own).sum(axis=1)
            dw = -(second / w**2) * a / (1.0 - second * b / w**3)
            return rows.back(given, along / w[:, None] - own * (dw / w**2)[:, None])

    def entropy(self, p: Any, axis: int = -1) -> Any:
        """H(p) of each row."""
        given = rows.as_rows(p, axis, "p")
        with np.errstate(all="ignore"):
            return rows.back_batch(given, self.outer[0](self.u(rows.proportions(given, "p"))) + 0.0)
