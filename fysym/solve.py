"""Parameter values of a family at which its facts have given values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import sympy

from . import truth
from .deadline import Deadline, cancelled, run
from .errors import ParameterError, UndecidedError
from .ranges import exact_number
from .signs import is_continuous, prove_sign

if TYPE_CHECKING:
    from .entropy import Parameter
    from .regularizer import Regularizer

SECONDS = 5.0
MOST_SHOWN = 8
# A solution of SymPy at which the equation is smaller than that, to a hundred digits, is one.
SMALL = sympy.Rational(1, 10**60)
NARROW = 1e-6  # where f only touches 0, rounding hides what happens in a box of that size
X = sympy.Symbol("x", positive=True)


def solve(reg: Regularizer, wanted: Mapping[str, Any]) -> dict[str, sympy.Expr]:
    """The one solution in the range of the parameters.

    ParameterError where there is none, or more than one; UndecidedError where there may be others.
    """
    given = {name: value for name, value in wanted.items() if name in reg.params}
    facts = {name: exact_number(value) for name, value in wanted.items() if name not in given}
    if given:
        reg = reg.bind(**given)
    parameters = {p.user: p for p in reg.derivation.entropy.parameters}
    if len(facts) != len(parameters) or not parameters:
        names = ", ".join(p.name for p in parameters.values()) or "none"
        if not parameters:
            remedy = (
                f"leave out one of {', '.join(given)} to solve for it" if given else "there is nothing to solve for"
            )
        elif len(facts) < len(parameters):
            remedy = "want another fact, or give the value of a parameter"
        else:
            remedy = "want fewer facts" + (" or give fewer parameters" if given else "")
        raise ParameterError(
            f"as many facts must be wanted as there are free parameters ({names}); got {len(facts)}: {remedy}"
        )
    equations = [_equation(reg, name, value) for name, value in facts.items()]
    for (name, value), equation in zip(facts.items(), equations, strict=True):
        if not equation.free_symbols:
            has = "every member has" if _vanishes(equation) else "no member has"
            raise ParameterError(f"{has} {name} = {value}: it does not depend on the parameters")
    exact = [
        {symbol: solution[symbol] for symbol in parameters}
        for solution in _solutions(equations, list(parameters))
        if all(symbol in solution and _is_in(solution[symbol], p.range) for symbol, p in parameters.items())
        and all(_vanishes(equation.subs(solution)) for equation in equations)
    ]
    if len(parameters) == 1:
        ((symbol, parameter),) = parameters.items()
        roots, complete = _all_roots(equations[0], parameter, [solution[symbol] for solution in exact])
        found = [{symbol: root} for root in roots]
    else:  # SymPy finds all solutions of polynomial equations
        found, complete = exact, all(equation.is_rational_function(*parameters) for equation in equations)
    text = ", ".join(f"{name} = {value}" for name, value in facts.items())
    ranges = "; ".join(reg.params.values())
    if len(found) > 1:
        shown = " or ".join(map(_shown, found[:MOST_SHOWN]))
        more = "" if complete and len(found) <= MOST_SHOWN else " and maybe more"
        raise ParameterError(f"several members have {text}: {shown}{more}; declare a narrower range in params")
    if not complete:
        what = f"whether a member has {text}" if not found else f"whether others have {text} than {_shown(found[0])}"
        help = "a narrower range in params" if len(parameters) == 1 else "values for all but one parameter"
        raise UndecidedError(f"could not tell {what} in the range {ranges}. Try: {help}.")
    if not found:
        raise ParameterError(f"no member has {text} in the range {ranges}")
    bound = {name: exact_number(value) for name, value in given.items()}
    return {**bound, **{parameters[symbol].name: value for symbol, value in found[0].items()}}


def _shown(solution: Mapping[sympy.Symbol, sympy.Expr]) -> str:
    return ", ".join(f"{symbol} = {value.n(12) if value.is_Float else value}" for symbol, value in solution.items())


def _equation(reg: Regularizer, name: str, value: sympy.Expr) -> sympy.Expr:
    fact = reg.fact(name)
    if fact is None or not isinstance(fact.value, sympy.Expr):
        numbers = ", ".join(f.name for f in reg.facts if isinstance(f.value, sympy.Expr) and f.name != "inverse")
        raise ParameterError(f"{name!r} is not a fact of this family that is a number; those are {numbers}")
    return fact.value - value


def _solutions(equations: list[sympy.Expr], symbols: list[sympy.Symbol]) -> list[dict[sympy.Symbol, sympy.Expr]]:
    """What SymPy's solver offers, which may be too little or too much."""
    try:
        return list(run(lambda: sympy.solve(equations, symbols, dict=True), seconds=SECONDS))
    except Exception as error:  # also StepTimeout; SymPy's solvers raise many kinds
        if len(symbols) == 1:
            return []
        text = ", ".join(map(str, equations))
        raise UndecidedError(f"SymPy cannot solve {text}; give values for all but one parameter") from error


