"""Members of a family by their facts, and entropies at another temperature."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import sympy

import fysym
from fysym.search import Roots
from fysym.solve import X, _is_monotone


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
        (
            {"margin": 2, "slope_at_0": 1},
            "as many facts must be wanted as there are free parameters .alpha.; got 2: want fewer facts$",
        ),
        ({"margin": 2, "alpha": 3}, r"free parameters .none.; got 1: leave out one of alpha to solve for it"),
        ({}, "got 0: want another fact, or give the value of a parameter"),
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
    for domain in ("cube", "orthant", "reals"):
        with pytest.raises(fysym.ParameterError, match=f"another margin, which is not applicable on the {domain}"):
            fysym.compile("-t**2/2", domain=domain).with_margin(2)
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


@pytest.mark.parametrize(
    ("h", "span", "margin", "value"),
    [
        ("2 + a*log(a)", "a > 1", 6, sympy.exp(sympy.LambertW(1))),
        ("1 + a*exp(-a)", "0 < a < 1", 2.5, -sympy.LambertW(-sympy.Rational(1, 4))),
        ("2 + cosh(a - 1)", "1 < a < 20", 6.4, 1 + sympy.acosh(sympy.Rational(6, 5))),
        ("1 + a**3 + a*exp(a)*sin(a)**2/100", "0 <= a <= 2", 2, 0),
        ("1 + (a - 2)**2", "a > 0", 2, 2),
        ("2 + sin(a)", "0 < a < 7", 6, sympy.pi / 2),
        ("exp(a)", (None, None), 3, sympy.log(sympy.Rational(3, 2))),
    ],
)
def test_the_only_member_is_found_whatever_its_form(h: str, span: Any, margin: float, value: Any) -> None:
    found = fysym.compile(f"({h})*t*(1-t)", params={"a": span}).solve(margin=margin)["a"]
    assert abs(sympy.N(found - value, 50)) < sympy.Rational(1, 10**40)


@pytest.mark.parametrize(
    ("h", "span", "margin", "count"),
    [
        ("2 + sin(a)", "0 < a < 20", 4, 6),
        ("2 + sin(a)", "0 < a < 20", 4.4, 7),
        ("2 + sin(a)", "a > 0", 4, 8),
        ("1 + a**2", "-1 <= a <= 1", 4, 2),
    ],
)
def test_a_solution_that_is_not_the_only_one_is_not_returned(h: str, span: str, margin: float, count: int) -> None:
    family = fysym.compile(f"({h})*t*(1-t)", params={"a": span})
    with pytest.raises(fysym.ParameterError, match="several members have") as error:
        family.solve(margin=margin)
    assert str(error.value).count("a = ") == count
    assert ("and maybe more" in str(error.value)) == (span == "a > 0")


def test_what_may_not_be_the_only_solution_is_undecided(monkeypatch: pytest.MonkeyPatch) -> None:
    family = fysym.compile("(2 + exp(a) + b)*t*(1-t) - b*t**3", params={"a": "a > 0", "b": "b > 0"})
    with pytest.raises(fysym.UndecidedError, match="could not tell whether .* values for all but one parameter"):
        family.solve(margin=12, slope_at_0=7)
    monkeypatch.setattr("fysym.search.isolate_roots", lambda *_: Roots((), (), ((0.0, 1.0),)))
    wave, line = (fysym.compile(f"(2 + {h})*t*(1-t)", params={"a": "0 < a < 4"}) for h in ("sin(a)", "a"))
    with pytest.raises(fysym.UndecidedError, match="could not tell whether others have margin = 4 than a = pi"):
        wave.solve(margin=4)
    with pytest.raises(fysym.UndecidedError, match="could not tell whether a member has margin = 1 "):
        wave.solve(margin=1)
    assert line.solve(margin=6) == {"a": 1}  # a margin that grows has one root


def test_a_function_that_grows_on_both_sides_of_a_pole_is_not_monotone() -> None:
    assert _is_monotone(X**3 + X) and not _is_monotone(sympy.tan(3 * X)) and not _is_monotone(sympy.sin(5 * X))


def test_a_family_over_all_real_numbers_is_shown_in_its_parameter() -> None:
    family = fysym.compile("-exp(c)*t**2", params={"c": (None, None)})
    c = sympy.Symbol("c")
    assert family.params == {"c": "-oo < c < oo"}
    assert (family.margin, family.strong_concavity, family.slopes) == (
        2 * sympy.exp(c), 2 * sympy.exp(c), (sympy.exp(c), -sympy.exp(c))
    )  # fmt: skip
    assert not any(isinstance(fact.value, sympy.Expr) and fact.value.has(sympy.sqrt(c**2 + 4)) for fact in family.facts)
    assert family.scale(2).margin == 4 * sympy.exp(c)
    assert fysym.verify(family.certificate())
    assert fysym.compile("-cosh(c*t) - t**2", params={"c": (None, None)}).margin == c * sympy.sinh(c) + 2


def test_a_fact_that_no_parameter_changes() -> None:
    family = fysym.catalog.tsallis.with_margin(5)
    with pytest.raises(fysym.ParameterError, match="every member has margin = 5"):
        family.solve(margin=5)
    with pytest.raises(fysym.ParameterError, match="no member has margin = 4"):
        family.solve(margin=4)
