"""From what the user wrote to a normalised entropy: symbols, exact numbers, ranges, affine term."""

from __future__ import annotations

import numpy as np
import pytest
import sympy
from sympy import Rational, Symbol, cos, exp, log, oo, sin, sqrt

import fysym
from fysym import entropy as entropies
from fysym.deadline import Deadline
from fysym.entropy import VARIABLE as t
from fysym.entropy import bind, read
from fysym.errors import FysymError, NotConcaveError, ParameterError, UndecidedError, UnsupportedError

x = Symbol("t")


a = Symbol("a", positive=True)


def entropy(h, params=None):
    return read(h, params, Deadline(8))


@pytest.mark.parametrize(
    ("given", "h"),
    [
        ("t*(1 - t)/2", t / 2 - t**2 / 2),
        ("-t**2", t - t**2),
        ("5 + 3*t - t**2", t - t**2),
        ("exp(-t)*(-1)", -exp(-t) + 1 + t * (exp(-1) - 1)),
        ("sqrt(t)", sqrt(t) - t),
        ("cos(t)", cos(t) - 1 + t * (1 - cos(1))),
        ("-t*log(t) + 7", -t * log(t)),
        ("log(t) + 4", log(t)),
        ("log(1 - t) + 4", log(1 - t)),
    ],
)
def test_the_affine_term_makes_the_ends_zero(given, h):
    assert sympy.simplify(entropy(given).h - h) == 0


@pytest.mark.parametrize(
    "variable", [Symbol("t"), Symbol("t", positive=True), Symbol("t", real=True), Symbol("p"), Symbol("s"), Symbol("e")]
)
def test_any_single_symbol_is_the_variable(variable):
    found = entropy(variable * (1 - variable))
    assert sympy.expand(found.h - t * (1 - t)) == 0
    assert found.user(found.h).free_symbols == {variable}


@pytest.mark.parametrize(
    ("given", "exact"),
    [
        (0.1 * x * (1 - x), t * (1 - t) / 10),
        (sqrt(x) * 0.3, (sqrt(t) - t) * Rational(3, 10)),
        (x**0.3 - x, t ** Rational(3, 10) - t),
        (sympy.Float("0.25") * x * (1 - x), t * (1 - t) / 4),
    ],
)
def test_floats_become_the_decimals_they_show(given, exact):
    found = entropy(given)
    assert not found.h.atoms(sympy.Float)
    assert sympy.simplify(found.h - exact) == 0


def test_with_several_symbols_t_is_the_variable():
    found = entropy("a*t*(1 - t)", {"a": "a > 0"})
    assert [p.name for p in found.parameters] == ["a"]


def test_a_declared_symbol_is_a_parameter_whatever_the_variable_is_called():
    found = entropy("a*p*(1 - p)", {"a": "a > 0"})
    assert found.user_variable == Symbol("p") and [p.name for p in found.parameters] == ["a"]


def test_assumptions_give_a_range_and_params_narrow_it():
    a = Symbol("a", positive=True)
    assert entropy(a * x * (1 - x)).parameters[0].range.low == 0
    assert entropy(a * x * (1 - x), {"a": "a >= 2"}).parameters[0].range.low == 2


@pytest.mark.parametrize(
    ("h", "params", "error", "words"),
    [
        ("a*b", None, ParameterError, "call the variable t"),
        ("t*(1-t)", {"a": "a > 0"}, ParameterError, "a"),
        ("t*(1-t)", {"t": "t > 0"}, ParameterError, "t"),
        (Symbol("a", negative=True) * x, {"a": "a > 0"}, ParameterError, "contradicts"),
        (Symbol("t", positive=True) * (1 - x), None, UnsupportedError, "two different symbols"),
        ("a*t*(1-t)", {"a": "a > 2 and a < 1"}, ParameterError, "a"),
    ],
)
def test_symbols_that_cannot_be_sorted_out(h, params, error, words):
    with pytest.raises(error, match=words):
        entropy(h, params)


