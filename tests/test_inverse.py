"""Closed forms of (-h')^{-1}: right on the whole interval or not offered at all."""

from __future__ import annotations

import mpmath
import pytest
import sympy
from sympy import LambertW, exp, log, pi, sqrt, tan

import fysym
from fysym import inverse
from fysym.deadline import Deadline
from fysym.entropy import SLOPE, VARIABLE, read

t, s = sympy.symbols("t s", real=True)


@pytest.mark.parametrize(
    ("h", "q"),
    [
        ("t*(1-t)/2", s + sympy.Rational(1, 2)),
        ("-t*log(t)", exp(s - 1)),
        ("4*(sqrt(t) - t)", 4 / (4 - s) ** 2),
        ("-t*log(t) - (1-t)*log(1-t)", 1 / (1 + exp(-s))),
        ("(t - t**(3/2))*4/3", (s / 2 + sympy.Rational(2, 3)) ** 2),
        ("(t - t**3)/6", sqrt(2 * s + sympy.Rational(1, 3))),
        ("sin(pi*t)/pi", sympy.acos(-s) / pi),
        ("log(1 + t) - t*log(2)", 1 / (log(2) - s) - 1),
        ("1 - exp(t) + t*(E - 1)", log(s + sympy.E - 1)),
        ("-t*log(t) + t*(1-t)/2", LambertW(exp(s - sympy.Rational(1, 2)))),
        ("sqrt(t*(1-t))", (1 + s / sqrt(1 + s**2)) / 2),
        ("log(t)", -1 / s),
    ],
    ids=str,
)
def test_the_closed_form_inverts_the_slope(h, q):
    """At nine points, to 30 digits: the form found returns t, as the one written by hand does."""
    reg = fysym.compile(h)
    assert reg.inverse is not None
    slope = sympy.lambdify(reg.variable, -reg.dh, "mpmath")
    found = sympy.lambdify(sympy.Symbol("s"), reg.inverse, "mpmath")
    by_hand = sympy.lambdify(s, q, "mpmath")
    with mpmath.workdps(40):
        for k in range(1, 10):
            p = mpmath.mpf(k) / 10
            assert abs(found(slope(p)) - p) < mpmath.mpf(10) ** -30
            assert abs(found(slope(p)) - by_hand(slope(p))) < mpmath.mpf(10) ** -30


def test_the_lower_lambert_branch():
    """h' = t log t - t + c, h'' = log t < 0: the upper branch gives 2.16 where the truth is 0.1867."""
    reg = fysym.compile("t**2*log(t)/2 - 3*t**2/4")
    slope = sympy.lambdify(reg.variable, -reg.dh, "mpmath")
    p = mpmath.mpf("0.1867")
    if reg.inverse is not None:
        found = sympy.lambdify(sympy.Symbol("s"), reg.inverse, "mpmath")
        assert abs(found(slope(p)) - p) < 1e-12
    theta = [float(slope(p)), float(slope(1 - p))]
    assert abs(reg.predict(theta)[0] - 0.1867) < 1e-13


@pytest.mark.parametrize(
    "h",
    ["t*(1-t) + sin(pi*t)/pi", "t - t**(6/5)*5/6 - t**2/2", "-t*log(t) + sqrt(t) + atan(t)", "t*(1-t) + min(t, 1-t)"],
)
def test_where_there_is_none_the_inverse_is_numeric(h):
    reg = fysym.compile(h)
    assert reg.inverse is None
    p = reg.predict([0.3, 0.1, -0.2])
    assert abs(p.sum() - 1) < 1e-14 and p[0] > p[1] > p[2] >= 0


def test_the_status_is_proved_only_for_an_identity():
    assert fysym.compile("-t*log(t)").fact("inverse").status == "proved"


@pytest.mark.parametrize("name", ["s", "e", "x", "b_a", "c"])
def test_a_parameter_may_have_any_name(name):
    """h = c t (1-t): q(s) = (s + c)/(2 c), here at c = 3 and t = 1/5, where -h' = -9/5."""
    family = fysym.compile(f"{name}*t*(1-t)", params={name: f"{name} > 0"})
    assert family.slopes[0] == sympy.Symbol(name)
    bound = family.bind(**{name: 3})
    assert bound.inverse.subs(sympy.Symbol("s"), sympy.Rational(-9, 5)) == sympy.Rational(1, 5)


