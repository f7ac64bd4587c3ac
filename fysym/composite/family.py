"""Families of composite entropies: facts in their parameters, members, and parameters at which the margin is given."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, cast

import sympy

from .. import entropy as entropies
from .. import solve as separable_solve
from ..compiler import compile
from ..deadline import Deadline, simplified
from ..entropy import Parameter
from ..errors import FysymError, ParameterError, UndecidedError
from ..facts import Fact
from ..ranges import Range, exact_number
from .theory import ANY_U, T, U

SECONDS = 5.0  # for a limit
EACH = ", for each member that is concave, which is decided when it is bound"


def parameter(symbol: sympy.Symbol, span: Range) -> Parameter:
    """What the stages of separable families know a parameter by."""
    return Parameter(symbol.name, symbol, symbol, span, sympy.Symbol(f"b_{symbol.name}", positive=True))


def at(
    outer: sympy.Expr, inner: sympy.Expr, symbol: sympy.Symbol, span: Range, value: sympy.Expr
) -> tuple[sympy.Expr, sympy.Expr]:
    """G and s at a value of a parameter, by a limit where G alone makes no sense there.

    Where s becomes c t, so that u is c for every p, the limit is taken along u = c + e z with z the sum of the
    derivative of s in the parameter: Renyi's log(u)/(1 - b) becomes Shannon's z at b = 1.
    """
    clock = Deadline(SECONDS)
    there = inner.subs(symbol, value)
    share = sympy.simplify(there / T)
    plain = outer.subs(symbol, value)
    if not share.has(T) and inner.has(symbol):
        side = 1 if value + sympy.Rational(1, 10**6) in span else -1
        e = sympy.Symbol("e", positive=True)
        moved = outer.subs({symbol: value + side * e, ANY_U: share + e * ANY_U}, simultaneous=True)
        moved = moved.replace(  # SymPy takes (1 + e)**(1/e) for 1 at 0
            lambda x: x.is_Pow and x.exp.has(e), lambda x: sympy.exp(x.exp * sympy.log(x.base))
        )
        slope = side * sympy.diff(inner, symbol).subs(symbol, value)
        return _limit(moved, e, Range(sympy.S.Zero, sympy.oo, False, True), sympy.S.Zero, clock, value, symbol), slope
    if plain.has(sympy.nan, sympy.zoo, sympy.oo, -sympy.oo):
        plain = _limit(outer, symbol, span, value, clock, value, symbol)
    return plain, there


def _limit(
    outer: sympy.Expr, symbol: sympy.Symbol, span: Range, to: sympy.Expr, clock: Deadline, value: Any, name: Any
) -> sympy.Expr:
    """The limit of outer as the symbol goes to a number, which is what `name` = `value` means."""
    try:
        return entropies.substitute(outer, parameter(symbol, span), to, clock)
    except FysymError as error:
        raise UndecidedError(
            f"outer has no finite limit that was found at {name} = {value}; give that member's own outer and inner, or "
            "compile it by fysym.compile if it is a sum"
        ) from error


def facts(request: Any) -> list[Fact]:
    """The margin and the sparsity of all members that are concave, in the parameters; what is not determined is left
    out."""
    inner, outer = request.inner, request.outer.xreplace({ANY_U: U})
    inside = {s.name: s for s in inner.free_symbols if s.name in request.ranges}
    ranges = {name: request.ranges[name].describe(name) for name in inside}
    at_one = inner.subs(T, 1)
    if not at_one.is_nonnegative:  # then G is not differentiated at a positive u
        return []
    for sign in (1, -1) if at_one.is_positive else (1,):
        try:
            separable = compile(sign * inner, params=ranges, deadline=request.seconds)
        except FysymError:
            continue
        w = simplified(sign * sympy.diff(outer, U).subs(U, at_one))
        if w.has(sympy.nan, sympy.zoo, sympy.oo, -sympy.oo):
            return []
        known = []
        margin, sparsity = separable.fact("margin"), separable.fact("sparsity")
        if margin is not None:
            there = margin.value.subs({sympy.Symbol(name): symbol for name, symbol in inside.items()})
            value = sympy.oo if there.is_infinite else simplified(w * there)
            why = f"F'(v) = {w} at a vertex, times the margin {margin.value} of the sum inside"
            known.append(Fact("margin", value, margin.status, why + EACH))
        if sparsity is not None:
            why = f"a prediction is one of the sum inside, at theta / w, and that is {sparsity.value}"
            known.append(Fact("sparsity", sparsity.value, sparsity.status, why + EACH))
        return known
    return []


def solve(request: Any, wanted: Mapping[str, Any]) -> dict[str, sympy.Expr]:
    """The value of the one free parameter at which the margin is that wanted, as for separable families."""
    given = {name: value for name, value in wanted.items() if name in request.ranges}
    goals = {name: exact_number(value) for name, value in wanted.items() if name not in given}
    request = request.bind(given)
    if set(goals) != {"margin"} or len(request.ranges) != 1:
        free = ", ".join(request.ranges) or "none"
        raise ParameterError(f"only a margin can be solved for, and with one free parameter; they are: {free}")
    ((name, span),) = request.ranges.items()
    known = facts(request)
    margin = next((fact.value for fact in known if fact.name == "margin"), None)
    if margin is None or margin.is_infinite:
        raise UndecidedError("the margin of this family is infinite or not determined; bind its parameters")
    if margin == goals["margin"]:
        raise ParameterError(f"every member has margin = {margin} in the range {span.describe(name)}")
    symbol = next(s for s in (request.outer + request.inner).free_symbols if s.name == name)
    view = SimpleNamespace(
        params={name: span.describe(name)},
        facts=known,
        fact=lambda which: next((fact for fact in known if fact.name == which), None),
        derivation=SimpleNamespace(entropy=SimpleNamespace(parameters=(parameter(symbol, span),))),
    )
    exact = {key: exact_number(value) for key, value in given.items()}
    try:
        return {**exact, **separable_solve.solve(cast(Any, view), goals)}
    except FysymError:
        raise
    except ValueError as error:
        raise UndecidedError(f"no {name} was found at which the margin, {margin}, is {goals['margin']}") from error
