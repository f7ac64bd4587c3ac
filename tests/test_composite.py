"""Entropies G(sum s(p_j)): proofs, margins, and numbers against formulas, optimality conditions and SciPy."""

from __future__ import annotations

import contextlib
import copy
import math
import pickle
import threading
from typing import Any

import mpmath
import numpy as np
import pytest
import scipy.optimize
import sympy

import fysym
from fysym.composite.reference import Reference
from fysym.composite.theory import T, U

from .families import MEMBERS, entropy, family, gradient, member, optimality, truth

every = pytest.mark.parametrize("name", MEMBERS)
targets = pytest.mark.parametrize("target", ["numpy", None])
RNG = np.random.default_rng(4)
THETA = RNG.normal(size=(6, 5)) * np.array([0.1, 0.3, 1.0, 1.0, 2.0, 5.0])[:, None]


@every
def test_concavity_is_proved(name: str) -> None:
    assert member(name).fact("strictly_concave").status == "proved"
    rng = np.random.default_rng(1)
    for _ in range(200):  # and holds: no chord lies above
        a, b = rng.dirichlet(np.full(4, 30.0), size=2)
        assert entropy(name, (a + b) / 2) > (entropy(name, a) + entropy(name, b)) / 2


@every
@targets
def test_predictions_satisfy_the_optimality_conditions(name: str, target: str | None) -> None:
    rng = np.random.default_rng(2)
    for n, d, scale in ((200, 5, 1.0), (200, 5, 0.1), (100, 30, 0.5), (50, 300, 2.0), (5, 3000, 0.2), (100, 2, 1.0)):
        theta = rng.normal(0.0, scale, (n, d))
        p = member(name).predict(theta, target=target)
        assert (p >= 0).all() and np.abs(p.sum(axis=1) - 1).max() <= 1e-14
        assert optimality(name, theta, p).max() <= 1e-12


@every
@targets
def test_close_to_the_margin_and_to_ties(name: str, target: str | None) -> None:
    leads = np.concatenate([1 - 10.0 ** -np.arange(1, 17), 1 + 10.0 ** -np.arange(8, 17), [1.0, 0.0]])
    theta = np.stack([leads, np.zeros_like(leads), np.zeros_like(leads), leads - 1e-9], axis=1)[:, : 4 if target else 3]
    p = member(name).predict(theta, target=target)
    assert optimality(name, theta, p).max() <= 1e-12
    assert np.abs(p.sum(axis=1) - 1).max() <= 1e-14


@every
def test_predictions_agree_with_direct_optimisation(name: str) -> None:
    for theta in THETA[:3]:
        found = scipy.optimize.minimize(
            lambda p, theta=theta: -(theta @ p) - entropy(name, np.maximum(p, 1e-300)),
            np.full(5, 0.2),
            jac=lambda p, theta=theta: -theta - gradient(name, np.maximum(p, 1e-300)),
            bounds=[(1e-13, 1)] * 5,
            constraints=[{"type": "eq", "fun": lambda p: p.sum() - 1, "jac": np.ones_like}],
            method="SLSQP",
            options={"ftol": 1e-18, "maxiter": 1000},
        )
        p = member(name).predict(theta)
        value = theta @ p + entropy(name, p)
        assert value >= -found.fun - 1e-13  # ours is at least as good
        np.testing.assert_allclose(p, found.x, atol=1e-7)


@every
def test_losses_and_derivatives(name: str) -> None:
    reg = member(name)
    labels = np.array([0, 1, 2, 3, 4, 0])
    loss, grad = reg.value_and_grad(THETA, labels)
    p, y = reg.predict(THETA), np.eye(5)[labels]
    exact = (THETA * (p - y)).sum(axis=1) + entropy(name, p) - entropy(name, y)
    np.testing.assert_allclose(loss, exact, rtol=0, atol=1e-12)
    assert (loss >= 0).all()
    np.testing.assert_allclose(grad, p - y, rtol=0, atol=1e-15)
    np.testing.assert_array_equal(reg.loss(THETA, labels), loss)
    np.testing.assert_array_equal(reg.grad(THETA, labels), grad)
    np.testing.assert_allclose(reg.entropy(p), entropy(name, p), rtol=0, atol=1e-13)
    np.testing.assert_allclose(reg.conjugate(THETA), (THETA * p).sum(axis=1) + entropy(name, p), rtol=0, atol=1e-12)
    share = np.full(5, 0.2)
    assert reg.loss(np.zeros(5), share) == pytest.approx(0, abs=1e-14)


