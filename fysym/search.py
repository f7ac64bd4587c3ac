"""A dense, adaptive search for places where a function of one variable is positive.

Point sampling misses a violation that sits in a sliver. Here every point is looked at: the interval is
cut into boxes, f is evaluated on whole boxes with float64 interval arithmetic (rounded outward), boxes
with f < 0 are settled, and the others are bisected until a point with f > 0 turns up, or nothing is left.

The result is as reliable as float64 library functions are; it is a search and not a proof.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import sympy as sp
from numpy.typing import NDArray
from sympy.codegen.cfunctions import expm1, log1p

from .intervals import EPS, INF, SMALLEST, Array, Pair, Tape, add, outward

# ---------------------------------------------------------------------------------------------------
# Charts: f near an end, in the distance e to that end

_NEAREST = 1e-300  # how near to an end the boxes go
_NARROWEST = 1e-13  # of the distance to the end: how narrow they become
_E = sp.Dummy("e", positive=True)
_TURNS = (sp.sin, sp.cos, sp.tan, sp.cot, sp.sec, sp.csc)

# Functions whose argument is side * (1 - x), written so that nothing is lost when x is small.
NEAR_ONE: dict[type, Callable[[int, sp.Expr], sp.Expr]] = {
    sp.asin: lambda side, x: side * (sp.pi / 2 - 2 * sp.asin(sp.sqrt(x / 2))),
    sp.acos: lambda side, x: 2 * sp.asin(sp.sqrt(x / 2)) if side > 0 else sp.pi - 2 * sp.asin(sp.sqrt(x / 2)),
    sp.atanh: lambda side, x: side * (sp.log(2 - x) - sp.log(x)) / 2,
    sp.acosh: lambda side, x: 2 * sp.asinh(sp.sqrt(-x / 2)),
    sp.erfinv: lambda side, x: side * sp.erfcinv(x),
}


def _stable(node: sp.Basic, memo: dict[sp.Basic, Any]) -> Any:
    """The same function of e, written so that float64 keeps its relative accuracy as e -> 0."""
    if not node.args or not node.has(_E):
        return node
    if node not in memo:
        memo[node] = _rewritten(node.func(*(_stable(arg, memo) for arg in node.args)))
    return memo[node]


def _rewritten(node: Any) -> Any:
    if isinstance(node, sp.Add):
        return _stable_sum(node)
    if isinstance(node, _TURNS):
        return node.func(sp.expand_mul(node.args[0]))
    if isinstance(node, sp.log) and node.args[0].as_coeff_Add()[0] == 1:
        return log1p(node.args[0] - 1)
    if type(node) in NEAR_ONE:
        constant, rest = node.args[0].as_coeff_Add()
        if constant in (1, -1):
            return NEAR_ONE[type(node)](int(constant), -constant * rest)
    return node


def _stable_sum(node: sp.Expr) -> sp.Expr:
    """A sum with powers of e taken out, and with what cancels at e = 0 cancelled."""
    lowest = _lowest_power(node)
    if lowest:
        return _E**lowest * _stable_sum(_divided(node, lowest))
    small = node.is_rational_function(_E) and all(abs(power.exp) <= 40 for power in node.atoms(sp.Pow))
    if small and node.xreplace({_E: sp.S.Zero}) == 0 and sp.count_ops(node) < 200:
        numerator, denominator = sp.fraction(sp.together(node))
        numerator = sp.expand(numerator)
        lowest = _lowest_power(numerator)
        return _E**lowest * _divided(numerator, lowest) / denominator
    fixed, moving = node.as_independent(_E, as_Add=True)
    for term in sp.Add.make_args(moving) if fixed else ():
        factor, part = term.as_independent(_E, as_Add=False)
        if factor == -fixed:
            less_one = _minus_one(part)
            if less_one is not None:
                return factor * less_one + (moving - term)
    return node


def _minus_one(part: Any) -> sp.Expr | None:
    """part - 1 without cancellation near part = 1."""
    if isinstance(part, sp.exp):
        return expm1(part.args[0])
    if isinstance(part, sp.cos):
        return -2 * sp.sin(part.args[0] / 2) ** 2
    if isinstance(part, sp.Pow) and isinstance(part.base, sp.tanh) and part.exp == 2:
        return -(sp.cosh(part.base.args[0]) ** -2)
    if isinstance(part, sp.Pow) and part.base.as_coeff_Add()[0] == 1:
        rest = part.base - 1
        if part.exp.is_integer is False or rest == -_E or rest.is_positive:  # 1 + rest > 0
            return expm1(part.exp * log1p(rest))
    return None


def _lowest_power(expr: sp.Expr) -> sp.Expr:
    """The lowest power of e that appears as a factor of a term, but for those that exp(-1/e) outweighs."""
    terms = [term for term in sp.Add.make_args(expr) if not any(map(_is_steep, sp.Mul.make_args(term)))]
    powers = [term.as_powers_dict().get(_E, sp.S.Zero) for term in terms]
    return sp.Min(*powers) if powers and all(power.is_Rational for power in powers) else sp.S.Zero


def _is_steep(factor: sp.Expr) -> bool:
    """Whether it is the exponential of something with a pole at e = 0."""
    poles = factor.args[0].atoms(sp.Pow) if isinstance(factor, sp.exp) else ()
    return any(power.base == _E and power.exp.is_negative for power in poles)


def _divided(expr: sp.Expr, power: sp.Expr) -> sp.Expr:
    return sp.Add(*(term * _E**-power for term in sp.Add.make_args(expr)))


class _Chart:
    """One half of the interval, t = origin + side * e with e in (0, half the length].

    If `scaled`, the lowest power of e is divided out: the sign stays, and near the end neither overflow
    nor underflow hides it.
    """

    def __init__(
        self, f: sp.Expr, t: sp.Symbol, origin: sp.Expr, side: int, derivative: sp.Expr | None, scaled: bool
    ) -> None:
        self.origin, self.side = origin, side
        self._there = {t: origin + side * _E}
        self._plain = _stable(f.xreplace(self._there), {})
        self._power = _lowest_power(self._plain) if scaled else sp.S.Zero
        self._scaled = _divided(self._plain, self._power) if self._power else self._plain
        self._derivative = derivative
        self._f = Tape(self._scaled, (_E,))

    @cached_property
    def _slope(self) -> Tape:
        """The derivative in e, made when first needed; unbounded for a function that may jump."""
        if self._plain.has(sp.Piecewise, sp.acot):
            slope: sp.Expr = sp.nan
        elif self._derivative is None:
            slope = sp.diff(self._scaled, _E)
        else:
            there = self.side * self._derivative.xreplace(self._there)
            slope = _E**-self._power * (there - self._power * self._plain / _E)
        return Tape(slope, (_E,))

    def point(self, e: float) -> sp.Expr:
        """The point t of this chart, exactly."""
        return self.origin + self.side * sp.Rational(float(e))

    def intervals(self, lo: Array, hi: Array) -> Array:
        """Boxes as rows (low, high) of t, rounded outward; the outermost box reaches to the end."""
        start = float(self.origin)
        ends = np.stack([np.where(lo > 4 * _NEAREST, lo, 0.0), hi], axis=1)
        rows = start + self.side * ends[:, :: self.side]
        if start:
            rows = np.nextafter(rows, [-INF, INF])
        return np.maximum(rows, start) if self.side > 0 else np.minimum(rows, start)

    def examine(self, lo: Array, hi: Array, level: float) -> _Bounds:
        """Upper bounds on boxes, improved where they are not below `level`, and bounds at one point of each.

        With slopes in [p, q], f(x) <= f(c) + max(p*(lo - c), q*(hi - c)). The point c is where the two
        are equal if p < 0 < q, and the end where f is largest if f is monotone. A slope that may be infinite
        is not used: f may jump there.
        """
        with np.errstate(all="ignore"):
            low, high = self._f((lo, hi))
            high = high.copy()
            todo = np.flatnonzero(high >= level)
            if not todo.size:
                return _Bounds(low, high, todo, *(4 * (np.empty(0),)))
            left, right = lo[todo], hi[todo]
            p, q = self._slope((left, right))
            finite = np.isfinite(p) & np.isfinite(q)
            p, q = np.where(finite, p, -INF), np.where(finite, q, INF)
            c = (q * right - p * left) / (q - p)
            c = np.where(np.isfinite(c), c, left + 0.4871 * (right - left))
            c = np.clip(np.where(p >= 0, right, np.where(q <= 0, left, c)), left, right)
            at_low, at_high = self._f((c, c))
            noise = self._noise(left, right, at_low, at_high, level)
            rise = np.maximum(np.where(c > left, p * (left - c), 0), np.where(c < right, q * (right - c), 0))
            bound = add((at_low, at_high), outward(rise, rise, ulps=4, tiny=0.0))[1]
            high[todo] = np.fmin(high[todo], bound)
        return _Bounds(low, high, todo, c, at_low, at_high, noise)

    def may_vanish(self, lo: Array, hi: Array) -> NDArray[np.int_]:
        """For each box: -1 where f has no root, 1 where it is monotone and may have one, 0 where neither is so."""
        with np.errstate(all="ignore"):
            low, high = self._f((lo, hi))
            known = np.where((low > 0) | (high < 0), -1, 0)
            todo = np.flatnonzero(known == 0)
            p, q = self._slope((lo[todo], hi[todo]))
            monotone = np.isfinite(p) & np.isfinite(q) & ((p > 0) | (q < 0))
            todo = todo[monotone]
            first, last = (self._f((ends[todo], ends[todo])) for ends in (lo, hi))
            same = ((first[0] > 0) & (last[0] > 0)) | ((first[1] < 0) & (last[1] < 0))
            known[todo] = np.where(same, -1, 1)
        return known

    def _noise(self, left: Array, right: Array, low: Array, high: Array, level: float) -> Array:
        """The rounding error of f where it hides, at two points of the box, whether f is above `level`.

        It is 0 where it does not. [low, high] are the bounds at the first point; the second is arbitrary, for
        the first may be special: a pole that is none, a zero.
        """
        noise = np.zeros(left.size)
        unclear = np.flatnonzero((low <= level) & (high >= level))
        if not unclear.size:
            return noise
        left, right, width = left[unclear], right[unclear], (high - low)[unclear]
        other = left + 0.3719 * (right - left)
        low, high = self._f((other, other))
        hidden = (low <= level) & (high >= level) & (np.isfinite(high - low) | (right - left <= 0.1 * left))
        noise[unclear] = np.where(hidden, np.minimum(width, high - low) + SMALLEST, 0.0)
        return noise


@dataclass(frozen=True)
class _Bounds:
    """Bounds [low, high] on boxes; for the boxes `todo` a point c of each, bounds on f(c), their rounding."""

    low: Array
    high: Array
    todo: NDArray[np.intp]
    c: Array
    at_low: Array
    at_high: Array
    noise: Array


# ---------------------------------------------------------------------------------------------------
# Branch and bound

_BATCH = 8192
_MOST_DOUBTS = 24
_MOST_OPEN = 64
_MOST_ROOTS = 64


@dataclass
class _Pool:
    """The boxes of a chart that are not settled; those of highest rank are taken first."""

    chart: _Chart
    lo: Array
    hi: Array
    rank: Array

    def take(self) -> Pair:
        if self.lo.size <= _BATCH:
            chosen = np.ones(self.lo.size, bool)
        else:
            chosen = np.zeros(self.lo.size, bool)
            chosen[np.argpartition(self.rank, -_BATCH)[-_BATCH:]] = True
        lo, hi = self.lo[chosen], self.hi[chosen]
        self.lo, self.hi, self.rank = self.lo[~chosen], self.hi[~chosen], self.rank[~chosen]
        return lo, hi

    def give_parts(self, lo: Array, hi: Array, rank: Array) -> None:
        """Cut boxes and put the parts back: in two, or in more when so few boxes cost the same."""
        parts = 2 if lo.size > 32 else 8
        edges = lo + np.arange(parts + 1)[:, None] / parts * (hi - lo)
        edges[-1] = hi
        self.lo = np.concatenate([self.lo, edges[:-1].ravel()])
        self.hi = np.concatenate([self.hi, edges[1:].ravel()])
        self.rank = np.concatenate([self.rank, np.tile(rank, parts)])


def _pools(f: sp.Expr, t: sp.Symbol, low: Any, high: Any, derivative: sp.Expr | None, scaled: bool) -> list[_Pool]:
    """The first boxes: one per octave towards each end, and eight per octave in the middle."""
    a, b = (sp.Rational(x) if isinstance(x, float) else sp.sympify(x) for x in (low, high))
    half = (b - a) / 2
    top = float(half) if sp.Rational(float(half)) == half else float(np.nextafter(float(half), INF))
    octaves = int(np.log2(top / _NEAREST))
    edges = top * np.concatenate([2.0 ** np.arange(-octaves, -6), 2.0 ** (np.arange(-48, 1) / 8)])
    lo, hi = edges[:-1], edges[1:]
    charts = [_Chart(f, t, origin, side, derivative, scaled) for origin, side in ((a, 1), (b, -1))]
    return [_Pool(chart, lo, hi, np.full(lo.size, INF)) for chart in charts]


def _hopeless(left: Array, right: Array, bounds: _Bounds, excess: Array) -> NDArray[np.bool_]:
    """Where bisection cannot help: rounding at a point is the obstacle, or the box is as narrow as allowed."""
    noisy = (bounds.noise > 0) & (excess <= 4 * bounds.noise)
    return noisy | (right - left <= _NARROWEST * right)


@dataclass(frozen=True)
class Search:
    """What a search for f > 0 found.

    `violation` is an exact point with f > 0 and `box` an interval around it (None if there is none);
    `boxes` counts the boxes examined; `open_boxes` are the intervals of t where neither f < 0 nor f > 0
    could be established; `complete` says that the search came to its end within its budget.
    """

    violation: sp.Expr | None
    box: tuple[float, float] | None
    boxes: int
    open_boxes: tuple[tuple[float, float], ...]
    complete: bool

    @property
    def covered(self) -> bool:
        """Whether f < 0 was seen on the whole interval."""
        return self.complete and self.violation is None and not self.open_boxes


def search_positive(
    f: sp.Expr,
    t: sp.Symbol,
    low: float | sp.Expr = 0.0,
    high: float | sp.Expr = 1.0,
    *,
    derivative: sp.Expr | None = None,
    confirm: Callable[[sp.Expr], int] | None = None,
    seconds: float = 2.0,
    most_boxes: int = 400_000,
) -> Search:
    """Search all of (low, high) for a point with f(t) > 0.

    Each end is approached to a distance of 1e-300. A point that float64 finds positive is passed to
    `confirm`, if given, as an exact number: +1 accepts it, anything else lets the search go on.
    f must be continuous and piecewise smooth on (low, high) unless it is written with Piecewise.
    """
    stop = time.monotonic() + seconds
    pools = _pools(f, t, low, high, derivative, scaled=True)
    examined = doubts = 0
    given_up: list[Array] = []
    while any(pool.lo.size for pool in pools):
        for pool in pools:
            chart = pool.chart
            if examined >= most_boxes or time.monotonic() > stop:
                rest = [pool.chart.intervals(pool.lo, pool.hi) for pool in pools]
                return Search(None, None, examined, _merged(given_up + rest), False)
            lo, hi = pool.take()
            examined += lo.size
            bounds = chart.examine(lo, hi, 0.0)
            left, right, highest = lo[bounds.todo], hi[bounds.todo], bounds.high[bounds.todo]
            for k in _clearest(bounds):
                if doubts >= _MOST_DOUBTS:
                    break
                point = chart.point(bounds.c[k])
                if confirm is None or confirm(point) > 0:
                    box = chart.intervals(left[[k]], right[[k]])
                    return Search(point, (float(box[0, 0]), float(box[0, 1])), examined, (), True)
                doubts += 1
            unsettled = highest >= 0
            stuck = _hopeless(left, right, bounds, highest)
            given_up.append(chart.intervals(left[unsettled & stuck], right[unsettled & stuck]))
            go_on = unsettled & ~stuck
            with np.errstate(all="ignore"):
                share = np.nan_to_num(highest / (highest - bounds.low[bounds.todo]), nan=1.0)
            pool.give_parts(left[go_on], right[go_on], share[go_on])
    return Search(None, None, examined, _merged(given_up), True)


@dataclass(frozen=True)
class Roots:
    """Where f vanishes: exact points, and open brackets with one root each; in `open_boxes` anything is possible."""

    points: tuple[sp.Rational, ...]
    brackets: tuple[tuple[sp.Rational, sp.Rational], ...]
    open_boxes: tuple[tuple[float, float], ...]


def isolate_roots(
    f: sp.Expr, t: sp.Symbol, sign: Callable[[sp.Expr], int | None], *, seconds: float = 2.0, most_boxes: int = 200_000
) -> Roots:
    """All roots of f in (0, 1), each end approached to a distance of 1e-300; `sign` is that of f at an exact point.

    A box where f may vanish is bisected until f is monotone on it; then the signs at its ends decide.
    """
    stop = time.monotonic() + seconds
    examined = 0
    points: set[sp.Rational] = set()
    brackets: list[tuple[sp.Rational, sp.Rational]] = []
    given_up: list[Array] = []
    for pool in _pools(f, t, 0.0, 1.0, None, scaled=True):
        chart = pool.chart
        while pool.lo.size:
            if examined >= most_boxes or len(brackets) > _MOST_ROOTS or time.monotonic() > stop:
                given_up.append(chart.intervals(pool.lo, pool.hi))
                break
            lo, hi = pool.take()
            examined += lo.size
            monotone = chart.may_vanish(lo, hi)
            for k in np.flatnonzero(monotone == 1):
                if len(brackets) > _MOST_ROOTS:
                    given_up.append(chart.intervals(lo[[k]], hi[[k]]))
                    continue
                ends = chart.point(lo[k]), chart.point(hi[k])
                first, last = map(sign, ends)
                points.update(end for end, side in zip(ends, (first, last), strict=True) if side == 0)
                if first is None or last is None:
                    given_up.append(chart.intervals(lo[[k]], hi[[k]]))
                elif first * last < 0:
                    brackets.append((min(ends), max(ends)))
            go_on = monotone == 0
            stuck = go_on & (hi - lo <= _NARROWEST * hi)
            given_up.append(chart.intervals(lo[stuck], hi[stuck]))
            go_on &= ~stuck
            pool.give_parts(lo[go_on], hi[go_on], hi[go_on])
    return Roots(tuple(sorted(points)), tuple(sorted(brackets)), _merged(given_up))


def _clearest(bounds: _Bounds) -> NDArray[np.intp]:
    """At most three of the points where f > 0: clear ones first, far from the end first."""
    positive = np.flatnonzero(bounds.at_low > 0)
    clear = bounds.at_low[positive] > bounds.at_high[positive] / 2
    return positive[np.lexsort((-bounds.c[positive], ~clear))][:3]


def _merged(boxes: list[Array]) -> tuple[tuple[float, float], ...]:
    """Join boxes that touch; if many remain, join across the smallest gaps as well."""
    rows = np.concatenate([np.empty((0, 2)), *boxes])
    if not rows.size:
        return ()
    rows = rows[np.argsort(rows[:, 0], kind="stable")]
    reach = np.maximum.accumulate(rows[:, 1])
    gaps = rows[1:, 0] - reach[:-1]
    cuts = np.flatnonzero(gaps > 4 * EPS * reach[:-1])
    if cuts.size >= _MOST_OPEN:
        cuts = np.sort(cuts[np.argsort(gaps[cuts])[-(_MOST_OPEN - 1) :]])
    starts, ends = np.append(0, cuts + 1), np.append(cuts, len(rows) - 1)
    return tuple(zip(rows[starts, 0].tolist(), reach[ends].tolist(), strict=True))


def lower_bound_and_point(
    f: sp.Expr,
    t: sp.Symbol,
    low: float | sp.Expr = 0.0,
    high: float | sp.Expr = 1.0,
    *,
    seconds: float = 1.0,
    tolerance: float = 1e-9,
) -> tuple[float, float, float]:
    """The infimum of f over (low, high): a lower bound, the smallest value found, and where.

    The bound and the value agree to the relative `tolerance` if time and rounding allow. An infimum that is
    only approached at an end is met at a distance of 1e-300 from it.
    """
    stop = time.monotonic() + seconds
    pools = _pools(-f, t, low, high, None, scaled=False)
    best, settled, point = -INF, -INF, np.nan
    while any(pool.lo.size for pool in pools) and time.monotonic() < stop:
        for pool in pools:
            lo, hi = pool.take()
            level = best + tolerance * abs(best) if np.isfinite(best) else -INF
            bounds = pool.chart.examine(lo, hi, level)
            if bounds.todo.size and bounds.at_low.max() > best:
                k = int(np.argmax(bounds.at_low))
                best, point = float(bounds.at_low[k]), float(pool.chart.point(bounds.c[k]))
                level = best + tolerance * abs(best)
            left, right, highest = lo[bounds.todo], hi[bounds.todo], bounds.high[bounds.todo]
            go_on = (highest > level) & ~_hopeless(left, right, bounds, highest - level)
            unresolved = np.ones(lo.size, bool)
            unresolved[bounds.todo[go_on]] = False
            settled = max(settled, float(bounds.high[unresolved].max(initial=-INF)))
            pool.give_parts(left[go_on], right[go_on], highest[go_on])
    highest_left = max(float(pool.rank.max(initial=-INF)) for pool in pools)
    return -max(best, settled, highest_left), -best, point
