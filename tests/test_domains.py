"""The cube and budgets: against closed forms, direct optimisation and the simplex, with the same edge contract."""

from __future__ import annotations

import math
import warnings
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import scipy.optimize
import scipy.special
import sympy
from hypothesis import given, settings
from hypothesis import strategies as st

import fysym
from fysym.runtime.shared_library import SharedLibrary, compiler

ENTROPIES = {
    "gini": "t*(1 - t)/2",
    "shannon": "-t*log(t)",
    "fermi_dirac": "-t*log(t) - (1 - t)*log(1 - t)",
    "tsallis": "(t - t**(3/2))*4/3",
    "gini_sine": "t*(1 - t) + sin(pi*t)/pi",
    "skewed": "log(1 + t) - 3*t/4",
}
DOMAINS = {
    "cube": "cube",
    "budget 2": fysym.budget(2),
    "budget 1.5": fysym.budget(1.5),
    "budget 1/2": fysym.budget(0.5),
}
_compiled: dict[Any, Any] = {}


def compiled(entropy: str, domain: str) -> Any:
    key = entropy, domain
    if key not in _compiled:
        _compiled[key] = fysym.compile(ENTROPIES[entropy], domain=DOMAINS[domain])
    return _compiled[key]


def total(domain: str) -> float | None:
    where = DOMAINS[domain]
    return None if isinstance(where, str) else where.total


each = pytest.mark.parametrize("entropy", ENTROPIES)
everywhere = pytest.mark.parametrize("domain", DOMAINS)


def scores(count: int = 5, d: int = 6) -> np.ndarray:
    return np.random.default_rng(5).normal(size=(count, d))


@each
@everywhere
def test_predictions_solve_the_optimality_conditions(entropy: str, domain: str) -> None:
    reg = compiled(entropy, domain)
    theta = scores()
    p, tau = reg.predict(theta), np.asarray(reg.threshold(theta))[:, None]
    assert ((p >= 0) & (p <= 1)).all()
    if total(domain) is None:
        assert (tau == 0).all()
    else:
        np.testing.assert_allclose(p.sum(axis=1), total(domain), rtol=1e-14)
    t = reg.variable
    slope = sympy.lambdify(t, reg.dh, "numpy")
    inner = (p > 1e-12) & (p < 1 - 1e-9)
    rest = theta - tau + slope(np.clip(p, 1e-300, 1 - 1e-16))
    assert np.abs(rest[inner]).max(initial=0) <= 1e-12
    at_zero, at_one = (float(x) for x in reg.slopes)
    assert (theta - tau)[p == 0].max(initial=-math.inf) <= -at_zero + 1e-12
    assert (theta - tau)[p == 1].min(initial=math.inf) >= -at_one - 1e-12


@pytest.mark.parametrize("entropy", ["gini", "fermi_dirac", "skewed"])
@everywhere
def test_predictions_agree_with_direct_optimisation(entropy: str, domain: str) -> None:
    reg = compiled(entropy, domain)
    h = sympy.lambdify(reg.variable, sympy.sympify(ENTROPIES[entropy]).subs(sympy.Symbol("t"), reg.variable), "numpy")
    for theta in scores(2, 4):
        size = total(domain)
        rules = [] if size is None else [{"type": "eq", "fun": lambda p, size=size: p.sum() - size}]
        found = scipy.optimize.minimize(
            lambda p, theta=theta: -(theta @ p) - h(p).sum(),
            np.full(4, 0.5 if size is None else size / 4),
            bounds=[(1e-12, 1 - 1e-12)] * 4,
            constraints=rules,
            method="SLSQP",
            options={"ftol": 1e-16, "maxiter": 1000},
        )
        np.testing.assert_allclose(reg.predict(theta), found.x, atol=1e-7)
        assert reg.conjugate(theta) - reg.entropy(reg.predict(theta)) == pytest.approx(theta @ reg.predict(theta))


