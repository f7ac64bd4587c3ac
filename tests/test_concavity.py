"""Strict concavity: what is concave is accepted, what is not is refused with a witness that is one."""

from __future__ import annotations

import dataclasses
import time

import mpmath
import pytest
import sympy

import fysym
from fysym import concavity, regularity, search, witness
from fysym.boundary import Limit
from fysym.certify import questions
from fysym.concavity import decide
from fysym.deadline import Deadline
from fysym.entropy import read

t = sympy.Symbol("t", positive=True)


def curvature_at(h: str, witness: object) -> mpmath.mpf:
    """h'' at the witness, to 50 digits."""
    second = sympy.diff(sympy.sympify(h, locals={"t": t}), t, 2)
    return mpmath.mpf(str(sympy.N(second.subs(t, sympy.Rational(witness)), 50)))


@pytest.mark.parametrize(
    "h",
    [
        "-t*log(t)",
        "t*(1-t)",
        "t - t**4",
        "-(t - 1/2)**4",
        "-(t - 1/3)**6",
        "sqrt(t)",
        "t**(3/10) - t**(7/2)",
        "log(1 + 5*t)",
        "log(t)",
        "-1/t",
        "-exp(3*t)",
        "atan(2*t)",
        "tanh(3*t)",
        "erf(t)",
        "asinh(4*t)",
        "-asin(t)",
        "acos(t)",
        "-tan(t)",
        "log(cos(t))",
        "sqrt(t*(1-t))",
        "t*sqrt(1-t)",
        "sqrt(1-t**2)",
        "log(1 + t*(1-t))",
        "1 - exp(-t*(1-t))",
        "-cosh(2*t)",
        "t/(1 + 3*t)",
        "-t*atan(t)",
        "-log(1 + exp(2*t))",
        "t*(1-t) + min(t, 1-t)",
        "t*(1-t) - abs(t - 1/3)",
        "t*(1-t) + sin(40*t)/900",
        "-t**10 - t**3/1000000",
        "t - t**1000",
    ],
)
def test_concave_by_mathematics_is_proved(h):
    assert fysym.compile(h).fact("strictly_concave").status in ("proved", "certified")


@pytest.mark.parametrize(
    "h",
    [
        "t**2",
        "t*log(t)",
        "exp(t)",
        "t**3 - t",
        "sin(2*pi*t)",
        "-t*log(t) + t**2",
        "t*(1-t) + 6*t**2/5",
        "sqrt(t) - 3*sqrt(1-t)/2",
        "t*(1-t) + exp(-10**8*(t-1/3)**2)/(4*10**7)",
        "t*(1-t) + 3*exp(-10**12*(t-1/3)**2)/10**12",
        "t*(1-t) + sin(1000*t)*21/10**7",
        "t - t**2 + t**50/1000",
        "-t**4 + 10**-9*t**2",
    ],
)
def test_a_refusal_carries_a_true_witness(h):
    with pytest.raises(fysym.NotConcaveError) as caught:
        fysym.compile(h)
    assert 0 < caught.value.witness < 1
    assert curvature_at(h, caught.value.witness) > 0


@pytest.mark.parametrize(
    "h",
    [
        "0",
        "7",
        "3*t - 2",
        "min(t, 1-t)",
        "-abs(t - 1/2)",
        "t*(1-t) + abs(t - 1/3)",
        "t*(1-t) + max(t, 2/5)",
        "Piecewise((t*(1-t), t < 1/3), (t*(1-t) - 1/10, True))",
        "Piecewise((-(t-1/3)**2, t < 1/3), (0, True))",
        "t*(1-t) + sign(t - 1/7)",
        "-1/(t - 2/7)**2",
        "log(abs(t - 2/7))",
        "log(t - 2/7)",
        "sqrt(t - 2/7)",
        "asin(2*t)",
        "log(cos(4*t))",
        "-log(t)",
        "1/t",
        "-1/(t - 1/pi)**2",
    ],
)
def test_broken_inside_the_interval_is_refused_with_a_place(h):
    with pytest.raises(fysym.NotConcaveError) as caught:
        fysym.compile(h)
    assert 0 < caught.value.witness < 1


@pytest.mark.parametrize("h", ["-t**2 + atan(1/(t - 2/7))", "gamma(2*t - 5/2)/10**6 - 1000*t**2", "log((t - 2/7)**2)"])
def test_singular_inside_is_never_accepted(h):
    with pytest.raises((fysym.NotConcaveError, fysym.UndecidedError)):
        fysym.compile(h)


