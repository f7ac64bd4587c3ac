"""Numbers: predictions, losses and derivatives against the fifty-digit truth, for every entry of the catalog."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import mpmath
import numpy as np
import pytest
import sympy

import fysym
from fysym import regularizer
from fysym.parse import parse_expression
from fysym.runtime import numpy as runtime
from fysym.runtime import numpy_inverse, numpy_losses

from .oracle import MEMBERS, Oracle, Truth, allowed_error, member, member_oracle, of

SIZES = (1, 2, 3, 10, 1000)
SCALES = (1e-4, 1.0, 1e4)
WITH_MARGIN = [
    "gini", "tsallis_1+1e-9", "tsallis_1.5", "tsallis_3",
    "sine", "arctan", "log1p", "exponential", "gini_sine",
]  # fmt: skip
# Entropies outside the catalog: zeros but no vertex; h'' = 0 at 0, in the middle, and to high order.
OTHERS = [
    "t*sqrt(1-t)", "t - t**4", "1/16 - (t - 1/2)**4", "t - t**5", "t - t**9", "t**(1/3)*(1-t)**(1/2)",
    "-log(1+exp(-50*t))", "-exp(-30*t)",
]  # fmt: skip


@pytest.fixture(autouse=True)
def numpy_target(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is tested here is the NumPy target, whatever else is installed."""
    monkeypatch.setattr(regularizer, "FAST", frozenset())


@functools.cache
def other(text: str) -> tuple[Any, Oracle]:
    reg = fysym.compile(text)
    return reg, of(reg)


