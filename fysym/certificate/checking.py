"""`verify`: each claim of a certificate is tied to its entropy and re-checked, by other code than that which found it.

The digest guards against accidents only: a forger can renew it, but cannot make a false step pass.
"""

from __future__ import annotations

import contextlib
import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import sympy
from sympy import S

from .. import certify_precision, deadline, entropy
from ..entropy import VARIABLE as T
from ..errors import FysymError, UndecidedError, UnsupportedError
from . import covers, data, steps
from .data import SECONDS, CertificateError, Step
from .ranges import environment, holds, span_of

MOST_SECONDS = 120.0  # for one certificate


def verify(certificate: dict[str, Any]) -> bool:
    """True when every claim of the certificate was re-checked; otherwise an error that says what fails.

    >>> import fysym
    >>> fysym.verify(fysym.catalog.gini.certificate())
    True
    """
    return bool(examine(certificate))


def examine(certificate: dict[str, Any]) -> list[str]:
    """How each step of a certificate was re-checked, one line a step; raises like `verify`."""
    if not certify_precision.available():
        raise UnsupportedError("certificates are checked with python-flint; install fysym[certify]")
    try:
        return deadline.run(_examine, certificate, seconds=MOST_SECONDS)
    except FysymError:
        raise
    except deadline.StepTimeout:
        raise UndecidedError("the certificate could not be re-checked in time") from None
    except Exception as error:  # data of any shape may come in
        raise CertificateError(f"the certificate is malformed ({type(error).__name__}: {str(error)[:120]})") from error


def _examine(certificate: dict[str, Any]) -> list[str]:
    data.measure(certificate)
    form, version = data.field(certificate, "format", str), data.field(certificate, "version", int)
    if (form, version) != (data.FORMAT, data.VERSION):
        raise CertificateError(f"this is not a {data.FORMAT} of version {data.VERSION}")
    data.keys(certificate, "format", "version", "entropy", "parameters", "substitutions", "claims", "digest")
    if data.field(certificate, "digest", str) != data.digest({k: v for k, v in certificate.items() if k != "digest"}):
        raise CertificateError("the certificate was changed after it was made: its digest does not match")
    params = data.field(certificate, "parameters", dict)
    if not all(type(text) is str for text in params.values()):
        raise CertificateError("the range of a parameter is a text")
    h = entropy.read(data.field(certificate, "entropy", str), params, deadline.Deadline(SECONDS))
    _check_substitutions(data.field(certificate, "substitutions", dict), h)
    places = list(_places(h))
    lines: list[str] = []
    claims = data.field(certificate, "claims", list)
    for number, claim in enumerate(claims, 1):
        lines += [f"claim {number}: {data.field(claim, 'claim', str)}", *_check_claim(claim, h, places)]
    for place in places:
        if not place.claimed:
            raise CertificateError(f"nothing is claimed about {place.what}{place}")
        lines += _check_place(place) if place.what != "switch" else []
    return lines


def _check_substitutions(given: dict[str, Any], h: entropy.Entropy) -> None:
    if set(given) != {p.name for p in h.parameters}:
        raise CertificateError("the substitutions do not fit the parameters")
    for p in h.parameters:
        if data.expression(given[p.name], {p.coordinate.name: p.coordinate}) != p.opened:
            raise CertificateError(f"the substitution of {p.name} should read: {p.opened}")


@dataclass
class _Place:
    """One smooth piece of the entropy, inside the ranges of its parameters or at a closed end of one.

    Or, where `what` is a switch, a function that must not vanish for h to be one expression there. `members` are
    single ones inside the ranges, by a parameter, which are places of their own.
    """

    what: str
    faces: tuple[str, ...]
    piece: str
    plain: sympy.Expr
    opened: sympy.Expr
    parameters: tuple[entropy.Parameter, ...]
    members: tuple[tuple[sympy.Symbol, sympy.Expr], ...]
    claimed: bool = False

    def __str__(self) -> str:
        return "".join(self.faces) + self.piece


