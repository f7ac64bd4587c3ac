"""One test for each trap of SymPy and of emitted code, through the public interface."""

from __future__ import annotations

import contextlib
import threading
import time
import warnings

import mpmath
import numpy as np
import pytest
import sympy
from sympy import Rational, oo

import fysym

t = sympy.Symbol("t")
TSALLIS = "(t - t**alpha)/(alpha*(alpha - 1))"


def slope_of(reg: fysym.Regularizer):
    """-h' in mpmath."""
    return sympy.lambdify(reg.variable, -reg.dh, "mpmath")


# --- SymPy gives a wrong or useless answer -----------------------------------------------------------


def test_limit_with_a_symbolic_exponent():
    """h'(0+) of Tsallis is 1/(alpha(alpha-1)), 1/2 at alpha = 2, not -oo."""
    family = fysym.compile(TSALLIS, params={"alpha": "alpha > 1"})
    assert family.slopes[0].subs(sympy.Symbol("alpha"), 2) == Rational(1, 2)


def test_limit_with_a_symbolic_exponent_of_unknown_sign():
    """Over alpha > 0 the slope at 0 is infinite below 1 and finite above: nothing may be claimed."""
    try:
        family = fysym.compile(TSALLIS, params={"alpha": "alpha > 0"})
    except fysym.FysymError:
        return
    assert family.slopes[0] is None and family.sparsity is None and family.margin is None


def test_limit_from_the_left_at_one():
    assert fysym.compile(t * sympy.sqrt(1 - t)).slopes == (1, -oo)


def test_wrong_lambert_branch():
    """-h' = t - t log t is inverted by W_-1: two scores -h'(p) and -h'(1-p) give back p = 0.1867."""
    reg = fysym.compile("t**2*log(t)/2 - 3*t**2/4")
    slope = slope_of(reg)
    p = mpmath.mpf("0.1867")
    assert abs(reg.predict([float(slope(p)), float(slope(1 - p))])[0] - 0.1867) < 1e-13


def test_solve_finds_nothing_though_there_is_a_root():
    """h' = 1 - t^(1/5) - t."""
    reg = fysym.compile("t - t**(6/5)*5/6 - t**2/2")
    slope = slope_of(reg)
    theta = [float(slope(mpmath.mpf(x))) for x in (0.7, 0.2, 0.1)]
    np.testing.assert_allclose(reg.predict(theta), [0.7, 0.2, 0.1], atol=1e-13, rtol=0)


@pytest.mark.parametrize("h", ["sqrt(t*(1-t))", "sin(pi*t)/pi", "-cos(2*t - 1)*(-1)"])
def test_extraneous_branches(h):
    reg = fysym.compile(h)
    slope = slope_of(reg)
    theta = [float(slope(mpmath.mpf(x))) for x in (0.6, 0.3, 0.1)]
    np.testing.assert_allclose(reg.predict(theta), [0.6, 0.3, 0.1], atol=1e-13, rtol=0)


def test_cardano_radicals():
    """h' is a cubic: -h'(p) = 2 p + p^3, where the radicals of the inverse cancel next to 0."""
    reg = fysym.compile("-t**2 - t**4/4", domain="cube")
    with mpmath.workdps(40):
        theta = [float(2 * p + p**3) for p in map(mpmath.mpf, ("1e-12", "1e-6", "0.3"))]
        p = [mpmath.findroot(lambda p, s=s: 2 * p + p**3 - s, mpmath.mpf(s) / 2) for s in theta]
    for target in (None, "numpy"):
        np.testing.assert_allclose(reg.predict(theta, target=target), [float(x) for x in p], rtol=1e-14, atol=0)


def test_float_exponents():
    """h = t^0.3 - t: -h' = 1 - 0.3 t^-0.7, so q(s) = (0.3/(1-s))^(10/7)."""
    reg = fysym.compile(t**0.3 - t)
    assert not reg.h.atoms(sympy.Float)
    assert abs(reg.inverse.subs(sympy.Symbol("s"), 0) - Rational(3, 10) ** Rational(10, 7)).evalf() < 1e-20