def rows_of_scores(d: int, scale: float, closed: bool) -> Iterator[np.ndarray]:
    """Scores of one size and scale: random, with ties, with a tie at the top, all tied, and one above the rest."""
    rng = np.random.default_rng([d, round(1e5 * scale)])
    if d < 1000 or (scale == 1.0 and closed):
        yield scale * rng.normal(size=d)
    if d > 1:
        yield scale * rng.choice(rng.normal(size=2 if d == 2 else min(d - 1, 40)), size=d)
        tied = scale * rng.choice(rng.normal(size=min(d, 20)), size=d)
        tied[-1] = tied[0] = tied.max()
        yield tied
        yield np.full(d, scale * rng.normal())
        one_up = np.full(d, -0.3 * scale)
        one_up[d // 2] = scale
        yield one_up


def targets_of(d: int, rng: np.random.Generator) -> Iterator[int | np.ndarray]:
    """Labels, and proportions that sum to 1 exactly."""
    yield int(rng.integers(d))
    parts = rng.multinomial(1024, rng.dirichlet(np.ones(min(d, 8))))
    y = np.zeros(d)
    y[rng.permutation(d)[: len(parts)]] = parts / 1024
    yield y


def distance(number: Any, truth: Any) -> Any:
    with mpmath.workdps(60):
        return abs(mpmath.mpf(float(number)) - truth)


def check_prediction(p: np.ndarray, oracle: Oracle, truth: Truth) -> None:
    assert p.dtype == np.float64
    assert (p >= 0).all() and (p <= 1).all()
    assert abs(math.fsum(p) - 1) <= 1e-14, math.fsum(p) - 1
    errors = [distance(a, b) for a, b in zip(p, truth.p, strict=True)]
    for j in sorted(range(len(p)), key=lambda k: -errors[k])[:5]:
        if errors[j] > 1e-13:
            allowed = allowed_error(oracle, truth, j)
            assert errors[j] <= allowed, f"p[{j}] = {p[j]!r} is off by {float(errors[j])}, allowed {float(allowed)}"


def check_loss(reg: Any, oracle: Oracle, theta: np.ndarray, truth: Truth, y: int | np.ndarray) -> None:
    loss, grad = reg.value_and_grad(theta, y)
    exact = oracle.loss(truth, y)
    assert loss >= 0
    assert loss == reg.loss(theta, y)
    assert distance(loss, exact) <= 1e-12 * max(1, exact), f"L = {loss!r}, truth {mpmath.nstr(exact, 20)}"
    wanted = (np.arange(len(theta)) == y).astype(float) if isinstance(y, int) else y
    np.testing.assert_array_equal(grad, reg.predict(theta) - wanted)
    np.testing.assert_array_equal(grad, reg.grad(theta, y))


def check_row(reg: Any, oracle: Oracle, theta: np.ndarray) -> Truth:
    truth = oracle.solve(theta, near=reg.threshold(theta))
    check_prediction(reg.predict(theta), oracle, truth)
    rng = np.random.default_rng(len(theta))
    top, bottom = int(np.argmax(theta)), int(np.argmin(theta))
    for y in (top, bottom, *targets_of(len(theta), rng)):
        check_loss(reg, oracle, theta, truth, y)
    exact = oracle.conjugate(truth)
    assert distance(reg.conjugate(theta), exact) <= 1e-12 * max(1, abs(exact))
    return truth


def test_members_cover_the_catalog() -> None:
    assert {entry for entry, _ in MEMBERS.values()} == set(fysym.catalog.separable)


@pytest.mark.parametrize("name", MEMBERS)
def test_which_members_have_a_margin(name: str) -> None:
    assert (member(name).margin != sympy.oo) == (name in WITH_MARGIN)


@pytest.mark.parametrize("d", SIZES)
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("name", MEMBERS)
def test_prediction_and_loss(name: str, scale: float, d: int) -> None:
    reg, oracle = member(name), member_oracle(name)
    for theta in rows_of_scores(d, scale, oracle.closed):
        check_row(reg, oracle, theta)


@pytest.mark.parametrize("d", (2, 3, 10, 1000))
@pytest.mark.parametrize("text", OTHERS)
def test_prediction_and_loss_outside_the_catalog(text: str, d: int) -> None:
    reg, oracle = other(text)
    for scale in SCALES:
        for theta in rows_of_scores(d, scale, oracle.closed and d < 1000):
            check_row(reg, oracle, theta)


@pytest.mark.parametrize("name", MEMBERS)
def test_float32(name: str) -> None:
    reg, oracle = member(name), member_oracle(name)
    for d, scale in ((2, 1.0), (10, 1e-4), (10, 1.0), (10, 1e4), (1000, 1.0)):
        rng = np.random.default_rng(d)
        theta = (scale * rng.choice(rng.normal(size=40), size=d)).astype(np.float32)
        truth = oracle.solve([float(x) for x in theta], near=reg.threshold(theta.astype(np.float64)))
        p = reg.predict(theta)
        assert p.dtype == np.float32
        assert max(distance(a, b) for a, b in zip(p, truth.p, strict=True)) <= 2e-6
        for y in targets_of(d, rng):
            loss, grad = reg.value_and_grad(theta, y if isinstance(y, int) else y.astype(np.float32))
            exact = oracle.loss(truth, y)
            assert loss.dtype == grad.dtype == np.float32
            assert loss >= 0
            assert distance(loss, exact) <= 2e-6 * max(1, exact)


@pytest.mark.parametrize("name", MEMBERS)
def test_threshold(name: str) -> None:
    reg, oracle = member(name), member_oracle(name)
    for d in (2, 3, 10):
        theta = 0.1 * np.random.default_rng(d).normal(size=d)
        exact = oracle.solve(theta).tau
        assert distance(reg.threshold(theta), exact) <= 1e-13 * max(1, abs(exact))
    # Where one coordinate takes everything, any threshold that says so is right.
    tau = reg.threshold(np.array([50.0, -50.0]))
    with mpmath.workdps(60):
        assert oracle.inverse(mpmath.mpf(50.0) - mpmath.mpf(float(tau)))[0] > 1 - 1e-1
        assert oracle.inverse(mpmath.mpf(-50.0) - mpmath.mpf(float(tau)))[0] < 1e-1


@pytest.mark.parametrize("name", [*WITH_MARGIN, *OTHERS[:4]])
def test_scores_at_the_cut_off(name: str) -> None:
    """A score that lands within rounding of the cut-off, where h''(0) = 0 makes the prediction steep."""
    reg, oracle = other(name) if name in OTHERS else (member(name), member_oracle(name))
    for seed in range(2):
        theta = 0.1 * np.random.default_rng(seed).normal(size=4)
        tau = oracle.solve(theta).tau
        for nudge in (0.0, 1e-16, -1e-16, 1e-13, 1e-10, 1e-7, 1e-4):
            near_cut = float(tau + oracle.slope_low + nudge)
            row = np.array([*theta, near_cut])
            check_prediction(reg.predict(row), oracle, oracle.solve(row, near=tau))
            loss, exact = reg.loss(row, 4), oracle.loss(oracle.solve(row, near=tau), 4)
            assert distance(loss, exact) <= 1e-12 * max(1, exact)


@pytest.mark.parametrize("name", WITH_MARGIN)
def test_scores_just_inside_the_margin(name: str) -> None:
    """One coordinate takes nearly everything."""
    reg, oracle = member(name), member_oracle(name)
    m = float(reg.margin)
    for short in (1e-3, 1e-6, 1e-9, 1e-12, 1e-15):
        for others in (1, 3, 50):
            theta = np.zeros(others + 1)
            theta[0] = m * (1 - short)
            truth = oracle.solve(theta, near=reg.threshold(theta))
            check_prediction(reg.predict(theta), oracle, truth)
            loss, exact = reg.loss(theta, 0), oracle.loss(truth, 0)
            assert loss >= 0
            assert distance(loss, exact) <= 1e-12


@pytest.mark.parametrize("base", (0.0, -37.3, 1e-4, 1e4))
@pytest.mark.parametrize("name", WITH_MARGIN)
def test_margin_is_exact(name: str, base: float) -> None:
    reg = member(name)
    m = float(reg.margin)
    for d in (2, 3, 10, 1000):
        rng = np.random.default_rng(d)
        for spread in (0.0, 1e-3, 1.0, 1e4):
            theta = base - spread * rng.exponential(size=d)
            k = int(rng.integers(d))
            theta[k] = -np.inf
            theta[k] = theta.max() + m * (1 + 1e-9)
            loss, grad = reg.value_and_grad(theta, k)
            np.testing.assert_array_equal(reg.predict(theta), np.arange(d) == k)
            np.testing.assert_array_equal(grad, np.zeros(d))
            assert loss == 0.0
            if d <= 10:
                np.testing.assert_array_equal(reg.jacobian(theta), np.zeros((d, d)))


@pytest.mark.parametrize("alpha", (1.02, 1.1, 1.3, 2, 2.5, 4, 5, 6.5, 8, 12, 20))
def test_tsallis_margin_over_its_parameter(alpha: float) -> None:
    """For large alpha, h'' vanishes to a high order at 0, yet the prediction near a vertex is well-conditioned."""
    reg = fysym.catalog.tsallis.bind(alpha=alpha)
    oracle = of(reg)
    m = float(reg.margin)
    assert m == pytest.approx(1 / (alpha - 1), rel=1e-12)
    for d in (2, 7):
        theta = np.zeros(d)
        theta[1] = m * (1 + 1e-9)
        np.testing.assert_array_equal(reg.predict(theta), np.arange(d) == 1)
        assert reg.loss(theta, 1) == 0.0
        for part in (0.99, 0.9, 0.5):
            truth = oracle.solve(part * theta, near=reg.threshold(part * theta))
            check_prediction(reg.predict(part * theta), oracle, truth)
            check_loss(reg, oracle, part * theta, truth, 1)
            assert reg.loss(part * theta, 1) > 0.0


@pytest.mark.parametrize("d", (2, 3, 10, 1000))
@pytest.mark.parametrize("name", [name for name in WITH_MARGIN if name != "tsallis_1+1e-9"])
def test_loss_is_positive_below_the_margin(name: str, d: int) -> None:
    """tsallis_1+1e-9 is left out: its loss there is about 10^-(2*10^9), which no double holds."""
    reg = member(name)
    for base in (0.0, -37.3):
        theta = np.full(d, base)
        theta[0] += 0.99 * float(reg.margin)
        assert reg.loss(theta, 0) > 0.0
        theta[0] = base + 0.999 * float(reg.margin)
        assert reg.loss(theta, 0) > 0.0


@pytest.mark.parametrize("name", [*MEMBERS, *OTHERS])
def test_derivatives(name: str) -> None:
    reg, oracle = other(name) if name in OTHERS else (member(name), member_oracle(name))
    for d, scale in ((1, 1.0), (2, 0.1), (3, 1.0), (4, 1e-4), (4, 30.0), (10, 1.0)):
        rng = np.random.default_rng([d, 7])
        theta = scale * rng.normal(size=d)
        truth = oracle.solve(theta, near=reg.threshold(theta))
        jacobian = reg.jacobian(theta)
        assert jacobian.shape == (d, d)
        np.testing.assert_allclose(jacobian, jacobian.T, rtol=1e-14, atol=0)
        size = max(1.0, np.abs(jacobian).max())
        assert max(abs(math.fsum(row)) for row in jacobian) <= 1e-14 * size
        directions = np.eye(d) if d <= 4 else rng.normal(size=(2, d))
        for v in directions:
            exact = np.array([float(x) for x in oracle.derivative(truth, v)])
            tolerance = 1e-6 * np.maximum(1.0, np.abs(exact))
            for got in (reg.jvp(theta, v), reg.vjp(theta, v), jacobian @ v):
                assert (np.abs(got - exact) <= tolerance).all(), (theta, v, got, exact)


@pytest.mark.parametrize("name", ["gini", "tsallis_1.5", "gini_sine", "shannon", "fermi_dirac"])
def test_derivatives_with_ties_and_zeros(name: str) -> None:
    reg, oracle = member(name), member_oracle(name)
    theta = np.array([0.5, 0.5, 0.25, -3.0, -3.0, -9.0])
    truth = oracle.solve(theta)
    for v in np.eye(6):
        exact = np.array([float(x) for x in oracle.derivative(truth, v)])
        np.testing.assert_allclose(reg.jvp(theta, v), exact, rtol=1e-6, atol=1e-12)
    zero = np.array([p == 0 for p in truth.p])
    assert (reg.jacobian(theta)[zero] == 0).all()


@pytest.mark.parametrize("name", MEMBERS)
def test_entropy_bregman_and_score(name: str) -> None:
    reg, oracle = member(name), member_oracle(name)
    rng = np.random.default_rng(5)
    for d in (2, 3, 10):
        p = rng.multinomial(1016, np.full(d, 1 / d)) / 1024
        p[0] += 8 / 1024
        y = rng.multinomial(1024, rng.dirichlet(np.ones(d))) / 1024
        assert (p > 0).all()
        with mpmath.workdps(60):
            entropy = -mpmath.fsum(oracle.value(x) for x in p)
            omega_y = mpmath.fsum(oracle.value(x) for x in y)
            inner = mpmath.fsum(oracle.slope(a) * (mpmath.mpf(b) - mpmath.mpf(a)) for a, b in zip(p, y, strict=True))
            bregman = omega_y + entropy - inner
        assert distance(reg.entropy(p), entropy) <= 1e-14 * max(1, entropy)
        assert distance(reg.bregman(y, p), bregman) <= 1e-13 * max(1, bregman)
        assert distance(reg.score(p, y), bregman - omega_y) <= 1e-13 * max(1, abs(bregman - omega_y))
        np.testing.assert_array_equal(reg.entropy(np.eye(d)), np.zeros(d))


def test_unbounded_at_zero() -> None:
    """h = log t: the prediction is dense, and the loss is infinite for a label that puts 0 anywhere."""
    reg = fysym.compile("log(t)")
    oracle = of(reg)
    for d in (2, 5):
        theta = np.random.default_rng(d).normal(size=d)
        truth = oracle.solve(theta)
        check_prediction(reg.predict(theta), oracle, truth)
        assert reg.loss(theta, 0) == np.inf
        y = np.full(d, 1 / 8)
        y[0] = 1 - (d - 1) / 8
        check_loss(reg, oracle, theta, truth, y)
        v = np.arange(d) - 1.0
        exact = [float(x) for x in oracle.derivative(truth, v)]
        np.testing.assert_allclose(reg.jvp(theta, v), exact, rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("name", MEMBERS)
def test_far_scores(name: str) -> None:
    """Differences so large that only the top coordinate can matter, and so small that none does."""
    reg = member(name)
    for big in (1e8, 1e15, 1e100, 1e300):
        theta = np.array([0.0, big, -big])
        p = reg.predict(theta)
        assert p[1] > 0.99 and abs(math.fsum(p) - 1) <= 1e-14
        losses = [reg.loss(theta, k) for k in range(3)]
        assert 0 <= losses[1] <= 1e-2 * math.sqrt(big)
        assert losses[0] == pytest.approx(big, rel=1e-3)
        assert losses[2] == pytest.approx(2 * big, rel=1e-3)
    tiny = np.array([0.0, 1e-300, -1e-300])
    np.testing.assert_allclose(reg.predict(tiny), 1 / 3, rtol=1e-14)


# --- the runtime as a module of its own, on entropies written by hand ---------------------------------
# What is emitted is this text (tests/test_emit.py); here it runs where it stands, against answers known otherwise.


def by_hand(**parts: Any) -> SimpleNamespace:
    same = {"covalue": None, "value_low": 0.0, "value_high": 0.0, "anchor": 0.0, "exponential": None, "newton": True}
    return SimpleNamespace(**{**same, **parts})


GINI = by_hand(
    value=lambda t: t * (t - 1) / 2, slope=lambda t: t - 0.5, curvature=np.ones_like,
    weight=lambda t, s: np.ones_like(t), inverse=lambda r: r, coinverse=lambda r: 1 - r,
    slope_low=-0.5, slope_high=0.5, curvature_high=1.0, anchor=-0.5,
    rise_high=1.0, rise_middle=0.5,
)  # fmt: skip
SHANNON = by_hand(
    value=lambda t: t * np.log(t), slope=lambda t: np.log(t) + 1, curvature=lambda t: 1 / t, weight=lambda t, s: t,
    inverse=lambda r: np.exp(r - 1), coinverse=lambda r: -np.expm1(r - 1), slope_low=-np.inf, slope_high=1.0,
    curvature_high=1.0, rise_high=1.0, rise_middle=1 - np.log(2), exponential=(1.0, float(np.exp(-1.0))),
)  # fmt: skip
SHANNON_BY_NEWTON = SimpleNamespace(**{**vars(SHANNON), "exponential": None})
FERMI = by_hand(
    value=lambda t: t * np.log(t) + (1 - t) * np.log1p(-t), covalue=lambda e: e * np.log(e) + (1 - e) * np.log1p(-e),
    slope=lambda t: np.log(t) - np.log1p(-t), curvature=lambda t: 1 / (t * (1 - t)), weight=lambda t, s: t * (1 - t),
    inverse=lambda r: 1 / (1 + np.exp(-r)), coinverse=lambda r: 1 / (1 + np.exp(r)), slope_low=-np.inf,
    slope_high=np.inf, curvature_high=np.inf, rise_high=np.inf, rise_middle=0.0, newton=False,
)  # fmt: skip
# g' = (2t - 1)^9, so that q is a ninth root: infinitely steep in the middle.
STEEP = by_hand(
    value=lambda t: ((2 * t - 1) ** 10 - 1) / 20, slope=lambda t: (2 * t - 1) ** 9, slope_low=-1.0, slope_high=1.0,
    curvature=lambda t: 18 * (2 * t - 1) ** 8, weight=lambda t, s: 1 / (18 * (2 * t - 1) ** 8),
    inverse=lambda r: (1 + np.sign(r - 1) * np.abs(r - 1) ** (1 / 9)) / 2,
    coinverse=lambda r: (1 - np.sign(r - 1) * np.abs(r - 1) ** (1 / 9)) / 2,
    curvature_high=18.0, anchor=-1.0, rise_high=2.0, rise_middle=1.0, newton=False,
)  # fmt: skip
HANDMADE = {"gini": GINI, "shannon": SHANNON, "newton": SHANNON_BY_NEWTON, "fermi": FERMI, "steep": STEEP}


def sparsemax(theta: np.ndarray) -> np.ndarray:
    """The projection onto the simplex, by sorting."""
    ordered = np.sort(theta)[::-1]
    taus = (np.cumsum(ordered) - 1) / np.arange(1, len(theta) + 1)
    return np.maximum(theta - taus[np.flatnonzero(ordered > taus)[-1]], 0)


def softmax(theta: np.ndarray) -> np.ndarray:
    e = np.exp(theta - theta.max())
    return e / e.sum()


@pytest.mark.parametrize(("f", "truth"), [(GINI, sparsemax), (SHANNON, softmax), (SHANNON_BY_NEWTON, softmax)])
def test_the_runtime_finds_known_predictions(f: Any, truth: Any) -> None:
    rng = np.random.default_rng(5)
    for d, scale in ((1, 1.0), (2, 0.1), (3, 1.0), (10, 5.0), (500, 1.0)):
        theta = scale * rng.normal(size=(4, d))
        np.testing.assert_allclose(numpy_losses.Kernel(f).predict(theta), [truth(row) for row in theta], atol=1e-14)


@pytest.mark.parametrize("shape", [(1, 300_000), (3, 40_000), (900, 30), (20_000, 10)])
@pytest.mark.parametrize("scale", [3.0, 1e-4])
@pytest.mark.parametrize(("f", "truth"), [(GINI, sparsemax), (SHANNON, softmax), (SHANNON_BY_NEWTON, softmax)])
def test_the_runtime_finds_known_predictions_a_piece_at_a_time(
    f: Any, truth: Any, scale: float, shape: tuple[int, int]
) -> None:
    theta = scale * np.random.default_rng(6).normal(size=shape)
    theta[-1, ::2] = -np.inf
    if len(theta) > 2:
        theta[1] = np.nan
        theta[2, [3, 5]] = np.inf
    p = numpy_losses.Kernel(f).predict(theta)
    for i in {0, len(theta) // 2, len(theta) - 1} - {1, 2}:
        np.testing.assert_allclose(p[i], truth(theta[i]), rtol=1e-11, atol=1e-14)
    if len(theta) > 2:
        assert np.isnan(p[1]).all() and np.count_nonzero(p[2]) == 2
        np.testing.assert_array_equal(p[2, [3, 5]], 0.5)


@pytest.mark.parametrize("name", HANDMADE)
def test_the_runtime_solves_its_equations(name: str) -> None:
    """p = q(theta - tau) sums to 1; the loss is the conjugate's gap, its gradient p - y; J v is the change of p."""
    f, kernel = HANDMADE[name], numpy_losses.Kernel(HANDMADE[name])
    rng = np.random.default_rng(7)
    theta = 0.4 * rng.normal(size=(5, 4))
    y = rng.dirichlet(np.ones(4), size=5)
    p, tau = kernel.predict(theta), kernel.threshold(theta)
    np.testing.assert_allclose(p.sum(axis=1), 1, atol=1e-15)
    np.testing.assert_allclose(runtime.predict_one(f, theta - tau[:, None] - f.anchor), p, atol=1e-10)
    loss, grad = kernel.value_and_grad(theta, y)
    np.testing.assert_array_equal(grad, p - y)
    np.testing.assert_array_equal(grad, kernel.grad(theta, y))
    gap = kernel.conjugate(theta) - kernel.entropy(y) - (theta * y).sum(axis=1)
    np.testing.assert_allclose(loss, gap, atol=1e-12)
    np.testing.assert_array_equal(loss, kernel.loss(theta, y))
    np.testing.assert_allclose(kernel.score(p, y), kernel.bregman(y, p) + kernel.entropy(y), atol=1e-12)
    v = rng.normal(size=(5, 4))
    jacobian = kernel.jacobian(theta)
    np.testing.assert_allclose(jacobian.sum(axis=-1), 0, atol=1e-9 * np.abs(jacobian).max())
    np.testing.assert_allclose(kernel.jvp(theta, v), np.einsum("nij,nj->ni", jacobian, v), rtol=1e-6, atol=1e-9)
    np.testing.assert_array_equal(kernel.jvp(theta, v), kernel.vjp(theta, v))
    if name != "steep":
        change = (kernel.predict(theta + 1e-6 * v) - kernel.predict(theta - 1e-6 * v)) / 2e-6
        np.testing.assert_allclose(kernel.jvp(theta, v), change, atol=1e-6)


def row(*scores: float) -> runtime.Rows:
    """One row, whose first score is its largest."""
    return runtime.Rows(np.array(scores), np.array([len(scores)]), np.array([0]))


def test_where_the_sum_jumps_between_doubles_the_prediction_still_sums_to_one() -> None:
    """Five equal scores beside one a hair above: p stays between what the two neighbouring thresholds give."""
    for theta in ([1e3, 1e3, 0.0], [1e6, 1e6 + 1e-9, 1e6], [3e7, 3e7, 3e7, -1e9], [0.5, 0.5 - 1e-17, 0.2]):
        p = numpy_losses.Kernel(STEEP).predict(theta)
        assert abs(p.sum() - 1) <= 1e-15 and (p >= 0).all()
        assert p[0] == pytest.approx(p[1], abs=1e-6)
    mix = runtime.between(STEEP, row(0.0, 0.0), np.array([-1.0 - 1e-9]), np.array([-1.0 + 1e-9]))
    np.testing.assert_allclose(mix, [0.5, 0.5], atol=1e-15)


@pytest.mark.parametrize("name", HANDMADE)
def test_the_runtime_on_infinities_and_nan(name: str) -> None:
    kernel = numpy_losses.Kernel(HANDMADE[name])
    inf, nan = np.inf, np.nan
    theta = [[inf, 0, inf], [inf, 1, 2], [-inf, 0, 0], [-inf, -inf, 3], [-inf, -inf, -inf], [nan, 0, 1]]
    want = [[0.5, 0, 0.5], [1, 0, 0], [0, 0.5, 0.5], [0, 0, 1], [nan] * 3, [nan] * 3]
    np.testing.assert_allclose(kernel.predict(theta), want, atol=1e-15)
    loss = kernel.loss(theta, [0, 1, 0, 2, 0, 0])
    assert loss[1] == inf and loss[2] == inf and loss[3] == 0 and np.isnan(loss[4:]).all()
    assert np.isnan(kernel.conjugate(theta)[4:]).all() and np.isnan(kernel.jacobian(theta)[5]).all()
    far = kernel.value_and_grad([1.5e308, -1.5e308], 1)
    assert far[0] == inf and far[1].tolist() == [1.0, -1.0]
    assert kernel.loss([0.8e308, -0.8e308], 1) == pytest.approx(1.6e308)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda k: k.predict(1.0), "at least one dimension"),
        (lambda k: k.predict(["a", "b"]), "real numbers"),
        (lambda k: k.predict([1j, 2]), "real numbers, not of complex128"),
        (lambda k: k.predict(np.array([None, 1.0])), "None or text"),
        (lambda k: k.predict([[1.0], [1.0, 2.0]]), "array of real numbers"),
        (lambda k: k.predict([1.0], axis=1.0), "axis must be an integer"),
        (lambda k: k.predict([1.0], axis=True), "axis must be an integer"),
        (lambda k: k.predict([1.0], axis=1), "axis 1 does not exist"),
        (lambda k: k.predict(np.zeros((2, 0))), "no classes"),
        (lambda k: k.loss([1.0, 2.0], 2), "label 2 in the vector is not a class"),
        (lambda k: k.loss([[1.0, 2.0]], [-1]), "label -1 in row 0"),
        (lambda k: k.loss([[[1.0, 2.0]]], [[5]]), r"label 5 in row \(0, 0\)"),
        (lambda k: k.loss([[1.0, 2.0]], [0.0]), "labels must be integers"),
        (lambda k: k.loss([[1.0, 2.0]], [0, 1, 0]), "y has shape"),
        (lambda k: k.loss([1.0, 2.0], [[1], [1, 2]]), "labels or rows of proportions"),
        (lambda k: k.loss([1.0, 2.0], [-0.5, 1.5]), "must not be negative: the vector contains -0.5"),
        (lambda k: k.loss([1.0, 2.0], [0.5, 0.6]), "must sum to 1: the vector sums to 1.1"),
        (lambda k: k.loss([1.0, 2.0], np.ma.array([0.5, 0.5], mask=[True, False])), "y has masked entries"),
        (lambda k: k.entropy(np.ma.array([0.5, 0.5], mask=[True, False])), "p has masked entries"),
        (lambda k: k.jvp([1.0, 2.0], [1.0]), "v has shape"),
    ],
)
def test_the_runtime_says_what_is_wrong_with_its_input(call: Any, words: str) -> None:
    with pytest.raises(fysym.InputError, match=words):
        call(numpy_losses.Kernel(GINI))


