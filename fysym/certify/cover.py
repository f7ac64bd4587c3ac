"""Proofs by ball arithmetic that an expression keeps one sign on all of 0 < t < 1.

The middle [delta0, 1 - delta1] is cut into boxes on each of which a ball that encloses every value of f
lies on one side of 0; the strips at the ends are those of `strips`.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import sympy

from ..certify_precision import available
from .balls import Box, Field, Interval, NotEvaluable, Program, Unsettled, halves
from .strips import STRIP_BITS, End, find_ends

FIRST_BITS, MOST_BITS = 53, 2400
MOST_BOXES = 20_000
TINY = Fraction(1, 2**60)  # no box is cut when it is so narrow


@dataclass(frozen=True)
class Cover:
    """sign * expr > 0 for 0 < t < 1 and all parameters in `ranges`, by boxes in (t, *parameters) and two strips."""

    expr: sympy.Expr
    t: sympy.Symbol
    sign: int
    boxes: tuple[Box, ...]
    precision: int
    ends: tuple[End, ...]
    ranges: tuple[tuple[sympy.Symbol, Interval], ...] = ()
    strict: bool = True

    def lines(self, indent: int = 0) -> Iterator[str]:
        """The argument in words, like that of a symbolic proof."""
        yield "  " * indent + f"{self.expr} {'>' if self.sign > 0 else '<'} 0: {self.evidence}"

    @property
    def covers(self) -> tuple[Cover, ...]:
        return (self,)

    @property
    def evidence(self) -> str:
        rules = {end.rule for end in self.ends}
        how = "leading terms" if "leading term" in rules else "closed strips"
        boxes = "1 box" if len(self.boxes) == 1 else f"{len(self.boxes)} boxes"
        return f"ball arithmetic: {boxes} at {self.precision} bits, ends by {how}"


def certify_sign(
    f: sympy.Expr,
    t: sympy.Symbol,
    sign: int,
    seconds: float,
    ranges: Mapping[sympy.Symbol, tuple[Any, Any]] | None = None,
) -> Cover | None:
    """A proof that sign * f > 0 for 0 < t < 1 and all parameters in the closed boxes `ranges`, or None.

    Zeros inside (0, 1), also isolated ones, cannot be certified.
    """
    ranges = ranges or {}
    if not available() or not f.free_symbols <= {t, *ranges}:
        return None
    stop = time.monotonic() + seconds
    try:
        spans = tuple((p, (_outward(low, -1), _outward(high, 1))) for p, (low, high) in ranges.items())
        field = Field(f, (t, *ranges), sign)
        box = tuple(span for _, span in spans)
        if not all(field.program.on(point, STRIP_BITS) > 0 for point in _corners(box)):
            return None
        ends = [end for at in (0, 1) for end in find_ends(field, at, box, stop)]
        low, high = (min(end.delta for end in ends if end.at == at) for at in (0, 1))
        boxes, bits = _cover(field, ((low, 1 - high), *box), stop)
    except (NotEvaluable, Unsettled):
        return None
    return Cover(f, t, sign, boxes, bits, tuple(ends), spans)


def _corners(box: Box) -> Iterator[Box]:
    """A few points with t inside (0, 1) and each parameter at an end of its range: where most families fail."""
    ends = itertools.product(*(((side, side) for side in span) for span in box))
    for corner in itertools.islice(ends, 64):
        for t in (Fraction(1, 2), Fraction(1, 9), Fraction(8, 9)):
            yield ((t, t), *corner)


def _outward(value: Any, side: int) -> Fraction:
    """A bound of a range as a fraction; an irrational one is rounded outward."""
    exact = sympy.sympify(value)
    if exact.is_Rational:
        return Fraction(int(exact.p), int(exact.q))
    ball = Program(exact, ()).on((), STRIP_BITS)
    if not ball.is_finite():
        raise NotEvaluable(f"{exact} is not a finite number")
    end = (ball.lower() if side < 0 else ball.upper()).fmpq()
    return Fraction(int(end.p), int(end.q))


def _cover(field: Field, domain: Box, stop: float) -> tuple[tuple[Box, ...], int]:
    """Boxes that tile the domain, on each of which the sign is settled, and the bits that took."""
    found: list[Box] = []
    most = FIRST_BITS
    waiting = [(domain, FIRST_BITS)]
    while waiting:
        box, bits = waiting.pop()
        if time.monotonic() > stop or len(found) + len(waiting) > MOST_BOXES:
            raise Unsettled
        settled, weights = field.settle(box, bits)
        most = max(most, bits)
        if settled:
            found.append(box)
            continue
        if all(high - low < TINY * scale for (low, high), scale in zip(box, _scales(box, domain))):
            raise Unsettled  # as good as a zero
        middle = _middle(box)
        value = field.program.on(middle, bits)
        while not value > 0:
            bits *= 2
            if value < 0 or bits > MOST_BITS:
                raise Unsettled
            value = field.program.on(middle, bits)
        waiting += [(half, bits) for half in reversed(halves(box, domain, weights))]
    return tuple(found), most


def _middle(box: Box) -> Box:
    return tuple(((low + high) / 2, (low + high) / 2) for low, high in box)


def _scales(box: Box, domain: Box) -> list[Fraction]:
    """What the width of each side is compared with: the distance to an end for t, else the whole range."""
    low, high = box[0]
    return [min(low, 1 - high), *(b - a or Fraction(1) for a, b in domain[1:])]