@pytest.mark.parametrize(
    "h",
    [
        None,
        True,
        [x],
        {"h": x},
        b"t",
        object(),
        sympy.Matrix([x]),
        sympy.Eq(x, 1),
        x > 0,
        sympy.Function("f")(x),
        sympy.Function("f")(x).diff(x),
        sympy.zeta(x),
        sympy.I * x,
        sympy.nan * x,
        sympy.oo * x,
        sympy.Integral(sympy.Function("f")(x), (x, 0, x)),
        np.array([1.0, 2.0]),
        sympy.floor(x),
    ],
    ids=lambda h: type(h).__name__,
)
def test_what_is_no_real_expression_is_refused(h):
    with pytest.raises(FysymError):
        entropy(h)


def test_an_unevaluated_derivative_or_integral_is_worked_out():
    u = Symbol("u")
    assert sympy.expand(entropy(sympy.Derivative(x**2 / 2 - x**3 / 3, x)).h - t * (1 - t)) == 0
    assert sympy.expand(entropy(sympy.Integral(1 - 2 * u, (u, 0, x))).h - t * (1 - t)) == 0


def test_plus_infinity_at_an_end_is_not_concave():
    with pytest.raises(NotConcaveError) as caught:
        entropy("-log(t)")
    assert 0 < caught.value.witness < 1


def test_minus_infinity_at_an_end_is_kept():
    ends = entropy("log(t)").ends
    assert (ends[0].value, ends[1].value) == (-oo, 0)


def test_binding_takes_a_removable_limit():
    family = entropy("(t - t**a)/(a - 1)", {"a": "a >= 1"})
    assert sympy.simplify(bind(family, {"a": 1}, Deadline(8)).h + t * log(t)) == 0


def test_binding_one_parameter_keeps_the_others():
    family = entropy("c*(t - t**a)/(a - 1)", {"a": "a >= 1", "c": "c > 0"})
    member = bind(family, {"a": 1}, Deadline(8))
    assert [p.name for p in member.parameters] == ["c"]
    assert sympy.simplify(member.h + member.parameters[0].symbol * t * log(t)) == 0


@pytest.mark.parametrize("other", ["e", "x", "s", "b_a", "t_"])
def test_a_removable_limit_leaves_other_parameters_alone(other):
    """At a = 1 the family is -t log t + c t (1 - t), whatever c is called."""
    family = entropy(f"(t - t**a)/(a - 1) + {other}*t*(1 - t)", {"a": "a >= 1", other: f"{other} > 0"})
    member = bind(bind(family, {"a": 1}, Deadline(8)), {other: 2}, Deadline(8))
    assert sympy.simplify(member.h + t * log(t) - 2 * t * (1 - t)) == 0


@pytest.mark.parametrize("value", [2, 2.0, Rational(2), np.float64(2.0), np.int64(2), sympy.Float(2)])
def test_binding_takes_numbers_in_any_form(value):
    family = entropy("(t - t**a)/(a - 1)", {"a": "a >= 1"})
    assert sympy.expand(bind(family, {"a": value}, Deadline(8)).h - t * (1 - t)) == 0


@pytest.mark.parametrize(
    "value", [0.5, 0, -1, float("inf"), float("nan"), None, "many", "2", [2], "__import__('os')", 1j]
)
def test_binding_refuses_what_is_not_in_the_range(value):
    family = entropy("(t - t**a)/(a - 1)", {"a": "a > 1"})
    with pytest.raises(FysymError):
        bind(family, {"a": value}, Deadline(8))


def test_an_out_of_range_value_names_the_range():
    family = entropy("(t - t**a)/(a - 1)", {"a": "a > 1"})
    with pytest.raises(ParameterError, match="a > 1"):
        bind(family, {"a": 1}, Deadline(8))


def test_huge_expressions_are_refused_at_once():
    with pytest.raises(FysymError):
        entropy(sympy.Add(*[sin(k * x) for k in range(1, 1500)]))