def test_the_runtime_keeps_shape_axis_and_precision() -> None:
    kernel = numpy_losses.Kernel(GINI)
    theta = np.arange(12.0).reshape(2, 3, 2) / 10
    moved = kernel.predict(theta, axis=1)
    np.testing.assert_array_equal(moved, np.moveaxis(kernel.predict(np.moveaxis(theta, 1, -1)), -1, 1))
    assert kernel.predict(theta.astype(np.float32)).dtype == np.float32
    assert kernel.predict([1, 0]).tolist() == [1.0, 0.0]
    assert kernel.predict([Fraction(1, 2), Fraction(1, 4)]).tolist() == [0.625, 0.375]
    assert kernel.predict(np.ma.array([0.0, 9.0], mask=[False, True])).tolist() == [1.0, 0.0]
    assert kernel.loss(np.zeros((0, 2)), []).shape == (0,)


def inverse_by_hand(**parts: Any) -> Any:
    return numpy_inverse.make_inverse(SimpleNamespace(**parts))


def test_the_numeric_inverse_keeps_both_ends() -> None:
    """g' = log(t/(1-t)), whose inverse is the logistic function."""
    with np.errstate(all="ignore"):
        inverse, coinverse = inverse_by_hand(
            rise=lambda t: np.log(t) - np.log1p(-t), corise=lambda e: np.log1p(-e) - np.log(e), rise_middle=0.0,
            curvature=lambda t: 1 / (t * (1 - t)), cocurvature=lambda e: 1 / (e * (1 - e)), kinks=(),
        )  # fmt: skip
        s = np.array([-600.0, -80.0, -1.0, -1e-9, 0.0, 0.3, 5.0, 80.0, 600.0])
        np.testing.assert_allclose(inverse(s), 1 / (1 + np.exp(-s)), rtol=1e-13)
        np.testing.assert_allclose(coinverse(s), 1 / (1 + np.exp(s)), rtol=1e-13)


