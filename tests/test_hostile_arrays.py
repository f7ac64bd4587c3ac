"""Hostile arrays: each method, on each target, gives the right numbers or a clear error.

Right is what the same values give as a plain array of float64, or what arithmetic by hand or fifty digits say.
A new target is one more line in TARGETS. `python -m tests.test_hostile_arrays --calls 10000` runs the threads longer.
"""

from __future__ import annotations

import array
import decimal
import functools
import importlib.util
import math
import multiprocessing
import os
import sys
import tempfile
import threading
import tracemalloc
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sympy

import fysym

from .oracle import member


@dataclass(frozen=True)
class Target:
    """Where methods run: how to get them from a regularizer, and the error that they raise."""

    load: Callable[[fysym.Regularizer], Any]
    error: Callable[[Any], type[Exception]]


def imported(source: str) -> Any:
    """The text of a module, imported from a file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "emitted.py")
        path.write_text(source, encoding="utf-8")
        spec = importlib.util.spec_from_file_location("emitted", path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    return module


TARGETS = {
    "methods": Target(lambda reg: reg, lambda _: fysym.InputError),
    "numpy module": Target(lambda reg: imported(reg.source()), lambda module: module.InputError),
}
# A softmax, cut-offs, a closed form that is not exponential, infinite slopes, numeric inverses.
NAMES = ["shannon", "gini", "tsallis_1.5", "fermi_dirac", "gini_sine"]


@functools.cache
def loaded(target: str, name: str) -> Any:
    return TARGETS[target].load(member(name))


@pytest.fixture(params=TARGETS)
def target(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(params=NAMES)
def methods(request: pytest.FixtureRequest, target: str) -> Any:
    return loaded(target, request.param)


@pytest.fixture
def gini(target: str) -> Any:
    return loaded(target, "gini")


@pytest.fixture(autouse=True)
def nothing_warns() -> Iterator[None]:
    with warnings.catch_warnings(), np.errstate(all="warn"):
        warnings.simplefilter("error")
        yield


def refused(target: str, methods: Any, call: Callable[[], Any], *words: str) -> None:
    """The call raises the target's own error, which is a ValueError and holds the words."""
    with pytest.raises(TARGETS[target].error(methods)) as caught:
        call()
    assert isinstance(caught.value, ValueError)
    assert all(word in str(caught.value) for word in words), str(caught.value)


THETA = np.array([[0.5, -1.25, 2.0, 0.0], [0.0, 0.25, -0.5, 0.25], [0.5, -1.25, 2.0, 0.0]])
SHARES = np.array([[0.5, 0.25, 0.125, 0.125], [0.0, 1.0, 0.0, 0.0], [0.25, 0.25, 0.25, 0.25]])
P = np.array([[0.25, 0.25, 0.375, 0.125], [0.5, 0.125, 0.125, 0.25], [0.125, 0.125, 0.5, 0.25]])
LABELS = np.array([2, 0, 1])

# What takes the hostile array: each a function of the methods and the array.
ON_SCORES: dict[str, Callable[[Any, Any], Any]] = {
    "predict": lambda m, x: m.predict(x),
    "threshold": lambda m, x: m.threshold(x),
    "conjugate": lambda m, x: m.conjugate(x),
    "jacobian": lambda m, x: m.jacobian(x),
    "loss": lambda m, x: m.loss(x, LABELS),
    "grad": lambda m, x: m.grad(x, SHARES),
    "value_and_grad": lambda m, x: np.concatenate([part.ravel() for part in m.value_and_grad(x, LABELS)]),
    "jvp": lambda m, x: m.jvp(x, P),
    "vjp": lambda m, x: m.vjp(x, P),
    "v of jvp": lambda m, x: m.jvp(THETA, x),
}
ON_SHARES: dict[str, Callable[[Any, Any], Any]] = {
    "entropy": lambda m, x: m.entropy(x),
    "y of loss": lambda m, x: m.loss(THETA, x),
    "y of grad": lambda m, x: m.grad(THETA, x),
    "y of bregman": lambda m, x: m.bregman(x, P),
    "p of bregman": lambda m, x: m.bregman(SHARES, x),
    "p of score": lambda m, x: m.score(x, LABELS),
    "y of score": lambda m, x: m.score(P, x),
}
CALLS = ON_SCORES | ON_SHARES


# Containers: the same values, held in odd ways


