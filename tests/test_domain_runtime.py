"""The NumPy code of the other domains, where it stands, on entropies written by hand whose answers are known."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy import special

from fysym.errors import InputError
from fysym.runtime import arrays, numpy_domain, numpy_line

inf, nan = np.inf, np.nan

GINI = {
    "value": lambda t: t * (t - 1) / 2, "slope": lambda t: t - 0.5, "curvature": np.ones_like,
    "inverse": lambda r: 1.0 * r, "coinverse": lambda r: 1.0 - r, "weight": lambda t, r: np.ones_like(t),
    "covalue": None, "value_low": 0.0, "value_high": 0.0, "slope_low": -0.5, "slope_high": 0.5, "curvature_high": 1.0,
    "anchor": -0.5, "rise_high": 1.0, "rise_middle": 0.5, "newton": True, "exponential": None,
}  # fmt: skip


def bits(t: Any) -> Any:
    return special.xlogy(t, t) + special.xlog1py(1 - t, -t)


BERNOULLI = {
    "value": bits, "slope": special.logit, "curvature": lambda t: 1 / (t * (1 - t)),
    "inverse": special.expit, "coinverse": lambda r: special.expit(-r),
    "weight": lambda t, r: special.expit(r) * special.expit(-r),
    "covalue": bits, "value_low": 0.0, "value_high": 0.0, "slope_low": -inf, "slope_high": inf, "curvature_high": inf,
    "anchor": 0.0, "rise_high": inf, "rise_middle": 0.0, "newton": False, "exponential": None,
}  # fmt: skip


@pytest.fixture(autouse=True)
def quiet() -> Any:
    with np.errstate(all="ignore"):
        yield


def entropy(entries: dict[str, Any], **more: Any) -> SimpleNamespace:
    return SimpleNamespace(**entries, **more)


def given(array: Any) -> Any:
    return arrays.as_rows(np.asarray(array), -1, "p")


def check_solved(f: Any, theta: Any, module: Any = numpy_domain) -> Any:
    """Losses, conjugates and derivatives of a solution, against their definitions."""
    solved = module.solve(f, theta)
    p = solved.p
    objective = (theta * p).sum(axis=1) - module.value(f, p).sum(axis=1)
    np.testing.assert_allclose(module.conjugate_rows(f, solved), objective, rtol=1e-15, atol=1e-14)
    rng = np.random.default_rng(0)
    y = p[rng.permutation(len(p))]  # of the right total
    gap = objective + module.value(f, y).sum(axis=1) - (theta * y).sum(axis=1)
    np.testing.assert_allclose(module.gap(f, solved, y), gap, rtol=1e-15, atol=1e-14)
    return solved


def test_gini_with_a_total() -> None:
    f = entropy(GINI, total=2)
    theta = np.array([[0.0, 0.25, 0.5, 0.75, 1.0], [3.0, 3.0, 0.0, 0.0, 0.0], [0.0] * 5])
    solved = check_solved(f, theta)
    want = [[0, 0.125, 0.375, 0.625, 0.875], [1, 1, 0, 0, 0], [0.4] * 5]
    np.testing.assert_allclose(solved.p, want, rtol=0, atol=1e-16)
    v = np.arange(15.0).reshape(3, 5)
    want = [[0, -1.5, -0.5, 0.5, 1.5], [0] * 5, [-2, -1, 0, 1, 2]]
    np.testing.assert_allclose(numpy_domain.jvp_rows(f, solved, v), want, rtol=0, atol=1e-15)
    jacobian = numpy_domain.jacobian_rows(f, solved)
    np.testing.assert_allclose(jacobian[0, 1:, 1:], np.eye(4) - 0.25, rtol=0, atol=1e-15)
    np.testing.assert_allclose(jacobian[0, 0], 0.0, rtol=0, atol=0)


@pytest.mark.parametrize("total", [2, 0.5, 3.0])
@pytest.mark.parametrize("name", ["gini", "bernoulli"])
def test_a_total_meets_the_optimality_conditions(name: str, total: float) -> None:
    """theta - g'(p) is the same for all classes between 0 and 1, not larger at 0 and not smaller at 1."""
    f = entropy({"gini": GINI, "bernoulli": BERNOULLI}[name], total=total)
    theta = np.random.default_rng(1).normal(size=(40, 7)) * np.logspace(-3, 2, 40)[:, None]
    solved = check_solved(f, theta)
    np.testing.assert_allclose(solved.p.sum(axis=1), total, rtol=1e-14)
    np.testing.assert_allclose(solved.p + solved.co, 1.0, rtol=0, atol=1e-15)
    for row, p, tau in zip(theta, solved.p, solved.tau, strict=True):
        left = row - f.slope(np.clip(p, 1e-300, 1 - 1e-16)) - tau
        scale = 1e-13 * (1 + abs(row).max())
        between = (p > 1e-9) & (p < 1 - 1e-3)
        assert (abs(left[between]) <= scale + 1e-9 * (name == "bernoulli")).all()
        assert (left[p == 0] <= scale).all() and (left[p == 1] >= -scale).all()