def _places(
    h: entropy.Entropy, faces: tuple[str, ...] = (), known: set[tuple[sympy.Expr, ...]] | None = None
) -> Iterator[_Place]:
    """The places of an entropy and of its members at closed ends; those of the same formula are the same members."""
    known = set() if known is None else known
    formula = (h.given, *(p.symbol for p in h.parameters))
    if formula in known:
        return
    known.add(formula)
    edges = [S.Zero, *(piece.high for piece in h.pieces)]
    if [piece.low for piece in h.pieces] != edges[:-1] or edges[-1] != 1:
        raise UndecidedError("the smooth pieces of the entropy do not fill (0, 1)")
    for at, step in h.point_steps():
        if step is None or not _is_same(step, S.Zero):
            raise UndecidedError(f"that h does not jump at the single point t = {at} could not be re-checked")
    for left, right in zip(h.pieces, h.pieces[1:], strict=False):
        _check_kink(h, right.expr - left.expr, left.high)
    for piece in h.pieces:
        plain = replace(piece, expr=piece.expr + sympy.expand(h.affine)).stretched(T, T)
        members = h.exceptional.members
        yield _Place("h''", faces, f" on ({piece.low}, {piece.high})", plain, h.opened(plain), h.parameters, members)
        for part in piece.steady:
            plain = part.stretched(T, T)
            yield _Place("switch", faces, f" on ({part.low}, {part.high})", plain, plain, h.parameters, members)
    for values in h.faces():
        at = "".join(f" at {name} = {value}" for name, value in values.items())
        yield from _places(entropy.bind(h, values, deadline.Deadline(SECONDS)), (*faces, at), known)


def _check_kink(h: entropy.Entropy, step: sympy.Expr, at: sympy.Expr) -> None:
    """From one piece to the next h does not jump and its slope does not rise."""
    jump, rise = (sympy.powsimp(sympy.diff(h.opened(step), T, order)).subs(T, at) for order in (0, 1))
    if not _is_same(jump, S.Zero):
        raise UndecidedError(f"that h is continuous at t = {at} could not be re-checked")
    falls = _is_same(rise, S.Zero)
    with contextlib.suppress(UndecidedError):
        falls = falls or holds(span_of(rise, environment(rise)), -1, False)
    if not falls:
        raise UndecidedError(f"that the slope of h falls at t = {at} could not be re-checked")


def _check_place(place: _Place) -> Iterator[str]:
    """h has neither a pole nor an undefined value inside: the sign of h'' alone does not tell."""
    where = f"h{place} is smooth: "
    for parts in itertools.product(*(_without(p, place.members) for p in place.parameters)):
        spans = {T: (S.Zero, S.One), **{p.symbol: part for p, part in zip(place.parameters, parts, strict=True)}}
        if _is_ranged(place.plain, spans) or (
            not place.members and _is_ranged(place.opened, environment(place.opened))
        ):
            yield where + "by ranges of its parts"
            continue
        ranges = tuple((_outward(low, -1), _outward(high, 1)) for low, high in parts)
        symbols = (T, *(p.symbol for p in place.parameters))
        if not covers.is_smooth(place.plain, symbols, ranges):
            raise UndecidedError(f"that h is smooth inside (0, 1) could not be re-checked{place}")
        yield where + "by boxes and strips"


def _without(
    p: entropy.Parameter, members: tuple[tuple[sympy.Symbol, sympy.Expr], ...]
) -> list[tuple[sympy.Expr, sympy.Expr]]:
    """The range of a parameter as open intervals between its exceptional values."""
    inside = sorted(value for symbol, value in members if symbol == p.symbol)
    edges = [p.range.low, *inside, p.range.high]
    return list(zip(edges, edges[1:], strict=False))


def _is_ranged(form: sympy.Expr, spans: dict[sympy.Symbol, tuple[sympy.Expr, sympy.Expr]]) -> bool:
    try:
        span_of(form, spans)
    except UndecidedError:
        return False
    return True


def _outward(value: sympy.Expr, side: int) -> Fraction:
    """The end of a range as a fraction, an irrational one rounded outward."""
    if not value.is_finite:
        raise UndecidedError("that h is smooth for an infinite range of a parameter could not be re-checked")
    if value.is_Rational:
        return Fraction(int(value.p), int(value.q))
    return Fraction(int(sympy.floor(value * 2**64)) + (side > 0), 2**64)


