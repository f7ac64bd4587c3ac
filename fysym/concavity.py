"""Decides whether h is strictly concave on (0, 1): proved, refuted with a witness, sampled, or undecided.

h'' may have isolated zeros, but no intervals of them. A negative h'' is not enough by itself: h must
also be real and without poles inside (0, 1), and its slope must drop at each kink.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import sympy
from sympy import S

from . import certify, truth
from .boundary import Point, end_limit
from .certify import Cover
from .deadline import Deadline, StepTimeout, factored, simplified
from .entropy import Entropy, bind
from .errors import NotConcaveError, UndecidedError
from .facts import Fact
from .kinks import SWITCHING, Piece
from .rewrite import is_awkward
from .signs import Proof, by_sturm, conditions, prove_sign

PROBES = tuple(map(sympy.Rational, ("1/2", "1/10", "9/10", "1/1000", "999/1000", "1/3", "2/3", "1/20", "19/20")))
# A step at a kink that is smaller, to ten times as many digits as usual, counts as none.
TINIEST = sympy.Float("1e-300", 20)


@dataclass(frozen=True)
class Verdict:
    """The outcome for h'' < 0: the fact, its proofs, and what is known of zeros of h'' inside (0, 1).

    `strict` when there is provably none; `zero` is one of them, when one was found exactly.
    """

    fact: Fact
    strict: bool
    proofs: tuple[Proof | Cover, ...] = ()
    zero: sympy.Expr | None = None


def decide(entropy: Entropy, deadline: Deadline, assume_concave: bool = False) -> Verdict:
    """A Verdict, or NotConcaveError with a witness, or UndecidedError naming the interval."""
    try:
        verdicts = [_decide_piece(entropy, part, deadline) for piece in entropy.pieces for part in piece.halves]
        joined = max((_check_kinks(entropy, deadline), _check_middle(entropy)), key=("proved", "sampled").index)
        for face in entropy.faces():
            bound = bind(entropy, face, deadline)
            probe(bound)
            verdicts.append(decide(bound, deadline))
    except UndecidedError as error:
        if not assume_concave:
            raise
        return Verdict(Fact("strictly concave", True, "sampled", f"assumed by the caller; {error}"), False)
    status = max((*(v.fact.status for v in verdicts), joined), key=("proved", "certified", "sampled").index)
    evidence = "; ".join(dict.fromkeys(v.fact.evidence for v in verdicts))
    evidence += "; pieces joined to hundreds of digits" if joined == "sampled" else ""
    proofs = tuple(proof for v in verdicts for proof in v.proofs)
    zero = next((v.zero for v in verdicts if v.zero is not None), None)
    return Verdict(Fact("strictly concave", True, status, evidence), all(v.strict for v in verdicts), proofs, zero)


def _decide_piece(entropy: Entropy, piece: Piece, deadline: Deadline) -> Verdict:
    t = entropy.x
    plain = piece.stretched(entropy.t, t, 2)
    h = entropy.opened(piece.stretched(entropy.t, t))
    f = entropy.opened(plain)
    regular = _check_regular(entropy, piece, h, deadline)
    found = _search(entropy, piece, f, deadline) if not entropy.parameters else None
    budget = Deadline(min(0.2 * deadline.seconds, deadline.left()))
    proof = prove_sign(f, t, budget, depth=0)
    certified = None
    if proof is None and regular != "sampled":
        certified = certified_sign(entropy, plain, -1, deadline)
    if proof is None and certified is None:
        proof = prove_sign(f, t, budget)
    if proof is not None and proof.sign > 0:
        _refute(entropy, piece, f, S.Half, entropy.points[0])
    weak = next((argument for argument in (proof, certified) if argument is not None), None)
    if weak is not None and not weak.strict:
        _check_never_flat(entropy, piece, f, deadline)
    if proof is not None and regular == "proved":
        argument = f"h'' {'<' if proof.strict else '<='} 0 on ({piece.low}, {piece.high}): {_summary(proof)}"
        fact = Fact("strictly concave", True, "proved", argument)
        strict, zero = (True, None) if proof.strict else _zero_inside(f, t, deadline)
        return Verdict(fact, strict, (proof,), None if zero is None else piece.point(zero))
    if proof is not None and regular == "certified":
        certified = certified_sign(entropy, plain, -1, deadline)
    if certified is not None:
        evidence = certificate_evidence(certified)
        return Verdict(Fact("strictly concave", True, "certified", evidence), certified.strict, (certified,))
    found = found or _search(entropy, piece, f, deadline)
    if isinstance(found, UndecidedError):
        raise found
    return Verdict(Fact("strictly concave", True, "sampled", found), False)


def _zero_inside(f: sympy.Expr, t: sympy.Symbol, deadline: Deadline) -> tuple[bool, sympy.Expr | None]:
    """Where h'' <= 0 is proved but h'' < 0 is not: whether there is no zero after all, or one zero."""

    def work() -> tuple[bool, sympy.Expr | None]:
        with contextlib.suppress(sympy.PolynomialError):
            counted = by_sturm(f, t)
            if counted is not None and counted.strict:
                return True, None
        for power in factored(f).atoms(sympy.Pow):
            if power.exp.is_Integer and power.exp > 0 and power.exp % 2 == 0 and power.base.free_symbols == {t}:
                for root in sympy.solve(power.base, t):
                    if root.is_real and 0 < root < 1 and truth.sign(f.subs(t, root)) == 0:
                        return False, root
        return False, None

    try:
        return deadline.run(work, share=0.05)
    except Exception:  # also StepTimeout: nothing is known then
        return False, None


def _check_never_flat(entropy: Entropy, piece: Piece, f: sympy.Expr, deadline: Deadline) -> None:
    """Where h'' <= 0 is proved: h'' must not vanish on all of (0, 1) for any value of the parameters.

    For one function a single point shows that; for a family h'' < 0 is proved at one t for all parameter values.
    """
    t = entropy.x
    coordinates = [p.coordinate for p in entropy.parameters if f.has(p.coordinate)]
    if not coordinates:
        return
    for where in (S.One / 3, S.One / 2, sympy.Rational(3, 5)):
        there = f.xreplace({t: where})
        # The prover knows most about a variable in (0, 1).
        one = there.xreplace({coordinates[0]: t / (1 - t)}) if len(coordinates) == 1 else there
        proof = prove_sign(one, t, deadline)
        if proof is not None and proof.strict:
            return
    for coordinate in coordinates:
        for point in entropy.points[:2]:
            others = {b: value for b, value in point.items() if b != coordinate}
            for root in _roots(f.xreplace({t: S.One / 3, **others}), coordinate, deadline):
                if _vanishes(f.xreplace({**others, coordinate: root}), deadline):
                    _refute(entropy, piece, S.Zero, S.Half, {**point, coordinate: root})
    raise UndecidedError(
        "h'' <= 0 on (0, 1), but that h'' = 0 throughout for some value of the parameters is not excluded. "
        "Try: a narrower range of the parameters, or values for them."
    )


def _roots(f: sympy.Expr, b: sympy.Symbol, deadline: Deadline) -> list[sympy.Expr]:
    """Positive roots of f in b, as far as SymPy finds them."""
    try:
        return [root for root in deadline.run(sympy.solve, f, b, share=0.05) if root.is_positive]
    except Exception:  # also StepTimeout: none is known then
        return []


def _vanishes(f: sympy.Expr, deadline: Deadline) -> bool:
    try:
        return deadline.run(simplified, f, share=0.05) == 0
    except Exception:  # also StepTimeout
        return False


def certified_sign(entropy: Entropy, f: sympy.Expr, sign: int, deadline: Deadline) -> Proof | Cover | None:
    """A certificate by ball arithmetic that f has this sign on (0, 1), where that extra is installed.

    For a family f is in its parameters, not in their coordinates. Finite ranges are covered by boxes, their
    ends included; with an infinite one f must be a polynomial in the coordinates, with terms of one sign.
    """
    if not certify.available():
        return None
    ranges = {p.symbol: (p.range.low, p.range.high) for p in entropy.parameters if f.has(p.symbol)}
    finite = all(end.is_finite for span in ranges.values() for end in span)
    seconds = 0.8 * min(0.2 * deadline.seconds, deadline.left())
    try:
        if finite:
            return deadline.run(certify.certify_sign, f, entropy.x, sign, seconds, ranges, share=0.2)
        return deadline.run(_certify_terms, entropy, entropy.opened(f), sign, seconds, share=0.2)
    except Exception:  # also StepTimeout: then it stays a numeric search
        return None


def _certify_terms(entropy: Entropy, f: sympy.Expr, sign: int, seconds: float) -> Proof | None:
    """f as a polynomial in positive coordinates, each coefficient a function of t that has this sign."""
    coordinates = [p.coordinate for p in entropy.parameters if f.has(p.coordinate)]
    terms: list[Proof | Cover] = []
    clock = Deadline(seconds)
    for powers, coefficient in sympy.Poly(f, *coordinates).terms():
        known = prove_sign(coefficient, entropy.x, clock, depth=0)
        argument = known or certify.certify_sign(coefficient, entropy.x, sign, clock.left())
        if argument is None or argument.sign != sign:
            return None
        factors = [prove_sign(b**k, entropy.x, clock, depth=0) for b, k in zip(coordinates, powers, strict=True) if k]
        parts = (argument, *(factor for factor in factors if factor is not None))
        term = sympy.Mul(*(part.expr for part in parts))
        terms.append(Proof(term, sign, argument.strict, "a product", parts) if factors else argument)
    strict = any(term.strict for term in terms)
    total = Proof(sympy.Add(*(term.expr for term in terms)), sign, strict, "a sum of terms of one sign", tuple(terms))
    return total if total.expr == f else Proof(f, sign, strict, "rewritten", (total,))


def certificate_evidence(argument: Proof | Cover) -> str:
    """The covers that an argument rests on, in words."""
    found = "; ".join(dict.fromkeys(cover.evidence for cover in argument.covers)) or "exact"
    return found if isinstance(argument, Cover) else f"a sum of terms of one sign, each exact or by {found}"


def _summary(proof: Proof) -> str:
    while proof.rule == "rewritten" and isinstance(proof.children[0], Proof):
        proof = proof.children[0]
    return proof.rule + (f", {proof.note}" if proof.note else "")


# --- refutation ------------------------------------------------------------------------------------


def probe(entropy: Entropy) -> None:
    """Look at a few points at high precision: most wrong entropies fail at once."""
    for piece in entropy.pieces:
        h, f = (entropy.opened(piece.stretched(entropy.t, entropy.x, order)) for order in (0, 2))
        _probe(entropy, piece, h, f)


def _probe(entropy: Entropy, piece: Piece, h: sympy.Expr, f: sympy.Expr) -> None:
    t = entropy.x
    points = entropy.points
    if f == 0 or all(truth.evaluate(f, {t: where, **points[0]}) == 0 and simplified(f) == 0 for where in PROBES[:1]):
        _refute(entropy, piece, S.Zero, S.Half, points[0])
    for point in points:
        for where in PROBES if len(points) == 1 else PROBES[:5]:
            value = truth.evaluate(h, {t: where, **point})
            if value != value:
                _refute_undefined(entropy, piece, where, point)
            if truth.evaluate(f, {t: where, **point}) > 0 and _certain(f, t, where, point):
                _refute(entropy, piece, f, where, point)
    for point in entropy.extremes():
        for where in PROBES[:5]:
            if truth.evaluate(f, {t: where, **point}) > 0 and _certain(f, t, where, point):
                _refute(entropy, piece, f, where, point)


def _certain(f: sympy.Expr, t: sympy.Symbol, where: Any, point: Point) -> bool:
    """f > 0 at this point beyond rounding."""
    value = truth.evaluate_reliably(f, {t: where, **point})
    return bool(value > 0)


def _refute(entropy: Entropy, piece: Piece, f: sympy.Expr, where: sympy.Expr, point: Point) -> None:
    witness = piece.point(where)
    value = truth.evaluate(f, {entropy.x: where, **point})
    if f == 0:
        what = f"h'' = 0 on all of ({piece.low}, {piece.high})"
        hint = "h is affine there; add a strictly concave term such as t*(1-t)/2"
    else:
        width = float(piece.high - piece.low)
        what = f"h''({_number(witness)}) = {float(value) / (width**2 if width < math.inf else 1.0):.6g} > 0"
        hint = _hint(entropy, f, point)
    _raise(entropy, witness, point, what, hint)


def _refute_undefined(entropy: Entropy, piece: Piece, where: sympy.Expr, point: Point) -> None:
    witness = piece.point(where)
    what = f"h({_number(witness)}) is not a real number"
    _raise(entropy, witness, point, what, f"h must be real on all of {entropy.domain.interval}")


def _raise(entropy: Entropy, witness: sympy.Expr, point: Point, what: str, hint: str) -> None:
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


def _number(value: sympy.Expr) -> str:
    return str(value) if value.is_Rational and value.q < 10**6 else f"{float(value):.17g}"


def _check_kinks(entropy: Entropy, deadline: Deadline) -> str:
    """How it is known that h is continuous and h' drops at each kink; an error where that fails."""
    status = "proved"
    for left, right in zip(entropy.pieces, entropy.pieces[1:], strict=False):
        for order in (0, 1):
            step = _step(entropy, left, right, order)
            if step is not None and _is_joined(entropy, step, order, deadline):
                continue
            exact = step is not None and order == 1 and not entropy.parameters
            for point in entropy.points:
                value = truth.context().nan
                if step is not None:
                    value = truth.evaluate(step, {entropy.t: left.high, **point}, digits=10 * truth.DIGITS)
                if value != value:
                    value = _step_of_limits(entropy, left, right, order, point, deadline)
                least = TINIEST if step is not None else 1e-30
                if order == 0 and not abs(value) <= least:
                    _raise(entropy, left.high, point, f"h jumps at t = {_number(left.high)}", "a continuous h")
                if order == 1 and not value <= least:
                    what = f"the slope of h rises at its kink t = {_number(left.high)}"
                    _raise(entropy, left.high, point, what, "a concave kink")
                exact = exact and value < -TINIEST
            status = status if exact else "sampled"
    return status


