"""What can be known of G(sum s(p_j)) from G and s: concavity on the simplex, margin and sparsity."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import sympy

from .. import truth
from ..boundary import Limit, end_limit
from ..compiler import compile
from ..deadline import Deadline, factored, simplified
from ..errors import NotConcaveError, UndecidedError, UnsupportedError
from ..facts import STATUSES, Fact
from ..kinks import SWITCHING
from ..regularizer import Regularizer
from ..signs import conditions, prove_sign

T = sympy.Symbol("t", positive=True)
U = sympy.Symbol("u", positive=True)
LEAST, MOST = 1e-300, 1e280  # of H(1/2, 1/2) where there are numbers
ANY_U = sympy.Symbol("u", real=True)  # u as it is read, before its sign is known


@dataclass(frozen=True)
class Form:
    """H = G(u), u = sum_j s(p_j), with 0 < u: G(s(1)) = 0, v = sign * u is concave, and `start` is s'(0+).

    As s lies between its chord and its tangent at 0, u lies between s(1), at the vertices, and s'(0+), which it comes
    close to at the uniform distribution of many classes. `place` is u as a function of 0 < t < 1, a vertex at t = 1.
    `steepness` is F' = sign G' at a vertex; `status` says how s(1), s'(0+), F' and the concavity of v are known.
    """

    outer: sympy.Expr
    inner: sympy.Expr
    sign: int
    at_one: sympy.Expr
    start: sympy.Expr
    steepness: sympy.Expr
    status: str
    given: str = ""  # what G and s were, in words, where they are not what was given

    @property
    def place(self) -> sympy.Expr:
        return _place(self.at_one, self.start, self.sign)


def _place(at_one: sympy.Expr, start: sympy.Expr, sign: int) -> sympy.Expr:
    if start.is_finite:
        return start + (at_one - start) * T
    return at_one + sign * (1 / T - 1)


def weakest(*statuses: str) -> str:
    """How a fact is known that rests on all of these; what rests on something refuted is no better than sampled."""
    worst = max(statuses, key=STATUSES.index)
    return "sampled" if worst == "refuted" else worst


def ends(inner: sympy.Expr, clock: Deadline) -> Limit:
    """s(1); s(0) must be 0, so that a class without probability does not count."""
    at_zero, at_one = (end_limit(inner, T, end, clock) for end in (0, 1))
    if at_zero.value is None or at_one.value is None:
        raise UndecidedError(f"the values of inner = {inner} at 0 and 1 were not found; write it in another form")
    if at_zero.value != 0 or not at_one.value.is_finite:
        raise UnsupportedError(
            f"inner = {inner} must be 0 at 0 and finite at 1, and has the values {at_zero.value} and {at_one.value} "
            "there. Try: inner less its value at 0"
        )
    return at_one


def form(outer: sympy.Expr, inner: sympy.Expr, clock: Deadline) -> tuple[Form, Regularizer]:
    """The Form of G in ANY_U and s in T, and the regularizer of v.

    Where u is not always positive, or F' is infinite at the vertices, u is measured from its value there: s becomes
    that regularizer's h, which is 0 at 1.
    """
    vertex = ends(inner, clock)
    sign, inside = separable(inner, clock)
    slope, concave = inside.fact("slope_at_0"), inside.fact("strictly_concave")
    if slope is None or concave is None or vertex.value is None:
        raise UndecidedError(f"the slope of inner = {inner} at 0 was not found; write it in another form")
    at_one, start = vertex.value, vertex.value + sign * slope.value
    place = _place(at_one, start, sign)
    value, steepness = (
        end_limit(e.xreplace({ANY_U: place, U: place}), T, 1, clock) for e in (outer, sign * _derivative(outer))
    )
    if value.value is None or steepness.value is None:
        raise UndecidedError(
            f"the value or the slope of outer = {outer} at u = {at_one}, at the vertices, was not found; it must be "
            f"real for u from {at_one} to {start}"
        )
    if value.value.is_infinite:
        raise UnsupportedError(
            f"H = {outer} is {value.value} at the vertices, where u = {at_one}: a label would have an infinite loss. "
            "Try: an outer that is finite there"
        )
    status = weakest(vertex.status, slope.status, concave.status, value.status, steepness.status)
    given = f" (u is the distance of the sum of {inner} from {at_one}, and outer is {outer} of that sum)"
    outer = outer - value.value  # a constant does not change the loss; without it H is 0 at the vertices
    if steepness.value.is_infinite or not (at_one.is_positive and start.is_extended_nonnegative):
        moved = simplified(outer.xreplace({ANY_U: at_one + sign * U, U: at_one + sign * U}))
        rest = 1, sympy.S.Zero, slope.value, steepness.value, status, given
        return Form(_tidy(moved), inside.h.xreplace({inside.variable: T}), *rest), inside
    outer = sympy.expand_log(outer.xreplace({ANY_U: U}))
    return Form(outer, inner, sign, at_one, start, steepness.value, status), inside


def _derivative(outer: sympy.Expr) -> sympy.Expr:
    """G' in whichever symbol G is in."""
    return sympy.diff(outer, U if outer.has(U) else ANY_U)


