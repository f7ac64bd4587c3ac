"""What the paper's propositions say of an entropy: slopes, margin, sparsity."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import sympy
from sympy import S

from . import smoothness, truth
from .boundary import Limit, end_limit
from .concavity import Verdict
from .deadline import Deadline, simplified
from .entropy import Entropy, Parameter
from .errors import UnsupportedError
from .facts import Fact, Theory
from .kinks import derivative
from .ranges import exact_number
from .rewrite import shortest

FOR_A_FACE = 0.6  # of the time that is left


def end_slopes(entropy: Entropy, deadline: Deadline) -> tuple[Limit, Limit]:
    """The limits of h' at both ends."""
    return _end_limits(entropy, lambda h: sympy.diff(h, entropy.t), deadline)


def _end_limits(
    entropy: Entropy, of_piece: Callable[[sympy.Expr], sympy.Expr], deadline: Deadline
) -> tuple[Limit, Limit]:
    if (doubt := entropy.exceptional.doubt) is not None:
        limit = Limit(None, "sampled", f"it may be different where {entropy.user(doubt)} vanishes")
        return limit, limit
    limits = []
    for piece, end in zip((entropy.pieces[0], entropy.pieces[-1]), entropy.ends_of_t, strict=True):
        f = entropy.opened(of_piece(piece.expr))
        limits.append(end_limit(f, entropy.t, end, deadline, entropy.points[:3]))
    return limits[0], limits[1]


def check_reach(entropy: Entropy, slopes: tuple[Limit, Limit], statuses: tuple[str, ...]) -> None:
    """Every score must have a prediction: at an infinite end the slope must be infinite, too.

    Only limits of these statuses count: h may turn out not to be concave, which is the better thing to say.
    """
    for end, limit, wanted in zip(entropy.ends_of_t, slopes, (S.Infinity, -S.Infinity), strict=True):
        if end.is_finite or entropy.domain.partial or limit.status not in statuses:
            continue
        if limit.value is None or limit.value.is_infinite:
            continue  # what is not determined ends the lowering, and the wrong infinity is not concave
        value = entropy.user(entropy.closed(limit.value))
        beyond = "more" if end == S.Infinity else "less"
        raise UnsupportedError(
            f"on the {entropy.domain}, h' must tend to {wanted} as t -> {end}, and it tends to {value}: scores of "
            f'{-value} and {beyond} would have no prediction. Try: domain="cube" or "simplex", where t ends at 1, '
            f"or a term that grows faster, such as -t**2/2"
        )


# The theories of members of a family, by their formula and the parameters that are left.
Known = dict[tuple[sympy.Expr, tuple[str, ...]], Theory]


def derive(
    entropy: Entropy, slopes: tuple[Limit, Limit], verdict: Verdict, deadline: Deadline, known: Known | None = None
) -> Theory:
    """All facts that follow from h, its concavity and its limits.

    A fact of a family must also hold at the closed ends of its ranges; one that does not is undetermined, and so is
    one for which there is no time. A corner of the ranges, which several faces share, is looked at once: `known` has
    those so far.
    """
    known = {} if known is None else known
    theory = _derive(entropy, slopes, verdict, deadline)
    for face, own in zip(entropy.faces(), itertools.chain(verdict.faces, itertools.repeat(verdict)), strict=False):
        end = ", ".join(f"{name} = {value}" for name, value in face.items())
        clock = Deadline(FOR_A_FACE * deadline.left())
        bound = entropy.at_face(face, clock)
        key = bound.given, tuple(p.name for p in bound.parameters)
        if key not in known:
            known[key] = derive(bound, end_slopes(bound, clock), own, clock, known)
        member = known[key]
        for name in list(theory.facts)[1:]:  # the first, concavity, is decided at the ends, too
            there = member.value(name)
            same = None if there is None else _continues(theory.value(name), there, entropy, face, clock)
            if not same:
                del theory.facts[name]
                why = f"it is different at {end}" if same is False else f"it is not known at {end}"
                theory.leave(name, why, entropy.parameters)
    return theory


def _continues(
    value: Any, at_face: Any, entropy: Entropy, face: dict[str, sympy.Expr], deadline: Deadline
) -> bool | None:
    """Does the value of a fact inside the range go over into the one at a face of it? None where that is not known."""
    if not isinstance(value, sympy.Expr) or not isinstance(at_face, sympy.Expr):
        return bool(value == at_face) or (value in ("convex", "concave") and at_face == "affine")
    [p] = (p for p in entropy.parameters if p.name in face)
    at = face[p.name]
    moved = value.subs(p.symbol, at)
    if moved.has(S.NaN, S.ComplexInfinity) or (moved.has(S.Infinity, -S.Infinity) and moved != value):
        sides = [side for side, end in ((1, p.range.high), (-1, p.range.low)) if at != end]
        if len(sides) == 2 and at_face.is_infinite:  # a pole inside of the range
            return False
        found = [_tends_to(value, at_face, entropy, p, at + side * _STEP, deadline) for side in sides]
        return False if False in found else None if None in found else True
    return _is_same(moved, at_face)


_STEP = sympy.Dummy("e", positive=True)


def _tends_to(
    value: sympy.Expr, at_face: sympy.Expr, entropy: Entropy, p: Parameter, near: sympy.Expr, deadline: Deadline
) -> bool | None:
    """Does the value of a fact tend to the one at a face, as a parameter comes from one side, by a step e -> 0+?"""
    points = [{b: number for b, number in point.items() if b != p.coordinate} for point in entropy.points[:3]]
    moved = entropy.opened(value.xreplace({p.symbol: near}))
    limit = end_limit(moved, _STEP, 0, deadline, points if points[0] else ({},))
    if limit.value is None or limit.status != "proved":
        return None
    return _is_same(limit.value, entropy.opened(at_face))


