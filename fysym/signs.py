"""Proofs that an expression keeps one sign on 0 < t < 1.

A proof is a tree: each node claims a sign, names the rule that gives it, and rests on its children.
Every symbol other than t must be declared positive.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import sympy
from sympy import S

from . import truth
from .boundary import end_limit
from .bounds import MAX_DEGREE, bounds_of
from .deadline import Deadline, StepTimeout, factored
from .rewrite import is_awkward

if TYPE_CHECKING:
    from .certify import Cover

Result = TypeVar("Result")
MAX_OPERATIONS = 4000
PLACES = tuple(
    map(sympy.Rational, ("1/9", "1/2", "8/9"))
)  # of t, and sizes of other symbols, at which signs are compared
SIZES = tuple(map(sympy.Rational, ("89/97", "1/31", "307/11")))


@dataclass(frozen=True)
class Proof:
    """`expr` has this sign on the whole interval; `strict` when it has no zero there, else zeros are isolated.

    It may rest on a cover by boxes; `prove_sign` itself makes none.
    """

    expr: sympy.Expr
    sign: int
    strict: bool
    rule: str
    children: tuple[Proof | Cover, ...] = ()
    note: str = ""

    @property
    def covers(self) -> tuple[Cover, ...]:
        """The covers by boxes that the argument rests on; without them it is exact."""
        return tuple(cover for child in self.children for cover in child.covers)

    def lines(self, indent: int = 0) -> Iterator[str]:
        """The argument in words, one line a step."""
        relation = {(1, True): "> 0", (-1, True): "< 0", (1, False): ">= 0", (-1, False): "<= 0"}
        words = f"{self.expr} {relation[self.sign, self.strict]}: {self.rule}"
        yield "  " * indent + words + (f", {self.note}" if self.note else "")
        for child in self.children:
            yield from child.lines(indent + 1)


def prove_sign(f: sympy.Expr, t: sympy.Symbol, deadline: Deadline, depth: int = 2) -> Proof | None:
    """A proof that f is positive or negative on 0 < t < 1 (isolated zeros allowed), or None."""
    if f.count_ops() > MAX_OPERATIONS:
        return None
    proof = _within(deadline, _by_rules, f, t)
    if proof is not None or _within(deadline, _is_mixed, f, t):
        return proof
    for attempt in (_by_parts, _by_forms, by_sturm):
        proof = _within(deadline, attempt, f, t)
        if proof is not None:
            return proof
    if depth == 0 or f.free_symbols != {t} or not is_continuous(f, t, deadline):
        return None
    return _within(deadline, _by_extremes, f, t, deadline, share=0.4) or _by_monotonicity(f, t, deadline, depth)


def _is_mixed(f: sympy.Expr, t: sympy.Symbol) -> bool:
    """Do a few values already have both signs? Then no proof need be tried."""
    others = sorted(f.free_symbols - {t}, key=str)
    signs = set()
    for where, size in itertools.product(PLACES, SIZES if others else SIZES[:1]):
        values = {symbol: size * sympy.Rational(113 + k, 113) for k, symbol in enumerate(others)}
        value = truth.evaluate_reliably(f, {t: where, **values})
        signs |= {bool(value > 0)} if abs(value) > 0 else set()
    return len(signs) == 2


def _within(deadline: Deadline, attempt: Callable[..., Result], *args: Any, share: float = 0.12) -> Result | None:
    try:
        return deadline.run(attempt, *args, share=share)
    except StepTimeout:
        return None
    except Exception:  # a SymPy routine that fails proves nothing
        return None


# --- rules that read the sign off the expression -------------------------------------------------


def _by_rules(f: sympy.Expr, t: sympy.Symbol) -> Proof | None:
    return _rules(f, t, {})


def _rules(f: sympy.Expr, t: sympy.Symbol, memo: dict[sympy.Expr, Proof | None]) -> Proof | None:
    if f not in memo:
        memo[f] = _rules_uncached(f, t, memo)
    return memo[f]


def _rules_uncached(f: sympy.Expr, t: sympy.Symbol, memo: dict[sympy.Expr, Proof | None]) -> Proof | None:
    if not f.free_symbols:
        sign = truth.sign(f)
        return Proof(f, sign, True, "a number") if sign else None
    if f.is_Symbol:
        return Proof(f, 1, True, "positive by its range") if f.is_positive else None
    if f.is_Mul:
        return _product(f, [_rules(factor, t, memo) for factor in f.args])
    if f.is_Pow and not f.base.is_number:
        return _power(f, _rules(f.base, t, memo), f.base)
    if isinstance(f, sympy.exp) or (f.is_Pow and truth.sign(f.base) == 1):
        exponent = f.args[0] if isinstance(f, sympy.exp) else f.exp
        return Proof(f, 1, True, "an exponential") if exponent.is_extended_real is not False else None
    if isinstance(f, sympy.polygamma) and f.args[0].is_Integer and f.args[0] >= 1:
        return _polygamma(f, _rules(f.args[1], t, memo))
    if f.is_Add:
        proof = _sum(f, [_rules(term, t, memo) for term in f.args]) or _polynomial(f, t, memo)
        if proof is not None:
            return proof
    bounds = bounds_of(f, t)
    sign, strict = bounds.sign
    return Proof(f, sign, strict, "its range", note=f"between {bounds.low} and {bounds.high}") if sign else None


def _product(f: sympy.Expr, factors: list[Proof | None]) -> Proof | None:
    known = [p for p in factors if p is not None]
    if len(known) < len(factors):
        return None
    sign = 1
    for proof in known:
        sign *= proof.sign
    return Proof(f, sign, all(p.strict for p in known), "a product", tuple(known))


def _power(f: sympy.Pow, base: Proof | None, base_expr: sympy.Expr) -> Proof | None:
    exponent = f.exp
    if base is not None and base.sign > 0 and (base.strict or exponent.is_positive):
        return Proof(f, 1, base.strict, "a power of a positive base", (base,))
    if not exponent.is_Integer:
        return None
    if exponent % 2 == 0:
        if exponent < 0 and (base is None or not base.strict):
            return None
        return Proof(f, 1, base is not None and base.strict, "an even power", (base,) if base else ())
    if base is not None and base.sign < 0 and (base.strict or exponent > 0):
        return Proof(f, -1, base.strict, "an odd power of a negative base", (base,))
    return None


def _polygamma(f: sympy.polygamma, argument: Proof | None) -> Proof | None:
    """psi_n(x) is (-1)^(n+1) times an integral of positive functions, for n >= 1 and x > 0."""
    if argument is None or argument.sign < 0 or not argument.strict:
        return None
    sign = 1 if f.args[0] % 2 == 1 else -1
    return Proof(f, sign, True, "a polygamma function of a positive argument", (argument,))


def _sum(f: sympy.Expr, terms: list[Proof | None]) -> Proof | None:
    known = [p for p in terms if p is not None]
    if len(known) < len(terms) or len({p.sign for p in known}) != 1:
        return None
    return Proof(f, known[0].sign, any(p.strict for p in known), "a sum of terms of one sign", tuple(known))


def _polynomial(f: sympy.Expr, t: sympy.Symbol, memo: dict[sympy.Expr, Proof | None]) -> Proof | None:
    """A polynomial in t and positive symbols, whose coefficients of these are polynomials in t of one sign."""
    others = sorted(f.free_symbols - {t}, key=str)
    if not f.is_polynomial(*f.free_symbols):
        return None
    if not others:
        return by_sturm(f, t)
    terms = []
    for powers, coefficient in sympy.Poly(f, *others).terms():
        factors = (coefficient, *(symbol**power for symbol, power in zip(others, powers, strict=True) if power))
        terms.append(_product(sympy.Mul(*factors), [_rules(part, t, memo) for part in factors]))
    return _sum(f, terms)


# --- parts that have nothing to do with each other ---------------------------------------------------


def _by_parts(f: sympy.Expr, t: sympy.Symbol) -> Proof | None:
    """The sign of each part of a sum or product for itself, where parts share no function of t.

    So each is rewritten alone, and keeps the form that shows its sign.
    """
    if f.is_Mul and any(factor.is_Add for factor in f.args):
        factors: list[Proof | None] = []
        for factor in f.args:
            factors.append(_part(factor, t))
            if factors[-1] is None:
                return None
        return _product(f, factors)
    groups = _groups(f, t) if f.is_Add else []
    if len(groups) < 2:
        return None
    terms: list[Proof | None] = []
    for group in groups:
        terms.append(_part(group, t))
        if terms[-1] is None or terms[-1].sign != terms[0].sign:  # type: ignore[union-attr]
            return None
    return _sum(f, terms)


def _part(f: sympy.Expr, t: sympy.Symbol) -> Proof | None:
    proof = _by_rules(f, t)
    if proof is not None or _is_mixed(f, t):
        return proof
    return _by_parts(f, t) or _by_forms(f, t)


def _groups(f: sympy.Add, t: sympy.Symbol) -> list[sympy.Expr]:
    """The terms of a sum, those together that share a function of t."""
    groups: list[tuple[set[sympy.Expr], list[sympy.Expr]]] = []
    for term in f.args:
        functions, terms = _functions(term, t), [term]
        for group in [group for group in groups if group[0] & functions]:
            groups.remove(group)
            functions, terms = functions | group[0], group[1] + terms
        groups.append((functions, terms))
    return [sympy.Add(*terms) for _, terms in groups]


def _functions(term: sympy.Expr, t: sympy.Symbol) -> set[sympy.Expr]:
    """What a term is made of: functions of t, bases of powers, powers of t; of plain fractions of t just t."""
    found: set[sympy.Expr] = set()
    for node in sympy.preorder_traversal(term):
        if isinstance(node, sympy.exp) and node.has(t):  # exp(2*t) belongs to exp(t)
            found.add(sympy.exp(node.args[0].as_content_primitive()[1]))
        elif (node.is_Function or (node.is_Pow and node.exp.free_symbols)) and node.has(t):
            found.add(node)
        elif node.is_Pow and node.base.has(t):
            found.add(node.base)
    return found - {t} or {t}


# --- equal forms whose sign can be read off --------------------------------------------------------


def _by_forms(f: sympy.Expr, t: sympy.Symbol) -> Proof | None:
    """Factor f, as it stands and after t = x/(1+x), until the rules can read its sign."""
    for form in _forms(f):
        proof = _rules(form, t, {})
        if proof is not None:
            return Proof(f, proof.sign, proof.strict, "rewritten", (proof,))
    x = sympy.Symbol("x", positive=True)
    opened = f.subs(t, x / (1 + x))
    for form in _forms(opened):
        proof = _rules(form, t, {})
        if proof is not None:
            return Proof(f, proof.sign, proof.strict, "substitute t = x/(1+x), x > 0", (proof,))
    return None


def _forms(f: sympy.Expr) -> Iterator[sympy.Expr]:
    seen = {f}
    rewrites = [factored, _gather, _over_powers, _factor_terms, sympy.expand, _gather_logs]
    if any(power.exp.free_symbols for power in f.atoms(sympy.Pow)):
        rewrites.insert(0, _factor_powers)
    if f.has(sympy.LambertW):
        rewrites.insert(0, _factor_lambert)
    if f.has(sympy.exp):
        rewrites[:0] = [_factor_exponentials, _factor_independent]
    for rewrite in [sympy.expand] if is_awkward(f) else rewrites:
        form = rewrite(f)
        if form not in seen:
            seen.add(form)
            yield form


def _factor_powers(f: sympy.Expr) -> sympy.Expr:
    """Factored with powers of symbolic exponents as symbols, whose bases stay as they are."""
    names = {power: sympy.Dummy(positive=True) for power in f.atoms(sympy.Pow) if power.exp.free_symbols}
    return factored(f.xreplace(names)).xreplace({name: power for power, name in names.items()})


def _gather(f: sympy.Expr) -> sympy.Expr:
    return factored(sympy.powsimp(sympy.expand_power_base(sympy.together(sympy.powsimp(f)))))


def _over_powers(f: sympy.Expr) -> sympy.Expr:
    """Over one denominator, whose bases stay as they are: a sum of squares shows its sign only so."""
    numerator, denominator = sympy.fraction(sympy.together(f))
    return factored(sympy.expand(numerator)) / denominator


def _factor_terms(f: sympy.Expr) -> sympy.Expr:
    """Pull common factors out; what remains of each sum is expanded, so equal signs show."""
    expanded = sympy.powsimp(sympy.expand(sympy.expand_power_exp(f)))
    return sympy.factor_terms(sympy.powsimp(factored(expanded)))


def _gather_logs(f: sympy.Expr) -> sympy.Expr:
    return factored(sympy.logcombine(sympy.expand_log(f, force=True)))


def _factor_exponentials(f: sympy.Expr, independent: bool = False) -> sympy.Expr:
    """Factored with exponentials as symbols: SymPy takes exp(50*t) as exp(t)**50 and takes 1 + exp(50*t) apart.

    exp(100*t) is then the square of exp(50*t), or independent of it.
    """
    exponents = {power: sympy.expand(power.args[0]).as_content_primitive() for power in f.atoms(sympy.exp)}
    names: dict[sympy.Expr, sympy.Expr] = {}
    for power, (content, part) in sorted(exponents.items(), key=lambda item: (item[1][0], str(item[0]))):
        same = ((base, sign) for base in names for sign in (1, -1) if exponents[base][1] == sign * part)
        ratios = ((base, sign * content / exponents[base][0]) for base, sign in same if names[base].is_Symbol)
        fitting = (
            names[base] ** ratio for base, ratio in ratios if ratio == 1 or (ratio.is_Integer and not independent)
        )
        names[power] = next(fitting, sympy.Dummy(positive=True))
    return sympy.factor(f.xreplace(names)).xreplace({name: power for power, name in names.items() if name.is_Symbol})


def _factor_lambert(f: sympy.Expr) -> sympy.Expr:
    """Factored in the distance of each Lambert W to -1, of which its branches lie on one side each."""
    names = {node: sympy.Dummy(positive=True) for node in f.atoms(sympy.LambertW)}
    sides = {node: -1 if node.args[1:] == (S.NegativeOne,) else 1 for node in names}
    found = factored(f.xreplace({node: sides[node] * name - 1 for node, name in names.items()}))
    return found.xreplace({name: sides[node] * (node + 1) for node, name in names.items()})


def _factor_independent(f: sympy.Expr) -> sympy.Expr:
    return _factor_exponentials(f, independent=True)


# --- polynomials -----------------------------------------------------------------------------------


def by_sturm(f: sympy.Expr, t: sympy.Symbol) -> Proof | None:
    """Rational in t^(1/k) over the rationals: count the roots of odd multiplicity in (0, 1)."""
    if f.free_symbols != {t}:
        return None
    exponents = [power.exp for power in f.atoms(sympy.Pow) if power.base == t]
    if not all(e.is_Rational for e in exponents):
        return None
    root = sympy.ilcm(1, 1, *(e.q for e in exponents))
    x = sympy.Symbol("x", positive=True)
    if root > 60:
        return None
    rational = sympy.together(sympy.powdenest(f.subs(t, x**root), force=True))
    numerator, denominator = sympy.fraction(sympy.cancel(rational))
    sign, strict = 1, True
    for part in (numerator, denominator):
        polynomial = sympy.Poly(part, x)
        if not polynomial.domain.is_QQ and not polynomial.domain.is_ZZ:
            return None
        if polynomial.degree() > MAX_DEGREE or polynomial.is_zero:
            return None
        unit, factors = polynomial.sqf_list()
        sign *= 1 if unit > 0 else -1
        for factor, multiplicity in factors:
            ends = sum(1 for end in (0, 1) if factor.eval(end) == 0)
            inside = factor.count_roots(0, 1) - ends
            if inside and (multiplicity % 2 == 1 or part is denominator):
                return None
            if inside:
                strict = False
            elif multiplicity % 2 == 1:
                sign *= 1 if factor.eval(S.Half) > 0 else -1
    where = "t" if root == 1 else f"t = x^{root}"
    return Proof(f, sign, strict, "Sturm count", note=f"no change of sign in (0, 1), with {where}")


# --- extremes and monotone functions ---------------------------------------------------------------


def conditions(f: sympy.Expr, t: sympy.Symbol) -> list[sympy.Expr]:
    """Expressions that must not vanish inside (0, 1) for f to be smooth there."""
    return [c for c in singularities(f) if c.has(t) and c != t and not c.is_positive]


def singularities(f: sympy.Expr) -> list[sympy.Expr]:
    """Expressions in the symbols of f that must not vanish for f to be smooth."""
    found: list[sympy.Expr] = []
    for node in sympy.preorder_traversal(f):
        if not node.args:
            continue
        x = node.args[0]
        if node.is_Pow and not (node.exp.is_Integer and node.exp >= 0):
            found.append(node.base)
        elif isinstance(node, (sympy.log, sympy.gamma, sympy.loggamma)):
            found.append(x)
        elif isinstance(node, (sympy.tan, sympy.sec)):
            found.append(sympy.cos(x))
        elif isinstance(node, (sympy.cot, sympy.csc)):
            found.append(sympy.sin(x))
        elif isinstance(node, (sympy.asin, sympy.acos, sympy.atanh, sympy.erfinv)):
            found.extend((1 - x, 1 + x))
        elif isinstance(node, sympy.erfcinv):
            found.extend((x, 2 - x))
        elif isinstance(node, sympy.acosh):
            found.append(x - 1)
        elif isinstance(node, sympy.LambertW):
            found.extend((x + sympy.exp(-1), x) if len(node.args) > 1 else (x + sympy.exp(-1),))
        elif isinstance(node, sympy.polygamma):
            found.append(node.args[1])
    return [c for c in dict.fromkeys(found) if c.free_symbols]


def is_continuous(f: sympy.Expr, t: sympy.Symbol, deadline: Deadline) -> bool:
    """Is it proved that f has no pole and stays real inside (0, 1)? Monotone pieces beside a pole prove nothing."""
    proofs = (prove_sign(condition, t, deadline, 0) for condition in conditions(f, t))
    return all(proof is not None and proof.strict for proof in proofs)


def _by_extremes(f: sympy.Expr, t: sympy.Symbol, deadline: Deadline) -> Proof | None:
    """Where f' is rational its zeros are known: the extremes of f are there and at the ends."""
    if is_awkward(f):
        return None
    numerator = sympy.fraction(sympy.cancel(sympy.together(sympy.diff(f, t))))[0]
    polynomial = sympy.Poly(numerator, t)
    if not (polynomial.domain.is_QQ or polynomial.domain.is_ZZ) or polynomial.degree() > 20:
        return None
    inside = [root for root in set(polynomial.real_roots()) if 0 < root < 1]
    signs = {truth.sign(f.subs(t, root)) for root in inside}
    touching = 0 in signs
    for end in (0, 1):
        limit = end_limit(f, t, end, deadline)
        if limit.status != "proved" or limit.value is None:
            return None
        side = (1 if limit.value == S.Infinity else -1) if limit.value.is_infinite else truth.sign(limit.value)
        signs.add(side)
    found = signs - {0}
    if touching or len(found) != 1 or None in found:
        return None
    where = ", ".join(f"{float(root):.6g}" for root in sorted(inside)) or "none"
    return Proof(f, 1 if 1 in found else -1, True, "extremes", note=f"zeros of the derivative in (0, 1): {where}")


def _by_monotonicity(f: sympy.Expr, t: sympy.Symbol, deadline: Deadline, depth: int) -> Proof | None:
    """f' of one sign makes f monotone; the limit at the right end then gives the sign of f."""
    for form in (f, sympy.expand(f)):
        slope = prove_sign(sympy.diff(form, t), t, deadline, depth - 1)
        if slope is None:
            continue
        for end, sign in ((0, slope.sign), (1, -slope.sign)):
            limit = end_limit(f, t, end, deadline)
            if limit.status != "proved" or limit.value is None:
                continue
            at_end = truth.sign(limit.value) if limit.value.is_finite else None
            if at_end == 0 or at_end == sign:
                trend = "increasing" if slope.sign > 0 else "decreasing"
                note = f"f is {trend} and tends to {limit.value} at {end}"
                return Proof(f, sign, True, "monotone", (slope,), note)
        return None
    return None
