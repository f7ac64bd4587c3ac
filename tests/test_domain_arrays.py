"""The edge contract of arrays, on every domain: shapes, types, masks, NaN, infinities and what errors say."""

from __future__ import annotations

import concurrent.futures
import functools
import pickle
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import fysym

REGULARIZERS = {
    "simplex": ("t*(1 - t)/2", "simplex"),
    "budget": ("t*(1 - t)/2", fysym.budget(2)),
    "cube": ("-t*log(t) - (1 - t)*log(1 - t)", "cube"),
    "cube, numeric": ("t*(1 - t) + sin(pi*t)/pi", "cube"),
    "orthant": ("t - t*log(t)", "orthant"),
    "orthant, numeric": ("sqrt(t) - t**2", "orthant"),
    "reals": ("-t**2/2", "reals"),
    "reals, kinked": ("-t**2/2 - Abs(t)", "reals"),
}
every = pytest.mark.parametrize("name", REGULARIZERS)
THETA = np.random.default_rng(7).normal(size=(3, 5))


@functools.cache
def reg(name: str) -> Any:
    h, domain = REGULARIZERS[name]
    return fysym.compile(h, domain=domain)


def total(name: str) -> float | None:
    return reg(name).derivation.entropy.domain.total


def target(name: str) -> np.ndarray:
    """Something to fit that the domain admits."""
    size = total(name)
    return np.full(THETA.shape, 0.25 if size is None else size / 5)


@pytest.fixture(autouse=True)
def warnings_are_errors() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


@every
@pytest.mark.parametrize(
    ("given", "returned"),
    [("f8", "f8"), ("f4", "f4"), ("f2", "f4"), (">f8", "f8"), (">f4", "f4"), ("i4", "f8"), ("u1", "f8"), ("?", "f8")],
)
def test_types(name: str, given: str, returned: str) -> None:
    theta = (np.abs(THETA) * 2).astype(given)
    p = reg(name).predict(theta)
    assert p.dtype == np.dtype(returned) and p.shape == THETA.shape
    np.testing.assert_allclose(p, reg(name).predict(theta.astype(np.float64)), rtol=2e-6, atol=2e-6)
    loss, grad = reg(name).value_and_grad(theta, target(name))
    assert loss.dtype == grad.dtype == np.dtype(returned) and loss.shape == (3,)


@every
def test_shapes_and_axes(name: str) -> None:
    p, y = reg(name).predict(THETA), target(name)
    np.testing.assert_array_equal(reg(name).predict(THETA.tolist()), p)
    np.testing.assert_array_equal(reg(name).predict(THETA.T, axis=0), p.T)
    np.testing.assert_array_equal(reg(name).predict(np.asfortranarray(THETA)), p)
    np.testing.assert_array_equal(reg(name).predict(THETA[::-1]), p[::-1])
    np.testing.assert_allclose(reg(name).predict(THETA[:, ::-1]), p[:, ::-1], rtol=1e-15)  # sums in another order
    np.testing.assert_array_equal(reg(name).predict(THETA[None, :, None, :]), p[None, :, None, :])
    loss = reg(name).loss(THETA, y)
    np.testing.assert_array_equal(reg(name).loss(THETA.T, y.T, axis=0), loss)
    np.testing.assert_array_equal([reg(name).loss(row, one) for row, one in zip(THETA, y, strict=True)], loss)
    assert np.ndim(reg(name).loss(THETA[0], y[0])) == 0
    assert reg(name).jacobian(THETA).shape == (3, 5, 5)
    np.testing.assert_allclose(
        reg(name).jacobian(THETA) @ np.ones(5), reg(name).jvp(THETA, np.ones((3, 5))), atol=1e-14
    )


@every
def test_empty_batches_and_one_class(name: str) -> None:
    for method in ("predict", "conjugate", "threshold"):
        assert np.size(getattr(reg(name), method)(np.zeros((0, 4)))) == 0
    loss, grad = reg(name).value_and_grad(np.zeros((2, 0, 4)), np.zeros((2, 0, 4)))
    assert loss.shape == (2, 0) and grad.shape == (2, 0, 4)
    if total(name) is None:
        np.testing.assert_array_equal(reg(name).predict(THETA[:, :1]), reg(name).predict(THETA)[:, :1])
    elif total(name) == 1:
        np.testing.assert_array_equal(reg(name).predict(THETA[:, :1]), 1)
    else:
        with pytest.raises(fysym.InputError, match="a total of 2 needs as many classes; theta has 1"):
            reg(name).predict(THETA[:, :1])


@every
def test_inputs_are_not_changed(name: str) -> None:
    theta, y = THETA.copy(), target(name)
    theta.flags.writeable = y.flags.writeable = False
    for method in ("loss", "grad", "value_and_grad", "jvp"):
        getattr(reg(name), method)(theta, y)
    p = reg(name).predict(theta)
    p[:] = 7
    np.testing.assert_array_equal(theta, THETA)
    assert (reg(name).predict(theta) != 7).all()


