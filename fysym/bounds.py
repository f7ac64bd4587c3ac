"""Exact bounds of expressions by monotone rules on their parts: t runs over (0, 1), other symbols over (0, oo)."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import sympy
from sympy import S

from . import truth

MAX_DEGREE = 240


@dataclass(frozen=True)
class Bounds:
    """Exact ends between which an expression stays, and whether each end is left out."""

    low: sympy.Expr
    high: sympy.Expr
    low_open: bool = False
    high_open: bool = False

    @property
    def sign(self) -> tuple[int, bool]:
        """The sign that all values have, 0 where that is not known, and whether none of them is 0."""
        for sign, end, end_open in ((1, self.low, self.low_open), (-1, self.high, self.high_open)):
            side = 0 if end == 0 else (truth.sign(end) if end.is_finite else None)
            if side == 0 or side == sign:
                return sign, side == sign or end_open
        return 0, False


UNBOUNDED = Bounds(-S.Infinity, S.Infinity, True, True)


def _lower_lambert(x: sympy.Expr) -> sympy.Expr:
    """The branch of Lambert's W below -1."""
    return sympy.LambertW(x, -1)


# Monotone functions: +1 or -1, the range of arguments where that holds, and the values at its ends.
_MONOTONE: dict[Any, tuple[int, sympy.Expr, sympy.Expr, sympy.Expr, sympy.Expr]] = {
    sympy.exp: (1, -S.Infinity, S.Infinity, S.Zero, S.Infinity),
    sympy.log: (1, S.Zero, S.Infinity, -S.Infinity, S.Infinity),
    sympy.atan: (1, -S.Infinity, S.Infinity, -S.Pi / 2, S.Pi / 2),
    sympy.tanh: (1, -S.Infinity, S.Infinity, -S.One, S.One),
    sympy.sinh: (1, -S.Infinity, S.Infinity, -S.Infinity, S.Infinity),
    sympy.asinh: (1, -S.Infinity, S.Infinity, -S.Infinity, S.Infinity),
    sympy.cosh: (1, S.Zero, S.Infinity, S.One, S.Infinity),
    sympy.erf: (1, -S.Infinity, S.Infinity, -S.One, S.One),
    sympy.erfc: (-1, -S.Infinity, S.Infinity, S(2), S.Zero),
    sympy.erfinv: (1, -S.One, S.One, -S.Infinity, S.Infinity),
    sympy.erfcinv: (-1, S.Zero, S(2), S.Infinity, -S.Infinity),
    sympy.asin: (1, -S.One, S.One, -S.Pi / 2, S.Pi / 2),
    sympy.acos: (-1, -S.One, S.One, S.Pi, S.Zero),
    sympy.atanh: (1, -S.One, S.One, -S.Infinity, S.Infinity),
    sympy.acosh: (1, S.One, S.Infinity, S.Zero, S.Infinity),
    sympy.tan: (1, -S.Pi / 2, S.Pi / 2, -S.Infinity, S.Infinity),
    sympy.LambertW: (1, -sympy.exp(-1), S.Infinity, -S.One, S.Infinity),
    _lower_lambert: (-1, -sympy.exp(-1), S.Zero, -S.One, -S.Infinity),
}