@pytest.mark.parametrize("exponent", [20, 26, 30, 34])
def test_a_bump_between_two_doubles_is_not_accepted(exponent):
    """3 exp(-w u^2)/w bends up by 12 e^(-3/2) = 2.68 at u^2 = 3/(2w), more than the 2 of t(1-t) bends down."""
    clock = Deadline(5)
    entropy = read(f"t*(1-t) + 3*exp(-10**{exponent}*(t-1/3)**2)/10**{exponent}", None, clock)
    with pytest.raises((fysym.NotConcaveError, fysym.UndecidedError)):
        decide(entropy, clock)


@pytest.mark.parametrize(
    "h",
    [
        "t*(1-t) + Min(3*t, t + 1/5, 1 - t/3)",
        "t*(1-t) + Min(t/7, 3/11 - t/13)",
        "t*(1-t) - Max(0, t - 3/7)**2",
        "t*(1-t) - abs(t - sqrt(2)/2)",
        "sqrt(t) + Min(t, log(2))",
        "t*(1-t) + Min(t*(sqrt(2) + 1), t/(sqrt(2) - 1) + 1/5 - t/2)",  # 1/(sqrt(2) - 1) = sqrt(2) + 1
    ],
)
def test_a_continuous_concave_kink_at_an_inexact_place_is_proved(h):
    assert fysym.compile(h).fact("strictly_concave").status == "proved"


@pytest.mark.parametrize("regular", ["proved", "certified", "sampled"])
def test_a_verdict_is_no_surer_than_that_h_is_regular(regular, monkeypatch):
    if regular == "certified":
        pytest.importorskip("flint")
    monkeypatch.setattr("fysym.concavity.check_regular", lambda *_: regular)
    clock = Deadline(10)
    assert decide(read("-exp(t)", None, clock), clock).fact.status == regular


def test_a_smooth_join_whose_formula_is_undefined_at_the_join():
    """u^2 log(|u|/4), u = t - 1/2: h'' = 2 log(|u|/4) + 3 < 0 and h(1/2) = 0 by its limit."""
    reg = fysym.compile("(t - 1/2)**2*log(abs(t - 1/2)/4)")
    assert reg.sparsity == "full"


def test_a_single_point_out_of_place_breaks_concavity():
    point = sympy.Piecewise((0, sympy.Eq(t, sympy.Rational(1, 2))), (t * (1 - t), True))
    with pytest.raises(fysym.FysymError):
        fysym.compile(point)


@pytest.mark.parametrize(
    ("h", "culprit"),
    [("-t*log(t) + t**2", "t**2"), ("sqrt(t) + exp(3*t)", "exp(3*t)"), ("t*(1-t) + 5*t**4", "5*t**4")],
)
def test_the_term_at_fault_is_named(h, culprit):
    with pytest.raises(fysym.NotConcaveError) as caught:
        fysym.compile(h)
    assert str(caught.value.culprit) == culprit and culprit in str(caught.value)


@pytest.mark.parametrize(
    ("h", "params", "hint"),
    [
        ("t**2", None, "the negative of h, which is concave"),
        ("-t**4 + t**2/2", None, "a larger share of a concave term"),
        ("c*t**2", {"c": "c > 0"}, "another range of the parameters"),
        ("c*t**2 - t**4", {"c": "0 < c < 1"}, "a narrower range of the parameters"),
    ],
)
def test_a_refusal_says_what_to_try(h, params, hint):
    with pytest.raises(fysym.NotConcaveError, match=hint):
        fysym.compile(h, params=params)


def test_a_family_wrong_in_part_of_its_range_names_the_parameter():
    with pytest.raises(fysym.NotConcaveError) as caught:
        fysym.compile("c*t*(1-t)", params={"c": "c > -2"})
    assert -2 < caught.value.parameters["c"] <= 0


def test_a_family_is_checked_at_the_closed_ends_of_its_range():
    """a t (1-t) is strictly concave for a > 0 and zero at a = 0."""
    fysym.compile("a*t*(1-t)", params={"a": "a > 0"})
    with pytest.raises(fysym.NotConcaveError):
        fysym.compile("a*t*(1-t)", params={"a": "a >= 0"})


