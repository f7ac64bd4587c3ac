"""Predictions and losses to as many digits as it takes: the truth that emitted code is measured against."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeAlias

import sympy

from . import truth
from .entropy import Entropy
from .facts import Theory

DIGITS = 40
LEAST = sympy.Rational(1, 10**400)  # smaller probabilities count as 0
Number: TypeAlias = Any  # an mpf


class Reference:
    """An entropy without free parameters, by its exact formulas only: no closed form of an inverse is used.

    With g = -h, a prediction is p_j = q(theta_j - tau), where g'(q(s)) = s. Both q and tau are roots of increasing
    functions, found by Newton's method inside a bracket. `least` is the order of magnitude of the least probability
    to be resolved, and `places` how many zeros a distance to 1 may have behind the point.
    """

    def __init__(self, entropy: Entropy, theory: Theory, places: int = 20, least: int = 20) -> None:
        t = entropy.t
        self.t = t
        self.places = places
        self.total = entropy.domain.total
        self.ctx = truth.context()
        self.working = 5 * DIGITS + 2 * max(places, least)  # q may be as steep as the eighth root
        self._value = entropy.whole(lambda h: -h)
        self._slope = entropy.whole(lambda h: -sympy.diff(h, t))
        self._curvature = entropy.whole(lambda h: -sympy.diff(h, t, 2))
        self.domain = entropy.domain
        self.low, self.high = (self._number(-theory.value(name)) for name in self.domain.facts("slope"))
        self.ends = tuple(self._number(-theory.value(name)) for name in self.domain.facts("value"))
        self.kinks = []
        for left, right in zip(entropy.pieces, entropy.pieces[1:], strict=False):
            slopes = (self._number(-piece.slope(t, left.high)) for piece in (left, right))
            self.kinks.append((self._number(left.high), *slopes))

    def _number(self, expr: sympy.Expr) -> Number:
        if expr.is_infinite:
            return self.ctx.inf if expr is sympy.oo else -self.ctx.inf
        return truth.evaluate(expr, {}, self.working)

    def value(self, t: Number) -> Number:
        """g(t), at the ends of the interval too."""
        if t in (self.domain.low, self.domain.high):
            return self.ends[int(t == self.domain.high)]
        return truth.evaluate(self._value, {self.t: t}, self.working)

    def slope(self, t: Number) -> Number:
        """g'(t) inside the interval."""
        return truth.evaluate(self._slope, {self.t: t}, self.working)

    def curvature(self, t: Number) -> Number:
        """g''(t) inside the interval."""
        return truth.evaluate(self._curvature, {self.t: t}, self.working)

    def coordinate(self, t: Number) -> Number:
        """x in which both ends of the interval are far away: log(t/(1-t)) in (0, 1)."""
        if self.domain.bounded:
            return self.ctx.log(t / (1 - t))
        return self.ctx.log(t) if self.domain.low == 0 else self.ctx.asinh(t)

    def at(self, x: Number) -> tuple[Number, Number]:
        """t and dt/dx at a coordinate."""
        if self.domain.bounded:
            t = 1 / (1 + self.ctx.exp(-x))
            return t, t * (1 - t)
        t = self.ctx.exp(x)
        return (t, t) if self.domain.low == 0 else (self.ctx.sinh(x), self.ctx.cosh(x))

    def inverse(self, s: Number, guess: Number = None) -> Number:
        """q(s), an end of the interval at or beyond the slope there."""
        ctx = self.ctx
        with ctx.workdps(self.working):
            if s <= self.low or s >= self.high:
                return ctx.mpf(self.domain.high if s >= self.high else self.domain.low)
            if self.domain.low == 0 and self.slope(LEAST) >= s:
                return ctx.zero
            low, high = -400 * ctx.ln10, (self.places if self.domain.bounded else 400) * ctx.ln10
            for at, before, after in self.kinks:
                if before <= s <= after:
                    return at
                edge = self.coordinate(at)
                low, high = (max(low, edge), high) if s > after else (low, min(high, edge))
            x = ctx.zero
            if guess is not None and self.domain.low < guess < self.domain.high:
                x = self.coordinate(guess)
            x = x if low < x < high else (low + high) / 2
            close, last = ctx.mpf(10) ** -(DIGITS + self.places), ctx.inf
            while True:
                t, change = self.at(x)
                miss = self.slope(t) - s
                low, high = (x, high) if miss < 0 else (low, x)
                rate = self.curvature(t) * change
                step = -miss / rate if rate > 0 else ctx.inf
                if abs(step) <= close or high - low <= close:
                    return t
                good = low < x + step < high and abs(step) < last / 2
                last = abs(step) if good else ctx.inf
                x = x + step if good else (low + high) / 2

    def solve(self, theta: Sequence[float], guess: Sequence[Number] | None = None) -> tuple[list[Number], Number]:
        """The prediction for finite scores, and its tau; `guess` only saves time."""
        ctx = self.ctx
        with ctx.workdps(self.working):
            scores = [ctx.mpf(x) for x in theta]
            top = max(scores)
            p: list[Number] = list(guess) if guess is not None else [None] * len(scores)
            if self.total is None:
                return [self.inverse(x, start) for x, start in zip(scores, p, strict=True)], ctx.zero

            def excess(at: Number) -> Number:
                p[:] = [self.inverse(x - at, start) for x, start in zip(scores, p, strict=True)]
                return ctx.fsum(p) - self.total

            last = sorted(scores)[-math.ceil(self.total)]
            share = ctx.mpf(self.total) / len(scores)
            low, high = last - self.high, top - self.slope(share) if share < 1 else top
            others = [x for x in scores if x != top]
            if self.total == 1 and len(others) == len(scores) - 1 and all(x - low <= self.low for x in others):
                return [ctx.mpf(int(x == top)) for x in scores], low  # one class takes everything
            tau = min(max(ctx.zero, low), high) if guess is not None else high
            nearly = 1 - ctx.mpf(10) ** -self.places
            reach, last, least = ctx.one, ctx.inf, ctx.mpf(10) ** -self.working  # h'' may cancel to 0
            close = ctx.mpf(10) ** (5 - DIGITS - self.places)
            narrow = ctx.mpf(10) ** (10 - self.working) * max(1, abs(top), abs(high))
            while True:
                over = excess(tau)
                low, high = (tau, high) if over >= 0 else (low, tau)
                inner = [(t, 1 / max(self.curvature(min(t, nearly)), least)) for t in p if t > 0]
                weight = ctx.fsum(w for _, w in inner)
                step = over / weight if weight > 0 else ctx.inf
                settled = all(abs(step) * w <= ctx.mpf(10) ** -25 * min(t, 1 - t) for t, w in inner if t < 1)
                if (settled and max(p) < 1) or abs(over) <= close or high - low <= narrow:
                    return p, tau
                good = low <= tau + step <= high and abs(over) < last / 2
                last = abs(over) if good else ctx.inf
                if good:
                    tau += step
                elif ctx.isfinite(low):
                    tau = (low + high) / 2
                else:
                    tau, reach = high - reach, 2 * reach

    def loss(self, theta: Sequence[float], p: Sequence[Number], y: Sequence[float]) -> Number:
        """sum_j theta_j (p_j - y_j) - g(p_j) + g(y_j)."""
        ctx = self.ctx
        with ctx.workdps(self.working):
            rows = zip(map(ctx.mpf, theta), p, map(ctx.mpf, y), strict=True)
            return ctx.fsum(x * (a - b) - self.value(a) + self.value(b) for x, a, b in rows)