def _tidy(outer: sympy.Expr) -> sympy.Expr:
    """Each sum in u as a product where it is one: 1 - (1 - u)^2 would lose the digits of a small u."""
    return outer.replace(lambda x: x.is_Add and x.has(U), lambda x: factored(sympy.expand(x)))


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


def facts(form: Form, inside: Regularizer, assume: bool, clock: Any) -> list[Fact]:
    """Concavity on the simplex, the margin and the sparsity."""
    margin, sparsity = inside.fact("margin"), inside.fact("sparsity")
    value = None if margin is None else _product(form.steepness, margin.value)
    concave = concavity(form, value, assume, clock)
    found = [concave]
    shown = simplified(form.steepness)
    if margin is not None and value is not None:
        why = f"dH/dp_j - dH/dp_k at the vertex e_k: F'(v) = {shown} there, times the margin {margin.value} of "
        status, why = weakest(margin.status, form.status, concave.status), f"{why}the sum inside"
        if concave.status == "refuted":
            beyond = _beyond_margin(form, value)
            why += ", by the gradient there only, as H is not concave"
            if beyond:  # Prop. 5 says how large a margin is
                status, why = "refuted", f"{why}: a lead by it does not always do, as H / (1 - max p) is {beyond}"
        found.append(Fact("margin", value, status, why))
    if sparsity is not None:
        kind, why = sparsity.value, f"a prediction is one of the sum inside, at theta / w, and that is {sparsity.value}"
        if form.steepness.is_infinite and kind == "full":
            kind, why = "faces", f"{why}; but w = F'(v) is infinite at a vertex, so that none is reached"
        found.append(Fact("sparsity", kind, weakest(sparsity.status, form.status, concave.status), why))
    return found


def _product(steepness: sympy.Expr, margin: sympy.Expr) -> sympy.Expr | None:
    """The margin of H; None for 0 times infinity."""
    if steepness.is_infinite or margin.is_infinite:
        return None if steepness == 0 else sympy.oo
    return simplified(steepness * margin)


def concavity(form: Form, margin: sympy.Expr | None, assume: bool, clock: Any) -> Fact:
    """H = F(v) with v concave: F' > 0, and F'' v'^2 must not outweigh F' v''."""
    first, second = form.sign * sympy.diff(form.outer, U), sympy.diff(form.outer, U, 2)
    first_here, second_here = (simplified(e.subs(U, form.place)) for e in (first, second))
    rising = prove_sign(first_here, T, clock)
    if rising is None or rising.sign < 0:
        _refute_slope(form, first_here)
    known = rising is not None and rising.sign > 0 and _is_regular(form, clock)
    bend = prove_sign(second_here, T, clock) if second_here != 0 else None
    if known and (second_here == 0 or (bend is not None and bend.sign < 0)):
        why = "F is increasing and concave, and v is strictly concave"
        return Fact("strictly_concave", True, form.status, why)
    # Cauchy-Schwarz: F'' (sum v' z)^2 <= F'' sum(v'^2 / |v''|) sum(|v''| z^2), which must stay below F' sum |v''| z^2.
    # A constant may be taken from v', as z sums to 0.
    less = form.start if form.start.is_finite else sympy.S.Zero
    slope, curve = sympy.diff(form.inner, T) - less, sympy.diff(form.inner, T, 2)
    ratio = simplified(slope**2 / (curve * (form.inner - less * T)))
    if known and not ratio.free_symbols:
        size = less - U if form.start.is_finite and form.sign > 0 else U - less  # of the sum of r, which has one sign
        left = simplified((first - abs(ratio) * size * second).subs(U, form.place))
        proof = prove_sign(left, T, clock) if left != 0 else None
        if left == 0 or (proof is not None and proof.sign > 0):
            r = "s" if less == 0 else "r"
            where = "" if less == 0 else f", for r = s - ({less}) t"
            why = f"F' >= F'' sum({r}'^2/|s''|), as {r}'^2/s'' = {ratio} {r}{where} (Cauchy-Schwarz)"
            return Fact("strictly_concave", True, form.status, why)
    return _sampled(form, margin, assume)


