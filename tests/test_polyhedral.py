"""Perceptron, hinge and Berger-Parker: against their definitions, linear programs, and the limits they are."""

from __future__ import annotations

import itertools
import pickle
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import scipy.optimize

import fysym

RNG = np.random.default_rng(8)
THETA = np.concatenate([RNG.normal(size=(12, 5)) * 0.5, RNG.integers(-2, 3, (12, 5)) / 2])
LABELS = RNG.integers(5, size=24)
NAMES = ["perceptron", "hinge", "berger_parker"]
every = pytest.mark.parametrize("name", NAMES)


def value(name: str, theta: np.ndarray) -> float:
    """The largest <theta, p> + H(p), by a linear program in p and a bound on its entries."""
    d = len(theta)
    weight = 1.0 if name == "berger_parker" else 0.0
    found = scipy.optimize.linprog(
        np.append(-theta, weight),
        A_ub=np.concatenate([np.eye(d), -np.ones((d, 1))], axis=1),
        b_ub=np.zeros(d),
        A_eq=np.append(np.ones(d), 0.0)[None],
        b_eq=[1.0],
        bounds=[(0, None)] * (d + 1),
    )
    return float(weight - found.fun)


@every
def test_predictions_are_optimal(name: str) -> None:
    reg = fysym.catalog[name]
    p = reg.predict(THETA)
    best = np.array([value(name, theta) for theta in THETA])
    np.testing.assert_allclose((THETA * p).sum(axis=1) + reg.entropy(p), best, rtol=0, atol=1e-9)
    np.testing.assert_allclose(reg.conjugate(THETA), best, rtol=0, atol=1e-9)
    np.testing.assert_allclose(p.sum(axis=1), 1, rtol=1e-15)


@every
def test_losses_are_those_of_the_definition(name: str) -> None:
    reg = fysym.catalog[name]
    y = RNG.dirichlet(np.ones(5), size=24)
    for targets, rows in ((LABELS, np.eye(5)[LABELS]), (y, y)):
        costs = 1 - rows if name == "hinge" else 0 * rows
        best = np.array([value(name, theta) for theta in THETA + costs])
        loss, grad = reg.value_and_grad(THETA, targets)
        np.testing.assert_allclose(loss, best - (THETA * rows).sum(axis=1) - reg.entropy(rows), rtol=0, atol=1e-9)
        other = THETA + 0.1 * RNG.normal(size=THETA.shape)  # p - y is a subgradient
        assert (reg.loss(other, targets) >= loss + (grad * (other - THETA)).sum(axis=1) - 1e-12).all()


def test_the_hinge_is_the_perceptron_with_the_zero_one_cost() -> None:
    hinge, perceptron = fysym.catalog.hinge, fysym.catalog.perceptron
    expected = (THETA + 1 - np.eye(5)[LABELS]).max(axis=1) - THETA[np.arange(24), LABELS]
    np.testing.assert_allclose(hinge.loss(THETA, LABELS), expected, rtol=1e-15, atol=1e-15)
    np.testing.assert_allclose(perceptron.loss(THETA, LABELS, cost="zero-one"), expected, rtol=1e-15, atol=1e-15)
    cost = np.abs(RNG.normal(size=(5, 5)))
    np.testing.assert_array_equal(hinge.loss(THETA, LABELS, cost=cost), perceptron.loss(THETA, LABELS, cost=cost))


def test_ties() -> None:
    perceptron, parker = fysym.catalog.perceptron, fysym.catalog.berger_parker
    assert perceptron.predict([1.0, 3.0, 3.0]).tolist() == [0, 0.5, 0.5]
    assert parker.predict([1.0, 0.0]).tolist() == [1, 0]  # at the threshold: left out
    assert parker.predict([0.5, 0.0, 0.0]).tolist() == [1 / 3, 1 / 3, 1 / 3]
    assert "the largest scores share equally" in " ".join(perceptron.report().split())
    assert "scores equal to tau are left out" in " ".join(parker.report().split())
    for theta in itertools.product((0.0, 0.1, 0.3, 1.0, 1.3), repeat=3):
        p = parker.predict(theta)
        assert all(p[i] == p[j] for i, j in itertools.combinations(range(3), 2) if theta[i] == theta[j])
        assert np.array_equal(np.sort(p), p[np.argsort(theta, kind="stable")])


