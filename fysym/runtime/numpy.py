"""Predictions in NumPy, for any entropy given by a handful of scalar functions.

With g = -h and q = (g')^{-1}, an entropy is a namespace `f` that holds
  value, slope, curvature   g, g', g'' at 0 < t < 1
  inverse, coinverse        q and 1 - q at a rise r = s - anchor between those of 0 and 1
  weight                    q'(r), given t = q(r) and the rise r
  covalue                   g(1 - e), where g'(1) is infinite; None elsewhere
  value_low, ..., slope_high, curvature_high   limits of g, g', g'' at 0 and 1
  anchor                    slope_low, or a number close to most slopes: scores near the cut-off keep their digits
  rise_high, rise_middle    rises at 1 and 1/2
  newton, exponential       whether q is convex, and whether it is a multiple of exp(rate * s)
Scores come as rows (n, d). They are solved a piece at a time, so that what a step works on stays in the cache.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

# -- emitted from here --

EPS = 2.0**-52
TINY = 2.0**-1022
BELOW_ONE = 1.0 - 2.0**-53
PIECE = 8192  # entries of a working array
BLOCK = 131072  # entries that are compared with the margin at a time
NOISE = 1e-13  # what is left of a sum of probabilities that is 1 but for rounding
LONG = 32768  # rows without a margin that are longer are never held as doubles
ROW = 8  # entries that take about the memory of what is kept for a row


# Scalar functions, extended to the closed interval and beyond the slopes at its ends.


def inside(t: Any) -> Any:
    """t moved off the end points, where only stored limits make sense."""
    return np.minimum(np.maximum(t, TINY), BELOW_ONE)


def value(f: Any, t: Any) -> Any:
    """g(t) on [0, 1]."""
    return np.where(t <= 0.0, f.value_low, np.where(t >= 1.0, f.value_high, f.value(inside(t))))


def slope(f: Any, t: Any) -> Any:
    """g'(t) on [0, 1]."""
    return np.where(t <= 0.0, f.slope_low, np.where(t >= 1.0, f.slope_high, f.slope(inside(t))))


def where_within(within: Any, function: Any, x: Any, safe: float, otherwise: Any) -> Any:
    """function(x) clipped to [0, 1] where `within`, else `otherwise`; `safe` is an x at which it has a value."""
    count = np.count_nonzero(within)
    if 2 * count >= within.size:
        t = function(x if count == within.size else np.where(within, x, safe))
        t = np.minimum(np.maximum(t, 0.0), 1.0)
        return t if count == within.size else np.where(within, t, otherwise)
    t = np.array(otherwise, dtype=np.float64)
    t[within] = np.minimum(np.maximum(function(x[within]), 0.0), 1.0)
    return t


def predict_one(f: Any, r: Any) -> Any:
    """q at a rise r, which is 0 at or below the lowest rise and 1 at or above the highest."""
    within = (r > f.slope_low - f.anchor) & (r < f.rise_high)
    return where_within(within, f.inverse, r, f.rise_middle, r >= f.rise_high)


def complement(f: Any, r: Any) -> Any:
    """1 - q at a rise r, without cancellation where q is close to 1."""
    within = (r > f.slope_low - f.anchor) & (r < f.rise_high)
    return where_within(within, f.coinverse, r, f.rise_middle, r < f.rise_high)


def weights(f: Any, p: Any, r: Any) -> Any:
    """w = q'(r) = 1/g''(p) on the support and 0 off it; at p = 1 by the stored limit."""
    between = (p > 0.0) & (p < 1.0)
    count = np.count_nonzero(between)
    if count == p.size:
        w = f.weight(p, r)
    elif 2 * count >= p.size:
        w = f.weight(inside(p), r)
        w = np.where(between, w, np.where(p >= 1.0, 1.0 / np.float64(f.curvature_high), 0.0))
    else:
        w = np.where(p >= 1.0, 1.0 / np.float64(f.curvature_high), 0.0)
        w[between] = f.weight(inside(p[between]), r[between])
    return np.minimum(w, 1e290)


# The threshold: the root tau of sum_j q(theta_j - tau) = 1. What is solved for is u = tau + anchor on rows whose
# largest score is 0: with the anchor at the slope at 0, u is the score at which a probability becomes 0.


