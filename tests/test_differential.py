"""Every target against the mpmath oracle, over entropies, domains, dtypes, shapes and scores.

A new target, domain or entropy is one line in TARGETS, DOMAINS or tests.oracle.MEMBERS; half-lines, the line and
composite entropies have truths of their own.
"""

from __future__ import annotations

import builtins
import functools
import math
import types
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

import fysym
from fysym.runtime.shared_library import SharedLibrary, compiler

from . import families
from .generator import Known, entropies
from .oracle import MEMBERS, Oracle, Truth, member, member_oracle
from .test_random import DEADLINE, distance, wrong_derivative, wrong_loss, wrong_prediction

CHUNKS, EXAMPLES = 8, 30  # tests, and draws in each
# Scores of these sizes: all predictions alike, moderate, far apart, and beyond what a square of them can hold.
SCALES = (0.0, 1e-300, 1e-8, 0.1, 1.0, 10.0, 1e4, 1e15, 1e200)
FLOATS = {np.float64: 1e-13, np.float32: 2e-6}


# --- tables --------------------------------------------------------------------------------------------


def standalone(reg: Any) -> Any:
    """The emitted module, run where neither this package nor SymPy can be imported."""
    module = types.ModuleType("emitted")
    module.__builtins__ = {**vars(builtins), "__import__": _import}  # type: ignore[attr-defined]
    exec(compile(reg.source(), "<emitted>", "exec"), module.__dict__)
    return module


def _import(name: str, *rest: Any) -> Any:
    if name.split(".")[0] in ("fysym", "sympy"):
        raise ImportError(f"an emitted module imports {name}")
    return builtins.__import__(name, *rest)


def library(reg: Any) -> Any:
    """The emitted C file, called on arrays; None where a function of the entropy has no C code."""
    try:
        text = reg.source("c")
    except fysym.UnsupportedError:
        return None
    return SharedLibrary(text, reg._module)


# How to get functions predict, loss, ... from a compiled entropy; what a target lacks is not checked.
TARGETS: dict[str, Callable[[Any], Any]] = {
    "as called": lambda reg: reg,
    "numpy": lambda reg: types.SimpleNamespace(
        **{name: functools.partial(getattr(reg, name), target="numpy") for name in ("predict", "value_and_grad", "jvp")}
    ),
    "numpy source": standalone,
    **({"c": library} if compiler() else {}),
}
# The total of a prediction, None where each coordinate is by itself.
DOMAINS: dict[str, float | None] = {"simplex": 1, "budget 2": 2, "budget 1/2": 0.5, "cube": None}


def true_row(oracle: Oracle, scores: list[float], total: float | None) -> Truth:
    """The truth for finite scores; huge ones are taken relative to the top one, which changes no p and no loss."""
    with mpmath.workdps(700):
        top = max(scores)
        shift = mpmath.mpf(top if max(map(abs, scores)) > 1e9 and total is not None else 0.0)
        moved = [mpmath.mpf(x) - shift for x in scores]
    return oracle.solve(moved, total=total)


# --- cases ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Entropy:
    """A compiled entropy, its truth, and whether h is finite at 0 and 1 (a label has a finite loss then)."""

    name: str
    reg: Any
    oracle: Oracle
    finite: bool


@functools.cache
def named(name: str) -> Entropy:
    return Entropy(name, member(name), member_oracle(name), True)


def generated(known: Known) -> Entropy | None:
    """A random entropy, None where the compiler does not decide it in time."""
    try:
        reg = fysym.compile(known.text, deadline=DEADLINE)
    except fysym.UndecidedError:
        return None
    return Entropy(known.text, reg, known.oracle(reg.inverse), known.bounded)


@functools.lru_cache(maxsize=256)
def functions(target: str, entropy: Entropy, domain: str) -> Any:
    return TARGETS[target](on(entropy, domain))


@functools.lru_cache(maxsize=256)
def on(entropy: Entropy, domain: str) -> Any:
    """The same entropy, with h(0) = h(1) = 0, compiled for another domain."""
    if domain == "simplex":
        return entropy.reg
    total = DOMAINS[domain]
    return fysym.compile(entropy.oracle.h, domain="cube" if total is None else fysym.budget(total), deadline=DEADLINE)


