"""Cost augmentation: against the maximum it is defined by."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.special

import fysym

RNG = np.random.default_rng(11)
THETA = RNG.normal(size=(4, 3))
LABELS = np.array([0, 2, 1, 2])
Y = np.eye(3)[LABELS]
MATRIX = np.abs(RNG.normal(size=(3, 3))) * (1 - np.eye(3))


@pytest.mark.parametrize("name", ["shannon", "gini", "gini_sine"])
@pytest.mark.parametrize(
    ("cost", "costs"),
    [
        ("zero-one", 1 - Y),
        (MATRIX, MATRIX[LABELS]),
        ([0.5, 0.0, 2.0], np.tile([0.5, 0.0, 2.0], (4, 1))),
        (np.arange(12.0).reshape(4, 3) / 6, np.arange(12.0).reshape(4, 3) / 6),
    ],
    ids=["zero-one", "matrix", "vector", "full"],
)
def test_the_loss_is_the_largest_augmented_value(name: str, cost: Any, costs: np.ndarray) -> None:
    reg = fysym.catalog[name]
    expected = reg.conjugate(THETA + costs) - (THETA * Y).sum(axis=1)
    loss, grad = reg.value_and_grad(THETA, LABELS, cost=cost)
    np.testing.assert_allclose(loss, expected, rtol=1e-12)
    np.testing.assert_allclose(grad, reg.predict(THETA + costs) - Y, rtol=0, atol=1e-15)
    np.testing.assert_array_equal(reg.loss(THETA, Y, cost=cost), loss)
    np.testing.assert_array_equal(reg.grad(THETA, LABELS, cost=cost), grad)


def test_shannon_with_zero_one_is_softmax_margin() -> None:
    expected = scipy.special.logsumexp(THETA + 1 - Y, axis=1) - THETA[np.arange(4), LABELS]
    np.testing.assert_allclose(fysym.catalog.shannon.loss(THETA, LABELS, cost="zero-one"), expected, rtol=1e-13)


def test_a_small_scale_with_zero_one_is_nearly_the_hinge() -> None:
    hinge = (THETA + 1 - Y).max(axis=1) - THETA[np.arange(4), LABELS]
    np.testing.assert_allclose(fysym.catalog.gini.scale(1e-9).loss(THETA, LABELS, cost="zero-one"), hinge, atol=1e-8)


def test_a_square_of_costs_is_the_matrix_of_labels() -> None:
    theta, labels = THETA[:3], np.array([2, 0, 0])
    expected = fysym.catalog.gini.loss(theta, labels, cost=MATRIX)
    rows = [fysym.catalog.gini.loss(x, k, cost=MATRIX[k]) for x, k in zip(theta, labels, strict=True)]
    np.testing.assert_allclose(expected, rows, rtol=1e-13)


def test_axis_dtype_and_families() -> None:
    reg = fysym.catalog.gini
    straight = reg.loss(THETA, LABELS, cost=MATRIX)
    np.testing.assert_array_equal(reg.loss(THETA.T, LABELS, cost=MATRIX, axis=0), straight)
    assert reg.loss(THETA.astype(np.float32), LABELS, cost="zero-one").dtype == np.float32
    family = fysym.catalog.tsallis.loss(THETA, LABELS, cost=MATRIX, alpha=2)
    np.testing.assert_allclose(family, straight, rtol=1e-12)


@pytest.mark.parametrize(
    ("cost", "message"),
    [
        ("hinge", 'cost must be "zero-one", a vector or a matrix, not .hinge'),
        ([1.0, 2.0], r"cost has shape \(2,\); it must be \(3,\), \(3, 3\) or that of theta, \(4, 3\)"),
        ([1.0, np.nan, 2.0], "cost must be finite"),
        (object(), "cost must be an array of real numbers"),
        (["1", "2", "3"], "cost must be an array of real numbers, not of <U1"),
        ([None, 1, 2], "cost must be an array of real numbers: it contains None or text"),
        (np.ma.masked_array([1.0, 2.0, 3.0], mask=[0, 1, 0]), "cost has masked entries; only scores may be masked"),
        (np.ma.masked_array(MATRIX, mask=MATRIX > 0), "cost has masked entries"),
        (2.0, "cost must have at least one dimension"),
    ],
)
def test_a_wrong_cost_is_explained(cost: Any, message: str) -> None:
    with pytest.raises(fysym.InputError, match=message):
        fysym.catalog.gini.loss(THETA, LABELS, cost=cost)
    with pytest.raises(fysym.InputError, match="label 7"):
        fysym.catalog.gini.loss(THETA, [0, 1, 2, 7], cost="zero-one")


@pytest.mark.parametrize(("h", "domain", "y"), [("t-t*log(t)", "orthant", 3.0), ("-t**2/2", "reals", 5.0)])
def test_zero_one_costs_are_for_labels(h, domain, y):
    with pytest.raises(fysym.InputError, match="between 0 and 1"):
        fysym.compile(h, domain=domain).loss([1.0], [y], cost="zero-one")
