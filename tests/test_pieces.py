"""The NumPy target works a piece at a time: no row depends on its neighbours, and little memory is needed."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest

import fysym

NAMES = ["shannon", "gini", "fermi_dirac", "sine", "gini_sine", "arctan"]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", NAMES)
def test_no_row_depends_on_others(name: str, dtype: Any) -> None:
    reg = fysym.catalog[name]
    rng = np.random.default_rng(0)
    for n, d in ((700, 30), (40, 1000), (4, 40000), (4, 200000)):
        theta = (rng.normal(size=(n, d)) * rng.choice([1e-3, 1.0, 3.0], size=(n, 1))).astype(dtype)
        theta[1, : d // 2] = -np.inf
        theta[2, 0] = np.nan
        theta[0, [1, d - 1]] = np.inf
        labels = np.full(n, d - 1)
        p = reg.predict(theta, target="numpy")
        loss, grad = reg.value_and_grad(theta, labels, target="numpy")
        np.testing.assert_array_equal(p[0, [1, d - 1]], 0.5)
        for i in (0, 1, 2, n - 1):
            np.testing.assert_array_equal(reg.predict(theta[i], target="numpy"), p[i])
            alone = reg.value_and_grad(theta[i], d - 1, target="numpy")
            np.testing.assert_array_equal(alone[0], loss[i])
            np.testing.assert_array_equal(alone[1], grad[i])


@pytest.mark.parametrize("name", ["gini", "sine", "gini_sine"])
def test_only_scores_within_the_margin_are_solved(name: str) -> None:
    """Classes below the margin change nothing but the number of zeros."""
    reg = fysym.catalog[name]
    rng = np.random.default_rng(1)
    near = rng.uniform(-float(reg.margin), 0.0, size=(50, 7))
    near[:, 3] = 0.0
    far = np.full((50, 300), -float(reg.margin) - 1e-9)
    far[:, 100:107] = near
    p = reg.predict(far, target="numpy")
    np.testing.assert_allclose(p[:, 100:107], reg.predict(near, target="numpy"), rtol=1e-12, atol=1e-16)
    assert np.count_nonzero(p[:, :100]) == np.count_nonzero(p[:, 107:]) == 0


@pytest.mark.parametrize("scale", [2.0, 1e-3])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", NAMES)
def test_little_memory(name: str, dtype: Any, scale: float) -> None:
    reg = fysym.catalog[name]
    for n, d in ((20000, 10), (300, 1000), (8, 32000), (2, 300000)):
        theta = np.random.default_rng(0).normal(0.0, scale, size=(n, d)).astype(dtype)
        reg.predict(theta[:5], target="numpy")
        tracemalloc.start()
        out = reg.predict(theta, target="numpy")
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak <= out.nbytes + 2**20


@pytest.mark.parametrize("name", ["shannon", "gini", "fermi_dirac", "gini_sine"])
def test_the_order_of_the_memory_does_not_matter(name: str) -> None:
    reg = fysym.catalog[name]
    theta = np.random.default_rng(8).normal(size=(5, 4))
    labels, v = np.array([0, 1, 2, 3, 0]), np.random.default_rng(9).normal(size=(5, 4))
    upright = np.ascontiguousarray(theta.T)
    loss, grad = reg.value_and_grad(theta, labels, target="numpy")
    turned_loss, turned_grad = reg.value_and_grad(upright, labels, axis=0, target="numpy")
    np.testing.assert_array_equal(turned_loss, loss)
    np.testing.assert_array_equal(turned_grad.T, grad)
    for call in (reg.predict, lambda x, **more: reg.jvp(x, v if x.shape == v.shape else v.T, **more)):
        straight = call(theta, axis=1, target="numpy")
        np.testing.assert_array_equal(call(upright, axis=0, target="numpy").T, straight)
        np.testing.assert_array_equal(call(np.asfortranarray(theta), axis=1, target="numpy"), straight)