def test_infinite_scores_come_first_and_masks_are_out() -> None:
    f = entropy(GINI, total=2)
    theta = np.array([[inf, 0, 0, 0], [inf, inf, 1, 1], [inf, inf, inf, 0], [-inf, -inf, 5, 1], [-inf, -inf, -inf, 1]])
    want = [[1, 1 / 3, 1 / 3, 1 / 3], [1, 1, 0, 0], [2 / 3] * 3 + [0], [0, 0, 1, 1], [nan] * 4]
    np.testing.assert_allclose(numpy_domain.solve(f, theta).p, want, rtol=0, atol=1e-15)
    out = np.zeros((1, 3))
    numpy_domain.predict_rows(f, np.array([[0.0, nan, 1.0]]), out)
    assert np.isnan(out).all()
    with pytest.raises(InputError, match="a total of 2 needs as many classes; theta has 1"):
        numpy_domain.predict_rows(f, np.zeros((0, 1)), np.zeros((0, 1)))


def test_the_cube_is_one_class_at_a_time() -> None:
    theta = np.array([[-800.0, -40.0, -1.0, 0.0, 2.0, 40.0, 800.0]])
    logistic = entropy(BERNOULLI, total=None)
    solved = numpy_domain.solve(logistic, theta)
    np.testing.assert_allclose(solved.p, special.expit(theta), rtol=4e-16)
    np.testing.assert_allclose(solved.co, special.expit(-theta), rtol=4e-16)
    y = np.array([[0.0, 1.0, 0.5, 1.0, 0.0, 1.0, 0.0]])
    loss = np.logaddexp(0.0, theta) - theta * y + bits(y)
    np.testing.assert_allclose(numpy_domain.gap(logistic, solved, y), loss.sum(axis=1), rtol=1e-15)
    np.testing.assert_allclose(
        numpy_domain.conjugate_rows(logistic, solved), np.logaddexp(0.0, theta).sum(axis=1), rtol=1e-15
    )
    np.testing.assert_allclose(
        numpy_domain.jvp_rows(logistic, solved, np.ones((1, 7))),
        special.expit(theta) * special.expit(-theta),
        rtol=1e-15,
        atol=2e-17,
    )
    square = numpy_domain.solve(entropy(GINI, total=None), np.array([[-0.6, -0.25, 0.0, 0.5, nan]]))
    np.testing.assert_array_equal(square.p, [[0.0, 0.25, 0.5, 1.0, nan]])
    assert np.isnan(numpy_domain.conjugate_rows(entropy(GINI, total=None), square)).all()


def test_proportions_have_the_total(monkeypatch: pytest.MonkeyPatch) -> None:
    np.testing.assert_array_equal(numpy_domain.proportions(given([0.25, 1.0]), "p"), [[0.25, 1.0]])
    with pytest.raises(InputError, match="p must be between 0 and 1: row 1 contains 1.5"):
        numpy_domain.proportions(given([[0.0, 1.0], [1.5, 0.5]]), "p")
    np.testing.assert_array_equal(numpy_domain.one_hot(np.array([1]), 1, 3, ()), [[0.0, 1.0, 0.0]])
    monkeypatch.setattr(numpy_domain, "TOTAL", 2)
    np.testing.assert_array_equal(numpy_domain.proportions(given([0.5, 1.0, 0.5]), "p"), [[0.5, 1.0, 0.5]])
    with pytest.raises(InputError, match="p must sum to 2: it sums to 1|sum to 2: .* sums to 1"):
        numpy_domain.proportions(given([0.5, 0.5, 0.0]), "p")
    with pytest.raises(InputError, match="y must be rows of proportions that sum to 2, not labels"):
        numpy_domain.one_hot(np.array([1]), 1, 3, ())


POISSON = {
    "value": lambda t: special.xlogy(t, t) - t, "slope": np.log, "curvature": lambda t: 1 / t, "inverse": np.exp,
    "weight": lambda t, r: t, "value_low": 0.0, "slope_low": -inf, "slope_high": inf, "anchor": 0.0, "rise_high": inf,
    "low": 0.0, "high": inf,
}  # fmt: skip