def bounds_of(f: sympy.Expr, t: sympy.Symbol) -> Bounds:
    """Exact bounds of f for 0 < t < 1, by monotone rules on its parts."""
    if f == t:
        return Bounds(S.Zero, S.One, True, True)
    if not f.free_symbols:
        return Bounds(f, f)
    if f.is_Symbol:
        return Bounds(S.Zero, S.Infinity, True, True) if f.is_positive else UNBOUNDED
    if f.is_Add:
        parts = [bounds_of(term, t) for term in f.args]
        low, high = sum(p.low for p in parts), sum(p.high for p in parts)
        if low is S.NaN or high is S.NaN:
            return UNBOUNDED
        return Bounds(low, high, any(p.low_open for p in parts), any(p.high_open for p in parts))
    if f.is_Mul:
        return functools.reduce(_times, _bounds_of_factors(f, t))
    if f.is_Pow:
        base = bounds_of(f.base, t)
        if f.exp.is_number and f.exp.is_real:
            return _powered(base, f.exp)
        if base.low.is_positive or (base.low == 0 and base.low_open):
            return _monotone(sympy.exp, _times(_monotone(sympy.log, base), bounds_of(f.exp, t)))
        return UNBOUNDED
    if isinstance(f, sympy.LambertW) and f.args[1:] == (S.NegativeOne,):
        return _monotone(_lower_lambert, bounds_of(f.args[0], t))
    if len(f.args) != 1:
        return UNBOUNDED
    inner = bounds_of(f.args[0], t)
    if f.func in _MONOTONE:
        return _monotone(f.func, inner)
    if isinstance(f, sympy.sin):
        return _sine(inner)
    if isinstance(f, sympy.cos):
        quarter = S.Pi / 2
        return _sine(Bounds(inner.low + quarter, inner.high + quarter, inner.low_open, inner.high_open))
    return UNBOUNDED


def _bounds_of_factors(f: sympy.Mul, t: sympy.Symbol) -> Iterator[Bounds]:
    """Factors that are a monotone fraction of one symbol together, as b/(1 + b), the others each for itself."""
    rest = list(f.args)
    for symbol in sorted(f.free_symbols, key=str) if len(rest) > 2 or len(f.free_symbols) == 1 else ():
        group = [x for x in rest if x.free_symbols == {symbol} and x.is_rational_function(symbol)]
        bounds = _monotone_fraction(group, symbol, S.One if symbol == t else None) if len(group) > 1 else None
        if bounds is not None:
            rest = [factor for factor in rest if factor not in group]
            yield bounds
    yield from (bounds_of(factor, t) for factor in rest)


def _monotone_fraction(factors: list[sympy.Expr], x: sympy.Symbol, last: sympy.Expr | None) -> Bounds | None:
    """The range for 0 < x < last of a fraction without poles and extremes there; None where it is not such."""
    if last is None and not x.is_positive:
        return None
    parts = [sympy.Poly(part, x) for part in sympy.fraction(sympy.cancel(sympy.Mul(*factors)))]
    if not all(part.domain.is_QQ or part.domain.is_ZZ for part in parts) or sum(p.degree() for p in parts) > MAX_DEGREE:
        return None
    n, d = parts
    for part in (d, n.diff() * d - n * d.diff()):
        ends = [end for end in (0, last) if end is not None and part.eval(end) == 0]
        if part.is_zero or part.count_roots(0, last) > len(ends):
            return None
    low, high = (
        sympy.limit(n.as_expr() / d.as_expr(), x, end, side) for end, side in ((0, "+"), (last or S.Infinity, "-"))
    )
    return Bounds(low, high, True, True) if _at_least(high, low) else Bounds(high, low, True, True)


def _at_least(a: sympy.Expr, b: sympy.Expr) -> bool:
    """a >= b for exact numbers or infinities; False when it cannot be told."""
    if a == b or a == S.Infinity or b == -S.Infinity:
        return True
    if a == -S.Infinity or b == S.Infinity:
        return False
    sign = truth.sign(a - b)
    return sign is not None and sign >= 0


def _monotone(function: Any, inner: Bounds) -> Bounds:
    direction, first, last, at_first, at_last = _MONOTONE[function]
    if not (_at_least(inner.low, first) and _at_least(last, inner.high)):
        return UNBOUNDED
    low, high = (
        at_first if end == first else at_last if end == last else function(end) for end in (inner.low, inner.high)
    )
    low_open, high_open = inner.low_open or low.is_infinite, inner.high_open or high.is_infinite
    return Bounds(low, high, low_open, high_open) if direction > 0 else Bounds(high, low, high_open, low_open)


