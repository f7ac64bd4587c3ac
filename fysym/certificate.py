"""Certificates: an argument as plain JSON data, and a check of it that does not trust whoever found it.

A certificate states an entropy, the ranges of its parameters, and claims such as h'' < 0 on (0, 1), each
with its whole argument: a tree of steps (`signs.Proof`) or a cover by boxes (`certify.Cover`). `verify`
reads the expressions back from text, ties them to the entropy, and re-checks each step by a rule of its
own, with balls (python-flint). The digest guards against accidents only: a forger can renew it, but
cannot make a false step pass.
"""

from __future__ import annotations

import hashlib
import json
import random
import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import sympy
from sympy import S

from . import certify, deadline, entropy, truth
from .certify import Box, Cover, End, Field
from .errors import FysymError, UndecidedError, UnsupportedError
from .parse import parse_expression
from .signs import Proof

FORMAT, VERSION = "fysym certificate", 1
POINTS, DIGITS, BITS = 20, 40, 256
SECONDS = 10.0  # for one step of the check
RELATIONS = {"< 0": -1, "<= 0": -1, "> 0": 1, ">= 0": 1}


class CertificateError(FysymError):
    """A certificate does not hold; the message names the claim and the step that fails."""


def export(entropy_text: str, claims: Sequence[tuple[str, Proof | Cover]], params: dict[str, str]) -> dict[str, Any]:
    """The claims with their arguments as data for json.dumps; `params` maps names to ranges such as "alpha > 1"."""
    certificate = {
        "format": FORMAT,
        "version": VERSION,
        "entropy": entropy_text,
        "parameters": dict(params),
        "claims": [_claim(words, argument) for words, argument in claims],
    }
    return certificate | {"digest": _digest(certificate)}


def verify(certificate: dict[str, Any]) -> bool:
    """True when every claim of the certificate was re-checked; otherwise an error that says what fails."""
    return bool(examine(certificate))


def examine(certificate: dict[str, Any]) -> list[str]:
    """How each step of a certificate was re-checked, one line a step; raises like `verify`."""
    if not certify.available():
        raise UnsupportedError("certificates are checked with python-flint; install fysym[certify]")
    try:
        return _examine(certificate)
    except FysymError:
        raise
    except deadline.StepTimeout:
        raise UndecidedError("the certificate could not be re-checked in time") from None
    except Exception as error:  # data of any shape may come in
        raise CertificateError(f"the certificate is malformed ({type(error).__name__}: {str(error)[:120]})") from error


def _examine(certificate: dict[str, Any]) -> list[str]:
    if certificate["format"] != FORMAT or certificate["version"] != VERSION:
        raise CertificateError(f"this is not a {FORMAT} of version {VERSION}")
    if certificate["digest"] != _digest({k: v for k, v in certificate.items() if k != "digest"}):
        raise CertificateError("the certificate was changed after it was made: its digest does not match")
    claims = certificate["claims"]
    if not claims:
        raise CertificateError("the certificate claims nothing")
    places = list(_places(entropy.read(certificate["entropy"], certificate["parameters"], deadline.Deadline(SECONDS))))
    lines: list[str] = []
    for number, claim in enumerate(claims, 1):
        words = claim["claim"]
        lines.append(f"claim {number}: {words}")
        symbols = {name: _symbol(name, kind) for name, kind in claim["symbols"].items()}
        expr = _read(claim["expression"], symbols)
        _check_words(claim)
        argument: Cover | _Step
        if claim["method"] == "ball arithmetic":
            argument = _read_cover(claim, expr, symbols)
            lines.append("  " + _tie(argument, words, places))
            lines.append("  " + _check_cover(argument))
            if claim["evidence"] != argument.evidence:
                raise CertificateError(f"claim {number}: its evidence should read: {argument.evidence}")
        elif claim["method"] == "symbolic proof":
            argument = _read_step(claim["proof"], symbols)
            if (argument.expr, argument.sign, argument.strict) != (expr, claim["sign"], claim["strict"]):
                raise CertificateError(f"claim {number}: the proof proves something else than is claimed")
            if not all(symbol.is_positive for symbol in symbols.values()):
                raise CertificateError(f"claim {number}: a proof speaks of positive symbols only")
            lines.append("  " + _tie(argument, words, places))
            lines += ["  " + line for line in _check_step(argument, _environment(expr))]
        else:
            raise CertificateError(f"claim {number}: there is no method called {claim['method']!r}")
    for place in places:
        if any(claim["claim"].startswith("h'' ") for claim in claims) and not place.claimed:
            raise CertificateError(f"nothing is claimed about h''{place.face}{place.piece}")
    return lines