def test_the_numeric_inverse_stays_at_a_kink() -> None:
    """h = t (1-t) + min(t, 1-t): the rise over g'(0) is 2t before 1/2 and 2t + 2 after it."""
    with np.errstate(all="ignore"):
        inverse, coinverse = inverse_by_hand(
            rise=lambda t: np.where(t < 0.5, 2 * t, 2 * t + 2),
            corise=lambda e: np.where(e > 0.5, 2 - 2 * e, 4 - 2 * e),
            curvature=lambda t: 2 + 0 * t, cocurvature=lambda e: 2 + 0 * e, rise_middle=1.0, kinks=((0.5, 1.0, 3.0),),
        )  # fmt: skip
        s = np.array([1e-9, 0.5, 1.0, 1.5, 2.9, 3.0, 3.5, 4 - 1e-9])
        want = np.array([5e-10, 0.25, 0.5, 0.5, 0.5, 0.5, 0.75, 1 - 5e-10])
        np.testing.assert_allclose(inverse(s), want, atol=1e-15)
        np.testing.assert_allclose(coinverse(s), 1 - want, atol=1e-15)


def test_a_search_that_does_not_end_still_gives_probabilities() -> None:
    """q jumps from 0 to 1 at a rise of 0, and 200 halvings of a bracket 1e300 wide do not come near it."""
    f = SimpleNamespace(
        slope=lambda t: 0.0 * t, slope_low=-np.inf, rise_high=1e300, rise_middle=1.0, anchor=0.0,
        curvature_high=np.inf, newton=True, exponential=None,
        inverse=lambda r: np.where(r > 0.0, 1.0, 0.0), coinverse=lambda r: np.where(r > 0.0, 0.0, 1.0),
        weight=lambda t, s: 0.0 * t,
    )  # fmt: skip
    with np.errstate(all="ignore"):
        _, p = runtime.search(f, runtime.Rows(np.zeros(12), np.full(3, 4), np.array([0, 4, 8])))
    np.testing.assert_array_equal(p, np.full(12, 0.25))


