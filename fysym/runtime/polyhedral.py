"""Predictions and losses of piecewise linear entropies, in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import arrays
from .composite import below


class Kernel:
    """`kind` is perceptron, hinge or berger_parker; H is multiplied by `factor`."""

    def __init__(self, kind: str, factor: float) -> None:
        self.kind = kind
        self.factor = factor

    def solve(self, theta: Any) -> tuple[Any, Any, Any]:
        """p of rows of scores, the scores x less their largest, and tau, relative to the largest."""
        largest = theta.max(axis=1, initial=-np.inf)
        x = below(theta, largest)
        bad = ~(largest > -np.inf)
        x[bad] = 0.0
        tau, least = np.zeros(len(x)), np.zeros(len(x))
        if self.kind == "berger_parker":
            ordered = np.sort(x / self.factor, axis=1)[:, ::-1]
            k = np.arange(1.0, x.shape[1] + 1.0)
            sums = np.cumsum(ordered, axis=1) - 1.0
            count = np.count_nonzero(k * ordered > sums, axis=1)
            rows = np.arange(len(x))
            tau = self.factor * (sums[rows, count - 1] / count)
            least = self.factor * ordered[rows, count - 1]
            p = (x / self.factor >= ordered[rows, count - 1][:, None]).astype(np.float64)
        else:
            p = (x >= least[:, None]).astype(np.float64)
        p /= p.sum(axis=1, keepdims=True)
        for array in (p, x, tau):
            array[bad] = np.nan
        return p, x, tau

    def rows(self, theta: Any, axis: int) -> Any:
        given = arrays.as_rows(theta, axis)
        given.rows = arrays.wide(given.rows)
        return given

    @arrays.quiet
    def predict(self, theta: Any, axis: int = -1) -> Any:
        """The p chosen among those that maximise <theta, p> + H(p)."""
        given = self.rows(theta, axis)
        return arrays.back(given, self.solve(given.rows)[0])

    @arrays.quiet
    def threshold(self, theta: Any, axis: int = -1) -> Any:
        """The largest score, or Berger-Parker's tau."""
        given = self.rows(theta, axis)
        return arrays.back_batch(given, given.rows.max(axis=1, initial=-np.inf) + self.solve(given.rows)[2])

    @arrays.quiet
    def conjugate(self, theta: Any, axis: int = -1) -> Any:
        """Omega*(theta), the largest <theta, p> + H(p)."""
        given = self.rows(theta, axis)
        above = self.solve(given.rows)[2] + (self.factor if self.kind == "berger_parker" else 0.0)
        return arrays.back_batch(given, given.rows.max(axis=1, initial=-np.inf) + above)

    @arrays.quiet
    def value_and_grad(self, theta: Any, y: Any, axis: int = -1) -> tuple[Any, Any]:
        """The loss of each row and p - y, one of its subgradients."""
        given = self.rows(theta, axis)
        wanted = arrays.targets(y, given)
        own = 0.0
        if self.kind == "hinge":
            costs = self.factor * (1.0 - wanted)
            given.rows += costs
            own = (costs * wanted).sum(axis=1)
        p, x, tau = self.solve(given.rows)
        loss = tau - np.where(wanted > 0.0, x * wanted, 0.0).sum(axis=1)
        if self.kind == "berger_parker":
            loss = np.where((p == wanted).all(axis=1), 0.0, loss + self.factor * wanted.max(axis=1))
        return arrays.back_batch(given, np.maximum(loss, 0.0) + own), arrays.back(given, p - wanted)

    def loss(self, theta: Any, y: Any, axis: int = -1) -> Any:
        """The loss of each row."""
        return self.value_and_grad(theta, y, axis)[0]

    def grad(self, theta: Any, y: Any, axis: int = -1) -> Any:
        """A subgradient of each row's loss."""
        return self.value_and_grad(theta, y, axis)[1]

    @arrays.quiet
    def jvp(self, theta: Any, v: Any, axis: int = -1) -> Any:
        """0: where a prediction has a derivative, it is constant."""
        given = self.rows(theta, axis)
        return arrays.back(given, 0.0 * self.solve(given.rows)[0] + 0.0 * np.abs(arrays.like(v, given) > 0.0))

    def vjp(self, theta: Any, v: Any, axis: int = -1) -> Any:
        """0, as jvp."""
        return self.jvp(theta, v, axis)

    @arrays.quiet
    def jacobian(self, theta: Any, axis: int = -1) -> Any:
        """0 in two last dimensions."""
        given = self.rows(theta, axis)
        p = self.solve(given.rows)[0]
        found = 0.0 * p[:, :, None] * p[:, None, :]
        return found.reshape(*given.batch, *found.shape[1:]).astype(given.dtype)

    def value(self, p: Any) -> Any:
        """H of each row."""
        one = np.zeros(len(p))
        return self.factor * (1.0 - p.max(axis=1, initial=0.0)) if self.kind == "berger_parker" else one

    def tangent(self, p: Any, y: Any) -> Any:
        """H(p) + <a, y - p> for the supergradient a that treats the largest p equally."""
        if self.kind != "berger_parker":
            return np.zeros(len(p))
        largest = p == p.max(axis=1, keepdims=True, initial=0.0)
        return self.factor * (1.0 - np.where(largest, y, 0.0).sum(axis=1) / largest.sum(axis=1))

    @arrays.quiet
    def entropy(self, p: Any, axis: int = -1) -> Any:
        """H(p) of each row."""
        given = arrays.as_rows(p, axis, "p")
        return arrays.back_batch(given, self.value(arrays.proportions(given, "p")))

    @arrays.quiet
    def bregman(self, y: Any, p: Any, axis: int = -1) -> Any:
        """The Bregman divergence B(y || p) of Omega = -H."""
        given = arrays.as_rows(p, axis, "p")
        wanted, p = arrays.targets(y, given), arrays.proportions(given, "p")
        return arrays.back_batch(given, np.maximum(self.tangent(p, wanted) - self.value(wanted), 0.0))

    @arrays.quiet
    def score(self, p: Any, y: Any, axis: int = -1) -> Any:
        """The scoring rule S(p; y) = B(y || p) - Omega(y); proper, but not strictly."""
        given = arrays.as_rows(p, axis, "p")
        return arrays.back_batch(given, self.tangent(arrays.proportions(given, "p"), arrays.targets(y, given)))