class Subclass(np.ndarray):
    """A subclass that refuses to be calculated with."""

    def __array_ufunc__(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError("no arithmetic on this")


class Arraylike:
    def __init__(self, x: np.ndarray) -> None:
        self.x = x

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return self.x.astype(dtype or self.x.dtype)


class Interface:
    """Offers the array interface and nothing else."""

    def __init__(self, x: np.ndarray) -> None:
        self.x = x
        self.__array_interface__ = x.__array_interface__


def unaligned(x: np.ndarray) -> np.ndarray:
    room = np.zeros(x.nbytes + 1, np.uint8)
    room[1:] = np.frombuffer(x.tobytes(), np.uint8)
    held = room[1:].view(x.dtype).reshape(x.shape)
    assert not held.flags.aligned
    return held


def with_gaps(x: np.ndarray) -> np.ndarray:
    room = np.full((2 * x.shape[0], 3 * x.shape[1]), np.nan)
    room[::2, 1::3] = x
    return room[::2, 1::3]


def read_only(x: np.ndarray) -> np.ndarray:
    x = x.copy()
    x.flags.writeable = False
    return x


def memory_mapped(x: np.ndarray) -> np.ndarray:
    with tempfile.NamedTemporaryFile() as file:
        held = np.memmap(file.name, dtype=x.dtype, shape=x.shape)
        held[:] = x
        return held


def objects(of: Callable[[float], Any]) -> Callable[[np.ndarray], np.ndarray]:
    return lambda x: np.array([[of(float(entry)) for entry in row] for row in x], dtype=object)


CONTAINERS: dict[str, Callable[[np.ndarray], Any]] = {
    "negative strides": lambda x: x[::-1, ::-1].copy()[::-1, ::-1],
    "Fortran order": np.asfortranarray,
    "gaps": with_gaps,
    "read-only": read_only,
    "unaligned": unaligned,
    "memory-mapped": memory_mapped,
    "big-endian": lambda x: x.astype(">f8"),
    "big-endian float32": lambda x: x.astype(">f4"),
    "float16": lambda x: x.astype(np.float16),
    "float32": lambda x: x.astype(np.float32),
    "longdouble": lambda x: x.astype(np.longdouble),
    "lists": lambda x: x.tolist(),
    "tuples": lambda x: tuple(map(tuple, x.tolist())),
    "rows": lambda x: list(x),
    "fractions": objects(Fraction),
    "decimals": objects(lambda entry: decimal.Decimal(entry)),
    "SymPy numbers": objects(lambda entry: sympy.Rational(entry)),
    "NumPy numbers as objects": objects(np.float64),
    "zero-dimensional arrays as objects": objects(lambda entry: entry),
    "memoryview": lambda x: memoryview(x),
    "an object with __array__": Arraylike,
    "the array interface": Interface,
    "a subclass": lambda x: x.view(Subclass),
    "a matrix": lambda x: np.asarray(x).view(np.matrix),
    "a masked array without a mask": np.ma.masked_array,
    "a masked array that masks nothing": lambda x: np.ma.masked_array(x, np.zeros(x.shape, bool)),
    "an array of arrays": lambda x: [array.array("d", row) for row in x.tolist()],
}


@pytest.mark.parametrize("hold", CONTAINERS.values(), ids=CONTAINERS.keys())
def test_a_container_does_not_matter(methods: Any, hold: Any) -> None:
    for name, call in CALLS.items():
        plain = np.ascontiguousarray(THETA if name in ON_SCORES else P)
        held = hold(plain.copy())
        got, expected = call(methods, held), call(methods, plain)
        assert type(got) in (np.ndarray, np.float64, np.float32), name
        tolerance = 0.0 if got.dtype == np.float64 else 2e-6
        np.testing.assert_allclose(got, expected, rtol=tolerance, atol=tolerance, err_msg=name, strict=tolerance == 0)
        if isinstance(held, np.ndarray):
            assert not np.shares_memory(got, held) and got.flags.writeable and got.dtype.isnative, name
        np.testing.assert_array_equal(np.array(held, dtype=np.float64), plain, err_msg=name)


def test_a_row_that_is_repeated_without_memory(methods: Any) -> None:
    for name, call in CALLS.items():
        values = THETA if name in ON_SCORES else P
        held = np.broadcast_to(values[:1], values.shape)
        np.testing.assert_array_equal(call(methods, held), call(methods, held.copy()), err_msg=name)
        np.testing.assert_array_equal(held[0], values[0])


LABEL_CONTAINERS: dict[str, Callable[[np.ndarray], Any]] = {
    "lists": lambda x: x.tolist(),
    "big-endian": lambda x: x.astype(">i2"),
    "uint8": lambda x: x.astype(np.uint8),
    "negative strides": lambda x: x[::-1].copy()[::-1],
    "read-only": read_only,
    "memoryview": memoryview,
    "array": lambda x: array.array("l", x.tolist()),
    "tuple of NumPy integers": tuple,
    "a subclass": lambda x: x.view(Subclass),
    "an object with __array__": Arraylike,
}


@pytest.mark.parametrize("hold", LABEL_CONTAINERS.values(), ids=LABEL_CONTAINERS.keys())
def test_a_container_of_labels_does_not_matter(methods: Any, hold: Any) -> None:
    for method, x in (("loss", THETA), ("grad", THETA), ("score", P)):
        call = getattr(methods, method)
        np.testing.assert_array_equal(call(x, hold(LABELS.copy())), call(x, LABELS))


# What is no array of real numbers

NOT_NUMBERS: dict[str, Any] = {
    "complex": THETA + 0j,
    "complex with an imaginary part": THETA + 1j,
    "text": THETA.astype(str),
    "bytes": THETA.astype("S8"),
    "dates": np.zeros(THETA.shape, "datetime64[s]"),
    "durations": np.zeros(THETA.shape, "timedelta64[s]"),
    "records": np.zeros(THETA.shape, [("x", float), ("y", float)]),
    "raw bytes": np.zeros(THETA.shape, "V8"),
    "None": np.full(THETA.shape, None),
    "SymPy symbols": np.full(THETA.shape, sympy.Symbol("x")),
    "SymPy complex": np.full(THETA.shape, sympy.I),
    "huge integers": [[10**400] * 4] * 3,
    "ragged": [[1.0, 2.0], [3.0]],
    "ragged objects": np.array([[1.0], [1.0, 2.0]], object),
    "a set": {1.0, 2.0},
    "a generator": (x for x in (1.0, 2.0)),
    "a mapping": {"a": 1.0},
    "a function": np.sin,
    "a type": float,
    "an object": object(),
    "nothing": None,
    "a text": "0.5",
}


@pytest.mark.parametrize("given", NOT_NUMBERS.values(), ids=NOT_NUMBERS.keys())
def test_what_is_not_real_numbers_is_refused(target: str, gini: Any, given: Any) -> None:
    for call in CALLS.values():
        refused(target, gini, lambda call=call: call(gini, given))


def test_text_in_an_array_of_objects_is_refused(target: str, gini: Any) -> None:
    for call in ON_SCORES.values():
        refused(target, gini, lambda call=call: call(gini, np.full(THETA.shape, "1", object)))


def test_a_single_number_is_refused(target: str, gini: Any) -> None:
    for call in CALLS.values():
        for given in (1.0, np.float64(1.0), np.array(1.0), np.array(1.0, object), np.ma.masked):
            refused(target, gini, lambda call=call, given=given: call(gini, given))


@pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 0), (0, 4, 0)], ids=str)
def test_zero_classes_are_refused(target: str, gini: Any, shape: Any) -> None:
    for call in CALLS.values():
        refused(target, gini, lambda call=call: call(gini, np.zeros(shape)))


