"""Checks of covers: no gap between the boxes and strips, and the sign of the expression on each of them."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import sympy
from sympy import S

from ..certify_precision import precision
from . import data
from .balls import Box, Function, Undefined, ball, halves, interval, number
from .data import CertificateError
from .strips import Strip

STRIP_BITS = 384
MOST_PIECES = 64  # into which one box of a certificate is cut
OWN_PIECES = 4000  # into which (0, 1) is cut where a certificate gives no boxes
DELTAS = tuple(Fraction(1, 2**k) for k in (3, 6, 12, 20, 40, 100, 300))


def check(cover: data.Cover, expr: sympy.Expr, sign: int) -> str:
    """sign * expr > 0 for 0 < t < 1 and all parameters in the ranges, or a CertificateError."""
    if not expr.free_symbols <= set(cover.symbols):
        raise CertificateError("the expression has a symbol without a range")
    if not 0 < cover.precision <= data.MOST_BITS // 2:
        raise CertificateError(f"a cover at {cover.precision} bits cannot be checked")
    if any(strip.at not in (0, 1) for strip in cover.strips):
        raise CertificateError("a strip is next to neither 0 nor 1")
    deltas = []
    for at in (0, 1):
        strips = [strip for strip in cover.strips if strip.at == at]
        if not tiles(cover.ranges, [strip.box for strip in strips]):
            raise CertificateError(f"the strips next to {at} do not cover the range of the parameters")
        deltas.append(min(strip.delta for strip in strips))
    if not tiles(((deltas[0], 1 - deltas[1]), *cover.ranges), cover.boxes):
        raise CertificateError("the boxes do not tile the interval between the strips")
    f = Function(sign * expr, cover.symbols)
    for strip in cover.strips:
        _check_strip(f, strip)
    for box in cover.boxes:
        if not f.is_positive(box, 2 * cover.precision, MOST_PIECES):
            where = ", ".join(f"[{float(low):.6g}, {float(high):.6g}]" for low, high in box)
            raise CertificateError(f"the sign is not settled on the box {where}")
    return f"{len(cover.boxes)} boxes without gap, re-evaluated at {2 * cover.precision} bits, and both strips"


def tiles(domain: Box, boxes: Sequence[Box]) -> bool:
    """Do the boxes fill the domain without gap or overlap? They must come apart by straight cuts."""
    if len(boxes) == 1:
        return boxes[0] == domain
    if not boxes or any(len(box) != len(domain) for box in boxes):
        return False
    for k, (low, high) in enumerate(domain):
        if low == high and all(box[k] == (low, high) for box in boxes):
            continue
        groups: list[list[Box]] = []
        reached, edges = low, [low]
        for box in sorted(boxes, key=lambda box: box[k]):
            if box[k][0] == reached and (not groups or reached > edges[-1]):
                groups.append([])
                edges.append(reached)
            if not groups or not low <= box[k][0] < box[k][1] <= high:
                return False
            groups[-1].append(box)
            reached = max(reached, box[k][1])
        if len(groups) > 1:
            sides = zip(edges[1:], [*edges[2:], high], strict=True)
            return reached == high and all(
                tiles((*domain[:k], side, *domain[k + 1 :]), group) for side, group in zip(sides, groups, strict=True)
            )
    return False


def _check_strip(f: Function, strip: data.Strip) -> None:
    """The bound of one strip, by a closed box or by an expansion of our own."""
    fault = CertificateError(f"the strip of width {float(strip.delta):.3g} next to {strip.at} does not hold")
    if not 0 < strip.delta < 1 or strip.bound <= 0 or not 0 <= strip.order <= 12:
        raise fault
    if strip.rule == "regular":
        side = (Fraction(0), strip.delta) if strip.at == 0 else (1 - strip.delta, Fraction(1))
        above = Function(f.f - sympy.Rational(strip.bound), f.symbols)
        plain = strip.power == 0 == strip.log_power and strip.order == 0
        if not plain or not above.is_positive((side, *strip.box), STRIP_BITS, MOST_PIECES):
            raise fault
        return
    fits = strip.power.free_symbols <= set(f.symbols[1:]) and strip.log_power.is_Rational
    if strip.rule != "leading term" or not fits or not _expanded(f, strip):
        raise fault


def _expanded(f: Function, strip: data.Strip) -> bool:
    """bound * x^power * l^log_power <= f on the strip: by an expansion next to the end, by boxes on the rest of it."""
    x = f.symbols[0] if strip.at == 0 else 1 - f.symbols[0]
    least = sympy.Rational(strip.bound) * x**strip.power * (-sympy.log(x)) ** strip.log_power
    above = Function(f.f - least, f.symbols)
    waiting, left = [strip.box], 16
    while waiting:
        box = waiting.pop()
        for width in (strip.delta, strip.delta / 8, strip.delta / 64):
            side = (width, strip.delta) if strip.at == 0 else (1 - strip.delta, 1 - width)
            if _leads(f, strip, width, box) and (
                width == strip.delta or above.is_positive((side, *box), STRIP_BITS, MOST_PIECES)
            ):
                break
        else:
            left -= 1
            if left < 0 or all(low == high for low, high in box):
                return False
            waiting += _parts(box)
    return True


def _leads(f: Function, strip: data.Strip, width: Fraction, box: Box) -> bool:
    by = (sympy.expand(strip.power), strip.log_power)
    with precision(STRIP_BITS):
        for order in (max(strip.order, 3), strip.order + 3):
            try:
                own = Strip(f.symbols[0], strip.at, width, order, _balls(f, box))
                if own.least(own.expand(f.f), by) >= number(strip.bound):
                    return True
            except Undefined:
                continue
    return False


def _parts(box: Box) -> list[Box]:
    """A box of parameters in two."""
    zero = (Fraction(0), Fraction(0))
    return [half[1:] for half in halves((zero, *box), [0.0, *(float(high - low) for low, high in box)])]


def _balls(f: Function, box: Box) -> dict[sympy.Symbol, object]:
    return {s: interval(*span) for s, span in zip(f.symbols[1:], box, strict=True)}


def end_width(f: Function, at: int, order: int = 4, ranges: Box = ()) -> Fraction | None:
    """The width of a strip next to an end on which f > 0, found by trial."""
    for delta in DELTAS:
        side = (Fraction(0), delta) if at == 0 else (1 - delta, Fraction(1))
        if f.is_positive((side, *ranges), STRIP_BITS, 2):
            return delta
        with precision(STRIP_BITS):
            try:
                own = Strip(f.symbols[0], at, delta, order, _balls(f, ranges))
                terms = own.expand(f.f)
                for by in own.candidates(terms):
                    try:
                        if own.least(terms, by) > 0:
                            return delta
                    except Undefined:
                        continue
            except Undefined:
                continue
    return None


def own_cover(expr: sympy.Expr, t: sympy.Symbol, sign: int) -> bool:
    """sign * expr > 0 for 0 < t < 1, by boxes and strips found here; False where that stays open."""
    f = Function(sign * expr, (t,))
    widths = [end_width(f, at) for at in (0, 1)]
    if widths[0] is None or widths[1] is None:
        widths = [end_width(f, at, order=9) for at in (0, 1)]
    if widths[0] is None or widths[1] is None:
        return False
    return f.is_positive(((widths[0], 1 - widths[1]),), 128, OWN_PIECES)


def is_smooth(expr: sympy.Expr, symbols: Sequence[sympy.Symbol], ranges: Box) -> bool:
    """Has the expression a ball, so neither a pole nor an undefined value, on all of 0 < t < 1 and the ranges?"""
    f = Function(expr, symbols)
    waiting, left = [ranges], 64
    while waiting:
        box = waiting.pop()
        widths = [_smooth_width(f, at, box) for at in (0, 1)]
        if widths[0] is not None and widths[1] is not None:
            if not f.is_defined(((widths[0], 1 - widths[1]), *box), 128, OWN_PIECES):
                return False
            continue
        left -= 1
        if left < 0 or all(low == high for low, high in box):
            return False
        waiting += _parts(box)
    return True


def _smooth_width(f: Function, at: int, ranges: Box) -> Fraction | None:
    with precision(STRIP_BITS):
        for delta in DELTAS[:5]:
            side = (S.Zero, delta) if at == 0 else (1 - delta, S.One)
            values = _balls(f, ranges)
            for attempt in (
                lambda: ball(f.f, {f.symbols[0]: interval(*side), **values}),  # noqa: B023
                lambda: Strip(f.symbols[0], at, delta, 3, values).expand(f.f),  # noqa: B023
            ):
                try:
                    attempt()
                    return delta
                except Undefined:
                    continue
    return None
