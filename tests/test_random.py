"""Verdicts, facts and numbers of entropies that nobody picked; `python -m tests.test_random` runs thousands.

Every entropy comes with facts known by construction (tests/generator.py). What fails shrinks, and is kept as a line in
tests/regressions/, replayed by each run.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import math
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest
import sympy
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

import fysym
from fysym import certify, compiler, concavity, theory, witness
from fysym.deadline import Deadline
from fysym.entropy import read
from fysym.regularizer import Derivation, Regularizer

from .generator import DEFECTS, FAMILIES, Defect, Known, defects, entropies
from .oracle import Oracle, Truth, _function, _number, _real, allowed_error

KEPT = Path(__file__).parent / "regressions"
DEADLINE = 30.0  # seconds for each compilation; they take a few
UNDECIDED = 0.02  # the largest share of either kind that may stay undecided
SURE = 0.95  # the least share of accepted ones that must be proved or certified
ENTROPIES, REFUSED = 300, 100  # how many of each a run of the tests checks
CHUNK = 25  # how many of them go into one test
SPREAD = 10**4  # the distance between the numbers of two such tests
NUMBERS = 16  # one of so many has its numbers checked, and all of them have their facts checked

quiet = settings(deadline=None, database=None, suppress_health_check=list(HealthCheck))


# --- facts ---------------------------------------------------------------------------------------------


def equal(value: Any, truth: Any, digits: int = 15) -> bool:
    """Two SymPy numbers agree to so many digits; infinities exactly."""
    value, truth = sympy.sympify(value), sympy.sympify(truth)
    if value.is_infinite or truth.is_infinite:
        return bool(value == truth)
    with mpmath.workdps(60):
        one, two = _number(value), _number(truth)
        return abs(one - two) <= mpmath.mpf(10) ** -digits * max(abs(one), abs(two), mpmath.mpf(10) ** -20)


def tends(near: Any, nearer: Any) -> Any:
    """What the limit looks like from values at 1e-40 and 1e-80: a number, infinity, or None when it is not clear."""
    if abs(nearer) > 1.2 * abs(near) and abs(nearer) > 10:
        return mpmath.inf
    return nearer if abs(nearer - near) <= mpmath.mpf("1e-3") * max(abs(near), mpmath.mpf("1e-9")) else None


class Seen:
    """What mpmath sees of the derivatives of a known entropy."""

    def __init__(self, known: Known) -> None:
        with mpmath.workdps(60):
            curvature, third = known.derivative(2), known.derivative(3)
            ends = [mpmath.mpf(10) ** -k for k in (2, 3, 4, 6, 9, 13, 20)]
            grid = [mpmath.mpf(k) / 64 + mpmath.mpf("1e-11") for k in range(1, 64)]
            points = sorted([*ends, *grid, *(1 - e for e in ends)])
            bends = {x: -curvature(x) for x in points}
            seen = [bends[x] for x in points]
            dips = [k for k in range(1, len(seen) - 1) if seen[k] <= min(seen[k - 1], seen[k + 1])]
            for place in sorted({*sorted(dips, key=seen.__getitem__)[:4], seen.index(min(seen))}):
                low, high = points[max(place - 1, 0)], points[min(place + 1, len(points) - 1)]
                for _ in range(24):  # golden sections around a small value
                    step = (high - low) * mpmath.mpf("0.381966")
                    a, b = low + step, high - step
                    bends[a], bends[b] = -curvature(a), -curvature(b)
                    low, high = (low, b) if bends[a] < bends[b] else (a, high)
            self.scale = sorted(seen)[len(seen) // 2]
            self.rates = [third(x) for x in points]
        with mpmath.workdps(220):
            near = [[-curvature(abs(end - mpmath.mpf(10) ** -k)) for k in (40, 80)] for end in (0, 1)]
            self.at_ends = [tends(*pair) for pair in near]
        self.least = min(*bends.values(), *(x for pair in near for x in pair))


def wrong_facts(known: Known, reg: Any) -> list[str]:
    """What the compiler says of an entropy that is not so; empty when all is right."""
    wrong = []

    def claim(name: str, right: bool, expected: Any) -> None:
        if not right:
            fact = reg.fact(name)
            said = "nothing" if fact is None else f"{fact.value} ({fact.status}: {fact.evidence})"
            wrong.append(f"{name}: {said}; but {expected}")

    status = reg.fact("strictly_concave").status
    if status not in ("proved", "certified", "sampled"):
        wrong.append(f"strictly_concave is accepted as {status}")
    claim("margin", reg.margin is not None and equal(reg.margin, known.margin), known.margin)
    claim("sparsity", reg.sparsity == known.sparsity, known.sparsity)
    claim("essentially_smooth", reg.essentially_smooth == (known.sparsity == "dense"), known.sparsity)
    for end in (0, 1):
        slope, value = known.normalised_slopes[end], known.values[end]
        claim(f"slope_at_{end}", reg.slopes[end] is not None and equal(reg.slopes[end], slope), slope)
        expected = -sympy.oo if value == -sympy.oo else sympy.S.Zero
        claim(f"value_at_{end}", reg.fact(f"value_at_{end}").value == expected, expected)
    seen = Seen(known)
    strong = reg.strong_concavity
    if strong is not None:
        slack = mpmath.mpf("1e-12") if reg.fact("strong_concavity").status != "sampled" else mpmath.mpf("1e-5")
        number, floor = _number(strong), _number(known.floor)
        claim("strong_concavity", number <= seen.least * (1 + slack) + slack * 1e-3, f"-h'' falls to {seen.least}")
        claim("strong_concavity", number >= floor * (1 - slack) - slack * 1e-3, f"-h'' stays above {floor}")
        close = seen.least <= number * 1.05 + 1e-3 * abs(seen.scale)
        claim("strong_concavity", close, f"-h'' is not seen below {seen.least}")
        expected = sympy.oo if strong == 0 else sympy.S.Zero if strong.is_infinite else 1 / strong
        claim("smoothness", equal(reg.smoothness, expected, 9), "it is not 1/strong_concavity")
    shape = reg.fact("inverse_shape")
    if shape is not None:
        noise = mpmath.mpf(10) ** -40 * max(map(abs, seen.rates))
        up, down = (any(sign * x > noise for x in seen.rates) for sign in (1, -1))
        right = {"convex": not down, "concave": not up, "affine": not up and not down}[shape.value]
        claim("inverse_shape", right, f"h''' is {'positive' if up else ''} {'negative' if down else ''} at points")
    for end, limit in enumerate(seen.at_ends):
        fact = reg.fact(f"curvature_at_{end}")
        if fact is not None and limit is not None:
            said = _number(fact.value)
            right = said == limit if mpmath.isinf(limit) else abs(said - limit) <= 1e-2 * abs(limit) + 1e-9
            claim(f"curvature_at_{end}", right, f"it looks like {mpmath.nstr(limit, 10)}")
    corner = bool(known.kinks or known.zeros) or (known.slopes[0] != sympy.oo and _finite(seen.at_ends[0]))
    claim("twice_differentiable", not (corner and reg.twice_differentiable), "the prediction has a corner")
    return wrong + wrong_formula(known, reg, 0)


def _finite(limit: Any) -> bool:
    return limit is not None and mpmath.isfinite(limit)


def wrong_formula(known: Known, reg: Any, order: int) -> list[str]:
    """The compiler's own h (order 0) or h' (order 1) against the known one."""
    wrong = []
    name = ("h", "dh")[order]
    ours, theirs = known.derivative(order), _function(getattr(reg, name), reg.variable)
    with mpmath.workdps(50):
        for at in (mpmath.mpf("0.013"), mpmath.mpf("0.377"), mpmath.mpf("0.891")):
            truth, value = ours(at), _real(theirs(at))
            if abs(truth - value) > mpmath.mpf(10) ** -30 * max(1, abs(truth)):
                wrong.append(f"{name}({at}) = {mpmath.nstr(value, 20)}; but {mpmath.nstr(truth, 20)}")
    return wrong


# --- numbers -------------------------------------------------------------------------------------------


def distance(number: Any, truth: Any) -> Any:
    """How far a double is from an mpmath number; two equal infinities are 0 apart."""
    if math.isinf(float(number)) or mpmath.isinf(truth):
        return mpmath.mpf(0) if float(number) == truth else mpmath.inf
    with mpmath.workdps(60):
        return abs(mpmath.mpf(float(number)) - truth)


def wrong_prediction(p: np.ndarray, oracle: Oracle, truth: Truth) -> list[str]:
    """What a float64 prediction gets wrong."""
    wrong = []
    total = math.fsum(p) if truth.total is None else truth.total
    if not ((p >= 0) & (p <= 1)).all() or not abs(math.fsum(p) - total) <= 1e-14 * max(1, total):
        wrong.append(f"no probabilities: {p!r}, sum {math.fsum(p)!r}")
    for j, (got, exact) in enumerate(zip(p, truth.p, strict=True)):
        off = distance(got, exact)
        if off > 1e-13 and not off <= allowed_error(oracle, truth, j):
            wrong.append(
                f"p[{j}] = {got!r}, truth {mpmath.nstr(exact, 20)}, for theta = {list(map(float, truth.theta))}"
            )
    return wrong


def wrong_loss(loss: Any, oracle: Oracle, truth: Truth, y: Any, tolerance: float = 1e-12) -> list[str]:
    """What a loss gets wrong."""
    exact = oracle.loss(truth, y)
    if loss >= 0 and distance(loss, exact) <= tolerance * max(1, exact):
        return []
    theta = list(map(float, truth.theta))
    return [f"L = {loss!r}, truth {mpmath.nstr(exact, 20)}, for theta = {theta}, y = {y}"]


def wrong_numbers(known: Known, reg: Any, number: int) -> list[str]:
    """Predictions, losses and derivatives of a few rows against the oracle."""
    oracle = known.oracle(reg.inverse)
    rng = np.random.default_rng(number)
    finite = known.margin != sympy.oo
    wrong = wrong_formula(known, reg, 1)
    unit = (
        float(_number(known.margin)) if finite else max(1e-3, min(1e3, float(oracle.slope(0.75) - oracle.slope(0.25))))
    )
    for d, scale in ((int(rng.integers(2, 7)), float(rng.choice([0.1, 0.4]))), (3, float(rng.choice([1e-4, 3.0])))):
        theta = unit * scale * rng.normal(size=d)
        if rng.random() < 0.3:
            theta[-1] = theta[0]
        truth = oracle.solve(theta, near=reg.threshold(theta))
        p = reg.predict(theta)
        wrong += wrong_prediction(p, oracle, truth)
        y = np.full(d, 1 / 16)
        y[rng.integers(d)] += 1 - d / 16
        labels = [y, int(rng.integers(d))] if known.bounded else [y]
        for label in labels:
            loss, grad = reg.value_and_grad(theta, label)
            wrong += wrong_loss(loss, oracle, truth, label)
            one_hot = (np.arange(d) == label).astype(float) if isinstance(label, int) else label
            if not (np.abs(grad - (p - one_hot)) <= 4e-16).all():
                wrong.append(f"grad = {grad!r} is not predict - y for theta = {list(theta)}")
    v = rng.normal(size=d)
    theta = unit * 0.3 * rng.normal(size=d)
    truth = oracle.solve(theta, near=reg.threshold(theta))
    wrong += wrong_derivative(reg.jvp(theta, v), oracle, truth, v)
    single = theta.astype(np.float32)
    truth = oracle.solve([float(x) for x in single], near=float(reg.threshold(single)))
    p = reg.predict(single)
    off = max(distance(got, exact) for got, exact in zip(p, truth.p, strict=True))
    if p.dtype != np.float32 or off > 2e-6:
        wrong.append(f"in float32 p = {p!r} is off by {float(off)} for theta = {list(map(float, single))}")
    if finite:
        wrong += wrong_margin(known, reg, rng)
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            reg._module.self_check()
    except AssertionError as error:
        wrong.append(f"the emitted module fails its self-check: {error}")
    return wrong


def wrong_derivative(got: np.ndarray, oracle: Oracle, truth: Truth, v: np.ndarray) -> list[str]:
    """What a derivative of the prediction gets wrong."""
    exact = np.array([float(x) for x in oracle.derivative(truth, v)])
    if (np.abs(got - exact) <= 1e-6 * np.maximum(1.0, np.abs(exact))).all():
        return []
    return [f"jvp = {got!r}, truth {exact!r}, for theta = {list(map(float, truth.theta))}, v = {list(v)}"]


def wrong_margin(known: Known, reg: Any, rng: np.random.Generator) -> list[str]:
    """A score that is ahead of all others by the margin must take everything, at no loss."""
    wrong = []
    m = float(_number(known.margin))
    for others in (np.zeros(1), np.zeros(3), -m * rng.exponential(size=4)):
        theta = np.array([math.nextafter(m * (1 + 1e-12), math.inf) + others.max(), *others])
        while theta[0] - others.max() < m * (1 + 1e-12):
            theta[0] = math.nextafter(theta[0], math.inf)
        p, loss = reg.predict(theta), reg.loss(theta, 0)
        if not (p == (np.arange(len(theta)) == 0)).all() or loss != 0.0:
            wrong.append(f"beyond the margin p = {p!r}, L = {loss!r} for theta = {list(theta)}")
    return wrong


# --- verdicts ------------------------------------------------------------------------------------------


def judge(known: Known, number: int) -> tuple[str, list[str]]:
    """How a strictly concave entropy fares (proved, certified, sampled, undecided), and what went wrong."""
    return _judged(known, lambda: fysym.compile(known.text, deadline=DEADLINE), number)


def judge_facts(known: Known, number: int) -> tuple[str, list[str]]:
    """The same without an inverse, code and numbers, which take most of the time."""
    return _judged(known, lambda: without_code(known.text), None)


def judge_some(known: Known, number: int) -> tuple[str, list[str]]:
    """One of NUMBERS with numbers, the others without."""
    return (judge if number % NUMBERS == 0 else judge_facts)(known, number)


def _judged(known: Known, compiled: Callable[[], Any], number: int | None) -> tuple[str, list[str]]:
    try:
        reg = compiled()
    except fysym.NotConcaveError as error:
        return "refused", [f"a concave entropy is refused: {error}"]
    except fysym.ParseError as error:
        return "refused", [f"it is not read: {error}"]
    except fysym.FysymError as error:
        return "undecided", [f"internal: {error}"] if "could not be analysed" in str(error) else []
    wrong = wrong_facts(known, reg)
    try:
        wrong += wrong_numbers(known, reg, number) if number is not None else []
    except fysym.UndecidedError:  # the compiler does not trust its own code
        return "undecided", wrong
    except Exception as error:  # a crash is one more thing that is wrong
        wrong.append(f"it crashes: {''.join(traceback.format_exception(error)[-2:])}")
    return reg.fact("strictly_concave").status, wrong


def without_code(text: str) -> Any:
    """What fysym.compile does, up to the facts."""
    clock = Deadline(DEADLINE)

    def work() -> Any:
        entropy = read(text, None, clock)
        witness.probe(entropy)
        slopes = theory.end_slopes(entropy, clock)
        verdict = concavity.decide(entropy, clock)
        derivation = Derivation(entropy, verdict, theory.derive(entropy, slopes, verdict, clock), None, None)
        return Regularizer(derivation, None, lambda values: fysym.compile(text).bind(**values))

    return compiler.guarded(work, clock)


def refuse(defect: Defect) -> tuple[str, list[str]]:
    """How a function that is not strictly concave fares (refuted, undecided), and what went wrong."""
    try:
        reg = fysym.compile(defect.text, params=defect.params, deadline=DEADLINE)
    except fysym.NotConcaveError as error:
        return "refuted", [] if 0 < error.witness < 1 else [f"the witness {error.witness} is not in (0, 1)"]
    except fysym.ParseError as error:
        return "undecided", [f"it is not read: {error}"]
    except fysym.FysymError as error:
        return "undecided", [f"internal: {error}"] if "could not be analysed" in str(error) else []
    status = reg.fact("strictly_concave").status
    return "accepted", [
        f"{defect.text}, {dict(defect.params)}, is accepted as {status}: {defect.why} at {defect.points[0]}"
    ]


# --- runs ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Failure:
    """A case as data, and what is wrong with it."""

    data: dict[str, Any]
    wrong: list[str]

    def __str__(self) -> str:
        return "\n    ".join([self.data["h"], *self.wrong, json.dumps(self.data)])


def drawn(strategy: st.SearchStrategy[Any], number: int) -> list[tuple[Any, int]]:
    """The simplest case of all, and the one that the number stands for; each with a number for its rows."""
    cases = []

    @seed(number)
    @settings(quiet, max_examples=2, phases=[Phase.generate])
    @given(strategy, st.integers(0, 2**32))
    def run(case: Any, rows: int) -> None:
        cases.append((case, rows))

    run()
    return cases


def shrunk(kind: str, number: int) -> Failure | None:
    """The simplest failure that the failing case of that number shrinks to; None when it does not fail."""
    strategy, _ = KINDS[kind]
    judged = {"concave": judge, "refused": KINDS["refused"][1]}[kind]
    failures = []

    @seed(number)
    @settings(quiet, max_examples=2)
    @given(strategy, st.integers(0, 2**32))
    def run(case: Any, rows: int) -> None:
        _, wrong = judged(case, rows)
        if wrong:
            failures.append(Failure({**case.data(), "rows": rows}, wrong))
        assert not wrong

    with contextlib.suppress(AssertionError):
        run()
    return failures[-1] if failures else None


class Run:
    """Checks different draws of one kind and counts how they fare."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.strategy, self.judge = KINDS[kind]
        self.tally: Counter[str] = Counter()
        self.seen: set[str] = set()
        self.failed: dict[int, Failure] = {}
        self.seconds = 0.0

    @property
    def count(self) -> int:
        return self.tally.total()

    def draw(self, number: int, count: int) -> int:
        """`count` new cases, which the number fixes; returns the number to go on with."""
        wanted = self.count + count
        while self.count < wanted:
            for case, rows in drawn(self.strategy, number):
                if case.text not in self.seen and self.count < wanted:
                    self._check(number, case, rows)
            number += 1
        return number

    def _check(self, number: int, case: Any, rows: int) -> None:
        self.seen.add(case.text)
        start = time.perf_counter()
        verdict, wrong = self.judge(case, rows)
        self.seconds += time.perf_counter() - start
        self.tally[verdict] += 1
        if wrong:
            self.failed[number] = Failure({**case.data(), "rows": rows}, wrong)

    def report(self) -> str:
        """All failures, and how to shrink and keep one."""
        lines = [f"{number}: {failure}" for number, failure in self.failed.items()]
        return "\n".join(
            [*lines, f"python -m tests.test_random --kind {self.kind} --shrink {min(self.failed, default=0)}"]
        )

    def share(self, *verdicts: str) -> float:
        return sum(self.tally[verdict] for verdict in verdicts) / max(1, self.count)

    def summary(self) -> str:
        """Counts and rates in one line."""
        parts = [f"{n} {verdict} ({n / max(1, self.count):.1%})" for verdict, n in self.tally.most_common()]
        speed = self.seconds / max(1, self.count)
        return f"{self.kind}: {self.count} checked, {len(self.failed)} wrong; {', '.join(parts)}; {speed:.2f} s each"

    def broken(self) -> list[str]:
        """The promises that the rates break, and the failures."""
        found = [f"{len(self.failed)} wrong"] if self.failed else []
        if self.share("undecided") > UNDECIDED:
            found.append(f"{self.share('undecided'):.1%} undecided")
        if self.kind == "concave":
            sure, accepted = self.share("proved", "certified"), self.share("proved", "certified", "sampled")
            if certify.available() and sure < SURE * accepted:
                found.append(f"only {sure / accepted:.1%} of the accepted ones are proved or certified")
        return found