def pieces(n: int, d: int, most: int = PIECE) -> list[slice]:
    """The rows (n, d) in slices of about `most` entries."""
    some = max(1, most // max(d, 1))
    return [slice(k, min(k + some, n)) for k in range(0, n, some)]


def portions(kept: Any) -> list[slice]:
    """Slices of rows with no more than PIECE entries kept, or of a single row."""
    n = len(kept)
    if int(np.count_nonzero(kept)) + ROW * n <= PIECE:
        return [slice(0, n)]
    ends = np.cumsum(kept.sum(axis=1) + ROW)
    found, start = [], 0
    while start < n:
        stop = int(np.searchsorted(ends, PIECE + (ends[start - 1] if start else 0), "right"))
        found.append(slice(start, max(stop, start + 1)))
        start = found[-1].stop
    return found


class Rows:
    """Scores of rows that stand one after another: `x`, 0 at the largest of a row, `counts` of each row, and `top`,
    the places of the largest. Predictions take the place of x, or go to `p`."""

    def __init__(self, x: Any, counts: Any, top: Any, p: Any = None) -> None:
        self.x, self.counts, self.top = x, counts, top
        self.starts = np.cumsum(counts) - counts
        self.p = x if p is None else p

    def spread(self, values: Any) -> Any:
        """The value of its row for each score."""
        return np.repeat(values, self.counts) if len(self.counts) > 1 else values

    def sums(self, entries: Any) -> Any:
        """The sum over each row, whose digits do not depend on other rows."""
        return np.add.reduceat(entries, self.starts)

    def of(self, entries: Any) -> Rows:
        """Only the scores that are marked, the largest of each row among them."""
        counts = np.add.reduceat(entries, self.starts, dtype=np.int64)
        return Rows(self.x[entries], counts, np.cumsum(entries)[self.top] - 1)

    def some(self, rows: Any) -> Rows:
        """Only the rows that are marked."""
        if rows.all():
            return self
        counts = self.counts[rows]
        return Rows(
            self.x[np.repeat(rows, self.counts)], counts, np.cumsum(counts) - counts + (self.top - self.starts)[rows]
        )

    def parts(self) -> list[tuple[slice, Any]]:
        """All scores at once, or those of a single long row a piece at a time; each with the largest that it has."""
        if len(self.counts) > 1 or len(self.x) <= PIECE:
            return [(slice(0, len(self.x)), self.top)]
        top = int(self.top[0])
        return [(k, [top - k.start] if k.start <= top < k.stop else []) for k in pieces(len(self.x), 2)]


class Less:
    """A long row of scores less its largest, which is worked out for a piece at a time."""

    def __init__(self, theta: Any, largest: Any) -> None:
        self.theta, self.largest = theta, np.float64(largest)

    def __len__(self) -> int:
        return len(self.theta)

    def __getitem__(self, k: Any) -> Any:
        return self.theta[k] - self.largest


def predict_long(f: Any, theta: Any, out: Any) -> bool:
    """The prediction of a long row into a row of zeros, in little memory; whether that was possible."""
    top = int(theta.argmax())
    largest = theta[top]
    if not np.isfinite(largest):
        return False
    x = Less(theta, largest)
    parts = pieces(len(theta), 2)
    if f.exponential is not None:
        total = 0.0
        for k in parts:
            e = np.exp(f.exponential[0] * x[k])
            out[k] = e
            total += e.sum()
        out /= total
        return True
    if has_margin(f):
        places, count = [], 0
        for k in parts:
            kept, _ = candidates(f, theta[None, k], theta[top : top + 1])
            places.append(np.flatnonzero(kept) + k.start)
            count += len(places[-1])
            if count > PIECE:
                break
        else:
            at = np.concatenate(places)
            out[at] = solve_kept(f, x[at], np.array([count]))[1]
            return True
    search(f, Rows(x, np.array([len(theta)]), np.array([top]), out))
    return True


def predict_rows(f: Any, theta: Any, out: Any) -> None:
    """Predictions of rows of scores, into rows of zeros; what is left of rows after the margin, many rows at a time."""
    n, d = theta.shape
    if d > (BLOCK if has_margin(f) else LONG):
        left = [i for i in range(n) if not predict_long(f, theta[i], out[i])]
        for i in left:
            out[i] = solve_rows(f, theta[i : i + 1]).p
        return
    if f.exponential is not None:
        for k in pieces(n, d):
            out[k] = solve_rows(f, theta[k]).p
        return
    flat = out.reshape(-1)
    waiting: list[Any] = []
    size = 0
    for block in pieces(n, d + ROW, BLOCK):
        kept, largest = candidates(f, theta[block])
        for k in portions(kept):
            bad = ~(largest[k] > -np.inf)
            if bad.any():
                out[block][k][bad] = np.nan
            places, x, counts = among(theta[block][k], kept[k], largest[k])
            first = (block.start + k.start) * d
            if places is None:
                flat[first : first + len(x)] = solve_kept(f, x, counts)[1]
                continue
            if size + len(x) + len(counts) > PIECE:
                predict_waiting(f, waiting, flat)
                size = 0
            size += len(x) + len(counts)
            waiting.append((places + first, x, counts))
    predict_waiting(f, waiting, flat)


def predict_waiting(f: Any, waiting: list[Any], flat: Any) -> None:
    """Solve what was kept of rows, put it where it belongs, and empty the list."""
    if waiting:
        places, x, counts = waiting[0] if len(waiting) == 1 else map(np.concatenate, zip(*waiting, strict=True))
        waiting.clear()
        flat[places] = solve_kept(f, x, counts)[1]


def has_margin(f: Any) -> bool:
    """Whether only scores within some distance of the largest can have p > 0."""
    return f.exponential is None and bool(np.isfinite(f.slope_low) and np.isfinite(f.rise_high))


def candidates(f: Any, theta: Any, largest: Any = None) -> tuple[Any, Any]:
    """Which scores can have p > 0, and the largest score of each row; none in rows that are NaN."""
    largest = theta.max(axis=1) if largest is None else largest
    if has_margin(f):
        least = largest.astype(np.float64) - (f.slope_high - f.slope_low) * (1.0 + 8 * EPS)
        least -= np.where(np.isinf(least), 0.0, 4 * EPS * np.abs(least))
        lowest = least.astype(theta.dtype)
        lowest = np.where(lowest > least, np.nextafter(lowest, theta.dtype.type(-np.inf)), lowest)
        kept = theta >= lowest[:, None]
        none = lowest == -np.inf
    else:
        kept = theta > -np.inf
        none = largest == np.inf
    if none.any():
        kept[none] = (theta[none] > -np.inf) & ((largest[none] < np.inf)[:, None] | (theta[none] == np.inf))
    bad = ~(largest > -np.inf)
    if bad.any():
        kept[bad] = False
    return kept, largest


def among(theta: Any, kept: Any, largest: Any) -> tuple[Any, Any, Any]:
    """The flat places of the scores that were kept, None if all were, these scores less the largest of their row, and
    how many of them each row has."""
    n, d = kept.shape
    largest = largest.astype(np.float64)
    places = None if kept.all() else np.flatnonzero(kept)
    if places is None:
        counts = np.full(n, d)
        x = (theta - largest[:, None]).reshape(-1)
    else:
        counts = np.diff(np.searchsorted(places, np.arange(n + 1) * d))
        x = theta.reshape(-1)[places].astype(np.float64, copy=False)
        x -= np.repeat(largest, counts)
    if np.isposinf(largest).any():
        x[np.isnan(x)] = 0.0  # of +inf and +inf
    return places, x, counts


def solve_kept(f: Any, x: Any, counts: Any) -> tuple[Any, Any]:
    """Thresholds of rows and predictions of their scores x, which stand one row after another, `counts` of each."""
    many = counts > 1
    u = np.full(len(counts), -(f.rise_high if np.isfinite(f.rise_high) else f.rise_middle))
    if not many.any():
        return u, np.ones(len(x))
    of_many = None if many.all() else np.repeat(many, counts)
    counts = counts[many]
    scores = x if of_many is None else x[of_many]
    tops = np.flatnonzero(scores == 0.0)
    if len(tops) > len(counts):  # the first of equal ones
        tops = tops[np.searchsorted(tops, np.cumsum(counts) - counts)]
    u[many], found = search(f, Rows(scores, counts, tops))
    if of_many is None:
        return u, found
    p = np.ones(len(x))
    p[of_many] = found
    return u, p


def solve(f: Any, theta: Any) -> SimpleNamespace:
    """Predictions `p` of rows of scores, with `s` = theta - tau, `tau`, and where scores are `masked`.

    NaN in a row, or a row of only -inf, makes that row NaN; +inf shares all of the mass.
    """
    solved = solve_rows(f, theta)
    x, u, masked, bad = solved.x, solved.u, solved.masked, solved.bad
    largest = theta[np.arange(len(theta)), solved.top].astype(np.float64)
    solved.s = (x - u[:, None]) + f.anchor
    solved.tau = largest + (u - f.anchor)
    for array in (solved.s, solved.tau):
        array[bad] = np.nan
    solved.far = np.isneginf(x) & ~masked  # the difference of two scores is larger than a double can be
    solved.half = 0.5 * theta - 0.5 * largest[:, None] if solved.far.any() else None
    return solved


def solve_rows(f: Any, theta: Any) -> SimpleNamespace:
    """Predictions `p` of rows of scores, and the threshold `u` of `x`, the scores less the row's largest, at `top`."""
    top = np.argmax(theta, axis=1)
    rows = np.arange(len(theta))
    largest = theta[rows, top].astype(np.float64)
    x = theta - largest[:, None]
    unbounded = np.isposinf(largest)
    if unbounded.any():
        x[unbounded] = np.where(np.isposinf(theta[unbounded]), 0.0, -np.inf)
    masked = np.isneginf(x)
    if masked.any():
        masked &= np.isneginf(theta) | unbounded[:, None]
    bad = np.isnan(largest) | np.isneginf(largest)
    x[bad] = 0.0
    if f.exponential is not None:
        u, p = exponential_threshold(f, x)
    else:
        kept, largest = candidates(f, theta)
        places, scores, counts = among(theta, kept, largest)
        p = np.zeros(x.shape)  # in C order, whatever the order of x
        u, p.reshape(-1)[slice(None) if places is None else places] = solve_kept(f, scores, counts)
    p[bad] = np.nan
    return SimpleNamespace(p=p, u=u, x=x, top=top, masked=masked, bad=bad)


def exponential_threshold(f: Any, x: Any) -> tuple[Any, Any]:
    """The closed form where q(s) = scale * exp(rate * s): a softmax."""
    rate, scale = f.exponential
    e = rate * x
    np.exp(e, out=e)
    total = e.sum(axis=1)
    e /= total[:, None]
    return np.log(scale * total) / rate, e


def excess(f: Any, rows: Rows, u: Any) -> tuple[Any, ...]:
    """sum_j q(x_j - u) - 1 of each row, with its scale and its derivative, and q and its derivative at the last scores.

    The largest probability enters through its complement, so that tiny remainders keep their digits.
    """
    rest = total = p = w = 0.0
    for k, top in rows.parts():
        r = rows.x[k] - rows.spread(u)
        p = predict_one(f, r)
        w = weights(f, p, r)
        largest = p[top]
        p[top] = 0.0
        rest, total = rest + rows.sums(p), total + rows.sums(w)
        p[top] = largest
    missing = complement(f, -u)
    return rest - missing, rest + missing, total, p, w


def search(f: Any, rows: Rows) -> tuple[Any, Any]:
    """The threshold and the prediction of each row, which has at least two scores."""
    low, high, at = bracket(f, rows)
    if not (f.newton and is_pruned(f, rows)):
        return newton(f, rows, low, high, at)
    alive = rows.x - rows.spread(low) > f.slope_low - f.anchor  # a score whose q is 0 left of the root has p = 0
    some = rows.of(alive)
    u, found, left = climb(f, some, at)
    if left.any():
        u[left], found[np.repeat(left, some.counts)] = newton(f, some.some(left), low[left], high[left], at[left])
    p = np.zeros_like(rows.x)
    p[alive] = found
    return u, p


def climb(f: Any, rows: Rows, at: Any) -> tuple[Any, Any, Any]:
    """The threshold and the prediction of each row from the left of the root, where q is convex: Newton's method never
    overshoots, and needs no bracket. Also which rows are left because that takes too long."""
    cut = f.slope_low - f.anchor
    least = 4 * EPS * f.rise_high
    last = max(shortest_step(f), least)
    rate = 0.5 * (1.0 + power(f))
    u, live = at.copy(), np.ones(len(at), bool)
    for _ in range(16):
        r = rows.x - rows.spread(u)
        dead = r <= cut
        some = dead.any()
        if some:
            r[dead] = f.rise_middle
        p = np.minimum(f.inverse(r), 1.0)
        w = f.weight(inside(p), r)
        if some:
            p[dead] = 0.0
            w[dead] = 0.0
        over, total = rows.sums(p) - 1.0, rows.sums(w)
        step = over / total
        small = np.abs(over) <= 1e-7  # where q is steep a short step is no sign
        moving = live & ~(small & (np.abs(step) <= least))
        if not moving.any():
            live = moving
            break
        live = moving & ~(small & (np.abs(step) <= last))
        if 0.5 < rate < 1.0:  # q is all but a power, and that root of the sum all but a line: less than its step
            step *= (1.0 + over) / (1.0 + rate * over)
        u[moving] += step[moving]
    # The last step is taken in p itself. The largest probability enters through its complement.
    largest = p[rows.top]
    p[rows.top] = 0.0
    step = (rows.sums(p) - complement(f, -u)) / total
    p[rows.top] = largest
    w *= rows.spread(step)
    p -= w
    np.maximum(p, 0.0, out=p)
    p /= rows.spread(rows.sums(p))
    return u + step, p, live


def newton(f: Any, rows: Rows, low: Any, high: Any, at: Any) -> tuple[Any, Any]:
    """The threshold and the prediction of each row, from a bracket of the threshold and a beginning."""
    u, lows, highs = at.copy(), low, high
    steep = np.zeros(len(u), bool)
    todo, left, width = np.arange(len(u)), rows, high - low
    logarithmic = not has_margin(f)
    exponent = power(f) if f.newton else 1.0
    arrived, crept, short = np.zeros(len(u), bool), np.zeros(len(u), bool), shortest_step(f)
    for iteration in range(200):
        over, scale, total, _, _ = excess(f, left, at)
        usable = (total > 0.0) & (total < 1e280)
        step = over / np.where(total > 0.0, total, 1.0)
        small = np.abs(over) <= 4 * EPS * scale
        collapsed = high - low <= 2 * EPS * np.maximum(np.abs(low), np.abs(high))
        tiny = usable & (np.abs(step) <= 0.5 * EPS * np.abs(at))
        done = small | collapsed | arrived | ((over <= 0.0) & (at <= low)) | (tiny & (np.abs(over) <= NOISE * scale))
        above = over > 0.0
        low, high = np.where(above & ~done, at, low), np.where(above | done, high, at)
        if logarithmic:  # where q is all but exponential, the logarithm of the sum is all but a line
            step = np.where(above & (over < 1e300), np.log1p(over) * (1.0 + over) / total, step)
        elif 0.0 < exponent < 1.0:  # where it is all but a power, that root of the sum is
            step = np.where(above, np.expm1(-exponent * np.log1p(over)) * (1.0 + over) / (-exponent * total), step)
        if (tiny & ~done).any():  # no sign of a root where q is steep: creep past it, or halve if that is not far
            step = np.where(tiny, np.copysign(1.5 * EPS * at, over), step)
        following = at + np.where(usable, step, np.inf)
        halve = (tiny & crept) | ~((following > low) & (following < high))
        crept = tiny
        if iteration % 3 == 2:
            now = high - low
            if not f.newton or iteration > 30:
                halve |= now > 0.5 * width
            width = now
        at = np.where(done, at, np.where(halve, middle(low, high), following) if halve.any() else following)
        arrived = done | (usable & ~halve & ~tiny & (np.abs(step) <= short))
        finished = np.count_nonzero(arrived)
        if 4 * finished >= len(arrived) or iteration == 199:
            u[todo], lows[todo], highs[todo], steep[todo] = at, low, high, collapsed & ~small
            if finished == len(arrived):
                break
            go_on = ~arrived
            left = left.some(go_on)
            todo, at, low, high, width, arrived, crept = (
                a[go_on] for a in (todo, at, low, high, width, arrived, crept)
            )
    return u, settle(f, rows, u, lows, highs, steep)


def power(f: Any) -> float:
    """The exponent of the rise as a function of p next to p = 1, where it is all but a power; 0 where it is not."""
    return float(f.curvature_high / f.rise_high) if 0.0 < f.rise_high < np.inf else 0.0


def shortest_step(f: Any) -> float:
    """The size of a step after which Newton's next one is below the rounding of the threshold, which the last step in p
    makes good; 0 where q' jumps at the cut-off or is not known to grow."""
    smooth = f.newton and has_margin(f) and float(f.curvature(np.array([TINY]))[0]) * f.rise_high > 1e9
    return 2e-9 * f.rise_high if smooth else 0.0


def middle(low: Any, high: Any) -> Any:
    """The middle of a bracket, or that of its logarithms where it spans orders of magnitude on one side of 0."""
    geometric = np.sign(low) * np.sqrt(np.abs(low)) * np.sqrt(np.abs(high))
    return np.where((low / high > 16.0) | (high / low > 16.0), geometric, 0.5 * (low + high))


def is_pruned(f: Any, rows: Rows) -> bool:
    """Whether a good beginning, for which scores are sorted, is worth its memory."""
    return has_margin(f) and len(rows.x) <= PIECE


def bracket(f: Any, rows: Rows) -> tuple[Any, Any, Any]:
    """Thresholds left and right of the root of each row, and where Newton begins."""
    high = -f.slope(1.0 / rows.counts)
    high = (high + f.anchor) + 8 * EPS * (np.abs(f.anchor) + np.abs(high))
    if f.anchor == f.slope_low:
        high = np.minimum(high, -TINY)  # the largest p is above 0
    if not np.isfinite(f.rise_high):
        low = np.minimum(expand(f, rows, high), high)
        return low, high, low
    low = np.minimum(-f.rise_high, high)
    if not is_pruned(f, rows):
        return low, high, low
    best = start(f, rows)
    best = np.where((best > low) & (best < high), best, low)
    return best if f.newton else low, high, best


def start(f: Any, rows: Rows) -> Any:
    """The largest of mean(x_1, ..., x_k) - r(1/k) over the k largest scores of each row, r being the rise.

    Where q is convex, the sum is at least k q(mean - u), so this is left of the root. All rows are sorted at once, each
    moved to a stretch of its own; what this costs is in digits that are not used, so that no row depends on others.
    """
    margin = f.slope_high - f.slope_low
    stretch = rows.spread(np.arange(len(rows.counts)) * (2.0 * margin))
    down = stretch - rows.x
    down.sort()
    np.subtract(stretch, down, out=down)
    k = np.arange(len(rows.x)) - rows.spread(rows.starts)
    sums = np.cumsum(down)
    sums -= rows.spread(sums[rows.starts] - down[rows.starts])
    shares = np.arange(1.0, rows.counts.max() + 1.0)
    rises = f.slope(inside(1.0 / shares)) - f.anchor
    sums /= shares[k]
    sums -= rises[k]
    best = np.maximum.reduceat(sums, rows.starts)
    return np.floor(best * (4096.0 / margin) - 1e-3) * (margin / 4096.0)


def expand(f: Any, rows: Rows, high: Any) -> Any:
    """A left end of the bracket where g'(1) is infinite: go left until the sum is at least 1."""
    distance = np.ones(len(high))
    low = high - distance
    todo, left = np.arange(len(high)), rows
    while len(todo):
        short = (excess(f, left, low[todo])[0] < 0.0) & (distance[todo] < 1e300)
        if not short.any():
            break
        todo, left = todo[short], left.some(short)
        distance[todo] *= 2.0
        low[todo] = high[todo] - distance[todo]
    return low


def settle(f: Any, rows: Rows, u: Any, low: Any, high: Any, steep: Any) -> Any:
    """The prediction at a threshold, with the last Newton step taken in p: it restores the sum beyond the resolution
    of tau. Where q is so `steep` that the sum jumps past 1 between neighbouring doubles: the mix of both that sums to
    1. It goes to where the rows want it.
    """
    mixed = between(f, rows.some(steep), low[steep], high[steep]) if steep.any() else None
    over, _, total, p, w = excess(f, rows, u)
    step = over / np.where(total > 0.0, total, 1.0)
    sums = 0.0
    for k, _ in rows.parts():
        if len(p) < len(rows.x):
            r = rows.x[k] - u
            p = predict_one(f, r)
            w = weights(f, p, r)
        w *= rows.spread(step)
        p -= w
        np.minimum(np.maximum(p, 0.0, out=p), 1.0, out=p)
        sums = sums + rows.sums(p)
        rows.p[k] = p
    rows.p /= rows.spread(sums)
    if mixed is not None:
        rows.p[np.repeat(steep, rows.counts)] = mixed
    return rows.p


def between(f: Any, rows: Rows, low: Any, high: Any) -> Any:
    """The mix of the predictions at two thresholds that sums to 1."""
    above, below = excess(f, rows, low)[0], excess(f, rows, high)[0]
    jump = above - below
    share = np.where(jump > 0.0, np.minimum(np.maximum(-below, 0.0) / np.where(jump > 0.0, jump, 1.0), 1.0), 0.5)
    p_low, p_high = (predict_one(f, rows.x[:] - rows.spread(u)) for u in (low, high))
    p = p_high + rows.spread(share) * (p_low - p_high)
    return p / rows.spread(rows.sums(p))
