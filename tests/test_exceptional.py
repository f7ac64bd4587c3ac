"""Members inside the ranges of a family at which something vanishes that its formulas divide by or take a root of."""

import pytest
import sympy
from sympy import S

import fysym
from fysym import entropy
from fysym.deadline import Deadline


def found(h: str, params: dict[str, str], domain: str = "simplex"):
    read = entropy.read(h, params, Deadline(20.0), fysym.domains.read(domain))
    return {(symbol.name, value) for symbol, value in read.exceptional.members}, read.exceptional


@pytest.mark.parametrize(
    ("h", "params", "members"),
    [
        ("sqrt(t + a**2)", {"a": "-1 <= a <= 1"}, {("a", S.Zero)}),
        ("log(2 - t + (a - 3)**2 - 1)", {"a": "a > 0"}, {("a", S(3))}),
        ("sqrt(t*(a - 1)**2 + t**2) - t**2", {"a": "a > 0"}, {("a", S.One)}),
        ("(t - t**a)/(a*(a - 1))", {"a": "0 < a < 3"}, {("a", S.One)}),
        ("(t - t**a)/(a*(a - 1))", {"a": "a > 1"}, set()),
        ("-t*log(t)/(2 - a**2)**2", {"a": "0 < a < 2"}, {("a", sympy.sqrt(2))}),
        ("sqrt(t + a**2 + 1)", {"a": "-1 <= a <= 1"}, set()),
        ("(t - t**a)/(1 - 2**(1 - a))", {"a": "a > 1"}, set()),
        ("sqrt(t + a**2) + sqrt(t + (b - 2)**2)", {"a": "a > -1", "b": "b > 0"}, {("a", S.Zero), ("b", S(2))}),
    ],
)
def test_members_are_found_inside_the_range_only(h, params, members):
    values, rest = found(h, params)
    assert values == members
    assert rest.doubt is None


@pytest.mark.parametrize(
    ("h", "params", "anywhere", "at_ends"),
    [
        ("log(t + (a - b)**2)", {"a": "0 < a < 1", "b": "0 < b < 1"}, 0, 1),
        ("-t**2/(a - b)**2", {"a": "0 < a < 1", "b": "0 < b < 1"}, 1, 0),
        ("-t**2/(sin(5*a) - a/9)**2", {"a": "a > 0"}, 1, 0),
        ("-t**2/(a**5 - a - 1)**2", {"a": "a > 0"}, 1, 0),
        ("log(t + a + b)", {"a": "0 < a < 1", "b": "0 < b < 1"}, 0, 0),
    ],
)
def test_what_may_vanish_elsewhere_is_kept_in_doubt(h, params, anywhere, at_ends):
    _, rest = found(h, params)
    assert (len(rest.anywhere), len(rest.at_ends)) == (anywhere, at_ends)


def test_infinite_ends_count_too():
    values, _ = found("log(1 + t*(a - 1)**2) - t**2", {"a": "a > 0"}, "orthant")
    assert values == {("a", S.One)}


def test_a_fact_that_fails_at_one_member_is_undetermined():
    """sqrt(t + a**2) is sparse for every a but a = 0, where it is dense."""
    family = fysym.compile("sqrt(t + a**2)", params={"a": "-1 <= a <= 1"})
    assert family.sparsity is None and family.margin is None
    assert "different at a = 0" in family.report()
    assert family.fact("strictly_concave").status == "proved"
    assert family.bind(a=0).sparsity == "dense" and family.bind(a=0.5).sparsity == "full"
    narrower = fysym.compile("sqrt(t + a**2)", params={"a": "0 < a <= 1"})
    assert narrower.sparsity == "full" and narrower.fact("sparsity").status == "proved"


def test_a_fact_that_holds_at_the_member_stays():
    family = fysym.compile("(t - t**a)/(a*(a - 1))", params={"a": "0 < a < 3"})
    assert sympy.simplify(family.fact("slope_at_1").value + 1 / sympy.Symbol("a")) == 0
    assert family.inverse is None and "a = 1" in family.fact("inverse").evidence
    assert fysym.verify(family.certificate())


def test_a_member_that_is_not_concave_refutes_the_family():
    with pytest.raises(fysym.NotConcaveError, match="a = 1") as refused:
        fysym.compile("t*(1 - t)*exp(-1/(a - 1)**2)", params={"a": "a > 0"})
    assert refused.value.parameters["a"] == 1


def test_a_pole_inside_the_range_is_named():
    with pytest.raises(fysym.UndecidedError, match="no finite limit at a = 1; choose a range of a without it"):
        fysym.compile("-t**2/(a - 1)**2", params={"a": "a > 0"})


def test_where_members_are_not_known_limits_are_undetermined():
    family = fysym.compile("log(t + (a - b)**2)", params={"a": "0 < a < 1", "b": "0 < b < 1"})
    assert family.fact("strictly_concave").status == "proved"
    assert family.margin is None and family.sparsity is None and family.inverse is None
    assert "a - b" in family.report() and "vanishes" in family.report()
    assert family.bind(a=1 / 3, b=1 / 3).sparsity == "dense"
    assert family.bind(a=1 / 3, b=0.5).sparsity == "full"


def test_concavity_is_only_sampled_where_a_pole_in_the_parameters_may_be_anywhere():
    family = fysym.compile("-t**2/(a - b)**2", params={"a": "0 < a < 1", "b": "0 < b < 1"})
    assert family.fact("strictly_concave").status == "sampled"
    assert "a - b" in family.fact("strictly_concave").evidence


@pytest.mark.parametrize(("h", "member"), [("-cosh(c*t)/c**2", "-t**2/2"), ("-log(1 + exp(c*t))/c**2", "-t**2/8")])
def test_a_member_with_a_limit_but_for_what_is_affine_is_that_limit(h, member):
    family = fysym.compile(h, params={"c": "-1 < c < 1"})
    expected = fysym.compile(member)
    assert sympy.expand(family.bind(c=0).h - expected.h) == 0
    assert family.bind(c=0).margin == expected.margin
