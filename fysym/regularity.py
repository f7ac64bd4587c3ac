"""Whether h is real and without poles inside its pieces, and switches nowhere else; what it does between them.

There it must be continuous, and its slope must drop.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sympy
from sympy import S

from . import truth
from .boundary import Point, end_limit
from .certify import Cover
from .certify.questions import certified_sign
from .deadline import Deadline, simplified
from .entropy import Entropy, Parameter
from .errors import UndecidedError
from .facts import weakest
from .kinks import Piece
from .rewrite import is_awkward
from .signs import Proof, conditions, prove_sign
from .witness import highest, number, raise_at, refute_undefined, timed_search, violation, violations

# A step at a kink that is smaller, to ten times as many digits as usual, counts as none where its sign is not known.
TINIEST = sympy.Float("1e-300", 20)
LEAST = sympy.Float("1e-30", 20)  # the same of a step between limits


def check_kinks(entropy: Entropy, deadline: Deadline) -> str:
    """How it is known that h is continuous and h' drops at each kink; an error where that fails."""
    status = "proved"
    for left, right in zip(entropy.pieces, entropy.pieces[1:], strict=False):
        for order in (0, 1):
            step = _step(entropy, left, right, order, deadline)
            rises = _rises(entropy, left, right) if order == 1 and step is not None else {}
            if step is not None and _is_joined(entropy, (step, *rises.values()), order, deadline):
                continue
            for p, rise in rises.items():
                _search_rise(entropy, p, rise, left.high, deadline)
            found = highest(step, entropy.x, [p.coordinate for p in rises], deadline) if rises else None
            if found is not None:
                _raise_kink(entropy, left.high, found)
            exact = step is not None and order == 1 and not entropy.parameters
            for point in entropy.points:
                value, least, exactly = truth.context().nan, TINIEST, step
                if step is not None:
                    value = truth.evaluate(step, {entropy.t: left.high, **point}, digits=10 * truth.DIGITS)
                if value != value:
                    exactly = _step_of_limits(entropy, left, right, order, deadline, point)
                    if exactly is None:
                        what = ("h jumps", "the slope of h rises")[order]
                        raise UndecidedError(f"could not tell whether {what} at t = {number(left.high)}")
                    value, least = truth.evaluate_reliably(exactly, {}), LEAST
                sign = _sign(value, least, exactly, point, deadline)
                if order == 0 and sign != 0:
                    raise_at(entropy, left.high, point, f"h jumps at t = {number(left.high)}", "a continuous h")
                if order == 1 and sign > 0:
                    _raise_kink(entropy, left.high, point)
                exact = exact and sign < 0
            status = status if exact else "sampled"
    return status


def check_points(entropy: Entropy, deadline: Deadline) -> str:
    """How it is known that h has, where it switches, the value that its pieces have there; an error where not."""
    status = "proved"
    for at, step in entropy.point_steps():
        if step is not None and _is_joined(entropy, (step,), 0, deadline):
            continue
        for point in entropy.points if step is not None else ():
            value = truth.evaluate(step, point, digits=10 * truth.DIGITS)
            if _sign(value, TINIEST, step, point, deadline) != 0:
                raise_at(entropy, at, point, f"h jumps at the single point t = {number(at)}", "a continuous h")
        status = "sampled"
    return status


def _sign(value: Any, least: sympy.Expr, exactly: sympy.Expr, point: Point, deadline: Deadline) -> int:
    """The sign of a step: of its value where that is not tiny, else of the exact number; 0 also where none is known."""
    if not abs(value) <= least:
        return -1 if value < 0 else 1
    try:
        return deadline.run(lambda: truth.sign(truth.substituted(exactly, point)), share=0.03) or 0
    except Exception:  # also StepTimeout
        return 0


def check_switches(entropy: Entropy, deadline: Deadline) -> tuple[str, tuple[Proof | Cover, ...]]:
    """How it is known that h switches only where its pieces meet, with the arguments."""
    status = "proved"
    arguments: list[Proof | Cover] = []
    for part in (part for piece in entropy.pieces for part in piece.steady):
        f = part.stretched(entropy.t, entropy.x)
        sign = 1 if truth.evaluate(f, {entropy.x: S.Half}) > 0 else -1
        argument: Proof | Cover | None = prove_sign(
            f, entropy.x, Deadline(min(0.1 * deadline.seconds, deadline.left()))
        )
        if argument is None or not argument.strict or argument.sign != sign:
            argument = certified_sign(entropy, f, sign, deadline)
            status = weakest(status, "sampled" if argument is None else "certified")
        if argument is not None:
            arguments.append(argument)
    return status, tuple(arguments)


