"""Facts derived by hand: slopes, margin, sparsity, curvature, smoothness."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
import sympy
from sympy import E, Rational, log, oo, pi, tan

import fysym
from fysym import theory
from fysym.boundary import Limit
from fysym.concavity import decide
from fysym.deadline import Deadline
from fysym.entropy import read
from fysym.facts import Fact, Theory

R = Rational
# h, slopes, margin, sparsity, inf of -h'', differentiable everywhere, essentially smooth
TABLE = [
    ("t*sqrt(1-t)", (1, -oo), oo, "faces", 1, False, False),
    ("sqrt(t*(1-t))", (oo, -oo), oo, "dense", 2, True, True),
    ("-(t-1/2)**4", (R(1, 2), -R(1, 2)), 1, "full", 0, False, False),
    ("t - t**4", (1, -3), 4, "full", 0, False, False),
    ("t - t**(3/2)", (1, -R(1, 2)), R(3, 2), "full", R(3, 4), True, False),
    ("log(t)", (oo, 1), oo, "dense", 1, True, True),
    ("log(t) + log(1-t)", (oo, -oo), oo, "dense", 8, True, True),
    ("-1/t", (oo, 1), oo, "dense", 2, True, True),
    ("sqrt(t)", (oo, -R(1, 2)), oo, "dense", R(1, 4), True, True),
    ("-asin(t)", (pi / 2 - 1, -oo), oo, "faces", 0, False, False),
    ("sqrt(1-t**2)", (1, -oo), oo, "faces", 1, False, False),
    ("-tan(t)", (tan(1) - 1, -1 - tan(1) ** 2 + tan(1)), tan(1) ** 2, "full", 0, False, False),
    ("log(cos(t))", (-log(sympy.cos(1)), -tan(1) - log(sympy.cos(1))), tan(1), "full", 1, False, False),
    ("-exp(-t*(1-t))", (1, -1), 2, "full", None, False, False),
    ("t/(1+t)", (R(1, 2), -R(1, 4)), R(3, 4), "full", R(1, 4), False, False),
    ("t*(1-t) + min(t, 1-t)", (2, -2), 4, "full", 2, False, False),
    ("sqrt(t) + min(t, 1-t)", (oo, -R(3, 2)), oo, "dense", R(1, 4), False, True),
    ("t*(1-t) + abs(t-2)", (1, -1), 2, "full", 2, False, False),
    ("t*(1-t) - max(0, t-1/2)**2", (R(5, 4), -R(7, 4)), 3, "full", 2, False, False),
    ("t*(1-t)*(2-t)", (2, -1), 3, "full", 0, False, False),
    ("-t**2*(3-t)", (2, -1), 3, "full", 0, False, False),
]


def same(found: sympy.Expr, expected: object) -> bool:
    if found == expected:
        return True
    if sympy.sympify(expected).is_infinite or found.is_infinite:
        return False
    return abs(sympy.N(found - expected, 30)) < (1e-6 if found.atoms(sympy.Float) else 1e-25)


@pytest.mark.parametrize(("h", "slopes", "margin", "sparsity", "strong", "smooth", "essentially"), TABLE)
def test_facts(h, slopes, margin, sparsity, strong, smooth, essentially):
    reg = fysym.compile(h)
    assert all(same(found, expected) for found, expected in zip(reg.slopes, slopes, strict=True)), reg.slopes
    assert same(reg.margin, margin)
    assert reg.sparsity == sparsity
    if strong is not None:
        assert same(reg.strong_concavity, strong)
        assert same(reg.smoothness, oo if strong == 0 else 1 / sympy.sympify(strong))
    assert reg.twice_differentiable is smooth
    assert reg.essentially_smooth is essentially


@pytest.mark.parametrize(
    ("curvature", "least"),
    [
        ("(2*t**2 - 2*t + 1)**2", R(1, 4)),
        ("(t**2 - t + 1)**2", R(9, 16)),
        ("(3*t**2 - 3*t + 1)**2", R(1, 16)),
        ("(2*t - 1)**2", 0),
        ("(2*t - 1)**2 + 1/10", R(1, 10)),
        ("(t + 1)**3", 1),
        ("6 - 5*t", 1),
    ],
)
def test_strong_concavity_of_a_chosen_curvature(curvature, least):
    """h is made by integrating -h'' twice, so its infimum is known."""
    t = sympy.Symbol("t")
    h = -sympy.integrate(sympy.integrate(sympy.sympify(curvature, locals={"t": t}, rational=True), t), t)
    reg = fysym.compile(sympy.expand(h))
    assert same(reg.strong_concavity, least)


def test_an_even_power_without_a_zero_is_bounded_away_from_zero():
    """-h'' = (e^t - 2t)^2, least at t = log 2: (2 - 2 log 2)^2."""
    reg = fysym.compile("-exp(2*t)/4 + 4*(t - 2)*exp(t) - t**4/3")
    assert abs(float(reg.strong_concavity) - float((2 - 2 * log(2)) ** 2)) < 1e-6


def test_the_infimum_inside_of_an_abe_entropy():
    """q = 3: -h'' = (3/8)(2/9 t^(-5/3) + 6 t), least where t^(8/3) = 5/81."""
    reg = fysym.compile("(t**(1/3) - t**3)*3/8")
    at = (mpmath.mpf(5) / 81) ** (mpmath.mpf(3) / 8)
    least = (mpmath.mpf(2) / 9 * at ** (-mpmath.mpf(5) / 3) + 6 * at) * 3 / 8
    assert abs(float(reg.strong_concavity) - float(least)) < 1e-6


@pytest.mark.parametrize("scale", [R(1, 1000), 7, 10**6])
def test_scaling_h_scales_margin_and_curvature(scale):
    t = sympy.Symbol("t")
    reg = fysym.compile(scale * t * (1 - t) / 2)
    assert (reg.margin, reg.strong_concavity, reg.smoothness) == (scale, scale, 1 / sympy.sympify(scale))


@pytest.mark.parametrize("term", ["5*t", "-3*t + 2", "t/7 - 1", "1000000*t"])
def test_an_affine_term_changes_nothing(term):
    plain, shifted = fysym.compile("-exp(t)"), fysym.compile(f"-exp(t) + {term}")
    assert sympy.simplify(plain.h - shifted.h) == 0
    assert shifted.slopes[0] == E - 2 or sympy.simplify(shifted.slopes[0] - (E - 2)) == 0
    assert sympy.simplify(shifted.margin - (E - 1)) == 0


def test_an_infinite_value_is_told():
    reg = fysym.compile("log(t)")
    assert reg.fact("value_at_0").value == -oo
    assert "+inf" in reg.report()


def test_a_family_tells_only_what_holds_over_its_whole_range():
    """-h'' = t^(alpha-2): its infimum is 1 up to alpha = 2 and 0 beyond."""
    wide = fysym.compile("(t - t**alpha)/(alpha*(alpha - 1))", params={"alpha": "alpha > 1"})
    assert wide.strong_concavity is None and wide.twice_differentiable is None
    for name in ("strong_concavity", "smoothness"):
        assert "infimum of -h'' over (0, 1) is not determined" in wide.derivation.theory.undetermined[name]
    low = fysym.compile("(t - t**alpha)/(alpha*(alpha - 1))", params={"alpha": "1 < alpha < 2"})
    assert low.strong_concavity == 1 and low.twice_differentiable is True
    high = fysym.compile("(t - t**alpha)/(alpha*(alpha - 1))", params={"alpha": "alpha > 2"})
    assert high.strong_concavity == 0 and high.twice_differentiable is False


@pytest.mark.parametrize(
    ("family", "params", "face"),
    [
        ("(t - t**alpha)/(alpha*(alpha - 1))", {"alpha": "alpha >= 1"}, {"alpha": 1}),
        ("(t**a - t**2)/(2 - a)", {"a": "0 < a <= 1"}, {"a": 1}),
        ("sqrt(t)*c + t*(1-t)", {"c": "c >= 0"}, {"c": 0}),
    ],
)
def test_no_fact_of_a_family_is_false_at_an_end_of_its_range(family, params, face):
    whole = fysym.compile(family, params=params)
    member = whole.bind(**face)
    for name in ("sparsity", "essentially_smooth", "twice_differentiable"):
        assert getattr(whole, name) in (None, getattr(member, name))


def test_every_fact_has_a_status_and_evidence():
    for fact in fysym.compile("t*(1-t) + sin(pi*t)/pi").facts:
        assert fact.status in ("proved", "certified", "sampled") and fact.evidence


def test_a_margin_is_no_surer_than_the_concavity_under_it():
    reg = fysym.compile("t*(1-t) + exp(sin(9*t))/200")
    if reg.fact("strictly_concave").status == "sampled":
        assert reg.fact("margin").status == "sampled"


def test_the_smallest_of_several_pieces():
    """On (1/2, 1) -h'' = 4, on (0, 1/2) it is 2."""
    reg = fysym.compile("t*(1-t) - max(0, t-1/2)**2")
    assert abs(float(reg.strong_concavity) - 2) < 1e-6


def test_square_roots_at_one():
    reg = fysym.compile("(1-t)**(3/10)")
    assert reg.sparsity == "faces" and reg.slopes == (1 - R(3, 10), -oo)


def test_the_shape_of_the_inverse_is_certified_for_a_family(monkeypatch):
    """The third derivative 1/t^2 - a^2 cos(a t) is positive, which the prover leaves open."""
    pytest.importorskip("flint")
    family, params = "-t*log(t) + sin(a*t)/a", {"a": "1/2 < a < 3/2"}
    fact = fysym.compile(family, params=params, deadline=20).fact("inverse_shape")
    assert (fact.value, fact.status) == ("convex", "certified") and "ball arithmetic" in fact.evidence
    monkeypatch.setattr("fysym.certify.available", lambda: False)
    assert fysym.compile(family, params=params).fact("inverse_shape") is None


# --- the parts ------------------------------------------------------------------------------------------


def derived(h, params=None):
    clock = Deadline(20)
    entropy = read(h, params, clock)
    return entropy, theory.end_slopes(entropy, clock), decide(entropy, clock), clock


def test_what_differs_at_a_closed_end_is_undetermined():
    """sqrt(t) c + t (1-t) has an infinite slope at 0 for c > 0 and a finite one at c = 0."""
    found = theory.derive(*derived("sqrt(t)*c + t*(1-t)", {"c": "c >= 0"}))
    for name in ("sparsity", "essentially_smooth", "margin"):
        assert name not in found.facts
        assert "it is different at c = 0; declare a narrower range" in found.undetermined[name]


C = sympy.Symbol("c", real=True)


@pytest.mark.parametrize(
    ("value", "at_face", "same"),
    [
        ("full", "full", True),
        ("full", "dense", False),
        (True, None, False),
        (C + 1, sympy.Integer(2), True),
        (C + 1, sympy.Integer(3), False),
        (oo, oo, True),
        (oo, sympy.Integer(5), False),
        (1 / (C - 1), oo, True),
        (1 / (C - 1), sympy.Integer(5), False),
        (1 / (1 - C), oo, False),
        (log(C - 1), oo, False),
        (log(C - 1), -oo, True),
        (log(C) / (C - 1), sympy.Integer(1), True),
        (log(C) / (C - 1), sympy.Integer(2), False),
        (sympy.sin(1 / (C - 1)), sympy.Integer(0), None),
    ],
)
def test_a_fact_goes_over_into_the_one_at_an_end(value, at_face, same):
    """A formula that is no number at the end tends to it, from inside the range, or it does not hold there."""
    entropy = read("-t**2*(c + 1)", {"c": "1 <= c <= 3"}, Deadline(20))
    assert {p.symbol for p in entropy.parameters} == {sympy.Symbol("c", positive=True)}
    value = value.subs(C, entropy.parameters[0].symbol) if isinstance(value, sympy.Expr) else value
    assert theory._continues(value, at_face, entropy, {"c": sympy.Integer(1)}, Deadline(20)) is same


@pytest.mark.parametrize(
    ("value", "at_face", "same"),
    [
        (sympy.sin(C) / C, 1, True),
        (C / abs(C), 1, False),
        (C / abs(C), -1, False),
        (C / C**2, oo, False),
        (C**-2, oo, False),
    ],
    ids=str,
)
def test_a_fact_tends_from_both_sides_to_that_of_a_member_inside_the_range(value, at_face, same):
    entropy = read("-t**2*(c + 2)", {"c": "-1 < c < 1"}, Deadline(20))
    assert theory._continues(value, sympy.sympify(at_face), entropy, {"c": sympy.Integer(0)}, Deadline(20)) is same


@pytest.mark.parametrize(
    ("h", "params", "at", "margin", "there"),
    [
        ("-cosh(c*t)/c**2", {"c": "0 <= c < 10"}, {"c": 0}, "sinh(c)/c", 1),
        ("(1 - exp(-c*t))/c**2", {"c": "-1 <= c <= 5"}, {"c": 0}, "(1 - exp(-c))/c", 1),
        ("-(exp(c*t) - c*t)*w/c**2", {"c": "0 <= c < 2", "w": "w > 0"}, {"c": 0, "w": 3}, "w*(exp(c) - 1)/c", 3),
    ],
)
def test_a_fact_that_has_a_limit_at_an_end_of_the_range_is_kept(h, params, at, margin, there):
    family = fysym.compile(h, params=params, deadline=30)
    expected = sympy.sympify(margin)
    assert sympy.simplify(family.margin - expected) == 0 and family.fact("margin").status == "proved"
    member = family.bind(**at)
    assert member.margin == there and None not in family.slopes
    for c in (R(1, 10**9), R(1, 2)):
        values = {name: c if name == "c" else value for name, value in at.items()}
        assert sympy.N(family.bind(**values).margin - expected.subs(values), 20, maxn=500) == 0


def test_a_limit_that_is_not_known_at_an_end_of_the_range_leaves_the_fact_open(monkeypatch):
    monkeypatch.setattr(theory, "_tends_to", lambda *_: None)
    family = fysym.compile("-cosh(c*t)/c**2", params={"c": "0 <= c < 10"})
    assert family.margin is None
    assert "it is not known at c = 0" in family.derivation.theory.undetermined["margin"]


@pytest.mark.parametrize(
    ("low", "high", "margin", "sparsity", "missing"),
    [
        (oo, None, oo, "dense", []),
        (None, -oo, oo, None, ["sparsity", "essentially_smooth"]),
        (None, R(1), None, None, ["margin", "sparsity", "essentially_smooth"]),
        (R(1), None, None, None, ["margin", "sparsity"]),
        (R(2), R(-1), 3, "full", []),
        (R(2), -oo, oo, "faces", []),
    ],
)
def test_the_margin_from_what_is_known_of_the_slopes(low, high, margin, sparsity, missing):
    entropy = read("t*(1-t)", None, Deadline(8))
    found = Theory({"strictly_concave": Fact("strictly_concave", True, "proved", "by hand")})
    limits = tuple(Limit(value, "proved" if value is not None else "sampled", "by hand") for value in (low, high))
    theory._slopes(found, entropy, limits)
    theory._margin(found, entropy)
    assert (found.value("margin"), found.value("sparsity")) == (margin, sparsity)
    assert [name for name in ("margin", "sparsity", "essentially_smooth") if name in found.undetermined] == missing
    assert all("raise the deadline, or simplify h" in found.undetermined[name] for name in missing)


@pytest.mark.parametrize(
    ("h", "ranges", "values", "names"),
    [
        ("c*sqrt(t) + t*(1-t)", {"c": "c >= 0"}, {"c": 0}, ("slope_at_0", "curvature_at_0")),
        ("-t*log(t)*c + (1-c)*t*(1-t)", {"c": "0 <= c <= 1"}, {"c": 0}, ("slope_at_0", "curvature_at_0")),
        ("(t**a - t**b)/(b - a)", {"a": "0 < a <= 1", "b": "b >= 1"}, {"a": 1, "b": 2}, ("slope_at_0",)),
        ("-t*log(t) - k*(1-t)*log(1-t)", {"k": "k >= 0"}, {"k": 0}, ("slope_at_1", "curvature_at_1")),
        ("-t*log(t) + c*sqrt(1-t)", {"c": "c >= 0"}, {"c": 0}, ("slope_at_1", "curvature_at_1")),
    ],
)
def test_what_changes_at_an_end_of_the_range_is_no_fact(h, ranges, values, names):
    """A term that vanishes at the end of a range takes its infinite slope with it."""
    family = fysym.compile(h, params=ranges)
    member = family.bind(**values)
    for name in names:
        assert family.fact(name) is None and "different at" in family.derivation.theory.undetermined[name]
        assert member.fact(name).value.is_finite
    for fact in family.facts:  # and what is left holds there
        if isinstance(fact.value, sympy.Expr) and fact.name != "inverse":
            there = fact.value.subs({sympy.Symbol(name): value for name, value in values.items()})
            assert sympy.simplify(there - member.fact(fact.name).value) == 0 or there == member.fact(fact.name).value


@pytest.mark.parametrize(
    ("h", "ranges", "margin"),
    [
        ("sin(c*t)", {"c": "0 < c < pi"}, "c - c*cos(c)"),
        ("1 - exp(-c*t)", {"c": "1 < c < 2"}, "c - c*exp(-c)"),
        ("(t - t**a)/(1 - 2**(1 - a))", {"a": "1 < a < 3"}, "a/(1 - 2**(1 - a))"),
        ("(t - t**a)/(1 - 2**(1 - a))", {"a": "a > 1"}, "a/(1 - 2**(1 - a))"),
    ],
)
def test_formulas_of_families_are_short(h, ranges, margin):
    """The coordinates in which ranges are worked with leave no trace."""
    family = fysym.compile(h, params=ranges)
    expected = sympy.sympify(margin)
    assert sympy.simplify(family.margin - expected) == 0
    assert family.margin.count_ops() <= expected.count_ops() + 3 and family.inverse.count_ops() < 16


def test_slopes_of_a_family_whose_factor_keeps_its_sign():
    family = fysym.compile("(t - t**a)/(1 - 2**(1 - a))", params={"a": "0 < a < 1"})
    assert (family.margin, family.sparsity) == (sympy.oo, "dense") and family.fact("margin").status == "proved"


@pytest.mark.parametrize(
    ("h", "k", "margin"), [("t*(1-t)/2", 0.5, R(1, 2)), ("-(1-t)*log(1-t)", 0.5, sympy.log(2)), ("t*(1-t)/2", 2, 1)]
)
def test_the_margin_of_a_budget_below_one_is_at_its_own_vertices(h, k, margin):
    """Where a score is ahead by the margin, it takes the whole budget, at no loss; and not before."""
    reg = fysym.compile(h, domain=fysym.budget(k))
    assert sympy.simplify(reg.margin - margin) == 0 and reg.sparsity == "full"
    ones = max(1, int(k))
    m = float(margin)
    for ahead, at_vertex in ((m * (1 + 1e-9), True), (m * 0.99, False)):
        theta = np.array([ahead] * ones + [0.0, 0.0])
        assert (np.abs(reg.predict(theta) - np.array([min(k, 1.0)] * ones + [0.0, 0.0])).max() < 1e-12) == at_vertex


def test_facts_of_a_family_for_which_there_is_no_time_are_undetermined(monkeypatch):
    """What is said of the whole range is not known at its closed end, and concavity, which is, stays proved."""
    monkeypatch.setattr(theory, "FOR_A_FACE", 0.0)
    family = fysym.compile("-t**c", params={"c": "3/2 <= c < 4"})
    assert family.margin is None and family.sparsity is None
    assert "it is not known at c = 3/2" in family.derivation.theory.undetermined["margin"]
    assert family.fact("strictly_concave").status == "proved"
