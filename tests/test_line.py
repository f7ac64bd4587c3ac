"""The orthant and the reals: proofs, rejections, numbers against closed forms, SciPy and 40 digits."""

from __future__ import annotations

import math
from typing import Any

import mpmath
import numpy as np
import pytest
import scipy.optimize
import scipy.special
import sympy
from hypothesis import given, settings
from hypothesis import strategies as st

import fysym

ENTROPIES = {
    "poisson": ("t - t*log(t)", "orthant"),
    "half gaussian": ("-t**2/2", "orthant"),
    "exponential": ("-exp(t)", "orthant"),
    "barrier": ("log(t) - t**2", "orthant"),
    "no closed form": ("sqrt(t) - t**2", "orthant"),
    "gaussian": ("-t**2/2", "reals"),
    "soft threshold": ("-t**2/2 - Abs(t)", "reals"),
    "quartic": ("-t**4/4 - t**2/2", "reals"),
    "wavy": ("-t**2/2 - sin(t)/2", "reals"),
    "sinh": ("sqrt(1 + t**2) - t*asinh(t)", "reals"),
    "logcosh": ("-t**2/2 - log(cosh(t))", "reals"),
    "waves that touch": ("-t**2/2 + cos(t)", "reals"),
    "a flat corner": ("-Abs(t)**(3/2)", "reals"),
    "a flat corner and more": ("-Abs(t)**(3/2) - t**2", "reals"),
    "a steep corner": ("-Abs(t)**(5/2) - t**2", "reals"),
}
# Where the search and not the prover decides, next to infinity too.
SEARCHED = {
    "bell": ("-t**2*exp(-t**2)/10 - t**2", "reals"),
    "error function": ("-t**2 - t*erf(t)", "reals"),
    "hyperbolic and exponential": ("-t**2*(1 + exp(-t**2)/5) - sqrt(1 + t**2)", "reals"),
}
_compiled: dict[str, Any] = {}


def compiled(name: str) -> Any:
    if name not in _compiled:
        h, domain = (ENTROPIES | SEARCHED)[name]
        _compiled[name] = fysym.compile(h, domain=domain)
    return _compiled[name]


def low(name: str) -> float:
    return 0.0 if (ENTROPIES | SEARCHED)[name][1] == "orthant" else -math.inf


each = pytest.mark.parametrize("name", ENTROPIES)
THETA = np.array([-30.0, -3.0, -1.0, -0.25, 0.0, 0.125, 1.0, 2.5, 12.0])


@each
def test_concavity_is_proved(name: str) -> None:
    fact = compiled(name).fact("strictly_concave")
    assert fact.status == "proved"


@pytest.mark.parametrize("name", SEARCHED)
def test_what_is_not_proved_is_searched_to_infinity(name: str) -> None:
    assert compiled(name).fact("strictly_concave").value is True


def test_what_fails_far_out_is_refused() -> None:
    with pytest.raises(fysym.FysymError):
        fysym.compile("-t**2*(1 - exp(-1/t**2)) - t*erf(t)", domain="reals")
    with pytest.raises(fysym.NotConcaveError) as error:
        fysym.compile("-t**2/2 + 2*cos(t/50)*50**2", domain="reals")
    assert error.value.witness is not None


@pytest.mark.parametrize("name", [*ENTROPIES, *SEARCHED])
def test_predictions_solve_the_optimality_conditions(name: str) -> None:
    reg = compiled(name)
    slope = sympy.lambdify(reg.variable, -reg.dh, "mpmath")
    with mpmath.workdps(40):
        for theta, p in zip(THETA, reg.predict(THETA), strict=True):
            assert low(name) <= p < math.inf
            if p == 0 and low(name) == 0:
                assert theta <= -reg.slopes[0]
            elif not (name == "soft threshold" and p == 0):
                unit = max(1.0, abs(theta)) * 1e-14
                nearby = [slope(mpmath.mpf(p) * (1 + sign * mpmath.mpf(2) ** -50)) for sign in (-1, 1)]
                assert min(nearby) - unit <= theta <= max(nearby) + unit


@each
def test_predictions_agree_with_direct_optimisation(name: str) -> None:
    reg = compiled(name)
    h = sympy.lambdify(reg.variable, reg.h, "numpy")
    for theta in (-2.0, -0.3, 0.4, 2.0):
        bounds = (1e-12 if low(name) == 0 else -60.0, 60.0)
        found = scipy.optimize.minimize_scalar(
            lambda p, theta=theta: -theta * p - h(p), bounds=bounds, method="bounded", options={"xatol": 1e-12}
        )
        assert reg.predict([theta])[0] == pytest.approx(found.x, abs=1e-7)
        assert reg.conjugate([theta]) == pytest.approx(-found.fun, abs=1e-12 * max(1, abs(found.fun)) + 1e-11)