@pytest.mark.parametrize("batch", [(0,), (2, 0), (0, 3)], ids=str)
def test_no_rows_give_no_rows(methods: Any, batch: tuple[int, ...]) -> None:
    theta, labels = np.zeros((*batch, 4)), np.zeros(batch, int)
    for got in (methods.predict(theta), methods.grad(theta, labels), methods.jvp(theta, theta)):
        assert got.shape == theta.shape
    assert methods.jacobian(theta).shape == (*batch, 4, 4)
    for got in (
        methods.loss(theta, theta),
        methods.entropy(theta),
        methods.score(theta, labels),
        methods.threshold(theta),
    ):
        assert got.shape == batch


def test_the_classes_are_last_unless_told(methods: Any) -> None:
    """On a square array, where a wrong default is no error."""
    theta = np.array([[0.5, -0.25, 2.0], [0.0, 0.125, 0.25], [-1.0, 1.0, 0.75]])
    p, y = np.array([[0.5, 0.25, 0.25], [0.125, 0.5, 0.375], [0.375, 0.25, 0.375]]), np.array([2, 0, 1])
    given = {
        "predict": (theta,), "loss": (theta, y), "grad": (theta, y), "value_and_grad": (theta, y),
        "jvp": (theta, p), "vjp": (theta, p), "jacobian": (theta,), "threshold": (theta,), "conjugate": (theta,),
        "entropy": (p,), "bregman": (p[[1, 2, 0]], p), "score": (p, y),
    }  # fmt: skip
    for name, args in given.items():
        call = getattr(methods, name)
        np.testing.assert_equal(call(*args), call(*args, axis=-1))


