"""The search finds what point sampling misses, and the infimum is enclosed."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sp

from fysym.search import Roots, _pools, isolate_roots, lower_bound_and_point, search_positive

t = sp.Symbol("t")
half, third = sp.Rational(1, 2), sp.Rational(1, 3)


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


@pytest.mark.parametrize(("low", "high"), [(0, 1), (third, half), (0.1, 0.7)])
def test_the_first_boxes_leave_nothing_out(low, high):
    """From 1e-300 of each end to the middle, each box beginning where the one before it ends."""
    for pool in _pools(t, t, low, high, None, scaled=False):
        assert (pool.lo < pool.hi).all()
        np.testing.assert_array_equal(pool.lo[1:], pool.hi[:-1])
        assert pool.lo[0] <= 2e-300 and sp.Rational(float(pool.hi[-1])) >= (sp.Rational(high) - sp.Rational(low)) / 2


def test_roots_are_isolated():
    def sign(f):
        return lambda at: int(sp.sign(f.subs(x, at).evalf(60)))

    x = sp.Symbol("x", positive=True)
    wave = sp.sin(40 * x)
    roots = isolate_roots(wave, x, sign(wave))
    assert not roots.points and not roots.open_boxes
    assert [round(float(40 * sum(bracket) / 2 / sp.pi), 1) for bracket in roots.brackets] == pytest.approx(
        range(1, 13), abs=0.5
    )
    assert all(low < k * sp.pi / 40 < high for k, (low, high) in enumerate(roots.brackets, 1))
    line = x - sp.Rational(1, 2)
    assert isolate_roots(line, x, sign(line)) == Roots((sp.Rational(1, 2),), (), ())
    ((low, high),) = isolate_roots((x - sp.Rational(1, 3)) ** 2, x, sign(line)).open_boxes
    assert low <= 1 / 3 <= high and high - low < 1e-6
    assert isolate_roots(line, x, lambda _: None).open_boxes
    assert len(isolate_roots(sp.sin(1 / x), x, sign(sp.sin(1 / x))).brackets) > 60
    assert isolate_roots(line, x, sign(line), most_boxes=0).open_boxes == ((0.0, 1.0),)
