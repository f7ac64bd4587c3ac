"""Entropies G(sum s(p_j)): norms, squared norms, Renyi. A separable entropy at a temperature found by one more root.

With sigma = -1 where s is convex and 1 where it is concave, v(p) = sigma sum s(p_j) is a separable entropy and
H = F(v), F(v) = G(sigma v). At the optimum only w = F'(v) couples the coordinates: the prediction is that of v at
theta / w.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import sympy
from sympy import S

from . import truth
from .compiler import compile
from .deadline import Deadline, simplified
from .errors import FysymError, InputError, NotConcaveError, ParameterError, UndecidedError
from .facts import Fact
from .parse import parse_expression
from .ranges import Range, exact_number, parse_range
from .regularizer import Regularizer
from .signs import prove_sign

T = sympy.Symbol("t", positive=True)
U = sympy.Symbol("u", positive=True)


def compile_composite(
    outer: str | sympy.Expr,
    inner: str | sympy.Expr,
    *,
    params: Mapping[str, Any] | None = None,
    deadline: float = 10.0,
    assume_concave: bool = False,
    name: str | None = None,
) -> Composite:
    """Check and compile H(p) = outer(u), u = sum_j inner(p_j), on the simplex.

    >>> import fysym
    >>> norms = fysym.compile_composite("1 - u**(1/q)", "t**q", params={"q": "q > 1"})
    >>> norms.bind(q=2).margin
    1
    >>> norms.bind(q=2).predict([1.0, 0.25]).round(3)
    array([0.813, 0.187])
    """
    ranges = {key: parse_range(key, given) for key, given in (params or {}).items()}
    expressions = [_read(outer, "u", U, ranges), _read(inner, "t", T, ranges)]
    unused = [key for key in ranges if not any(e.has(_symbol(key, ranges[key])) for e in expressions)]
    if unused:
        raise ParameterError(f"params names {unused[0]!r}, which occurs neither in outer nor in inner")
    request = Request(expressions[0], expressions[1], ranges, float(deadline), assume_concave, name)
    return Composite(request)


def _symbol(name: str, span: Range) -> sympy.Symbol:
    return sympy.Symbol(name, positive=True) if span.low.is_nonnegative else sympy.Symbol(name, real=True)


def _read(text: Any, variable: str, symbol: sympy.Symbol, ranges: Mapping[str, Range]) -> sympy.Expr:
    expr = parse_expression(text) if isinstance(text, str) else sympy.sympify(text)
    names = {s.name for s in expr.free_symbols}
    unknown = names - {variable} - set(ranges)
    if unknown or variable not in names:
        what = f"the unknown symbol {min(unknown)}" if unknown else f"no {variable}"
        raise ParameterError(f"{expr} has {what}: it must be in {variable} and in parameters whose ranges params gives")
    rename = {s: symbol if s.name == variable else _symbol(s.name, ranges[s.name]) for s in expr.free_symbols}
    return expr.xreplace(rename)


@dataclass(frozen=True)
class Request:
    """What the caller asked for; parameters that are free are in `ranges`."""

    outer: sympy.Expr
    inner: sympy.Expr
    ranges: dict[str, Range]
    seconds: float
    assume_concave: bool
    name: str | None

    def bind(self, values: Mapping[str, Any]) -> Request:
        """The same with these parameter values."""
        outer, inner, ranges = self.outer, self.inner, dict(self.ranges)
        for key, raw in values.items():
            if key not in ranges:
                raise ParameterError(f"there is no parameter called {key!r}; the parameters are: {', '.join(ranges)}")
            value = exact_number(raw)
            if value not in ranges[key]:
                raise ParameterError(f"{key} = {value} is outside its range: {ranges[key].describe(key)}")
            symbol = _symbol(key, ranges.pop(key))
            outer, inner = outer.subs(symbol, value), inner.subs(symbol, value)
        return Request(outer, inner, ranges, self.seconds, self.assume_concave, self.name)


class Composite:
    """A compiled entropy G(sum s(p_j)); a family until its parameters are bound."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self.name = request.name
        self._bound: dict[Any, Composite] = {}
        self._rows: Any = None
        if not request.ranges:
            self._compile()

    def _compile(self) -> None:
        request = self.request
        clock = Deadline(request.seconds)
        self.sign, self.separable = _separable(request)
        self.facts = tuple(_facts(self, request, clock))

    # Facts

    @property
    def params(self) -> dict[str, str]:
        """The free parameters and their ranges."""
        return {key: span.describe(key) for key, span in self.request.ranges.items()}

    def fact(self, name: str) -> Fact | None:
        """The fact of that name, or None where it is undetermined."""
        self._require_bound()
        return next((fact for fact in self.facts if fact.name == name), None)

    @property
    def margin(self) -> sympy.Expr | None:
        """How far a score must be ahead for a loss of 0: F' at a vertex times the margin of sum s; oo without one."""
        fact = self.fact("margin")
        return None if fact is None else fact.value

    @property
    def sparsity(self) -> str | None:
        """As of the separable entropy inside."""
        return self.separable.sparsity if not self.params else None

    def bind(self, **values: Any) -> Composite:
        """The member of the family at these parameter values."""
        if not values:
            return self
        key = tuple(sorted((name, str(value)) for name, value in values.items()))
        if key not in self._bound:
            self._bound[key] = Composite(self.request.bind(values))
        return self._bound[key]

    def _require_bound(self) -> None:
        if self.request.ranges:
            example = ", ".join(f"{name}=..." for name in self.params)
            raise ParameterError(f"this is a family: bind({example}) first; ranges: {'; '.join(self.params.values())}")

    def report(self) -> str:
        """What is known, in words."""
        head = f"H(p) = {self.request.outer}, u = sum of {self.request.inner}"
        if self.request.ranges:
            return f"{head}\n  a family: {'; '.join(self.params.values())}"
        lines = [
            f"  {fact.name.replace('_', ' ')}: {fact.value}  [{fact.status}] {fact.evidence}" for fact in self.facts
        ]
        how = f"  prediction: that of {self.separable.h} at theta / w, w the root of w = F'(v)"
        return "\n".join([head, *lines, how])

    def __repr__(self) -> str:
        return f"<Composite {self.request.outer}, u = sum of {self.request.inner}>"

    # Numbers

    def _kernel(self, params: Mapping[str, Any]) -> Any:
        bound = self.bind(**params)
        bound._require_bound()
        if bound._rows is None:
            from .runtime.composite import Kernel

            request, sign = bound.request, bound.sign
            forms = [sympy.lambdify(U, sympy.diff(request.outer, U, k), "numpy") for k in range(3)]
            low, high = (float(truth.evaluate(end, {})) for end in _end_terms(request))
            bound._rows = Kernel(bound.separable, sign, forms, sympy.lambdify(T, request.inner, "numpy"), (low, high))
        return bound._rows

    def _call(self, method: str, params: Mapping[str, Any], *args: Any, axis: int) -> Any:
        kernel = self._kernel(params)
        try:
            return getattr(kernel, method)(*args, axis=axis)
        except ValueError as error:
            raise InputError(str(error)) from None

    def predict(self, theta: Any, *, axis: int = -1, **params: Any) -> Any:
        """The probabilities that maximise <theta, p> + H(p)."""
        return self._call("predict", params, theta, axis=axis)

    def loss(self, theta: Any, y: Any, *, axis: int = -1, **params: Any) -> Any:
        """The Fenchel-Young loss of each row; y are integer labels or proportions."""
        return self._call("value_and_grad", params, theta, y, axis=axis)[0]

    def grad(self, theta: Any, y: Any, *, axis: int = -1, **params: Any) -> Any:
        """The gradient of each row's loss, predict(theta) - y."""
        return self._call("value_and_grad", params, theta, y, axis=axis)[1]

    def value_and_grad(self, theta: Any, y: Any, *, axis: int = -1, **params: Any) -> tuple[Any, Any]:
        """loss and grad from one solve."""
        return self._call("value_and_grad", params, theta, y, axis=axis)  # type: ignore[no-any-return]

    def jvp(self, theta: Any, v: Any, *, axis: int = -1, **params: Any) -> Any:
        """The derivative of predict at theta in the direction v."""
        return self._call("jvp", params, theta, v, axis=axis)

    def entropy(self, p: Any, *, axis: int = -1, **params: Any) -> Any:
        """H(p) of each row."""
        return self._call("entropy", params, p, axis=axis)


