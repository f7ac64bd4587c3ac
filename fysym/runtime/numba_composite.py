"""p and w of a composite entropy by its compiled kernel."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import composite, native, numba


class Compiled(numba.Compiled):
    """The kernel that writes p and w, over the NumPy functions, which solve what it leaves."""

    def __init__(self, text: str, functions: composite.Functions, few: bool) -> None:
        super().__init__(
            lambda kind, bits, problem: native.load(text, problem),
            functions.separable._module,
            lambda kind, bits: (64, 3, few),
        )
        self.functions = functions

    def by_numpy(self, kind: str, wide: Any, labels: Any, y: Any) -> tuple[Any, Any]:
        with np.errstate(all="ignore"):
            return composite.solve_composite(self.functions, wide)[0], np.zeros(len(wide))

    def repair(self, kind: str, rows: Any, out: Any, loss: Any, labels: Any, y: Any) -> None:
        """Rows with +inf, and those whose support or whose w the kernel did not find."""
        todo = np.flatnonzero(np.isnan(out[:, 0]) & ~np.isnan(rows).any(axis=1) & (rows > -np.inf).any(axis=1))
        with np.errstate(all="ignore"):
            out[todo], loss[todo] = composite.solve_composite(self.functions, rows[todo])

    def solve(self, theta: Any) -> tuple[Any, Any]:
        """p and w of each row."""
        w = np.empty(len(theta))
        return self.run("predict", theta, w), w

    def predict(self, theta: Any, axis: int = -1) -> Any:
        """The probabilities that maximise <theta, p> + H(p); always solved in float64."""
        given = self.given(theta, axis)
        p, _ = self.solve(np.ascontiguousarray(given.rows, dtype=np.float64))
        return numba.returned(given, p)
