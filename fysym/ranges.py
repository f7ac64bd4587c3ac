"""Parameter ranges such as "alpha > 1", and the exact numbers that floats stand for."""

from __future__ import annotations

import functools
import math
import numbers
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import sympy
from sympy import And, Expr, Float, Rational, S

from . import deadline
from .errors import ParameterError, ParseError
from .parse import MAX_BITS, MAX_SECONDS, constant_problem, names_in, parse_bounds, shown


@dataclass(frozen=True)
class Range:
    """The interval of values that a parameter may take; infinite ends are open."""

    low: Expr = S.NegativeInfinity
    high: Expr = S.Infinity
    low_open: bool = True
    high_open: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "low_open", self.low_open or bool(self.low.is_infinite))
        object.__setattr__(self, "high_open", self.high_open or bool(self.high.is_infinite))

    def __contains__(self, value: object) -> bool:
        try:
            number = exact_number(value)
        except ParameterError:
            return False
        above = _compare(number, self.low) >= self.low_open
        return above and _compare(self.high, number) >= self.high_open

    @property
    def is_empty(self) -> bool:
        order = _compare(self.low, self.high)
        return order > 0 or (order == 0 and (self.low_open or self.high_open))

    def intersect(self, other: Range) -> Range:
        """The values that lie in both ranges."""
        low, high = _compare(self.low, other.low), _compare(other.high, self.high)
        return Range(
            self.low if low >= 0 else other.low,
            self.high if high >= 0 else other.high,
            (low >= 0 and self.low_open) or (low <= 0 and other.low_open),
            (high >= 0 and self.high_open) or (high <= 0 and other.high_open),
        )

    def describe(self, name: str) -> str:
        """The range as a user would write it, and `parse_range` reads it: "alpha > 1", "0 < k <= 1"."""
        below, above = ("<" if is_open else "<=" for is_open in (self.low_open, self.high_open))
        if self.low.is_infinite and self.high.is_infinite:
            return f"-oo < {name} < oo"
        if self.high.is_infinite:
            return f"{name} {below.replace('<', '>')} {self.low}"
        if self.low.is_infinite:
            return f"{name} {above} {self.high}"
        return f"{self.low} {below} {name} {above} {self.high}"


def parse_range(name: str, given: Any) -> Range:
    """Read the range of the parameter `name`.

    `given` is text ("alpha > 1", "0 < k <= 1", "k > 0 and k < 1"), a pair (low, high) that stands for
    the open interval, with None for no bound, or SymPy comparisons (`alpha > 1`, `And` of several).
    """
    example = f"; write for example '{name} > 1' or '0 < {name} <= 1'"
    try:
        if isinstance(given, str):
            parts = [Range(low, high, is_open, is_open) for low, high, is_open in parse_bounds(given, name, example)]
        elif isinstance(given, (tuple, list)) and len(given) == 2:
            low, high = given
            low = S.NegativeInfinity if low is None else _bound(low)
            parts = [Range(low, S.Infinity if high is None else _bound(high))]
        elif isinstance(given, (And, sympy.core.relational.Relational)):
            parts = [_half_line(name, part) for part in And.make_args(given)]
        else:
            decided = isinstance(given, sympy.logic.boolalg.BooleanAtom)
            kinds = "SymPy has decided it already; give it as" if decided else "it is neither"
            raise ParameterError(f"{kinds} text, a pair, or SymPy comparisons joined by And")
    except ParseError:
        raise
    except ParameterError as error:
        raise ParameterError(f"the range of {name}, {shown(given)}, cannot be used: {error}{example}") from error
    whole = functools.reduce(Range.intersect, parts)
    if whole.is_empty or whole.low == whole.high:
        kind = "is empty" if whole.is_empty else "is the single value " + str(whole.low)
        raise ParameterError(f"the range of {name}, {shown(given)}, {kind}{example}")
    return whole


def name_in_range(text: str) -> str:
    """The one parameter name that the text of a range mentions."""
    names = names_in(text)
    if len(names) != 1:
        raise ParameterError(f"the range {shown(text)} must name one parameter; write for example 'alpha > 1'")
    return names.pop()


