"""The strips at the ends of (0, 1), where balls do not reach: the sign of a function from its leading term."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import sympy
from sympy import S

from ..certify_precision import precision
from .balls import Box, Field, NotEvaluable, Unsettled, halves
from .expansion import Expansion

STRIP_BITS = 160
MOST_SPLITS = 64  # of the box of parameters, at each end
DELTAS = tuple(Fraction(1, 2**k) for k in (3, 6, 10, 16, 24, 40, 80, 160, 400, 1000))
ALL_TRIES = tuple((order, delta) for orders in ((0, 3), (6,), (10,)) for delta in DELTAS for order in orders)
FIRST_TRIES = tuple((order, delta) for order in (0, 3) for delta in DELTAS[:5:2])  # before a box is cut
FEW_CUTS = 3


@dataclass(frozen=True)
class End:
    """|f| >= bound * x^power * log(1/x)^log_power > 0 for 0 < x <= delta; x is the distance to the end `at`.

    `rule` is "regular" (one ball over the closed strip) or "leading term" (an expansion with `order` terms
    of each function); `box` is the part of the parameter box for which it holds.
    """

    at: int
    rule: str
    delta: Fraction
    bound: Fraction
    power: sympy.Expr = S.Zero
    log_power: sympy.Expr = S.Zero
    order: int = 0
    box: Box = ()


def find_ends(field: Field, at: int, domain: Box, stop: float) -> list[End]:
    """Strips next to one end for all parameters, the parameter box cut where one strip does not do."""
    found: list[End] = []
    waiting = [(domain, 0)]
    while waiting:
        box, cuts = waiting.pop()
        if len(found) + len(waiting) > MOST_SPLITS:
            raise Unsettled
        point = all(low == high for low, high in box)
        tries = ALL_TRIES if point or cuts >= FEW_CUTS * len(box) else FIRST_TRIES
        end = find_end(field, at, box, stop, tries)
        if end is not None:
            found.append(end)
        elif point:
            raise Unsettled
        else:
            zero = (Fraction(0), Fraction(0))
            waiting += [(half[1:], cuts + 1) for half in halves((zero, *box), (zero, *domain))]
    return found


def find_end(field: Field, at: int, box: Box, stop: float, tries: Sequence[tuple[int, Fraction]]) -> End | None:
    """One strip next to an end for a whole box of parameters; a try is an order (0: no expansion) and a width."""
    for order, delta in tries:
        if time.monotonic() > stop:
            raise Unsettled
        end = strip(field, at, "leading term" if order else "regular", delta, order, box, STRIP_BITS, stop)
        if end is not None:
            return end
    return None


def strip(
    field: Field, at: int, rule: str, delta: Fraction, order: int, box: Box, bits: int, stop: float = math.inf
) -> End | None:
    """The sign on one strip by one rule, with the bound that it gives; None where it is not settled."""
    with precision(bits):
        if rule == "regular":
            side = (Fraction(0), delta) if at == 0 else (1 - delta, Fraction(1))
            value = field.program.on((side, *box), bits)
            return End(at, rule, delta, _lower(value), box=box) if value > 0 else None
        try:
            expansion = Expansion(field.symbols, at, delta, order, box, stop)
            (a, k), value = expansion.leading_bound(expansion.of(field.sign * field.f))
        except (Unsettled, NotEvaluable):
            return None
    return End(at, rule, delta, _lower(value), a, k, order, box)


def _lower(ball: Any) -> Fraction:
    """A short positive fraction, half of what a positive ball is at least: a check may use wider balls."""
    mantissa, exponent = (int(part) for part in ball.lower().man_exp())
    extra = max(0, mantissa.bit_length() - 20)
    return Fraction(mantissa >> extra) * Fraction(2) ** (exponent + extra - 1)
