"""Ball arithmetic: what is certified must be true, and what is true should mostly be certified."""

from __future__ import annotations

import threading
import time
from fractions import Fraction

import mpmath
import pytest
import sympy
from hypothesis import given, settings
from hypothesis import strategies as st
from sympy import Rational, acos, asin, atan, atanh, cos, cosh, diff, erf, exp, gamma, log, pi, sin, sqrt, tan

from fysym import certify, certify_precision, truth
from fysym.certify import balls, certify_sign, cover, expansion
from fysym.entropy import VARIABLE as t

pytest.importorskip("flint")
A = sympy.Symbol("a", positive=True)


def second(h):
    return diff(h, t, 2)


NEGATIVE = {
    "shannon": -1 / t,
    "fermi_dirac": -1 / t - 1 / (1 - t),
    "logarithm and pole": -2 * log(t) - 1 / t - 3,
    "product": second(exp(-t) * log(1 + t * (1 - t))),
    "sine": -sin(pi * t) * pi,
    "zeros at both ends": -sin(pi * t) * pi + sin(2 * pi * t) / 2,
    "mixture": second(-t * log(t) / 3 + sin(pi * t) / 5 + t * (1 - t) / 7),
    "roots": -(t ** Rational(-1, 2)) - 2 * t ** Rational(1, 3),
    "root at 1": second(-t * log(t) + t * sqrt(1 - t) / 5),
    "log": log(t),
    "double zero at 1": 1 - t + log(t),
    "triple zero at 0": sin(t) - t,
    "triple zero with rest": sin(t) - t + t**3 / 7,
    "fifth order": sin(t) - t + t**3 / 6 - t**5 / 100,
    "constants that cancel": log(2) + t / (2 + t) - log(2 + t),
    "trigamma": -sympy.polygamma(1, t),
    "gamma": -second(gamma(t)),
    "loggamma": -second(sympy.loggamma(1 + t)),
    "t to the t": second(-(t**t)),
    "two logs": -(t**2 + t**3) * log(t) * log(1 - t),
    "root of a log": -sqrt(-log(t)),
    "1 over log": 1 / (t * log(t)) - 1 / (t * log(t) ** 2),
    "Lambert": second(sympy.LambertW(t)),
    "erf": second(erf(t)),
    "cosh of log": -cosh(log(t)),
    "atan at infinity": t / (1 + t**2) - atan(1 / t),
    "tan pole": -tan(pi * t / 2),
    "inverse sine": asin(t) - pi / 2,
    "inverse cosine": -acos(1 - t),
    "atanh": -atanh(t) - t,
    "small power": t ** Rational(1, 50) - 1,
    "sliver": -1 + Rational(999, 1000) * exp(-(10**8) * (t - Rational(1, 3)) ** 2),
    "close to 0": -(t**2) + t - Rational(1, 4) - Rational(1, 10**12),
    "cancelling exponentials": -(exp(t) - 1 - t - t**2 / 2) / t**3,
}


@pytest.mark.parametrize("name", NEGATIVE)
def test_negative_functions_are_certified(name):
    cover = certify_sign(NEGATIVE[name], t, -1, 10)
    assert cover is not None and cover.sign == -1 and cover.strict
    assert cover.evidence.startswith("ball arithmetic: ")
    lows, highs = [box[0][0] for box in cover.boxes], [box[0][1] for box in cover.boxes]
    deltas = {end.at: end.delta for end in cover.ends}
    assert lows[0] == deltas[0] and highs[-1] == 1 - deltas[1] and lows[1:] == highs[:-1]
    assert certify_sign(NEGATIVE[name], t, 1, 2) is None
    assert certify_sign(-NEGATIVE[name], t, 1, 10) is not None


@pytest.mark.parametrize("name", ["double zero at 1", "gamma", "two logs", "1 over log", "tan pole", "root at 1"])
def test_the_bound_at_an_end_holds(name):
    f = NEGATIVE[name]
    for end in certify_sign(f, t, -1, 10).ends:
        for k in (0, 1, 5, 30, 100):
            x = sympy.Rational(end.delta) / 2**k
            at = x if end.at == 0 else 1 - x
            value = truth.evaluate_reliably(-f, {t: at}, 400)
            least = mpmath.mpf(str(truth.evaluate(x**end.power * (-log(x)) ** end.log_power, {})))
            assert value > 0.999 * mpmath.mpf(float(end.bound)) * least


