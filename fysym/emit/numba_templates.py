"""The text of the Numba kernels, with {places} for what depends on the entropy.

A kernel solves rows of x (rows `stride` apart) into rows of out, with scratch of its thread's own. Threads that run it
on one `state` (the next row, how many are finished, how many are left to the caller) take a `portion` of rows at a time
until row `end`, then look up to `patience` times whether all rows are finished. c + cl is the score whose rise is 0, as
a sum of two floats: a score next to the cut-off then keeps all its digits. NaN in a row makes its sums NaN, which is
what marks the row; rows with +inf, and those with more candidates than there is room for (cap of them, where cap < d),
are counted, filled with NaN and left to the caller.
"""

from __future__ import annotations

HEAD = '''
import numpy as np
from numba import float32, float64, intp, njit, types
from fysym.runtime.vector import *

F = np.{float}
D = np.float64
L = {lanes}
NINF, INF, NAN, ZERO, ONE, HALF = F(-np.inf), F(np.inf), F(np.nan), F(0), F(1), F(0.5)
TINY, BELOW = F({tiny}), F({below})
POINTER = types.CPointer({float})
MEMORY = {memory}
INDEX = types.CPointer(types.int32)
LABEL = types.CPointer(types.int64)
SIGNATURE = intp(
    MEMORY, MEMORY, POINTER, INDEX, MEMORY, LABEL, MEMORY, LABEL, intp, intp, intp, intp, float64, intp, intp
)


@njit(error_model="numpy", forceinline=True)
def row_max(x, base, d):
    """The largest score, NaN ignored; -inf if there is none."""
    a = vfull(x, NINF)
    b = a
    c = a
    e = a
    end = base + d
    j4 = base + d // (4 * L) * (4 * L)
    j1 = base + d // L * L
    for j in range(base, j4, 4 * L):
        a = vmax(vload(x, j), a)
        b = vmax(vload(x, j + L), b)
        c = vmax(vload(x, j + 2 * L), c)
        e = vmax(vload(x, j + 3 * L), e)
    for j in range(j4, j1, L):
        a = vmax(vload(x, j), a)
    if j1 < end:
        b = vmax(vloadn(x, j1, end - j1, NINF), b)
    return vmaxall(vmax(vmax(a, b), vmax(c, e)))


@njit(error_model="numpy", forceinline=True)
def vsome(x, at, count, fill):
    """A vector, or the first `count` lanes of it if that is less."""
    if count < L:
        return vloadn(x, at, count, fill)
    return vload(x, at)


@njit(error_model="numpy", forceinline=True)
def vput(out, at, v, count, stop):
    """Stores the first `count` lanes, and all of them where that is before `stop`: what is behind is written later."""
    if at + L <= stop:
        vstore(out, at, v)
    else:
        vstoren(out, at, v, count)


@njit(error_model="numpy", forceinline=True)
def row_fill(out, base, d, value):
    end = base + d
    j1 = base + d // L * L
    v = vfull(out, value)
    for j in range(base, j1, L):
        vstore(out, j, v)
    if j1 < end:
        vstoren(out, j1, v, end - j1)
'''

# Every kernel: rows in, rows out. {solve} leaves p in the row of out and c + cl, {after} turns p into what is wanted.
KERNEL = """

@njit(SIGNATURE, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
def run(x, out, scratch, idx, loss, label, y, state, d, stride, end, portion, high, cap, patience):
    room = cap // L * L + 2 * L
    buf = scratch
    pbuf = offset(scratch, room)
    wbuf = offset(scratch, 2 * room)
    block = offset(scratch, 3 * room)
    while True:
        lo = fetch_add(state, 0, portion)
        if lo >= end:
            break
        hi = min(lo + portion, end)
        special = 0
        for i in range(lo, hi):
            {each}
            src = i * stride
            base = i * d
            stop = hi * d
            {solve}
            {after}
        {last}
        fetch_add(state, 2, special)
        fetch_add(state, 1, hi - lo)
    for look in range(patience):
        if load_now(state, 1) >= end:
            break
    return 0
"""

# The largest score of a row first; a row without a finite one is filled with NaN.
ROW = """
m = row_max(x, src, d)
if not (m < INF and m > NINF):
    row_fill(out, base, d, NAN)
    {store_nan}
    if m == INF:
        special += 1
    continue
{solve_row}
"""