def test_between_two_thresholds_the_mix_sums_to_one() -> None:
    """q sums to 1.2 at one threshold and to 0.7 at the next: 3/5 of the way from (.5, .2) to (.9, .3)."""
    q = {0.0: 0.9, -1.0: 0.3, -0.5: 0.5, -1.5: 0.2}
    f = SimpleNamespace(
        slope_low=-9.0, rise_high=9.0, rise_middle=0.0, anchor=0.0, curvature_high=1.0, weight=lambda t, s: 0.0 * t,
        inverse=np.vectorize(lambda r: q[r]), coinverse=np.vectorize(lambda r: 1.0 - q[r]),
    )  # fmt: skip
    p = runtime.between(f, row(0.0, -1.0), np.array([0.0]), np.array([0.5]))
    np.testing.assert_allclose(p, [0.74, 0.26], rtol=0, atol=1e-14)


@pytest.mark.parametrize(
    ("h", "slope"),
    [
        ("LambertW(-t/E)", lambda t, w: -w(-t / mpmath.e) / (t * (1 + w(-t / mpmath.e)))),
        ("LambertW(-t**2/E)", lambda t, w: -2 * w(-t * t / mpmath.e) / (t * (1 + w(-t * t / mpmath.e)))),
        ("-sqrt(t**2 + 1/10**6)", lambda t, w: t / mpmath.sqrt(t * t + mpmath.mpf(1) / 10**6)),
    ],
)
def test_slopes_that_are_hard_next_to_one(h: str, slope: Any) -> None:
    """A branch point at 1, and slopes that hardly change there: the optimality conditions hold to rounding."""
    reg = fysym.compile(h)
    for theta in ([1.0, -2.0, 0.0], [0.3, 0.1], [0.0, 0.0, 0.0, 0.2], [1e-3, 0.0, 5e-4], [5.0, 4.9, 1.0]):
        p = reg.predict(theta)
        assert abs(p.sum() - 1) <= 1e-14 and p.argmax() == int(np.argmax(theta))
        with mpmath.workdps(40):
            pairs = [(mpmath.mpf(x), mpmath.mpf(float(y))) for x, y in zip(theta, p, strict=True) if 0 < y < 1]
            levels = [x - slope(y, lambda z: mpmath.lambertw(z).real) for x, y in pairs]
        assert len(levels) < 2 or max(levels) - min(levels) <= 4e-15


