"""Where the Hessian of G(sum s(p_j)) comes closest to a positive direction, in numbers."""

from __future__ import annotations

import numpy as np
import sympy


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
