"""An expression becomes an `Entropy`: canonical symbols, exact numbers, ranges, h(0) = h(1) = 0."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import sympy
from sympy import S

from . import exceptional, kinks, truth
from .boundary import Limit, Point, end_limit
from .deadline import Deadline, StepTimeout, cancelled, factored, simplified
from .domains import SIMPLEX, Domain
from .errors import NotConcaveError, ParameterError, UndecidedError, UnsupportedError
from .exceptional import NONE, Exceptional
from .parse import parse_expression, power_problem, shown
from .ranges import Range, exact_expression, exact_number, parse_range
from .rewrite import shortest

VARIABLE = sympy.Symbol("t", positive=True)
REAL_VARIABLE = sympy.Symbol("t", real=True)  # of an h on all real numbers
SLOPE = sympy.Dummy("s", real=True)
# Where the open coordinate b > 0 of a parameter is sampled: no round numbers, where families degenerate.
SAMPLES = tuple(map(sympy.Rational, ("89/97", "31/101", "307/103", "5/103", "1213/101", "1/1009", "10007/101")))
# Where h must be a real number, at the least.
INSIDE = tuple(map(sympy.Rational, ("1/2", "1/20", "19/20", "1/5", "4/5")))
NOT_FAR = (*INSIDE, *(abs(end - sympy.Rational(1, 10**k)) for k in (3, 5) for end in (0, 1)))
INSIDE += tuple(abs(end - sympy.Rational(1, 10**k)) for k in (3, 5, 9, 15, 40) for end in (0, 1))
MOST_OPERATIONS = 2000

_FUNCTIONS = (
    sympy.exp, sympy.log, sympy.sin, sympy.cos, sympy.tan, sympy.sec, sympy.csc, sympy.cot, sympy.asin, sympy.acos,
    sympy.atan, sympy.sinh, sympy.cosh, sympy.tanh, sympy.asinh, sympy.acosh, sympy.atanh, sympy.erf, sympy.erfc,
    sympy.erfinv, sympy.erfcinv, sympy.LambertW, sympy.gamma, sympy.loggamma, sympy.polygamma,
)  # fmt: skip


@dataclass(frozen=True)
class Parameter:
    """A named parameter: the user's symbol, its range, and the positive coordinate used in proofs."""

    name: str
    user: sympy.Symbol
    symbol: sympy.Symbol
    range: Range
    coordinate: sympy.Symbol

    @property
    def opened(self) -> sympy.Expr:
        """The parameter as a function of its coordinate b > 0, which runs over the open range."""
        low, high, b = self.range.low, self.range.high, self.coordinate
        if low.is_finite and high.is_finite:
            return (low + high * b) / (1 + b)
        if low.is_finite:
            return low + b
        return high - b if high.is_finite else b - 1 / b

    def spread(self, t: sympy.Symbol) -> sympy.Expr:
        """The parameter as a function of a variable in (0, 1), of which the prover knows most."""
        return cancelled(self.opened.xreplace({self.coordinate: t / (1 - t)}))

    @property
    def closed(self) -> sympy.Expr:
        """The coordinate b as a function of the parameter."""
        low, high, a = self.range.low, self.range.high, self.symbol
        if low.is_finite and high.is_finite:
            return (a - low) / (high - a)
        if low.is_finite:
            return a - low
        return high - a if high.is_finite else (a + sympy.sqrt(a**2 + 4)) / 2


