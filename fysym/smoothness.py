"""How smooth the prediction is: the shape of q, strong concavity of h, and where the prediction is differentiable."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import sympy
from sympy import S

from . import truth
from .boundary import Limit
from .bounds import bounds_of
from .certify.questions import certificate_evidence, certified_sign
from .concavity import Verdict
from .deadline import Deadline, StepTimeout
from .entropy import Entropy
from .facts import STATUSES, Fact, Theory, weakest
from .kinks import Piece
from .rewrite import is_awkward, shortest
from .signs import prove_sign
from .witness import PROBES

# Parameter values at which a change of sign is looked for before a proof that there is none.
MOST_POINTS = 12


def add(
    theory: Theory, entropy: Entropy, verdict: Verdict, curvatures: tuple[Limit, Limit], deadline: Deadline
) -> None:
    """Adds these facts; `curvatures` are the limits of -h'' at both ends."""
    verdict = _with_middle(entropy, verdict)
    _inverse_shape(theory, entropy, deadline)
    _strong_concavity(theory, entropy, verdict, curvatures, deadline)
    _differentiability(theory, entropy, verdict, curvatures, deadline)


def _with_middle(entropy: Entropy, verdict: Verdict) -> Verdict:
    """The verdict, which is made on either side of 0 where h has no end, with what happens to h'' at 0 itself."""
    for piece in entropy.pieces:
        if len(piece.halves) == 2 and truth.sign(piece.slope(entropy.t, S.Zero, 2)) != -1:
            flat = truth.sign(piece.slope(entropy.t, S.Zero, 2)) == 0
            return replace(verdict, strict=False, zero=S.Zero if flat else verdict.zero)
    return verdict


def _inverse_shape(theory: Theory, entropy: Entropy, deadline: Deadline) -> None:
    """The sign of h''': h''' >= 0 makes q = (-h')^{-1} convex and -h'' fall, h''' <= 0 the opposite."""
    if len(entropy.pieces) > 1:
        return
    plain = entropy.pieces[0].stretched(entropy.t, entropy.x, 3)
    third = entropy.opened(plain)
    if third == 0:
        theory.facts["inverse_shape"] = Fact("inverse_shape", "affine", "proved", "h''' = 0")
        return
    signs: set[bool] = set()
    for point, x in itertools.product(entropy.points[:MOST_POINTS], PROBES):
        value = truth.evaluate_reliably(third, {entropy.x: x, **point})
        signs |= {bool(value > 0)} if abs(value) > 0 else set()
        if len(signs) == 2:
            return
    budget = Deadline(min(0.1 * deadline.seconds, deadline.left()))
    proof = prove_sign(third, entropy.x, budget, depth=0)
    guess = 1 if True in signs else -1
    certified = None
    if proof is None:
        certified = certified_sign(entropy, plain, guess, deadline)
    if proof is None and certified is None:
        proof = prove_sign(third, entropy.x, budget, depth=1)
    known = proof or certified
    if known is None:
        return
    theory.proofs["inverse_shape"] = known
    shape, relation = ("convex", ">= 0") if known.sign > 0 else ("concave", "<= 0")
    status, why = ("proved", proof.rule) if proof is not None else ("certified", certificate_evidence(known))
    theory.facts["inverse_shape"] = Fact(
        "inverse_shape", shape, status, f"h''' {relation} on {entropy.domain.interval}: {why}"
    )


def _strong_concavity(
    theory: Theory, entropy: Entropy, verdict: Verdict, curvatures: tuple[Limit, Limit], deadline: Deadline
) -> None:
    """The infimum of -h'' over (0, 1), and its inverse, a Lipschitz constant of the prediction."""
    shape = theory.value("inverse_shape")
    fact = None
    if shape is not None:
        at = 1 if shape in ("convex", "affine") else 0
        limit = curvatures[at]
        if limit.value is not None:
            end = entropy.domain.ends[at]
            why = f"-h'' is monotone, so its infimum is its limit at {end}" if shape != "affine" else "-h'' is constant"
            fact = Fact("strong_concavity", entropy.closed(limit.value), limit.status, why)
    elif not entropy.parameters:
        fact = _infimum(entropy, verdict, curvatures, deadline)
    if fact is None:
        for name in ("strong_concavity", "smoothness"):
            why = f"the infimum of -h'' over {entropy.domain.interval} is not determined"
            theory.leave(name, why, entropy.parameters)
        return
    theory.facts["strong_concavity"] = fact
    value = fact.value
    smoothness = S.Infinity if value == 0 else (S.Zero if value.is_infinite else shortest(1 / value))
    why = "1/strong_concavity" if value != 0 else "-h'' is not bounded away from 0"
    theory.facts["smoothness"] = Fact("smoothness", smoothness, fact.status, why)


def _infimum(entropy: Entropy, verdict: Verdict, curvatures: tuple[Limit, Limit], deadline: Deadline) -> Fact | None:
    """The infimum of -h'' where it is not monotone: exact when a bound or a list of extremes gives it."""
    x = entropy.x
    if verdict.zero is not None:
        return Fact("strong_concavity", S.Zero, "proved", f"h'' is 0 at t = {verdict.zero}")
    ends = [limit for limit in curvatures if limit.value is not None]
    vanishing = [limit.status for limit in ends if limit.value == 0]
    if vanishing:
        status = weakest(min(vanishing, key=STATUSES.index), verdict.fact.status)
        return Fact("strong_concavity", S.Zero, status, "-h'' > 0 tends to 0 at an end")
    if len(entropy.pieces) == 1:
        curvature = -entropy.pieces[0].stretched(entropy.t, x, 2)
        low = bounds_of(curvature, x).low
        if any(limit.value == low and limit.status == "proved" for limit in ends):
            return Fact("strong_concavity", low, "proved", "a lower bound of -h'' that its limit at an end attains")
        if low.is_finite and truth.sign(curvature.subs(x, S.Half) - low) == 0:
            middle = entropy.pieces[0].point(S.Half)
            return Fact("strong_concavity", low, "proved", f"a lower bound of -h'' that its value at {middle} attains")
        critical = _critical_values(curvature, x, ends, deadline)
        if critical is not None:
            return Fact("strong_concavity", critical, "proved", "the least of -h'' at the zeros of h''' and the ends")
    return _numeric_infimum(entropy, deadline)


def _critical_values(
    curvature: sympy.Expr, t: sympy.Symbol, ends: list[Limit], deadline: Deadline
) -> sympy.Expr | None:
    """The least of the end limits and the values at all zeros of a rational derivative."""

    def work() -> sympy.Expr | None:
        if is_awkward(curvature):
            return None
        numerator = sympy.fraction(sympy.cancel(sympy.together(sympy.diff(curvature, t))))[0]
        polynomial = sympy.Poly(numerator, t)
        if not (polynomial.domain.is_QQ or polynomial.domain.is_ZZ) or polynomial.degree() > 30:
            return None
        if len(ends) < 2 or any(limit.status != "proved" for limit in ends):
            return None
        values = [limit.value for limit in ends if limit.value is not None and limit.value.is_finite]
        values += [curvature.subs(t, root) for root in set(polynomial.real_roots()) if 0 < root < 1]
        return min(values, key=lambda v: truth.evaluate(v, {})) if values else None

    try:
        return deadline.run(work, share=0.1)
    except StepTimeout:
        return None
    except Exception:  # not a polynomial, or roots that cannot be isolated
        return None


def _numeric_infimum(entropy: Entropy, deadline: Deadline) -> Fact | None:
    from . import search  # brings SciPy, which `import fysym` must not

    x = entropy.x
    least = None
    for piece in entropy.pieces:
        curvature = -sympy.diff(piece.expr, entropy.t, 2).subs(entropy.t, piece.point(x))
        try:
            bound, best, at = deadline.run(
                lambda c=curvature: search.lower_bound_and_point(c, x, seconds=0.05 * deadline.seconds), share=0.1
            )
        except StepTimeout:
            return None
        if not (math.isfinite(best) and abs(best - bound) <= 1e-6 * abs(best)):  # 0 cannot be told from small
            return None
        exact = truth.evaluate_reliably(curvature, {x: sympy.Rational(at)})
        if not abs(exact - best) <= 1e-6 * abs(best):  # rounding hides it
            return None
        least = best if least is None else min(least, best)
    if least is None or not least > 0:
        return None
    evidence = "branch and bound in float64, to about 6 digits"
    return Fact("strong_concavity", sympy.Float(least, 9), "sampled", evidence)


def _differentiability(
    theory: Theory, entropy: Entropy, verdict: Verdict, curvatures: tuple[Limit, Limit], deadline: Deadline
) -> None:
    """Is the prediction differentiable everywhere: where q is cut off, where h'' is 0, and where pieces meet?"""
    name, domain = "twice_differentiable", entropy.domain
    found: list[Fact] = []  # one for each place in question
    unknown = ""
    ends = list(zip(domain.facts("slope"), curvatures, domain.ends, strict=True))
    reached = [domain.low == 0, domain.bounded and (domain.total is None or domain.total > 1)]
    for (slope, curvature, end), reaches in zip(ends, reached, strict=True):
        if not reaches:
            continue
        value = theory.value(slope)
        if value is None or (not value.is_infinite and curvature.value is None):
            unknown = unknown or f"the limits of h' and h'' at {end} are not determined"
        elif value.is_infinite:
            found.append(Fact(name, True, theory.status(slope), f"no cut-off at {end}"))
        else:
            smooth = bool(curvature.value == S.Infinity)
            corner = "a smooth cut-off" if smooth else "a corner at the cut-off"
            why = f"-h''({end}{'+' if end == '0' else '-'}) = {entropy.user(entropy.closed(curvature.value))}: {corner}"
            found.append(Fact(name, smooth, curvature.status, why))
    zeros = [] if verdict.zero is None else [verdict.zero]
    try:
        for left, right in zip(entropy.pieces, entropy.pieces[1:], strict=False):
            known, why = deadline.run(_joint, entropy, left, right, share=0.05)
            if known is None:
                unknown = unknown or why
            else:
                found.append(Fact(name, known, "proved", why))
    except Exception:  # also StepTimeout
        unknown = unknown or "what happens where the pieces of h meet is not determined"
    if any(zero.free_symbols or domain.total is None or 2 * zero <= domain.total for zero in zeros):
        why = f"h'' is 0 at t = {zeros[0]}, where the prediction has an infinite derivative"
        found.append(Fact(name, False, "proved", why))
    elif zeros or (not verdict.strict and verdict.fact.status == "proved"):
        unknown = unknown or "h'' <= 0 is proved, but not that it has no zero"
    refuting = [fact for fact in found if not fact.value]
    if refuting:
        status = weakest(refuting[0].status, theory.status("strictly_concave"))
        theory.facts[name] = Fact(name, False, status, refuting[0].evidence)
    elif unknown:
        theory.leave(name, unknown, entropy.parameters)
    else:
        status = weakest(*(fact.status for fact in found), theory.status("strictly_concave"))
        whys = [*dict.fromkeys(fact.evidence for fact in found), f"-h'' > 0 on all of {domain.interval}"]
        theory.facts[name] = Fact(name, True, status, ", and ".join(whys))


def _joint(entropy: Entropy, left: Piece, right: Piece) -> tuple[bool | None, str]:
    """Whether q is differentiable where two pieces meet (None where that is not known), and why."""
    t, at = entropy.t, left.high
    here = f"at t = {at}, where pieces of h meet, "
    slopes, seconds = ([piece.slope(t, at, order) for piece in (left, right)] for order in (1, 2))
    if all(second.is_infinite for second in seconds):
        return True, here + "h'' is infinite on both sides"
    jump = truth.sign(slopes[0] - slopes[1])
    if jump is None or any(second.free_symbols for second in seconds):
        return None, here + "h' or h'' is not determined"
    if jump != 0:
        return False, here + "h' jumps: the prediction has a corner"
    if any(second.is_infinite for second in seconds):
        return False, here + "h'' jumps: the prediction has a corner"
    same = truth.sign(seconds[0] - seconds[1])
    if same is None:
        return None, here + "h'' is not determined"
    if same != 0:
        return False, here + "h'' jumps: the prediction has a corner"
    total = entropy.domain.total
    if truth.sign(seconds[0]) == 0 and (total is None or truth.sign(2 * at - sympy.Rational(total)) != 1):
        return False, here + "h'' is 0: the prediction has an infinite derivative"
    return True, here + "h' and h'' are continuous"
