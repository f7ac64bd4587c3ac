"""The compiled kernels against the fifty-digit truth and the NumPy target; arrays, threads and the cache."""

from __future__ import annotations

import functools
import math
import multiprocessing
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest

import fysym

from . import oracle as oracles
from .oracle import MEMBERS, allowed_error, member_oracle

pytest.importorskip("numba")

HERE = Path(__file__).parent.parent
COMPILED = [
    "shannon", "gini", "tsallis_1.5", "tsallis_3", "hellinger", "fermi_dirac", "jensen_shannon", "abe_1",
    "borges_roditi_0.5_1.5", "sine", "arctan", "log1p", "exponential", "gini_sine", "shannon_gini",
    "kaniadakis_0.25", "kaniadakis_0.75", "abe_1.5",
]  # fmt: skip
MARGINS = ["gini", "tsallis_1.5", "tsallis_3", "sine", "arctan", "log1p", "exponential", "gini_sine"]


@functools.cache
def member(name: str) -> Any:
    """A member of the catalog; compiled with more time where a busy machine found no closed form in time."""
    reg = oracles.member(name)
    return fysym.compile(str(reg.h), deadline=100.0) if name in COMPILED and isinstance(reg._fast, str) else reg


def distance(number: Any, truth: Any) -> Any:
    with mpmath.workdps(60):
        return abs(mpmath.mpf(float(number)) - truth)


