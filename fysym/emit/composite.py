"""Emits a composite entropy as a standalone NumPy module: that of the sum inside, and over it the search for w."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import sympy

from ..program import Program
from ..runtime import composite as runtime
from ..runtime import target
from . import numpy as numpy_emitter
from .printer import lines

UNSUPPORTED = """
class UnsupportedError(Exception):
    \"\"\"There is no such code here.\"\"\"


"""
FUNCTIONS = """
FUNCTIONS = Functions(
    separable=SimpleNamespace(
        _module=SimpleNamespace(F=F, solve_rows=solve_rows, weights=weights),
        threshold=KERNEL.threshold,
        loss=lambda theta, y, target=None: KERNEL.loss(theta, y),
        jvp=lambda theta, v, target=None: KERNEL.jvp(theta, v),
        jacobian=KERNEL.jacobian,
    ),
    sign={sign},
    outer=(outer_value, outer_slope, outer_curvature),
    inner=(inner_value, inner_slope),
    at_one={at_one},
    margin={margin},
)
COMPOSITE = CompositeKernel(FUNCTIONS, "this module has none")
"""


@dataclass(frozen=True)
class Entropy:
    """H = G(u), u = sum_j s(p_j): G in `u`, s in `t`, the sign of w = sign * G'(u), s(1), and the margin of H."""

    outer: sympy.Expr
    u: sympy.Symbol
    inner: sympy.Expr
    t: sympy.Symbol
    sign: int
    at_one: float
    margin: float


def source(program: Program, entropy: Entropy, header: Sequence[str], checks: Sequence[tuple[Any, Any, float]]) -> str:
    """The text of a module that needs NumPy, and SciPy where a special function does, and nothing else.

    `program` is that of the sum inside; `header` and `checks` are as for a separable entropy.
    """
    parts = {
        "outer_value": (entropy.outer, entropy.u, "G(u)"),
        "outer_slope": (sympy.diff(entropy.outer, entropy.u), entropy.u, "G'(u)"),
        "outer_curvature": (sympy.diff(entropy.outer, entropy.u, 2), entropy.u, "G''(u)"),
        "inner_value": (entropy.inner, entropy.t, "s(t)"),
        "inner_slope": (sympy.diff(entropy.inner, entropy.t), entropy.t, "s'(t)"),
    }
    functions = "\n\n".join(_function(name, *part) for name, part in parts.items())
    more = [
        "# The entropy around the sum.",
        UNSUPPORTED,
        numpy_emitter.inlined(target),
        numpy_emitter.inlined(runtime),
        functions,
        FUNCTIONS.format(sign=entropy.sign, at_one=repr(entropy.at_one), margin=numpy_emitter.number(entropy.margin)),
        *(f"{name} = COMPOSITE.{name}" for name in numpy_emitter.METHODS),
    ]
    scipy = ["from scipy import special"] if "special." in functions else []
    return numpy_emitter.source(program, header, checks, [*scipy, *more])


def _function(name: str, expr: sympy.Expr, symbol: sympy.Symbol, words: str) -> str:
    argument = symbol.name
    body = "\n    ".join(lines(expr, symbol, argument))
    return f'def {name}({argument}: Any) -> Any:\n    """{words}"""\n    {body}\n'
