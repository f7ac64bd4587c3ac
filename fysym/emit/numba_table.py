"""q as a table of polynomials, for a q without a closed form or without vector code for it.

The rises from 0 to the margin are cut into equal cells (or their square roots are, where q is infinitely steep at 0);
in each, q is the polynomial through Chebyshev-Lobatto points, which include both ends, so that cells join.
The smallest table is taken that agrees with q everywhere to a few units in the last place.
"""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np

from ..entropy import SLOPE
from ..errors import UnsupportedError
from ..program import Program, compiled
from ..runtime.numpy_inverse import make_inverse

SIZES = {
    64: ((128, 6), (256, 6), (256, 7), (256, 8), (512, 7), (512, 8), (1024, 8)),
    32: ((64, 3), (128, 3), (64, 4), (128, 4), (256, 4), (512, 4)),
}
# Allowed errors, in units in the last place of q or of what one such unit of the scores does to it.
ULPS = {64: 4.0, 32: 0.5}
# Tables of log q, whose error is squared by a Newton step, and what it may be.
LOG_SIZES = {64: ((256, 5), (512, 5), (512, 6), (1024, 6)), 32: ((64, 3), (128, 3), (256, 3), (512, 4))}
LOG_ERROR = {64: 1e-8, 32: 1e-4}


def inverse_of(program: Program) -> Any:
    """q as a NumPy function of the rise, accurate to a few ulps."""
    if program.inverse is not None:
        return compiled(program.inverse.expr, SLOPE)
    assert program.rise and program.corise and program.cocurvature
    scalars = {name: getattr(program, name) for name in ("rise", "corise", "curvature", "cocurvature")}
    functions = {name: compiled(scalar.expr, scalar.argument) for name, scalar in scalars.items()}
    return make_inverse(SimpleNamespace(**functions, kinks=(), rise_middle=program.ends["rise_middle"]))[0]


def statements(program: Program, bits: int, high: float | None = None) -> tuple[str, list[str]]:
    """A constant, the table, and the statements that compute p and w from the rise b, up to `high`, with it."""
    margin = program.ends["rise_high"] if high is None else high
    eps = 2.0**-52 if bits == 64 else 2.0**-23
    with np.errstate(all="ignore"):
        q = inverse_of(program)
        curvature = compiled(program.curvature.expr, program.curvature.argument)
        for root in (False, True):
            end = np.sqrt(margin) if root else margin
            points = np.concatenate([np.random.default_rng(0).random(4000), np.geomspace(1e-9, 1e-2, 200)]) * end
            rises = points * points if root else points
            truth = q(rises)
            unit = eps * np.maximum(truth, np.maximum(rises, margin / 8) / curvature(truth))
            for cells, degree in SIZES[bits]:
                table = polynomials(q, end, cells, degree, root)
                error = np.abs(evaluate(table, points * (cells / end)) - truth) / unit
                if error.max() <= ULPS[bits]:
                    return text(table, end, root)
    raise UnsupportedError("q has no closed form, and no small table of polynomials is accurate enough")


