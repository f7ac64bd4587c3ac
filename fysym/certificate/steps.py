"""The rules of a proof, each with a check of its own: does the sign of a step follow from its children?"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import sympy
from sympy import S

from .. import deadline
from ..certify_precision import precision
from ..entropy import VARIABLE as T
from ..errors import UndecidedError
from . import covers
from .balls import Function, Undefined, ball, number
from .data import SECONDS, CertificateError, Step
from .ranges import Environment, environment, holds, span_of

SUBSTITUTION = "substitute t = x/(1+x), x > 0"
X = sympy.Symbol("x", positive=True)
POINTS, BITS = 6, 512
MOST_DEGREE = 240


def check(step: Step, where: Environment | None = None, depth: int = 0) -> Iterator[str]:
    """Re-check one step and those it rests on; yields how, one line a step."""
    where = environment(step.expr) if where is None else where
    rule = RULES.get(step.rule)
    if rule is None:
        raise CertificateError(f"there is no rule called {step.rule[:60]!r}")
    if not set(step.expr.free_symbols) <= set(where):
        raise CertificateError(f"{short(step.expr)}: a symbol comes from nowhere")
    how = rule(step, where)
    if not how:
        raise CertificateError(f"{short(step.expr)}: the sign does not follow from the rule {step.rule!r}")
    yield "  " * depth + f"{step.rule}: {how}"
    for child in step.children:
        yield from check(child, environment(child.expr) if step.rule == SUBSTITUTION else where, depth + 1)


def short(expr: sympy.Expr) -> str:
    text = str(expr)
    return text if len(text) <= 60 else text[:57] + "..."


# --- equal expressions -------------------------------------------------------------------------------


def same(a: sympy.Expr, b: sympy.Expr) -> str:
    """How two expressions in positive symbols, t < 1, were found equal; CertificateError where they are not."""
    if a == b:
        return "identical"
    symbols = sorted(a.free_symbols | b.free_symbols, key=str)
    compared = 0
    with precision(BITS):
        for _ in range(4 * POINTS):
            point = {s: number(_random(s.name)) for s in symbols}
            try:
                difference = ball(a, point) - ball(b, point)
            except Undefined:
                continue
            compared += 1
            if difference > 0 or difference < 0:
                raise CertificateError(f"{short(a)} and {short(b)} are not the same")
            if compared == POINTS:
                break
    try:
        if compared == POINTS and deadline.run(_vanishes, a - b, seconds=SECONDS):
            return "the difference simplifies to 0"
    except deadline.StepTimeout:
        pass
    raise UndecidedError(f"that {short(a)} and {short(b)} are the same could not be re-checked")


def _random(name: str) -> Fraction:
    share = Fraction(random.randint(1, 10**6 - 1), 10**6)
    return share if name == "t" else share / (1 - share)


def _vanishes(difference: sympy.Expr) -> bool:
    """Do exact rewrites turn it into 0, as it stands or with t = x/(1+x), which shows that 1 - t is positive?"""

    def spread(e: sympy.Expr) -> sympy.Expr:
        return sympy.expand(sympy.expand_power_base(sympy.expand(sympy.expand_log(sympy.factor_terms(e)))))

    rewrites: tuple[Callable[[Any], Any], ...] = (
        lambda e: sympy.numer(sympy.together(e)).expand(),
        sympy.expand,
        lambda e: sympy.expand(sympy.powsimp(sympy.expand(e))),
        spread,
        lambda e: sympy.numer(sympy.together(spread(e))).expand(),
        lambda e: sympy.expand(sympy.powsimp(spread(sympy.numer(sympy.together(spread(e)))))),
        sympy.simplify,
    )
    opened = difference if difference.has(X) else sympy.together(difference.xreplace({T: X / (1 + X)}))
    for rewrite in rewrites:
        for form in dict.fromkeys((difference, opened)):
            try:
                if rewrite(form) == 0:
                    return True
            except Exception:  # a rewrite that fails decides nothing
                continue
    return False


# --- the rules ---------------------------------------------------------------------------------------


def _number(step: Step, where: Environment) -> str:
    constant = not step.children and not step.expr.free_symbols
    return "its ball has that sign" if constant and holds(span_of(step.expr, {}), step.sign, True) else ""


def _named(step: Step, where: Environment) -> str:
    return "a positive symbol" if step.expr.is_Symbol and step.sign == 1 and not step.children else ""


def _product(step: Step, where: Environment) -> str:
    sign = 1
    for child in step.children:
        sign *= child.sign
    strict = all(child.strict for child in step.children) or not step.strict
    return same(step.expr, sympy.Mul(*_exprs(step))) if step.children and sign == step.sign and strict else ""


def _sum(step: Step, where: Environment) -> str:
    signs = {child.sign for child in step.children}
    strict = any(child.strict for child in step.children) or not step.strict
    return same(step.expr, sympy.Add(*_exprs(step))) if signs == {step.sign} and strict else ""


def _exprs(step: Step) -> list[sympy.Expr]:
    return [child.expr for child in step.children]


def _power(step: Step, where: Environment) -> str:
    """The three rules for powers: of a positive base, even, and odd of a negative base."""
    if not step.expr.is_Pow or len(step.children) > 1 or any(c.expr != step.expr.base for c in step.children):
        return ""
    base, exponent = step.expr.args
    child = step.children[0] if step.children else None
    strict = child is not None and child.strict
    grows = holds(span_of(exponent, where), 1, True)
    if (step.strict and not strict) or not (strict or grows):
        return ""
    if step.rule == "a power of a positive base":
        fits = child is not None and child.sign == 1 == step.sign
    elif step.rule == "an even power":
        fits = step.sign == 1 and exponent.is_Integer and exponent % 2 == 0
        if child is None:
            span_of(base, where)
            fits = fits and _differs_from_zero(base)
    else:
        fits = child is not None and child.sign == -1 == step.sign and exponent.is_Integer and exponent % 2 == 1
    return "base and exponent fit" if fits else ""


def _polygamma(step: Step, where: Environment) -> str:
    """psi_n has the sign of (-1)^(n+1) for n >= 1 and a positive argument."""
    if not isinstance(step.expr, sympy.polygamma) or len(step.children) != 1:
        return ""
    (n, x), child = step.expr.args, step.children[0]
    fits = n.is_Integer and n >= 1 and step.sign == (1 if n % 2 else -1)
    return "its argument is positive" if fits and (child.expr, child.sign, child.strict) == (x, 1, True) else ""


def _differs_from_zero(expr: sympy.Expr) -> bool:
    """Not 0 at some point, so that zeros of this analytic expression are isolated."""
    with precision(BITS):
        for _ in range(POINTS):
            try:
                value = ball(expr, {s: number(_random(s.name)) for s in expr.free_symbols})
            except Undefined:
                continue
            if value > 0 or value < 0:
                return True
    return False


def _exponential(step: Step, where: Environment) -> str:
    if isinstance(step.expr, sympy.exp):
        exponent = step.expr.args[0]
    elif step.expr.is_Pow and not step.expr.base.free_symbols and holds(span_of(step.expr.base, {}), 1, True):
        exponent = step.expr.exp
    else:
        return ""
    span_of(exponent, where)
    return "its exponent is real" if step.sign == 1 and not step.children else ""


def _range(step: Step, where: Environment) -> str:
    """By an interval with exact ends, else by boxes."""
    if step.children:
        return ""
    factor, rest = step.expr.as_content_primitive()  # whole numbers are exact in balls, 2/9 is not
    try:
        if factor.is_positive and holds(span_of(rest, where), step.sign, step.strict):
            return "by its range in ball arithmetic"
    except UndecidedError:
        pass
    return _boxes(step, where)


def _boxes(step: Step, where: Environment) -> str:
    if step.children:
        return ""
    if not step.expr.free_symbols <= {T} or not covers.own_cover(step.expr, T, step.sign):
        raise UndecidedError(f"the sign of {short(step.expr)} could not be re-checked")
    return "by boxes and strips of our own"


def _cover(step: Step, where: Environment) -> str:
    if step.children or step.cover is None or step.cover.ranges or step.cover.symbols[0] != T:
        return ""
    return covers.check(step.cover, step.expr, step.sign)


def _equal(step: Step, where: Environment) -> str:
    """An equal form, or the form after the substitution."""
    if len(step.children) != 1:
        return ""
    child = step.children[0]
    given = step.expr
    if step.rule == SUBSTITUTION:
        if X in given.free_symbols or T in child.expr.free_symbols:
            return ""
        given = given.xreplace({T: X / (1 + X)})
    return same(given, child.expr) if child.sign == step.sign and (child.strict or not step.strict) else ""


def _monotone(step: Step, where: Environment) -> str:
    """f' has one sign, and f has its sign next to the end where it starts."""
    if len(step.children) != 1 or step.expr.free_symbols != {T}:
        return ""
    child = step.children[0]
    how = same(sympy.diff(step.expr, T), child.expr)
    at = 0 if child.sign == step.sign else 1
    f = Function(step.sign * step.expr, (T,))
    if not covers.is_smooth(step.expr, (T,), ()) or (covers.end_width(f, at) or covers.end_width(f, at, 9)) is None:
        raise UndecidedError(f"the sign of {short(step.expr)} next to {at} could not be re-checked")
    return f"derivative {how}; next to {at} by a strip"


