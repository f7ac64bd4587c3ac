"""Where an expression in several variables is largest: random points, then evolution, in float64."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import sympy
from scipy.optimize import differential_evolution
from sympy import S

FIRST = 8192  # random points
KEPT = 64  # of them, which evolve
GENERATIONS = 60
EDGE = 1e-9  # how close to the end of a range they come


def summit(f: sympy.Expr, t: sympy.Symbol, positive: Sequence[sympy.Symbol]) -> list[dict[sympy.Symbol, Any]]:
    """Where f is largest, for t in (0, 1) and the other symbols positive: that point with few digits, more, and all."""
    symbols = (t, *positive)
    ratio = sympy.lambdify(symbols, _ratio(f), ["scipy", "numpy"], cse=True)

    def depth(x: Any) -> Any:
        with np.errstate(all="ignore"):
            found = -ratio(x[0], *(x[1:] / (1.0 - x[1:]))) + np.zeros(x.shape[1])
            return np.where(np.isfinite(found) & np.isreal(found), found.real, 2.0)

    start = np.random.default_rng(0).uniform(EDGE, 1.0 - EDGE, (len(symbols), FIRST))
    best = np.argsort(depth(start), kind="stable")[:KEPT]
    found = differential_evolution(
        depth,
        [(EDGE, 1.0 - EDGE)] * len(symbols),
        init=start[:, best].T,
        maxiter=GENERATIONS,
        tol=0.0,
        polish=False,
        updating="deferred",
        vectorized=True,
        seed=0,
    )
    points = []
    for most in (100, 10**4, 10**8, 2**60):
        at = [sympy.Rational(Fraction(x).limit_denominator(most)) for x in found.x]
        if all(0 < x < 1 for x in at):
            points.append({t: at[0], **{symbol: x / (1 - x) for symbol, x in zip(positive, at[1:], strict=True)}})
    return points


def _ratio(f: sympy.Expr) -> sympy.Expr:
    """f over the size of its terms, between -1 and 1, with the sign of f: what is far below 0 can be climbed, too."""
    if f.is_Add:
        return f / sympy.Add(*(sympy.Abs(term) for term in f.args))
    if f.is_Mul:
        return sympy.Mul(*(_ratio(factor) for factor in f.args))
    if f.is_Pow and f.exp.is_Integer:
        return _ratio(f.base) ** (2 - f.exp % 2)
    return S.One if f.is_positive else sympy.sign(f)