EXPONENTIAL = """
# q is an exponential: p = exp(rate (x - max)) / sum
a = vfull(x, ZERO)
n = a
j1 = d // L * L
for j in range(0, j1, L):
    v = vload(x, src + j)
    e = vexpn((v - m) * RATE)
    vstore(out, base + j, e)
    a = a + vselect_ge(v, m, ZERO, e)
    n = n + vselect_ge(v, m, ONE, ZERO)
if j1 < d:
    v = vloadn(x, src + j1, d - j1, NINF)
    e = vexpn((v - m) * RATE)
    vput(out, base + j1, e, d - j1, stop)
    a = a + vselect_ge(v, m, ZERO, e)
    n = n + vselect_ge(v, m, ONE, ZERO)
tops = vsum(n)
rest = vsum(a) + (tops - ONE)
r = ONE / (ONE + rest)
for j in range(0, j1, L):
    vstore(out, base + j, vload(out, base + j) * r)
if j1 < d:
    vput(out, base + j1, vsome(out, base + j1, d - j1, ZERO) * r, d - j1, stop)
if r != r:
    row_fill(out, base, d, NAN)
    {store_nan}
    continue
{threshold}
"""

# Only scores within the margin of the largest can have p > 0: they are gathered, and the cut is found among them.
MARGIN = """
thr = m - MARGIN
k = 0
full = room - 9 * L if cap < d else d
j4 = d // (4 * L) * (4 * L)
j1 = d // L * L
for j in range(0, j4, 4 * L):
    a = vload(x, src + j)
    b = vload(x, src + j + L)
    e = vload(x, src + j + 2 * L)
    f = vload(x, src + j + 3 * L)
    if vany(a, b, e, f, thr):
        if k > full:
            break
        vcompress(idx, k, vindex(a, j), a, thr)
        k += vcompress(buf, k, a, a, thr)
        vcompress(idx, k, vindex(b, j + L), b, thr)
        k += vcompress(buf, k, b, b, thr)
        vcompress(idx, k, vindex(e, j + 2 * L), e, thr)
        k += vcompress(buf, k, e, e, thr)
        vcompress(idx, k, vindex(f, j + 3 * L), f, thr)
        k += vcompress(buf, k, f, f, thr)
for j in range(j4, j1, L):
    a = vload(x, src + j)
    vcompress(idx, k, vindex(a, j), a, thr)
    k += vcompress(buf, k, a, a, thr)
if j1 < d:
    a = vloadn(x, src + j1, d - j1, NINF)
    vcompress(idx, k, vindex(a, j1), a, thr)
    k += vcompress(buf, k, a, a, thr)
if k > full:
    row_fill(out, base, d, NAN)
    {store_nan}
    special += 1
    continue
vstore(buf, k, vfull(x, NINF))
row_fill(out, base, d, ZERO)
if k == 1 and load1(buf, 0) == m:
    store1(out, base + load1(idx, 0), ONE)
    {alone}
    continue
{bracket}
step = ZERO
last = INF
for iteration in range(100):
    f = vfull(x, ZERO)
    g = f
    for j in range(0, k, L):
        b = vatmost(vatleast((vload(buf, j) - c) - cl, ZERO), MARGIN)
        {q}
        p = vatmost(vabove(b, ZERO, p), ONE)
        w = vatmost(vwhere_pos(p, w), {huge})
        f = f + p
        g = g + w
        vstore(pbuf, j, p)
        vstore(wbuf, j, w)
    excess = vsum(f) - ONE
    step = excess / vsum(g)
    {advance}
# The last Newton step is taken in p itself: beyond the resolution of the cut.
f = vfull(x, ZERO)
for j in range(0, k, L):
    p = vatmost(vatleast(vload(pbuf, j) - vload(wbuf, j) * step, ZERO), ONE)
    f = f + p
    vstore(pbuf, j, p)
total = vsum(f)
if total != total:
    row_fill(out, base, d, NAN)
    {store_nan}
    continue
cl = cl + step
for j in range(0, k, L):
    vstore(pbuf, j, vload(pbuf, j) / total)
for j in range(k):
    store1(out, base + load1(idx, j), load1(pbuf, j))
"""

# q convex: Newton from the left end of the bracket never overshoots.
CONVEX_BRACKET = """
c = m - MARGIN
cl = (m - c) - MARGIN
"""
CONVEX_ADVANCE = """
if not (abs(step) > TOL):
    break
{hasten}
t = cl + step
n = c + t
cl = t - (n - c)
c = n
"""
# Where q is a power, that root of the sum is convex too and nearer to a straight line; this is less than Newton's step
# for it, by a lower bound of (1 + excess)**power.
HASTEN = "step = step * ((ONE + excess) / (ONE + {rate} * excess))"

