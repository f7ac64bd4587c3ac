"""Exact numbers, and parameter ranges: what is accepted, refused, contained."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
import sympy
from hypothesis import given, settings
from hypothesis import strategies as st
from sympy import Rational, S

from fysym.errors import FysymError, ParameterError, ParseError
from fysym.ranges import Range, exact_expression, exact_number, name_in_range, parse_range

t, alpha, k = sympy.symbols("t alpha k")

NUMBERS = [
    (3, S(3)),
    (0.1, Rational(1, 10)),
    (1.5, Rational(3, 2)),
    (-1 / 3, Rational(-1, 3)),
    (2 / 7, Rational(2, 7)),
    (-0.0, S(0)),
    (1 + 1e-9, Rational(1000000001, 1000000000)),
    (1e300, S(10) ** 300),
    (5e-324, Rational(5, S(10) ** 324)),
    (Fraction(2, 7), Rational(2, 7)),
    (np.int64(3), S(3)),
    (np.float64(0.1), Rational(1, 10)),
    (np.float32(0.1), Rational(1, 10)),
    (sympy.Float("0.1"), Rational(1, 10)),
    (sympy.Float("0.1", 50), Rational(1, 10)),
    (sympy.Float("1e-400", 15), Rational(1, S(10) ** 400)),
    (sympy.sqrt(2), sympy.sqrt(2)),
    (sympy.pi * 1.5, 3 * sympy.pi / 2),
]


@pytest.mark.parametrize(("value", "exact"), NUMBERS, ids=repr)
def test_exact_number(value, exact):
    assert exact_number(value) == exact
    assert not exact_number(value).has(sympy.Float)


def test_exact_number_of_a_zero_dimensional_array():
    assert exact_number(np.array(0.25)) == Rational(1, 4)


@pytest.mark.parametrize(
    "value",
    [math.nan, math.inf, -math.inf, 1j, True, None, "1/2", S.NaN, S.Infinity, S.ComplexInfinity, sympy.I]
    + [
        sympy.sqrt(-2),
        sympy.asin(2),
        sympy.erfc(10**300),
        t,
        2 * t,
        S.true,
        [1],
        np.array([1.0]),
        np.bool_(True),
        np.float32("nan"),
    ],
    ids=repr,
)
def test_not_an_exact_number(value):
    with pytest.raises(ParameterError, match="number"):
        exact_number(value)


def test_text_is_not_taken_for_a_number():
    with pytest.raises(ParameterError, match=r"'1/2' is not a real number; write a number, such as 0.5"):
        exact_number("1/2")


@settings(derandomize=True, deadline=None, max_examples=300)
@given(st.floats(allow_nan=False, allow_infinity=False))
def test_exact_number_is_the_same_float(x):
    assert float(exact_number(x)) == x


@settings(derandomize=True, deadline=None)
@given(st.integers(-5000, 5000), st.integers(1, 1000))
def test_typed_fractions_are_recovered(p, q):
    assert exact_number(p / q) == Rational(p, q)


def test_exact_expression():
    assert exact_expression(t**2.0 + 0.1 * sympy.log(t / 3.0)) == t**2 + sympy.log(t / 3) / 10
    assert exact_expression(t**alpha) == t**alpha


RANGES = [
    ("alpha > 1", "alpha > 1"),
    ("1 <= alpha", "alpha >= 1"),
    ("alpha <= -1/2", "alpha <= -1/2"),
    ("0 < alpha < 1", "0 < alpha < 1"),
    ("1 >= alpha > 0", "0 < alpha <= 1"),
    ("alpha > 1 and alpha <= 3", "1 < alpha <= 3"),
    ("alpha > 1 and alpha >= 1 and alpha < pi", "1 < alpha < pi"),
    ("alpha > 0.1", "alpha > 1/10"),
    ("-oo < alpha <= oo", "-oo < alpha < oo"),
    ("alpha > -sqrt(2)", "alpha > -sqrt(2)"),
    ((1, 2), "1 < alpha < 2"),
    ((None, 0.5), "alpha < 1/2"),
    ((0, math.inf), "alpha > 0"),
    ((np.float32("-inf"), S.Infinity), "-oo < alpha < oo"),
    (alpha > 1, "alpha > 1"),
    (sympy.Le(0.25, alpha), "alpha >= 1/4"),
    (sympy.And(alpha > 1, alpha <= 2), "1 < alpha <= 2"),
    (sympy.Symbol("alpha", real=True) < sympy.pi, "alpha < pi"),
]


@pytest.mark.parametrize(("given_range", "described"), RANGES, ids=str)
def test_range(given_range, described):
    found = parse_range("alpha", given_range)
    assert found.describe("alpha") == described
    if not found.describe("alpha").endswith("real number"):
        assert parse_range("alpha", described) == found


# what is given -> (column of the caret, or None for a ParameterError; a piece of the message)
BAD_RANGES = [
    ("", 0, "empty"),
    ("alpha", 0, "compares alpha with numbers"),
    ("alpha == 1", 0, "<, <=, > and >="),
    ("0 < alpha != 1", 4, "<, <=, > and >="),
    ("alpha > 1 or alpha < 0", 0, "compares alpha with numbers"),
    ("alpha > beta", 8, "beta is not one"),
    ("alpha > 0 and k > 1", 14, "alpha must stand alone"),
    ("0 < 2*alpha < 1", 0, "alpha must stand alone"),
    ("alpha > sqrt(-1)", 8, "not a real number"),
    ("alpha > 9**9**9", 8, "power is too large"),
    ("alpha > 1/0", 8, "division by zero"),
    ("alpha >", 7, "missing"),
    ("alpha > 3 and alpha < 1", None, "is empty"),
    ("1 < alpha < 1", None, "is empty"),
    ("1 <= alpha <= 1", None, "single value 1"),
    ("alpha > oo", None, "is empty"),
    ((2, 1), None, "is empty"),
    ((1, 2, 3), None, "(1, 2, 3)"),
    (("1", 2), None, "'1' is not a real number"),
    ((math.nan, 1), None, "nan is not a finite number"),
    (3, None, "a pair"),
    (alpha > k, None, "k is not a finite number"),
    (2 * alpha > 1, None, "2*alpha > 1"),
    (sympy.Ne(alpha, 1), None, "<, <=, > and >="),
    (sympy.Or(alpha > 1, alpha < 0), None, "And"),
    (sympy.Symbol("alpha", positive=True) > 0, None, "SymPy has decided it already"),
]


@pytest.mark.parametrize(("given_range", "column", "piece"), BAD_RANGES, ids=str)
def test_bad_range(given_range, column, piece):
    with pytest.raises(FysymError) as caught:
        parse_range("alpha", given_range)
    assert piece in str(caught.value)
    assert isinstance(caught.value, ParameterError if column is None else ParseError)
    if isinstance(caught.value, ParseError):
        assert caught.value.position == column
    else:
        assert "write for example 'alpha > 1'" in str(caught.value)


def test_range_contains():
    inside = parse_range("k", "0 < k <= 1/3")
    assert 1 / 3 in inside and Fraction(1, 3) in inside and 1e-300 in inside and 1 / sympy.pi in inside
    for outside in (0, -0.0, 0.34, math.nan, math.inf, sympy.pi, sympy.I, "0.1", None):
        assert outside not in inside
    assert 1e300 in Range() and math.inf not in Range()


ends = st.one_of(st.none(), st.fractions(-3, 3, max_denominator=4))


@st.composite
def ranges(draw):
    low, high = draw(ends), draw(ends)
    return Range(
        S.NegativeInfinity if low is None else exact_number(low),
        S.Infinity if high is None else exact_number(high),
        draw(st.booleans()),
        draw(st.booleans()),
    )


@settings(derandomize=True, deadline=None, max_examples=200)
@given(ranges(), ranges(), st.fractions(-4, 4, max_denominator=4))
def test_intersection_holds_what_both_hold(a, b, x):
    both = a.intersect(b)
    assert (x in both) == (x in a and x in b)
    assert both == b.intersect(a)
    assert not (both.is_empty and x in both)
    assert a.low.is_finite or a.low_open


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (sympy.Float("1e5000"), "too large or too small"),
        (sympy.Float("1e-5000", 30), "too large or too small"),
        (Rational(2) ** 5000, "more than 4000 bits"),
        (sympy.sqrt(-2), "not a real number"),
        (sympy.Symbol("x") + 1, "not a finite number"),
    ],
)
def test_numbers_that_cannot_be_used(value, words):
    with pytest.raises(ParameterError, match=words):
        exact_number(value)


def test_the_name_in_the_text_of_a_range():
    assert name_in_range("0 < alpha and alpha < pi") == "alpha"
    for text in ("a < b", "1 < 2", "pi > 3"):
        with pytest.raises(ParameterError, match="must name one parameter"):
            name_in_range(text)