def test_pieces_with_the_same_derivative_are_joined():
    """Else SymPy joins their conditions by Or, which no emitter prints."""
    found = entropy("Min(t, 1/2) - t**2 - Max(0, t - 3/4)**2")
    assert len(found.pieces) == 3
    curvature = found.whole(lambda h: sympy.diff(h, t, 2))
    assert curvature == sympy.Piecewise((-2, t < Rational(3, 4)), (-4, True))
    assert not curvature.has(sympy.Or)
    assert found.whole(lambda h: sympy.diff(h, t, 3)) == 0


def test_a_huge_power_of_e_does_not_keep_the_compiler():
    found = entropy("t*(1 - t) - alpha*exp(-(1000*t - 10)**2)", {"alpha": "0 < alpha < 1"})
    assert found.affine.has(exp(-980100))


@pytest.mark.parametrize(
    ("span", "opened"),
    [
        ("1 < a < 3", lambda b: (1 + 3 * b) / (1 + b)),
        ("a > 2", lambda b: 2 + b),
        ("a < 2", lambda b: 2 - b),
        (None, lambda b: b - 1 / b),
    ],
)
def test_a_parameter_and_its_coordinate(span, opened):
    """The coordinate b > 0 runs over the open range, and `closed` is its inverse."""
    given = {"a": span} if span else None
    (parameter,) = entropy(-(x**2) + Symbol("a") * x, given).parameters
    assert sympy.simplify(parameter.opened - opened(parameter.coordinate)) == 0
    for value in (Rational(1, 7), Rational(2), Rational(40, 3)):
        there = parameter.opened.xreplace({parameter.coordinate: value})
        assert there in parameter.range
        assert sympy.simplify(parameter.closed.xreplace({parameter.symbol: there}) - value) == 0


def test_the_closed_ends_of_ranges_are_faces():
    found = entropy("a*t*(1 - t) - b*t**2 + c*t", {"a": "1 <= a < 2", "b": "1 < b <= 3", "c": "0 < c < 1"})
    assert list(found.faces()) == [{"a": 1}, {"b": 3}]


def test_binding_an_unknown_name():
    with pytest.raises(ParameterError, match="no parameter called 'b', nor such an argument here; .* are: a"):
        fysym.compile("a*t*(1 - t)", params={"a": "a > 0"}).bind(b=1)
    with pytest.raises(ParameterError, match="no parameter called 'prior'"):
        fysym.catalog.gini.jvp([1.0, 2.0], [1.0, 0.0], prior=[0.5, 0.5])


@pytest.mark.parametrize("params", ["a > 1", ["a"], 3])
def test_ranges_come_in_a_dictionary(params):
    with pytest.raises(ParameterError, match="params must be a dictionary"):
        fysym.compile("t - t**a", params=params)


@pytest.mark.parametrize("name", ["e", "I", "nan"])
def test_names_that_are_likely_meant_as_something_else(name):
    with pytest.raises(ParameterError, match=f"{name} is read as a parameter"):
        fysym.compile(f"-{name}**t")
    assert fysym.compile(f"{name}*t*(1 - t)", params={name: f"{name} > 0"}).params == {name: f"{name} > 0"}


def test_a_number_is_an_entropy_that_is_affine():
    assert entropy(5).h == 0 and entropy(2.5).affine == Rational(5, 2)


@pytest.mark.parametrize(
    ("h", "words"),
    [
        ("sin(1/t)", "the value of h at 0 could not be determined within the deadline"),
        ("sin(1/(1-t))", "the value of h at 1 could not be determined"),
        ("t**a", "the value of h at 0 is undetermined for a > -1; declare a narrower range"),
    ],
)
def test_an_undetermined_end_says_what_to_do(h, words):
    with pytest.raises(UndecidedError, match=words):
        entropy(h, {"a": "a > -1"} if "a" in h.replace("tan", "") else None)


