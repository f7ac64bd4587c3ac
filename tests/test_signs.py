"""Proofs of sign: each one that is given must be true, and strict only without a zero inside."""

from __future__ import annotations

import mpmath
import pytest
import sympy
from hypothesis import given, settings
from hypothesis import strategies as st
from sympy import Rational, S, atan, cos, exp, log, pi, sin, sqrt, tan, tanh

from fysym import bounds, signs
from fysym.bounds import UNBOUNDED, Bounds, bounds_of
from fysym.deadline import Deadline
from fysym.entropy import VARIABLE as t
from fysym.signs import Proof, prove_sign

B = sympy.Symbol("b", positive=True)


def prove(f, **kwargs):
    return prove_sign(f, t, Deadline(8), **kwargs)


@pytest.mark.parametrize(
    ("f", "sign"),
    [
        (-2 + 0 * t, -1),
        (-1 / t, -1),
        (-1 / t - 1 / (1 - t), -1),
        (-pi * sin(pi * t), -1),
        (-(t ** Rational(-3, 2)), -1),
        (t**2 - t + Rational(1, 3), 1),
        (t**2 - t - Rational(1, 3), -1),
        (-(t ** (B - 1)), -1),
        (-exp(t) * t, -1),
        (log(t), -1),
        (1 - t + log(t), -1),
        (exp(t) - 1 - t, 1),
        (t - sin(t), 1),
        (atan(t) - t, -1),
        (-1 / (1 + t) ** 2, -1),
        (sqrt(t) - t, 1),
        (-3 * sqrt(t) - 1 / sqrt(t), -1),
        (-tanh(t) * (1 - tanh(t) ** 2), -1),
        (cos(t), 1),
        (-2 * tan(t) * (1 + tan(t) ** 2), -1),
    ],
    ids=str,
)
def test_proved(f, sign):
    proof = prove(f)
    assert proof is not None and proof.sign == sign and proof.strict


@pytest.mark.parametrize(
    "f",
    [
        -((t - Rational(1, 2)) ** 2),
        -((3 * t - 1) ** 4),
        sympy.expand(-((2 * t - 1) ** 2) * (t + 1)),
        -((exp(t) - 2) ** 2),
    ],
    ids=str,
)
def test_an_isolated_zero_is_allowed_but_not_strict(f):
    proof = prove(f)
    assert proof is not None and proof.sign == -1 and not proof.strict


@pytest.mark.parametrize(
    "f",
    [
        t - Rational(1, 2),
        (t - Rational(1, 2)) ** 3,
        t**2 - t + Rational(1, 5),
        1 / (t - Rational(1, 3)),
        sin(2 * pi * t),
        cos(2 * t),
        exp(t) - 2,
        log(t) + 1,
        1 / t - 2,
        t - t ** (B),
        sqrt(t) - Rational(9, 10),
        t**2 - Rational(999999, 1000000) ** 2,
        (t - Rational(1, 3)) * (t - Rational(1, 3) - Rational(1, 10**9)),
        tan(3 * t),
    ],
    ids=str,
)
def test_a_change_of_sign_is_never_proved_away(f):
    assert prove(f) is None


def test_a_proof_reads_as_an_argument():
    lines = list(prove(-1 / t - 1 / (1 - t)).lines())
    assert "< 0" in lines[0] and len(lines) > 1


@pytest.mark.parametrize(
    ("f", "low", "high"),
    [
        (t, 0, 1),
        (1 - t, 0, 1),
        (2 * t - 1, -1, 1),
        (exp(t), 1, sympy.E),
        (log(1 + t), 0, log(2)),
        (t**2 - t, -1, 1),
        (sin(pi * t), 0, 1),
        (cos(pi * t), -1, 1),
        (atan(t), 0, pi / 4),
        (1 / (1 + t), Rational(1, 2), 1),
        (1 / t, 1, sympy.oo),
        ((2 * t - 1) ** 2, 0, 1),
        (-(t**3), -1, 0),
        (tan(t), 0, tan(1)),
    ],
    ids=str,
)
def test_ranges(f, low, high):
    found = bounds_of(f, t)
    assert (found.low, found.high) == (low, high)


def test_an_open_end_is_not_attained():
    assert bounds_of(t, t) == Bounds(sympy.Integer(0), sympy.Integer(1), True, True)
    assert not bounds_of(sin(pi * t), t).high_open


