"""Splitting at the places where Abs, Min, Max, sign and Piecewise switch."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
import sympy
from sympy import Abs, Heaviside, Max, Min, Piecewise, Rational, S, exp, log, sign, sqrt

import fysym
from fysym import kinks, regularity
from fysym.deadline import Deadline
from fysym.entropy import VARIABLE as t
from fysym.entropy import read
from fysym.errors import NotConcaveError, UnsupportedError
from fysym.kinks import Piece, split

HALF = Rational(1, 2)
QUARTER = Rational(1, 4)
TENTH = Rational(1, 10)


@pytest.mark.parametrize(
    ("h", "pieces"),
    [
        (t * (1 - t), [(0, 1, t * (1 - t))]),
        (Min(t, 1 - t), [(0, HALF, t), (HALF, 1, 1 - t)]),
        (Max(t, 1 - t), [(0, HALF, 1 - t), (HALF, 1, t)]),
        (Min(t, 2 * (1 - t)), [(0, Rational(2, 3), t), (Rational(2, 3), 1, 2 - 2 * t)]),
        (Abs(t - HALF), [(0, HALF, HALF - t), (HALF, 1, t - HALF)]),
        (Abs(t - 2), [(0, 1, 2 - t)]),
        (sign(t - Rational(1, 3)), [(0, Rational(1, 3), -1), (Rational(1, 3), 1, 1)]),
        (Heaviside(t - HALF), [(0, HALF, 0), (HALF, 1, 1)]),
        (Piecewise((t, t < HALF), (HALF, True)), [(0, HALF, t), (HALF, 1, HALF)]),
        (Piecewise((t, t <= HALF), (t, True)), [(0, 1, t)]),
        (Piecewise((t, (t > QUARTER) & (t < HALF)), (0, True)), [(0, QUARTER, 0), (QUARTER, HALF, t), (HALF, 1, 0)]),
        (Abs(t**2 - HALF), [(0, sqrt(2) / 2, HALF - t**2), (sqrt(2) / 2, 1, t**2 - HALF)]),
        (Abs(exp(t) - 2), [(0, log(2), 2 - exp(t)), (log(2), 1, exp(t) - 2)]),
        (Abs(Abs(t - HALF) - QUARTER), None),
        (
            Min(3 * t, t + Rational(1, 5), 1 - t / 3),
            [(0, TENTH, 3 * t), (TENTH, Rational(3, 5), t + Rational(1, 5)), (Rational(3, 5), 1, 1 - t / 3)],
        ),
        (Max(t - 1, 0) ** 2, [(0, 1, 0)]),
    ],
    ids=str,
)
def test_pieces(h, pieces):
    found = split(h, t)
    if pieces is None:
        assert [p.high for p in found] == [QUARTER, HALF, 3 * QUARTER, 1]
        return
    assert [(sympy.simplify(p.low), sympy.simplify(p.high)) for p in found] == [(low, high) for low, high, _ in pieces]
    assert all(sympy.simplify(p.expr - expr) == 0 for p, (_, _, expr) in zip(found, pieces, strict=True))


def test_pieces_cover_the_interval_without_gaps():
    found = split(Min(t, Rational(1, 3), Abs(t - Rational(2, 3)) + Rational(1, 9)), t)
    assert found[0].low == 0 and found[-1].high == 1
    assert all(a.high == b.low for a, b in zip(found, found[1:], strict=False))


def test_no_switch_is_left_over():
    for piece in split(Max(Min(t, 1 - t), Abs(t - HALF)) + sign(t - Rational(1, 7)), t):
        assert not piece.expr.has(Min, Max, Abs, sign)


def test_a_cusp_written_as_a_root_of_a_square_is_split():
    found = split(-(((t - HALF) ** 4) ** Rational(1, 3)), t)
    assert [p.high for p in found] == [HALF, 1]


def test_stretching_a_piece_and_going_back():
    piece = Piece(QUARTER, HALF, t**2)
    assert sympy.expand(piece.stretched(t, t) - (QUARTER + t / 4) ** 2) == 0
    assert (piece.point(sympy.Integer(0)), piece.point(sympy.Integer(1))) == (QUARTER, HALF)


@pytest.mark.parametrize(
    "h",
    [
        sympy.sin(200 * t) * sign(sympy.sin(200 * t)),
        Abs(t - sympy.Symbol("a", positive=True)),
        Piecewise((t, t < HALF)),
        Abs(sympy.cos(t) - t),
    ],
    ids=["too many", "moves with a parameter", "not defined everywhere", "not found exactly"],
)
def test_what_cannot_be_split_is_an_error(h):
    with pytest.raises(UnsupportedError):
        split(h, t)


def test_a_polynomial_with_many_roots_is_refused_with_their_number():
    many = Abs(sympy.prod([t - Rational(k, 40) for k in range(1, 40)]))
    with pytest.raises(UnsupportedError, match="more than 32 places"):
        split(many, t)


def test_a_value_at_one_point_must_be_the_one_around_it():
    smooth = t * (1 - t)
    (whole,) = fysym.compile(Piecewise((QUARTER, sympy.Eq(t, HALF)), (smooth, True))).derivation.entropy.pieces
    assert (whole.expr, whole.joints) == (smooth, (HALF,))
    with pytest.raises(NotConcaveError, match="jumps at the single point t = 1/2") as caught:
        fysym.compile(Piecewise((HALF, sympy.Eq(t, HALF)), (smooth, True)))
    assert caught.value.witness == HALF


def test_what_does_not_depend_on_t_does_not_switch():
    fixed = Abs(sympy.sqrt(2) - 2, evaluate=False)
    assert split(fixed * t, t) == (Piece(S.Zero, S.One, (2 - sqrt(2)) * t),)


def test_a_solver_that_fails_leaves_the_count_of_sign_changes_to_decide(monkeypatch):
    def fails(*_):
        raise NotImplementedError

    monkeypatch.setattr(sympy, "solve", fails)
    assert len(split(Abs(exp(t) - 5), t)) == 1
    with pytest.raises(UnsupportedError, match="could not find exactly where"):
        split(Abs(exp(t) - 2), t)


def test_a_drop_at_sampled_parameters_is_no_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no proof is found, numbers prove the drop of one slope, but not that of a family's slopes."""
    monkeypatch.setattr(regularity, "_is_joined", lambda entropy, step, order, deadline: order == 0)
    for h, params, status in (("min(t, 1-t)", None, "proved"), ("a*min(t, 1-t)", {"a": "1 <= a <= 2"}, "sampled")):
        entropy = read(f"{h} + t*(1-t)", params, Deadline(20))
        assert regularity.check_kinks(entropy, Deadline(20)) == status