@pytest.mark.parametrize(
    ("family", "params"),
    [
        ("(t - t**a)/(a*(a - 1))", {"a": "a > 1"}),
        ("(t**(1-k) - t**(1+k))/(2*k)", {"k": "0 < k < 1"}),
        ("-t*log(t) + c*t*(1-t)", {"c": "c >= 0"}),
        ("log(1 + c*t)", {"c": (0, None)}),
        ("t*(1 - t) + sin(a*t)/9", {"a": "0 < a < 3"}),
        ("t*(1 - t) + cos(a*t)/9", {"a": "1 <= a <= 4"}),
        ("sin(a*t)/a", {"a": "0 < a <= pi"}),
        ("-tan(a*t)", {"a": "0 < a < pi/2"}),
        ("log(sin(a*t))", {"a": "0 < a <= pi"}),
        ("t*(1 - t)/(a + t*(1 - t))", {"a": "a > 0"}),
        ("-sqrt((t - a)**2 + b)", {"a": "0 < a < 1", "b": "b > 0"}),
        ("-sqrt((t - a)**2 + b)", {"a": "-oo < a < oo", "b": "b > 0"}),
        ("(t - t**a)/(1 - 2**(1 - a))", {"a": "1 < a < 3"}),
        ("(t - t**a)/(1 - 3**(1 - a))", {"a": "0 < a < 1"}),
        ("log(1 + c**t)/log(c/9)", {"c": "1 < c < 8"}),
    ],
)
def test_families_are_proved(family, params):
    assert fysym.compile(family, params=params).fact("strictly_concave").status == "proved"


CERTIFIED_FAMILIES = [
    ("exp(-t)*log(1 + a*t*(1 - t))", {"a": "1/2 < a < 1"}),
    ("-t*log(t) + a*exp(-t)*log(1 + t*(1 - t))", {"a": "a >= 0"}),
]


@pytest.mark.parametrize(("family", "params"), CERTIFIED_FAMILIES, ids=[h for h, _ in CERTIFIED_FAMILIES])
def test_families_are_certified_over_their_range(family, params, monkeypatch):
    pytest.importorskip("flint")
    clock = Deadline(20)
    entropy = read(family, params, clock)
    verdict = decide(entropy, clock)
    assert verdict.fact.status == "certified" and "boxes" in verdict.fact.evidence or "1 box" in verdict.fact.evidence
    monkeypatch.setattr("fysym.certify.available", lambda: False)
    assert decide(entropy, Deadline(20)).fact.status == "sampled"


def test_a_family_wrong_at_one_corner_is_not_certified():
    """h'' = -2 + a^2 sin(a t)/9 is positive for a near 5 in a part of (0, 1) only."""
    clock = Deadline(10)
    with pytest.raises(fysym.NotConcaveError):
        decide(read("t*(1 - t) - sin(a*t)/9", {"a": "0 < a < 5"}, clock), clock)


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("3*t + t**alpha", "0 < alpha < 101/100"),
        ("alpha*t**2 + t*(1 - t)", "0 < alpha < 1 + 10**-30"),
        ("4*t - 5*(1 - alpha)*(alpha - t)**2", "0 < alpha < 1001/1000"),
        ("t*(1 - t) - alpha*t**2", "-1 - 10**-9 < alpha < 5"),
    ],
)
def test_a_family_that_fails_only_close_to_the_end_of_its_range_is_refused(text: str, span: str) -> None:
    with pytest.raises(fysym.NotConcaveError) as caught:
        fysym.compile(text, params={"alpha": span})
    assert "alpha" in caught.value.parameters


@pytest.mark.parametrize("size", ["10**-10", "10**-40", "10**-60"])
def test_the_least_upward_kinks_and_jumps_are_refused(size: str) -> None:
    with pytest.raises(fysym.NotConcaveError, match="slope of h rises"):
        fysym.compile(f"t*(1 - t) + max(0, t - 3/5)*{size}")
    with pytest.raises(fysym.NotConcaveError, match="jumps"):
        fysym.compile(f"exp(-t)*log(1 + t*(1 - t)) + sign(t - 2/7)*{size}")


# --- the parts of the decision --------------------------------------------------------------------------


def test_what_is_assumed_is_marked_as_assumed(monkeypatch):
    def undecided(*_):
        raise fysym.UndecidedError("nobody knows")

    entropy = read("t*(1-t)", None, Deadline(8))
    monkeypatch.setattr(concavity, "_decide_piece", undecided)
    with pytest.raises(fysym.UndecidedError, match="nobody knows"):
        decide(entropy, Deadline(8))
    verdict = decide(entropy, Deadline(8), assume_concave=True)
    assert verdict.fact.status == "sampled" and not verdict.strict
    assert verdict.fact.evidence == "assumed by the caller; nobody knows"