def _digest(content: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _check_words(claim: dict[str, Any]) -> None:
    """The words, the sign, strictness and the interval must say the same."""
    words, sign, strict = claim["claim"], claim["sign"], claim["strict"]
    relation = " ".join(words.split()[-2:])
    if RELATIONS.get(relation) != sign or not isinstance(strict, bool) or (len(relation) == 3 and not strict):
        raise CertificateError(f"the claim {words!r} does not fit the sign {sign} and strict = {strict}")
    if claim["interval"] != ["0", "1"]:
        raise CertificateError(f"the interval of the claim {words!r} is not (0, 1)")


@dataclass
class _Place:
    """One smooth piece of the entropy, inside the ranges of its parameters or at a closed end of one."""

    face: str
    piece: str
    plain: sympy.Expr
    opened: sympy.Expr
    parameters: tuple[entropy.Parameter, ...]
    claimed: bool = False


def _places(h: entropy.Entropy, face: str = "") -> Iterator[_Place]:
    for piece in h.pieces:
        plain = piece.stretched(h.t)
        yield _Place(face, f" on ({piece.low}, {piece.high})", plain, h.opened(plain), h.parameters)
    for values in h.faces():
        at = "".join(f" at {name} = {value}" for name, value in values.items())
        yield from _places(entropy.bind(h, values, deadline.Deadline(SECONDS)), face + at)


def _tie(argument: Cover | _Step, words: str, places: list[_Place]) -> str:
    """Check that the expression is the derivative of the entropy that the words name, for all parameters.

    Proofs use the positive coordinates of the parameters; covers use the parameters and must hold their ranges.
    """
    match = re.fullmatch(r"h('{1,4}) [<>]=? 0", words)
    if match is None:
        raise CertificateError(f"the claim {words!r} is not about a derivative of h, so it cannot be checked")
    spans = {symbol.name: span for symbol, span in argument.ranges} if isinstance(argument, Cover) else {}
    found = ""
    for place in places:
        if isinstance(argument, Cover) and not all(_within(p.range, spans.get(p.name)) for p in place.parameters):
            continue
        given = place.plain if isinstance(argument, Cover) else place.opened
        derivative = sympy.diff(given, _t, len(match[1]))
        if {s.name for s in argument.expr.free_symbols} <= {"t", *(s.name for s in derivative.free_symbols)}:
            how = _same(argument.expr, derivative, require=False, spans=spans)
            if how:
                for other in places:
                    faces = other.face.startswith(place.face) if isinstance(argument, Cover) else other is place
                    other.claimed |= len(match[1]) == 2 and faces and other.piece == place.piece
                found = found or f"the expression is h{match[1]} of the entropy{place.face}{place.piece}: {how}"
    if not found:
        raise CertificateError(f"{_short(argument.expr)} is not h{match[1]} of the entropy for all its parameters")
    return found


def _within(span: Any, box: tuple[Fraction, Fraction] | None) -> bool:
    return box is not None and bool(span.low >= sympy.Rational(box[0]) and span.high <= sympy.Rational(box[1]))


def _positive(expr: sympy.Expr) -> sympy.Expr:
    """The expression with every symbol replaced by the positive one of that name."""
    return expr.xreplace({s: sympy.Symbol(s.name, positive=True) for s in expr.free_symbols})


# --- writing -----------------------------------------------------------------------------------------

_HEADS: dict[str, Any] = {
    head.__name__: head
    for head in (
        sympy.Add, sympy.Mul, sympy.Pow, sympy.exp, sympy.log, sympy.sin, sympy.cos, sympy.tan, sympy.cot, sympy.sec,
        sympy.csc, sympy.asin, sympy.acos, sympy.atan, sympy.sinh, sympy.cosh, sympy.tanh, sympy.asinh, sympy.acosh,
        sympy.atanh, sympy.erf, sympy.erfc, sympy.erfinv, sympy.erfcinv, sympy.LambertW, sympy.gamma, sympy.loggamma,
        sympy.polygamma, sympy.Abs, sympy.sign,
    )
}  # fmt: skip
_ATOMS = {"pi": S.Pi, "E": S.Exp1, "EulerGamma": S.EulerGamma, "Catalan": S.Catalan}


def _claim(words: str, argument: Proof | Cover) -> dict[str, Any]:
    body = _write_proof(argument) if isinstance(argument, Proof) else _write_cover(argument)
    return {
        "claim": words,
        "expression": _write(argument.expr),
        "interval": ["0", "1"],
        "sign": argument.sign,
        "strict": argument.strict,
        **body,
    }


def _write_proof(proof: Proof) -> dict[str, Any]:
    used = {symbol for step in _steps(proof) for symbol in step.expr.free_symbols}
    if not all(symbol.is_positive for symbol in used):
        raise UnsupportedError("a proof whose symbols are not all positive cannot be written into a certificate")
    symbols = {symbol.name: "positive" for symbol in sorted(used, key=str)}
    return {"method": "symbolic proof", "symbols": symbols, "proof": _write_step(proof)}


def _steps(proof: Proof) -> Iterator[Proof]:
    yield proof
    for child in proof.children:
        yield from _steps(child)


def _write(expr: sympy.Expr) -> Any:
    """Text that `parse_expression` reads back as the same expression, else a tree of names."""
    text = str(expr)
    symbols = {s.name: s for s in expr.free_symbols}
    try:
        back = parse_expression(text)
        if back.xreplace({s: symbols[s.name] for s in back.free_symbols}) == expr:
            return text
    except (FysymError, KeyError):
        pass
    return _tree(expr)


def _tree(expr: sympy.Expr) -> Any:
    if expr.is_Symbol:
        return ["symbol", expr.name]
    if expr.is_Rational:
        return f"{expr.p}/{expr.q}"
    for name, atom in _ATOMS.items():
        if expr == atom:
            return name
    if expr.func.__name__ not in _HEADS:
        raise UnsupportedError(f"{_short(expr)} cannot be written into a certificate")
    return [expr.func.__name__, *map(_tree, expr.args)]


def _write_step(proof: Proof) -> dict[str, Any]:
    return {
        "expression": _write(proof.expr),
        "sign": proof.sign,
        "strict": proof.strict,
        "rule": proof.rule,
        "note": proof.note,
        "children": [_write_step(child) for child in proof.children],
    }


def _write_cover(cover: Cover) -> dict[str, Any]:
    symbols = [cover.t, *(symbol for symbol, _ in cover.ranges)]
    if cover.t.name != "t":
        raise UnsupportedError(f"the variable of a certificate is called t, not {cover.t}")
    return {
        "method": "ball arithmetic",
        "symbols": {symbol.name: "positive" if symbol.is_positive else "real" for symbol in symbols},
        "evidence": cover.evidence,
        "precision": cover.precision,
        "ranges": {symbol.name: [str(end) for end in span] for symbol, span in cover.ranges},
        "boxes": [_write_box(box) for box in cover.boxes],
        "ends": [
            {
                "at": end.at,
                "rule": end.rule,
                "delta": str(end.delta),
                "bound": str(end.bound),
                "power": _write(end.power),
                "log_power": _write(end.log_power),
                "order": end.order,
                "box": _write_box(end.box),
            }
            for end in cover.ends
        ],
    }


def _write_box(box: Box) -> list[list[str]]:
    return [[str(low), str(high)] for low, high in box]


# --- reading -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Step:
    """A step of a proof as read back from a certificate."""

    expr: sympy.Expr
    sign: int
    strict: bool
    rule: str
    children: tuple[_Step, ...]


def _symbol(name: str, kind: str) -> sympy.Symbol:
    if not re.fullmatch(r"[A-Za-z_]\w{0,99}", name, re.ASCII) or kind not in ("positive", "real"):
        raise CertificateError(f"{name!r}: {kind!r} does not describe a symbol")
    return sympy.Symbol(name, positive=True) if kind == "positive" else sympy.Symbol(name, real=True)


def _read(data: Any, symbols: dict[str, sympy.Symbol]) -> sympy.Expr:
    if isinstance(data, str) and data not in _ATOMS and not _NUMBER.fullmatch(data):
        expr = parse_expression(data)
        return expr.xreplace({s: symbols[s.name] for s in expr.free_symbols})
    return deadline.run(_build, data, symbols, seconds=SECONDS)


_NUMBER = re.compile(r"-?\d{1,4000}(/[1-9]\d{0,3999})?", re.ASCII)


def _build(data: Any, symbols: dict[str, sympy.Symbol]) -> sympy.Expr:
    """A tree of names back to an expression; only names in the tables above are known."""
    if isinstance(data, str):
        return _ATOMS[data] if data in _ATOMS else sympy.Rational(*map(int, _checked(data).split("/")))
    head, *rest = data
    if head == "symbol":
        return symbols[rest[0]]
    args = [_build(part, symbols) for part in rest]
    if head == "Pow" and args[0].is_number and args[1].is_Rational and max(abs(args[1]), args[1].q) > 1000:
        raise CertificateError("a power of a number is too large")
    return _HEADS[head](*args)


def _checked(text: Any) -> str:
    if not isinstance(text, str) or not _NUMBER.fullmatch(text):
        raise CertificateError(f"{str(text)[:40]!r} is not an exact fraction")
    return text


def _read_box(data: Any) -> Box:
    return tuple((Fraction(_checked(low)), Fraction(_checked(high))) for low, high in data)


def _read_step(data: dict[str, Any], symbols: dict[str, sympy.Symbol]) -> _Step:
    sign, strict = data["sign"], data["strict"]
    if sign not in (1, -1) or not isinstance(strict, bool):
        raise CertificateError(f"a step claims the sign {sign!r}, strict = {strict!r}")
    children = tuple(_read_step(child, symbols) for child in data["children"])
    return _Step(_read(data["expression"], symbols), sign, strict, data["rule"], children)


def _read_cover(claim: dict[str, Any], expr: sympy.Expr, symbols: dict[str, sympy.Symbol]) -> Cover:
    ends = tuple(
        End(
            end["at"],
            end["rule"],
            Fraction(_checked(end["delta"])),
            Fraction(_checked(end["bound"])),
            _read(end["power"], symbols),
            _read(end["log_power"], symbols),
            end["order"],
            _read_box(end["box"]),
        )
        for end in claim["ends"]
    )
    spans = _read_box(claim["ranges"].values())
    ranges = tuple((symbols[name], span) for name, span in zip(claim["ranges"], spans, strict=True))
    boxes = tuple(_read_box(box) for box in claim["boxes"])
    return Cover(expr, symbols["t"], claim["sign"], boxes, claim["precision"], ends, ranges, claim["strict"])


# --- covers ------------------------------------------------------------------------------------------


def _check_cover(cover: Cover) -> str:
    """The boxes and strips leave no gap, and on each of them the sign holds at twice the precision."""
    parameters = tuple(span for _, span in cover.ranges)
    if not cover.expr.free_symbols <= {cover.t, *(symbol for symbol, _ in cover.ranges)}:
        raise CertificateError("the expression has a symbol without a range")
    if cover.sign not in (1, -1) or not 0 < cover.precision <= certify.MOST_BITS:
        raise CertificateError(f"the cover states sign {cover.sign} and {cover.precision} bits")
    try:
        field = Field(cover.expr, (cover.t, *(symbol for symbol, _ in cover.ranges)), cover.sign)
    except certify.NotEvaluable as error:
        raise CertificateError(f"{error} has no ball arithmetic") from error
    deltas = []
    for at in (0, 1):
        strips = [end for end in cover.ends if end.at == at]
        if not _tiles(parameters, [end.box for end in strips]):
            raise CertificateError(f"the strips next to {at} do not cover the range of the parameters")
        for end in strips:
            _check_end(field, end)
        deltas.append(min(end.delta for end in strips))
    if any(end.at not in (0, 1) for end in cover.ends):
        raise CertificateError("a strip is next to neither 0 nor 1")
    if not _tiles(((deltas[0], 1 - deltas[1]), *parameters), cover.boxes):
        raise CertificateError("the boxes do not tile the interval between the strips")
    for box in cover.boxes:
        if not field.settle(box, 2 * cover.precision)[0]:
            raise CertificateError(f"the sign of {_short(cover.expr)} is not settled on the box {_write_box(box)}")
    return (
        f"{len(cover.boxes)} boxes without gap, each re-evaluated at {2 * cover.precision} bits; both strips re-checked"
    )


def _tiles(domain: Box, boxes: Sequence[Box]) -> bool:
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
                _tiles((*domain[:k], side, *domain[k + 1 :]), group) for side, group in zip(sides, groups, strict=True)
            )
    return False


