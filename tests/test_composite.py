"""Entropies G(sum s(p_j)): proofs, margins, and numbers against closed forms, optimality conditions and SciPy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import scipy.optimize
import sympy

import fysym

FAMILIES = {
    "norm": fysym.compile_composite("1 - u**(1/q)", "t**q", params={"q": "q > 1"}),
    "squared norm": fysym.compile_composite("(1 - u**(2/q))/2", "t**q", params={"q": "q > 1"}),
    "renyi": fysym.compile_composite("log(u)/(1 - b)", "t**b", params={"b": "0 < b < 1"}),
}
MEMBERS = [
    ("norm", {"q": 1.3}), ("norm", {"q": 2}), ("norm", {"q": 6}), ("squared norm", {"q": 1.5}),
    ("squared norm", {"q": 2}), ("squared norm", {"q": 3}), ("renyi", {"b": 0.5}),
]  # fmt: skip
every = pytest.mark.parametrize(("family", "values"), MEMBERS, ids=[f"{f} {v}" for f, v in MEMBERS])
RNG = np.random.default_rng(4)
THETA = RNG.normal(size=(6, 5)) * np.array([0.1, 0.3, 1.0, 1.0, 2.0, 5.0])[:, None]


def entropy(family: str, values: dict[str, Any], p: np.ndarray) -> Any:
    (x,) = map(float, values.values())
    if family == "norm":
        return 1 - (p**x).sum(-1) ** (1 / x)
    if family == "squared norm":
        return (1 - (p**x).sum(-1) ** (2 / x)) / 2
    return np.log((p**x).sum(-1)) / (1 - x)


def gradient(family: str, values: dict[str, Any], p: np.ndarray) -> np.ndarray:
    (x,) = map(float, values.values())
    u = (p**x).sum(-1, keepdims=True)
    if family == "norm":
        return -(u ** (1 / x - 1)) * p ** (x - 1)
    if family == "squared norm":
        return -(u ** (2 / x - 1)) * p ** (x - 1)
    return x / (1 - x) * p ** (x - 1) / u


@every
def test_concavity_is_proved(family: str, values: dict[str, Any]) -> None:
    fact = FAMILIES[family].bind(**values).fact("strictly_concave")
    assert fact.status == "proved"
    rng = np.random.default_rng(1)
    for _ in range(200):  # and holds: no chord lies above
        a, b = rng.dirichlet(np.ones(4), size=2)
        middle, ends = entropy(family, values, (a + b) / 2), [entropy(family, values, x) for x in (a, b)]
        assert middle > sum(ends) / 2


@every
def test_predictions_satisfy_the_optimality_conditions(family: str, values: dict[str, Any]) -> None:
    p = FAMILIES[family].bind(**values).predict(THETA)
    assert (p >= 0).all()
    np.testing.assert_allclose(p.sum(axis=1), 1, rtol=1e-14)
    total = THETA + gradient(family, values, np.maximum(p, 1e-300))
    for row, q in zip(total, p, strict=True):
        support = q > 1e-9
        level = row[support].mean()
        np.testing.assert_allclose(row[support], level, rtol=0, atol=1e-12 * max(1, np.abs(row[support]).max()))
        if family != "renyi":
            assert (row[q == 0] <= level + 1e-12).all()


@every
def test_predictions_agree_with_direct_optimisation(family: str, values: dict[str, Any]) -> None:
    reg = FAMILIES[family].bind(**values)
    for theta in THETA[:3]:
        found = scipy.optimize.minimize(
            lambda p, theta=theta: -(theta @ p) - entropy(family, values, np.maximum(p, 1e-300)),
            np.full(5, 0.2),
            bounds=[(1e-13, 1)] * 5,
            constraints=[{"type": "eq", "fun": lambda p: p.sum() - 1}],
            method="SLSQP",
            options={"ftol": 1e-16, "maxiter": 1000},
        )
        np.testing.assert_allclose(reg.predict(theta), found.x, atol=1e-6)


@every
def test_losses_and_derivatives(family: str, values: dict[str, Any]) -> None:
    reg = FAMILIES[family].bind(**values)
    labels = np.array([0, 1, 2, 3, 4, 0])
    loss, grad = reg.value_and_grad(THETA, labels)
    p, y = reg.predict(THETA), np.eye(5)[labels]
    exact = (THETA * (p - y)).sum(axis=1) + entropy(family, values, p) - entropy(family, values, y)
    np.testing.assert_allclose(loss, exact, rtol=0, atol=1e-12)
    assert (loss >= 0).all()
    np.testing.assert_allclose(grad, p - y, rtol=0, atol=1e-15)
    np.testing.assert_allclose(reg.entropy(p), entropy(family, values, p), rtol=0, atol=1e-13)
    v = RNG.normal(size=THETA.shape)
    numeric = (reg.predict(THETA + 1e-6 * v) - reg.predict(THETA - 1e-6 * v)) / 2e-6
    np.testing.assert_allclose(reg.jvp(THETA, v), numeric, rtol=0, atol=1e-5)
    share = np.full(5, 0.2)
    assert reg.loss(np.zeros(5), share) == pytest.approx(0, abs=1e-14)


@pytest.mark.parametrize("q", [1.3, 2, 3])
@pytest.mark.parametrize("family", ["norm", "squared norm"])
def test_margins_are_those_of_the_paper(family: str, q: float) -> None:
    """Both families have the margin 1, and Proposition 5's supremum agrees."""
    reg = FAMILIES[family].bind(q=q)
    assert reg.margin == 1
    t = np.linspace(1e-7, 0.5, 2000)[:, None]  # p = (1 - t, t): sup of (H(p) - H(e1)) / (1 - p1) over the edge
    edge = np.concatenate([1 - t, t], axis=1)
    assert (entropy(family, {"q": q}, edge) / t[:, 0]).max() == pytest.approx(1, abs=1e-2)
    theta = np.array([1.0 + 1e-12, 0.0, 0.0])
    assert reg.predict(theta).tolist() == [1, 0, 0] and reg.loss(theta, 0) == 0
    assert reg.loss(0.98 * theta, 0) > 0