def test_the_cube_of_fermi_dirac_is_one_sigmoid_for_each_class() -> None:
    reg = compiled("fermi_dirac", "cube")
    theta = np.array([[-800.0, -3.0, 0.0, 2.0, 50.0, math.inf, -math.inf]])
    np.testing.assert_allclose(reg.predict(theta), scipy.special.expit(theta), rtol=1e-15)
    y = np.array([0.0, 1.0, 1.0, 0.0, 1.0])
    expected = (np.logaddexp(0, theta[0, :5]) - theta[0, :5] * y).sum()
    assert reg.loss(theta[0, :5], y) == pytest.approx(expected, rel=1e-14)
    assert reg.loss([1.0, -2.0, 3.0], 1) == pytest.approx(np.logaddexp(0, [1.0, 2.0, 3.0]).sum(), rel=1e-14)


def test_an_affine_term_matters_on_the_cube_only() -> None:
    theta = scores()
    plain, tilted = ("t*(1 - t)/2", "t*(1 - t)/2 + 3*t/4 - 2")
    for where in ("simplex", fysym.budget(2)):
        one, two = (fysym.compile(h, domain=where) for h in (plain, tilted))
        np.testing.assert_allclose(one.predict(theta), two.predict(theta), rtol=0, atol=1e-15)
        assert one.margin == two.margin == 1
    one, two = (fysym.compile(h, domain="cube") for h in (plain, tilted))
    np.testing.assert_allclose(two.predict(theta), one.predict(theta + 0.75), rtol=0, atol=1e-15)
    assert two.slopes == (sympy.Rational(5, 4), sympy.Rational(1, 4)) and two.margin is None
    assert "not applicable on the cube" in two.report()


def test_the_example_of_the_budget() -> None:
    reg = fysym.compile("t*(1 - t)/2", domain=fysym.budget(2))
    assert reg.predict([0, 0.25, 0.5, 0.75, 1]).tolist() == [0, 0.125, 0.375, 0.625, 0.875]
    assert fysym.compile("t*(1 - t)/2", domain=fysym.budget(1)).derivation.entropy.domain == fysym.domains.SIMPLEX
    for entropy in ("gini", "shannon", "gini_sine"):
        assert compiled(entropy, "budget 2").predict([0.3, -0.1]).tolist() == [1, 1]
    all_of_them = fysym.compile("-t*log(t)", domain=fysym.budget(6))
    np.testing.assert_array_equal(all_of_them.predict(scores()), 1)


@each
@everywhere
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_losses_are_non_negative_and_have_the_gradient(entropy: str, domain: str, data: st.DataObject) -> None:
    reg = compiled(entropy, domain)
    d = data.draw(st.integers(3, 7))
    theta = np.array(data.draw(st.lists(st.floats(-4, 4), min_size=d, max_size=d)))
    size = total(domain)
    shares = np.array(data.draw(st.lists(st.floats(0.01, 1), min_size=d, max_size=d)))
    y = shares if size is None else np.full(d, size / d)
    loss, grad = reg.value_and_grad(theta, y)
    assert loss >= 0
    np.testing.assert_array_equal(grad, reg.predict(theta) - y)
    direction = np.linspace(-1, 1, d)
    ahead, behind = (reg.loss(theta + step * direction, y) for step in (1e-6, -1e-6))
    assert (ahead - behind) / 2e-6 == pytest.approx(grad @ direction, abs=1e-5)
    np.testing.assert_allclose(reg.loss(theta, reg.predict(theta)), 0, atol=1e-12)


@each
@everywhere
def test_derivatives_agree_with_differences(entropy: str, domain: str) -> None:
    reg = compiled(entropy, domain)
    theta, v = scores(1)[0], np.linspace(-1, 1, 6)
    numeric = (reg.predict(theta + 1e-6 * v) - reg.predict(theta - 1e-6 * v)) / 2e-6
    np.testing.assert_allclose(reg.jvp(theta, v), numeric, atol=1e-6)
    np.testing.assert_allclose(reg.jacobian(theta) @ v, reg.jvp(theta, v), atol=1e-12)


