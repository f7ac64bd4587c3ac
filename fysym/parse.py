"""Text to SymPy: entropies such as "-t*log(t)", and the comparisons that make up a range.

Text is never executed. It is scanned character by character, read by Python's own grammar into a
syntax tree, and rebuilt node by node from the tables below. Whatever is not in a table is refused with
a caret under the place. Sizes are checked before SymPy sees a number, because SymPy computes powers and
factorials eagerly and exactly; a time limit catches what the size limits cannot foresee.
"""

from __future__ import annotations

import ast
import difflib
import keyword
import math
import re
import unicodedata
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any, NoReturn

import sympy
from sympy import And, Expr, Rational, S, log

from . import deadline
from .errors import ParseError

MAX_CHARACTERS = 10_000
MAX_DIGITS = 300  # of one typed number
MAX_DECIMAL_EXPONENT = 400
MAX_DEPTH = 100  # of brackets, and of the syntax tree
MAX_NODES = 2_000
MAX_BITS = 4_000  # of an exact number; a constant lies between 2**-4000 and 2**4000
MAX_ROOT_BITS = 1_000_000  # of number**q: SymPy may compute it to simplify number**(p/q)
MAX_EXPONENT = 10_000  # on a symbolic base
MAX_GAMMA = 1_000  # argument of the gamma family, which SymPy turns into factorials
MAX_SECONDS = 5.0  # for SymPy to build one expression

CONSTANTS: dict[str, Expr] = {"pi": S.Pi, "E": S.Exp1}
INFINITIES: dict[str, Expr] = {"oo": S.Infinity, "inf": S.Infinity}  # as the bound of a range only


def _when_constant(function: Any) -> Callable[..., Any]:
    """Evaluate on constants only: with an unknown symbol inside, SymPy may expand or compare for minutes."""
    return lambda *args: function(*args, evaluate=all(arg.is_number for arg in args))


def _log(x: Expr, *base: Expr) -> Expr:
    if S.Zero in base:  # SymPy divides by log(0) and gets 0
        raise ValueError("its second argument, the base, is not 0")
    return log(x, *base)


def _lambert_w(x: Expr, branch: Expr = S.Zero) -> Expr:
    if branch not in (0, -1):
        raise ValueError("its second argument, the branch, is 0 or -1")
    return sympy.LambertW(x, branch)


def _polygamma(order: Expr, x: Expr) -> Expr:
    if not (order.is_Integer and 0 <= order <= MOST_ORDERS):
        raise ValueError(f"its first argument, the order, is a whole number up to {MOST_ORDERS}")
    return sympy.polygamma(order, x)


MOST_ORDERS = 20  # of polygamma
ONE_ARGUMENT = """exp sqrt cbrt sin cos tan sec csc cot asin acos atan sinh cosh tanh asinh acosh atanh
    erf erfc erfinv gamma loggamma digamma"""