# Otherwise Newton inside a bracket, which is halved when Newton leaves it or is slow.
SAFE_BRACKET = """
left = m - MARGIN
ll = (m - left) - MARGIN
t = F(high)
right = m + t
rl = (m - right) + t
t = HALF * (t - MARGIN)
c = m + t
cl = (m - c) + t
"""
SAFE_ADVANCE = """
if not (abs(excess) > TOL):
    break
if iteration > 6 and abs(excess) < STALL and not (abs(excess) < last):
    break
if excess > ZERO:
    left = c
    ll = cl
else:
    right = c
    rl = cl
t = cl + step
n = c + t
t = t - (n - c)
inside = (n - left) + (t - ll) > ZERO and (right - n) + (rl - t) > ZERO
if not inside or (iteration > 6 and abs(excess) > HALF * last):
    t = HALF * ((right - left) + (rl - ll)) + ll
    n = left + t
    t = t - (n - left)
if n == c and t == cl:
    break
last = abs(excess)
c = n
cl = t
"""

AT_TOP = '''

@njit(error_model="numpy", forceinline=True)
def at_top(r):
    """q, q' and 1 - q at the rise of the largest score."""
    {at_top}
    return F(min(p, 1.0)), F(w), F(max(e, 0.0))
'''

# The same where q has no closed form: Newton's method for log t below the middle, for log(1 - t) above it.
_HALF = '''

@njit(error_model="numpy")
def {name}(s):
    """{words}"""
    low, high, at = -745.0, -0.6931471805599453, -2.0
    for iteration in range(200):
        t = vexp(at)
        {rises}
        miss = {miss}
        slope = curve_t * t
        step = miss / slope
        if slope < 1e300 and (abs(miss) <= 4.4e-16 * abs(s) or abs(step) <= 2.2e-16):
            return t - t * step if abs(step) < 1e-6 else t
        if miss < 0.0:
            low = at
        else:
            high = at
        if high - low <= 2.2e-16 * abs(low):
            return t
        new = at - step
        if iteration % 4 == 3 or not (new > low and new < high):
            new = 2.0 * at if 2.0 * at > low and miss > 0.0 and iteration % 4 != 3 else 0.5 * (low + high)
        at = new
    return vexp(at)
'''


def _half(name: str, words: str, rises: str, miss: str) -> str:
    places = {"{name}": name, "{words}": words, "{rises}": rises, "{miss}": miss}
    text = _HALF
    for place, value in places.items():
        text = text.replace(place, value)
    return text


SOLVED_TOP = (
    _half("lower_half", "t <= 1/2 with the rise s.", "{lower}", "rise_t - s")
    + _half("upper_half", "1 - t <= 1/2 of the rise s.", "{upper}", "s - rise_t")
    + '''

@njit(error_model="numpy")
def at_top(r):
    """q, q' and 1 - q at the rise of the largest score."""
    if r > {middle}:
        if r >= {high}:
            return ONE, F({weight_high}), ZERO
        t = upper_half(r)
        {upper}
        return F(1.0 - t), F(1.0 / curve_t), F(t)
    if not (r > {lowest}):
        return ZERO, ZERO, ONE
    t = lower_half(r)
    {lower}
    return F(t), F(1.0 / curve_t), F(1.0 - t)
'''
)

# For log(rest / missing) = 0, where rest is the mass of all but one largest score and missing is 1 minus that one's
# probability: tiny remainders keep their digits.
LOG_RATIO = """
if rest > ZERO and missing > ZERO:
    ratio = vlog(rest / missing)
    step = ratio / (weight / rest + slope / missing)
    if abs(ratio) <= TOL{sure}:
        settled = True
        break
    new = u + step
"""
# Where q is known up to 1/2 only, but for a largest score: where two are above that, the last step would fall short.
SURE = " and not (missing < HALF and rest >= HALF)"
# For log(sum) = 0, where q reaches 1 at a finite rise.
LOG_SUM = """
ratio = vlog(rest + top)
step = ratio * (rest + top) / (weight + slope)
if abs(ratio) <= TOL:
    settled = True
    break
new = u + step
"""

