"""The C target: compiled by the system's compiler without a warning, and equal to the NumPy target on every domain."""

from __future__ import annotations

import ctypes
import functools
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fysym
from fysym.runtime.shared_library import SharedLibrary, compile_c, compiler

from .oracle import MEMBERS, member

if compiler() is None:
    pytest.skip("no C compiler", allow_module_level=True)
STRICT = ["-Wall", "-Wextra", "-Werror", "-pedantic"]
DOMAINS: dict[str, Any] = {
    **{name: name for name in ("simplex", "cube", "orthant", "reals")},
    **{f"budget {k}": fysym.budget(k) for k in (0.5, 1.5, 2, 7)},
}
# Beyond the catalog: slopes infinite at 1, a kink, a steep cut-off, no closed form.
OTHERS = [
    "t*sqrt(1-t)",
    "min(t, 1-t) + t*(1-t)",
    "t - t**9",
    "t - t**2/2 - t**4/4",
    "log(cos(t))",
    "t**(1/3)*(1-t)**(1/2)",
]
BOUNDED = ["shannon", "fermi_dirac", "gini_sine", "tsallis_3", "log(t) + log(1 - t)", *OTHERS]
ENTROPIES = {
    "simplex": [*MEMBERS, *OTHERS],
    "cube": ["gini", "probit", "kaniadakis_0.25", *BOUNDED],
    "budget 2": BOUNDED,
    "budget 1.5": ["gini", "fermi_dirac", "arctan", "min(t, 1-t) + t*(1-t)"],
    "budget 0.5": ["gini", "shannon", "t - t**9"],
    "budget 7": ["gini", "fermi_dirac", "hellinger", "log(cos(t))"],
    "orthant": [
        "t - t*log(t)", "-t**2/2", "-t**(3/2)", "-exp(t)", "log(t) - t**2", "sqrt(t) - t**2", "log(1 + t) - t**2",
        "-t**2/2 - Abs(t - 2)",
    ],
    "reals": [
        "-t**2/2", "-t**2/2 - Abs(t)", "-t**4/4 - t**2/2", "-t**2/2 - sin(t)/2", "-exp(t) - exp(-2*t)", "-cosh(t)",
        "sqrt(1 + t**2) - t*asinh(t)", "-t**2 - Abs(t - 1) - Abs(t + 2)/3",
    ],
}  # fmt: skip


def total(domain: str) -> float | None:
    return 1.0 if domain == "simplex" else getattr(DOMAINS[domain], "total", None)


CASES = [(name, domain) for domain, names in ENTROPIES.items() for name in names]
cases = pytest.mark.parametrize(("name", "domain"), CASES)
# One entropy with a closed-form inverse and one without, on each domain.
SOME = [
    ("shannon", "simplex"), ("gini_sine", "simplex"), ("fermi_dirac", "cube"), ("gini_sine", "cube"),
    ("tsallis_3", "budget 2"), ("t*sqrt(1-t)", "budget 2"), ("gini", "budget 0.5"), ("t - t*log(t)", "orthant"),
    ("sqrt(t) - t**2", "orthant"), ("-t**4/4 - t**2/2", "reals"), ("-t**2/2 - sin(t)/2", "reals"),
]  # fmt: skip
some = pytest.mark.parametrize(("name", "domain"), SOME)


@functools.cache
def pair(name: str, domain: str = "simplex") -> tuple[Any, SharedLibrary]:
    reg = member(name) if name in MEMBERS else fysym.compile(name)
    if domain != "simplex":
        reg = fysym.compile(reg.h if name in MEMBERS else name, domain=DOMAINS[domain])
    return reg, SharedLibrary(reg.source("c"), reg._module, STRICT)


def scores(d: int) -> np.ndarray:
    rng = np.random.default_rng(d)
    rows = [scale * rng.normal(size=(8, d)) for scale in (1e-300, 1e-4, 1.0, 30.0, 1e4)]
    ties = rng.choice([-1.0, 0.25, 0.5], size=(8, d))
    masked = np.where(rng.random(size=(8, d)) < 0.3, -np.inf, rng.normal(size=(8, d)))
    infinite = np.where(rng.random(size=(8, d)) < 0.2, np.inf, masked)
    broken = np.where(rng.random(size=(4, d)) < 0.2, np.nan, infinite[:4])
    one_far = np.concatenate([np.full((1, 1), 1e17), rng.normal(size=(1, d - 1))], axis=1)
    special = [
        np.zeros((1, d)),
        1e40 * rng.normal(size=(1, d)),
        np.full((1, d), -np.inf),
        np.full((1, d), np.inf),
        one_far,
    ]
    return np.concatenate([*rows, ties, masked, infinite, broken, *special])


def targets(reg: Any, domain: str, n: int, d: int) -> list[np.ndarray]:
    """What can be fitted on the domain: labels, points of it, and its corners."""
    rng = np.random.default_rng(5)
    inner = reg.predict(rng.normal(size=(n, d)), target="numpy")
    labels = [rng.integers(d, size=n)] if total(domain) in (None, 1.0) else []
    corners = (
        [reg.predict(1e6 * rng.normal(size=(n, d)), target="numpy")] if reg.derivation.entropy.domain.bounded else []
    )
    return [*labels, inner, *corners]