NOT_NEGATIVE = {
    "positive below 1e-12": Rational(1, 10**12) - t,
    "positive above 1 - 1e-12": t - 1 + Rational(1, 10**12),
    "positive below 1e-12, root": sqrt(t) / 10**6 - t,
    "positive next to 1, logarithm": log(t) + Rational(1, 10**9),
    "positive below exp(-1000)": -1 - log(t) / 1000,
    "sliver": -1 + Rational(1001, 1000) * exp(-(10**8) * (t - Rational(1, 3)) ** 2),
    "touching sliver": -1 + exp(-(10**8) * (t - Rational(1, 3)) ** 2),
    "zero inside": -((t - Rational(1, 2)) ** 2),
    "irrational zero inside": -((t**2 - Rational(1, 2)) ** 2),
    "pole inside": -1 / (t - Rational(1, 3)) ** 2,
    "hidden pole": -2 + sympy.tanh(1 / (t - Rational(1, 3))),
    "undefined on the left": log(t - Rational(1, 3)) - log(2 * t - Rational(2, 3)),
    "undefined next to 0": -sqrt(t - Rational(1, 10**9)) - 1,
    "zero": t - t,
    "third order at 0": sin(t) - t + t**3 / 6,
    "wrong third order": -(t**5) + t**6 + t**7 * 1000,
    "complex": -((t - 2) ** Rational(1, 3)),
}


@pytest.mark.parametrize("name", NOT_NEGATIVE)
def test_nothing_else_is_certified(name):
    assert certify_sign(NOT_NEGATIVE[name], t, -1, 3) is None


def test_what_has_no_ball_extension_is_left_open():
    assert certify_sign(-sympy.zeta(2 + t), t, -1, 1) is None
    assert certify_sign(-sympy.Function("g")(t), t, -1, 1) is None
    assert certify_sign(-A * t, t, -1, 1) is None
    assert certify_sign(-sympy.floor(t) - 1, t, -1, 1) is None


def test_without_flint_nothing_is_certified(monkeypatch):
    monkeypatch.setattr(certify_precision.importlib.util, "find_spec", lambda name: None)
    assert not certify.available()
    assert certify_sign(-1 / t, t, -1, 1) is None


FAMILIES = [
    (-A * t ** (A - 2), (1, 3), -1),
    (second((t - t ** (A + 1)) / A), (Rational(1, 2), 2), -1),
    (-1 / t - A * sin(t), (0, 2), -1),
    (-(t**A) - (1 - t) ** (2 * A), (Rational(3, 2), sqrt(5)), -1),
    (-1 / t + A, (0, Rational(99, 100)), -1),
    (exp(A * t) - 1 - A * t / 2, (Rational(1, 3), 3), 1),
    (exp(A * t) - 1 - A * t, (1, 2), 1),
]


@pytest.mark.parametrize(("f", "span", "sign"), FAMILIES, ids=str)
def test_families(f, span, sign):
    cover = certify_sign(f, t, sign, 20, {A: span})
    assert cover is not None
    assert all(len(box) == 2 for box in cover.boxes)
    volume = sum((b - a) * (d - c) for (a, b), (c, d) in cover.boxes)
    (low, high) = cover.ranges[0][1]
    deltas = [min(end.delta for end in cover.ends if end.at == at) for at in (0, 1)]
    assert volume == (1 - sum(deltas)) * (high - low)
    assert all(sum(e.box[0][1] - e.box[0][0] for e in cover.ends if e.at == at) == high - low for at in (0, 1))


def test_a_family_with_one_bad_corner_is_not_certified():
    assert certify_sign(-1 / t + A, t, -1, 5, {A: (0, Rational(101, 100))}) is None
    assert certify_sign(-t + A * t**2, t, -1, 5, {A: (0, Rational(1001, 1000))}) is None
    assert certify_sign(-(t**A) + t / 10**6, t, -1, 5, {A: (Rational(1, 2), 2)}) is None
    assert certify_sign(-A * t, t, -1, 5, {A: (1, sympy.oo)}) is None


def test_two_parameters():
    b = sympy.Symbol("b", real=True)
    f = -A / t - 1 - b * t
    assert certify_sign(f, t, -1, 20, {A: (1, 2), b: (Rational(-3, 2), 1)}) is not None
    assert certify_sign(f, t, -1, 5, {A: (1, 2), b: (Rational(-5, 2), 1)}) is None


def test_precision_is_raised_when_rounding_is_in_the_way():
    f = -((t + 10**12) ** 2) + 10**24 + 2 * 10**12 * t + t**2 / 2 - Rational(1, 10**9)
    cover = certify_sign(f, t, -1, 10)
    assert cover is not None and cover.precision > 53