def _check_middle(entropy: Entropy) -> str:
    """How it is known that h' does not rise at 0, where a piece without ends was cut in two."""
    status = "proved"
    for piece in entropy.pieces:
        if len(piece.halves) == 1:
            continue
        slope, near = entropy.opened(sympy.diff(piece.expr, entropy.t)), sympy.Rational(1, 10**25)
        for point in entropy.points[:3]:
            before, after = (truth.evaluate_reliably(slope, {entropy.t: at, **point}) for at in (-near, near))
            if after > before and after - before > 1e-12 * (abs(after) + abs(before)):
                _raise(entropy, S.Zero, point, "the slope of h rises at t = 0", "a concave kink")
            for condition in conditions(piece.expr, entropy.t):  # singular at 0, so numbers decide
                if not abs(truth.evaluate(entropy.opened(condition), {entropy.t: S.Zero, **point})) > 0:
                    status = "sampled"
    return status


def _step(entropy: Entropy, left: Piece, right: Piece, order: int) -> sympy.Expr | None:
    """By how much h (order 0) or h' (order 1) rises from one piece to the next; None where it is singular."""
    t = entropy.t
    sides = [entropy.opened(sympy.diff(piece.expr, t, order) if order else piece.expr) for piece in (left, right)]
    step = (sides[1] - sides[0]).subs(t, left.high)
    return None if step.has(sympy.nan, sympy.zoo, sympy.oo) else step