@pytest.mark.parametrize("scale", [1e-6, 1e-9, 1e-10])
def test_scores_just_above_the_margin(scale: float) -> None:
    """Of three such scores each step of Newton's drops one: with p = x - u on the support, (x + 1)/2 is left."""
    x = -1.0 + scale * np.array([1.0, 0.45, 0.1])
    p = fysym.catalog["gini"].predict([0.0, *x], target="numpy")
    np.testing.assert_allclose(p[1], (x[0] + 1.0) / 2.0, rtol=0, atol=1e-15)
    assert p[2] == p[3] == 0.0


@pytest.mark.parametrize(
    ("h", "domain", "theta", "p", "allowed"),
    [
        ("-(t - 1/2)**4", "cube", [0.0], [0.5], 1e-5),
        ("-Abs(t - 1)**3", "reals", [0.0], [1.0], 1e-7),
        (
            "-Abs(t - 1/2)**3",
            "simplex",
            [3.072e-17, -2.7075e-16, -0.7499999811],
            [0.5 + 3.2e-9, 0.5 - 9.5e-9, 6.3e-9],
            3e-8,
        ),
    ],
)
def test_predictions_where_the_entropy_is_flat(h, domain, theta, p, allowed):
    """What a unit in the last place of a score does is allowed: there q is infinitely steep."""
    np.testing.assert_allclose(fysym.compile(h, domain=domain).predict(theta, target="numpy"), p, atol=allowed)


