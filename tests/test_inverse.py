"""Closed forms of (-h')^{-1}: right on the whole interval or not offered at all."""

from __future__ import annotations

import mpmath
import pytest
import sympy
from sympy import LambertW, exp, log, pi, sqrt, tan

import fysym

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
