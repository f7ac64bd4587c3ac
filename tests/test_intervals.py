"""Interval evaluation encloses the truth."""

from __future__ import annotations

from collections.abc import Callable

import mpmath
import numpy as np
import pytest
import sympy as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sympy.codegen.cfunctions import expm1, log1p

from fysym.intervals import TINY, Tape, evaluate

t, s = sp.symbols("t s")
half, third = sp.Rational(1, 2), sp.Rational(1, 3)


class Undefined(Exception):
    """A sub-expression has no real value, or one too large to compute with."""


FUNCTIONS = {
    log1p: mpmath.log1p,
    expm1: mpmath.expm1,
    sp.LambertW: mpmath.lambertw,
    sp.polygamma: lambda n, x: mpmath.psi(int(n), x),
    sp.Add: lambda *terms: mpmath.fsum(terms),
    sp.Mul: lambda *factors: mpmath.fprod(factors),
    sp.Pow: mpmath.power,
    sp.Abs: mpmath.fabs,
    sp.Min: min,
    sp.Max: max,
}


def value_of(node: sp.Expr, values: dict[sp.Symbol, float]) -> mpmath.mpf:
    """The value of an expression in mpmath's arithmetic, node by node."""
    if node in values:
        return mpmath.mpf(float(values[node]))
    if node.is_Rational:
        return mpmath.mpf(node.p) / node.q
    if not node.args:
        return sp.N(node, 80)._to_mpmath(280)
    if isinstance(node, sp.Piecewise):
        branches = (branch for branch, condition in node.args if holds(condition, values))
        return value_of(next(branches), values)
    function = FUNCTIONS.get(node.func) or getattr(mpmath, node.func.__name__, None)
    if function is None:
        raise Undefined
    try:
        value = function(*(value_of(arg, values) for arg in node.args))
    except (ValueError, ZeroDivisionError) as error:
        raise Undefined from error
    if not isinstance(value, mpmath.mpf) and not (isinstance(value, mpmath.mpc) and value.imag == 0):
        raise Undefined
    if not mpmath.isfinite(value) or mpmath.fabs(value.real) > 1e9 and len(values) > 1:
        raise Undefined
    return value.real


def holds(condition: sp.Basic, values: dict[sp.Symbol, float]) -> bool:
    return bool(condition.xreplace({symbol: sp.Rational(float(x)) for symbol, x in values.items()}))


def truth(expr: sp.Expr, values: dict[sp.Symbol, float]) -> mpmath.mpf | None:
    """The value of expr at float64 points to about 80 digits, or None if it is not a real number there."""
    try:
        with mpmath.workdps(80):
            return value_of(expr, values)
    except Undefined:
        return None


def encloses(lo: float, hi: float, value: mpmath.mpf) -> bool:
    return bool(mpmath.mpf(float(lo)) <= value <= mpmath.mpf(float(hi)))


UNARY = [
    sp.exp,
    sp.log,
    sp.sin,
    sp.cos,
    sp.tan,
    sp.asin,
    sp.acos,
    sp.atan,
    sp.sinh,
    sp.cosh,
    sp.tanh,
    sp.asinh,
    sp.acosh,
    sp.atanh,
    sp.sec,
    sp.cot,
    sp.erf,
    sp.erfc,
    sp.Abs,
    sp.sign,
    sp.sqrt,
    log1p,
    expm1,
    lambda x: x**2,
    lambda x: x**3,
    lambda x: 1 / x,
    lambda x: x**-2,
    lambda x: x ** sp.Rational(2, 3),
    lambda x: x ** sp.Rational(-7, 5),
    lambda x: x ** sp.sqrt(2),
]
BINARY = [
    lambda x, y: x + y,
    lambda x, y: x - y,
    lambda x, y: x * y,
    lambda x, y: x / y,
    lambda x, y: x**y,
    sp.Min,
    sp.Max,
    lambda x, y: sp.Piecewise((x, t < s), (y, True)),
    lambda x, y: sp.Piecewise((x, (t >= s) & (t > third)), (y, s <= 1), (x * y, True)),
]
leaves = st.sampled_from([t, s, sp.Integer(2), third, sp.Integer(-1), sp.pi, 1 - t, 1 + s])