def check_middle(entropy: Entropy, _: Deadline) -> str:
    """How it is known that h' does not rise at 0, where a piece without ends was cut in two."""
    status = "proved"
    for piece in entropy.pieces:
        if len(piece.halves) == 1:
            continue
        slope, near = entropy.opened(sympy.diff(piece.expr, entropy.t)), sympy.Rational(1, 10**25)
        for point in entropy.points[:3]:
            before, after = (truth.evaluate_reliably(slope, {entropy.t: at, **point}) for at in (-near, near))
            if after > before and after - before > 1e-12 * (abs(after) + abs(before)):
                raise_at(entropy, S.Zero, point, "the slope of h rises at t = 0", "a concave kink")
            for condition in conditions(piece.expr, entropy.t):  # singular at 0, so numbers decide
                if not abs(truth.evaluate(entropy.opened(condition), {entropy.t: S.Zero, **point})) > 0:
                    status = "sampled"
    return status


def _step(entropy: Entropy, left: Piece, right: Piece, order: int, deadline: Deadline) -> sympy.Expr | None:
    """By how much h (order 0) or h' (order 1) rises from one piece to the next; None where it is singular."""
    t = entropy.t
    sides = [entropy.opened(sympy.diff(piece.expr, t, order) if order else piece.expr) for piece in (left, right)]
    step = (sides[1] - sides[0]).subs(t, left.high)
    if step.has(sympy.nan, sympy.zoo) and order == 1 and not entropy.parameters:
        step = right.slope(t, left.high) - left.slope(t, left.high)
    if step.has(sympy.nan, sympy.zoo, sympy.oo):
        step = _step_of_limits(entropy, left, right, order, deadline)
    return None if step is None or step.is_infinite else step


def _rises(entropy: Entropy, left: Piece, right: Piece) -> dict[Parameter, sympy.Expr]:
    """By how much h' rises from one piece to the next, as a function of each parameter, spread over (0, 1)."""
    step = sympy.diff(right.expr - left.expr, entropy.t).subs(entropy.t, left.high)
    return {
        p: entropy.opened(step.xreplace({p.symbol: p.spread(entropy.x)}))
        for p in entropy.parameters
        if step.has(p.symbol) and not step.has(sympy.nan, sympy.zoo, sympy.oo)
    }


def _is_joined(entropy: Entropy, steps: Sequence[sympy.Expr], order: int, deadline: Deadline) -> bool:
    """Is a step, given in equal forms, provably zero, or, of the slope, provably a drop?"""
    try:
        if steps[0] == 0 or deadline.run(lambda: simplified(steps[0]) == 0, share=0.03):
            return True
    except Exception:  # also StepTimeout: then numbers decide
        return False
    if order == 0 or not entropy.parameters:
        return False
    proofs = (prove_sign(step, entropy.x, Deadline(min(0.1 * deadline.seconds, deadline.left()))) for step in steps)
    return any(proof is not None and proof.sign < 0 for proof in proofs)


def _search_rise(entropy: Entropy, p: Parameter, rise: sympy.Expr, at: sympy.Expr, deadline: Deadline) -> None:
    """Look for values of a parameter, the others in the middle, at which the slope rises at a kink."""
    x = entropy.x
    others = {b: value for b, value in entropy.points[0].items() if b != p.coordinate}
    g = truth.substituted(rise, others)
    for where in violations(g, x, timed_search(g, x, deadline, share=0.05)):
        _raise_kink(entropy, at, {**others, p.coordinate: where / (1 - where)})


def _raise_kink(entropy: Entropy, at: sympy.Expr, point: Point) -> None:
    raise_at(entropy, at, point, f"the slope of h rises at its kink t = {number(at)}", "a concave kink")


def _step_of_limits(
    entropy: Entropy, left: Piece, right: Piece, order: int, deadline: Deadline, point: Point | None = None
) -> sympy.Expr | None:
    """A step between one-sided limits, where the formulas are singular: oo where one is infinite, None where unproved.

    It is that of the whole family, or that of its member at a point.
    """
    t, x = entropy.t, entropy.x
    values = []
    for piece, side in ((left, -1), (right, 1)):
        expr = entropy.opened(sympy.diff(piece.expr, t, order)).subs(t, left.high + side * x)
        member = expr if point is None else truth.substituted(expr, point)
        limit = end_limit(member, x, 0, deadline, entropy.points[:3] if point is None else ({},))
        if limit.value is None or limit.status != "proved":
            return None
        values.append(limit.value)
    return S.Infinity if any(value.is_infinite for value in values) else values[1] - values[0]