def _check_end(field: Field, end: End) -> None:
    """The strip once more at a higher precision, and its bound against values of f on the way to the end."""
    fault = CertificateError(f"the strip of width {float(end.delta):.3g} next to {end.at} does not hold")
    if (
        end.rule not in ("regular", "leading term")
        or not 0 < end.delta < 1
        or end.bound <= 0
        or not 0 <= end.order <= 40
    ):
        raise fault
    again = certify.strip(field, end.at, end.rule, end.delta, end.order, end.box, 2 * certify.STRIP_BITS)
    if again is None or not Fraction(999, 1000) < end.bound / again.bound < Fraction(1001, 1000):
        raise fault
    if (again.power, again.log_power) != (end.power, end.log_power):
        raise fault
    middle = [(low + high) / 2 for low, high in end.box]
    for k in (0, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89):
        x = end.delta / 2**k
        with certify.precision(BITS + 8 * (k + end.delta.denominator.bit_length())) as flint:
            values = [flint.arb(flint.fmpq(v.numerator, v.denominator)) for v in (x, end.bound, *middle)]
            t = values[0] if end.at == 0 else 1 - values[0]
            powers = [certify.Program(e, field.symbols[1:])(values[2:]) for e in (end.power, end.log_power)]
            least = values[1] * values[0] ** powers[0] * (-values[0].log()) ** powers[1]
            if not field.program([t, *values[2:]]) > least * flint.arb("0.999"):
                raise fault


