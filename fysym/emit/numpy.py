"""Emits a Program as a standalone NumPy module: header, scalar functions, and the runtime's own source."""

from __future__ import annotations

import inspect
import linecache
import types
from collections.abc import Sequence
from typing import Any

import sympy

from ..domains import SIMPLEX
from ..entropy import SLOPE
from ..program import Program, Scalar
from ..rewrite import quickly_cancelled
from ..runtime import arrays, numpy_domain, numpy_inverse, numpy_line, numpy_losses
from ..runtime import numpy as runtime
from .printer import lines

MARK = "# -- emitted from here --\n"
METHODS = (
    "predict",
    "threshold",
    "conjugate",
    "loss",
    "grad",
    "value_and_grad",
    "jvp",
    "vjp",
    "jacobian",
    "entropy",
    "bregman",
    "score",
)
SELF_CHECK = '''
def self_check() -> None:
    """Compare predictions with values known to 40 digits, and the loss with <theta, p - y> + H(p) - H(y)."""
    for theta, expected, allowed in CHECKS:
        theta, expected = np.array(theta), np.array(expected)
        p = predict(theta)
        assert np.abs(p - expected).max() <= allowed, (theta, p, expected)
        assert TOTAL is None or abs(p.sum() - TOTAL) <= 1e-14 * max(1.0, TOTAL), (theta, p.sum())
        y = expected[::-1]
        found, slopes = value_and_grad(theta, y)
        parts = np.array([theta @ (expected - y), entropy(expected), -entropy(y)])
        assert abs(found - parts.sum()) <= 1e-12 * (1.0 + np.abs(parts).sum()), (theta, found)
        assert 0.0 <= loss(theta, expected) <= 1e-12 * (1.0 + np.abs(parts).sum()), theta
        assert np.abs(slopes - (p - y)).max() <= 1e-14 * (1.0 + np.abs(p).max()), (theta, slopes)
    print(f"self-check passed: {len(CHECKS)} predictions agree with values known to 40 digits")


if __name__ == "__main__":
    self_check()
'''


def source(
    program: Program, header: Sequence[str], checks: Sequence[tuple[Any, Any, float]], more: Sequence[str] = ()
) -> str:
    """The text of a module that needs NumPy, and SciPy where a special function does, and nothing else.

    `header` are lines about the entropy, put in comments; `checks` are scores, the prediction to expect and
    how far from it code may be, which `python module.py` compares; `more` are texts to put before that.
    """
    scalars = _scalars(program)
    scipy = "from scipy import special\n" if "special." in scalars else ""
    parts = [
        *(f"# {_comment(line)}".rstrip() for line in header),
        "",
        "from __future__ import annotations",
        "",
        "import functools",
        "from types import SimpleNamespace",
        "from typing import Any",
        "",
        f"import numpy as np\n{scipy}",
        "",
        "class InputError(ValueError):",
        '    """Scores, labels or probabilities have a wrong shape, type or value."""',
        "",
        "",
        *(inlined(part) for part in parts_of(program)),
        "# The entropy: g = -h, its derivatives, and q, the inverse of g'.",
        "",
        scalars,
        "",
        f"TOTAL = F.total = {program.domain.total!r}",
        *([] if program.domain.bounded else ["LOW = F.low"]),
        "",
        "KERNEL = Kernel(F)",
        *(f"{name} = KERNEL.{name}" for name in METHODS),
        "",
        "CHECKS: list[Any] = [",
        *(f"    ({theta!r}, {expected!r}, {allowed!r})," for theta, expected, allowed in checks),
        "]",
        "",
        *more,
        SELF_CHECK,
    ]
    return "\n".join(parts)


def parts_of(program: Program) -> list[types.ModuleType]:
    """The runtime modules that a program needs; what a later one defines takes the place of an earlier one's."""
    parts = [arrays, runtime, numpy_losses]
    if program.domain != SIMPLEX:
        parts.append(numpy_domain)
    if program.inverse is None or not program.domain.bounded:
        parts.append(numpy_inverse)
    return parts if program.domain.bounded else [*parts, numpy_line]


def load(text: str, name: str) -> types.ModuleType:
    """Run an emitted module and return it; tracebacks show its lines."""
    module = types.ModuleType(name)
    filename = f"<{name}>"
    linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
    exec(compile(text, filename, "exec"), module.__dict__)
    return module