@dataclass(frozen=True)
class Entropy:
    """A normalised entropy h(t) on the interval of its domain in canonical symbols, with its parameters.

    `given` is the expression before normalisation; `affine` is what was subtracted from it, 0 where the domain has
    no total; `ends` are the limits of `given` at both ends. `exceptional` are members of a family that the formulas do
    not speak for. `x` is the coordinate 0 < x < 1 of a piece;
    it is t itself where that is all of (0, 1).
    """

    t: sympy.Symbol
    h: sympy.Expr
    given: sympy.Expr
    affine: sympy.Expr
    ends: tuple[Limit, Limit]
    parameters: tuple[Parameter, ...]
    user_variable: sympy.Symbol
    pieces: tuple[kinks.Piece, ...]
    domain: Domain = SIMPLEX
    exceptional: Exceptional = NONE
    _faces: dict[Any, Entropy] = field(default_factory=dict, compare=False, repr=False)

    @property
    def x(self) -> sympy.Symbol:
        return VARIABLE

    @property
    def ends_of_t(self) -> tuple[sympy.Expr, sympy.Expr]:
        """Both ends of the interval of t."""
        return self.pieces[0].low, self.pieces[-1].high

    def opened(self, expr: sympy.Expr) -> sympy.Expr:
        """`expr` with every parameter replaced by its positive coordinate."""
        return expr.xreplace({p.symbol: p.opened for p in self.parameters})

    def closed(self, expr: sympy.Expr) -> sympy.Expr:
        """The inverse of `opened`, simplified."""
        if not expr.has(*(p.coordinate for p in self.parameters)):
            return expr
        closed = sympy.powsimp(self.back(expr))
        inside = closed.replace(lambda x: x.is_Pow and x.exp.is_Add, lambda x: x.base ** factored(x.exp))
        return shortest(inside)

    def back(self, expr: sympy.Expr) -> sympy.Expr:
        """`expr` with parameters for their coordinates, each part that is rational in them as a plain fraction."""
        symbols = [p.symbol for p in self.parameters]
        if not symbols:
            return expr
        closed = expr.xreplace({p.coordinate: p.closed for p in self.parameters})
        return _rational_parts(sympy.powsimp(_rational_parts(closed, symbols)), symbols)

    def user(self, expr: sympy.Expr) -> sympy.Expr:
        """`expr` in the symbols that the user wrote."""
        slope = "s" if all(p.name != "s" for p in self.parameters) else "slope"
        names = {p.symbol: p.user for p in self.parameters} | {self.t: self.user_variable, SLOPE: sympy.Symbol(slope)}
        return expr.xreplace(names)

    def whole(self, of_piece: Callable[[sympy.Expr], sympy.Expr]) -> sympy.Expr:
        """A function of h on the whole interval, put together from its smooth pieces."""
        branches: list[tuple[sympy.Expr, sympy.Expr]] = []
        for piece in self.pieces:
            expr = of_piece(piece.expr)
            if piece.high.is_nonpositive:  # (-t)**(3/2)/t**2 is (-t)**(-1/2) there
                size = sympy.Dummy(positive=True)
                expr = sympy.powsimp(expr.subs(self.t, -size)).subs(size, -self.t)
            if branches and branches[-1][0] == expr:  # else Piecewise itself would join their conditions by Or
                branches.pop()
            branches.append((expr, piece.high))
        *first, (last, _) = branches
        return sympy.Piecewise(*((expr, self.t < high) for expr, high in first), (last, True)) if first else last

    def point_steps(self) -> Iterator[tuple[sympy.Expr, sympy.Expr | None]]:
        """Where h switches and might have a value of its own, by how much that differs from its pieces', if known.

        Where the formula has no value the limit is meant.
        """
        if not self.given.has(sympy.Piecewise, sympy.sign, sympy.Heaviside):  # others are continuous
            return
        inside = [(piece, at) for piece in self.pieces for at in piece.joints]
        for piece, at in (*inside, *((piece, piece.high) for piece in self.pieces[:-1])):
            try:
                value = self.given.subs(self.t, at)
            except (TypeError, ValueError):  # SymPy cannot compare such numbers
                yield at, None
                continue
            if not value.has(sympy.nan, sympy.zoo, sympy.oo):
                yield at, self.opened(value - (piece.expr + self.affine).subs(self.t, at))

    @property
    def points(self) -> list[Point]:
        """Coordinates of parameter values spread over the range; one empty point without parameters."""
        return list(sample_points([p.coordinate for p in self.parameters]))

    def extremes(self, digits: Sequence[int] = (2, 3, 4, 6, 9, 15, 25, 40)) -> Iterator[Point]:
        """Coordinates close to the ends of each parameter's range, the others in the middle of theirs."""
        middle = self.points[0]
        for p, k in itertools.product(self.parameters, digits):
            for far in (sympy.Rational(89, 97) * 10**k, sympy.Rational(97, 89) / 10**k):
                yield middle | {p.coordinate: far}

    def at(self, point: Point) -> dict[str, sympy.Expr]:
        """The parameter values, by name, that a point of coordinates stands for."""
        return {p.name: sympy.radsimp(p.opened.xreplace(point)) for p in self.parameters}

    def faces(self) -> Iterator[dict[str, sympy.Expr]]:
        """Each closed finite end of a parameter's range, and each exceptional member inside, as a value to bind."""
        for p in self.parameters:
            yield from ({p.name: value} for symbol, value in self.exceptional.members if symbol == p.symbol)
            for end, is_open in ((p.range.low, p.range.low_open), (p.range.high, p.range.high_open)):
                if not is_open:
                    yield {p.name: end}

    def at_face(self, face: dict[str, sympy.Expr], deadline: Deadline) -> Entropy:
        """The member at a face, which is worked out once."""
        key = tuple(face.items())
        if key not in self._faces:
            self._faces[key] = bind(self, face, deadline)
        return self._faces[key]


