"""One-sided limits: right where SymPy is wrong, silent where nothing is certain."""

from __future__ import annotations

import pytest
import sympy
from sympy import E, Rational, atan, cos, erfinv, exp, log, oo, pi, sin, sqrt, tan

import fysym
from fysym import boundary, theory
from fysym.boundary import end_limit
from fysym.deadline import Deadline
from fysym.entropy import VARIABLE as t
from fysym.entropy import read

B = sympy.Symbol("b_alpha", positive=True)
POINTS = [{B: sympy.Integer(1)}, {B: Rational(1, 3)}, {B: sympy.Integer(3)}]


def limit(f: sympy.Expr, end: int, points: object = ({},)) -> object:
    return end_limit(f, t, end, Deadline(8), points).value


@pytest.mark.parametrize(
    ("f", "at_0", "at_1"),
    [
        (1 - 2 * t, 1, -1),
        (-log(t) - 1, oo, -1),
        (log((1 - t) / t), oo, -oo),
        (sqrt(1 - t) - t / (2 * sqrt(1 - t)), 1, -oo),
        (1 / sqrt(t) - 3, oo, -2),
        (t * log(t), 0, 0),
        (sin(pi * t) / t, pi, 0),
        ((exp(t) - 1) / t, 1, E - 1),
        (atan(1 / t), pi / 2, pi / 4),
        (-exp(-1 / t), 0, -exp(-1)),
        (cos(pi * t), 1, -1),
        (tan(pi * t / 2), 0, oo),
        (1 / log(t), 0, -oo),
        (log(-log(t)), oo, -oo),
        (sqrt(-log(t)), oo, 0),
        (t ** Rational(1, 10**9), 0, 1),
        (t ** Rational(-1, 10**9), oo, 1),
        (-sqrt(2) * erfinv(2 * t - 1), oo, -oo),
    ],
    ids=str,
)
def test_limits_at_both_ends(f, at_0, at_1):
    for end, expected in ((0, at_0), (1, at_1)):
        value = limit(f, end)
        assert value == expected or sympy.simplify(value - expected) == 0


@pytest.mark.parametrize(
    ("f", "value"),
    [
        ((1 - (1 + B) * t**B) / (B * (1 + B)), 1 / (B * (1 + B))),
        (t**B * log(t), 0),
        (t ** (-B), oo),
        (-(t ** (-B)) * log(t) ** 2, -oo),
        ((1 + t) ** B, 1),
        ((1 - t**-B) / (1 - 2**B), oo),
        ((1 - 2**-B) * t ** (2 ** (-B) - 1), oo),
    ],
    ids=str,
)
def test_a_positive_symbolic_exponent(f, value):
    found = limit(f, 0, POINTS)
    assert found == value or sympy.simplify(found - value) == 0


def test_an_exponent_of_unknown_sign_is_left_undetermined():
    """t^(b-1) tends to oo, 1 or 0 as b is below, at or above 1: no single answer is right."""
    assert limit(t ** (B - 1), 0, [{B: Rational(1, 3)}, {B: sympy.Integer(1)}, {B: sympy.Integer(3)}]) is None


def test_an_oscillation_has_no_limit():
    assert limit(sin(1 / t), 0) is None


def test_an_exact_limit_is_proved_and_says_where():
    found = end_limit(1 - 2 * t, t, 1, Deadline(5))
    assert found.status == "proved" and "1-" in found.evidence


def test_no_time_means_undetermined_not_wrong():
    found = end_limit(tan(sin(t)) ** 3 / t, t, 0, Deadline(0))
    assert found.value is None and found.status == "sampled"


E_ = sympy.Dummy("e", positive=True)


def test_powers_are_added_up_before_their_signs_are_read():
    assert boundary._by_powers(E_**2 + 3 + B * E_**B, E_) == 3
    assert boundary._by_powers(E_**B - B * E_**-B, E_) == -oo
    assert boundary._by_powers(E_**-2 - E_**-1, E_) is sympy.nan  # two growing terms of unlike sign
    assert boundary._by_powers(E_ ** (B - 1), E_) is sympy.nan
    assert boundary._by_powers(sin(E_), E_) is None


