"""Compiled kernels of G(sum s(p_j)): rows in blocks, what Newton's method leaves, and tables of q."""

from __future__ import annotations

import functools
from typing import Any

import mpmath
import numpy as np
import pytest

import fysym
from fysym.composite.reference import Reference
from fysym.runtime import composite

from .families import MEMBERS, member, optimality

pytest.importorskip("numba")

# G and s of entropies for which Newton's method alone runs in circles, and one whose q is a table.
HARD = {
    "exp": ("1 - exp(u - 1)", "t**3"),
    "ratio": ("u/(1 + u)", "t*(1 - t)*(2 + t)"),
    "log": ("log(2 - u)", "t**4"),
    "table": ("log(1 + u)", "t*(1 - t) + sin(pi*t)/pi"),
}


@functools.cache
def hard(name: str) -> Any:
    return fysym.compile_composite(*HARD[name])


def compiled(reg: Any, theta: Any) -> Any:
    """A prediction of which no row is left to NumPy."""
    reg.predict(theta[:1], target="numba")  # the kernel is made, and checked against NumPy

    def refuse(functions: Any, theta: Any) -> Any:
        raise AssertionError(f"{len(theta)} rows were left, such as {theta[0].tolist()}")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(composite, "solve_composite", refuse)
        return reg.predict(theta, target="numba")


@pytest.mark.parametrize("name", [*MEMBERS, *HARD])
def test_a_row_of_a_block_is_solved_as_if_it_were_alone(name: str) -> None:
    reg = hard(name) if name in HARD else member(name)
    theta = np.random.default_rng(5).normal(0.0, 0.7, (21, 6))
    theta[3, 2], theta[4], theta[9, :5], theta[10, 1] = np.nan, -np.inf, -np.inf, np.inf
    theta[12] = 0.25  # all equal
    together, alone = reg.predict(theta), np.stack([reg.predict(row) for row in theta])
    np.testing.assert_array_equal(together, alone)
    np.testing.assert_array_equal(together[::-1], reg.predict(theta[::-1]))
    assert np.isnan(together[[3, 4]]).all() and np.isfinite(np.delete(together, [3, 4], axis=0)).all()
    np.testing.assert_array_equal(together[9], [0, 0, 0, 0, 0, 1])
    np.testing.assert_array_equal(together[10], [0, 1, 0, 0, 0, 0])


@pytest.mark.parametrize("name", ["norm_1.1", "norm_1.5", "norm_2", "norm_3", "squared_norm_1.5", "renyi_0.5"])
@pytest.mark.parametrize(("n", "d"), [(333, 2), (333, 10), (100, 16), (100, 33), (100, 128), (50, 129), (20, 900)])
def test_every_row_is_solved_by_the_kernel(name: str, n: int, d: int) -> None:
    for scale in (0.01, 0.1, 1.0, 30.0):
        theta = np.random.default_rng(d).normal(0.0, scale, (n, d))
        p = compiled(member(name), theta)
        assert (p >= 0).all() and np.abs(p.sum(axis=1) - 1).max() <= 1e-14
        assert optimality(name, theta, p).max() <= 1e-12


@pytest.mark.parametrize("name", HARD)
@pytest.mark.parametrize(("n", "d"), [(300, 2), (300, 10), (40, 60)])
def test_what_newton_leaves_is_bracketed(name: str, n: int, d: int) -> None:
    f = hard(name)._kernel.functions
    for scale in (0.05, 0.5, 2.0, 9.0):
        theta = np.random.default_rng(7).normal(0.0, scale, (n, d))
        p = compiled(hard(name), theta)
        slopes = theta + f.gradient(p)  # equal on the support, none larger off it
        level = np.take_along_axis(slopes, p.argmax(axis=1)[:, None], axis=1)
        beyond = np.where(p > 0.0, np.abs(slopes - level), slopes - level)
        assert beyond.max() <= 2e-13 * (1.0 + scale)
        assert np.abs(p.sum(axis=1) - 1.0).max() <= 1e-14


@pytest.mark.parametrize("name", HARD)
def test_against_many_digits(name: str) -> None:
    reg = hard(name)
    reference = Reference(reg.outer, reg.inner, 40)
    for theta in np.random.default_rng(8).normal(0.0, 1.0, (6, 4)):
        p = reg.predict(theta, target="numba")
        truth, rates = reference.solve(theta.tolist(), p.tolist())
        for ours, exact, rate in zip(p, truth, rates, strict=True):
            assert abs(ours - exact) <= 1e-14 * exact + 4 * np.spacing(np.abs(theta).max()) * float(rate)


