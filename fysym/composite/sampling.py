"""G(sum s(p_j)) in numbers: where its Hessian comes closest to a positive direction, and predictions that are known."""

from __future__ import annotations

import numpy as np
import sympy

from .. import truth
from ..accuracy import SHARES


def worst(outer: sympy.Expr, inner: sympy.Expr, sign: int) -> tuple[float, tuple[float, ...]]:
    """The largest F'' sum_j (v'_j - mean)^2 / |v''_j| / F' over sampled p, mean under the weights 1/|v''|, and its p.

    H is strictly concave on the tangent space at p exactly where F' > 0 and this is less than 1. Also larger than 1
    where F' is not positive or something is not a number.
    """
    from .theory import T, U

    slope, curve, s = (sympy.lambdify(T, sympy.diff(inner, T, k), "numpy") for k in (1, 2, 0))
    first, second = (sympy.lambdify(U, sympy.diff(outer, U, k), "numpy") for k in (1, 2))
    rng = np.random.default_rng(0)
    found: tuple[float, tuple[float, ...]] = (-np.inf, (0.5, 0.5))
    for d in (2, 3, 4, 6, 10, 30):
        shares = [rng.dirichlet(np.full(d, a), size=300) for a in (0.2, 1.0, 5.0)]
        lead = np.linspace(1.0 / d, 0.9999, 200)[:, None]
        shares.append(np.concatenate([lead, np.repeat((1.0 - lead) / (d - 1), d - 1, axis=1)], axis=1))
        p = np.concatenate(shares)
        p = np.maximum(p, 1e-6)
        p /= p.sum(axis=1, keepdims=True)
        with np.errstate(all="ignore"):
            u = (s(p) + 0.0 * p).sum(axis=1)
            weight = 1.0 / np.abs(curve(p) + 0.0 * p)
            v = sign * slope(p) + 0.0 * p
            mean = (weight * v).sum(axis=1, keepdims=True) / weight.sum(axis=1, keepdims=True)
            share = (second(u) + 0.0 * u) * (weight * (v - mean) ** 2).sum(axis=1) / (sign * first(u) + 0.0 * u)
            share = np.where(np.isfinite(share) & (sign * first(u) + 0.0 * u > 0.0), share, np.inf)
        # of those that fail, the one farthest from the boundary
        at = int(np.argmax(np.where(share > 1.0, p.min(axis=1), -1.0) if (share > 1.0).any() else share))
        if share[at] > found[0]:
            found = float(share[at]), tuple(float(f"{x:.6g}") for x in p[at])
        if found[0] > 1.0:
            break
    return found


def checks(outer: sympy.Expr, inner: sympy.Expr) -> list[tuple[list[float], list[float], float]]:
    """Scores, their true prediction, and how far from it code may be: what an emitted module checks itself with."""
    from .theory import T, U

    found = []
    for parts in SHARES[:5]:
        p = [sympy.Rational(part, sum(parts)) for part in parts]
        s, first, second = ([truth.evaluate(sympy.diff(inner, T, k), {T: x}) for x in p] for k in range(3))
        slope, bend = (truth.evaluate(sympy.diff(outer, U, k), {U: sum(s)}) for k in (1, 2))
        theta = [float(-slope * x) for x in first]
        hessian = np.diag([float(-slope * x) for x in second]) - float(bend) * np.outer(first, first).astype(float)
        tangent = np.linalg.qr(np.column_stack([np.ones(len(p)), np.eye(len(p))[:, 1:]]))[0][:, 1:]
        if not (np.isfinite(theta).all() and np.isfinite(hessian).all()):
            continue
        flattest = float(np.linalg.eigvalsh(tangent.T @ hessian @ tangent).min())
        rounding = float(np.linalg.norm(np.spacing(np.abs(theta))))
        allowed = max(1e-12, 4 * rounding / flattest) if flattest > 0 else np.inf
        if allowed < 1e-3:
            found.append((theta, [float(x) for x in p], allowed))
    return found
