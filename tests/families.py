"""Members of the composite families, with H, its gradient and the optimality conditions written out by hand."""

from __future__ import annotations

import functools
from typing import Any

import mpmath
import numpy as np

import fysym

FAMILIES = {
    "norm": lambda: fysym.compile_composite("1 - u**(1/q)", "t**q", params={"q": "q > 1"}),
    "squared_norm": lambda: fysym.compile_composite("(1 - u**(2/q))/2", "t**q", params={"q": "q > 1"}),
    "renyi": lambda: fysym.compile_composite("log(u)/(1 - b)", "t**b", params={"b": "0 < b < 1"}),
}
MEMBERS = [
    "norm_1.1", "norm_1.3", "norm_1.5", "norm_2", "norm_3", "norm_6", "norm_40", "squared_norm_1.5", "squared_norm_2",
    "renyi_0.1", "renyi_0.5", "renyi_0.9",
]  # fmt: skip


@functools.cache
def family(name: str) -> Any:
    return FAMILIES[name]()


@functools.cache
def member(name: str) -> Any:
    """A member by its name, such as norm_1.5."""
    which, _, number = name.rpartition("_")
    return family(which).bind(**{"b" if which == "renyi" else "q": float(number)})


def entropy(name: str, p: np.ndarray) -> Any:
    """H by its formula."""
    which, _, number = name.rpartition("_")
    x = float(number)
    u = (p**x).sum(-1)
    if which == "renyi":
        return np.log(u) / (1 - x)
    return 1 - u ** (1 / x) if which == "norm" else (1 - u ** (2 / x)) / 2


def gradient(name: str, p: np.ndarray) -> np.ndarray:
    """The gradient of H by its formula."""
    which, _, number = name.rpartition("_")
    x = float(number)
    with np.errstate(divide="ignore"):
        u = (p**x).sum(-1, keepdims=True)
        if which == "renyi":
            return x / (1 - x) * p ** (x - 1) / u
        return -(u ** ((1 if which == "norm" else 2) / x - 1)) * p ** (x - 1)


def optimality(name: str, theta: np.ndarray, p: np.ndarray) -> np.ndarray:
    """How far each row is from the conditions of optimality, relative to the gradient: equal slopes on the support,
    none larger off it."""
    slopes = theta + gradient(name, p)
    level = np.take_along_axis(slopes, p.argmax(axis=1)[:, None], axis=1)
    beyond = np.where(p > 0, np.abs(slopes - level), np.maximum(slopes - level, 0.0))
    size = np.where(p > 0, np.abs(theta) + np.abs(slopes - theta), 1.0)
    return (beyond / np.maximum(size, 1.0)).max(axis=1)


def truth(name: str, theta: Any) -> list[Any]:
    """The prediction to 40 digits. With a_j = |theta_j - tau|, the optimality conditions give p as a power of a up to a
    factor that is known, so that one root tau remains: p_j ~ a_j^(1/(q-1)) for norms, a_j^(1/(b-1)) for Renyi."""
    which, _, number = name.rpartition("_")
    with mpmath.workdps(60):
        x, scores = mpmath.mpf(number), [mpmath.mpf(float(t)) for t in theta]
        top = max(scores)

        def powers(tau: Any) -> list[Any]:
            if which == "renyi":
                return [(tau - t) ** (1 / (x - 1)) for t in scores]
            return [max(t - tau, 0) ** (1 / (x - 1)) for t in scores]

        def p(tau: Any) -> list[Any]:
            v = powers(tau)
            total = mpmath.fsum(a**x for a in v if a)
            factor = {"norm": lambda: total ** (-1 / x), "squared_norm": lambda: total ** (1 - 2 / x),
                      "renyi": lambda: x / ((1 - x) * total)}[which]()  # fmt: skip
            return [factor * a for a in v]

        def is_left(tau: Any) -> bool:
            if which == "norm":  # p sums to 1 by scale; the norm of a is what fixes tau
                return mpmath.fsum(a**x for a in powers(tau) if a) > 1
            return mpmath.fsum(p(tau)) > 1

        low, high = (top - 1, top) if which != "renyi" else (top, top + 1)
        while which == "renyi" and is_left(high):
            high = top + 2 * (high - top)
        for _ in range(190):
            middle = (low + high) / 2
            low, high = (middle, high) if middle > low and is_left(middle) else (low, middle)
        found = p(low if which != "renyi" else high)
        return [a / mpmath.fsum(found) for a in found]


def true_loss(name: str, theta: Any, p: Any, y: Any) -> Any:
    """<theta, p - y> + H(p) - H(y), with many digits."""
    which, _, number = name.rpartition("_")
    with mpmath.workdps(60):
        x = mpmath.mpf(number)

        def h(p: Any) -> Any:
            u = mpmath.fsum(mpmath.mpf(t) ** x for t in p if t)
            return mpmath.log(u) / (1 - x) if which == "renyi" else 1 - u ** (1 / x) if which == "norm" else (
                1 - u ** (2 / x)) / 2  # fmt: skip

        y = [mpmath.mpf(float(t)) for t in y]
        return mpmath.fsum(mpmath.mpf(float(t)) * (a - b) for t, a, b in zip(theta, p, y, strict=True)) + h(p) - h(y)