# --- steps of a proof --------------------------------------------------------------------------------

Environment = dict[sympy.Symbol, tuple[sympy.Expr, sympy.Expr]]  # open intervals


def _environment(expr: sympy.Expr, whole: bool = False) -> Environment:
    """t runs over (0, 1) and every other symbol over (0, oo)."""
    return {s: (S.Zero, S.One if s.name == "t" and not whole else S.Infinity) for s in expr.free_symbols}


def _check_step(step: _Step, where: Environment, depth: int = 0) -> Iterator[str]:
    """Re-check one step and those it rests on; yields how, one line a step."""
    check = _CHECKS.get(step.rule)
    if check is None:
        raise CertificateError(f"there is no rule called {step.rule!r}")
    how = check(step, where)
    if not how:
        raise CertificateError(f"{_short(step.expr)}: the sign does not follow from the rule {step.rule!r}")
    yield "  " * depth + f"{step.rule}: {how}"
    substituted = step.rule == SUBSTITUTION
    for child in step.children:
        yield from _check_step(child, _environment(child.expr) if substituted else where, depth + 1)


SUBSTITUTION = "substitute t = x/(1+x), x > 0"
_t = entropy.VARIABLE


def _number(step: _Step, where: Environment) -> str:
    return "its ball has that sign" if not step.children and _holds(_span(step.expr, {}), step.sign, True) else ""