# For each kind, what is drawn and how it is judged; the command judges all numbers unless told otherwise.
KINDS: dict[str, tuple[st.SearchStrategy[Any], Callable[[Any, int], tuple[str, list[str]]]]] = {
    "concave": (entropies(), judge_some),
    "refused": (defects(), lambda defect, _: refuse(defect)),
}


def kept(kind: str) -> list[Any]:
    """The kept failures of a kind, each with the number that picks its rows of scores."""
    load = {"concave": Known.load, "refused": Defect.load}[kind]
    found = []
    for line in (KEPT / f"{kind}.jsonl").read_text().splitlines():
        data = json.loads(line)
        case = load(data)
        found.append(pytest.param(case, data["rows"], id=case.text[:60]))
    return found


# --- tests ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_the_generator_is_right(family: str) -> None:
    @seed(1)
    @settings(quiet, max_examples=8)
    @given(entropies(family))
    def run(known: Known) -> None:
        known.confirm()

    run()


@pytest.mark.parametrize("kind", sorted(DEFECTS))
def test_the_generator_of_defects_is_right(kind: str) -> None:
    @seed(1)
    @settings(quiet, max_examples=30)
    @given(defects(kind))
    def run(defect: Defect) -> None:
        defect.confirm()

    run()


@pytest.mark.parametrize("chunk", range(ENTROPIES // CHUNK))
def test_random_entropies(chunk: int) -> None:
    run = Run("concave")
    run.draw(SPREAD * chunk, CHUNK)
    assert not run.failed, run.report()
    assert run.count == CHUNK
    assert run.tally["undecided"] <= 1, run.summary()
    assert run.tally["sampled"] <= 2 or not certify.available(), run.summary()


@pytest.mark.parametrize("chunk", range(REFUSED // CHUNK))
def test_random_defects_are_refused(chunk: int) -> None:
    run = Run("refused")
    run.draw(SPREAD * chunk, CHUNK)
    assert not run.failed, run.report()
    assert run.count == CHUNK
    assert run.tally["undecided"] <= 2, run.summary()


@pytest.mark.parametrize(("known", "rows"), kept("concave"))
def test_kept_entropies(known: Known, rows: int) -> None:
    known.confirm()
    verdict, wrong = judge(known, rows)
    assert not wrong, "\n".join([known.text, *wrong])
    assert verdict != "undecided"


@pytest.mark.parametrize(("defect", "rows"), kept("refused"))
def test_kept_defects(defect: Defect, rows: int) -> None:
    defect.confirm()
    _, wrong = refuse(defect)
    assert not wrong, "\n".join([defect.text, *wrong])


def test_a_failure_shrinks_and_is_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """With a judge to whom every logarithm is wrong: what is kept still has one, is simpler, and can be read again."""

    def judge(known: Known, rows: int) -> tuple[str, list[str]]:
        return "proved", ["it has a logarithm"] if known.h.has(sympy.log) else []

    monkeypatch.setattr(sys.modules[__name__], "judge", judge)
    monkeypatch.setattr(sys.modules[__name__], "KEPT", tmp_path)
    failing = next(
        (number, case)
        for number in range(10**4)
        for case, rows in drawn(entropies(), number)[-1:]
        if judge(case, rows)[1] and len(case.text) > 60
    )
    assert keep("concave", failing[0]) == 1
    [line] = (tmp_path / "concave.jsonl").read_text().splitlines()
    again = Known.load(json.loads(line))
    assert again.h.has(sympy.log) and len(again.text) < len(failing[1].text)
    assert keep("concave", next(n for n in range(10**4) if not judge(*drawn(entropies(), n)[-1])[1])) == 0


# --- thousands on demand -------------------------------------------------------------------------------


def main(arguments: list[str] | None = None) -> int:
    """Check as many as asked for, show how they fare, and return 1 when a promise is broken."""
    parser = argparse.ArgumentParser(prog="python -m tests.test_random", description=__doc__)
    parser.add_argument("--count", type=int, default=ENTROPIES, help="how many of each kind")
    parser.add_argument("--seed", type=int, default=0, help="which ones")
    parser.add_argument("--kind", choices=sorted(KINDS), help="only these")
    parser.add_argument("--deadline", type=float, default=DEADLINE, help="seconds for each compilation")
    parser.add_argument("--facts", action="store_true", help="check facts only, several times as fast")
    parser.add_argument("--verbose", action="store_true", help="also print what stays undecided or sampled")
    parser.add_argument("--shrink", type=int, metavar="NUMBER", help="shrink that case of --kind and keep it")
    options = parser.parse_args(arguments)
    globals()["DEADLINE"] = options.deadline
    if options.shrink is not None:
        return keep(options.kind or "concave", options.shrink)
    broken = []
    for kind in [options.kind] if options.kind else sorted(KINDS):
        run = Run(kind)
        if kind == "concave":
            run.judge = judge_facts if options.facts else judge
        if options.verbose:
            run.judge = told(run.judge)
        number = 10**6 * (options.seed + 1)
        while run.count < options.count:
            known = set(run.failed)
            number = run.draw(number, 1)
            for failed in set(run.failed) - known:
                print(f"WRONG {failed}: {run.failed[failed]}", flush=True)
            if run.count % CHUNK == 0 or run.count == options.count:
                print(run.summary(), flush=True)
        broken += [f"{kind}: {what}" for what in run.broken()]
    for what in broken:
        print("BROKEN", what)
    return 1 if broken else 0


def told(judge: Callable[[Any, int], tuple[str, list[str]]]) -> Callable[[Any, int], tuple[str, list[str]]]:
    """The same, with a line for each that is neither proved nor refuted."""

    def tell(case: Any, rows: int) -> tuple[str, list[str]]:
        start = time.perf_counter()
        verdict, wrong = judge(case, rows)
        seconds = time.perf_counter() - start
        if verdict in ("undecided", "sampled") or seconds > 2 * DEADLINE:
            print(f"{verdict} {seconds:.1f} s: {case.text}", flush=True)
        return verdict, wrong

    return tell


def keep(kind: str, number: int) -> int:
    """Shrink the case of that number and add it to the kept ones."""
    failure = shrunk(kind, number)
    if failure is None:
        print(f"case {number} does not fail")
        return 0
    with (KEPT / f"{kind}.jsonl").open("a") as file:
        file.write(json.dumps(failure.data) + "\n")
    print("KEPT", failure)
    return 1


if __name__ == "__main__":
    sys.exit(main())
