"""The shape of q, strong concavity and differentiability, where each is decided."""

from __future__ import annotations

import dataclasses

import pytest
import sympy
from sympy import Rational, oo

import fysym
from fysym import search, smoothness
from fysym.boundary import Limit
from fysym.concavity import decide
from fysym.deadline import Deadline
from fysym.entropy import VARIABLE, read
from fysym.facts import Fact, Theory

R = Rational


def test_the_least_curvature_among_critical_values():
    ends = [Limit(R(1), "proved", ""), Limit(R(1), "proved", "")]
    curvature = (2 * VARIABLE - 1) ** 2 + R(1, 10)
    assert smoothness._critical_values(curvature, VARIABLE, ends, Deadline(60)) == R(1, 10)
    assert smoothness._critical_values(curvature, VARIABLE, ends, Deadline(0)) is None
    assert smoothness._critical_values((1 + VARIABLE) ** 100, VARIABLE, ends, Deadline(60)) is None
    assert smoothness._critical_values(sympy.sqrt(2) * VARIABLE**3 - VARIABLE, VARIABLE, ends, Deadline(60)) is None
    assert smoothness._critical_values(curvature, VARIABLE, ends[:1], Deadline(60)) is None
    assert smoothness._critical_values(sympy.exp(VARIABLE), VARIABLE, ends, Deadline(60)) is None


def test_a_numeric_infimum_needs_time_and_agreement(monkeypatch):
    entropy = read("t*(1-t)", None, Deadline(8))
    fact = smoothness._numeric_infimum(entropy, Deadline(20))
    assert abs(fact.value - 2) < 1e-6 and fact.status == "sampled"
    assert smoothness._numeric_infimum(entropy, Deadline(0)) is None
    monkeypatch.setattr(search, "lower_bound_and_point", lambda *_, **__: (1.0, 2.0, 0.5))
    assert smoothness._numeric_infimum(entropy, Deadline(20)) is None


def test_the_shape_is_left_open_where_nothing_proves_it(monkeypatch):
    entropy = read("t - t**3", None, Deadline(8))
    for name in ("prove_sign", "certified_sign"):
        monkeypatch.setattr(smoothness, name, lambda *_, **__: None)
    found = Theory({})
    smoothness._inverse_shape(found, entropy, Deadline(8))
    assert found.facts == {} and found.proofs == {}


def test_a_sign_that_changes_over_a_family_is_not_proved(monkeypatch):
    """The third derivative of (t^a - t^b)/(b - a) is positive for b < 2 and changes its sign for b > 2."""
    entropy = read("(t**a - t**b)/(b - a)", {"a": "0 < a < 1", "b": "b > 1"}, Deadline(8))
    for name in ("prove_sign", "certified_sign"):
        monkeypatch.setattr(smoothness, name, lambda *_, **__: pytest.fail("a proof was tried"))
    found = Theory({})
    smoothness._inverse_shape(found, entropy, Deadline(8))
    assert found.facts == {}


def test_an_unproved_absence_of_zeros_leaves_differentiability_open():
    entropy = read("-t*log(t)", None, Deadline(20))
    verdict = decide(entropy, Deadline(20))
    found = Theory({"strictly_concave": verdict.fact, "slope_at_0": Fact("slope_at_0", oo, "proved", "")})
    limits = (Limit(R(2), "proved", ""), Limit(R(2), "proved", ""))
    smoothness._differentiability(found, entropy, dataclasses.replace(verdict, strict=False), limits, Deadline(10))
    assert "not that it has no zero" in found.undetermined["twice_differentiable"]


@pytest.mark.parametrize("h", ["sin(pi*t) + sin(3*pi*t)/27", "sin(pi*t) - sin(3*pi*t)/100"])
def test_a_curvature_that_vanishes_at_an_end_has_the_infimum_zero(h):
    reg = fysym.compile(h)
    assert reg.strong_concavity == 0 and reg.smoothness == sympy.oo


@pytest.mark.parametrize(
    ("h", "domain", "expected"),
    [
        ("-t*log(t)", "simplex", True),
        ("-t*log(t)", "cube", False),  # min(exp(theta - 1), 1) has a corner at 1
        ("-t*log(t)", fysym.budget(2), False),
        ("-t*log(t) - (1-t)*log(1-t)", "cube", True),
        ("-t**4", "reals", False),
        ("-t**4 - t**2", "reals", True),
        ("-Abs(t)**(4/3)", "reals", True),  # a multiple of theta**3
        ("-Abs(t)**3 - t**2", "reals", True),
        ("-t**2 - Abs(t)", "reals", False),
        ("-t*log(t) - Abs(t - 1/2)**3", "simplex", True),
        ("-t*log(t) - Abs(t - 1/2)", "simplex", False),
        ("-t*log(t) - Max(t - 1/2, 0)**2", "simplex", False),
        ("-t*log(t) - Max(t - 1/2, 0)**4", "simplex", True),
        ("t*(1-t) if t < 1/2 else 1/4 - (t - 1/2)**2", "simplex", False),
        ("-(t**3/6 - 3*t**2/4 + 9/16*(t*log(t) - t))", "simplex", None),  # h'' = 0 at 3/4, where one coordinate may be
        ("-(t**3/6 - t**2/4 + 1/16*(t*log(t) - t))", "simplex", False),  # h'' = 0 at 1/4, where two may be
    ],
)
def test_twice_differentiable_is_what_differences_show(h, domain, expected):
    reg = fysym.compile(h, domain=domain)
    assert reg.twice_differentiable == expected
    if expected is not None:
        assert reg.fact("twice_differentiable").status == "proved"


def test_a_family_whose_pieces_meet_smoothly_for_some_members_says_nothing():
    family = fysym.compile("-Abs(t)**a/a", params={"a": "a > 11/10"}, domain="reals")
    assert family.twice_differentiable is None
    assert family.bind(a=2).twice_differentiable is True


def test_a_zero_at_an_end_of_the_range_is_not_that_of_the_family():
    """h'' = -(1-2t)^2/(t(1-t)) - 2c vanishes for c = 0 only."""
    family = fysym.compile("-t*log(t)-(1-t)*log(1-t)+2*t**2-c*t**2", params={"c": "c >= 0"})
    assert family.fact("twice_differentiable") is None
    assert family.bind(c=1).twice_differentiable and not family.bind(c=0).twice_differentiable
