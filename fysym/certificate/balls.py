"""The verifier's own ball arithmetic: an expression on a box, node by node, and its sign there by bisection."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import sympy
from sympy import S

from ..certify_precision import precision

Interval = tuple[Fraction, Fraction]
Box = tuple[Interval, ...]


class Undefined(Exception):
    """An expression has no ball here: it may be undefined, or a function is not known."""


def number(value: Any) -> Any:
    """An exact fraction as a ball."""
    import flint

    return flint.arb(flint.fmpq(int(value.numerator), int(value.denominator)))


def interval(low: Any, high: Any) -> Any:
    return number(low).union(number(high))


def ball(expr: sympy.Expr, values: Mapping[sympy.Symbol, Any]) -> Any:
    """A ball that contains each value of the expression for symbols in these balls; never one that is not finite."""
    known = dict(values)
    try:
        return _walk(expr, known)
    except (ValueError, ZeroDivisionError, OverflowError, NotImplementedError, TypeError) as error:
        raise Undefined(str(expr)[:60]) from error


def _walk(expr: sympy.Expr, known: dict[sympy.Expr, Any]) -> Any:
    if expr not in known:
        value = _node(expr, known)
        if not value.is_finite():
            raise Undefined(str(expr)[:60])
        known[expr] = value
    return known[expr]


def _node(expr: sympy.Expr, known: dict[sympy.Expr, Any]) -> Any:
    import flint

    if expr.is_Rational:
        return number(expr)
    if expr in CONSTANTS:
        return getattr(flint.arb, CONSTANTS[expr])()
    if expr.is_Pow:
        return _power(_walk(expr.base, known), expr.exp, lambda: _walk(expr.exp, known))
    if isinstance(expr, sympy.polygamma):
        return _polygamma(expr.args[0], _walk(expr.args[1], known))
    if isinstance(expr, sympy.LambertW):
        branch = expr.args[1] if len(expr.args) > 1 else S.Zero
        if branch not in (0, -1):
            raise Undefined(str(expr)[:60])
        return _walk(expr.args[0], known).lambertw(int(branch))
    args = [_walk(arg, known) for arg in expr.args]
    if expr.is_Add:
        return sum(args[1:], args[0])
    if expr.is_Mul:
        return math.prod(args[1:], start=args[0])
    if isinstance(expr, (sympy.gamma, sympy.loggamma)):
        if not args[0] > 0:
            raise Undefined(str(expr)[:60])
        return args[0].gamma() if isinstance(expr, sympy.gamma) else args[0].lgamma()
    if type(expr) not in FUNCTIONS:
        raise Undefined(str(expr)[:60])
    return getattr(args[0], type(expr).__name__)()


CONSTANTS = {S.Pi: "pi", S.Exp1: "const_e", S.EulerGamma: "const_euler", S.Catalan: "const_catalan"}
FUNCTIONS = (
    sympy.exp, sympy.log, sympy.sin, sympy.cos, sympy.tan, sympy.cot, sympy.sec, sympy.csc, sympy.asin, sympy.acos,
    sympy.atan, sympy.sinh, sympy.cosh, sympy.tanh, sympy.asinh, sympy.acosh, sympy.atanh, sympy.erf, sympy.erfc,
    sympy.erfinv, sympy.erfcinv,
)  # fmt: skip


def _power(base: Any, exponent: sympy.Expr, ball_of: Callable[[], Any]) -> Any:
    if exponent.is_Integer:
        return whole_power(base, int(exponent))
    if exponent.is_Rational and exponent > 0 and base.lower() >= 0:
        low, high = (
            end * 0 if end == 0 else (end.log() * number(exponent)).exp() for end in (base.lower(), base.upper())
        )
        return low.union(high)
    if not base > 0:
        raise Undefined("a power of a base that may not be positive")
    return (base.log() * ball_of()).exp()


def whole_power(base: Any, n: int) -> Any:
    """base^n from the ends of the ball."""
    if n < 0:
        if not (base > 0 or base < 0):
            raise Undefined("a division by a ball around 0")
        return 1 / whole_power(base, -n)
    ends = (base.abs_lower(), base.abs_upper()) if n % 2 == 0 else (base.lower(), base.upper())
    return _repeated(ends[0], n).union(_repeated(ends[1], n))


def _repeated(x: Any, n: int) -> Any:
    if n == 0:
        return x * 0 + 1
    half = _repeated(x, n // 2)
    return half * half * x if n % 2 else half * half


def _polygamma(order: sympy.Expr, x: Any) -> Any:
    """Monotone for x > 0: (-1)^(n+1) n! zeta(n+1, x)."""
    import flint

    if not (order.is_Integer and 0 <= order <= 30 and x > 0):
        raise Undefined("polygamma")
    n = int(order)
    sign = (-1) ** (n + 1) * math.factorial(n)
    ends = [end.digamma() if n == 0 else sign * flint.arb(n + 1).zeta(end) for end in (x.lower(), x.upper())]
    return ends[0].union(ends[1])


class Function:
    """sign * f - bound with its derivatives, on boxes in (t, *parameters)."""

    def __init__(self, f: sympy.Expr, symbols: Sequence[sympy.Symbol]) -> None:
        self.f, self.symbols = f, tuple(symbols)
        self.slopes = [sympy.diff(f, x) for x in symbols]

    def is_positive(self, box: Box, bits: int, pieces: int) -> bool:
        """f > 0 on the closed box, directly or by the mean value form, on the box or on halves of it."""
        waiting = [box]
        with precision(bits):
            while waiting:
                part = waiting.pop()
                weights = self._settle(part)
                if weights is None:
                    continue
                pieces -= 1
                if pieces <= 0:
                    return False
                waiting += halves(part, weights)
        return True

    def _settle(self, box: Box) -> list[float] | None:
        """None when f > 0 on the box, else how much each variable matters."""
        widths = [float(high - low) for low, high in box]
        try:
            sides = {s: interval(*span) for s, span in zip(self.symbols, box, strict=True)}
            if ball(self.f, sides) > 0:
                return None
            middle = {s: number((low + high) / 2) for s, (low, high) in zip(self.symbols, box, strict=True)}
            steps = [ball(d, sides) * (sides[s] - middle[s]) for d, s in zip(self.slopes, self.symbols, strict=True)]
            if ball(self.f, middle) + sum(steps) > 0:
                return None
            return [float(step.abs_upper()) if w > 0 else 0.0 for step, w in zip(steps, widths, strict=True)]
        except Undefined:
            return widths

    def is_defined(self, box: Box, bits: int, pieces: int) -> bool:
        """Does f have a ball on each part of the box?"""
        waiting = [box]
        with precision(bits):
            while waiting:
                part = waiting.pop()
                try:
                    ball(self.f, {s: interval(*span) for s, span in zip(self.symbols, part, strict=True)})
                except Undefined:
                    pieces -= 1
                    if pieces <= 0:
                        return False
                    waiting += halves(part, [float(high - low) for low, high in part])
        return True


def halves(box: Box, weights: Sequence[float]) -> list[Box]:
    """The box cut across the variable that matters most; t by ratios next to an end."""
    k = max(range(len(box)), key=lambda i: (box[i][1] > box[i][0], weights[i]))
    low, high = box[k]
    cut = (low + high) / 2
    if k == 0 and 0 < 16 * low < high:
        cut = 4 * low
    elif k == 0 and 0 < 16 * (1 - high) < 1 - low:
        cut = 1 - 4 * (1 - high)
    return [(*box[:k], side, *box[k + 1 :]) for side in ((low, cut), (cut, high))]