@pytest.mark.parametrize(
    ("h", "theta"),
    [
        ("-log(cosh(800*t))/800", [0.1, 0.0, -0.3]),
        ("-log(1 + exp(800*t))/800", [0.1, 0.0, -0.3]),
        ("t*(1-t) - exp(-1/t)/10", [0.1, 0.0, -0.3]),
        ("-t*log(t) - exp(-1/t**2)/10", [0.1, 0.0, -0.3]),
        ("t*(1-t) - exp(-1/sqrt(t))/10", [1.0, 0.0, -0.3]),
    ],
)
def test_exponentials_that_overflow_or_vanish(h, theta):
    """The optimality conditions, at 60 digits: g'(p_j) - theta_j is the same for all classes."""
    t = sympy.Symbol("t", positive=True)
    reg = fysym.compile(h)
    p = reg.predict(theta)
    slope = sympy.lambdify(t, -sympy.diff(parse_expression(h).subs(sympy.Symbol("t"), t), t), "mpmath")
    curvature = sympy.lambdify(t, -sympy.diff(parse_expression(h).subs(sympy.Symbol("t"), t), t, 2), "mpmath")
    with mpmath.workdps(900):
        taus = [mpmath.mpf(x) - slope(mpmath.mpf(float(q))) for x, q in zip(theta, p, strict=True) if q > 0]
        rates = [1 / curvature(mpmath.mpf(float(q))) for q in p if q > 0]
        tau = sum(w * x for w, x in zip(rates, taus, strict=True)) / sum(rates)
        assert all(abs(x - tau) * w < 1e-13 for x, w in zip(taus, rates, strict=True))
    assert np.isfinite(reg.entropy(p)) and np.isfinite(reg.loss(theta, 1))


