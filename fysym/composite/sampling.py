"""G(sum s(p_j)) in numbers: where its Hessian comes closest to a positive direction, and predictions that are known."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import sympy

from .. import truth
from ..accuracy import SHARES

if TYPE_CHECKING:
    from .theory import Form


MOST = 10**6  # classes
FEW = 12  # values of p that are written out
SCAN = 200_000  # values of u at which F'' is looked at
PEAKS = 20  # of F'' that are followed


@dataclass(frozen=True)
class Worst:
    """The p at which H is closest to not being concave: p_j = values[j], counts[j] times. `problem` is what fails."""

    values: tuple[float, ...]
    counts: tuple[int, ...]
    problem: str
    most: int = MOST

    @property
    def p(self) -> tuple[float, ...]:
        return tuple(x for x, k in zip(self.values, self.counts, strict=True) for _ in range(k))

    @property
    def words(self) -> str:
        """(0.5, 0.25, 0.25), or 0.5 once and 0.0005 1000 times."""
        if sum(self.counts) <= FEW:
            return f"({', '.join(f'{x:.6g}' for x in self.p)})"
        parts = zip(self.values, self.counts, strict=True)
        return "(" + ", ".join(f"{x:.6g}" + (f" {k} times" if k > 1 else "") for x, k in parts) + ")"


def points() -> Iterator[tuple[Any, Any]]:
    """Values of p (n, k) and how often each occurs: random ones of few classes, then some large and many small."""
    rng = np.random.default_rng(0)
    for d in (2, 3, 4, 6, 10, 30):
        p = np.concatenate([rng.dirichlet(np.full(d, a), size=300) for a in (0.2, 1.0, 5.0)])
        p = np.maximum(p, 1e-6)
        yield p / p.sum(axis=1, keepdims=True), np.ones((len(p), d))
    shares = np.concatenate([np.geomspace(1e-4, 0.5, 60), 1.0 - np.geomspace(1e-4, 0.5, 60)])
    sizes = np.unique(np.geomspace(1, MOST, 49).round().astype(np.int64))
    for many in sizes:
        for few in (1, 2, 5, 20):
            share = shares[shares / few > (1.0 - shares) / many]
            values = np.stack([share / few, (1.0 - share) / many], axis=1)
            values = np.concatenate([values, np.full((1, 2), 1.0 / (few + many))])
            yield values, np.broadcast_to([few, many], values.shape)


def bent(form: Form, s: Any, first: Any, second: Any) -> Iterator[tuple[Any, Any]]:
    """The same where F'' is largest against F', be that in a narrow range of u only: one large p, the others equal."""
    from .theory import T

    place = sympy.lambdify(T, form.place, "numpy")(np.linspace(0.0, 1.0, SCAN + 2)[1:-1]) + np.zeros(SCAN)
    bend = (second(place) + 0.0 * place) / (form.sign * first(place) + 0.0 * place)
    bend = np.where(np.isnan(bend), -np.inf, bend)
    peaks = np.flatnonzero((bend[1:-1] >= bend[:-2]) & (bend[1:-1] > bend[2:]) & (bend[1:-1] > 0.0)) + 1
    wanted = place[peaks[np.argsort(-bend[peaks])[:PEAKS]]]
    for many in (1, 2, 5, 20, 100, 1000, 10**5):
        low, high = np.full(len(wanted), 1.0 / (1 + many)), np.ones(len(wanted))
        at_low = s(low) + many * s(low)
        within = (wanted - at_low) * (wanted - float(form.at_one)) < 0.0
        rises = float(form.at_one) > at_low
        for _ in range(60):  # u is monotone from the uniform distribution to the vertex
            share = 0.5 * (low + high)
            before = (s(share) + many * s((1.0 - share) / many) < wanted) == rises
            low, high = np.where(before, share, low), np.where(before, high, share)
        share = low[within & (low < 1.0 - 1e-9)]
        if len(share):
            yield np.stack([share, (1.0 - share) / many], axis=1), np.broadcast_to([1, many], (len(share), 2))