def test_a_symbolic_right_side():
    family = fysym.compile(TSALLIS, params={"alpha": "alpha > 1"})
    assert family.inverse is not None and sympy.Symbol("alpha") in family.inverse.free_symbols


@pytest.mark.parametrize(
    ("h", "concave"),
    [
        ("-t*log(t)", True),
        ("Piecewise((t*(1-t) + t, t < 1/2), (t*(1-t) + 1/2, True))", True),
        ("2*t + 1", False),
        ("-t*log(t) + t*(1-t) + sqrt(t)", True),
    ],
)
def test_is_convex_is_not_relied_on(h, concave):
    if concave:
        assert fysym.compile(h).fact("strictly_concave").status == "proved"
    else:
        with pytest.raises(fysym.NotConcaveError):
            fysym.compile(h)


def test_piecewise_guards():
    positive = sympy.Symbol("t", positive=True)
    for symbol in (t, positive):
        h = sympy.Piecewise((-symbol * sympy.log(symbol), symbol > 0), (0, True))
        reg = fysym.compile(h)
        assert reg.entropy([1.0, 0.0]) == 0.0
        np.testing.assert_allclose(reg.predict([1.0, 0.0]), [1 / (1 + np.exp(-1)), 1 / (1 + np.e)], atol=1e-15)


def test_symbol_mismatch():
    for symbol in (t, sympy.Symbol("t", positive=True), sympy.Symbol("t", real=True)):
        assert fysym.compile(-symbol * sympy.log(symbol)).slopes == (oo, -1)
    assert fysym.compile("beta*t*(1-t)", params={"beta": "beta > 0"}).margin == 2 * sympy.Symbol("beta")


def test_text_is_not_evaluated():
    for text in ("__import__('os').system('true')", "().__class__", "[x for x in (1,)]", "open('x')", "lambda: t"):
        with pytest.raises(fysym.ParseError):
            fysym.compile(text)


@pytest.mark.parametrize("thread", [False, True], ids=["main thread", "other thread"])
def test_it_does_not_hang(thread):
    def work():
        start = time.monotonic()
        with pytest.raises(fysym.ParseError):
            fysym.compile("9**9**9**9")
        with contextlib.suppress(fysym.UndecidedError):
            fysym.compile("-t*log(t) - t*atan(5*t) + log(cos(t)) + asinh(5*t)/5", deadline=2)
        seconds.append(time.monotonic() - start)

    seconds: list[float] = []
    if thread:
        worker = threading.Thread(target=work)
        worker.start()
        worker.join()
    else:
        work()
    assert seconds and seconds[0] < 4.0


# --- emitted code goes wrong -------------------------------------------------------------------------


def test_constant_expressions_broadcast():
    gini = fysym.compile("t*(1-t)/2")
    assert gini.jacobian(np.zeros((2, 3))).shape == (2, 3, 3)
    assert gini.predict(np.zeros((2, 3, 4))).shape == (2, 3, 4)


@pytest.mark.parametrize("target", [None, "numpy"])
def test_piecewise_evaluates_no_branch_outside_its_domain(target):
    """log(3/4 - t) is not real where the other branch holds."""
    reg = fysym.compile("Piecewise((log(3/4 - t), t < 1/2), (-log(4) - 4*(t - 1/2), True)) + t*(1-t)")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for theta in ([3.0, 0.1, -2.0], [0.4, 0.1, -2.0]):
            p = reg.predict(theta, target=target)
            assert abs(p.sum() - 1) < 1e-14
            slopes = np.where(p < 0.5, -1 / (0.75 - p), -4.0) + 1 - 2 * p  # h', equal to tau - theta on the support
            assert np.ptp((theta + slopes)[p > 0]) < 1e-13