def expressions():
    """Sums and products of plain functions of t, without poles in (0, 1)."""
    number = st.fractions(-3, 3, max_denominator=4).map(lambda q: Rational(q.numerator, q.denominator))
    leaf = st.one_of(number, st.just(t), st.just(1 - t), st.just(exp(t)), st.just(log(1 + t)), st.just(cos(2 * t)))
    return st.recursive(
        leaf, lambda e: st.one_of(st.tuples(e, e).map(sum), st.tuples(e, e).map(lambda p: p[0] * p[1])), max_leaves=6
    )


@settings(max_examples=40, deadline=None)
@given(expressions())
def test_bounds_contain_every_value(f):
    f = sympy.sympify(f)
    found = bounds_of(f, t)
    value = sympy.lambdify(t, f, "mpmath")
    low, high = (mpmath.mpf(str(sympy.N(end, 30)).replace("oo", "inf")) for end in (found.low, found.high))
    for k in range(1, 40):
        here = mpmath.mpf(value(mpmath.mpf(k) / 40))
        assert low - mpmath.mpf("1e-12") <= here <= high + mpmath.mpf("1e-12")


@settings(max_examples=25, deadline=None)
@given(expressions())
def test_a_proof_agrees_with_values(f):
    f = sympy.sympify(f)
    proof = prove_sign(f, t, Deadline(1), depth=1)
    if proof is not None:
        value = sympy.lambdify(t, f, "mpmath")
        with mpmath.workdps(30):
            assert all(proof.sign * value(mpmath.mpf(k) / 64) >= 0 for k in range(1, 64))


def test_a_proof_lists_the_covers_under_it():
    class Leaf:
        covers = ("a cover",)

    inner = Proof(t, 1, True, "a product", (Leaf(), Leaf()))
    assert Proof(t, 1, True, "rewritten", (inner,)).covers == ("a cover", "a cover")
    assert prove(t + 1).covers == ()


def test_what_is_too_long_is_not_tried():
    assert prove(sympy.Add(*[t**k for k in range(2, 2 * signs.MAX_OPERATIONS)])) is None


HALF = Rational(1, 2)


@pytest.mark.parametrize(
    ("f", "sign", "strict"),
    [
        ((t - 2) ** 3, -1, True),
        ((t - 2) ** -3, -1, True),
        ((t - HALF) ** 2, 1, False),
        ((t - HALF) ** -2, None, None),
        ((t - HALF) ** 3, None, None),
        ((t - HALF) ** Rational(1, 3), None, None),
        ((t - 2) ** Rational(1, 3), None, None),
        ((t - 2) ** -2, 1, True),
    ],
    ids=str,
)
def test_powers_by_rules(f, sign, strict):
    proof = signs._by_rules(f, t)
    assert (proof and proof.sign, proof and proof.strict) == (sign, strict)


INFINITE = UNBOUNDED


@pytest.mark.parametrize(
    ("f", "expected"),
    [
        (1 / t - log(1 + 1 / t), INFINITE),  # oo - oo
        (sympy.floor(t), INFINITE),
        (sympy.Symbol("a", real=True), INFINITE),
        (t**B, Bounds(S.Zero, S.One, True, True)),
        (t**-B, Bounds(S.One, S.Infinity, True, True)),
        (Rational(2) ** -B, Bounds(S.Zero, S.One, True, True)),
        (Rational(1, 2) ** t, Bounds(HALF, S.One, True, True)),
        (3 ** (B / (1 + B)), Bounds(S.One, S(3), True, True)),
        ((1 + t) ** (t / 2), Bounds(S.One, sympy.sqrt(2), True, True)),
        (B**t, Bounds(S.Zero, S.Infinity, True, True)),
        ((t - HALF) ** B, INFINITE),
        (-log(t) * t, Bounds(S.Zero, sympy.oo, True, True)),
        ((t - HALF) ** -2, INFINITE),
        ((2 * t - 1) ** 3, Bounds(-S.One, S.One, True, True)),
        ((t - Rational(3, 4)) ** 2, Bounds(S.Zero, Rational(9, 16))),
        (log(t) * (t - HALF), INFINITE),
        (sin(t / 2), Bounds(S.Zero, S.One, True)),
        (sin(t - HALF), Bounds(-sin(HALF), sin(HALF), True, True)),
        (sin(t + 3), Bounds(sin(4), sin(3), True, True)),
        (sin(-pi * t), Bounds(-S.One, S.Zero, False, True)),
        (sin(9 * t), Bounds(-S.One, S.One)),
        (sin(1 / t), Bounds(-S.One, S.One)),
        (sympy.acosh(t), INFINITE),
        (sympy.acos(t), Bounds(S.Zero, pi / 2, True, True)),
    ],
    ids=str,
)
def test_bounds_of_parts(f, expected):
    assert bounds_of(f, t) == expected


