"""Where an expression in t and positive symbols is largest, and the families that this refutes."""

import pytest
import sympy
from hypothesis import given, settings
from hypothesis import strategies as st

import fysym
from fysym import witness
from fysym.deadline import Deadline
from fysym.summit import _ratio, summit

t, a, b = sympy.symbols("t a b", positive=True)


def test_a_narrow_peak_in_three_variables_is_found():
    f = (
        sympy.exp(-1000 * ((t - sympy.Rational(1, 3)) ** 2 + (a - 2) ** 2 + (b / (1 + b) - sympy.Rational(1, 5)) ** 2))
        - 1
    )
    *_, point = summit(f, t, [a, b])
    assert {s: float(x) for s, x in point.items()} == pytest.approx({t: 1 / 3, a: 2, b: 1 / 4}, abs=1e-3)


def test_few_digits_come_first_and_only_points_that_are_certain_count():
    f = sympy.Rational(1, 10**10) - (a - sympy.Rational(617, 1000)) ** 2
    few, more, *_ = summit(f, t, [a])
    assert abs(few[a] - 0.617) > 1e-5 > abs(more[a] - 0.617)
    point = witness.highest(f, t, [a], Deadline(60))
    assert point is not None and f.subs(a, point[a]) > 0
    assert witness.highest(f - sympy.Rational(1, 10**10), t, [a], Deadline(60)) is None


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.integers(-5, 5), st.integers(0, 3), st.integers(-2, 2)), min_size=1, max_size=4))
def test_the_ratio_has_the_sign_of_the_expression_and_is_at_most_1(terms):
    f = sympy.Add(*(c * t**k * (a - t) ** m * sympy.sin(3 * a) for c, k, m in terms))
    for place in ({t: 0.3, a: 0.7}, {t: 0.9, a: 2.5}, {t: 0.01, a: 1.3}):
        value, ratio = (float(e.subs(place)) for e in (f, _ratio(f)) if f != 0) if f != 0 else (0.0, 0.0)
        assert abs(ratio) <= 1 + 1e-12
        assert abs(value) < 1e-9 or (value > 0) == (ratio > 0)


@pytest.mark.parametrize(
    "h",
    [
        "-t**2*((a - 617/1000)**2 + (b - 3/10)**2 - 1/10**4)",
        "-t**4 + t**2*(2*exp(-1000*((a - 617/1000)**2 + (b - 3/10)**2)) - 1)",
        "t*(1 - t) - sin(30*t)*a*(b + 1/100)/450",
        "-t**2 + Abs(t - 1/2)*(exp(-1000*((a - 617/1000)**2 + (b - 1/5)**2)) - 1/2)",
    ],
)
def test_a_small_region_of_a_family_that_is_not_concave_refutes_it(h):
    with pytest.raises(fysym.NotConcaveError, match=r"with a = \S+ with b = ") as refused:
        fysym.compile(h, params={"a": "0 < a < 1", "b": "0 < b < 1"}, deadline=60)
    member = {str(name): value for name, value in refused.value.parameters.items()}
    with pytest.raises(fysym.NotConcaveError):
        fysym.compile(sympy.sympify(h, rational=True).subs(member))
