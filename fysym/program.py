"""Lowers an entropy and its facts to a `Program`: the scalar functions and constants a kernel needs.

Each scalar function is chosen among equal forms by measuring its float64 code against the truth.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import sympy
from sympy import S

from . import truth
from .accuracy import worst_error
from .deadline import Deadline, StepTimeout
from .domains import SIMPLEX, Domain
from .emit.printer import lines
from .entropy import SLOPE, Entropy
from .errors import UndecidedError
from .facts import Theory
from .kinks import Piece
from .rewrite import patched, variants

EPS = 2.0**-52
# A form is taken at once below GOOD ulps; a closed-form inverse above POOR ulps is not used at all.
GOOD = 16.0
POOR = 200.0
# Between forms that lose digits, those that lose less than this where the function is of ordinary size come first.
FAIR = 1000.0
# Parts of h of a higher degree are not searched for places where they change fast.
MOST_DEGREE = 6
# Scores are measured from the cut-off when it is not farther than this many times the rise from 1/4 to 3/4.
NEAR = 32.0
NEXT_TO_ONE = sympy.Rational(1, 2**53)  # the distance of the largest double below 1 from it
GRID = tuple(10.0**-k for k in (300, 100, 30, 16, 12, 9, 6, 4, 3, 2)) + (
    0.004,
    0.015,
    0.03,
    0.06,
    0.07,
    0.13,
    0.21,
    0.37,
    0.49,
)
UPPER = tuple(1.0 - x for x in GRID if x > 1e-16) + (0.55, 0.63, 0.72, 0.81)


@dataclass(frozen=True)
class Scalar:
    """A function of one number in the form that is emitted, with its worst measured error in ulps and where.

    `coarse` is the worst error in ulps of its ordinary size, where it is smaller than that.
    """

    expr: sympy.Expr
    argument: sympy.Symbol
    ulps: float
    at: float
    coarse: float = math.inf


@dataclass(frozen=True)
class Program:
    """Everything an emitter sees; numbers are doubles, expressions have one free symbol.

    With g = -h: value, slope, curvature are g, g', g'' in t; covalue (None where g'(1) is finite) is g(1 - e).
    Predictions are functions of the rise r = s - anchor, where the anchor is the slope at 0, so that scores near the
    cut-off keep their digits; where that is infinite or far, it is 0, or the slope at 1/2 where 0 is far, too. inverse
    and coinverse are q and 1 - q in r, None where they are solved for numerically; rise is r in t, corise and
    cocurvature are r and g'' in e = 1 - t.
    """

    value: Scalar
    slope: Scalar
    curvature: Scalar
    covalue: Scalar | None
    rise: Scalar | None
    corise: Scalar | None
    cocurvature: Scalar | None
    inverse: Scalar | None
    coinverse: Scalar | None
    ends: dict[str, float]
    kinks: tuple[tuple[float, float, float], ...]
    newton: bool
    exponential: tuple[float, float] | None
    domain: Domain = SIMPLEX

    @property
    def solver(self) -> str:
        """How the threshold is found, in words."""
        if self.domain.total is None:
            how = "closed-form inverse" if self.inverse is not None else "inverse solved numerically from a table"
            return f"none: each coordinate by itself, {how}"
        if self.domain != SIMPLEX:
            how = "closed-form inverse" if self.inverse is not None else "inverse solved numerically from a table"
            return f"Newton safeguarded by bisection, {how}"
        if self.exponential is not None:
            return "closed form: q is an exponential, so the prediction is a softmax"
        step = "monotone Newton (h''' >= 0, so q is convex)" if self.newton else "Newton safeguarded by bisection"
        how = "closed-form inverse" if self.inverse is not None else "inverse solved numerically from a table"
        return f"{step}, {how}"

    @property
    def worst_ulps(self) -> float:
        scalars = (self.value, self.slope, self.curvature, self.inverse)
        return max(scalar.ulps for scalar in scalars if scalar is not None)


def lower(entropy: Entropy, theory: Theory, inverse: sympy.Expr | None, deadline: Deadline) -> Program:
    """The Program of an entropy without free parameters."""
    t = entropy.t
    e = sympy.Symbol("e", positive=True)
    bounded = entropy.domain.bounded
    bends = _bends(entropy)
    places = (GRID + UPPER if bounded else _far_and_near(entropy)) + bends
    ends = _ends(entropy, theory)
    anchor = S.Zero if ends["anchor"] == 0.0 else -theory.value("slope_at_0")
    if ends["anchor"] not in (0.0, ends["slope_low"]):
        anchor = _middle_slope(entropy)
    value = entropy.whole(lambda h: -h)
    slope = entropy.whole(lambda h: -sympy.diff(h, t))
    rise = entropy.whole(lambda h: -sympy.diff(h, t) - anchor)
    curvature = entropy.whole(lambda h: -sympy.diff(h, t, 2))
    third = sympy.diff(curvature, t)
    inverse_form, coinverse_form = None, None
    if inverse is not None:
        lifted = inverse.subs(SLOPE, SLOPE + anchor)
        inner = (*GRID, *(1 - sympy.Rational(x) for x in GRID)) if bounded else places
        interval = entropy.domain.low, entropy.domain.high
        inverse_form = _inverse(lifted, rise, t, inner, interval, ends, deadline)
        if inverse_form is not None and ends["curvature_high"] == np.inf:
            coinverse_form = _inverse(1 - lifted, rise, t, inner, interval, ends, deadline)
            inverse_form = inverse_form if coinverse_form is not None else None
    numeric = inverse_form is None

    def lowered(expr: sympy.Expr, derivative: sympy.Expr) -> Scalar:
        return _choose(expr, t, derivative, places, deadline)

    def mirrored(expr: sympy.Expr, derivative: sympy.Expr, direct: Scalar) -> Scalar:
        """The function of e = 1 - t; where no form of it keeps its digits, `direct` up to the last t before 1."""
        found = _choose(expr.subs(t, 1 - e), e, derivative.subs(t, 1 - e), (*GRID, *(1.0 - x for x in bends)), deadline)
        if found.ulps <= POOR or not direct.ulps <= POOR:
            return found
        form = direct.expr.args[-1].expr if isinstance(direct.expr, sympy.Piecewise) else direct.expr  # next to 1
        last = _double_at(expr, {t: 1 - NEXT_TO_ONE})
        beyond = sympy.Piecewise((last, e < NEXT_TO_ONE), (form.subs(t, 1 - e), True))
        return Scalar(beyond, e, direct.ulps, 1.0 - direct.at)

    value_form, curvature_form = lowered(value, slope), lowered(curvature, third)
    rise_form = lowered(rise, curvature) if numeric else None
    return Program(
        value=value_form,
        slope=lowered(slope, curvature),
        curvature=curvature_form,
        covalue=mirrored(value, slope, value_form) if bounded and ends["slope_high"] == np.inf else None,
        rise=rise_form,
        corise=mirrored(rise, curvature, rise_form) if bounded and rise_form is not None else None,
        cocurvature=mirrored(curvature, third, curvature_form) if bounded and numeric else None,
        inverse=inverse_form,
        coinverse=coinverse_form,
        ends=ends,
        kinks=_kinks(entropy, anchor),
        newton=theory.value("inverse_shape") in ("convex", "affine"),
        exponential=_exponential(inverse) if inverse_form is not None else None,
        domain=entropy.domain,
    )


def _ends(entropy: Entropy, theory: Theory) -> dict[str, float]:
    """The limits at both ends as doubles; an undetermined slope cannot be lowered."""
    domain = entropy.domain
    for name in domain.facts("slope"):
        if theory.value(name) is None:
            raise UndecidedError(f"{name.replace('_', ' ')} is {theory.undetermined[name]}")
    found = {}
    for side, value, slope in zip(("low", "high"), domain.facts("value"), domain.facts("slope"), strict=True):
        found[f"value_{side}"] = _double(-theory.value(value))
        found[f"slope_{side}"] = _double(-theory.value(slope))
    curvature = theory.value("curvature_at_1")
    found["curvature_high"] = 1.0 if curvature is None else _double(curvature)
    lowest, highest = (-theory.value(name) for name in domain.facts("slope"))
    anchor = S.Zero
    width = NEAR * _rise_inside(entropy)
    half = _slope_at(entropy, S.Half, S.Zero)
    if math.isfinite(found["slope_low"]) and _slope_at(entropy, sympy.Rational(1, 4), lowest) <= width:
        anchor = lowest
    elif domain.total is not None and abs(half) > width and _double(highest - _middle_slope(entropy)) > 0.0:
        anchor = _middle_slope(entropy)
    found["anchor"] = _double(anchor)
    found["rise_high"] = _double(highest - anchor)
    found["rise_middle"] = _slope_at(entropy, S.Zero if domain.low < 0 else S.Half, anchor)
    return found


def _far_and_near(entropy: Entropy) -> tuple[float, ...]:
    """Points all over an infinite interval."""
    upper = GRID + tuple(x for x in UPPER if x < 0.99) + (1.0, 1.7, 2.6, 5.3, 11.0, 36.0, 100.0, 600.0, 1e4, 1e6, 1e9)
    return upper if entropy.domain.low == 0 else (*(-x for x in upper), *upper)


def _bends(entropy: Entropy) -> tuple[float, ...]:
    """Places inside the interval around which h may change fast: where a polynomial in it is 0 or 1, or nearly is."""
    t, found = entropy.t, set()
    parts = {
        part
        for piece in entropy.pieces
        for node in sympy.preorder_traversal(piece.expr)
        for part in node.args
        if node.is_Pow or node.is_Function
        if part.has(t) and part.is_polynomial(t) and sympy.degree(part, t) <= MOST_DEGREE
    }
    for polynomial in (sympy.Poly(part - level, t) for part in parts for level in (0, 1, -1)):
        with contextlib.suppress(Exception):  # roots that are multiple, or far apart, may not be found
            for root in map(complex, polynomial.nroots()):
                found |= {root.real + k * abs(root.imag) for k in (-1, 0, 1)}
    low, high = entropy.domain.low, entropy.domain.high
    return tuple(sorted(x for x in found if low < x < high and x != 0.0))


def _middle_slope(entropy: Entropy) -> sympy.Expr:
    return -_piece(entropy, S.Half).slope(entropy.t, S.Half)


def _rise_inside(entropy: Entropy) -> float:
    """g'(3/4) - g'(1/4), of which either may be so large that their doubles are the same."""
    t, (low, high) = entropy.t, (sympy.Rational(1, 4), sympy.Rational(3, 4))
    first, last = (-sympy.diff(_piece(entropy, at).expr, t) for at in (low, high))
    return float(truth.evaluate_reliably(last - first.xreplace({t: t - high + low}), {t: high}))


def _slope_at(entropy: Entropy, t: sympy.Rational, anchor: sympy.Expr) -> float:
    """g'(t) - anchor."""
    return float(truth.evaluate_reliably(-sympy.diff(_piece(entropy, t).expr, entropy.t) - anchor, {entropy.t: t}))


