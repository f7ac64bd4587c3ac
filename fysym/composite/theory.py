"""What can be known of G(sum s(p_j)) from G and s: concavity on the simplex, margin and sparsity."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import sympy

from .. import truth
from ..compiler import compile
from ..deadline import Deadline, simplified
from ..errors import FysymError, NotConcaveError, ParameterError, UndecidedError, UnsupportedError
from ..facts import Fact
from ..ranges import exact_number
from ..regularizer import Regularizer
from ..signs import prove_sign

if TYPE_CHECKING:
    from collections.abc import Mapping

    from . import Composite

T = sympy.Symbol("t", positive=True)
U = sympy.Symbol("u", positive=True)


def ends(inner: sympy.Expr) -> sympy.Expr:
    """s(1); s(0) must be 0, so that a class without probability does not count."""
    at_zero, at_one = sympy.limit(inner, T, 0, "+"), sympy.limit(inner, T, 1, "-")
    if at_zero != 0 or not at_one.is_finite or not at_one.is_positive:
        raise UnsupportedError(
            f"inner = {inner} must be 0 at 0 and positive at 1, and has the values {at_zero} and {at_one} there. "
            "Try: inner less its value at 0, plus a multiple of t, which adds a constant to u"
        )
    return at_one


def separable(inner: sympy.Expr, clock: Deadline) -> tuple[int, Regularizer]:
    """sigma, and the regularizer of sigma s."""
    problem: NotConcaveError | None = None
    for sign in (1, -1):
        try:
            return sign, compile(sign * inner, deadline=clock.seconds)
        except NotConcaveError as error:
            problem = error
    assert problem is not None
    raise NotConcaveError(
        f"inner = {inner} is neither strictly concave nor strictly convex: {problem} Try: a power of t.",
        problem.witness,
    )


def facts(
    outer: sympy.Expr, inner: sympy.Expr, at_one: sympy.Expr, sign: int, inside: Regularizer, assume: bool, clock: Any
) -> list[Fact]:
    """Concavity on the simplex, the margin and the sparsity."""
    concave = concavity(outer, inner, at_one, sign, assume, clock)
    found = [concave]
    margin, sparsity = inside.fact("margin"), inside.fact("sparsity")
    w = sign * sympy.diff(outer, U).subs(U, at_one)
    if margin is not None:
        value = sympy.oo if margin.value.is_infinite else simplified(w * margin.value)
        why = f"dH/dp_j - dH/dp_k at the vertex e_k: F'(v) = {simplified(w)} there, times the margin {margin.value} of "
        status = margin.status if concave.status == "proved" else "sampled"
        found.append(Fact("margin", value, status, why + "the sum inside"))
    if sparsity is not None:
        why = f"a prediction is one of the sum inside, at theta / w, and that is {sparsity.value}"
        found.append(Fact("sparsity", sparsity.value, sparsity.status, why))
    return found


def concavity(outer: sympy.Expr, inner: sympy.Expr, at_one: sympy.Expr, sign: int, assume: bool, clock: Any) -> Fact:
    """H = F(v) with v concave: F' > 0, and F'' v'^2 must not outweigh F' v''."""
    first, second = sign * sympy.diff(outer, U), sympy.diff(outer, U, 2)
    # s convex: 0 < u <= s(1); s concave: u >= s(1). Both as functions of t in (0, 1).
    place = {U: at_one * T} if sign < 0 else {U: at_one / T}
    first_here, second_here = (simplified(e.subs(place)) for e in (first, second))
    rising = prove_sign(first_here, T, clock)
    if rising is None or rising.sign < 0:
        witness = _where_not_positive(first_here)
        if witness is not None:
            way = "fall" if sign < 0 else "grow"
            at = f"its derivative has the wrong sign at u = {float(place[U].subs(T, witness)):.6g}"
            raise NotConcaveError(f"outer = {outer} must {way} with u, which {inner} adds up to: {at}", witness)
    known = rising is not None
    bend = prove_sign(second_here, T, clock) if second_here != 0 else None
    if known and (second_here == 0 or (bend is not None and bend.sign < 0)):
        return Fact("strictly_concave", True, "proved", "F is increasing and concave, and v is strictly concave")
    # Cauchy-Schwarz: F'' (sum v' z)^2 <= F'' sum(v'^2 / |v''|) sum(|v''| z^2), which must stay below F' sum |v''| z^2
    slope, curve = (sympy.diff(inner, T, k) for k in (1, 2))
    ratio = simplified(slope**2 / (curve * inner))
    if known and not ratio.free_symbols:
        left = simplified((first - abs(ratio) * U * second).subs(place))
        proof = prove_sign(left, T, clock) if left != 0 else None
        if left == 0 or (proof is not None and proof.sign > 0):
            why = f"F' >= F'' sum(s'^2/|s''|), as s'^2/s'' = {ratio} s (Cauchy-Schwarz)"
            return Fact("strictly_concave", True, "proved", why)
    return _sampled(outer, inner, sign, assume)


