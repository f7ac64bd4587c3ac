"""Equal forms of an expression that lose fewer digits, or no range, in floating point."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence

import sympy
from sympy import S

from . import truth
from .deadline import factored, large_exponentials, run, simplified


class log1p(sympy.Function):  # type: ignore[misc]  # noqa: N801 (NumPy's name)
    """log(1 + x), kept apart from log so that SymPy does not undo it."""

    nargs = 1

    def fdiff(self, argindex: int = 1) -> sympy.Expr:
        return 1 / (1 + self.args[0])


class expm1(sympy.Function):  # type: ignore[misc]  # noqa: N801 (NumPy's name)
    """exp(x) - 1, kept apart from exp so that SymPy does not undo it."""

    nargs = 1

    def fdiff(self, argindex: int = 1) -> sympy.Expr:
        return sympy.exp(self.args[0])


class ndtr(sympy.Function):  # type: ignore[misc]  # noqa: N801 (SciPy's name)
    """The normal distribution function (1 + erf(x/sqrt(2)))/2, without cancellation in its lower tail."""

    nargs = 1

    def fdiff(self, argindex: int = 1) -> sympy.Expr:
        return sympy.exp(-(self.args[0] ** 2) / 2) / sympy.sqrt(2 * sympy.pi)


class wrightomega(sympy.Function):  # type: ignore[misc]  # noqa: N801 (SciPy's name)
    """omega(z) = W(exp(z)) on the real line: Lambert's W without overflow."""

    nargs = 1

    def fdiff(self, argindex: int = 1) -> sympy.Expr:
        return self / (1 + self)


LARGEST_EXPONENT = 64
LARGEST_ROOT = 100
TERMS = 30  # of a power series


def quickly_cancelled(expr: sympy.Expr, most: int = 60) -> sympy.Expr:
    """sympy.cancel where that is quick, else the expression as it is."""
    if is_awkward(expr) or expr.count_ops() > most:
        return expr
    try:
        return run(lambda: sympy.cancel(sympy.together(expr)), seconds=1.0)
    except Exception:  # also StepTimeout: it is only not offered
        return expr


def is_awkward(expr: sympy.Expr) -> bool:
    """Has the expression powers such as (1+t)^100, t^5000 or t^(1/10^9), on which SymPy's rewriting never ends?"""
    for power in expr.atoms(sympy.Pow):
        if not power.exp.is_Rational or power.base.is_number:
            continue
        largest = LARGEST_EXPONENT if power.base.is_Add else 4 * LARGEST_EXPONENT
        if power.exp.q > LARGEST_ROOT or abs(power.exp) > largest:
            return True
    return bool(large_exponentials(expr, 16 * LARGEST_EXPONENT))


def has_large_power(expr: sympy.Expr) -> bool:
    return any(p.exp.is_Rational and abs(p.exp) > LARGEST_EXPONENT and p.base.is_Add for p in expr.atoms(sympy.Pow))


def variants(expr: sympy.Expr, x: sympy.Symbol) -> Iterator[sympy.Expr]:
    """`expr` and equal forms of it, the plain ones first; all with the safe functions put in."""
    seen = set()
    for form in (
        lambda e: e,
        large_powers,
        power_differences,
        lambda e: _terms_cancelled(e) if e.is_rational_function(x) and not is_awkward(e) else e,
        lambda e: power_differences(sympy.expand(e)) if not has_large_power(e) else e,
        *((quickly_cancelled, _decaying) if not is_awkward(expr) else ()),
        lambda e: _bounded(e, x),
        lambda e: _vanishing(e, x),
        *(() if is_awkward(expr) else _REWRITES),
    ):
        try:
            rewritten = safe(form(expr), x)
        except Exception:  # a rewrite that fails is only not offered
            continue
        if rewritten not in seen:
            seen.add(rewritten)
            yield rewritten


