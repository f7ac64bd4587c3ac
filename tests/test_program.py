"""Lowering: which forms are chosen, and what is refused."""

import dataclasses

import numpy as np
import pytest
import sympy

import fysym
from fysym import program as lowering
from fysym.deadline import Deadline


def program(text: str, **values: float):  # type: ignore[no-untyped-def]
    return fysym.compile(text).bind(**values).derivation.program


def test_a_softmax_is_recognised() -> None:
    assert program("-t*log(t)").exponential == pytest.approx((1.0, np.exp(-1.0)))
    assert program("-3*t*log(t)").exponential[0] == pytest.approx(1 / 3)
    assert program("t*(1-t)").exponential is None


def test_cardano_radicals_give_way_to_numerics() -> None:
    lowered = program("t - t**2/2 - t**4/4")
    assert lowered.inverse is None or lowered.inverse.ulps <= 200


def test_overflowing_forms_are_rewritten() -> None:
    lowered = program("-t*log(t) - (1-t)*log(1-t)")
    with np.errstate(all="raise", over="ignore", under="ignore"):
        from fysym.program import compiled

        values = compiled(lowered.inverse.expr, lowered.inverse.argument)(np.array([-1e4, 0.0, 1e4]))
    assert values.tolist() == [0.0, 0.5, 1.0]


def test_the_complement_is_kept_where_the_curvature_is_infinite() -> None:
    assert program("-t*log(t) - (1-t)*log(1-t)").coinverse is not None
    assert program("t*(1-t)").coinverse is None


def test_solvers_follow_from_facts() -> None:
    assert program("t*(1-t)").newton
    assert program("t - t**1.5").newton
    assert not program("t - t**3").newton
    assert "softmax" in program("-t*log(t)").solver


def test_forms_are_measured() -> None:
    lowered = program("(t+1)*log((t+1)/2) - t*log(t)")
    for scalar in (lowered.value, lowered.slope, lowered.curvature, lowered.inverse):
        assert scalar.ulps < 20
    assert lowered.worst_ulps == max(x.ulps for x in (lowered.value, lowered.slope, lowered.curvature, lowered.inverse))


def test_kinks_carry_both_rises() -> None:
    (kink,) = program("t*(1-t) + min(t, 1-t)").kinks
    assert kink == (0.5, 1.0, 3.0)  # rises over the slope at 0, which is -2


def test_sympy_is_gone_from_the_ends() -> None:
    assert all(type(number) is float for number in program("t*(1-t)").ends.values())
    assert isinstance(fysym.compile("t*(1-t)").margin, sympy.Integer)


def test_what_is_no_exponential() -> None:
    s = lowering.SLOPE
    assert lowering._exponential(None) is None
    assert lowering._exponential(s + 1) is None
    assert lowering._exponential(sympy.exp(s**2)) is None
    assert lowering._exponential(3 * sympy.exp(2 * s)) == (2.0, 3.0)


def test_no_time_keeps_the_form_and_gives_no_inverse() -> None:
    t = sympy.Symbol("t", positive=True)
    kept = lowering._choose(t**2, t, 2 * t, (0.5,), Deadline(0))
    assert kept.expr == t**2 and np.isnan(kept.ulps)
    assert lowering._choose(t**2, t, 2 * t, (0.25, 0.5), Deadline(60)).ulps <= 1
    ends = {"slope_low": 0.0, "anchor": 0.0, "rise_high": 1.0}
    assert lowering._inverse(lowering.SLOPE, t, t, lowering.GRID, (0.0, 1.0), ends, Deadline(0)) is None
    assert lowering._inverse(lowering.SLOPE, t, t, lowering.GRID, (0.0, 1.0), ends, Deadline(60)).ulps <= 1
    wrong = lowering.SLOPE + 2  # never between 0 and 1, so that no point is left
    assert lowering._inverse(wrong, t, t, lowering.GRID, (0.0, 1.0), ends, Deadline(60)).ulps == 0


def test_an_undetermined_slope_cannot_be_lowered() -> None:
    reg = fysym.compile("t*(1-t)")
    theory = reg.derivation.theory
    facts = {name: fact for name, fact in theory.facts.items() if name != "slope_at_1"}
    open_theory = dataclasses.replace(theory, facts=facts, undetermined={"slope_at_1": "undetermined: by hand"})
    with pytest.raises(fysym.UndecidedError, match="slope at 1 is undetermined: by hand"):
        lowering._ends(reg.derivation.entropy, open_theory)


def test_forms_are_measured_where_h_bends() -> None:
    """The square root has its bend of width 1e-6 around 1/3, far from all points that are always looked at."""
    reg = fysym.compile("-sqrt((t-1/3)**2 + 1/10**12)")
    bends = lowering._bends(reg.derivation.entropy)
    for place in (1 / 3, 1 / 3 - 1e-6, 1 / 3 + 1e-6):
        assert min(abs(x - place) for x in bends) < 1e-9
    assert reg.derivation.program.rise.coarse <= lowering.GOOD


def test_forms_that_lose_digits_everywhere_come_last() -> None:
    """Of two forms that have no digits next to 0, the one that keeps them elsewhere is taken."""
    t = sympy.Symbol("t", positive=True)
    places = (1e-20, 0.25, 0.5, 0.75)
    best = lowering._Best(t, places, list(places), list(places))
    best.look([t + t * sympy.Rational(1, 10**6) * (1 - sympy.Rational(1, 10**9))])
    best.look([t + sympy.Rational(1, 10**17)])
    assert best.found.expr == t + sympy.Rational(1, 10**17) and best.found.coarse <= 1
    best.look([t])
    assert best.found.expr == t
