"""Splits an entropy at its kinks: where Abs, Min, Max, sign or Piecewise switch, into smooth pieces."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, replace

import sympy
from sympy import S

from . import truth
from .deadline import on_timeout
from .errors import UnsupportedError

X = sympy.Symbol("x", positive=True)
MOST_ROOT = 12  # of t, in powers between which h switches
SWITCHING = (sympy.Abs, sympy.Min, sympy.Max, sympy.sign, sympy.Piecewise, sympy.Heaviside)
MOST_PIECES = 32


@functools.lru_cache(maxsize=64)
def derivative(f: sympy.Expr, t: sympy.Symbol, order: int) -> sympy.Expr:
    """sympy.diff, which several stages ask of the same function; sinh/cosh, which overflow, become tanh."""
    found = sympy.diff(f, t, order)
    return found.replace(_is_quotient, _as_tanh) if found.has(sympy.sinh) and found.has(sympy.cosh) else found


def _is_quotient(expr: sympy.Expr) -> bool:
    powers = expr.as_powers_dict() if isinstance(expr, sympy.Mul) else {}
    return any(isinstance(f, sympy.cosh) and powers.get(sympy.sinh(*f.args), 0) == -k != 0 for f, k in powers.items())


def _as_tanh(product: sympy.Expr) -> sympy.Expr:
    powers = product.as_powers_dict()
    for f, k in list(powers.items()):
        if isinstance(f, sympy.cosh) and powers.get(sympy.sinh(*f.args), 0) == -k:
            product = product * sympy.tanh(*f.args) ** -k / (sympy.sinh(*f.args) ** -k * f**k)
    return product


on_timeout(derivative.cache_clear)


@dataclass(frozen=True)
class Piece:
    """A smooth expression that equals h on low < t < high, where ends may be infinite.

    `steady` are switching functions, on parts of the piece, whose zeros were searched for and not found by an exact
    method: that h is this expression rests on a proof, elsewhere, that each has no zero inside its part. `joints` are
    places inside where h switches between equal expressions, and may have another value.
    """

    low: sympy.Expr
    high: sympy.Expr
    expr: sympy.Expr
    steady: tuple[Piece, ...] = ()
    joints: tuple[sympy.Expr, ...] = ()

    def point(self, x: sympy.Expr) -> sympy.Expr:
        """The t that a coordinate 0 < x < 1 of the piece stands for; it grows with x."""
        if self.low.is_finite and self.high.is_finite:
            return self.low + (self.high - self.low) * x
        if self.low.is_finite:
            return self.low + x / (1 - x)
        return self.high - (1 - x) / x if self.high.is_finite else 1 / (1 - x) - 1 / x

    def place(self, x: float) -> float:
        """The same for a float of [0, 1], whose ends may stand for infinities."""
        if x <= 0.0 or x >= 1.0:
            return float(self.low if x <= 0.0 else self.high)
        return float(self.point(sympy.Float(x)))

    def slope(self, t: sympy.Symbol, end: sympy.Expr, order: int = 1) -> sympy.Expr:
        """h', or a higher derivative, at an end of the piece: the limit from inside where the formula is singular."""
        found = sympy.diff(self.expr, t, order)
        there = found.subs(t, end)
        if not there.has(sympy.nan, sympy.zoo):
            return there
        return sympy.limit(found, t, end, "-" if end == self.high else "+")

    @property
    def halves(self) -> tuple[Piece, ...]:
        """The piece itself, or both sides of 0 where it has no end at all: proofs are easier on each."""
        if self.low.is_finite or self.high.is_finite:
            return (self,)
        return replace(self, high=S.Zero), replace(self, low=S.Zero)

    def stretched(self, t: sympy.Symbol, x: sympy.Symbol, order: int = 0) -> sympy.Expr:
        """h, or a derivative of it up to a positive factor, as a function of the coordinate 0 < x < 1."""
        if self.low.is_finite and self.high.is_finite:
            return derivative(self.expr.subs(t, self.point(x)), x, order)
        return derivative(self.expr, t, order).subs(t, self.point(x))


