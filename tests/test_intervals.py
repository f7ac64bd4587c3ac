"""Interval evaluation encloses the truth, and the search finds what point sampling misses."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
import sympy as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sympy.codegen.cfunctions import expm1, log1p

from fysym.intervals import TINY, evaluate, lower_bound_and_point, search_positive

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


# ---------------------------------------------------------------------------------------------------
# The inclusion property

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


def grow(children: st.SearchStrategy[sp.Expr]) -> st.SearchStrategy[sp.Expr]:
    one = st.builds(lambda f, x: f(x), st.sampled_from(UNARY), children)
    two = st.builds(lambda f, x, y: f(x, y), st.sampled_from(BINARY), children, children)
    return one | two


@settings(
    max_examples=1000, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck), database=None
)
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
    lo, hi = evaluate(
        t**s, {t: (np.array([0.25, 0.5]), np.array([0.5, 1.0])), s: (np.array(1.0), np.array(2.0))}
    )
    assert lo == pytest.approx([1 / 16, 1 / 4]) and hi == pytest.approx([1 / 2, 1])
    lo, hi = evaluate(sp.Integer(3), {t: (np.zeros(4), np.ones(4))})
    assert lo.tolist() == hi.tolist() == [3.0] * 4


# ---------------------------------------------------------------------------------------------------
# The search


def bumped(at: sp.Expr, sharpness: int, excess: sp.Expr) -> sp.Expr:
    """h'' of t(1-t) plus a bump whose curvature is at most 2 * excess, in two slivers 1/sqrt(sharpness) wide."""
    amplitude = sp.nsimplify(sp.N(sp.exp(sp.Rational(3, 2)), 20), rational=True) / (2 * sharpness)
    return sp.diff(t * (1 - t) + excess * amplitude * sp.exp(-sharpness * (t - at) ** 2), t, 2)


SLIVERS = {
    "1e8": (third, 10**8),
    "1e12": (third, 10**12),
    "1e16": (third, 10**16),
    "1e16 at 1/pi": (1 / sp.pi, 10**16),
    "1e20": (sp.Rational(71, 97), 10**20),
    "near 0": (sp.Rational(1, 10**12), 10**30),
    "near 1": (1 - sp.Rational(1, 10**12), 10**30),
    "very near 1": (1 - sp.Rational(1, 10**40), 10**86),
}


@pytest.mark.parametrize("name", SLIVERS)
def test_a_sliver_is_found(name):
    f = bumped(*SLIVERS[name], sp.Rational(101, 100))
    found = search_positive(f, t, seconds=20)
    assert found.complete and found.violation is not None and 0 < found.violation < 1
    assert found.box[0] <= found.violation <= found.box[1]
    assert sp.N(f.subs(t, found.violation), 30) > 0


@pytest.mark.parametrize("name", ["1e8", "1e16 at 1/pi", "near 0", "near 1"])
def test_a_sliver_that_violates_nothing_is_settled(name):
    assert search_positive(bumped(*SLIVERS[name], sp.Rational(99, 100)), t, seconds=20).covered


ENTROPIES = {
    "shannon": -t * sp.log(t),
    "fermi-dirac": -t * sp.log(t) - (1 - t) * sp.log(1 - t),
    "gini": t * (1 - t),
    "tsallis 1.5": (t - t ** sp.Rational(3, 2)) * 4 / 3,
    "tsallis 0.3": t ** sp.Rational(3, 10) - t,
    "tsallis 5": t - t**5,
    "sqrt(t(1-t))": sp.sqrt(t * (1 - t)),
    "t sqrt(1-t)": t * sp.sqrt(1 - t),
    "sin": sp.sin(sp.pi * t),
    "cos": sp.cos(sp.pi * t / 2),
    "log": sp.log(1 + t),
    "atan": sp.atan(t) - sp.pi * t / 4,
    "arc": t * sp.acos(2 * t - 1),
    "zero curvature at both ends": -sp.log(t**2 + (1 - t) ** 2),
    "gamma": -sp.loggamma(1 + t),
    "t^t": -(t**t),
    "lambert": -(sp.LambertW(t) ** 2),
    "mixture": t * (1 - t) + sp.sin(sp.pi * t) / sp.pi - t * sp.log(t) / 3,
}
CURVATURES = {name: sp.diff(h, t, 2) for name, h in ENTROPIES.items()} | {
    "normal quantile": -sp.sqrt(2 * sp.pi) * sp.exp(sp.erfinv(2 * t - 1) ** 2),
    "log t": sp.log(t),
    "flat at 0": -(t**2) * sp.exp(-1 / t),
    "secant": -sp.tan(sp.pi * t / 2) - sp.cot(sp.pi * t / 2),
    "cos - 1": sp.cos(t) - 1,
    "power - 1": t ** sp.Rational(3, 2) - 1,
    "corner": -sp.Max(t, 1 - t),
    "branches": sp.Piecewise((-t, t < half), (t - 1, True)),
}


@pytest.mark.parametrize("name", CURVATURES)
def test_a_concave_entropy_is_covered_completely(name):
    result = search_positive(CURVATURES[name], t, seconds=20)
    assert result.covered and result.violation is None and result.boxes < 20_000


def test_the_derivative_may_be_given():
    f = bumped(third, 10**12, sp.Rational(101, 100)) / t
    for derivative in (None, sp.diff(f, t)):
        assert search_positive(f, t, derivative=derivative, seconds=20).violation is not None
    assert search_positive(-2 - 1 / t, t, derivative=1 / t**2).covered


@pytest.mark.parametrize(
    ("f", "zero"),
    [
        (-((t - half) ** 2), half),
        (-((t - third) ** 2), third),
        (-((t - third) ** 4), third),
        (-sp.Abs(t - third), third),
        (-((t - 1 / sp.pi) ** 2) * (1 + t), 1 / sp.pi),
    ],
)
def test_a_touching_zero_leaves_a_small_open_box(f, zero):
    result = search_positive(f, t, seconds=20)
    assert result.complete and result.violation is None and result.boxes < 5000
    assert result.open_boxes and all(abs(lo - zero) + abs(hi - zero) < 1e-12 for lo, hi in result.open_boxes)


def test_what_rounding_hides_stays_open_without_much_work():
    result = search_positive(sp.expand(-((t - half) ** 2)), t, seconds=20)
    assert result.complete and result.boxes < 5000
    assert all(abs(lo - half) < 1e-6 and abs(hi - half) < 1e-6 for lo, hi in result.open_boxes)
    result = search_positive(-(sp.exp(t) - 1 - t) / t**2, t, seconds=20)
    assert result.complete and len(result.open_boxes) == 1
    assert result.open_boxes[0][0] == 0 and result.open_boxes[0][1] < 1e-12


def test_zero_everywhere_is_open_everywhere():
    result = search_positive(sp.Integer(0), t)
    assert result.complete and result.open_boxes == ((0.0, 1.0),) and not result.covered


def test_a_violation_of_rounding_size_is_not_claimed():
    # (t - 1/3)**2 - (t**2 - 2t/3 + 1/9) is 0; float64 cannot tell
    f = sp.Add((t - third) ** 2, -(t**2), 2 * t / 3, -sp.Rational(1, 9), evaluate=False)
    assert search_positive(f, t).violation is None


def test_infinite_oscillation_ends_with_its_budget():
    f = sp.sin(1 / t) + sp.cos(1 / t) - sp.Rational(3, 2)  # at most sqrt(2) - 3/2 < 0
    for limits in ({"seconds": 0.3}, {"most_boxes": 20_000}):
        result = search_positive(f, t, **limits)
        assert not result.complete and not result.covered and result.violation is None
        assert result.open_boxes[0][0] == 0 and all(hi < 0.2 for _, hi in result.open_boxes)


def test_oscillation_that_violates_is_found():
    f = sp.diff(t**5 * sp.sin(1 / t) - t**2 / 1000, t, 2)
    found = search_positive(f, t)
    assert found.violation is not None and sp.N(f.subs(t, found.violation)) > 0


def test_a_jump_hides_nothing():
    beyond = t - third  # f is positive only on (1/3, 1/3 + 6e-10), where a slope alone would see it fall
    for angle in (sp.atan(1 / beyond), sp.acot(beyond)):
        found = search_positive(angle - 1 - 10**9 * sp.Max(beyond, 0), t, seconds=20).violation
        assert found is not None and third < found < third + sp.Rational(1, 10**9)
    step = sp.Piecewise((-1, t < third), (1, t < third + sp.Rational(1, 10**12)), (-1, True))
    assert search_positive(step, t).violation is not None


@pytest.mark.parametrize("excess", [sp.Rational(101, 100), sp.Rational(99, 100)])
def test_a_steep_step(excess):
    rate = 10**9  # the curvature of tanh is at most 4/sqrt(27)
    bend = sp.Rational(27, 4 * 10**18) * 2 * sp.nsimplify(sp.N(1 / sp.sqrt(27), 20), rational=True)
    result = search_positive(sp.diff(t * (1 - t) + excess * bend * sp.tanh(rate * (t - third)), t, 2), t)
    assert (result.violation is not None) if excess > 1 else result.covered


def test_an_unknown_function_is_open_everywhere():
    result = search_positive(-sp.zeta(2 + t), t, seconds=5)
    assert result.complete and result.open_boxes == ((0.0, 1.0),)


def test_only_a_confirmed_violation_is_reported():
    asked = []

    def refuse(point):
        asked.append(point)
        return 0

    f = t - half
    result = search_positive(f, t, confirm=refuse, most_boxes=20_000)
    assert result.violation is None and result.open_boxes and 0 < len(asked) <= 24
    assert all(isinstance(point, sp.Rational) and f.subs(t, point) > 0 for point in asked)
    assert search_positive(f, t, confirm=lambda point: 1).violation in asked


@pytest.mark.parametrize(
    ("low", "high"), [(third, sp.Rational(2, 3)), (0.0, 0.25), (0.75, 1.0), (sp.Rational(1, 7), 1.0)]
)
def test_a_piece_of_the_interval(low, high):
    middle = (sp.sympify(low) + sp.sympify(high)) / 2
    outside = (t - sp.nsimplify(low)) * (t - sp.nsimplify(high))
    assert search_positive(outside - 1, t, low, high).covered
    found = search_positive(-outside - sp.Rational(1, 10**6), t, low, high).violation
    assert found is not None and low < found < high
    narrow = -2 + 3 * sp.exp(-(10**14) * (t - middle - sp.Rational(1, 100)) ** 2)
    assert search_positive(narrow, t, low, high, seconds=20).violation == pytest.approx(float(middle) + 0.01)


# ---------------------------------------------------------------------------------------------------
# The infimum

INFIMA = {
    "fermi-dirac": (1 / t + 1 / (1 - t), 4.0, 0.5),
    "gini": (sp.Integer(2), 2.0, None),
    "normal quantile": (-CURVATURES["normal quantile"], float(np.sqrt(2 * np.pi)), 0.5),
    "at an end": (1 + t, 1.0, 0.0),
    "zero at an end": (sp.pi**2 * sp.sin(sp.pi * t), 0.0, None),
    "parabola": ((t - third) ** 2 + 1, 1.0, 1 / 3),
    "touching": ((t - third) ** 2, 0.0, 1 / 3),
    "t log t": (t * sp.log(t), -float(np.exp(-1)), float(np.exp(-1))),
    "tan + cot": (-CURVATURES["secant"], 2.0, 0.5),
    "two wells": (((t - sp.Rational(1, 4)) * (t - sp.Rational(3, 4))) ** 2 - t / 1000, None, None),
}


@pytest.mark.parametrize("name", INFIMA)
def test_the_infimum_is_enclosed(name):
    f, infimum, place = INFIMA[name]
    bound, value, point = lower_bound_and_point(f, t, seconds=10)
    assert bound <= value <= bound + 2e-9 * max(1.0, abs(value))
    assert float(sp.N(f.subs(t, sp.Rational(point)), 30)) == pytest.approx(value, abs=1e-12) or point in (
        0.0,
        1.0,
    )
    if infimum is None:
        infimum = sp.lambdify(t, f)(np.linspace(0.7, 0.8, 2001)).min()
        assert bound <= infimum and value <= infimum + 1e-9
    else:
        assert bound - 1e-15 <= infimum <= value + 1e-15
    if place is not None:
        assert point == pytest.approx(place, abs=1e-4)


def test_the_infimum_in_a_sliver():
    bound, value, point = lower_bound_and_point(-bumped(third, 10**10, sp.Rational(11, 10)), t, seconds=10)
    assert bound <= -0.2 <= value < -0.1999 and point == pytest.approx(1 / 3, abs=1e-4)