def test_what_is_not_real_inside_is_refused_with_the_place():
    with pytest.raises(NotConcaveError, match=r"h\(1/2\) is not a real number") as caught:
        entropy("log(t - 2/3)")
    assert caught.value.witness == Rational(1, 2)


@pytest.mark.parametrize(
    ("h", "second"),
    [
        ("-log(t) - 1000*t**2", 1 / t**2 - 2000),
        ("-log(1 - t) - 1000*t**2", 1 / (1 - t) ** 2 - 2000),
        ("-log(t)/10**30 - t**2", 1 / (10**30 * t**2) - 2),
    ],
)
def test_the_witness_of_a_rise_to_infinity_is_one(h, second):
    with pytest.raises(NotConcaveError, match=r"tends to \+oo") as caught:
        entropy(h)
    assert 0 < caught.value.witness < 1
    assert second.subs(t, caught.value.witness) > 0


@pytest.mark.parametrize(
    ("h", "words"),
    [
        (sympy.Add(*[x**k for k in range(1, 1200)]), "more than 2000 operations"),
        (x * (1 - x) * sympy.Integer(2) ** 5000, "more than 4096 bits"),
        (x**20000, "too large: at most 10000"),
        (sympy.zeta(x), "is not something that fysym compiles"),
    ],
    ids=["operations", "bits", "power", "zeta"],
)
def test_what_is_too_large_says_so(h, words):
    with pytest.raises(UnsupportedError, match=words):
        entropies._check_supported(h)


def test_no_time_is_told_from_what_is_wrong():
    with pytest.raises(UndecidedError, match="could not be read within the deadline"):
        read("t*(1 - t)", None, Deadline(0))
    with pytest.raises(UndecidedError, match="kinks of h could not be found"):
        entropies.normalise(t * (1 - t), (), x, Deadline(0))
    family = entropy("a*t*(1 - t)", {"a": "a > 0"})
    with pytest.raises(UndecidedError, match="h at a = 2 could not be worked out"):
        bind(family, {"a": 2}, Deadline(0))


def test_a_pole_of_a_family_has_no_member():
    family = entropy("t*(1 - t)/(a - 1)", {"a": "a >= 1"})
    with pytest.raises(UndecidedError, match="no finite limit at a = 1"):
        bind(family, {"a": 1}, Deadline(8))


def test_a_limit_that_sympy_cannot_take_is_undecided(monkeypatch):
    def fails(*_):
        raise NotImplementedError

    family = entropy("(t - t**a)/(a - 1)", {"a": "a >= 1"})
    monkeypatch.setattr(sympy, "limit", fails)
    assert bind(family, {"a": 1}, Deadline(8)).h == -t * log(t)  # by l'Hopital
    monkeypatch.setattr(entropies, "_removed", fails)
    with pytest.raises(UndecidedError, match="no limit that can be found at a = 1"):
        bind(family, {"a": 1}, Deadline(8))


@pytest.mark.parametrize(
    ("given", "limit"),
    [
        ((t - t**a) / (a - 1), -t * log(t)),
        ((t ** (1 / a) - t**a) / (a - 1 / a), -t * log(t)),
        ((t - t**a) / (a - 1) + t * (1 - t), -t * log(t) + t * (1 - t)),
        (t * (1 - t) / (a - 1), None),
        (t * (1 - t) * (a - 1), None),
        ((t - t**a) ** 2 / (a - 1) ** 2, None),
    ],
    ids=str,
)
def test_a_singularity_of_first_order_is_removed(given, limit):
    found = entropies._removed(given, a, sympy.S.One)
    assert found == limit or sympy.expand(found - limit) == 0


def test_a_number_to_an_awkward_power_is_refused():
    family = entropy("t - (3*t)**a/9", {"a": "1 < a < 2"})
    with pytest.raises(UnsupportedError, match="a number to the power 12347/10000"):
        bind(family, {"a": Rational(12347, 10000)}, Deadline(8))
    assert bind(family, {"a": Rational(3, 2)}, Deadline(8)).h.has(sqrt(3))
