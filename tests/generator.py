"""Random entropies whose facts are known by construction, and random functions that are not strictly concave.

Both are hypothesis strategies, so that what fails shrinks. Nothing here asks the package anything: slopes and values
at the ends come from the tables below and from the rules by which parts are put together, and `confirm` checks them
in mpmath. A new atom, curvature, kink or defect is one line in its table.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import mpmath
import sympy
from hypothesis import assume
from hypothesis import strategies as st
from sympy import Rational, S, cos, exp, log, oo, pi, sin, sqrt

from . import oracle

t = sympy.Symbol("t")
Expr = Any  # a sympy.Expr


# --- concave functions and what is known of them -------------------------------------------------------


@dataclass(frozen=True)
class Known:
    """A concave function h on (0, 1).

    `values` and `slopes` are the limits of h and h' at 0 and 1. `pieces` are (low, high, expression): h without its
    switching functions. -h'' is at least `floor` inside each piece, and 0 at the points `zeros`. `kinks` are where
    the slope drops.
    """

    h: Expr
    values: tuple[Expr, Expr]
    slopes: tuple[Expr, Expr]
    pieces: tuple[tuple[Expr, Expr, Expr], ...]
    floor: Expr = S.Zero
    zeros: tuple[Expr, ...] = ()
    kinks: tuple[Expr, ...] = ()

    @property
    def text(self) -> str:
        """What is handed to the compiler."""
        return str(self.h)

    @property
    def margin(self) -> Expr:
        """h'(0) - h'(1), oo when a slope is infinite."""
        return oo if any(map(_infinite, self.slopes)) else self.slopes[0] - self.slopes[1]

    @property
    def sparsity(self) -> str:
        """full, faces or dense, as the slopes say."""
        if self.slopes[0] == oo:
            return "dense"
        return "faces" if self.slopes[1] == -oo else "full"

    @property
    def bounded(self) -> bool:
        """Whether h is finite at both ends."""
        return not any(map(_infinite, self.values))

    @property
    def affine(self) -> Expr:
        """What normalisation takes away, so that h is 0 at the ends where it is finite."""
        low, high = self.values
        if self.bounded:
            return low + (high - low) * t
        return low if not _infinite(low) else high if not _infinite(high) else S.Zero

    @property
    def normalised_slopes(self) -> tuple[Expr, Expr]:
        """The slopes after normalisation."""
        tilt = sympy.diff(self.affine, t)
        return _plus(self.slopes[0], -tilt), _plus(self.slopes[1], -tilt)

    def derivative(self, order: int = 0) -> Callable[[Any], Any]:
        """The normalised h, or one of its derivatives, as a function of an mpmath number in (0, 1)."""
        tilt = sympy.diff(self.affine, t, order) if order else self.affine
        functions = [(high, _function(_derivative(expr, order) - tilt)) for _, high, expr in self.pieces]

        def value(at: Any) -> Any:
            for high, function in functions:
                if at < _number(high):
                    return oracle._real(function(at))
            raise AssertionError(f"{at} is not inside (0, 1)")

        return value

    def oracle(self, inverse: Expr | None = None) -> oracle.Oracle:
        """The fifty-digit truth; a closed form of the inverse is used only if it passes the oracle's check."""
        *first, (_, _, last) = self.pieces
        whole = sympy.Piecewise(*((expr, t < high) for _, high, expr in first), (last, True)) if first else last
        return KinkedOracle(_sum(whole, -self.affine), t, self.normalised_slopes, inverse, self)

    def confirm(self) -> None:
        """h'' <= 0 on a grid, slopes that drop at kinks, and the limits at the ends: all seen in mpmath."""
        with mpmath.workdps(60):
            second = self.derivative(2)
            inside = [mpmath.mpf(k) / 40 + mpmath.mpf("1e-7") for k in range(40)]
            near = [mpmath.mpf(10) ** -k for k in (2, 3, 5, 8, 13)]
            floor = _number(self.floor)
            for x in (*inside, *near, *(1 - e for e in near)):
                bend = second(x)
                assert -bend >= floor * (1 - mpmath.mpf(10) ** -30), f"-h''({x}) = {-bend}, floor {floor}: {self.text}"
                assert bend < 0, f"h''({x}) = {bend}: {self.text}"
            for x in self.zeros:
                assert abs(second(_number(x))) < mpmath.mpf(10) ** -50, f"h''({x}) is not 0: {self.text}"
            self._confirm_joints()
        with mpmath.workdps(160):
            value, slope = self.derivative(0), self.derivative(1)
            for claim, function, at in (
                *zip(self.normalised_slopes, (slope, slope), (0, 1), strict=True),
                *zip((x if _infinite(x) else S.Zero for x in self.values), (value, value), (0, 1), strict=True),
            ):
                seen = [function(abs(at - mpmath.mpf(10) ** -k)) for k in (60, 120)]
                if _infinite(claim):
                    right = mpmath.sign(seen[1]) == (1 if claim == oo else -1) and abs(seen[1]) > 1.2 * abs(seen[0])
                else:
                    claim = _number(claim)
                    right = abs(seen[1] - claim) <= mpmath.mpf(10) ** -5 * max(1, abs(claim))
                    right = right and abs(seen[1] - claim) <= abs(seen[0] - claim) + mpmath.mpf(10) ** -50
                assert right, f"the limit {claim} at {at} is not seen, but {seen[1]}: {self.text}"

    def _confirm_joints(self) -> None:
        slope, value = self.derivative(1), self.derivative(0)
        e = mpmath.mpf(10) ** -40
        for (_, high, _), (low, _, _) in zip(self.pieces, self.pieces[1:], strict=False):
            assert high == low
            x = _number(high)
            drop = slope(x - e) - slope(x + e)
            assert abs(value(x - e) - value(x + e)) < mpmath.mpf(10) ** -30, f"h jumps at {high}: {self.text}"
            assert (drop > mpmath.mpf(10) ** -30) == (high in self.kinks), f"the slope at {high}: {self.text}"
            assert drop > -(mpmath.mpf(10) ** -30)

    def data(self) -> dict[str, Any]:
        """For json.dumps."""
        return {
            "h": self.text,
            "values": [str(x) for x in self.values],
            "slopes": [str(x) for x in self.slopes],
            "pieces": [[str(x) for x in piece] for piece in self.pieces],
            "floor": str(self.floor),
            "zeros": [str(x) for x in self.zeros],
            "kinks": [str(x) for x in self.kinks],
        }

    @classmethod
    def load(cls, data: Mapping[str, Any]) -> Known:
        """From `data`, which is read with SymPy's own parser: only for files of this repository."""
        return cls(
            h=_read(data["h"]),
            values=tuple(map(_read, data["values"])),
            slopes=tuple(map(_read, data["slopes"])),
            pieces=tuple(tuple(map(_read, piece)) for piece in data["pieces"]),
            floor=_read(data["floor"]),
            zeros=tuple(map(_read, data["zeros"])),
            kinks=tuple(map(_read, data["kinks"])),
        )


