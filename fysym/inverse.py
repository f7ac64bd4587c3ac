"""A closed form of q = (-h')^{-1}, found by unwrapping -h'(t) = s and validated before it is believed.

Every solution is only a candidate: SymPy picks wrong Lambert branches and adds extraneous roots, so
each must return t from s = -h'(t) over the whole interval, at high precision.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any

import sympy
from sympy import S

from . import truth
from .boundary import Point
from .deadline import Deadline, StepTimeout, factored, simplified
from .entropy import SLOPE, Entropy
from .facts import Fact
from .rewrite import is_awkward

# Distances to the nearer end of (0, 1) at which a candidate must return t, besides 1/2.
DISTANCES = ("1/3", "1/10", "1/1000", "1/10000000", "1e-12", "1e-30")
MOST_OPERATIONS = 120
MOST_LOGS = 1000

_x = sympy.Dummy("x")


def find(entropy: Entropy, slope: sympy.Expr, deadline: Deadline) -> tuple[sympy.Expr | None, Fact]:
    """The closed form in SLOPE of the inverse of `slope` = -h' (None when there is none), and its fact."""
    if len(entropy.pieces) > 1:
        return None, Fact("inverse", None, "proved", "h has kinks: inverted numerically, piece by piece")
    if (doubt := entropy.exceptional.doubt) is not None:
        why = f"no one form for the whole range is known: h may be different where {entropy.user(doubt)} vanishes"
        return None, Fact("inverse", None, "sampled", why)
    opened = entropy.opened(slope)
    budget = Deadline(min(0.25 * deadline.seconds, deadline.left()))
    sources = [(source, budget, 1.0) for source in _unwrappings(opened, entropy.t)]
    for source, clock, share in (*sources, (lambda: _solved(opened, entropy.t), deadline, 0.06)):
        candidates: list[sympy.Expr] = []
        with contextlib.suppress(Exception):  # also StepTimeout: what was found before it is kept
            clock.run(lambda source=source, kept=candidates: kept.extend(source()), share=share)
        found = _first_valid(entropy, opened, candidates, deadline)
        if found is not None:
            for face in entropy.faces():
                if not _holds_at(entropy, found, face, deadline):
                    end = ", ".join(f"{name} = {value}" for name, value in face.items())
                    why = f"no one form for the whole range: {entropy.user(found)} does not hold at {end}"
                    return None, Fact("inverse", None, "sampled", why)
            exact = _is_identity(entropy, opened, found, deadline)
            checked = len(_places(entropy)) * len(entropy.points[:4])
            evidence = f"q(-h'(t)) = t checked at {checked} points to 25 digits"
            evidence += ", and -h'(q(s)) = s holds identically" if exact else ""
            return found, Fact("inverse", entropy.user(found), "proved" if exact else "sampled", evidence)
    return None, Fact("inverse", None, "sampled", "no closed form found within the deadline: inverted numerically")


def _holds_at(entropy: Entropy, found: sympy.Expr, face: dict[str, sympy.Expr], deadline: Deadline) -> bool:
    """Whether the inverse of a family is that of the member at a closed end of its range, too."""
    try:
        member = entropy.at_face(face, deadline)
        there = found.subs({p.symbol: face[p.name] for p in entropy.parameters if p.name in face})
        slope = member.opened(-sympy.diff(member.h, member.t))
        return len(member.pieces) == 1 and deadline.run(_valid, member, slope, member.opened(there), share=0.1)
    except Exception:  # also StepTimeout: then it is not known
        return False


def _is_identity(entropy: Entropy, slope: sympy.Expr, found: sympy.Expr, deadline: Deadline) -> bool:
    """-h'(q(s)) - s simplifies to 0; with the branch fixed by the points above, that is a proof."""
    if is_awkward(found) or is_awkward(slope):
        return False
    try:
        difference = slope.subs(entropy.t, entropy.opened(found)) - SLOPE
        return deadline.run(_vanishes, sympy.expand_log(difference, force=True), share=0.05)
    except Exception:  # also StepTimeout: then it stays a numeric check
        return False


def _vanishes(expr: sympy.Expr) -> bool:
    """Whether an expression is 0, in the branch that the points chose; the quick ways first."""
    for rewrite in (_merged_powers, _denested, *((_merged_logs,) if expr.has(sympy.log) else ())):
        with contextlib.suppress(sympy.PolynomialError):
            form = rewrite(expr)
            quick = S.One if form is None else sympy.cancel(form)
            for sign in (1, -1):
                if sympy.expand(quick.replace(sympy.Abs, lambda x, sign=sign: sign * x)) == 0:
                    return True
    return bool(simplified(expr) == 0)


