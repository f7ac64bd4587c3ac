"""Members of a family by their facts, and entropies at another temperature."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import sympy

import fysym


@pytest.mark.parametrize(("margin", "alpha"), [(2, "3/2"), (1, "2"), (5 / 3, "8/5"), (10**6, "1000001/1000000")])
def test_tsallis_by_its_margin(margin: Any, alpha: str) -> None:
    found = fysym.catalog.tsallis.solve(margin=margin)
    assert found == {"alpha": sympy.Rational(alpha)}
    assert fysym.catalog.tsallis.bind(**found).margin == sympy.nsimplify(margin, rational=True)


def test_two_facts_find_two_parameters() -> None:
    family = fysym.compile("a*t*(1 - t) - b*t**3", params={"a": "a > 0", "b": "b > 0"})
    found = family.solve(margin=5, strong_concavity=4)
    member = family.bind(**found)
    assert (member.margin, member.strong_concavity) == (5, 4)
    assert family.solve(margin=5, a=2) == {"a": 2, "b": sympy.Rational(1, 3)}


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ({"margin": -1}, "no member has margin = -1 in the range alpha > 1"),
        ({"colour": 1}, "'colour' is not a fact of this family that is a number; those are .*margin"),
        ({"margin": 2, "slope_at_0": 1}, "as many facts must be wanted as there are free parameters .alpha.; got 2"),
        ({}, "got 0"),
        ({"margin": "two"}, "'two' is not a real number"),
    ],
)
def test_what_cannot_be_solved_is_explained(wanted: dict[str, Any], message: str) -> None:
    with pytest.raises(fysym.ParameterError, match=message):
        fysym.catalog.tsallis.solve(**wanted)


def test_several_solutions_are_all_named() -> None:
    family = fysym.compile("((a - 2)**2 + 1)*t*(1 - t)", params={"a": "a > 0"})
    with pytest.raises(fysym.ParameterError, match="several members .* a = 1 or a = 3"):
        family.solve(margin=4)


@pytest.mark.parametrize("name", ["gini", "shannon", "gini_sine"])
@pytest.mark.parametrize("c", [2, 0.5, sympy.sqrt(2)])
def test_a_scale_is_a_temperature(name: str, c: Any) -> None:
    reg = fysym.catalog[name]
    scaled = reg.scale(c)
    theta = np.random.default_rng(2).normal(size=(4, 5))
    np.testing.assert_allclose(scaled.predict(theta * float(c)), reg.predict(theta), rtol=0, atol=1e-14)
    np.testing.assert_allclose(scaled.loss(theta * float(c), [0, 1, 2, 3]), float(c) * reg.loss(theta, [0, 1, 2, 3]))
    assert scaled.margin == (sympy.oo if reg.margin == sympy.oo else sympy.nsimplify(c) * reg.margin)
    assert scaled.fact("strictly_concave").status == reg.fact("strictly_concave").status


def test_a_scale_keeps_the_domain_and_its_tilt() -> None:
    reg = fysym.compile("t*(1 - t)/2 + t/3", domain="cube")
    theta = np.random.default_rng(3).normal(size=(2, 4))
    np.testing.assert_allclose(reg.scale(3).predict(3 * theta), reg.predict(theta), atol=1e-15)


def test_margins_on_demand() -> None:
    assert fysym.catalog.gini.with_margin(7).margin == 7
    family = fysym.catalog.tsallis.with_margin(sympy.Rational(1, 3))
    assert family.margin == sympy.Rational(1, 3) and family.bind(alpha=3).margin == sympy.Rational(1, 3)
    with pytest.raises(fysym.ParameterError, match="is infinite, so no scale"):
        fysym.catalog.shannon.with_margin(1)
    for wrong in (0, -2, float("nan"), "one"):
        with pytest.raises(fysym.ParameterError):
            fysym.catalog.gini.with_margin(wrong)
        with pytest.raises(fysym.ParameterError):
            fysym.catalog.gini.scale(wrong)


def test_an_equation_that_has_no_closed_solution_is_solved_to_many_digits() -> None:
    family = fysym.compile("1 - exp(-c*t)", params={"c": "c > 0"})
    found = family.solve(margin=1)["c"]
    assert abs(found - found * sympy.exp(-found) - 1) < sympy.Rational(1, 10**25)
    assert abs(family.bind(c=found).margin - 1) < sympy.Rational(1, 10**12)
    with pytest.raises(fysym.ParameterError, match="no member has"):
        fysym.compile("1 - exp(-c*t)", params={"c": "c > 2"}).solve(margin=1)