def joined(function: Callable[..., sp.Expr], x: sp.Expr, y: sp.Expr) -> sp.Expr:
    try:
        return function(x, y)
    except ValueError:  # Min and Max refuse a constant that is not real, such as asin(2)
        return sp.nan


def grow(children: st.SearchStrategy[sp.Expr]) -> st.SearchStrategy[sp.Expr]:
    one = st.builds(lambda f, x: f(x), st.sampled_from(UNARY), children)
    two = st.builds(joined, st.sampled_from(BINARY), children, children)
    return one | two


@settings(max_examples=1000, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck), database=None)
@given(
    st.recursive(leaves, grow, max_leaves=5),
    st.lists(st.floats(1e-6, 3.0), min_size=4, max_size=4),
    st.floats(0, 1),
    st.sampled_from([0.0, 1e-9, 1e-2, 1.0]),
)
def test_a_value_in_the_box_lies_in_the_interval(expr, ends, place, width):
    boxes, point = {}, {}
    for symbol, start, length in ((t, ends[0], ends[1]), (s, ends[2], ends[3])):
        lo, hi = start, start + width * length
        boxes[symbol] = np.array([lo]), np.array([hi])
        point[symbol] = min(lo + place * (hi - lo), hi)
    if expr.has(sp.zoo, sp.nan, sp.oo, sp.I) or expr.is_extended_real is False:
        return
    lo, hi = evaluate(expr, boxes)
    assert not np.isnan(lo).any() and not np.isnan(hi).any() and lo[0] <= hi[0]
    value = truth(expr, point)
    if value is not None:
        assert encloses(lo[0], hi[0], value)


def log_spaced(low: float, high: float, count: int = 25) -> list[float]:
    return [float(x) for x in 10.0 ** np.linspace(low, high, count)]


SMALL = log_spaced(-300, 2.5)
SIGNED = SMALL + [-x for x in SMALL] + [float(x) for x in np.linspace(-5, 5, 31)]
UNIT = [x for x in SIGNED if abs(x) < 1] + [1 - x for x in log_spaced(-15, -1)]
BRANCH = -float(np.exp(-1.0))
POINTS = {
    sp.exp: SIGNED,
    sp.log: SMALL,
    log1p: [x for x in SIGNED if x > -1],
    expm1: SIGNED,
    sp.sin: [*SIGNED, 1e6, 1e14, 3e15],
    sp.cos: [*SIGNED, 1e6, 1e14, 3e15],
    sp.tan: SIGNED,
    sp.asin: UNIT,
    sp.acos: UNIT,
    sp.atan: SIGNED,
    sp.sinh: SIGNED,
    sp.cosh: SIGNED,
    sp.tanh: SIGNED,
    sp.asinh: SIGNED,
    sp.acosh: [1 + x for x in log_spaced(-15, 3)],
    sp.atanh: UNIT,
    sp.erf: SIGNED,
    sp.erfc: [x for x in SIGNED if x < 26],
    sp.erfi: [x for x in SIGNED if abs(x) < 20],
    sp.gamma: [x for x in SIGNED if 0 < x < 150] + [1.4616321449683622, 1.4616321449683625],
    sp.loggamma: [x for x in SIGNED if 0 < x < 150] + [1 + 1e-9, 2 - 1e-9, 1.4616321449683622],
    sp.digamma: [x for x in SIGNED if 0 < x < 150] + [1.4616321449683622],
    sp.trigamma: [x for x in SIGNED if 1e-100 < x < 150],
    sp.LambertW: [x for x in SIGNED if x > BRANCH] + [BRANCH + x for x in log_spaced(-16, -2)],
}


