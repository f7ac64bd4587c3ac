"""Looks for a point at which h is not concave, and raises the error that shows it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import sympy
from sympy import S

from . import truth
from .boundary import Point
from .deadline import Deadline, StepTimeout, simplified
from .entropy import Entropy
from .errors import NotConcaveError
from .kinks import SWITCHING, Piece

PROBES = tuple(map(sympy.Rational, ("1/2", "1/10", "9/10", "1/1000", "999/1000", "1/3", "2/3", "1/20", "19/20")))


def probe(entropy: Entropy) -> None:
    """Look at a few points at high precision: most wrong entropies fail at once."""
    for piece in entropy.pieces:
        h, f = (entropy.opened(piece.stretched(entropy.t, entropy.x, order)) for order in (0, 2))
        _probe(entropy, piece, h, f)


def _probe(entropy: Entropy, piece: Piece, h: sympy.Expr, f: sympy.Expr) -> None:
    t = entropy.x
    points = entropy.points
    if f == 0 or all(truth.evaluate(f, {t: where, **points[0]}) == 0 and simplified(f) == 0 for where in PROBES[:1]):
        refute(entropy, piece, S.Zero, S.Half, points[0])
    for point in points:
        for where in PROBES if len(points) == 1 else PROBES[:5]:
            value = truth.evaluate(h, {t: where, **point})
            if value != value:
                refute_undefined(entropy, piece, where, point)
            if truth.evaluate(f, {t: where, **point}) > 0 and certain(f, t, where, point):
                refute(entropy, piece, f, where, point)
    for point in entropy.extremes():
        for where in PROBES[:5]:
            if truth.evaluate(f, {t: where, **point}) > 0 and certain(f, t, where, point):
                refute(entropy, piece, f, where, point)


def certain(f: sympy.Expr, t: sympy.Symbol, where: Any, point: Point) -> bool:
    """f > 0 at this point beyond rounding."""
    value = truth.evaluate_reliably(f, {t: where, **point})
    return bool(value > 0)


def refute(entropy: Entropy, piece: Piece, f: sympy.Expr, where: sympy.Expr, point: Point) -> None:
    witness = piece.point(where)
    value = truth.evaluate(f, {entropy.x: where, **point})
    if f == 0:
        what = f"h'' = 0 on all of ({piece.low}, {piece.high})"
        hint = "h is affine there; add a strictly concave term such as t*(1-t)/2"
    else:
        width = float(piece.high - piece.low)
        what = f"h''({number(witness)}) = {float(value) / (width**2 if width < math.inf else 1.0):.6g} > 0"
        hint = _hint(entropy, f, point)
    raise_at(entropy, witness, point, what, hint)


def refute_undefined(entropy: Entropy, piece: Piece, where: sympy.Expr, point: Point) -> None:
    witness = piece.point(where)
    what = f"h({number(witness)}) is not a real number"
    raise_at(entropy, witness, point, what, f"h must be real on all of {entropy.domain.interval}")


def raise_at(entropy: Entropy, witness: sympy.Expr, point: Point, what: str, hint: str) -> None:
    values = entropy.at(point)
    at = "".join(f" with {name} = {value}" for name, value in values.items())
    culprit = _culprit(entropy, witness, point)
    blame = f" The term {entropy.user(culprit)} curves upwards there." if culprit is not None else ""
    raise NotConcaveError(
        f"h is not strictly concave on {entropy.domain.interval}: {what}{at}.{blame} Try: {hint}.",
        witness,
        values,
        None if culprit is None else entropy.user(culprit),
    )


def _hint(entropy: Entropy, f: sympy.Expr, point: Point) -> str:
    values = [truth.evaluate(f, {entropy.x: where, **point}) for where in PROBES]
    if all(v > 0 for v in values):
        return "the negative of h, which is concave" if not entropy.parameters else "another range of the parameters"
    return "a larger share of a concave term" if not entropy.parameters else "a narrower range of the parameters"


def _culprit(entropy: Entropy, witness: sympy.Expr, point: Point) -> sympy.Expr | None:
    """The term of h that bends upwards most at the witness, when h is a sum."""
    terms = [term for term in sympy.Add.make_args(sympy.expand_mul(entropy.given)) if term.has(entropy.t)]
    kinked = [term for term in terms if term.has(*SWITCHING)]
    if len(terms) < 2 or kinked:
        return kinked[0] if len(kinked) == 1 < len(terms) else None
    bends = []
    for term in terms:
        second = entropy.opened(sympy.diff(term, entropy.t, 2))
        value = truth.evaluate(second, {entropy.t: witness, **point})
        bends.append((value, term))
    worst = max((b for b in bends if b[0] == b[0]), key=lambda b: b[0], default=None)
    return worst[1] if worst is not None and worst[0] > 0 else None


def number(value: sympy.Expr) -> str:
    return str(value) if value.is_Rational and value.q < 10**6 else f"{float(value):.17g}"


def timed_search(f: sympy.Expr, t: sympy.Symbol, deadline: Deadline, share: float = 0.3) -> Any:
    from . import search  # brings SciPy, which `import fysym` must not

    seconds = min(share * deadline.seconds, deadline.left())
    if seconds <= 0.01:
        return None
    try:
        return deadline.run(lambda: search.search_positive(f, t, seconds=seconds * 0.8), share=share)
    except StepTimeout:
        return None


def highest(f: sympy.Expr, t: sympy.Symbol, coordinates: list[sympy.Symbol], deadline: Deadline) -> Point | None:
    """A point where f > 0 for certain, near where it is largest, if that can be found."""
    from .summit import summit  # brings SciPy

    try:
        points = deadline.run(summit, f, t, coordinates, share=0.1)
    except Exception:  # also StepTimeout: none is known then
        return None
    return next((point for point in points if certain(f, t, point[t], point)), None)


def violation(result: Any) -> sympy.Expr | None:
    return None if result is None else result.violation


def violations(f: sympy.Expr, t: sympy.Symbol, result: Any) -> Iterator[sympy.Expr]:
    """Points where f > 0 for certain, from what a search left open."""
    if result is None:
        return
    peaks = (peak for box in result.open_boxes[:8] for peak in _peaks(f, t, box))
    for at in (*filter(None, [result.violation]), *peaks):
        if certain(f, t, at, {}):
            yield at


def _peaks(f: sympy.Expr, t: sympy.Symbol, box: tuple[float, float]) -> Iterator[sympy.Rational]:
    """Where f is largest in a small box, as far as changes of sign of its derivative tell, to many digits."""
    low, high = map(sympy.Rational, box)
    if high - low > sympy.Rational(1, 10**6):
        return
    derivative = sympy.diff(f, t)
    nodes = [low + (high - low) * sympy.Rational(k, 16) for k in range(17)]
    rises = [truth.evaluate(derivative, {t: where}, 100) > 0 for where in nodes]
    for left, right, up, down in zip(nodes, nodes[1:], rises, rises[1:], strict=False):
        if up and not down:
            for _ in range(150):
                middle = (left + right) / 2
                if truth.evaluate(derivative, {t: middle}, 100) > 0:
                    left = middle
                else:
                    right = middle
            yield left if left > 0 else right
