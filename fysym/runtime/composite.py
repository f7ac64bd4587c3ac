"""Predictions and losses of F(v(p)) for a separable v: its prediction at theta / w, w found for all rows at once."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from .arrays import as_rows, back, back_batch, like, proportions, quiet, targets
from .target import answer

# -- emitted from here --

EPS = 2.0**-52
TINY = 2.0**-1022
MANY = 2**18  # entries that are worked on at a time
LARGE = 4.0  # w beyond which the loss is not split
CLOSE = 0.05  # a distance from a vertex
LEAST = 1e-300  # of what next to a vertex is not left out


class Functions:
    """H = G(u), u = sum_j s(p_j), s(0) = 0: `outer` are G, G', G'', `inner` are s, s', and `at_one` is s(1).

    `separable` is a Regularizer of v = sign * u, so that w = sign * G'(u); `margin` is that of H.
    """

    def __init__(self, separable: Any, sign: int, outer: Any, inner: Any, at_one: float, margin: float) -> None:
        self.separable, self.sign, self.outer, self.inner = separable, sign, outer, inner
        self.at_one, self.margin = at_one, margin

    def u(self, p: Any) -> Any:
        """sum_j s(p_j)."""
        row, column = np.nonzero(p)
        positive = p[row, column]
        terms = np.where(positive >= 1.0, self.at_one, self.inner[0](positive))
        if self.at_one == 0.0:  # u is small next to a vertex, and 1 - p is what the other classes have
            here = np.flatnonzero(positive > 1.0 - CLOSE)
            others = np.array(p[row[here]])
            others[np.arange(len(here)), column[here]] = 0.0
            terms[here] = self.next_to_one(others.sum(axis=1))
        return np.bincount(row, terms, minlength=len(p))

    def next_to_one(self, e: Any) -> Any:
        """s(1 - e) where s(1) = 0: minus the integral of s' from 1 - e to 1."""
        covalue = self.separable._module.F.covalue
        if covalue is not None:
            return np.where(e > 0.0, -covalue(np.maximum(e, 1e-300)), 0.0)
        places, shares = np.polynomial.legendre.leggauss(8)
        slopes = self.inner[1](1.0 - e[:, None] * (0.5 + 0.5 * places)) + 0.0 * e[:, None]
        return -0.5 * e * (slopes * shares).sum(axis=1)

    def w(self, u: Any) -> Any:
        """F'(v), what the coordinates share."""
        return self.sign * self.outer[1](u) + 0.0 * u

    def entropy(self, u: Any) -> Any:
        """G(u), which is 0 at the vertices."""
        return np.where(u == self.at_one, 0.0, self.outer[0](u) + 0.0 * u)

    def gradient(self, p: Any) -> Any:
        """G'(u) s'(p_j), by limits at 0 and 1 where s' is infinite there."""
        low, high = (
            -self.sign * end for end in (self.separable._module.F.slope_low, self.separable._module.F.slope_high)
        )
        slopes = self.inner[1](np.minimum(np.maximum(p, 1e-300), 1.0)) + 0.0 * p
        slopes = np.where((p <= 0.0) & np.isinf(low), low, np.where((p >= 1.0) & np.isinf(high), high, slopes))
        return (self.outer[1](self.u(p)) + np.zeros(len(p)))[:, None] * slopes


