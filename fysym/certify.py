"""Proofs by ball arithmetic that an expression keeps one sign on all of 0 < t < 1.

The middle [delta0, 1 - delta1] is cut into boxes on each of which a ball that encloses every value of f
lies on one side of 0. Balls cannot reach an end where f is infinite, zero or only a limit. There f is
written as a finite sum of c x^a l^k, where x is the distance to the end, l = log(1/x), and c is a ball
that holds for every x of the strip 0 < x <= delta; the leading term then gives the sign.

Balls are those of FLINT (python-flint, the extra `fysym[certify]`), imported when first used. A ball
that is not finite anywhere on the way proves nothing.
"""

from __future__ import annotations

import functools
import importlib.util
import math
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import sympy
from sympy import S

from . import deadline

Interval = tuple[Fraction, Fraction]
Box = tuple[Interval, ...]
Key = tuple[sympy.Expr, sympy.Expr]  # the exponents (a, k) of x^a l^k
Coefficient = tuple[Any, sympy.Expr | None]  # a ball, and the exact value where it is known
Series = dict[Key, Coefficient]

FIRST_BITS, STRIP_BITS, MOST_BITS = 53, 160, 2400
MOST_BOXES = 20_000
TINY = Fraction(1, 2**60)  # no box is cut when it is so narrow
MOST_SPLITS = 64  # of the box of parameters, at each end
DELTAS = tuple(Fraction(1, 2**k) for k in (3, 6, 10, 16, 24, 40, 80, 160, 400, 1000))
ORDERS = (3, 6, 10)
MOST_TERMS = 30
CONSTANT: Key = (S.Zero, S.Zero)


@dataclass(frozen=True)
class End:
    """|f| >= bound * x^power * log(1/x)^log_power > 0 for 0 < x <= delta; x is the distance to the end `at`.

    `rule` is "regular" (one ball over the closed strip) or "leading term" (an expansion with `order` terms
    of each function); `box` is the part of the parameter box for which it holds.
    """

    at: int
    rule: str
    delta: Fraction
    bound: Fraction
    power: sympy.Expr = S.Zero
    log_power: sympy.Expr = S.Zero
    order: int = 0
    box: Box = ()


@dataclass(frozen=True)
class Cover:
    """sign * expr > 0 for 0 < t < 1 and all parameters in `ranges`, by boxes in (t, *parameters) and two strips."""

    expr: sympy.Expr
    t: sympy.Symbol
    sign: int
    boxes: tuple[Box, ...]
    precision: int
    ends: tuple[End, ...]
    ranges: tuple[tuple[sympy.Symbol, Interval], ...] = ()
    strict: bool = True

    def lines(self, indent: int = 0) -> Iterator[str]:
        """The argument in words, like that of a symbolic proof."""
        yield "  " * indent + f"{self.expr} {'>' if self.sign > 0 else '<'} 0: {self.evidence}"

    @property
    def evidence(self) -> str:
        rules = {end.rule for end in self.ends}
        how = "leading terms" if "leading term" in rules else "closed strips"
        boxes = "1 box" if len(self.boxes) == 1 else f"{len(self.boxes)} boxes"
        return f"ball arithmetic: {boxes} at {self.precision} bits, ends by {how}"


class NotEvaluable(Exception):
    """The expression contains something that has no ball extension here."""


class _Unsettled(Exception):
    """This strip, order and precision do not settle the question."""


def available() -> bool:
    """Is python-flint installed?"""
    return importlib.util.find_spec("flint") is not None


