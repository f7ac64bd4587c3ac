"""Values to any number of digits: the truth that everything derived is checked against."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from statistics import NormalDist
from typing import Any

import mpmath
import sympy
from sympy.printing.pycode import MpmathPrinter

from . import deadline

DIGITS = 50
FILE = "<fysym truth>"  # of the functions that are made here
_NORMAL = NormalDist()


class _State:
    """An mpmath context of our own (the global one is shared between threads) and the functions made for it."""

    def __init__(self) -> None:
        self.context = mpmath.mp.clone()
        self.context.dps = 2 * DIGITS
        self.namespace = _namespace(self.context)
        self.functions: dict[Any, Callable[..., Any]] = {}
        self.abandoned = False  # a step that was left behind may still be using it


# A step of the compiler inherits the state of its caller, which waits for it; see deadline.run.
_current: ContextVar[_State | None] = ContextVar("fysym_truth", default=None)


def _state() -> _State:
    state = _current.get()
    if state is None or state.abandoned:
        state = _State()
        _current.set(state)
    return state


@deadline.on_timeout
def _forget() -> None:
    """A step that was left behind may still be using the state that it inherited, as did the steps around it."""
    state = _current.get()
    if state is not None:
        state.abandoned = True


def context() -> Any:
    """The mpmath context in use."""
    return _state().context


MOST_BITS = 20000  # of a power of numbers that is written out
MOST_MAGNITUDE = 4096  # bits before the point of an argument that is worked with
GROWING = ("exp", "sinh", "cosh")


def substituted(expr: sympy.Expr, values: Mapping[Any, sympy.Expr]) -> sympy.Expr:
    """expr with numbers for symbols. A power of numbers with very many digits becomes a decimal fraction: SymPy would
    write out 2**(10**15), which no deadline can interrupt.
    """
    if expr in values:
        return values[expr]
    if not expr.args or not expr.free_symbols & values.keys():
        return expr
    args = [substituted(arg, values) for arg in expr.args]
    if isinstance(expr, sympy.Pow) and all(arg.is_number for arg in args):
        base, exponent = args
        parts = [part for atom in (*base.atoms(sympy.Rational), exponent) for part in atom.as_numer_denom()]
        bits = max((int(abs(part)).bit_length() for part in parts[:-2] if part.is_Integer), default=1)
        if any(part.is_Integer and int(abs(part)) * bits > MOST_BITS for part in parts[-2:]):
            return base ** sympy.Float(exponent, DIGITS)
    return expr.func(*args)


def evaluate(expr: sympy.Expr, values: dict[sympy.Symbol, Any], digits: int = DIGITS) -> Any:
    """The value of `expr` as an mpmath number; nan where it is undefined or not real."""
    state = _state()
    ctx = state.context
    names = tuple(sorted(values, key=lambda symbol: symbol.name))
    function = _made(expr, names)
    with ctx.workdps(digits):
        try:
            arguments = [to_mpf(values[name]) for name in names]
            value = function(*arguments)
            return _real(ctx, value, digits)
        except (ValueError, ZeroDivisionError, OverflowError, TypeError, ArithmeticError, NotImplementedError):
            return ctx.nan


def undefined_part(expr: sympy.Expr, values: dict[sympy.Symbol, Any]) -> tuple[sympy.Expr, bool]:
    """The first part of `expr` without a value here, though its own parts have one; and whether that is only because
    it has too many digits.
    """

    def is_undefined(node: sympy.Expr) -> bool:
        value = evaluate(node, {s: value for s, value in values.items() if node.has(s)})
        return bool(value != value)

    parts = (node for node in sympy.postorder_traversal(expr) if isinstance(node, sympy.Expr))
    part = next((node for node in parts if is_undefined(node)), expr)
    entire = (sympy.exp, sympy.sinh, sympy.cosh, sympy.sin, sympy.cos)
    return part, isinstance(part, entire) or (part.is_Pow and part.base.is_positive is True)


def evaluate_reliably(expr: sympy.Expr, values: dict[sympy.Symbol, Any], digits: int = DIGITS) -> Any:
    """The value of `expr` to about half of `digits`: precision is raised until two of them agree.

    That two precisions agree on 0, on an infinity or on nan proves nothing: sqrt(1 + t) - 1 is 0, and
    log(1 - (1 - t)) infinite, to any number of digits that a tiny t is too small for. Those are
    believed only from the highest precision. For the same reason the first precision is high enough to tell
    1 + t^2 from 1, and the same for 1 - t.
    """
    ctx = context()
    close = ctx.mpf(10) ** (-digits // 2)
    digits += 2 * max(map(_smallness, values.values()), default=0)
    value = evaluate(expr, values, digits)
    for _ in range(4):
        finer = evaluate(expr, values, 2 * digits)
        if ctx.isfinite(finer) and finer != 0 and abs(value - finer) <= close * abs(finer):
            return finer
        value, digits = finer, 2 * digits
    if ctx.isfinite(value):
        return ctx.zero if abs(value) < ctx.mpf(10) ** (-digits // 2) else ctx.nan
    return value


def _smallness(value: Any) -> int:
    """How many decimal places there are before the first digit of `value`, or of its distance to 1."""
    exact = sympy.Rational(value) if isinstance(value, float) and abs(value) < 1e300 else value
    if not isinstance(exact, sympy.Rational):
        return 0
    return max(0, *(len(str(abs(x.q))) - len(str(abs(x.p))) for x in (exact, 1 - exact) if x != 0))


def series(expr: sympy.Expr, x: sympy.Symbol, root: int, radius: float, terms: int) -> list[sympy.Expr]:
    """Coefficients of a power series of `expr` in y = x^(1/root) at 0, from its values on a circle.

    They are right when the function is analytic there, which only a comparison with the truth can tell; those
    that vanish up to rounding and aliasing are exactly 0. ValueError where they do not decay.
    """
    ctx = context()
    count = 128
    y = sympy.Symbol("y", positive=True)  # so that sqrt(y^2) is y, also off the real line
    function = _made(expr.xreplace({x: y**root}), (y,))
    with ctx.workdps(DIGITS):
        circle = (ctx.mpf(radius) * ctx.expjpi(ctx.mpf(2 * k) / count) for k in range(count // 2 + 1))
        values = [ctx.mpc(function(point)) for point in circle]  # many functions fail at the first that is not real
        values += [value.conjugate() for value in reversed(values[1:-1])]  # real on the real line
        phases = [ctx.expjpi(ctx.mpf(-2 * k) / count) for k in range(count)]
        scale = max(map(abs, values))
        found = []
        for order in range(terms):
            total = sum(value * phases[order * k % count] for k, value in enumerate(values)).real / count
            vanishes = abs(total) <= scale * ctx.mpf(10) ** (-DIGITS // 2)
            found.append(sympy.S.Zero if vanishes else sympy.Float(str(total / ctx.mpf(radius) ** order), DIGITS // 2))
        if not any(found) or abs(total) > scale * ctx.mpf(10) ** -5:
            raise ValueError("not analytic near 0")
    return found


def to_mpf(value: Any) -> Any:
    """An exact number (SymPy, int, float, mpf) as this thread's mpf at the working precision."""
    ctx = context()
    if isinstance(value, sympy.Rational):
        return ctx.mpf(value.p) / value.q
    if isinstance(value, sympy.Expr):
        return ctx.mpf(sympy.N(value, ctx.dps + 5)._to_mpmath(ctx.prec + 20))
    return ctx.mpf(value)