@every
def test_nan_stays_where_it_is(name: str) -> None:
    theta = THETA.copy()
    theta[1, 2] = np.nan
    p, loss = reg(name).predict(theta), reg(name).loss(theta, target(name))
    np.testing.assert_array_equal(p[[0, 2]], reg(name).predict(THETA)[[0, 2]])
    assert np.isnan(loss).tolist() == [False, True, False]
    assert np.isnan(p[1]).tolist() == ([j == 2 for j in range(5)] if total(name) is None else [True] * 5)
    assert np.isnan(reg(name).jvp(theta, np.ones((3, 5)))[1]).any()


@every
def test_infinite_scores_are_at_the_ends(name: str) -> None:
    theta = THETA.copy()
    theta[0, 1], theta[1, 3] = -np.inf, np.inf
    p = reg(name).predict(theta)
    domain = reg(name).derivation.entropy.domain
    assert p[0, 1] == domain.low and p[1, 3] == domain.high
    assert np.isfinite(np.delete(p.ravel(), [1, 8])).all()
    if total(name) is not None:
        np.testing.assert_allclose(p.sum(axis=1), total(name), rtol=1e-14)
    lost = reg(name).loss(theta, target(name))
    assert np.isinf(lost[:2]).all() and (lost[:2] > 0).all() and np.isfinite(lost[2])
    masked = np.ma.masked_array(THETA, mask=np.isneginf(theta))
    np.testing.assert_array_equal(reg(name).predict(masked)[0], p[0])


@every
def test_huge_and_tiny_scores(name: str) -> None:
    y = target(name)[:1, :4] * (1.25 if total(name) else 1.0)
    for size in (1e-310, 1e-200, 1e200, 1.7e308):
        theta = np.array([[size, -size, 0.0, size / 2]])
        p = reg(name).predict(theta)
        assert not np.isnan(p).any() and p[0, 0] >= p[0, 3] >= p[0, 2] >= p[0, 1]
        assert (reg(name).loss(theta, y) >= 0).all()


@every
def test_errors_say_what_is_wrong(name: str) -> None:
    bad = reg(name)
    for theta, words in (
        (np.zeros((2, 0)), "theta has no classes"),
        (3.0, "at least one dimension"),
        (["a", "b"], "real numbers"),
        (np.zeros(3) + 1j, "real numbers"),
        (None, "real numbers|at least one"),
    ):
        with pytest.raises(fysym.InputError, match=words):
            bad.predict(theta)
    with pytest.raises(fysym.InputError, match="axis 5 does not exist"):
        bad.predict(THETA, axis=5)
    with pytest.raises(fysym.InputError, match=r"y has shape \(2, 5\)"):
        bad.loss(THETA, target(name)[:2])
    with pytest.raises(fysym.InputError, match="v has shape"):
        bad.jvp(THETA, THETA[0])
    for value in (np.nan, np.inf):
        y = target(name)
        y[2, 1] = value
        with pytest.raises(fysym.InputError, match="row 2"):
            bad.loss(THETA, y)
    if reg(name).derivation.entropy.domain.low == 0:
        y = target(name)
        y[1] -= 1
        with pytest.raises(fysym.InputError, match="row 1"):
            bad.loss(THETA, y)
    if total(name) in (None, 1):
        with pytest.raises(fysym.InputError, match="label 5 in row 1 is not a class: there are 5, 0 to 4"):
            bad.loss(THETA, [0, 5, 1])


@every
def test_threads_and_copies_agree(name: str) -> None:
    expected = reg(name).predict(THETA)
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        for p in pool.map(lambda _: reg(name).predict(THETA), range(64)):
            np.testing.assert_array_equal(p, expected)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(reg(name))).predict(THETA), expected)


@pytest.mark.parametrize("name", [*REGULARIZERS, "norm", "renyi", "berger_parker"])
def test_enormous_scores_do_not_warn(name: str) -> None:
    bound = {"norm": {"q": 2}, "renyi": {"beta": 0.5}, "berger_parker": {}}
    made = fysym.catalog[name].bind(**bound[name]) if name in bound else reg(name)
    y = target(name)[0] if name in REGULARIZERS else np.full(5, 0.2)
    signs = np.array([[1, -1, 0, 0, 1], [1, 1, 1, 1, 1], [-1, -1, -1, -1, -1], [1, -1, -1, -1, 0]])
    for dtype, large in ((np.float64, 1.7e308), (np.float32, 3.4e38)):
        rows = (large * signs).astype(dtype)
        for theta in (*rows, rows):
            assert (made.loss(theta, np.broadcast_to(y, theta.shape)) >= 0).all()
            for method in (made.predict, made.threshold, made.conjugate, made.jacobian):
                method(theta)
