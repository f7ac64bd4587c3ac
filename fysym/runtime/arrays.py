"""From what a user holds to rows of numbers (n, d), and back: array-likes, axes, labels and proportions, checked."""

from __future__ import annotations

import functools
from types import SimpleNamespace
from typing import Any

import numpy as np

from ..errors import InputError

# -- emitted from here --


def quiet(function: Any) -> Any:
    """Run with NumPy's floating-point warnings off: infinities are values here, not accidents."""

    @functools.wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        with np.errstate(all="ignore"):
            return function(*args, **kwargs)

    return wrapped


def wide(rows: Any) -> Any:
    """A copy in float64."""
    return np.array(rows, dtype=np.float64, order="C")


def as_rows(array: Any, axis: int, what: str = "theta") -> SimpleNamespace:
    """Any array-like to `rows` (n, d), with what it takes to undo that.

    Scores may stay what they are, if float32 or float64; everything else is in float64 and ours to change.
    """
    if isinstance(array, np.ma.MaskedArray):
        if what != "theta" and np.ma.is_masked(array):
            raise InputError(f"{what} has masked entries; only scores may be masked (they count as -inf)")
        array = np.ma.filled(array.astype(np.result_type(array.dtype, np.float32)), -np.inf)
    try:
        array = np.asarray(array)
        if array.dtype == object and any(entry is None or isinstance(entry, (str, bytes)) for entry in array.flat):
            raise TypeError("it contains None or text")
        if array.dtype == object or array.dtype.kind in "biu":
            array = array.astype(np.float64)
    except (TypeError, ValueError, OverflowError, RuntimeError) as error:  # a tensor may refuse to become an array
        raise InputError(f"{what} must be an array of real numbers: {error}") from None
    if array.dtype.kind != "f":
        raise InputError(f"{what} must be an array of real numbers, not of {array.dtype}")
    if array.ndim == 0:
        raise InputError(f"{what} must have at least one dimension, of the classes; got a single number")
    if not isinstance(axis, (int, np.integer)) or isinstance(axis, bool):
        raise InputError(f"axis must be an integer, not {axis!r}")
    if not -array.ndim <= axis < array.ndim:
        raise InputError(f"axis {axis} does not exist in {what} of shape {array.shape}")
    if array.shape[axis] == 0:
        raise InputError(f"{what} has no classes: its shape is {array.shape} and axis {axis} has length 0")
    moved = np.moveaxis(array, axis, -1)
    rows = moved.reshape(-1, moved.shape[-1])
    if what != "theta" or array.dtype.itemsize not in (4, 8) or not array.dtype.isnative:
        rows = wide(rows)
    dtype = np.float32 if array.dtype.itemsize <= 4 else np.float64
    return SimpleNamespace(rows=rows, batch=moved.shape[:-1], shape=array.shape, axis=axis, dtype=dtype)


def back(given: Any, rows: Any) -> Any:
    """Rows of results in the shape, axis and dtype of what was given."""
    full = np.moveaxis(rows.reshape(*given.batch, rows.shape[-1]), -1, given.axis)
    return np.ascontiguousarray(full, dtype=given.dtype)


def back_batch(given: Any, values: Any) -> Any:
    """One number a row, in the shape of the batch; a scalar for a single vector."""
    return values.reshape(given.batch).astype(given.dtype)[()]


def targets(y: Any, given: Any) -> Any:
    """Labels or proportions to rows of proportions (n, d), checked."""
    if np.ma.is_masked(y):
        raise InputError("y has masked entries; only scores may be masked (they count as -inf)")
    try:
        array = np.asarray(y)
    except ValueError as error:
        raise InputError(f"y must be labels or rows of proportions: {error}") from None
    n, d = given.rows.shape
    if (array.dtype.kind in "iu" or n == 0) and array.shape == given.batch:
        return one_hot(array.reshape(-1), n, d, given.batch)
    if array.shape != given.shape:
        hint = " (labels must be integers)" if array.shape == given.batch else ""
        raise InputError(
            f"y has shape {array.shape} and type {array.dtype}{hint}; for scores of shape {given.shape} it must be "
            f"integer labels of shape {given.batch} or proportions of shape {given.shape}"
        )
    return proportions(as_rows(array, given.axis, "y"), "y")


def one_hot(labels: Any, n: int, d: int, batch: tuple[int, ...]) -> Any:
    """Rows with a 1 at the label."""
    return indicators(labels, n, d, batch)


def indicators(labels: Any, n: int, d: int, batch: tuple[int, ...]) -> Any:
    """Rows with a 1 at the label, which must be a class."""
    bad = (labels < 0) | (labels >= d)
    if bad.any():
        row = int(np.argmax(bad))
        raise InputError(f"label {labels[row]} in {row_name(row, batch)} is not a class: there are {d}, 0 to {d - 1}")
    rows = np.zeros((n, d))
    rows[np.arange(n), labels.astype(np.int64)] = 1.0
    return rows


def proportions(given: Any, what: str) -> Any:
    """Rows that must be non-negative and sum to 1."""
    rows = given.rows
    bad = ~(rows >= 0.0).all(axis=1)
    if bad.any():
        row = int(np.argmax(bad))
        worst = rows[row][~(rows[row] >= 0.0)][0]
        rule = "not be negative" if worst < 0.0 else "be numbers"
        raise InputError(f"{what} must {rule}: {row_name(row, given.batch)} contains {worst:g}")
    total = rows.sum(axis=1)
    bad = ~(np.abs(total - 1.0) <= (1e-6 if given.dtype == np.float64 else 1e-3))
    if bad.any():
        row = int(np.argmax(bad))
        raise InputError(f"{what} must sum to 1: {row_name(row, given.batch)} sums to {total[row]:g}")
    return rows


def row_name(row: int, batch: tuple[int, ...]) -> str:
    if len(batch) == 0:
        return "the vector"
    index = np.unravel_index(row, batch)
    return f"row {index[0]}" if len(batch) == 1 else f"row {tuple(int(i) for i in index)}"


def like(v: Any, given: Any) -> Any:
    """A direction v as rows; it must have the shape of theta."""
    other = as_rows(v, given.axis, "v")
    if other.shape != given.shape:
        raise InputError(f"v has shape {other.shape}; it must have the shape of theta, {given.shape}")
    return other.rows