# name -> (how to build it, fewest arguments, most arguments)
FUNCTIONS: dict[str, tuple[Callable[..., Any], int, int]] = {
    **{name: (getattr(sympy, name), 1, 1) for name in ONE_ARGUMENT.split()},
    "arcsin": (sympy.asin, 1, 1),
    "arccos": (sympy.acos, 1, 1),
    "arctan": (sympy.atan, 1, 1),
    "erfcinv": (lambda x: sympy.erfinv(1 - x), 1, 1),  # SymPy has no numeric value for erfcinv
    "expm1": (lambda x: sympy.exp(x) - 1, 1, 1),
    "log": (_log, 1, 2),
    "ln": (log, 1, 1),
    "log2": (lambda x: log(x, 2), 1, 1),
    "log10": (lambda x: log(x, 10), 1, 1),
    "log1p": (lambda x: log(1 + x), 1, 1),
    "xlogy": (lambda x, y: S.Zero if x == 0 else x * log(y), 2, 2),
    "trigamma": (sympy.trigamma, 1, 1),
    "polygamma": (_polygamma, 2, 2),
    "LambertW": (_lambert_w, 1, 2),
    "lambertw": (_lambert_w, 1, 2),
    "abs": (_when_constant(sympy.Abs), 1, 1),
    "Abs": (_when_constant(sympy.Abs), 1, 1),
    "sign": (_when_constant(sympy.sign), 1, 1),
    "min": (_when_constant(sympy.Min), 1, MAX_NODES),
    "Min": (_when_constant(sympy.Min), 1, MAX_NODES),
    "max": (_when_constant(sympy.Max), 1, MAX_NODES),
    "Max": (_when_constant(sympy.Max), 1, MAX_NODES),
}
GAMMA_FAMILY = frozenset({"gamma", "loggamma", "digamma", "trigamma", "polygamma"})
EXPONENTIALS = frozenset({"exp", "expm1"})
ARITHMETIC: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.Div: lambda a, b: a / b,
}
COMPARISONS: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Lt: sympy.Lt,
    ast.LtE: sympy.Le,
    ast.Gt: sympy.Gt,
    ast.GtE: sympy.Ge,
    ast.Eq: sympy.Eq,
    ast.NotEq: sympy.Ne,
}

ALLOWED_WORDS = frozenset({"and", "or", "not", "if", "else", "True", "False"})
REFUSED_SIGNS = {
    "^": "use ** for powers, not ^",
    "=": "= has no place in an expression: write only its right-hand side, and arguments by position",
    "#": "comments are not allowed",
    "'": "text in quotes is not allowed",
    '"': "text in quotes is not allowed",
    "[": "square brackets are not allowed: group with ( )",
    "{": "curly brackets are not allowed: group with ( )",
    ".": "a name with a dot is not allowed: write log(t), not np.log(t)",
    "!": "! is not allowed: write gamma(n + 1) for a factorial",
    "\N{MINUS SIGN}": "write - for the minus sign",
    "\N{EN DASH}": "write - for the minus sign",
    "\N{MULTIPLICATION SIGN}": "write * for a product",
    "\N{MIDDLE DOT}": "write * for a product",
    "\N{DOT OPERATOR}": "write * for a product",
    "\N{SUPERSCRIPT TWO}": "write **2 for a square",
    "\N{SQUARE ROOT}": "write sqrt(...) for a square root",
    "\N{LESS-THAN OR EQUAL TO}": "write <=",
    "\N{GREATER-THAN OR EQUAL TO}": "write >=",
    "\N{INFINITY}": "write oo for infinity, in ranges only",
}
TOKEN = re.compile(
    r"(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)|(?P<name>[A-Za-z_]\w*)"
    r"|(?P<operator>\*\*|[<>=!]=|[-+*/<>,])|(?P<other>\S)",
    re.ASCII,
)
BLANKS = str.maketrans(dict.fromkeys("\t\r\f\v", " "))


def parse_expression(text: str) -> Expr:
    """Read an expression such as "(t - t**alpha)/(alpha - 1)".

    Names become plain symbols without assumptions, `pi` and `E` the constants, and decimal numbers
    exact fractions ("0.1" is 1/10). Anything else than a finite real expression is a ParseError.
    """
    reader = _Reader(text)
    return reader.timed(reader.result)


def parse_bounds(text: str, name: str, hint: str) -> list[tuple[Expr, Expr, bool]]:
    """The half-lines (low, high, open) that the comparisons in a text such as "0 < alpha <= 1" describe.

    One end of each is infinite. Errors end with the hint.
    """
    reader = _Reader(text)
    return reader.timed(lambda node: list(reader.bounds(node, name, hint)))


def names_in(text: str) -> set[str]:
    """The names in a text that have no meaning of their own."""
    known = {*CONSTANTS, *INFINITIES, *ALLOWED_WORDS, *FUNCTIONS}
    return {token["name"] for token in TOKEN.finditer(text) if token["name"]} - known