class KinkedOracle(oracle.Oracle):
    """The truth about an entropy whose prediction stays at a kink over a range of slopes."""

    def __init__(self, h: Expr, variable: Expr, slopes: tuple[Expr, Expr], inverse: Expr | None, known: Known) -> None:
        super().__init__(h, variable, slopes, None if known.kinks else inverse)
        self._rests: dict[int, list[tuple[Any, Any, Any]]] = {}
        self._known_entropy = known

    def _check_ends(self) -> None:
        """`Known.confirm` checks the slopes, also where h' comes to its limit as slowly as (1 - t)^(1/6)."""

    def inverse(self, s: Any, start: Any = None) -> tuple[Any, Any]:
        """q(s) and q'(s)."""
        for low, high, at in self._kinks():
            if low <= s <= high:
                return at, mpmath.mpf(0)
        return super().inverse(s, start)

    def _kinks(self) -> list[tuple[Any, Any, Any]]:
        """The slopes of -h on both sides of each kink, at the working precision."""
        known, digits = self._known_entropy, mpmath.mp.dps
        if known.kinks and digits not in self._rests:
            rates = [-sympy.diff(expr - known.affine, t) for _, _, expr in known.pieces]
            self._rests[digits] = [
                (_number(left.subs(t, piece[1])), _number(right.subs(t, piece[1])), _number(piece[1]))
                for left, right, piece in zip(rates, rates[1:], known.pieces, strict=False)
                if piece[1] in known.kinks
            ]
        return self._rests.get(digits, [])


def _read(text: str) -> Expr:
    return sympy.sympify(text, rational=True)


@functools.lru_cache(maxsize=256)
def _derivative(expr: Expr, order: int) -> Expr:
    return sympy.diff(_derivative(expr, order - 1), t) if order else expr


def _function(expr: Expr) -> Callable[[Any], Any]:
    """An expression in t as a function of mpmath numbers."""
    return sympy.lambdify(t, expr, modules=[{"erfinv": oracle._erfinv}, "mpmath"])


def _number(value: Expr) -> Any:
    """A SymPy constant at the working precision of mpmath."""
    return oracle._number(sympy.sympify(value))


def _infinite(value: Expr) -> bool:
    return value in (oo, -oo)  # is_infinite is None for some numbers, erfinv(1/2) among them


def _plus(one: Expr, two: Expr) -> Expr:
    """A sum that is infinite where a term is, and of no more than one sign."""
    return one if _infinite(one) else two if _infinite(two) else one + two


def _sum(*terms: Expr) -> Expr:
    return sympy.Add(*terms)


def smooth(
    h: Expr, values: tuple[Expr, Expr], slopes: tuple[Expr, Expr], floor: Expr = 0, zeros: tuple[Expr, ...] = ()
) -> Known:
    """A smooth part, with its limits at the ends."""
    h, floor, *rest = map(sympy.sympify, (h, floor, *values, *slopes, *zeros))
    return Known(h, (rest[0], rest[1]), (rest[2], rest[3]), ((S.Zero, S.One, h),), floor, tuple(rest[4:]))


def regular(h: Expr, floor: Expr = 0, zeros: tuple[Expr, ...] = ()) -> Known:
    """A smooth part that is analytic at both ends, so that its limits are what it equals there."""
    h = sympy.sympify(h)
    slope = sympy.diff(h, t)
    return smooth(h, (h.subs(t, 0), h.subs(t, 1)), (slope.subs(t, 0), slope.subs(t, 1)), floor, zeros)


# --- the rules by which parts are put together ---------------------------------------------------------


def weighted(weight: Expr, part: Known) -> Known:
    """A positive multiple."""
    return replace(
        part,
        h=weight * part.h,
        values=(weight * part.values[0], weight * part.values[1]),
        slopes=(weight * part.slopes[0], weight * part.slopes[1]),
        pieces=tuple((low, high, weight * expr) for low, high, expr in part.pieces),
        floor=weight * part.floor,
    )


def mixed(one: Known, two: Known) -> Known:
    """The sum of two parts."""
    cuts = sorted({cut for part in (one, two) for low, high, _ in part.pieces for cut in (low, high)})
    pieces = tuple(
        (low, high, _sum(_at(one, low, high), _at(two, low, high))) for low, high in zip(cuts, cuts[1:], strict=False)
    )
    return Known(
        h=_sum(one.h, two.h),
        values=(_plus(one.values[0], two.values[0]), _plus(one.values[1], two.values[1])),
        slopes=(_plus(one.slopes[0], two.slopes[0]), _plus(one.slopes[1], two.slopes[1])),
        pieces=pieces,
        floor=one.floor + two.floor,
        zeros=tuple(sorted(set(one.zeros) & set(two.zeros))),
        kinks=tuple(sorted({*one.kinks, *two.kinks})),
    )


def _at(part: Known, low: Expr, high: Expr) -> Expr:
    return next(expr for start, stop, expr in part.pieces if start <= low and high <= stop)