def test_a_proof_of_convexity_refutes(monkeypatch):
    """The search is kept from seeing that t^2 bends upwards; the proof sees it."""
    monkeypatch.setattr(concavity, "_search", lambda *_: "nothing seen")
    with pytest.raises(fysym.NotConcaveError, match=r"h''\(1/2\) = 2 > 0"):
        decide(read("t**2", None, Deadline(8)), Deadline(8))


def test_zeros_of_the_curvature():
    half, x = sympy.Rational(1, 2), read("t*(1-t)", None, Deadline(8)).t
    assert concavity._zero_inside(-((x - half) ** 2), x, Deadline(60)) == (False, half)
    assert concavity._zero_inside(-((x - 2) ** 2), x, Deadline(60)) == (True, None)
    assert concavity._zero_inside(-((sympy.exp(x) - 2) ** 2), x, Deadline(60)) == (False, sympy.log(2))
    assert concavity._zero_inside(-((sympy.exp(x) - 5) ** 2), x, Deadline(60)) == (False, None)
    assert concavity._zero_inside(-((x - half) ** 2), x, Deadline(0)) == (False, None)


def test_a_certificate_that_fails_or_is_late_is_none(monkeypatch):
    pytest.importorskip("flint")
    entropy = read("t*(1-t)", None, Deadline(8))
    assert questions.certified_sign(entropy, -1 / entropy.t, -1, Deadline(8)) is not None
    assert questions.certified_sign(entropy, -1 / entropy.t, 1, Deadline(8)) is None
    assert questions.certified_sign(entropy, -1 / entropy.t, -1, Deadline(0)) is None


def test_terms_of_unlike_signs_are_not_certified():
    pytest.importorskip("flint")
    family = read("-t*log(t) + a*t*(1-t)", {"a": "a > 0"}, Deadline(8))
    (b,) = (p.coordinate for p in family.parameters)
    assert questions._certify_terms(family, -1 / family.t - 2 * b, -1, 4).sign == -1
    assert questions._certify_terms(family, -1 / family.t + 2 * b, -1, 4) is None


def test_what_becomes_complex_between_the_probes_is_refused():
    entropy = read("t*(1-t)", None, Deadline(8))
    hole = sympy.sqrt(entropy.t - sympy.Rational(1, 500)) - entropy.t**2
    (piece,) = (dataclasses.replace(piece, expr=hole) for piece in entropy.pieces)
    with pytest.raises(fysym.NotConcaveError, match=r"h\(1/1000\) is not a real number") as caught:
        witness.probe(dataclasses.replace(entropy, pieces=(piece,)))
    assert caught.value.witness == sympy.Rational(1, 1000)


def test_a_slope_that_provably_drops_joins_two_pieces():
    family = read("a*Min(t, 1-t) + t*(1-t)", {"a": "a > 0"}, Deadline(8))
    left, right = family.pieces
    step = regularity._step(family, left, right, 1, Deadline(10))
    assert regularity._is_joined(family, (step,), 1, Deadline(60))
    assert not regularity._is_joined(family, -step, 1, Deadline(60))
    assert not regularity._is_joined(family, step, 0, Deadline(8))
    assert not regularity._is_joined(family, (step,), 1, Deadline(0))


def test_regularity_by_balls_is_certified(monkeypatch):
    pytest.importorskip("flint")
    entropy = read("-t**2 + log(2 - t)/100", None, Deadline(10))
    (piece,) = entropy.pieces
    assert regularity.check_regular(entropy, piece, entropy.h, Deadline(10)) == "proved"
    monkeypatch.setattr(regularity, "prove_sign", lambda *_, **__: None)
    assert regularity.check_regular(entropy, piece, entropy.h, Deadline(20)) == "certified"


def test_no_time_for_a_search_is_no_answer(monkeypatch):
    entropy = read("t*(1-t)", None, Deadline(8))
    (piece,) = entropy.pieces
    second = sympy.diff(entropy.h, entropy.t, 2)
    assert witness.timed_search(second, entropy.t, Deadline(0)) is None
    found = concavity._search(entropy, piece, second, Deadline(0))
    assert isinstance(found, fysym.UndecidedError) and found.interval == (0.0, 1.0)
    monkeypatch.setattr(search, "search_positive", lambda *_, **__: time.sleep(3))
    assert witness.timed_search(second, entropy.t, Deadline(0.5)) is None