def patched(expr: sympy.Expr, x: sympy.Symbol) -> Iterator[sympy.Expr]:
    """`expr` with a power series in x^(1/root) close to 0, where terms that cancel leave few digits.

    Only a comparison with the truth can tell whether the series converges to it.
    """
    rests = [safe(expr, x)]
    with contextlib.suppress(Exception):  # there are no such exponentials
        rests.append(safe(_bounded(expr, x), x))
    for root in (1, 2):
        for reach in (sympy.Rational(1, 4), sympy.Rational(1, 16), sympy.Rational(1, 64), S.One):
            try:
                coefficients = truth.series(expr, x, root, 2 * float(reach) ** (1 / root), TERMS)
            except TypeError:  # no values off the real line, however close to 0
                break
            except Exception:  # no such series, such as at a kink
                continue
            near = horner(coefficients, x ** sympy.Rational(1, root))
            for rest in rests:
                yield sympy.Piecewise((near, x < reach), (rest, True))


def horner(coefficients: Sequence[sympy.Expr], x: sympy.Expr) -> sympy.Expr:
    """The polynomial, nested; leading zeros leave a power of x in front."""
    low = next(k for k, c in enumerate(coefficients) if c != 0)
    total: sympy.Expr = S.Zero
    for c in reversed(coefficients[low:]):
        total = c + x * total
    return x**low * total


def _decaying(expr: sympy.Expr) -> sympy.Expr:
    """A quotient of exponentials with exp(u) written as 1/exp(-u): e^s/(1+e^s) overflows, 1/(1+e^-s) does not."""
    grown = {e: sympy.Dummy(positive=True) for e in expr.atoms(sympy.exp)}
    flipped = expr.xreplace({e: 1 / x for e, x in grown.items()})
    return sympy.cancel(flipped).xreplace({x: sympy.exp(-e.args[0]) for e, x in grown.items()})


_HYPERBOLIC = (sympy.cosh, sympy.sinh, sympy.tanh, sympy.sech, sympy.csch, sympy.coth)


def _bounded(expr: sympy.Expr, x: sympy.Symbol) -> sympy.Expr:
    """Exponentials whose exponents are multiples of one another but for constants, hyperbolic ones too, in powers of
    a single exp(-|w|), which never overflows: log(1 + exp(800*t)) becomes 800*t + log(1 + exp(-800*t)) for t > 0.
    ValueError where they are not such."""
    if isinstance(expr, sympy.Piecewise):
        return expr.func(*((_bounded(part, x), where) for part, where in expr.args))
    plain = expr.replace(lambda e: isinstance(e, _HYPERBOLIC), lambda e: e.rewrite(sympy.exp))
    found = sorted((e for e in plain.atoms(sympy.exp, sympy.Pow) if _is_exponential(e, x)), key=str)
    bases = (e.as_base_exp() for e in found)
    exponents = [sympy.expand(exponent * sympy.log(base)).as_independent(x, as_Add=True) for base, exponent in bases]
    if not exponents:
        raise ValueError("no such exponentials")
    multiples = [sympy.cancel(moving / exponents[0][1]) for _, moving in exponents]
    if not all(k.is_Rational for k in multiples):
        raise ValueError("exponents of several kinds")
    rate = sympy.gcd(multiples)
    degrees = [k / rate for k in multiples]
    if max(map(abs, degrees)) > 16:
        raise ValueError("a polynomial of too high a degree")
    shift = exponents[0][0] / degrees[0]
    w = rate * exponents[0][1] + shift
    constants = [sympy.exp(constant - k * shift) for (constant, _), k in zip(exponents, degrees, strict=True)]

    def side(sign: int) -> sympy.Expr:
        powers = {e: c * _SMALL ** (-sign * k) for e, c, k in zip(found, constants, degrees, strict=True)}
        return _in_powers(plain.xreplace(powers), sign * w, x)

    if w.is_nonnegative:
        return side(1)
    return side(-1) if w.is_nonpositive else sympy.Piecewise((side(-1), w < 0), (side(1), True))


_SMALL = sympy.Dummy(positive=True)  # exp(-w), where w is positive


def _is_exponential(e: sympy.Expr, x: sympy.Symbol) -> bool:
    base, exponent = e.as_base_exp()
    return bool(exponent.has(x) and not base.free_symbols and base.is_positive)