def split(h: sympy.Expr, t: sympy.Symbol, low: sympy.Expr = S.Zero, high: sympy.Expr = S.One) -> tuple[Piece, ...]:
    """The smooth pieces of h on (low, high), in order; neighbours with the same expression are joined."""
    pieces: list[Piece] = []
    for piece in _split(Piece(low, high, h), t):
        if pieces and pieces[-1].expr == piece.expr:
            left = pieces.pop()
            joints = (*left.joints, piece.low, *piece.joints)
            pieces.append(replace(left, high=piece.high, steady=left.steady + piece.steady, joints=joints))
        else:
            pieces.append(piece)
    return tuple(pieces)


def _split(piece: Piece, t: sympy.Symbol) -> list[Piece]:
    node = _innermost(piece.expr, t)
    if node is None:
        return [replace(piece, steady=tuple(replace(f, low=piece.low, high=piece.high) for f in piece.steady))]
    roots = {function: _roots(function, t, piece) for function in _switches(node)}
    steady = piece.steady + tuple(Piece(piece.low, piece.high, f) for f, (_, exact) in roots.items() if not exact)
    cuts = _sorted({root for found, _ in roots.values() for root in found})
    ends = [piece.low, *cuts, piece.high]
    if len(ends) > MOST_PIECES:
        raise UnsupportedError(f"{node} switches at more than {MOST_PIECES} places; use a simpler entropy")
    found: list[Piece] = []
    for low, high in zip(ends, ends[1:], strict=False):
        cell = Piece(low, high, piece.expr, steady)
        smooth = piece.expr.xreplace({node: _active(node, t, cell)})
        found.extend(_split(replace(cell, expr=smooth), t))
    return found


def _sorted(places: set[sympy.Expr]) -> list[sympy.Expr]:
    """Numbers in order, each once, however close they are."""

    def compare(a: sympy.Expr, b: sympy.Expr) -> int:
        order = truth.sign(a - b)
        if order is None:
            raise UnsupportedError(f"could not tell whether h switches at {a} or at {b} first; use a simpler entropy")
        return order

    ordered: list[sympy.Expr] = []
    for place in sorted(places, key=functools.cmp_to_key(compare)):
        if not ordered or compare(ordered[-1], place) != 0:
            ordered.append(place)
    return ordered


def _innermost(expr: sympy.Expr, t: sympy.Symbol) -> sympy.Expr | None:
    """What switches first, if anything does; what depends on parameters only does not."""
    nodes = [node for node in sympy.postorder_traversal(expr) if isinstance(node, SWITCHING)]
    nodes = [node for node in nodes if node.has(t) or not node.free_symbols]
    return nodes[0] if nodes else None


def _switches(node: sympy.Expr) -> list[sympy.Expr]:
    """The functions whose zeros are where the node switches."""
    if isinstance(node, (sympy.Abs, sympy.sign, sympy.Heaviside)):
        return [node.args[0]]
    if isinstance(node, sympy.Piecewise):
        relations = {r for _, condition in node.args for r in condition.atoms(sympy.core.relational.Relational)}
        return [r.lhs - r.rhs for r in relations]
    return [a - b for i, a in enumerate(node.args) for b in node.args[i + 1 :]]


def _roots(function: sympy.Expr, t: sympy.Symbol, piece: Piece) -> tuple[list[sympy.Expr], bool]:
    """The exact zeros of a switching function inside the piece, and whether it is proved that there are no others."""
    if function.free_symbols - {t}:
        raise UnsupportedError(
            f"the place where {function} changes sign moves with a parameter; bind the parameter first"
        )
    if not function.has(t):
        return [], True
    k = _common_root(function, t)
    try:  # a polynomial in t**(1/k) has exact zeros, too
        polynomial = sympy.Poly(function, t) if k == 1 else sympy.Poly(sympy.expand(function.subs(t, X**k)), X)
        candidates = sympy.real_roots(polynomial) if polynomial.degree() > 0 else []
        candidates = [root**k for root in candidates if k == 1 or root.is_positive]
    except (sympy.PolynomialError, NotImplementedError):
        try:
            candidates = sympy.solve(function, t)
        except Exception:  # SymPy's solvers raise many kinds; the count below decides
            candidates = []
    else:
        return [root for root in set(candidates) if _inside(root, piece)], True
    roots = {root for root in candidates if _inside(root, piece)}
    for _ in range(4):
        more = _other_roots(roots, function, t, piece)
        if more is None:
            break
        if not more:
            return list(roots), False
        roots |= more
    raise UnsupportedError(f"could not find exactly where {function} changes sign in ({piece.low}, {piece.high})")