def allowed(theta: np.ndarray, p: np.ndarray, y: np.ndarray, loss: np.ndarray) -> np.ndarray:
    """1e-13 of a loss, and what 16 units in the last places of the scores do to it."""
    wanted = np.eye(p.shape[1])[y] if y.ndim == 1 else y
    units = np.spacing(np.where(np.isfinite(theta), np.abs(theta), 0.0))
    with np.errstate(over="ignore"):
        units = units * np.abs(np.where(np.isfinite(p), p, 0.0) - wanted)
    return 1e-13 * np.maximum(1.0, loss) + 16 * units.sum(axis=1)


@cases
def test_c_agrees_with_numpy(name: str, domain: str) -> None:
    reg, c = pair(name, domain)
    for d in (1, 2, 3, 10, 100):
        if d < (total(domain) or 0):
            continue
        theta = scores(d)
        p, expected = c.predict(theta), reg.predict(theta, target="numpy")
        np.testing.assert_allclose(p, expected, rtol=1e-13, atol=1e-13)
        if total(domain) is not None:
            good = ~np.isnan(p).any(axis=1)
            np.testing.assert_allclose(p[good].sum(axis=1), total(domain), rtol=1e-14)
        for y in targets(reg, domain, len(theta), d):
            loss, grad = c.value_and_grad(theta, y)
            losses, grads = reg.value_and_grad(theta, y, target="numpy")
            np.testing.assert_array_equal(np.isnan(loss), np.isnan(losses))
            finite = np.isfinite(losses)
            np.testing.assert_array_equal(loss[~finite], losses[~finite])
            off = np.abs(loss[finite] - losses[finite])
            assert (off <= allowed(theta, expected, y, losses)[finite]).all()
            np.testing.assert_allclose(grad, grads, rtol=1e-13, atol=1e-13)


@some
def test_float(name: str, domain: str) -> None:
    reg, c = pair(name, domain)
    theta = np.concatenate([scale * np.random.default_rng(0).normal(size=(8, 10)) for scale in (1e-4, 1.0, 30.0)])
    theta = theta.astype(np.float32)
    p = c.predict(theta)
    assert p.dtype == np.float32
    np.testing.assert_allclose(p, reg.predict(theta, target="numpy"), rtol=1e-7, atol=1e-7)
    y = reg.predict(theta[::-1], target="numpy")
    loss, grad = c.value_and_grad(theta, y)
    expected, slope = reg.value_and_grad(theta, y, target="numpy")
    np.testing.assert_allclose(loss, expected, rtol=1e-6)
    np.testing.assert_allclose(grad, slope, rtol=2e-7, atol=1e-7)


@pytest.mark.parametrize(("name", "domain"), [case for case in SOME if total(case[1])])
def test_scores_farther_apart_than_a_double_can_say(name: str, domain: str) -> None:
    reg, c = pair(name, domain)
    theta = np.array([[1e308, -1e308, 0.0], [1.7e308, -1.7e308, -1.7e308], [-1.7e308, 1.7e308, 1.7e308]])
    p = c.predict(theta)
    np.testing.assert_allclose(p, reg.predict(theta, target="numpy"), rtol=1e-13, atol=1e-13)
    assert (c.loss(theta, p) == reg.loss(theta, p, target="numpy")).all()


FAR = [
    ("sqrt(1-t)", "simplex", [1e160, 0.0, 0.0], [1.0, 0.0, 0.0]),
    ("sqrt(1-t)", "cube", [1e155, -1e155, 1e160], [1.0, 0.0, 1.0]),
    ("sqrt(1-t)", "budget 1.5", [1e160, 0.0, 0.0], [1.0, 0.25, 0.25]),
    ("sqrt(1-t)", "budget 2", [1e200, 0.0, 0.0, 0.0], [1.0, 1 / 3, 1 / 3, 1 / 3]),
    ("-t**4", "orthant", [1e160, 1e308], [2.5e159 ** (1 / 3), 2.5e307 ** (1 / 3)]),
    ("-log(1+exp(t))-t**2/1000", "reals", [2.4, 2.5, 3.0, 10.0], [700.0, 750.0, 1000.0, 4500.0]),
    ("t - t*log(t) - t**2", "orthant", [1e160], [5e159]),
    ("-t**2*log(1+t)", "orthant", [1e160, 1e300], None),
    ("-t*asinh(t)", "orthant", [360.0, 700.0], None),
]


@pytest.mark.parametrize(("h", "domain", "theta", "expected"), FAR)
def test_squares_too_large_for_a_double(h: str, domain: str, theta: list[float], expected: list[float] | None) -> None:
    """Predictions are right, or NaN."""
    p = pair(h, domain)[1].predict(np.array([theta]))[0]
    np.testing.assert_allclose(p, [np.nan] * len(theta) if expected is None else expected, rtol=1e-13, atol=1e-100)