def test_poisson_is_the_deviance() -> None:
    rng = np.random.default_rng(3)
    theta, y = rng.normal(size=(50, 4)) * 2, rng.poisson(3, size=(50, 4)).astype(float)
    reg = compiled("poisson")
    expected = (scipy.special.xlogy(y, y) - y * theta - y + np.exp(theta)).sum(axis=1)
    np.testing.assert_allclose(reg.loss(theta, y), expected, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(reg.predict(theta), np.exp(theta), rtol=1e-15)
    np.testing.assert_array_equal(reg.loss(theta, y.astype(int)), reg.loss(theta, y))  # counts are no labels


def test_gaussian_is_the_squared_loss() -> None:
    rng = np.random.default_rng(4)
    theta, y = rng.normal(size=(2, 50, 4)) * 3
    reg = compiled("gaussian")
    np.testing.assert_array_equal(reg.predict(theta), theta)
    np.testing.assert_allclose(reg.loss(theta, y), ((theta - y) ** 2).sum(axis=1) / 2, rtol=1e-12)
    assert (reg.fact("smoothness").value, reg.twice_differentiable) == (1, True)


def test_soft_thresholding() -> None:
    theta = np.linspace(-3, 3, 41)
    expected = np.sign(theta) * np.maximum(np.abs(theta) - 1, 0)
    np.testing.assert_allclose(compiled("soft threshold").predict(theta), expected, atol=1e-15)


@pytest.mark.parametrize("name", ["wavy", "gaussian", "soft threshold"])
def test_predictions_reach_the_largest_doubles(name: str) -> None:
    theta = np.array([1e290, -1e301, 3e305, -4e307])
    np.testing.assert_allclose(compiled(name).predict(theta), theta, rtol=1e-15)


@each
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_losses_are_non_negative_and_have_the_gradient(name: str, data: st.DataObject) -> None:
    reg = compiled(name)
    theta = np.array(data.draw(st.lists(st.floats(-4, 4), min_size=1, max_size=6)))
    y = np.array(
        data.draw(st.lists(st.floats(0.01 if low(name) == 0 else -3, 3), min_size=len(theta), max_size=len(theta)))
    )
    loss, grad = reg.value_and_grad(theta, y)
    assert loss >= 0
    np.testing.assert_array_equal(grad, reg.predict(theta) - y)
    direction = np.linspace(-1, 1, len(theta))
    ahead, behind = (reg.loss(theta + step * direction, y) for step in (1e-6, -1e-6))
    scale = max(1.0, float(np.abs(grad).max()))
    assert (ahead - behind) / 2e-6 == pytest.approx(grad @ direction, abs=1e-5 * scale)
    size = max(1.0, float(np.abs(theta * reg.predict(theta)).sum()))
    assert reg.loss(theta, np.clip(reg.predict(theta), low(name), None)) <= 1e-14 * size


@each
def test_derivatives_agree_with_differences(name: str) -> None:
    reg = compiled(name)
    theta, v = np.array([-1.7, -0.6, 0.3, 1.4, 2.2]), np.array([1.0, -2.0, 0.5, 1.5, -1.0])
    numeric = (reg.predict(theta + 1e-6 * v) - reg.predict(theta - 1e-6 * v)) / 2e-6
    np.testing.assert_allclose(reg.jvp(theta, v), numeric, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(reg.jacobian(theta), np.diag(reg.jvp(theta, np.ones(5))), rtol=1e-15)


@each
def test_code_is_as_accurate_as_on_the_simplex(name: str) -> None:
    for m in compiled(name).accuracy():
        assert m.ulps <= 16, str(m)
        if m.function == "predict":
            assert m.relative <= (1e-11 if m.dtype == "float64" else 2e-6), str(m)


@each
def test_emitted_modules_check_themselves(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    space: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(compiled(name).source(), "emitted", "exec"), space)
    assert "self-check passed" in capsys.readouterr().out


def test_facts_say_what_applies() -> None:
    poisson, gaussian, half = compiled("poisson"), compiled("gaussian"), compiled("half gaussian")
    assert poisson.slopes == gaussian.slopes == (sympy.oo, -sympy.oo) and half.slopes == (0, -sympy.oo)
    assert (poisson.sparsity, half.sparsity, gaussian.sparsity) == ("dense", "faces", None)
    assert poisson.margin is None and "not applicable on the orthant" in poisson.report()
    assert "not applicable on the reals" in gaussian.report() and "h'(-oo): oo" in gaussian.report()
    assert str(half.h) == "-t**2/2"  # nothing was subtracted
    assert "what was t is t/(1 - t)" in " ".join(poisson.report().split())
    assert "checked at 7 points" in poisson.fact("inverse").evidence
    assert compiled("quartic").strong_concavity == 1 and compiled("poisson").strong_concavity == 0


@pytest.mark.parametrize(
    ("h", "domain", "error", "words"),
    [
        ("sqrt(t)", "orthant", fysym.UnsupportedError, 'h\' must tend to -oo as t -> oo.*tends to 0.*domain="cube"'),
        ("-sqrt(1 + t**2)", "reals", fysym.UnsupportedError, "tends to 1: scores of -1 and less"),
        ("-t*log(t)", "reals", fysym.NotConcaveError, r'not a real number.*domain="orthant", where it is'),
        ("-t*log(t) - (1 - t)*log(1 - t)", "orthant", fysym.NotConcaveError, r'domain="cube", where it is'),
        ("sin(pi*t)", "orthant", fysym.NotConcaveError, r"on \(0, oo\): h''.*or domain=\"cube\", where it is\."),
        ("t*(1-t)*(2-t)", "orthant", fysym.NotConcaveError, r'or domain="cube", where it is\.'),
        ("t - t*log(t) + t**2/4", "orthant", fysym.NotConcaveError, r'or domain="cube", where it is\.'),
        ("t**2", "reals", fysym.NotConcaveError, r"Try: the negative of h, which is concave\.$"),
        ("-Abs(t)", "reals", fysym.NotConcaveError, "affine"),
        ("-t**3", "reals", fysym.NotConcaveError, r'on \(-oo, oo\).*or domain="orthant", where it is\.'),
        ("t - t**3*(t + 1/2)", "reals", fysym.NotConcaveError, r'or domain="orthant", where it is\.'),
        ("-t**2/2 + Abs(t - 2)", "orthant", fysym.NotConcaveError, 'kink t = 2.*or domain="cube", where it is'),
        ("-t**2/2 + Abs(t - 1/2)", "orthant", fysym.NotConcaveError, r"Try: a concave kink\.$"),
    ],
)
def test_what_does_not_fit_is_rejected(h: str, domain: str, error: Any, words: str) -> None:
    with pytest.raises(error, match=words) as raised:
        fysym.compile(h, domain=domain)
    if error is fysym.NotConcaveError and "h''" in str(raised.value) and h in ("sin(pi*t)", "-t**3", "t**2"):
        t = sympy.Symbol("t")
        assert sympy.diff(sympy.sympify(h), t, 2).subs(t, raised.value.witness) > 0


def test_families_keep_their_domain() -> None:
    family = fysym.compile("-t**a/a", params={"a": "a > 1"}, domain="orthant")
    theta = np.array([-1.0, 0.5, 2.0])
    np.testing.assert_allclose(family.predict(theta, a=2), [0, 0.5, 2])
    np.testing.assert_allclose(family.bind(a=3).predict(theta), np.sqrt([0, 0.5, 2]), rtol=1e-15)
    assert family.scale(2).bind(a=2).predict([3.0])[0] == 1.5


def test_there_is_no_certificate_yet() -> None:
    with pytest.raises(fysym.UnsupportedError, match="none for the orthant"):
        compiled("poisson").certificate()


def test_where_a_prediction_is_too_large_for_a_double_so_is_its_derivative() -> None:
    poisson = compiled("poisson")
    assert poisson.predict([710.0, 0.0]).tolist() == [math.inf, 1.0]
    assert poisson.jvp([710.0, 0.0], [1.0, 2.0]).tolist() == [math.inf, 2.0]
    assert poisson.jvp([710.0, 0.0], [-1.0, 0.0]).tolist() == [-math.inf, 0.0]
    assert poisson.jacobian([710.0, 0.0]).tolist() == [[math.inf, 0.0], [0.0, 1.0]]
    assert compiled("sinh").jvp([-800.0, 800.0, 0.0], [1.0, 1.0, 1.0]).tolist() == [math.inf, math.inf, 1.0]
    assert np.isnan(poisson.jvp([math.nan, 0.0], [0.0, 0.0])).tolist() == [True, False]


# Slopes that are fractions of exponentials on both sides of 0 (or of 3), and what the predictions of two scores are.
EXPONENTIALS = {
    "-log(1+exp(t))-t**2/1000": lambda t: t / 500 + 1 / (1 + mpmath.exp(-t)),
    "-log(1+exp(2*t))-t**2/100": lambda t: t / 50 + 2 / (1 + mpmath.exp(-2 * t)),
    "-log(exp(t)+exp(-t))-t**2/100": lambda t: t / 50 + mpmath.tanh(t),
    "-log(1+2**t)-t**2/50": lambda t: t / 25 + mpmath.log(2) / (1 + mpmath.mpf(2) ** -t),
    "-log(1+exp(t-3))-Abs(t)-t**2/1000": lambda t: t / 500 + mpmath.sign(t) + 1 / (1 + mpmath.exp(3 - t)),
}


def solution(slope: Any, theta: float, far: Any = "1e310") -> Any:
    """Where an increasing slope is theta, by bisection of what is asinh of a multiple of t, as t spans orders."""
    low, high = (mpmath.asinh(side * mpmath.mpf(far) * 1e10) for side in (-1, 1))
    for _ in range(160):
        middle = (low + high) / 2
        low, high = (middle, high) if slope(mpmath.sinh(middle) / 1e10) < theta else (low, middle)
    return mpmath.sinh(high) / 1e10


@pytest.mark.parametrize("h", EXPONENTIALS)
def test_exponentials_overflow_on_neither_side(h: str) -> None:
    reg = fysym.compile(h, domain="reals")
    theta = np.array([-1e9, -40.0, -3.0, -0.3, 0.3, 0.7, 1.0, 2.4, 2.5, 3.0, 10.0, 1e9])
    with mpmath.workdps(60):
        expected = [float(solution(EXPONENTIALS[h], s, 1e15)) for s in theta]
        np.testing.assert_allclose(reg.predict(theta), expected, rtol=1e-12, atol=1e-15)
    assert max(scalar.ulps for scalar in reg.derivation.program.__dict__.values() if hasattr(scalar, "ulps")) <= 16


def test_the_loss_far_out_where_exponentials_overflow() -> None:
    reg = fysym.compile("-log(1+exp(t))-t**2/1000", domain="reals")
    # p = 500 (s - 1), so s p - p - p^2/1000 - (s y - g(y)) with y = 0 and g(0) = log 2
    np.testing.assert_allclose(reg.loss([3.0], [0.0]), 250 * 2.0**2 + math.log(2), rtol=1e-14)


# Squares too large for a double: predictions are right, or NaN, never another number.
OVERFLOWS = {
    "-t*asinh(t)": (lambda t: mpmath.asinh(t) + t / mpmath.sqrt(1 + t * t), [3.0, 354.0, 357.0, 360.0, 700.0, 711.0]),
    "-t**2*log(1+t)": (lambda t: 2 * t * mpmath.log1p(t) + t * t / (1 + t), [1.0, 1e155, 1e160, 1e300]),
    "-t**4": (lambda t: 4 * t**3, [1.0, 1e160, 1e308, 1.7e308]),
    "log(t) - t**2": (lambda t: 2 * t - 1 / t if t > 0 else -mpmath.inf, [-1e300, -1e160, 1.0, 1e160, 1e308]),
    "-t**2/2 - sin(t)/2": (lambda t: t + mpmath.cos(t) / 2, [1.0, 1e200, 1.7e308]),
}
SURE = {"-t*asinh(t)": 2, "-t**2*log(1+t)": 2}  # how many of the first scores code has predictions for


@pytest.mark.parametrize("h", OVERFLOWS)
def test_squares_that_overflow_are_never_numbers(h: str) -> None:
    slope, theta = OVERFLOWS[h]
    p = fysym.compile(h, domain="orthant").predict(theta)
    with mpmath.workdps(700):
        expected = np.array([float(solution(slope, s)) if s > -1e100 else -1 / s for s in theta])
    sure = SURE.get(h, len(theta))
    np.testing.assert_allclose(p[:sure], expected[:sure], rtol=1e-12)
    assert (np.isnan(p[sure:]) | (np.abs(p[sure:] / expected[sure:] - 1) < 1e-9)).all()


def test_a_closed_form_that_overflows_is_not_believed() -> None:
    reg = fysym.compile("-exp(t**2)", domain="reals")
    p = reg.predict([3.0, 1e154, 1e200, -1e200])
    with mpmath.workdps(50):  # 2 t exp(t^2) = s where 2 t^2 = W(s^2/2)
        expected = [float(mpmath.sqrt(mpmath.lambertw(mpmath.mpf(s) ** 2 / 2).real / 2)) for s in (3, 1e154, 1e200)]
    expected.append(-expected[-1])
    assert p[0] == pytest.approx(expected[0], rel=1e-13)
    assert (np.isnan(p) | (np.abs(p / expected - 1) < 1e-12)).all()