MOST_POWER = 64  # of what is multiplied out


def _rational_parts(expr: sympy.Expr, symbols: list[sympy.Symbol]) -> sympy.Expr:
    """Each part that is rational in the symbols as a fraction without common factors."""
    if not expr.args or not expr.has(*symbols):
        return expr
    if any(power.exp.is_Integer and abs(power.exp) > MOST_POWER for power in expr.atoms(sympy.Pow)):
        return expr
    if expr.is_rational_function(*symbols):
        return factored(cancelled(expr))
    return expr.func(*(_rational_parts(part, symbols) for part in expr.args))


def variable_of(domain: Domain) -> sympy.Symbol:
    """The canonical t of a domain."""
    return VARIABLE if domain.low == 0 else REAL_VARIABLE


def sample_points(symbols: list[sympy.Symbol], most: int = 49) -> Iterator[Point]:
    """Combinations of SAMPLES for the symbols, the plainest first."""
    grids = itertools.product(SAMPLES, repeat=len(symbols))
    ordered = sorted(grids, key=lambda values: sum(SAMPLES.index(v) for v in values)) if len(symbols) < 5 else grids
    for values in itertools.islice(ordered, most):  # no two alike, where families degenerate, too
        yield {
            b: value * sympy.Rational(113 + k, 113) for k, (b, value) in enumerate(zip(symbols, values, strict=True))
        }


def read(h: Any, params: Mapping[str, Any] | None, deadline: Deadline, domain: Domain = SIMPLEX) -> Entropy:
    """Text or a SymPy expression, and ranges, to a normalised `Entropy`."""
    if not isinstance(params, Mapping | None):
        raise ParameterError(f'params must be a dictionary, such as {{"alpha": "alpha > 1"}}, not {shown(params)}')
    expr = parse_expression(h) if isinstance(h, str) else _expression(h)
    variable, symbols = _symbols(expr, dict(params or {}))
    parameters = tuple(_parameter(symbol, (params or {}).get(symbol.name)) for symbol in symbols)
    t = variable_of(domain)
    rename = {p.user: p.symbol for p in parameters} | ({variable: t} if variable else {})
    try:
        given = deadline.run(lambda: exact_expression(expr).xreplace(rename).doit(), share=0.2)
    except StepTimeout:
        raise UndecidedError("the expression could not be read within the deadline; simplify it") from None
    _check_supported(given)
    return normalise(given, parameters, variable or sympy.Symbol("t"), deadline, domain)


def bind(entropy: Entropy, values: Mapping[str, Any], deadline: Deadline) -> Entropy:
    """The member of a family at these parameter values; a removable singularity becomes its limit."""
    known = {p.name: p for p in entropy.parameters}
    exact = {known[name]: exact_number(raw) for name, raw in values.items()}
    for parameter, value in exact.items():
        if value not in parameter.range:
            name = parameter.name
            raise ParameterError(f"{name} = {value} is outside its range: {parameter.range.describe(name)}")
    try:
        given = _bound(entropy.given, exact, deadline)
    except UndecidedError:  # -cosh(c*t)/c**2 has a limit at c = 0 but for what is affine
        if entropy.affine == 0:
            raise
        given = _bound(entropy.h, exact, deadline)
    rest = tuple(p for p in entropy.parameters if p.name not in values)
    return normalise(given, rest, entropy.user_variable, deadline, entropy.domain)