def test_a_sum_with_a_term_that_oscillates_has_no_limit_by_terms():
    assert boundary._by_terms(sin(1 / E_) + E_, E_) is None
    assert boundary._by_terms(sin(E_) / E_ + E_ * log(E_), E_) == 1


def test_values_that_are_no_limit():
    x = sympy.Symbol("x", real=True, nonzero=True)
    for value in (sympy.nan, sympy.zoo, oo * sympy.I, oo * x, x + oo * x, sympy.AccumBounds(-1, 1)):
        assert not boundary._usable(value)
    assert boundary._usable(-oo) and boundary._usable(pi / 2)


def test_a_claim_is_not_believed_without_time_or_values():
    assert boundary._agrees(E_ + 1, E_, sympy.S.One, [{}], Deadline(5))
    assert not boundary._agrees(E_ + 1, E_, sympy.S.One, [{}], Deadline(0))
    assert not boundary._agrees(log(-E_), E_, sympy.S.Zero, [{}], Deadline(5))
    assert boundary._estimate(log(-E_), E_, Deadline(5)) is None
    assert boundary._estimate(E_ + 1, E_, Deadline(0)) is None


@pytest.mark.parametrize(
    ("f", "value"),
    [
        (sin(t) / t, sympy.Float(1, 25)),
        ((1 - cos(t)) / t, 0),
        (exp(1 / t) * cos(t), oo),
        (-exp(1 / t) * cos(t), -oo),
        (sin(1 / t) * cos(t), None),
    ],
    ids=str,
)
def test_where_sympy_fails_a_limit_is_estimated_from_values(f, value, monkeypatch):
    def fails(*_):
        raise NotImplementedError

    monkeypatch.setattr(sympy, "limit", fails)
    found = end_limit(f, t, 0, Deadline(8))
    assert found.value == value and found.status == "sampled"
    assert ("estimated" if value is not None else "could not be determined") in found.evidence


def test_an_estimate_does_not_go_where_no_precision_tells_a_number_from_1() -> None:
    h = "180*log(-t*log(3) + log(2*t + 1)) + 100*log(-5*t*log(t)/2 - 5*(1 - t)*log(1 - t)/2 + 1)"
    entropy = read(h, None, Deadline(60))
    assert [limit.value for limit in theory.end_slopes(entropy, Deadline(60))] == [oo, -oo]
    e = sympy.Dummy("e", positive=True)
    assert all(value > 0 for value in boundary._ladder(1 / sympy.log(1 + e), e))
    assert len(boundary._ladder(e ** sympy.Rational(1, 10**9) * (1 - e), e)) > len(boundary.NEAR)


def test_a_limit_that_looks_settled_at_powers_of_ten_is_not_believed() -> None:
    limit = end_limit(sympy.cos(sympy.pi / t), t, 0, Deadline(5))
    assert limit.value is None
    assert end_limit(sympy.cos(sympy.pi * t), t, sympy.oo, Deadline(5)).value is None
    assert end_limit(sympy.atan(t), t, sympy.oo, Deadline(5)).value == sympy.pi / 2
    assert end_limit(sympy.exp(t) * t, t, -sympy.oo, Deadline(5)).value == 0


@pytest.mark.parametrize(
    ("f", "at_0", "at_1"),
    [
        (t * sympy.LambertW(1 / t), oo, None),
        (t * sympy.LambertW(t**-2), oo, None),
        (-t * sympy.LambertW(-t / E, -1), oo, -oo),
        (sympy.LambertW(-t / E), -1 / E, -oo),
    ],
)
def test_slopes_of_lambert_functions_at_infinity_and_at_the_branch_point_are_exact(f, at_0, at_1) -> None:
    for end, value in ((0, at_0), (1, at_1)):
        limit = end_limit(sympy.diff(f, t), t, end, Deadline(10))
        assert limit.status == "proved" and (value is None or limit.value == value)