def _merged_powers(expr: sympy.Expr) -> sympy.Expr | None:
    """(u^a)^b as u^(ab), and u^a u^b as u^(a + b); None where parameters stay in the exponents."""

    def cancelled(e: sympy.Expr) -> sympy.Expr:
        return e.replace(lambda e: e.is_Pow and bool(e.exp.free_symbols), lambda e: e.base ** sympy.cancel(e.exp))

    flat = expr.replace(lambda e: e.is_Pow and e.base.is_Pow, lambda e: e.base.base ** (e.base.exp * e.exp))
    merged = cancelled(sympy.powsimp(cancelled(flat), combine="exp"))
    return None if any(power.exp.free_symbols for power in merged.atoms(sympy.Pow)) else merged


def _denested(expr: sympy.Expr) -> sympy.Expr:
    return sympy.powsimp(sympy.powdenest(expr, force=True))


def _merged_logs(expr: sympy.Expr) -> sympy.Expr:
    """A sum of logarithms as the logarithm of a product, and log(W(x)) as log(x) - W(x)."""
    plain = expr.replace(
        lambda e: isinstance(e, sympy.log) and isinstance(e.args[0], sympy.LambertW),
        lambda e: sympy.expand_log(sympy.log(e.args[0].args[0]), force=True) - e.args[0],
    )
    joined = sympy.logcombine(plain, force=True)
    return sympy.powsimp(joined.replace(sympy.log, lambda x: sympy.log(sympy.cancel(sympy.powsimp(x)))))


def _first_valid(
    entropy: Entropy, slope: sympy.Expr, candidates: list[sympy.Expr], deadline: Deadline
) -> sympy.Expr | None:
    try:
        for candidate in sorted(set(candidates), key=lambda c: (c.count_ops(), str(c))):
            if candidate.count_ops() > MOST_OPERATIONS:
                break
            if deadline.run(_valid, entropy, slope, candidate, share=0.15):
                return deadline.run(_present, entropy, slope, candidate, share=0.1)
    except StepTimeout:
        pass
    return None


def _present(entropy: Entropy, slope: sympy.Expr, candidate: sympy.Expr) -> sympy.Expr:
    """The candidate in the entropy's own parameters, in the shortest form that is still valid."""
    closed = entropy.back(candidate)
    forms = [closed]
    for rewrite in () if is_awkward(closed) else (sympy.powsimp, sympy.factor_terms, factored, _shorter_inside):
        try:
            forms.append(rewrite(closed))
        except Exception:  # a rewrite that fails is only not offered
            continue
    for form in sorted(forms, key=lambda c: (c.count_ops(), str(c))):
        if entropy.opened(form) == candidate or _valid(entropy, slope, entropy.opened(form)):
            return form
    return closed


def _shorter_inside(expr: sympy.Expr) -> sympy.Expr:
    """Each base and exponent of a power expanded, factored or left, whichever is shortest."""

    def shortest(e: sympy.Expr) -> sympy.Expr:
        return min((e, sympy.expand(e), factored(e)), key=lambda form: (form.count_ops(), str(form)))

    return expr.replace(lambda e: e.is_Pow, lambda e: shortest(e.base) ** shortest(e.exp))


def _valid(entropy: Entropy, slope: sympy.Expr, candidate: sympy.Expr) -> bool:
    """candidate(slope(t)) = t for t across (0, 1), close to both ends included."""
    if candidate.has(sympy.nan, sympy.zoo, sympy.oo, entropy.t) or not candidate.free_symbols:
        return False
    return all(
        _returns(slope, candidate, entropy.t, where, distance, point)
        for point in entropy.points[:4]
        for where, distance in _places(entropy)
    )


def _places(entropy: Entropy) -> list[tuple[sympy.Rational, sympy.Rational]]:
    """Points at which a candidate must return t, and what 25 digits are relative to."""
    places = [(where, min(where, 1 - where)) for where in probes()]
    if entropy.domain.bounded:
        return places
    inner = (entropy.pieces[0].point(where) for where, distance in places if distance > 1e-5)
    return [(where, abs(where) or S.One) for where in inner]  # as far as towers of exponentials can be computed


def _returns(
    slope: sympy.Expr,
    candidate: sympy.Expr,
    t: sympy.Symbol,
    where: sympy.Rational,
    distance: sympy.Rational,
    point: Point,
) -> bool:
    """candidate(slope(where)) = where to 25 digits; a flat slope may need many more digits to tell."""
    for more in (1, 4, 16) if distance < sympy.Rational(1, 100) or distance > 1 else (1,):
        digits = more * (60 + 4 * len(str(distance.q)))
        s = truth.evaluate(slope, {t: where, **point}, digits)
        back = truth.evaluate(candidate, {SLOPE: s, **point}, digits)
        if abs(back - truth.to_mpf(where)) <= 1e-25 * truth.to_mpf(distance):
            return True
    return False


