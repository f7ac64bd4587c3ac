"""Threads that share rows, and rows that share a vector: the same numbers however the work is divided."""

from __future__ import annotations

import ctypes
import threading
import time
from typing import Any

import numpy as np
import pytest

pytest.importorskip("numba")

from fysym.emit import numba as emit
from fysym.emit import numba_block, numba_templates
from fysym.runtime import native, team

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


def left_over(name: str, theta: Any) -> int:
    """How many rows a newly compiled kernel leaves to its caller; the others must be right."""
    reg = member(name)
    program = reg.derivation.program
    made = native.load(emit.kernel(program, "predict", 64), lambda kernel: "")
    p, left = reg._fast.rows(made, theta, None, None, None, emit.scratch(program, "predict", 64))
    solved = ~np.isnan(p[:, 0])
    assert np.count_nonzero(~solved) == left
    np.testing.assert_allclose(p[solved], reg.predict(theta, target="numpy")[solved], rtol=0, atol=1e-13)
    return left


BLOCKS = ["gini", "tsallis_1.5", "tsallis_3", "sine", "gini_sine", "fermi_dirac", "hellinger", "jensen_shannon"]


@pytest.mark.parametrize("name", BLOCKS)
def test_short_rows_are_solved_in_blocks(name: str, monkeypatch: Any) -> None:
    """With the code for one row taken away nothing is missing, whether or not blocks are full."""
    monkeypatch.setattr(numba_templates, "ROW", "row_fill(out, base, d, NAN)\nspecial += 1\ncontinue")
    rng = np.random.default_rng(3)
    for n, d in ((29, 2), (24, 7), (1, 16), (5, 16)):
        theta = rng.normal(size=(n, d))
        theta[::3, : (d + 1) // 2] = 4.0  # equal ones
        assert left_over(name, theta) == 0
    assert left_over(name, rng.normal(size=(6, 200))) == 6


@pytest.mark.parametrize("name", BLOCKS)
def test_what_a_block_does_not_finish_is_left_to_the_code_for_one_row(name: str, monkeypatch: Any) -> None:
    for part in ("MARGIN", "DENSE"):
        hasty = getattr(numba_block, part).replace("range(17)", "range(2)").replace("iteration == 16", "iteration == 1")
        assert "range(2)" in hasty and "iteration == 1 " in hasty
        monkeypatch.setattr(numba_block, part, hasty)
    rng = np.random.default_rng(4)
    for d in (3, 7, 16):
        assert left_over(name, rng.normal(size=(29, d))) == 0


@pytest.mark.parametrize("name", FAMILIES)
def test_only_infinite_scores_are_left_to_numpy(name: str) -> None:
    """Rows of which every class is a candidate are the kernel's too, and so are those with NaN or without a score."""
    rng = np.random.default_rng(5)
    for d in (4, 16, 32, 40, 64, 300):
        theta = rng.normal(size=(20, d)) * np.where(np.arange(20) % 2, 1e-3, 3.0)[:, None]
        theta[3] = 0.25
        assert left_over(name, theta) == 0
        theta[7, 1], theta[9, 2], theta[9, 3] = np.inf, np.inf, -np.inf
        assert left_over(name, theta) == 2


def test_a_helper_that_fails_leaves_the_work_to_others() -> None:
    helpers, done = team.Helpers(), threading.Event()

    def fails() -> None:
        raise MemoryError

    helpers.start(1)
    helpers.wake(fails, 1)
    helpers.wake(done.set, 1)
    assert done.wait(10) and helpers.count == 1


def word(helpers: team.Helpers, box: int = 0, which: int = 0) -> Any:
    return ctypes.c_int64.from_address(helpers.boxes + box * team.BOX + 8 * which)


def status(helpers: team.Helpers) -> int:
    return word(helpers).value


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
    word(helpers).value = 0  # dismissed
    wake(lambda: None, 1)
    assert eventually(lambda: status(helpers) == 0 and helpers.jobs.empty())
    np.testing.assert_allclose(reg.predict(small, target="numba"), exact[0], rtol=0, atol=1e-14)
    assert woken == [1, 1, 1]


def test_all_helpers_work_at_once(monkeypatch: Any) -> None:
    """Woken at first, then handed the job while they watch: a kernel that waits for four threads has them."""
    helpers, together, missed = team.Helpers(), threading.Barrier(4), []
    monkeypatch.setattr(team, "helpers", helpers)
    monkeypatch.setattr(team, "THREADS", 4)
    monkeypatch.setattr(team, "LOOKS", 2**60)
    words = [ctypes.c_int64] * 14

    @ctypes.CFUNCTYPE(ctypes.c_int32, *words, ctypes.c_double, ctypes.c_int64, ctypes.c_int64)
    def kernel(*given: Any) -> int:
        try:
            together.wait(10)
        except threading.BrokenBarrierError:
            missed.append(threading.get_ident())
        ctypes.c_int64.from_address(given[9] + 8).value = given[12]  # all rows are finished
        return 0

    address = ctypes.cast(kernel, ctypes.c_void_p).value
    wake = helpers.wake
    woken: list[int] = []
    monkeypatch.setattr(helpers, "wake", lambda job, count: (woken.append(count), wake(job, count)))
    try:
        for _ in range(3):
            assert team.share(address, (), [0] * 5, 4, team.ENOUGH, team.ENOUGH, 0.0, 0, 64, 0) == 0
            assert not missed and woken == [3] and helpers.count == 3
            assert eventually(lambda: all(word(helpers, box).value == 1 for box in range(3)))  # they watch
    finally:
        for box in range(3):
            word(helpers, box).value = 0  # dismissed


def test_there_are_no_more_helpers_than_boxes(monkeypatch: Any) -> None:
    monkeypatch.setattr(team, "HELPERS", 2)
    monkeypatch.setattr(team, "helpers", team.Helpers())
    monkeypatch.setattr(team, "THREADS", 50)
    reg, theta = member("gini"), np.random.default_rng(2).normal(size=(20000, 20))
    np.testing.assert_allclose(reg.predict(theta, target="numba"), reg.predict(theta, target="numpy"), atol=1e-13)
    assert team.helpers.count == 2
    end = team.helpers.memory.ctypes.data + team.helpers.memory.nbytes
    assert team.helpers.boxes % 64 == 0 and team.helpers.boxes + 2 * team.BOX <= end


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