def test_a_family_that_has_a_parameter_called_s_keeps_it_apart_from_the_slope():
    """q(s) = (s + c)/(2 c) has two symbols; with c written as s it cannot be shown with one."""
    family = fysym.compile("s*t*(1-t)", params={"s": "s > 0"})
    shown = family.inverse
    assert shown is None or len(shown.free_symbols) == 2


def test_a_family_has_its_inverse_in_its_own_parameters():
    family = fysym.compile("(t - t**alpha)/(alpha*(alpha - 1))", params={"alpha": "alpha > 1"})
    alpha = sympy.Symbol("alpha")
    at = family.inverse.subs({alpha: 3, sympy.Symbol("s"): sympy.Rational(1, 3)})
    assert sympy.simplify(at - 1) == 0


def test_tan_is_inverted_on_the_right_branch():
    reg = fysym.compile(sympy.log(sympy.cos(t)))
    assert reg.inverse is not None
    p = sympy.Rational(1, 4)
    c = log(sympy.cos(1))
    assert abs(float(reg.inverse.subs(sympy.Symbol("s"), tan(p) + c)) - 0.25) < 1e-15


# --- the parts of the search for a closed form ----------------------------------------------------------

x = VARIABLE


def solutions(f, value):
    """Real numbers among what peeling f(t) = value gives."""
    found = [sympy.N(c.subs(SLOPE, value)) for c in inverse._peel(f, SLOPE, x, 8)]
    return [float(c) for c in found if c.is_real]


@pytest.mark.parametrize(
    "f", [2**x, x**3 - 1, x**2 + 5, exp(2 * x) + 3, 3 * log(x) + 2 * x, sympy.tanh(x), 1 / (1 + x), exp(x**2)]
)
def test_peeling_returns_the_argument(f):
    at = sympy.Rational(3, 7)
    assert any(abs(c - float(at)) < 1e-12 for c in solutions(f, f.subs(x, at)))


def test_peeling_ends():
    assert list(inverse._peel(exp(x), SLOPE, x, 0)) == []
    assert list(inverse._peel(sympy.Integer(3), SLOPE, x, 8)) == []
    assert list(inverse._peel(x, SLOPE, x, 0)) == [SLOPE]


def test_both_branches_of_lambert_are_offered():
    found = list(inverse._solved(x * exp(x), x))
    assert LambertW(SLOPE) in found and LambertW(SLOPE, -1) in found
    assert list(inverse._solved((1 + x) ** 200, x)) == []


def test_what_is_no_inverse_is_not_valid():
    entropy = read("-t*log(t)", None, Deadline(8))
    slope = log(x) + 1
    assert inverse._valid(entropy, slope, exp(SLOPE - 1))
    for candidate in (sympy.Integer(1), sympy.nan, x + SLOPE, exp(SLOPE), exp(SLOPE - 1) * (1 + exp(-SLOPE) / 10**20)):
        assert not inverse._valid(entropy, slope, candidate)


def test_long_and_late_candidates_are_left():
    entropy = read("-t*log(t)", None, Deadline(8))
    slope = log(x) + 1
    long = sum(sympy.sin(k * SLOPE) for k in range(1, 80))
    assert inverse._first_valid(entropy, slope, [exp(SLOPE - 1), long], Deadline(60)) == exp(SLOPE - 1)
    assert inverse._first_valid(entropy, slope, [long], Deadline(60)) is None
    assert inverse._first_valid(entropy, slope, [exp(SLOPE - 1)], Deadline(0)) is None


def test_a_rewrite_that_fails_or_spoils_is_not_presented(monkeypatch):
    def fails(_):
        raise NotImplementedError

    entropy = read("-t*log(t)", None, Deadline(8))
    monkeypatch.setattr(sympy, "factor_terms", fails)
    monkeypatch.setattr(sympy, "powsimp", lambda _: SLOPE)  # shorter, and wrong
    assert inverse._present(entropy, log(x) + 1, exp(SLOPE - 1)) == exp(SLOPE - 1)
    monkeypatch.setattr(inverse, "_valid", lambda *_: False)
    assert inverse._present(entropy, log(x) + 1, exp(SLOPE - 1)) == exp(SLOPE - 1)