def test_finite_scores_have_a_prediction_next_to_the_margin() -> None:
    theta = np.zeros((60, 40))
    theta[:, 0] = 1.0 - 10.0 ** np.random.default_rng(9).uniform(-15.0, -6.0, 60)
    p = member("norm_3").predict(theta)
    assert np.isfinite(p).all() and np.abs(p.sum(axis=1) - 1.0).max() <= 1e-14


@pytest.mark.parametrize("q", [3, 6, 8, 12, 40])
@pytest.mark.parametrize("d", [2, 7, 200])
def test_a_support_of_two_next_to_the_margin_is_found(q: int, d: int) -> None:
    """p is that of a score half an ulp away for each factor of p**q, and a few: at 60 digits,
    x_1 - x_2 = ((1 - p)^(q-1) - p^(q-1)) / ||p||^(q-1)."""
    gaps = 10.0 ** -np.array([15.0, 14.0, 13.0, 12.0, 11.0, 10.0, 8.0, 6.0, 4.0])
    theta = np.full((len(gaps), d), -2.0)
    theta[:, 0], theta[:, 1] = 0.0, gaps - 1.0
    p = fysym.catalog.norm.bind(q=q).predict(theta)
    assert (p[:, 2:] == 0.0).all()
    with mpmath.workdps(60):
        for second, found in zip(theta[:, 1], map(mpmath.mpf, map(float, p[:, 1])), strict=True):
            norm = ((1 - found) ** q + found**q) ** (mpmath.mpf(q - 1) / q)
            fitting = (found ** (q - 1) - (1 - found) ** (q - 1)) / norm
            assert abs(fitting - mpmath.mpf(float(second))) <= (4 + q) * 2.0**-53


@pytest.mark.parametrize(
    ("outer", "inner"),
    [
        ("log(1 + 100*u)", "t*(1 - t)"),
        ("log(1 + 10**6*u)", "t*(1 - t)"),
        ("log(1 + 10**9*u)", "t*(1 - t)"),
        ("atan(u)", "sin(pi*t)"),
        ("log(1 + 1000*u)", "sin(pi*t)"),
        ("log(1 + 1000*u)", "t*(1 - t)*(2 + t)"),
        ("log(1 + 1000*u)", "sqrt(t) - t"),
    ],
)
@pytest.mark.parametrize("d", [3, 40])
def test_rows_next_to_a_vertex_where_s_vanishes(outer: str, inner: str, d: int) -> None:
    """As exact as the scores allow: u is small there, and G' may magnify how it is rounded."""
    reg = fysym.compile_composite(outer, inner)
    reference = Reference(reg.outer, reg.inner, 60)
    rows = []
    flat = (
        inner == "sin(pi*t)"
    )  # s''(1) = 0: next to the margin the scores do not tell a vertex from what is close to it
    for e in 10.0 ** -np.array([1.4, 2.0, 3.0, 4.0, *([] if flat else [6.0, 9.0, 12.0])]):
        for shares in ([1.0], [0.5, 0.5], [0.9, 0.1]):
            p = [mpmath.mpf(e * share) for share in shares]
            theta = reference.scores([1 - mpmath.fsum(p), *p])
            rows.append([float(x - theta[1]) for x in theta] + [-np.inf] * (d - len(theta)))
    for scores, p in zip(rows, reg.predict(rows, target="numba"), strict=True):
        some = np.flatnonzero(np.array(scores) > -np.inf)
        exact, rates = reference.solve([scores[j] for j in some], [mpmath.mpf(float(p[j])) for j in some])
        for j, truth, rate in zip(some, exact, rates, strict=True):
            unit = max(float(rate) * np.spacing(np.abs(np.array(scores)[some]).max()), np.spacing(float(truth)))
            assert abs(p[j] - truth) <= 8 * unit, (scores, p[j], float(truth))


def test_what_a_kernel_can_do_next_to_a_vertex_is_not_left() -> None:
    reg = fysym.compile_composite("log(1 + u)", "t*(1 - t)")
    leads = 2.0 * (1.0 - np.linspace(0.0, 0.1, 50) ** 2)
    for d in (3, 40):
        theta = np.full((50, d), -0.2)
        theta[:, 0], theta[:, 1] = leads, 0.0
        assert (compiled(reg, theta).max(axis=1) > 0.95).any()
