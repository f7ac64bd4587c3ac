"""Emits the Numba kernel of an entropy G(sum s(p_j)): roots c, the cut, and w.

With x the scores less their largest, p_j = q(b_j), b_j = (x_j - c) / w, c such that they sum to 1, and w = sign G'(u),
u = sum s(p_j). Newton's method for both at once takes an evaluation of q and s a step; short rows are solved by it in
blocks, one a lane. Where it does not converge, both are bracketed: a method for log w around one for c. When w changes,
c then starts from where the implicit function theorem puts it. Rows next to a vertex that need more digits of u than a
sum has are left to the caller.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any

import sympy

from ..errors import UnsupportedError
from ..program import Program
from ..rewrite import quickly_cancelled
from ..runtime import composite, numba
from . import numba as separable
from . import numba_composite_block as block
from . import numba_templates as text
from .printer import assignments

PLACE = sympy.Symbol("u", positive=True)
CLOSE = 1e-7  # of the distance from the largest score to the cut
MAGNIFIED = 8.0  # how many times G''/G' magnifies the rounding of s


@dataclass(frozen=True)
class Form:
    """What a kernel needs besides the Program of v: sign, G' and G''/G' in u, s in P, s(1), the margin of H, and how
    large G''/G' may be next to a vertex."""

    sign: int
    first: sympy.Expr
    bend: sympy.Expr
    inner: sympy.Expr
    at_one: float
    margin: float
    most_bend: float


WHOLE_ROW = """
k = d
for j in range(0, d, L):
    vstore(buf, j, vloadn(x, src + j, min(L, d - j), NINF))
"""

OUTER = '''

@njit(error_model="numpy", forceinline=True)
def first(u):
    """w of a sum."""
    {first}
    return SIGN * g


@njit(error_model="numpy", forceinline=True)
def bend(u):
    """The second derivative of G over the first one."""
    {bend}
    return g


@njit(error_model="numpy", forceinline=True)
def inner(p):
    """s of a number."""
    {inner}
    return s
'''

SOLVE = """
for j in range(0, k, L):
    vstore(buf, j, vload(buf, j) - m)
vstore(buf, k, vfull(x, NINF))
{guess}
w0 = w
cl = ZERO  # the cut is c + cl: a score next to it keeps all its digits
total = ZERO
settled = False
for iteration in range(STEPS):
    scale = ONE / w
    f = vfull(x, ZERO)
    g = f
    e = f
    h = f
    n = f
    for j in range(0, k, L):
        a = ((vload(buf, j) - c) - cl) * scale
        {term}
        vstore(pbuf, j, t)
        vstore(wbuf, j, w1)
    total = vsum(f)
    move, step, rate = newton(total, vsum(g), vsum(e), vsum(h), vsum(n), w)
    if abs(total - ONE) <= EXACT and abs(move) <= STILL:
        settled = rate > LEAST_RATE
        break
    c, cl, w = moved(c, cl, w, move, step, {right})
if settled:
    f = vfull(x, ZERO)
    for j in range(0, k, L):
        a = ((vload(buf, j) - c) - cl) * scale
        p = vload(pbuf, j)
        w1 = vload(wbuf, j)
        {last_step}
        f = f + p
        vstore(pbuf, j, p)
    total = vsum(f)
    w = w * vexp(move)
else:
    {bracketed}
{next_to_cut}
{next_to_vertex}
if not settled or c < -MARGIN or total != total:
    row_fill(out, base, d, NAN)
    store1(loss, i, NAN)
    special += 1
    continue
{store}
store1(loss, i, w)
"""

