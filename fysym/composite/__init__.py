"""Entropies G(sum s(p_j)): norms, squared norms, Renyi. A separable entropy at a temperature found by one more root.

With sigma = -1 where s is convex and 1 where it is concave, v(p) = sigma sum s(p_j) is a separable entropy and
H = F(v), F(v) = G(sigma v). At the optimum only w = F'(v) couples the coordinates: the prediction is that of v at
theta / w.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import sympy

from ..compiler import guarded, started
from ..deadline import Deadline
from ..errors import InputError, NotConcaveError, ParameterError, UndecidedError, UnsupportedError
from ..facts import Fact
from ..methods import Methods
from ..parse import parse_expression, shown
from ..ranges import Range, exact_number, parse_range
from ..regularizer import Regularizer
from . import family, theory
from . import report as reports
from .theory import ANY_U, Form, T, U

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ..accuracy import Accuracy


def compile_composite(
    outer: str | sympy.Expr,
    inner: str | sympy.Expr,
    *,
    params: Mapping[str, Any] | None = None,
    deadline: float = 10.0,
    assume_concave: bool = False,
    name: str | None = None,
) -> Composite:
    """Check and compile H(p) = outer(u), u = sum_j inner(p_j), on the simplex; inner must be 0 at 0.

    >>> import fysym
    >>> norms = fysym.compile_composite("1 - u**(1/q)", "t**q", params={"q": "q > 1"})
    >>> norms.bind(q=2).margin
    1
    >>> norms.bind(q=2).predict([1.0, 0.25]).round(3)
    array([0.813, 0.187])
    """
    clock = started(deadline, name)
    if params is not None and not isinstance(params, Mapping):
        raise ParameterError(f"params must map names to ranges, not {shown(params)}")

    def work() -> Composite:
        ranges = {key: parse_range(key, given) for key, given in (params or {}).items()}
        expressions = [_read(outer, "u", ANY_U, ranges), _read(inner, "t", T, ranges)]
        unused = [key for key in ranges if not any(e.has(_symbol(key, ranges[key])) for e in expressions)]
        if unused:
            raise ParameterError(f"params names {unused[0]!r}, which occurs neither in outer nor in inner")
        return _compiled(Request(expressions[0], expressions[1], ranges, float(deadline), assume_concave, name), clock)

    return guarded(work, clock)


def _symbol(name: str, span: Range) -> sympy.Symbol:
    return sympy.Symbol(name, positive=True) if span.low.is_nonnegative else sympy.Symbol(name, real=True)


def _read(text: Any, variable: str, symbol: sympy.Symbol, ranges: Mapping[str, Range]) -> sympy.Expr:
    if not isinstance(text, (str, sympy.Expr)):
        raise ParameterError(f"outer and inner must be texts or SymPy expressions, not {shown(text)}")
    expr = parse_expression(text) if isinstance(text, str) else text
    names = {s.name for s in expr.free_symbols}
    unknown = names - {variable} - set(ranges)
    if unknown or variable not in names:
        what = f"the unknown symbol {min(unknown)}" if unknown else f"no {variable}"
        raise ParameterError(f"{expr} has {what}: it must be in {variable} and in parameters whose ranges params gives")
    rename = {s: symbol if s.name == variable else _symbol(s.name, ranges[s.name]) for s in expr.free_symbols}
    return sympy.nsimplify(expr.xreplace(rename), rational=True)


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
                known = f"the parameters are: {', '.join(ranges)}" if ranges else "it has no parameters"
                raise ParameterError(f"there is no parameter called {key!r}; {known}")
            value = exact_number(raw)
            if value not in ranges[key]:
                raise ParameterError(f"{key} = {value} is outside its range: {ranges[key].describe(key)}")
            span = ranges.pop(key)
            outer, inner = family.at(outer, inner, _symbol(key, span), span, value)
        return replace(self, outer=outer, inner=inner, ranges=ranges)


@dataclass(frozen=True)
class Derivation:
    """What was found out about a member: its form, the regularizer of the sum inside, and the facts."""

    form: Form
    separable: Regularizer
    facts: tuple[Fact, ...]


def _compiled(request: Request, clock: Deadline) -> Composite:
    if request.ranges:
        return Composite(request, None)
    form, separable = theory.form(request.outer, request.inner, clock)
    facts = theory.facts(form, separable, request.assume_concave, clock)
    return Composite(replace(request, outer=form.outer, inner=form.inner), Derivation(form, separable, tuple(facts)))


class Composite(Methods):
    """A compiled entropy G(sum s(p_j)); a family until its parameters are bound. Its methods are a Regularizer's.

    >>> import fysym
    >>> norm = fysym.catalog.norm.bind(q=2)
    >>> norm.margin, norm.sparsity
    (1, 'full')
    >>> norm.loss([2.0, 0.5], 0).item()
    0.0
    """

    def __init__(self, request: Request, derivation: Derivation | None) -> None:
        super().__init__()
        self.request = request
        self.derivation = derivation
        self.name = request.name

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled and copied without its code, which is made again when it is needed."""
        return Composite, (self.request, self.derivation)

    # Formulas and facts

    @property
    def outer(self) -> sympy.Expr:
        """G in u, less a constant so that H is 0 at the vertices.

        Where the u that was given is not always positive, or G' is infinite at the vertices, u is its distance from
        its value there.
        """
        return self.request.outer

    @property
    def inner(self) -> sympy.Expr:
        """s in t."""
        return self.request.inner

    @property
    def separable(self) -> Regularizer:
        """The regularizer of sigma sum s(p_j), whose prediction at theta / w is the prediction."""
        return self._derived.separable

    @property
    def _derived(self) -> Derivation:
        self._require_bound()
        assert self.derivation is not None
        return self.derivation

    @property
    def params(self) -> dict[str, str]:
        """The free parameters and their ranges."""
        return {key: span.describe(key) for key, span in self.request.ranges.items()}

    @property
    def facts(self) -> tuple[Fact, ...]:
        """Everything that is known, each with its status and evidence; of a family, margin and sparsity.

        >>> import fysym
        >>> fysym.catalog.norm.margin
        1
        """
        return self._family_facts if self.derivation is None else self.derivation.facts

    @functools.cached_property
    def _family_facts(self) -> tuple[Fact, ...]:
        names = {_symbol(name, span): sympy.Symbol(name) for name, span in self.request.ranges.items()}
        return tuple(
            replace(fact, value=fact.value.xreplace(names)) if isinstance(fact.value, sympy.Expr) else fact
            for fact in family.facts(self.request)
        )

    def fact(self, name: str) -> Fact | None:
        """The fact of that name, or None where it is undetermined."""
        return next((fact for fact in self.facts if fact.name == name), None)

    def _value(self, name: str) -> Any:
        fact = self.fact(name)
        return None if fact is None else fact.value

    @property
    def margin(self) -> sympy.Expr | None:  # type: ignore[override]
        """How far a score must be ahead for a loss of 0: F' at a vertex times the margin of sum s; oo without one."""
        return self._value("margin")

    @property
    def sparsity(self) -> str | None:
        """'full', 'faces' or 'dense', as of the separable entropy inside."""
        return self._value("sparsity")

    # What is known of separable entropies only.
    slopes = strong_concavity = smoothness = twice_differentiable = essentially_smooth = None

    def certificate(self) -> dict[str, Any]:
        """Certificates are about separable entropies: UnsupportedError."""
        raise UnsupportedError("certificates are about separable entropies, sum_j h(p_j); there is none for this one")

    def report(self, format: str = "text") -> str:
        """The whole derivation, in words and formulas, as "text", "markdown", "latex" or "html"."""
        return reports.render(self, format)

    def plot(self, **options: Any) -> Figure:
        """The paper's three panels (entropy, prediction, loss) with the margin marked; see `fysym.plot.panels`."""
        from .. import plot  # needs Matplotlib

        self._require_bound()
        return plot.panels(self, **options)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        """The card that a notebook shows."""
        return reports.card(self)

    def __repr__(self) -> str:
        return reports.line(self)

    # Parameters

    def _member(self, values: Mapping[str, Any]) -> Composite:
        clock = Deadline(self.request.seconds)
        return guarded(lambda: _compiled(self.request.bind(values), clock), clock)

    def _scaled(self, factor: sympy.Expr) -> Composite:
        clock = Deadline(self.request.seconds)
        return guarded(lambda: _compiled(replace(self.request, outer=factor * self.outer, name=None), clock), clock)

    def solve(self, **wanted: Any) -> dict[str, sympy.Expr]:
        """The parameter value at which the margin is the one wanted: solve(margin=2), exactly."""
        clock = Deadline(self.request.seconds)
        found = guarded(lambda: family.solve(self.request, wanted), clock)
        try:
            self.bind(**found)
        except NotConcaveError as error:
            where = ", ".join(f"{name} = {value}" for name, value in found.items())
            raise ParameterError(f"no member has it: that would be {where}, but {error}") from None
        return found

    # Numbers

    @property
    def _arrays(self) -> Any:  # type: ignore[override]
        from ..runtime import arrays

        return arrays

    @functools.cached_property
    def _kernel(self) -> Any:
        from sympy.codegen import rewriting

        from .. import fast
        from ..runtime.composite import CompositeKernel, Functions, problem

        found, form = self._derived, self._derived.form
        theory.refuse_sizes(form)
        margin = float("inf") if self.margin is None else float(self.margin)
        # log(1 + u) as log1p: u may be tiny where it is measured from the vertices
        forms = [
            sympy.lambdify(U, rewriting.optimize(sympy.diff(self.outer, U, k), [rewriting.log1p_opt]), "numpy")
            for k in range(3)
        ]
        inner = [sympy.lambdify(T, sympy.diff(self.inner, T, k), "numpy") for k in range(2)]
        functions = Functions(found.separable, form.sign, forms, inner, float(form.at_one), margin)
        wrong = problem(functions)
        if wrong:
            raise UndecidedError(
                f"there are no numbers for {shown(self.outer)}, u = sum of {shown(self.inner)}: {wrong} in double "
                "precision. Try: powers that are less extreme; the limit of the norms for high ones is berger_parker"
            )
        program = found.separable.derivation.program
        assert program is not None
        if form.steepness.is_infinite:
            return CompositeKernel(functions, reports.STEEP)
        return CompositeKernel(functions, fast.composite_kernel(program, functions, self.outer, self.inner))

    def _call(self, method: str, params: Mapping[str, Any], *args: Any, target: str | None = None, axis: int) -> Any:
        if params:
            return self.bind(**params)._call(method, {}, *args, axis=axis, target=target)
        self._require_bound()
        call = getattr(self._kernel, method)
        try:
            return call(*args, axis=axis, **({} if target is None else {"target": target}))
        except InputError as error:
            raise InputError(str(error)) from None

    def accuracy(self) -> Accuracy:
        """The worst errors of the code of each target, in float64 and float32, against the truth, and where they are.

        It takes some ten seconds.

        >>> import fysym
        >>> measured = fysym.catalog.squared_norm.bind(q=2).accuracy()
        >>> max(m.relative for m in measured if m.function == "predict" and m.dtype == "float64") < 1e-11
        True
        """
        from ..accuracy import measure_on
        from .reference import rows

        self._require_bound()
        kernel = self._kernel
        names = ["numpy"] if isinstance(kernel.fast, str) else ["numpy", "numba"]
        targets = {
            name: SimpleNamespace(
                predict=functools.partial(kernel.predict, target=name), loss=functools.partial(kernel.loss, target=name)
            )
            for name in names
        }
        return measure_on(lambda dtype: rows(self.outer, self.inner, dtype), targets)

    def source(self, target: str = "numpy") -> str:
        """The code of the target "numpy", the only one for these entropies: one standalone module with a self-check.

        >>> import fysym
        >>> "def self_check" in fysym.catalog.norm.bind(q=2).source()
        True
        """
        self._require_bound()
        if target != "numpy":
            raise UnsupportedError(
                f"there is no target {shown(target)} for composite entropies, only numpy; .separable.source() is the "
                "code of the sum inside, for all targets"
            )
        from ..emit import composite as emitter  # brings NumPy, which `import fysym` must not
        from .sampling import checks

        found = self._derived
        entropy = emitter.Entropy(
            self.outer, U, self.inner, T, found.form.sign, float(found.form.at_one),
            float("inf") if self.margin is None else float(self.margin),
        )  # fmt: skip
        program = found.separable.derivation.program
        assert program is not None
        return emitter.source(program, entropy, reports.header(self), checks(self.outer, self.inner))