def _common_root(function: sympy.Expr, t: sympy.Symbol) -> int:
    """The k for which the powers of t > 0 in a function are whole powers of t**(1/k); 1 where there is no small one."""
    exponents = [power.exp for power in function.atoms(sympy.Pow) if power.base == t]
    k = math.lcm(*(int(exponent.q) for exponent in exponents if exponent.is_Rational))
    return k if t.is_positive and k <= MOST_ROOT else 1


def _other_roots(roots: set[sympy.Expr], function: sympy.Expr, t: sympy.Symbol, piece: Piece) -> set[sympy.Expr] | None:
    """Simple roots besides the known ones, by a search of all that is between those; None if others are there."""
    from .search import search_positive

    ends = [piece.low, *_sorted(roots), piece.high]
    x = sympy.Symbol("x", positive=True)
    found = set()
    for low, high in zip(ends, ends[1:], strict=False):
        cell = Piece(low, high, function)
        middle = cell.point(S.Half)
        value = truth.evaluate(function, {t: middle}, digits=30)
        suspects = [middle]
        if abs(value) > 0:
            other = -function.subs(t, cell.point(x)) * (1 if value > 0 else -1)
            search = search_positive(
                other, x, confirm=lambda at, f=other: int(truth.evaluate(f, {x: at}, digits=60) > 0), seconds=1.0
            )
            if search.violation is not None or not search.complete:
                return None
            inside = [box for box in search.open_boxes if box[0] > 1e-6 and box[1] < 1 - 1e-6]
            suspects = [sympy.Rational(cell.place((a + b) / 2)).limit_denominator(1000) for a, b in inside]
        for root in suspects:  # it may touch 0 without a change of sign
            if not _inside(root, piece) or truth.sign(function.subs(t, root)) != 0:
                return None
            found.add(root)
    return found


def _inside(root: sympy.Expr, piece: Piece) -> bool:
    above = not piece.low.is_finite or truth.sign(root - piece.low) == 1
    return bool(root.is_real) and above and (not piece.high.is_finite or truth.sign(piece.high - root) == 1)


def _active(node: sympy.Expr, t: sympy.Symbol, cell: Piece) -> sympy.Expr:
    """What the node equals on a cell without switches inside: what it is in the middle, to digits that resolve it."""
    where, digits = cell.point(S.Half), truth.DIGITS
    if (cell.high - cell.low).is_finite:
        digits += 3 * max(0, -int(sympy.log(abs(sympy.N(cell.high - cell.low, 15)), 10)))

    def value(expr: sympy.Expr) -> sympy.Expr:
        return truth.evaluate(expr, {t: where}, digits)

    if isinstance(node, (sympy.Abs, sympy.sign, sympy.Heaviside)):
        inner = node.args[0]
        positive = value(inner) > 0
        if isinstance(node, sympy.Abs):
            return inner if positive else -inner
        return S.One if positive else (S.Zero if isinstance(node, sympy.Heaviside) else S.NegativeOne)
    if isinstance(node, sympy.Piecewise):
        for expr, condition in node.args:
            holds = condition.subs(t, sympy.N(where, digits))
            if holds not in (sympy.true, sympy.false):
                raise UnsupportedError(f"the condition {condition} cannot be decided; use comparisons in {t}")
            if holds == sympy.true:
                return expr
        raise UnsupportedError(f"{node} has no value at t = {sympy.N(where, 6)}; add a last branch (..., True)")
    choose = min if isinstance(node, sympy.Min) else max
    return choose(node.args, key=value)