@pytest.mark.parametrize("function", POINTS, ids=lambda function: function.__name__)
def test_every_rule_encloses_its_function_tightly(function):
    points = np.array(POINTS[function])
    lo, hi = evaluate(function(t), {t: (points, points)})
    for x, low, high in zip(points, lo, hi, strict=True):
        value = truth(function(t), {t: x})
        if value is not None and mpmath.fabs(value) < 1e308:
            assert encloses(low, high, value), (x, low, high, value)
            if function is not sp.LambertW and abs(x) < 1e6:
                assert high - low <= 1e-12 * abs(high) + 1e-14


def test_inverse_error_functions_enclose_their_inverse():
    for x in UNIT:
        lo, hi = (float(b[0]) for b in evaluate(sp.erfinv(t), {t: (np.array([x]), np.array([x]))}))
        assert mpmath.erf(lo) <= x <= mpmath.erf(hi)
    with mpmath.workdps(340):
        for x in [*log_spaced(-290, -1), 0.3, 1 - 1e-12, 1.0, 1 + 1e-12, 1.7, 2 - 1e-12]:
            lo, hi = (float(b[0]) for b in evaluate(sp.erfcinv(t), {t: (np.array([x]), np.array([x]))}))
            assert mpmath.erfc(hi) <= x <= mpmath.erfc(lo)


def test_the_lower_branch_of_lambert_w_is_right_near_its_branch_point():
    points = np.array([-x for x in log_spaced(-300, -0.5)] + [BRANCH + x for x in log_spaced(-16, -2)])
    lo, hi = evaluate(sp.LambertW(t, -1), {t: (points, points)})
    for x, low, high in zip(points, lo, hi, strict=True):
        assert encloses(low, high, mpmath.lambertw(mpmath.mpf(float(x)), -1).real)
        assert high - low < 1e-6


def test_special_cases():
    def bounds(expr, lo, hi):
        low, high = evaluate(expr, {t: (np.array([lo]), np.array([hi]))})
        return float(low[0]), float(high[0])

    unbounded = (-np.inf, np.inf)
    assert bounds(sp.log(t), -0.1, 1.0) == unbounded
    assert bounds(1 / t, -1.0, 1.0) == unbounded
    assert bounds(sp.sqrt(t), -1.0, 1.0) == unbounded
    assert bounds(sp.tan(t), 1.0, 2.0) == unbounded
    assert bounds(sp.gamma(t), -0.5, 1.0) == unbounded
    assert bounds(sp.Function("mystery")(t), 0.0, 1.0) == unbounded
    assert bounds(sp.zeta(t), 0.2, 0.3) == unbounded
    assert bounds(t**2, -1.0, 2.0)[0] == 0.0
    assert bounds(sp.sin(t), 0.0, 10.0) == (-1.0, 1.0)
    assert bounds(sp.sin(t), 1.0, 2.0)[1] == 1.0
    assert bounds(sp.cos(t), 3.0, 4.0)[0] == -1.0
    assert bounds(sp.sin(1 / t), 1e-200, 2e-200) == (-1.0, 1.0)
    assert bounds(sp.Piecewise((1, t < half), (2, True)), 0.5, 0.7) == (2.0, 2.0)
    assert bounds(sp.Piecewise((1, t < half), (2, True)), 0.4, 0.7) == (1.0, 2.0)
    assert bounds(sp.Piecewise((1, t < half)), 0.4, 0.7) == unbounded
    low, high = bounds(t**-2, 1e-300, 2e-300)
    assert 0 < low < np.inf and high == np.inf
    low, high = bounds(t**3, 1e-300, 2e-300)
    assert 0 <= low <= high <= TINY