def test_the_budget_is_kept():
    start = time.monotonic()
    hard = sum(sin(k * t) ** k for k in range(3, 40)) / t ** sin(40 * t)
    certify_sign(hard, t, 1, 0.5)
    assert time.monotonic() - start < 3


def test_integer_powers_of_balls_around_zero():
    square = balls.Program(t**2, (t,)).on(((Fraction(-1), Fraction(2)),), 53)
    assert square.is_finite() and square.lower() > -1e-8 and square.upper() >= 4
    cube = balls.Program(t**3, (t,)).on(((Fraction(-1), Fraction(2)),), 53)
    assert cube.contains(-1) and cube.contains(8)
    assert not balls.Program(1 / t, (t,)).on(((Fraction(-1), Fraction(2)),), 53).is_finite()


FUNCTIONS = [
    t**2, t**-3, t ** Rational(2, 3), t**pi, t**t, 2**t, exp(t), log(t), sin(t), cos(t), tan(t), sympy.cot(t),
    sympy.sec(t), sympy.csc(t), asin(t), acos(t), atan(t), sympy.sinh(t), cosh(t), sympy.tanh(t), sympy.asinh(t),
    sympy.acosh(1 + t), atanh(t), erf(t), sympy.erfc(t), sympy.erfinv(t), sympy.erfcinv(t), sympy.LambertW(t),
    sympy.LambertW(-t / 3, -1), gamma(t), sympy.loggamma(t), sympy.polygamma(0, t), sympy.polygamma(3, t),
    sympy.Abs(t - 1), sympy.EulerGamma * t,
]  # fmt: skip


@pytest.mark.parametrize("f", FUNCTIONS, ids=str)
@settings(max_examples=20, deadline=None)
@given(st.integers(1, 998), st.integers(1, 999))
def test_balls_contain_the_truth(f, a, b):
    low, high = sorted((Fraction(a, 1000), Fraction(b, 1000)))
    ball = balls.Program(f, (t,)).on(((low, high),), 80)
    for k in range(5):
        at = low + (high - low) * Fraction(k, 4)
        value = truth.evaluate(f, {t: Rational(at)})
        with balls.precision(200) as flint:
            assert not ball.is_finite() or ball.overlaps(
                flint.arb(mpmath.nstr(value, 40), flint.arb("1e-36") * (1 + abs(ball)))
            )


numbers = st.fractions(min_value=Fraction(1, 50), max_value=5, max_denominator=50).map(Rational)
atoms = st.sampled_from([
    1 / t, -log(t), 1 / (1 - t), t, 1 - t, sin(pi * t), exp(t), sqrt(t), t ** Rational(-1, 3), -log(1 - t), t * (1 - t),
    sympy.polygamma(1, t), -t * log(t), t**2, atan(t), 1 / sqrt(1 - t), cosh(t), (1 - t) ** 3, asin(t),
])  # fmt: skip


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(numbers, atoms, atoms), min_size=1, max_size=3))
def test_positive_by_construction_is_certified(parts):
    assert certify_sign(sum(c * x * y for c, x, y in parts), t, 1, 20) is not None


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(numbers, atoms, atoms), min_size=1, max_size=3), st.integers(1, 99), numbers)
def test_wrong_somewhere_is_never_certified(parts, percent, width):
    """A sum that is made to fail at one point, by an amount of 1e-20."""
    at = Rational(percent, 100)
    f = sum(c * x * y for c, x, y in parts)
    value = Rational(str(truth.evaluate_reliably(f, {t: at})))
    g = f - value * exp(-((t - at) ** 2) * 10**4 * width) - Rational(1, 10**20)
    assert certify_sign(g, t, 1, 2) is None


def test_threads_do_not_disturb_each_other():
    found: list[bool] = []

    def work():
        found.append(certify_sign(NEGATIVE["close to 0"], t, -1, 20) is not None)
        found.append(certify_sign(NEGATIVE["gamma"], t, -1, 20) is not None)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 8


# --- the parts ------------------------------------------------------------------------------------------


def expanded(f, at=0, order=4, delta=Fraction(1, 16), box=(), parameters=(), stop=float("inf")):
    with certify_precision.precision(200):
        found = expansion.Expansion((t, *parameters), at, delta, order, box, stop)
        return found, found.of(f)


