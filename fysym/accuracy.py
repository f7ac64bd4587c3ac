"""How wrong emitted code is: its worst errors against the truth, in units in the last place, and where they occur."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import truth
from .errors import UnsupportedError
from .reference import Reference

# Probabilities that rows are built around; the float32 ones stay inside its range.
TINY = {
    np.float64: (1e-300, 1e-100, 1e-30, 1e-16, 1e-12, 1e-9, 1e-6, 1e-4, 1e-2),
    np.float32: (1e-30, 1e-9, 1e-6, 1e-3),
}
SHARES = ((1, 1), (3, 1), (1, 2, 5), (4, 3, 2, 1), (70, 20, 9, 1), (1,) * 7, (997, 1, 1, 1), (40, 30, 20, 6, 3, 1))
# Rows with a larger total, which need as many classes, take too long to be built.
MOST_TOTAL = 1000
# Scores such as people have, whatever the slopes of h are.
PLAIN = (1.0, 0.5, -1.0, 0.375)
EPS = 2.0**-52
# How far from the truth probabilities above SMALL may be, relatively.
PROMISED = 1e-11
# Slopes that are larger than this many times the rise to 1/2 leave few digits to it.
LARGE = 1e6
# Relative errors are stated for probabilities above this, where the scores determine them that well.
SMALL = 1e-12


@dataclass(frozen=True)
class Measurement:
    """The worst error of one function of one target in one precision.

    `ulps` counts units of the larger of the spacing of floats at the true value and of what a change of the scores
    by one unit in their last places does to it: about 1 is the best a program can do. `relative` is the worst
    relative error of probabilities above 1e-12 that are determined so well by the scores; None for losses.
    `theta` is the row of the worst error, `index` the class, and `got` and `expected` the numbers.
    """

    target: str
    dtype: str
    function: str
    ulps: float
    relative: float | None
    theta: tuple[float, ...]
    index: Any
    got: float
    expected: float

    def __str__(self) -> str:
        shown = ", ".join(f"{x:.6g}" for x in self.theta)
        relative = "" if self.relative is None else f", relative {self.relative:.2g} above {SMALL:g}"
        where = (f"class {self.index} of " if isinstance(self.index, int) else "") + f"theta = ({shown})"
        return (
            f"{self.target} {self.dtype} {self.function}: {self.ulps:.3g} ulps{relative}; "
            f"worst at {where}: {self.got:.17g}, truth {self.expected:.17g}"
        )


@dataclass(frozen=True)
class Accuracy:
    """What was measured: one Measurement for each target, function, and precision that scores fit into."""

    measurements: tuple[Measurement, ...]
    rows: int

    @property
    def worst(self) -> Measurement:
        """The measurement with the most ulps."""
        return max(self.measurements, key=lambda m: m.ulps)

    def __iter__(self) -> Iterator[Measurement]:
        return iter(self.measurements)

    def __str__(self) -> str:
        return "\n".join([f"measured on {self.rows} rows of scores against the truth", *map(str, self.measurements)])


def error_in(units: Any, got: float, exact: Any) -> float:
    """|got - exact| in the given units; inf where `got` is not a number."""
    return float(abs(truth.context().mpf(float(got)) - exact) / units) if np.isfinite(got) else np.inf


def worst_error(
    function: Callable[[Any], Any], points: Sequence[float], truths: Sequence[Any], units: Sequence[Any]
) -> tuple[float, float]:
    """The worst error of a function of one number in the given units, and where."""
    try:
        with np.errstate(all="ignore"):
            values = np.broadcast_to(function(np.array(points)), (len(points),))
    except Exception:  # code that does not run is as wrong as can be
        return np.inf, 0.0
    worst, at = 0.0, 0.0
    for x, value, exact, unit in zip(points, values, truths, units, strict=True):
        error = error_in(unit, value, exact)
        if not error <= worst:
            worst, at = error, x
    return worst, at


@dataclass(frozen=True)
class Row:
    """Scores, and the truth about them: predictions, the units of their errors, and the loss of a label or shares."""

    theta: tuple[float, ...]
    p: list[Any]
    units: list[Any]
    label: Any
    loss: Any
    loss_unit: Any


@np.errstate(all="ignore")
def rows(derivation: Any, dtype: Any) -> list[Row]:
    """Rows over the whole range: tiny and ordinary probabilities, scores at the cut-off and at the margin."""
    found = []
    references: dict[Any, Reference] = {}
    domain = derivation.entropy.domain
    shift = common(derivation.program)
    for places, least, p in chosen(dtype):
        if (places, least) not in references:
            references[places, least] = Reference(derivation.entropy, derivation.theory, places, least)
        reference = references[places, least]
        with reference.ctx.workdps(reference.working):
            exact = [reference.ctx.mpf(x) for x in p]
            exact[-1] = 1 - reference.ctx.fsum(exact[:-1])
            exact = placed(exact, domain, 40)
            scores = [(reference.slope(x) if x > domain.low else reference.low) - shift for x in exact]
        theta = [dtype(float(x)) for x in scores]
        if not np.isfinite(theta).all():
            continue
        found.append(_row(reference, theta, exact))
        if 0 in p and domain.low == 0:  # on the cut-off; also a little above and below it
            j = p.index(0)
            for towards in (np.inf, -np.inf):
                moved = list(theta)
                moved[j] = np.nextafter(theta[j], dtype(towards))
                found.append(_row(reference, moved, exact))
    first = references[20, 20]
    margin = dtype(float(first.high - first.low))
    if domain.total == 1:
        found.append(_row(first, list(map(dtype, PLAIN)), None))
    if np.isfinite(margin) and domain.total == 1:
        for gap in (margin, np.nextafter(margin, dtype(0)), margin * dtype(0.999)):
            found.append(_row(first, [gap, dtype(0), dtype(0)], None))
    return found


def checks(derivation: Any) -> list[tuple[list[float], list[float], float]]:
    """Scores, their true prediction, and how far from it code may be: what an emitted module checks itself with."""
    found: list[tuple[list[float], list[float], float]] = []
    anchor = derivation.program.ends["anchor"]
    if (derivation.entropy.domain.total or 0) > MOST_TOTAL:
        return found
    reference = Reference(derivation.entropy, derivation.theory)
    shift = common(derivation.program)
    for parts in SHARES[:5]:
        p = placed([reference.ctx.mpf(part) / sum(parts) for part in parts], derivation.entropy.domain)
        theta = [float(reference.slope(t) - shift) for t in p]
        flattest = float(min(reference.curvature(t) for t in p))
        if not (np.isfinite(theta).all() and flattest > 0):
            continue
        rises = [float(reference.slope(t) - anchor) for t in p]
        rounding = float(np.spacing(np.abs([*theta, *rises])).max())  # of scores, and of what code makes of them
        allowed = max(SMALL, PROMISED * float(max(p)), 4 * rounding / flattest)
        if allowed < 1e-3:
            found.append((theta, [float(t) for t in p], allowed))
    if derivation.entropy.domain.bounded and (derivation.entropy.domain.total or 0) < len(PLAIN):
        p, _ = reference.solve(PLAIN)
        flattest = float(min((reference.curvature(t) for t in p if 0 < t < 1), default=1.0))
        is_found = derivation.entropy.domain.total is None or abs(sum(p) - derivation.entropy.domain.total) < EPS
        if flattest > 0 and is_found:
            allowed = max(SMALL, PROMISED * float(max(p)), 4 * EPS / flattest)
            found.append((list(PLAIN), [float(t) for t in p], allowed))
    return found


def common(program: Any) -> float:
    """What all scores may be less by, where there is a total and slopes are large but for a small part."""
    anchor, small = program.ends["anchor"], abs(program.ends["anchor"]) <= LARGE * abs(program.ends["rise_middle"])
    return 0.0 if program.domain.total is None or (anchor == program.ends["slope_low"] and small) else float(anchor)


def placed(p: list[Any], domain: Any, larger: int = 3) -> list[Any]:
    """Probabilities that sum to 1 become a point of the domain.

    With a total: more of them, or all smaller. On an infinite interval every other one is larger, or negative, too.
    """
    total = domain.total
    if not domain.bounded:
        return [x if j % 2 == 0 else (larger * x if domain.low == 0 else -larger * x) for j, x in enumerate(p)]
    if total is None or total == 1:
        return p
    if total < 1:
        return [x * total for x in p]
    more = math.ceil(2 * (total - 1))
    return [*p[:-1], *[(total - 1) / more] * more, p[-1]]


def chosen(dtype: Any) -> Iterator[tuple[int, int, list[Any]]]:
    """Probabilities to build rows around, after the `places` and `least` of a Reference for them."""
    for parts in SHARES:
        yield 20, 20, [part / sum(parts) for part in parts]
    yield 20, 20, [0, 0.375, 0.625]
    yield 20, 20, [0, 0, 0.25, 0.75]
    for tiny in TINY[dtype]:
        least = max(20, 10 - round(math.log10(tiny)))
        yield 20, least, [tiny, 0.375, 0.625]
        if tiny > 1e-50:
            yield least, least, [tiny, tiny / 3, 1 - tiny]


def _row(reference: Reference, theta: list[Any], guess: list[Any] | None) -> Row:
    ctx = reference.ctx
    scores = [float(x) for x in theta]
    p, tau = reference.solve(scores, guess)
    step = float(max(np.spacing(np.abs(x)) for x in theta))
    spacing = type(theta[0])
    units = []
    with ctx.workdps(reference.working):
        for x, t in zip(scores, p, strict=True):
            far = 1 if t > 0 else 4  # what is left out may be in after a few
            moved = [reference.inverse(x - tau + sign * far * step, t) / far for sign in (1, -1)]
            units.append(max(abs(moved[0] - moved[1]), ctx.mpf(float(np.spacing(spacing(float(t)))))))
        label: Any = min(range(len(p)), key=lambda k: abs(p[k] - 0.3))
        y = [float(k == label) for k in range(len(p))]
        if reference.total not in (None, 1):  # where a label is not enough
            count = len(p)
            label = y = [reference.total * (k + 1) / (count * (count + 1) / 2) for k in range(count)]
        loss = reference.loss(scores, p, y)
        moves = ctx.fsum(abs(a - b) for a, b in zip(p, y, strict=True)) * step
        loss_unit = max(moves, ctx.mpf(float(np.spacing(spacing(float(loss))))))
    return Row(tuple(scores), p, units, label, loss, loss_unit)


def measure(derivation: Any, targets: dict[str, Any]) -> Accuracy:
    """The accuracy of modules with `predict` and `loss`, named by their targets."""
    domain = derivation.entropy.domain
    if (domain.total or 0) > MOST_TOTAL:
        raise UnsupportedError(f"accuracy is measured for totals up to {MOST_TOTAL}, and not on the {domain}")
    return measure_on(lambda dtype: rows(derivation, dtype), targets)


def measure_on(rows_of: Callable[[Any], list[Row]], targets: dict[str, Any]) -> Accuracy:
    """The accuracy on the rows of each precision that has some: scores may be too large for one."""
    results = []
    count = 0
    for dtype in (np.float64, np.float32):
        known = rows_of(dtype)
        count += len(known)
        if not known:
            continue
        for target, module in targets.items():
            results.append(_predictions(known, target, module, dtype))
            if any(_fits(row.loss, dtype) for row in known):
                results.append(_losses(known, target, module, dtype))
    if not results:
        raise UnsupportedError("accuracy is not measured: scores of ordinary predictions are too large for a double")
    return Accuracy(tuple(results), count)


def _predictions(known: list[Row], target: str, module: Any, dtype: Any) -> Measurement:
    worst = (-1.0, known[0], 0, 0.0)
    relative = 0.0
    for row in known:
        p = module.predict(np.array(row.theta, dtype=dtype))
        for j, (got, exact, unit) in enumerate(zip(p, row.p, row.units, strict=True)):
            error = error_in(unit, got, exact)
            if not error <= worst[0]:
                worst = (error, row, j, float(got))
            if exact > SMALL and unit <= 1e-12 * exact * float(np.finfo(dtype).eps / np.finfo(np.float64).eps):
                relative = max(relative, error_in(exact, got, exact))
    ulps, row, j, got = worst
    return Measurement(target, np.dtype(dtype).name, "predict", ulps, relative, row.theta, j, got, float(row.p[j]))


def _fits(loss: Any, dtype: Any) -> bool:
    """Is it finite, in that precision?"""
    return bool(abs(loss) <= float(np.finfo(dtype).max))


def _losses(known: list[Row], target: str, module: Any, dtype: Any) -> Measurement:
    worst = (-1.0, known[0], 0.0)
    for row in known:
        if _fits(row.loss, dtype):
            got = module.loss(np.array(row.theta, dtype=dtype), row.label)
            error = error_in(row.loss_unit, got, row.loss)
            worst = worst if error <= worst[0] else (error, row, float(got))
    ulps, row, got = worst
    return Measurement(target, np.dtype(dtype).name, "loss", ulps, None, row.theta, row.label, got, float(row.loss))