def inlined(module: types.ModuleType) -> str:
    """The part of a runtime module that an emitted one carries."""
    return inspect.getsource(module).split(MARK)[1].strip() + "\n\n"


def _comment(line: str) -> str:
    """Anything a user typed, made safe inside a comment."""
    return "".join(c if c.isprintable() else " " for c in line)


def _scalars(program: Program) -> str:
    functions = {
        "entropy_value": (program.value, "g(t)"),
        "entropy_slope": (program.slope, "g'(t)"),
        "entropy_curvature": (program.curvature, "g''(t)"),
    }
    if program.covalue is not None:
        functions["entropy_covalue"] = (program.covalue, "g(1 - e)")
    if program.inverse is not None:
        functions["entropy_inverse"] = (program.inverse, "q at a rise s over the anchor: g'(q) = s + anchor")
    else:
        assert program.rise
        functions["entropy_rise"] = (program.rise, "g'(t) - anchor")
    if program.corise is not None and program.cocurvature is not None:
        functions["entropy_corise"] = (program.corise, "g'(1 - e) - anchor")
        functions["entropy_cocurvature"] = (program.cocurvature, "g''(1 - e)")
    if program.coinverse is not None:
        functions["entropy_coinverse"] = (program.coinverse, "1 - q at a rise s over the anchor")
    text = [_function(name, scalar, words) for name, (scalar, words) in functions.items()]
    text.append(_weight(program))
    text.append(_namespace(program))
    return "\n\n\n".join(text)


def _function(name: str, scalar: Scalar, words: str) -> str:
    argument = scalar.argument.name
    body = "\n    ".join(lines(scalar.expr, scalar.argument, argument))
    return f'def {name}({argument}: Any) -> Any:\n    """{words}"""\n    {body}'


def _weight(program: Program) -> str:
    ratio = _cheap_weight(program)
    body = "1.0 / entropy_curvature(t)" if ratio is None else f"t * ({ratio})"
    for at, before, after in program.kinks:  # q stays there for all rises between these two
        stays = f"(t == {at!r}) | ((r >= {before!r}) & (r <= {after!r}))"
        body = f"np.where({stays}, 0.0, {body})"
    return f'def entropy_weight(t: Any, r: Any) -> Any:\n    """q\'(r) at t = q(r)"""\n    return {body}'


def _cheap_weight(program: Program) -> str | None:
    """q'/q as code in the rise r where that is a fraction of polynomials and g'' is not: no second power a score."""
    if program.inverse is None or program.curvature.expr.is_rational_function():
        return None
    inverse = program.inverse.expr
    ratio = quickly_cancelled(sympy.diff(inverse, SLOPE) / inverse)
    if not ratio.is_rational_function(SLOPE):
        return None
    found = lines(ratio, SLOPE, "r")
    return found[0].removeprefix("return ") if len(found) == 1 and ratio.has(SLOPE) else None


def _namespace(program: Program) -> str:
    entries = {
        "value": "entropy_value",
        "slope": "entropy_slope",
        "curvature": "entropy_curvature",
        "weight": "entropy_weight",
        "covalue": "None" if program.covalue is None else "entropy_covalue",
        **{name: number(value) for name, value in program.ends.items()},
        "newton": repr(program.newton),
        "exponential": repr(program.exponential),
    }
    if not program.domain.bounded:
        entries |= {"low": number(program.domain.low), "high": number(program.domain.high)}
    if program.inverse is None:
        entries |= {"rise": "entropy_rise", "kinks": repr(program.kinks)}
        if program.domain.bounded:
            entries |= {"corise": "entropy_corise", "cocurvature": "entropy_cocurvature"}
    else:
        entries["inverse"] = "entropy_inverse"
        if program.coinverse is not None:
            entries["coinverse"] = "entropy_coinverse"
        else:
            entries["coinverse"] = "lambda s: 1.0 - entropy_inverse(s)"
    text = "F = SimpleNamespace(\n" + "".join(f"    {key}={text},\n" for key, text in entries.items()) + ")"
    if program.inverse is None:
        made = "F.inverse, F.coinverse = make_inverse(F)" if program.domain.bounded else "F.inverse = line_inverse(F)"
        text += f'\nwith np.errstate(all="ignore"):\n    {made}'
    return text


def number(value: float) -> str:
    """A double as Python code."""
    text = repr(value)
    return f'float("{text}")' if "inf" in text or "nan" in text else text