def _piece(entropy: Entropy, t: sympy.Rational) -> Piece:
    return next(piece for piece in entropy.pieces if piece.high.is_infinite or truth.sign(piece.high - t) == 1)


def _double_at(expr: sympy.Expr, values: dict[sympy.Symbol, Any]) -> sympy.Float:
    return sympy.Float(float(truth.evaluate_reliably(expr, values)))


def _double(number: sympy.Expr) -> float:
    return float(number) if number.is_infinite else float(truth.evaluate_reliably(number, {}, 40))


def _kinks(entropy: Entropy, anchor: sympy.Expr) -> tuple[tuple[float, float, float], ...]:
    """Each corner of h with the rises before and after it; pieces may also meet without one."""
    t = entropy.t
    found = []
    for left, right in zip(entropy.pieces, entropy.pieces[1:], strict=False):
        before, after = (-piece.slope(t, left.high) for piece in (left, right))
        if truth.sign(after - before) != 0:
            found.append((_double(left.high), _double(before - anchor), _double(after - anchor)))
    return tuple(found)


def _exponential(inverse: sympy.Expr | None) -> tuple[float, float] | None:
    """(rate, scale) when q(s) = scale * exp(rate * s)."""
    if inverse is None:
        return None
    scale, rest = inverse.as_independent(SLOPE, as_Add=False)
    if not isinstance(rest, sympy.exp):
        return None
    rate = sympy.diff(rest.args[0], SLOPE)
    return None if rate.free_symbols else (_double(rate), _double(inverse.subs(SLOPE, 0)))


