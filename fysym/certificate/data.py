"""Certificates as they come in: limits on their size, and JSON back to expressions, boxes and steps.

Nothing in a certificate is trusted: every type is checked before it is used, and texts are read by the
parser of entropies or from the white list of names below.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import sympy
from sympy import S

from .. import deadline
from ..errors import FysymError
from ..parse import parse_expression
from .balls import Box, Interval

FORMAT, VERSION = "fysym certificate", 2
MOST_PARTS, MOST_DEPTH, MOST_CHARACTERS, MOST_BITS = 400_000, 200, 10_000, 4_800
SECONDS = 10.0  # for one step of the check

HEADS: dict[str, Any] = {
    head.__name__: head
    for head in (
        sympy.Add, sympy.Mul, sympy.Pow, sympy.exp, sympy.log, sympy.sin, sympy.cos, sympy.tan, sympy.cot, sympy.sec,
        sympy.csc, sympy.asin, sympy.acos, sympy.atan, sympy.sinh, sympy.cosh, sympy.tanh, sympy.asinh, sympy.acosh,
        sympy.atanh, sympy.erf, sympy.erfc, sympy.erfinv, sympy.erfcinv, sympy.LambertW, sympy.gamma, sympy.loggamma,
        sympy.polygamma, sympy.Abs, sympy.sign,
    )
}  # fmt: skip
ATOMS = {"pi": S.Pi, "E": S.Exp1, "EulerGamma": S.EulerGamma, "Catalan": S.Catalan}


class CertificateError(FysymError):
    """A certificate does not hold; the message names the claim and the step that fails."""


@dataclass(frozen=True)
class Strip:
    """|f| >= bound * x^power * log(1/x)^log_power > 0 for 0 < x <= delta, x the distance to the end `at`."""

    at: int
    rule: str
    delta: Fraction
    bound: Fraction
    power: sympy.Expr
    log_power: sympy.Expr
    order: int
    box: Box


@dataclass(frozen=True)
class Cover:
    """Boxes in (t, *parameters) and strips at both ends that are said to settle the sign of an expression."""

    symbols: tuple[sympy.Symbol, ...]
    ranges: Box
    precision: int
    boxes: tuple[Box, ...]
    strips: tuple[Strip, ...]

    @property
    def evidence(self) -> str:
        how = "leading terms" if any(strip.rule == "leading term" for strip in self.strips) else "closed strips"
        boxes = "1 box" if len(self.boxes) == 1 else f"{len(self.boxes)} boxes"
        return f"ball arithmetic: {boxes} at {self.precision} bits, ends by {how}"


@dataclass(frozen=True)
class Step:
    """A step of an argument: `expr` has this sign by this rule, from its children or its cover."""

    expr: sympy.Expr
    sign: int
    strict: bool
    rule: str
    children: tuple[Step, ...]
    cover: Cover | None


def digest(content: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def measure(data: Any) -> None:
    """Refuse what is not plain JSON of a size that can be checked."""
    parts, waiting = 0, [(data, 0)]
    while waiting:
        value, depth = waiting.pop()
        parts += 1
        if type(value) not in (dict, list, str, int, bool):
            raise CertificateError(f"a certificate has no place for {type(value).__name__}")
        if depth > MOST_DEPTH or parts + len(waiting) > MOST_PARTS:
            raise CertificateError("the certificate is too large or too deeply nested to be checked")
        if type(value) is int and abs(value) >= 2**64:
            raise CertificateError("the certificate holds a number that is too large")
        if type(value) is str and len(value) > MOST_CHARACTERS:
            raise CertificateError(f"the certificate holds a text of more than {MOST_CHARACTERS} characters")
        if type(value) is dict:
            if not all(type(key) is str and len(key) < 100 for key in value):
                raise CertificateError("the certificate has a key that is not a short text")
            if len(value) > MOST_PARTS:
                raise CertificateError("the certificate is too large to be checked")
            waiting += [(inner, depth + 1) for inner in value.values()]
        elif type(value) is list:
            if len(value) > MOST_PARTS:
                raise CertificateError("the certificate is too large to be checked")
            waiting += [(inner, depth + 1) for inner in value]


def field(data: Any, name: str, kind: type) -> Any:
    """data[name], which must be of this type."""
    if type(data) is not dict or name not in data:
        raise CertificateError(f"the certificate has no {name!r} where there should be one")
    if type(data[name]) is not kind:
        raise CertificateError(f"{name!r} should be of type {kind.__name__}, not {type(data[name]).__name__}")
    return data[name]


def keys(data: dict[str, Any], *names: str) -> None:
    """A certificate says nothing that is not checked."""
    extra = set(data) - set(names)
    if extra:
        raise CertificateError(f"the certificate has an unknown key {sorted(extra)[0][:40]!r}")


def expression(data: Any, symbols: dict[str, sympy.Symbol]) -> sympy.Expr:
    if isinstance(data, str) and data not in ATOMS and not _NUMBER.fullmatch(data):
        expr = parse_expression(data)
        unknown = [s.name for s in expr.free_symbols if s.name not in symbols]
        if unknown:
            raise CertificateError(f"{unknown[0]!r} is not a symbol of this claim")
        return expr.xreplace({s: symbols[s.name] for s in expr.free_symbols})
    expr = deadline.run(_build, data, symbols, seconds=SECONDS)
    if not isinstance(expr, sympy.Expr) or expr.has(S.NaN, S.ComplexInfinity, S.Infinity, -S.Infinity, S.ImaginaryUnit):
        raise CertificateError("an expression is not a finite real one")
    return expr


_NUMBER = re.compile(r"-?\d{1,1300}(/[1-9]\d{0,1299})?", re.ASCII)


def _build(data: Any, symbols: dict[str, sympy.Symbol]) -> sympy.Expr:
    """A tree of names back to an expression; only names in the tables above are known."""
    if isinstance(data, str):
        return ATOMS[data] if data in ATOMS else sympy.Rational(fraction(data))
    if type(data) is not list or not data or not isinstance(data[0], str):
        raise CertificateError("an expression is a text, or a list that starts with a name")
    head, *rest = data
    if head == "symbol":
        if len(rest) != 1 or rest[0] not in symbols:
            raise CertificateError("a tree names a symbol that is not declared")
        return symbols[rest[0]]
    if head not in HEADS or not rest:
        raise CertificateError(f"{head[:40]!r} is not a function of certificates")
    args = [_build(part, symbols) for part in rest]
    if head == "Pow" and args[0].is_number and args[1].is_Rational and max(abs(args[1]), args[1].q) > 1000:
        raise CertificateError("a power of a number is too large")
    if head in ("exp", "gamma", "loggamma", "polygamma") and any(a.is_number and abs(a) > 1000 for a in args):
        raise CertificateError(f"{head} of a number beyond 1000 is too large")
    return HEADS[head](*args)


def fraction(text: Any) -> Fraction:
    if not isinstance(text, str) or not _NUMBER.fullmatch(text):
        raise CertificateError(f"{str(text)[:40]!r} is not an exact fraction")
    return Fraction(text)


def box(data: Any) -> Box:
    if type(data) is not list:
        raise CertificateError("a box is a list of pairs")
    return tuple(_interval(pair) for pair in data)


def _interval(pair: Any) -> Interval:
    if type(pair) is not list or len(pair) != 2:
        raise CertificateError("an interval has two ends")
    low, high = fraction(pair[0]), fraction(pair[1])
    if low > high:
        raise CertificateError("the ends of an interval are in the wrong order")
    return low, high


def sign_of(data: Any) -> int:
    found = field(data, "sign", int)
    if found not in (1, -1):
        raise CertificateError(f"a sign is 1 or -1, not {found}")
    return int(found)


def cover(data: Any, symbols: dict[str, sympy.Symbol]) -> Cover:
    keys(data, "precision", "ranges", "boxes", "ends", "evidence")
    ranges = field(data, "ranges", dict)
    if "t" not in symbols or any(name not in symbols or name == "t" for name in ranges):
        raise CertificateError("a range belongs to no parameter")
    strips = []
    for end in field(data, "ends", list):
        if type(end) is not dict:
            raise CertificateError("an end is described by names and values")
        power, log_power = (expression(end.get(name), symbols) for name in ("power", "log_power"))
        keys(end, "at", "rule", "delta", "bound", "power", "log_power", "order", "box")
        delta, bound = fraction(field(end, "delta", str)), fraction(field(end, "bound", str))
        at, rule, order = field(end, "at", int), field(end, "rule", str), field(end, "order", int)
        strips.append(Strip(at, rule, delta, bound, power, log_power, order, box(field(end, "box", list))))
    found = Cover(
        (symbols["t"], *(symbols[name] for name in ranges)),
        box(list(ranges.values())),
        field(data, "precision", int),
        tuple(box(part) for part in field(data, "boxes", list)),
        tuple(strips),
    )
    if field(data, "evidence", str) != found.evidence:
        raise CertificateError(f"the evidence should read: {found.evidence}")
    return found


def step(data: Any, symbols: dict[str, sympy.Symbol]) -> Step:
    rule = field(data, "rule", str)
    names = ("expression", "sign", "strict", "rule", "children")
    keys(data, *names, *(["cover"] if rule == "ball arithmetic" else []))
    children = tuple(step(child, symbols) for child in field(data, "children", list))
    expr = expression(data.get("expression"), symbols)
    found = cover(field(data, "cover", dict), symbols) if rule == "ball arithmetic" else None
    return Step(expr, sign_of(data), field(data, "strict", bool), rule, children, found)