def _is_regular(form: Form, clock: Any) -> bool:
    """Is it proved that G has no pole or jump at any u? Signs of its derivatives on both sides of one prove nothing."""
    proved = True
    for condition in conditions(form.outer.subs(U, form.place), T):
        proof = prove_sign(condition, T, clock)
        if proof is not None and proof.strict:
            continue
        proved = False
        values = [truth.evaluate(condition, {T: sympy.Rational(2 * k + 1, 127)}) for k in range(63)]
        if not (all(value > 0 for value in values) or all(value < 0 for value in values)):
            raise UndecidedError(
                f"outer = {form.outer} may have a pole or a jump: {condition} changes its sign for 0 < t < 1 with u = "
                f"{form.place}{form.given}"
            )
    return proved


def refuse_sizes(form: Form) -> None:
    """Raise where H is so large or so small that doubles do not hold what its predictions are found from."""
    shares = truth.evaluate(2 * form.inner, {T: sympy.Rational(1, 2)})
    size = abs(truth.evaluate(form.outer, {U: shares}))
    if size and not LEAST < size < MOST:
        which = "large" if size > 1 else "small"
        raise UnsupportedError(
            f"H(1/2, 1/2) = {truth.context().nstr(size, 3)} is too {which} for a double to work with. Try: another "
            "scale; predictions of c H at theta are those of H at theta / c, and losses are c times those"
        )


def _refute_slope(form: Form, first: sympy.Expr) -> None:
    """Raise at a u between its ends where F', given as a function of t, is not positive."""
    for k in range(1, 64):
        at = sympy.Rational(k, 64)
        value, u = truth.evaluate(first, {T: at}), float(truth.evaluate(form.place, {T: at}))
        if value != value:
            raise NotConcaveError(
                f"outer = {form.outer} or its slope is not a real number at u = {u:.6g}, and u, the sum of "
                f"{form.inner}, takes all values between {form.at_one} and {form.start}{form.given}",
                at,
            )
        if value <= 0:
            way = "fall" if form.sign < 0 else "grow"
            where = f"its derivative has the wrong sign at u = {u:.6g}"
            what = f"outer = {form.outer} must {way} with u, which {form.inner} adds up to"
            raise NotConcaveError(f"{what}: {where}{form.given}", at)


def _beyond_margin(form: Form, margin: sympy.Expr) -> str:
    from .sampling import beyond_margin

    return beyond_margin(form, margin)


def _sampled(form: Form, margin: sympy.Expr | None, assume: bool) -> Fact:
    """The Hessian on the tangent space, and the sup formula of Prop. 5, at many p."""
    from .sampling import worst

    try:
        found = worst(form, margin)
    except (ArithmeticError, TypeError, NameError, AttributeError) as error:
        if form.outer.has(*SWITCHING):
            raise UndecidedError(
                f"outer = {form.outer} has kinks, and whether H is concave could not be proved. Try: a smooth outer"
            ) from None
        raise UndecidedError(f"G or s cannot be evaluated ({type(error).__name__}: {error})") from None
    lost = "predictions are then stationary points, which need not be the largest value, and a loss need not be convex"
    if assume:
        how = f"is refuted at p = {found.words}: {found.problem}" if found.problem else "was not proved"
        known = (False, "refuted") if found.problem else (True, "sampled")
        return Fact("strictly_concave", *known, f"assumed by the caller; it {how}; {lost}")
    if found.problem:
        raise NotConcaveError(
            f"{form.outer}, u = sum of {form.inner}{form.given}, is not concave on the simplex: {found.problem} at p = "
            f"{found.words}. Try: other parameters, or assume_concave=True where it is pseudo-concave (Renyi with "
            f"beta > 1): {lost}",
            found.p,
        )
    why = f"the Hessian on the tangent space is negative at many p of up to {found.most} classes"
    return Fact("strictly_concave", True, "sampled", f"{why}; closest to 0 at p = {found.words}")