def shown(value: Any, width: int = 60) -> str:
    """A value as an error message quotes it, cut short."""
    try:
        text = str(value) if isinstance(value, sympy.Basic) else repr(value)
    except ValueError:  # Python does not print integers of more than 4300 digits
        text = f"{type(value).__name__} of too many digits"
    return text if len(text) <= width else text[:width] + "..."


def _bits(number: Any) -> float:
    """The bits of a fraction's larger half; none for 0, 1 and -1, whose powers do not grow."""
    return math.log2(max(abs(int(number.p)), int(number.q)))


def constant_problem(value: Expr) -> str | None:
    """Why a constant is not an ordinary real number, or None."""
    if value.is_Rational:
        return f"a number of more than {MAX_BITS} bits is too large" if _bits(value) > MAX_BITS else None
    if value in (S.NaN, S.ComplexInfinity, S.Infinity, S.NegativeInfinity):
        return "this is infinite or undefined (a division by zero, or log(0)), not a real number"
    digits = value.evalf(15)
    if not digits.is_Float:
        return f"{shown(value)} is not a real number"
    if digits._prec == 1 or digits == 0:
        return f"{shown(value)} cannot be told from zero; leave it out, or write 0"
    _, mantissa, exponent, size = digits._mpf_
    if not mantissa or abs(exponent + size) > MAX_BITS:
        return f"{shown(value)} is too large or too small: numbers lie between 2**-{MAX_BITS} and 2**{MAX_BITS}"
    return None


def power_problem(base: Expr, exponent: Expr) -> str | None:
    """Why base**exponent must not be handed to SymPy, or None.

    SymPy computes numeric powers in full, also those it uncovers: exp(n*log(2)) becomes 2**n, and
    2**(t + n)*2**-t becomes 2**n. So the numbers in an exponent are weighed against those they may raise,
    and bounded on a symbol, for which numbers are put in later.
    """
    if exponent.is_number and not base.is_number and abs(exponent.evalf(15)) > MAX_EXPONENT:
        return f"the exponent {shown(exponent)} is too large: at most {MAX_EXPONENT} on a symbol"
    raised = list(_raised(base))
    logs = exponent.atoms(log)
    raised += [number for inner in logs for number in inner.atoms(Rational)]
    bits = max((_bits(number) for number in raised if number.is_Rational), default=0.0)
    powers = exponent.xreplace(dict.fromkeys(logs, sympy.Dummy())).atoms(Rational)
    if bits * sum(abs(number) for number in powers) > MAX_BITS:
        return f"this power is too large: its exact value may have more than {MAX_BITS} bits"
    if not base.is_number and sum(abs(number) for number in powers) > MAX_EXPONENT:
        return f"the exponent {shown(exponent)} may become too large: its numbers add up to more than {MAX_EXPONENT}"
    if bits * max((int(number.q) for number in powers), default=1) > MAX_ROOT_BITS:
        return f"the exponent {shown(exponent)} on a number has too large a denominator"
    return None


def _raised(base: Expr) -> Iterator[Expr]:
    """What SymPy raises to the power one by one: factors, and the branches of Piecewise."""
    for factor in sympy.Mul.make_args(base):
        part = factor.as_base_exp()[0]
        if isinstance(part, sympy.Piecewise):
            for value, _ in part.args:
                yield from _raised(value)
        else:
            yield part