def _is_same(one: sympy.Expr, other: sympy.Expr) -> bool:
    return bool(one == other or truth.sign(one - other) == 0 or simplified(one - other) == 0)


def _derive(entropy: Entropy, slopes: tuple[Limit, Limit], verdict: Verdict, deadline: Deadline) -> Theory:
    theory = Theory({"strictly_concave": _renamed(verdict.fact, "strictly_concave")})
    _end_values(theory, entropy)
    _slopes(theory, entropy, slopes)
    _margin(theory, entropy)
    curvatures = _end_limits(entropy, lambda h: -derivative(h, entropy.t, 2), deadline)
    smoothness.add(theory, entropy, verdict, curvatures, deadline)
    for end, limit in zip(entropy.domain.facts("curvature"), curvatures, strict=True):
        if limit.value is not None:
            theory.facts[end] = Fact(end, entropy.closed(limit.value), limit.status, limit.evidence)
    return theory


def _renamed(fact: Fact, name: str) -> Fact:
    return Fact(name, fact.value, fact.status, fact.evidence)


def _end_values(theory: Theory, entropy: Entropy) -> None:
    for name, limit in zip(entropy.domain.facts("value"), entropy.ends, strict=True):
        value = S.Zero if limit.value is None else entropy.closed(limit.value)
        if not value.is_infinite and entropy.domain.total is not None:
            value = S.Zero  # that is what normalisation is for
        theory.facts[name] = Fact(name, -S.Infinity if value.is_infinite else value, limit.status, limit.evidence)


def _slopes(theory: Theory, entropy: Entropy, slopes: tuple[Limit, Limit]) -> None:
    for name, limit in zip(entropy.domain.facts("slope"), slopes, strict=True):
        if limit.value is None:
            theory.leave(name, limit.evidence, entropy.parameters)
        else:
            theory.facts[name] = Fact(name, entropy.closed(limit.value), limit.status, limit.evidence)


def _margin(theory: Theory, entropy: Entropy) -> None:
    """Propositions 6 and 7: a margin exists iff both slopes are finite, and is their difference."""
    names: tuple[str, ...] = entropy.domain.facts("slope")
    low, high = (theory.value(name) for name in names)
    total, end = entropy.domain.total, "1-"
    if total is not None and total < 1:  # no coordinate comes farther
        names, end = names[:1], str(exact_number(total))
        high = _slope_at(entropy, exact_number(total))
    step = None if total is None or total < 1 or total == int(total) else exact_number(total) - int(total)
    if entropy.domain.low != 0:
        for name in ("margin", "sparsity", "essentially_smooth"):
            theory.undetermined[name] = f"not applicable on the {entropy.domain}, which have no end"
        return
    if low is not None:
        status = theory.status("slope_at_0", "strictly_concave")
        dense = bool(low == S.Infinity)
        why = "h'(0+) = oo: no coordinate reaches 0" if dense else "h'(0+) is finite: coordinates reach 0"
        theory.facts["essentially_smooth"] = Fact("essentially_smooth", dense, status, why)
    if low == S.Infinity:
        why = "h'(0+) = oo, so every probability is positive (Prop. 6)"
        theory.facts["margin"] = Fact("margin", S.Infinity, status, "no margin: " + why)
        theory.facts["sparsity"] = Fact("sparsity", "dense", status, why)
    elif high == -S.Infinity:
        status = theory.status(names[-1], "strictly_concave")
        theory.facts["margin"] = Fact("margin", S.Infinity, status, "no margin: h'(1-) = -oo, no vertex is reached")
        if low is not None:
            never = "h'(1-) = -oo: zeros appear, a vertex is never reached"
            why = f"h'(0+) is finite and {never if entropy.domain.bounded else 'there is no upper end: zeros appear'}"
            theory.facts["sparsity"] = Fact("sparsity", "faces", theory.status(*names, "strictly_concave"), why)
    elif low is not None and high is not None:
        status = theory.status(*names, "strictly_concave")
        lead, how = low - high, f"h'(0+) - h'({end}) (Prop. 7)"
        if step is not None:  # at a vertex one coordinate is the fraction that is left over
            between = _slope_at(entropy, step)
            lead = sympy.Max(low - between, between - high)
            how = f"the larger of h'(0+) - h'({step}) and h'({step}) - h'(1-): a vertex has a coordinate of {step}"
        theory.facts["margin"] = Fact("margin", shortest(lead), status, how)
        why = "both slopes are finite, so every face and vertex is reached (Prop. 6)"
        theory.facts["sparsity"] = Fact("sparsity", "full", status, why)
    if entropy.domain.total is None:
        theory.facts.pop("margin", None)
        theory.undetermined["margin"] = f"not applicable on the {entropy.domain}: coordinates do not compete"
    for name in ("margin", "sparsity", "essentially_smooth"):
        if name not in theory.facts and name not in theory.undetermined:
            theory.leave(name, "the slopes at the ends are not determined", entropy.parameters)


def _slope_at(entropy: Entropy, at: sympy.Expr) -> sympy.Expr:
    """h' at a point inside the interval; from the left where pieces of h meet."""
    piece = next(piece for piece in entropy.pieces if truth.sign(piece.high - at) != -1)
    return entropy.closed(entropy.opened(piece.slope(entropy.t, at)))