def _separable(request: Request) -> tuple[int, Regularizer]:
    """sigma, and the regularizer of sigma s."""
    for sign in (1, -1):
        try:
            return sign, compile(sign * request.inner, deadline=request.seconds)
        except NotConcaveError as error:
            problem: FysymError = error
    raise NotConcaveError(
        f"inner = {request.inner} is neither strictly concave nor strictly convex: {problem} Try: a power of t.",
        S.Half,
    )


def _facts(composite: Composite, request: Request, clock: Deadline) -> list[Fact]:
    """Concavity on the simplex, and the margin."""
    found = [_concavity(composite, request, clock)]
    separable = composite.separable
    at_zero, at_one = _end_terms(request)
    margin = separable.fact("margin")
    if at_zero == 0 and margin is not None:
        w = composite.sign * sympy.diff(request.outer, U).subs(U, at_one)
        value = sympy.oo if margin.value.is_infinite else simplified(w * margin.value)
        why = f"F'(v) at a vertex times the margin {margin.value} of the sum"
        found.append(Fact("margin", value, margin.status, why))
    return found


def _end_terms(request: Request) -> tuple[sympy.Expr, sympy.Expr]:
    """s at 0 and 1."""
    return sympy.limit(request.inner, T, 0, "+"), request.inner.subs(T, 1)


