"""Measured accuracy: what accuracy() reports, that its truth is the tests' truth, and that bad code is not used."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace
from typing import Any

import mpmath
import numpy as np
import pytest
import sympy

import fysym
from fysym import accuracy
from fysym.reference import Reference
from fysym.runtime.shared_library import compiler

from .oracle import MEMBERS, member, member_oracle

# Beyond the catalog: flat at 0, infinite slope at 1, both, a kink, cancellation at both ends.
OTHERS = ["t - t**9", "t*sqrt(1-t)", "t**(1/3)*(1-t)**(1/2)", "min(t, 1-t) + t*(1-t)", "sqrt(1 - t**2)", "log(cos(t))"]
# The line through both ends is steep, so that all ordinary slopes are large and alike.
OTHERS += ["-1/(t + 1e-12)", "-(t + 1e-10)**(-2)", "-exp(40*t)"]
# All but a line over most of (0, 1), where q jumps between neighbouring doubles.
OTHERS += ["tanh(50*t)", "erf(6*t)", "erf(9*t)"]


def regularizer(name: str) -> Any:
    return member(name) if name in MEMBERS else fysym.compile(name)


@pytest.mark.parametrize("name", [*MEMBERS, *OTHERS])
def test_code_is_as_accurate_as_promised(name: str) -> None:
    reg = regularizer(name)
    measured = reg.accuracy()
    targets = {m.target for m in measured}
    assert ("c" in targets) == (compiler() is not None)
    assert ("numba" in targets) == (not isinstance(reg._fast, str) and reg._fast.fits("predict", "label"))
    assert {(m.dtype, m.function) for m in measured} == {
        (dtype, function) for dtype in ("float64", "float32") for function in ("predict", "loss")
    }
    for m in measured:
        assert m.ulps <= 16, str(m)
        if m.function == "predict" and (m.target, m.dtype) != ("numba", "float32"):  # whose sums are in float32 too
            assert m.relative <= (1e-11 if m.dtype == "float64" else 2e-6), str(m)


@pytest.mark.parametrize("scale", [0.01, 1.0, 1e4])
def test_a_slope_that_all_share_takes_no_digits(scale: float) -> None:
    """h = -1/(t + c): p_j is (tau - theta_j)**(-1/2) - c."""
    c = 1e-12
    theta = scale * np.array([1.0, 0.5, -1.0, 0.25])
    with mpmath.workdps(60):
        low, high = mpmath.mpf(theta.max()), mpmath.mpf(theta.max()) + 100
        for _ in range(180):
            tau = (low + high) / 2
            p = [(tau - mpmath.mpf(float(x))) ** -0.5 - mpmath.mpf(c) for x in theta]
            low, high = (tau, high) if sum(p) > 1 else (low, tau)
    found = fysym.compile(f"-1/(t + {c})").predict(theta)
    np.testing.assert_allclose(found, [float(x) for x in p], rtol=1e-12 + 4 * np.spacing(scale))


def test_targets_that_cannot_be_had_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    without_code = fysym.compile("-loggamma(1 + t)")
    assert "c" not in {m.target for m in without_code.accuracy()}
    monkeypatch.setenv("CC", "no-such-compiler")
    assert "c" not in {m.target for m in member("gini").accuracy()}


def test_the_table_says_where() -> None:
    measured = member("gini").accuracy()
    worst = measured.worst
    assert worst in tuple(measured)
    assert worst.ulps == max(m.ulps for m in measured)
    text = str(measured)
    assert len(text.splitlines()) == 1 + len(tuple(measured))
    assert f"class {worst.index} of theta" in text and "truth" in text


@pytest.mark.parametrize("name", ["shannon", "gini", "fermi_dirac", "tsallis_3", "gini_sine", "hellinger"])
def test_the_reference_agrees_with_the_oracle(name: str) -> None:
    reg, oracle = member(name), member_oracle(name)
    reference = Reference(reg.derivation.entropy, reg.derivation.theory)
    rng = np.random.default_rng(3)
    for theta in (rng.normal(size=2), 3 * rng.normal(size=5), np.array([20.0, 0.0, -1.0]), np.zeros(4)):
        p, tau = reference.solve(theta.tolist())
        exact = oracle.solve(theta)
        with mpmath.workdps(50):
            for a, b in zip(p, exact.p, strict=True):
                assert abs(mpmath.mpf(a) - b) <= mpmath.mpf(10) ** -24 * b
            y = [0.0] * (len(theta) - 1) + [1.0]
            loss = reference.loss(theta.tolist(), p, y)
            assert abs(mpmath.mpf(loss) - oracle.loss(exact, len(theta) - 1)) < mpmath.mpf(10) ** -24


def test_rows_reach_the_ends_of_the_range() -> None:
    dense = accuracy.rows(member("shannon").derivation, np.float64)
    assert min(min(row.p) for row in dense) < 1e-299
    sparse = accuracy.rows(member("gini").derivation, np.float64)
    assert any(0 < min(row.p) < 1e-15 for row in sparse), "a score just above the cut-off"
    assert any(max(row.p) == 1 for row in sparse), "a gap of at least the margin"


def with_error(reg: Any, change: Any) -> Any:
    module = reg._module
    return SimpleNamespace(predict=lambda theta: change(module.predict(theta)), loss=module.loss)


@pytest.mark.parametrize(
    "change",
    [
        lambda p: p * (1 + 1e-13),
        lambda p: np.where(p < 1e-250, 0.0, p),
        lambda p: np.where(p == p.min(), p + 1e-14, p),
        lambda p: p * np.nan,
    ],
)
def test_errors_are_seen(change: Any) -> None:
    reg = member("shannon")
    worst = next(iter(accuracy.measure(reg.derivation, {"broken": with_error(reg, change)})))
    assert worst.target == "broken"
    assert worst.ulps > 16


def test_code_that_fails_its_check_is_not_used() -> None:
    reg = fysym.compile("t*(1-t) + 0")
    program = reg.derivation.program
    wrong = dataclasses.replace(program.inverse, expr=program.inverse.expr * (1 + sympy.Rational(1, 10**9)))
    broken = dataclasses.replace(reg.derivation, program=dataclasses.replace(program, inverse=wrong))
    with pytest.raises(fysym.UndecidedError, match="the truth is"):
        fysym.Regularizer(broken, None, lambda entropy, values: reg).predict([0.3, 0.0, 0.1])


def test_code_that_stops_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> Any:
        raise ZeroDivisionError("float division by zero")

    reg = fysym.compile("t*(1-t) + 0")
    loaded = SimpleNamespace(CHECKS=[([1.0, 0.0], [0.5, 0.5], 1e-12)], predict=broken)
    monkeypatch.setattr("fysym.emit.numpy.load", lambda *_: loaded)
    with pytest.raises(fysym.UndecidedError, match="it fails for the scores"):
        reg.predict([0.3, 0.0, 0.1])


def test_scores_of_ordinary_size_are_always_checked() -> None:
    """Even where the slopes of h are so large that scores at the cut-off determine nothing."""
    for h in ("-exp(180*t)", "-sqrt((t-1/3)**2 + 1/10**16)", "t*(1-t)/2"):
        derivation = fysym.compile(h).derivation
        assert [1.0, 0.5, -1.0, 0.375] in [theta for theta, _, _ in accuracy.checks(derivation)]
        assert all(allowed < 1e-3 for _, _, allowed in accuracy.checks(derivation))


def test_a_family_must_be_bound() -> None:
    with pytest.raises(fysym.ParameterError, match="bind"):
        fysym.catalog["tsallis"].accuracy()


# --- the parts, on entropies that take no time to compile -------------------------------------------------


def test_the_reference_stays_at_a_kink() -> None:
    """h = t (1-t) + min(t, 1-t): -h' is 2t - 2 before 1/2 and 2t after it."""
    reg = fysym.compile("min(t, 1-t) + t*(1-t)")
    reference = Reference(reg.derivation.entropy, reg.derivation.theory)
    for s, t in ((-1.5, 0.25), (-1.0, 0.5), (0.0, 0.5), (1.0, 0.5), (1.5, 0.75), (-2.0, 0.0), (2.0, 1.0), (-9.0, 0.0)):
        assert abs(reference.inverse(reference.ctx.mpf(s)) - t) < 1e-30
    p, _ = reference.solve([0.25, 0.0])
    assert abs(p[0] - 0.5) < 1e-30 and abs(p[1] - 0.5) < 1e-30
    assert abs(reference.loss([0.25, 0.0], p, [1.0, 0.0]) - 1.375) < 1e-30  # -1/8 + 2 h(1/2)


