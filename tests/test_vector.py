"""The vector functions against mpmath, in units in the last place, over their whole ranges."""

from __future__ import annotations

import functools
from typing import Any

import mpmath
import numpy as np
import pytest

pytest.importorskip("numba")

import numba

from fysym.runtime import vector

# name: truth, most ulps (float64, float32), range, and a range of small or near-1 arguments
UNARY: dict[str, Any] = {
    "exp": (mpmath.exp, (1.1, 1.1), (-745.0, 709.7), (-103.9, 88.7)),
    "expn": (mpmath.exp, (1.1, 1.1), (-707.0, 0.0), (-86.9, 0.0)),
    "expm1": (mpmath.expm1, (2.5, 2.0), (-50.0, 709.0), (-50.0, 88.0)),
    "log": (mpmath.log, (1.0, 1.0), (1e-310, 1e308), (1e-40, 3e38)),
    "log1p": (mpmath.log1p, (1.6, 1.6), (1e-30, 1e308), (1e-30, 3e38)),
    "sin": (mpmath.sin, (2.2, 2.2), (-1000.0, 1000.0), (-200.0, 200.0)),
    "cos": (mpmath.cos, (2.2, 2.2), (-1000.0, 1000.0), (-200.0, 200.0)),
    "tan": (mpmath.tan, (3.5, 3.5), (-1.57, 1.57), (-1.57, 1.57)),
    "asin": (mpmath.asin, (2.5, 2.5), (-1.0, 1.0), (-1.0, 1.0)),
    "acos": (mpmath.acos, (1.5, 1.5), (-1.0, 1.0), (-1.0, 1.0)),
    "atan": (mpmath.atan, (1.6, 2.2), (-1e3, 1e3), (-1e3, 1e3)),
    "tanh": (mpmath.tanh, (2.2, 2.5), (-22.0, 22.0), (-22.0, 22.0)),
    "erf": (mpmath.erf, (2.2, 2.8), (-6.0, 6.0), (-6.0, 6.0)),
    "erfc": (mpmath.erfc, (7.0, 10.0), (-6.0, 26.0), (-6.0, 9.0)),
    "ndtr": (mpmath.ncdf, (80.0, 60.0), (-8.0, 8.0), (-6.0, 6.0)),
    "wrightomega": (lambda z: mpmath.lambertw(mpmath.exp(z)).real, (40.0, 20.0), (-60.0, 60.0), (-40.0, 40.0)),
}


@functools.cache
def compiled(name: str) -> Any:
    function = getattr(vector, f"v{name}")
    if name == "pow":

        @numba.njit
        def loop(x: Any, y: Any, more: Any, out: Any) -> None:
            for i in range(x.shape[0]):
                out[i] = function(x[i], y[i], more[i])
    elif name == "pown":

        @numba.njit
        def loop(x: Any, y: Any, out: Any) -> None:
            for i in range(x.shape[0]):
                out[i] = function(x[i], y[i])
    else:

        @numba.njit
        def loop(x: Any, out: Any) -> None:
            for i in range(x.shape[0]):
                out[i] = function(x[i])

    return loop


def ulps(got: Any, truth: Any, dtype: Any) -> float:
    if truth == 0:
        return 0.0 if got == 0 else np.inf
    info = np.finfo(dtype)
    exponent = max(int(mpmath.floor(mpmath.log(abs(truth), 2))), info.minexp)
    return float(abs(mpmath.mpf(float(got)) - truth) / mpmath.ldexp(1, exponent - info.nmant))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", UNARY)
def test_ulps(name: str, dtype: Any) -> None:
    truth, most, *ranges = UNARY[name]
    wide = dtype is np.float64
    low, high = ranges[0] if wide else ranges[1]
    rng = np.random.default_rng(0)
    if low > 0:
        x = np.exp(rng.uniform(np.log(low), np.log(high), 400))
        x = np.concatenate([x, rng.uniform(0.4, 2.5, 200)])
    else:
        x = rng.uniform(low, high, 400)
        small = np.exp(rng.uniform(np.log(1e-20), 0.0, 200))
        x = np.concatenate([x, -small, *([small] if high > 0 else [])])
    x = x.astype(dtype)
    out = np.empty_like(x)
    compiled(name)(x, out)
    with mpmath.workdps(50):
        assert max(ulps(a, truth(mpmath.mpf(float(b))), dtype) for a, b in zip(out, x, strict=True)) <= most[not wide]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_powers(dtype: Any) -> None:
    rng = np.random.default_rng(1)
    wide = dtype is np.float64
    x = np.exp(rng.uniform(-1, 1, 500) * (690 if wide else 85)).astype(dtype)
    y = rng.uniform(-1, 1, 500).astype(dtype)
    out = np.empty_like(x)
    more = (y * rng.uniform(-1, 1, 500) * (1e-8 if wide else 1e-9)).astype(dtype)
    compiled("pow")(x, y, more, out)
    with mpmath.workdps(50):
        exponents = [mpmath.mpf(float(b)) + mpmath.mpf(float(c)) for b, c in zip(y, more, strict=True)]
        exact = [mpmath.mpf(float(a)) ** b for a, b in zip(x, exponents, strict=True)]
        assert max(ulps(a, b, dtype) for a, b in zip(out, exact, strict=True)) <= 16
    x = rng.uniform(0, 1, 500).astype(dtype)
    y = rng.choice([10 / 3, 1 / 0.7, 2.5, 10.0], 500).astype(dtype)
    compiled("pown")(x, y, out)
    assert np.abs(out - x.astype(np.float64) ** y.astype(np.float64)).max() <= (2e-16 if wide else 1e-7)


def test_the_ends_of_the_ranges() -> None:
    x = np.array([0.0, np.inf, -np.inf, np.nan, 800.0, -800.0])
    out = np.empty_like(x)
    compiled("exp")(x, out)
    np.testing.assert_array_equal(out, [1.0, np.inf, 0.0, np.nan, np.inf, 0.0])
    compiled("log")(x, out)
    np.testing.assert_array_equal(out[:4], [-np.inf, np.inf, np.nan, np.nan])
    compiled("expup")(np.array([0.0, -900.0, -2000.0]), out)
    np.testing.assert_allclose(
        out[:3], [2.0**900, 2.0**900 * np.exp(-300.0) * np.exp(-300.0) * np.exp(-300.0), 0.0], rtol=1e-13
    )
