"""Every entry of the catalog against facts derived by hand."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.special
import sympy
from sympy import E, Rational, log, oo, pi, sqrt

import fysym

R = Rational
# slopes, margin, sparsity, inf of -h'', differentiable everywhere, essentially smooth
SHANNON = ((oo, -1), oo, "dense", 1, True, True)
GINI = ((R(1, 2), -R(1, 2)), 1, "full", 1, False, False)
FACTS = {
    "shannon": SHANNON,
    "gini": GINI,
    "hellinger": ((oo, -2), oo, "dense", 1, True, True),
    "fermi_dirac": ((oo, -oo), oo, "dense", 4, True, True),
    "jensen_shannon": ((oo, -log(2)), oo, "dense", R(1, 2), True, True),
    "kaniadakis": ((oo, -1), oo, "dense", 1, True, True),
    "sine": ((1, -1), 2, "full", 0, False, False),
    "arctan": ((1 - pi / 4, R(1, 2) - pi / 4), R(1, 2), "full", 0, False, False),
    "log1p": ((1 - log(2), R(1, 2) - log(2)), R(1, 2), "full", R(1, 4), False, False),
    "exponential": ((E - 2, -1), E - 1, "full", 1, False, False),
    "probit": ((oo, -oo), oo, "dense", sqrt(2 * pi), True, True),
    "shannon_gini": ((oo, -R(3, 2)), oo, "dense", 2, True, True),
    "gini_sine": ((2, -2), 4, "full", 2, False, False),
}
OTHERS = {
    "norm": ({"q": 3}, "Composite", 1, "full"),
    "squared_norm": ({"q": 1.5}, "Composite", 1, "full"),
    "renyi": ({"beta": 0.5}, "Composite", oo, "dense"),
    "berger_parker": ({}, "Polyhedral", 1, "full"),
    "perceptron": ({}, "Polyhedral", 0, "full"),
    "hinge": ({}, "Polyhedral", 1, "full"),
}
BOUND = [
    ("tsallis", {"alpha": 1.5}, ((R(4, 3), -R(2, 3)), 2, "full", 1, True, False)),
    ("tsallis", {"alpha": 2}, GINI),
    ("tsallis", {"alpha": 3}, ((R(1, 6), -R(1, 3)), R(1, 2), "full", 0, False, False)),
    ("kaniadakis", {"k": R(1, 2)}, ((oo, -1), oo, "dense", 1, True, True)),
    ("abe", {"q": 1}, SHANNON),
    ("abe", {"q": 2}, ((oo, -1), oo, "dense", R(3, 2), True, True)),
    ("borges_roditi", {"a": R(1, 2), "b": 2}, ((oo, -1), oo, "dense", R(3, 2), True, True)),
]


def same(found: sympy.Expr, expected: object) -> bool:
    if found == expected:
        return True
    if sympy.sympify(expected).is_infinite or found.is_infinite:
        return False
    return sympy.simplify(found - expected) == 0


def check(reg: fysym.Regularizer, facts: tuple) -> None:
    slopes, margin, sparsity, strong, differentiable, essentially = facts
    assert all(same(found, expected) for found, expected in zip(reg.slopes, slopes, strict=True)), reg.slopes
    assert same(reg.margin, margin)
    assert reg.sparsity == sparsity
    assert same(reg.strong_concavity, strong)
    assert same(reg.smoothness, oo if strong == 0 else 1 / sympy.sympify(strong))
    assert reg.twice_differentiable is differentiable
    assert reg.essentially_smooth is essentially
    assert reg.fact("strictly_concave").status == "proved"


@pytest.mark.parametrize("name", FACTS)
def test_facts(name):
    check(fysym.catalog[name], FACTS[name])


@pytest.mark.parametrize(("name", "values", "facts"), BOUND, ids=str)
def test_facts_of_a_bound_family(name, values, facts):
    check(fysym.catalog[name].bind(**values), facts)


def test_tsallis_as_a_family():
    """alpha in [1, oo): the slopes are rational in alpha; -h'' = t^(alpha-2) has no single infimum."""
    family = fysym.catalog.tsallis
    alpha = sympy.Symbol("alpha")
    assert sympy.simplify(family.margin - 1 / (alpha - 1)) == 0
    assert sympy.simplify(family.slopes[0] - 1 / (alpha * (alpha - 1))) == 0
    assert sympy.simplify(family.slopes[1] + 1 / alpha) == 0
    assert family.strong_concavity is None and family.twice_differentiable is None


def test_abe_as_a_family():
    """h'(1) = (1/q - q)/(q - 1/q) = -1; the infimum of -h'' moves inside for large q."""
    family = fysym.catalog.abe
    assert family.slopes == (oo, -1) and family.sparsity == "dense"
    assert family.strong_concavity is None


def test_borges_roditi_as_a_family():
    """h'(1) = (a - b)/(b - a) = -1; h'(0) is infinite for a < 1."""
    family = fysym.catalog.borges_roditi
    assert family.slopes == (oo, -1)
    assert family.sparsity == "dense" and family.margin == oo and family.essentially_smooth is True