def test_the_search_for_poles():
    entropy = read("t*(1-t)", None, Deadline(8))
    (piece,) = entropy.pieces
    x, third = entropy.t, sympy.Rational(1, 3)
    assert regularity._search_pole(entropy, piece, entropy.h, 1 + x, {}, Deadline(8)) is None
    with pytest.raises(fysym.NotConcaveError, match="h is unbounded at t = 0.333333"):
        regularity._search_pole(entropy, piece, 1 / (x - third), x - third, {}, Deadline(8))
    with pytest.raises(fysym.NotConcaveError, match="is not a real number"):
        regularity._search_pole(entropy, piece, sympy.log(x - third), x - third, {}, Deadline(8))
    low, high = regularity._search_pole(entropy, piece, x, x - third, {}, Deadline(8))
    assert 0 <= low <= third <= high <= 1
    with pytest.raises(fysym.UndecidedError, match="smooth where 7.t - 3 vanishes"):
        fysym.compile("-t**2 + sin((7*t - 3)**2)/(7*t - 3)/1000")


@pytest.mark.parametrize(
    ("h", "parameters", "flat"),
    [
        ("log(1 + a*t)", "-1/2 < a < 1", 0),
        ("-(a - 1)**2*t**2", "a > 0", 1),
        ("-(a - b)**2*t**2", "a > 0, b > 0", None),
        ("-(a**2 - 2)**2*exp(t)", "1 <= a <= 2", sympy.sqrt(2)),
    ],
)
def test_a_family_that_is_affine_for_one_value_is_refused(h: str, parameters: str, flat: object) -> None:
    params = {one.strip(" <=>0123456789-/"): one for one in parameters.split(", ")}
    with pytest.raises(fysym.NotConcaveError, match="h'' = 0 on all of") as error:
        fysym.compile(h, params=params)
    values = error.value.parameters
    assert values["a"] == (values["b"] if flat is None else flat)


def test_a_family_with_a_zero_of_curvature_in_t_is_proved() -> None:
    fact = fysym.compile("-a*(2*t - 1)**4 - a**2*(t - 1/2)**6", params={"a": "a > 0"}).fact("strictly_concave")
    assert fact.status == "proved"


@pytest.mark.parametrize(
    "h", ["-t**2 + acos(100*t/99)", "-t*log(1 - t**2/(1 - 1/10**9)) - exp(t)", "sqrt(t - 1/10**10)"]
)
def test_h_that_is_not_real_next_to_an_end_is_refused(h: str) -> None:
    with pytest.raises(fysym.NotConcaveError, match="not a real number"):
        fysym.compile(h)


@pytest.mark.parametrize(
    "h", ["log((t - 2/7)**2)/1000 - t**2", "-t**2 - 1/(7*t - 3)**2/10**9", "-t**4 + log((t - 3/11)**4)"]
)
def test_a_pole_where_no_sign_changes_is_refused(h: str) -> None:
    with pytest.raises(fysym.NotConcaveError, match="h is unbounded at t = 0|h.. *> 0|> 0"):
        fysym.compile(h)


def test_a_pole_at_the_end_of_a_range_of_parameters_is_refused() -> None:
    with pytest.raises(fysym.NotConcaveError):
        fysym.compile("-t**2 + log(1 - a*t)/10**9", params={"a": "1/2 <= a < 1000001/1000000"})


@pytest.mark.parametrize(
    ("h", "params", "inside"),
    [
        ("-cosh(c*t)", {"c": (None, None)}, lambda c: c == 0),
        ("((a-1)**2 - 1/10**12)*t*(1-t)", {"a": "0 < a < 2"}, lambda a: 10**6 * abs(a - 1) <= 1),
        ("((a-1)**2 - 1/10**12)*t*(1-t) - (a-1)**4*t**4", {"a": "0 < a < 2"}, lambda a: 10**6 * abs(a - 1) <= 1),
        ("-(a-b)**2*cosh((a-3)*t)", {"a": "0 < a < 2", "b": "1 < b < 3"}, lambda a, b: a == b),
    ],
)
def test_single_members_and_slivers_of_a_family_that_are_not_concave_are_found(h, params, inside) -> None:
    with pytest.raises(fysym.NotConcaveError) as caught:
        fysym.compile(h, params=params)
    assert inside(**caught.value.parameters)


