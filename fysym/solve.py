"""Parameter values of a family at which its facts have given values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import sympy

from . import truth
from .deadline import StepTimeout, run
from .errors import ParameterError, UndecidedError
from .ranges import exact_number

if TYPE_CHECKING:
    from .regularizer import Regularizer

SECONDS = 5.0


def solve(reg: Regularizer, wanted: Mapping[str, Any]) -> dict[str, sympy.Expr]:
    """The one solution in the range of the parameters; ParameterError where there is none, or more than one."""
    given = {name: value for name, value in wanted.items() if name in reg.params}
    facts = {name: exact_number(value) for name, value in wanted.items() if name not in given}
    if given:
        reg = reg.bind(**given)
    parameters = {p.user: p for p in reg.derivation.entropy.parameters}
    if len(facts) != len(parameters) or not parameters:
        names = ", ".join(p.name for p in parameters.values()) or "none"
        raise ParameterError(f"as many facts must be wanted as there are free parameters ({names}); got {len(facts)}")
    equations = [_equation(reg, name, value) for name, value in facts.items()]
    symbols = list(parameters)
    try:
        found = run(lambda: sympy.solve(equations, symbols, dict=True), seconds=SECONDS)
    except (StepTimeout, NotImplementedError) as error:
        raise UndecidedError(f"SymPy cannot solve {', '.join(map(str, equations))}; give more parameters") from error
    inside = [
        solution
        for solution in found
        if all(symbol in solution and _is_in(solution[symbol], p.range) for symbol, p in parameters.items())
        and all(truth.sign(equation.subs(solution)) == 0 for equation in equations)
    ]
    text = ", ".join(f"{name} = {value}" for name, value in facts.items())
    ranges = "; ".join(reg.params.values())
    if not inside:
        raise ParameterError(f"no member has {text} in the range {ranges}")
    if len(inside) > 1:
        shown = " or ".join(", ".join(f"{k} = {v}" for k, v in one.items()) for one in inside)
        raise ParameterError(f"several members have {text}: {shown}; declare a narrower range in params")
    exact = {name: exact_number(value) for name, value in given.items()}
    return {**exact, **{parameters[symbol].name: inside[0][symbol] for symbol in symbols}}


def _equation(reg: Regularizer, name: str, value: sympy.Expr) -> sympy.Expr:
    fact = reg.fact(name)
    if fact is None or not isinstance(fact.value, sympy.Expr):
        numbers = ", ".join(f.name for f in reg.facts if isinstance(f.value, sympy.Expr) and f.name != "inverse")
        raise ParameterError(f"{name!r} is not a fact of this family that is a number; those are {numbers}")
    return fact.value - value


def _is_in(value: sympy.Expr, span: Any) -> bool:
    return bool(value.is_real) and not value.free_symbols and value in span
