"""The C target: compiled by the system's compiler without a warning, and equal to the NumPy target."""

from __future__ import annotations

import ctypes
import functools
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fysym

from .oracle import MEMBERS, member

COMPILER = next((name for name in ("cc", "gcc", "clang") if shutil.which(name)), None)
if COMPILER is None:
    pytest.skip("no C compiler", allow_module_level=True)
STRICT = ["-std=c99", "-O2", "-Wall", "-Wextra", "-Werror", "-pedantic"]
# Beyond the catalog: slopes infinite at 1, a kink, a steep cut-off, no closed form.
OTHERS = [
    "t*sqrt(1-t)",
    "min(t, 1-t) + t*(1-t)",
    "t - t**9",
    "t - t**2/2 - t**4/4",
    "log(cos(t))",
    "t**(1/3)*(1-t)**(1/2)",
]


def built(text: str, *options: str) -> Any:
    directory = Path(tempfile.mkdtemp())
    (directory / "entropy.c").write_text(text, encoding="utf-8")
    library = directory / "entropy.so"
    command = [COMPILER, *STRICT, *options, "-shared", "-fPIC", "-o", library, directory / "entropy.c", "-lm"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return ctypes.CDLL(str(library))


class Library:
    """The four functions of an emitted file, called with arrays."""

    def __init__(self, text: str, *options: str) -> None:
        self.library = built(text, *options)

    def predict(self, theta: np.ndarray) -> np.ndarray:
        theta = np.ascontiguousarray(theta)
        p = np.empty_like(theta)
        self._function("fy_predict", theta)(_address(theta), _address(p), *map(ctypes.c_size_t, theta.shape))
        return p

    def value_and_grad(self, theta: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        theta, y = np.ascontiguousarray(theta), np.ascontiguousarray(y)
        loss, grad = np.empty(len(theta), theta.dtype), np.empty_like(theta)
        labels = y.astype(ctypes.c_long) if y.ndim == 1 else None
        call = self._function("fy_value_and_grad", theta)
        shares = y.astype(theta.dtype)
        targets = (None, _address(labels)) if labels is not None else (_address(shares), None)
        call(_address(theta), *targets, _address(loss), _address(grad), *map(ctypes.c_size_t, theta.shape))
        return loss, grad

    def _function(self, name: str, theta: np.ndarray) -> Callable[..., None]:
        function = getattr(self.library, name + ("f" if theta.dtype == np.float32 else ""))
        function.restype = None
        return function  # type: ignore[no-any-return]


def _address(array: np.ndarray) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


@functools.cache
def pair(name: str) -> tuple[Any, Library]:
    reg = member(name) if name in MEMBERS else fysym.compile(name)
    return reg, Library(reg.source("c"))


def scores(d: int) -> np.ndarray:
    rng = np.random.default_rng(d)
    rows = [scale * rng.normal(size=(8, d)) for scale in (1e-4, 1.0, 30.0, 1e4)]
    ties = rng.choice([-1.0, 0.25, 0.5], size=(8, d))
    return np.concatenate([*rows, ties, np.zeros((1, d))])


@pytest.mark.parametrize("name", [*MEMBERS, *OTHERS])
def test_c_agrees_with_numpy(name: str) -> None:
    reg, c = pair(name)
    rng = np.random.default_rng(5)
    for d in (1, 2, 3, 10, 100):
        theta = scores(d)
        p = c.predict(theta)
        np.testing.assert_allclose(p, reg.predict(theta, target="numpy"), rtol=0, atol=1e-13)
        np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=0, atol=1e-14)
        for y in (rng.integers(d, size=len(theta)), rng.dirichlet(np.ones(d), size=len(theta))):
            loss, grad = c.value_and_grad(theta, y)
            expected, slope = reg.value_and_grad(theta, y, target="numpy")
            assert (np.abs(loss - expected) <= 1e-12 * np.maximum(1.0, expected)).all()
            np.testing.assert_allclose(grad, slope, rtol=0, atol=1e-13)


@pytest.mark.parametrize("name", ["shannon", "gini", "fermi_dirac", "gini_sine"])
def test_float(name: str) -> None:
    reg, c = pair(name)
    theta = scores(10).astype(np.float32)
    p = c.predict(theta)
    assert p.dtype == np.float32
    np.testing.assert_allclose(p, reg.predict(theta, target="numpy"), rtol=0, atol=1e-7)
    loss, grad = c.value_and_grad(theta, np.zeros(len(theta), int))
    expected, slope = reg.value_and_grad(theta, np.zeros(len(theta), int), target="numpy")
    np.testing.assert_allclose(loss, expected, rtol=1e-6)
    np.testing.assert_allclose(grad, slope, rtol=0, atol=1e-7)


@pytest.mark.parametrize("name", ["shannon", "gini", "fermi_dirac", "gini_sine", "tsallis_1.5"])
def test_masks_and_infinities(name: str) -> None:
    reg, c = pair(name)
    inf, nan = np.inf, np.nan
    theta = np.array(
        [[0.0, -inf, 0.2], [inf, 0.0, inf], [-inf] * 3, [nan, 0.0, 1.0], [-inf, -inf, 3.0], [1e308, -1e308, 0.0]]
    )
    np.testing.assert_allclose(c.predict(theta), reg.predict(theta, target="numpy"), rtol=0, atol=1e-14)
    labels = np.array([1, 0, 0, 0, 2, 0])
    np.testing.assert_allclose(c.value_and_grad(theta, labels)[0], reg.loss(theta, labels, target="numpy"), rtol=1e-12)


def test_the_margin_is_exact() -> None:
    for name in ("gini", "tsallis_1.5", "sine"):
        reg, c = pair(name)
        theta = np.array([[float(reg.margin) * (1 + 1e-12), 0.0, 0.0]])
        np.testing.assert_array_equal(c.predict(theta), [[1.0, 0.0, 0.0]])
        loss, _ = c.value_and_grad(theta, np.array([0]))
        assert loss[0] == 0.0


@pytest.mark.skipif(sys.platform == "darwin", reason="Apple's compiler has no OpenMP")
def test_openmp_changes_nothing() -> None:
    reg, c = pair("tsallis_1.5")
    parallel = Library(reg.source("c"), "-fopenmp")
    theta = np.random.default_rng(0).normal(size=(500, 20))
    np.testing.assert_array_equal(parallel.predict(theta), c.predict(theta))


def test_what_the_user_typed_stays_in_the_comment() -> None:
    hostile = 'x */ int main(void) { return 1; } /* ??/ \\\n #error "no" \u2028'
    text = fysym.compile("t*(1-t)", name=hostile).source("c")
    Library(text)
    head, _, rest = text.partition("*/")
    assert "return 1; }" in head and "return 1; }" not in rest and "#error" not in rest


def test_targets_and_functions_without_code_are_refused() -> None:
    with pytest.raises(fysym.UnsupportedError, match="the targets are numpy, numba, c"):
        fysym.compile("t*(1-t)").source("fortran")
    with pytest.raises(fysym.UnsupportedError, match="polygamma"):
        fysym.compile("-loggamma(1 + t)").source("c")


@pytest.mark.parametrize("name", [*MEMBERS, *OTHERS, "log(t)", "log(t) + log(1 - t)"])
def test_its_self_check(name: str, tmp_path: Path) -> None:
    done = self_checked(pair(name)[0].source("c"), tmp_path)
    assert done.returncode == 0, done.stdout
    assert "self-check passed" in done.stdout


def test_a_wrong_number_fails_the_self_check(tmp_path: Path) -> None:
    text = fysym.catalog.exponential.source("c")
    wrong = re.sub(r"(static double entropy_slope.*?return )", r"\g<1>1.25 * ", text, count=1, flags=re.S)
    assert wrong != text
    assert self_checked(wrong, tmp_path).returncode == 1


def self_checked(text: str, folder: Path) -> subprocess.CompletedProcess[str]:
    (folder / "loss.c").write_text(text)
    program = folder / "check"
    subprocess.run([COMPILER, *STRICT, "-DFY_SELF_CHECK", "loss.c", "-lm", "-o", program], check=True, cwd=folder)
    return subprocess.run([program], capture_output=True, text=True)