def sheared(part: Known, constant: Expr, slope: Expr) -> Known:
    """An affine term more, which changes neither the margin nor the sparsity."""
    tilt = constant + slope * t
    return replace(
        part,
        h=_sum(part.h, tilt),
        values=(_plus(part.values[0], constant), _plus(part.values[1], constant + slope)),
        slopes=(_plus(part.slopes[0], slope), _plus(part.slopes[1], slope)),
        pieces=tuple((low, high, _sum(expr, tilt)) for low, high, expr in part.pieces),
    )


def reflected(part: Known) -> Known:
    """t replaced by 1 - t."""
    return Known(
        h=part.h.subs(t, 1 - t),
        values=part.values[::-1],
        slopes=(-part.slopes[1], -part.slopes[0]),
        pieces=tuple((1 - high, 1 - low, expr.subs(t, 1 - t)) for low, high, expr in part.pieces[::-1]),
        floor=part.floor,
        zeros=tuple(1 - x for x in part.zeros),
        kinks=tuple(1 - x for x in part.kinks[::-1]),
    )


def glued(left: Known, right: Known, at: Expr, drop: Expr) -> Known:
    """The one part left of a point and the other right of it, moved so that h is continuous and h' drops by `drop`."""
    first, second = left.h, right.h
    rates = [sympy.diff(x, t).subs(t, at) for x in (first, second)]
    tilt = rates[0] - rates[1] - drop
    lift = first.subs(t, at) - second.subs(t, at) - tilt * at
    moved = sheared(right, lift, tilt)
    return Known(
        h=sympy.Piecewise((first, t < at), (moved.h, True)),
        values=(left.values[0], moved.values[1]),
        slopes=(left.slopes[0], moved.slopes[1]),
        pieces=((S.Zero, at, first), (at, S.One, moved.h)),
        floor=min(left.floor, right.floor),
        kinks=(at,) if drop else (),
    )


def expanded(part: Known) -> Known:
    """The same function, multiplied out."""
    return replace(part, h=sympy.expand(part.h)) if len(part.pieces) == 1 else part


# --- tables of parts -----------------------------------------------------------------------------------

c, a, b, r = sympy.symbols("c a b r", positive=True)  # c > 0, 0 < a < 1 < b, 0 < r < 1 in the tables

BINARY = -t * log(t) - (1 - t) * log(1 - t)

# Strictly concave atoms: h, its values and slopes at 0 and 1, and a lower bound of -h'' where one is at hand.
ATOMS: tuple[Known, ...] = (
    smooth(t * (1 - t), (0, 0), (1, -1), 2),
    smooth(-t * log(t), (0, 0), (oo, -1), 1),
    smooth(BINARY, (0, 0), (oo, -oo), 4),
    smooth(sqrt(t), (0, 1), (oo, S.Half), Rational(1, 4)),
    smooth(log(t), (-oo, 0), (oo, 1), 1),
    smooth(t - t**b, (0, 0), (1, 1 - b)),
    smooth(t**a, (0, 1), (oo, a), a * (1 - a)),
    smooth(t**a - t**b, (0, 0), (oo, a - b), a * (1 - a)),
    smooth(-(t ** (-a)), (-oo, -1), (oo, a), a * (1 + a)),
    smooth(t * sqrt(1 - t), (0, 0), (1, -oo), Rational(1, 2)),
    smooth(sqrt(t * (1 - t)), (0, 0), (oo, -oo), 2),
    smooth(sqrt(1 - t**2), (1, 0), (0, -oo), 1),
    smooth(sympy.acos(t), (pi / 2, 0), (-1, -oo)),
    smooth((1 + t) * log((1 + t) / 2) - t * log(t), (-log(2), 0), (oo, 0), S.Half),
    smooth(exp(-(sympy.erfinv(2 * t - 1) ** 2)), (0, 0), (oo, -oo)),
    smooth(-t * sympy.atan(c * t), (0, -sympy.atan(c)), (0, -sympy.atan(c) - c / (1 + c**2))),
    smooth(-sqrt(r**2 + (t - r) ** 2), (-sqrt(2) * r, -sqrt(r**2 + (1 - r) ** 2)),
           (1 / sqrt(2), (r - 1) / sqrt(r**2 + (1 - r) ** 2))),
    smooth(-((t - r) ** 4), (-(r**4), -((1 - r) ** 4)), (4 * r**3, -4 * (1 - r) ** 3), 0, (r,)),
    smooth(sin(pi * t) / pi, (0, 0), (1, -1)),
    smooth(t * (1 - t) * (2 - t), (0, 0), (2, -1)),
    smooth(-exp(c * t), (-1, -exp(c)), (-c, -c * exp(c)), c**2),
    smooth(-log(1 + exp(c * t)), (-log(2), -log(1 + exp(c))), (-c / 2, -c / (1 + exp(-c)))),
)  # fmt: skip

# Strictly concave functions of x > 0, or of lowest < x < highest, put together with x = p + q t.
x = sympy.Symbol("x", positive=True)
SCALARS: tuple[tuple[Expr, Expr | None], ...] = (  # the function and the end of its range, None where it has none
    (log(x), None),
    (sqrt(x), None),
    (-1 / x, None),
    (-x * log(x), None),
    (x**a, None),
    (-(x**b), None),
    (-exp(x) / 100, S(5)),
    (-sympy.cosh(x), S(5)),
    (sympy.atan(x), None),
    (sympy.tanh(x), S(5)),
    (sympy.erf(x), S(3)),
    (sympy.asinh(x), None),
    (-exp(-x), None),
    (x / (1 + x), None),
    (sin(x), S(3)),
    (cos(x), Rational(3, 2)),
    (-sympy.tan(x), Rational(3, 2)),
    (log(cos(x)), Rational(3, 2)),
    (log(sin(x)), S(3)),
    (-sympy.asin(x), S.One),
    (-sympy.atanh(x), S.One),
    (-sympy.loggamma(x), None),
    (sympy.LambertW(x), None),
    (log(log(1 + x)), None),
    (-1 / log(1 + x), None),
)