@pytest.mark.parametrize("entropy", ["gini", "fermi_dirac", "tsallis", "gini_sine"])
@pytest.mark.parametrize("domain", ["cube", "budget 2", "budget 1/2"])
def test_code_is_as_accurate_as_on_the_simplex(entropy: str, domain: str) -> None:
    for m in compiled(entropy, domain).accuracy():
        assert m.ulps <= 16, str(m)
        if m.function == "predict":
            assert m.relative <= (1e-11 if m.dtype == "float64" else 2e-6), str(m)


@everywhere
def test_edges_of_the_input(domain: str) -> None:
    reg = compiled("gini", domain)
    theta = scores()
    theta[1, 2] = np.nan
    theta[2, 1:3] = -np.inf
    theta[3, 4] = np.inf
    p = reg.predict(theta)
    assert (p[2, 1:3] == 0).all() and p[3, 4] == min(1, total(domain) or 1)
    np.testing.assert_array_equal(p[[0, 4]], reg.predict(scores()[[0, 4]]))
    if total(domain) is None:
        assert np.isnan(p[1]).tolist() == [False, False, True, False, False, False]
    else:
        assert np.isnan(p[1]).all()
        np.testing.assert_allclose(np.delete(p, 1, 0).sum(axis=1), total(domain), rtol=1e-14)
    assert reg.predict(scores().astype(np.float32)).dtype == np.float32
    np.testing.assert_array_equal(reg.predict(scores().T, axis=0), reg.predict(scores()).T)
    assert reg.predict(np.zeros((0, 4))).shape == (0, 4)
    for bad in (np.full(6, 2.0), np.full(6, -0.1), np.full(6, np.nan)):
        with pytest.raises(fysym.InputError, match="between 0 and 1"):
            reg.loss(scores()[0], bad)


def test_errors_of_domains_teach() -> None:
    with pytest.raises(fysym.ParameterError, match=r'there is no domain .circle.; the domains are "simplex"'):
        fysym.compile("t*(1 - t)", domain="circle")
    for k in (
        0,
        -1,
        math.nan,
        math.inf,
        "2",
        True,
        10**400,
        Fraction(1, 10**400),
        Fraction(-1, 2),
        sympy.oo,
        sympy.S.Zero,
    ):
        with pytest.raises(fysym.ParameterError, match="a budget must be a positive number"):
            fysym.budget(k)  # type: ignore[arg-type]
    reg = compiled("gini", "budget 2")
    with pytest.raises(fysym.InputError, match="a total of 2 needs as many classes; theta has 1"):
        reg.predict([1.0])
    with pytest.raises(fysym.InputError, match="that sum to 2, not labels"):
        reg.loss([1.0, 2.0, 3.0], 1)
    with pytest.raises(fysym.InputError, match="must sum to 2: the vector sums to 1"):
        reg.loss([1.0, 2.0, 3.0], [1.0, 0.0, 0.0])


def test_budgets_are_told_apart_by_their_names() -> None:
    named = {2.0: "2", Fraction(3, 2): "1.5", sympy.Rational(3, 2): "1.5", sympy.Integer(3): "3"}
    for k, name in {**named, 1.0000001: "1.0000001", np.float32(0.5): "0.5", 1e300: "1e+300"}.items():
        assert fysym.budget(k).name == f"budget({name})"
        assert fysym.budget(k).words.endswith(f"sums to {name}")
        assert fysym.budget(k).total == float(k)
    assert fysym.budget(Fraction(3, 2)) == fysym.budget(1.5)
    assert fysym.budget(sympy.S.One) == fysym.budget(np.int64(1)) == fysym.budget(1.0)