def exact_number(value: Any) -> Expr:
    """The exact SymPy number that a Python, NumPy or SymPy number stands for.

    A float becomes the fraction with the smallest denominator up to 1000 that is the same float
    (0.1 is 1/10, a typed 1/3 is 1/3), or else the shortest decimal that prints it.
    """
    if getattr(value, "ndim", None) == 0 and hasattr(value, "item") and not isinstance(value, numbers.Number):
        value = value.item()
    if isinstance(value, Expr):
        return _exact_constant(value)
    if isinstance(value, numbers.Rational) and not isinstance(value, bool):
        return _exact_constant(Rational(int(value.numerator), int(value.denominator)))
    if isinstance(value, numbers.Real) and not isinstance(value, bool):
        if not math.isfinite(value):
            raise ParameterError(f"{shown(value)} is not a finite number")
        fraction = _simplest(value, type(value)) or Fraction(str(value))
        return Rational(fraction.numerator, fraction.denominator)
    hint = "; write a number, such as 0.5 or sympy.Rational(1, 2), not text" if isinstance(value, str) else ""
    raise ParameterError(f"{shown(value)} is not a real number{hint}")


def exact_expression(expr: Expr) -> Expr:
    """The same expression with every floating-point number in it made exact."""
    return expr.xreplace({number: exact_number(number) for number in expr.atoms(Float)})


def _simplest(value: Any, kind: Callable[[float], Any]) -> Fraction | None:
    """The fraction of smallest denominator up to 1000 that is `value` in floating point, if there is one."""
    numerator, denominator = value.as_integer_ratio()
    if abs(numerator) >= denominator << 53:  # beyond the whole numbers that a float tells apart
        return None
    for q in range(1, 1001):
        p = (2 * numerator * q + denominator) // (2 * denominator)
        if kind(p / q) == value:
            return Fraction(p, q)
    return None


def _exact_constant(value: Expr) -> Expr:
    """A SymPy number without floats, if it is real and finite."""
    if value.free_symbols or value.is_finite is False:
        raise ParameterError(f"{shown(value)} is not a finite number")
    if isinstance(value, Float):
        size = value._mpf_[2] + value._mpf_[3]
        if abs(size) > MAX_BITS:
            raise ParameterError(f"{shown(value)} is too large or too small")
        return exact_number(float(value)) if value._prec <= 53 and abs(size) < 1000 else Rational(str(value))
    if value.is_Rational:
        if problem := constant_problem(value):
            raise ParameterError(problem)
        return value
    value = exact_expression(value)
    try:
        problem = deadline.run(constant_problem, value, seconds=MAX_SECONDS)
    except Exception as error:
        raise ParameterError(f"{shown(value)} is a number that SymPy cannot evaluate") from error
    if problem:
        raise ParameterError(problem)
    return value


def _bound(value: Any) -> Expr:
    """One end of a range: an exact number, or an infinity."""
    if isinstance(value, (numbers.Real, sympy.Number)) and abs(value) == math.inf:
        return S.Infinity if float(value) > 0 else S.NegativeInfinity
    return exact_number(value)


def _half_line(name: str, comparison: Any) -> Range:
    """The values of the parameter that satisfy one SymPy comparison with a constant."""
    if not isinstance(comparison, (sympy.Lt, sympy.Le, sympy.Gt, sympy.Ge)):
        raise ParameterError("it is not made of <, <=, > and >=")
    is_open = isinstance(comparison, (sympy.Lt, sympy.Gt))
    low, high = comparison.lts, comparison.gts
    if isinstance(high, sympy.Symbol) and high.name == name:
        return Range(low=_bound(low), low_open=is_open)
    if isinstance(low, sympy.Symbol) and low.name == name:
        return Range(high=_bound(high), high_open=is_open)
    raise ParameterError(f"{comparison} does not compare {name} itself with a number")


def _compare(a: Expr, b: Expr) -> int:
    """-1, 0 or 1 as a < b, a = b or a > b."""
    difference = S.Zero if a == b else (a - b).evalf(50)
    if difference == 0 or getattr(difference, "_prec", 53) == 1:
        return 0
    return -1 if difference < 0 else 1