# Hills: strictly concave, 0 at both ends, so positive inside; and what a concave increasing function makes of them.
HILLS: tuple[Known, ...] = (
    smooth(t * (1 - t), (0, 0), (1, -1)),
    smooth(-t * log(t), (0, 0), (oo, -1)),
    smooth(BINARY, (0, 0), (oo, -oo)),
    smooth(sin(pi * t), (0, 0), (pi, -pi)),
    smooth(sqrt(t * (1 - t)), (0, 0), (oo, -oo)),
    smooth(t - t**b, (0, 0), (1, 1 - b)),
    smooth(t**a - t, (0, 0), (oo, a - 1)),
    smooth(t * sqrt(1 - t), (0, 0), (1, -oo)),
    smooth(t * (1 - t) * (2 - t), (0, 0), (2, -1)),
    smooth(log(1 + c * t) - t * log(1 + c), (0, 0), (c - log(1 + c), c / (1 + c) - log(1 + c))),
)
u = sympy.Symbol("u", nonnegative=True)
OUTER: tuple[tuple[Expr, Expr, Expr], ...] = (  # the function of u >= 0, its value and its slope at 0
    (log(1 + c * u), S.Zero, c),
    (sqrt(c + u), sqrt(c), 1 / (2 * sqrt(c))),
    (1 - exp(-c * u), S.Zero, c),
    (u / (1 + c * u), S.Zero, S.One),
    (sympy.atan(c * u), S.Zero, c),
    (sympy.asinh(c * u), S.Zero, c),
    (sympy.tanh(c * u), S.Zero, c),
    (sympy.erf(c * u), S.Zero, 2 * c / sqrt(pi)),
    (u**a, S.Zero, oo),
    (-1 / (c + u), -1 / c, 1 / c**2),
    (log(u), -oo, oo),
    (sqrt(u), S.Zero, oo),
    (log(1 + log(1 + c * u)), S.Zero, c),
)

# Kinked parts; each is concave, and strictly so together with any of the above.
KINKED: tuple[Known, ...] = (
    Known(-sympy.Abs(t - r), (-r, r - 1), (S.One, -S.One), ((S.Zero, r, t - r), (r, S.One, r - t)), kinks=(r,)),
    Known(sympy.Min(t, r), (S.Zero, r), (S.One, S.Zero), ((S.Zero, r, t), (r, S.One, r)), kinks=(r,)),
    Known(sympy.Min(t * (1 - r), r * (1 - t)), (S.Zero, S.Zero), (1 - r, -r),
          ((S.Zero, r, t * (1 - r)), (r, S.One, r * (1 - t))), kinks=(r,)),
    Known(sympy.Piecewise((t, t < r), (r, True)), (S.Zero, r), (S.One, S.Zero),
          ((S.Zero, r, t), (r, S.One, r)), kinks=(r,)),
    Known(-sympy.Max(0, t - r), (S.Zero, r - 1), (S.Zero, -S.One),
          ((S.Zero, r, S.Zero), (r, S.One, r - t)), kinks=(r,)),
    Known(-sympy.Max(0, t - r) ** 2, (S.Zero, -((1 - r) ** 2)), (S.Zero, 2 * r - 2),
          ((S.Zero, r, S.Zero), (r, S.One, -((t - r) ** 2)))),
)  # fmt: skip


def chosen(part: Known, values: Mapping[Expr, Expr]) -> Known:
    """A line of a table at these values of its constants."""

    def put(expr: Expr) -> Expr:
        return expr.subs(values)

    return Known(
        put(part.h), tuple(map(put, part.values)), tuple(map(put, part.slopes)),
        tuple(tuple(map(put, piece)) for piece in part.pieces), put(part.floor),
        tuple(map(put, part.zeros)), tuple(map(put, part.kinks)),
    )  # fmt: skip


# --- strategies ----------------------------------------------------------------------------------------


def rationals(top: int, *bottoms: int) -> st.SearchStrategy[Expr]:
    """Positive fractions k/q with k up to `top`."""
    return st.builds(Rational, st.integers(1, top), st.sampled_from(bottoms or (1, 2, 3, 5, 10)))


weights = st.just(S.One) | rationals(30)
insides = st.builds(Rational, st.integers(1, 19), st.just(20)) | st.builds(Rational, st.integers(1, 6), st.just(7))


@st.composite
def constants(draw: st.DrawFn) -> dict[Expr, Expr]:
    """Values of the constants in the tables."""
    return {
        c: draw(rationals(20, 1, 2, 4, 7)),
        a: Rational(draw(st.integers(1, 9)), 10),
        b: 1 + draw(rationals(40, 2, 3, 5, 10)),
        r: draw(insides),
    }


@st.composite
def atoms(draw: st.DrawFn) -> Known:
    """One line of ATOMS."""
    return chosen(draw(st.sampled_from(ATOMS)), draw(constants()))


@st.composite
def of_affine(draw: st.DrawFn) -> Known:
    """A concave function of p + q t."""
    function, top = draw(st.sampled_from(SCALARS))
    if top is None:
        start, step = draw(rationals(30, 10, 100, 3)), draw(rationals(30, 1, 2, 7, 10))
    else:
        start = top * Rational(draw(st.integers(1, 8)), 10)
        step = (top - start) * Rational(draw(st.integers(1, 9)), 10)
    function = function.subs(draw(constants()))
    return regular(function.subs(x, start + step * t))


@st.composite
def compositions(draw: st.DrawFn) -> Known:
    """A concave increasing function of a hill."""
    function, value, slope = draw(st.sampled_from(OUTER))
    known = draw(constants())
    hill = chosen(draw(st.sampled_from(HILLS)), {**known, c: draw(rationals(9, 1, 2))})
    function, value, slope = (expr.subs(known) for expr in (function, value, slope))
    h = function.subs(u, hill.h)
    return smooth(h, (value, value), (slope * hill.slopes[0], slope * hill.slopes[1]))