@pytest.mark.parametrize("k", [1e-300, 1e-100, 1e-30])
def test_tiny_totals(k: float) -> None:
    """One class takes all of it where h'(0) is finite; Shannon's shares are softmax's, and sqrt(t)'s are equal."""
    theta = np.array([0.3, 0.1, -0.5])
    softmax = np.exp(theta) / np.exp(theta).sum()
    for h, shares in {
        "t*(1 - t)/2": [1.0, 0.0, 0.0],
        "t - t**(3/2)": [1.0, 0.0, 0.0],
        "sin(pi*t)": [1.0, 0.0, 0.0],
        "-t*log(t)": softmax,
        "-t*log(t) - (1 - t)*log(1 - t)": softmax,
        "sqrt(t)": np.full(3, 1 / 3),
    }.items():
        reg = fysym.compile(h, domain=fysym.budget(k))
        ways = [reg.predict]
        if compiler() is not None:
            ways.append(SharedLibrary(reg.source("c"), reg._module).predict)
        for predict in ways:
            np.testing.assert_allclose(predict(theta) / k, shares, rtol=1e-12)
            np.testing.assert_allclose(predict(np.zeros(4)) / k, 0.25, rtol=1e-12)
        assert reg.loss(theta, reg.predict(theta)) <= 1e-12 * k
        with pytest.raises(fysym.InputError, match=f"must sum to {k}: the vector sums to 0"):
            reg.loss(theta, np.zeros(3))


def test_a_total_that_no_row_has_room_for() -> None:
    for k in (1e6, 1e300):
        reg = fysym.compile("t*(1 - t)/2", domain=fysym.budget(k))
        with pytest.raises(fysym.InputError, match=r"a total of 1e\+300|1000000 needs as many classes; theta has 2"):
            reg.predict([0.3, 0.1])
        with pytest.raises(fysym.UnsupportedError, match="accuracy is measured for totals up to 1000"):
            reg.accuracy()


def test_accuracy_where_scores_are_too_large_for_float32() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        measured = fysym.compile("-exp(100*t)").accuracy()
    assert {m.dtype for m in measured} == {"float64", "float32"}  # the latter at ordinary scores
    assert all(m.ulps <= 16 for m in measured if m.function == "predict"), str(measured)
    assert measured.worst.ulps < 8


def test_a_total_does_not_cost_small_predictions_their_digits() -> None:
    """Two classes take 1 - e/2 and one takes e, where e^2 = 2 exp(-100) but for a factor 1 + e."""
    p = compiled("fermi_dirac", "budget 2").predict([100.0, 100.0, 0.0])
    np.testing.assert_allclose(p, [1.0, 1.0, math.sqrt(2) * math.exp(-50)], rtol=1e-14)


@each
def test_infinite_and_enormous_scores_are_limits(entropy: str) -> None:
    """With a total of 2: equal scores share it however large they are, and what is enormously below has nothing."""
    reg, large = compiled(entropy, "budget 2"), 1.7e308
    y = [1.0, 0.5, 0.5, 0.0]
    assert reg.loss([math.inf] * 3 + [0.0], y) == pytest.approx(reg.loss([0.0] * 3 + [-1e9], y), rel=1e-14)
    assert reg.loss([math.inf] * 3 + [0.0], [1.0, 0.5, 0.25, 0.25]) == math.inf
    assert reg.loss([math.inf, 0.0, 0.0, -1e9], y) == pytest.approx(reg.loss([1e9, 0.0, 0.0, -1e9], y), rel=1e-14)
    np.testing.assert_allclose(reg.predict([large, -large, -large]), [1.0, 0.5, 0.5], rtol=1e-14)
    np.testing.assert_allclose(reg.predict([large, 0.0, -large, -large]), [1.0, 1.0, 0.0, 0.0], rtol=1e-14)


def test_mass_on_a_mask_is_lost_where_h_is_not_finite() -> None:
    reg = fysym.compile("log(t)", domain=fysym.budget(2))
    assert reg.loss([0.0, 1.0, 2.0, -math.inf], [0.5, 0.5, 0.5, 0.5]) == math.inf