# No margin: Newton over the whole row. What is prepared of the scores waits in the row of out.
DENSE = """
n = vfull(x, ZERO)
for j in range(0, d, L):
    v = vsome(x, src + j, d - j, NINF)
    e = {prepared}
    vput(out, base + j, e, d - j, stop)
    n = n + vselect_ge(e, {largest}, ONE, ZERO)
ties = vsum(n) - ONE
u = F(high)
left = F({left})
right = u
found = False
settled = False
reach = ONE
ul = ZERO
tries = 0
step = ZERO
c = m
cl = ZERO
for iteration in range(200):
    c = m + u
    cl = ((m - c) + u) + ul
    {threshold}
    f = vfull(x, ZERO)
    g = f
    for j in range(0, d, L):
        e = vsome(out, base + j, d - j, {padding})
        {argument}
        {q}
        {keep}
        f = f + vselect_ge(e, {largest}, ZERO, p)
        g = g + vselect_ge(e, {largest}, ZERO, w)
    top, slope, missing = at_top({top})
    rest = vsum(f) + ties * top
    weight = vsum(g) + ties * slope
    step = ZERO
    if rest != rest or (rest == ZERO and missing <= ZERO):
        settled = True
        break
    new = NAN
    {newton}
    if new == u and tries < 4:  # a step below the resolution of u
        ul = ul + step
        tries += 1
        continue
    if rest > missing:
        left = u
        found = True
    else:
        if not found and u <= left:
            step = ZERO
            settled = True
            break
        right = u
    if not (new > left and new < right):
        new = HALF * (left + right) if found else (u - reach if u - reach > left else left)
        reach = reach * F(4)
    if new == u:
        settled = True
        break
    u = new
    ul = ZERO
if not settled:
    row_fill(out, base, d, NAN)
    {store_nan}
    special += 1
    continue
# The last step goes into the small part of c + cl: it is beyond the resolution of u.
cl = cl + step
{at_last}
f = vfull(x, ZERO)
for j in range(0, d, L):
    e = vsome(out, base + j, d - j, {padding})
    {argument}
    {q}
    {keep}
    {tops}
    f = f + p
    vput(out, base + j, p, d - j, stop)
total = vsum(f)
if total != total:
    row_fill(out, base, d, NAN)
    {store_nan}
    continue
r = ONE / total
for j in range(0, d, L):
    vput(out, base + j, vsome(out, base + j, d - j, ZERO) * r, d - j, stop)
"""