def certify_sign(
    f: sympy.Expr,
    t: sympy.Symbol,
    sign: int,
    seconds: float,
    ranges: Mapping[sympy.Symbol, tuple[Any, Any]] | None = None,
) -> Cover | None:
    """A proof that sign * f > 0 for 0 < t < 1 and all parameters in the closed boxes `ranges`, or None.

    Zeros inside (0, 1), also isolated ones, cannot be certified.
    """
    ranges = ranges or {}
    if not available() or not f.free_symbols <= {t, *ranges}:
        return None
    stop = time.monotonic() + seconds
    try:
        spans = tuple((p, (_outward(low, -1), _outward(high, 1))) for p, (low, high) in ranges.items())
        field = Field(f, (t, *ranges), sign)
        box = tuple(span for _, span in spans)
        if field.program.on(_middle(((Fraction(0), Fraction(1)), *box)), STRIP_BITS) < 0:
            return None
        ends = [end for at in (0, 1) for end in _find_ends(field, at, box, stop)]
        low, high = (min(end.delta for end in ends if end.at == at) for at in (0, 1))
        boxes, bits = _cover(field, ((low, 1 - high), *box), stop)
    except (NotEvaluable, _Unsettled):
        return None
    return Cover(f, t, sign, boxes, bits, tuple(ends), spans)


def _outward(value: Any, side: int) -> Fraction:
    """A bound of a range as a fraction; an irrational one is rounded outward."""
    exact = sympy.sympify(value)
    if exact.is_Rational:
        return Fraction(int(exact.p), int(exact.q))
    ball = Program(exact, ()).on((), STRIP_BITS)
    if not ball.is_finite():
        raise NotEvaluable(f"{exact} is not a finite number")
    end = (ball.lower() if side < 0 else ball.upper()).fmpq()
    return Fraction(int(end.p), int(end.q))


# --- balls -----------------------------------------------------------------------------------------

_LOCK = threading.RLock()  # FLINT's precision is one for all threads


@contextmanager
def precision(bits: int) -> Iterator[Any]:
    """The module flint at this working precision."""
    import flint

    with _LOCK, flint.ctx.workprec(bits):
        yield flint


def _ball(low: Any, high: Any | None = None) -> Any:
    """The exact number `low`, or a ball that contains [low, high]."""
    import flint

    left = flint.arb(flint.fmpq(int(low.numerator), int(low.denominator)))
    return left if high is None or high == low else left.union(_ball(high))


def _nan() -> Any:
    import flint

    return flint.arb.nan()


def _integer_power(x: Any, n: int) -> Any:
    """x^n from its values at the ends of the ball: arb's own power is nan on balls around 0."""
    if n < 0:
        return 1 / _integer_power(x, -n)
    if n == 0:
        return x * 0 + 1
    if n % 2 == 0:
        low, high = x.abs_lower(), x.abs_upper()
    else:
        low, high = x.lower(), x.upper()
    return (low * 0 if low == 0 else low**n).union(high * 0 if high == 0 else high**n)


def _real_power(x: Any, y: Any) -> Any:
    return x**y if x > 0 else _nan()


def _rational_power(p: int, q: int) -> Callable[[Any], Any]:
    def power(x: Any) -> Any:
        if not x.lower() >= 0:
            return _nan()
        root = x.sqrt() if q == 2 else x.root(q)
        return _integer_power(root, p)

    return power


