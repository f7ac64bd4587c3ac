"""Cost augmentation: scores to which the cost of predicting each class has been added."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import InputError


def augmented(module: Any, theta: Any, y: Any, cost: Any, axis: int) -> tuple[Any, Any]:
    """theta + c, and <c, y> for each row; what c is depends on `cost`:

    "zero-one"         1 - y: every class but the label's own costs 1
    a vector (d,)      the same costs for every row
    a matrix (d, d)    row k holds the costs when the label is k (y times the matrix for proportions)
    the shape of theta the costs themselves, unless that is (d, d)
    """
    with np.errstate(all="ignore"):
        given = module.as_rows(theta, axis)
        wanted = module.targets(y, given)
        costs = _rows(module, cost, wanted, given)
        return module.back(given, given.rows + costs), module.back_batch(given, (costs * wanted).sum(axis=1))


def _rows(module: Any, cost: Any, wanted: Any, given: Any) -> Any:
    d = wanted.shape[1]
    if isinstance(cost, str):
        if cost != "zero-one":
            raise InputError(f'cost must be "zero-one", a vector or a matrix, not {cost!r}')
        if (wanted > 1.0).any() or (wanted < 0.0).any():
            raise InputError('cost="zero-one" is for y between 0 and 1; give the costs as a vector or a matrix')
        return 1.0 - wanted
    read = module.as_rows(cost, -1, "cost")  # its checks
    if not np.isfinite(read.rows).all():
        raise InputError("cost must be finite; mask a class by a score of -inf")
    if read.shape == (d, d):
        return wanted @ read.rows
    if read.shape == (d,):
        return np.broadcast_to(read.rows, wanted.shape)
    if read.shape == given.shape:
        return module.as_rows(cost, given.axis, "cost").rows
    raise InputError(f"cost has shape {read.shape}; it must be ({d},), ({d}, {d}) or that of theta, {given.shape}")