def _all_roots(equation: sympy.Expr, parameter: Parameter, exact: list[sympy.Expr]) -> tuple[list[sympy.Expr], bool]:
    """The roots of the equation in the range, and whether these are all; those that are not `exact` to many digits."""
    span, symbol = parameter.range, parameter.user
    ends = [(span.low, span.low_open), (span.high, span.high_open)]
    closed = [end for end, is_open in ends if not is_open and _vanishes(equation.subs(symbol, end))]
    known: list[sympy.Expr] = []
    for root in (*closed, *exact):
        if not any(_vanishes(root - other) for other in known):
            known.append(root)
    place = cancelled(parameter.opened.xreplace({parameter.coordinate: X / (1 - X)}))
    spread = equation.subs(symbol, place)
    from .search import isolate_roots  # brings SciPy, which `import fysym` must not

    def sign(at: sympy.Expr) -> int | None:
        value = truth.evaluate_reliably(spread, {X: at})
        return None if value != value else (value > 0) - (value < 0)

    try:
        roots = run(lambda: isolate_roots(spread, X, sign), seconds=SECONDS)
    except Exception:  # also StepTimeout: a root that is known may still be the only one
        return known, len(known) == 1 and _is_monotone(spread)
    places = [_coordinate(root, parameter) for root in known if root not in closed]
    complete = all(high - low < NARROW and any(low <= at <= high for at in places) for low, high in roots.open_boxes)
    for at in roots.points:
        if not any(abs(at - other) < SMALL for other in places):
            known.append(place.subs(X, at))
    for low, high in roots.brackets[: MOST_SHOWN + 1]:
        if not any(low < other < high for other in places):
            known.append(_between(spread, place, low, high))
    found = sorted(known, key=lambda root: sympy.N(root, 30))
    return found, complete or (len(found) == 1 and _is_monotone(spread))


def _is_monotone(f: sympy.Expr) -> bool:
    """Is f provably strictly monotone for 0 < x < 1?"""
    try:
        clock = Deadline(SECONDS)
        return prove_sign(sympy.diff(f, X), X, clock) is not None and is_continuous(f, X, clock)
    except Exception:  # SymPy fails in many ways; then the roots are counted
        return False


def _coordinate(value: sympy.Expr, parameter: Parameter) -> sympy.Expr:
    """The 0 < x < 1 that a parameter value stands for, to a hundred digits."""
    b = parameter.closed.xreplace({parameter.symbol: value})
    return sympy.Rational(str(truth.evaluate(b / (1 + b), {}, 2 * truth.DIGITS)))


def _between(f: sympy.Expr, place: sympy.Expr, low: sympy.Rational, high: sympy.Rational) -> sympy.Expr:
    """The parameter value, to forty digits, at the one root of f between two points at which its signs differ."""
    rising = truth.evaluate_reliably(f, {X: high}) > 0
    for _ in range(180):
        middle = (low + high) / 2
        value = truth.evaluate(f, {X: middle}, 2 * truth.DIGITS)
        low, high = (low, middle) if (value > 0) == rising else (middle, high)
    return sympy.Float(str(truth.evaluate(place, {X: high}, 2 * truth.DIGITS)), 40)


def _vanishes(left: sympy.Expr) -> bool:
    if truth.sign(left) == 0:
        return True
    return bool(abs(truth.evaluate(left, {}, 2 * truth.DIGITS)) < SMALL)


def _is_in(value: sympy.Expr, span: Any) -> bool:
    return value.is_real is not False and not value.free_symbols and value in span
