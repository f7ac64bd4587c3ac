"""One-sided limits at 0 and 1, each cross-checked numerically before it is believed.

A limit at 1 is taken in e = 1 - t as e -> 0+, because SymPy's left limits have wrong signs.
Parameters come as positive symbols (their ranges are substituted away before), because a limit
with a symbolic exponent is only right when the sign of that exponent is known.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import sympy

from . import truth
from .bounds import bounds_of
from .deadline import Deadline, StepTimeout, factored, on_timeout
from .rewrite import is_awkward

Point = dict[sympy.Symbol, sympy.Expr]

# Distances of about 10^-k to the end at which a claimed limit is compared with values of the function.
NEAR = (3, 10, 20, 40, 80)
ODD = 0.9175  # times that: at 10^k itself cos(pi/e) is 1 every time
# Used where those do not settle it: next to 10^-100, t/(t + 10^-100) is 1 at all of them.
FARTHER = (80, 160, 320, 640, 1280)
# Used beyond NEAR where only powers and logarithms occur: t^(1e-9) is still 0.99 at 10^-1000.
FAR = (300, 1000, 10**4, 10**6, 10**8, 10**10, 10**12, 10**14)


@dataclass(frozen=True)
class Limit:
    """A one-sided limit: its exact value, or a number and status `sampled`; value None is undetermined."""

    value: sympy.Expr | None
    status: str
    evidence: str


def end_limit(
    f: sympy.Expr, t: sympy.Symbol, end: sympy.Expr | int, deadline: Deadline, points: Sequence[Point] = ({},)
) -> Limit:
    """The limit of f as t -> 0+ (end=0), t -> 1- (end=1), or t -> oo or -oo.

    `points` are parameter values at which a symbolic answer is compared with numbers.
    """
    e = sympy.Dummy("e", positive=True)
    near, place = near_end(_clear_parameters(f, t), t, end, e), PLACES[end]
    rejected = set()
    for attempt in (_by_substitution, _by_powers, _by_lambert, _by_terms, _by_limit):
        try:
            value = deadline.run(attempt, near, e, share=0.15)
        except StepTimeout:
            continue
        except Exception:  # SymPy raises many kinds when a limit is beyond it
            continue
        if value is sympy.nan:
            break
        if value is None or value in rejected:
            continue
        if _agrees(near, e, value, points, deadline):
            return Limit(value, "proved", f"exact limit as {place}, agrees with values at high precision")
        if attempt == _by_substitution and _is_continuous(near, e, deadline):
            return Limit(value, "proved", f"exact limit as {place}, where every part is continuous")
        rejected.add(value)
    if points == ({},) or list(points) == [{}]:
        estimate = _estimate(near, e, deadline)
        # Values that grow are no proof against a finite exact limit that they have not passed, as far as one looks.
        if estimate is not None and not (estimate.is_infinite and any(not _is_passed(near, e, v) for v in rejected)):
            return Limit(estimate, "sampled", f"estimated from values at high precision as {place}")
    return Limit(None, "sampled", f"the limit as {place} could not be determined")


PLACES = {0: "t -> 0+", 1: "t -> 1-", sympy.oo: "t -> oo", -sympy.oo: "t -> -oo"}


def near_end(f: sympy.Expr, t: sympy.Symbol, end: sympy.Expr | int, e: sympy.Symbol) -> sympy.Expr:
    """f in the distance e > 0 from an end, or in 1/e from an infinite one."""
    return f.xreplace({t: {0: e, 1: 1 - e, sympy.oo: 1 / e, -sympy.oo: -1 / e}[end]})


@functools.lru_cache(maxsize=64)
def _clear_parameters(f: sympy.Expr, t: sympy.Symbol) -> sympy.Expr:
    """Each sum of parameters over one denominator and factored, so that SymPy can see its sign."""

    def cleared(g: sympy.Expr) -> sympy.Expr:
        return g.replace(lambda x: x.is_Add and bool(x.free_symbols) and not x.has(t), _over_one_denominator)

    return cleared(sympy.powsimp(cleared(f)))


on_timeout(_clear_parameters.cache_clear)


@functools.lru_cache(maxsize=1024)
def _over_one_denominator(total: sympy.Expr) -> sympy.Expr:
    return factored(sympy.together(total))


on_timeout(_over_one_denominator.cache_clear)


def _by_substitution(f: sympy.Expr, e: sympy.Symbol) -> sympy.Expr | None:
    """f at e = 0, when plain substitution makes sense there."""
    value = f.subs(e, 0)
    return value if _usable(value) else None


# Continuous wherever their argument is.
ENTIRE = (
    sympy.exp, sympy.sin, sympy.cos, sympy.sinh, sympy.cosh, sympy.tanh, sympy.atan, sympy.asinh, sympy.erf, sympy.erfc,
)  # fmt: skip


def _is_continuous(f: sympy.Expr, e: sympy.Symbol, deadline: Deadline) -> bool:
    """Is f made of parts each of which is continuous, from the right, at what it is given at e = 0?

    Then its value there is its limit, however close to 0 one must come to see it.
    """

    def fine(node: sympy.Expr) -> bool:
        if not node.has(e) or node == e or node.func in (sympy.Add, sympy.Mul) or isinstance(node, ENTIRE):
            return node != sympy.I
        if not (node.is_Pow or isinstance(node, sympy.log)):
            return False
        base, exponent = node.as_base_exp() if node.is_Pow else (node.args[0], sympy.S.NegativeOne)
        value = base.subs(e, 0)
        sign = _sign(value, e) or truth.sign(value)
        if sign == 1 or (exponent.is_Integer and exponent.is_nonnegative):
            return True
        if sign == -1 or exponent.has(e):
            return bool(sign == -1 and exponent.is_Integer and node.is_Pow)
        return bool(value.is_zero and base.is_nonnegative and exponent.is_positive)

    try:
        return deadline.run(lambda: all(fine(node) for node in sympy.preorder_traversal(f)), share=0.1)
    except Exception:  # also StepTimeout: then it is not known
        return False


def _by_powers(f: sympy.Expr, e: sympy.Symbol) -> sympy.Expr | None:
    """The limit of a sum of c e^p: the growing terms decide, if they agree.

    nan says that the sign of an exponent or of a coefficient depends on the parameters, so that nothing else
    need be tried.
    """
    terms = power_terms(f, e)
    if terms is None:
        return None
    total: dict[sympy.Expr, sympy.Expr] = {}
    for factor, power in terms:
        exponent = _over_one_denominator(power)
        total[exponent] = total.get(exponent, sympy.S.Zero) + factor
    growing = set()
    for exponent, coefficient in total.items():
        factor = _over_one_denominator(coefficient)
        if factor == 0 or exponent.is_zero:
            continue
        trend = _sign(exponent, e)
        if trend == 0:
            return sympy.nan
        if trend < 0:
            growing.add(_sign(factor, e))
    if growing:
        return {1: sympy.oo, -1: -sympy.oo}.get(growing.pop(), sympy.nan) if len(growing) == 1 else sympy.nan
    return total.get(sympy.S.Zero, sympy.S.Zero)


def _sign(f: sympy.Expr, e: sympy.Symbol) -> int:
    """1 or -1 for the sign of an expression in the parameters, 0 where it is not known."""
    if f.is_positive or f.is_negative:
        return 1 if f.is_positive else -1
    sign, strict = bounds_of(f, e).sign
    return sign if strict else 0


def power_terms(f: sympy.Expr, e: sympy.Symbol) -> list[tuple[sympy.Expr, sympy.Expr]] | None:
    """f as a sum of c e^p, a list of (c, p); None when it is not one."""
    if not f.has(e):
        return [(f, sympy.S.Zero)]
    if f.is_Pow and not f.exp.has(e):
        base = [(sympy.S.One, sympy.S.One)] if f.base == e else power_terms(f.base, e)
        return [(base[0][0] ** f.exp, base[0][1] * f.exp)] if base is not None and len(base) == 1 else None
    if f == e:
        return [(sympy.S.One, sympy.S.One)]
    if not (f.is_Add or f.is_Mul):
        return None
    parts = [power_terms(part, e) for part in f.args]
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return None
    if f.is_Add:
        return [term for part in known for term in part]
    product = [(sympy.S.One, sympy.S.Zero)]
    for part in known:
        product = [(c * d, p + q) for c, p in product for d, q in part]
    return product


def _by_lambert(f: sympy.Expr, e: sympy.Symbol) -> sympy.Expr | None:
    """The limit in w = W(x), of which e is an elementary function, where W(x) is the one Lambert W in f.

    At infinity and at the branch point, where SymPy knows little of W.
    """
    nodes = [node for node in f.atoms(sympy.LambertW) if node.has(e)]
    if len(nodes) != 1:
        return None
    argument, branch = nodes[0].args[0], sympy.S.Zero if len(nodes[0].args) == 1 else nodes[0].args[1]
    d = sympy.Dummy("d", positive=True)
    ways = {
        (sympy.oo, 0): 1 / d, (sympy.S.Zero, -1): -1 / d, (-sympy.exp(-1), 0): d - 1, (-sympy.exp(-1), -1): -1 - d
    }  # fmt: skip
    w = ways.get((sympy.limit(argument, e, 0, "+"), branch))
    if w is None:
        return None
    x = sympy.Dummy("x", positive=True) if w == 1 / d else sympy.Dummy("x", negative=True)
    places = sympy.solve(argument - x, e)
    if len(places) != 1:
        return None
    return _by_limit(f.xreplace({nodes[0]: w}).subs(e, places[0].subs(x, w * sympy.exp(w))), d)


def _by_terms(f: sympy.Expr, e: sympy.Symbol) -> sympy.Expr | None:
    """The sum of the limits of the terms, where that makes sense; much easier than the limit of the sum."""
    terms = sympy.Add.make_args(sympy.expand_mul(f))
    if len(terms) < 2:
        return None
    total = sympy.S.Zero
    for term in terms:
        value = _by_substitution(term, e)
        value = _by_limit(term, e) if value is None else value
        if value is None:
            return None
        total += value
    total = _without_doubt(total)
    return total if _usable(total) else None


def _without_doubt(value: sympy.Expr) -> sympy.Expr:
    """Infinity plus erfinv(-2/5), of which SymPy does not know that it is finite, is infinity."""
    if not value.has(sympy.oo, -sympy.oo):
        return value
    return value.replace(
        lambda x: isinstance(x, (sympy.erfinv, sympy.erfcinv)) and x.is_number, lambda x: sympy.Float(x.evalf(20))
    )


def _by_limit(f: sympy.Expr, e: sympy.Symbol) -> sympy.Expr | None:
    value = sympy.limit(f, e, 0, "+")
    return value if _usable(value) and value.free_symbols <= f.free_symbols - {e} else None


def _usable(value: sympy.Expr) -> bool:
    bad = (sympy.nan, sympy.zoo, sympy.I, sympy.Limit, sympy.AccumBounds, sympy.Order, sympy.sign)
    if value.has(*bad) or (value.has(sympy.oo, -sympy.oo) and not value.is_infinite):
        return False
    if value.is_infinite and value not in (sympy.oo, -sympy.oo):
        return False
    return not any(power.base.is_zero for power in value.atoms(sympy.Pow))


def _agrees(f: sympy.Expr, e: sympy.Symbol, value: sympy.Expr, points: Sequence[Point], deadline: Deadline) -> bool:
    try:
        return all(deadline.run(_agrees_at, f, e, value, point, share=0.1) for point in points)
    except StepTimeout:
        return False


def _agrees_at(f: sympy.Expr, e: sympy.Symbol, value: sympy.Expr, point: Point) -> bool:
    """Do values of f at shrinking distances approach the claimed limit?"""
    f, value = truth.substituted(f, point), truth.substituted(value, point)
    ladder = _ladder(f, e)
    if len(ladder) < 3:
        return False
    # Logarithms are slow: beside large terms that go to 0 their growth shows only at smaller distances.
    return _tends_to(ladder, value) or _tends_to(_values(f, e, FARTHER), value)


def _tends_to(values: list[Any], value: sympy.Expr) -> bool:
    if len(values) < 3:
        return False
    if value.is_infinite:
        sign = 1 if value == sympy.oo else -1
        return _diverges([sign * v for v in values])
    limit = truth.evaluate_reliably(value, {})
    return _approaches([abs(v - limit) for v in values], max(1.0, abs(limit)))


def _diverges(values: list[Any]) -> bool:
    """Growing at the end, by steps that do not die out as those of a convergent sequence do."""
    steps = [b - a for a, b in zip(values, values[1:], strict=False)]
    growing = 3 * steps[-1] > steps[-2] if values[-1] > 0 else 2 * steps[-1] > 3 * steps[-2]  # as a logarithm does
    return all(s > 0 for s in steps[-2:]) and bool(growing)


def _approaches(errors: list[Any], scale: Any) -> bool:
    """Small at the end, or shrinking all the way to it (1/log t is slow)."""
    if errors[-1] < 1e-20 * scale:
        return True
    return bool(errors[-1] < 0.6 * errors[-2] < 0.5 * errors[-3] or errors[-1] < 1e-3 * min(scale, errors[0]))


def _ladder(f: sympy.Expr, e: sympy.Symbol) -> list[Any]:
    """Values of f at distances of about 10^-k that two precisions agree on, from far to near."""
    ctx = truth.context()
    values = _values(f, e, NEAR)
    g = f if is_awkward(f) else sympy.expand(f)
    for k in FAR if _is_gentle(g, e) else ():
        tiny = ODD / ctx.mpf(10) ** k
        rough, fine = (truth.evaluate(g, {e: tiny}, digits=digits) for digits in (60, 240))
        if not (ctx.isfinite(fine) and abs(rough - fine) <= 1e-10 * abs(fine)):
            break
        values.append(fine)
    return values


def _values(f: sympy.Expr, e: sympy.Symbol, places: Sequence[int]) -> list[Any]:
    """Values of f at distances of about 10^-k, those that are finite."""
    ctx = truth.context()
    values = (truth.evaluate_reliably(f, {e: ODD / ctx.mpf(10) ** k}) for k in places)
    return [v for v in values if ctx.isfinite(v)]


def _is_gentle(f: sympy.Expr, e: sympy.Symbol) -> bool:
    """Only powers and logarithms, and none of 1 + e and the like, which is 1 to any precision when e is tiny enough."""

    def fine(node: sympy.Expr) -> bool:
        if not node.has(e) or node == e or node.func in (sympy.Add, sympy.Mul):
            return True
        inside = node.base if node.is_Pow else node.args[0]
        mixed = inside.is_Add and inside.as_independent(e)[0] != 0
        return not mixed and (isinstance(node, sympy.log) or (node.is_Pow and not node.exp.has(e)))

    return all(fine(node) for node in sympy.preorder_traversal(f))


def _is_passed(f: sympy.Expr, e: sympy.Symbol, value: sympy.Expr) -> bool:
    """Is f farther from 0 than a claimed limit, next to the end?"""
    far = _values(f, e, FARTHER)[-1:]
    return bool(value.is_infinite or (far and abs(far[0]) > abs(truth.evaluate_reliably(value, {}))))


def _estimate(f: sympy.Expr, e: sympy.Symbol, deadline: Deadline) -> sympy.Expr | None:
    """A numeric limit where the symbolic one failed: only when the values, the farthest too, leave no doubt."""
    try:
        ladder = deadline.run(_ladder, f, e, share=0.2)
        far = ladder if len(ladder) > len(NEAR) else deadline.run(_values, f, e, FARTHER, share=0.2)
    except StepTimeout:
        return None
    if len(ladder) < 5 or len(far) < 3:
        return None
    last = ladder[-1]
    if max(abs(last - v) for v in (ladder[-2], far[-2], far[-1])) <= 1e-25 * max(1, abs(last)):
        return sympy.Float(str(last), 25) if abs(last) > 1e-25 else sympy.Integer(0)
    for sign in (1, -1):
        if all(_diverges([sign * v for v in values]) and sign * values[-1] > 1e6 for values in (ladder, far)):
            return sympy.oo if sign > 0 else -sympy.oo
    return None