def test_zero_times_anything_is_bounded_on_one_side():
    zero, anything = Bounds(S.Zero, S.Zero), Bounds(S.Zero, sympy.oo, True, True)
    assert bounds._times(zero, anything) == Bounds(S.Zero, sympy.oo, False, True)
    below = Bounds(-sympy.oo, S.Zero, True, True)
    assert bounds._times(zero, below) == Bounds(-sympy.oo, S.Zero, True, False)


@pytest.mark.parametrize(
    ("f", "sign", "strict"),
    [
        (t**2 - t - 1, -1, True),
        (t**2 - t + Rational(1, 4), 1, False),
        (sqrt(t) - 2, -1, True),
        (1 / (t - 2), -1, True),
        (t * (1 - t), 1, True),
        (t - HALF, None, None),
        (1 / (t - HALF) ** 2, None, None),
        (t ** Rational(1, 61) - 2, None, None),
        (t**pi - 2, None, None),
        (t - sqrt(2) * t**2 - 2, None, None),
        (t ** (bounds.MAX_DEGREE + 1) - 2, None, None),
        (B * t, None, None),
    ],
    ids=str,
)
def test_sturm(f, sign, strict):
    proof = signs.by_sturm(f, t)
    assert (proof and proof.sign, proof and proof.strict) == (sign, strict)


@pytest.mark.parametrize(
    ("f", "expected"),
    [
        (1 / (t - HALF), [t - HALF]),
        (sympy.cot(t) + sympy.csc(t), [sin(t)]),
        (tan(2 * t) + sympy.sec(2 * t), [cos(2 * t)]),
        (sympy.asin(2 * t), [1 - 2 * t]),
        (sympy.erfcinv(2 * t), [2 - 2 * t]),
        (sympy.acosh(2 * t), [2 * t - 1]),
        (sympy.LambertW(-t), [-t + exp(-1)]),
        (sympy.polygamma(1, 2 * t - 1), [2 * t - 1]),
        (sympy.loggamma(t - HALF), [t - HALF]),
        (exp(t) + t**3, []),
    ],
    ids=str,
)
def test_what_must_not_vanish(f, expected):
    assert signs.conditions(f, t) == expected


def test_extremes():
    """log(t) + 1 - t has no zero of its derivative inside; t - 2 log(1 + t) is least at its end 1."""
    proof = signs._by_extremes(t - 2 * log(1 + t), t, Deadline(8))
    assert proof.sign == -1 and proof.note.endswith("none")
    inside = signs._by_extremes(log(1 + t * (1 - t)) - 1, t, Deadline(8))
    assert inside.sign == -1 and inside.note.endswith("0.5")
    assert signs._by_extremes((1 + t) ** 200, t, Deadline(8)) is None
    assert signs._by_extremes(log(1 + sqrt(2) * t) - 3, t, Deadline(8)) is None
    assert signs._by_extremes(log(1 + t) - 1, t, Deadline(0)) is None


def test_a_monotone_function_without_a_limit_proves_nothing():
    assert signs._by_monotonicity(log(t) - t, t, Deadline(0), 1) is None
    assert signs._by_monotonicity(atan(t) - t, t, Deadline(8), 1).sign == -1
    assert signs._by_monotonicity(sin(9 * t), t, Deadline(8), 1) is None


def test_a_step_that_fails_or_takes_too_long_proves_nothing():
    def fails():
        raise ValueError

    assert signs._within(Deadline(5), fails) is None
    assert signs._within(Deadline(0), lambda: 1) is None


def test_an_odd_power_of_what_touches_zero():
    """(sin(pi t) - 1)**3 has a zero at 1/2, and its inverse has a pole there, beside which nothing is proved."""
    proof = prove((sin(pi * t) - 1) ** 3)
    assert proof is not None and proof.sign == -1 and not proof.strict
    assert prove((sin(pi * t) - 1) ** -3) is None


@pytest.mark.parametrize("h", [-log(1 + exp(50 * t)), -log(1 + exp(50 * t - 20)), -log(exp(7 * t) + exp(-14 * t))])
def test_sums_of_exponentials_of_many_times_t_keep_their_sign(h):
    proof = prove_sign(sympy.diff(h, t, 2), t, Deadline(10), depth=0)
    assert proof is not None and proof.sign < 0 and proof.strict