def test_an_identity_is_not_claimed_without_time_or_of_awkward_powers():
    entropy = read("-t*log(t)", None, Deadline(8))
    assert inverse._is_identity(entropy, log(x) + 1, exp(SLOPE - 1), Deadline(60))
    assert not inverse._is_identity(entropy, log(x) + 1, exp(SLOPE - 1), Deadline(0))
    assert not inverse._is_identity(entropy, x**1000, SLOPE ** sympy.Rational(1, 1000), Deadline(60))


@pytest.mark.parametrize(
    ("h", "params"),
    [
        ("-t*log(t) - (1-t)*log(1-t)", {}),
        ("(t + 1)*log((t + 1)/2) - t*log(t)", {}),
        ("-t*log(t) + t*(1-t)/2", {}),
        ("-t*log(t) + 3*sqrt(t)", {}),
        ("c*t*(1-t) - d*t*log(t)", {"c": "c > 0", "d": "d > 0"}),
        ("(t**(1-k) - t**(1+k))/(2*k)", {"k": "0 < k < 1"}),
    ],
    ids=str,
)
def test_an_identity_is_proved_without_simplify(h, params, monkeypatch):
    """By merging logarithms, and log(W(x)) = log(x) - W(x)."""
    monkeypatch.setattr(inverse, "simplified", lambda _: pytest.fail("simplify was called"))
    entropy = read(h, params, Deadline(60))
    _, fact = inverse.find(entropy, -sympy.diff(entropy.h, entropy.t), Deadline(60))
    assert fact.status == "proved"


def test_no_identity_where_there_is_none():
    for expr in (log(1 + SLOPE**2) - log(2 + SLOPE**2), LambertW(exp(SLOPE)) + log(LambertW(exp(SLOPE))) - SLOPE + 1):
        assert not inverse._vanishes(expr)


def test_nothing_is_rewritten_after_a_valid_candidate(monkeypatch):
    for name in ("_combine", "_cancelled", "_solved"):
        monkeypatch.setattr(inverse, name, lambda *_: pytest.fail("another form was worked out"))
    entropy = read("-t*log(t)", None, Deadline(60))
    assert inverse.find(entropy, log(VARIABLE) + 1, Deadline(60))[0] == exp(SLOPE - 1)


def test_a_ratio_of_exponents_is_an_integer_for_all_parameters_or_none():
    b, c = sympy.symbols("b c", positive=True)
    assert inverse._integer(-(1 + b) / (b + 1)) == -1 and inverse._integer((2 * b * c + 2 * c) / (c * (1 + b))) == 2
    assert inverse._integer(b / c) is None and inverse._integer(b * 97 / 89) is None
    assert inverse._integer(sympy.Rational(3, 2)) is None


def test_the_inverse_of_tsallis_is_proved_over_any_range():
    for span in ("alpha > 1", "1 < alpha <= 2", "0 < alpha < 1"):
        family = fysym.compile("(t - t**alpha)/(alpha*(alpha - 1))", params={"alpha": span}, deadline=60)
        fact = family.fact("inverse")
        assert fact is not None and fact.status == "proved"


@pytest.mark.parametrize(
    ("h", "ranges", "holds"),
    [
        ("t*(1-t)*(1+c*t)", {"c": "-1/2 <= c <= 1"}, False),  # 0 at c = 1, where it is sqrt(3*s + 3)/3
        ("(t-t**a)/(a*(a-1))", {"a": "a >= 1"}, False),  # Shannon's is another form
        ("(t-t**a)/(a*(a-1))", {"a": "a >= 3/2"}, True),
    ],
)
def test_the_inverse_of_a_family_holds_at_the_closed_ends_of_its_ranges(h, ranges, holds):
    family = fysym.compile(h, params=ranges)
    assert (family.inverse is not None) == holds
    assert holds or "does not hold at" in family.fact("inverse").evidence