@pytest.mark.parametrize(
    "slope", ["(a - 617/1000)**2 - 1/10**4", "1/2 - exp(-10**3*(a - 617/1000)**2)", "4**a - 2**a - 1"]
)
def test_few_members_whose_slope_rises_at_a_kink_refute_the_family(slope):
    with pytest.raises(fysym.NotConcaveError, match="the slope of h rises at its kink t = 1/2 with a = ") as refused:
        fysym.compile(f"-t**2 - Abs(t - 1/2)*({slope})", params={"a": "0 < a < 1"}, deadline=60)
    slope_there = sympy.sympify(slope, rational=True).subs("a", refused.value.parameters["a"])
    assert slope_there.evalf(30) < 0


@pytest.mark.parametrize("slope", ["a**2 - a + 1", "(a - 617/1000)**2", "4**a - 2**a", "a - sin(a)"])
def test_that_the_slopes_of_a_family_drop_is_proved(slope):
    family = fysym.compile(f"-t**2 - Abs(t - 1/2)*({slope})", params={"a": "a > 0"})
    assert family.fact("strictly_concave").status == "proved"


@pytest.mark.parametrize(
    "h",
    [
        "t*(1-t) + 1000*Max(0, 1/10**7 - (t-1/3)**2 + (exp(t)-exp(1/3))/10**12)",
        "t*(1-t) + Abs((t-1/3)**2 - 1/10**9 + (sin(t)-sin(1/3))/10**15)",
        "t*(1-t) if sin(t)*(t-1/3)**2 > sin(t)*1e-8 + 1e-20*exp(t) else 5",
    ],
)
def test_switches_between_points_of_a_grid_are_not_overlooked(h):
    """None of these is concave, and no solver finds where they switch."""
    with pytest.raises(fysym.FysymError):
        fysym.compile(h)


def test_a_switching_function_may_touch_zero():
    assert fysym.compile("Min(sin(pi*t), 4*t*(1-t))").margin == 2 * sympy.pi  # sin(pi t) is the smaller one


def test_pieces_may_meet_at_roots_without_a_formula():
    reg = fysym.compile("-t**2 - Max(0, t**5 + t - 1/2)")
    at = float(sympy.nsolve(sympy.Symbol("t") ** 5 + sympy.Symbol("t") - 0.5, 0.4))
    larger = 1 - at
    p = reg.predict([2 * larger + 5 * larger**4 + 1, 2 * at + 0.5, -10.0])  # the second is in the corner
    np.testing.assert_allclose(p, [larger, at, 0.0], atol=1e-12)


