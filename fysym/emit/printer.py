"""SymPy expressions as straight-line array code: one table from operation to function, per target."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import sympy

from .. import truth
from ..errors import UnsupportedError
from ..rewrite import expm1, log1p, ndtr, wrightomega

# What NumPy and SciPy call each function; {0} is the argument.
NUMPY: Mapping[Any, str] = {
    sympy.exp: "np.exp({0})",
    sympy.log: "np.log({0})",
    expm1: "np.expm1({0})",
    log1p: "np.log1p({0})",
    sympy.sin: "np.sin({0})",
    sympy.cos: "np.cos({0})",
    sympy.tan: "np.tan({0})",
    sympy.asin: "np.arcsin(np.clip({0}, -1.0, 1.0))",
    sympy.acos: "np.arccos(np.clip({0}, -1.0, 1.0))",
    sympy.atan: "np.arctan({0})",
    sympy.sinh: "np.sinh({0})",
    sympy.cosh: "np.cosh({0})",
    sympy.tanh: "np.tanh({0})",
    sympy.asinh: "np.arcsinh({0})",
    sympy.acosh: "np.arccosh(np.maximum({0}, 1.0))",
    sympy.atanh: "np.arctanh(np.clip({0}, -1.0, 1.0))",
    sympy.erf: "special.erf({0})",
    sympy.erfc: "special.erfc({0})",
    sympy.erfinv: "special.erfinv(np.clip({0}, -1.0, 1.0))",
    sympy.erfcinv: "special.erfcinv(np.clip({0}, 0.0, 2.0))",
    sympy.gamma: "special.gamma({0})",
    sympy.loggamma: "special.gammaln({0})",
    sympy.polygamma: "special.polygamma(int({0}), {1})",
    sympy.LambertW: "special.lambertw({0}, int({1})).real",
    ndtr: "special.ndtr({0})",
    wrightomega: "special.wrightomega({0})",
}
NUMPY_POWERS: Mapping[str, str] = {
    "sqrt": "np.sqrt({0})",
    "cbrt": "np.cbrt({0})",
    "square": "np.square({0})",
    "power": "np.power({0}, {1})",
    "clip": "np.maximum({0}, 0.0)",
    "where": "np.where({0} < {1}, {2}, {3})",
}


@dataclass(frozen=True)
class Table:
    """A target's spelling of functions, and of powers, roots and choices."""

    functions: Mapping[Any, str]
    powers: Mapping[str, str]


NUMPY_TABLE = Table(NUMPY, NUMPY_POWERS)


def lines(expr: sympy.Expr, argument: sympy.Symbol, name: str, table: Table = NUMPY_TABLE) -> list[str]:
    """Statements that compute `expr`, the last one a return; `name` is what the argument is called."""
    if not expr.has(argument):
        return [f"return {literal(expr)} + 0.0 * {name}"]
    writer = _Writer(table, {argument: name})
    shared, (body,) = _shared([expr])
    for symbol, part in shared:
        writer.define(symbol, part)
    result = writer.write(body)
    return [*writer.statements, f"return {_strip(result)}"]


def assignments(
    results: Mapping[str, sympy.Expr], argument: sympy.Symbol, name: str, table: Table, more: Mapping[Any, str] = {}
) -> list[str]:
    """Statements that compute several expressions together; `more` names further symbols they may contain."""
    writer = _Writer(table, {argument: name, **more})
    shared, bodies = _shared(list(results.values()))
    for symbol, part in shared:
        writer.define(symbol, part)
    found = [_strip(writer.write(body)) for body in bodies]
    return [*writer.statements, *(f"{result} = {text}" for result, text in zip(results, found, strict=True))]


def literal(number: sympy.Expr) -> str:
    """A number as the nearest double; UnsupportedError where there is none."""
    if number.is_Rational:
        try:
            return repr(number.p / number.q)
        except OverflowError:
            raise UnsupportedError("h contains a number that is too large for a double; scale h") from None
    value = float(truth.evaluate_reliably(number, {}, 40))
    if abs(value) == float("inf"):
        raise UnsupportedError("h contains a number that is too large for a double; scale h")
    return repr(value)


def _prepared(expr: sympy.Expr) -> sympy.Expr:
    """Numbers folded first, so that shared parts are found among what really varies."""
    return expr.replace(
        lambda e: e.is_number and not e.is_Rational and not e.is_Float and e.is_Function,
        lambda e: sympy.Float(str(truth.evaluate_reliably(e, {}, 40)), 35),
    )


def _shared(exprs: list[sympy.Expr]) -> tuple[list[tuple[sympy.Symbol, sympy.Expr]], list[sympy.Expr]]:
    """Names for the parts that occur more than once, conditions excepted, and the expressions in these."""
    parts, bodies = sympy.cse(
        [_prepared(expr) for expr in exprs], symbols=sympy.numbered_symbols("x"), optimizations=[]
    )
    conditions = {symbol: part for symbol, part in parts if part.is_Relational}
    named = [(symbol, part.xreplace(conditions)) for symbol, part in parts if symbol not in conditions]
    return named, [body.xreplace(conditions) for body in bodies]


def _strip(text: str) -> str:
    """Remove one pair of brackets around a whole expression."""
    if not (text.startswith("(") and text.endswith(")")):
        return text
    depth = 0
    for place, char in enumerate(text):
        depth += (char == "(") - (char == ")")
        if depth == 0 and place < len(text) - 1:
            return text
    return text[1:-1]