def log_statements(program: Program, bits: int) -> tuple[str, list[str]]:
    """The same for a q that is positive everywhere, below 1/2, to half the digits: log q in z = sqrt(log(C - b)).

    There both exponential and power tails are smooth: C - b is at least e, and z at least 1.
    """
    middle = program.ends["rise_middle"]
    least = 2.0**-1021 if bits == 64 else 2.0**-125
    size = middle + math.e
    with np.errstate(all="ignore"):
        q = inverse_of(program)
        lowest = (
            float(compiled(program.slope.expr, program.slope.argument)(np.array([least]))[0]) - program.ends["anchor"]
        )
        span = float(np.sqrt(np.log(size - lowest))) - 1.0
        if not 0.0 < span < math.inf:
            raise UnsupportedError("q has no closed form, and its slopes are beyond a table")

        def logarithm(at: Any) -> Any:
            rises = np.clip(size - np.exp((1.0 + at.astype(np.float64)) ** 2), lowest, middle)
            return np.log(q(rises.ravel()).reshape(rises.shape))

        points = np.random.default_rng(0).random(4000) * span
        truth = logarithm(points)
        for cells, degree in LOG_SIZES[bits]:
            nodes = (1 - np.cos(np.pi * np.arange(degree + 1) / degree)) / 2
            table = interpolated(logarithm((np.arange(cells)[:, None] + nodes) * (span / cells)), nodes)
            error = np.abs(evaluate(table, points * (cells / span)) - truth).max()
            if error <= LOG_ERROR[bits]:
                break
        else:
            raise UnsupportedError("q has no closed form, and no small table of polynomials is accurate enough")
    count = degree + 1
    lines = [
        f"z = (vsqrt(vlog({size!r} - b)) - 1.0) * {cells / span!r}",
        f"cell = vfloor(vatleast(vmin(z, {cells * (1 - 2.0**-20)!r}), 0.0))",
        "z = z - cell",
        f"cell = cell * {float(count)!r}",
        f"p = vtable(TABLE, cell, {degree})",
        *(f"p = vfma(p, z, vtable(TABLE, cell, {k}))" for k in range(degree - 1, -1, -1)),
        "p = vexp(p)",
    ]
    return _constant(table), lines


def _constant(table: Any) -> str:
    numbers = ", ".join(repr(float(x)) for x in table.ravel())
    return f"TABLE = np.array([{numbers}], F)"


def polynomials(q: Any, end: float, cells: int, degree: int, root: bool) -> Any:
    """Coefficients, ascending, of each cell's polynomial in 0 <= y <= 1."""
    wide = np.longdouble
    nodes = (1 - np.cos(np.pi * np.arange(degree + 1).astype(wide) / degree)) / 2
    at = (np.arange(cells)[:, None] + nodes) * (wide(end) / cells)
    rises = (at * at if root else at).astype(np.float64)
    table = q(np.minimum(rises, end * end if root else end).ravel()).reshape(rises.shape).astype(wide)
    table[0, 0] = 0
    if table[-1, -1] > 0.75:
        table[-1, -1] = 1
    return interpolated(table, nodes)


def interpolated(table: Any, nodes: Any) -> Any:
    """Coefficients, ascending, of the polynomials with these values at the nodes, a row for each."""
    table, degree = table.astype(np.longdouble), len(nodes) - 1
    for k in range(1, degree + 1):  # divided differences
        table[:, k:] = (table[:, k:] - table[:, k - 1 : -1]) / (nodes[k:] - nodes[:-k])
    result = np.zeros_like(table)
    result[:, 0] = table[:, degree]
    for k in range(degree - 1, -1, -1):
        raised = np.zeros_like(result)
        raised[:, 1:] = result[:, :-1]
        result = raised - nodes[k] * result
        result[:, 0] += table[:, k]
    return result.astype(np.float64)


def evaluate(table: Any, y: Any) -> Any:
    """The table at y, in cells."""
    cell = np.minimum(np.floor(y), len(table) - 1).astype(int)
    y = y - cell
    value = np.zeros_like(y)
    for k in range(table.shape[1] - 1, -1, -1):
        value = value * y + table[cell, k]
    return value


def text(table: Any, end: float, root: bool) -> tuple[str, list[str]]:
    cells, count = table.shape
    scale = cells / end
    # A NaN must not become an index: vmin takes its second argument then, and y carries the NaN on.
    lines = [
        *(["z = vsqrt(b)"] if root else ["z = b"]),
        f"y0 = z * {scale!r}",
        f"cell = vfloor(vmin(y0, {cells * (1 - 2.0**-20)!r}))",
        "y0 = y0 - cell",
        f"cell = cell * {float(count)!r}",
        f"p = vtable(TABLE, cell, {count - 1})",
        "w = p",
    ]
    for k in range(count - 2, -1, -1):
        lines.append(f"p = vfma(p, y0, vtable(TABLE, cell, {k}))")
        if k > 0:
            lines.append("w = vfma(w, y0, p)")
    lines.append(f"w = w * {0.5 * scale!r} / z" if root else f"w = w * {scale!r}")
    return _constant(table), lines