RELATIONS = {"< 0": (-1, True), "<= 0": (-1, False), "> 0": (1, True), ">= 0": (1, False)}


def _check_claim(claim: Any, h: entropy.Entropy, places: list[_Place]) -> Iterator[str]:
    """The words, the argument and the entropy must fit each other, and the argument must hold."""
    data.keys(claim, "claim", "interval", "argument")
    words = data.field(claim, "claim", str)
    match = re.fullmatch(r"(?:h('{1,4})|switch) ([<>]=? 0)", words)
    if match is None:
        raise CertificateError(f"the claim {words[:60]!r} is not about a derivative of h, so it cannot be checked")
    if data.field(claim, "interval", list) != ["0", "1"]:
        raise CertificateError(f"the interval of the claim {words!r} is not (0, 1)")
    raw = data.field(claim, "argument", dict)
    whole = data.field(raw, "rule", str) == "ball arithmetic"
    symbols = [
        T,
        *([p.symbol for p in h.parameters] if whole else [steps.X, *(p.coordinate for p in h.parameters)]),
    ]
    argument = data.step(raw, {s.name: s for s in symbols})
    sign, strict = RELATIONS[match[2]]
    if argument.sign != sign or (strict and not argument.strict):
        raise CertificateError(f"the argument does not prove the claim {words!r}")
    order = len(match[1] or "")
    what = "h''" if order else "switch"
    place = _find(argument, order, [place for place in places if place.what == what])
    yield f"  the expression is {f'h{match[1]}' if order else 'a switch'} of the entropy{place}"
    if argument.cover is not None:
        if argument.children:
            raise CertificateError("a cover rests on no other step")
        yield "  " + covers.check(argument.cover, argument.expr, sign)
    else:
        yield from ("  " + line for line in steps.check(argument))
    if order == 0:
        place.claimed |= argument.strict
    if order == 2 and not argument.strict and not _is_bent(place):
        raise UndecidedError(f"that h is nowhere affine could not be re-checked{place}")
    for other in places:
        covered = other is place or (argument.cover is not None and other.faces[: len(place.faces)] == place.faces)
        same = (other.what, other.piece) == (place.what, place.piece)
        other.claimed |= order == 2 and sign < 0 and covered and same


def _is_bent(place: _Place) -> bool:
    """Is h'' not 0 throughout, for all parameters at once? Its zeros are isolated then, as h is analytic inside."""
    second = sympy.diff(place.opened, T, 2)
    values = [second.subs(T, at) for at in (S.One / 3, S.Half, sympy.Rational(3, 5))]
    if second.is_polynomial(T):  # not all of its coefficients vanish at once
        values += sympy.Poly(second, T).coeffs()
    for value in values:
        with contextlib.suppress(FysymError):
            span = span_of(value, environment(value))
            if holds(span, -1, True) or holds(span, 1, True):
                return True
    return False


def _find(argument: Step, order: int, places: list[_Place]) -> _Place:
    """The place whose derivative of h is the expression, for all its parameters; one without a claim goes first.

    Proofs use the positive coordinates of the parameters; covers use the parameters and must hold their ranges.
    """
    for place in sorted(places, key=lambda place: place.claimed):
        if argument.cover is not None:
            spans = dict(zip(argument.cover.symbols[1:], argument.cover.ranges, strict=True))
            used = [p for p in place.parameters if argument.expr.has(p.symbol)]
            if not all(_within(p.range, spans.get(p.symbol)) for p in used):
                continue
        derivative = sympy.diff(place.opened if argument.cover is None else place.plain, T, order)
        if derivative == argument.expr or (
            derivative.free_symbols == argument.expr.free_symbols and _is_same(derivative, argument.expr)
        ):
            return place
    raise CertificateError(
        f"{steps.short(argument.expr)} is not h{chr(39) * order} of the entropy for all its parameters"
    )


def _is_same(a: sympy.Expr, b: sympy.Expr) -> bool:
    try:
        return bool(steps.same(a, b))
    except FysymError:
        return False


def _within(span: Any, box: tuple[Fraction, Fraction] | None) -> bool:
    return box is not None and bool(span.low >= sympy.Rational(box[0]) and span.high <= sympy.Rational(box[1]))
