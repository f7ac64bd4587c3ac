"""Single members of a family, inside its ranges, at which its formulas change.

At such a member something vanishes that h divides by, or takes a root or a logarithm of: for all t, as in
(t - t**a)/(a - 1) at a = 1, or at an end of the interval, as in sqrt(t + a**2) at a = 0. What holds for all the
others need not hold there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import sympy

from . import truth
from .boundary import near_end, power_terms
from .deadline import Deadline, factored
from .ranges import Range
from .rewrite import is_awkward
from .signs import prove_sign, singularities

MOST_DERIVATIVES = 4  # in search of one that is not 0 at an end
MOST_DEGREE = 12


@dataclass(frozen=True)
class Exceptional:
    """Values of single parameters, by symbol; and expressions that may vanish at members that were not found.

    Where one of `anywhere` vanishes all of h may change, where one of `at_ends` does only its limits.
    """

    members: tuple[tuple[sympy.Symbol, sympy.Expr], ...] = ()
    anywhere: tuple[sympy.Expr, ...] = ()
    at_ends: tuple[sympy.Expr, ...] = ()

    @property
    def doubt(self) -> sympy.Expr | None:
        """An expression that, where it vanishes, may change what h does at its ends."""
        return next(iter((*self.anywhere, *self.at_ends)), None)


NONE = Exceptional()


def find(
    given: sympy.Expr,
    t: sympy.Symbol,
    ends: Sequence[sympy.Expr],
    ranges: dict[sympy.Symbol, Range],
    opened: Callable[[sympy.Expr], sympy.Expr],
    deadline: Deadline,
) -> Exceptional:
    """The exceptional members of a family with these ranges; `opened` puts in positive coordinates."""
    everywhere, at_ends = [], []
    for condition in singularities(given):
        if not condition.has(t):
            everywhere.append(condition)
        elif len(condition.free_symbols) > 1:
            at_ends += [part for end in ends for part in _leading(condition, t, end)]
    members: dict[tuple[sympy.Symbol, sympy.Expr], None] = {}
    unresolved: list[list[sympy.Expr]] = [[], []]
    for parts, unknown in zip((everywhere, at_ends), unresolved, strict=True):
        for part in dict.fromkeys(part for part in parts if part.free_symbols):
            try:
                members |= dict.fromkeys(deadline.run(_roots, part, t, ranges, opened, deadline, share=0.1))
            except Exception:  # also StepTimeout
                unknown.append(part)
    return Exceptional(tuple(members), *map(tuple, unresolved))


def _leading(f: sympy.Expr, t: sympy.Symbol, end: sympy.Expr) -> Iterator[sympy.Expr]:
    """What f behaves like at an end, up to a function of t: the first coefficient that is not 0, or f itself."""
    e = sympy.Dummy("e", positive=True)
    near = near_end(f, t, end, e)
    terms = None if is_awkward(near) else power_terms(sympy.expand(near), e)
    if terms is not None:
        total: dict[sympy.Expr, sympy.Expr] = {}
        for coefficient, power in terms:
            total[power] = total.get(power, sympy.S.Zero) + coefficient
        if all(power.is_Rational for power in total):
            yield next(c for c in (total[power] for power in sorted(total)) if c != 0)
        else:  # whichever leads
            yield from total.values()
        return
    for order in range(MOST_DERIVATIVES):
        value = sympy.diff(near, e, order).subs(e, 0)
        if value.has(sympy.nan, sympy.zoo, sympy.oo, -sympy.oo):
            break
        if value != 0:
            yield value
            return
    yield f


def _roots(
    part: sympy.Expr,
    t: sympy.Symbol,
    ranges: dict[sympy.Symbol, Range],
    opened: Callable[[sympy.Expr], sympy.Expr],
    deadline: Deadline,
) -> list[tuple[sympy.Symbol, sympy.Expr]]:
    """Where a part vanishes inside the ranges; ValueError where that is not known, or not at single values."""
    found: list[tuple[sympy.Symbol, sympy.Expr]] = []
    for factor in (power.as_base_exp()[0] for power in sympy.Mul.make_args(factored(part))):
        if not factor.free_symbols:
            continue
        polynomial = _polynomial(factor, t)
        if polynomial is None:
            if not _is_steady(factor, t, opened, Deadline(min(0.1 * deadline.seconds, deadline.left()))):
                raise ValueError(f"where {factor} vanishes is not known")
            continue
        symbol = polynomial.gen
        inside = [root for root in polynomial.real_roots() if _is_inside(root, ranges[symbol])]
        if any(root.has(sympy.CRootOf) for root in inside):
            raise ValueError(f"a zero of {factor} has no formula")
        found += [(symbol, root) for root in inside]
    return found


def _polynomial(factor: sympy.Expr, t: sympy.Symbol) -> sympy.Poly | None:
    """The factor as a polynomial in one parameter whose zeros can be told exactly, if it is one."""
    symbols = factor.free_symbols
    if len(symbols) > 1 or t in symbols or not factor.is_polynomial(*symbols):
        return None
    polynomial = sympy.Poly(factor, *symbols)
    rational = polynomial.domain.is_QQ or polynomial.domain.is_ZZ
    return polynomial if rational and polynomial.degree() <= MOST_DEGREE else None


def _is_steady(f: sympy.Expr, t: sympy.Symbol, opened: Callable[[sympy.Expr], sympy.Expr], deadline: Deadline) -> bool:
    """Is it proved that f has no zero? The prover knows most of a variable in (0, 1)."""
    if len(f.free_symbols) == 1 and not f.has(t):
        [symbol] = f.free_symbols
        coordinate = opened(symbol)
        form = f.xreplace(
            {symbol: sympy.cancel(coordinate.xreplace({b: t / (1 - t) for b in coordinate.free_symbols}))}
        )
        proof = prove_sign(form, t, deadline, 1)
    else:
        proof = prove_sign(opened(f), t, deadline, 0)
    return proof is not None and proof.strict


def _is_inside(root: sympy.Expr, span: Range) -> bool:
    return all(
        end.is_infinite or truth.sign(side * (root - end)) == 1 for end, side in ((span.low, 1), (span.high, -1))
    )