def _roots(step: Step, where: Environment) -> str:
    """Isolate the roots of a rational function of t^(1/q) by Descartes' rule of signs."""
    if step.children or step.expr.free_symbols != {T}:
        return ""
    exponents = [power.exp for power in step.expr.atoms(sympy.Pow) if power.base == T]
    if not all(e.is_Rational and e.q <= 60 and abs(e) <= MOST_DEGREE for e in exponents):
        return ""
    root = sympy.ilcm(1, 1, *(e.q for e in exponents))
    parts = sympy.fraction(sympy.cancel(sympy.together(sympy.powdenest(step.expr.subs(T, X**root), force=True))))
    polynomials = [sympy.Poly(part, X, domain="QQ") for part in parts]
    if any(p.degree() > MOST_DEGREE for p in polynomials):
        return ""
    inside = [_inner_roots(p) for p in polynomials]
    points = (S(k) / 97 for k in range(1, 97))
    value = next(v for v in (polynomials[0].eval(p) * polynomials[1].eval(p) for p in points) if v != 0)
    fits = not inside[1] and all(m % 2 == 0 for m in inside[0]) and not (step.strict and inside[0])
    how = same(step.expr, (parts[0] / parts[1]).subs(X, T ** (S.One / root)))
    return f"roots isolated; {how}" if fits and (value > 0) == (step.sign > 0) else ""


def _inner_roots(polynomial: sympy.Poly) -> list[int]:
    """The multiplicities of the roots in (0, 1)."""
    for end in (0, 1):
        while polynomial.degree() > 0 and polynomial.eval(end) == 0:
            polynomial = polynomial.quo(sympy.Poly(polynomial.gen - end, polynomial.gen, domain="QQ"))
    return [multiplicity for _, multiplicity in polynomial.intervals(inf=0, sup=1)] if polynomial.degree() > 0 else []


RULES: dict[str, Callable[[Step, Environment], str]] = {
    "a number": _number,
    "positive by its range": _named,
    "a product": _product,
    "a power of a positive base": _power,
    "an even power": _power,
    "an odd power of a negative base": _power,
    "an exponential": _exponential,
    "a polygamma function of a positive argument": _polygamma,
    "a sum of terms of one sign": _sum,
    "its range": _range,
    "rewritten": _equal,
    SUBSTITUTION: _equal,
    "Sturm count": _roots,
    "extremes": _boxes,
    "monotone": _monotone,
    "ball arithmetic": _cover,
}
