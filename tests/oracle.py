"""The truth to fifty digits: predictions, losses and Jacobians of an entropy in mpmath.

It shares no numeric code with the package. With g = -h and q = (g')^{-1}, the prediction is q(theta_j - tau) and
the excess sum_j q(theta_j - tau) - total falls as tau grows (the total is 1 on the simplex; without one, tau is 0).
All coordinates move the same way with tau, so the excess that is left bounds the error of every one of them: each
answer carries its own certificate.
"""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import mpmath
import sympy

import fysym

DIGITS = 70
CHECK_DIGITS = 160
CLOSE = mpmath.mpf(10) ** -55

Number = Any  # an mpf


@dataclass(frozen=True)
class Truth:
    """The prediction of one row, its threshold, 1/g'' on the support (None where p is 0), and the total."""

    theta: tuple[Number, ...]
    p: tuple[Number, ...]
    tau: Number
    weight: tuple[Number | None, ...]
    total: float | None = 1


class Oracle:
    """The truth about an entropy h, a SymPy expression in `variable` with h(0) = h(1) = 0 and no parameters."""

    def __init__(
        self,
        h: sympy.Expr,
        variable: sympy.Symbol,
        slopes: tuple[sympy.Expr, sympy.Expr],
        inverse: sympy.Expr | None = None,
    ) -> None:
        self.h = sympy.sympify(h).subs(variable, sympy.Symbol("t"))
        t = sympy.Dummy("t", positive=True)
        h = sympy.sympify(h).subs(variable, t)
        self._value = _function(-h, t)
        self._slope = _function(-sympy.diff(h, t), t)
        self._curvature = _function(-sympy.diff(h, t, 2), t)
        self._end_slopes = tuple(-slope for slope in slopes)
        self._known: dict[Any, Any] = {}
        self._check_ends()
        self._closed: Callable[[Number], tuple[Number, Number]] | None = None
        if inverse is not None:
            (s,) = inverse.free_symbols
            pair = _function(sympy.Tuple(inverse, sympy.diff(inverse, s)), s)
            if self._is_inverse(pair):
                self._closed = pair

    @property
    def closed(self) -> bool:
        """Whether a closed form of the inverse passed its check, so that it is used."""
        return self._closed is not None

    # Scalar functions

    @property
    def slope_low(self) -> Number:
        """g'(0), at the working precision."""
        return self._once(("slope", 0, mpmath.mp.dps), lambda: _number(self._end_slopes[0]))

    @property
    def slope_high(self) -> Number:
        """g'(1), at the working precision."""
        return self._once(("slope", 1, mpmath.mp.dps), lambda: _number(self._end_slopes[1]))

    def value(self, t: Number) -> Number:
        """g(t) on [0, 1]."""
        with mpmath.workdps(DIGITS):
            t = mpmath.mpf(t)
            return mpmath.mpf(0) if t in (0, 1) else self._once(("value", t), lambda: _real(self._value(t)))

    def _once(self, key: Any, compute: Callable[[], Any]) -> Any:
        if key not in self._known:
            self._known[key] = compute()
        return self._known[key]

    def slope(self, t: Number) -> Number:
        """g'(t) on [0, 1]."""
        with mpmath.workdps(DIGITS):
            t = mpmath.mpf(t)
            return self.slope_low if t == 0 else self.slope_high if t == 1 else _real(self._slope(t))

    def inverse(self, s: Number, start: Number | None = None) -> tuple[Number, Number | None]:
        """q(s) and q'(s) at the working precision; (0, None) at or below the slope at 0, 1 at or above that at 1."""
        if s <= self.slope_low:
            return mpmath.mpf(0), None
        if s >= self.slope_high:
            return mpmath.mpf(1), self._weight_at_one()
        if self._closed is not None:
            p, weight = self._closed(s)
            return _real(p), _real(weight)
        p = self._root(s, start)
        return p, 1 / _real(self._curvature(p)) if p < 1 else self._weight_at_one()

    def _weight_at_one(self) -> Number:
        if mpmath.isinf(self.slope_high):
            return mpmath.mpf(0)
        curvature = _real(self._curvature(1 - mpmath.mpf(10) ** (10 - mpmath.mp.dps)))
        return 1 / curvature if curvature else mpmath.inf

    def _root(self, s: Number, start: Number | None) -> Number:
        """The p in (0, 1) with g'(p) = s: Newton's method in log p, kept inside a bracket."""
        low, high = mpmath.mpf(-1), mpmath.mpf(0)
        if start is not None and 0 < start < 1:
            x = mpmath.log(start)
            low = min(low, 2 * x)
        else:
            x = low
        while _real(self._slope(mpmath.exp(low))) > s:
            low *= 2
        resolution = mpmath.mpf(10) ** (8 - mpmath.mp.dps)
        last = mpmath.inf
        for _ in range(2000):
            if not low < x < high:
                x = (low + high) / 2
            p = mpmath.exp(x)
            miss = _real(self._slope(p)) - s
            if miss < 0:
                low = x
            else:
                high = x
            change = -miss / (p * _real(self._curvature(p)))
            if abs(change) <= resolution or high - low <= resolution:
                return mpmath.exp(x + change) if low <= x + change <= high else p
            slow = abs(change) > last / 2
            last = abs(change)
            x = (low + high) / 2 if slow else x + change
        raise AssertionError(f"no root of g'(p) = {s}")

    # Rows

    def solve(self, theta: Sequence[Any], near: Any = None, total: float | None = 1) -> Truth:
        """The prediction for finite scores, at least as many as the total.

        `near` is where the search for tau starts. It saves time and cannot change the answer, which is accepted
        only for its excess.
        """
        scores = tuple(mpmath.mpf(x) for x in theta)
        if total is None:
            with mpmath.workdps(DIGITS):
                each = [self.inverse(x) for x in scores]
            return Truth(scores, tuple(p for p, _ in each), mpmath.mpf(0), tuple(w for _, w in each), None)
        count = Counter(scores)
        for digits in (DIGITS, 4 * DIGITS, 16 * DIGITS):
            with mpmath.workdps(digits):
                solved = self._threshold(count, mpmath.nan if near is None else mpmath.mpf(near), mpmath.mpf(total))
            if solved is not None:
                tau, found = solved
                return Truth(scores, tuple(found[x][0] for x in scores), tau, tuple(found[x][1] for x in scores), total)
        raise AssertionError("q is too steep at the threshold")

    def _threshold(
        self, count: Counter[Number], near: Number, total: Number
    ) -> tuple[Number, dict[Number, Any]] | None:
        top = max(count)
        classes = sum(count.values())
        found: dict[Number, Any] = {}

        def excess(at: Number) -> Number:
            for x in count:
                found[x] = self.inverse(x - at, found[x][0] if x in found else None)
            return mpmath.fsum(n * found[x][0] for x, n in count.items()) - total

        if classes == total:
            found.update((x, (mpmath.mpf(1), mpmath.mpf(0))) for x in count)
            return min(count) - self.slope_high, found
        high = top - self.slope(total / classes)
        if len(count) == 1:
            excess(high)
            found[top] = (total / classes, found[top][1])
            return high, found
        low = sorted(count.elements(), reverse=True)[int(mpmath.ceil(total)) - 1] - self.slope_high
        if mpmath.isfinite(low) and excess(low) <= CLOSE:  # so many coordinates take everything
            return low, found
        x = near if low < near < high else max(low, high - 1)
        reach, last = mpmath.mpf(1), mpmath.inf
        for _ in range(2000):
            over = excess(x)
            if abs(over) <= CLOSE:
                return x, found
            if over > 0:
                low = x
            else:
                high = x
            if mpmath.isfinite(low) and high - low <= mpmath.mpf(10) ** (2 - mpmath.mp.dps) * max(1, abs(low)):
                return None  # q is so steep that no threshold of this many digits brings the sum close to 1
            total_weight = mpmath.fsum(n * found[y][1] for y, n in count.items() if found[y][1] is not None)
            x = x + over / total_weight if total_weight and mpmath.isfinite(total_weight) else mpmath.nan
            if not low < x < high or abs(over) > last / 4:
                if mpmath.isinf(low):
                    x, reach = high - reach, 2 * reach
                else:
                    x = (low + high) / 2
            last = abs(over)
        raise AssertionError("the threshold did not converge")

    def loss(self, truth: Truth, y: Sequence[Any] | int) -> Number:
        """L = sum_j theta_j (p_j - y_j) - g(p_j) + g(y_j); y is a label or proportions that have the exact total."""
        with mpmath.workdps(DIGITS):
            d = len(truth.p)
            wanted = [int(j == y) for j in range(d)] if isinstance(y, int) else [mpmath.mpf(x) for x in y]
            assert truth.total in (None, mpmath.fsum(wanted))
            return mpmath.fsum(
                x * (p - w) - self.value(p) + self.value(w)
                for x, p, w in zip(truth.theta, truth.p, wanted, strict=True)
            )

    def conjugate(self, truth: Truth) -> Number:
        """Omega*(theta) = <theta, p> - sum_j g(p_j)."""
        with mpmath.workdps(DIGITS):
            return mpmath.fsum(x * p - self.value(p) for x, p in zip(truth.theta, truth.p, strict=True))

    def derivative(self, truth: Truth, v: Sequence[Any]) -> list[Number]:
        """The derivative of the prediction in the direction v: central differences of the truth."""
        with mpmath.workdps(DIGITS):
            step = mpmath.mpf(10) ** -18
            moved = [
                self.solve(
                    [x + sign * step * mpmath.mpf(z) for x, z in zip(truth.theta, v, strict=True)],
                    truth.tau,
                    truth.total,
                )
                for sign in (1, -1)
            ]
            return [(a - b) / (2 * step) for a, b in zip(moved[0].p, moved[1].p, strict=True)]

    def reach(self, truth: Truth, j: int, ulps: int = 4, eps: float = 2.0**-52) -> Number:
        """How far p_j moves when one of the scores changes by that many units in its last place."""
        d = len(truth.theta)
        by_size = sorted(range(d), key=lambda k: -abs(truth.theta[k]))
        by_score = sorted(range(d), key=lambda k: -truth.theta[k])
        changed = range(d) if d <= 10 else {j, by_size[0], by_score[0], by_score[1]}
        moved = [abs(self._nudged(truth, k, sign * ulps, eps).p[j] - truth.p[j]) for k in changed for sign in (1, -1)]
        return max(moved)

    def _nudged(self, truth: Truth, k: int, ulps: int, eps: float) -> Truth:
        with mpmath.workdps(DIGITS):
            scores = list(truth.theta)
            _, exponent = math.frexp(float(scores[k]))
            scores[k] += mpmath.mpf(ulps) * mpmath.mpf(eps) * mpmath.mpf(2) ** (exponent - 1)
            return self.solve(scores, truth.tau, truth.total)

    # Checks of what the oracle was given

    def _check_ends(self) -> None:
        """The slopes at the ends are the limits of g' seen from inside."""
        with mpmath.workdps(220):
            for claim, at in ((self.slope_low, lambda e: e), (self.slope_high, lambda e: 1 - e)):
                near, nearer = (_real(self._slope(at(mpmath.mpf(10) ** -k))) for k in (100, 200))
                if mpmath.isinf(claim):
                    assert abs(nearer) > 1.2 * abs(near), (claim, near, nearer)
                    assert mpmath.sign(nearer) == mpmath.sign(claim)
                else:
                    # 1e-9 above Shannon, g' comes close to its limit only at t = 10^-(10^12).
                    nearer = nearer if at(0) else _real(self._slope(mpmath.mpf(10) ** -(10**12)))
                    assert abs(nearer - claim) < mpmath.mpf(10) ** -(DIGITS - 5) * abs(claim), (claim, nearer)

    def _is_inverse(self, pair: Callable[[Number], tuple[Number, Number]]) -> bool:
        """Whether q(g'(p)) = p over the whole of (0, 1), to at least fifty digits."""
        with mpmath.workdps(CHECK_DIGITS):
            tiny = [mpmath.mpf(10) ** -k for k in (40, 30, 20, 12, 6, 3, 2)]
            points = tiny + [mpmath.mpf(k) / 23 for k in range(1, 23)] + [1 - e for e in tiny]
            for p in points:
                try:
                    back = pair(_real(self._slope(p)))[0]
                except ZeroDivisionError:  # g' is so flat that its value is that at the end
                    return False
                if not abs(back - p) <= mpmath.mpf(10) ** -50 * p:
                    return False
        return True


