"""Predictions, losses and derivatives by compiled kernels; what a user calls when Numba is there."""

from __future__ import annotations

import functools
from types import SimpleNamespace
from typing import Any

import numpy as np

from ..errors import UnsupportedError
from .arrays import as_rows, back, back_batch, like, targets
from .team import share

# -- emitted from here --

ROUNDING = {64: 2.0**-52, 32: 2.0**-23}
PACKED = 131072  # entries of strided rows that are packed at a time
# Longer rows than this get scratch for so many candidates first, and for all their entries only if that was too little.
CANDIDATES = 32768
SHORT = 128  # longest rows that are solved in blocks, one a lane
FLOATS = {np.dtype(np.float64): 64, np.dtype(np.float32): 32}


class Compiled:
    """The methods of an emitted NumPy module that have compiled kernels, over `module`, which has all of them."""

    def __init__(self, load: Any, module: Any, needs: Any) -> None:
        self.load = load  # a kernel by its kind, its bits, and a function that says what is wrong with it
        # Of a kind and bits: the bits of scratch, how many rows of it, and whether few candidates need less.
        self.needs = functools.cache(needs)
        self.module = module
        self.natives: dict[tuple[str, int], Any] = {}  # a kernel, or why there is none
        self.highs: dict[int, float] = {}
        self.wide: set[str] = set()  # kinds for which float32 is computed in float64

    def native(self, kind: str, bits: int) -> Any:
        found = self.natives.get((kind, bits))
        if found is None:
            try:
                found = self.load(kind, bits, lambda made: self.problem(kind, bits, made))
            except UnsupportedError as error:
                found = str(error)
            except Exception as error:  # a version of Numba or LLVM that this code was not made for
                found = f"the kernel could not be compiled: {type(error).__name__}: {error}"
            self.natives[kind, bits] = found
        if isinstance(found, str):
            raise UnsupportedError(found)
        return found

    def fits(self, *kinds: str) -> bool:
        """Whether there are kernels of these kinds."""
        try:
            return all(self.native(kind, 64) for kind in kinds)
        except UnsupportedError:
            return False

    def problem(self, kind: str, bits: int, native: Any) -> str:
        """Where a new kernel is farther from the NumPy target than a few units of the scores explain; '' if nowhere."""
        dtype = np.float64 if bits == 64 else np.float32
        for rows in hard_rows(self.module, dtype):
            n, d = rows.shape
            labels = np.zeros(n, np.int64)
            y = np.tile((1 + np.arange(d)) / (d * (d + 1) / 2), (n, 1)).astype(dtype)
            loss = np.zeros(n, dtype)
            got, special = self.rows(native, rows, loss, labels, y, self.needs(kind, bits))
            if special:
                self.repair(kind, rows, got, loss, labels, y)
            wide = rows.astype(np.float64)
            expected, losses = self.by_numpy(kind, wide, labels, y)
            spread, losses_spread = np.zeros(rows.shape), np.zeros(n)
            threshold = self.module.threshold(wide) - wide.max(axis=1) + self.module.F.anchor
            units = np.maximum(np.abs(wide).max(axis=1), np.where(np.isfinite(threshold), np.abs(threshold), 0.0))
            shift = 4 * np.spacing(units.astype(dtype)).astype(np.float64)[:, None]
            for j in range(d):  # what four units in the last place of a score or of the threshold do
                for sign in (1, -1):
                    moved = wide.copy()
                    moved[:, j : j + 1] += sign * shift
                    other, other_losses = self.by_numpy(kind, moved, labels, y)
                    spread = np.maximum(spread, np.abs(other - expected))
                    losses_spread = np.maximum(losses_spread, np.abs(other_losses - losses))
            eps = np.finfo(dtype).eps
            sizes = {"predict": np.abs(expected), "jvp": np.abs(expected).max(axis=1, keepdims=True)}
            size = sizes.get(kind, 1.0)  # of a gradient p - y: rounded as p is
            rough = max(1e-9, 1e3 * eps) if kind == "jvp" else max(1e-14, 8 * eps)
            bad = ~(np.abs(got - expected) <= rough * size + 6 * spread + np.finfo(dtype).tiny)
            if kind in ("label", "proportions"):
                bad |= ~(np.abs(loss - losses) <= 6 * losses_spread + 16 * eps * (1 + losses))[:, None]
            if bad.any():
                i, j = np.argwhere(bad)[0]
                return (
                    f"the float{bits} kernel for {kind} gives {got[i, j]!r} (loss {loss[i]!r}) for class {j} of the "
                    f"scores {rows[i].tolist()}, not {expected[i, j]!r} ({losses[i]!r})"
                )
        return ""

    def by_numpy(self, kind: str, wide: Any, labels: Any, y: Any) -> tuple[Any, Any]:
        """What the NumPy target says, with losses (0 where there are none)."""
        if kind == "predict":
            return self.module.predict(wide), np.zeros(len(wide))
        if kind == "jvp":
            return self.module.jvp(wide, y.astype(np.float64)), np.zeros(len(wide))
        loss, grad = self.module.value_and_grad(wide, labels if kind == "label" else y.astype(np.float64))
        return grad, loss

    def high(self, d: int, bits: int) -> float:
        """The right end of the bracket, relative to the largest score: where all d are equal."""
        key = d if bits == 64 else -d
        found = self.highs.get(key)
        if found is None:
            f = self.module.F
            with np.errstate(all="ignore"):
                found = -float(f.slope(np.array([1.0 / max(d, 2)]))[0]) + f.anchor
            found += 8 * ROUNDING[bits] * (1.0 + abs(found))
            if len(self.highs) < 4096:
                self.highs[key] = found
        return found

    # Rows

    def run(self, kind: str, rows: Any, loss: Any = None, labels: Any = None, y: Any = None) -> Any:
        """One row of results for each row (n, d) of scores."""
        bits = 8 * rows.itemsize
        if bits == 32 and kind not in self.wide:
            try:
                native = self.native(kind, 32)
            except UnsupportedError:  # single precision is not enough for this entropy
                self.wide.add(kind)
        if bits == 32 and kind in self.wide:
            out = np.empty(rows.shape, np.float32)
            piece = max(1, PACKED // rows.shape[1])
            for first in range(0, len(rows), piece):
                some = slice(first, first + piece)
                losses = None if loss is None else np.empty(len(loss[some]))
                wider = None if y is None else y[some].astype(np.float64)
                wanted = None if labels is None else labels[some]
                with np.errstate(over="ignore", under="ignore"):
                    out[some] = self.run(kind, rows[some].astype(np.float64), losses, wanted, wider)
                    if loss is not None:
                        loss[some] = losses
            return out
        if bits == 64:
            native = self.native(kind, 64)
        out, special = self.rows(native, rows, loss, labels, y, self.needs(kind, bits))
        if special:
            self.repair(kind, rows, out, loss, labels, y)
        return out

    def rows(
        self, native: Any, rows: Any, loss: Any, labels: Any, y: Any, needs: tuple[int, int, bool]
    ) -> tuple[Any, int]:
        """The kernel over all rows, and how many it left as NaN to be repaired."""
        n, d = rows.shape
        out = np.empty((n, d), rows.dtype)
        if n == 0:
            return out, 0
        size = rows.itemsize
        packed = rows.strides[1] == size and rows.strides[0] >= 0 and rows.strides[0] % size == 0
        piece = n if packed else max(1, PACKED // d)
        given = (out, loss, labels, y)
        cap = min(d, CANDIDATES) if needs[2] else d
        special = 0
        for first in range(0, n, piece):
            part = rows if packed else np.ascontiguousarray(rows[first : first + piece])
            special += self.part(native, part, first, given, needs, cap)
        if special and cap < d:  # too many candidates
            special = 0
            for i in np.flatnonzero(np.isnan(out[:, 0])).tolist():
                special += self.part(native, np.ascontiguousarray(rows[i : i + 1]), i, given, needs, d)
        return out, special

    def part(self, native: Any, rows: Any, first: int, given: tuple[Any, ...], needs: Any, cap: int) -> int:
        """The kernel over some rows, which begin at row `first` of what was given; how many rows it left."""
        n, d = rows.shape
        size = rows.itemsize
        stride = rows.strides[0] // size if n > 1 else d
        steps = (d * size, size, 8, d * size)
        places = [rows.__array_interface__["data"][0]]
        places += [0 if a is None else a.__array_interface__["data"][0] + first * step for a, step in zip(given, steps)]
        bits, floats, _ = needs
        lanes = 512 // bits
        width = floats * (cap + 48) + 16 if d > SHORT else 3 * (d + 48) + (3 * d + 7) * lanes
        indices = -(-width * bits // 512) * 64
        numbers = 0 if floats < 3 else cap + 48
        need = 64 + indices + 4 * (numbers if d > SHORT else d * lanes + 48)
        high = self.high(d, 8 * size)
        return share(native.address, (rows, given), places, n, d, stride, high, cap, need, indices)

    def repair(self, kind: str, rows: Any, out: Any, loss: Any, labels: Any, y: Any) -> None:
        """Rows that the kernel left as NaN without a NaN in them: those with +inf, by the NumPy target."""
        todo = np.flatnonzero(np.isnan(out[:, 0]) & ~np.isnan(rows).any(axis=1) & (rows > -np.inf).any(axis=1))
        f = self.module.F
        with np.errstate(all="ignore"):
            solved = self.module.solve(f, rows[todo].astype(np.float64))
            if kind == "predict":
                out[todo] = solved.p
            elif kind == "jvp":
                out[todo] = self.module.jvp_rows(f, solved, y[todo].astype(np.float64))
            else:
                if kind == "proportions":
                    wanted = y[todo].astype(np.float64)
                else:
                    wanted = np.zeros((len(todo), rows.shape[1]))
                    wanted[np.arange(len(todo)), labels[todo]] = 1.0
                loss[todo] = self.module.gap(f, solved, wanted)
                out[todo] = solved.p - wanted

    # What a user calls

    def given(self, theta: Any, axis: Any) -> SimpleNamespace:
        """theta as rows without a copy where that is possible, with what it takes to undo that."""
        if type(theta) is np.ndarray and theta.dtype in FLOATS and theta.dtype.isnative and type(axis) is int:
            ndim = theta.ndim
            if -ndim <= axis < ndim and theta.shape[axis] > 0:
                if axis == -1 or axis == ndim - 1:
                    moved = theta
                else:
                    moved = np.moveaxis(theta, axis, -1)
                rows = moved if ndim == 2 else moved.reshape(-1, moved.shape[-1])
                return SimpleNamespace(
                    rows=rows, batch=moved.shape[:-1], shape=theta.shape, axis=axis, dtype=theta.dtype.type
                )
        with np.errstate(all="ignore"):
            return as_rows(theta, axis)

    def predict(self, theta: Any, axis: int = -1) -> Any:
        """The probabilities that maximise <theta, p> + H(p)."""
        given = self.given(theta, axis)
        return returned(given, self.run("predict", given.rows))

    def value_and_grad(self, theta: Any, y: Any, axis: int = -1) -> tuple[Any, Any]:
        """The loss of each row and its gradient p - y; y are labels or proportions."""
        given = self.given(theta, axis)
        rows = given.rows
        labels, wanted = labels_or_rows(y, given)
        loss = np.empty(len(rows), rows.dtype)
        out = self.run("proportions" if labels is None else "label", rows, loss, labels, wanted)
        with np.errstate(all="ignore"):
            return back_batch(given, loss), returned(given, out)

    def loss(self, theta: Any, y: Any, axis: int = -1) -> Any:
        """The loss of each row."""
        return self.value_and_grad(theta, y, axis)[0]

    def grad(self, theta: Any, y: Any, axis: int = -1) -> Any:
        """The gradient p - y of each row's loss."""
        return self.value_and_grad(theta, y, axis)[1]

    def jvp(self, theta: Any, v: Any, axis: int = -1) -> Any:
        """The derivative of the prediction in the direction v."""
        given = self.given(theta, axis)
        direction = np.ascontiguousarray(like(v, given), dtype=given.rows.dtype)
        return returned(given, self.run("jvp", given.rows, y=direction))

    def vjp(self, theta: Any, v: Any, axis: int = -1) -> Any:
        """v times the Jacobian, which is symmetric: the same as jvp."""
        return self.jvp(theta, v, axis)


# Probabilities to build rows of scores around: ordinary, tiny and at the cut-off.
SHARES = (
    (0.5, 0.5), (0.75, 0.25), (1e-4, 1 - 1e-4), (0.125, 0.25, 0.625), (0.0, 0.375, 0.625), (1e-9, 0.375, 0.625),
    (1e-30, 0.375, 0.625), (1e-4, 3e-5, 1 - 1.3e-4), (1e-9, 3e-10, 1 - 1.3e-9), (1e-16, 3e-17, 1.0),
    (0.4, 0.3, 0.2, 0.1), (0.7, 0.2, 0.09, 0.01), (0.997, 0.001, 0.001, 0.001), (0.0, 0.0, 0.25, 0.75),
)  # fmt: skip


def hard_rows(module: Any, dtype: Any) -> list[Any]:
    """Rows of scores over the whole range of an emitted module, one array for each number of classes."""
    f = module.F
    found: dict[int, list[Any]] = {}
    with np.errstate(all="ignore"):
        for shares in SHARES:
            p = np.array(shares)
            low = f.slope_low if np.isfinite(f.slope_low) else f.slope(np.array([1e-30]))[0]
            scores = np.where(p <= 0.0, low, np.where(p >= 1.0, f.slope_high, f.slope(np.clip(p, 1e-30, 1 - 1e-16))))
            found.setdefault(len(p), []).append(scores)
        margin = f.slope_high - f.slope_low
        if np.isfinite(margin):
            for gap in (margin, margin * (1 - 1e-7), margin * 0.999, margin * 0.9):
                found[3].append(np.array([gap, 0.0, 0.0]))
    made = [np.array(rows).astype(dtype) for rows in found.values()]
    return [rows[np.isfinite(rows).all(axis=1)] for rows in made]


def returned(given: Any, rows: Any) -> Any:
    """Rows of results in the shape, axis and dtype of what was given."""
    if rows.dtype.type is not given.dtype:
        with np.errstate(all="ignore"):
            return back(given, rows)
    if len(given.batch) != 1:
        rows = rows.reshape(*given.batch, rows.shape[-1])
    if given.axis == -1 or given.axis == rows.ndim - 1:
        return rows
    return np.ascontiguousarray(np.moveaxis(rows, -1, given.axis))


def labels_or_rows(y: Any, given: Any) -> tuple[Any, Any]:
    """(labels, None) or (None, rows of proportions), checked."""
    n, d = given.rows.shape
    array = np.asarray(y) if isinstance(y, (int, np.integer)) and not isinstance(y, bool) else y
    if type(array) is np.ndarray and array.dtype.kind in "iu" and array.shape == given.batch:
        labels = array.reshape(-1)
        if n and (labels.min() < 0 or labels.max() >= d):
            targets(y, given)  # raises
        return np.ascontiguousarray(labels, dtype=np.int64), None
    with np.errstate(all="ignore"):
        rows = targets(y, given)
    if np.count_nonzero(rows) == n and (rows.max(axis=1) == 1.0).all():
        return rows.argmax(axis=1), None
    return None, np.ascontiguousarray(rows, dtype=given.rows.dtype)
