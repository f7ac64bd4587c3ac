"""Threads that share rows, and rows that share a vector: the same numbers however the work is divided."""

from __future__ import annotations

import ctypes
import threading
import time
from typing import Any

import numpy as np
import pytest

pytest.importorskip("numba")

from fysym.runtime import team

from .test_numba_runtime import member

FAMILIES = [
    "shannon",
    "gini",
    "tsallis_1.5",
    "sine",
    "gini_sine",
    "arctan",
    "fermi_dirac",
    "jensen_shannon",
    "hellinger",
]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", ["shannon", "gini", "fermi_dirac"])
def test_how_rows_are_shared_does_not_matter(name: str, dtype: Any, monkeypatch: Any) -> None:
    """One thread, several, or helpers that never wake: the same numbers, packed or strided."""
    reg, rng = member(name), np.random.default_rng(0)
    theta = rng.normal(0.0, 3.0, (5003, 17)).astype(dtype)
    theta[[7, 4000], 3] = np.inf, np.nan
    labels = rng.integers(17, size=5003)

    def results() -> list[Any]:
        loss, grad = reg.value_and_grad(theta, labels)
        return [reg.predict(theta), reg.predict(theta.T, axis=0).T, loss, grad]

    monkeypatch.setattr(team, "THREADS", 1)
    alone = results()
    np.testing.assert_array_equal(alone[0], alone[1])
    for threads in (2, 5, 0):
        monkeypatch.setattr(team, "THREADS", threads or 2)
        if not threads:
            monkeypatch.setattr(team, "helpers", team.Helpers())
            monkeypatch.setattr(team.helpers, "wake", lambda job, count: None)
        for found, expected in zip(results(), alone, strict=True):
            np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("bits", [64, 32])
@pytest.mark.parametrize("name", FAMILIES)
def test_no_row_depends_on_others(name: str, bits: int) -> None:
    """Short rows are solved several at once, and each as if it were alone, hard ones among them."""
    reg, rng = member(name), np.random.default_rng(7)
    for d in (1, 2, 10, 16, 17, 32, 33, 100, 128, 129):
        theta = (rng.normal(size=(45, d)) * 10.0 ** rng.integers(-3, 3, (45, 1))).astype(f"float{bits}")
        theta[3] = theta[4, 0]
        theta[11, 0], theta[13, -1], theta[17], theta[19, : d // 2] = np.nan, np.inf, -np.inf, -np.inf
        labels = rng.integers(d, size=45)
        p, (loss, grad) = reg.predict(theta), reg.value_and_grad(theta, labels)
        v = rng.normal(size=theta.shape).astype(theta.dtype)
        moved = reg.jvp(theta, v)
        for i in range(45):
            one = slice(i, i + 1)
            np.testing.assert_array_equal(reg.predict(theta[one]), p[one], err_msg=f"row {i} of {d} classes")
            found = reg.value_and_grad(theta[one], labels[one])
            np.testing.assert_array_equal(found[0], loss[one], err_msg=f"loss of row {i} of {d} classes")
            np.testing.assert_array_equal(found[1], grad[one])
            np.testing.assert_array_equal(reg.jvp(theta[one], v[one]), moved[one])


def test_a_helper_that_fails_leaves_the_work_to_others() -> None:
    helpers, done = team.Helpers(), threading.Event()

    def fails() -> None:
        raise MemoryError

    helpers.start(1)
    helpers.wake(fails, 1)
    helpers.wake(done.set, 1)
    assert done.wait(10) and helpers.count == 1


def status(helpers: team.Helpers) -> int:
    return ctypes.c_int64.from_address(helpers.boxes).value


def eventually(condition: Any) -> bool:
    end = time.monotonic() + 10.0
    while not condition() and time.monotonic() < end:
        time.sleep(1e-4)
    return bool(condition())


def test_a_helper_watches_then_sleeps_and_can_be_dismissed(monkeypatch: Any) -> None:
    """It takes jobs from its box while it watches, and from the queue when it sleeps or has too little scratch."""
    helpers = team.Helpers()
    monkeypatch.setattr(team, "helpers", helpers)
    monkeypatch.setattr(team, "THREADS", 2)
    monkeypatch.setattr(team, "LOOKS", 2**60)
    woken: list[int] = []
    wake = helpers.wake
    monkeypatch.setattr(helpers, "wake", lambda job, count: (woken.append(count), wake(job, count)))
    reg = member("gini")
    small, wide = (np.random.default_rng(0).normal(size=shape) for shape in ((4000, 20), (100, 2000)))
    exact = [reg.predict(theta, target="numpy") for theta in (small, wide)]

    def check(which: int, asked: list[int]) -> None:
        theta = (small, wide)[which]
        np.testing.assert_allclose(reg.predict(theta, target="numba"), exact[which], rtol=0, atol=1e-14)
        assert woken == asked and eventually(lambda: status(helpers) == 1)  # it watches again

    check(0, [1])  # asleep at first
    check(0, [1])
    check(1, [1, 1])  # more scratch than it has
    check(1, [1, 1])
    check(0, [1, 1])
    monkeypatch.setattr(team, "LOOKS", 0)
    ctypes.c_int64.from_address(helpers.boxes).value = 0  # dismissed
    wake(lambda: None, 1)
    assert eventually(lambda: status(helpers) == 0 and helpers.jobs.empty())
    np.testing.assert_allclose(reg.predict(small, target="numba"), exact[0], rtol=0, atol=1e-14)
    assert woken == [1, 1, 1]


def test_callers_at_once_share_the_helpers(monkeypatch: Any) -> None:
    monkeypatch.setattr(team, "helpers", team.Helpers())
    monkeypatch.setattr(team, "THREADS", 3)
    theta = [np.random.default_rng(i).normal(size=(3000 + 100 * i, 12 + i)) for i in range(6)]
    exact = [member("tsallis_1.5").predict(each) for each in theta]
    wrong: list[int] = []

    def work(i: int) -> None:
        for _ in range(200):
            if not np.array_equal(member("tsallis_1.5").predict(theta[i]), exact[i]):
                wrong.append(i)

    workers = [threading.Thread(target=work, args=(i,)) for i in range(6)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not wrong