@st.composite
def squares(draw: st.DrawFn) -> tuple[Expr, tuple[Expr, ...], Expr]:
    """A polynomial square plus a constant that is often 0: the curvature, its zeros inside, its floor."""
    roots = draw(st.lists(insides | st.builds(Rational, st.integers(-9, 19), st.just(7)), min_size=0, max_size=2))
    scale = draw(rationals(5, 1, 2))
    floor = draw(st.sampled_from([S.Zero, S.Zero, Rational(1, 10**6), Rational(1, 1000), Rational(1, 10), S.One]))
    square = sympy.expand(scale * sympy.Mul(*((t - root) ** 2 for root in roots)) + floor)
    zeros = tuple(sorted({root for root in roots if 0 < root < 1})) if floor == 0 else ()
    return square, zeros, floor if roots else floor + scale


def _twice(polynomial: Expr, power: Expr) -> Expr:
    """-h for -h'' = polynomial * t^power with power > -1, multiplied out."""
    terms = sympy.Poly(polynomial, t).terms()
    return sympy.Add(*(k * t ** (n + power + 2) / ((n + power + 1) * (n + power + 2)) for (n,), k in terms))


@st.composite
def square_curvatures(draw: st.DrawFn) -> Known:
    """-h'' is a polynomial square plus a constant."""
    square, zeros, floor = draw(squares())
    return regular(-_twice(square, S.Zero), floor, zeros)


@st.composite
def square_power_curvatures(draw: st.DrawFn) -> Known:
    """-h'' is a polynomial square plus a constant, times a power of t."""
    square, zeros, _ = draw(squares())
    power = draw(st.sampled_from([Rational(k, 6) for k in (3, -3, 2, -2, 9, 14, -5)]))
    h = -_twice(square, power)
    slope = sympy.diff(h, t).subs(t, 1)
    return smooth(h, (0, h.subs(t, 1)), (0, slope), 0, zeros)


@st.composite
def square_exp_curvatures(draw: st.DrawFn) -> Known:
    """-h'' is a polynomial square plus a constant, times exp(k t)."""
    square, zeros, floor = draw(squares())
    k = draw(st.sampled_from([S.One, -S.One, S(2), Rational(-1, 2), S(-3)]))
    h = -square
    for _ in range(2):  # the integral of p exp(k t) is (p/k - p'/k^2 + p''/k^3 - ...) exp(k t)
        derivatives = [h]
        while derivatives[-1] != 0:
            derivatives.append(sympy.diff(derivatives[-1], t))
        h = sympy.expand(sympy.Add(*((-1) ** n * p / k ** (n + 1) for n, p in enumerate(derivatives))))
    return regular(h * exp(k * t), floor * min(S.One, exp(k)), zeros)


@st.composite
def power_curvatures(draw: st.DrawFn) -> Known:
    """-h'' is t^n, also with n between -2 and 0."""
    n = Rational(draw(st.integers(-11, 40)), 6)
    if n == -1:
        return smooth(t - t * log(t), (0, 1), (oo, 0), 1)
    h = -(t ** (n + 2)) / ((n + 1) * (n + 2))
    return smooth(h, (0, h.subs(t, 1)), (oo if n < -1 else 0, -1 / (n + 1)), 1 if n <= 0 else 0)


@st.composite
def other_curvatures(draw: st.DrawFn) -> Known:
    """-h'' is one of a few positive functions whose second integrals are elementary."""
    k, s = draw(rationals(24, 1, 2, 4)), Rational(draw(st.integers(-10, 10)), 10)
    lines = (
        regular(-exp(-k * t) / k**2, exp(-k)),  # exp(-k t)
        regular(t / k - (1 + k * t) * log(1 + k * t) / k**2, 1 / (1 + k)),  # 1/(1 + k t)
        regular(log(1 + k * t) / k**2, 1 / (1 + k) ** 2),  # 1/(1 + k t)^2
        regular(-(t**2) / 2 + s * cos(k * t) / k**2, 1 - abs(s)),  # 1 + s cos(k t)
        regular(log(k**2 + t**2) / 2 - t * sympy.atan(t / k) / k, 1 / (k**2 + 1)),  # 1/(k^2 + t^2)
        regular(-4 * (k + t) ** Rational(3, 2) / 3, 1 / sqrt(k + 1)),  # 1/sqrt(k + t)
        smooth(-4 * (1 - t) ** Rational(3, 2) / 3, (Rational(-4, 3), 0), (2, 0), 1),  # 1/sqrt(1 - t)
    )
    return draw(st.sampled_from(lines))


curvatures = st.one_of(
    square_curvatures(), power_curvatures(), other_curvatures(), square_power_curvatures(), square_exp_curvatures()
)
parts = st.one_of(atoms(), of_affine(), compositions(), curvatures)
# The families of entropies; each is drawn as often as the others.
FAMILIES: dict[str, Callable[[st.DrawFn], Known]] = {
    "mixture": lambda draw: functools.reduce(mixed, _weighted(draw, parts, 2, 3)),
    "atom": lambda draw: draw(atoms()),
    "of affine": lambda draw: functools.reduce(mixed, _weighted(draw, of_affine(), 1, 2)),
    "composition": lambda draw: functools.reduce(mixed, _weighted(draw, compositions(), 1, 2)),
    "curvature": lambda draw: expanded(functools.reduce(mixed, _weighted(draw, curvatures, 1, 2))),
    "kinked": lambda draw: functools.reduce(mixed, [*_weighted(draw, parts, 1, 2), *_weighted(draw, kinked(), 1, 2)]),
    "glued": lambda draw: draw(joined()),
}


def _weighted(draw: st.DrawFn, strategy: st.SearchStrategy[Known], least: int, most: int) -> list[Known]:
    return [weighted(draw(weights), part) for part in draw(st.lists(strategy, min_size=least, max_size=most))]


@st.composite
def kinked(draw: st.DrawFn) -> Known:
    """One line of KINKED."""
    return chosen(draw(st.sampled_from(KINKED)), draw(constants()))