def measured(form: Form, margin: sympy.Expr | None) -> Iterator[tuple[Any, Any, Any, Any]]:
    """Values of p, how often each occurs, F'' sum_j (v'_j - mean)^2 / |v''_j| / F', mean under the weights 1/|v''|, and
    H(p) over margin (1 - max p).

    H is strictly concave on the tangent space at p exactly where F' > 0 and the first is less than 1. Then the second
    is at most 1 (Prop. 5).
    """
    from .theory import T, U

    sign = form.sign
    slope, curve, s = (sympy.lambdify(T, sympy.diff(form.inner, T, k), "numpy") for k in (1, 2, 0))
    first, second, value = (sympy.lambdify(U, sympy.diff(form.outer, U, k), "numpy") for k in (1, 2, 0))
    bound = np.inf if margin is None else float(margin)
    with np.errstate(all="ignore"):
        for p, counts in itertools.chain(points(), bent(form, s, first, second)):
            u = (counts * (s(p) + 0.0 * p)).sum(axis=1)
            weight = counts / np.abs(curve(p) + 0.0 * p)
            v = sign * slope(p) + 0.0 * p
            mean = (weight * v).sum(axis=1, keepdims=True) / weight.sum(axis=1, keepdims=True)
            rate = sign * first(u) + 0.0 * u
            share = (second(u) + 0.0 * u) * (weight * (v - mean) ** 2).sum(axis=1) / rate
            over = (value(u) + 0.0 * u) / ((1.0 - p.max(axis=1)) * bound)
            share = np.where(rate <= 0.0, np.inf, share)
            yield p, counts, share, over


def beyond_margin(form: Form, margin: sympy.Expr | None) -> str:
    """Where H(p) is above margin (1 - max p) by most, in words; '' if it is nowhere."""
    largest, found = 1.0 + 1e-9, ""
    for p, counts, _, over in measured(form, margin):
        at = int(np.argmax(np.where(np.isnan(over), -np.inf, over)))
        if over[at] > largest:
            largest, found = over[at], f"{over[at]:.6g} times that at p = {_at(p[at], counts[at], '').words}"
    return found


def worst(form: Form, margin: sympy.Expr | None) -> Worst:
    """The p at which H is closest to not being strictly concave."""
    closest, found, tried, failed = -np.inf, Worst((0.5,), (2,), ""), 0, 0
    for p, counts, share, over in measured(form, margin):
        tried, failed = tried + len(p), failed + int(np.isnan(share).sum())
        for measure, limit, what in (
            (share, 1.0, "its Hessian has a positive direction"),
            (over, 1.0 + 1e-9, f"H exceeds (1 - max p) times {margin}, the margin at a vertex (Prop. 5),"),
        ):
            bad = measure > limit
            if bad.any():  # of those that fail, the one farthest from the boundary
                at = int(np.argmax(np.where(bad, p.min(axis=1), -1.0)))
                return _at(p[at], counts[at], what)
        at = int(np.argmax(np.where(np.isnan(share), -np.inf, share)))
        if share[at] > closest:
            closest, found = share[at], _at(p[at], counts[at], "")
    if 2 * failed > tried:
        raise ArithmeticError("no numbers at most p")
    return found


def _at(p: Any, counts: Any, problem: str) -> Worst:
    return Worst(tuple(float(f"{x:.6g}") for x in p), tuple(int(k) for k in counts), problem)


def checks(outer: sympy.Expr, inner: sympy.Expr) -> list[tuple[list[float], list[float], float]]:
    """Scores, their true prediction, and how far from it code may be: what an emitted module checks itself with."""
    from .theory import T, U

    found = []
    for parts in SHARES[:5]:
        p = [sympy.Rational(part, sum(parts)) for part in parts]
        s, first, second = ([truth.evaluate(sympy.diff(inner, T, k), {T: x}) for x in p] for k in range(3))
        slope, bend = (truth.evaluate(sympy.diff(outer, U, k), {U: sum(s)}) for k in (1, 2))
        theta = [float(-slope * x) for x in first]
        hessian = np.diag([float(-slope * x) for x in second]) - float(bend) * np.outer(first, first).astype(float)
        tangent = np.linalg.qr(np.column_stack([np.ones(len(p)), np.eye(len(p))[:, 1:]]))[0][:, 1:]
        if not (np.isfinite(theta).all() and np.isfinite(hessian).all()):
            continue
        flattest = float(np.linalg.eigvalsh(tangent.T @ hessian @ tangent).min())
        rounding = float(np.linalg.norm(np.spacing(np.abs(theta))))
        allowed = max(1e-12, 4 * rounding / flattest) if flattest > 0 else np.inf
        if allowed < 1e-3:
            found.append((theta, [float(x) for x in p], allowed))
    return found
