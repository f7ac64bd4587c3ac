"""A prior on the classes: f-divergences, against closed forms, direct optimisation and optimality conditions."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
import scipy.optimize
import scipy.special
import sympy

import fysym

PRIORS = np.array([[0.5, 0.25, 0.125, 0.125], [0.1, 0.2, 0.3, 0.4], [0.97, 0.01, 0.01, 0.01]])
THETA = np.random.default_rng(8).normal(size=(3, 4))
NAMES = ["shannon", "gini", "tsallis", "hellinger", "jensen_shannon", "log1p", "exponential", "shannon_gini"]


def member(name: str) -> fysym.Regularizer:
    reg = fysym.catalog[name]
    return reg.bind(alpha=1.5) if reg.params else reg


def test_shannon_is_softmax_with_the_logarithm_of_the_prior() -> None:
    expected = scipy.special.softmax(THETA + np.log(PRIORS), axis=1)
    np.testing.assert_allclose(member("shannon").predict(THETA, prior=PRIORS), expected, rtol=1e-14)
    y = np.array([0, 3, 1])
    loss = scipy.special.logsumexp(THETA + np.log(PRIORS), axis=1) - (THETA + np.log(PRIORS))[np.arange(3), y]
    np.testing.assert_allclose(member("shannon").loss(THETA, y, prior=PRIORS), loss, rtol=1e-13)


def test_gini_is_a_weighted_projection() -> None:
    """p minimises sum_j (p_j - w_j theta_j)^2 / (2 w_j), so p_j = w_j max(theta_j - tau, 0)."""
    for w, theta in zip(PRIORS, THETA, strict=True):
        order = np.argsort(-theta)
        taus = [((w * theta)[order[:k]].sum() - 1) / w[order[:k]].sum() for k in range(1, 5)]
        p = w * np.maximum(theta - max(taus), 0)
        np.testing.assert_allclose(member("gini").predict(theta, prior=w), p, rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("name", NAMES)
def test_scores_of_zero_give_the_prior(name: str) -> None:
    np.testing.assert_allclose(member(name).predict(np.zeros((3, 4)), prior=PRIORS), PRIORS, rtol=1e-14)
    np.testing.assert_allclose(member(name).loss(np.zeros((3, 4)), PRIORS, prior=PRIORS), 0, atol=1e-15)


@pytest.mark.parametrize("name", NAMES)
def test_a_uniform_prior_is_a_temperature(name: str) -> None:
    """With w = 1/d, h enters at d p: by the definition, for the entropy h(4 t)/4."""
    reg = member(name)
    t = reg.variable
    same = fysym.compile(reg.h.subs(t, 4 * t) / 4)
    uniform = np.full(4, 0.25)
    np.testing.assert_allclose(reg.predict(THETA, prior=uniform), same.predict(THETA), rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(reg.loss(THETA, [1, 2, 0], prior=uniform), same.loss(THETA, [1, 2, 0]), rtol=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_predictions_and_losses_agree_with_their_definition(name: str) -> None:
    reg = member(name)
    h = sympy.lambdify(reg.variable, reg.h, "numpy")
    slope = sympy.lambdify(reg.variable, reg.dh, "numpy")
    for w, theta in zip(PRIORS, THETA, strict=True):

        def value(p: np.ndarray, w: np.ndarray = w, theta: np.ndarray = theta) -> float:
            return float(theta @ p + (w * h(np.maximum(p / w, 1e-300))).sum())

        found = scipy.optimize.minimize(
            lambda p: -value(p),
            w,
            bounds=[(1e-14, 1)] * 4,
            constraints=[{"type": "eq", "fun": lambda p: p.sum() - 1}],
            method="SLSQP",
            options={"ftol": 1e-16, "maxiter": 2000},
        )
        p = reg.predict(theta, prior=w)
        assert abs(p.sum() - 1) <= 1e-14
        assert value(p) >= value(found.x) - 1e-12  # at least as good as what the optimiser found
        inner = p > 1e-12
        levels = (theta + slope(np.where(inner, p / w, 1.0)))[inner]
        assert np.ptp(levels) <= 1e-12 * max(1.0, np.abs(levels).max())
        y = np.array([0.1, 0.2, 0.3, 0.4])
        loss, grad = reg.value_and_grad(theta, y, prior=w)
        assert loss == pytest.approx(value(p) - value(y), rel=1e-11)
        np.testing.assert_array_equal(grad, p - y)
        np.testing.assert_array_equal(grad, reg.grad(theta, y, prior=w))


def test_edges() -> None:
    gini = member("gini")
    theta = np.array([[0.0, 1.0, np.nan], [0.0, -np.inf, 0.5], [np.inf, 0.0, np.inf], [-np.inf] * 3])
    p = gini.predict(theta, prior=[0.5, 0.25, 0.25])
    assert (
        np.isnan(p[[0, 3]]).all() and p[1, 1] == 0 and p[2].tolist() == [pytest.approx(2 / 3), 0, pytest.approx(1 / 3)]
    )
    np.testing.assert_allclose(p[1:3].sum(axis=1), 1, rtol=1e-15)
    assert gini.predict([0.0, 9.0, 0.5], prior=[0.5, 0, 0.5]).tolist() == [0.375, 0, 0.625]  # a prior of 0 excludes
    assert gini.loss([0.0, 9.0, 0.5], 1, prior=[0.5, 0, 0.5]) == math.inf
    assert gini.predict(THETA.astype(np.float32), prior=PRIORS[0]).dtype == np.float32
    np.testing.assert_array_equal(
        gini.predict(THETA.T, prior=PRIORS[0], axis=0), gini.predict(THETA, prior=PRIORS[0]).T
    )
    assert gini.predict(np.zeros((0, 4)), prior=PRIORS[0]).shape == (0, 4)
    cost = gini.loss(THETA, [0, 1, 2], prior=PRIORS[0], cost="zero-one")
    assert (cost >= gini.loss(THETA, [0, 1, 2], prior=PRIORS[0])).all()


def test_what_cannot_have_a_prior_is_refused_with_the_reason() -> None:
    reg = fysym.compile("sin(pi*t/6)")  # concave up to 6
    np.testing.assert_allclose(reg.predict(np.zeros(3), prior=[0.4, 0.4, 0.2]), [0.4, 0.4, 0.2], rtol=1e-14)
    with pytest.raises(fysym.NotConcaveError, match=r"concave on \[0, 1/min\(prior\)\] = \[0, 20\]") as raised:
        reg.predict(np.zeros(3), prior=[0.9, 0.05, 0.05])
    assert 6 < raised.value.witness <= 20
    for name in ("fermi_dirac", "sine"):
        with pytest.raises(fysym.NotConcaveError, match="1/min"):
            member(name).predict(THETA, prior=PRIORS)
    masked = np.ma.array(PRIORS[0], mask=[False, True, False, False])
    for bad in ([0.5, 0.5], [0.5, 0.5, 0.5, 0.5], [1.5, -0.5, 0, 0], "x", [None] * 4, masked, PRIORS[0] + 0j, 0.25):
        with pytest.raises(fysym.InputError, match="prior"):
            member("gini").predict(THETA, prior=bad)
    with pytest.raises(fysym.UnsupportedError, match="needs the simplex"):
        fysym.compile("t*(1 - t)", domain="cube").predict(THETA, prior=PRIORS)
    with pytest.raises(fysym.ParameterError, match="bind"):
        fysym.catalog.tsallis.predict(THETA, prior=PRIORS)
    np.testing.assert_array_equal(
        fysym.catalog.tsallis.predict(THETA, prior=PRIORS, alpha=1.5), member("tsallis").predict(THETA, prior=PRIORS)
    )


@pytest.mark.parametrize("least", [1e-320, 1e-310, 1e-200, 1e-100])
def test_tiny_priors(least: float) -> None:
    """Losses against 60 digits: a class that the prior hardly admits makes ratios that are too large for a double."""
    theta, prior = [0.2, 0.1, -0.3], [least, 0.5, 0.5]
    with mpmath.workdps(60):
        w, x = [mpmath.mpf(a) for a in prior], [mpmath.mpf(a) for a in theta]
        z = [a * mpmath.exp(b) for a, b in zip(w, x, strict=True)]
        cross_entropy = float(mpmath.log(sum(z) / z[0]))
        tau = (sum(a * b for a, b in zip(w, x, strict=True)) - 1) / sum(w)
        p = [a * (b - tau) for a, b in zip(w, x, strict=True)]  # Gini's, where all classes have a share
        omega = [sum(q * (q / a - 1) / 2 for q, a in zip(row, w, strict=True)) for row in (p, [1, 0, 0])]
        half_square = float(sum(a * q for a, q in zip(x, p, strict=True)) - x[0] - omega[0] + omega[1])
    assert member("shannon").loss(theta, 0, prior=prior) == pytest.approx(cross_entropy, rel=1e-14)
    assert member("gini").loss(theta, 0, prior=prior) == pytest.approx(half_square, rel=1e-14)
    loss, grad = member("tsallis").value_and_grad([theta, theta], [0, 1], prior=prior)
    assert np.isfinite(loss).all() and loss[0] > 1e49
    np.testing.assert_allclose(grad[0], [-1, *grad[1, 1:] + [1, 0]], rtol=1e-14)
    with pytest.raises(fysym.NotConcaveError, match="1/min"):
        member("sine").loss(theta, 0, prior=prior)


def test_a_lead_as_large_as_its_prior_is_small() -> None:
    gini, prior = member("gini"), [1e-200, 0.5, 0.5]
    assert gini.predict([1e200, 0.0, 0.0], prior=prior).tolist() == [1, 0, 0]
    assert gini.loss([1e200, 0.0, 0.0], 0, prior=prior) == 0
    assert gini.loss([3e200, 0.0, 0.0], 1, prior=prior) == pytest.approx(2.5e200, rel=1e-14)  # 3e200 - 1e200/2


@pytest.mark.parametrize("h", ["sqrt(2 - t)", "sqrt(1 - t)", "-t*log(t) - (1-t)*log(1-t)", "t*(1-t)"])
def test_a_class_that_is_left_alone_takes_everything(h: str) -> None:
    """Also where h' is infinite at 1/w."""
    reg, infinity = fysym.compile(h), math.inf
    assert reg.predict([1.0], prior=[1.0]).tolist() == [1.0]
    theta = [[3.0, -2.0, -infinity], [3.0, 2.0, 1.0], [1.0, infinity, 0.0]]
    prior = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 1.0, 0.0]]
    assert reg.predict(theta, prior=prior).tolist() == [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 1.0, 0.0]]
    assert reg.loss(theta, [0, 1, 1], prior=prior).tolist() == [0.0, 0.0, 0.0]