@st.composite
def joined(draw: st.DrawFn) -> Known:
    """Two smooth parts joined at a point, where the slope drops, a little, or not at all."""
    drop = draw(st.sampled_from([S.Zero, Rational(1, 10**12), Rational(1, 10), S.One, S(7)]))
    left, right = draw(atoms() | curvatures), draw(atoms() | curvatures)
    return glued(left, right, draw(insides), drop)


@st.composite
def entropies(draw: st.DrawFn, family: str | None = None) -> Known:
    """A strictly concave function on (0, 1) with facts known by construction."""
    family = family or draw(st.sampled_from(sorted(FAMILIES)))
    part = FAMILIES[family](draw)
    if draw(st.booleans()) and draw(st.booleans()):
        part = reflected(part)
    if draw(st.booleans()) and draw(st.booleans()):
        part = sheared(part, S(draw(st.integers(-5, 5))), Rational(draw(st.integers(-50, 50)), 7))
    if draw(st.booleans()) and draw(st.booleans()):
        part = weighted(Rational(10) ** draw(st.sampled_from([-3, -2, 2, 3])), part)
    return part


# --- functions that are not strictly concave ---------------------------------------------------------------


@dataclass(frozen=True)
class Defect:
    """A function that is not strictly concave on (0, 1).

    `points` are three points in order where the middle one does not lie above the chord, or one where h is not
    real; `values` are the parameter values that show it, and `params` the ranges that are declared.
    """

    h: Expr
    why: str
    points: tuple[Expr, ...]
    params: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, Expr] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """What is handed to the compiler."""
        return str(self.h)

    def confirm(self) -> None:
        """The middle point does not lie above the chord, or h is not real: seen in mpmath."""
        h = self.h.subs(dict(self.values))
        function = _function(h)
        with mpmath.workdps(400):
            at = [_number(point) for point in self.points]
            assert all(0 < point < 1 for point in at), self
            if len(at) == 1:
                try:
                    value = function(at[0])
                except (ValueError, ZeroDivisionError):
                    return
                assert abs(mpmath.im(value)) > mpmath.mpf(10) ** -100, f"h({at[0]}) = {value} is real: {self.text}"
                return
            low, middle, high = at
            assert low < middle < high
            values = [oracle._real(function(point)) for point in at]
            chord = values[0] + (values[2] - values[0]) * (middle - low) / (high - low)
            above = values[1] - chord
            flat = self.why == "affine"
            small = mpmath.mpf(10) ** -300
            assert abs(above) <= small if flat else above < -small, f"h is {above} above a chord: {self.text}"

    def data(self) -> dict[str, Any]:
        """For json.dumps."""
        return {
            "h": self.text,
            "why": self.why,
            "points": [str(point) for point in self.points],
            "params": dict(self.params),
            "values": {name: str(value) for name, value in self.values.items()},
        }

    @classmethod
    def load(cls, data: Mapping[str, Any]) -> Defect:
        """From `data`, which is read with SymPy's own parser: only for files of this repository."""
        return cls(
            _read(data["h"]),
            data["why"],
            tuple(map(_read, data["points"])),
            data["params"],
            {name: _read(value) for name, value in data["values"].items()},
        )


def around(at: Expr, reach: Expr | None = None) -> tuple[Expr, Expr, Expr]:
    """A point and its two neighbours, very close unless told otherwise."""
    reach = Rational(1, 10**60) if reach is None else reach
    return at - reach, at, at + reach


def rational(number: Any, digits: int = 30) -> Expr:
    """A fraction close to an mpmath number."""
    with mpmath.workdps(60):
        scale = mpmath.mpf(10) ** (digits - int(mpmath.floor(mpmath.log10(abs(number)))))
        return Rational(int(mpmath.nint(number * scale))) / Rational(int(mpmath.nint(scale)))


k = sympy.Symbol("k", positive=True)
z = sympy.Symbol("z", real=True)
# Functions of z = k (t - place) that bend upwards somewhere, and a z where they do.
BUMPS: tuple[tuple[Expr, Expr], ...] = (
    (exp(-(z**2)), Rational(5, 4)),
    (1 / (1 + z**2), S.One),
    (sqrt(1 + z**2), S.Zero),
    (log(1 + exp(z)), S.Zero),
    (sympy.tanh(z), Rational(-2, 3)),
    (sympy.atan(z), Rational(-1, 2)),
    (sympy.erf(z), Rational(-2, 3)),
    (sin(z), Rational(-3, 2)),
    (-log(1 + z**2), Rational(3, 2)),
    (sympy.sech(z).rewrite(exp), Rational(3, 2)),
)
EXCESS = (Rational(1, 10**6), Rational(1, 1000), Rational(1, 10), S.One, S(10))


@st.composite
def places(draw: st.DrawFn) -> Expr:
    """A point of (0, 1), often close to an end."""
    near = Rational(1, 10 ** draw(st.integers(2, 8)))
    return draw(st.sampled_from([near, 1 - near])) if draw(st.integers(0, 3)) == 0 else draw(insides)


plain = st.builds(lambda w, part: weighted(w, part), weights, st.one_of(atoms(), of_affine(), curvatures))


def _curvature(h: Expr, at: Expr) -> Any:
    """h'' at a point, in mpmath."""
    with mpmath.workdps(60):
        return oracle._real(_function(_derivative(h, 2))(_number(at)))


def _bump(draw: st.DrawFn) -> tuple[Expr, Expr, Expr, Expr]:
    """A concave base, a bump, the amplitude from which their sum bends upwards at a point, and that point."""
    base = draw(plain).h
    place = draw(places())
    function, where = draw(st.sampled_from(BUMPS))
    room = min(place, 1 - place)
    sharp = S(10 ** draw(st.integers(0, 8)))
    while sharp * room < 4 * max(1, abs(where)):
        sharp *= 10
    at = place + where / sharp
    bump = function.subs(z, sharp * (t - place))
    needed = -_curvature(base, at) / _curvature(bump, at)
    assume(mpmath.isfinite(needed) and needed > 0)  # the base may be too flat or too steep there for any number
    return base, bump, rational(needed * (1 + mpmath.mpf(10) ** -12)), at