def test_berger_parker_is_the_limit_of_the_norms() -> None:
    theta = THETA[:12]
    apart = fysym.catalog.berger_parker.conjugate(theta) - fysym.catalog.norm.bind(q=20).conjugate(theta)
    assert (apart >= -1e-15).all() and (apart <= 5 ** (1 / 20) - 1).all()  # max p <= ||p||_q <= d^(1/q) max p


def test_perceptron_is_the_limit_of_small_scales() -> None:
    small = fysym.catalog.gini.scale(1e-9)
    np.testing.assert_allclose(fysym.catalog.perceptron.predict(THETA), small.predict(THETA), rtol=1e-15)


@every
def test_margins(name: str) -> None:
    reg = fysym.catalog[name]
    m = float(reg.margin)
    assert reg.loss([m, 0.0, 0.0], 0) == 0 and reg.loss([m - 1e-6, 0.0, 0.0], 0) > 0
    p = RNG.dirichlet(np.ones(4), size=200)
    if name != "hinge":  # whose margin comes from the cost
        assert (reg.entropy(p) / (1 - p.max(axis=1))).max() == pytest.approx(m, abs=1e-12)


@every
def test_scales(name: str) -> None:
    reg = fysym.catalog[name]
    twice = reg.scale(2)
    np.testing.assert_allclose(twice.loss(THETA, LABELS), 2 * reg.loss(THETA / 2, LABELS), rtol=1e-14, atol=1e-15)
    np.testing.assert_allclose(twice.conjugate(THETA), 2 * reg.conjugate(THETA / 2), rtol=1e-14, atol=1e-15)
    assert twice.margin == 2 * reg.margin
    if name == "perceptron":
        with pytest.raises(fysym.ParameterError, match="is 0"):
            reg.with_margin(2)
    else:
        assert reg.with_margin(3).margin == 3
    with pytest.raises(fysym.ParameterError, match="positive"):
        reg.scale(-1)


@every
def test_bregman_and_score(name: str) -> None:
    reg = fysym.catalog[name]
    y, p = RNG.dirichlet(np.ones(4), size=(2, 50))
    divergence = reg.bregman(y, p)
    assert (divergence >= 0).all() and (reg.bregman(p, p) == 0).all()
    np.testing.assert_allclose(reg.score(p, y), divergence + reg.entropy(y), rtol=0, atol=1e-15)


@every
def test_the_object(name: str) -> None:
    reg = fysym.catalog[name]
    assert reg.fact("strictly_concave").status == "refuted" and reg.sparsity == "full" and reg.params == {}
    for form in ("text", "markdown", "latex", "html"):
        assert "admitted by name" in reg.report(format=form)
    assert set(reg._repr_mimebundle_()) == {"text/plain", "text/latex", "text/html"}
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(reg)).predict(THETA), reg.predict(THETA))
    with pytest.raises(fysym.InputError, match="no format"):
        reg.report("pdf")
    with pytest.raises(fysym.UnsupportedError, match="there is no source of"):
        reg.source()
    with pytest.raises(fysym.UnsupportedError, match="no Numba code"):
        reg.predict(THETA, target="numba")
    with pytest.raises(fysym.InputError, match="target must be"):
        reg.predict(THETA, target="c")
    with pytest.raises(fysym.ParameterError, match="no parameter called 'q'"):
        reg.predict(THETA, q=2)


@pytest.mark.parametrize("name", ["perceptron", "hinge", "berger_parker"])
def test_what_there_is_none_of_is_said(name: str) -> None:
    reg = fysym.catalog[name]
    for method, error, message in (
        (lambda: reg.solve(margin=1), fysym.ParameterError, "no parameters to solve for"),
        (reg.certificate, fysym.UnsupportedError, "not strictly concave"),
        (reg.accuracy, fysym.UnsupportedError, "picks largest scores"),
    ):
        with pytest.raises(error, match=message):
            method()
    assert (reg.strong_concavity, reg.twice_differentiable, reg.essentially_smooth) == (0, False, False)