def test_several_symbols_and_scalars():
    lo, hi = evaluate(t**s, {t: (np.array([0.25, 0.5]), np.array([0.5, 1.0])), s: (np.array(1.0), np.array(2.0))})
    assert lo == pytest.approx([1 / 16, 1 / 4]) and hi == pytest.approx([1 / 2, 1])
    lo, hi = evaluate(sp.Integer(3), {t: (np.zeros(4), np.ones(4))})
    assert lo.tolist() == hi.tolist() == [3.0] * 4


def test_constants_and_conditions():
    def bounds(expr, lo=0.0, hi=1.0):
        low, high = evaluate(expr, {t: (np.array([lo]), np.array([hi]))})
        return float(low[0]), float(high[0])

    unbounded = (-np.inf, np.inf)
    assert bounds(sp.erfinv(2, evaluate=False)) == unbounded
    assert bounds(sp.log(-3, evaluate=False)) == unbounded
    low, high = bounds(sp.Integer(10) ** 400)
    assert 1e308 < low < high == np.inf
    low, high = bounds(-(sp.Integer(10) ** 400))
    assert -np.inf == low < high < -1e308
    hidden = sp.sqrt(2) + sp.sqrt(3) - sp.sqrt(5 + 2 * sp.sqrt(6))
    low, high = bounds(hidden)
    assert low <= 0 <= high and high - low < 1e-25
    switch = sp.Piecewise((1, sp.Eq(t, half)), (2, True))
    assert bounds(switch, 0.6, 0.7) == (2.0, 2.0) and bounds(switch, 0.4, 0.7) == (1.0, 2.0)
    assert bounds(switch, 0.5, 0.5) == (1.0, 1.0)
    assert bounds(sp.Piecewise((1, sp.Ne(t, half)), (2, True)), 0.5, 0.5) == (2.0, 2.0)
    assert bounds(sp.Piecewise((1, sp.Contains(t, sp.Interval(0, 1))), (3, True))) == (1.0, 3.0)
    assert bounds(sp.LambertW(t, 2)) == unbounded
    assert bounds(s * t) == unbounded
    assert bounds(sp.Piecewise((1, s > 0), (2, True))) == (1.0, 2.0)
    low, high = bounds(sp.LambertW(-t, -1), 0.1, 0.2)
    assert encloses(low, high, mpmath.lambertw(-0.15, -1).real)
    low, high = bounds(sp.Heaviside(t - half) + sp.sign(t - half), 0.6, 0.9)
    assert low <= 2 <= high and high - low < 1e-12


def test_an_exponential_outweighs_a_pole():
    x = sp.Symbol("x", positive=True)
    ends = np.array([1e-300, 1e-160, 1e-9, 1e-3]), np.array([1e-299, 1e-159, 1e-8, 2e-3])
    with np.errstate(all="ignore"):
        for f in (sp.exp(-1 / x) / x**4, sp.exp(-1 / x**2) / x**2, x ** -sp.Rational(5, 2) * sp.exp(-1 / x)):
            low, high = Tape(f, (x,))(ends)
            assert (low >= 0).all() and (high < 1e-100).all()
        low, high = Tape(sp.exp(-1 / x) / x**4, (x,))((np.array([0.25]), np.array([0.25])))
        assert low[0] <= 256 * np.exp(-4) * (1 + 1e-14) and high[0] >= 256 * np.exp(-4) * (1 - 1e-14)
        assert high[0] - low[0] < 1e-13


@pytest.mark.parametrize("function", [sp.asin, sp.acos, sp.atanh, sp.erfinv])
@pytest.mark.parametrize(("low", "high"), [(0.5, 1.5), (-1.5, 0.5), (1.2, 1.5), (-1.5, -1.2), (0.5, 1.0 + 2**-52)])
def test_beyond_either_end_of_what_has_a_value_nothing_is_known(function, low, high):
    assert evaluate(function(t), {t: (low, high)}) == (-np.inf, np.inf)
    assert evaluate(1 + 2 * function(t), {t: (low, high)}) == (-np.inf, np.inf)