# --- poles and domains -----------------------------------------------------------------------------


def check_regular(entropy: Entropy, piece: Piece, h: sympy.Expr, deadline: Deadline) -> str:
    """How it is known that h has no pole and stays real inside the piece; an error when it has one."""
    status = "proved"
    for plain in conditions(piece.stretched(entropy.t, entropy.x), entropy.x):
        condition = entropy.opened(plain)
        proof = prove_sign(condition, entropy.x, Deadline(min(0.1 * deadline.seconds, deadline.left())), depth=1)
        if proof is not None and proof.strict:
            continue
        sign = 1 if truth.evaluate(condition, {entropy.x: S.Half, **entropy.points[0]}) > 0 else -1
        certified = certified_sign(entropy, plain, sign, deadline)
        if certified is not None and certified.strict:
            status = "certified" if status == "proved" else status
            continue
        status = "sampled"
        for point in entropy.extremes((6, 15)):
            _search_pole(entropy, piece, h, truth.substituted(condition, point), point, deadline)
        for point in entropy.points[:7]:
            place = _search_pole(entropy, piece, h, truth.substituted(condition, point), point, deadline)
            if place is not None:
                user = entropy.user(truth.substituted(condition, point))
                raise UndecidedError(f"could not tell whether h is smooth where {user} vanishes, t in {place}", place)
    return status


def _search_pole(
    entropy: Entropy, piece: Piece, h: sympy.Expr, condition: sympy.Expr, point: Point, deadline: Deadline
) -> tuple[float, float] | None:
    """Search for a zero of a condition: raises where h is not smooth, else None or an interval that stays open."""
    t, bound = entropy.x, truth.substituted(h, point)
    sign = 1 if truth.evaluate(condition, {t: S.Half}) > 0 else -1
    result = timed_search(-sign * condition, t, deadline)
    if result is not None and result.violation is None and result.complete and not result.open_boxes:
        return None
    at = violation(result)
    if at is not None:
        value = truth.evaluate(bound, {t: at})
        if value != value:
            refute_undefined(entropy, piece, at, point)
        pole = _bisect(condition, t, S.Half, at)
        if not abs(truth.evaluate(bound, {t: pole}, digits=200)) < 1e15:
            _raise_pole(entropy, piece, pole, point)
    for root in _inner_roots(condition, t, deadline):
        if _is_unbounded(bound, t, root):
            _raise_pole(entropy, piece, root, point)
    boxes = result.open_boxes if result is not None else ()
    return boxes[0] if boxes else (0.0, 1.0)


def _raise_pole(entropy: Entropy, piece: Piece, pole: sympy.Expr, point: Point) -> None:
    witness = piece.point(pole)
    raise_at(entropy, witness, point, f"h is unbounded at t = {float(witness):.6g}", "an h without poles")


def _inner_roots(f: sympy.Expr, t: sympy.Symbol, deadline: Deadline) -> list[sympy.Expr]:
    """The rational roots of f in (0, 1), where it is a polynomial."""

    def work() -> list[sympy.Expr]:
        return [root for root in sympy.Poly(f, t, domain="QQ").ground_roots() if 0 < root < 1]

    try:
        return [] if is_awkward(f) else deadline.run(work, share=0.02)
    except Exception:  # also StepTimeout: none is known then
        return []


def _is_unbounded(h: sympy.Expr, t: sympy.Symbol, root: sympy.Expr) -> bool:
    """|h| grows towards the root at least as a logarithm does."""
    far, near, nearer = (truth.evaluate_reliably(h, {t: root + sympy.Rational(1, 10**k)}) for k in (25, 50, 100))
    return bool(abs(near - far) > 1e-9 * abs(far) and abs(nearer - near) > 1.5 * abs(near - far))


def _bisect(f: sympy.Expr, t: sympy.Symbol, a: sympy.Expr, b: sympy.Expr) -> sympy.Expr:
    """A point within 1e-30 of a change of sign of f between a and b."""
    low_sign = truth.evaluate(f, {t: a}) > 0
    for _ in range(100):
        middle = (a + b) / 2
        a, b = (middle, b) if (truth.evaluate(f, {t: middle}, digits=60) > 0) == low_sign else (a, middle)
    return b