def _real(ctx: Any, value: Any, digits: int) -> Any:
    if isinstance(value, ctx.mpc):
        if abs(value.imag) > abs(value.real) * ctx.mpf(10) ** (-digits // 2):
            return ctx.nan
        value = value.real
    return ctx.mpf(value)


class _Printer(MpmathPrinter):  # type: ignore[misc]
    """mpmath code without module prefixes, in which a part that occurs twice is a step of its own."""

    def __init__(self, expr: sympy.Expr) -> None:
        super().__init__({"fully_qualified_modules": False, "inline": True, "allow_unknown_functions": True})
        self.repeated = _repeated(expr)
        self.names: dict[sympy.Expr, str] = {}
        self.steps: list[str] = []

    def _print(self, node: Any, **settings: Any) -> str:
        if node in self.names:
            return self.names[node]
        text = super()._print(node, **settings)
        if node not in self.repeated:
            return text  # type: ignore[no-any-return]
        self.names[node] = f"y{len(self.steps)}"
        self.steps.append(f"{self.names[node]} = {text}")
        return self.names[node]

    def _print_erfcinv(self, node: sympy.Expr) -> str:
        return f"erfcinv({self._print(node.args[0])})"

    def _print_Pow(self, node: sympy.Pow, rational: bool = False) -> str:
        if node.exp.is_number:
            return super()._print_Pow(node, rational=rational)  # type: ignore[no-any-return]
        return f"power({self._print(node.base)}, {self._print(node.exp)})"

    def _print_Exp1(self, node: sympy.Expr) -> str:
        return "exp(mpf(1))"

    def _print_ComplexRootOf(self, node: Any) -> str:
        return f"root_of({[int(c) for c in node.poly.all_coeffs()]}, {int(node.index)})"


def _repeated(expr: sympy.Expr) -> set[sympy.Expr]:
    """The parts that occur more than once, without symbols and numbers."""
    seen, found, rest = set(), set(), [expr]
    while rest:
        node = rest.pop()
        if node not in seen:
            seen.add(node)
            rest.extend(node.args)
        elif node.args and isinstance(node, sympy.Expr):
            found.add(node)
    return found


def _made(expr: sympy.Expr, names: tuple[sympy.Symbol, ...]) -> Callable[..., Any]:
    """The function of an expression, which is made once."""
    known, key = _state().functions, (expr, names)
    if key not in known:
        if len(known) > 256:
            known.clear()
        known[key] = _function(expr, names)
    return known[key]


def _function(expr: sympy.Expr, names: tuple[sympy.Symbol, ...]) -> Callable[..., Any]:
    """The expression as a function of mpmath numbers: what sympy.lambdify makes, in a fraction of the time."""
    plain = [sympy.Symbol(f"x{i}") for i in range(len(names))]
    body = expr.xreplace(dict(zip(names, plain, strict=True)))
    printer = _Printer(body)
    last = f"return {printer.doprint(body)}"
    text = f"def function({', '.join(map(str, plain))}):\n    " + "\n    ".join((*printer.steps, last))
    made: dict[str, Any] = {}
    exec(compile(text, FILE, "exec"), _state().namespace, made)  # numbers, names of ours and known functions only
    return made["function"]  # type: ignore[no-any-return]


def _namespace(ctx: Any) -> dict[str, Any]:
    names = {name: getattr(ctx, name) for name in dir(ctx) if not name.startswith("_")}
    names.update(mpf=ctx.mpf, Abs=abs, abs=abs, re=ctx.re, LambertW=ctx.lambertw, lambertw=ctx.lambertw)

    def erfcinv(x: Any) -> Any:
        """Newton's method on log erfc, which keeps relative accuracy for tiny x."""
        if x >= 1:
            return -erfcinv(2 - x) if x > 1 else ctx.zero
        if x <= 0:
            return ctx.inf if x == 0 else ctx.nan
        digits, y = known.get(x._mpf_, (0, None))
        if y is None:
            half = float(x) / 2
            y = ctx.mpf(-_NORMAL.inv_cdf(half)) / ctx.sqrt(2) if half >= 2.0**-1022 else ctx.sqrt(-ctx.log(x))
            settled = False
            while not settled:
                y, settled = improved(x, y, 15)
            digits = 15
        plan = [ctx.dps + 10] if digits < ctx.dps + 10 else []
        while plan and plan[-1] > 2 * digits:
            plan.append((plan[-1] + 1) // 2)
        for digits in reversed(plan):
            y, _ = improved(x, y, digits)
        if len(known) > 4096:
            known.clear()
        known[x._mpf_] = digits, y
        with ctx.workdps(ctx.dps + 10):
            return +y

    @functools.lru_cache(maxsize=64)
    def root(coefficients: tuple[int, ...], index: int, digits: int) -> Any:
        x = sympy.Dummy("x")
        return ctx.mpf(str(sympy.CRootOf(sympy.Poly(coefficients, x), index).evalf(digits)))

    def root_of(coefficients: list[int], index: int) -> Any:
        """A root of a polynomial, numbered as SymPy does."""
        return root(tuple(coefficients), index, ctx.dps + 10)

    def improved(x: Any, y: Any, digits: int) -> tuple[Any, bool]:
        """One step of Newton's method, which doubles the digits of y that are right, and whether it was a small one."""
        with ctx.workdps(digits + 10):
            tail = ctx.erfc(y)
            step = (ctx.log(tail) - ctx.log(x)) * tail / (2 * ctx.exp(-y * y) / ctx.sqrt(ctx.pi))
            return y + step, abs(step) <= max(abs(y) * 1e-8, ctx.mpf(10) ** -digits)

    def limited(name: str) -> Callable[[Any], Any]:
        """The function, infinite far away where it grows: mpmath would write out all bits of x before the point."""
        function = getattr(ctx, name)

        def value(x: Any) -> Any:
            if not ctx.isfinite(x) or ctx.mag(x) <= MOST_MAGNITUDE:
                return function(x)
            if not isinstance(x, ctx.mpf) or name not in GROWING or (x < 0 and name != "cosh"):
                raise OverflowError("too small, or of a phase that takes too many digits")
            return ctx.inf

        return value

    def power(x: Any, y: Any) -> Any:
        if ctx.isfinite(y) and ctx.mag(y) > MOST_MAGNITUDE and x > 0:
            return names["exp"](y * ctx.log(x))
        return x**y

    known: dict[Any, Any] = {}

    names.update({name: limited(name) for name in (*GROWING, "sin", "cos", "tan")})
    names.update(erfcinv=erfcinv, root_of=root_of, power=power)
    names["erfinv"] = lambda x: erfcinv(1 - x) if x > 0 else -erfcinv(1 + x)
    names["polygamma"] = names["psi"]
    return names


@functools.lru_cache(maxsize=1024)
def sign(expr: sympy.Expr) -> int | None:
    """The sign of a number without symbols: -1, 0, 1, or None when 0 cannot be told from tiny."""
    if expr.is_positive:
        return 1
    if expr.is_negative:
        return -1
    if expr.is_zero:
        return 0
    if expr.free_symbols or not expr.is_number or expr is sympy.nan or expr is sympy.zoo:
        return None
    value = evaluate(expr, {}, DIGITS)
    finer = evaluate(expr, {}, 2 * DIGITS)
    if value == value and abs(value) > 1e-30 and abs(value - finer) < abs(value) / 2:
        return 1 if value > 0 else -1
    return 0 if deadline.simplified(expr) == 0 else None