@pytest.mark.parametrize("axis", [2, -3, 10**30])
def test_an_axis_that_does_not_exist_is_refused(target: str, gini: Any, axis: Any) -> None:
    refused(target, gini, lambda: gini.predict(THETA, axis=axis), "axis")


@pytest.mark.parametrize("axis", [None, 1.0, "0", (0,), np.array([0, 1])], ids=str)
def test_an_axis_that_is_none_is_refused(target: str, gini: Any, axis: Any) -> None:
    refused(target, gini, lambda: gini.predict(THETA, axis=axis), "axis")


# Masked arrays


def masked(x: np.ndarray) -> Any:
    return np.ma.masked_array(x, [[False, True, False, False], [False] * 4, [True, False, False, False]])


def test_a_masked_score_is_a_class_that_does_not_exist(methods: Any) -> None:
    dropped = THETA.copy()
    dropped[0, 1] = dropped[2, 0] = -np.inf
    for name, call in ON_SCORES.items():
        if name != "v of jvp":
            np.testing.assert_array_equal(call(methods, masked(THETA)), call(methods, dropped))
    single = np.ma.masked_array(THETA.astype(np.float32), masked(THETA).mask)
    np.testing.assert_allclose(methods.predict(single), methods.predict(np.float32(dropped)), rtol=2e-6)
    integers = np.ma.masked_array(np.arange(12).reshape(3, 4), masked(THETA).mask)
    assert methods.predict(integers)[0, 1] == 0


@pytest.mark.parametrize("name", ["entropy", "p of bregman", "p of score"])
def test_a_masked_probability_is_refused(target: str, gini: Any, name: str) -> None:
    refused(target, gini, lambda: ON_SHARES[name](gini, masked(P)), "masked")


@pytest.mark.parametrize("name", ["y of loss", "y of grad", "y of bregman", "y of score", "v of jvp"])
def test_a_masked_target_or_direction_is_refused(target: str, gini: Any, name: str) -> None:
    refused(target, gini, lambda: CALLS[name](gini, masked(P)))


def test_a_masked_label_is_refused(target: str, gini: Any) -> None:
    labels = np.ma.masked_array(LABELS, [False, True, False])
    refused(target, gini, lambda: gini.loss(THETA, labels))
    refused(target, gini, lambda: gini.score(P, labels))


# Values


PAYLOADS = np.array([1, 0xDEADBEEF, 1 << 51, (1 << 51) | 7, (1 << 52) - 1, (1 << 63) | 1], np.uint64) | np.uint64(
    0x7FF << 52
)


@pytest.mark.parametrize("bits", PAYLOADS, ids=hex)
def test_any_nan_stays_in_its_row(methods: Any, bits: np.uint64) -> None:
    theta = THETA.copy()
    theta.view(np.uint64)[1, 2] = bits
    for name, call in ON_SCORES.items():
        if name in ("v of jvp", "value_and_grad"):
            continue
        got, plain = call(methods, theta), call(methods, THETA)
        assert np.isnan(got[1]).all(), name
        np.testing.assert_array_equal(got[[0, 2]], plain[[0, 2]])
    assert theta.view(np.uint64)[1, 2] == bits


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, -1e-300, -5e-324, 1e308])
def test_a_share_that_is_none_is_refused(target: str, gini: Any, bad: float) -> None:
    shares = P.copy()
    shares[1, 2] = bad
    for call in ON_SHARES.values():
        refused(target, gini, lambda call=call: call(gini, shares), "row 1")


def test_minus_zero_is_zero(methods: Any) -> None:
    shares = np.where(SHARES == 0.0, -0.0, SHARES)
    for call in (methods.entropy, lambda y: methods.loss(THETA, y), lambda y: methods.bregman(y, P)):
        np.testing.assert_array_equal(call(shares), call(SHARES))
    np.testing.assert_array_equal(methods.predict(np.array([-0.0, 0.0])), [0.5, 0.5])