def _where_not_positive(expr: sympy.Expr) -> sympy.Expr | None:
    """A rational t in (0, 1) at which the expression is not positive."""
    for k in range(1, 64):
        at = sympy.Rational(k, 64)
        if not truth.evaluate(expr, {T: at}) > 0:
            return at
    return None


def _sampled(outer: sympy.Expr, inner: sympy.Expr, sign: int, assume: bool) -> Fact:
    """The Hessian on the tangent space at many p: F' diag(v'') + F'' v' v'^T is negative there where F'' times the
    variance of v' under the weights 1/|v''|, times their sum, is less than F'."""
    from .sampling import worst

    try:
        share, p = worst(outer, inner, sign)
    except (ArithmeticError, TypeError, NameError, AttributeError) as error:
        raise UndecidedError(f"G or s cannot be evaluated ({type(error).__name__}: {error})") from None
    lost = "predictions are then stationary points, which need not be the largest value, and a loss need not be convex"
    if assume:
        how = f"is refuted at p = {p}" if share > 1.0 else "was not proved"
        known = (False, "refuted") if share > 1.0 else (True, "sampled")
        return Fact("strictly_concave", *known, f"assumed by the caller; it {how}: {lost}")
    if share > 1.0:
        raise NotConcaveError(
            f"{outer}, u = sum of {inner}, is not concave on the simplex: its Hessian has a positive direction at "
            f"p = {p}. Try: other parameters, or assume_concave=True where it is pseudo-concave (Renyi with beta > 1): "
            + lost,
            p,
        )
    why = f"the Hessian on the tangent space is negative at many p of up to 30 classes; closest to 0 at p = {p}"
    return Fact("strictly_concave", True, "sampled", why)


def solve(composite: Composite, wanted: Mapping[str, Any]) -> dict[str, sympy.Expr]:
    """The value of the one free parameter at which the margin is that wanted."""
    given = {name: value for name, value in wanted.items() if name in composite.params}
    goals = {name: exact_number(value) for name, value in wanted.items() if name not in given}
    request = composite.request.bind(given)
    if set(goals) != {"margin"} or len(request.ranges) != 1:
        free = ", ".join(request.ranges) or "none"
        raise ParameterError(f"only a margin can be solved for, and with one free parameter; they are: {free}")
    ((name, span),) = request.ranges.items()
    goal = goals["margin"]
    symbol = next(s for s in (request.outer + request.inner).free_symbols if s.name == name)
    margin = next((fact.value for fact in family(request) if fact.name == "margin"), None)
    if margin is None or margin.is_infinite:
        raise UndecidedError("the margin of this family is infinite or not determined; bind its parameters")
    found = [value for value in sympy.solve(margin - goal, symbol) if value.is_real and value in span]
    if len(found) != 1:
        how = "no member has" if not found else "several members have"
        raise ParameterError(f"{how} margin = {goal} in the range {span.describe(name)}; the margin is {margin}")
    return {**{key: exact_number(value) for key, value in given.items()}, name: found[0]}


def family(request: Any) -> list[Fact]:
    """The margin and the sparsity of all members that are concave, in the parameters; what is not determined is left
    out."""
    inner = request.inner
    inside = {s.name: s for s in inner.free_symbols if s.name in request.ranges}
    ranges = {name: request.ranges[name].describe(name) for name in inside}
    for sign in (1, -1):
        try:
            separable = compile(sign * inner, params=ranges, deadline=request.seconds)
        except FysymError:
            continue
        w = simplified(sign * sympy.diff(request.outer, U).subs(U, inner.subs(T, 1)))
        known = []
        margin, sparsity = separable.fact("margin"), separable.fact("sparsity")
        if margin is not None:
            there = margin.value.subs({sympy.Symbol(name): symbol for name, symbol in inside.items()})
            value = sympy.oo if there.is_infinite else simplified(w * there)
            why = f"F'(v) = {w} at a vertex, times the margin {margin.value} of the sum inside"
            known.append(Fact("margin", value, margin.status, why + EACH))
        if sparsity is not None:
            why = f"a prediction is one of the sum inside, at theta / w, and that is {sparsity.value}"
            known.append(Fact("sparsity", sparsity.value, sparsity.status, why + EACH))
        return known
    return []


EACH = ", for each member that is concave, which is decided when it is bound"