def _times(a: Bounds, b: Bounds) -> Bounds:
    """The product of two ranges; only those that do not straddle 0, a number times a range included."""
    sign = 1
    sides = []
    for r in (a, b):
        if _at_least(r.low, S.Zero):
            sides.append(r)
        elif _at_least(S.Zero, r.high):
            sign = -sign
            sides.append(Bounds(-r.high, -r.low, r.high_open, r.low_open))
        else:
            return _straddling(a, b)
    p, q = sides
    low, high = p.low * q.low, p.high * q.high
    if low is S.NaN or high is S.NaN:
        return Bounds(S.Zero, S.Infinity, False, True) if sign > 0 else Bounds(-S.Infinity, S.Zero, True, False)
    low_open = (p.low_open or q.low_open) if low != 0 else not _attains_zero(p, q)
    high_open = p.high_open or q.high_open
    return Bounds(low, high, low_open, high_open) if sign > 0 else Bounds(-high, -low, high_open, low_open)


def _attains_zero(p: Bounds, q: Bounds) -> bool:
    return any(r.low == 0 and not r.low_open for r in (p, q))


def _straddling(a: Bounds, b: Bounds) -> Bounds:
    """A range times a finite range that contains 0: the largest product of ends, closed to be safe."""
    corners = [x * y for x in (a.low, a.high) for y in (b.low, b.high)]
    if any(c is S.NaN or c.is_infinite for c in corners):
        return UNBOUNDED
    low, high = corners[0], corners[0]
    for corner in corners[1:]:
        low = corner if _at_least(low, corner) else low
        high = corner if _at_least(corner, high) else high
    return Bounds(low, high)


def _powered(base: Bounds, exponent: sympy.Expr) -> Bounds:
    if not _at_least(base.low, S.Zero):
        if not (exponent.is_Integer and exponent > 0):
            return UNBOUNDED
        if exponent % 2 == 1:
            return Bounds(base.low**exponent, base.high**exponent, base.low_open, base.high_open)
        size = base.high if _at_least(base.high, -base.low) else -base.low
        return Bounds(S.Zero, size**exponent)
    ends = [
        S.Infinity if end == 0 and exponent < 0 else (S.Zero if end.is_infinite and exponent < 0 else end**exponent)
        for end in (base.low, base.high)
    ]
    if exponent > 0:
        return Bounds(ends[0], ends[1], base.low_open, base.high_open)
    return Bounds(ends[1], ends[0], base.high_open, base.low_open or ends[0].is_infinite)


def _sine(inner: Bounds) -> Bounds:
    """sin on an arch [k pi, (k+1) pi] or on a rise or fall between two extremes; else [-1, 1]."""
    anything = Bounds(-S.One, S.One)
    if inner.low.is_infinite or inner.high.is_infinite:
        return anything
    k = sympy.floor(inner.low / S.Pi)
    if k.is_Integer and _at_least((k + 1) * S.Pi, inner.high):
        ends = [(sympy.sin(inner.low), inner.low_open), (sympy.sin(inner.high), inner.high_open)]
        sign = 1 if k % 2 == 0 else -1
        (a, a_open), (b, b_open) = ((sign * value, is_open) for value, is_open in ends)
        low, low_open = (b, b_open) if _at_least(a, b) else (a, a_open)
        if a == b:
            low_open = a_open and b_open
        return Bounds(low, S.One, low_open) if sign > 0 else Bounds(-S.One, -low, False, low_open)
    k = sympy.floor(inner.low / S.Pi + S.Half)
    if k.is_Integer and _at_least((k + S.Half) * S.Pi, inner.high):
        low, high = sympy.sin(inner.low), sympy.sin(inner.high)
        if k % 2 == 0:
            return Bounds(low, high, inner.low_open, inner.high_open)
        return Bounds(high, low, inner.high_open, inner.low_open)
    return anything
