"""Expressions next to an end of (0, 1) as finite sums whose leading term shows the sign."""

from __future__ import annotations

import functools
import itertools
import math
import time
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import sympy
from sympy import S

from .. import deadline
from .balls import Box, Program, Unsettled, enclose, integer_power, real_power

Key = tuple[sympy.Expr, sympy.Expr]  # the exponents (a, k) of x^a l^k
Coefficient = tuple[Any, sympy.Expr | None]  # a ball, and the exact value where it is known
Series = dict[Key, Coefficient]

ZERO_BITS = 320  # at which a constant is told from 0
MOST_TERMS = 30
CONSTANT: Key = (S.Zero, S.Zero)


class Expansion:
    """Expressions on the strip 0 < x <= delta as finite sums of c x^a l^k with l = log(1/x) and balls c.

    Functions are expanded about their value at the end by Taylor's formula; the remainder is one more
    term, whose ball encloses the last derivative on the whole range. So the sums hold for every x of the
    strip and every parameter in the box, without a limit being taken.
    """

    def __init__(
        self, symbols: tuple[sympy.Symbol, ...], at: int, delta: Fraction, order: int, box: Box, stop: float
    ) -> None:
        self.t, *self.parameters = symbols
        self.order, self.stop, self.rewrites = order, stop, 0
        self.values = [enclose(low, high) for low, high in box]
        self.delta = enclose(delta)
        self.level = -self.delta.log()
        x: Series = {(S.One, S.Zero): (enclose(S.One), S.One)}
        near = {CONSTANT: (enclose(S.One), S.One), (S.One, S.Zero): (enclose(S.NegativeOne), S.NegativeOne)}
        self.known: dict[sympy.Expr, Series] = {self.t: x if at == 0 else near}

    def number(self, expr: sympy.Expr) -> Any:
        """The ball of an expression in the parameters."""
        return finite(enclose(expr) if expr.is_Rational else _program(expr, tuple(self.parameters))(self.values))

    # sums, and what they are at most

    def ratio(self, a: sympy.Expr, k: sympy.Expr) -> Any:
        """A ball that contains x^a l^k on the strip."""
        if a == 0 and k == 0:
            return enclose(S.One)
        least = self.number(a).lower()
        if not least >= 0 or (k > 0 and not least > 0):
            raise Unsettled
        if k > 0 and not self.level > enclose(k) / least:  # the largest value is inside the strip or beyond
            top = real_power(enclose(k) / (least * enclose(S.One).exp()), enclose(k))
        else:
            top = real_power(self.delta, least) * (real_power(self.level, enclose(k)) if k != 0 else 1)
        return finite(top).upper().union(enclose(S.Zero))

    def bound(self, series: Series) -> Any:
        """A ball that contains the sum on the whole strip."""
        return sum((c * self.ratio(a, k) for (a, k), (c, _) in series.items()), enclose(S.Zero))

    def sized(self, series: Series) -> list[Key]:
        """The terms, the largest near the end first."""
        return sorted(series, key=lambda key: (float(self.number(key[0]).mid()), -key[1]))

    def leading_bound(self, series: Series) -> tuple[Key, Any]:
        """The term to divide by so that the sum stays positive, and the ball of the quotient."""
        for a, k in self.sized(series):
            if not series[a, k][0] > 0:
                continue
            rest = {(_plus(b, -a), m - k): c for (b, m), c in series.items() if (b, m) != (a, k) and not c[0] > 0}
            try:
                value = series[a, k][0] + self.bound(rest)
            except Unsettled:
                continue
            if value > 0:
                return (a, k), value
        raise Unsettled

    def split(self, series: Series) -> tuple[Key, Coefficient, Series]:
        """The leading term c x^a l^k, and v in series = c x^a l^k (1 + v)."""
        if not series:
            raise Unsettled
        (a, k) = key = self.sized(series)[0]
        ball, exact = series[key]
        if not (ball > 0 or ball < 0):
            raise Unsettled
        rest = {
            (_plus(b, -a), m - k): (c / ball, None if exact is None or e is None else _exact(e / exact))
            for (b, m), (c, e) in series.items()
            if (b, m) != key
        }
        return key, series[key], rest

    # arithmetic

    def add(self, *sums: Series) -> Series:
        total: Series = {}
        for series in sums:
            for key, (ball, exact) in series.items():
                if key in total:
                    other, known = total[key]
                    exact = None if exact is None or known is None else _exact(exact + known)
                    ball = ball + other
                total[key] = (ball, exact)
        for key, (ball, exact) in list(total.items()):
            if not (ball > 0 or ball < 0) and exact is not None and _vanishes(exact):
                del total[key]
        return self.shortened(total)

    def shortened(self, series: Series) -> Series:
        """At most MOST_TERMS terms: the small ones are gathered in the largest of them."""
        keys = self.sized(series)
        if len(keys) <= MOST_TERMS:
            return series
        kept = {key: series[key] for key in keys[:MOST_TERMS]}
        a, k = keys[MOST_TERMS]
        kept[a, k] = (self.bound({(_plus(b, -a), m - k): series[b, m] for b, m in keys[MOST_TERMS:]}), None)
        return kept

    def times(self, one: Series, two: Series) -> Series:
        if time.monotonic() > self.stop:
            raise Unsettled
        products = []
        for (a, k), (c, exact) in one.items():
            row = {}
            for (b, m), (d, other) in two.items():
                row[_plus(a, b), k + m] = (c * d, None if exact is None or other is None else _exact(exact * other))
            products.append(row)
        return self.add(*products)

    def taylor(self, v: Series, coefficient: Callable[[int], Coefficient], remainder: Callable[[Any], Any]) -> Series:
        """The sum of coefficient(j) v^j for j below the order, and remainder(range of v) v^order."""
        span = self.bound(v).union(enclose(S.Zero))
        total: Series = {CONSTANT: (finite(remainder(span)), None)}
        for j in reversed(range(self.order)):
            total = self.add(self.times(total, v), {CONSTANT: coefficient(j)})
        return total

    # functions

    def of(self, expr: sympy.Expr) -> Series:
        if expr not in self.known:
            self.known[expr] = self._of(expr)
        return self.known[expr]

    def _of(self, expr: sympy.Expr) -> Series:
        if not expr.has(self.t):
            return self.add({CONSTANT: (self.number(expr), expr)})
        if expr.is_Add:
            return self.add(*map(self.of, expr.args))
        if expr.is_Mul:
            return functools.reduce(self.times, map(self.of, expr.args))
        if expr.is_Pow and not expr.exp.has(self.t):
            return self.power(self.of(expr.base), expr.exp)
        if expr.is_Pow:
            return self.exponential(self.of(expr.exp * sympy.log(expr.base)))
        if isinstance(expr, sympy.exp):
            return self.exponential(self.of(expr.args[0]))
        if isinstance(expr, sympy.log):
            return self.logarithm(self.of(expr.args[0]))
        try:
            return self.function(expr)
        except Unsettled:
            return self.rewritten(expr)

    def rewritten(self, expr: sympy.Expr) -> Series:
        """An equal form, for where the function itself is not smooth at its value at the end."""
        self.rewrites += 1
        if isinstance(expr, sympy.atan):
            _, (c, _), v = self.split(self.of(expr.args[0]))
            if 1 + self.bound(v) > 0:
                return self.of((S.Pi / 2 if c > 0 else -S.Pi / 2) - sympy.atan(1 / expr.args[0]))
        for form in _other_forms(expr) if self.rewrites < 20 else ():
            try:
                return self.of(form)
            except Unsettled:
                continue
        raise Unsettled

    def power(self, base: Series, r: sympy.Expr) -> Series:
        if r.is_Integer and 0 < r <= 4:
            return functools.reduce(self.times, [base] * int(r))
        (a, k), (c, exact), v = self.split(base)
        whole = int(r) if r.is_Integer else None
        if (whole is None and not c > 0) or not (k * r).is_Rational:
            raise Unsettled
        front = integer_power(c, whole) if whole is not None else real_power(c, self.number(r))
        head = {(sympy.expand(a * r), k * r): (finite(front), None if exact is None else _exact(exact**r))}

        def coefficient(j: int) -> Coefficient:
            value = sympy.expand(sympy.ff(r, j)) / sympy.factorial(j)
            return self.number(value), value

        def remainder(span: Any) -> Any:
            return coefficient(self.order)[0] * real_power(1 + span, self.number(r - self.order))

        return self.times(head, self.taylor(v, coefficient, remainder))

    def logarithm(self, inner: Series) -> Series:
        (a, k), (c, exact), v = self.split(inner)
        if not c > 0 or k != 0:
            raise Unsettled

        def coefficient(j: int) -> Coefficient:
            value = sympy.Rational((-1) ** (j + 1), j) if j else S.Zero
            return enclose(value), value

        def remainder(span: Any) -> Any:
            return coefficient(self.order)[0] * real_power(1 + span, enclose(sympy.Integer(-self.order)))

        head: Series = {CONSTANT: (finite(c.log()), None if exact is None else sympy.log(exact))}
        if a != 0:
            head[S.Zero, S.One] = (-self.number(a), -a)
        return self.add(head, self.taylor(v, coefficient, remainder))

    def exponential(self, inner: Series) -> Series:
        """exp(c0 + c1 l + v) = exp(c0) x^(-c1) exp(v)."""
        v = dict(inner)
        c, exact = v.pop(CONSTANT, (enclose(S.Zero), S.Zero))
        _, slope = v.pop((S.Zero, S.One), (None, S.Zero))
        if slope is None:
            raise Unsettled

        def coefficient(j: int) -> Coefficient:
            value = S.One / sympy.factorial(j)
            return enclose(value), value

        tail = self.taylor(v, coefficient, lambda span: span.exp() * coefficient(self.order)[0])
        return self.times(
            {(-slope, S.Zero): (finite(c.exp()), None if exact is None else _exact(sympy.exp(exact)))}, tail
        )

    def function(self, expr: sympy.Expr) -> Series:
        """Any function of one argument that is smooth at its value at the end."""
        varying = [arg for arg in expr.args if arg.has(self.t)]
        if len(varying) != 1:
            raise Unsettled
        v = dict(self.of(varying[0]))
        c, exact = v.pop(CONSTANT, (enclose(S.Zero), S.Zero))
        derivatives = [_program(d, (_X,)) for d in _derivatives(expr.xreplace({varying[0]: _X}), self.order)]

        def coefficient(j: int) -> Coefficient:
            ball = finite(derivatives[j]([c])) / math.factorial(j)
            value = None
            if exact is not None:
                value = _exact(_derivatives(expr.xreplace({varying[0]: _X}), self.order)[j].xreplace({_X: exact}))
            return ball, None if value is None else _exact(value / sympy.factorial(j))

        def remainder(span: Any) -> Any:
            finite(derivatives[0]([c + span]))
            return derivatives[self.order]([c + span]) / math.factorial(self.order)

        return self.taylor(v, coefficient, remainder)