@dataclass(frozen=True)
class Scores:
    """An array of scores: rows along `axis`, -inf where masked."""

    array: np.ndarray
    axis: int

    def rows(self) -> np.ndarray:
        """The rows as a matrix."""
        return np.moveaxis(self.array, self.axis, -1).reshape(-1, self.array.shape[self.axis])


@st.composite
def scores(draw: st.DrawFn) -> Scores:
    """Any dtype, up to three dimensions and any axis, with ties, masks and all scales."""
    dtype = draw(st.sampled_from([np.float64, np.float64, np.float32, np.float16, np.int64]))
    d = draw(st.integers(1, 6))
    batch = draw(st.sampled_from([(), (), (1,), (2,), (2, 1), (0,)]))
    axis = draw(st.integers(0, len(batch)))
    size = math.prod(batch) * d
    values = st.floats(-4, 4, allow_subnormal=False) | st.integers(-8, 8).map(lambda k: k / 4)
    drawn = np.array(draw(st.lists(values, min_size=size, max_size=size)))
    scale = draw(st.sampled_from(SCALES))
    shift = draw(st.sampled_from([0.0, 0.0, -37.25, 1e6]))
    if np.issubdtype(dtype, np.integer):
        array = np.round(drawn * min(scale, 1e4)).astype(dtype)
    else:
        top = 0.1 * float(np.finfo(dtype).max)
        array = np.clip(drawn * scale + shift, -top, top).astype(dtype)
        for place in draw(st.lists(st.integers(0, max(size - 1, 0)), max_size=2)) if size and d > 1 else ():
            array[place] = -np.inf
    array = array.reshape(*batch, d)
    array[np.isneginf(array).all(axis=-1)] = 0.0 if not np.issubdtype(dtype, np.integer) else 0
    axis = draw(st.sampled_from([axis, axis - len(batch) - 1]))
    return Scores(np.moveaxis(array, -1, axis), axis)


@st.composite
def cases(draw: st.DrawFn) -> tuple[str | Known, str, str, Scores, int]:
    """An entropy, a target, a domain, scores, and a number that picks labels and directions."""
    entropy = draw(st.sampled_from(sorted(MEMBERS))) if draw(st.integers(0, 9)) else draw(entropies())
    some = [*DOMAINS, *["simplex"] * 9] if isinstance(entropy, Known) else [*DOMAINS]  # compiled once more elsewhere
    target, domain = draw(st.sampled_from(sorted(TARGETS))), draw(st.sampled_from(some))
    return entropy, target, domain, draw(scores()), draw(st.integers(0, 2**16))


# --- checks --------------------------------------------------------------------------------------------


def wrong_case(entropy: Entropy, target: str, domain: str, given_scores: Scores, number: int) -> list[str]:
    """Everything that the target gets wrong for these scores."""
    code, rng = functions(target, entropy, domain), np.random.default_rng(number)
    if code is None:
        return []
    array, axis, total = given_scores.array, given_scores.axis, DOMAINS[domain]
    rows = given_scores.rows()
    kind = np.float64 if array.dtype.kind == "i" else array.dtype.type if array.dtype != np.float16 else np.float32
    allowed = [np.flatnonzero(np.isfinite(row)) for row in rows.astype(np.float64)]
    if min(map(len, allowed), default=rows.shape[1]) < (total or 0):
        return []  # too few classes
    p = code.predict(array, axis=axis)
    wrong = [] if p.dtype == kind and p.shape == array.shape else [f"predict gives {p.dtype} {p.shape}"]
    wanted = np.zeros(rows.shape)
    for k, finite in enumerate(allowed):
        ones = rng.choice(finite, size=max(1, int(total or rng.integers(1, len(finite) + 1))), replace=False)
        wanted[k, ones] = 0.5 if total == 0.5 else 1.0
    shape = tuple(np.delete(array.shape, axis))
    if total == 1:
        y = wanted.argmax(axis=1).reshape(shape)
    else:
        y = np.moveaxis(wanted.reshape(*shape, rows.shape[1]), -1, axis)
    losses, grads = code.value_and_grad(array, y, axis=axis)
    if np.shape(losses) != shape or np.shape(grads) != array.shape:
        return [*wrong, f"value_and_grad gives {np.shape(losses)}, {np.shape(grads)}"]
    predictions = Scores(p, axis).rows()
    rounding = 4e-16 if kind == np.float64 else FLOATS[kind]
    if not (np.abs(Scores(grads, axis).rows() - (predictions - wanted)) <= rounding).all():
        wrong.append("grad is not predict - y")
    direction = rng.normal(size=array.shape).astype(kind)
    turned = Scores(code.jvp(array, direction, axis=axis), axis).rows() if hasattr(code, "jvp") else None
    for k, row in enumerate(rows):
        inside = allowed[k]
        truth = true_row(entropy.oracle, [float(x) for x in row[inside]], total)
        if predictions[k][np.setdiff1d(np.arange(len(row)), inside)].any():
            wrong.append(f"a masked score has a probability: {predictions[k]!r}")
        wrong += wrong_row(entropy, kind, predictions[k][inside], np.ravel(losses)[k], truth, wanted[k][inside])
        corners = (entropy.oracle.slope_low, entropy.oracle.slope_high)
        corner = total is None and any(x in corners for x in truth.theta)  # no derivative there
        if (
            turned is not None
            and kind == np.float64
            and 1e-9 < np.ptp(row[inside].astype(np.float64)) < 1e3
            and not corner
        ):
            v = Scores(direction, axis).rows()[k][inside]
            wrong += wrong_derivative(turned[k][inside], entropy.oracle, truth, v)
    return wrong


