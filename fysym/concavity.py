"""Decides whether h is strictly concave on (0, 1): proved, refuted with a witness, sampled, or undecided.

h'' may have isolated zeros, but no intervals of them. A negative h'' is not enough by itself: h must
also be real and without poles inside (0, 1), and its slope must drop at each kink.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, replace

import sympy
from sympy import S

from . import truth
from .boundary import Point
from .certify import Cover
from .certify.questions import certificate_evidence, certified_sign
from .deadline import Deadline, cancelled, factored, simplified
from .entropy import Entropy
from .errors import NotConcaveError, UndecidedError
from .facts import Fact, weakest
from .kinks import Piece
from .regularity import check_kinks, check_middle, check_points, check_regular, check_switches
from .signs import Proof, by_sturm, prove_sign
from .witness import PROBES, highest, probe, refute, timed_search, violations


@dataclass(frozen=True)
class Verdict:
    """The outcome for h'' < 0: the fact, its proofs, and what is known of zeros of h'' inside (0, 1).

    `strict` when there is provably none; `zero` is one of them, when one was found exactly. `switches` says how it is
    known that h switches only where its pieces meet, and `steady` are the arguments for that. `faces` are the outcomes
    at the closed ends of the ranges of a family.
    """

    fact: Fact
    strict: bool
    proofs: tuple[Proof | Cover, ...] = ()
    zero: sympy.Expr | None = None
    switches: str = "proved"
    steady: tuple[Proof | Cover, ...] = ()
    faces: tuple[Verdict, ...] = ()

    def limit(self, fact: Fact) -> Fact:
        """A fact that was derived from the pieces of h, which is known no better than they are."""
        if weakest(self.switches, fact.status) == fact.status:
            return fact
        return replace(fact, status=self.switches, evidence=f"{fact.evidence}; {SWITCHES[self.switches]}")


SWITCHES = {
    "certified": "that h switches nowhere else is certified by balls",
    "sampled": "that h switches nowhere else was searched in float64, not proved",
}


# Members of a family that were decided, by their formula and the parameters that are left.
Known = dict[tuple[sympy.Expr, tuple[str, ...]], Verdict]


def decide(entropy: Entropy, deadline: Deadline, assume_concave: bool = False, known: Known | None = None) -> Verdict:
    """A Verdict, or NotConcaveError with a witness, or UndecidedError naming the interval.

    A corner of the ranges is at the end of several faces, and is decided once; `known` are those so far.
    """
    known = {} if known is None else known
    try:
        verdicts = [_decide_piece(entropy, part, deadline) for piece in entropy.pieces for part in piece.halves]
        joined = weakest(*(check(entropy, deadline) for check in (check_points, check_kinks, check_middle)))
        switches, steady = check_switches(entropy, deadline)
        zero = next((v.zero for v in verdicts if v.zero is not None), None)
        faces = [_decide_face(entropy, face, deadline, known) for face in entropy.faces()]
    except UndecidedError as error:
        if not assume_concave:
            raise
        return Verdict(Fact("strictly concave", True, "sampled", f"assumed by the caller; {error}"), False)
    verdicts += faces
    status = weakest(*(v.fact.status for v in verdicts), joined)
    evidence = "; ".join(dict.fromkeys(v.fact.evidence for v in verdicts))
    evidence += "; pieces joined to hundreds of digits" if joined == "sampled" else ""
    if entropy.exceptional.anywhere:
        status = "sampled"
        evidence += f"; members at which {entropy.user(entropy.exceptional.anywhere[0])} vanishes are not looked at"
    proofs = tuple({id(proof): proof for v in verdicts for proof in v.proofs}.values())
    switches = weakest(*(v.switches for v in verdicts), switches)
    steady += tuple({id(argument): argument for v in verdicts for argument in v.steady}.values())
    fact = Fact("strictly concave", True, status, evidence)
    found = Verdict(fact, all(v.strict for v in verdicts), proofs, zero, switches, steady, tuple(faces))
    return replace(found, fact=found.limit(fact))


def _decide_face(entropy: Entropy, face: dict[str, sympy.Expr], deadline: Deadline, known: Known) -> Verdict:
    """The outcome for the members at a face; those of the same formula are the same."""
    bound = entropy.at_face(face, deadline)
    key = bound.given, tuple(p.name for p in bound.parameters)
    if key not in known:
        try:
            probe(bound)
            known[key] = decide(bound, deadline, known=known)
        except NotConcaveError as error:
            where = ", ".join(f"{name} = {value}" for name, value in face.items())
            parameters = {**face, **error.parameters}
            raise NotConcaveError(f"at {where}: {error}", error.witness, parameters, error.culprit) from None
    return known[key]


def _decide_piece(entropy: Entropy, piece: Piece, deadline: Deadline) -> Verdict:
    t = entropy.x
    plain = piece.stretched(entropy.t, t, 2)
    h = entropy.opened(piece.stretched(entropy.t, t))
    f = entropy.opened(plain)
    regular = check_regular(entropy, piece, h, deadline)
    found = _search(entropy, piece, f, deadline) if not entropy.parameters else None
    budget = Deadline(min(0.2 * deadline.seconds, deadline.left()))
    proof = prove_sign(f, t, budget, depth=0)
    certified = None
    if proof is None and regular != "sampled":
        certified = certified_sign(entropy, plain, -1, deadline)
    if proof is None and certified is None and f.free_symbols == {t}:
        proof = prove_sign(f, t, budget)
    if proof is not None and proof.sign > 0:
        refute(entropy, piece, f, S.Half, entropy.points[0])
    weak = next((argument for argument in (proof, certified) if argument is not None), None)
    if weak is not None and not weak.strict:
        _check_never_flat(entropy, piece, plain, deadline)
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


def _check_never_flat(entropy: Entropy, piece: Piece, plain: sympy.Expr, deadline: Deadline) -> None:
    """Where h'' <= 0 is proved: h'' must not vanish on all of (0, 1) for any value of the parameters.

    For one function a single point shows that; for a family h'' < 0 is proved at one t for all parameter values.
    """
    t, f = entropy.x, entropy.opened(plain)
    parameters = [p for p in entropy.parameters if plain.has(p.symbol)]
    if not parameters:
        return
    if plain.is_polynomial(t):  # it vanishes throughout only where all of its coefficients do
        for coefficient in sympy.Poly(plain, t).coeffs():
            proof = prove_sign(entropy.opened(coefficient), t, deadline, depth=0)
            if proof is not None and proof.strict:
                return
    spread = {parameters[0].symbol: parameters[0].spread(t)}
    there = [plain.xreplace({t: where}) for where in (S.One / 3, S.One / 2, sympy.Rational(3, 5))]
    for values in (*there, sympy.Add(*there)):  # a sum of numbers <= 0 is 0 only where all of them are
        proof = prove_sign(cancelled(entropy.opened(values.xreplace(spread))), t, deadline)
        if proof is not None and proof.strict:
            return
    coordinates = [p.coordinate for p in parameters]
    for coordinate in coordinates:
        for point in entropy.points[:2]:
            others = {b: value for b, value in point.items() if b != coordinate}
            for root in _roots(f.xreplace({t: S.One / 3, **others}), coordinate, deadline):
                if root.is_positive and _vanishes(f.xreplace({**others, coordinate: root}), deadline):
                    refute(entropy, piece, S.Zero, S.Half, {**point, coordinate: root})
    raise UndecidedError(
        "h'' <= 0 on (0, 1), but that h'' = 0 throughout for some value of the parameters is not excluded. "
        "Try: a narrower range of the parameters, or values for them."
    )


def _roots(f: sympy.Expr, b: sympy.Symbol, deadline: Deadline) -> list[sympy.Expr]:
    """Roots of f in b that its assumptions allow, as far as SymPy finds them."""
    try:
        return list(deadline.run(sympy.solve, f, b, share=0.05)) if f.has(b) else []
    except Exception:  # also StepTimeout: none is known then
        return []


def _vanishes(f: sympy.Expr, deadline: Deadline) -> bool:
    try:
        return deadline.run(simplified, f, share=0.05) == 0
    except Exception:  # also StepTimeout
        return False


def _summary(proof: Proof) -> str:
    while proof.rule == "rewritten" and isinstance(proof.children[0], Proof):
        proof = proof.children[0]
    return proof.rule + (f", {proof.note}" if proof.note else "")


def _search(entropy: Entropy, piece: Piece, f: sympy.Expr, deadline: Deadline) -> str | UndecidedError:
    """A dense, adaptive search for h'' > 0: raises when it finds one, else the evidence or what stays open."""
    boxes = 0
    points = entropy.points
    if entropy.parameters:
        _search_parameters(entropy, piece, f, deadline)
    for point in entropy.extremes((6, 15)):
        g = truth.substituted(f, point)
        for at in violations(g, entropy.x, timed_search(g, entropy.x, deadline, share=0.05)):
            refute(entropy, piece, f, at, point)
    for point in points:
        g = truth.substituted(f, point)
        result = timed_search(g, entropy.x, deadline, share=0.4 / len(points))
        for at in violations(g, entropy.x, result):
            refute(entropy, piece, f, at, point)
        open_boxes = () if result is None else result.open_boxes
        if result is None or not result.complete or not all(_settled(g, entropy.x, box) for box in open_boxes):
            low, high = open_boxes[0] if open_boxes else (0.0, 1.0)
            low, high = (piece.place(end) for end in (low, high))
            return UndecidedError(
                f"could not settle whether h'' < 0 for t in ({low:.6g}, {high:.6g}); simplify h, raise the deadline, "
                "or pass assume_concave=True if you know that it is",
                (low, high),
            )
        boxes += result.boxes
    where = f" at {len(points)} parameter values" if len(points) > 1 else ""
    return f"no violation of h'' < 0 in {boxes} boxes of interval arithmetic in float64{where}, not a proof"


def _search_parameters(entropy: Entropy, piece: Piece, f: sympy.Expr, deadline: Deadline) -> None:
    """Look for members that are not concave: single values and slivers of each parameter, the others in the middle,
    and the point where h'' is largest.
    """
    t = entropy.x
    for factor, point in _exceptions(entropy, piece, deadline):
        at = [truth.evaluate(f, {t: where, **point}, 100) for where in PROBES]
        if truth.sign(truth.substituted(factor, point)) == 0 and all(abs(value) < 1e-60 for value in at):
            refute(entropy, piece, S.Zero, S.Half, point)
    for p in entropy.parameters:
        others = {b: value for b, value in entropy.points[0].items() if b != p.coordinate}
        spread = p.spread(t)
        for where in PROBES[:3]:
            there = piece.stretched(entropy.t, t, 2).xreplace({t: where}).xreplace({p.symbol: spread})
            g = truth.substituted(entropy.opened(there), others)
            for at in violations(g, t, timed_search(g, t, deadline, share=0.02)):
                refute(entropy, piece, f, where, {**others, p.coordinate: at / (1 - at)})
    found = highest(f, t, [p.coordinate for p in entropy.parameters], deadline)
    if found is not None:
        refute(entropy, piece, f, found[t], found)


def _exceptions(entropy: Entropy, piece: Piece, deadline: Deadline) -> Iterator[tuple[sympy.Expr, Point]]:
    """Factors of h'' without t, opened, and the points where one vanishes, the other parameters in the middle."""
    try:  # no more than common factors of the terms: sympy.factor may work on numbers of thousands of digits
        f = deadline.run(sympy.factor_terms, piece.stretched(entropy.t, entropy.x, 2), share=0.05)
    except Exception:  # also StepTimeout: no factor is known then
        return
    for factor in (part.as_base_exp()[0] for part in sympy.Mul.make_args(f)):
        for p in entropy.parameters if not factor.has(entropy.x) else ():
            middle = {q.symbol: q.opened.xreplace(entropy.points[0]) for q in entropy.parameters if q != p}
            for root in _roots(factor.xreplace(middle), p.symbol, deadline):
                if root.is_real and root in p.range and root not in (p.range.low, p.range.high):
                    coordinate = p.closed.xreplace({p.symbol: root})
                    yield entropy.opened(factor), entropy.points[0] | {p.coordinate: coordinate}


def _settled(f: sympy.Expr, t: sympy.Symbol, box: tuple[float, float]) -> bool:
    """An open box is small, and f is nowhere positive and close to 0 in it: a zero of even order, at most."""
    low, high = map(sympy.Rational, box)
    if high - low > sympy.Rational(1, 10**6):
        return False
    inside = [low + (high - low) * sympy.Rational(k, 16) for k in range(1, 16)]
    values = [truth.evaluate(f, {t: where}, 100) for where in inside]
    scale = max(abs(truth.evaluate(f, {t: where})) for where in PROBES)
    return all(-1e-6 * scale < value <= 1e-40 * scale for value in values)