@pytest.mark.parametrize(
    "f",
    [
        log(-log(t)),  # a logarithm of a logarithm
        log(t - Rational(1, 2)),
        sqrt(t - Rational(1, 2)),
        (-log(t)) ** pi,
        sympy.sin(1 / t),
        sympy.zeta(t + 2) * 0 + sympy.beta(t, 1 + t),
        1 / (t - t + sympy.zeta(t) * 0 + sin(t) ** 2 + cos(t) ** 2 - 1),
    ],
    ids=str,
)
def test_what_has_no_expansion(f):
    with pytest.raises((balls.Unsettled, balls.NotEvaluable, ZeroDivisionError)):
        expanded(sympy.sympify(f))


@pytest.mark.parametrize("at", [0, 1])
@pytest.mark.parametrize(
    "f",
    [
        t**3 * log(t) ** 2, t ** Rational(1, 9) * log(t), sympy.sec(pi * t / 4), sympy.cot(t + 1), sympy.csc(t + 1),
        sympy.asinh(1 / t), sympy.acosh(1 + t), sympy.sinh(log(t)), sympy.loggamma(t), sympy.polygamma(2, t),
        atan(-1 / t), asin(1 - t), sympy.sign(t + 1) * t,
    ],
    ids=str,
)  # fmt: skip
def test_expansions_contain_the_truth(f, at):
    _, series = expanded(f, at)
    with certify_precision.precision(200) as flint:
        for k in (4, 5, 12):
            x = balls.enclose(Fraction(1, 2**k))
            level = -x.log()
            total = sum(c * x ** balls.enclose(a) * level ** balls.enclose(m) for (a, m), (c, _) in series.items())
            where = Rational(1, 2**k) if at == 0 else 1 - Rational(1, 2**k)
            value = flint.arb(str(sympy.N(f.subs(t, where), 60)))
            assert total.overlaps(value + (1 + abs(value)) * flint.arb(0, "1e-40"))


def test_an_expansion_ends_with_its_time():
    with pytest.raises(balls.Unsettled):
        expanded(t * exp(t), stop=time.monotonic() - 1)


def test_an_exact_value_is_forgotten_when_it_is_long_or_infinite():
    assert expansion._exact(sympy.zoo * 1) is None
    assert expansion._exact(sum(sqrt(k) for k in range(2, 200))) is None
    assert expansion._exact(sqrt(2)) == sqrt(2)
    assert expansion._vanishes(sqrt(8) - 2 * sqrt(2) + 0 * pi) and not expansion._vanishes(sqrt(8) - 2)
    assert expansion._vanishes(A * (A + 1) - A**2 - A) and not expansion._vanishes(A)


def test_balls_of_other_nodes():
    box = ((Fraction(1, 4), Fraction(1, 2)),)
    assert balls.Program(sympy.sign(t), (t,)).on(box, 53) == 1
    assert not balls.Program(sympy.sign(t - Rational(1, 3)), (t,)).on(box, 53).is_finite()
    assert not balls.Program(sympy.polygamma(1, t - 1), (t,)).on(box, 53).is_finite()
    with balls.precision(53):
        assert balls.integer_power(balls.enclose(Fraction(-1), Fraction(2)), 0) == 1
    field = balls.Field(sympy.Abs(t - Rational(1, 3)) + sympy.sign(t), (t,), 1)
    assert field.settle(box, 53)[0]


def test_without_derivatives_only_the_ball_itself_settles():
    class Smooth(sympy.Function):
        def fdiff(self, argindex=1):
            return sympy.zeta(self.args[0])

    field = balls.Field(t - Rational(3, 8), (t,), 1)
    field.f = Smooth(t)
    assert field.slopes == ()
    assert field.settle(((Fraction(1, 4), Fraction(1, 2)),), 53) == (False, [])


def test_a_range_with_an_infinite_end_is_not_covered():
    with pytest.raises(balls.NotEvaluable, match="not a finite number"):
        cover._outward(log(sqrt(2) - 2, evaluate=False), 1)
    assert cover._outward(sqrt(2), -1) ** 2 < 2 < cover._outward(sqrt(2), 1) ** 2


def test_a_cover_reads_as_an_argument():
    found = certify_sign(-1 / t, t, -1, 10)
    (line,) = found.lines(1)
    assert line == f"  -1/t < 0: {found.evidence}" and found.covers == (found,)


def test_too_many_boxes_or_no_time_is_unsettled(monkeypatch):
    field = balls.Field(-1 / t, (t,), -1)
    with pytest.raises(balls.Unsettled):
        cover._cover(field, ((Fraction(1, 8), Fraction(7, 8)),), time.monotonic() - 1)
    monkeypatch.setattr(cover, "MOST_BOXES", -1)
    with pytest.raises(balls.Unsettled):
        cover._cover(field, ((Fraction(1, 8), Fraction(7, 8)),), time.monotonic() + 9)