def _in_powers(expr: sympy.Expr, w: sympy.Expr, x: sympy.Symbol) -> sympy.Expr:
    """A fraction in powers of exp(-w); what its logarithms are of has a limit other than 0 as w grows."""

    def inside(log: sympy.Expr) -> sympy.Expr:
        above, below = sympy.fraction(sympy.cancel(log.args[0]))
        lowest = [_lowest_power(part) for part in (above, below)]
        ratio = (above / _SMALL ** lowest[0]) / (below / _SMALL ** lowest[1])
        return sympy.log(sympy.cancel(ratio)) + (lowest[1] - lowest[0]) * w

    flipped = expr.replace(lambda e: isinstance(e, sympy.log) and e.has(_SMALL), inside)
    logs = {log: sympy.Dummy() for log in flipped.atoms(sympy.log) if log.has(x, _SMALL)}
    found = sympy.cancel(flipped.xreplace(logs)).xreplace({name: log for log, name in logs.items()})
    return found.xreplace({_SMALL: sympy.exp(-w)})


def _lowest_power(polynomial: sympy.Expr) -> int:
    return min(powers[0] for powers in sympy.Poly(polynomial, _SMALL).monoms()) if polynomial.has(_SMALL) else 0


def _vanishing(expr: sympy.Expr, x: sympy.Symbol) -> sympy.Expr:
    """Terms such as exp(-1/t)/t**4, which are 0/0 in double precision next to 0, as 0 where they are below 1e-320."""

    def is_such(term: sympy.Expr) -> bool:
        factors = sympy.Mul.make_args(term)
        steep = any(isinstance(f, sympy.exp) and f.args[0].subs(x, 0).is_infinite for f in factors)
        return steep and bool(term.as_powers_dict()[x].is_negative)

    terms = sympy.Add.make_args(sympy.expand(expr))
    such = [term for term in terms if is_such(term)]
    if not such:
        return expr
    places = (sympy.Rational(1, 2**k) for k in range(1, 64))
    all_small = (c for c in places if all(abs(truth.evaluate(term, {x: c})) < 1e-320 for term in such))
    rest = sympy.Add(*(term for term in terms if term not in such))
    return rest + sympy.Piecewise((S.Zero, x < next(all_small)), (sympy.Add(*such), True))


def _is_chain(expr: sympy.Expr) -> bool:
    """Whether one function is applied after another, with nothing that sympy.simplify could join."""
    return all(sum(bool(part.free_symbols) for part in node.args) < 2 for node in sympy.preorder_traversal(expr))


def _split_logs(expr: sympy.Expr) -> sympy.Expr:
    """log((1+t)/2) as log(1+t) - log(2), so that constants can cancel, and log((1-t)^2) as 2 log(1-t)."""
    return expr.replace(lambda e: isinstance(e, sympy.log), _apart)


def _apart(log: sympy.Expr) -> sympy.Expr:
    """A logarithm as a sum over the factors, each taken to be positive next to 0."""
    constant, terms = S.One, []
    for base, power in (factor.as_base_exp() for factor in sympy.Mul.make_args(factored(log.args[0]))):
        if not base.free_symbols:
            constant *= base**power
        elif base.is_Add and base.as_coeff_Add()[0].is_negative and power.is_Integer:
            constant *= (-1) ** power
            terms.append(power * sympy.log(-base))
        else:
            terms.append(power * sympy.log(base))
    return sympy.log(constant) + sympy.Add(*terms) if constant.is_positive else log


def _terms_cancelled(expr: sympy.Expr) -> sympy.Expr:
    """Expanded, each term in lowest terms: next to 0 t/(2*t - t**2) is 0/0 in double precision, 1/(2 - t) is not."""
    return sympy.Add(*map(quickly_cancelled, sympy.Add.make_args(sympy.expand(expr))))