@pytest.mark.parametrize("span", ["0 < a < 1", "a > 1"])
def test_powers_of_a_parameter_are_strictly_concave_away_from_1(span: str) -> None:
    assert fysym.compile("-(a**t)", params={"a": span}).fact("strictly_concave").status == "proved"


@pytest.mark.parametrize("h", ["-Abs(t)**a/a", "-Abs(t)**a - Abs(t)"])
def test_a_slope_that_vanishes_slowly_at_a_kink_is_no_rise(h: str) -> None:
    family = fysym.compile(h, params={"a": "a > 1"}, domain="reals")
    assert family.fact("strictly_concave").status == "proved"


def test_a_kink_whose_slopes_are_not_known_is_undecided(monkeypatch) -> None:
    monkeypatch.setattr(regularity, "end_limit", lambda *_: Limit(None, "sampled", "nothing"))
    with pytest.raises(fysym.UndecidedError, match="could not tell whether the slope of h rises at t = 0"):
        fysym.compile("-Abs(t)**a", params={"a": "a > 1"}, domain="reals")


@pytest.mark.parametrize("h", ["-log(1 + exp(50*t))", "t*LambertW(1/t)", "-t*LambertW(-t/E, -1)"])
def test_large_exponentials_and_lambert_functions_are_proved(h: str) -> None:
    assert fysym.compile(h).fact("strictly_concave").status == "proved"


@pytest.mark.parametrize(
    "h", ["log(Abs(t - 3/7))/10**12 - 16*exp(-13*t/4)/169", "log(Abs(t - 9/20))/10**6 + sin(27*t/20)"]
)
def test_a_pole_between_pieces_is_found_however_slowly_h_falls(h):
    with pytest.raises(fysym.NotConcaveError):
        fysym.compile(h)


def test_exponentials_of_squares_with_large_coefficients_are_no_polynomials():
    """exp(-10^6 (a - 0.617)^2) is exp(a)^1234000 and more to SymPy, whose factors take minutes."""
    family = fysym.compile("t*(1-t) + t**2*exp(-10**6*(a - 617/1000)**2)*999/1000", params={"a": "0 < a < 1"})
    assert family.fact("strictly_concave").status == "proved"
    assert family.bind(a=0.617).margin == sympy.Rational(1, 500)


@pytest.mark.parametrize(
    ("h", "params"),
    [
        ("-loggamma(c*t + r)", {"c": "c > 0", "r": "0 < r < 1"}),
        ("w*LambertW(c*t + r) - v*t*log(t)", {"c": "c > 0", "r": "0 < r < 1", "w": "w > 0", "v": "v >= 0"}),
        ("-w*sqrt(r**2 + (t - r)**2) + v*sin(pi*t)", {"r": "0 < r < 1", "w": "w > 0", "v": "v >= 0"}),
        ("-w*log(exp(c*t) + 1) - 1/log(2*t + 4/3)", {"c": "1 <= c <= 4", "w": "1 <= w < 2"}),
        (
            "-w*loggamma(c*t + r) - v*(d*t + 1/3)**b",
            {"c": "c > 0", "r": "0 < r < 1", "w": "w > 0", "b": "3/2 <= b < 3", "d": "1 <= d <= 4", "v": "1 <= v < 2"},
        ),
        (
            "w*(t**a - t**b) + v*sqrt(2*t + 1/3)",
            {"a": "1/5 <= a <= 4/5", "b": "3/2 <= b < 3", "w": "1 <= w < 2", "v": "v >= 0"},
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_families_of_concave_terms_are_proved(h, params):
    clock = Deadline(30)
    verdict = decide(read(h, params, clock), clock)
    assert verdict.fact.status == "proved" and verdict.strict


def test_a_corner_of_the_ranges_is_decided_once(monkeypatch):
    seen = []
    decide_piece = concavity._decide_piece

    def counted(entropy, *rest):
        seen.append(entropy.given)
        return decide_piece(entropy, *rest)

    monkeypatch.setattr(concavity, "_decide_piece", counted)
    params = {name: f"1 <= {name} <= 2" for name in "uvw"}
    clock = Deadline(30)
    verdict = decide(read("-u*t**2 + v*log(t + 1) + w*sqrt(t + 1)", params, clock), clock)
    assert len(seen) == len(set(seen)) == 3**3 == len(verdict.proofs)
    assert len(verdict.faces) == 6 and all(len(face.faces) == 4 for face in verdict.faces)
