"""Interval arithmetic in float64: bounds of an expression on whole boxes, rounded outward.

The bounds are as reliable as float64 library functions are.

Intervals are pairs (lo, hi) of float64 arrays. A positive lower bound of at most TINY means "positive, how
small is not known", and a negative upper bound of at least -TINY the same below zero. So signs survive
underflow: -t**3 is negative on [1e-300, 2e-300].
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import numpy as np
import sympy as sp
from numpy.typing import NDArray
from sympy.codegen.cfunctions import expm1, log1p
from sympy.logic.boolalg import Boolean

Array = NDArray[np.float64]
Pair = tuple[Array, Array]
Rule = Callable[..., Pair]

EPS = float(np.finfo(float).eps)
LARGEST = float(np.finfo(float).max)
TINY = float(np.finfo(float).tiny)  # the smallest normal number
SMALLEST = 5e-324


def _special(name: str) -> Callable[..., Array]:
    """A function of scipy.special, which takes long to import and is needed by few."""

    def function(*args: Any) -> Any:
        from scipy import special

        return getattr(special, name)(*args)

    return function


INF = np.inf

# ---------------------------------------------------------------------------------------------------
# Arithmetic


def outward(lo: Any, hi: Any, ulps: int = 1, tiny: float = SMALLEST) -> Pair:
    """Widen [lo, hi]; no lower bound is +inf, no upper bound -inf, and nan means unbounded."""
    lo, hi = np.minimum(lo, LARGEST), np.maximum(hi, -LARGEST)
    return lo - (ulps * EPS * np.abs(lo) + tiny), hi + (ulps * EPS * np.abs(hi) + tiny)


def _closed(a: Pair) -> Pair:
    """The same interval with "positive, how small is not known" written as 0 (and -0.0 below zero)."""
    lo, hi = a
    unsure_lo, unsure_hi = (lo > 0) & (lo <= TINY), (hi < 0) & (hi >= -TINY)
    return (
        np.where(unsure_lo, 0.0, lo) if unsure_lo.any() else lo,
        np.where(unsure_hi, -0.0, hi) if unsure_hi.any() else hi,
    )


def _signed(lo: Any, hi: Any, signs: Callable[[], tuple[Any, Any]]) -> Pair:
    """Restore to rounded bounds what is known of the sign: signs() gives bounds on it, in {-1, 0, 1}."""
    if (np.minimum(np.abs(lo), np.abs(hi)) > 2 * TINY).all():
        return lo, hi
    low_sign, high_sign = signs()
    floor = np.where(low_sign > 0, TINY, np.where(low_sign == 0, 0.0, -INF))
    ceiling = np.where(high_sign < 0, -TINY, np.where(high_sign == 0, 0.0, INF))
    return np.clip(lo, floor, ceiling), np.clip(hi, floor, ceiling)


def _where(defined: Any, lo: Any, hi: Any) -> Pair:
    """[lo, hi] where the function is defined, else unbounded."""
    if np.all(defined):
        return lo, hi
    return np.where(defined, lo, -INF), np.where(defined, hi, INF)


def _unbounded(*_: Pair) -> Pair:
    return np.asarray(-INF), np.asarray(INF)


def _signs(a: Pair) -> Pair:
    return np.sign(a[0]), np.sign(a[1])


def add(a: Pair, b: Pair) -> Pair:
    def signs() -> tuple[Any, Any]:
        (al, ah), (bl, bh) = a, b
        low = np.where(np.minimum(al, bl) >= 0, np.sign(np.maximum(al, bl)), -1)
        return low, np.where(np.maximum(ah, bh) <= 0, np.sign(np.minimum(ah, bh)), 1)

    (al, ah), (bl, bh) = _closed(a), _closed(b)
    return _signed(*outward(al + bl, ah + bh), signs)


def _corners(a: Pair, b: Pair) -> Pair:
    """The smallest and largest of the four products of bounds; 0 * inf is 0, for inf is never attained."""
    products = np.stack(np.broadcast_arrays(*(x * y for x in a for y in b)))
    if np.isnan(products).any():
        products = np.where(np.isnan(products), 0.0, products)
    return products.min(0), products.max(0)


def _multiply(a: Pair, b: Pair) -> Pair:
    bounds = outward(*_corners(_closed(a), _closed(b)))
    return _signed(*bounds, lambda: _corners(_signs(a), _signs(b)))


def _reciprocal(a: Pair) -> Pair:
    """1/a; a bound that is exactly 0 is a one-sided pole."""
    lo, hi = _closed(a)
    one_signed = (lo >= 0) | (hi <= 0)
    low, high = 1 / np.where(hi == 0, -0.0, hi), 1 / np.where(lo == 0, 0.0, lo)
    sign = np.where(lo >= 0, 1, -1)
    return _where(one_signed, *_signed(*outward(low, high), lambda: (sign, sign)))


def _absolute(a: Pair) -> Pair:
    lo, hi = a
    size_lo, size_hi = np.abs(lo), np.abs(hi)
    return np.where(lo > 0, lo, np.where(hi < 0, -hi, 0.0)), np.maximum(size_lo, size_hi)


def _integer_power(n: int) -> Rule:
    """a**n for an integer n; even powers are never negative."""
    if n < 0:
        positive = _integer_power(-n)
        return lambda a: _reciprocal(positive(a))
    if n == 1:
        return lambda a: a

    def power(a: Pair) -> Pair:
        base = a if n % 2 else _absolute(a)
        lo, hi = _closed(base)
        left, right = (lo * lo, hi * hi) if n == 2 else (np.power(lo, n), np.power(hi, n))
        return _signed(*outward(left, right, ulps=4), lambda: _signs(base))

    return power


def _real_power(a: Pair, p: Pair) -> Pair:
    """a**p for a >= 0 and a constant p that is not an integer."""
    if p[1] < 0:
        return _reciprocal(_real_power(a, (-p[1], -p[0])))
    lo, hi = _closed(a)
    left, right = np.minimum(lo ** p[0], lo ** p[1]), np.maximum(hi ** p[0], hi ** p[1])
    return _where(lo >= 0, *_signed(*outward(left, right, ulps=4), lambda: _signs(a)))


# ---------------------------------------------------------------------------------------------------
# Functions


def _monotone(
    function: Callable[[Any], Any],
    low: float = -INF,
    high: float = INF,
    least: float = -INF,
    most: float = INF,
    ulps: int = 4,
    falling: bool = False,
    nudge: int = 0,
) -> Rule:
    """The rule of a monotone function [low, high] -> [least, most].

    `nudge` moves the argument outward by some ulps, for a function that is steep at a branch point.
    """

    def rule(a: Pair) -> Pair:
        lo, hi = _closed(a)
        defined = (lo >= low) & (hi <= high)
        if nudge:
            lo, hi = lo - nudge * EPS * np.abs(lo), hi + nudge * EPS * np.abs(hi)
        left, right = function(np.clip(lo, low, high)), function(np.clip(hi, low, high))
        bounds = outward(*((right, left) if falling else (left, right)), ulps=ulps, tiny=0.0)
        return _where(defined, np.clip(bounds[0], least, most), np.clip(bounds[1], least, most))

    return rule


def _sine(quarter_turns: int) -> Rule:
    """sin(x + quarter_turns * pi/2): the ends, and 1 or -1 if a crest or a trough lies between."""
    function = np.cos if quarter_turns else np.sin

    def rule(a: Pair) -> Pair:
        turns_lo, turns_hi = (x / (2 * np.pi) + quarter_turns / 4 for x in a)
        slack = 4 * EPS * (1 + np.maximum(np.abs(turns_lo), np.abs(turns_hi)))

        def passes(phase: float) -> Any:
            return np.floor(turns_hi - phase + slack) >= np.ceil(turns_lo - phase - slack)

        unclear = ~(np.maximum(np.abs(a[0]), np.abs(a[1])) < 1e15)
        left, right = function(a[0]), function(a[1])
        lo, hi = outward(np.minimum(left, right), np.maximum(left, right), ulps=4, tiny=0.0)
        lo = np.where(unclear | passes(0.75), -1.0, np.maximum(lo, -1.0))
        return lo, np.where(unclear | passes(0.25), 1.0, np.minimum(hi, 1.0))

    return rule


def _tangent(a: Pair) -> Pair:
    slack = 4 * EPS * (1 + np.maximum(np.abs(a[0]), np.abs(a[1])))
    branch_lo, branch_hi = np.floor(a[0] / np.pi + 0.5 - slack), np.floor(a[1] / np.pi + 0.5 + slack)
    lo, hi = outward(np.tan(a[0]), np.tan(a[1]), ulps=4, tiny=0.0)
    one_branch = (branch_lo == branch_hi) & (np.maximum(np.abs(a[0]), np.abs(a[1])) < 1e6)
    return _where(one_branch & (lo <= hi), lo, hi)


def _valley(function: Callable[[Any], Any], bottom: float, value: float) -> Rule:
    """The rule of a function on (0, oo) that falls to `value` at `bottom` and rises after it."""

    def rule(a: Pair) -> Pair:
        lo, hi = _closed(a)
        left, right = function(np.fmax(lo, 0.0)), function(np.fmax(hi, 0.0))
        low, high = outward(np.minimum(left, right), np.maximum(left, right), ulps=32, tiny=4 * EPS)
        around = (lo <= bottom * (1 + 1e-7)) & (hi >= bottom * (1 - 1e-7))
        return _where(lo >= 0, np.where(around, value, low), high)

    return rule


def _lower_lambert(x: Any) -> Any:
    """W_-1 on [-1/e, 0): -1 - y, where y - log(1 + y) = -log(-x) - 1.

    Newton's method from the bound y <= sqrt(2*d) + d; scipy.special.lambertw is off by 1e-4 near -1/e.
    """
    d = np.maximum(-np.log(-x) - 1, 0.0)
    y = np.sqrt(2 * d) + d
    for _ in range(8):
        y = np.where((y > 0) & np.isfinite(y), y - (y - np.log1p(y) - d) * (1 + y) / y, y)
    return -1 - y


def _upper_lambert(x: Any) -> Any:
    return np.where(x <= _BRANCH * (1 - EPS), -1.0, _special("lambertw")(x).real)


_BRANCH = -float(np.exp(-1.0))
LAMBERT: dict[int, Rule] = {
    0: _monotone(_upper_lambert, low=_BRANCH, least=-1.0, ulps=8, nudge=8),
    -1: _monotone(_lower_lambert, low=_BRANCH, high=-0.0, most=-1.0, ulps=8, nudge=8, falling=True),
}


def _polygamma(order: int) -> Rule:
    """psi on (0, oo) rises; its derivatives keep one sign and shrink towards 0."""
    if order == 0:
        # psi vanishes at 1.46, so its rounding error is absolute there
        rule = _monotone(_special("digamma"), low=0.0, ulps=16)
        return lambda a: add(rule(a), (np.asarray(-16 * EPS), np.asarray(16 * EPS)))
    sign = 1.0 if order % 2 else -1.0
    size = _monotone(lambda x: sign * _special("polygamma")(order, x), low=0.0, least=0.0, ulps=32, falling=True)
    return size if sign > 0 else lambda a: _multiply(size(a), (np.asarray(-1.0), np.asarray(-1.0)))


def _less(a: Pair, b: Pair) -> Any:
    """a < b as a pair of truth values: where it can hold, where it can fail."""
    (al, ah), (bl, bh) = _closed(a), _closed(b)
    return al < bh, ah >= bl


def _equal(a: Pair, b: Pair) -> Any:
    (al, ah), (bl, bh) = _closed(a), _closed(b)
    return (al <= bh) & (bl <= ah), (al < bh) | (bl < ah)


def _not(a: Pair) -> Pair:
    return a[1], a[0]


def _piecewise(*parts: Pair) -> Pair:
    """The union of the branches that can apply; unbounded where it can be that none does."""
    reached: Any = np.asarray(True)
    lo: Any = np.asarray(INF)
    hi: Any = np.asarray(-INF)
    for value, condition in zip(parts[::2], parts[1::2], strict=True):
        applies = reached & condition[0]
        lo = np.where(applies, np.minimum(lo, value[0]), lo)
        hi = np.where(applies, np.maximum(hi, value[1]), hi)
        reached = reached & condition[1]
    return _where(~reached, lo, hi)


def _fold(function: Callable[[Any, Any], Any], other: Callable[[Any, Any], Any] | None = None) -> Rule:
    """A rule for any number of arguments that combines lower and upper bounds one by one."""

    def rule(*parts: Pair) -> Pair:
        lo, hi = parts[0]
        for low, high in parts[1:]:
            lo, hi = function(lo, low), (other or function)(hi, high)
        return lo, hi

    return rule


RULES: dict[type, Rule] = {
    sp.exp: _monotone(np.exp, least=TINY),
    sp.log: _monotone(np.log, low=0.0),
    log1p: _monotone(np.log1p, low=-1.0),
    expm1: _monotone(np.expm1, least=-1.0),
    sp.sin: _sine(0),
    sp.cos: _sine(1),
    sp.tan: _tangent,
    sp.asin: _monotone(np.arcsin, low=-1.0, high=1.0),
    sp.acos: _monotone(np.arccos, low=-1.0, high=1.0, least=0.0, falling=True),
    sp.atan: _monotone(np.arctan),
    sp.sinh: _monotone(np.sinh),
    sp.cosh: lambda a: _monotone(np.cosh, least=1.0)(_absolute(a)),
    sp.tanh: _monotone(np.tanh, least=-1.0, most=1.0),
    sp.asinh: _monotone(np.arcsinh),
    sp.acosh: _monotone(np.arccosh, low=1.0, least=0.0),
    sp.atanh: _monotone(np.arctanh, low=-1.0, high=1.0),
    sp.erf: _monotone(_special("erf"), least=-1.0, most=1.0, ulps=8),
    sp.erfc: _monotone(_special("erfc"), least=TINY, most=2.0, ulps=512, falling=True),
    sp.erfi: _monotone(_special("erfi"), ulps=512),
    sp.erfinv: _monotone(_special("erfinv"), low=-1.0, high=1.0, ulps=16),
    sp.erfcinv: _monotone(_special("erfcinv"), low=0.0, high=2.0, ulps=16, falling=True),
    sp.gamma: _valley(_special("gamma"), 1.4616321449683623, 0.8856031944108886),
    sp.loggamma: _valley(_special("gammaln"), 1.4616321449683623, -0.1214862905358497),
    sp.Abs: _absolute,
    sp.sign: _monotone(np.sign, ulps=0),
    sp.Heaviside: lambda a, _: _monotone(lambda x: np.heaviside(x, 0.5), ulps=0)(a),
    sp.Min: _fold(np.minimum),
    sp.Max: _fold(np.maximum),
    sp.And: _fold(np.logical_and, np.logical_or),
    sp.Or: _fold(np.logical_or, np.logical_and),
    sp.Not: _not,
    sp.StrictLessThan: _less,
    sp.StrictGreaterThan: lambda a, b: _less(b, a),
    sp.LessThan: lambda a, b: _not(_less(b, a)),
    sp.GreaterThan: lambda a, b: _not(_less(a, b)),
    sp.Equality: _equal,
    sp.Unequality: lambda a, b: _not(_equal(a, b)),
    sp.Piecewise: _piecewise,
}
REWRITTEN: dict[type, Callable[[sp.Expr], sp.Expr]] = {
    sp.sec: lambda x: 1 / sp.cos(x),
    sp.csc: lambda x: 1 / sp.sin(x),
    sp.cot: lambda x: 1 / sp.tan(x),
    sp.sech: lambda x: 1 / sp.cosh(x),
    sp.csch: lambda x: 1 / sp.sinh(x),
    sp.coth: lambda x: 1 / sp.tanh(x),
    sp.acot: lambda x: sp.atan(1 / x),
}


@lru_cache(maxsize=4096)
def _constant(number: sp.Expr) -> Pair:
    """An interval around a constant, from 30 digits; exact if it is a float64 number."""
    try:
        value = number if number.is_Rational else number.evalf(30)
    except ValueError:  # SymPy's answer to erfinv(2)
        return _unbounded()
    if not value.is_Number or not value.is_finite:
        return _unbounded()
    try:
        nearest = float(value)
    except OverflowError:
        nearest = INF if value > 0 else -INF
    if value.is_Rational and abs(nearest) < INF and sp.Rational(nearest) == value:
        return np.asarray(nearest), np.asarray(nearest)
    if value.is_Float and value._prec < 60:  # SymPy's mark that further digits are wrong: a hidden zero
        error = abs(nearest) * 2.0 ** (2 - value._prec) + 1e-30
        return np.asarray(nearest - error), np.asarray(nearest + error)
    sign = np.asarray(float(sp.sign(value)))
    return _signed(*outward(np.asarray(nearest), np.asarray(nearest)), lambda: (sign, sign))


class Tape:
    """An expression as a flat list of interval operations, each distinct sub-expression once."""

    def __init__(self, expr: sp.Expr, symbols: tuple[sp.Symbol, ...]) -> None:
        self._slots: dict[sp.Basic, int] = {symbol: k for k, symbol in enumerate(symbols)}
        self._steps: list[tuple[Rule, tuple[int, ...]]] = []
        self._inputs = len(symbols)
        self._result = self._compile(expr)

    def __call__(self, *boxes: Pair) -> Pair:
        """Bounds on every box; the caller silences NumPy's warnings."""
        values = list(boxes)
        for rule, slots in self._steps:
            lo, hi = rule(*(values[slot] for slot in slots))
            if lo.dtype == float and not (lo <= hi).all():
                lo, hi = np.where(np.isnan(lo), -INF, lo), np.where(np.isnan(hi), INF, hi)
            values.append((lo, hi))
        shape = np.broadcast_shapes(*(box[0].shape for box in boxes))
        lo, hi = values[self._result]
        return np.broadcast_to(lo, shape), np.broadcast_to(hi, shape)

    def _emit(self, rule: Rule, *slots: int) -> int:
        self._steps.append((rule, slots))
        return self._inputs + len(self._steps) - 1

    def _compile(self, node: sp.Basic) -> int:
        if node not in self._slots:
            self._slots[node] = self._operation(node)
        return self._slots[node]

    def _operation(self, node: Any) -> int:
        kind = type(node)
        if node in (sp.true, sp.false):
            truth = np.asarray(bool(node)), np.asarray(not node)
            return self._emit(lambda: truth)
        if isinstance(node, sp.Expr) and not node.free_symbols:
            number = _constant(node)
            return self._emit(lambda: number)
        if kind in REWRITTEN:
            return self._compile(REWRITTEN[kind](*node.args))
        if kind in (sp.Add, sp.Mul):
            combine = add if kind is sp.Add else _multiply
            slots = [self._compile(arg) for arg in node.args] if kind is sp.Add else self._factors(node)
            result = slots[0]
            for slot in slots[1:]:
                result = self._emit(combine, result, slot)
            return result
        if kind is sp.Pow:
            return self._power(node.base, node.exp)
        if kind is sp.LambertW:
            branch = node.args[1] if len(node.args) > 1 else 0
            return self._emit(LAMBERT.get(branch, _unbounded), self._compile(node.args[0]))
        if kind is sp.polygamma and node.args[0].is_Integer and node.args[0] >= 0:
            return self._emit(_polygamma(int(node.args[0])), self._compile(node.args[1]))
        if kind in RULES:
            args = [part for pair in node.args for part in pair.args] if kind is sp.Piecewise else node.args
            return self._emit(RULES[kind], *(self._compile(arg) for arg in args))
        if isinstance(node, Boolean) and not node.is_Symbol:  # a Symbol counts as both
            return self._emit(lambda: (np.asarray(True), np.asarray(True)))
        return self._emit(_unbounded)

    def _factors(self, product: sp.Expr) -> list[int]:
        """The factors, an exponential together with poles that it may outweigh: x**-4 exp(-1/x) is small next to 0."""
        exponential = next((f for f in product.args if isinstance(f, sp.exp) and f.free_symbols), None)
        poles = [
            f
            for f in product.args
            if isinstance(f, sp.Pow) and f.exp.is_Rational and f.exp < 0 and f.base.is_Symbol and f.base.is_positive
        ]
        if exponential is None or not poles:
            return [self._compile(factor) for factor in product.args]
        total = self._compile(exponential.args[0])
        for pole in poles:
            number = _constant(pole.exp)
            logarithm = self._emit(RULES[sp.log], self._compile(pole.base))
            total = self._emit(add, total, self._emit(lambda a, number=number: _multiply(a, number), logarithm))
        rest = [self._compile(f) for f in product.args if f is not exponential and f not in poles]
        return [self._emit(RULES[sp.exp], total), *rest]

    def _power(self, base: sp.Expr, exponent: sp.Expr) -> int:
        if exponent.is_Integer:
            return self._emit(_integer_power(int(exponent)), self._compile(base))
        if not exponent.free_symbols and exponent.is_nonzero:
            value = _constant(exponent)
            return self._emit(lambda a: _real_power(a, value), self._compile(base))
        logarithm = self._emit(RULES[sp.log], self._compile(base))
        return self._emit(RULES[sp.exp], self._emit(_multiply, self._compile(exponent), logarithm))


def evaluate(expr: sp.Expr, boxes: Mapping[sp.Symbol, Pair]) -> Pair:
    """Bounds of `expr` on boxes: arrays (lo, hi) with lo <= expr <= hi wherever expr is defined and real.

    `boxes` gives each free symbol as a pair of arrays of lower and upper bounds. Where a part of the
    expression cannot be bounded (log of a box with negative numbers, a pole inside the box, a function
    that has no rule) the answer is (-inf, inf). It is never nan.
    """
    tape = Tape(sp.sympify(expr), tuple(boxes))
    with np.errstate(all="ignore"):
        return _closed(tape(*((np.asarray(lo, float), np.asarray(hi, float)) for lo, hi in boxes.values())))