def test_near_singular_logarithms_keep_their_digits():
    family = fysym.compile("log(1 + c*t)/c", params={"c": "c > 0"})
    for c in (1e-6, 1e-8):
        with mpmath.workdps(60):
            exact = (2 * mpmath.log(1 + mpmath.mpf(str(c)) / 2) - mpmath.log(1 + mpmath.mpf(str(c)))) / mpmath.mpf(
                str(c)
            )
        assert abs(family.bind(c=c).entropy([0.5, 0.5]) / float(exact) - 1) < 1e-12


# -h' by hand: slopes that end at 0, span a hundred orders of magnitude, or turn in a tiny stretch.
SLOPES_BY_HAND = {
    "log(t) - t": lambda t: 1 - 1 / t,
    "-1/t - t": lambda t: 1 - 1 / t**2,
    "-(1-t)**2/t": lambda t: 1 - 1 / t**2,
    "-exp(180*t)": lambda t: 180 * mpmath.exp(180 * t),
    "-exp(90*t) - t": lambda t: 90 * mpmath.exp(90 * t),
    "-sqrt((t - 1/3)**2 + 1/10**16)": lambda t: (
        (t - mpmath.mpf(1) / 3) / mpmath.sqrt((t - mpmath.mpf(1) / 3) ** 2 + mpmath.mpf(10) ** -16)
    ),
    "-sqrt((t - 2/5)**2 + 1/10**7) - t**2/10": lambda t: (
        (t - mpmath.mpf(2) / 5) / mpmath.sqrt((t - mpmath.mpf(2) / 5) ** 2 + mpmath.mpf(10) ** -7) + t / 5
    ),
}


@pytest.mark.parametrize("target", [None, "numpy"])
@pytest.mark.parametrize("h", SLOPES_BY_HAND)
def test_slopes_of_any_size_and_shape(h: str, target: str | None) -> None:
    """p is right to 1e-11 where some tau lies between theta_j + h'(p_j) at both ends of that range, for all j."""
    reg, slope = fysym.compile(h), SLOPES_BY_HAND[h]
    for theta in ([1.0, 0.5, -1.0, 0.25], [10.0, 0.0, 0.0], [0.125, 0.0]):
        p = reg.predict(theta, target=target)
        assert abs(math.fsum(p) - 1) < 4e-16 * len(p)
        with mpmath.workdps(120):
            low, high = [], []
            for score, x in zip(theta, map(mpmath.mpf, p), strict=True):
                reach = x * mpmath.mpf(10) ** -11 + mpmath.mpf(10) ** -15
                low.append(score - slope(min(x + reach, 1 - mpmath.mpf(10) ** -60)))
                if x > reach:
                    high.append(score - slope(x - reach))
            assert max(low) <= min(high), (theta, p)
