"""The text of what solves short rows in Numba kernels: one row a lane, so that no lane waits for a sum over lanes.

What is hard about a row (NaN, infinities, many steps) is left to the code for one row; the numbers of a lane depend on
its own row only.
"""

from __future__ import annotations

# In the loop over rows: blocks begin at multiples of L, and what they found is kept until their last row.
SHORT = """
lane = i & (L - 1)
if d <= SHORT and lane == 0:
    solve_block(x, out, idx, block, src, base, stride, d, min(L, hi - i), F(high))
if d <= SHORT and load1(block, lane) > ZERO:
    m = load1(block, L + lane)
    c = load1(block, 2 * L + lane)
    cl = load1(block, 3 * L + lane)
    {taken}
else:
    if d <= SHORT:
        stop = base + d  # the rows behind are solved already
    {row}
"""

BLOCK = '''

@njit(error_model="numpy")
def solve_block(x, out, idx, block, src, base, stride, d, rows, high):
    """p of short rows into out; whether that succeeded, m, c and cl, and what a label's loss is made from, into the
    first vectors of block."""
    xb = offset(block, 7 * L)
    pb = offset(xb, d * L)
    wb = offset(pb, d * L)
    {gather_block}
    {block}
    {store_block}
    {block_sums}
    done = vselect_gt(live, ZERO, ZERO, ONE)
    done = vselect_gt(total, ZERO, done, ZERO)
    vstore(block, 0, vselect_gt(INF, vabs(m), done, ZERO))
    vstore(block, L, m)
    vstore(block, 2 * L, c)
    vstore(block, 3 * L, cl)
'''

# The sums of label_sums, of each lane.
SUMS = """
xs = xb
f = vfull(x, ZERO)
rest = f
n = f
{fresh}
for j in range(most):
    a = vload(xb, j * L)
    p = vload(pb, j * L)
    {term}
{logarithms}
vstore(block, 4 * L, f)
vstore(block, 5 * L, rest)
vstore(block, 6 * L, n)
"""
TAKEN = """
terms = D(load1(block, 4 * L + lane))
missing = D(load1(block, 5 * L + lane))
tops = D(load1(block, 6 * L + lane))
"""

# All scores of the rows; lanes without a row get zeros.
ALL = """
most = d
for lane in range(rows):
    for j in range(d):
        store1(xb, j * L + lane, load1(x, src + lane * stride + j))
for j in range(d):
    for lane in range(rows, L):
        store1(xb, j * L + lane, ZERO)
m = vload(xb, 0)
for j in range(1, d):
    m = vmax(vload(xb, j * L), m)
"""
ALL_STORE = """
for j in range(d):
    vstore(pb, j * L, vload(pb, j * L) / total)
for lane in range(rows):
    for j in range(d):
        store1(out, base + lane * d + j, load1(pb, j * L + lane))
"""
# Only the scores within the margin of the largest: worth it where there are many steps.
CANDIDATES = """
most = 0
for lane in range(L):
    k = 0
    top = ZERO
    if lane < rows:
        at = src + lane * stride
        top = row_max(x, at, d)
        for j in range(d):
            v = load1(x, at + j)
            store1(xb, k * L + lane, v)
            store1(idx, k * L + lane, j)
            k += 0 if v < top - MARGIN else 1
    store1(block, lane, F(k))
    store1(block, L + lane, top)
    most = max(most, k)
for lane in range(L):
    for j in range(intp(load1(block, lane)), most):
        store1(xb, j * L + lane, NINF)
m = vload(block, L)
"""
CANDIDATES_STORE = """
for j in range(most):
    vstore(pb, j * L, vload(pb, j * L) / total)
row_fill(out, base, rows * d, ZERO)
for lane in range(rows):
    for j in range(intp(load1(block, lane))):
        store1(out, base + lane * d + load1(idx, j * L + lane), load1(pb, j * L + lane))
"""

# With a margin. A row with one candidate needs no step.
MARGIN = """
near = vfull(x, ZERO)
for j in range(most):
    near = near + vselect_ge(vload(xb, j * L), m - MARGIN, ONE, ZERO)
live = vselect_gt(near, ONE, ONE, ZERO)
{block_bracket}
step = live
for iteration in range(17):
    f = vfull(x, ZERO)
    g = f
    for j in range(most):
        b = vatmost(vatleast((vload(xb, j * L) - c) - cl, ZERO), MARGIN)
        {q}
        p = vatmost(vabove(b, ZERO, p), ONE)
        w = vatmost(vwhere_pos(p, w), {huge})
        f = f + p
        g = g + w
        vstore(pb, j * L, p)
        vstore(wb, j * L, w)
    excess = f - ONE
    step = excess / g
    if iteration == 16 or not vsum(live) > ZERO:
        break
    {block_advance}
{block_last}
total = vfull(x, ZERO)
for j in range(most):
    p = vatmost(vatleast(vload(pb, j * L) - vload(wb, j * L) * step, ZERO), ONE)
    total = total + p
    vstore(pb, j * L, p)
cl = cl + step
"""