class _Writer:
    def __init__(self, table: Table, names: dict[sympy.Symbol, str]) -> None:
        self.table = table
        self.names = names
        self.statements: list[str] = []
        self.positive = {name for symbol, name in names.items() if symbol.is_positive}

    def define(self, symbol: sympy.Symbol, part: sympy.Expr) -> None:
        if not part.free_symbols:
            self.names[symbol] = literal(part)
            return
        text = _strip(self.write(part))
        self.names[symbol] = str(symbol)
        self.statements.append(f"{symbol} = {text}")

    def named(self, expr: sympy.Expr) -> str:
        """A name for the value of `expr`, computing it first if it is not a plain name."""
        text = self.write(expr)
        if text.isidentifier():
            return text
        name = f"y{len(self.statements)}"
        self.statements.append(f"{name} = {_strip(text)}")
        return name

    def write(self, expr: sympy.Expr) -> str:
        if expr in self.names:
            return self.names[expr]
        if not expr.free_symbols:
            return literal(expr)
        if expr.is_Add:
            return self._sum(expr)
        if expr.is_Mul:
            return self._product(expr)
        if expr.is_Pow:
            return self._power(expr.base, expr.exp)
        if isinstance(expr, sympy.Piecewise):
            return self._piecewise(expr)
        template = self.table.functions.get(expr.func)
        if template is None:
            raise UnsupportedError(f"no code is known for {expr.func.__name__} in {expr}")
        arguments = expr.args if expr.func is not sympy.LambertW else (expr.args[0], *expr.args[1:], sympy.S.Zero)
        return template.format(*(_strip(self.write(argument)) for argument in arguments))

    def _sum(self, expr: sympy.Add) -> str:
        text = ""
        for term in sorted(expr.args, key=lambda e: e.could_extract_minus_sign()):
            negative = term.could_extract_minus_sign()
            body = self.write(-term if negative else term)
            body = _strip(body) if term.is_Mul and not body.startswith("(-") else body
            text += (" - " if negative else " + ") + body
        return "(" + (text[3:] if text.startswith(" + ") else "-" + text[3:]) + ")"

    def _product(self, expr: sympy.Mul) -> str:
        sign = ""
        if expr.could_extract_minus_sign():
            sign, expr = "-", -expr
            if not expr.is_Mul:
                return f"(-{self.write(expr)})"
        coefficient, rest = expr.as_independent(*expr.free_symbols, as_Add=False)
        over: list[str] = []
        under: list[str] = []
        for factor in sympy.Mul.make_args(rest):
            base, exponent = factor.as_base_exp() if not isinstance(factor, sympy.exp) else (factor, sympy.S.One)
            if exponent.is_number and exponent.is_negative:
                under.append(self._power(base, -exponent))
            else:
                over.append(self.write(factor))
        if coefficient.is_Rational and coefficient.p == 1 and coefficient.q > 1:
            under.insert(0, literal(1 / coefficient))
        elif coefficient != 1:
            over.insert(0, literal(coefficient))
        text = " * ".join(over) or "1.0"
        for divisor in under:
            text += f" / {divisor}"
        return f"({sign}{text})"

    def _power(self, base: sympy.Expr, exponent: sympy.Expr) -> str:
        if exponent.is_number and exponent.is_negative:
            return f"(1.0 / {self._power(base, -exponent)})"
        if exponent == 1:
            return self.write(base)
        if exponent.is_Rational and exponent.q <= 2 and exponent <= 8:
            name = self.named(base) if exponent.is_Integer else self._clipped(base)
            whole = int(exponent)
            factors = [name] * whole
            if exponent.q == 2:
                factors.append(self.table.powers["sqrt"].format(name))
            return factors[0] if len(factors) == 1 else "(" + " * ".join(factors) + ")"
        if exponent.is_Rational and exponent.q == 3 and exponent <= 4:
            name = self._clipped(base)
            whole, thirds = divmod(exponent.p, 3)
            root = self.table.powers["cbrt"].format(name)
            if thirds == 2:
                root = self.table.powers["square"].format(root)
            return root if whole == 0 else "(" + " * ".join([*[name] * whole, root]) + ")"
        text = _strip(self.write(exponent))
        parts = _parts(exponent) if exponent.is_number else (text, "0.0")
        return self.table.powers["power"].format(self._clipped(base), text, *parts)

    def _clipped(self, base: sympy.Expr) -> str:
        """A base that is positive in exact arithmetic, kept from rounding below 0."""
        name = self.named(base)
        if name in self.positive:
            return name
        clipped = f"y{len(self.statements)}"
        self.statements.append(f"{clipped} = {self.table.powers['clip'].format(name)}")
        self.positive.add(clipped)
        return clipped

    def _piecewise(self, expr: sympy.Piecewise) -> str:
        *branches, (last, _) = expr.args
        text = _strip(self.write(last))
        for value, condition in reversed(branches):
            left, right = (_strip(self.write(side)) for side in (condition.lhs, condition.rhs))
            if condition.rel_op in (">", ">="):
                left, right = right, left
            text = self.table.powers["where"].format(left, right, _strip(self.write(value)), text)
        return text


def _parts(exponent: sympy.Expr) -> tuple[str, str]:
    """A number as a float32 and the rest as a double, for targets whose powers take more digits than one has."""
    exact = sympy.Rational(str(exponent.evalf(40)))
    first = struct.unpack("f", struct.pack("f", float(exact)))[0]
    return repr(first), repr(float(exact - sympy.Rational(first)))
