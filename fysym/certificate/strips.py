"""The verifier's own expansions next to an end of (0, 1).

On the strip 0 < x <= delta, x the distance to the end, an expression is a finite sum of c x^a l^k with
l = log(1/x); each c is a ball that holds on the whole strip, the remainders of Taylor's formula included.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import sympy
from sympy import S

from .. import deadline
from .balls import Undefined, ball, number, whole_power

Exponents = tuple[sympy.Expr, sympy.Expr]  # a, k
Coefficient = tuple[Any, sympy.Expr | None]  # a ball, and the exact value where it is known
Sum = dict[Exponents, Coefficient]
CONSTANT: Exponents = (S.Zero, S.Zero)
LOGARITHM: Exponents = (S.Zero, S.One)
MOST_TERMS = 40


class Strip:
    """Expands expressions in the variable on one strip, for parameters in balls; raises Undefined where it cannot."""

    def __init__(
        self, variable: sympy.Symbol, at: int, delta: Fraction, order: int, parameters: Mapping[sympy.Symbol, Any]
    ) -> None:
        self.variable, self.order, self.parameters = variable, order, parameters
        self.delta = number(delta)
        self.level = -self.delta.log()
        here: Sum = {(S.One, S.Zero): exactly(S.One if at == 0 else -S.One)}
        self.known: dict[sympy.Expr, Sum] = {variable: here if at == 0 else {CONSTANT: exactly(S.One), **here}}
        self.forms = 0

    def least(self, terms: Sum, by: Exponents) -> Any:
        """A lower bound of the sum divided by the positive x^a l^k."""
        a, k = by
        rest = {(sympy.expand(b - a), m - k): c for (b, m), c in terms.items() if not c[0] > 0 or (b, m) == by}
        return self.bound(rest).lower()

    def candidates(self, terms: Sum) -> list[Exponents]:
        """The terms with a positive coefficient, the largest near the end first."""
        return [key for key in self.ordered(terms) if terms[key][0] > 0]

    def ordered(self, terms: Sum) -> list[Exponents]:
        return sorted(terms, key=lambda key: (float(ball(key[0], self.parameters).mid()), -key[1]))

    def size(self, a: sympy.Expr, k: sympy.Expr) -> Any:
        """A ball that contains x^a l^k on the strip."""
        if (a, k) == CONSTANT:
            return number(S.One)
        least = ball(a, self.parameters).lower()
        if not (least > 0 or (least >= 0 and k <= 0)):
            raise Undefined("a term that grows without bound")
        power = number(k)
        if k > 0 and not self.level * least >= power:
            top = (power * (power / least).log() - power).exp()  # the maximum of x^a l^k, at l = k/a
        else:
            top = (power * self.level.log() - least * self.level).exp()
        if not top.is_finite():
            raise Undefined("a term without a bound")
        return top.upper().union(number(S.Zero))

    def bound(self, terms: Sum) -> Any:
        return sum((c * self.size(*key) for key, (c, _) in terms.items()), number(S.Zero))

    # sums and products

    def add(self, *sums: Sum) -> Sum:
        total: Sum = {}
        for terms in sums:
            for key, (c, exact) in terms.items():
                if key in total:
                    c, exact = total[key][0] + c, _both(total[key][1], exact, sympy.Add)
                total[key] = c, exact
        total = {key: c for key, c in total.items() if c[0] > 0 or c[0] < 0 or not (c[0].is_zero() or _is_zero(c[1]))}
        keys = self.ordered(total)
        if len(keys) > MOST_TERMS:
            (a, k), tail = keys[MOST_TERMS], keys[MOST_TERMS:]
            gathered = self.bound({(sympy.expand(b - a), m - k): total[b, m] for b, m in tail})
            total = {**{key: total[key] for key in keys[:MOST_TERMS]}, (a, k): (gathered, None)}
        return total

    def multiply(self, one: Sum, two: Sum) -> Sum:
        return self.add(
            *(
                {(sympy.expand(a + b), k + m): (c * d, _both(e, f, sympy.Mul)) for (b, m), (d, f) in two.items()}
                for (a, k), (c, e) in one.items()
            )
        )

    def split(self, terms: Sum) -> tuple[Exponents, Coefficient, Sum]:
        """The leading term, and v in terms = leading (1 + v)."""
        if not terms:
            raise Undefined("a sum that vanishes")
        a, k = self.ordered(terms)[0]
        c, exact = terms[a, k]
        if not (c > 0 or c < 0):
            raise Undefined("a leading term whose sign is open")
        inverse = None if exact is None else 1 / exact
        rest = {(sympy.expand(b - a), m - k): (d / c, _both(e, inverse, sympy.Mul)) for (b, m), (d, e) in terms.items()}
        del rest[CONSTANT]
        return (a, k), (c, exact), rest

    def compose(self, v: Sum, coefficients: Sequence[Coefficient], remainder: Callable[[Any], Any]) -> Sum:
        """coefficients[0] + coefficients[1] v + ... + remainder v^n, where remainder takes the range of v."""
        last = remainder(self.bound(v).union(number(S.Zero)))
        if not last.is_finite():
            raise Undefined("a remainder without a bound")
        total: Sum = {CONSTANT: (last, None)}
        for coefficient in reversed(coefficients):
            total = self.add(self.multiply(total, v), {CONSTANT: coefficient})
        return total

    # functions

    def expand(self, expr: sympy.Expr) -> Sum:
        if expr not in self.known:
            try:
                self.known[expr] = self._expand(expr)
            except (ValueError, ZeroDivisionError, OverflowError, NotImplementedError) as error:
                raise Undefined(str(expr)[:60]) from error
        return self.known[expr]

    def _expand(self, expr: sympy.Expr) -> Sum:
        if not expr.has(self.variable):
            return self.add({CONSTANT: (ball(expr, self.parameters), expr)})
        if expr.is_Add:
            return self.add(*map(self.expand, expr.args))
        if expr.is_Mul:
            return functools.reduce(self.multiply, map(self.expand, expr.args))
        if expr.is_Pow and not expr.exp.has(self.variable):
            return self.power(self.expand(expr.base), expr.exp)
        if expr.is_Pow:
            return self.exponential(self.expand(expr.exp * sympy.log(expr.base)))
        if isinstance(expr, sympy.exp):
            return self.exponential(self.expand(expr.args[0]))
        if isinstance(expr, sympy.log):
            return self.logarithm(self.expand(expr.args[0]))
        try:
            return self.function(expr)
        except (Undefined, ValueError, ZeroDivisionError, NotImplementedError):
            self.forms += 1
            for form in _forms(expr) if self.forms < 20 else ():
                try:
                    return self.expand(form)
                except Undefined:
                    continue
            raise

    def power(self, base: Sum, r: sympy.Expr) -> Sum:
        if r.is_Integer and 0 < r <= 3:
            return functools.reduce(self.multiply, [base] * int(r))
        (a, k), (c, exact), v = self.split(base)
        exponent = ball(r, self.parameters)
        if not (k * r).is_Rational or not (c > 0 or r.is_Integer):
            raise Undefined("a power of a base that may be negative")
        front = whole_power(c, int(r)) if r.is_Integer else (c.log() * exponent).exp()
        head: Sum = {(sympy.expand(a * r), k * r): (front, None if exact is None else exact**r)}
        series = [S.One]
        for j in range(self.order):
            series.append(sympy.expand(series[-1] * (r - j) / (j + 1)))
        *terms, last = [(ball(x, self.parameters), x) for x in series]
        tail = self.compose(v, terms, lambda span: last[0] * (_log1p(span) * (exponent - self.order)).exp())
        return self.multiply(head, tail)

    def logarithm(self, inner: Sum) -> Sum:
        (a, k), (c, exact), v = self.split(inner)
        if not c > 0 or k != 0:
            raise Undefined("a logarithm of what may be negative, or of a logarithm")
        n = self.order
        terms = [exactly(sympy.Rational((-1) ** (j + 1), j) if j else S.Zero) for j in range(n)]
        tail = self.compose(v, terms, lambda span: (-_log1p(span) * n).exp() * (-1) ** (n + 1) / n)
        head: Sum = {CONSTANT: (c.log(), None if exact is None else sympy.log(exact))}
        if a != 0:
            head[LOGARITHM] = (-ball(a, self.parameters), -a)
        return self.add(head, tail)

    def exponential(self, inner: Sum) -> Sum:
        """exp(c + s l + v) = exp(c) x^-s exp(v)."""
        v = dict(inner)
        c, exact = v.pop(CONSTANT, exactly(S.Zero))
        _, slope = v.pop(LOGARITHM, exactly(S.Zero))
        if slope is None:
            raise Undefined("an exponential of an inexact multiple of a logarithm")
        terms = [exactly(S.One / math.factorial(j)) for j in range(self.order)]
        tail = self.compose(v, terms, lambda span: span.exp() / math.factorial(self.order))
        return self.multiply({(-slope, S.Zero): (c.exp(), None if exact is None else sympy.exp(exact))}, tail)

    def function(self, expr: sympy.Expr) -> Sum:
        """A function that is smooth at its value at the end, by the power series of FLINT."""
        v = dict(self.expand(expr.args[-1]))
        c, exact = v.pop(CONSTANT, exactly(S.Zero))
        plain = expr.xreplace({expr.args[-1]: _X})
        exacts = _exact_jet(plain, exact, self.order)
        terms = list(zip(_jet(expr, c, self.order)[: self.order], exacts, strict=True))

        def remainder(span: Any) -> Any:
            found = _jet(expr, c + span, self.order)[self.order]
            try:  # the derivative itself, which is often narrower
                other = ball(sympy.diff(plain, _X, self.order), {_X: c + span}) / math.factorial(self.order)
                return other if other.rad() < found.rad() else found
            except Undefined:
                return found

        return self.compose(v, terms, remainder)


# functions whose power series FLINT knows by the same name
SERIES = (sympy.sin, sympy.cos, sympy.asin, sympy.acos, sympy.atan, sympy.erf, sympy.erfc, sympy.gamma)
_X = sympy.Dummy("x", real=True)


def exactly(value: sympy.Expr) -> Coefficient:
    return number(value), value


def _log1p(span: Any) -> Any:
    if not 1 + span > 0:
        raise Undefined("a base that may reach 0")
    return (1 + span).log()


def _jet(expr: sympy.Expr, c: Any, order: int) -> list[Any]:
    """The Taylor coefficients of a function about c, up to this order."""
    import flint

    shift = int(expr.args[0]) + 1 if isinstance(expr, sympy.polygamma) else 0
    flint.ctx.cap = max(flint.ctx.cap, order + shift + 2)  # FLINT cuts longer series without a word
    x = flint.arb_series([c, 1], prec=order + shift + 1)
    if isinstance(expr, (sympy.gamma, sympy.loggamma, sympy.polygamma)) and not c > 0:
        raise Undefined("the gamma function at a number that may not be positive")
    if isinstance(expr, (sympy.loggamma, sympy.polygamma)):
        y = x.lgamma()
        for _ in range(shift):
            y = y.derivative()
    elif isinstance(expr, sympy.LambertW) and len(expr.args) == 1:
        y = x.lambertw()
    elif type(expr) in SERIES:
        y = getattr(x, type(expr).__name__)()
    else:
        raise Undefined(str(expr)[:60])
    found = [y[j] for j in range(order + 1)]
    if y.prec <= order or not all(value.is_finite() for value in found):
        raise Undefined(str(expr)[:60])
    return found


@functools.lru_cache(maxsize=512)
def _exact_jet(function: sympy.Expr, at: sympy.Expr | None, order: int) -> list[sympy.Expr | None]:
    if at is None or isinstance(function, sympy.LambertW):
        return [None] * order
    found, derivative = [], function
    for j in range(order):
        value = derivative.xreplace({_X: at}) / math.factorial(j)
        found.append(None if value.has(S.NaN, S.ComplexInfinity, S.Infinity, S.NegativeInfinity) else value)
        derivative = sympy.diff(derivative, _X)
    return found


def _both(a: sympy.Expr | None, b: sympy.Expr | None, operation: Any) -> sympy.Expr | None:
    """The sum or product of exact values, forgotten when it grows long: it only serves to recognise zeros."""
    if a is None or b is None:
        return None
    value = operation(a, b)
    return value if sum(1 for _ in itertools.islice(sympy.preorder_traversal(value), 121)) <= 120 else None


@functools.lru_cache(maxsize=4096)
def _is_zero(exact: sympy.Expr | None) -> bool:
    if exact is None or exact.is_Rational:
        return exact is not None and bool(exact == 0)
    try:
        return bool(sympy.expand(exact) == 0 or deadline.run(sympy.simplify, exact, seconds=0.5) == 0)
    except Exception:  # what SymPy cannot simplify is not known to vanish
        return False


def _forms(expr: sympy.Expr) -> list[sympy.Expr]:
    """Equal forms, for a function that has no power series of its own here, or is not smooth at the end."""
    u = expr.args[-1]
    e, root = sympy.exp(u), sympy.sqrt(1 + u**2)
    small = [2 * sympy.asin(sympy.sqrt((1 - s * u) / 2)) for s in (1, -1)]
    forms: dict[Any, list[sympy.Expr]] = {
        sympy.sinh: [(e - 1 / e) / 2],
        sympy.cosh: [(e + 1 / e) / 2],
        sympy.tanh: [1 - 2 / (e**2 + 1), 2 / (e**-2 + 1) - 1],
        sympy.tan: [sympy.sin(u) / sympy.cos(u)],
        sympy.cot: [sympy.cos(u) / sympy.sin(u)],
        sympy.sec: [1 / sympy.cos(u)],
        sympy.csc: [1 / sympy.sin(u)],
        sympy.asinh: [sympy.log(u + root), -sympy.log(root - u)],
        sympy.acosh: [2 * sympy.log(sympy.sqrt((u + 1) / 2) + sympy.sqrt((u - 1) / 2))],
        sympy.atanh: [(sympy.log(1 + u) - sympy.log(1 - u)) / 2],
        sympy.asin: [S.Pi / 2 - small[0], small[1] - S.Pi / 2],
        sympy.acos: [small[0], S.Pi - small[1]],
        sympy.gamma: [sympy.gamma(1 + u, evaluate=False) / u],
        sympy.loggamma: [sympy.loggamma(1 + u) - sympy.log(u)],
    }
    if isinstance(expr, sympy.atan):
        return [s * S.Pi / 2 - sympy.atan(1 / u) for s in (1, -1) if sympy.ask(sympy.Q.positive(s * u))]
    if isinstance(expr, sympy.polygamma) and expr.args[0].is_Integer:
        n = expr.args[0]
        return [sympy.polygamma(n, 1 + u, evaluate=False) - (-1) ** n * sympy.factorial(n) * u ** (-n - 1)]
    return forms.get(type(expr), [])