def _named(step: _Step, where: Environment) -> str:
    return "a positive symbol" if step.expr.is_Symbol and step.sign == 1 and not step.children else ""


def _product(step: _Step, where: Environment) -> str:
    sign = 1
    for child in step.children:
        sign *= child.sign
    strict = all(child.strict for child in step.children) or not step.strict
    return _same(step.expr, sympy.Mul(*_exprs(step))) if step.children and sign == step.sign and strict else ""


def _sum(step: _Step, where: Environment) -> str:
    signs = {child.sign for child in step.children}
    strict = any(child.strict for child in step.children) or not step.strict
    return _same(step.expr, sympy.Add(*_exprs(step))) if signs == {step.sign} and strict else ""


def _power(step: _Step, where: Environment) -> str:
    """The three rules for powers: of a positive base, even, and odd of a negative base."""
    if not step.expr.is_Pow or len(step.children) > 1 or any(c.expr != step.expr.base for c in step.children):
        return ""
    base, exponent = step.expr.args
    child = step.children[0] if step.children else None
    strict = child is not None and child.strict
    grows = _holds(_span(exponent, where), 1, True)
    if (step.strict and not strict) or not (strict or grows):
        return ""
    if step.rule == "a power of a positive base":
        fits = child is not None and child.sign == 1 == step.sign
    elif step.rule == "an even power":
        fits = step.sign == 1 and exponent.is_Integer and exponent % 2 == 0
        if child is None:
            _span(base, where)
            fits = fits and not _same(base, S.Zero, require=False)
    else:
        fits = child is not None and child.sign == -1 == step.sign and exponent.is_Integer and exponent % 2 == 1
    return "base and exponent fit" if fits else ""


