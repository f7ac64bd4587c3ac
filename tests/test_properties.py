"""The paper's properties of predictions and losses, over generated scores and targets."""

from __future__ import annotations

import functools
import math
from typing import Any

import mpmath
import numpy as np
import pytest
import sympy
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import fysym

from .oracle import allowed_error, member, member_oracle

NAMES = [
    "shannon", "gini", "tsallis_1.5", "tsallis_3", "hellinger", "fermi_dirac", "kaniadakis_0.75", "abe_1.5",
    "sine", "arctan", "exponential", "probit", "shannon_gini", "gini_sine",
]  # fmt: skip
DENSE = [
    name
    for name in NAMES
    if name not in ("gini", "tsallis_1.5", "tsallis_3", "sine", "arctan", "exponential", "gini_sine")
]
every = pytest.mark.parametrize("name", NAMES)
examples = settings(
    max_examples=30,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
few = settings(examples, max_examples=12)

number = st.floats(-8, 8, allow_subnormal=False) | st.integers(-64, 64).map(lambda k: k / 16)


@st.composite
def rows(draw: st.DrawFn, many: int = 1, least: int = 2) -> np.ndarray:
    """`many` vectors of scores of one size, some with ties."""
    d = draw(st.integers(least, 7))
    values = draw(st.lists(number, min_size=many * d, max_size=many * d))
    return np.array(values).reshape(many, d)


@st.composite
def proportions(draw: st.DrawFn, d: int, positive: bool = False) -> np.ndarray:
    """A probability vector in multiples of 2^-k that sums to 1 exactly."""
    parts = draw(st.lists(st.integers(int(positive), 32), min_size=d, max_size=d))
    total = 2 ** max(1, sum(parts)).bit_length()
    parts[draw(st.integers(0, d - 1))] += total - sum(parts)
    return np.array(parts) / total


def scale(*values: Any) -> float:
    return max(1.0, *(abs(float(v)) for v in values))


@every
@few
@given(data=st.data())
def test_permutation_equivariance(name: str, data: st.DataObject) -> None:
    (theta,) = data.draw(rows())
    order = np.array(data.draw(st.permutations(range(len(theta)))))
    p, moved = member(name).predict(theta), member(name).predict(theta[order])
    if (np.abs(p[order] - moved) > 1e-13).any():
        oracle = member_oracle(name)
        truth = oracle.solve(theta)
        for k, j in enumerate(order):
            assert abs(moved[k] - p[j]) <= 2 * allowed_error(oracle, truth, j)
    k = data.draw(st.integers(0, len(theta) - 1))
    losses = member(name).loss(theta, int(order[k])), member(name).loss(theta[order], k)
    assert abs(losses[0] - losses[1]) <= 1e-12 * scale(*losses)


@every
@examples
@given(data=st.data())
def test_order_is_preserved(name: str, data: st.DataObject) -> None:
    (theta,) = data.draw(rows())
    p = member(name).predict(theta)
    order = np.argsort(theta)
    assert (np.diff(p[order]) >= 0).all()
    tied = np.diff(theta[order]) == 0
    assert (np.diff(p[order])[tied] == 0).all()


@every
@examples
@given(data=st.data())
def test_loss_is_never_negative(name: str, data: st.DataObject) -> None:
    (theta,) = data.draw(rows(least=1))
    magnitude = data.draw(st.sampled_from([1e-300, 1e-8, 1.0, 1e4, 1e150]))
    y = data.draw(proportions(len(theta)))
    reg = member(name)
    assert reg.loss(magnitude * theta, y) >= 0
    assert (reg.loss(np.tile(magnitude * theta, (len(theta), 1)), np.arange(len(theta))) >= 0).all()


@every
@examples
@given(data=st.data())
def test_loss_is_zero_exactly_at_the_prediction(name: str, data: st.DataObject) -> None:
    (theta,) = data.draw(rows())
    reg = member(name)
    p = reg.predict(theta)
    assert reg.loss(theta, p) <= 1e-15
    y = data.draw(proportions(len(theta)))
    assume(np.abs(y - p).max() > 0.05)
    assert reg.loss(theta, y) > 0


@every
@examples
@given(data=st.data())
def test_loss_is_convex(name: str, data: st.DataObject) -> None:
    one, two = data.draw(rows(2))
    y = data.draw(proportions(len(one)))
    share = data.draw(st.floats(0, 1))
    reg = member(name)
    left, right = reg.loss(one, y), reg.loss(two, y)
    assert reg.loss(share * one + (1 - share) * two, y) <= share * left + (1 - share) * right + 1e-12 * scale(
        left, right
    )


@every
@examples
@given(data=st.data())
def test_gradient_supports_the_loss(name: str, data: st.DataObject) -> None:
    """L(theta') >= L(theta) + <p - y, theta' - theta>, and the gradient is p - y."""
    one, two = data.draw(rows(2))
    y = data.draw(proportions(len(one)))
    reg = member(name)
    loss, grad = reg.value_and_grad(one, y)
    slack = 1e-12 * scale(loss, reg.loss(two, y))
    assert reg.loss(two, y) >= loss + grad @ (two - one) - slack
    np.testing.assert_allclose(grad, reg.predict(one) - y, rtol=0, atol=4e-16)
    assert abs(math.fsum(grad)) <= 1e-14


@every
@few
@given(data=st.data())
def test_gradient_is_the_slope_of_the_true_loss(name: str, data: st.DataObject) -> None:
    (theta,) = data.draw(rows())
    theta = theta / 4
    y = data.draw(proportions(len(theta)))
    v = np.array(data.draw(st.lists(st.integers(-3, 3), min_size=len(theta), max_size=len(theta))), dtype=float)
    reg, oracle = member(name), member_oracle(name)
    with mpmath.workdps(60):
        step = mpmath.mpf(10) ** -20
        moved = [
            oracle.loss(
                oracle.solve([mpmath.mpf(x) + k * step * mpmath.mpf(z) for x, z in zip(theta, v, strict=True)]), y
            )
            for k in (1, -1)
        ]
        slope = (moved[0] - moved[1]) / (2 * step)
        assert abs(slope - mpmath.mpf(float(reg.grad(theta, y) @ v))) <= 1e-9


@every
@examples
@given(data=st.data())
def test_fenchel_young_identity(name: str, data: st.DataObject) -> None:
    """L = Omega*(theta) + Omega(y) - <theta, y>."""
    (theta,) = data.draw(rows())
    y = data.draw(proportions(len(theta)))
    reg = member(name)
    identity = reg.conjugate(theta) - reg.entropy(y) - theta @ y
    assert abs(reg.loss(theta, y) - identity) <= 1e-13 * scale(*theta, identity)


@every
@examples
@given(data=st.data())
def test_shift_invariance(name: str, data: st.DataObject) -> None:
    """Shifts that change no digit of the differences change nothing but the rounding of compiled code."""
    (theta,) = data.draw(rows())
    theta = np.round(theta * 1024) / 1024
    shift = float(data.draw(st.integers(-(2**20), 2**20)))
    y = data.draw(proportions(len(theta)))
    reg = member(name)
    exact = reg.predict(theta, target="numpy")
    np.testing.assert_array_equal(reg.predict(theta + shift, target="numpy"), exact)
    np.testing.assert_array_equal(reg.jacobian(theta + shift), reg.jacobian(theta))
    loss = reg.loss(theta, y, target="numpy")
    assert reg.loss(theta + shift, y, target="numpy") == loss
    np.testing.assert_allclose(reg.predict(theta + shift), exact, rtol=1e-13, atol=1e-15)
    assert reg.loss(theta + shift, y) == pytest.approx(loss, rel=1e-13, abs=1e-15 * max(1.0, np.ptp(theta)))
    assert reg.threshold(theta + shift) == pytest.approx(reg.threshold(theta) + shift, rel=1e-14, abs=1e-14)
    assert reg.conjugate(theta + shift) == pytest.approx(reg.conjugate(theta) + shift, rel=1e-14, abs=1e-13)


@functools.cache
def scaled(name: str, factor: str) -> Any:
    return fysym.compile(sympy.Rational(factor) * member(name).h)


@pytest.mark.parametrize("factor", ["3", "1/7", "1000"])
@pytest.mark.parametrize("name", ["shannon", "gini", "tsallis_1.5", "fermi_dirac", "arctan", "gini_sine"])
@examples
@given(data=st.data())
def test_scaling_of_the_entropy(name: str, factor: str, data: st.DataObject) -> None:
    """L_{cH}(theta) = c L_H(theta/c)."""
    (theta,) = data.draw(rows())
    c = float(sympy.Rational(factor))
    y = data.draw(proportions(len(theta)))
    left = scaled(name, factor).loss(theta, y, target="numpy")
    right = c * member(name).loss(theta / c, y)
    assert abs(left - right) <= 2e-12 * max(1.0, c) * scale(right)


def conditioning(reg: Any, p: np.ndarray, y: np.ndarray) -> float:
    """How much B(y || p) changes when each p_j is rounded to a double."""
    curvature = sympy.lambdify(reg.variable, -reg.d2h, "mpmath")
    inside = [float(curvature(mpmath.mpf(float(x)))) if 0 < x < 1 else 0.0 for x in p]
    return 2.0**-52 * float(np.sum(np.array(inside) * p * np.abs(y - p)))


@every
@examples
@given(data=st.data())
def test_bregman_is_at_most_the_loss(name: str, data: st.DataObject) -> None:
    """0 <= B(y || p) <= L, with equality where the entropy is of Legendre type."""
    (theta,) = data.draw(rows())
    theta = theta / 4
    y = data.draw(proportions(len(theta)))
    reg = member(name)
    p = reg.predict(theta)
    divergence, loss = reg.bregman(y, p), reg.loss(theta, y)
    slack = 1e-12 * scale(loss) + 8 * conditioning(reg, p, y)
    assert 0 <= divergence <= loss + slack
    if name in DENSE:
        assert abs(divergence - loss) <= slack
    assert reg.bregman(p, p) == 0


@every
@examples
@given(data=st.data())
def test_entropy_is_largest_at_uniform(name: str, data: st.DataObject) -> None:
    d = data.draw(st.integers(1, 7))
    p = data.draw(proportions(d))
    reg = member(name)
    top = reg.entropy(np.full(d, 1 / d))
    assert -1e-15 <= reg.entropy(p) <= top + 1e-14
    if np.abs(p - 1 / d).max() > 0.05:
        assert reg.entropy(p) < top
    assert (reg.entropy(np.eye(d)) == 0).all()


@every
@examples
@given(data=st.data())
def test_scoring_rule_is_proper(name: str, data: st.DataObject) -> None:
    """The expected score of p when labels follow y is least, and equal to the entropy, at p = y."""
    d = data.draw(st.integers(2, 7))
    y = data.draw(proportions(d, positive=True))
    p = data.draw(proportions(d, positive=True))
    reg = member(name)
    labels = np.arange(d)

    def expected(forecast: np.ndarray) -> float:
        return float(y @ reg.score(np.tile(forecast, (d, 1)), labels))

    slack = 1e-12 * scale(expected(p), expected(y))
    assert expected(p) >= expected(y) - slack
    assert abs(expected(y) - reg.entropy(y)) <= slack
    assert abs(expected(p) - reg.score(p, y)) <= slack
    assert abs(expected(p) - expected(y) - reg.bregman(y, p)) <= slack
    if np.abs(p - y).max() > 0.05:
        assert expected(p) > expected(y)


@examples
@given(data=st.data())
def test_gini_scores_are_brier_scores(data: st.DataObject) -> None:
    d = data.draw(st.integers(2, 7))
    p = data.draw(proportions(d))
    k = data.draw(st.integers(0, d - 1))
    assert member("gini").score(p, k) == pytest.approx(0.5 * np.sum((p - np.eye(d)[k]) ** 2), rel=1e-14, abs=1e-15)


@examples
@given(data=st.data())
def test_shannon_is_softmax_and_logistic_loss(data: st.DataObject) -> None:
    (theta,) = data.draw(rows())
    e = np.exp(theta - theta.max())
    np.testing.assert_allclose(member("shannon").predict(theta), e / e.sum(), rtol=1e-14)
    loss = math.log(math.fsum(e)) + theta.max() - theta[0]
    assert member("shannon").loss(theta, 0) == pytest.approx(loss, rel=1e-13, abs=1e-13)


@examples
@given(data=st.data())
def test_gini_is_the_euclidean_projection(data: st.DataObject) -> None:
    (theta,) = data.draw(rows())
    z = np.sort(theta)[::-1]
    k = np.arange(1, len(z) + 1)
    size = np.flatnonzero(1 + k * z > np.cumsum(z))[-1] + 1
    tau = (z[:size].sum() - 1) / size
    np.testing.assert_allclose(member("gini").predict(theta), np.maximum(theta - tau, 0), rtol=0, atol=1e-14)