def test_poisson_on_the_half_line() -> None:
    f = entropy(POISSON)
    theta = np.array([[-2.0, 0.0, 3.0], [-inf, 1.0, 2.0]])
    solved = numpy_line.solve(f, theta)
    np.testing.assert_allclose(solved.p, np.exp(theta), rtol=1e-15)
    y = np.array([[0.0, 1.0, 30.0], [0.0, 2.0, 7.0]])
    deviance = np.exp(theta) - special.xlogy(y, np.exp(theta)) + special.xlogy(y, y) - y
    np.testing.assert_allclose(numpy_line.gap(f, solved, y), deviance.sum(axis=1), rtol=1e-13)
    np.testing.assert_allclose(numpy_line.conjugate_rows(f, solved), np.exp(theta).sum(axis=1), rtol=1e-15)
    np.testing.assert_allclose(numpy_line.inner_weights(f, solved.p, theta), np.exp(theta), rtol=1e-15)
    np.testing.assert_allclose(numpy_line.slope(f, np.array([0.0, 1.0, inf])), [-inf, 0.0, inf])
    beyond = numpy_line.solve(f, np.array([[800.0, nan]]))
    np.testing.assert_array_equal(beyond.p, [[inf, nan]])
    assert np.isnan(numpy_line.gap(f, beyond, np.ones((1, 2)))).all()
    assert numpy_line.gap(f, numpy_line.solve(f, np.array([[800.0]])), np.ones((1, 1))) == inf


def soft(low: float) -> SimpleNamespace:
    """g = t^2/2 + |t|, whose q is soft thresholding: the inverse is found by Newton's method from a table."""

    def slope(t: np.ndarray) -> np.ndarray:
        return t + np.sign(t)

    f = entropy(
        {"slope": slope, "rise": slope, "curvature": np.ones_like, "weight": lambda t, r: np.ones_like(t)},
        slope_low=-inf if low < 0 else 1.0, rise_high=inf, rise_middle=0.0, anchor=0.0, low=low, high=inf,
        kinks=[(0.0, -1.0, 1.0)] if low < 0 else [],
    )  # fmt: skip
    f.inverse = numpy_line.line_inverse(f)
    return f


def test_an_inverse_by_newton_on_the_line() -> None:
    r = np.concatenate([np.linspace(-4.0, 4.0, 81), [1e-3, 1e6, -1e6, 1 + 1e-9]])
    eps = 2.0**-52  # of a rise, of which 1 is taken
    want = np.sign(r) * np.maximum(np.abs(r) - 1.0, 0.0)
    np.testing.assert_allclose(numpy_line.predict_one(soft(-inf), r), want, rtol=1e-14, atol=eps)
    np.testing.assert_allclose(numpy_line.predict_one(soft(0.0), r), np.maximum(r - 1.0, 0.0), rtol=1e-14, atol=eps)


def test_what_code_cannot_compute_on_the_line_is_nan() -> None:
    """A part of the slope, which is next to 1 from 1e9 on, is lost where t^2 is too large for a double."""
    f = soft(-inf)
    f.slope = f.rise = lambda t: 1e-3 * np.arcsinh(t) + t / np.sqrt(1.0 + t * t)
    f.curvature = lambda t: (1e-3 + 1.0 / (1.0 + t * t)) / np.sqrt(1.0 + t * t)
    f.kinks = []
    f.inverse = numpy_line.line_inverse(f)
    r = f.slope(np.array([1e-9, 3.0, -1e100, 1e150]))
    found = numpy_line.predict_one(f, np.concatenate([r, [1.356, 1.5, -2.0]]))
    np.testing.assert_allclose(found[:4], [1e-9, 3.0, -1e100, 1e150], rtol=1e-10)
    assert np.isnan(found[4:]).all()


def test_proportions_of_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    np.testing.assert_array_equal(numpy_line.proportions(given([0.0, 7.0]), "y"), [[0.0, 7.0]])
    with pytest.raises(InputError, match="y must be finite and not negative: .* contains -1"):
        numpy_line.proportions(given([[1.0, 2.0], [3.0, -1.0]]), "y")
    monkeypatch.setattr(numpy_line, "LOW", -inf)
    np.testing.assert_array_equal(numpy_line.proportions(given([0.0, -7.0]), "y"), [[0.0, -7.0]])
    with pytest.raises(InputError, match="y must be finite: .* contains nan"):
        numpy_line.proportions(given([1.0, nan]), "y")
    np.testing.assert_array_equal(numpy_line.inside(np.array([-1e309, 1.0])), [-numpy_line.LARGEST, 1.0])


def test_what_has_no_value_is_never_settled_as_a_number() -> None:
    p = numpy_domain.settle_total(np.array([[nan, 0.5, 0.5]]), np.ones((1, 3)), np.zeros(1), np.array([1.5]))
    assert np.isnan(p[0, 0])
