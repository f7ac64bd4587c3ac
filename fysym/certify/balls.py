"""Balls of FLINT: an enclosure of every value that an expression takes on a box.

A ball that is not finite anywhere on the way proves nothing: it becomes nan, with which no comparison holds.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import sympy
from sympy import S

from ..certify_precision import precision

Interval = tuple[Fraction, Fraction]
Box = tuple[Interval, ...]


class NotEvaluable(Exception):
    """The expression contains something that has no ball extension here."""


class Unsettled(Exception):
    """The time, the boxes or the precision allowed do not settle the question."""


def enclose(low: Any, high: Any | None = None) -> Any:
    """The exact number `low`, or a ball that contains [low, high]."""
    import flint

    left = flint.arb(flint.fmpq(int(low.numerator), int(low.denominator)))
    return left if high is None or high == low else left.union(enclose(high))


def nan() -> Any:
    import flint

    return flint.arb.nan()


def integer_power(x: Any, n: int) -> Any:
    """x^n from its values at the ends of the ball: arb's own power is nan on balls around 0."""
    if n < 0:
        return 1 / integer_power(x, -n)
    if n == 0:
        return x * 0 + 1
    if n % 2 == 0:
        low, high = x.abs_lower(), x.abs_upper()
    else:
        low, high = x.lower(), x.upper()
    return (low * 0 if low == 0 else low**n).union(high * 0 if high == 0 else high**n)


def real_power(x: Any, y: Any) -> Any:
    return x**y if x > 0 else nan()


def _rational_power(p: int, q: int) -> Callable[[Any], Any]:
    def power(x: Any) -> Any:
        if not x.lower() >= 0:
            return nan()
        root = x.sqrt() if q == 2 else x.root(q)
        return integer_power(root, p)

    return power