def test_denormal_scores_are_as_good_as_zero(methods: Any) -> None:
    tiny = np.array([5e-324, -5e-324, 2.2e-308, 0.0])
    np.testing.assert_allclose(methods.predict(tiny), 0.25, rtol=1e-15)
    assert methods.loss(tiny, 0) == pytest.approx(methods.loss(np.zeros(4), 0), rel=1e-15)
    np.testing.assert_allclose(methods.jacobian(tiny), methods.jacobian(np.zeros(4)), rtol=1e-14, atol=1e-16)
    np.testing.assert_allclose(methods.predict(np.float32([1e-45, 0.0])), 0.5, rtol=1e-7)


def test_denormal_shares(methods: Any) -> None:
    for small in (5e-324, 1e-310, 2.3e-308, 1e-300):
        y = np.array([1.0, small, 0.0])
        for got in (methods.entropy(y), methods.bregman(y, P[0, :3] / P[0, :3].sum()), methods.loss(np.zeros(3), y)):
            assert np.isfinite(got)
        corner = np.array([1.0, 0.0, 0.0])
        assert methods.entropy(y) == pytest.approx(methods.entropy(corner), abs=1e-15 + 1e3 * small)
        assert methods.loss(np.zeros(3), y) == pytest.approx(methods.loss(np.zeros(3), corner), rel=1e-15)
        assert methods.bregman(y, y) == 0


LARGEST = np.finfo(float).max


def test_scores_whose_difference_overflows(methods: Any) -> None:
    theta = np.array([[LARGEST, -LARGEST, 0.0], [-LARGEST, LARGEST, LARGEST], [LARGEST, LARGEST / 2, -LARGEST]])
    p = methods.predict(theta)
    np.testing.assert_array_equal(p[0], [1, 0, 0])
    np.testing.assert_allclose(p[1], [0, 0.5, 0.5], rtol=1e-15)
    np.testing.assert_array_equal(p[2], [1, 0, 0])
    assert (methods.loss(theta, [0, 1, 0]) < 10).all()
    assert not np.isnan(methods.jvp(theta, np.ones((3, 3)))).any()
    assert np.isfinite(methods.jacobian(theta)).all()
    np.testing.assert_allclose(methods.conjugate(theta) / LARGEST, 1.0, rtol=1e-15)
    np.testing.assert_allclose(methods.threshold(theta) / LARGEST, 1.0, rtol=1e-15)


def test_a_small_share_of_an_overflowing_difference(methods: Any) -> None:
    """The loss is <largest - theta, y> up to a few units: 2e-20 of the largest double here."""
    assert methods.loss([LARGEST, -LARGEST], [1.0, 1e-20]) == pytest.approx(2e-20 * LARGEST, rel=1e-12)


def test_a_loss_beyond_the_largest_double_is_infinite(methods: Any) -> None:
    assert methods.loss([LARGEST, -LARGEST], 1) == np.inf
    assert methods.loss([LARGEST, 0.0], 1) == pytest.approx(LARGEST, rel=1e-15)


def test_directions_near_the_largest_double(methods: Any) -> None:
    """J v is linear in v, so 2**-40 of v gives 2**-40 of the result."""
    v = np.array([LARGEST, -LARGEST / 2, LARGEST / 3, -LARGEST]) / 8
    small = methods.jvp(THETA[0], v * 2.0**-40)
    np.testing.assert_allclose(methods.jvp(THETA[0], v) * 2.0**-40, small, rtol=1e-13)


def test_directions_beyond_numbers_stay_in_their_row(methods: Any) -> None:
    v = np.ones((3, 4))
    for bad in (np.nan, np.inf, -np.inf):
        v[1, 2] = bad
        got = methods.jvp(THETA, v)
        np.testing.assert_array_equal(got[[0, 2]], methods.jvp(THETA, np.ones((3, 4)))[[0, 2]])


@pytest.mark.parametrize("scale", [1e-320, 1e-300, 1e-160, 1e160, 1e300])
def test_huge_and_tiny_scores(methods: Any, scale: float) -> None:
    theta = scale * np.array([1.0, 0.5, -1.0, 0.5])
    p = methods.predict(theta)
    expected = [1, 0, 0, 0] if scale > 1 else [0.25] * 4
    np.testing.assert_allclose(p, expected, rtol=0, atol=1e-13)
    assert abs(math.fsum(p) - 1) <= 1e-15
    for label in range(4):
        loss = methods.loss(theta, label)
        at_most = theta[0] - theta[label] + methods.loss(np.zeros(4), label)
        assert 0 <= loss <= at_most * (1 + 1e-12)