def normalise(
    given: sympy.Expr,
    parameters: tuple[Parameter, ...],
    user_variable: sympy.Symbol,
    deadline: Deadline,
    domain: Domain = SIMPLEX,
) -> Entropy:
    """Subtract the affine term that makes h(0) = h(1) = 0, as far as those limits are finite.

    Only where the total is fixed, so that it does not matter.
    """
    t = variable_of(domain)
    interval = tuple(map(sympy.sympify, domain.ends))
    try:
        pieces = deadline.run(kinks.split, given, t, *interval, share=0.2)
    except StepTimeout:
        raise UndecidedError("the kinks of h could not be found within the deadline") from None
    entropy = Entropy(t, given, given, S.Zero, (_unknown, _unknown), parameters, user_variable, pieces, domain)
    if parameters:
        ranges = {p.symbol: p.range for p in parameters}
        found = exceptional.find(given, t, interval, ranges, entropy.opened, deadline)
        entropy = replace(entropy, exceptional=found)
    _check_real(entropy)
    ends = []
    for end, piece in zip(interval, (pieces[0], pieces[-1]), strict=True):
        if end.is_infinite:
            ends.append(Limit(-S.Infinity, "proved", "as every concave function with slopes of both signs does"))
            continue
        limit = end_limit(entropy.opened(piece.expr), t, end, deadline, entropy.points[:3])
        if limit.value is None:
            raise UndecidedError(_undetermined(f"the value of h at {end}", parameters), (0.0, 1.0))
        if limit.value == S.Infinity:
            raise NotConcaveError(
                f"h is not strictly concave on {domain.interval}: it tends to +oo as t -> {end}. Try: its negative.",
                _convex_point(entropy, end),
                entropy.at(entropy.points[0]),
            )
        ends.append(limit)
    low, high = (entropy.closed(limit.value) for limit in ends if limit.value is not None)
    if domain.total is None:
        affine = S.Zero
    elif low.is_infinite or high.is_infinite:
        affine = high if low.is_infinite and high.is_finite else (low if low.is_finite else S.Zero)
    else:
        affine = low * (1 - t) + high * t
    pieces = tuple(replace(piece, expr=_subtract(piece.expr, affine)) for piece in pieces)
    h = pieces[0].expr if len(pieces) == 1 else _subtract(given, affine)
    return replace(entropy, h=h, affine=affine, ends=(ends[0], ends[1]), pieces=pieces)


_unknown = Limit(None, "sampled", "")


def _check_real(entropy: Entropy) -> None:
    """h must be a real number at points all over its interval."""
    for piece in entropy.pieces:
        expr = entropy.opened(piece.expr)
        for point in entropy.points[:3]:
            for where in INSIDE if (piece.high - piece.low).is_finite else NOT_FAR:
                at = piece.point(where)
                value = truth.evaluate(expr, {entropy.t: at, **point})
                if value != value:
                    whole = entropy.domain.interval
                    values = {p.symbol: p.opened.xreplace(point) for p in entropy.parameters}
                    part, is_far = truth.undefined_part(piece.expr, {entropy.t: at, **values})
                    if is_far:
                        raise UndecidedError(
                            f"h({at}) has a part with too many digits: {entropy.user(part)}", (0.0, 1.0)
                        )
                    why = "" if part == piece.expr else f", as {entropy.user(part)} is none"
                    raise NotConcaveError(
                        f"h is not strictly concave on {whole}: h({at}) is not a real number{why}. "
                        f"Try: an h that is real on all of {whole}.",
                        at,
                        entropy.at(point),
                    )


def _convex_point(entropy: Entropy, end: sympy.Expr) -> sympy.Expr:
    """A point near an end where h'' > 0, which exists when h tends to +oo there."""
    second = entropy.opened(entropy.whole(lambda h: sympy.diff(h, entropy.t, 2)))
    at = S.Half
    for k in (*range(1, 40), *(2**j for j in range(6, 13))):
        near = sympy.Rational(1, 2**k)
        at = near if end == 0 else 1 - near
        if truth.evaluate(second, {entropy.t: at, **entropy.points[0]}, digits=truth.DIGITS + k) > 0:
            break
    return at


def _subtract(expr: sympy.Expr, affine: sympy.Expr) -> sympy.Expr:
    return expr if affine == 0 else expr - sympy.expand(affine)


def _undetermined(what: str, parameters: tuple[Parameter, ...]) -> str:
    if parameters:
        ranges = ", ".join(p.range.describe(p.name) for p in parameters)
        return f"{what} is undetermined for {ranges}; declare a narrower range in params, or bind a value"
    return f"{what} could not be determined within the deadline; simplify h or raise the deadline"