def test_they_are_admitted_by_name_only() -> None:
    from fysym.polyhedral import polyhedral

    for text in ("0", "t", "1 - max(t, 1 - t)"):
        with pytest.raises(fysym.FysymError):
            fysym.compile(text)
    with pytest.raises(fysym.FysymError, match="perceptron, hinge, berger_parker"):
        polyhedral("norm")


# The contract of arrays


@every
def test_edges_of_the_input(name: str) -> None:
    reg = fysym.catalog[name]
    inf = np.inf
    theta = np.array([[0.5, 0.25, -1], [np.nan, 0, 1], [-inf] * 3, [inf, 0, inf], [-inf, 0, 0.25], [1e308, -1e308, 0]])
    p = reg.predict(theta)
    assert np.isnan(p[1:3]).all() and p[3].tolist() == [0.5, 0, 0.5] and p[4, 0] == 0 and p[5].tolist() == [1, 0, 0]
    losses = reg.loss(theta, [1, 0, 0, 1, 0, 1])
    assert np.isnan(losses[1:3]).all() and (losses[3:] == inf).all()
    assert reg.loss(theta, [0] * 6)[3] >= 0
    np.testing.assert_array_equal(reg.predict(theta[4, 1:]), p[4, 1:])
    for method in (reg.jvp, reg.vjp):
        found = method(theta, np.ones((6, 3)))
        assert np.isnan(found[1:3]).all() and (found[[0, 3, 4, 5]] == 0).all()
    assert reg.jacobian(theta).shape == (6, 3, 3)
    single = np.array([[0.5, 0.25, -1]], np.float32)
    assert reg.predict(single).dtype == reg.loss(single, [0]).dtype == np.float32
    np.testing.assert_array_equal(reg.predict(theta.T, axis=0), p.T)
    assert reg.predict(np.zeros((0, 4))).shape == (0, 4) and reg.loss(np.zeros((0, 4)), np.zeros(0, int)).shape == (0,)
    assert reg.predict([3.0]).tolist() == [1] and reg.loss([3.0], 0) == 0 and reg.conjugate([3.0]) == 3
    before = theta.copy()
    reg.loss(theta, [0] * 6)
    np.testing.assert_array_equal(theta, before)


@every
@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda reg: reg.predict(1.0), "at least one dimension"),
        (lambda reg: reg.predict(["a"]), "theta must be an array of real numbers"),
        (lambda reg: reg.predict(THETA, axis=5), "axis 5 does not exist"),
        (lambda reg: reg.loss(THETA, [9] * 24), "label 9"),
        (lambda reg: reg.loss(THETA, [0]), "y has shape"),
        (lambda reg: reg.jvp(THETA, [0.0]), "v has shape"),
        (lambda reg: reg.entropy([0.5, 0.6]), "must sum to 1"),
        (lambda reg: reg.loss(THETA, LABELS, cost="hinge"), "cost must be"),
    ],
)
def test_wrong_input_is_explained(name: str, call: Any, message: str) -> None:
    with pytest.raises(fysym.InputError, match=message):
        call(fysym.catalog[name])


@pytest.mark.parametrize("name", ["hinge", "berger_parker"])
def test_factors_that_are_no_doubles_are_refused(name: str) -> None:
    reg = fysym.catalog[name]
    for factor, which in ((Fraction(1, 10**400), "small"), (10**400, "large")):
        for call in (lambda r: r.predict([1.0, 0.0]), lambda r: r.loss([1.0, 0.0], 1)):
            with pytest.raises(fysym.UnsupportedError, match=f"too {which} for a double"):
                call(reg.scale(factor))
    least = reg.scale(Fraction(1, 10**310))
    np.testing.assert_array_equal(least.predict([1.0, 0.0]), [1, 0])
    assert least.loss([1.0, 0.0], 1) == 1 and reg.scale(10**308).loss([0.0, 0.0], 1) > 1e307
    assert fysym.catalog.perceptron.scale(10**400).loss([1.0, 0.0], 1) == 1  # c times 0