def probes() -> Iterator[sympy.Rational]:
    yield S.Half
    for text in DISTANCES:
        distance = sympy.Rational(text)
        yield distance
        yield 1 - distance


# --- candidates ------------------------------------------------------------------------------------


def _solved(slope: sympy.Expr, t: sympy.Symbol) -> Iterator[sympy.Expr]:
    """What SymPy's solver offers, with both real branches of Lambert's W."""
    if is_awkward(slope) or any(p.exp.free_symbols - {t} for p in slope.atoms(sympy.Pow)) or _is_mixed(slope, t):
        return
    for solution in sympy.solve(slope.xreplace({t: _x}) - SLOPE, _x):
        yield solution
        branches = {w: sympy.LambertW(w.args[0], -1) for w in solution.atoms(sympy.LambertW)}
        if branches:
            yield solution.xreplace(branches)


def _is_mixed(slope: sympy.Expr, t: sympy.Symbol) -> bool:
    """t beside a function of t other than a power, exp or log: no solver has a formula for t + cos(t) = s."""
    functions = [f for f in slope.atoms(sympy.Function) if f.has(t) and not isinstance(f, (sympy.exp, sympy.log))]
    return bool(functions) and slope.xreplace({f: sympy.Dummy() for f in functions}).has(t)


def _unwrappings(slope: sympy.Expr, t: sympy.Symbol) -> Iterator[Callable[[], Iterator[sympy.Expr]]]:
    """Solutions by peeling functions off equal forms of the slope; nothing is worked out before it is called."""
    seen: set[sympy.Expr] = set()

    def unwrapped(rewrite: Callable[[sympy.Expr], sympy.Expr]) -> Iterator[sympy.Expr]:
        form = rewrite(slope)
        if form not in seen:
            seen.add(form)
            yield from _peel(form, SLOPE, t, 8)

    cancelled = functools.cache(_cancelled)
    more = () if is_awkward(slope) else (factored, cancelled, lambda f: _combine(cancelled(f)))
    for rewrite in (sympy.powsimp, _combine, *more, *((sympy.trigsimp,) if slope.has(sympy.cos) else ())):
        yield functools.partial(unwrapped, rewrite)


def _cancelled(slope: sympy.Expr) -> sympy.Expr:
    return sympy.powsimp(sympy.cancel(sympy.together(slope)))


def _combine(slope: sympy.Expr) -> sympy.Expr:
    if any(number.is_Rational and abs(number) > MOST_LOGS for number in slope.atoms(sympy.Number)):
        return slope  # n log(x) becomes log(x^n), on which SymPy never ends
    return sympy.logcombine(sympy.expand_log(sympy.powsimp(sympy.expand(slope)), force=True), force=True)


# f(u) = s gives these u; the monotone branch is picked by validation.
_INVERSES: dict[Any, Any] = {
    sympy.exp: lambda s: [sympy.log(s)],
    sympy.log: lambda s: [sympy.exp(s)],
    sympy.sin: lambda s: [sympy.asin(s), S.Pi - sympy.asin(s)],
    sympy.cos: lambda s: [sympy.acos(s), -sympy.acos(s), 2 * S.Pi - sympy.acos(s)],
    sympy.tan: lambda s: [sympy.atan(s), sympy.atan(s) + S.Pi],
    sympy.cot: lambda s: [sympy.atan(1 / s), sympy.pi / 2 - sympy.atan(s)],
    sympy.asin: lambda s: [sympy.sin(s)],
    sympy.acos: lambda s: [sympy.cos(s)],
    sympy.atan: lambda s: [sympy.tan(s)],
    sympy.sinh: lambda s: [sympy.asinh(s)],
    sympy.cosh: lambda s: [sympy.acosh(s), -sympy.acosh(s)],
    sympy.tanh: lambda s: [sympy.atanh(s)],
    sympy.asinh: lambda s: [sympy.sinh(s)],
    sympy.acosh: lambda s: [sympy.cosh(s)],
    sympy.atanh: lambda s: [sympy.tanh(s)],
    sympy.erf: lambda s: [sympy.erfinv(s)],
    sympy.erfc: lambda s: [sympy.erfcinv(s)],
    sympy.erfinv: lambda s: [sympy.erf(s)],
    sympy.erfcinv: lambda s: [sympy.erfc(s)],
    sympy.LambertW: lambda s: [s * sympy.exp(s)],
}