@pytest.mark.parametrize(
    ("f", "value"),
    [
        (1 / (t ** Rational(1, 10) + Rational(1, 10**9)), 10**9),
        (1 / (t + Rational(1, 10**100)), 10**100),
        (1 / sqrt(t + Rational(1, 10**200)), 10**100),
        (log(t + Rational(1, 10**200)), -200 * log(10)),
        (atan(10**90 * t), 0),
        (t / (t + Rational(1, 10**100)), 0),
        (t / (t - Rational(1, 10**100)), 0),
        (exp(-1 / (t + Rational(1, 10**30))), exp(-(10**30))),
        ((t + Rational(1, 10**90)) ** (t - 2), 10**180),
        (sin(10**100 * t) / t, 10**100),
        ((exp(10**100 * t) - 1) / t, 10**100),
        (tan(10**100 * t) / t, 10**100),
        (1 / (t**2 + B / 10**100), 10**100 / B),
    ],
    ids=str,
)
def test_an_exact_limit_that_shows_only_next_to_the_end_is_proved(f, value):
    """From 10^-80 on outwards each looks as if it had another limit, or none."""
    limits = [end_limit(f, t, 0, Deadline(20), POINTS if f.has(B) else ({},))]
    if not f.has(B):
        limits.append(end_limit(f.subs(t, 1 - t), t, 1, Deadline(20)))
    for found in limits:
        assert found.status == "proved" and sympy.simplify(found.value - value) == 0


@pytest.mark.parametrize(
    "f",
    [1 / E_, log(E_), (E_ - 1) ** Rational(1, 2), tan(E_), (-E_) ** Rational(1, 2), E_**E_, sin(1 / E_) * E_],
    ids=str,
)
def test_only_parts_that_are_known_to_be_continuous_count_as_such(f):
    assert not boundary._is_continuous(f, E_, Deadline(8))
    assert not boundary._is_continuous(f + 1, E_, Deadline(8))
    assert not boundary._is_continuous(E_ + 1, E_, Deadline(0))


@pytest.mark.parametrize("value", [10**2000, None], ids=["finite", "none"])
def test_growing_values_are_no_limit_where_an_exact_one_is_finite(value, monkeypatch):
    """1/(t + 10^-2000) grows at all distances that are looked at; so does 1/t, of which nothing else is known."""
    exact = None if value is None else sympy.Integer(value)
    monkeypatch.setattr(boundary, "_is_continuous", lambda *_: False)
    for name in ("_by_substitution", "_by_powers", "_by_lambert", "_by_terms", "_by_limit"):
        monkeypatch.setattr(boundary, name, lambda *_: exact)
    found = end_limit(1 / (t + (0 if value is None else Rational(1, value))), t, 0, Deadline(20))
    assert (found.value, found.status) == (oo if value is None else None, "sampled")


def test_values_that_settle_too_far_from_the_end_are_no_estimate():
    """t/(t + 10^-100) is 1 at 10^-80 and 0 at 0."""
    assert boundary._estimate(E_ / (E_ + Rational(1, 10**100)), E_, Deadline(20)) is None
    assert boundary._estimate(1 / (E_ + Rational(1, 10**100)), E_, Deadline(20)) is None


@pytest.mark.parametrize(("h", "margin"), [("t/(t + 10**-100)", 10**100), ("atan(10**90*t)", 10**90)])
def test_an_entropy_that_is_steep_only_next_to_0_has_a_margin(h, margin):
    reg = fysym.compile(h)
    assert (reg.sparsity, reg.fact("margin").status) == ("full", "proved")
    assert abs(reg.margin / margin - 1) < 1e-12


def test_values_beyond_a_wrong_finite_limit_refute_it():
    """SymPy's limit of the slope of W(-t^2/E) at 1, a branch point, is -1: it falls without bound."""
    limit = fysym.compile("LambertW(-t**2/E)").slopes[1]
    assert limit == -sympy.oo
    x = sympy.Symbol("x", positive=True)
    kept = end_limit(x ** sympy.Rational(-1, 100) / (1 + 10**-20 * x ** sympy.Rational(-1, 100)), x, 0, Deadline(10))
    assert kept.value in (10**20, None)  # the values have come to 10^13 only, as far as one looks
