"""The text of Newton's method for both roots of G(sum s(p_j)) in Numba kernels, and of short rows solved by it.

One row a lane; what does not converge is left to the code for one row.
"""

from __future__ import annotations

from typing import Any

from . import numba_block

# Of numbers, or of vectors with a row in each lane. s'(p_j) is -SIGN (BASE + b_j), and a step of the roots moves p_j by
# -q'(b_j) (dc / w + b_j d log w).
NEWTON = '''

STEPS = 20  # most rows need five
EXACT = F(4e-15)
STILL = F(2e-14)
LEAST_RATE = F(1e-6)


@njit(error_model="numpy", forceinline=True)
def rise_of(p):
    """The b at which q is p."""
    {inner_slope}
    return -SIGN * s - BASE


@njit(error_model="numpy", forceinline=True)
def newton(total, slope, one, two, u, w):
    """The steps of log w and of c, in units of w, for log(sum p) = 0 and log(G' / w) = 0; and a factor that is positive
    next to a maximum. The sums are of p, q', q' b, q' b**2 and s."""
    excess = total * vlog(total)
    mean = one / slope
    curve = SIGN * bend(u)
    rate = ONE - curve * (two - mean * one)
    move = (vlog(first(u) / w) + curve * (BASE + mean) * excess) / rate
    return move, excess / slope - mean * move, rate


@njit(error_model="numpy", forceinline=True)
def moved(c, cl, w, move, step, right):
    """c, cl and w after a step; one that leaves -RISE < c / w < right is cut."""
    factor = vexp(vatmost(vatleast(move, F(-1.5)), F(1.5)))
    t = cl + w * step
    new = c + t
    low = -RISE * (w * factor)
    high = right * (w * factor)
    inside = vselect_gt(new, low, vselect_gt(high, new, ONE, ZERO), ZERO)
    bound = vselect_gt(new, low, high, low)
    short = bound + F(0.25) * (c * factor - bound)
    return vselect_gt(inside, ZERO, new, short), vselect_gt(inside, ZERO, t - (new - c), ZERO), w * factor
'''

# p, q' and s of scores, and their sums.
TERM = """
b = vatmost(vatleast(a, LOW), RISE)
{q}
t = vatmost(vabove(a, LOW, p), ONE)
w1 = vatmost(vwhere_pos(t, w1), {huge})
p = vatleast(t, TINY)
{term_inner}
f = f + t
g = g + w1
e = vfma(w1, b, e)
h = vfma(w1 * b, b, h)
n = n + vwhere_pos(t, s)
"""
# The last step is taken in p itself: beyond the resolution of the cut.
LAST_STEP = """
b = vatmost(vatleast(a, LOW), RISE)
p = vatmost(vatleast(p - w1 * (step + b * move), ZERO), ONE)
"""

BLOCK = """
for j in range(most):
    vstore(xb, j * L, vload(xb, j * L) - m)
{block_guess}
cl = vfull(x, ZERO)
live = vfull(x, ONE)
scale = live
move = cl
step = cl
rate = cl
for iteration in range(STEPS):
    scale = ONE / w
    f = vfull(x, ZERO)
    g = f
    e = f
    h = f
    n = f
    for j in range(most):
        a = ((vload(xb, j * L) - c) - cl) * scale
        {term}
        vstore(pb, j * L, t)
        vstore(wb, j * L, w1)
    move, step, rate = newton(f, g, e, h, n, w)
    live = vselect_gt(vabs(f - ONE), EXACT, ONE, vselect_gt(vabs(move), STILL, ONE, ZERO))
    if iteration == STEPS - 1 or not vsum(live) > ZERO:
        break
    new, small, fresh = moved(c, cl, w, move, step, {block_right})
    c = vselect_gt(live, ZERO, new, c)
    cl = vselect_gt(live, ZERO, small, cl)
    w = vselect_gt(live, ZERO, fresh, w)
live = vselect_gt(rate, LEAST_RATE, live, ONE)
total = vfull(x, ZERO)
for j in range(most):
    a = ((vload(xb, j * L) - c) - cl) * scale
    p = vload(pb, j * L)
    w1 = vload(wb, j * L)
    {block_next_to_cut}
    {last_step}
    total = total + p
    vstore(pb, j * L, p)
{block_next_to_vertex}
w = w * vexp(move)
"""
# Where there is a margin: p proportional to how far a score is within it gives w, and its largest the cut. A row with
# one candidate starts at its vertex.
GUESS = """
f = vfull(x, ZERO)
near = f
for j in range(most):
    b = vatleast(vload(xb, j * L) + MARGIN, ZERO)
    f = f + b
    near = near + vselect_gt(b, ZERO, ONE, ZERO)
share = ONE / f
f = vfull(x, ZERO)
for j in range(most):
    b = vatleast(vload(xb, j * L) + MARGIN, ZERO) * share
    p = vatmost(vatleast(b, TINY), ONE)
    {inner}
    f = f + vwhere_pos(b, s)
w = vselect_gt(near, ONE, first(f), first(AT_ONE))
c = -w * vselect_gt(near, ONE, rise_of(MARGIN * share), RISE)
"""
MIDDLE = """
w = vfull(x, ZERO) + first(AT_ONE)
c = HALF * w * (high - RISE)
"""
NEXT_TO_CUT = """
b = vselect_gt(NONE, p, vselect_gt(vabs(a), ZERO, ONE, ZERO), ZERO)
live = live + vselect_gt(-CLOSE * c * scale, vabs(a), b, ZERO)
"""
# `n` is u of the last step.
NEXT_TO_VERTEX = """
near = vfull(x, ZERO)
few = near
for j in range(most):
    p = vload(pb, j * L)
    near = vmax(p, near)
    few = few + vselect_gt(vload(xb, j * L), -MARGIN, ONE, ZERO)
few = vselect_gt(few, ONE, vselect_gt(near, NEAR_ONE, ONE, ZERO), ZERO)
live = vselect_gt(few, ZERO, vselect_ge(MOST_BEND, vabs(bend(n)), live, ONE), live)
"""
FUNCTIONS = NEWTON + numba_block.BLOCK


def places(dense: bool, steep: bool, vanishing: bool) -> dict[str, Any]:
    """What fills the loop over rows and the block; w goes where other kernels keep what a loss is made from.

    `vanishing` is whether s(1) = 0.
    """
    return {
        "solve": numba_block.SHORT,
        "gather_block": numba_block.ALL,
        "block": BLOCK,
        "term": TERM,
        "last_step": LAST_STEP,
        "block_next_to_cut": NEXT_TO_CUT if steep else "",
        "block_next_to_vertex": NEXT_TO_VERTEX if vanishing else "",
        "store_block": numba_block.ALL_STORE,
        "block_sums": "vstore(block, 4 * L, w)",
        "taken": "store1(loss, i, load1(block, 4 * L + lane))",
        "block_guess": MIDDLE if dense else GUESS,
        "block_right": "high" if dense else "ZERO",
    }