def _expression(h: Any) -> sympy.Expr:
    if isinstance(h, sympy.Expr):
        return h
    if isinstance(h, (int, float)) and not isinstance(h, bool):
        return exact_number(h)
    raise UnsupportedError(f"h must be a SymPy expression or a text, not {type(h).__name__}")


def _symbols(expr: sympy.Expr, params: dict[str, Any]) -> tuple[sympy.Symbol | None, list[sympy.Symbol]]:
    """The variable (None when there is none) and the parameters, in the order of their names."""
    symbols = sorted(expr.free_symbols, key=lambda symbol: symbol.name)
    names = [symbol.name for symbol in symbols]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise UnsupportedError(f"two different symbols are both called {twice}; use one of them throughout")
    for name in params:
        if name not in names:
            have = ", ".join(names) or "none"
            raise ParameterError(f"params names {name!r}, which does not occur in h; its symbols are: {have}")
    if "t" in params:
        raise ParameterError("t is the variable of h and runs over its domain; remove it from params")
    undeclared = [symbol for symbol in symbols if symbol.name not in params]
    called_t = [symbol for symbol in symbols if symbol.name == "t"]
    if len(called_t or undeclared) > 1:
        raise ParameterError(
            f"h has the symbols {', '.join(names)} and none is called t; call the variable t, "
            "or give the range of every other symbol in params"
        )
    variable = next(iter(called_t or undeclared), None)
    return variable, [symbol for symbol in symbols if symbol != variable]


# Names that are likelier to be meant as something else than a parameter.
MISTAKEN = {
    "e": "write E or exp(t) for Euler's number", "I": "h must be real", "i": "h must be real", "j": "h must be real",
    "nan": "h must be a number everywhere", "inf": "h must be finite inside its interval",
}  # fmt: skip


def _parameter(symbol: sympy.Symbol, given: Any) -> Parameter:
    span = Range(-S.Infinity, S.Infinity, True, True)
    for holds, assumed in (
        (symbol.is_positive, Range(S.Zero, S.Infinity, True, True)),
        (symbol.is_nonnegative, Range(S.Zero, S.Infinity, False, True)),
        (symbol.is_negative, Range(-S.Infinity, S.Zero, True, True)),
        (symbol.is_nonpositive, Range(-S.Infinity, S.Zero, True, False)),
    ):
        if holds:
            span = span.intersect(assumed)
    if given is not None:
        span = span.intersect(parse_range(symbol.name, given))
    elif symbol.name in MISTAKEN and span.low.is_infinite and span.high.is_infinite:
        raise ParameterError(
            f"{symbol.name} is read as a parameter: {MISTAKEN[symbol.name]}, or give its range in params if it is one"
        )
    if span.is_empty:
        raise ParameterError(f"the range given for {symbol.name} contradicts the assumptions on its symbol")
    positive = span.low.is_nonnegative and (span.low_open or span.low.is_positive)
    inner = sympy.Symbol(symbol.name, positive=True) if positive else sympy.Symbol(symbol.name, real=True)
    return Parameter(symbol.name, symbol, inner, span, sympy.Symbol(f"b_{symbol.name}", positive=True))


def _check_supported(expr: sympy.Expr) -> None:
    if expr.count_ops() > MOST_OPERATIONS:
        raise UnsupportedError(f"h has more than {MOST_OPERATIONS} operations; use a simpler expression")
    if expr.has(sympy.nan, sympy.zoo, sympy.oo, -sympy.oo, sympy.I):
        raise UnsupportedError(f"h = {_short(expr)} is not a finite real expression")
    known = (sympy.Add, sympy.Mul, sympy.Pow, sympy.Symbol, sympy.NumberSymbol, sympy.Rational, *kinks.SWITCHING)
    for node in sympy.postorder_traversal(expr):
        if isinstance(node, (sympy.logic.boolalg.Boolean, sympy.functions.elementary.piecewise.ExprCondPair)):
            continue
        if not isinstance(node, known) and not isinstance(node, _FUNCTIONS):
            names = ", ".join(sorted(f.__name__ for f in _FUNCTIONS))
            raise UnsupportedError(
                f"{_short(node)} ({type(node).__name__}) is not something that fysym compiles; it knows arithmetic, "
                f"Abs, Min, Max, sign, Piecewise and {names}"
            )
        if node.is_Rational and (int(abs(node.p)).bit_length() > 4096 or int(node.q).bit_length() > 4096):
            raise UnsupportedError("h contains a number of more than 4096 bits")
        if isinstance(node, (sympy.Pow, sympy.exp)) and (problem := power_problem(*node.as_base_exp())):
            raise UnsupportedError(f"{_short(node)}: {problem}")