# --- forms measured against the truth ----------------------------------------------------------------


def compiled(expr: sympy.Expr, argument: sympy.Symbol) -> Callable[[Any], Any]:
    """The emitted array code of an expression, as a function."""
    body = "\n    ".join(lines(expr, argument, "x"))
    namespace: dict[str, Any] = {"np": np}
    if "special." in body:
        from scipy import special

        namespace["special"] = special
    exec(f"def function(x):\n    {body}\n", namespace)  # our own printer's output, never user text
    return namespace["function"]  # type: ignore[no-any-return]


class _Best:
    """The most accurate form so far of a function whose true values at some points are known."""

    def __init__(self, argument: sympy.Symbol, points: Sequence[float], truths: Sequence[Any], scales: Sequence[Any]):
        self.argument, self.points, self.truths = argument, points, truths
        self.units = [EPS * scale for scale in scales]
        ordinary = sorted(self.units)[len(self.units) // 2] if self.units else 0.0
        self.coarse = [max(unit, ordinary) for unit in self.units]
        self.found: Scalar | None = None

    def look(self, forms: Iterable[sympy.Expr], exact: bool = True) -> None:
        """Try forms until one is accurate to a few ulps; those that are not `exact` must be good to be taken."""
        if self.found is not None and self.found.ulps <= GOOD:
            return
        for form in forms:
            try:
                code = compiled(form, self.argument)
                ulps, at = worst_error(code, self.points, self.truths, self.units)
                coarse = ulps if ulps <= FAIR else worst_error(code, self.points, self.truths, self.coarse)[0]
            except Exception:  # no code is known for it, or its numbers are beyond Python
                ulps, at, coarse = np.inf, 0.0, np.inf
            best = self.found
            level, least = (max(x, FAIR) for x in (coarse, np.inf if best is None else best.coarse))
            better = 2 * level < least or (level <= least and 2 * ulps < (np.inf if best is None else best.ulps))
            if best is None or (better and (exact or ulps <= POOR or coarse <= GOOD)):
                self.found = Scalar(form, self.argument, ulps, at, coarse)
            if ulps <= GOOD:
                break


def _choose(
    expr: sympy.Expr, x: sympy.Symbol, derivative: sympy.Expr, points: Sequence[float], deadline: Deadline
) -> Scalar:
    """The first form of `expr` whose code is accurate to a few ulps, else the best one found."""

    def measured() -> _Best:
        kept, truths, scales = [], [], []
        for point in points:
            exact, slope = (truth.evaluate_reliably(part, {x: point}) for part in (expr, derivative))
            scale = max(abs(exact), abs(point * slope))
            if not (scale > 0 and 1e-290 < scale < 1e290):
                continue
            kept.append(point)
            truths.append(exact)
            scales.append(scale)
        return _Best(x, kept, truths, scales)

    try:
        best = deadline.run(measured, share=0.1)
    except StepTimeout:
        return Scalar(expr, x, float("nan"), 0.0)
    for forms, exact in ((variants, True), (patched, False)):
        with contextlib.suppress(StepTimeout):  # what was found before it is kept
            deadline.run(lambda forms=forms, exact=exact: best.look(forms(expr, x), exact), share=0.1)
    return best.found or Scalar(expr, x, float("nan"), 0.0)


def _inverse(
    expr: sympy.Expr,
    rise: sympy.Expr,
    t: sympy.Symbol,
    places: Sequence[Any],
    interval: tuple[float, float],
    ends: dict[str, float],
    deadline: Deadline,
) -> Scalar | None:
    """A form of q, or of 1 - q, that is accurate in float64 at all rises, or None.

    The truth is the validated closed form itself, at high precision.
    """

    def work() -> Scalar | None:
        low, high = ends["slope_low"] - ends["anchor"], ends["rise_high"]
        rises = [float(truth.evaluate_reliably(rise, {t: sympy.Rational(x)})) for x in places]
        rises += [-1e5, -800.0, 800.0, 1e5]
        rate = sympy.diff(expr, SLOPE)
        kept, truths, scales = [], [], []
        for r in rises:
            if not low < r < high:
                continue
            exact, steepness = (truth.evaluate_reliably(part, {SLOPE: r}) for part in (expr, rate))
            if not (interval[0] <= exact <= interval[1] and abs(exact) < 1e290):
                continue
            kept.append(r)
            truths.append(exact)
            scales.append(max(abs(exact), abs(r * steepness), 1e-290))
        best = _Best(SLOPE, kept, truths, scales)
        best.look(variants(expr, SLOPE))
        best.look(patched(expr, SLOPE), exact=False)
        return best.found if best.found is not None and best.found.ulps <= POOR else None

    try:
        return deadline.run(work, share=0.25)
    except StepTimeout:
        return None