def _is_joined(entropy: Entropy, step: sympy.Expr, order: int, deadline: Deadline) -> bool:
    """Is a step provably zero, or, of the slope, provably a drop?"""
    try:
        if step == 0 or deadline.run(lambda: simplified(step) == 0, share=0.03):
            return True
    except Exception:  # also StepTimeout: then numbers decide
        return False
    if order == 0 or not entropy.parameters:
        return False
    proof = prove_sign(step, entropy.x, Deadline(min(0.05 * deadline.seconds, deadline.left())))
    return proof is not None and proof.sign < 0


def _step_of_limits(entropy: Entropy, left: Piece, right: Piece, order: int, point: Point, deadline: Deadline) -> Any:
    """A step between one-sided limits, where the formulas are singular; nan where one is not finite."""
    t = entropy.t
    values = []
    for piece, end in ((left, 1), (right, 0)):
        expr = entropy.opened(sympy.diff(piece.expr, t, order)).subs(t, piece.point(entropy.x))
        limit = end_limit(expr.xreplace(point), entropy.x, end, deadline).value
        if limit is None or limit.is_infinite:
            return truth.context().nan
        values.append(truth.evaluate_reliably(limit, {}))
    return values[1] - values[0]


# --- poles and domains -----------------------------------------------------------------------------


