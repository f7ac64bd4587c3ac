"""Proposition 5: every margin, infinite ones too, is the supremum of H(p) / (1 - max p)."""

from __future__ import annotations

from typing import Any

import mpmath
import numpy as np
import pytest
import sympy

import fysym

from . import families, oracle

# Tsallis with alpha = 1 + 1e-9 comes within 1e-6 of its margin at r = 10^-(10^10) only, which has too many digits.
SEPARABLE = [name for name in oracle.MEMBERS if name != "tsallis_1+1e-9"]
FAR = np.linspace(0.01, 0.66, 30)


def largest(reg: Any) -> float:
    """The largest ratio over p away from the vertices."""
    rng = np.random.default_rng(0)
    others = np.concatenate([np.eye(3), np.full((1, 3), 1 / 3), rng.dirichlet(np.ones(3), size=60)])
    p = np.concatenate([np.concatenate([np.full((len(others), 1), 1 - r), r * others], axis=1) for r in FAR])
    return float((reg.entropy(p) / (1 - p.max(axis=1))).max())


def near(entropy: Any, places: int = 200) -> mpmath.mpf:
    """The ratio very near a vertex, in 500 digits: H is concave, so that along a ray from the vertex it is largest."""
    with mpmath.workdps(500):
        r = mpmath.mpf(10) ** -places
        return max(entropy([1 - r, *others]) / r for others in ([r], [r / 3] * 3, [r / 4, 3 * r / 4]))


def check(reg: Any, entropy: Any) -> None:
    if reg.margin == sympy.oo:  # grows without end, if only as the root of the logarithm of 1/r
        assert near(entropy, 200) > 1.5 * near(entropy, 50) > 2 * near(entropy, 12)
        return
    margin = float(reg.margin)
    assert abs(near(entropy) - margin) <= 1e-6 * max(1.0, margin)
    assert largest(reg) <= margin * (1 + 1e-12)


@pytest.mark.parametrize("name", SEPARABLE)
def test_separable_margins(name: str) -> None:
    reg = oracle.member(name)
    h = sympy.lambdify(reg.variable, reg.h, "mpmath")
    check(reg, lambda p: sum(h(t) for t in p))


@pytest.mark.parametrize("name", families.MEMBERS)
def test_composite_margins(name: str) -> None:
    reg = families.member(name)
    (u,), (t,) = reg.outer.free_symbols, reg.inner.free_symbols
    outer, inner = sympy.lambdify(u, reg.outer, "mpmath"), sympy.lambdify(t, reg.inner, "mpmath")
    check(reg, lambda p: outer(sum(inner(t) for t in p)))


def test_berger_parker() -> None:
    check(fysym.catalog.berger_parker, lambda p: 1 - max(p))