def test_differences_beyond_a_double_weigh_what_they_should() -> None:
    _, c = pair("gini")
    assert c.loss([[1.5e308, -1.5e308]], [[0.75, 0.25]])[0] == pytest.approx(0.75e308, rel=1e-14)


def test_what_is_an_error_elsewhere_is_nan() -> None:
    """A total that there are not enough classes for, and labels where a total needs more than one."""
    _, c = pair("gini", "budget 7")
    assert np.isnan(c.predict(np.zeros((2, 6)))).all()
    theta, labels = np.zeros((1, 9)), np.zeros(1, ctypes.c_long)
    loss, grad = np.zeros(1), np.zeros((1, 9))
    c._call("fy_value_and_grad", theta, theta, None, labels, loss, grad)
    assert np.isnan(loss).all() and np.isnan(grad).all()


@some
def test_the_header_says_what_the_domain_is(name: str, domain: str) -> None:
    head = pair(name, domain)[0].source("c").partition("*/")[0]
    words = {"simplex": "the simplex", "cube": "[0, 1] for", "orthant": "[0, oo) for", "reals": "(-oo, oo) for"}
    words |= {name: f"p sums to {total(name):g}" for name in DOMAINS if name.startswith("budget")}
    assert words[domain] in head
    assert ("losses of labels are NaN" in head) == domain.startswith("budget")


def test_the_margin_is_exact() -> None:
    for name in ("gini", "tsallis_1.5", "sine"):
        reg, c = pair(name)
        theta = np.array([[float(reg.margin) * (1 + 1e-12), 0.0, 0.0]])
        np.testing.assert_array_equal(c.predict(theta), [[1.0, 0.0, 0.0]])
        loss, _ = c.value_and_grad(theta, np.array([0]))
        assert loss[0] == 0.0


@pytest.mark.skipif(sys.platform == "darwin", reason="Apple's compiler has no OpenMP")
@some
def test_openmp_changes_nothing(name: str, domain: str) -> None:
    reg, c = pair(name, domain)
    parallel = SharedLibrary(reg.source("c"), reg._module, [*STRICT, "-fopenmp"])
    theta = np.random.default_rng(0).normal(size=(500, 20))
    np.testing.assert_array_equal(parallel.predict(theta), c.predict(theta))


def test_what_the_user_typed_stays_in_the_comment() -> None:
    hostile = 'x */ int main(void) { return 1; } /* ??/ \\\n #error "no" \u2028'
    reg = fysym.compile("t*(1-t)", name=hostile)
    text = reg.source("c")
    SharedLibrary(text, reg._module, STRICT)
    head, _, rest = text.partition("*/")
    assert "return 1; }" in head and "return 1; }" not in rest and "#error" not in rest


def test_targets_and_functions_without_code_are_refused() -> None:
    with pytest.raises(fysym.UnsupportedError, match="the targets are numpy, numba, c"):
        fysym.compile("t*(1-t)").source("fortran")
    with pytest.raises(fysym.UnsupportedError, match="polygamma"):
        fysym.compile("-loggamma(1 + t)").source("c")


@pytest.mark.parametrize(("name", "domain"), [*CASES, ("log(t)", "simplex"), ("log(t)", "budget 2")])
def test_its_self_check(name: str, domain: str, tmp_path: Path) -> None:
    done = self_checked(pair(name, domain)[0].source("c"), tmp_path)
    assert done.returncode == 0, done.stdout
    assert "self-check passed" in done.stdout


@pytest.mark.parametrize(
    ("h", "domain", "function"),
    [("exponential", "simplex", "slope"), ("tsallis_3", "budget 2", "inverse"), ("gini_sine", "cube", "rise"),
     ("t - t*log(t)", "orthant", "inverse"), ("-t**2/2 - sin(t)/2", "reals", "rise")],
)  # fmt: skip
def test_a_wrong_number_fails_the_self_check(h: str, domain: str, function: str, tmp_path: Path) -> None:
    text = pair(h, domain)[0].source("c")
    wrong = re.sub(rf"(static double entropy_{function}.*?return )", r"\g<1>1.25 * ", text, count=1, flags=re.S)
    assert wrong != text
    assert self_checked(wrong, tmp_path).returncode == 1


def self_checked(text: str, folder: Path) -> subprocess.CompletedProcess[str]:
    compile_c(text, folder / "check", [*STRICT, "-DFY_SELF_CHECK"])
    return subprocess.run([folder / "check"], capture_output=True, text=True)


# --- the compiler ------------------------------------------------------------------------------------------


def test_the_compiler_is_the_one_that_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "no-such-compiler -m64")
    assert compiler() is None
    monkeypatch.setenv("CC", f"{sys.executable} -c pass")
    assert compiler() == [sys.executable, "-c", "pass"]


def test_without_a_compiler_the_error_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(fysym.UnsupportedError, match="(?s)does not compile the C file: .*error"):
        compile_c("int main(void) { return nothing; }", tmp_path / "wrong")
    monkeypatch.setenv("CC", "no-such-compiler")
    with pytest.raises(fysym.UnsupportedError, match="there is no C compiler"):
        SharedLibrary("int x;", None)