def _check_regular(entropy: Entropy, piece: Piece, h: sympy.Expr, deadline: Deadline) -> str:
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
            _search_pole(entropy, piece, h, condition.xreplace(point), point, deadline)
        for point in entropy.points[:7]:
            place = _search_pole(entropy, piece, h, condition.xreplace(point), point, deadline)
            if place is not None:
                user = entropy.user(condition.xreplace(point))
                raise UndecidedError(f"could not tell whether h is smooth where {user} vanishes, t in {place}", place)
    return status


def _search_pole(
    entropy: Entropy, piece: Piece, h: sympy.Expr, condition: sympy.Expr, point: Point, deadline: Deadline
) -> tuple[float, float] | None:
    """Search for a zero of a condition: raises where h is not smooth, else None or an interval that stays open."""
    t, bound = entropy.x, h.xreplace(point)
    sign = 1 if truth.evaluate(condition, {t: S.Half}) > 0 else -1
    result = _timed_search(-sign * condition, t, deadline)
    if result is not None and result.violation is None and result.complete and not result.open_boxes:
        return None
    at = _violation(result)
    if at is not None:
        value = truth.evaluate(bound, {t: at})
        if value != value:
            _refute_undefined(entropy, piece, at, point)
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
    _raise(entropy, witness, point, f"h is unbounded at t = {float(witness):.6g}", "an h without poles")


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