def test_a_probability_below_the_least_is_zero() -> None:
    reg = fysym.compile("-t*log(t)")
    reference = Reference(reg.derivation.entropy, reg.derivation.theory)
    assert reference.inverse(reference.ctx.mpf(-2000)) == 0
    p, _ = reference.solve([5000.0, 0.0])
    assert abs(p[0] - 1) < 1e-19 and p[1] == 0  # to 20 places


def test_code_that_does_not_run_is_as_wrong_as_can_be() -> None:
    assert accuracy.worst_error(lambda x: x.no_such_thing, [0.5], [1], [1]) == (np.inf, 0.0)
    assert accuracy.worst_error(lambda x: x + 1e-3, [0.25, 0.5], [0.25, 0.5], [1e-3, 1e-3])[0] == pytest.approx(1)
    assert accuracy.error_in(1, float("nan"), 0) == np.inf


def test_a_measurement_is_told_in_one_line() -> None:
    found = accuracy.Measurement("numpy", "float64", "predict", 1.5, 2e-16, (0.5, 1.0), 1, 0.25, 0.75)
    loss = dataclasses.replace(found, function="loss", relative=None, ulps=3.0)
    assert str(found) == (
        "numpy float64 predict: 1.5 ulps, relative 2e-16 above 1e-12; "
        "worst at class 1 of theta = (0.5, 1): 0.25, truth 0.75"
    )
    both = accuracy.Accuracy((found, loss), 7)
    assert both.worst is loss and list(both) == [found, loss]
    assert str(both).splitlines()[0] == "measured on 7 rows of scores against the truth"
    assert "3 ulps; worst" in str(loss)