def _concavity(composite: Composite, request: Request, clock: Deadline) -> Fact:
    """H = F(v) with v concave: F' > 0, and F'' v'^2 must not outweigh F' v''."""
    sign, (_, top) = composite.sign, _end_terms(request)
    first, second = sign * sympy.diff(request.outer, U), sympy.diff(request.outer, U, 2)
    # s convex: 0 < u <= s(1); s concave: u >= s(1). Both as functions of a variable in (0, 1) or of a positive one.
    place = {U: top * T} if sign < 0 else {U: top + U}
    first_here, second_here = (simplified(e.subs(place)) for e in (first, second))
    rising = prove_sign(first_here, T, clock)
    if rising is None or rising.sign < 0:
        way = "fall" if sign < 0 else "grow"
        raise NotConcaveError(f"outer = {request.outer} must {way} with u, which {request.inner} adds up to", S.Half)
    bend = prove_sign(second_here, T, clock) if second_here != 0 else None
    if second_here == 0 or (bend is not None and bend.sign < 0):
        return Fact("strictly_concave", True, "proved", "F is increasing and concave, and v is strictly concave")
    # Cauchy-Schwarz: F'' (sum v' z)^2 <= F'' sum(v'^2 / |v''|) sum(|v''| z^2), which must stay below F' sum |v''| z^2
    slope, curve = (sympy.diff(request.inner, T, k) for k in (1, 2))
    ratio = simplified(slope**2 / (curve * request.inner)) if request.inner != 0 else None
    if ratio is not None and not ratio.free_symbols:
        share = abs(ratio)
        left = simplified((first - share * U * second).subs(place))
        proof = prove_sign(left, T, clock) if left != 0 else None
        if left == 0 or (proof is not None and proof.sign > 0):
            why = f"F' >= F'' sum(s'^2/|s''|), as s'^2/s'' = {ratio} s (Cauchy-Schwarz)"
            return Fact("strictly_concave", True, "proved", why)
    if request.assume_concave:
        return Fact("strictly_concave", True, "sampled", "assumed by the caller")
    raise UndecidedError(
        f"could not prove that {request.outer}, u = sum of {request.inner}, is concave on the simplex. Try: "
        "assume_concave=True if it is, or if it is pseudo-concave (Renyi with beta > 1): predictions are then "
        "stationary points, and losses are not bounded below by the usual argument"
    )