_X = sympy.Dummy("x", real=True)


def finite(ball: Any) -> Any:
    if not ball.is_finite():
        raise Unsettled
    return ball


@functools.lru_cache(maxsize=512)
def _program(expr: sympy.Expr, symbols: tuple[sympy.Symbol, ...]) -> Program:
    return Program(expr, symbols)


@functools.lru_cache(maxsize=256)
def _derivatives(expr: sympy.Expr, order: int) -> tuple[sympy.Expr, ...]:
    """A function of _X and its derivatives; those of W are written so that they are smooth at 0."""
    if isinstance(expr, sympy.LambertW):
        found = [w := sympy.Dummy("w", real=True)]
        for _ in range(order):
            found.append(sympy.factor(sympy.diff(found[-1], w) * sympy.exp(-w) / (1 + w)))
        return tuple(d.xreplace({w: expr}) for d in found)
    found = [expr]
    for _ in range(order):
        found.append(sympy.diff(found[-1], _X))
    return tuple(found)


def _other_forms(expr: sympy.Expr) -> tuple[sympy.Expr, ...]:
    """Forms that equal the function wherever both are real."""
    u = expr.args[-1]
    half = 2 * sympy.asin(sympy.sqrt((1 - u) / 2)), 2 * sympy.asin(sympy.sqrt((1 + u) / 2))
    forms: dict[Any, tuple[sympy.Expr, ...]] = {
        sympy.asin: (S.Pi / 2 - half[0], half[1] - S.Pi / 2),
        sympy.acos: (half[0], S.Pi - half[1]),
        sympy.asinh: (sympy.log(u + sympy.sqrt(1 + u**2)), -sympy.log(sympy.sqrt(1 + u**2) - u)),
        sympy.acosh: (2 * sympy.asinh(sympy.sqrt((u - 1) / 2)), sympy.log(u + sympy.sqrt(u**2 - 1))),
        sympy.atanh: ((sympy.log(1 + u) - sympy.log(1 - u)) / 2,),
        sympy.sinh: ((sympy.exp(u) - sympy.exp(-u)) / 2,),
        sympy.cosh: ((sympy.exp(u) + sympy.exp(-u)) / 2,),
        sympy.tanh: (1 - 2 / (sympy.exp(2 * u) + 1), 2 / (sympy.exp(-2 * u) + 1) - 1),
        sympy.tan: (sympy.sin(u) / sympy.cos(u),),
        sympy.cot: (sympy.cos(u) / sympy.sin(u),),
        sympy.sec: (1 / sympy.cos(u),),
        sympy.csc: (1 / sympy.sin(u),),
        sympy.gamma: (sympy.gamma(1 + u, evaluate=False) / u,),
        sympy.loggamma: (sympy.loggamma(1 + u) - sympy.log(u),),
    }
    if isinstance(expr, sympy.polygamma) and expr.args[0].is_Integer:
        n = expr.args[0]
        return (sympy.polygamma(n, 1 + u, evaluate=False) - (-1) ** n * sympy.factorial(n) * u ** (-n - 1),)
    return forms.get(expr.func, ())


def _plus(a: sympy.Expr, b: sympy.Expr) -> sympy.Expr:
    total = a + b
    return total if total.is_Rational else sympy.expand(total)


def _exact(value: sympy.Expr) -> sympy.Expr | None:
    """An exact coefficient, forgotten when it is undefined or grows long: it only serves to recognise zeros."""
    if value.is_Rational:
        return value
    if value.has(S.NaN, S.ComplexInfinity, S.Infinity, S.NegativeInfinity, S.ImaginaryUnit):
        return None
    return value if sum(1 for _ in itertools.islice(sympy.preorder_traversal(value), 121)) <= 120 else None


@functools.lru_cache(maxsize=4096)
def _vanishes(exact: sympy.Expr) -> bool:
    """Is this expression 0 for certain?"""
    if exact.is_Rational:
        return bool(exact == 0)
    if not exact.free_symbols:
        ball = _program(exact, ()).on((), ZERO_BITS)
        if ball > 0 or ball < 0:
            return False
    try:
        return bool(sympy.expand(exact) == 0 or deadline.run(deadline.simplified, exact, seconds=0.5) == 0)
    except Exception:  # what SymPy cannot simplify is not known to vanish
        return False