BRACKETED = """
w = w0
c = HALF * w * ({right} - RISE)
cl = ZERO
at = ZERO  # log(w / w0)
lowest = NINF
highest = INF
reach = F(1e-9)
final = False
rough = F(1e-3)
before = INF
for outer in range(80):
    left = -RISE * w
    right = {right} * w
    ll = ZERO
    rl = ZERO
    if not (c >= left and c <= right):
        c = HALF * (left + right)
        cl = ZERO
    scale = ONE / w
    last = INF
    step = ZERO
    for iteration in range(100):
        f = vfull(x, ZERO)
        g = f
        for j in range(0, k, L):
            a = ((vload(buf, j) - c) - cl) * scale
            b = vatmost(vatleast(a, LOW), RISE)
            {q}
            p = vatmost(vabove(a, LOW, p), ONE)
            w1 = vatmost(vwhere_pos(p, w1), {huge})
            f = f + p
            g = g + w1
            vstore(pbuf, j, p)
            vstore(wbuf, j, w1)
        total = vsum(f)
        excess = total - ONE
        slope = vsum(g)
        step = excess / slope
        if not (abs(excess) > rough):
            break
        if iteration > 6 and abs(excess) < F(1e-14) and not (abs(excess) < last):
            break
        if excess > ZERO:
            left = c
            ll = cl
        else:
            right = c
            rl = cl
        t = cl + w * {step}
        new = c + t
        t = t - (new - c)
        inside = (new - left) + (t - ll) > ZERO and (right - new) + (rl - t) > ZERO
        if not inside or (iteration > 8 and abs(excess) > HALF * last):
            t = HALF * ((right - left) + (rl - ll)) + ll
            new = left + t
            t = t - (new - left)
        if new == c and t == cl:
            break
        last = abs(excess)
        c = new
        cl = t
    if abs(excess) > max(rough, F(1e-12)):  # q is too steep here
        break
    # The last Newton step is taken in p itself: beyond the resolution of the cut.
    f = vfull(x, ZERO)
    g = f
    e = f
    h = f
    for j in range(0, k, L):
        w1 = vload(wbuf, j)
        b = vatmost(vatleast(((vload(buf, j) - c) - cl) * scale, LOW), RISE)
        p = vatmost(vatleast(vload(pbuf, j) - w1 * step, ZERO), ONE)
        f = f + p
        g = g + w1
        e = vfma(w1, b, e)
        h = vfma(w1 * b, b, h)
        vstore(pbuf, j, p)
    total = vsum(f)
    if total != total or final:
        settled = True
        break
    share = ONE / total
    f = vfull(x, ZERO)
    for j in range(0, k, L):
        t = vload(pbuf, j) * share
        p = vatmost(vatleast(t, TINY), ONE)
        {inner}
        f = f + vwhere_pos(t, s)
    u = vsum(f)
    fresh = first(u)
    if not (fresh > ZERO and fresh < INF):
        break
    miss = vlog(fresh / w)
    slope = vsum(g)
    mean = vsum(e) / slope
    spread = vsum(h) - mean * vsum(e)
    rate = ONE - SIGN * bend(u) * spread
    move = miss / rate
    tight = rough < F(1e-13)
    if tight or abs(miss) > F(4) * rough:
        if miss > ZERO:
            lowest = max(lowest, at)
        else:
            highest = min(highest, at)
    elif not (rate > F(0.05)):  # the sign is not sure, and Newton's step is not either: the same again, exactly
        rough = F(4e-15)
        continue
    exact = tight and abs(miss) <= F(4e-16)
    sure = rate > F(0.05) and abs(move) <= F(1e-9)
    if exact:
        move = ZERO
    elif not (rate > ZERO and at + move > lowest and at + move < highest) or (outer > 12 and abs(miss) > HALF * before):
        if lowest == NINF or highest == INF:
            # F' lies between its values at a vertex and at the uniform distribution, or the bracket will be widened.
            one = vlog(first(AT_ONE) / w0)
            other = vlog(first(F(k) * inner(ONE / F(k))) / w0)
            lowest = max(lowest, min(one, other) - F(1e-3))
            highest = min(highest, max(one, other) + F(1e-3))
        move = HALF * (lowest + highest) - at
        sure = False
    before = abs(miss)
    narrow = highest - lowest <= F(4e-16) * (ONE + abs(at))
    if narrow and (not tight or abs(miss) > F(2e-14)):  # the root is outside, or a rough sign was wrong
        lowest -= reach
        highest += reach
        reach = reach * F(1e3)
        narrow = False
        rough = F(4e-15)
    close = sure or exact or narrow
    final = close and tight
    rough = F(4e-15) if close or abs(move) < F(1e-4) else min(rough, max(F(4e-15), abs(move) * F(1e-3)))
    w = w * vexp(move)
    at += move
    t = cl - move * w * mean
    new = c + t
    cl = t - (new - c)
    c = new
"""
# Where there is a margin: p proportional to how far a score is within it gives w, and its largest the cut.
GUESS = """
f = vfull(x, ZERO)
for j in range(0, k, L):
    f = f + vatleast(vload(buf, j) + MARGIN, ZERO)
share = ONE / vsum(f)
f = vfull(x, ZERO)
for j in range(0, k, L):
    t = vatleast(vload(buf, j) + MARGIN, ZERO) * share
    p = vatmost(vatleast(t, TINY), ONE)
    {inner}
    f = f + vwhere_pos(t, s)
w = first(vsum(f))
c = -w * rise_of(MARGIN * share)
"""
# Where q is infinitely steep at the cut-off, a score that is next to it and left out may belong to the support: the sum
# of p does not tell, as the digits of c do not reach where its p would not be 0.
NEXT_TO_CUT = """
f = vfull(x, ZERO)
for j in range(0, k, L):
    a = vabs((vload(buf, j) - c) - cl)
    t = vselect_gt(NONE, vload(pbuf, j), vselect_gt(a, ZERO, ONE, ZERO), ZERO)
    f = f + vselect_gt(-CLOSE * c, a, t, ZERO)
settled = settled and not vsum(f) > ZERO
"""
# Where s(1) = 0, u is small next to a vertex, but has no more digits than the largest s(p) there.
NEXT_TO_VERTEX = """
f = vfull(x, ZERO)
for j in range(0, k, L):
    f = f + vselect_gt(vload(pbuf, j), NEAR_ONE, ONE, ZERO)
if vsum(f) > ZERO and k > 1:
    f = vfull(x, ZERO)
    for j in range(0, k, L):
        t = vload(pbuf, j)
        p = vatmost(vatleast(t, TINY), ONE)
        {inner}
        f = f + vwhere_pos(t, s)
    settled = settled and abs(bend(vsum(f))) <= MOST_BEND
"""
AT_VERTEX = "w = first(AT_ONE)"
MIDDLE = AT_VERTEX + "\nc = HALF * w * (F(high) - RISE)"
SCATTER = """
for j in range(0, k, L):
    vstore(pbuf, j, vload(pbuf, j) / total)
for j in range(k):
    store1(out, base + load1(idx, j), load1(pbuf, j))
"""
COPY = """
for j in range(0, d, L):
    vstoren(out, base + j, vload(pbuf, j) / total, min(L, d - j))
"""