def test_every_entry_is_expected_here():
    assert set(fysym.catalog.separable) == set(FACTS) | {name for name, _, _ in BOUND}
    assert set(fysym.catalog) - set(fysym.catalog.separable) == set(OTHERS) | set(ELSEWHERE)
    assert len(fysym.catalog) >= 16


def test_inverses_that_have_a_closed_form():
    assert fysym.catalog.gini_sine.inverse is None
    assert fysym.catalog.shannon_gini.inverse.has(sympy.LambertW)
    for name in ("shannon", "gini", "hellinger", "fermi_dirac", "sine", "log1p", "exponential", "probit"):
        assert fysym.catalog[name].inverse is not None, name


ELSEWHERE = {
    "squared": ("reals", lambda theta: theta, lambda theta, y: ((theta - y) ** 2).sum() / 2),
    "one_vs_all": ("cube", scipy.special.expit, lambda theta, y: (np.logaddexp(0, theta) - theta * y).sum()),
    "poisson": ("orthant", np.exp, lambda theta, y: (np.exp(theta) - theta * y + scipy.special.xlogy(y, y) - y).sum()),
}


@pytest.mark.parametrize("name", ELSEWHERE)
def test_entries_on_other_domains(name):
    """The losses of generalized linear models."""
    domain, predict, loss = ELSEWHERE[name]
    reg = fysym.catalog[name]
    assert str(reg.derivation.entropy.domain) == domain and reg.name == name
    theta, y = np.array([-2.0, -0.25, 0.5, 3.0]), np.array([0.0, 1.0, 0.0, 1.0])
    np.testing.assert_allclose(reg.predict(theta), predict(theta), rtol=1e-15)
    np.testing.assert_allclose(reg.loss(theta, y), loss(theta, y), rtol=1e-13)


def test_other_names():
    assert fysym.catalog.sparsemax is fysym.catalog.gini and fysym.catalog["logistic"] is fysym.catalog.shannon
    assert fysym.catalog.bernoulli is fysym.catalog.one_vs_all and fysym.catalog.gaussian is fysym.catalog.squared
    assert "sparsemax" in fysym.catalog and "sparsemax" not in list(fysym.catalog)


@pytest.mark.parametrize("name", OTHERS)
def test_entries_that_are_not_separable(name):
    """Margins from the paper's table; at equal scores every rule predicts the uniform distribution."""
    values, kind, margin, sparsity = OTHERS[name]
    reg = fysym.catalog[name].bind(**values)
    assert type(reg).__name__ == kind and fysym.catalog.entries[name].kind == kind.lower()
    assert reg.margin == margin and reg.sparsity == sparsity and reg.name == name
    np.testing.assert_allclose(reg.predict([0.3, 0.3, 0.3]), 1 / 3, rtol=1e-15)
    p = reg.predict([0.2, 0.1, -0.1])
    assert p[0] >= p[1] >= p[2] >= 0 and abs(p.sum() - 1) <= 1e-14
    assert reg.loss([0.3, 0.5], 0) > 0 and reg.entropy([1.0, 0.0]) == 0
    if margin != oo:
        assert reg.loss([float(margin), 0.0], 0) == 0


@pytest.mark.parametrize("name", fysym.catalog.separable)
def test_every_entry_predicts(name):
    """At d = 2 with equal scores p = 1/2; the first of unequal scores is larger; sums are 1."""
    values = {"tsallis": {"alpha": 1.5}, "kaniadakis": {"k": 0.5}, "abe": {"q": 2}, "borges_roditi": {"a": 0.5, "b": 2}}
    reg = fysym.catalog[name].bind(**values.get(name, {}))
    assert list(reg.predict([0.3, 0.3])) == [0.5, 0.5]
    p = reg.predict([0.2, 0.1, -0.1])
    assert p[0] > p[1] > p[2] >= 0 and abs(p.sum() - 1) <= 1e-14
    assert reg.loss([5.0, 5.0], 0) > 0


def test_access():
    assert fysym.catalog.gini is fysym.catalog["gini"]
    assert "gini" in fysym.catalog and "nothing" not in fysym.catalog
    with pytest.raises(fysym.FysymError, match="did you mean gini"):
        fysym.catalog["ginni"]
    with pytest.raises(AttributeError):
        fysym.catalog.ginni  # noqa: B018


@pytest.mark.parametrize("name", list(fysym.catalog))
def test_every_entry_has_a_reference(name):
    assert fysym.catalog.entries[name].reference


def test_the_catalog_without_compiling_anything() -> None:
    assert len(fysym.catalog) == len(list(fysym.catalog)) and "gini" in fysym.catalog and "nothing" not in fysym.catalog
    assert "tsallis" in dir(fysym.catalog) and repr(fysym.catalog).startswith(f"<Catalog of {len(fysym.catalog)} ")
    with pytest.raises(AttributeError, match="no entropy called 'nothing'"):
        _ = fysym.catalog.nothing
    with pytest.raises(fysym.FysymError, match="did you mean shannon"):
        fysym.catalog["shanon"]
    with pytest.raises(fysym.FysymError, match="it has shannon, gini"):
        fysym.catalog["qqqq"]