def _where(condition: Callable[[Any], bool], function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda x: function(x) if condition(x) else _nan()


def _polygamma(n: int) -> Callable[[Any], Any]:
    """Monotone for x > 0; psi_n(x) = (-1)^(n+1) n! zeta(n+1, x)."""
    import flint

    def at(x: Any) -> Any:
        return x.digamma() if n == 0 else (-1) ** (n + 1) * math.factorial(n) * flint.arb(n + 1).zeta(x)

    return _where(lambda x: x > 0, lambda x: at(x.lower()).union(at(x.upper())))


_METHODS = {
    function: function.__name__
    for function in (
        sympy.exp, sympy.log, sympy.sin, sympy.cos, sympy.tan, sympy.cot, sympy.sec, sympy.csc, sympy.asin, sympy.acos,
        sympy.atan, sympy.sinh, sympy.cosh, sympy.tanh, sympy.coth, sympy.sech, sympy.csch, sympy.asinh, sympy.acosh,
        sympy.atanh, sympy.erf, sympy.erfc, sympy.erfinv, sympy.erfcinv, sympy.gamma,
    )
}  # fmt: skip
_CONSTANTS = {S.Pi: "pi", S.Exp1: "const_e", S.EulerGamma: "const_euler", S.Catalan: "const_catalan"}


def _operation(expr: sympy.Expr) -> tuple[Callable[..., Any], Sequence[sympy.Expr]]:
    """The ball extension of the outermost node, and the parts it takes."""
    import flint

    arb = flint.arb
    if expr.is_Rational:
        return lambda: _ball(expr), ()
    if expr in _CONSTANTS:
        return getattr(arb, _CONSTANTS[expr]), ()
    if expr.is_Add:
        return lambda *parts: sum(parts[1:], parts[0]), expr.args
    if expr.is_Mul:
        return lambda *parts: math.prod(parts[1:], start=parts[0]), expr.args
    if expr.is_Pow:
        base, exponent = expr.args
        if exponent.is_Integer:
            return lambda x: _integer_power(x, int(exponent)), (base,)
        if exponent.is_Rational and exponent.q <= 64:
            return _rational_power(int(exponent.p), int(exponent.q)), (base,)
        return _real_power, (base, exponent)
    if expr.func in _METHODS:
        return getattr(arb, _METHODS[expr.func]), expr.args
    if isinstance(expr, sympy.loggamma):
        return _where(lambda x: x > 0, arb.lgamma), expr.args
    if isinstance(expr, sympy.LambertW) and expr.args[1:] in ((), (S.Zero,), (S.NegativeOne,)):
        branch = int(expr.args[1]) if len(expr.args) > 1 else 0
        return lambda x: x.lambertw(branch), expr.args[:1]
    if isinstance(expr, sympy.polygamma) and expr.args[0].is_Integer and expr.args[0] >= 0:
        return _polygamma(int(expr.args[0])), expr.args[1:]
    if isinstance(expr, sympy.Abs):
        return abs, expr.args
    if isinstance(expr, sympy.sign):
        return _where(lambda x: x > 0 or x < 0, arb.sgn), expr.args
    raise NotEvaluable(str(expr)[:80])


class Program:
    """A ball extension of an expression: a ball that contains every value on a box, or nan."""

    def __init__(self, expr: sympy.Expr, symbols: Sequence[sympy.Symbol]) -> None:
        self.places: dict[sympy.Expr, int] = {symbol: k for k, symbol in enumerate(symbols)}
        self.steps: list[tuple[Callable[..., Any], tuple[int, ...]]] = []
        self.inputs = len(symbols)
        self.result = self._place(expr)

    def _place(self, expr: sympy.Expr) -> int:
        if expr not in self.places:
            function, parts = _operation(expr)
            arguments = tuple(self._place(part) for part in parts)
            self.steps.append((function, arguments))
            self.places[expr] = self.inputs + len(self.steps) - 1
        return self.places[expr]

    def __call__(self, values: Sequence[Any]) -> Any:
        """The ball at these balls, at the precision in force."""
        found = list(values)
        try:
            for function, arguments in self.steps:
                value = function(*[found[k] for k in arguments])
                if not value.is_finite():
                    return _nan()
                found.append(value)
        except (ValueError, ZeroDivisionError, OverflowError):
            return _nan()
        return found[self.result]

    def on(self, box: Box, bits: int) -> Any:
        with precision(bits):
            return self([_ball(low, high) for low, high in box])


class Field:
    """f with its gradient: what is needed to settle its sign on a box."""

    def __init__(self, f: sympy.Expr, symbols: tuple[sympy.Symbol, ...], sign: int) -> None:
        self.f, self.symbols, self.sign = f, symbols, sign
        self.program = Program(sign * f, symbols)

    @functools.cached_property
    def slopes(self) -> tuple[Program, ...]:
        try:
            return tuple(Program(self.sign * sympy.diff(self.f, x), self.symbols) for x in self.symbols)
        except NotEvaluable:
            return ()

    def settle(self, box: Box, bits: int) -> tuple[bool, list[float]]:
        """Whether sign * f > 0 on the box, directly or by the mean value form, and how much each variable matters.

        The mean value form needs f to be smooth on the box, so it is asked only where f itself is finite:
        in log(t) - log(2 t) the derivative has no trace of the singularity.
        """
        with precision(bits):
            sides = [_ball(low, high) for low, high in box]
            value = self.program(sides)
            if value > 0:
                return True, []
            slopes = [slope(sides) for slope in self.slopes]
            middle = [_ball((low + high) / 2) for low, high in box]
            steps = [slope * (x - m) for slope, x, m in zip(slopes, sides, middle, strict=False)]
            if not slopes or not value.is_finite() or not all(step.is_finite() for step in steps):
                return False, []
            weights = [float(step.abs_upper().log()) if step.abs_upper() > 0 else -math.inf for step in steps]
            return bool(self.program(middle) + sum(steps) > 0), weights


# --- the middle --------------------------------------------------------------------------------------


def _cover(field: Field, domain: Box, stop: float) -> tuple[tuple[Box, ...], int]:
    """Boxes that tile the domain, on each of which the sign is settled, and the bits that took."""
    found: list[Box] = []
    most = FIRST_BITS
    waiting = [(domain, FIRST_BITS)]
    while waiting:
        box, bits = waiting.pop()
        if time.monotonic() > stop or len(found) + len(waiting) > MOST_BOXES:
            raise _Unsettled
        settled, weights = field.settle(box, bits)
        most = max(most, bits)
        if settled:
            found.append(box)
            continue
        if all(high - low < TINY * scale for (low, high), scale in zip(box, _scales(box, domain))):
            raise _Unsettled  # as good as a zero
        middle = _middle(box)
        value = field.program.on(middle, bits)
        while not value > 0:
            bits *= 2
            if value < 0 or bits > MOST_BITS:
                raise _Unsettled
            value = field.program.on(middle, bits)
        waiting += [(half, bits) for half in reversed(halves(box, domain, weights))]
    return tuple(found), most


def _middle(box: Box) -> Box:
    return tuple(((low + high) / 2, (low + high) / 2) for low, high in box)


def _scales(box: Box, domain: Box) -> list[Fraction]:
    """What the width of each side is compared with: the distance to an end for t, else the whole range."""
    low, high = box[0]
    return [min(low, 1 - high), *(b - a or Fraction(1) for a, b in domain[1:])]


def halves(box: Box, domain: Box, weights: Sequence[float] = ()) -> list[Box]:
    """The box cut in two across the variable that matters most; t by ratios near an end."""
    if not weights:
        weights = [float((b - a) / (high - low)) if high > low else 0.0 for (a, b), (low, high) in zip(box, domain)]
    k = max((i for i, (a, b) in enumerate(box) if b > a), key=lambda i: weights[i])
    low, high = box[k]
    cut = (low + high) / 2
    if k == 0 and high > 8 * low > 0:
        cut = _between(low, high)
    elif k == 0 and 1 - low > 8 * (1 - high) > 0:
        cut = 1 - _between(1 - high, 1 - low)
    return [(*box[:k], side, *box[k + 1 :]) for side in ((low, cut), (cut, high))]


def _between(low: Fraction, high: Fraction) -> Fraction:
    """A power of 2 close to the geometric mean."""
    ratio = high / low
    bits = (ratio.numerator.bit_length() - ratio.denominator.bit_length()) // 2
    return low * 2 ** max(1, bits)


# --- the strips at the ends --------------------------------------------------------------------------


def _find_ends(field: Field, at: int, domain: Box, stop: float) -> list[End]:
    """Strips next to one end for all parameters, the parameter box cut where one strip does not do."""
    found: list[End] = []
    waiting = [domain]
    while waiting:
        box = waiting.pop()
        if len(found) + len(waiting) > MOST_SPLITS:
            raise _Unsettled
        end = find_end(field, at, box, stop)
        if end is not None:
            found.append(end)
        elif all(low == high for low, high in box):
            raise _Unsettled
        else:
            point = (Fraction(0), Fraction(0))
            waiting += [half[1:] for half in halves((point, *box), (point, *domain))]
    return found


def find_end(field: Field, at: int, box: Box, stop: float) -> End | None:
    """One strip next to an end for a whole box of parameters."""
    for order in ORDERS:
        for delta in DELTAS:
            if time.monotonic() > stop:
                raise _Unsettled
            for rule in ("regular", "leading term") if order == ORDERS[0] else ("leading term",):
                end = strip(field, at, rule, delta, order, box, STRIP_BITS, stop)
                if end is not None:
                    return end
    return None


def strip(
    field: Field, at: int, rule: str, delta: Fraction, order: int, box: Box, bits: int, stop: float = math.inf
) -> End | None:
    """The sign on one strip by one rule, with the bound that it gives; None where it is not settled."""
    with precision(bits):
        if rule == "regular":
            side = (Fraction(0), delta) if at == 0 else (1 - delta, Fraction(1))
            value = field.program.on((side, *box), bits)
            return End(at, rule, delta, _lower(value), box=box) if value > 0 else None
        try:
            expansion = _Expansion(field.symbols, at, delta, order, box, stop)
            (a, k), value = expansion.leading_bound(expansion.of(field.sign * field.f))
        except (_Unsettled, NotEvaluable):
            return None
    return End(at, rule, delta, _lower(value), a, k, order, box)


def _lower(ball: Any) -> Fraction:
    """A short positive fraction below a positive ball."""
    mantissa, exponent = (int(part) for part in ball.lower().man_exp())
    extra = max(0, mantissa.bit_length() - 20)
    return Fraction(mantissa >> extra) * Fraction(2) ** (exponent + extra)


class _Expansion:
    """Expressions on the strip 0 < x <= delta as finite sums of c x^a l^k with l = log(1/x) and balls c.

    Functions are expanded about their value at the end by Taylor's formula; the remainder is one more
    term, whose ball encloses the last derivative on the whole range. So the sums hold for every x of the
    strip and every parameter in the box, without a limit being taken.
    """

    def __init__(
        self, symbols: tuple[sympy.Symbol, ...], at: int, delta: Fraction, order: int, box: Box, stop: float
    ) -> None:
        self.t, *self.parameters = symbols
        self.order, self.stop, self.rewrites = order, stop, 0
        self.values = [_ball(low, high) for low, high in box]
        self.delta = _ball(delta)
        self.level = -self.delta.log()
        x: Series = {(S.One, S.Zero): (_ball(S.One), S.One)}
        near = {CONSTANT: (_ball(S.One), S.One), (S.One, S.Zero): (_ball(S.NegativeOne), S.NegativeOne)}
        self.known: dict[sympy.Expr, Series] = {self.t: x if at == 0 else near}

    def number(self, expr: sympy.Expr) -> Any:
        """The ball of an expression in the parameters."""
        return _finite(_ball(expr) if expr.is_Rational else _program(expr, tuple(self.parameters))(self.values))

    # sums, and what they are at most

    def ratio(self, a: sympy.Expr, k: sympy.Expr) -> Any:
        """A ball that contains x^a l^k on the strip."""
        if a == 0 and k == 0:
            return _ball(S.One)
        least = self.number(a).lower()
        if not least >= 0 or (k > 0 and not least > 0):
            raise _Unsettled
        if k > 0 and not self.level > _ball(k) / least:  # the largest value is inside the strip or beyond
            top = _real_power(_ball(k) / (least * _ball(S.One).exp()), _ball(k))
        else:
            top = _real_power(self.delta, least) * (_real_power(self.level, _ball(k)) if k != 0 else 1)
        return _finite(top).upper().union(_ball(S.Zero))

    def bound(self, series: Series) -> Any:
        """A ball that contains the sum on the whole strip."""
        return sum((c * self.ratio(a, k) for (a, k), (c, _) in series.items()), _ball(S.Zero))

    def sized(self, series: Series) -> list[Key]:
        """The terms, the largest near the end first."""
        return sorted(series, key=lambda key: (float(self.number(key[0]).mid()), -key[1]))

    def leading_bound(self, series: Series) -> tuple[Key, Any]:
        """The term to divide by so that the sum stays positive, and the ball of the quotient."""
        for a, k in self.sized(series):
            if not series[a, k][0] > 0:
                continue
            rest = {(_plus(b, -a), m - k): c for (b, m), c in series.items() if (b, m) != (a, k) and not c[0] > 0}
            try:
                value = series[a, k][0] + self.bound(rest)
            except _Unsettled:
                continue
            if value > 0:
                return (a, k), value
        raise _Unsettled

    def split(self, series: Series) -> tuple[Key, Coefficient, Series]:
        """The leading term c x^a l^k, and v in series = c x^a l^k (1 + v)."""
        if not series:
            raise _Unsettled
        (a, k) = key = self.sized(series)[0]
        ball, exact = series[key]
        if not (ball > 0 or ball < 0):
            raise _Unsettled
        rest = {
            (_plus(b, -a), m - k): (c / ball, None if exact is None or e is None else _exact(e / exact))
            for (b, m), (c, e) in series.items()
            if (b, m) != key
        }
        return key, series[key], rest

    # arithmetic

    def add(self, *sums: Series) -> Series:
        total: Series = {}
        for series in sums:
            for key, (ball, exact) in series.items():
                if key in total:
                    other, known = total[key]
                    exact = None if exact is None or known is None else _exact(exact + known)
                    ball = ball + other
                total[key] = (ball, exact)
        for key, (ball, exact) in list(total.items()):
            if not (ball > 0 or ball < 0) and exact is not None and _vanishes(exact):
                del total[key]
        return self.shortened(total)

    def shortened(self, series: Series) -> Series:
        """At most MOST_TERMS terms: the small ones are gathered in the largest of them."""
        keys = self.sized(series)
        if len(keys) <= MOST_TERMS:
            return series
        kept = {key: series[key] for key in keys[:MOST_TERMS]}
        a, k = keys[MOST_TERMS]
        kept[a, k] = (self.bound({(_plus(b, -a), m - k): series[b, m] for b, m in keys[MOST_TERMS:]}), None)
        return kept

    def times(self, one: Series, two: Series) -> Series:
        if time.monotonic() > self.stop:
            raise _Unsettled
        products = []
        for (a, k), (c, exact) in one.items():
            row = {}
            for (b, m), (d, other) in two.items():
                row[_plus(a, b), k + m] = (c * d, None if exact is None or other is None else _exact(exact * other))
            products.append(row)
        return self.add(*products)

    def taylor(self, v: Series, coefficient: Callable[[int], Coefficient], remainder: Callable[[Any], Any]) -> Series:
        """The sum of coefficient(j) v^j for j below the order, and remainder(range of v) v^order."""
        span = self.bound(v).union(_ball(S.Zero))
        total: Series = {CONSTANT: (_finite(remainder(span)), None)}
        for j in reversed(range(self.order)):
            total = self.add(self.times(total, v), {CONSTANT: coefficient(j)})
        return total

    # functions

    def of(self, expr: sympy.Expr) -> Series:
        if expr not in self.known:
            self.known[expr] = self._of(expr)
        return self.known[expr]

    def _of(self, expr: sympy.Expr) -> Series:
        if not expr.has(self.t):
            return self.add({CONSTANT: (self.number(expr), expr)})
        if expr.is_Add:
            return self.add(*map(self.of, expr.args))
        if expr.is_Mul:
            return functools.reduce(self.times, map(self.of, expr.args))
        if expr.is_Pow and not expr.exp.has(self.t):
            return self.power(self.of(expr.base), expr.exp)
        if expr.is_Pow:
            return self.exponential(self.of(expr.exp * sympy.log(expr.base)))
        if isinstance(expr, sympy.exp):
            return self.exponential(self.of(expr.args[0]))
        if isinstance(expr, sympy.log):
            return self.logarithm(self.of(expr.args[0]))
        try:
            return self.function(expr)
        except _Unsettled:
            return self.rewritten(expr)

    def rewritten(self, expr: sympy.Expr) -> Series:
        """An equal form, for where the function itself is not smooth at its value at the end."""
        self.rewrites += 1
        if isinstance(expr, sympy.atan):
            _, (c, _), v = self.split(self.of(expr.args[0]))
            if 1 + self.bound(v) > 0:
                return self.of((S.Pi / 2 if c > 0 else -S.Pi / 2) - sympy.atan(1 / expr.args[0]))
        for form in _other_forms(expr) if self.rewrites < 20 else ():
            try:
                return self.of(form)
            except _Unsettled:
                continue
        raise _Unsettled

    def power(self, base: Series, r: sympy.Expr) -> Series:
        if r.is_Integer and 0 < r <= 4:
            return functools.reduce(self.times, [base] * int(r))
        (a, k), (c, exact), v = self.split(base)
        whole = int(r) if r.is_Integer else None
        if (whole is None and not c > 0) or not (k * r).is_Rational:
            raise _Unsettled
        front = _integer_power(c, whole) if whole is not None else _real_power(c, self.number(r))
        head = {(sympy.expand(a * r), k * r): (_finite(front), None if exact is None else _exact(exact**r))}

        def coefficient(j: int) -> Coefficient:
            value = sympy.expand(sympy.ff(r, j)) / sympy.factorial(j)
            return self.number(value), value

        def remainder(span: Any) -> Any:
            return coefficient(self.order)[0] * _real_power(1 + span, self.number(r - self.order))

        return self.times(head, self.taylor(v, coefficient, remainder))

    def logarithm(self, inner: Series) -> Series:
        (a, k), (c, exact), v = self.split(inner)
        if not c > 0 or k != 0:
            raise _Unsettled

        def coefficient(j: int) -> Coefficient:
            value = sympy.Rational((-1) ** (j + 1), j) if j else S.Zero
            return _ball(value), value

        def remainder(span: Any) -> Any:
            return coefficient(self.order)[0] * _real_power(1 + span, _ball(sympy.Integer(-self.order)))

        head: Series = {CONSTANT: (_finite(c.log()), None if exact is None else sympy.log(exact))}
        if a != 0:
            head[S.Zero, S.One] = (-self.number(a), -a)
        return self.add(head, self.taylor(v, coefficient, remainder))

    def exponential(self, inner: Series) -> Series:
        """exp(c0 + c1 l + v) = exp(c0) x^(-c1) exp(v)."""
        v = dict(inner)
        c, exact = v.pop(CONSTANT, (_ball(S.Zero), S.Zero))
        _, slope = v.pop((S.Zero, S.One), (None, S.Zero))
        if slope is None:
            raise _Unsettled

        def coefficient(j: int) -> Coefficient:
            value = S.One / sympy.factorial(j)
            return _ball(value), value

        tail = self.taylor(v, coefficient, lambda span: span.exp() * coefficient(self.order)[0])
        return self.times(
            {(-slope, S.Zero): (_finite(c.exp()), None if exact is None else _exact(sympy.exp(exact)))}, tail
        )

    def function(self, expr: sympy.Expr) -> Series:
        """Any function of one argument that is smooth at its value at the end."""
        varying = [arg for arg in expr.args if arg.has(self.t)]
        if len(varying) != 1:
            raise _Unsettled
        v = dict(self.of(varying[0]))
        c, exact = v.pop(CONSTANT, (_ball(S.Zero), S.Zero))
        derivatives = [_program(d, (_X,)) for d in _derivatives(expr.xreplace({varying[0]: _X}), self.order)]

        def coefficient(j: int) -> Coefficient:
            ball = _finite(derivatives[j]([c])) / math.factorial(j)
            value = None
            if exact is not None:
                value = _exact(_derivatives(expr.xreplace({varying[0]: _X}), self.order)[j].xreplace({_X: exact}))
            return ball, None if value is None else _exact(value / sympy.factorial(j))

        def remainder(span: Any) -> Any:
            _finite(derivatives[0]([c + span]))
            return derivatives[self.order]([c + span]) / math.factorial(self.order)

        return self.taylor(v, coefficient, remainder)


_X = sympy.Dummy("x", real=True)


def _finite(ball: Any) -> Any:
    if not ball.is_finite():
        raise _Unsettled
    return ball


@functools.lru_cache(maxsize=512)
def _program(expr: sympy.Expr, symbols: tuple[sympy.Symbol, ...]) -> Program:
    return Program(expr, symbols)


@functools.lru_cache(maxsize=256)
def _derivatives(expr: sympy.Expr, order: int) -> tuple[sympy.Expr, ...]:
    """A function of _X and its derivatives; those of W are written so that they are smooth at 0."""
    if isinstance(expr, sympy.LambertW):
        found = [w := sympy.Dummy("w", real=True)]
        for _ in range(order):
            found.append(sympy.factor(sympy.diff(found[-1], w) * sympy.exp(-w) / (1 + w)))
        return tuple(d.xreplace({w: expr}) for d in found)
    found = [expr]
    for _ in range(order):
        found.append(sympy.diff(found[-1], _X))
    return tuple(found)


def _other_forms(expr: sympy.Expr) -> tuple[sympy.Expr, ...]:
    """Forms that equal the function wherever both are real."""
    u = expr.args[-1]
    half = 2 * sympy.asin(sympy.sqrt((1 - u) / 2)), 2 * sympy.asin(sympy.sqrt((1 + u) / 2))
    forms: dict[Any, tuple[sympy.Expr, ...]] = {
        sympy.asin: (S.Pi / 2 - half[0], half[1] - S.Pi / 2),
        sympy.acos: (half[0], S.Pi - half[1]),
        sympy.asinh: (sympy.log(u + sympy.sqrt(1 + u**2)), -sympy.log(sympy.sqrt(1 + u**2) - u)),
        sympy.acosh: (2 * sympy.asinh(sympy.sqrt((u - 1) / 2)), sympy.log(u + sympy.sqrt(u**2 - 1))),
        sympy.atanh: ((sympy.log(1 + u) - sympy.log(1 - u)) / 2,),
        sympy.sinh: ((sympy.exp(u) - sympy.exp(-u)) / 2,),
        sympy.cosh: ((sympy.exp(u) + sympy.exp(-u)) / 2,),
        sympy.tanh: (1 - 2 / (sympy.exp(2 * u) + 1), 2 / (sympy.exp(-2 * u) + 1) - 1),
        sympy.tan: (sympy.sin(u) / sympy.cos(u),),
        sympy.cot: (sympy.cos(u) / sympy.sin(u),),
        sympy.sec: (1 / sympy.cos(u),),
        sympy.csc: (1 / sympy.sin(u),),
        sympy.gamma: (sympy.gamma(1 + u, evaluate=False) / u,),
        sympy.loggamma: (sympy.loggamma(1 + u) - sympy.log(u),),
    }
    if isinstance(expr, sympy.polygamma) and expr.args[0].is_Integer:
        n = expr.args[0]
        return (sympy.polygamma(n, 1 + u, evaluate=False) - (-1) ** n * sympy.factorial(n) * u ** (-n - 1),)
    return forms.get(expr.func, ())


def _plus(a: sympy.Expr, b: sympy.Expr) -> sympy.Expr:
    total = a + b
    return total if total.is_Rational else sympy.expand(total)


def _exact(value: sympy.Expr) -> sympy.Expr | None:
    """An exact coefficient, forgotten when it is undefined or grows long: it only serves to recognise zeros."""
    if value.is_Rational:
        return value
    if value.has(S.NaN, S.ComplexInfinity, S.Infinity, S.NegativeInfinity, S.ImaginaryUnit):
        return None
    return value if value.count_ops() <= 80 else None


@functools.lru_cache(maxsize=4096)
def _vanishes(exact: sympy.Expr) -> bool:
    """Is this expression 0 for certain?"""
    if exact.is_Rational:
        return bool(exact == 0)
    if not exact.free_symbols:
        ball = _program(exact, ()).on((), 2 * STRIP_BITS)
        if ball > 0 or ball < 0:
            return False
    try:
        return bool(sympy.expand(exact) == 0 or deadline.run(sympy.simplify, exact, seconds=0.5) == 0)
    except Exception:  # what SymPy cannot simplify is not known to vanish
        return False