@st.composite
def bumps(draw: st.DrawFn) -> Defect:
    """A concave function with a bump, wide to very narrow, that bends a little or a lot too much."""
    base, bump, amplitude, at = _bump(draw)
    return Defect(_sum(base, amplitude * (1 + draw(st.sampled_from(EXCESS))) * bump), "bump", around(at))


@st.composite
def bump_families(draw: st.DrawFn) -> Defect:
    """A parameter scales the bump: concave over most of its range, or over part of it."""
    base, bump, amplitude, at = _bump(draw)
    excess = draw(st.sampled_from(EXCESS[1:]))
    scale = sympy.Symbol("alpha")
    top = 1 + excess
    end = draw(st.sampled_from(["<", "<="]))
    value = 1 + excess * Rational(999, 1000)
    h = _sum(base, scale * amplitude * bump)
    return Defect(h, "family", around(at), {"alpha": f"0 <= alpha {end} {top}"}, {"alpha": value})


@st.composite
def dips(draw: st.DrawFn) -> Defect:
    """The curvature is a polynomial square less a small number, or has two close roots, or a factor more."""
    near = Rational(1, 10 ** draw(st.integers(1, 12)))
    at = draw(places())
    if draw(st.booleans()):
        square = sympy.expand((t - at) ** 2 - near * min(at, 1 - at) ** 2)
    else:  # it changes sign close to an end
        at, square = near / 2, t - near
    power = draw(st.sampled_from([S.Zero, S.Zero, Rational(1, 2), Rational(5, 3)]))
    h = draw(weights) * -_twice(square, power)
    found = Defect(h, "dip", around(at, min(at, 1 - at) / 10**60))
    return _flipped(found) if draw(st.booleans()) else found


def _flipped(defect: Defect) -> Defect:
    return replace(defect, h=defect.h.subs(t, 1 - t), points=tuple(1 - point for point in defect.points[::-1]))


# Concave but for a neighbourhood of 0, about as wide as `near`: the function, as an expression in t and `near`.
near = sympy.Symbol("near", positive=True)
AT_AN_END: tuple[Expr, ...] = (
    t * (1 - t) + 4 * near * t * log(t),
    t * (1 - t) + 8 * sqrt(near) * t ** Rational(3, 2),
    sin(t) - t**2 + 8 * near**2 / (t + near),
    sqrt(t + near) - t**2 - sqrt(near) * log(t + near),
    -exp(t) + 9 * near * t * log(t),
)


@st.composite
def end_bends(draw: st.DrawFn) -> Defect:
    """Concave except very close to an end."""
    size = Rational(1, 10 ** draw(st.integers(1, 24)))
    h = draw(st.sampled_from(AT_AN_END)).subs(near, size)
    found = Defect(h, "bends upwards at an end", around(size / 10, size / 10**60))
    return _flipped(found) if draw(st.booleans()) else found


# Kinks that rise by 2 s, s, s, s at r; with any smooth concave function.
s = sympy.Symbol("s", positive=True)
RISES: tuple[Expr, ...] = (
    s * sympy.Abs(t - r),
    s * sympy.Max(t, r),
    -s * sympy.Min(t, r),
    sympy.Piecewise((S.Zero, t < r), (s * (t - r), True)),
    s * sympy.Max(0, r - t, 2 * r - 2 * t),
)
# Jumps by s at r.
JUMPS: tuple[Expr, ...] = (
    s * sympy.sign(t - r) / 2,
    sympy.Piecewise((S.Zero, t < r), (s, True)),
    sympy.Piecewise((s, t <= r), (S.Zero, True)),
)


@st.composite
def rises(draw: st.DrawFn) -> Defect:
    """A kink where the slope rises, by a lot or by very little."""
    at, size = draw(places()), Rational(1, 10 ** draw(st.sampled_from([0, 1, 3, 6, 12, 20, 28, 32, 40])))
    h = _sum(draw(plain).h, draw(st.sampled_from(RISES)).subs({r: at, s: size}))
    return Defect(h, "rising kink", around(at, Rational(1, 10**120)))


@st.composite
def jumps(draw: st.DrawFn) -> Defect:
    """A jump, of a lot or of very little."""
    at, size = draw(places()), Rational(1, 10 ** draw(st.sampled_from([0, 1, 3, 6, 12, 20, 28, 32, 40])))
    function = draw(st.sampled_from(JUMPS)).subs({r: at, s: size})
    tiny = Rational(1, 10**120)
    low = at - tiny if _evaluated(function, at - tiny) < _evaluated(function, at + tiny) else at + tiny
    other = low + (at - low) * 3
    step = (low - at) / 2
    return Defect(_sum(draw(plain).h, function), "jump", tuple(sorted((low + step, low, other))))


def _evaluated(expr: Expr, at: Expr) -> Expr:
    return expr.subs(t, at)


# Poles at r; with any smooth concave function.
POLES: tuple[Expr, ...] = (
    -1 / (t - r) ** 2,
    log(sympy.Abs(t - r)),
    log((t - r) ** 2),
    1 / (t - r),
    -1 / (t - r),
    -1 / sqrt(sympy.Abs(t - r)),
    1 / sin(t - r),
    1 / sympy.tan(t - r),
    -1 / log(t + 1 - r) ** 2,
)


@st.composite
def poles(draw: st.DrawFn) -> Defect:
    """A pole inside (0, 1), far away from which h may well be concave."""
    at, size = draw(insides), Rational(1, 10 ** draw(st.sampled_from([0, 1, 3, 6, 12])))
    base, pole = draw(plain).h, size * draw(st.sampled_from(POLES)).subs(r, at)
    e = Rational(1, 10**40)
    rising = bool(sympy.N(pole.subs(t, at + e), 60) > 0)  # whether it tends to +oo from the right
    points = (at + e, at + 2 * e, at + 3 * e) if rising else (at - e, at + e / 1000, at + e)
    return Defect(_sum(base, pole), "pole", points)