def _exponential(step: _Step, where: Environment) -> str:
    exponent = step.expr.args[0] if isinstance(step.expr, sympy.exp) else step.expr.args[1]
    if not isinstance(step.expr, sympy.exp) and not _holds(_span(step.expr.args[0], {}), 1, True):
        return ""
    _span(exponent, where)
    return "its exponent is real" if step.sign == 1 and not step.children else ""


def _range(step: _Step, where: Environment) -> str:
    """By an interval with exact ends, else by a cover."""
    if step.children:
        return ""
    try:
        if _holds(_span(step.expr, where), step.sign, step.strict):
            return "by its range in ball arithmetic"
    except UndecidedError:
        pass
    return _covered(step, where)


def _covered(step: _Step, where: Environment) -> str:
    cover = certify.certify_sign(step.expr, _t, step.sign, SECONDS) if step.expr.free_symbols <= {_t} else None
    if cover is None:
        raise UndecidedError(f"the sign of {_short(step.expr)} could not be re-checked")
    return cover.evidence


def _extremes(step: _Step, where: Environment) -> str:
    return _covered(step, where) if not step.children else ""


def _equal(step: _Step, where: Environment) -> str:
    """An equal form, or the form after the substitution."""
    if len(step.children) != 1:
        return ""
    child = step.children[0]
    given = step.expr
    if step.rule == SUBSTITUTION:
        x = sympy.Symbol("x", positive=True)
        if x in given.free_symbols or _t in child.expr.free_symbols:
            return ""
        given = given.xreplace({_t: x / (1 + x)})
    return _same(given, child.expr) if child.sign == step.sign and (child.strict or not step.strict) else ""


def _monotone(step: _Step, where: Environment) -> str:
    """f' has one sign, and f has its sign next to the end where it starts."""
    if len(step.children) != 1 or step.expr.free_symbols != {_t}:
        return ""
    child = step.children[0]
    how = _same(sympy.diff(step.expr, _t), child.expr)
    at = 0 if child.sign == step.sign else 1
    end = certify.find_end(Field(step.expr, (_t,), step.sign), at, (), time.monotonic() + SECONDS)
    if end is None:
        raise UndecidedError(f"the sign of {_short(step.expr)} next to {at} could not be re-checked")
    return f"derivative {how}; next to {at} by its {end.rule}"


def _roots(step: _Step, where: Environment) -> str:
    """Isolate the roots by Descartes' rule of signs (the prover counts them by Sturm's theorem)."""
    if step.children or step.expr.free_symbols != {_t}:
        return ""
    exponents = [power.exp for power in step.expr.atoms(sympy.Pow) if power.base == _t]
    root = sympy.ilcm(1, *(e.q for e in exponents))
    x = sympy.Symbol("x", positive=True)
    parts = sympy.fraction(sympy.cancel(sympy.together(sympy.powdenest(step.expr.subs(_t, x**root), force=True))))
    inside = [_inner_roots(sympy.Poly(part, x, domain="QQ")) for part in parts]
    points = (S(k) / 97 for k in range(1, 97))
    value = next(v for v in (parts[0].subs(x, p) * parts[1].subs(x, p) for p in points) if v != 0)
    fits = not inside[1] and all(m % 2 == 0 for m in inside[0]) and not (step.strict and inside[0])
    how = _same(step.expr, (parts[0] / parts[1]).subs(x, _t ** (S.One / root)))
    return f"roots isolated; {how}" if fits and (value > 0) == (step.sign > 0) else ""


def _inner_roots(polynomial: sympy.Poly) -> list[int]:
    """The multiplicities of the roots in (0, 1)."""
    for end in (0, 1):
        while polynomial.degree() > 0 and polynomial.eval(end) == 0:
            polynomial = polynomial.quo(sympy.Poly(polynomial.gen - end, polynomial.gen, domain="QQ"))
    return [multiplicity for _, multiplicity in polynomial.intervals(inf=0, sup=1)] if polynomial.degree() > 0 else []


