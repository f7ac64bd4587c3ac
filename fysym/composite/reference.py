"""Predictions and losses of G(sum s(p_j)) to as many digits as it takes: the truth that code is measured against."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import sympy

from .. import truth
from ..accuracy import Row, chosen
from .theory import T, U

ENTRY = 1e-4  # what a class enters the support with; below it, a class may leave
LONGEST = 3  # a Newton step in log p
MOST = 400  # Newton steps


class Reference:
    """H = G(u), u = sum_j s(p_j), by its formulas only; `digits` are those of a probability that is resolved.

    A prediction has theta_j + G'(u) s'(p_j) = tau where p_j > 0, and no more than that where p_j = 0.
    """

    def __init__(self, outer: sympy.Expr, inner: sympy.Expr, digits: int) -> None:
        self.ctx = truth.context()
        self.digits = digits
        self.outer = [sympy.diff(outer, U, k) for k in range(3)]
        self.inner = [sympy.diff(inner, T, k) for k in range(3)]
        start = sympy.limit(self.inner[1], T, 0, "+")
        self.start = truth.evaluate(start, {}, digits) if start.is_finite else None  # s'(0)

    def s(self, k: int, t: Any) -> Any:
        """The k-th derivative of s."""
        return truth.evaluate(self.inner[k], {T: t}, self.digits)

    def g(self, k: int, p: Sequence[Any]) -> Any:
        """The k-th derivative of G at u."""
        u = self.ctx.fsum(self.s(0, t) for t in p if t > 0)
        return truth.evaluate(self.outer[k], {U: u}, self.digits)

    def scores(self, p: Sequence[Any]) -> list[Any]:
        """The scores that have p as their prediction, at the cut-off where p_j = 0; none where that is infinite."""
        if self.start is None and not all(p):
            return []
        slope = self.g(1, p)
        return [-slope * (self.s(1, t) if t > 0 else self.start) for t in p]

    def solve(self, scores: Sequence[float], guess: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """The prediction, by Newton's method in log p on a support that is corrected until it is optimal, and by how
        much each p_j changes for each unit of any score."""
        ctx = self.ctx
        with ctx.workdps(self.digits):
            theta, p = [ctx.mpf(x) for x in scores], [ctx.mpf(t) for t in guess]
            nothing = ctx.mpf(10) ** (-2 * self.digits // 3)
            for _ in range(4 * len(p)):
                p, tau, rates = self.on_support(theta, p)
                level = 0 if self.start is None else self.g(1, p) * self.start
                better = [j for j, t in enumerate(p) if t == 0 and theta[j] + level > tau + nothing]
                if not better:
                    return p, rates
                p[max(better, key=lambda j: theta[j])] = ctx.mpf(ENTRY)
        raise ArithmeticError(f"no support was found for {list(scores)}")

    def on_support(self, theta: list[Any], p: list[Any]) -> tuple[list[Any], Any, list[Any]]:
        """p, tau and rates of change among the classes with p_j > 0; those that are below the cut-off leave.

        Newton's step solves G' s'' dp + G'' s' z - dtau = tau - theta - G' s' with z = sum(s' dp), and sum(p + dp) = 1.
        """
        ctx = self.ctx
        close = ctx.mpf(10) ** (-self.digits // 3)
        for _ in range(MOST):
            slope, bend = self.g(1, p), self.g(2, p)
            some = [j for j, t in enumerate(p) if t > 0]
            if not some:
                raise ArithmeticError("Newton's method lost its way")
            first = [self.s(1, p[j]) for j in some]
            soft = [1 / (slope * self.s(2, p[j])) for j in some]
            tau = ctx.fsum(p[j] * (theta[j] + slope * s) for j, s in zip(some, first, strict=True)) / ctx.fsum(p)
            a, b, c = (ctx.fsum(d * s**k for d, s in zip(soft, first, strict=True)) for k in (2, 1, 0))
            size = (bend * a + 1) * c - bend * b * b

            def step_for(
                v: list[Any], rest: Any, first: Any = first, soft: Any = soft, bend: Any = bend,
                a: Any = a, b: Any = b, c: Any = c, size: Any = size,
            ) -> tuple[list[Any], Any]:  # fmt: skip
                """dp and dtau for the right-hand sides v and rest."""
                along = ctx.fsum(d * s * x for d, s, x in zip(soft, first, v, strict=True))
                total = rest - ctx.fsum(d * x for d, x in zip(soft, v, strict=True))
                z, dtau = (along * c + b * total) / size, ((bend * a + 1) * total + bend * b * along) / size
                return [d * (x - bend * s * z + dtau) for d, s, x in zip(soft, first, v, strict=True)], dtau

            miss = [tau - theta[j] - slope * s for j, s in zip(some, first, strict=True)]
            moves, dtau = step_for(miss, 1 - ctx.fsum(p))
            step = [x / p[j] for j, x in zip(some, moves, strict=True)]
            longest = max(map(abs, step))
            if longest <= close:
                rates = [ctx.zero] * len(p)
                for k in range(len(some)):
                    moves, _ = step_for([ctx.mpf(int(k == i)) for i in range(len(some))], ctx.zero)
                    for j, x in zip(some, moves, strict=True):
                        rates[j] = max(rates[j], abs(x))
                for j, x in zip(some, step, strict=True):
                    p[j] *= ctx.exp(x)
                return p, tau + dtau, rates
            large = max((abs(x) for j, x in zip(some, step, strict=True) if p[j] >= ENTRY), default=ctx.zero)
            shorter = min(ctx.one, 1 / (2 * large)) if large else ctx.one
            for j, x in zip(some, step, strict=True):
                below = self.start is not None and theta[j] + slope * self.start <= tau
                p[j] = (
                    ctx.zero
                    if below and x < -1 and p[j] < 10 * ENTRY
                    else p[j] * ctx.exp(min(max(shorter * x, -LONGEST), LONGEST))
                )
        raise ArithmeticError("Newton's method did not end")

    def loss(self, scores: Sequence[float], p: Sequence[Any], label: int) -> Any:
        """sum_j theta_j (p_j - y_j) + H(p), as H is 0 at the vertices."""
        ctx = self.ctx
        with ctx.workdps(self.digits):
            moves = ctx.fsum(ctx.mpf(x) * (t - int(j == label)) for j, (x, t) in enumerate(zip(scores, p, strict=True)))
            return moves + self.g(0, p)


def rows(outer: sympy.Expr, inner: sympy.Expr, dtype: Any) -> list[Row]:
    """Rows over the whole range: tiny and ordinary probabilities, and scores at the cut-off."""
    found = []
    for places, least, shares in chosen(dtype):
        reference = Reference(outer, inner, 60 + 2 * max(places, least))
        with reference.ctx.workdps(reference.digits):
            p = [reference.ctx.mpf(x) for x in shares]
            p[-1] = 1 - reference.ctx.fsum(p[:-1])
            with np.errstate(all="ignore"):
                theta = [dtype(float(x)) for x in reference.scores(p)]
            if not theta or not np.isfinite(theta).all():
                continue
            moved = [theta]
            if 0 in shares:  # a little above and below the cut-off
                j = shares.index(0)
                moved += [[*theta[:j], np.nextafter(theta[j], dtype(to)), *theta[j + 1 :]] for to in (np.inf, -np.inf)]
            for scores in moved:
                smallest = min((abs(float(x)) for x in scores if x != 0), default=1.0)
                digits = max(reference.digits, 60 - 2 * round(math.log10(smallest)))
                with contextlib.suppress(ArithmeticError):  # rows whose truth was not found are not measured
                    found.append(_row(Reference(outer, inner, digits), scores, p))
    return found


def _row(reference: Reference, theta: list[Any], guess: list[Any]) -> Row:
    ctx = reference.ctx
    scores = [float(x) for x in theta]
    p, rates = reference.solve(scores, guess)
    step = float(max(np.spacing(np.abs(x)) for x in theta))
    number = type(theta[0])
    changes = [2 * step * rate for rate in rates]
    if any(t < 10 * change or t == 0 for t, change in zip(p, changes, strict=True)):  # at the cut-off
        for k in range(len(p)):
            for move in (step, -step):
                other = reference.solve([*scores[:k], scores[k] + move, *scores[k + 1 :]], p)[0]
                changes = [max(change, abs(a - b)) for change, a, b in zip(changes, other, p, strict=True)]
    units = [max(change, ctx.mpf(float(np.spacing(number(float(t)))))) for t, change in zip(p, changes, strict=True)]
    label = min(range(len(p)), key=lambda k: abs(p[k] - 0.3))
    loss = reference.loss(scores, p, label)
    moves = ctx.fsum(abs(t - int(j == label)) for j, t in enumerate(p)) * step
    return Row(tuple(scores), p, units, label, loss, max(moves, ctx.mpf(float(np.spacing(number(float(loss)))))))