def _short(expr: sympy.Basic) -> str:
    text = str(expr)
    return text if len(text) <= 60 else text[:57] + "..."


def _bound(given: sympy.Expr, values: dict[Parameter, sympy.Expr], deadline: Deadline) -> sympy.Expr:
    for parameter, value in values.items():
        given = substitute(given, parameter, value, deadline)
    return given


def substitute(given: sympy.Expr, parameter: Parameter, value: sympy.Expr, deadline: Deadline) -> sympy.Expr:
    """`given` at parameter = value, or the limit there when plain substitution makes no sense."""
    _check_powers(given, parameter, value)
    try:
        plain = deadline.run(lambda: given.subs(parameter.symbol, value), share=0.2)
        if not plain.has(sympy.nan, sympy.zoo, sympy.oo, -sympy.oo):
            return plain
        side = 1 if value + sympy.Rational(1, 10**6) in parameter.range else -1
        step = sympy.Dummy("e", positive=True)
        moved = given.subs(parameter.symbol, value + side * step)
        limit = None
        with contextlib.suppress(Exception):  # also StepTimeout: then SymPy's limit is asked
            limit = deadline.run(_removed, given, parameter.symbol, value, share=0.1)
        if limit is None:
            limit = deadline.run(lambda: sympy.limit(moved, step, 0, "+"), share=0.5)
        if limit.has(sympy.Add):  # else there is nothing to simplify
            limit = deadline.run(simplified, limit, share=0.2)
    except StepTimeout:
        raise UndecidedError(f"h at {parameter.name} = {value} could not be worked out within the deadline") from None
    except Exception as error:
        raise UndecidedError(f"h has no limit that can be found at {parameter.name} = {value}") from error
    if limit.has(sympy.nan, sympy.zoo, sympy.oo, -sympy.oo, step, sympy.Limit) or not _continues(moved, step, limit):
        raise UndecidedError(
            f"h has no finite limit at {parameter.name} = {value}; choose a range of {parameter.name} without it"
        )
    return limit


def _removed(given: sympy.Expr, symbol: sympy.Symbol, value: sympy.Expr) -> sympy.Expr | None:
    """The limit of a fraction whose parts both vanish there, by the rule of l'Hopital; None where that is no help."""
    parts = sympy.fraction(sympy.together(given))
    if any(part.subs(symbol, value) != 0 for part in parts):
        return None
    above, below = (sympy.diff(part, symbol).subs(symbol, value) for part in parts)
    return above / below if below.is_nonzero and below.is_finite else None


def _check_powers(given: sympy.Expr, parameter: Parameter, value: sympy.Expr) -> None:
    """Refuse numbers to powers such as 40**(1/10**9): SymPy would work on an integer of that many digits."""
    for power in given.atoms(sympy.Pow):
        exponent = power.exp.subs(parameter.symbol, value) if power.exp.has(parameter.symbol) else power.exp
        number = power.base.as_coeff_Mul()[0] if power.base.has(VARIABLE, REAL_VARIABLE) else power.base
        if exponent.is_Rational and (exponent.q > 1000 or abs(exponent.p) > 10**4) and number != 1:
            raise UnsupportedError(
                f"at {parameter.name} = {value}, h contains a number to the power {exponent}, which cannot be computed "
                "exactly; use a value with fewer digits"
            )


def _continues(moved: sympy.Expr, step: sympy.Symbol, limit: sympy.Expr) -> bool:
    """Values of the family close to the singular parameter agree with the claimed limit."""
    symbols = sorted(limit.free_symbols | moved.free_symbols - {step}, key=str)
    values: dict[sympy.Symbol, Any] = {symbol: sympy.Rational(3 + k, 10 + k) for k, symbol in enumerate(symbols)}
    near = truth.evaluate(moved, values | {step: sympy.Rational(1, 10**20)}, digits=100)
    at = truth.evaluate(limit, values, digits=100)
    return bool(abs(near - at) <= 1e-12 * max(1, abs(at)))