def _where(condition: Callable[[Any], bool], function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda x: function(x) if condition(x) else nan()


def _polygamma(n: int) -> Callable[[Any], Any]:
    """Monotone for x > 0; psi_n(x) = (-1)^(n+1) n! zeta(n+1, x)."""
    import flint

    def at(x: Any) -> Any:
        return x.digamma() if n == 0 else (-1) ** (n + 1) * math.factorial(n) * flint.arb(n + 1).zeta(x)

    return _where(lambda x: x > 0, lambda x: at(x.lower()).union(at(x.upper())))


_METHODS = {
    function: function.__name__
    for function in (
        sympy.exp, sympy.log, sympy.sin, sympy.cos, sympy.tan, sympy.cot, sympy.sec, sympy.csc, sympy.asin, sympy.acos,
        sympy.atan, sympy.sinh, sympy.cosh, sympy.tanh, sympy.coth, sympy.sech, sympy.csch, sympy.asinh, sympy.acosh,
        sympy.atanh, sympy.erf, sympy.erfc, sympy.erfinv, sympy.erfcinv, sympy.gamma,
    )
}  # fmt: skip
_CONSTANTS = {S.Pi: "pi", S.Exp1: "const_e", S.EulerGamma: "const_euler", S.Catalan: "const_catalan"}


def _operation(expr: sympy.Expr) -> tuple[Callable[..., Any], Sequence[sympy.Expr]]:
    """The ball extension of the outermost node, and the parts it takes."""
    import flint

    arb = flint.arb
    if expr.is_Rational:
        return lambda: enclose(expr), ()
    if expr in _CONSTANTS:
        return getattr(arb, _CONSTANTS[expr]), ()
    if expr.is_Add:
        return lambda *parts: sum(parts[1:], parts[0]), expr.args
    if expr.is_Mul:
        return lambda *parts: math.prod(parts[1:], start=parts[0]), expr.args
    if expr.is_Pow:
        base, exponent = expr.args
        if exponent.is_Integer:
            return lambda x: integer_power(x, int(exponent)), (base,)
        if exponent.is_Rational and exponent.q <= 64:
            return _rational_power(int(exponent.p), int(exponent.q)), (base,)
        return real_power, (base, exponent)
    if expr.func in _METHODS:
        return getattr(arb, _METHODS[expr.func]), expr.args
    if isinstance(expr, sympy.loggamma):
        return _where(lambda x: x > 0, arb.lgamma), expr.args
    if isinstance(expr, sympy.LambertW) and expr.args[1:] in ((), (S.Zero,), (S.NegativeOne,)):
        branch = int(expr.args[1]) if len(expr.args) > 1 else 0
        return lambda x: x.lambertw(branch), expr.args[:1]
    if isinstance(expr, sympy.polygamma) and expr.args[0].is_Integer and expr.args[0] >= 0:
        return _polygamma(int(expr.args[0])), expr.args[1:]
    if isinstance(expr, sympy.Abs):
        return abs, expr.args
    if isinstance(expr, sympy.sign):
        return _where(lambda x: x > 0 or x < 0, arb.sgn), expr.args
    raise NotEvaluable(str(expr)[:80])


class Program:
    """A ball extension of an expression: a ball that contains every value on a box, or nan."""

    def __init__(self, expr: sympy.Expr, symbols: Sequence[sympy.Symbol]) -> None:
        self.places: dict[sympy.Expr, int] = {symbol: k for k, symbol in enumerate(symbols)}
        self.steps: list[tuple[Callable[..., Any], tuple[int, ...]]] = []
        self.inputs = len(symbols)
        self.result = self._place(expr)

    def _place(self, expr: sympy.Expr) -> int:
        if expr not in self.places:
            function, parts = _operation(expr)
            arguments = tuple(self._place(part) for part in parts)
            self.steps.append((function, arguments))
            self.places[expr] = self.inputs + len(self.steps) - 1
        return self.places[expr]

    def __call__(self, values: Sequence[Any]) -> Any:
        """The ball at these balls, at the precision in force."""
        found = list(values)
        try:
            for function, arguments in self.steps:
                value = function(*[found[k] for k in arguments])
                if not value.is_finite():
                    return nan()
                found.append(value)
        except (ValueError, ZeroDivisionError, OverflowError):
            return nan()
        return found[self.result]

    def on(self, box: Box, bits: int) -> Any:
        with precision(bits):
            return self([enclose(low, high) for low, high in box])


class Field:
    """f with its gradient: what is needed to settle its sign on a box."""

    def __init__(self, f: sympy.Expr, symbols: tuple[sympy.Symbol, ...], sign: int) -> None:
        self.f, self.symbols, self.sign = f, symbols, sign
        self.program = Program(sign * f, symbols)

    @functools.cached_property
    def slopes(self) -> tuple[Program, ...]:
        try:
            return tuple(Program(self.sign * sympy.diff(self.f, x), self.symbols) for x in self.symbols)
        except NotEvaluable:
            return ()

    def settle(self, box: Box, bits: int) -> tuple[bool, list[float]]:
        """Whether sign * f > 0 on the box, directly or by the mean value form, and how much each variable matters.

        The mean value form needs f to be smooth on the box, so it is asked only where f itself is finite:
        in log(t) - log(2 t) the derivative has no trace of the singularity.
        """
        with precision(bits):
            sides = [enclose(low, high) for low, high in box]
            value = self.program(sides)
            if value > 0:
                return True, []
            slopes = [slope(sides) for slope in self.slopes]
            middle = [enclose((low + high) / 2) for low, high in box]
            steps = [slope * (x - m) for slope, x, m in zip(slopes, sides, middle, strict=False)]
            if not slopes or not value.is_finite() or not all(step.is_finite() for step in steps):
                return False, []
            weights = [float(step.abs_upper().log()) if step.abs_upper() > 0 else -math.inf for step in steps]
            return bool(self.program(middle) + sum(steps) > 0), weights


def halves(box: Box, domain: Box, weights: Sequence[float] = ()) -> list[Box]:
    """The box cut in two across the variable that matters most; t by ratios near an end."""
    if not weights:
        weights = [float((b - a) / (high - low)) if high > low else 0.0 for (a, b), (low, high) in zip(box, domain)]
    k = max((i for i, (a, b) in enumerate(box) if b > a), key=lambda i: weights[i])
    low, high = box[k]
    cut = (low + high) / 2
    if k == 0 and high > 8 * low > 0:
        cut = _between(low, high)
    elif k == 0 and 1 - low > 8 * (1 - high) > 0:
        cut = 1 - _between(1 - high, 1 - low)
    return [(*box[:k], side, *box[k + 1 :]) for side in ((low, cut), (cut, high))]


def _between(low: Fraction, high: Fraction) -> Fraction:
    """A power of 2 close to the geometric mean."""
    ratio = high / low
    bits = (ratio.numerator.bit_length() - ratio.denominator.bit_length()) // 2
    return low * 2 ** max(1, bits)