# The loss: terms s (p - y) - (g(p) - g(y)), each at least 0; a single largest score enters through 1 - p, the sum of
# the others. With a label most terms have y = 0, and the label's own adds -s.
VALUE = '''

@njit(error_model="numpy", forceinline=True)
def value(t):
    """g(t) of a number in double precision."""
    if not (t > 0.0 and t < 1.0):
        return 0.0
    {scalar_value}
    return g


@njit(error_model="numpy", forceinline=True)
def covalue(e):
    """g(1 - e) of a number in double precision."""
    if not (e > 0.0 and e < 1.0):
        return 0.0
    {scalar_covalue}
    return g
'''
PROPORTIONS = '''

@njit(error_model="numpy")
def proportions_loss(x, out, src, base, y, d, m, c, cl):
    """The loss for proportions y, which out - y becomes the gradient of."""
    f = vfull(x, ZERO)
    rest = f
    n = f
    for j in range(0, d, L):
        some = min(L, d - j)
        a = vloadn(x, src + j, some, NINF)
        t = vloadn(out, base + j, some, ZERO)
        v = vloadn(y, base + j, some, ZERO)
        s = ((a - c) - cl) + ANCHOR
        move = t - v
        p = t
        {value}
        gp = vselect_gt(ONE, t, vwhere_pos(t, g), ZERO)
        p = v
        {value}
        gy = vselect_gt(ONE, v, vwhere_pos(v, g), ZERO)
        term = vatleast(s * move - (gp - gy), ZERO)
        term = vselect_ge(t, v, vselect_ge(v, t, ZERO, term), term)
        f = f + vselect_ge(a, m, ZERO, term)
        rest = rest + vselect_ge(a, m, ZERO, t)
        n = n + vselect_ge(a, m, ONE, ZERO)
    result = D(vsum(f))
    missing = D(vsum(rest))
    tops = vsum(n)
    s = ((D(m) - D(c)) - D(cl)) + D(ANCHOR)
    for j in range(d):
        if load1(x, src + j) == m:
            t = D(load1(out, base + j))
            v = D(load1(y, base + j))
            if tops == ONE:
                term = s * ((1.0 - v) - missing) - (covalue(missing) - value(v))
            else:
                term = s * (t - v) - (value(t) - value(v))
            if t != v or tops == ONE:
                result += max(term, 0.0)
    return F(result)
'''
LABEL = '''

@njit(error_model="numpy", forceinline=True)
def label_sums(xs, xo, ps, po, k, m, c, cl):
    """Of k scores and their predictions: the sum of s p - g(p) and that of p without the largest, and how many are."""
    f = vfull(xs, ZERO)
    rest = f
    n = f
    for first in range(0, k, 32 * L):
        {fresh}
        for j in range(first, min(k, first + 32 * L), L):
            a = vsome(xs, xo + j, k - j, NINF)
            p = vsome(ps, po + j, k - j, ZERO)
            {term}
        {logarithms}
    return D(vsum(f)), D(vsum(rest)), D(vsum(n))


@njit(error_model="numpy", forceinline=True)
def label_loss(result, missing, tops, m, c, cl, at):
    """The loss for a label whose score is `at`, from these sums."""
    s = ((D(m) - D(c)) - D(cl)) + D(ANCHOR)
    if tops == 1.0:
        if at == m:
            if missing > 0.0:
                result += max(-s * missing - covalue(missing), 0.0)
            return F(result)
        result += max(s * (1.0 - missing) - covalue(missing), 0.0)
    else:
        t = (1.0 - missing) / tops
        result += tops * max(s * t - value(t), 0.0)
    result -= ((D(at) - D(c)) - D(cl)) + D(ANCHOR)
    return F(max(result, 0.0))
'''
# Where q is an exponential the loss of a row is log1p(rest) / rate + (largest - at): the logarithms of L rows at once.
LOGARITHMS = '''

@njit(error_model="numpy", forceinline=True)
def add_logarithms(loss, first, rests, some):
    """Adds log1p(rest) / rate to the losses of some rows."""
    vstoren(loss, first, vloadn(loss, first, some, ZERO) + vlog1p(vload(rests, 0)) / RATE, some)
'''
EXPONENTIAL_EACH = """
if (i - lo) & (L - 1) == 0:
    if i > lo:
        add_logarithms(loss, i - L, buf, L)
    vstore(buf, 0, vfull(x, ZERO))
"""
EXPONENTIAL_LABEL = """
store1(loss, i, m - at)
store1(buf, (i - lo) & (L - 1), rest)
"""
EXPONENTIAL_LAST = """
if hi > lo:
    left_over = ((hi - lo - 1) & (L - 1)) + 1
    add_logarithms(loss, hi - left_over, buf, left_over)
"""
AFTER_LABEL = """
label_at = load1(label, i)
at = load1(x, src + label_at)
{label_loss}
store1(out, base + label_at, load1(out, base + label_at) - ONE)
"""
# One score and its prediction, or a vector of them, in the sums.
LABEL_TERM = """
t = p
s = ((a - c) - cl) + ANCHOR
{psi}
f = f + vselect_ge(a, m, ZERO, psi)
rest = rest + vselect_ge(a, m, ZERO, t)
n = n + vselect_ge(a, m, ONE, ZERO)
"""
LABEL_SUMS = "terms, missing, tops = label_sums({0})"
AFTER_PROPORTIONS = """
value_here = proportions_loss(x, out, src, base, y, d, m, c, cl)
store1(loss, i, value_here)
if value_here == INF:  # a difference of scores may have overflowed
    row_fill(out, base, d, NAN)
    special += 1
    continue
for j in range(0, d, L):
    some = min(L, d - j)
    vstoren(out, base + j, vloadn(out, base + j, some, ZERO) - vloadn(y, base + j, some, ZERO), some)
"""

JVP = '''

@njit(error_model="numpy")
def directional(out, base, y, wbuf, pbuf, d):
    """J v with J = diag(w) - w w^T / sum(w); the heaviest coordinate is minus the sum of the others."""
    f = vfull(out, ZERO)
    g = f
    for j in range(0, d, L):
        some = min(L, d - j)
        t = vloadn(out, base + j, some, ZERO)
        p = vatmost(vatleast(t, TINY), BELOW)
        {weight}
        w = vatmost(vselect_gt(ONE, t, vwhere_pos(t, w), WEIGHT_HIGH), {huge})
        v = vwhere_pos(w, vloadn(y, base + j, some, ZERO))
        vstore(wbuf, j, w)
        vstore(pbuf, j, v)
        f = f + w
        g = vfma(w, v, g)
    total = vsum(f)
    mean = vsum(g) / total if total > ZERO else ZERO
    best = ZERO
    at = 0
    for j in range(d):
        if load1(wbuf, j) > best:
            best = load1(wbuf, j)
            at = j
    f = vfull(out, ZERO)
    for j in range(0, d, L):
        vstoren(out, base + j, vload(wbuf, j) * (vload(pbuf, j) - mean), min(L, d - j))
    store1(out, base + at, ZERO)
    for j in range(0, d, L):
        f = f + vloadn(out, base + j, min(L, d - j), ZERO)
    store1(out, base + at, -vsum(f))
'''