@pytest.mark.parametrize("h", ["t*(1-t) if t < 1/2 else 1/4 - (t-1/2)**2", "-t*log(t) - Max(t - 1/2, 0)**4"])
def test_derivatives_where_pieces_meet_smoothly(h):
    np.testing.assert_allclose(fysym.compile(h).jvp([0.0, 0.0], [1.0, 0.0]), [0.25, -0.25], atol=1e-12)


def test_a_switch_between_parameters_does_not_split_the_interval():
    family = fysym.compile("(1 + Abs(a - 1))*t*(1 - t)", params={"a": "0 < a < 2"})
    assert family.bind(a=1.5).margin == 3 and family.bind(a=0.5).margin == 3
    assert sympy.simplify(family.margin.subs(sympy.Symbol("a"), Rational(1, 2)) - 3) == 0


def test_a_switch_without_an_exact_method_is_left_to_be_proved():
    (low, high) = split(Abs(exp(t) - 2), t)
    assert [low.steady, high.steady] == [(Piece(0, log(2), exp(t) - 2),), (Piece(log(2), 1, exp(t) - 2),)]
    assert all(piece.steady == () for piece in split(Abs(t**2 - HALF), t)), "the roots of a polynomial are counted"


def test_pieces_of_several_switches_keep_what_is_left_of_each():
    for piece in split(Abs(exp(t) - 2) + Abs(sympy.sin(t) - HALF), t):
        assert {part.expr for part in piece.steady} == {exp(t) - 2, sympy.sin(t) - HALF}
        assert all((part.low, part.high) == (piece.low, piece.high) for part in piece.steady)


def test_joined_pieces_keep_what_is_left_to_be_proved():
    (whole,) = split(t * sign(exp(t) - 2) ** 2, t)
    assert whole.expr == t
    assert [(part.low, part.high) for part in whole.steady] == [(0, log(2)), (log(2), 1)]


@pytest.mark.parametrize("h", ["t*(1-t) - Abs(sin(t) - 1/2)", "t*(1-t) + Min(0, exp(t)/2 - 1)/9"])
def test_that_h_switches_nowhere_else_is_proved_certified_or_not_claimed(monkeypatch, h):
    assert {fact.status for fact in (fysym.compile(h).fact("strictly_concave"), fysym.compile(h).fact("margin"))} == {
        "proved"
    }
    monkeypatch.setattr(regularity, "prove_sign", lambda *_, **__: None)
    if fysym.certify.available():
        known = fysym.compile(h)
        assert known.fact("margin").status == "certified" == known.fact("strictly_concave").status
        assert all("switches nowhere else" in known.fact(name).evidence for name in ("strictly_concave", "slope_at_0"))
        assert fysym.verify(known.certificate())
    monkeypatch.setattr(regularity, "certified_sign", lambda *_, **__: None)
    guessed = fysym.compile(h)
    assert guessed.fact("margin").status == "sampled" == guessed.fact("strictly_concave").status
    with pytest.raises(fysym.UndecidedError, match="only sampled"):
        guessed.certificate()
    with pytest.raises(fysym.UndecidedError, match="switches nowhere else"):
        fysym.compile(h, strict=True)


def test_a_proof_of_the_other_sign_or_one_that_allows_zeros_is_no_proof(monkeypatch):
    monkeypatch.setattr(regularity, "certified_sign", lambda *_, **__: None)
    entropy = read("t*(1-t) - Abs(exp(t) - t**2/2)", {}, Deadline(10))
    (part,) = entropy.pieces[0].steady
    right = 1 if part.expr.subs(t, HALF).is_positive else -1
    for sign_of, strict in ((right, True), (right, False), (-right, True)):
        proof = regularity.Proof(t, sign_of, strict, "by hand")
        monkeypatch.setattr(regularity, "prove_sign", lambda *_, proof=proof, **__: proof)
        expected = ("proved", (proof,)) if sign_of == right and strict else ("sampled", ())
        assert regularity.check_switches(entropy, Deadline(10)) == expected


ONCE = [
    "t*(1-t) if t<1/3 else (9 if t<=1/3 else t*(1-t))",
    "t*(1-t) if t<1/3 else (99 if t<=1/3 else t*(1-t)-(t-1/3)**2)",
    "t*(1-t) if t**2<1/2 else (99 if t**2<=1/2 else t*(1-t))",
    "9 if (exp(t)-2)**2 <= 0 else t*(1-t)",
    "t*(1-t)*sign((t-1/3)**2)",
    "t*(1-t) + abs(sign(t-1/3)) - 1",
    t * (1 - t) + Heaviside(-((t - Rational(1, 3)) ** 2)),
    "a*t*(1-t)*sign((t-1/3)**2)",
]