def solve_composite(functions: Functions, theta: Any) -> tuple[Any, Any]:
    """p and w of each row, by NumPy: only scores within the margin are worked on, rows of like number together."""
    n, d = theta.shape
    p, w = np.zeros((n, d)), np.full(n, np.nan)
    largest = theta.max(axis=1, initial=-np.inf)
    bad = ~(largest > -np.inf)
    p[bad] = np.nan
    least = -functions.margin * (1.0 + 1e-6)
    some = max(1, MANY // d)
    parts = [np.zeros((2, 0), dtype=np.int64)]
    for k in range(0, n, some):
        x = below(theta[k : k + some], largest[k : k + some])
        row, column = np.nonzero((x >= least) & (x > -np.inf) & ~bad[k : k + some, None])
        parts.append(np.stack([row + k, column]))
    row, column = np.concatenate(parts, axis=1)
    counts = np.bincount(row, minlength=n)
    place = np.arange(len(row)) - (np.cumsum(counts) - counts)[row]
    widths = np.minimum(2 ** np.ceil(np.log2(np.maximum(counts, 1))).astype(np.int64), d)
    for width in np.unique(widths[~bad]):
        rows = np.flatnonzero((widths == width) & ~bad)
        for k in range(0, len(rows), max(1, MANY // width)):
            chosen = rows[k : k + max(1, MANY // width)]
            slot = np.full(n, -1)
            slot[chosen] = np.arange(len(chosen))
            here = np.flatnonzero(slot[row] >= 0)
            i, j = row[here], column[here]
            packed = np.full((len(chosen), width), -np.inf)
            packed[slot[i], place[here]] = below(theta[i, j][:, None], largest[i])[:, 0]
            found, w[chosen], cut = iterate(functions, packed)
            p[i, j] = found[slot[i], place[here]]
            wrong = chosen[(cut < least) & (counts[chosen] < d)]  # a class that was left out belongs to the support
            if len(wrong):
                p[wrong], w[wrong], _ = iterate(functions, below(theta[wrong], largest[wrong]))
    return p, w


def below(theta: Any, largest: Any) -> Any:
    """Scores less the largest of their row; +inf leaves nothing to the others."""
    x = theta - largest[:, None]
    return np.where(np.isposinf(largest)[:, None], np.where(np.isposinf(theta), 0.0, -np.inf), x)


def iterate(functions: Functions, x: Any) -> tuple[Any, Any, Any]:
    """p, w and the score at which p becomes 0: Newton's method for log w, in a bracket.

    Where H is concave, F' / w falls with w: above 1, w is too small, and below 1 it is too large.
    """
    n = len(x)
    module = functions.separable._module
    f = module.F
    p, cut, wrong = np.empty_like(x), np.full(n, -np.inf), np.zeros(n, dtype=bool)
    vertex = np.full(n, functions.w(np.array([functions.at_one]))[0])
    classes = np.count_nonzero(x > -np.inf, axis=1)
    uniform = functions.w(np.where(classes > 1, classes * functions.inner[0](1.0 / classes), functions.at_one))
    # w lies often between these two, but F' may have an extremum: steps are as long as that, and then ever longer
    reach = np.abs(np.log(uniform / vertex)) + 1e-3
    reach = np.where(np.isfinite(reach), reach, 1.0)
    low, high, before = np.zeros(n), np.full(n, np.inf), np.full(n, np.inf)
    w = np.where(np.isfinite(vertex) & (vertex > 0.0), vertex, np.where(classes > 1, uniform, 1.0))
    even = (x == 0.0).sum(axis=1) == classes  # equal scores share equally
    p[even] = (x[even] == 0.0) / np.maximum(classes[even], 1)[:, None]
    w[even] = np.where(classes > 1, np.where((uniform > 0.0) & np.isfinite(uniform), uniform, np.nan), w)[even]
    cut[even] = module.solve_rows(f, x[even]).u * w[even]
    todo = np.flatnonzero(~even)
    for iteration in range(200):
        at = w[todo]
        solved = module.solve_rows(f, x[todo] / at[:, None])
        p[todo] = solved.p
        u = functions.u(solved.p)
        fresh = functions.w(u)
        miss = np.log(fresh / at)
        weight = module.weights(f, solved.p, solved.x - solved.u[:, None])
        rise = np.where(weight > 0.0, solved.x - solved.u[:, None], 0.0)
        total = weight.sum(axis=1)
        mean = (weight * rise).sum(axis=1) / np.where(total > 0.0, total, 1.0)
        spread = (weight * (rise - mean[:, None]) ** 2).sum(axis=1)
        bend = functions.outer[2](u) / fresh
        rate = 1.0 - bend * spread
        low[todo] = np.where(miss > 0.0, np.maximum(low[todo], at), low[todo])
        high[todo] = np.where(miss > 0.0, high[todo], np.minimum(high[todo], at))
        lowest, highest, most = low[todo], high[todo], reach[todo]
        slow = (iteration > 12) & (np.abs(miss) > 0.5 * before[todo]) | (iteration > 100)
        move = np.where((rate > 0.0) & ~slow, miss / rate, np.copysign(np.inf, miss))
        move = np.where(np.abs(move) < EPS, np.copysign(EPS, miss), move)  # to the other side of the root
        after = at * np.exp(np.clip(move, -most, most))
        reach[todo] = np.where(np.abs(move) < most, most, 2.0 * most)
        halve = ((np.abs(move) >= most) | (after <= lowest) | (after >= highest)) & (lowest > 0.0) & (highest < np.inf)
        after = np.where(halve, lowest * np.sqrt(highest / lowest), np.clip(after, 1e-300, 1e300))
        before[todo] = np.abs(miss)
        narrow = highest <= lowest * (1.0 + 2 * EPS)
        narrow |= (functions.at_one > 0.0) & (u < TINY) & (iteration > 12)  # u has no digits left
        done = (np.abs(miss) <= 2 * EPS) | narrow | np.isnan(miss) | (classes[todo] < 2)
        cut[todo] = np.where(total > 0.0, solved.u * at, cut[todo])
        # F' has only the digits that rounding leaves to w and to p; with less than those, u has underflown
        change = (np.where(solved.p > 0.0, np.abs(functions.inner[1](solved.p)), 0.0) * solved.p).sum(axis=1)
        lost = np.abs(miss) > EPS * (100.0 + 64.0 * (np.abs(rate) + np.abs(bend) * change))
        wrong[todo] = ~done | np.isnan(miss) | (narrow & lost)
        w[todo] = np.where(done, at, after)
        todo = todo[~done]
        if len(todo) == 0:
            break
    if functions.at_one == 0.0 and np.isfinite([f.slope_low, f.slope_high]).all():
        near = np.flatnonzero((p.max(axis=1) > 1.0 - CLOSE) & (classes > 1))
        fine, steady, right = polished(functions, x[near], p[near])
        better = near[right]
        p[better], w[better], wrong[better] = fine[right], steady[right], False
    p[wrong & (classes > 1)] = np.nan  # rather than a number that is wrong
    return p, w, cut


def polished(functions: Functions, x: Any, p: Any) -> tuple[Any, Any, Any]:
    """p and w next to a vertex that is not reached, by Newton's method for log p: x / w has not the digits there.

    The last of what is returned is whether p is optimal.

    With k the largest class, x_j + w D_j = 0 on the support, where D_j = s'(p_j) - s'(p_k). In a step dp, with
    E = sum_j dp_j and Z = sum_j D_j dp_j, w changes by G'' Z and D_j by s''(p_j) dp_j + s''(p_k) E. All is
    divided by w, and 1/s'' by the largest of it, as they may be as large as a double can be.
    """
    f = functions.separable._module.F
    rows, top = np.arange(len(p)), x.argmax(axis=1)
    lost = np.array(x)
    lost[rows, top] = -np.inf
    best = lost.argmax(axis=1)  # l
    others = np.where((lost == lost.max(axis=1)[:, None]) & (p.max(axis=1) >= 1.0)[:, None], EPS / 4.0, p)
    others[rows, top] = 0.0
    for _ in range(80):
        rest, some, u, w, bend, end, apart = beside(functions, others, top)
        safe = np.where(some, others, 0.5)
        curve, soft = -(f.curvature(1.0 - rest) + 0.0 * rest), np.where(some, -1.0 / f.curvature(safe), 0.0)
        most = np.abs(soft).max(axis=1)
        share = soft / most[:, None]
        miss = np.where(some, apart * np.log(-x / w[:, None] / apart), 0.0)
        # Two linear equations for E and Z. All D are nearly the same: what they share with class l is taken out.
        lead, m = apart[rows, best], miss[rows, best]
        off, more = np.where(some, apart - lead[:, None], 0.0), np.where(some, miss - m[:, None], 0.0)
        sums = (share, share * off, share * off**2, share * more, share * off * more)
        a, o1, o2, n0, n1 = (terms.sum(axis=1) for terms in sums)
        b, one = a * lead + o1, a * m + n0
        small, curve = u / most, curve * most
        size = small * (1.0 + curve * a) + bend * (lead * (b + o1) + o2 + curve * (a * o2 - o1**2))
        total = (u * one + most * (bend * (lead * o1 * n0 + o2 * one - o1**2 * m - b * n1))) / size
        along = bend * (lead * one + m * o1 + n1 + curve * (a * n1 - o1 * n0)) / size
        step = share * (total / a)[:, None] + soft * (((o1 * along - n0) / a)[:, None] + more - off * along[:, None])
        behind = x - x[rows, best][:, None]
        out = (behind < -(w * (-f.slope_low - lead - end))[:, None]) & (step <= -others)
        others = np.where(out, 0.0, others * np.exp(np.clip(step / safe, -30.0, 2.0)))
        still = (np.abs(step) <= (EPS + 1e-14 * rest)[:, None]).all(axis=1) & (np.abs(total) <= 1e-14 * rest)
        if (still | ~(rest >= LEAST)).all():
            break
    rest = others.sum(axis=1)
    gone = ~(rest >= LEAST)  # a vertex, if even at p = LEAST the score is too far behind
    others[gone] = 0.0
    others[gone, best[gone]] = LEAST
    rest, some, _, w, _, end, apart = beside(functions, others, top)
    off = np.log(-x / w[:, None] / np.where(some, apart, (-f.slope_low - end)[:, None]))
    fits = (off >= -1e-12) & ((off <= 1e-12) | ~some | gone[:, None])
    fits[rows, top] = True
    p = np.where(gone[:, None], 0.0, others)
    p[rows, top] = np.where(gone, 1.0, 1.0 - rest)
    w = functions.w(functions.u(p))
    return p, np.where(np.isfinite(w), w, 1.0), fits.all(axis=1)


def beside(functions: Functions, others: Any, top: Any) -> tuple[Any, ...]:
    """For the probabilities of all but the largest class: their sum, which are positive, u, w, u G''/G', s'(p_k)
    and D."""
    rest, some = others.sum(axis=1), others > 0.0
    p = np.array(others)
    p[np.arange(len(p)), top] = 1.0 - rest
    u = functions.u(p)
    w, bend = functions.w(u), functions.outer[2](u) + 0.0 * u
    ratio = np.where(np.isfinite(bend), u * (bend / w), np.log(functions.w(u * (1.0 + 1e-4)) / w) / 1e-4)
    end = functions.inner[1](1.0 - rest) + 0.0 * rest
    safe = np.where(some, others, 0.5)
    return rest, some, u, w, ratio, end, functions.inner[1](safe) + 0.0 * safe - end[:, None]


def problem(functions: Functions) -> str:
    """Scores whose prediction is not optimal, in words; '' if all is well. Very high powers of t are beyond doubles.

    theta + G'(u) s'(p) must be equal on the support and no larger off it. Where s' jumps, any slope between those of
    both sides will do; a p that is below LEAST may have underflown, and is judged as one that is not in the support.
    """
    theta = np.random.default_rng(0).normal(size=(24, 6)) * np.repeat([0.05, 0.3, 1.0], 8)[:, None]
    with np.errstate(all="ignore"):
        p, _ = solve_composite(functions, theta)
        steep = (functions.outer[1](functions.u(p)) + np.zeros(len(p)))[:, None]
        near = [np.clip(p * (1.0 + side), LEAST, 1.0 - EPS) for side in (-64 * EPS, 0.0, 64 * EPS)]
        slopes = np.array([steep * functions.inner[1](t) + 0.0 * t for t in near])
        least, most = theta + slopes.min(axis=0), theta + slopes.max(axis=0)
        level = np.where(p > LEAST, most, np.inf).min(axis=1)[:, None]
        right = ((least - level) / (1.0 + np.abs(slopes).max(axis=0)) <= 1e-10).all(axis=1)
        right |= np.isinf(steep[:, 0]) & (p.max(axis=1) == 1.0)  # a vertex that is not reached, but for underflow
    bad = np.flatnonzero(~right)
    return f"for the scores {theta[bad[0]].round(3).tolist()} no w was found" if len(bad) else ""


def inner_target(target: str | None) -> str | None:
    """The target of the sum inside, which may have no compiled code where the entropy around it has."""
    return "numpy" if target == "numpy" else None


class CompositeKernel:
    """What a user calls: any array-like in, the same shape and precision out."""

    def __init__(self, functions: Functions, fast: Any) -> None:
        self.functions = functions
        self.fast = fast  # the compiled kernel, or the reason why there is none

    def solve(self, theta: Any, target: str | None) -> tuple[Any, Any]:
        found: tuple[Any, Any] = answer(
            target,
            lambda: self.fast,
            lambda kernel: kernel.solve(theta),
            lambda: solve_composite(self.functions, theta),
        )
        return found

    def solved(self, theta: Any, axis: int, target: str | None = None) -> tuple[SimpleNamespace, Any, Any]:
        """theta as rows in float64, p and w."""
        given = as_rows(theta, axis)
        given.rows = np.ascontiguousarray(given.rows, dtype=np.float64)
        return given, *self.solve(given.rows, target)

    def at(self, given: Any, w: Any) -> Any:
        """The scores at which v predicts the same: less their largest, divided by w."""
        return below(given.rows, given.rows.max(axis=1, initial=-np.inf)) / w[:, None]

    def predict(self, theta: Any, axis: int = -1, target: str | None = None) -> Any:
        """The probabilities that maximise <theta, p> + H(p)."""
        return answer(
            target,
            lambda: self.fast,
            lambda kernel: kernel.predict(theta, axis),
            lambda: self.plainly(theta, axis),
        )

    @quiet
    def plainly(self, theta: Any, axis: int) -> Any:
        """The same, by NumPy."""
        given, p, _ = self.solved(theta, axis, "numpy")
        return back(given, p)

    @quiet
    def threshold(self, theta: Any, axis: int = -1) -> Any:
        """The tau of each row: p is q((theta - tau) / w)."""
        given, _, w = self.solved(theta, axis)
        inside = self.functions.separable.threshold(self.at(given, w))
        return back_batch(given, given.rows.max(axis=1, initial=-np.inf) + w * inside)

    @quiet
    def conjugate(self, theta: Any, axis: int = -1) -> Any:
        """Omega*(theta), the largest <theta, p> + H(p)."""
        given, p, w = self.solved(theta, axis)
        largest = given.rows.max(axis=1, initial=-np.inf)
        terms = np.where(p > 0.0, below(given.rows, largest) * p, 0.0)
        found = largest + (terms.sum(axis=1) + self.functions.entropy(self.functions.u(p)))
        return back_batch(given, np.where(np.isnan(p).any(axis=1) | np.isnan(w), np.nan, found))

    @quiet
    def value_and_grad(self, theta: Any, y: Any, axis: int = -1, target: str | None = None) -> tuple[Any, Any]:
        """Loss and gradient: w times the loss of v at theta / w, and how far G is from its tangent.

        Where w is large, both are large and cancel, and where it is tiny, theta / w is too large; at a vertex it
        may be infinite: there the loss is
        <theta, p - y> + H(p) - H(y).
        """
        given = as_rows(theta, axis)
        wanted = targets(y, given)
        given, p, w = self.solved(theta, axis, target)
        f = self.functions
        x = below(given.rows, given.rows.max(axis=1, initial=-np.inf))
        at_p, at_y = f.u(p), f.u(wanted)
        loss = f.entropy(at_p) - f.entropy(at_y)
        beyond = (np.isinf(x / w[:, None]) & np.isfinite(x)).any(axis=1) | np.isinf(f.w(at_p))  # than doubles go
        small, large = np.flatnonzero((w <= LARGE) & ~beyond), np.flatnonzero(~(w <= LARGE) | beyond)
        if len(small):
            inside = f.separable.loss(x[small] / w[small, None], wanted[small], target=inner_target(target))
            loss[small] += w[small] * (inside - f.sign * (at_p - at_y)[small])
        if len(large):
            apart = p[large] - wanted[large]
            loss[large] += np.where(apart == 0.0, 0.0, x[large] * apart).sum(axis=1)
        loss = np.where((p == wanted).all(axis=1), 0.0, np.maximum(loss, 0.0))
        loss = np.where(np.isnan(p).any(axis=1) | np.isnan(w), np.nan, loss)
        return back_batch(given, loss), back(given, p - wanted)

    def loss(self, theta: Any, y: Any, axis: int = -1, target: str | None = None) -> Any:
        """The loss of each row."""
        return self.value_and_grad(theta, y, axis, target)[0]

    def grad(self, theta: Any, y: Any, axis: int = -1, target: str | None = None) -> Any:
        """The gradient p - y of each row's loss."""
        return self.value_and_grad(theta, y, axis, target)[1]

    def derivative(self, given: Any, p: Any, w: Any, target: str | None = None) -> tuple[Any, Any, Any]:
        """Where v predicts the same, J x of v for the scores x, and the factor of (J x)(J x)^T in the Jacobian."""
        at = self.at(given, w)
        x = np.where(p > 0.0, at * w[:, None], 0.0)
        own = self.functions.separable.jvp(at, x, target=inner_target(target))
        second = self.functions.outer[2](self.functions.u(p)) + 0.0 * w  # of v, too: the sign comes in twice
        second = np.where(np.isfinite(second), second, 0.0)  # infinite at a vertex, which does not move
        return at, own, (second / w**2) / (w**2 - second * (x * own).sum(axis=1) / w)

    @quiet
    def jvp(self, theta: Any, v: Any, axis: int = -1, target: str | None = None) -> Any:
        """The derivative of the prediction: J_v / w and a matrix of rank one, by the implicit function theorem."""
        moves = like(v, as_rows(theta, axis))
        given, p, w = self.solved(theta, axis, target)
        at, own, factor = self.derivative(given, p, w, target)
        along = self.functions.separable.jvp(at, moves, target=inner_target(target))
        moves = np.where(own == 0.0, 0.0, moves)
        return back(given, along / w[:, None] + own * (factor * (own * moves).sum(axis=1))[:, None])

    def vjp(self, theta: Any, v: Any, axis: int = -1, target: str | None = None) -> Any:
        """v times the Jacobian, which is symmetric: the same as jvp."""
        return self.jvp(theta, v, axis, target)

    @quiet
    def jacobian(self, theta: Any, axis: int = -1) -> Any:
        """The Jacobian of each row's prediction, in two last dimensions."""
        given, p, w = self.solved(theta, axis)
        at, own, factor = self.derivative(given, p, w)
        found = self.functions.separable.jacobian(at) / w[:, None, None]
        found = found + factor[:, None, None] * own[:, :, None] * own[:, None, :]
        d = p.shape[1]
        return found.reshape(*given.batch, d, d).astype(given.dtype)

    @quiet
    def entropy(self, p: Any, axis: int = -1) -> Any:
        """H(p) of each row."""
        given = as_rows(p, axis, "p")
        return back_batch(given, self.functions.entropy(self.functions.u(proportions(given, "p"))))

    def tangent(self, p: Any, y: Any) -> Any:
        """<grad H(p), y - p> of each row."""
        return np.where(y == p, 0.0, self.functions.gradient(p) * (y - p)).sum(axis=1)

    @quiet
    def bregman(self, y: Any, p: Any, axis: int = -1) -> Any:
        """The Bregman divergence B(y || p) of Omega = -H."""
        given = as_rows(p, axis, "p")
        wanted, p = targets(y, given), proportions(given, "p")
        f = self.functions
        found = f.entropy(f.u(p)) - f.entropy(f.u(wanted)) + self.tangent(p, wanted)
        return back_batch(given, np.where((p == wanted).all(axis=1), 0.0, np.maximum(found, 0.0)))

    @quiet
    def score(self, p: Any, y: Any, axis: int = -1) -> Any:
        """The proper scoring rule S(p; y) = B(y || p) - Omega(y); lower is better."""
        given = as_rows(p, axis, "p")
        wanted, p = targets(y, given), proportions(given, "p")
        return back_batch(given, self.functions.entropy(self.functions.u(p)) + self.tangent(p, wanted))
