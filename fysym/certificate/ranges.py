"""Ranges of expressions by rules on their parts: t runs over (0, 1), every other symbol over (0, oo)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import sympy
from sympy import S

from ..certify_precision import precision
from ..errors import UndecidedError
from .balls import Undefined, ball, whole_power

BITS = 256
Environment = dict[sympy.Symbol, tuple[sympy.Expr, sympy.Expr]]  # open intervals


def environment(expr: sympy.Expr) -> Environment:
    return {s: (S.Zero, S.One if s.name == "t" else S.Infinity) for s in expr.free_symbols}


def _constant(expr: sympy.Expr) -> Any:
    try:
        return ball(expr, {})
    except Undefined:
        raise UndecidedError(f"the value of {str(expr)[:60]} could not be re-checked") from None


@dataclass(frozen=True)
class Span:
    """Balls around the ends of a range, and whether each end is left out."""

    low: Any
    high: Any
    low_open: bool = False
    high_open: bool = False

    def mirrored(self) -> Span:
        return Span(-self.high, -self.low, self.high_open, self.low_open)


def holds(span: Span, sign: int, strict: bool) -> bool:
    span = span if sign > 0 else span.mirrored()
    return bool(span.low > 0 or (span.low == 0 and (span.low_open or not strict)))


def span_of(expr: sympy.Expr, where: Environment) -> Span:
    """The range of a real expression; UndecidedError where it may be undefined or no rule is known."""
    with precision(BITS) as flint:
        return _range(expr, where, flint.arb)


def _range(expr: sympy.Expr, where: Environment, arb: Any) -> Span:
    unknown = UndecidedError(f"the range of {str(expr)[:60]} could not be re-checked")
    infinity = arb.pos_inf()
    if expr in where:
        low, high = where[expr]
        return Span(
            _constant(low).lower() if low.is_finite else -infinity,
            _constant(high).upper() if high.is_finite else infinity,
            True,
            True,
        )
    if not expr.free_symbols:
        value = _constant(expr)
        return Span(value, value)
    if expr.is_Mul and (joined := _joined(expr)) is not None:
        symbol, fraction, exponent, rest = joined
        span = _times(_raised(_fraction(fraction, symbol, arb), exponent, infinity), _range(rest, where, arb), infinity)
        return Span(
            span.low, span.high, span.low_open or span.low == -infinity, span.high_open or span.high == infinity
        )
    parts = [_range(arg, where, arb) for arg in expr.args]
    if expr.is_Add:
        low, high = sum((p.low for p in parts), arb(0)), sum((p.high for p in parts), arb(0))
        span = Span(low, high, any(p.low_open for p in parts), any(p.high_open for p in parts))
    elif expr.is_Mul:
        span = parts[0]
        for part in parts[1:]:
            span = _times(span, part, infinity)
    elif expr.is_Pow and expr.exp.is_number:
        span = _raised(parts[0], expr.exp, infinity)
    elif expr.is_Pow and expr.base.is_number and parts[0].low > 0:
        span = _exponential(parts[0].low, parts[1], infinity)
    elif expr.is_Pow and (parts[0].low > 0 or (parts[0].low == 0 and parts[0].low_open)):
        span = _risen("exp", _times(_risen("log", parts[0], arb), parts[1], infinity), arb)
    elif isinstance(expr, (sympy.sin, sympy.cos)):
        half = S.Half if isinstance(expr, sympy.cos) else S.Zero
        span = _sine(_range(_turns(expr) + half, where, arb), arb)
    elif isinstance(expr, sympy.tan):
        span = _tangent(_range(_turns(expr), where, arb), arb)
    elif isinstance(expr, sympy.cosh):
        span = Span(arb(1), infinity, False, True)
    elif isinstance(expr, sympy.LambertW) and len(expr.args) == 1:
        span = _main_branch(_range(expr.args[0] * sympy.E, where, arb), arb)
    elif isinstance(expr, (sympy.gamma, sympy.loggamma, sympy.polygamma)):
        span = _gamma_family(expr, parts[-1], arb)
    elif type(expr).__name__ in _RISING and len(expr.args) == 1:
        span = _risen(type(expr).__name__, parts[0], arb)
    else:
        raise unknown
    if span.low.is_nan() or span.high.is_nan():
        raise unknown
    return Span(span.low, span.high, span.low_open or span.low == -infinity, span.high_open or span.high == infinity)


def _exponential(base: Any, exponent: Span, infinity: Any) -> Span:
    """A power of a positive number, exact where base and exponent are."""
    if not base > 1:
        if not base < 1:
            raise UndecidedError("the base of a power may be 1")
        return _exponential(1 / base, exponent.mirrored(), infinity)
    low, high = (
        base**end if end.is_finite() else (infinity if end > 0 else base * 0) for end in (exponent.low, exponent.high)
    )
    return Span(low, high, exponent.low_open, exponent.high_open)


# Increasing functions: where they are defined, and their limits there.
_RISING: dict[str, tuple[str, str, str, str]] = {
    "exp": ("-inf", "inf", "0", "inf"),
    "log": ("0", "inf", "-inf", "inf"),
    "atan": ("-inf", "inf", "-2", "2"),
    "tanh": ("-inf", "inf", "-1", "1"),
    "sinh": ("-inf", "inf", "-inf", "inf"),
    "asinh": ("-inf", "inf", "-inf", "inf"),
    "erf": ("-inf", "inf", "-1", "1"),
    "erfinv": ("-1", "1", "-inf", "inf"),
    "atanh": ("-1", "1", "-inf", "inf"),
    "asin": ("-1", "1", "-2", "2"),
}


def _risen(name: str, inner: Span, arb: Any) -> Span:
    first, last, at_first, at_last = (arb(text) for text in _RISING[name])
    if not (inner.low >= first and inner.high <= last):
        raise UndecidedError(f"the argument of {name} may leave its domain")
    method = getattr(arb, name)
    low = at_first if inner.low == first else method(inner.low)
    high = at_last if inner.high == last else method(inner.high)
    defined = not ((inner.low == first and not inner.low_open) or (inner.high == last and not inner.high_open))
    if not defined and name != "asin":
        raise UndecidedError(f"the argument of {name} may reach the end of its domain")
    return Span(low, high, inner.low_open, inner.high_open)


def _main_branch(inner: Span, arb: Any) -> Span:
    """W of 1/e times something, which is -1 at -1 and rises from there."""
    if not inner.low >= -1:
        raise UndecidedError("the argument of LambertW may leave its domain")
    e = arb.const_e()
    low = arb(-1) if inner.low == -1 else (inner.low / e).lambertw()
    high = (inner.high / e).lambertw() if inner.high.is_finite() else inner.high
    return Span(low, high, inner.low_open, inner.high_open)


def _gamma_family(expr: sympy.Expr, argument: Span, arb: Any) -> Span:
    """The range for positive arguments, of which no more is known than the sign."""
    order = expr.args[0] if isinstance(expr, sympy.polygamma) else S.Zero
    if not (holds(argument, 1, True) and order.is_Integer and order >= 0):
        raise UndecidedError(f"the argument of {type(expr).__name__} may leave its domain")
    low, high = -arb.pos_inf(), arb.pos_inf()
    if isinstance(expr, sympy.gamma) or order % 2 == 1:
        low = arb(0)
    elif order > 0:
        high = arb(0)
    return Span(low, high, True, True)


def _turns(expr: sympy.Expr) -> sympy.Expr:
    """The argument of a sine, in half turns."""
    return sympy.Add(*(term / S.Pi for term in sympy.Add.make_args(expr.args[0])))


def _sine(turns: Span, arb: Any) -> Span:
    """sin(pi x) where x stays between two neighbouring whole numbers, of which 0 is one; else all of [-1, 1]."""
    if turns.low >= -1 and turns.high <= 0:
        return _sine(turns.mirrored(), arb).mirrored()
    if not (turns.low >= 0 and turns.high <= 1):
        return Span(arb(-1), arb(1))
    ends = [(turns.low.sin_pi(), turns.low_open), (turns.high.sin_pi(), turns.high_open)]
    if any(value == 0 and not is_open for value, is_open in ends):
        return Span(arb(0), arb(1))
    return Span(ends[0][0].min(ends[1][0]), arb(1), all(is_open for _, is_open in ends))


def _tangent(turns: Span, arb: Any) -> Span:
    """tan(pi x), which rises from -oo at x = -1/2 to oo at 1/2."""
    half = arb(1) / 2
    if not (turns.low >= -half and turns.high <= half):
        raise UndecidedError("the argument of tan may pass a pole")
    if (turns.low == -half and not turns.low_open) or (turns.high == half and not turns.high_open):
        raise UndecidedError("the argument of tan may reach a pole")
    low = arb.neg_inf() if turns.low == -half else (arb.pi() * turns.low).tan()
    high = arb.pos_inf() if turns.high == half else (arb.pi() * turns.high).tan()
    return Span(low, high, turns.low_open, turns.high_open)


def _joined(expr: sympy.Mul) -> tuple[sympy.Symbol, sympy.Expr, sympy.Expr, sympy.Expr] | None:
    """The symbol, a fraction of linear functions of it, its power, and the rest, where factors are such a power."""
    for symbol in sorted(expr.free_symbols, key=str):
        factors = [factor.as_base_exp() for factor in expr.args if factor.free_symbols == {symbol}]
        if len(factors) != 2 or symbol.name == "t":
            continue
        (a, e), (b, minus_e) = factors
        linear = all(base.is_polynomial(symbol) and sympy.degree(base, symbol) == 1 for base in (a, b))
        if linear and e.is_number and e + minus_e == 0:
            return symbol, a / b if e > 0 else b / a, abs(e), expr / (a**e * b**minus_e)
    return None


def _fraction(fraction: sympy.Expr, symbol: sympy.Symbol, arb: Any) -> Span:
    """The range for a positive symbol of a fraction of linear functions, which rises or falls throughout."""
    top, bottom = (sympy.Poly(part, symbol) for part in sympy.fraction(fraction))
    (p, q), (r, s) = top.all_coeffs(), bottom.all_coeffs()
    if not (_constant(r) > 0 and _constant(s) > 0):
        raise UndecidedError(f"the denominator of {str(fraction)[:60]} may vanish")
    at_zero, far = _constant(q / s), _constant(p / r)
    if not (at_zero < far or at_zero > far):
        raise UndecidedError(f"{str(fraction)[:60]} may be constant")
    return Span(at_zero.min(far), at_zero.max(far), True, True)


def _times(a: Span, b: Span, infinity: Any) -> Span:
    """The product of two ranges."""
    if a.low >= 0 and b.low >= 0:
        low, high = a.low * b.low, a.high * b.high
        zero = any(r.low == 0 and not r.low_open for r in (a, b))
        low_open = not zero if low == 0 else a.low_open or b.low_open
        return Span(low, infinity if high.is_nan() else high, low_open, a.high_open or b.high_open)
    if a.high <= 0:
        return _times(a.mirrored(), b, infinity).mirrored()
    if b.high <= 0:
        return _times(a, b.mirrored(), infinity).mirrored()
    corners = [x * y for x in (a.low, a.high) for y in (b.low, b.high)]
    if not all(corner.is_finite() for corner in corners):
        return Span(-infinity, infinity, True, True)
    return Span(min(c.lower() for c in corners), max(c.upper() for c in corners))


def _raised(base: Span, exponent: sympy.Expr, infinity: Any) -> Span:
    """A power with a number as exponent."""
    power = _constant(exponent)
    positive = base.low > 0 or (base.low == 0 and base.low_open)
    if exponent.is_Integer and exponent > 0 and not base.low >= 0:
        low, high = (whole_power(e, int(exponent)) if e.is_finite() else e for e in (base.low, base.high))
        if exponent % 2 == 1:
            return Span(low, high, base.low_open, base.high_open)
        if base.high <= 0:
            return _raised(base.mirrored(), exponent, infinity)
        return Span(power * 0, low.max(high))
    if exponent.is_Integer and base.high <= 0 and exponent < 0:
        span = _raised(base.mirrored(), exponent, infinity)
        return span if exponent % 2 == 0 else span.mirrored()
    if not (positive or (base.low == 0 and power > 0)):
        raise UndecidedError("the base of a power may be negative or zero")
    zero = power * 0
    low, high = (
        e * 0 if e == 0 else (infinity if not e.is_finite() else e ** abs(power)) for e in (base.low, base.high)
    )
    if power > 0:
        return Span(low, high, base.low_open, base.high_open)
    low, high = (infinity if e == 0 else zero if not e.is_finite() else 1 / e for e in (low, high))
    return Span(high, low, base.high_open, base.low_open)
