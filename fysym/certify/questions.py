"""Sign questions about an entropy, for a family over its whole range, answered by balls within a deadline."""

from __future__ import annotations

import sympy

from .. import certify
from ..deadline import Deadline
from ..entropy import Entropy
from ..signs import Proof, prove_sign
from . import Cover


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