_CHECKS: dict[str, Callable[[_Step, Environment], str]] = {
    "a number": _number,
    "positive by its range": _named,
    "a product": _product,
    "a power of a positive base": _power,
    "an even power": _power,
    "an odd power of a negative base": _power,
    "an exponential": _exponential,
    "a sum of terms of one sign": _sum,
    "its range": _range,
    "rewritten": _equal,
    SUBSTITUTION: _equal,
    "Sturm count": _roots,
    "extremes": _extremes,
    "monotone": _monotone,
}


def _exprs(step: _Step) -> list[sympy.Expr]:
    return [child.expr for child in step.children]


def _short(expr: sympy.Expr) -> str:
    text = str(expr)
    return text if len(text) <= 60 else text[:57] + "..."


def _same(
    a: sympy.Expr, b: sympy.Expr, require: bool = True, spans: dict[str, tuple[Fraction, Fraction]] | None = None
) -> str:
    """How two expressions were found equal; an error (or "") where they are not."""
    a, b = _positive(a), _positive(b)
    if a == b:
        return "identical"
    symbols = sorted(a.free_symbols | b.free_symbols, key=str)
    least = truth.context().mpf(10) ** -DIGITS
    agreed = 0
    for _ in range(3 * POINTS):
        point = {s: _random(s.name, spans or {}) for s in symbols}
        one, two = (truth.evaluate_reliably(e, point, 90) for e in (a, b))
        if one == one and two == two:
            agreed = agreed + 1 if abs(one - two) <= least * max(abs(one), abs(two)) else -3 * POINTS
        if agreed == POINTS:
            return f"{_zero(a - b)}equal at {POINTS} random points to {DIGITS} digits"
    if require:
        raise CertificateError(f"{_short(a)} and {_short(b)} are not the same")
    return ""


def _random(name: str, spans: dict[str, tuple[Fraction, Fraction]]) -> sympy.Rational:
    """A random value of t in (0, 1), or of a parameter in its span, by default (0, oo)."""
    share = sympy.Rational(random.randint(1, 10**6 - 1), 10**6)
    if name in spans:
        low, high = map(sympy.Rational, spans[name])
        return low + (high - low) * share
    return share if name == "t" else share / (1 - share)


def _zero(difference: sympy.Expr) -> str:
    try:
        zero = deadline.run(sympy.simplify, difference, seconds=0.5) == 0
    except Exception:  # SymPy raises many kinds; the points have spoken
        zero = False
    return "the difference simplifies to 0, and " if zero else ""


# --- ranges ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Span:
    """Balls around the ends of a range, and whether each end is left out."""

    low: Any
    high: Any
    low_open: bool = False
    high_open: bool = False

    def mirrored(self) -> _Span:
        return _Span(-self.high, -self.low, self.high_open, self.low_open)


def _holds(span: _Span, sign: int, strict: bool) -> bool:
    span = span if sign > 0 else span.mirrored()
    return bool(span.low > 0 or (span.low == 0 and (span.low_open or not strict)))


def _span(expr: sympy.Expr, where: Environment) -> _Span:
    """The range of a real expression; UndecidedError where it may be undefined or no rule is known."""
    with certify.precision(BITS) as flint:
        return _span_of(expr, where, flint.arb)


def _span_of(expr: sympy.Expr, where: Environment, arb: Any) -> _Span:
    unknown = UndecidedError(f"the range of {_short(expr)} could not be re-checked")
    infinity = arb.pos_inf()
    if expr in where:
        low, high = (infinity if end is S.Infinity else arb(int(end)) for end in where[expr])
        return _Span(low, high, True, True)
    if not expr.free_symbols:
        ball = certify.Program(expr, ())([])
        if not ball.is_finite():
            raise unknown
        return _Span(ball, ball)
    parts = [_span_of(arg, where, arb) for arg in expr.args]
    if expr.is_Add:
        low, high = sum((p.low for p in parts), arb(0)), sum((p.high for p in parts), arb(0))
        span = _Span(low, high, any(p.low_open for p in parts), any(p.high_open for p in parts))
    elif expr.is_Mul:
        span = parts[0]
        for part in parts[1:]:
            span = _times(span, part, infinity)
    elif expr.is_Pow and expr.exp.is_number:
        span = _raised(parts[0], expr.exp, infinity)
    elif expr.is_Pow and (parts[0].low > 0 or (parts[0].low == 0 and parts[0].low_open)):
        span = _Span(arb(0), infinity, True, True)
    elif isinstance(expr, (sympy.sin, sympy.cos)):
        span = _Span(arb(-1), arb(1))
    elif isinstance(expr, sympy.cosh):
        span = _Span(arb(1), infinity, False, True)
    elif type(expr).__name__ in _RISING:
        span = _risen(type(expr).__name__, parts[0], arb)
    else:
        raise unknown
    if span.low.is_nan() or span.high.is_nan():
        raise unknown
    return span