def _logarithmic(expr: sympy.Expr) -> sympy.Expr:
    """atanh(u) as (log(1+u) - log(1-u))/2: atanh(1-t) is log(2-t)/2 - log(t)/2, without 1-t next to 1."""

    def quotient(u: sympy.Expr) -> sympy.Expr:
        return sympy.cancel(sympy.together((1 + u) / (1 - u)))

    logs = expr.replace(lambda e: isinstance(e, sympy.atanh), lambda e: sympy.log(quotient(e.args[0])) / 2)
    return _terms_cancelled(_split_logs(logs))


def safe(expr: sympy.Expr, x: sympy.Symbol) -> sympy.Expr:
    """Replace log(1+u), exp(u)-1, 1-cos(u), acos(1-u), 1+erf(u), erfinv(1-u), W(c exp(u)) by what was made for them."""
    rules: tuple[tuple[Callable[[sympy.Expr], bool], Callable[[sympy.Expr], sympy.Expr]], ...] = (
        (lambda e: isinstance(e, (sympy.sec, sympy.csc, sympy.cot)), _reciprocal),
        (lambda e: isinstance(e, sympy.LambertW) and len(e.args) == 1, _omega),
        (lambda e: isinstance(e, sympy.erfinv), _erfcinv),
        (lambda e: e.is_Add, _normal),
        (lambda e: e.is_Add, _expm1),
        (lambda e: e.is_Add, _half_angle),
        (lambda e: isinstance(e, (sympy.acos, sympy.asin)), _half_arc),
        (lambda e: isinstance(e, sympy.log), _log1p),
    )
    for applies, rule in rules:
        expr = expr.replace(lambda e, applies=applies: e.has(x) and applies(e), rule)
    return expr


def _reciprocal(e: sympy.Expr) -> sympy.Expr:
    return {sympy.sec: 1 / sympy.cos(e.args[0]), sympy.csc: 1 / sympy.sin(e.args[0])}.get(
        e.func, sympy.cos(e.args[0]) / sympy.sin(e.args[0])
    )


def _log1p(e: sympy.Expr) -> sympy.Expr:
    rest = sympy.expand(e.args[0]) - 1
    constant = rest.as_independent(*rest.free_symbols, as_Add=True)[0]
    return log1p(rest) if constant == 0 else e


def _expm1(e: sympy.Expr) -> sympy.Expr:
    """exp(u) - 1 inside a sum: pairs a*exp(u) - a."""
    constant, rest = e.as_independent(*e.free_symbols, as_Add=True)
    for term in sympy.Add.make_args(rest):
        factor, inner = term.as_independent(*term.free_symbols, as_Add=False)
        if isinstance(inner, sympy.exp) and factor == -constant and constant != 0:
            return factor * expm1(inner.args[0]) + (rest - term)
    return e


def _half_angle(e: sympy.Expr) -> sympy.Expr:
    """a - a cos(u) = 2a sin(u/2)^2 and a + a cos(u) = 2a cos(u/2)^2, inside a sum."""
    constant, rest = e.as_independent(*e.free_symbols, as_Add=True)
    for term in sympy.Add.make_args(rest):
        factor, inner = term.as_independent(*term.free_symbols, as_Add=False)
        if isinstance(inner, sympy.cos) and constant != 0 and factor in (constant, -constant):
            half = sympy.cos if factor == constant else sympy.sin
            return 2 * constant * half(inner.args[0] / 2) ** 2 + (rest - term)
    return e


def _half_arc(e: sympy.Expr) -> sympy.Expr:
    """acos(1 - u) = 2 asin(sqrt(u/2)), asin(1 - u) is pi/2 less that, and the same of u - 1."""
    for sign in (1, -1):
        rest = 1 - sign * sympy.expand(e.args[0])
        if rest.as_independent(*rest.free_symbols, as_Add=True)[0] == 0:
            arc = 2 * sympy.asin(sympy.sqrt(rest / 2))
            if isinstance(e, sympy.asin):
                return sign * (sympy.pi / 2 - arc)
            return arc if sign == 1 else sympy.pi - arc
    return e