@every
def test_derivatives_of_predictions(name: str) -> None:
    """Central differences, where no class is about to enter or leave the support."""
    reg = member(name)
    v = RNG.normal(size=THETA.shape)
    h = 1e-6
    above, below = reg.predict(THETA + h * v), reg.predict(THETA - h * v)
    calm = ((above > 0) == (below > 0)).all(axis=1) & (np.where(above > 0, above, 1).min(axis=1) > 1e-3)
    assert calm.any()
    numeric = (above - below) / (2 * h)
    got = reg.jvp(THETA, v)
    np.testing.assert_allclose(got[calm], numeric[calm], rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(reg.vjp(THETA, v), got)
    jacobian = reg.jacobian(THETA)
    np.testing.assert_allclose(np.einsum("nij,nj->ni", jacobian, v), got, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(jacobian, np.swapaxes(jacobian, 1, 2), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(jacobian.sum(axis=2), 0, atol=1e-9 * np.abs(jacobian).max())


@every
def test_bregman_and_score_by_their_definitions(name: str) -> None:
    reg = member(name)
    y, p = RNG.dirichlet(np.ones(4), size=(2, 20))
    tangent = (gradient(name, p) * (y - p)).sum(axis=1)
    np.testing.assert_allclose(reg.bregman(y, p), entropy(name, p) - entropy(name, y) + tangent, rtol=0, atol=1e-12)
    np.testing.assert_allclose(reg.score(p, y), entropy(name, p) + tangent, rtol=0, atol=1e-12)
    theta = RNG.normal(size=(20, 4))  # Prop. 3
    divergence, loss = reg.bregman(y, reg.predict(theta)), reg.loss(theta, y)
    assert (divergence >= 0).all() and (divergence <= loss + 1e-12).all()


@every
def test_scaling_and_costs(name: str) -> None:
    reg = member(name)
    labels = np.array([0, 1, 2, 3, 4, 0])
    twice = reg.scale(2)
    np.testing.assert_allclose(twice.loss(THETA, labels), 2 * reg.loss(THETA / 2, labels), rtol=1e-12, atol=1e-14)
    costs = 1 - np.eye(5)[labels]
    wanted = reg.conjugate(THETA + costs) - THETA[np.arange(6), labels]
    np.testing.assert_allclose(reg.loss(THETA, labels, cost="zero-one"), wanted, rtol=1e-12)
    np.testing.assert_array_equal(reg.grad(THETA, labels, cost="zero-one"), reg.grad(THETA + costs, labels))
    if reg.margin.is_finite:
        assert twice.margin == 2 * reg.margin and reg.with_margin(3).margin == 3
    else:
        with pytest.raises(fysym.ParameterError, match="is infinite"):
            reg.with_margin(3)


def test_families_can_be_scaled_and_solved() -> None:
    assert family("norm").scale(3).bind(q=2).margin == 3
    pseudo = fysym.compile_composite("log(u)/(1 - b)", "t**b", params={"b": "b > 1"}, assume_concave=True)
    assert pseudo.solve(margin=2) == {"b": 2} and pseudo.solve(margin=1.25) == {"b": 5}
    with pytest.raises(fysym.ParameterError, match="no member has margin = 2"):
        family("norm").solve(margin=2)
    with pytest.raises(fysym.ParameterError, match="only a margin"):
        family("norm").solve(sparsity=2)


@pytest.mark.parametrize("name", [name for name in MEMBERS if "norm" in name])
def test_margins_are_those_of_the_paper(name: str) -> None:
    reg = member(name)
    assert reg.margin == 1 and reg.fact("margin").status == "proved"
    for target in ("numpy", None):
        for d in (2, 3, 50):
            theta = np.eye(d)[0]
            np.testing.assert_allclose(reg.predict(theta, target=target), theta, rtol=0, atol=1e-20)
            assert reg.loss(theta, 0, target=target) <= 1e-16
            np.testing.assert_array_equal(reg.predict(theta * (1 + 1e-9), target=target), theta)
            assert reg.loss(theta * (1 + 1e-9), 0, target=target) == 0 < reg.loss(0.99 * theta, 0, target=target)


def test_renyi_has_no_margin() -> None:
    assert member("renyi_0.5").margin == sympy.oo
    with pytest.raises(fysym.ParameterError, match="the margin of this entropy is infinite"):
        member("renyi_0.5").with_margin(1)


@pytest.mark.parametrize(
    "outer, inner", [("1 - sqrt(u)", "t**2"), ("sqrt(1 - u)", "t**2"), ("log(1 + u)", "t*(1 - t)")]
)
def test_scales_as_far_as_doubles_go(outer: str, inner: str) -> None:
    """Predictions of c H at c theta are those of H, and losses c times as large; with tiny c at theta, the margin is
    nothing, and the loss is how far the label is behind."""
    reg = fysym.compile_composite(outer, inner)
    theta = np.array([[1.0, 0.5, -1.0], [0.1, 0.3, 0.2], [0.0, 0.0, 0.0]])
    for k in (-290, -120, 120, 270):
        scaled, c = reg.scale(sympy.Integer(10) ** k), 10.0**k
        for target in ("numpy", None):
            np.testing.assert_allclose(scaled.predict(c * theta, target=target), reg.predict(theta), atol=1e-14)
            loss = scaled.loss(c * theta, [1, 1, 1], target=target)
            np.testing.assert_allclose(loss / c, reg.loss(theta, [1, 1, 1]), rtol=1e-12)
            if k == -290:
                np.testing.assert_array_equal(scaled.predict(theta[0], target=target), [1, 0, 0])
                assert scaled.loss(theta[0], 1, target=target) == 0.5 and scaled.loss(theta[0], 0, target=target) == 0
    for k, which in ((-400, "small"), (-310, "small"), (300, "large"), (400, "large")):
        with pytest.raises(fysym.UnsupportedError, match=f"too {which} for a double") as caught:
            reg.scale(sympy.Integer(10) ** k).predict(theta)
        assert len(str(caught.value)) < 300


# What is not concave


def test_renyi_beyond_one_is_refused_with_a_witness_or_assumed() -> None:
    with pytest.raises(fysym.NotConcaveError, match="assume_concave=True") as caught:
        fysym.compile_composite("log(u)/(1 - 2)", "t**2")
    p = np.array(caught.value.witness)
    # the Hessian of -log(sum p^2) at the witness, in the direction of p within the tangent space
    z = p - p.mean()
    assert p.sum() == pytest.approx(1, abs=1e-5) and -2 * z @ z / (p @ p) + 4 * (p @ z) ** 2 / (p @ p) ** 2 > 0
    reg = fysym.compile_composite("log(u)/(1 - 2)", "t**2", assume_concave=True)
    assert reg.fact("strictly_concave").status == reg.fact("margin").status == "refuted"
    assert reg.margin == 2  # beta / (beta - 1), by the gradient at a vertex; but log(d) > 2 (1 - 1/d) from d = 5 on
    assert "1000000 times" in reg.fact("margin").evidence and "6.90777 times" in reg.fact("margin").evidence
    assert math.log(1000020) / (2 * (1 - 1 / 1000020)) == pytest.approx(6.90777, rel=1e-5)
    assert "assumed by the caller" in reg.report() and "a loss need not be convex" in " ".join(reg.report().split())
    np.testing.assert_allclose(reg.predict(np.zeros(4)), 0.25)


@pytest.mark.parametrize("width", [6, 9])
def test_a_narrow_range_of_the_sum_in_which_it_is_convex_is_found(width: int) -> None:
    with pytest.raises(fysym.NotConcaveError) as caught:
        fysym.compile_composite(f"-u + exp(-10**{width}*(u - 7/10)**2)/10**{width}", "t**2")
    large, *small = caught.value.witness  # a second difference that is positive, along (p - mean)
    count = len(small)
    with mpmath.workdps(60):
        p = [mpmath.mpf(large), *[(1 - mpmath.mpf(large)) / count] * count]
        step = mpmath.mpf(10) ** -20

        def value(h: Any) -> Any:
            u = mpmath.fsum((x + h * (x - mpmath.mpf(1) / (count + 1))) ** 2 for x in p)
            return -u + mpmath.exp(-(mpmath.mpf(10) ** width) * (u - mpmath.mpf("0.7")) ** 2) / 10**width

        assert value(step) + value(-step) - 2 * value(0) > 0


def test_what_is_only_sampled_says_so() -> None:
    reg = fysym.compile_composite("sqrt(1 + u) + u/10", "sin(pi*t) + t")
    assert reg.fact("strictly_concave").status == "proved"
    reg = fysym.compile_composite("1 - u**(3/5)", "t**2 + t**3")
    fact = reg.fact("strictly_concave")
    assert fact.status == "sampled" and "[sampled]" in reg.report() and reg.margin is not None
    theta = RNG.normal(size=(20, 4)) / 2
    p = reg.predict(theta)
    u = (p**2 + p**3).sum(axis=1, keepdims=True)
    slopes = theta - 0.6 * u**-0.4 * (2 * p + 3 * p**2)
    level = slopes[np.arange(20), p.argmax(axis=1)][:, None]
    assert np.abs(np.where(p > 0, slopes - level, 0)).max() <= 1e-12
    assert (np.where(p > 0, 0, slopes - level) <= 1e-12).all()


@pytest.mark.parametrize(
    "name", ["norm_1.1", "norm_1.5", "norm_3", "norm_6", "squared_norm_1.5", "squared_norm_2", "renyi_0.1", "renyi_0.5"]
)
def test_measured_accuracy(name: str) -> None:
    """Probabilities above 1e-12 to 1e-11 of their size, everything to some units that the scores explain."""
    measured = member(name).accuracy()
    assert measured.rows >= 30 and {m.target for m in measured} == {"numpy", "numba"}
    for m in measured:
        assert m.ulps <= 16, str(m)
        assert m.relative is None or m.relative <= (1e-11 if m.dtype == "float64" else 1e-6), str(m)


@pytest.mark.parametrize(("outer", "inner"), [("u", "t*(1 - t)"), ("sqrt(u)", "sin(pi*t)")])
def test_accuracy_is_measured_where_all_scores_are_zero_or_the_truth_of_a_row_is_not_found(outer, inner):
    """s'(1/2) = 0, so that the scores of (1/2, 1/2) are 0."""
    for m in fysym.compile_composite(outer, inner).accuracy():
        assert m.ulps <= 64, str(m)


def test_the_truth_of_a_composite_is_optimal() -> None:
    """The quadratic 1 - |p|: p is proportional to theta - tau on the support."""
    truth = Reference(*(sympy.sympify(x, locals={"u": U, "t": T}) for x in ("1 - u**(1/2)", "t**2")), 60)
    p, _ = truth.solve([0.9, 0.7, -3.0], [mpmath.mpf(1) / 2, mpmath.mpf(1) / 2, mpmath.mpf(0)])
    assert p[2] == 0 and abs(sum(p) - 1) < mpmath.mpf(10) ** -30
    with mpmath.workdps(60):
        left = [x - t / mpmath.sqrt(p[0] ** 2 + p[1] ** 2) for x, t in zip((mpmath.mpf(0.9), mpmath.mpf(0.7)), p)]
        assert abs(left[0] - left[1]) < mpmath.mpf(10) ** -30 and left[0] > -3
    assert truth.scores([mpmath.mpf(1), mpmath.mpf(0)]) == [1, 0]


def test_what_is_not_concave_is_refused() -> None:
    with pytest.raises(fysym.NotConcaveError, match="must fall with u"):
        fysym.compile_composite("u**(1/2)", "t**2")
    with pytest.raises(fysym.NotConcaveError, match="neither strictly concave nor strictly convex"):
        fysym.compile_composite("1 - u", "t**3/2 - t**2/4 + t/2")


def test_powers_beyond_double_precision_give_no_numbers_rather_than_wrong_ones() -> None:
    reg = family("norm").bind(q=400)
    assert reg.margin == 1
    with pytest.raises(fysym.UndecidedError, match="no w was found"):
        reg.predict(THETA)


@pytest.mark.parametrize("name", ["norm", "squared_norm"])
@pytest.mark.parametrize("q", [1.00001, 1.0001, 1.0005, 1.0008])
@targets
def test_powers_next_to_one_have_numbers(name: str, q: float, target: str | None) -> None:
    """Most probabilities underflow, as powers 1/(q - 1) of scores."""
    theta = np.random.default_rng(0).normal(size=(12, 6)) * np.repeat([1e-5, 0.05, 1.0], 4)[:, None]
    p = family(name).bind(q=q).predict(theta, target=target)
    for scores, found in zip(theta, p, strict=True):
        for a, b in zip(found, truth(f"{name}_{q!r}", scores), strict=True):
            assert abs(a - b) <= 1e-9 * b + 1e-300 if b > 1e-12 else abs(a - b) <= 1e-12


@pytest.mark.parametrize(
    ("outer", "inner", "params", "message"),
    [
        ("1 - v", "t**2", {}, "the unknown symbol v"),
        ("1 - u", "x**2", {}, "the unknown symbol x"),
        ("1 - u", "2", {}, "no t"),
        ("1 - u", "t**2", {"q": "q > 1"}, "'q', which occurs neither"),
        ("1 - u", "1 + t**2", {}, "must be 0 at 0"),
        ("1 - u", "log(t)", {}, "must be 0 at 0"),
        ("1 - u", 3, {}, "texts or SymPy expressions"),
        ("1 - u", None, {}, "texts or SymPy expressions"),
        ("1 - u(", "t**2", {}, "\\^"),
        ("1 - u", "t**2", 7, "params must map"),
        ("1 - u", "t**2", {"q": "nonsense"}, "q"),
    ],
)
def test_errors_teach(outer: Any, inner: Any, params: Any, message: str) -> None:
    with pytest.raises(fysym.FysymError, match=message):
        fysym.compile_composite(outer, inner, params=params)


@pytest.mark.parametrize("text", ["u**u**u - 1", "gamma(u)", "1/(u - u)", "zoo*u", "1 - Abs(u - 1/2)", "floor(u)"])
def test_nothing_but_our_errors_leaves_the_compiler(text: str) -> None:
    with contextlib.suppress(fysym.FysymError):
        fysym.compile_composite(text, "t**2", deadline=3)


@pytest.mark.parametrize("bad", [{"deadline": True}, {"deadline": -1}, {"deadline": "a"}, {"name": 3}])
def test_options_are_checked(bad: dict[str, Any]) -> None:
    with pytest.raises(fysym.ParameterError):
        fysym.compile_composite("1 - u", "t**2", **bad)


def test_families_must_be_bound() -> None:
    norms = family("norm")
    with pytest.raises(fysym.ParameterError, match=r"bind\(q=...\) first; ranges: q > 1"):
        norms.predict(THETA)
    np.testing.assert_array_equal(norms.predict(THETA, q=2), norms.bind(q=2).predict(THETA))
    np.testing.assert_array_equal(norms.loss(THETA, [0] * 6, q=2), norms.bind(q=2).loss(THETA, [0] * 6))
    with pytest.raises(fysym.ParameterError, match="outside its range"):
        norms.bind(q=math.nextafter(1.0, 0.0))
    with pytest.raises(fysym.ParameterError, match="no parameter called 'r'"):
        norms.bind(r=2)
    with pytest.raises(fysym.ParameterError, match="must be numbers"):
        norms.bind(q=[2])
    assert norms.bind(q=2) is norms.bind(q=2)
    assert {fact.name for fact in norms.facts} == {"margin", "sparsity"}
    assert "bind the parameters" in norms.report()


@pytest.mark.parametrize(
    ("outer", "inner", "margin", "member"),
    [
        ("log(1 + u)", "c*t*(1 - t)", "2*c", 6),
        ("log(1 + c*u)/c", "t*(1 - t)", "2", 2),
        ("1 - c*u", "t**2", "2*c", 6),
        ("sqrt(u)", "c*t*(1 - t)", None, sympy.oo),  # the slope of G at the vertices is infinite
        ("1 - u", "t**2 + sin(9*t)*c", None, None),  # no s that is concave or convex for every c
        ("log(1 - u)", "c*(t**2 - t)", None, None),  # u < 0
    ],
)
def test_margins_of_composite_families(outer, inner, margin, member):
    family = fysym.compile_composite(outer, inner, params={"c": "c > 0"})
    known = {fact.name: fact for fact in family.facts}
    assert ("margin" in known) == ("sparsity" in known) == (margin is not None)
    if margin is not None:
        assert sympy.simplify(known["margin"].value - sympy.sympify(margin, {"c": sympy.Symbol("c")})) == 0
        assert known["sparsity"].value == "full"
    if member is not None:
        assert family.bind(c=3).margin == member


# The object


def test_report_and_card() -> None:
    reg = fysym.compile_composite("1 - sqrt(u)", "t**2", name="<b>&\x07")
    assert "margin: 1  [proved]" in reg.report() and repr(reg).endswith("margin 1, full; concavity proved>")
    for form in ("markdown", "latex", "html"):
        assert "Cauchy-Schwarz" in reg.report(format=form)
    assert "<b>" not in reg.report("html") and "&lt;b&gt;&amp;" in reg.report("html")
    card = reg._repr_mimebundle_()
    assert set(card) == {"text/plain", "text/latex", "text/html"} and "<b>" not in card["text/html"]
    with pytest.raises(fysym.InputError, match="there is no format 'pdf'"):
        reg.report("pdf")
    with pytest.raises(fysym.UnsupportedError, match=r"\.separable\.source\(\)"):
        reg.source("c")


def test_targets() -> None:
    reg = member("norm_2")
    with pytest.raises(fysym.InputError, match="target must be"):
        reg.predict(THETA, target="torch")
    pytest.importorskip("numba")
    np.testing.assert_array_equal(reg.predict(THETA, target="numba"), reg.predict(THETA))
    for method in (reg.predict, lambda x, **k: reg.jvp(x, x, **k), lambda x, **k: reg.loss(x, [0] * 6, **k)):
        np.testing.assert_allclose(method(THETA, target="numba"), method(THETA, target="numpy"), rtol=0, atol=1e-13)
    other = fysym.compile_composite("log(1 + u)", "-t*log(t) + t")  # Shannon inside: no compiled kernel around it
    with pytest.raises(fysym.UnsupportedError, match="there is no Numba code"):
        other.predict(THETA, target="numba")
    np.testing.assert_array_equal(other.predict(THETA), other.predict(THETA, target="numpy"))


@pytest.mark.parametrize("clone", [copy.copy, copy.deepcopy, lambda reg: pickle.loads(pickle.dumps(reg))])
def test_copies_and_pickles(clone: Any) -> None:
    for reg in (member("norm_1.5"), family("norm").bind(q=1.5)):
        np.testing.assert_array_equal(clone(reg).predict(THETA), reg.predict(THETA))
        assert clone(reg).facts == reg.facts
    assert clone(family("renyi")).params == family("renyi").params


def test_threads_share_an_object() -> None:
    reg = fysym.compile_composite("1 - u**(1/q)", "t**q", params={"q": "q > 1"})
    expected = member("norm_1.5").predict(THETA)
    found: list[Any] = []
    threads = [threading.Thread(target=lambda: found.append(reg.predict(THETA, q=1.5))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8 and all(np.array_equal(p, expected) for p in found)


def test_a_member_that_is_not_concave_is_no_solution() -> None:
    renyi = fysym.compile_composite("log(u)/(1 - b)", "t**b", params={"b": "b > 1"})
    with pytest.raises(fysym.ParameterError, match="no member has it: that would be b = 2, but .* not concave"):
        renyi.solve(margin=2)
    assumed = fysym.compile_composite("log(u)/(1 - b)", "t**b", params={"b": "b > 1"}, assume_concave=True)
    assert assumed.solve(margin=2) == {"b": 2}


def test_kinks_of_the_outer_function_are_named() -> None:
    with pytest.raises(fysym.UndecidedError, match="has kinks.*smooth outer"):
        fysym.compile_composite("-u**2 - Max(0, u - 1/2)", "t**2")


def test_the_margin_of_a_family_is_a_formula() -> None:
    renyi = fysym.compile_composite("log(u)/(1 - b)", "t**b", params={"b": "b > 1"}, assume_concave=True)
    b = next(iter(renyi.margin.free_symbols))
    assert sympy.simplify(renyi.margin - b / (b - 1)) == 0 and renyi.sparsity == "full"
    assert fysym.catalog.norm.margin == fysym.catalog.squared_norm.margin == 1
    assert fysym.catalog.renyi.margin == sympy.oo and fysym.catalog.renyi.sparsity == "dense"
    assert "margin: 1" in fysym.catalog.norm.report()


def test_what_was_refuted_and_assumed_is_not_called_concave() -> None:
    fact = fysym.compile_composite("-log(u)", "t**2", assume_concave=True).fact("strictly_concave")
    assert (fact.value, fact.status) == (False, "refuted") and "assumed by the caller" in fact.evidence


def test_what_only_separable_entropies_have() -> None:
    norm = member("norm_2")
    assert norm.smoothness is norm.slopes is norm.twice_differentiable is None
    with pytest.raises(fysym.UnsupportedError, match="separable"):
        norm.certificate()


# The range of u, many classes, and slopes that are infinite at the vertices


@pytest.mark.parametrize(
    ("outer", "inner", "message"),
    [
        ("-u**2", "t**2 - t/2", "wrong sign"),  # u is negative at the uniform distribution
        ("-u**(3/2)", "t**2 - t/2", "not a real number"),
        ("-sqrt(u**2)", "t**2 - t/2", "wrong sign|not a real number"),
        ("sqrt(1 - u/4)", "t + t*(1 - t)", "wrong sign"),
        ("1 - u**(1/2)", "t**(3/2)", "positive direction"),  # with many classes only
        ("exp(-u)", "t**2 - t/2", "positive direction"),
        ("exp(u)", "t + t*(1 - t)", "positive direction"),
    ],
)
def test_what_fails_for_some_number_of_classes_is_refused(outer: str, inner: str, message: str) -> None:
    with pytest.raises(fysym.NotConcaveError, match=message):
        fysym.compile_composite(outer, inner)


def test_a_witness_of_many_classes_is_one() -> None:
    with pytest.raises(fysym.NotConcaveError, match="times") as caught:
        fysym.compile_composite("1 - u**(1/2)", "t**(3/2)")
    p = np.array(caught.value.witness)
    z = np.where(p == p.max(), 1.0, -1.0 / (len(p) - 1))
    u, along = (p**1.5).sum(), 1.5 * (p**0.5 * z).sum()
    bend = 0.75 * (p**-0.5 * z**2).sum()
    assert p.sum() == pytest.approx(1, abs=1e-5) and along**2 / (4 * u**1.5) - bend / (2 * u**0.5) > 0


def test_the_sup_formula_refutes() -> None:
    """Prop. 5: H <= margin (1 - max p) for a concave H, and 1 - sqrt(u) reaches 1 where the margin is 3/4."""
    from fysym.composite import sampling, theory
    from fysym.deadline import Deadline

    u = theory.ANY_U
    form, inside = theory.form(1 - sympy.sqrt(u), T ** sympy.Rational(3, 2), Deadline(10))
    assert inside.margin / 2 == sympy.Rational(3, 4)
    assert "Prop. 5" in sampling.worst(form, sympy.Rational(1, 5)).problem


@pytest.mark.parametrize(
    ("outer", "inner", "margin"),
    [
        ("-u", "t**2 - t/2", 2),
        ("-u", "t*log(t) + t", sympy.oo),
        ("u", "-t*log(t)", sympy.oo),
        ("u - u**2/4", "t + t*(1 - t)/2", sympy.Rational(1, 2)),
    ],
)
def test_u_may_be_negative_or_bounded(outer: str, inner: str, margin: sympy.Expr) -> None:
    reg = fysym.compile_composite(outer, inner)
    assert reg.fact("strictly_concave").status == "proved" and reg.margin == margin
    p = reg.predict(THETA)
    assert np.abs(p.sum(axis=1) - 1).max() <= 1e-14
    if outer == "-u":
        np.testing.assert_allclose(p, fysym.compile(f"-({inner})").predict(THETA), rtol=0, atol=1e-14)


STEEP = {
    ("sqrt(1 - u)", "t**2"): ("faces", lambda p: np.sqrt(2 * p * (1 - p))),
    ("(1 - u**2)**(1/2)", "t**2"): ("faces", lambda p: np.sqrt(1 - (1 - 2 * p * (1 - p)) ** 2)),
    ("(1 - u) - (1 - u)*log(1 - u)", "t**2"): ("faces", lambda p: (z := 2 * p * (1 - p)) - z * np.log(z)),
    ("sqrt(1 - u)", "t**3"): ("faces", lambda p: np.sqrt(3 * p * (1 - p))),
    ("sqrt(u - 1)", "sqrt(t)"): ("dense", lambda p: np.sqrt(np.sqrt(p) + np.sqrt(1 - p) - 1)),
    ("sqrt(log(u))", "sqrt(t)"): ("dense", lambda p: np.sqrt(np.log(np.sqrt(p) + np.sqrt(1 - p)))),
}


@pytest.mark.parametrize(("outer", "inner"), STEEP)
def test_slopes_that_are_infinite_at_the_vertices(outer: str, inner: str) -> None:
    sparsity, h = STEEP[outer, inner]
    reg = fysym.compile_composite(outer, inner)
    assert reg.margin == sympy.oo and reg.sparsity == sparsity
    assert all(fact.status == "proved" for fact in reg.facts) and "zoo" not in repr(reg) + reg.report()
    assert reg.entropy([0.3, 0.7]) == pytest.approx(h(0.3), rel=1e-14) and reg.entropy([0.0, 1.0]) == 0
    truth = Reference(reg.outer, reg.inner, 300)  # 1 - p may be 1e-217
    theta = np.concatenate([RNG.normal(size=(6, 4)) * [[0.1], [0.5], [2], [10], [30], [100]], [[0, 1000.0, 3, 3]]])
    p = reg.predict(theta)
    loss = reg.loss(theta, p.argmax(axis=1))
    for scores, found, least in zip(theta, p, loss, strict=True):
        exact, _ = truth.solve(scores.tolist(), [mpmath.mpf(x) for x in found])
        np.testing.assert_allclose(found, [float(x) for x in exact], rtol=1e-11, atol=1e-16)
        rest = float(sum(sorted(exact)[:-1]))
        assert np.sort(found)[:-1].sum() == pytest.approx(rest, rel=1e-11)  # however close to a vertex
        label = int(found.argmax())
        assert least == pytest.approx(float(truth.loss(scores.tolist(), exact, label)), rel=1e-11)
    np.testing.assert_array_equal(reg.predict([[2.0, -np.inf], [np.inf, 1.0]]), [[1, 0], [1, 0]])
    np.testing.assert_array_equal(reg.jvp([2.0], [1.0]), [0])
    v, step = RNG.normal(size=4), 1e-6
    numeric = (reg.predict(theta[1] + step * v) - reg.predict(theta[1] - step * v)) / (2 * step)
    np.testing.assert_allclose(reg.jvp(theta[1], v), numeric, rtol=1e-4, atol=1e-6)
    module: dict[str, Any] = {"__name__": "emitted"}
    exec(compile(reg.source(), "emitted", "exec"), module)
    module["self_check"]()
    np.testing.assert_allclose(module["predict"](theta), p, rtol=1e-12, atol=1e-16)


def test_however_far_a_score_is_ahead_no_vertex_is_reached() -> None:
    """sqrt(1 - |p|^2) = sqrt(4 e) for p = (1 - 2e, e, e), whose slope in 2e is the lead: e = 1/(4 lead^2)."""
    reg = fysym.compile_composite("sqrt(1 - u)", "t**2")
    for k in (6, 8, 9, 11, 12, 15, 60):
        lead = 10.0**k
        np.testing.assert_allclose(reg.predict([lead, 0.0, 0.0]), [1.0, *2 * [0.25 / lead**2]], rtol=1e-11)
        assert reg.loss([lead, 0.0, 0.0], 0) == pytest.approx(0.5 / lead, rel=1e-11)


@pytest.mark.parametrize(
    ("outer", "inner"),
    [
        ("(1 - u) - (1 - u)*log(1 - u)", "t**2"),
        ("sqrt(1 - u)", "t**2"),
        ("sqrt(u)", "t*(1 - t)"),
        ("u**(1/10)", "t*(1 - t)"),
        ("sqrt(1 - u)", "t**3"),
        ("u**(1/3)", "sin(pi*t)"),
    ],
)
def test_no_row_is_lost_between_ordinary_scores_and_a_vertex(outer: str, inner: str) -> None:
    reg = fysym.compile_composite(outer, inner)
    reference = Reference(reg.outer, reg.inner, 700)
    scales = 10.0 ** np.array([0, 1, 2, 3, 5, 10, 20, 40, 60, 110, 150])
    theta = np.random.default_rng(1).normal(size=(11, 12, 4)) * scales[:, None, None]
    theta[:, 0] = scales[:, None] * [7.0, 0.0, 0.0, -1.0]
    p = reg.predict(theta, target="numpy")
    assert (p >= 0).all() and np.abs(p.sum(axis=-1) - 1).max() <= 1e-14
    for scores, found in zip(theta[:, :2].reshape(-1, 4), p[:, :2].reshape(-1, 4), strict=True):
        rest = np.sort(found)[:-1].sum()
        if rest > 0.0:
            with mpmath.workdps(700):
                guess = [mpmath.mpf(x) for x in found]
                guess[found.argmax()] -= mpmath.fsum(guess) - 1
            exact, rates = reference.solve(scores.tolist(), guess)
            for a, b, rate in zip(found, exact, rates, strict=True):
                assert abs(a - b) <= 1e-10 * b + 4 * np.spacing(np.abs(scores).max()) * float(rate) + 1e-300
        else:  # even e = 1e-300 is too much: the slope of G there is less than the lead
            with mpmath.workdps(700):
                e = mpmath.mpf(10) ** -300
                lead = np.diff(np.sort(scores)[-2:])[0]
                assert -reference.g(1, [e, 1 - e]) * (reference.s(1, 1 - e) - reference.s(1, e)) < lead


def test_logarithms_next_to_a_vertex() -> None:
    reg = fysym.compile_composite("sqrt(log(u))", "sqrt(t)")
    scores = [1e12, 0.0, 0.0]
    p = reg.predict(scores)
    exact, _ = Reference(reg.outer, reg.inner, 120).solve(scores, [mpmath.mpf(x) for x in p])
    np.testing.assert_allclose(p, [float(x) for x in exact], rtol=1e-11)


def test_labels_must_have_a_finite_loss() -> None:
    with pytest.raises(fysym.UnsupportedError, match="-oo at the vertices"):
        fysym.compile_composite("log(1 - u)", "t**2")


def test_no_fact_is_better_known_than_what_it_rests_on() -> None:
    reg = fysym.compile_composite("-log(u)", "t**2", assume_concave=True)
    assert (reg.fact("margin").status, reg.fact("sparsity").status) == ("refuted", "sampled")
    steep = fysym.compile_composite("1 - u**(9/10)", "t**2", assume_concave=True)
    assert steep.fact("strictly_concave").status == "proved"


# Where w is hard to find


def distance(reg: Any, theta: np.ndarray, p: np.ndarray) -> Any:
    """How far each row is from the conditions of optimality, relative to its scores and slopes, by SymPy's derivatives.

    Where s' jumps, any slope between those of both sides will do.
    """
    outer, inner = sympy.lambdify(U, sympy.diff(reg.outer, U)), sympy.lambdify(T, sympy.diff(reg.inner, T))
    u = np.where(p > 0, sympy.lambdify(T, reg.inner)(np.maximum(p, 1e-300)), 0.0).sum(axis=1, keepdims=True)
    slopes = np.array([outer(u) * inner(np.clip(p * (1 + side), 1e-300, 1.0)) for side in (-1e-14, 0.0, 1e-14)])
    level = np.where(p > 0, theta + slopes.max(axis=0), np.inf).min(axis=1)
    size = np.abs(theta).max(axis=1) + np.abs(np.where(p > 0, slopes, 0.0)).max(axis=(0, 2)) + 1.0
    return ((theta + slopes.min(axis=0)).max(axis=1) - level) / size


HARD: dict[tuple[str, str], list[float]] = {
    ("log(u) + u**2/4", "sqrt(t)"): [1.0, 0.0, 0.0],  # G' has an extremum between a vertex and the uniform
    ("-sqrt(u) - u**2", "t**2"): [1.0, 0.0, 0.0],
    ("-sqrt(u) - u**3", "t**2"): [1.0, 0.0, 0.0],
    ("-sqrt(u) - u**6", "t**2"): [1.0, 0.0, 0.0],
    ("1 - exp(20*(u - 1))", "t**2"): [39.96, 0.0, 0.0],  # G' magnifies the last digit of u
    ("log(1001/1000 - u)", "t**2"): [1500.0, 0.0],
    ("-1/(101/100 - u)", "t**5"): [49999.9999, 0.0],
    ("1 - u**20", "t**2"): [0.1, 0.0, 0.0],
    ("log(11/10 - u)", "t**2"): [19.0, 0.0],
    ("-tan(3*u/2)", "t**2"): [500.0, 0.0],
    ("-u", "t**2 + Max(0, t - 1/2)"): [1.0, 0.0, 0.0],  # at the kink
}


@pytest.mark.parametrize(("outer", "inner"), HARD)
@targets
def test_every_row_ends_with_what_doubles_allow(outer: str, inner: str, target: str | None) -> None:
    reg = fysym.compile_composite(outer, inner)
    assert reg.fact("strictly_concave").status == "proved"
    row = np.array([HARD[outer, inner]])
    margin = float(reg.margin) if reg.margin.is_finite else 5.0
    rng = np.random.default_rng(5)
    leads = np.zeros((200, 3))
    leads[:, 0] = margin * np.linspace(0.0, 1.01, 200)
    rows = [rng.normal(size=(200, d)) * scale for d in (2, 5, 20) for scale in (1e-3, 0.3, margin / 30, margin / 3)]
    for theta in (row, leads, *rows):
        p = reg.predict(theta, target=target)
        assert np.abs(p.sum(axis=1) - 1).max() <= 1e-14
        assert distance(reg, theta, p).max() <= 1e-11


@pytest.mark.parametrize(("outer", "inner"), [key for key in HARD if "Max" not in key[1]])
def test_hard_rows_against_the_truth(outer: str, inner: str) -> None:
    reg = fysym.compile_composite(outer, inner)
    theta = HARD[outer, inner]
    p = reg.predict(theta, target="numpy")
    exact, _ = Reference(reg.outer, reg.inner, 60).solve(theta, [mpmath.mpf(x) for x in p])
    np.testing.assert_allclose(p, [float(x) for x in exact], rtol=0, atol=1e-14)


def test_high_powers_of_tiny_sums() -> None:
    reg = fysym.catalog.norm.bind(q=100)
    theta = np.random.default_rng(5).normal(size=(60, 6))
    theta[0] = [0.2818635109543874, 0.1807779263636032, -2.2932313583102384, 0.2768199534242827, 0.28943995350059304,
                -0.20970505497238165]  # fmt: skip
    assert distance(reg, theta, reg.predict(theta, target="numpy")).max() <= 1e-12


@pytest.mark.parametrize("d", [1000, 1600, 2000])
@targets
def test_equal_scores_share_equally_even_where_the_sum_underflows(d: int, target: str | None) -> None:
    reg = fysym.catalog.norm.bind(q=100)
    reg.predict([1.0, 0.0])
    theta = np.zeros((2, d))
    theta[1, d // 2 :] = -9.0
    p = reg.predict(theta, target=target)
    np.testing.assert_allclose(p, np.where(theta == 0, [[1 / d], [2 / d]], 0), rtol=1e-14)
    loss = reg.loss(theta, [0, 0], target=target)  # 1 - |p|, or nothing where u has no digits
    exact = 1 - np.array([d, d / 2]) ** -0.99
    assert (np.isnan(loss) | (np.abs(loss - exact) <= 1e-13)).all() and np.isfinite(loss[1])


# Members at which a formula of the family makes no sense


def test_removable_singularities_of_families() -> None:
    family = fysym.compile_composite(
        "(u**((1-r)/(1-q)) - 1)/(1-r)", "t**q", params={"q": "q > 0", "r": "r > 0"}
    )  # of Sharma and Mittal
    p = np.array([0.5, 0.3, 0.2])
    shannon = -(p * np.log(p)).sum()
    assert family.bind(q=0.5, r=1).entropy(p) == pytest.approx(2 * np.log(np.sqrt(p).sum()), rel=1e-14)  # Renyi
    assert family.bind(q=1, r=2).entropy(p) == pytest.approx(1 - np.exp(-shannon), rel=1e-14)
    assert family.bind(q=1, r=1).entropy(p) == pytest.approx(shannon, rel=1e-14)
    renyi = fysym.compile_composite("log(u)/(1 - b)", "t**b", params={"b": "0 < b <= 1"})
    np.testing.assert_allclose(renyi.bind(b=1).predict(THETA), fysym.catalog.shannon.predict(THETA), rtol=1e-12)
    with pytest.raises(fysym.UndecidedError, match="no finite limit that was found at b = 1"):
        fysym.compile_composite("u/(1 - b)**2", "t**b", params={"b": "0 < b <= 1"}).bind(b=1)


def test_margins_that_sympy_cannot_solve_for() -> None:
    family = fysym.compile_composite("-u*(q + exp(q) + 2 + sin(q))", "t**q", params={"q": "q > 1"})
    try:
        q = float(family.solve(margin=30)["q"])
    except fysym.UndecidedError as error:
        assert "no q was found" in str(error)
    else:
        assert q * (q + math.exp(q) + 2 + math.sin(q)) == pytest.approx(30, rel=1e-14)
    with pytest.raises(fysym.ParameterError, match="every member has margin = 1"):
        fysym.catalog.norm.solve(margin=1)


@pytest.mark.parametrize(
    ("outer", "inner"),
    [
        ("20*u-5*u**2+atan(1/(u-1/2))", "t*(1-t)"),
        ("20*u-5*u**2-atan(1/(u-1/2))", "t*(1-t)"),
        ("-20*u-5*u**2+atan(1/(u-1/2))", "t**2"),
    ],
)
def test_signs_of_derivatives_beside_a_jump_prove_nothing(outer: str, inner: str) -> None:
    """G jumps by pi at u = 1/2, and bends the right way on both sides."""
    with pytest.raises(fysym.FysymError, match="jump"):
        fysym.compile_composite(outer, inner)