# Increasing functions: where they are defined, and their limits there.
_RISING: dict[str, tuple[str, str, str, str]] = {
    "exp": ("-inf", "inf", "0", "inf"),
    "log": ("0", "inf", "-inf", "inf"),
    "atan": ("-inf", "inf", "-2", "2"),
    "tanh": ("-inf", "inf", "-1", "1"),
    "sinh": ("-inf", "inf", "-inf", "inf"),
    "asinh": ("-inf", "inf", "-inf", "inf"),
    "erf": ("-inf", "inf", "-1", "1"),
    "erfinv": ("-1", "1", "-inf", "inf"),
    "atanh": ("-1", "1", "-inf", "inf"),
    "asin": ("-1", "1", "-2", "2"),
}


def _risen(name: str, inner: _Span, arb: Any) -> _Span:
    first, last, at_first, at_last = (arb(text) for text in _RISING[name])
    if not (inner.low >= first and inner.high <= last):
        raise UndecidedError(f"the argument of {name} may leave its domain")
    method = getattr(arb, name)
    low = at_first if inner.low == first else method(inner.low)
    high = at_last if inner.high == last else method(inner.high)
    defined = not ((inner.low == first and not inner.low_open) or (inner.high == last and not inner.high_open))
    if not defined and name != "asin":
        raise UndecidedError(f"the argument of {name} may reach the end of its domain")
    return _Span(low, high, inner.low_open, inner.high_open)


def _times(a: _Span, b: _Span, infinity: Any) -> _Span:
    """The product of two ranges."""
    if a.low >= 0 and b.low >= 0:
        low, high = a.low * b.low, a.high * b.high
        zero = any(r.low == 0 and not r.low_open for r in (a, b))
        low_open = not zero if low == 0 else a.low_open or b.low_open
        return _Span(low, infinity if high.is_nan() else high, low_open, a.high_open or b.high_open)
    if a.high <= 0:
        return _times(a.mirrored(), b, infinity).mirrored()
    if b.high <= 0:
        return _times(a, b.mirrored(), infinity).mirrored()
    corners = [x * y for x in (a.low, a.high) for y in (b.low, b.high)]
    if not all(corner.is_finite() for corner in corners):
        return _Span(-infinity, infinity, True, True)
    return _Span(min(c.lower() for c in corners), max(c.upper() for c in corners))


def _raised(base: _Span, exponent: sympy.Expr, infinity: Any) -> _Span:
    """A power with a number as exponent."""
    ball = certify.Program(exponent, ())([])
    positive = base.low > 0 or (base.low == 0 and base.low_open)
    if exponent.is_Integer and exponent > 0 and not base.low >= 0:
        low, high = (certify._integer_power(e, int(exponent)) if e.is_finite() else e for e in (base.low, base.high))
        if exponent % 2 == 1:
            return _Span(low, high, base.low_open, base.high_open)
        if base.high <= 0:
            return _raised(base.mirrored(), exponent, infinity)
        return _Span(ball * 0, low.max(high))
    if exponent.is_Integer and base.high <= 0 and exponent < 0:
        span = _raised(base.mirrored(), exponent, infinity)
        return span if exponent % 2 == 0 else span.mirrored()
    if not (positive or (base.low == 0 and ball > 0)):
        raise UndecidedError("the base of a power may be negative or zero")
    zero = ball * 0
    low, high = (
        e * 0 if e == 0 else (infinity if not e.is_finite() else e ** abs(ball)) for e in (base.low, base.high)
    )
    if ball > 0:
        return _Span(low, high, base.low_open, base.high_open)
    low, high = (infinity if e == 0 else zero if not e.is_finite() else 1 / e for e in (low, high))
    return _Span(high, low, base.high_open, base.low_open)