def rows(d: int, scale: float) -> list[np.ndarray]:
    """Random scores, ties, a tie at the top, and one score above the rest."""
    rng = np.random.default_rng([d, round(1e5 * scale)])
    found = [scale * rng.choice(rng.normal(size=min(d, 30)), size=d), np.full(d, scale * 0.7)]
    tied = scale * rng.choice(rng.normal(size=min(d, 10)), size=d)
    tied[-1] = tied[0] = tied.max()
    above = np.full(d, -0.3 * scale)
    above[d // 2] = scale
    return [*found, tied, above]


@pytest.mark.parametrize("name", MEMBERS)
def test_which_members_are_compiled(name: str) -> None:
    fast = member(name)._fast
    assert isinstance(fast, str) or name in (*COMPILED, "tsallis_1", "probit")
    if isinstance(fast, str):
        with pytest.raises(fysym.UnsupportedError, match="target='numpy'"):
            member(name).predict([0.1, 0.2], target="numba")
        assert member(name).predict([0.0, 0.0]).sum() == 1.0


@pytest.mark.parametrize("name", COMPILED)
def test_no_kernel_is_refused(name: str) -> None:
    """Of those that are written: predictions and losses have one in each precision, and derivatives in double."""
    fast = member(name)._fast
    for kind in ("predict", "label", "proportions", "jvp"):
        for bits in (64, 32) if kind != "jvp" else (64,):
            assert fast.native(kind, bits).address  # an error says what is wrong with a kernel
    assert fast.fits("predict", "label", "proportions", "jvp")


@pytest.mark.parametrize("d", (1, 2, 3, 10, 100, 1000))
@pytest.mark.parametrize("name", COMPILED)
def test_the_truth(name: str, d: int) -> None:
    reg, oracle = member(name), member_oracle(name)
    for scale in (1e-4, 1.0, 1e4) if d <= 10 else (1.0,):
        for theta in rows(d, scale):
            truth = oracle.solve(theta, near=reg.threshold(theta))
            p = reg.predict(theta, target="numba")
            assert (p >= 0).all() and (p <= 1).all() and abs(math.fsum(p) - 1) <= 1e-14
            for j in np.argsort([-float(distance(a, b)) for a, b in zip(p, truth.p, strict=True)])[:3]:
                error = distance(p[j], truth.p[j])
                assert error <= 1e-13 or error <= allowed_error(oracle, truth, j)
            y = np.full(d, 1 / 1024)
            y[0] = 1 - (d - 1) / 1024
            for wanted in (0, d - 1, int(np.argmax(theta)), y):
                loss, grad = reg.value_and_grad(theta, wanted, target="numba")
                exact = oracle.loss(truth, wanted)
                assert loss >= 0 and distance(loss, exact) <= 1e-12 * max(1, exact)
                one_hot = wanted if isinstance(wanted, np.ndarray) else np.eye(d)[wanted]
                np.testing.assert_array_equal(grad, p - one_hot)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", COMPILED)
def test_the_numpy_target(name: str, dtype: Any) -> None:
    """Many rows at once, over threads, agree with the NumPy target."""
    reg = member(name)
    most = 1e-13 if dtype is np.float64 else 2e-6
    for n, d in ((300, 2), (200, 15), (120, 33), (100, 130), (7, 5000)):
        rng = np.random.default_rng(d)
        theta = (rng.normal(size=(n, d)) * rng.choice([1e-3, 1.0, 3.0, 100.0], size=(n, 1))).astype(dtype)
        theta[0, : d // 2] = -np.inf
        labels = rng.integers(d // 2, d, n)
        y = rng.multinomial(1024, np.full(d, 1 / d), n) / 1024
        y[:, : d // 2] = 0
        y[:, -1] += 1 - y.sum(axis=1)
        wide = theta.astype(np.float64)
        p = reg.predict(theta, target="numba")
        assert p.dtype == dtype
        assert np.abs(p - reg.predict(wide, target="numpy")).max() <= most
        assert np.abs(p.sum(axis=1, dtype=np.float64) - 1).max() <= (1e-14 if dtype is np.float64 else 4e-6)
        for wanted in (labels, y):
            loss, grad = reg.value_and_grad(theta, wanted, target="numba")
            exact, _ = reg.value_and_grad(wide, wanted, target="numpy")
            assert loss.dtype == grad.dtype == dtype
            assert (np.abs(loss - exact) <= 10 * most * np.maximum(1.0, exact)).all()
        v = rng.normal(size=(n, d))
        if dtype is np.float64:
            exact = reg.jvp(wide, v, target="numpy")
            np.testing.assert_allclose(reg.jvp(theta, v, target="numba"), exact, rtol=1e-5, atol=1e-9)


NO_CLOSED_FORM = ["sqrt(t)*acos(sqrt(t))", "-t*log(t) - (1-t)*log(1-t) + t*(1-t)"]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", [*COMPILED, *NO_CLOSED_FORM])
def test_two_scores_that_are_nearly_tied(name: str, dtype: Any) -> None:
    """Alone, masked, and far above others: one of the two may be above 1/2 on the way to the threshold."""
    reg = fysym.compile(name, deadline=100.0) if name in NO_CLOSED_FORM else member(name)
    gaps = np.outer([1.0, 3.0, 8.0], 10.0 ** -np.arange(1.0, 17.0)).ravel()
    most = 1e-13 if dtype is np.float64 else 2e-6
    for rest in ([-np.inf], [-1e30, -np.inf], [-700.0], [-0.5, -0.5, -1e-9], [0.0]):
        theta = np.array([[0.0, -gap, *rest] for gap in gaps], dtype=dtype)
        p = reg.predict(theta, target="numba")
        assert np.abs(p - reg.predict(theta.astype(np.float64), target="numpy")).max() <= most


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", COMPILED)
def test_special_values(name: str, dtype: Any) -> None:
    reg = member(name)
    for d in (3, 40):
        theta = np.random.default_rng(d).normal(size=(7, d)).astype(dtype)
        theta[0, 1] = np.nan
        theta[1, :2] = -np.inf
        theta[2, [0, 2]] = np.inf
        theta[3] = -np.inf
        theta[4, 1:] = -np.inf
        theta[5, 1], theta[5, 2] = np.nan, np.inf
        p = reg.predict(theta, target="numba")
        assert np.isnan(p[[0, 3, 5]]).all()
        assert (p[1, :2] == 0).all() and abs(p[1].sum() - 1) < 1e-6
        np.testing.assert_allclose(p[2, [0, 2]], 0.5, rtol=1e-6)
        np.testing.assert_array_equal(p[4], np.eye(d)[0])
        loss = reg.loss(theta, np.zeros(7, int), target="numba")
        assert (
            np.isnan(loss[[0, 3, 5]]).all() and loss[1] == np.inf and loss[4] == 0 and np.isfinite(loss[[2, 6]]).all()
        )
        assert reg.loss(theta[1], np.eye(d)[0] / 2 + np.eye(d)[2] / 2, target="numba") == np.inf
        dropped = reg.predict(theta[1, 2:], target="numba")
        np.testing.assert_allclose(p[1, 2:], dropped, rtol=1e-6 if dtype is np.float32 else 1e-14)


@pytest.mark.parametrize("name", MARGINS)
def test_margin_is_exact(name: str) -> None:
    reg = member(name)
    for base in (0.0, -37.3, 1e4):
        for d in (2, 3, 50, 1000):
            theta = np.full(d, base)
            theta[1] = base + float(reg.margin) * (1 + 1e-9)
            loss, grad = reg.value_and_grad(theta, 1, target="numba")
            np.testing.assert_array_equal(reg.predict(theta, target="numba"), np.arange(d) == 1)
            np.testing.assert_array_equal(grad, np.zeros(d))
            assert loss == 0.0
            assert reg.loss(theta, 0, target="numba") == pytest.approx(theta[1] - base, rel=1e-12)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_any_layout(dtype: Any) -> None:
    reg = member("tsallis_1.5")
    full = np.random.default_rng(0).normal(size=(6, 40, 50)).astype(dtype)
    views = [full, full[::2], full[:, ::3, 5:20], full[:, :, ::2], full[::-1, ::-1, ::-1], full.transpose(2, 0, 1)]
    views += [np.broadcast_to(full[0, 0], (9, 50)), full[0, 0], full[:0], np.asfortranarray(full[0])]
    for theta in views:
        for axis in range(-theta.ndim, theta.ndim):
            if theta.shape[axis] == 0:
                continue
            p = reg.predict(theta, axis=axis, target="numba")
            exact = reg.predict(theta, axis=axis, target="numpy")
            assert p.shape == exact.shape and p.dtype == dtype
            np.testing.assert_allclose(p, exact, atol=1e-13 if dtype is np.float64 else 1e-6)
    for other in (full[0].tolist(), full[0].astype(">f8"), np.arange(12).reshape(3, 4), np.ma.masked_less(full[0], -1)):
        np.testing.assert_allclose(reg.predict(other, target="numba"), reg.predict(other, target="numpy"), atol=1e-6)


@pytest.mark.parametrize("theta", [[], 1.0, [["a"]], [[1.0, None]], np.zeros((3, 0)), np.zeros(3, complex)])
def test_the_same_errors(theta: Any) -> None:
    texts = []
    for target in ("numpy", "numba"):
        with pytest.raises(fysym.InputError) as caught:
            member("gini").predict(theta, target=target)
        texts.append(str(caught.value))
    assert texts[0] == texts[1]
    with pytest.raises(fysym.InputError, match="target must be"):
        member("gini").predict([0.0], target="fortran")


def test_labels_out_of_range() -> None:
    for labels in ([0, 5], [-1, 0], np.array([2, 3])):
        with pytest.raises(fysym.InputError, match="is not a class"):
            member("gini").loss(np.zeros((2, 3)), labels, target="numba")


def test_threads_at_once() -> None:
    reg = member("sine")
    theta = np.random.default_rng(0).normal(size=(500, 60))
    exact = reg.predict(theta, target="numba")
    wrong = []

    def work() -> None:
        for _ in range(20):
            if not np.array_equal(reg.predict(theta, target="numba"), exact):
                wrong.append(1)

    workers = [threading.Thread(target=work) for _ in range(6)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not wrong


def _child(queue: Any) -> None:
    queue.put(float(member("gini").predict(np.zeros((600, 50)), target="numba").sum()))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_after_a_fork() -> None:
    member("gini").predict(np.zeros((600, 50)), target="numba")
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    process = context.Process(target=_child, args=(queue,))
    process.start()
    assert queue.get(timeout=60) == pytest.approx(600.0)
    process.join()


SCRIPT = """
import sys, numpy as np, fysym
p = fysym.compile("t*(1 - t)/2 + 0").predict(np.array([1.0, 0.5, -1.0]), target="numba")
print(p.tolist(), "numba" in sys.modules)
"""


def start(folder: Path) -> subprocess.Popen[str]:
    environment = {**os.environ, "FYSYM_CACHE_DIR": str(folder), "PYTHONPATH": str(HERE)}
    return subprocess.Popen([sys.executable, "-c", SCRIPT], env=environment, stdout=subprocess.PIPE, text=True)


def test_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two processes race to fill it; a third needs no Numba; a damaged file is made again; it can be cleared."""
    folder = tmp_path / "deep" / "cache"
    assert [process.communicate(timeout=300)[0].split("]")[0] for process in (start(folder), start(folder))] == [
        "[0.75, 0.25, 0.0"
    ] * 2
    (stored,) = folder.iterdir()
    assert start(folder).communicate(timeout=300)[0] == "[0.75, 0.25, 0.0] False\n"
    stored.write_bytes(stored.read_bytes()[:-7])
    assert start(folder).communicate(timeout=300)[0] == "[0.75, 0.25, 0.0] True\n"
    monkeypatch.setenv("FYSYM_CACHE_DIR", str(folder))
    assert fysym.cache_dir() == folder
    assert fysym.clear_cache() == 1 and fysym.clear_cache() == 0


def test_an_unwritable_cache(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    assert start(blocked).communicate(timeout=300)[0] == "[0.75, 0.25, 0.0] True\n"


def test_the_report_says_which_solver() -> None:
    assert "within the margin 1 of the largest" in " ".join(member("gini").report().split())
    assert "table of polynomials" in " ".join(member("gini_sine").report().split())
    assert "losses by the NumPy code" in " ".join(member("probit").report().split())


def test_importing_brings_neither() -> None:
    code = "import sys, fysym; print('numba' in sys.modules, 'llvmlite' in sys.modules)"
    environment = {**os.environ, "PYTHONPATH": str(HERE)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "False False\n"


def test_long_rows_need_little_scratch() -> None:
    """Scratch for the candidates of a long row, not for all of its entries; rows with more candidates still work."""
    from fysym.runtime import team

    d = 90000
    theta = np.random.default_rng(0).normal(0.0, 2.0, size=(2, d))
    for name in ("gini", "fermi_dirac"):
        reg = member(name)
        reg.predict(theta[:, :3], target="numba")
        before = team.scratch.size
        exact = reg.predict(theta, target="numpy")
        np.testing.assert_allclose(reg.predict(theta, target="numba"), exact, rtol=1e-9, atol=1e-15)
        assert team.scratch.size <= max(before, 2**20)
    flat = np.zeros((2, d))
    flat[0, 5] = 1e-7
    reg = member("gini")
    np.testing.assert_allclose(reg.predict(flat, target="numba"), reg.predict(flat, target="numpy"), rtol=1e-9)
    loss, grad = reg.value_and_grad(flat, [5, 0], target="numba")
    np.testing.assert_allclose(loss, reg.loss(flat, [5, 0], target="numpy"), rtol=1e-12)
    assert np.abs(grad.sum(axis=1)).max() <= 1e-12


def test_no_closed_form_and_no_margin_at_either_end() -> None:
    """Both slopes are infinite and q has no closed form, which no member of the catalog has at once."""
    reg = fysym.compile("-t*log(t) - (1-t)*log(1-t) + t*(1-t)", deadline=100.0)
    rng = np.random.default_rng(0)
    for d in (2, 5, 40, 1000):
        theta = rng.normal(size=(30, d)) * rng.choice([1e-3, 1.0, 30.0], size=(30, 1))
        theta[0, 0], theta[1, : d // 2] = 500.0, 2.0
        exact = reg.predict(theta, target="numpy")
        np.testing.assert_allclose(reg.predict(theta, target="numba"), exact, rtol=1e-11, atol=0)
        loss = reg.loss(theta, np.zeros(30, int), target="numpy")
        np.testing.assert_allclose(reg.loss(theta, np.zeros(30, int), target="numba"), loss, rtol=1e-11, atol=1e-13)