@pytest.mark.parametrize("h", ONCE, ids=str)
def test_another_value_at_a_single_point_is_a_jump(h):
    with pytest.raises(NotConcaveError, match="jumps at the single point") as error:
        fysym.compile(h, params={"a": "a > 0"} if "a*" in str(h) else None)
    assert 0 < error.value.witness < 1


def test_certificates_are_not_read_where_h_jumps_at_a_point():
    good = fysym.compile("t*(1-t) if t<1/3 else t*(1-t)").certificate()
    content = {k: v for k, v in good.items() if k != "digest"} | {"entropy": "t*(1-t)*sign((t-1/3)**2)"}
    with pytest.raises(fysym.FysymError, match="single point"):
        fysym.verify(content | {"digest": fysym.certificate.data.digest(content)})


@pytest.mark.parametrize(
    "h",
    [
        "5 if t > 1/3 and t < 1/3 + 1e-35 else t*(1-t)",
        "t*(1-t) - abs(t-1/3) + 2*abs(t-1/3-1e-55) - abs(t-1/3-2e-55)",
        "t*(1-t) + Max(0, 1e-60-abs(t-1/3))*1e50",
        "Max(t*(1-t), t*(1-t) - (t-1/3)*(t-1/3-1e-60)*1e30)",
    ],
)
def test_pieces_are_seen_however_narrow_they_are(h):
    with pytest.raises(NotConcaveError):
        fysym.compile(h)


def test_conditions_that_are_no_comparisons_are_refused():
    h = Piecewise((-(t**2), sympy.Q.positive(t - Rational(1, 3))), (t * (1 - t), True))
    with pytest.raises(UnsupportedError, match="cannot be decided"):
        fysym.compile(h)


def test_places_that_cannot_be_put_in_order_are_refused(monkeypatch):
    monkeypatch.setattr("fysym.truth.sign", lambda _: None)
    with pytest.raises(UnsupportedError, match="first"):
        kinks._sorted({HALF, QUARTER})


def test_a_value_that_sympy_cannot_find_leaves_only_samples(monkeypatch):
    monkeypatch.setattr("fysym.entropy.Entropy.point_steps", lambda self: iter([(HALF, None)]))
    reg = fysym.compile("t*(1-t)")
    assert reg.fact("strictly_concave").status == "sampled" == reg.fact("margin").status


def test_values_at_roots_without_a_formula():
    entropy = read("(t*(1-t) if t**5 + t <= 1/2 else t*(1-t)) + (0 if t < 2 else 1)", {}, Deadline(20))
    assert all(step is None or step == 0 for _, step in entropy.point_steps())
    assert [at for at, _ in entropy.point_steps()] == list(entropy.pieces[0].joints)


@pytest.mark.parametrize(
    ("h", "crossing"),
    [
        ("Min(sqrt(t), 1 - t**2)", lambda t: mpmath.sqrt(t) + t**2 - 1),
        ("Min(t**(1/3), 1 - t**2) + t*(1-t)", lambda t: mpmath.cbrt(t) + t**2 - 1),
        ("Min(t**(3/4), 1 - t**(5/2))", lambda t: t ** mpmath.mpf("0.75") + t ** mpmath.mpf("2.5") - 1),
    ],
)
def test_pieces_meet_at_exact_zeros_of_roots_of_t(h, crossing):
    left, right = fysym.compile(h, deadline=60.0).derivation.entropy.pieces
    assert left.high == right.low and left.steady == right.steady == ()
    with mpmath.workdps(40):
        assert abs(crossing(mpmath.mpf(str(sympy.N(left.high, 40))))) < 1e-35


@pytest.mark.parametrize(
    "h",
    [
        "-t**2 + 10**-301*Abs(t - 1/3)",
        "-t**2 + 10**-900*Abs(exp(t) - 2)",
        "-t**2 + sqrt(2)*10**-400*Max(0, t - 1/3)",
        "-t*(t + a) + a*10**-400*Abs(t - 1/3)",
    ],
)
def test_a_slope_that_rises_is_refuted_however_little_it_does(h):
    with pytest.raises(NotConcaveError, match="the slope of h rises at its kink"):
        fysym.compile(h, params={"a": "a > 0"} if "a)" in h else None)


@pytest.mark.parametrize(
    "h",
    [
        "-t**2 if t < 1/3 else 10**-301 - t**2",
        "-t**2 if t < 1/3 or t > 1/3 else -1/9 + 10**-301",
        "t*(1-t) + 10**-400*sign((t-1/3)**2)",
    ],
)
def test_a_jump_is_refuted_however_small_it_is(h):
    with pytest.raises(NotConcaveError, match="h jumps at"):
        fysym.compile(h)


def test_a_slope_that_drops_is_proved_however_little_it_does():
    assert fysym.compile("-t**2 - 10**-301*Abs(t - 1/3)").fact("strictly_concave").status == "proved"