class _Reader:
    """One text on its way to SymPy: the syntax tree, and where each of its nodes stands in the text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.scan()
        try:
            # In brackets, so that line breaks and leading blanks mean nothing.
            self.tree: ast.expr = ast.parse(f"({text.translate(BLANKS)}\n)", mode="eval").body
        except SyntaxError as error:
            reason = "" if error.msg.startswith("invalid syntax") else f" ({error.msg})"
            position = self.offset(error.lineno or 1, (error.offset or 1) - 1)
            raise self.error(position, f"something is missing or misplaced here{reason}") from error
        except (RecursionError, MemoryError, ValueError, OverflowError) as error:
            raise self.error(0, "the expression is too deeply nested") from error
        self.node: ast.AST = self.tree
        self.measure()

    def error(self, position: int, problem: str) -> ParseError:
        return ParseError(problem, self.text[: MAX_CHARACTERS + 1], min(max(position, 0), len(self.text)))

    def offset(self, line: int, column: int) -> int:
        """The place in the text of a line (from 1) and column of the bracketed text; all is ASCII by then."""
        starts = [0] + [i + 1 for i, sign in enumerate(self.text) if sign == "\n"]
        return starts[line - 1] + column - (line == 1) if line <= len(starts) else len(self.text)

    def fail(self, node: ast.AST, problem: str, cause: Exception | None = None) -> NoReturn:
        raise self.error(self.offset(node.lineno, node.col_offset), problem) from cause  # type: ignore[attr-defined]

    def timed(self, work: Callable[[ast.expr], Any]) -> Any:
        """work(tree) within the time limit; a thread of its own also starts with an empty stack."""
        try:
            return deadline.run(work, self.tree, seconds=MAX_SECONDS)
        except deadline.StepTimeout as error:
            self.fail(self.node, f"SymPy needs more than {MAX_SECONDS:g} s for this; simplify it by hand", error)

    def scan(self) -> None:
        """Refuse what needs no grammar to be refused: sizes, signs, reserved words, missing operators."""
        if len(self.text) > MAX_CHARACTERS:
            raise self.error(MAX_CHARACTERS, f"the text is longer than {MAX_CHARACTERS} characters")
        if not self.text.strip():
            raise ParseError("the text is empty")
        opened: list[int] = []
        after_operand = False
        for token in TOKEN.finditer(self.text):
            sign, kind, position = token[0], token.lastgroup, token.start()
            word = kind == "name" and keyword.iskeyword(sign) and sign not in ("True", "False")
            problem = _number_problem(sign) if kind == "number" else None
            if kind == "name":
                problem = _name_problem(sign)
            if after_operand and kind in ("name", "number") and not word:
                problem = "an operator is missing here: for a product write *, as in 2*t"
            if kind == "other" and sign == "(":
                opened.append(position)
                problem = f"brackets are nested more than {MAX_DEPTH} deep" if len(opened) > MAX_DEPTH else None
            elif kind == "other" and sign == ")":
                problem = None if opened else "this bracket closes nothing"
                opened = opened[:-1]
            elif kind == "other":
                problem = _sign_problem(sign)
            if problem:
                raise self.error(position, problem)
            after_operand = sign == ")" or (kind in ("name", "number") and not word)
        if opened:
            raise self.error(opened[-1], "this bracket is never closed")

    def measure(self) -> None:
        """Refuse trees that are too large or too deep to walk; a chain of + - * / is one level."""
        count, waiting = 0, [(self.tree, 1)]
        while waiting:
            node, depth = waiting.pop()
            count += isinstance(node, ast.expr)
            if count > MAX_NODES:
                self.fail(self.tree, f"the expression has more than {MAX_NODES} parts")
            if depth > MAX_DEPTH:
                self.fail(node, f"the expression is nested more than {MAX_DEPTH} deep")
            for child in ast.iter_child_nodes(node):
                if isinstance(child, ast.expr):
                    chained = _is_chain(node) and _is_chain(child) and child is node.left  # type: ignore[attr-defined]
                    waiting.append((child, depth + (not chained)))

    def result(self, tree: ast.expr) -> Expr:
        """The whole expression, checked once more for what a late simplification may have let in."""
        value = self.expression(tree)
        for part in sympy.preorder_traversal(value):
            if part in (S.NaN, S.ComplexInfinity, S.Infinity, S.NegativeInfinity, S.ImaginaryUnit):
                self.fail(tree, f"the expression is not a finite real one: it contains {part}")
            if part.is_Rational and (problem := constant_problem(part)):
                self.fail(tree, problem)
        return value

    def expression(self, node: ast.expr) -> Expr:
        """The value of a node; constants are checked to be ordinary real numbers."""
        self.node = node
        handler = HANDLERS.get(type(node))
        if handler is None:
            self.fail(node, REFUSED_NODES.get(type(node), "this has no place in an expression"))
        value = handler(self, node)
        if value.is_number:
            self.make(node, lambda: value, check=constant_problem)
        return value

    def make(self, node: ast.AST, build: Callable[..., Any], *args: Any, check: Callable[[Expr], str | None]) -> Any:
        """build(*args), with whatever SymPy raises, or the check finds, reported at the node."""
        try:
            value = build(*args)
            problem = check(value)
        except Exception as error:  # noqa: BLE001 (SymPy raises all sorts)
            self.fail(node, f"SymPy cannot build this ({type(error).__name__}: {str(error)[:120]})", error)
        if problem:
            self.fail(node, problem)
        return value

    def part(self, node: ast.AST, build: Callable[..., Any], *args: Any) -> Any:
        """One step of arithmetic or one function call, with its powers checked afterwards."""
        return self.make(node, build, *args, check=_step_problem)

    def number(self, node: ast.Constant) -> Expr:
        if isinstance(node.value, bool) or not isinstance(node.value, (int, float)):
            self.fail(node, f"{node.value!r} is not a number")
        start = self.offset(node.lineno, node.col_offset)
        typed = Fraction(self.text[start : self.offset(node.end_lineno or 1, node.end_col_offset or 0)])
        return Rational(typed.numerator, typed.denominator)

    def name(self, node: ast.Name) -> Expr:
        if node.id in FUNCTIONS or node.id == "Piecewise":
            self.fail(node, f"{node.id} is a function here: write {node.id}(...), or choose another name")
        if node.id in INFINITIES:
            self.fail(node, "infinity has no place in an expression")
        return CONSTANTS.get(node.id) or sympy.Symbol(node.id)

    def unary(self, node: ast.UnaryOp) -> Expr:
        if not isinstance(node.op, (ast.UAdd, ast.USub)):
            self.fail(node, "'not' belongs in a condition, as in Piecewise((t, not t > 1/2), (0, True))")
        value = self.expression(node.operand)
        return -value if isinstance(node.op, ast.USub) else value

    def binary(self, node: ast.BinOp) -> Expr:
        if isinstance(node.op, ast.Pow):
            base, exponent = self.expression(node.left), self.expression(node.right)
            self.make(node, power_problem, base, exponent, check=lambda problem: problem)
            return self.part(node, sympy.Pow, base, exponent)
        chain: list[ast.BinOp] = []
        first: ast.expr = node
        while isinstance(first, ast.BinOp) and _is_chain(first):
            chain.append(first)
            first = first.left
        value = self.expression(first)
        for link in reversed(chain):
            if type(link.op) not in ARITHMETIC:
                self.fail(link, "the operators are + - * / and **")
            value = self.part(link, ARITHMETIC[type(link.op)], value, self.expression(link.right))
        return value

    def call(self, node: ast.Call) -> Expr:
        if not isinstance(node.func, ast.Name):
            self.fail(node, "an operator is missing after this: for a product write *, as in 2*(1 - t)")
        name = node.func.id
        if name == "Piecewise":
            return self.piecewise(node)
        if name not in FUNCTIONS:
            close = difflib.get_close_matches(name.lower(), FUNCTIONS, cutoff=0.6)
            hint = f"did you mean {' or '.join(close)}?" if close else f"for a product write {name}*(...)"
            self.fail(node, f"{name} is not a function that fysym knows; {hint}")
        for extra in [*node.keywords, *(arg for arg in node.args if isinstance(arg, ast.Starred))]:
            self.fail(extra, "arguments are given one by one, by position")
        build, fewest, most = FUNCTIONS[name]
        if not fewest <= len(node.args) <= most:
            wanted = {1: "1 argument", 2: "1 or 2 arguments"}.get(most, "at least 1 argument")
            wanted = f"{fewest} arguments" if fewest > 1 else wanted
            self.fail(node, f"{name} takes {wanted}, not {len(node.args)}")
        args = [self.expression(arg) for arg in node.args]
        if name in GAMMA_FAMILY and args[0].is_number and abs(args[0].evalf(15)) > MAX_GAMMA:
            self.fail(node, f"{name} of a number beyond {MAX_GAMMA} is too large")
        if name in EXPONENTIALS:
            self.make(node, power_problem, S.Exp1, args[0], check=lambda problem: problem)
        return self.part(node, build, *args)

    def piecewise(self, node: ast.Call) -> Expr:
        pairs = []
        for pair in node.args:
            if not isinstance(pair, ast.Tuple) or len(pair.elts) != 2 or node.keywords:
                self.fail(pair, "Piecewise takes pairs: Piecewise((t, t < 1/2), (1 - t, True))")
            pairs.append((self.expression(pair.elts[0]), self.condition(pair.elts[1])))
        if node.keywords or not pairs or pairs[-1][1] is not S.true:
            self.fail(node, "the last pair of Piecewise must be (expression, True), so that no case is left out")
        return self.cases(node, pairs)

    def if_else(self, node: ast.IfExp) -> Expr:
        condition = self.condition(node.test)
        return self.cases(node, [(self.expression(node.body), condition), (self.expression(node.orelse), S.true)])

    def cases(self, node: ast.expr, pairs: list[tuple[Expr, Any]]) -> Expr:
        """Piecewise as typed: SymPy would solve the conditions, which may take minutes."""
        pairs = [pair for pair in pairs if pair[1] is not S.false]
        last = [condition is S.true for _, condition in pairs].index(True)
        if last == 0:
            return pairs[0][0]
        return self.part(node, lambda: sympy.Piecewise(*pairs[: last + 1], evaluate=False))

    def condition(self, node: ast.expr) -> Any:
        """A truth value: comparisons, and / or / not of them, True or False."""
        if isinstance(node, ast.Constant) and isinstance(node.value, bool):
            return S.true if node.value else S.false
        if isinstance(node, ast.BoolOp):
            parts = [self.condition(part) for part in node.values]
            return self.truth(node, And if isinstance(node.op, ast.And) else sympy.Or, *parts)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return self.truth(node, sympy.Not, self.condition(node.operand))
        if not isinstance(node, ast.Compare):
            self.fail(node, "a condition is a comparison such as t < 1/2, or True")
        sides = [self.expression(side) for side in (node.left, *node.comparators)]
        for side in sides:
            if side.has(sympy.Piecewise):
                self.fail(node, "a condition cannot itself contain Piecewise or if")
        links = [self.truth(node, COMPARISONS[type(op)], *sides[i : i + 2]) for i, op in enumerate(node.ops)]
        return self.truth(node, And, *links)

    def truth(self, node: ast.AST, build: Callable[..., Any], *args: Any) -> Any:
        return self.make(node, build, *args, check=lambda value: None)

    def bounds(self, node: ast.expr, name: str, hint: str) -> Iterator[tuple[Expr, Expr, bool]]:
        """The half-lines whose intersection is a range written as text."""
        if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And):
            for part in node.values:
                yield from self.bounds(part, name, hint)
            return
        if not isinstance(node, ast.Compare):
            self.fail(node, f"a range compares {name} with numbers{hint}")
        sides = [node.left, *node.comparators]
        for op, left, right in zip(node.ops, sides, sides[1:]):
            if not isinstance(op, (ast.Lt, ast.LtE, ast.Gt, ast.GtE)):
                self.fail(left, f"a range is made of <, <=, > and >={hint}")
            low, high = (left, right) if isinstance(op, (ast.Lt, ast.LtE)) else (right, left)
            is_open = isinstance(op, (ast.Lt, ast.Gt))
            if isinstance(high, ast.Name) and high.id == name:
                yield self.bound(low, name, hint), S.Infinity, is_open
            elif isinstance(low, ast.Name) and low.id == name:
                yield S.NegativeInfinity, self.bound(high, name, hint), is_open
            else:
                self.fail(left, f"{name} must stand alone on one side of each comparison{hint}")

    def bound(self, node: ast.expr, name: str, hint: str) -> Expr:
        """A constant, or plus or minus infinity."""
        signed = isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.UAdd, ast.USub))
        inner = node.operand if signed else node  # type: ignore[attr-defined]
        if isinstance(inner, ast.Name) and inner.id in INFINITIES:
            negative = signed and isinstance(node.op, ast.USub)  # type: ignore[attr-defined]
            return -INFINITIES[inner.id] if negative else INFINITIES[inner.id]
        for part in ast.walk(node):
            if isinstance(part, ast.Name) and part.id not in {**CONSTANTS, **FUNCTIONS}:
                self.fail(part, f"the bounds of {name} are numbers, and {part.id} is not one{hint}")
        return self.expression(node)


HANDLERS: dict[type[ast.expr], Callable[[_Reader, Any], Expr]] = {
    ast.Constant: _Reader.number,
    ast.Name: _Reader.name,
    ast.UnaryOp: _Reader.unary,
    ast.BinOp: _Reader.binary,
    ast.Call: _Reader.call,
    ast.IfExp: _Reader.if_else,
}
REFUSED_NODES: dict[type[ast.expr], str] = {
    ast.Compare: "a comparison belongs in a condition, as in Piecewise((t, t < 1/2), (1 - t, True))",
    ast.BoolOp: "'and' and 'or' belong in a condition, as in Piecewise((t, 0 < t and t < 1), (0, True))",
    ast.Tuple: "a comma has no place here; decimals are written with a point, as in 0.5",
}


def _is_chain(node: ast.AST) -> bool:
    """Whether a node is a link of a chain such as a - b + c, which is read in a loop."""
    return isinstance(node, ast.BinOp) and not isinstance(node.op, ast.Pow)


def _step_problem(value: Expr) -> str | None:
    """Why the value that SymPy built in one step cannot be kept, or None."""
    for part in (value,) if value.is_Add else (value, *value.args):
        if part is S.ImaginaryUnit:
            return "this is not a real number"
        if (part.is_Number or part is S.ComplexInfinity) and (problem := constant_problem(part)):
            return problem
        if isinstance(part, (sympy.Pow, sympy.exp)) and (problem := power_problem(*part.as_base_exp())):
            return problem
    return None


def _number_problem(typed: str) -> str | None:
    mantissa, _, exponent = typed.lower().partition("e")
    if len(mantissa) > MAX_DIGITS:
        return f"a number of more than {MAX_DIGITS} digits is too long"
    if len(exponent) > 6 or abs(int(exponent or 0)) > MAX_DECIMAL_EXPONENT:
        return f"the decimal exponent of {typed[:40]} is beyond {MAX_DECIMAL_EXPONENT}"
    return None


def _name_problem(name: str) -> str | None:
    if name.startswith("__"):
        return "a name cannot start with two underscores"
    if keyword.iskeyword(name) and name not in ALLOWED_WORDS:
        other = "call the parameter lam" if name == "lambda" else "choose another name"
        return f"{name} is a reserved word in Python; {other}"
    return None


def _sign_problem(sign: str) -> str:
    """Why a sign is refused; Greek letters get the name to write instead."""
    if sign in REFUSED_SIGNS:
        return REFUSED_SIGNS[sign]
    title = unicodedata.name(sign, "")
    if title.startswith("GREEK") and " LETTER " in title:
        spelled = title.split(" LETTER ")[1].split()[0].lower().replace("lamda", "lam")
        return f"names are written in ASCII letters: write {spelled} for {sign}"
    shown = sign if sign.isprintable() and sign.isascii() else title or f"U+{ord(sign):04X}"
    return f"{shown} has no place in an expression: names are ASCII letters, the operators + - * / and **"