# Functions that are not real left of r, or right of it.
UNDEFINED: tuple[tuple[Expr, bool], ...] = (
    (sqrt(t - r), True),
    (log(t - r), True),
    ((t - r) ** Rational(1, 3), True),
    (sympy.acos(t / r), False),
    (-sympy.asin(t / r), False),
    (sqrt(r - t), False),
    (log(r - t), False),
    (log(1 - t / r), False),
    (-sympy.atanh(t / r), False),
    (-t * log(1 - t**2 / r**2), False),
)


@st.composite
def undefined(draw: st.DrawFn) -> Defect:
    """Not real on a part of (0, 1), which may be small."""
    gap = Rational(1, 10 ** draw(st.sampled_from([1, 1, 2, 3, 6, 9])))
    function, left = draw(st.sampled_from(UNDEFINED))
    at = gap if left else 1 - gap
    point = gap / 2 if left else 1 - gap / 2
    return Defect(_sum(draw(plain).h, draw(weights) * function.subs(r, at)), "not real", (point,))


@st.composite
def flat(draw: st.DrawFn) -> Defect:
    """Affine on a part of (0, 1), which may be short, or on all of it."""
    at, width = draw(insides), Rational(1, 10 ** draw(st.sampled_from([1, 2, 3, 6, 9, 15])))
    width = min(width, (1 - at) / 2)
    end = at + width
    functions = (
        sympy.Min(t * (1 - at), at * (1 - t)),
        -(sympy.Max(0, at - t) ** 2) - sympy.Max(0, t - end) ** 2,
        sympy.Piecewise((-((t - at) ** 2), t < at), (S.Zero, t < end), (-((t - end) ** 3), True)),
        sympy.Piecewise((sqrt(t / at), t < at), (S.One + (t - at) / (3 * at), t < end),
                        (S.One + width / (3 * at) - (t - end) ** 2, True)),
        draw(weights) * t + at,
        -sympy.Abs(t - at) - sympy.Max(0, t - end),
        (t - at) ** 2 - t**2,
    )  # fmt: skip
    h = draw(st.sampled_from(functions)) + (draw(st.integers(-3, 3)) * t)
    return Defect(h, "affine", around(at + width / 2, width / 10))


# Families that are concave for some values in the declared range only: h, ranges, values and a place that show it.
alpha = sympy.Symbol("alpha")
FAMILY_DEFECTS: tuple[tuple[Expr, str, Expr, Expr], ...] = (
    (t - t**alpha, "alpha > 1/2", Rational(3, 4), S.Half),
    (t - t**alpha, "99/100 < alpha < 3", Rational(199, 200), S.Half),
    (t - t**alpha, "alpha >= 1", S.One, S.Half),
    (t**alpha - t, "0 < alpha < 101/100", Rational(201, 200), S.Half),
    ((t - t**alpha) / (alpha - 1), "-1 < alpha < 3", Rational(-1, 2), S.Half),
    (t * (1 - t) + alpha * t**2, "0 < alpha < 1001/1000", Rational(20009, 20000), S.Half),
    (t * (1 - t) + alpha * t**2, "0 <= alpha <= 1001/1000", Rational(1001, 1000), S.Half),
    (t * (1 - t) + alpha * t**3, "0 < alpha < 1/2", Rational(49, 100), Rational(999, 1000)),
    (-t * log(t) + alpha * t**2, "-1 < alpha < 51/100", Rational(509, 1000), Rational(9999, 10000)),
    (sin(alpha * t), "0 < alpha < 10/3", Rational(33, 10), Rational(99, 100)),
    (t * (1 - t) + alpha * sin(10 * t) / 100, "-21/10 < alpha < 2", Rational(-209, 100), Rational(157, 1000)),
    (-cos(alpha * t), "2 < alpha < 4", S(3), Rational(1, 10)),
    (log(1 + alpha * t), "-1/2 < alpha < 1", S.Zero, S.Half),
    (sqrt(t + alpha), "-1/100 < alpha < 1", Rational(-1, 200), Rational(1, 1000)),
    (-((t - alpha) ** 2) * (1 - alpha), "0 < alpha < 1001/1000", Rational(20001, 20000), S.Half),
    (t * (1 - t) - alpha * t**2, "alpha > -1001/1000", Rational(-10001, 10000), S.Half),
    (t**alpha * (1 - t) ** alpha, "0 < alpha < 11/10", Rational(109, 100), Rational(1, 10**6)),
    (-exp(alpha * t) / alpha, "alpha > -1", Rational(-1, 2), S.Half),
)


@st.composite
def families(draw: st.DrawFn) -> Defect:
    """One line of FAMILY_DEFECTS, perhaps with an affine term."""
    h, span, value, at = draw(st.sampled_from(FAMILY_DEFECTS))
    h = draw(weights) * h + draw(st.integers(-5, 5)) * t
    reach = at / 10**60
    member = sympy.simplify(sympy.diff(h.subs(alpha, value), t, 2)) if not value.is_zero else S.Zero
    real = not (h.has(sqrt(t + alpha)) and at + value < 0)
    points = around(at, reach) if real else (at,)
    return Defect(h, "affine" if member == 0 else "family", points, {"alpha": span}, {"alpha": value})


DEFECTS: dict[str, st.SearchStrategy[Defect]] = {
    "bump": bumps(),
    "bump family": bump_families(),
    "dip": dips(),
    "end": end_bends(),
    "rising kink": rises(),
    "jump": jumps(),
    "pole": poles(),
    "undefined": undefined(),
    "flat": flat(),
    "family": families(),
}


@st.composite
def defects(draw: st.DrawFn, kind: str | None = None) -> Defect:
    """A function on (0, 1) that is not strictly concave, by construction."""
    return draw(DEFECTS[kind or draw(st.sampled_from(sorted(DEFECTS)))])