def test_renyi_has_no_margin() -> None:
    assert FAMILIES["renyi"].bind(b=0.5).margin == sympy.oo


def test_edges_of_the_input() -> None:
    reg = FAMILIES["norm"].bind(q=2)
    theta = THETA.copy()
    theta[1, 2] = np.nan
    theta[2, :3] = -np.inf
    p = reg.predict(theta)
    assert np.isnan(p[1]).all() and (p[2, :3] == 0).all()
    np.testing.assert_allclose(p[2, 3:], reg.predict(theta[2, 3:]), atol=1e-15)
    np.testing.assert_array_equal(p[[0, 3, 4, 5]], reg.predict(THETA)[[0, 3, 4, 5]])
    assert reg.predict(THETA.astype(np.float32)).dtype == np.float32
    np.testing.assert_allclose(reg.predict(THETA.T, axis=0), reg.predict(THETA).T, atol=1e-15)
    assert reg.predict([3.0]).tolist() == [1.0]
    with pytest.raises(fysym.InputError, match="label 9"):
        reg.loss(THETA, [9] * 6)
    with pytest.raises(fysym.InputError, match="at least one dimension"):
        reg.predict(1.0)


def test_what_is_not_proved_is_not_accepted() -> None:
    with pytest.raises(fysym.UndecidedError, match="assume_concave=True"):
        fysym.compile_composite("log(u)/(1 - 2)", "t**2")
    reg = fysym.compile_composite("log(u)/(1 - 2)", "t**2", assume_concave=True)
    assert reg.fact("strictly_concave").status == "sampled" and "assumed" in reg.report()
    np.testing.assert_allclose(reg.predict(np.zeros(4)), 0.25)
    with pytest.raises(fysym.NotConcaveError, match="must fall with u"):
        fysym.compile_composite("u**(1/2)", "t**2")
    with pytest.raises(fysym.NotConcaveError, match="neither strictly concave nor strictly convex"):
        fysym.compile_composite("1 - u", "t**3 - t**2")


@pytest.mark.parametrize(
    ("outer", "inner", "params", "message"),
    [
        ("1 - v", "t**2", {}, "the unknown symbol v"),
        ("1 - u", "x**2", {}, "the unknown symbol x"),
        ("1 - u", "2", {}, "no t"),
        ("1 - u", "t**2", {"q": "q > 1"}, "'q', which occurs neither"),
    ],
)
def test_errors_teach(outer: str, inner: str, params: dict[str, str], message: str) -> None:
    with pytest.raises(fysym.ParameterError, match=message):
        fysym.compile_composite(outer, inner, params=params)


def test_families_must_be_bound() -> None:
    with pytest.raises(fysym.ParameterError, match=r"bind\(q=...\) first; ranges: q > 1"):
        FAMILIES["norm"].predict(THETA)
    np.testing.assert_array_equal(FAMILIES["norm"].predict(THETA, q=2), FAMILIES["norm"].bind(q=2).predict(THETA))
    with pytest.raises(fysym.ParameterError, match="outside its range"):
        FAMILIES["norm"].bind(q=math.nextafter(1.0, 0.0))
    with pytest.raises(fysym.ParameterError, match="no parameter called 'r'"):
        FAMILIES["norm"].bind(r=2)
