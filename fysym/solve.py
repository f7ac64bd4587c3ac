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
    from .entropy import Parameter
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
        if len(symbols) > 1:
            text = ", ".join(map(str, equations))
            raise UndecidedError(f"SymPy cannot solve {text}; give values for all but one parameter") from error
        found = [{symbols[0]: root} for root in _roots(equations[0], parameters[symbols[0]])]
    inside = [
        solution
        for solution in found
        if all(symbol in solution and _is_in(solution[symbol], p.range) for symbol, p in parameters.items())
        and all(_vanishes(equation, solution) for equation in equations)
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


def _roots(equation: sympy.Expr, parameter: Parameter) -> list[sympy.Expr]:
    """Roots in the range to many digits, where the equation changes its sign between points spread over it."""
    symbol, b = parameter.user, parameter.coordinate
    opened = equation.subs(symbol, parameter.opened)
    places = [sympy.Rational(10**9) ** sympy.Rational(k, 64) for k in range(-64, 65)]
    values = [truth.evaluate(opened, {b: at}) for at in places]
    found = []
    for left, right, low, high in zip(places, places[1:], values, values[1:], strict=False):
        if low * high > 0 or not (low == low and high == high):
            continue
        with truth.context().workdps(2 * truth.DIGITS):
            ends = tuple(truth.evaluate(at, {}) for at in (left, right))
            root = truth.context().findroot(lambda x: truth.evaluate(opened, {b: x}), ends, solver="anderson")
        found.append(parameter.opened.subs(b, sympy.Float(str(root), 40)))
    return found


def _vanishes(equation: sympy.Expr, solution: Mapping[Any, sympy.Expr]) -> bool:
    left = equation.subs(solution)
    if any(value.has(sympy.Float) for value in solution.values()):
        return bool(abs(left) < sympy.Rational(1, 10**25))
    return truth.sign(left) == 0


def _is_in(value: sympy.Expr, span: Any) -> bool:
    return bool(value.is_real) and not value.free_symbols and value in span