@pytest.mark.parametrize("target", [None, "numpy"])
@pytest.mark.parametrize("top", [1.0, 30.0, 800.0, 1e5])
def test_lambert_w_stays_real_and_finite(top, target):
    """Shannon + Gini: h' = -log t - 1/2 - t, one score far above takes all but exp of the gap."""
    p = fysym.compile("-t*log(t) + t*(1-t)/2").predict([top, 0.0], target=target)
    assert p.dtype == np.float64
    with mpmath.workdps(50):  # log x + x - log(1 - x) - (1 - x) = -top, x the smaller, by x = exp(u)
        gap = mpmath.mpf(top)
        u = mpmath.findroot(lambda u: u + 2 * mpmath.exp(u) - mpmath.log1p(-mpmath.exp(u)) - 1 + gap, -gap)
        smaller = float(mpmath.exp(u)) if u > -740 else 0.0
    np.testing.assert_allclose(p, [1 - smaller, smaller], rtol=1e-13, atol=0)


@pytest.mark.parametrize("target", [None, "numpy"])
def test_lambert_w_next_to_its_branch_point(target):
    """h' = t log t - t falls to -1 at 1, where the argument of W is -1/e and W has a slope without bound."""
    reg = fysym.compile("t**2*log(t)/2 - 3*t**2/4", domain="cube")
    p = [mpmath.mpf(1) - mpmath.mpf(10) ** -k for k in (1, 3, 6)] + [mpmath.mpf(10) ** -k for k in (1, 5, 12)]
    with mpmath.workdps(50):
        theta = [float(x - x * mpmath.log(x)) for x in p]
        truth = [mpmath.findroot(lambda x, s=s: x - x * mpmath.log(x) - s, x) for x, s in zip(p, theta, strict=True)]
    np.testing.assert_allclose(reg.predict(theta, target=target), [float(x) for x in truth], rtol=1e-9, atol=0)
    np.testing.assert_allclose(reg.predict(theta[3:], target=target), [float(x) for x in truth[3:]], rtol=1e-13, atol=0)


def test_fractional_power_of_a_negative():
    tsallis = fysym.compile("(t - t**(3/2))*4/3")
    p = tsallis.predict([10.0, 0.0, -10.0])
    assert p.dtype == np.float64 and list(p) == [1.0, 0.0, 0.0]


@pytest.mark.parametrize("h", ["-t*log(t)", "t*(1-t)/2", "sin(pi*t)/pi", "-t*log(t) + t*(1-t)/2", "log(1+t)"])
def test_float32_stays_float32(h):
    reg = fysym.compile(h)
    theta = np.array([[1.0, 0.5, -2.0]], dtype=np.float32)
    losses, grads = reg.value_and_grad(theta, np.array([0]))
    assert reg.predict(theta).dtype == losses.dtype == grads.dtype == np.float32


def test_zero_log_zero():
    shannon = fysym.compile("-t*log(t)")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert shannon.entropy([1.0, 0.0]) == 0.0
        assert shannon.loss([0.0, 0.0], [1.0, 0.0]) == pytest.approx(np.log(2), abs=1e-15)


def test_near_singular_parameters():
    """Tsallis at alpha = 1 + 1e-9: -h' = (alpha t^(alpha-1) - 1)/(alpha(alpha-1)), inverted by hand to 50 digits."""
    family = fysym.compile(TSALLIS, params={"alpha": "alpha >= 1"})
    with mpmath.workdps(50):
        alpha = 1 + mpmath.mpf("1e-9")
        slope = [(alpha * p ** (alpha - 1) - 1) / (alpha * (alpha - 1)) for p in map(mpmath.mpf, (0.75, 0.25))]
    p = family.predict([float(x - slope[1]) for x in slope], alpha=Rational(10**9 + 1, 10**9))
    np.testing.assert_allclose(p, [0.75, 0.25], atol=1e-13, rtol=0)


def test_large_scores_need_no_more_steps_for_the_threshold(monkeypatch):
    """A stop on the absolute width of the bracket would run many more passes when scores are large."""
    reg = fysym.compile("t*(1-t) + sin(pi*t)/pi")
    theta = np.random.default_rng(0).normal(size=(200, 50))
    functions = reg._module.F
    inverse, calls = functions.inverse, []

    def counted(*given):
        calls.append(1)
        return inverse(*given)

    monkeypatch.setattr(functions, "inverse", counted)
    counts = []
    for shift in (0.0, 1e8):
        calls.clear()
        reg.predict(theta + shift, target="numpy")
        counts.append(len(calls))
    assert 0 < counts[1] <= counts[0] + 2 and counts[0] < 51