# Many classes


@pytest.mark.parametrize("name", ["shannon", "gini", "gini_sine"])
def test_a_million_classes(target: str, name: str) -> None:
    methods, d = loaded(target, name), 10**6
    theta = np.random.default_rng(0).normal(size=d)
    methods.predict(theta[:10])
    tracemalloc.start()
    try:
        p = methods.predict(theta)
        loss = methods.loss(theta, 7)
        direction = methods.jvp(theta, theta)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert p.shape == (d,) and (p >= 0).all() and abs(math.fsum(p) - 1) <= 1e-14
    assert loss > 0 and np.isfinite(direction).all() and abs(math.fsum(direction)) <= 1e-12
    assert peak < 60 * theta.nbytes
    order = np.argsort(theta)
    assert (np.diff(p[order]) >= 0).all()


# Threads and processes

INPUTS = [np.random.default_rng(k).normal(size=(1 + k % 3, 2 + k % 5)) * 10.0 ** (k % 4 - 1) for k in range(24)]


def work(methods: Any, k: int) -> list[bytes]:
    """The bytes of what a few methods return for input k."""
    theta = INPUTS[k % len(INPUTS)]
    labels = np.zeros(len(theta), int)
    if k % 3 == 0:
        return [methods.predict(theta).tobytes()]
    if k % 3 == 1:
        return [part.tobytes() for part in methods.value_and_grad(theta, labels)]
    return [methods.jvp(theta, theta).tobytes()]


def same_on_threads(methods: Any, calls: int, threads: int = 8) -> None:
    serial = [work(methods, k) for k in range(len(INPUTS) * 3)]
    barrier = threading.Barrier(threads)

    def many(offset: int) -> int:
        barrier.wait()
        return sum(work(methods, offset + k) != serial[(offset + k) % len(serial)] for k in range(calls))

    with ThreadPoolExecutor(threads) as pool:
        assert list(pool.map(many, range(threads))) == [0] * threads


def test_threads_share_one_regularizer(methods: Any) -> None:
    same_on_threads(methods, 150)


@pytest.mark.parametrize("text", ["t*(1-t)/2", "t*(1 - t) + sin(pi*t)/pi"])
def test_threads_race_to_the_first_use(text: str) -> None:
    expected = work(fysym.compile(text), 0)
    for _ in range(3):
        reg = fysym.compile(text)
        barrier = threading.Barrier(8)

        def first(_: int, reg: Any = reg, barrier: Any = barrier) -> list[bytes]:
            barrier.wait()
            return work(reg, 0)

        with ThreadPoolExecutor(8) as pool:
            assert list(pool.map(first, range(8))) == [expected] * 8


def test_threads_race_to_bind() -> None:
    family = fysym.compile("a*t*(1 - t)", params={"a": "a > 0"})
    barrier = threading.Barrier(4)

    def bound(k: int) -> bytes:
        barrier.wait()
        return family.predict(THETA, a=1 + k % 2).tobytes()

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(bound, range(4)))
    assert found == [family.bind(a=1 + k % 2).predict(THETA).tobytes() for k in range(4)]


forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")


def _in_child(methods: Any, results: Any) -> None:
    results.put([work(methods, k) for k in range(6)])


@forks
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_forked_processes_share_one_regularizer(methods: Any) -> None:
    expected = [work(methods, k) for k in range(6)]
    context: Any = multiprocessing.get_context("fork")
    results = context.Queue()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # forking beside threads, which pytest may have
        children = [context.Process(target=_in_child, args=(methods, results)) for _ in range(3)]
        for process in children:
            process.start()
    for _ in children:
        assert results.get(timeout=60) == expected
    for process in children:
        process.join(60)
        assert process.exitcode == 0


if __name__ == "__main__":
    if sys.argv[1:2] != ["--calls"]:
        sys.exit(__doc__)
    for target_name in TARGETS:
        for entropy_name in NAMES:
            same_on_threads(loaded(target_name, entropy_name), int(sys.argv[2]))
            print(f"{target_name}, {entropy_name}: 8 threads x {sys.argv[2]} calls, identical to serial", flush=True)