def _peel(f: sympy.Expr, s: sympy.Expr, t: sympy.Symbol, depth: int) -> Iterator[sympy.Expr]:
    """Every t found by undoing f(t) = s from the outside in."""
    if f == t:
        yield s
        return
    if depth == 0 or not f.has(t):
        return
    constant, rest = f.as_independent(t, as_Add=True)
    if constant != 0:
        yield from _peel(rest, s - constant, t, depth)
        return
    factor, rest = f.as_independent(t, as_Add=False)
    if factor != 1:
        yield from _peel(rest, s / factor, t, depth)
        return
    if f.is_Pow and not f.exp.has(t):
        root = s ** (1 / f.exp)
        for branch in (root, -root) if f.exp.is_integer and f.exp.is_even else (root,):
            yield from _peel(f.base, branch, t, depth - 1)
    elif f.is_Pow and not f.base.has(t):
        yield from _peel(f.exp, sympy.log(s) / sympy.log(f.base), t, depth - 1)
    elif f.func in _INVERSES and len(f.args) == 1:
        for branch in _INVERSES[f.func](s):
            yield from _peel(f.args[0], branch, t, depth - 1)
    else:
        yield from _by_lambert(f, s, t)
        yield from _by_generator(f, s, t, depth)
        if depth == 8 and any(p.exp.is_Rational and p.exp.q == 2 and p.has(t) for p in f.atoms(sympy.Pow)):
            yield from _by_generator(sympy.cancel(f**2), s**2, t, depth - 1)


def _by_lambert(f: sympy.Expr, s: sympy.Expr, t: sympy.Symbol) -> Iterator[sympy.Expr]:
    """a log(t) + b t^c = s, by Lambert's W: with v = t^c, v = (a/bc) W((bc/a) exp(c s/a))."""
    if not f.has(sympy.log(t)):
        return
    a, b, c = (sympy.Wild(name, exclude=[t], properties=[lambda w: w != 0]) for name in "abc")
    for pattern in (a * sympy.log(t) + b * t, a * sympy.log(t) + b * t**c):
        match = sympy.expand(f).match(pattern)
        if match:
            ratio, power = match[b] / match[a], match.get(c, S.One)
            for branch in (0, -1):
                inner = sympy.LambertW(ratio * power * sympy.exp(power * s / match[a]), branch)
                yield (inner / (ratio * power)) ** (1 / power)
            return


def _by_generator(f: sympy.Expr, s: sympy.Expr, t: sympy.Symbol, depth: int) -> Iterator[sympy.Expr]:
    """f rational of degree at most 2 in one function of t (t itself, a power, exp, log, ...)."""
    for generator in _generators(f, t):
        body = _in_generator(f, generator, t)
        if body is None or not body.is_rational_function(_x) or body.has(t):
            continue
        numerator, denominator = sympy.fraction(sympy.together(body))
        try:
            polynomial = sympy.Poly(sympy.expand(numerator - s * denominator), _x)
        except sympy.PolynomialError:
            continue
        for root in _quadratic_roots(polynomial):
            yield from _peel(generator, root, t, depth - 1)


def _quadratic_roots(polynomial: sympy.Poly) -> list[sympy.Expr]:
    if polynomial.degree() == 1:
        a, b = polynomial.all_coeffs()
        return [-b / a]
    if polynomial.degree() == 2:
        a, b, c = polynomial.all_coeffs()
        root = sympy.sqrt(factored(b**2 - 4 * a * c)).replace(sympy.Abs, lambda x: x)
        return [(-b + root) / (2 * a), (-b - root) / (2 * a)]
    return []


def _generators(f: sympy.Expr, t: sympy.Symbol) -> list[sympy.Expr]:
    """Functions of t that f may be rational in, the innermost last."""
    found = [node for node in sympy.preorder_traversal(f) if node.has(t) and (node.is_Function or node.is_Pow)]
    powers = [node for node in found if node.is_Pow and node.base == t and not node.exp.is_Integer]
    bases = [t**node.exp for node in powers] + [t ** (-node.exp) for node in powers]
    return list(dict.fromkeys([*bases, *(n for n in found if n not in powers), t]))


def _in_generator(f: sympy.Expr, generator: sympy.Expr, t: sympy.Symbol) -> sympy.Expr | None:
    """f with the generator written as x; powers of t become powers of x when the exponents are multiples."""
    if not (generator.is_Pow and generator.base == t):
        return f.xreplace({generator: _x})
    replacements = {}
    for node in f.atoms(sympy.Pow):
        if node.base == t:
            multiple = _integer(node.exp / generator.exp)
            if multiple is None or abs(multiple) > 2:
                return None
            replacements[node] = _x**multiple
    return f.xreplace(replacements)


def _integer(ratio: sympy.Expr) -> sympy.Integer | None:
    """The integer that a ratio of exponents is for all parameters, if it is one; most are not, as one point shows."""
    point = {b: sympy.Rational(89 + k, 97) for k, b in enumerate(sorted(ratio.free_symbols, key=str))}
    if not truth.substituted(ratio, point).is_Integer:
        return None
    multiple = sympy.cancel(ratio)
    return multiple if multiple.is_Integer else None