def _normal(e: sympy.Expr) -> sympy.Expr:
    """a + a erf(u) = 2a ndtr(sqrt(2) u), and a - a erf(u) the same of -u."""
    constant, rest = e.as_independent(*e.free_symbols, as_Add=True)
    factor, inner = rest.as_independent(*rest.free_symbols, as_Add=False)
    if isinstance(inner, sympy.erf) and constant in (factor, -factor):
        side = 1 if factor == constant else -1
        return 2 * constant * ndtr(sympy.expand(side * sympy.sqrt(2) * inner.args[0]))
    return e


def _erfcinv(e: sympy.Expr) -> sympy.Expr:
    """erfinv(u - 1) = -erfcinv(u) and erfinv(1 - u) = erfcinv(u)."""
    for sign in (1, -1):
        shifted = 1 + sign * sympy.expand(e.args[0])
        if shifted.as_independent(*shifted.free_symbols, as_Add=True)[0] == 0:
            return -sign * sympy.erfcinv(shifted)
    return e


def _omega(e: sympy.Expr) -> sympy.Expr:
    """W(c exp(u)) = omega(u + log c) for c > 0."""
    argument = sympy.powsimp(e.args[0])
    factor, inner = argument.as_independent(*argument.free_symbols, as_Add=False)
    if isinstance(inner, sympy.exp) and truth.sign(factor) == 1:
        return wrightomega(sympy.expand(inner.args[0]) + sympy.log(factor))
    return e


def large_powers(expr: sympy.Expr) -> sympy.Expr:
    """u^c with a large c becomes exp(c log1p(u - 1)): u is then close to 1 and its digits count c times."""

    def rewrite(power: sympy.Expr) -> sympy.Expr:
        return sympy.exp(power.exp * log1p(sympy.expand(power.base) - 1))

    return expr.replace(lambda e: e.is_Pow and e.exp.is_number and abs(e.exp) > 4 and e.base.is_Add, rewrite)


def power_differences(expr: sympy.Expr) -> sympy.Expr:
    """In each sum, a u^m + b u^n with m close to n becomes (a+b) u^n + a u^n expm1((m-n) log u).

    Families such as (t - t^a)/(a-1) cancel as a -> 1; the rewritten form does not.
    """
    return expr.replace(lambda e: e.is_Add and len(e.free_symbols) == 1, _power_difference)


def _power_difference(total: sympy.Add) -> sympy.Expr:
    terms = []
    bases = set()
    for term in total.args:
        factor, rest = term.as_independent(*total.free_symbols, as_Add=False)
        base, exponent = rest.as_base_exp() if rest != 1 else (S.One, S.Zero)
        if not exponent.is_Rational:
            return total
        if exponent != 0:
            bases.add(base)
        terms.append((factor, exponent))
    if len(bases) != 1:
        return total
    x = bases.pop()
    terms.sort(key=lambda term: term[1])
    result = S.Zero
    while terms:
        factor, exponent = terms.pop()
        if terms and exponent - terms[-1][1] < sympy.Rational(1, 4):
            below, lower = terms.pop()
            result += factor * x**lower * expm1((exponent - lower) * sympy.log(x))
            terms.append((factor + below, lower))
        else:
            result += factor * x**exponent
    return result


_REWRITES: tuple[Callable[[sympy.Expr], sympy.Expr], ...] = (
    sympy.factor_terms,
    sympy.expand,
    lambda e: sympy.expand(_split_logs(e)),
    _terms_cancelled,
    _logarithmic,
    lambda e: sympy.expand(e.replace(lambda part: isinstance(part, sympy.asin), _half_arc)),
    sympy.together,
    lambda e: e if _is_chain(e) else simplified(e),
    factored,
)


def shortest(expr: sympy.Expr) -> sympy.Expr:
    """The shortest of a few equal forms."""
    if expr.is_infinite or expr.is_Float:
        return expr
    forms = [expr, sympy.expand(expr)]
    if expr.free_symbols:
        forms += [factored(sympy.together(expr)), quickly_cancelled(forms[1])]
    return min(forms, key=lambda x: (x.count_ops(), str(x)))