def test_a_mask_leaves_one_class_where_the_slope_at_its_ratio_is_infinite() -> None:
    assert fysym.compile("sqrt(2 - t)").predict([1.0, -math.inf], prior=[0.5, 0.5]).tolist() == [1.0, 0.0]


def test_a_prior_that_only_just_fits() -> None:
    """h'' = 2t - 6.667 is negative up to 3.3335, and 1/0.3 = 3.3333...; 1/0.29 is beyond."""
    reg = fysym.compile("-(33335/10000)*t**2 + t**3/3")
    assert reg.predict([1.0, 0.0], prior=[0.3, 0.7]).sum() == pytest.approx(1.0)
    with pytest.raises(fysym.NotConcaveError, match=r"\[0, 3.44828\]"):
        reg.predict([1.0, 0.0], prior=[0.29, 0.71])


@pytest.mark.parametrize(("least", "score"), [(5e-324, 745.0), (1e-320, 736.8), (1e-300, 720.0), (1e-12, 30.0)])
def test_shannon_with_priors_next_to_zero(least: float, score: float) -> None:
    with mpmath.workdps(50):
        first = mpmath.exp(score) * mpmath.mpf(least)
        truth = [float(first / (1 + first)), float(1 / (1 + first))]
    found = fysym.catalog.shannon.predict([score, 0.0], prior=[least, 1.0])
    np.testing.assert_allclose(found, truth, rtol=1e-12)


def test_targets_with_a_prior() -> None:
    gini = fysym.catalog.gini
    expected = gini.predict([1.0, 0.0], prior=[0.5, 0.5])
    np.testing.assert_array_equal(gini.predict([1.0, 0.0], prior=[0.5, 0.5], target="numpy"), expected)
    with pytest.raises(fysym.UnsupportedError, match="no Numba code"):
        gini.predict([1.0, 0.0], prior=[0.5, 0.5], target="numba")
    with pytest.raises(fysym.InputError, match="target must be"):
        gini.loss([1.0, 0.0], 0, prior=[0.5, 0.5], target="bogus")