@everywhere
def test_emitted_modules_check_themselves(domain: str, capsys: pytest.CaptureFixture[str]) -> None:
    space: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(compiled("gini_sine", domain).source(), "emitted", "exec"), space)
    assert "self-check passed" in capsys.readouterr().out


def test_families_keep_their_domain() -> None:
    family = fysym.compile("(t - t**a)/(a*(a - 1))", params={"a": "a > 1"}, domain=fysym.budget(2))
    theta = scores()
    np.testing.assert_allclose(family.predict(theta, a=2), compiled("gini", "budget 2").predict(theta), atol=1e-15)


@pytest.mark.parametrize(("h", "k"), [("t*(1-t)/2", 1.5), ("t - t**3", 2.25), ("t - t**3", 0.25), ("log(1+t)", 3.75)])
def test_the_margin_of_a_broken_budget_is_that_of_its_vertices(h: str, k: float) -> None:
    """A vertex has floor(k) ones and one fraction: a lead of the margin between these groups is enough, and no less."""
    reg = fysym.compile(h, domain=fysym.budget(k))
    whole, margin = math.floor(k), float(reg.margin)
    vertex = np.array([1.0] * whole + [k - whole, 0.0, 0.0])
    levels = np.array([2.0] * whole + [1.0, 0.0, 0.0])
    np.testing.assert_allclose(reg.predict(margin * (1 + 1e-9) * levels), vertex, rtol=0, atol=1e-12)
    assert np.abs(reg.predict(margin * 0.99 * levels) - vertex).max() > 1e-4


def test_not_applicable_is_not_undetermined() -> None:
    assert "margin not applicable, sparsity not applicable" in repr(fysym.compile("-t**2", domain="reals"))
    assert "margin not applicable, dense" in repr(fysym.compile("-t*log(t)", domain="orthant"))
    assert "margin undetermined" in repr(fysym.compile("(t - t**a)/(a*(a - 1))", params={"a": "0 < a < 3"}))


def test_a_domain_that_would_refuse_is_not_suggested() -> None:
    with pytest.raises(fysym.NotConcaveError, match='domain="cube"'):
        fysym.compile("4*(sqrt(t) - t)", domain="reals")
    with pytest.raises(fysym.NotConcaveError, match='domain="orthant"'):
        fysym.compile("t - t*log(t)", domain="reals")


FAR = [  # h' is 1/(2 sqrt(1 - t)), or so: q is 1 - 1/(4 s^2), whose squares are too large for a double
    ("sqrt(1-t)", "cube", [1e155, -1e155, 1e160, 1e300, 1.0], [1.0, 0.0, 1.0, 1.0, 0.75]),
    ("sqrt(t*(1-t))", "cube", [1e155, -1e155, 1e160, -1e300, 0.0], [1.0, 0.0, 1.0, 0.0, 0.5]),
    ("sqrt(1-t)", 1.5, [1e160, 0.0, 0.0], [1.0, 0.25, 0.25]),
    ("sqrt(1-t)", 2, [1e200, 0.0, 0.0, 0.0], [1.0, 1 / 3, 1 / 3, 1 / 3]),
    ("sqrt(t*(1-t))", 2, [1e200, -1e200, 1e250, 0.0], [1.0, 0.0, 1.0, 0.0]),
    ("sqrt(1-t)", 1.5, [1e160, 1e160, 0.0], [0.75, 0.75, 0.0]),
]


@pytest.mark.parametrize(("h", "domain", "theta", "expected"), FAR)
def test_scores_whose_squares_are_too_large_for_a_double(
    h: str, domain: Any, theta: list[float], expected: list[float]
) -> None:
    reg = fysym.compile(h, domain=domain if domain == "cube" else fysym.budget(domain))
    np.testing.assert_allclose(reg.predict(theta), expected, rtol=1e-15, atol=1e-100)
    labels = np.array(expected)
    assert reg.loss(theta, labels) <= 1e-15 * max(1.0, float(np.abs(theta).max()) * 1e-150)