def test_both_branches_of_lambert_lie_on_one_side_of_minus_one():
    lower = sympy.LambertW(-t / sympy.E, -1)
    assert bounds_of(lower, t) == Bounds(-S.Infinity, -S.One, True, True)
    assert bounds_of(sympy.LambertW(t - Rational(1, 10), -1), t) == UNBOUNDED
    assert set(signs.conditions(lower, t)) == {-t * exp(-1) + exp(-1), -t * exp(-1)}
    for h in (-t * lower, t * sympy.LambertW(1 / t)):
        proof = prove_sign(sympy.diff(h, t, 2), t, Deadline(10), depth=0)
        assert proof is not None and proof.sign < 0 and proof.strict


b = sympy.Symbol("b", positive=True)


@pytest.mark.parametrize(
    ("f", "expected"),
    [
        (pi * b * t / (1 + b), Bounds(S.Zero, pi, True, True)),
        ((1 + 3 * b) / (1 + b), Bounds(S.One, S(3), True, True)),
        ((1 - b) / b, Bounds(-S.One, S.Infinity, True, True)),
        (t / (1 + t**2), Bounds(S.Zero, S.Half, True, True)),
        (b / (1 + b**2), Bounds(S.Zero, S.Infinity, True, True)),  # not monotone: each factor for itself
        (b**2 / (1 - b), UNBOUNDED),
        (pi * sympy.Symbol("r", real=True) / (1 + sympy.Symbol("r", real=True)), UNBOUNDED),
    ],
    ids=str,
)
def test_the_range_of_a_fraction_of_one_symbol(f, expected):
    assert bounds_of(f, t) == expected


@pytest.mark.parametrize(
    ("f", "sign"),
    [
        (b + 3 * t**2 - 3 * t + 1, 1),
        (-b * (t**2 - t + 1) - b**2 * (4 * t**2 - 4 * t + 1) - 1, -1),
        (b * (t**2 - t + sympy.Rational(1, 5)) + 1, None),
        (b * (1 - t) - t, None),
        (b * sqrt(2) * t**2 - b * t, None),
    ],
    ids=str,
)
def test_a_polynomial_in_t_and_a_positive_symbol(f, sign):
    proof = prove_sign(f, t, Deadline(10), depth=0)
    assert (proof.sign if proof else None) == sign and (proof is None or proof.strict)


C = sympy.Symbol("c", positive=True)


@pytest.mark.parametrize(
    ("f", "rule"),
    [
        (
            -(B**2) * exp(B * t) / (exp(B * t) + 1) ** 2 - 2 / ((t + 2) ** 2 * log(t + 2) ** 2) - C / sqrt(t + 1),
            "a sum of terms of one sign",
        ),
        (
            C * (-exp(B * t) / (exp(B * t) + 1) + exp(2 * B * t) / (exp(B * t) + 1) ** 2)
            - C / (2 * t + 1) ** Rational(3, 2),
            "a sum of terms of one sign",
        ),
        ((1 + C) * (t**B * B**2 / t**2 + t**B * B / t**2 + sqrt(t)) * (exp(t) - exp(2 * t)), "a product"),
    ],
    ids=str,
)
def test_parts_that_share_no_function_of_t_are_proved_each_for_itself(f, rule):
    proof = prove(f, depth=0)
    assert proof is not None and proof.sign == -1 and proof.strict and proof.rule == rule


def test_terms_that_share_a_function_of_t_stay_together():
    shared = exp(t) / (exp(t) + 1) - exp(2 * t) / (exp(t) + 1) ** 2
    powers = B**2 * t**B / t**2 - B * t**B / t**2
    fractions = 1 / t - t**2 + 3 * t
    groups = signs._groups(shared + powers + fractions, t)
    assert set(groups) == {shared, powers, fractions}


@pytest.mark.parametrize(
    ("f", "sign"),
    [
        (sympy.polygamma(1, B * t + C), 1),
        (sympy.polygamma(2, t), -1),
        (-t * sympy.polygamma(3, 1 + t) * B, -1),
        (sympy.polygamma(1, t - 1), None),
        (sympy.polygamma(0, t), None),
        (sympy.polygamma(B, t), None),
    ],
    ids=str,
)
def test_polygamma_functions_of_positive_arguments(f, sign):
    proof = prove(f, depth=0)
    assert (proof and (proof.sign, proof.strict)) == (sign and (sign, True))


def test_values_of_both_signs_end_the_search(monkeypatch):
    monkeypatch.setattr(signs, "_by_forms", lambda *_: pytest.fail("there is nothing to prove"))
    assert prove(exp(B * t) - 3 * B * cos(t), depth=0) is None