# --- the numeric search ------------------------------------------------------------------------------


def _search(entropy: Entropy, piece: Piece, f: sympy.Expr, deadline: Deadline) -> str | UndecidedError:
    """A dense, adaptive search for h'' > 0: raises when it finds one, else the evidence or what stays open."""
    boxes = 0
    points = entropy.points
    for point in entropy.extremes((6, 15)):
        g = f.xreplace(point)
        for at in _violations(g, entropy.x, _timed_search(g, entropy.x, deadline, share=0.05)):
            _refute(entropy, piece, f, at, point)
    for point in points:
        g = f.xreplace(point)
        result = _timed_search(g, entropy.x, deadline, share=0.4 / len(points))
        for at in _violations(g, entropy.x, result):
            _refute(entropy, piece, f, at, point)
        open_boxes = () if result is None else result.open_boxes
        if result is None or not result.complete or not all(_settled(g, entropy.x, box) for box in open_boxes):
            low, high = open_boxes[0] if open_boxes else (0.0, 1.0)
            low, high = (float(piece.point(sympy.Float(end))) for end in (low, high))
            return UndecidedError(
                f"could not settle whether h'' < 0 for t in ({low:.6g}, {high:.6g}); simplify h, raise the deadline, "
                "or pass assume_concave=True if you know that it is",
                (low, high),
            )
        boxes += result.boxes
    where = f" at {len(points)} parameter values" if len(points) > 1 else ""
    return f"no violation of h'' < 0 in {boxes} boxes of interval arithmetic in float64{where}, not a proof"


def _timed_search(f: sympy.Expr, t: sympy.Symbol, deadline: Deadline, share: float = 0.3) -> Any:
    from . import search  # brings SciPy, which `import fysym` must not

    seconds = min(share * deadline.seconds, deadline.left())
    if seconds <= 0.01:
        return None
    try:
        return deadline.run(lambda: search.search_positive(f, t, seconds=seconds * 0.8), share=share)
    except StepTimeout:
        return None


def _violation(result: Any) -> sympy.Expr | None:
    return None if result is None else result.violation


def _violations(f: sympy.Expr, t: sympy.Symbol, result: Any) -> Iterator[sympy.Expr]:
    """Points where f > 0 for certain, from what a search left open."""
    if result is None:
        return
    peaks = (peak for box in result.open_boxes[:8] for peak in _peaks(f, t, box))
    for at in (*filter(None, [result.violation]), *peaks):
        if _certain(f, t, at, {}):
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


def _settled(f: sympy.Expr, t: sympy.Symbol, box: tuple[float, float]) -> bool:
    """An open box is small, and f is nowhere positive and close to 0 in it: a zero of even order, at most."""
    low, high = map(sympy.Rational, box)
    if high - low > sympy.Rational(1, 10**6):
        return False
    inside = [low + (high - low) * sympy.Rational(k, 16) for k in range(1, 16)]
    values = [truth.evaluate(f, {t: where}, 100) for where in inside]
    scale = max(abs(truth.evaluate(f, {t: where})) for where in PROBES)
    return all(-1e-6 * scale < value <= 1e-40 * scale for value in values)