def _function(expr: sympy.Basic, symbol: sympy.Symbol) -> Callable[[Number], Any]:
    return sympy.lambdify(symbol, expr, modules=[{"erfinv": _erfinv}, "mpmath"], cse=True)


def _erfinv(x: Number) -> Number:
    """erfinv by Newton's method on log erfc, for arguments so close to 1 that a plain iteration fails."""
    if x < 0:
        return -_erfinv(-x)
    if x < mpmath.mpf("0.9"):
        return mpmath.erfinv(x)
    tail = 1 - x
    if tail == 0:
        return mpmath.inf
    y = mpmath.sqrt(-mpmath.log(tail))
    for _ in range(200):
        now = mpmath.erfc(y)
        step = mpmath.log(now / tail) * now * mpmath.sqrt(mpmath.pi) / 2 * mpmath.exp(y * y)
        y += step
        if abs(step) < abs(y) * mpmath.mpf(10) ** (-mpmath.mp.dps // 2 - 2):
            break
    return y


def _number(value: sympy.Expr) -> Number:
    if value in (sympy.oo, -sympy.oo):
        return mpmath.inf if value == sympy.oo else -mpmath.inf
    return mpmath.mpf(str(sympy.N(value, mpmath.mp.dps + 10)))


def _real(value: Any) -> Number:
    if isinstance(value, mpmath.mpc):
        assert abs(value.imag) <= mpmath.mpf(10) ** (-mpmath.mp.dps // 2) * max(1, abs(value.real)), value
        return value.real
    return mpmath.mpf(value)


def of(regularizer: Any) -> Oracle:
    """The oracle of a compiled entropy, from its exact formulas."""
    r = regularizer
    return Oracle(r.h, r.variable, r.slopes, r.inverse)


# Every entry of the catalog, families at a few parameter values.
MEMBERS: dict[str, tuple[str, dict[str, Any]]] = {
    "shannon": ("shannon", {}),
    "gini": ("gini", {}),
    "tsallis_1": ("tsallis", {"alpha": 1}),
    "tsallis_1+1e-9": ("tsallis", {"alpha": 1 + 1e-9}),
    "tsallis_1.5": ("tsallis", {"alpha": 1.5}),
    "tsallis_3": ("tsallis", {"alpha": 3}),
    "hellinger": ("hellinger", {}),
    "fermi_dirac": ("fermi_dirac", {}),
    "jensen_shannon": ("jensen_shannon", {}),
    "kaniadakis_0.25": ("kaniadakis", {"k": 0.25}),
    "kaniadakis_0.75": ("kaniadakis", {"k": 0.75}),
    "abe_1": ("abe", {"q": 1}),
    "abe_1.5": ("abe", {"q": 1.5}),
    "abe_4": ("abe", {"q": 4}),
    "borges_roditi_0.9_3": ("borges_roditi", {"a": 0.9, "b": 3}),
    "borges_roditi_0.5_1.5": ("borges_roditi", {"a": 0.5, "b": 1.5}),
    "sine": ("sine", {}),
    "arctan": ("arctan", {}),
    "log1p": ("log1p", {}),
    "exponential": ("exponential", {}),
    "probit": ("probit", {}),
    "shannon_gini": ("shannon_gini", {}),
    "gini_sine": ("gini_sine", {}),
}


@functools.cache
def member(name: str) -> Any:
    """A member of the catalog by its name in MEMBERS, compiled once."""
    entry, parameters = MEMBERS[name]
    if name == "tsallis_1":  # the limit, which the family holds when its range says so
        family = fysym.compile("(t - t**alpha)/(alpha*(alpha - 1))", params={"alpha": "alpha >= 1"})
        return family.bind(**parameters)
    return fysym.catalog[entry].bind(**parameters)


@functools.cache
def member_oracle(name: str) -> Oracle:
    """The oracle of that member."""
    return of(member(name))


def allowed_error(oracle: Oracle, truth: Truth, j: int) -> Number:
    """How wrong p_j may be in float64: 1e-13, or what 4 units in the last place of a score do to it."""
    return max(mpmath.mpf("1e-13"), oracle.reach(truth, j))