def wrong_row(entropy: Entropy, kind: Any, p: np.ndarray, loss: Any, truth: Truth, wanted: np.ndarray) -> list[str]:
    """What is wrong with one row, without its masked scores."""
    wrong = []
    if kind == np.float64:
        wrong += wrong_prediction(p, entropy.oracle, truth)
    elif max(distance(a, b) for a, b in zip(p, truth.p, strict=True)) > FLOATS[kind]:
        wrong.append(f"in {kind.__name__} p = {p!r}, truth {[mpmath.nstr(x, 9) for x in truth.p]}")
    if entropy.finite:
        tolerance = 1e-12 if kind == np.float64 else FLOATS[kind]
        wrong += wrong_loss(loss, entropy.oracle, truth, wanted, tolerance)
    elif truth.total == 1 and len(p) > 1 and loss != np.inf:
        wrong.append(f"L = {loss!r} for a label, though h is not finite at both ends")
    return wrong


# --- tests ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_targets_agree_with_the_truth(chunk: int) -> None:
    @seed(chunk)
    @settings(max_examples=EXAMPLES, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(cases())
    def run(case: tuple[str | Known, str, str, Scores, int]) -> None:
        entropy, *rest = case
        compiled = named(entropy) if isinstance(entropy, str) else generated(entropy)
        if compiled is not None:
            try:
                wrong = wrong_case(compiled, *rest)
            except fysym.UndecidedError:  # the compiler does not trust its own code
                return
            assert not wrong, "\n".join([compiled.name, *wrong])

    run()


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", MEMBERS)
def test_every_member_on_every_target(name: str, target: str) -> None:
    rng = np.random.default_rng(len(name))
    for dtype in FLOATS:
        array = rng.normal(size=(2, 4)).astype(dtype)
        array[0, 1] = -np.inf
        array[1, 2] = array[1].max()
        for domain in DOMAINS:
            wrong = wrong_case(named(name), target, domain, Scores(array, -1), 3)
            assert not wrong, "\n".join(wrong)


# On a half-line and on the line each coordinate is by itself: p solves g'(p) = theta.


def solved_line(g: Any, low: Any, score: Any) -> Any:
    """p by halving: the lower end where g' begins above the score."""
    with mpmath.workdps(60):
        slope = functools.partial(mpmath.diff, g)
        left, right = mpmath.mpf(low if low == 0 else -1), mpmath.mpf(1)
        while slope(right) < score:
            right *= 4
        if low < 0:
            while slope(left) > score:
                left *= 4
        elif slope(mpmath.mpf(10) ** -45) >= score:
            return mpmath.mpf(0)
        else:
            left = mpmath.mpf(10) ** -45
            while slope(right / 16) > score:
                right /= 16
        for _ in range(170):
            middle = (left + right) / 2
            left, right = (middle, right) if slope(middle) < score else (left, middle)
        return right


LINES = {
    "t - t*log(t)": ("orthant", lambda t: t * mpmath.log(t) - t),
    "-t**(3/2)": ("orthant", lambda t: t * mpmath.sqrt(t)),
    "log(1 + t) - t**2": ("orthant", lambda t: t**2 - mpmath.log(1 + t)),
    "-t**2/2": ("reals", lambda t: t**2 / 2),
    "-cosh(t)": ("reals", mpmath.cosh),
    "-t**2 - sin(t)/2": ("reals", lambda t: t**2 + mpmath.sin(t) / 2),
    "-exp(t) - exp(-2*t)": ("reals", lambda t: mpmath.exp(t) + mpmath.exp(-2 * t)),
}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", LINES)
def test_lines_agree_with_the_truth(name: str, target: str) -> None:
    """Predictions above 1e-12 to 1e-11 of their size, losses to 1e-12 of what they are made of; float32 to 2e-6."""
    domain, g = LINES[name]
    code = TARGETS[target](fysym.compile(name, domain=domain))
    low = 0 if domain == "orthant" else -1
    rng = np.random.default_rng(len(name))
    for scale in (1e-6, 0.3, 2.0, 30.0):
        for dtype, rounding in ((np.float64, 1e-12), (np.float32, 2e-6)):
            theta = (scale * rng.normal(size=(2, 3))).astype(dtype)
            y = np.maximum(rng.normal(size=(2, 3)), low * np.inf if low else 0.0).astype(dtype)
            y[0, 0] = 0
            p, (losses, grads) = code.predict(theta), code.value_and_grad(theta, y)
            assert p.dtype == dtype and losses.shape == (2,)
            np.testing.assert_allclose(grads, p - y, rtol=4 * np.finfo(dtype).eps, atol=4 * np.finfo(dtype).eps)
            for i in range(2):
                loss = size = mpmath.mpf(0)
                for score, label, found in zip(theta[i], y[i], p[i], strict=True):
                    truth = solved_line(g, low, mpmath.mpf(float(score)))
                    assert distance(found, truth) <= 10 * rounding * abs(truth) + 1e-12, (score, found, truth)
                    values = [g(v) if v or low else mpmath.mpf(0) for v in (truth, mpmath.mpf(float(label)))]
                    loss += float(score) * (truth - float(label)) - values[0] + values[1]
                    size += abs(float(score)) * (abs(truth) + abs(float(label))) + sum(map(abs, values))
                assert distance(losses[i], loss) <= rounding * (1 + size), (theta[i], y[i], losses[i], loss)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", ["norm_1.3", "norm_2", "norm_3", "squared_norm_1.5", "renyi_0.5", "renyi_0.9"])
def test_composites_agree_with_the_truth(name: str, target: str) -> None:
    """Predictions to 1e-13, or to what four units in the last place of a score do; losses to 1e-12; float32 to 2e-6."""
    code = TARGETS[target](families.member(name))
    if code is None:
        pytest.skip(f"no code for composite entropies in {target}")
    rng = np.random.default_rng(len(name))
    for scale in (1e-6, 0.3, 2.0, 30.0):
        for dtype, rounding in ((np.float64, 1e-13), (np.float32, 2e-6)):
            theta = (scale * rng.normal(size=(2, 4))).astype(dtype)
            y = rng.dirichlet(np.ones(4), size=2).astype(dtype)
            y[0] = [0, 0, 1, 0]
            p, (losses, grads) = code.predict(theta), code.value_and_grad(theta, y)
            assert p.dtype == dtype and losses.shape == (2,)
            np.testing.assert_allclose(grads, p - y, rtol=4 * np.finfo(dtype).eps, atol=4 * np.finfo(dtype).eps)
            for i in range(2):
                exact = families.truth(name, theta[i])
                unit = 4 * float(np.spacing(np.abs(theta[i]).max()))
                for j in range(4):
                    moved = [families.truth(name, theta[i] + sign * unit * np.eye(4)[j])[j] for sign in (1.0, -1.0)]
                    assert distance(p[i, j], exact[j]) <= rounding + abs(moved[0] - moved[1]), (theta[i], p[i], exact)
                loss = families.true_loss(name, theta[i], exact, y[i])
                allowed = 10 * rounding * (1 + abs(float(loss))) + 4 * unit
                assert distance(losses[i], loss) <= allowed, (theta[i], y[i], losses[i], loss)


def test_an_emitted_module_cannot_import_the_package() -> None:
    reg = types.SimpleNamespace(source=lambda: "import fysym")
    with pytest.raises(ImportError, match="fysym"):
        standalone(reg)
