"""A prior w on the classes: Omega(p) = sum_j w_j g(p_j / w_j), the family of f-divergences.

Ratios p_j / w_j go up to 1/min(w), so h must be concave as far as that: on [0, oo) if it can be.
"""

from __future__ import annotations

import math
from fractions import Fraction
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import sympy

from . import truth
from .domains import CUBE, SIMPLEX, Domain
from .errors import InputError, NotConcaveError, UndecidedError, UnsupportedError

if TYPE_CHECKING:
    from .regularizer import Regularizer

RATIOS = Domain("ratios", None, high=math.inf, partial=True)
LEAST = 1e-300  # entry of a prior other than 0, for an h that is not concave on all of [0, oo)


def call(reg: Regularizer, method: str, theta: Any, y: Any, prior: Any, axis: int) -> Any:
    """predict, loss, grad or value_and_grad of a bound regularizer, with a prior."""
    import numpy as np

    from .runtime import arrays
    from .runtime import prior as runtime

    if reg.derivation.entropy.domain != SIMPLEX:
        raise UnsupportedError("a prior needs the simplex, where predictions are probabilities")
    rows = arrays.as_rows(prior, -1, "prior").rows
    least = float(np.min(rows, where=rows > 0.0, initial=1.0))
    return runtime.call(_entropy(reg, least), method, theta, y, prior, axis)


def _entropy(reg: Regularizer, least: float) -> SimpleNamespace:
    """g, g', q and q' for ratios up to 1/least."""
    known = reg._ratios
    if "whole" not in known:
        try:
            known["whole"] = _functions(reg, _compiled(reg, sympy.S.One, RATIOS), 1.0)
        except (NotConcaveError, UndecidedError, UnsupportedError):
            known["whole"] = None
    if known["whole"] is not None:
        return known["whole"]  # type: ignore[no-any-return]
    exact = 1 / Fraction(max(least, LEAST))
    rounded = Fraction(math.ceil(1000 * exact), 1000)  # so that like priors share their functions
    for most in (sympy.Rational(rounded), sympy.Rational(exact)):
        if most not in known:
            try:
                known[most] = _functions(reg, _compiled(reg, most, CUBE), float(most))
            except NotConcaveError as error:
                known[most] = error
        if not isinstance(known[most], NotConcaveError):
            break
    else:
        problem, witness = known[most], known[most].witness * most
        raise NotConcaveError(
            f"with this prior h must be strictly concave on [0, 1/min(prior)] = [0, {float(most):g}], and it is "
            f"not at t = {float(witness):g}. Try: a prior closer to uniform, or an h that is concave further",
            witness,
            problem.parameters,
        )
    if least < LEAST:
        raise InputError(f"prior contains {least:g}; for this entropy its entries must be 0 or at least {LEAST:g}")
    return known[most]  # type: ignore[no-any-return]


def _compiled(reg: Regularizer, most: sympy.Expr, domain: Domain) -> Regularizer:
    from .compiler import compile

    t = reg.variable
    return compile(reg.h.subs(t, most * t) / most, domain=domain)


def _functions(reg: Regularizer, member: Regularizer, most: float) -> SimpleNamespace:
    """Those of h(most t)/most on the emitted module's interval, as functions of ratios.

    `perspective` is w g(y/w) for two numbers, also where y/w or g(y/w) is too large for a double.
    """
    module = member._module
    f = module.F

    def perspective(y: float, w: float) -> float:
        ratio = sympy.Rational(y) / sympy.Rational(w)
        return float(w * truth.evaluate_reliably(-reg.h, {reg.variable: ratio}))

    return SimpleNamespace(
        value=lambda t: most * module.value(f, t / most),
        slope=lambda t: module.slope(f, t / most),
        q=lambda r: most * module.predict_one(f, r),
        weight=lambda t, r: most * module.weights(f, t / most, r),
        perspective=perspective,
        anchor=f.anchor,
        exponential=None if f.exponential is None or most != 1.0 else f.exponential,
    )
