"""Certificates written: proofs and covers as plain data for json.dumps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import sympy

from ..certify import Cover
from ..certify.balls import Box
from ..entropy import Parameter
from ..errors import FysymError, UnsupportedError
from ..parse import parse_expression
from ..ranges import parse_range
from ..signs import Proof
from .data import ATOMS, FORMAT, HEADS, VERSION, digest


def export(entropy_text: str, claims: Sequence[tuple[str, Proof | Cover]], params: Mapping[str, str]) -> dict[str, Any]:
    """The claims with their arguments; `params` maps names to ranges such as "alpha > 1".

    Proofs use positive coordinates of the parameters: the substitutions state them.
    """
    certificate = {
        "format": FORMAT,
        "version": VERSION,
        "entropy": entropy_text,
        "parameters": dict(params),
        "substitutions": {name: write(_opened(name, text)) for name, text in params.items()},
        "claims": [
            {"claim": words, "interval": ["0", "1"], "argument": _argument(argument)} for words, argument in claims
        ],
    }
    return certificate | {"digest": digest(certificate)}


def _opened(name: str, text: str) -> sympy.Expr:
    """A parameter as a function of its positive coordinate."""
    symbol = sympy.Symbol(name)
    return Parameter(name, symbol, symbol, parse_range(name, text), sympy.Symbol(f"b_{name}", positive=True)).opened


def _argument(argument: Proof | Cover) -> dict[str, Any]:
    step = {"expression": write(argument.expr), "sign": argument.sign, "strict": argument.strict}
    if isinstance(argument, Cover):
        return step | {"rule": "ball arithmetic", "children": [], "cover": _cover(argument)}
    return step | {"rule": argument.rule, "children": [_argument(child) for child in argument.children]}


def write(expr: sympy.Expr) -> Any:
    """Text that `parse_expression` reads back as the same expression, else a tree of names."""
    text = str(expr)
    symbols = {s.name: s for s in expr.free_symbols}
    try:
        back = parse_expression(text)
        if back.xreplace({s: symbols[s.name] for s in back.free_symbols}) == expr:
            return text
    except (FysymError, KeyError):
        pass
    return _tree(expr)


def _tree(expr: sympy.Expr) -> Any:
    if expr.is_Symbol:
        return ["symbol", expr.name]
    if expr.is_Rational:
        return f"{expr.p}/{expr.q}"
    for name, atom in ATOMS.items():
        if expr == atom:
            return name
    if expr.func.__name__ not in HEADS:
        raise UnsupportedError(f"{str(expr)[:60]} cannot be written into a certificate")
    return [expr.func.__name__, *map(_tree, expr.args)]


def _cover(cover: Cover) -> dict[str, Any]:
    return {
        "evidence": cover.evidence,
        "precision": cover.precision,
        "ranges": {symbol.name: [str(end) for end in span] for symbol, span in cover.ranges},
        "boxes": [_box(box) for box in cover.boxes],
        "ends": [
            {
                "at": end.at,
                "rule": end.rule,
                "delta": str(end.delta),
                "bound": str(end.bound),
                "power": write(end.power),
                "log_power": write(end.log_power),
                "order": end.order,
                "box": _box(end.box),
            }
            for end in cover.ends
        ],
    }


def _box(box: Box) -> list[list[str]]:
    return [[str(low), str(high)] for low, high in box]