def form(functions: Any, outer: sympy.Expr, inner: sympy.Expr) -> Form:
    """The Form of G in u and s in t."""
    (u,), (t,) = outer.free_symbols, inner.free_symbols
    first, second = (sympy.diff(outer, u, k).subs(u, PLACE) for k in (1, 2))
    at_one, margin = functions.at_one, functions.margin
    bend = quickly_cancelled(sympy.powsimp(second / first))
    most = math.inf
    if at_one == 0.0:
        ends = functions.separable._module.F
        most = MAGNIFIED / abs(ends.slope_high) if ends.curvature_high > 0.0 else -1.0
    return Form(functions.sign, first, bend, inner.subs(t, separable.P), at_one, margin, most)


def family(program: Program) -> str:
    """Whether the candidates within the margin are solved for, or the "dense" row; UnsupportedError where neither."""
    found = separable.plan(program).family
    if found not in ("convex", "safe", "dense") or not math.isfinite(program.ends["rise_high"]):
        raise UnsupportedError(f"there is no compiled kernel around one whose threshold is {found}")
    return found


def source(program: Program, form: Form) -> str:
    """The text of a module whose `run` writes predictions to `out` and w to `loss`, in float64."""
    dense = family(program) == "dense"
    steep = not dense and separable.is_steep(program)
    if not dense and not math.isfinite(form.margin):
        raise UnsupportedError("the margin is not known")
    rise, slope = program.ends["rise_high"], sympy.diff(form.inner, separable.P)
    constants: list[str] = []
    if dense:
        statements = separable._dense(program, "dense", 64, constants)["q"]
        constants.append("MARGIN = F(np.inf)")
    else:
        statements = separable._margin_inverse(program, 64, constants)
        constants += ["LOW = F(0)", f"MARGIN = F({form.margin * (1 + 1e-6)!r})"]
    constants += [
        f"RISE = F({rise!r})",
        f"SIGN = {form.sign}.0",
        f"AT_ONE = F({form.at_one!r})",
        f"BASE = F({-form.sign * float(slope.subs(separable.P, 1)) - rise!r})",
        f"CLOSE = F({CLOSE!r})",
        "NONE = F(1e-6)",
        f"NEAR_ONE = F({1.0 - composite.CLOSE!r})",
        f"MOST_BEND = F({'np.inf' if math.isinf(form.most_bend) else repr(form.most_bend)})",
        f"SHORT = {numba.SHORT if dense else 32 if separable.cost(statements) <= separable.CHEAP else 16}",
    ]
    written = {
        "first": assignments({"g": form.first}, PLACE, "u", separable.VECTOR),
        "bend": assignments({"g": form.bend}, PLACE, "u", separable.VECTOR),
        "inner": assignments({"s": form.inner}, separable.P, "p", separable.VECTOR),
        "inner_slope": assignments({"s": slope}, separable.P, "p", separable.VECTOR),
    }
    if "np." in "".join(line for lines in written.values() for line in lines):
        raise UnsupportedError("s or G has no vector code")
    gather = WHOLE_ROW if dense else text.MARGIN.partition("{bracket}")[0]
    places: dict[str, Any] = {
        "float": "float64",
        "memory": "POINTER", "lanes": 8, "tiny": 2.0**-1022, "below": 1.0 - 2.0**-53, "huge": "1e290",
        "store_nan": "store1(loss, i, NAN)", "alone": [AT_VERTEX, "store1(loss, i, w)"], "each": "", "last": "",
        "after": "", "constants": constants, "q": [_renamed(line) for line in statements], **written,
        "guess": MIDDLE if dense else GUESS, "bracketed": BRACKETED, "next_to_cut": NEXT_TO_CUT if steep else "",
        "next_to_vertex": "" if math.isinf(form.most_bend) else NEXT_TO_VERTEX,
        "store": COPY if dense else SCATTER,
        "right": "F(high)" if dense else "ZERO", "step": "vlog(total) * total / slope" if dense else "step",
        **block.places(dense, steep, not math.isinf(form.most_bend)),
        "term_inner": _of_slope(form, slope) or written["inner"],
    }  # fmt: skip
    body = text.HEAD + "\n{constants}\n" + OUTER + block.FUNCTIONS + text.KERNEL
    return separable.filled(body, {"row": text.ROW, "solve_row": gather + SOLVE, **places})


def _of_slope(form: Form, slope: sympy.Expr) -> list[str]:
    """A statement for s from p and b where s is a multiple of p s', as a power is; none elsewhere."""
    ratio = quickly_cancelled(sympy.powsimp(form.inner / (separable.P * slope)))
    return [f"s = p * ((BASE + b) * {float(-form.sign * ratio)!r})"] if ratio.is_number else []


def _renamed(line: str) -> str:
    """q' is called w in the statements for q, and w1 here, where w is the temperature."""
    return re.sub(r"\bw\b", "w1", line)