CONVEX_BRACKET = """
c = m - MARGIN
cl = (m - c) - MARGIN
"""
# A step after which what is left is far below the tolerance is the last one.
CONVEX_ADVANCE = """
{hasten}
t = cl + vselect_gt(live, ZERO, step, ZERO)
n = c + t
cl = t - (n - c)
c = n
live = vselect_gt(vabs(step), LOOSE, live, ZERO)
"""
CONVEX_LAST = """
live = vselect_gt(vabs(step), TOL, ONE, live)
"""

SAFE_BRACKET = """
left = m - MARGIN
ll = (m - left) - MARGIN
right = m + high
rl = (m - right) + high
t = HALF * (high - MARGIN)
c = m + t
cl = (m - c) + t
c = vselect_gt(live, ZERO, c, left)
cl = vselect_gt(live, ZERO, cl, ll)
last = vfull(x, INF)
"""
SAFE_ADVANCE = """
size = vabs(excess)
live = vselect_gt(size, TOL, live, ZERO)
if iteration > 6:
    live = vselect_gt(STALL, size, vselect_gt(last, size, live, ZERO), live)
left = vselect_gt(excess, ZERO, c, left)
ll = vselect_gt(excess, ZERO, cl, ll)
right = vselect_gt(excess, ZERO, right, c)
rl = vselect_gt(excess, ZERO, rl, cl)
t = cl + step
n = c + t
t = t - (n - c)
inside = vmin((n - left) + (t - ll), (right - n) + (rl - t))
if iteration > 6:
    inside = vselect_gt(size, HALF * last, ZERO, inside)
half = HALF * ((right - left) + (rl - ll)) + ll
middle = left + half
t = vselect_gt(inside, ZERO, t, half - (middle - left))
n = vselect_gt(inside, ZERO, n, middle)
live = vselect_gt(vabs(n - c) + vabs(t - cl), ZERO, live, ZERO)
c = vselect_gt(live, ZERO, n, c)
cl = vselect_gt(live, ZERO, t, cl)
last = size
"""

LOG_RATIO = """
ratio = vlog(rest / missing)
step = ratio / ((g + ties * w) / rest + w / missing)
"""
LOG_SUM = """
ratio = vlog(rest + top)
step = ratio * (rest + top) / (g + ties * w + w)
"""
# Without a margin: Newton for a logarithm, as for one row. The last step goes into the small part of c + cl. What is
# prepared of the scores is in wb.
DENSE = """
ties = vfull(x, ZERO) - ONE
for j in range(d):
    v = vload(xb, j * L)
    e = {prepared}
    vstore(wb, j * L, e)
    ties = ties + vselect_ge(e, {largest}, ONE, ZERO)
live = vfull(x, ONE)
u = vfull(x, high)
left = vfull(x, F({left}))
right = u
found = vfull(x, ZERO)
reach = live
ul = found
c = m
cl = found
for iteration in range(17):
    c = m + u
    cl = ((m - c) + u) + ul
    {block_threshold}
    f = vfull(x, ZERO)
    g = f
    for j in range(d):
        e = vload(wb, j * L)
        {argument}
        {q}
        {keep}
        vstore(pb, j * L, p)
        f = f + vselect_ge(e, {largest}, ZERO, p)
        g = g + vselect_ge(e, {largest}, ZERO, w)
    if iteration == 16 or not vsum(live) > ZERO:
        break
    r = {block_top}
    {at_top}
    top = vatmost(p, ONE)
    missing = vatleast(e, ZERO)
    rest = f + ties * top
    {block_newton}
    settled = vselect_gt(vabs(ratio), TOL, ZERO, live)
    ul = vselect_gt(settled, ZERO, step, ul)
    live = live - settled
    left = vselect_gt(rest, missing, u, left)
    found = vselect_gt(rest, missing, ONE, found)
    right = vselect_gt(rest, missing, right, u)
    new = u + step
    outside = vselect_gt(found, ZERO, HALF * (left + right), vmax(u - reach, left))
    inside = vselect_gt(new, left, vselect_gt(right, new, ONE, ZERO), ZERO)
    reach = vselect_gt(inside, ZERO, reach, F(4) * reach)
    new = vselect_gt(inside, ZERO, new, outside)
    u = vselect_gt(live, ZERO, new, u)
total = vfull(x, ZERO)
for j in range(d):
    total = total + vload(pb, j * L)
"""
