"""What a user may hand in: types, shapes, labels, masks, infinities; and the errors for the rest."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import fysym

from .oracle import member

# A closed form, a cut-off, a closed form that is not exponential, and a numeric inverse; both ends infinite.
NAMES = ["shannon", "gini", "tsallis_1.5", "tsallis_3", "abe_1.5", "gini_sine", "fermi_dirac", "sine"]
every = pytest.mark.parametrize("name", NAMES)
THETA = np.array([[0.5, -1.25, 2.0], [0.0, 0.25, -0.5]])
CALLS = {
    "predict": lambda reg, theta: reg.predict(theta),
    "loss": lambda reg, theta: reg.loss(theta, np.zeros(np.shape(theta)[:-1], int)),
    "grad": lambda reg, theta: reg.grad(theta, np.zeros(np.shape(theta)[:-1], int)),
    "jvp": lambda reg, theta: reg.jvp(theta, np.ones(np.shape(theta))),
    "vjp": lambda reg, theta: reg.vjp(theta, np.ones(np.shape(theta))),
    "jacobian": lambda reg, theta: reg.jacobian(theta),
    "threshold": lambda reg, theta: reg.threshold(theta),
    "conjugate": lambda reg, theta: reg.conjugate(theta),
}
calls = pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())


@pytest.fixture(autouse=True)
def warnings_are_errors() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def error(call: Any, *args: Any, **kwargs: Any) -> str:
    """The message of the FysymError that a call raises."""
    with pytest.raises(fysym.FysymError) as caught:
        call(*args, **kwargs)
    assert isinstance(caught.value, ValueError)
    return str(caught.value)


# Types


@every
@pytest.mark.parametrize(
    ("given", "returned"),
    [
        (np.float16, np.float32), (np.float32, np.float32), (np.float64, np.float64), (np.longdouble, np.float64),
        (">f4", np.float32), (">f8", np.float64), ("<f8", np.float64), (object, np.float64),
    ],
)  # fmt: skip
def test_float_types(name: str, given: Any, returned: Any) -> None:
    reg = member(name)
    theta = THETA.astype(given)
    expected = reg.predict(THETA)
    tolerance = 1e-15 if returned == np.float64 else 2e-7
    p = reg.predict(theta)
    assert p.dtype == returned and p.dtype.isnative
    np.testing.assert_allclose(p, expected, rtol=0, atol=tolerance)
    loss, grad = reg.value_and_grad(theta, [2, 0])
    assert loss.dtype == grad.dtype == returned
    for method in ("jacobian", "threshold", "conjugate"):
        assert getattr(reg, method)(theta).dtype == returned
    assert reg.jvp(theta, theta).dtype == returned


@pytest.mark.parametrize("given", [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint64, bool, ">i4"])
def test_integer_scores_become_float64(given: Any) -> None:
    theta = np.array([[0, 1, 1], [1, 0, 0]]).astype(given)
    p = member("gini").predict(theta)
    assert p.dtype == np.float64
    np.testing.assert_array_equal(p, [[0, 0.5, 0.5], [1, 0, 0]])


@pytest.mark.parametrize(
    "theta",
    [[0.5, 1], (0.5, 1), [Fraction(1, 2), 1], np.array([0.5, 1], object), [np.float32(0.5), np.float64(1)], range(2)],
)
def test_array_likes(theta: Any) -> None:
    floats = np.array([float(x) for x in theta])
    np.testing.assert_array_equal(member("gini").predict(theta), member("gini").predict(floats))


NOT_REAL_NUMBERS = {
    "complex": np.array([1 + 2j, 0]),
    "text": np.array(["1", "2"]),
    "bytes": np.array([b"1", b"2"]),
    "list of text": ["a", "b"],
    "dates": np.array(["2020-01-01", "2020-01-02"], "datetime64[D]"),
    "none": [None, 1.0],
    "complex objects": np.array([1j, 1], object),
    "ragged": [[1, 2], [3]],
    "records": np.zeros(2, [("x", float)]),
    "integer beyond a double": [10**400, 1],
    "objects": [{}, []],
    "mapping": {"a": 1},
}


@pytest.mark.parametrize("theta", NOT_REAL_NUMBERS.values(), ids=NOT_REAL_NUMBERS.keys())
def test_what_is_not_real_numbers_is_refused(theta: Any) -> None:
    reg = member("gini")
    for call in (
        reg.predict, reg.threshold, reg.conjugate, reg.jacobian, lambda x: reg.loss(x, 0), lambda x: reg.grad(x, 0),
        lambda x: reg.jvp(x, [0, 1]), lambda x: reg.jvp([0, 1], x), lambda x: reg.vjp([0, 1], x), reg.entropy,
        lambda x: reg.score(x, 0), lambda x: reg.score([0, 1], x), lambda x: reg.loss([0, 1], x),
        lambda x: reg.bregman(x, [0, 1]), lambda x: reg.bregman([0, 1], x),
    ):  # fmt: skip
        error(call, theta)
    assert "theta" in error(reg.predict, theta)


def test_long_doubles_beyond_the_range_of_a_double() -> None:
    huge = np.array([0, 1, 2], np.longdouble) * np.longdouble("1e400")
    np.testing.assert_array_equal(member("gini").predict(-huge), [1, 0, 0])
    p = member("gini").predict(huge[:2])
    np.testing.assert_array_equal(p, [0, 1])


@every
def test_strides_order_and_read_only(name: str) -> None:
    reg = member(name)
    base = np.random.default_rng(0).normal(size=(6, 8))
    expected = reg.predict(base.copy())
    np.testing.assert_array_equal(reg.predict(base[::-1, ::-1]), reg.predict(base[::-1, ::-1].copy()))
    np.testing.assert_array_equal(reg.predict(base[::2, 1::3]), reg.predict(base[::2, 1::3].copy()))
    np.testing.assert_allclose(reg.predict(np.asfortranarray(base)), expected, rtol=0, atol=1e-15)
    repeated = reg.predict(np.broadcast_to(base[0], (4, 8)))
    np.testing.assert_allclose(repeated, np.tile(expected[0], (4, 1)), rtol=0, atol=1e-15)
    base.flags.writeable = False
    np.testing.assert_array_equal(reg.predict(base), expected)
    y = np.zeros(6, int)
    y.flags.writeable = False
    assert reg.loss(base, y).shape == (6,)


@every
def test_inputs_are_never_modified_and_outputs_are_fresh(name: str) -> None:
    reg = member(name)
    theta = np.array([[1.0, -np.inf, 0.0], [np.nan, 0.0, 1.0], [np.inf, 0.0, np.inf], [-np.inf] * 3, [3.0, 2.0, 1.0]])
    y = np.array([[0.5, 0.0, 0.5], [1, 0, 0], [0, 0, 1], [0, 1, 0], [0.25, 0.5, 0.25]])
    v = np.ones((5, 3))
    p = np.full((5, 3), 0.25) + 0.25 * np.eye(3)[[0, 1, 2, 0, 1]]
    labels = np.array([0, 2, 2, 0, 1])
    kept = [x.copy() for x in (theta, y, v, p, labels)]
    out = [reg.predict(theta), reg.loss(theta, y), reg.grad(theta, y), reg.loss(theta, labels), reg.jvp(theta, v)]
    out += [reg.jacobian(theta), reg.threshold(theta), reg.conjugate(theta), reg.entropy(p), reg.bregman(y, p)]
    out += [reg.score(p, y), reg.score(p, labels), reg.grad(theta, labels)]
    for array, before in zip((theta, y, v, p, labels), kept, strict=True):
        np.testing.assert_array_equal(array, before)
    for result in out:
        assert result.flags.writeable
        assert not any(np.shares_memory(result, array) for array in (theta, y, v, p, labels))


# Shapes


@every
def test_leading_dimensions_and_axis(name: str) -> None:
    reg = member(name)
    rng = np.random.default_rng(1)
    theta = rng.normal(size=(2, 3, 4))
    labels = rng.integers(4, size=(2, 3))
    v = rng.normal(size=theta.shape)
    shares = rng.dirichlet(np.ones(4), size=(2, 3))
    one_by_one = np.array([[reg.predict(row) for row in block] for block in theta])
    np.testing.assert_allclose(reg.predict(theta), one_by_one, rtol=0, atol=1e-15)
    losses = reg.loss(theta, labels)
    assert losses.shape == (2, 3)
    singles = [[reg.loss(theta[i, j], labels[i, j]) for j in range(3)] for i in range(2)]
    np.testing.assert_allclose(losses, singles, rtol=1e-14, atol=1e-15)
    assert reg.jacobian(theta).shape == (2, 3, 4, 4)
    for axis in (0, 1, 2, -1, -2, -3):
        moved = np.moveaxis(theta, -1, axis)
        np.testing.assert_array_equal(reg.predict(moved, axis=axis), np.moveaxis(reg.predict(theta), -1, axis))
        np.testing.assert_array_equal(reg.loss(moved, labels, axis=axis), losses)
        np.testing.assert_array_equal(
            reg.loss(moved, np.moveaxis(shares, -1, axis), axis=axis), reg.loss(theta, shares)
        )
        np.testing.assert_array_equal(
            reg.grad(moved, labels, axis=axis), np.moveaxis(reg.grad(theta, labels), -1, axis)
        )
        directions = np.moveaxis(v, -1, axis)
        np.testing.assert_array_equal(reg.jvp(moved, directions, axis=axis), np.moveaxis(reg.jvp(theta, v), -1, axis))
        np.testing.assert_array_equal(reg.jacobian(moved, axis=axis), reg.jacobian(theta))
        np.testing.assert_array_equal(reg.conjugate(moved, axis=axis), reg.conjugate(theta))
        np.testing.assert_array_equal(reg.threshold(moved, axis=axis), reg.threshold(theta))
        q = np.moveaxis(shares, -1, axis)
        np.testing.assert_array_equal(reg.entropy(q, axis=axis), reg.entropy(shares))
        np.testing.assert_array_equal(reg.score(q, labels, axis=axis), reg.score(shares, labels))
        other = np.moveaxis(shares[::-1], -1, axis)
        np.testing.assert_array_equal(reg.bregman(other, q, axis=axis), reg.bregman(shares[::-1], shares))


@every
def test_a_single_vector_gives_a_single_number(name: str) -> None:
    reg = member(name)
    theta = [0.5, 0.25, 0.125]
    for label in (1, np.int8(1), np.uint64(1), np.array(1), True + 0):
        assert np.ndim(reg.loss(theta, label)) == 0
        assert isinstance(reg.loss(theta, label), float)
        assert reg.loss(theta, label) == reg.loss(theta, [0, 1, 0]) == reg.loss(theta, [0.0, 1.0, 0.0])
    assert reg.grad(theta, 1).shape == (3,)
    assert isinstance(reg.threshold(theta), float)
    assert isinstance(reg.conjugate(theta), float)
    assert isinstance(reg.entropy([0.5, 0.5]), float)


@every
def test_empty_batches(name: str) -> None:
    reg = member(name)
    for batch in ((0,), (2, 0), (0, 3)):
        theta = np.zeros((*batch, 4))
        labels = np.zeros(batch, int)
        assert reg.predict(theta).shape == theta.shape
        assert reg.loss(theta, labels).shape == batch
        assert reg.grad(theta, labels).shape == theta.shape
        assert reg.loss(theta, theta).shape == batch
        assert reg.jvp(theta, theta).shape == theta.shape
        assert reg.jacobian(theta).shape == (*batch, 4, 4)
        assert reg.threshold(theta).shape == reg.conjugate(theta).shape == reg.entropy(theta).shape == batch
        assert reg.score(theta, labels).shape == reg.bregman(theta, theta).shape == batch
    assert reg.predict(np.zeros((4, 0)), axis=0).shape == (4, 0)
    assert reg.predict(np.zeros((0, 4), np.float32)).dtype == np.float32


@every
def test_one_class(name: str) -> None:
    reg = member(name)
    theta = np.array([[3.0], [-1e300], [0.0]])
    np.testing.assert_array_equal(reg.predict(theta), np.ones((3, 1)))
    np.testing.assert_array_equal(reg.loss(theta, [0, 0, 0]), np.zeros(3))
    np.testing.assert_array_equal(reg.grad(theta, [0, 0, 0]), np.zeros((3, 1)))
    np.testing.assert_array_equal(reg.jacobian(theta), np.zeros((3, 1, 1)))
    np.testing.assert_array_equal(reg.jvp(theta, theta), np.zeros((3, 1)))
    np.testing.assert_array_equal(reg.conjugate(theta), theta[:, 0])


@calls
def test_zero_classes_and_single_numbers_are_refused(call: Any) -> None:
    reg = member("gini")
    assert "(3, 0)" in error(call, reg, np.zeros((3, 0)))
    assert "(0,)" in error(call, reg, np.zeros(0))
    assert "(0, 0)" in error(call, reg, np.zeros((0, 0)))
    error(reg.predict, 3.0)
    error(reg.predict, np.float64(3.0))
    error(reg.loss, 3.0, 0)
    error(reg.entropy, 1.0)
    error(reg.entropy, [])


def test_an_axis_that_does_not_exist() -> None:
    reg = member("gini")
    for axis in (2, -3, 7):
        message = error(reg.predict, THETA, axis=axis)
        assert str(axis) in message and "(2, 3)" in message
        error(reg.loss, THETA, [0, 0], axis=axis)
        error(reg.entropy, THETA, axis=axis)


def test_shapes_that_do_not_fit_together() -> None:
    reg = member("gini")
    third = np.full((2, 3), 1 / 3)
    for y in ([0], [0, 1, 2], 0, [[0, 1]], np.ones((2, 2)) / 2, np.ones((3, 2)) / 2, np.ones((1, 3)) / 3, [[0], [1]]):
        message = error(reg.loss, THETA, y)
        assert str(np.shape(y)) in message and "(2, 3)" in message
        error(reg.grad, THETA, y)
        error(reg.value_and_grad, THETA, y)
        error(reg.score, third, y)
        error(reg.bregman, y, third)
    error(reg.jvp, THETA, 1.0)
    for v in ([1, 2, 3], np.ones((2, 2)), np.ones((1, 3))):
        assert "(2, 3)" in error(reg.jvp, THETA, v)
        error(reg.vjp, THETA, v)


# Labels and proportions


@pytest.mark.parametrize("kind", "bhilqBHILQ")
def test_labels_of_any_integer_type(kind: str) -> None:
    reg = member("tsallis_1.5")
    labels = np.array([2, 0]).astype(kind)
    np.testing.assert_array_equal(reg.loss(THETA, labels), reg.loss(THETA, [2, 0]))
    np.testing.assert_array_equal(reg.loss(THETA, labels.astype(labels.dtype.newbyteorder())), reg.loss(THETA, [2, 0]))
    wide = np.zeros((2, 300))
    np.testing.assert_array_equal(reg.loss(wide, labels), reg.loss(wide, [2, 0]))


@pytest.mark.parametrize("method", ["loss", "grad", "value_and_grad"])
def test_labels_out_of_range(method: str) -> None:
    call = getattr(member("gini"), method)
    for labels, row, value in (
        ([0, 3], "1", "3"), ([-1, 0], "0", "-1"), ([0, -7], "1", "-7"), ([9, 9], "0", "9"),
        (np.array([0, 2**64 - 1], np.uint64), "1", str(2**64 - 1)), (np.array([0, -128], np.int8), "1", "-128"),
        (np.array([0, -(2**63)]), "1", str(-(2**63))),
    ):  # fmt: skip
        message = error(call, THETA, labels)
        assert f"row {row}" in message and value in message
    message = error(call, THETA.reshape(1, 2, 3), [[0, 5]])
    assert "(0, 1)" in message and "5" in message
    assert "3" in error(call, [1.0, 2.0, 3.0], 3)
    assert "-1" in error(call, [1.0, 2.0, 3.0], -1)
    error(member("gini").score, [0.5, 0.5], 2)


@pytest.mark.parametrize(
    "labels",
    [[0.0, 1.0], ["0", "1"], [None, 1], [1j, 0], np.array([True, False]), [np.nan, 0]],
    ids=str,
)
def test_labels_that_are_not_integers_are_refused(labels: Any) -> None:
    assert "labels must be integers" in error(member("gini").loss, THETA, labels)


@pytest.mark.parametrize("labels", [[0], [0, 1, 2], 0, [0.0, 1.0, 2.0], [[0, 1]]], ids=str)
def test_the_hint_about_integers_is_only_for_labels_of_the_right_shape(labels: Any) -> None:
    assert "labels must be integers" not in error(member("gini").loss, THETA, labels)


@pytest.mark.parametrize(
    "y", ["label", None, [["a"] * 3] * 2, [[None] * 3] * 2, [[1j, 0, 0]] * 2, [[1, 2], [3]]], ids=str
)
def test_targets_that_are_not_numbers_are_refused(y: Any) -> None:
    error(member("gini").loss, THETA, y)
    error(member("gini").bregman, y, np.full((2, 3), 1 / 3))


@pytest.mark.parametrize("method", ["loss", "grad", "value_and_grad"])
def test_bad_proportions_name_the_first_bad_row(method: str) -> None:
    call = getattr(member("gini"), method)
    theta = np.zeros((3, 2))
    good = [0.5, 0.5]
    message = error(call, theta, [good, [1.25, -0.25], [2.0, -1.0]])
    assert "row 1" in message and "-0.25" in message
    message = error(call, theta, [good, good, [0.75, 0.75]])
    assert "row 2" in message and "1.5" in message
    message = error(call, theta, [good, [0.0, 0.0], [0.75, 0.75]])
    assert "row 1" in message and "0" in message
    message = error(call, theta, [[0.5, 0.4999], good, good])
    assert "row 0" in message and "0.9999" in message
    message = error(call, theta, [good, [np.nan, 1.0], good])
    assert "row 1" in message and "nan" in message
    message = error(call, theta, [good, [np.inf, 0.0], good])
    assert "row 1" in message and "inf" in message
    message = error(call, theta, [good, [np.inf, -np.inf], good])
    assert "row 1" in message and "inf" in message
    message = error(call, theta.reshape(3, 1, 2), [[good], [good], [[0.25, 0.25]]])
    assert "(2, 0)" in message and "0.5" in message
    error(call, np.zeros(2), [0.5, 0.75])
    error(call, theta.astype(np.float32), np.array([good, good, [0.5, 0.51]], np.float32))
    message = error(call, theta, np.array([[1, 0], [1, 1], [0, 1]]))
    assert "row 1" in message and "2" in message


def test_bad_probabilities_of_entropy_bregman_and_score() -> None:
    reg = member("gini")
    good, negative, heavy = [0.5, 0.5], [1.5, -0.5], [0.75, 0.75]
    for call in (
        lambda bad: reg.entropy([good, bad]),
        lambda bad: reg.bregman([good, bad], [good, good]),
        lambda bad: reg.bregman([good, good], [good, bad]),
        lambda bad: reg.score([good, bad], [0, 0]),
        lambda bad: reg.score([good, good], [good, bad]),
    ):
        message = error(call, negative)
        assert "row 1" in message and "-0.5" in message
        message = error(call, heavy)
        assert "row 1" in message and "1.5" in message


def test_proportions_within_rounding_of_one_are_accepted() -> None:
    rng = np.random.default_rng(3)
    for dtype in (np.float64, np.float32):
        y = rng.dirichlet(np.ones(1000), size=3).astype(dtype)
        assert (member("gini").loss(np.zeros((3, 1000), dtype), y) >= 0).all()
    assert member("gini").loss([0.0, 0.0, 0.0], [1 / 3, 1 / 3, 1 / 3]) == 0


# NaN, masks and infinities


@every
def test_nan_stays_in_its_row(name: str) -> None:
    reg = member(name)
    theta = np.random.default_rng(4).normal(size=(5, 4))
    broken = theta.copy()
    broken[1, 2] = np.nan
    broken[3] = [np.nan, -np.inf, np.inf, 0.0]
    keep = np.array([0, 2, 4])
    labels = np.array([0, 1, 2, 3, 0])
    for call in (
        reg.predict, reg.threshold, reg.conjugate, reg.jacobian,
        lambda x: reg.loss(x, labels), lambda x: reg.grad(x, labels), lambda x: reg.jvp(x, np.ones((5, 4))),
    ):  # fmt: skip
        got, expected = call(broken), call(theta)
        np.testing.assert_array_equal(got[keep], expected[keep])
        assert np.isnan(got[[1, 3]]).all()


@every
def test_minus_infinity_is_the_same_as_dropping_the_column(name: str) -> None:
    reg = member(name)
    rng = np.random.default_rng(5)
    for keep in ([0, 2, 3], [1, 4], [3], [0, 1, 2, 3, 4]):
        theta = rng.normal(size=5)
        masked = np.full(5, -np.inf)
        masked[keep] = theta[keep]
        label, v = keep[-1], rng.normal(size=5)
        shares = np.zeros(5)
        shares[keep] = rng.dirichlet(np.ones(len(keep)))
        small = masked[keep]
        gone = np.setdiff1d(np.arange(5), keep)

        def same(full: np.ndarray, short: np.ndarray, keep: Any = keep, gone: Any = gone) -> None:
            np.testing.assert_allclose(full[keep], short, rtol=1e-14, atol=1e-16)
            np.testing.assert_array_equal(full[gone], 0.0)

        same(reg.predict(masked), reg.predict(small))
        moved, short = reg.jvp(masked, v), reg.jvp(small, v[keep])  # sums that cancel: to the size of the largest
        np.testing.assert_allclose(moved[keep], short, rtol=0, atol=1e-14 * np.abs(short).max() + 1e-16)
        np.testing.assert_array_equal(moved[gone], 0.0)
        same(reg.grad(masked, label), reg.grad(small, len(keep) - 1))
        same(reg.grad(masked, shares), reg.grad(small, shares[keep]))
        for y, y_small in ((label, len(keep) - 1), (shares, shares[keep])):
            assert reg.loss(masked, y) == pytest.approx(reg.loss(small, y_small), rel=1e-14, abs=1e-15)
        assert reg.conjugate(masked) == pytest.approx(reg.conjugate(small), rel=1e-14)
        assert reg.threshold(masked) == pytest.approx(reg.threshold(small), rel=1e-14)
        jacobian = reg.jacobian(masked)
        np.testing.assert_allclose(jacobian[np.ix_(keep, keep)], reg.jacobian(small), rtol=1e-13, atol=1e-16)
        assert (jacobian[gone] == 0).all() and (jacobian[:, gone] == 0).all()
        for k in gone:
            assert reg.loss(masked, int(k)) == np.inf
            mixed = 0.5 * shares
            mixed[k] += 0.5
            assert reg.loss(masked, mixed) == np.inf


@every
def test_masks_differ_from_row_to_row(name: str) -> None:
    reg = member(name)
    theta = np.random.default_rng(6).normal(size=(40, 6))
    theta[np.random.default_rng(7).random(theta.shape) < 0.5] = -np.inf
    theta[:, 0] = 0.5
    p = reg.predict(theta)
    for row, expected in zip(theta, p, strict=True):
        np.testing.assert_allclose(reg.predict(row[row > -np.inf]), expected[row > -np.inf], rtol=1e-14, atol=1e-16)


@every
def test_a_row_of_only_masks_is_nan(name: str) -> None:
    reg = member(name)
    theta = np.array([[-np.inf, -np.inf], [0.0, 1.0]])
    assert np.isnan(reg.predict(theta)[0]).all()
    assert np.isnan(reg.loss(theta, [0, 0])[0])
    assert np.isnan(reg.conjugate(theta)[0])
    assert np.isfinite(reg.predict(theta)[1]).all()
    assert np.isfinite(reg.loss(theta, [0, 0])[1])
    assert np.isnan(reg.predict([-np.inf])).all()


@every
def test_plus_infinity_takes_all_the_mass(name: str) -> None:
    reg = member(name)
    inf = np.inf
    theta = np.array([[inf, 0, 1], [inf, -inf, inf], [inf, inf, inf], [1e308, inf, -1e308], [-inf, inf, -inf]])
    third = 1 / 3
    expected = [[1, 0, 0], [0.5, 0, 0.5], [third, third, third], [0, 1, 0], [0, 1, 0]]
    np.testing.assert_allclose(reg.predict(theta), expected, rtol=0, atol=1e-15)
    np.testing.assert_array_equal(reg.predict(theta)[[0, 3, 4]], np.array(expected)[[0, 3, 4]])
    assert reg.loss(theta[0], 0) == 0
    assert reg.loss(theta[0], 1) == inf
    assert reg.loss(theta[0], [0.5, 0.5, 0]) == inf
    assert reg.loss(theta[1], [0.5, 0, 0.5]) == pytest.approx(0, abs=1e-15)
    assert reg.loss(theta[1], 0) == pytest.approx(reg.loss([0.0, 0.0], 0), rel=1e-14)
    assert reg.loss(theta[2], 1) == pytest.approx(reg.loss([0.0, 0.0, 0.0], 1), rel=1e-14)
    np.testing.assert_array_equal(reg.grad(theta[0], 0), np.zeros(3))
    assert not np.isnan(reg.jvp(theta, np.ones((5, 3)))).any()
    assert (reg.conjugate(theta) == inf).all()


@every
def test_extreme_scores(name: str) -> None:
    reg = member(name)
    largest = np.finfo(float).max
    theta = np.array(
        [[1e300, 0, -1e300], [largest, -largest, 0], [1e300, 1e300, 0], [1e-300, 0, -1e-300], [5e-324, 0, 0],
         [-1e300, -1e300, -1e300], [-largest, -largest, -largest], [1e16, 1e16, 1e16 - 2]]
    )  # fmt: skip
    p = reg.predict(theta)
    assert np.isfinite(p).all()
    assert max(abs(math.fsum(row) - 1) for row in p) <= 1e-14
    np.testing.assert_allclose(p[0], [1, 0, 0], rtol=0, atol=1e-13)
    np.testing.assert_allclose(p[1], [1, 0, 0], rtol=0, atol=1e-13)
    np.testing.assert_allclose(p[2], [0.5, 0.5, 0], rtol=0, atol=1e-13)
    np.testing.assert_allclose(p[3:7], 1 / 3, rtol=0, atol=1e-15)
    np.testing.assert_allclose(p[7], reg.predict([0.0, 0.0, -2.0]), rtol=0, atol=1e-15)
    losses = np.array([reg.loss(theta, np.full(8, k)) for k in range(3)])
    assert (losses >= 0).all() and not np.isnan(losses).any()
    assert losses[1, 0] == pytest.approx(1e300) and losses[2, 0] == pytest.approx(2e300)
    assert np.isfinite(reg.jacobian(theta)).all()
    assert np.isfinite(reg.jvp(theta, np.ones((8, 3)))).all()
    small = theta[[3, 4]].astype(np.float32)
    np.testing.assert_allclose(reg.predict(small), 1 / 3, rtol=1e-6)


@every
def test_float32_beyond_its_range(name: str) -> None:
    reg = member(name)
    largest = np.finfo(np.float32).max
    theta = np.array([[largest, -largest, 0], [largest, largest, 0]], np.float32)
    np.testing.assert_allclose(reg.predict(theta), [[1, 0, 0], [0.5, 0.5, 0]], rtol=0, atol=2e-6)
    assert (reg.loss(theta, [1, 2]) >= largest).all()
    half = np.array([6e4, -6e4, 0], np.float16)
    np.testing.assert_allclose(reg.predict(half), [1, 0, 0], rtol=0, atol=2e-4)


@pytest.mark.parametrize("text", ["t*(1-t) + sin(pi*t)/pi", "-t*log(t)", "t*sqrt(1-t)", "log(t)", "t - t**4"])
def test_the_first_call_is_silent_too(text: str) -> None:
    """Tables are made on first use; that must not warn either, whatever NumPy is told to do about errors."""
    reg = fysym.compile(text)
    with np.errstate(all="warn"):
        before = np.geterr()
        reg.predict([[0.0, 1.0, 2.0], [-np.inf, np.inf, np.nan]])
        reg.loss([0.0, 1e300], [0.5, 0.5])
        assert np.geterr() == before


@every
def test_ends_of_the_simplex_in_entropy_bregman_and_score(name: str) -> None:
    reg = member(name)
    corner, other, middle = np.eye(3)[0], np.eye(3)[1], np.full(3, 1 / 3)
    assert reg.entropy(corner) == 0
    assert reg.bregman(corner, corner) == 0
    assert reg.score(corner, 0) == 0
    for y, p in ((other, corner), (middle, corner), (corner, middle)):
        assert reg.bregman(y, p) > 0
        assert not np.isnan(reg.score(p, y))
    if reg.sparsity == "dense":
        assert reg.bregman(middle, corner) == reg.score(corner, 1) == np.inf
    else:
        assert np.isfinite(reg.bregman(middle, corner)) and np.isfinite(reg.score(corner, 1))
