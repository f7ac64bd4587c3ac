"""The object a user holds: facts as attributes, numbers as methods."""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import sympy

from . import report as reports
from .concavity import Verdict
from .deadline import run
from .emit import TARGETS
from .entropy import Entropy
from .errors import InputError, UndecidedError, UnsupportedError
from .facts import Fact, Theory
from .kinks import derivative
from .methods import Methods
from .parse import shown
from .runtime.target import answer

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from .accuracy import Accuracy
    from .program import Program


# The methods that have compiled kernels.
FAST = {"predict", "loss", "grad", "value_and_grad", "jvp", "vjp"}


@dataclass(frozen=True)
class Derivation:
    """What the pipeline found out about one entropy; `program` is None while parameters are free."""

    entropy: Entropy
    verdict: Verdict
    theory: Theory
    inverse: sympy.Expr | None
    program: Program | None


class Regularizer(Methods):
    """A compiled entropy: what is known of it, and its Fenchel-Young loss.

    Facts are SymPy values (None where undetermined over the range of a parameter); methods work on NumPy arrays, over
    the last axis unless told otherwise, by compiled kernels where Numba is installed (target="numpy" to refuse it).
    A family must be bound (`bind(alpha=1.5)`), or be given its parameters with each call
    (`predict(theta, alpha=1.5)`).

    >>> import fysym
    >>> reg = fysym.compile("t*(1 - t)/2")
    >>> reg
    <Regularizer h = t*(1 - t)/2; margin 1, full; concavity proved>
    >>> reg.predict([1.0, 0.5, -1.0])
    array([0.75, 0.25, 0.  ])
    """

    def __init__(
        self, derivation: Derivation, name: str | None, rebind: Callable[[Entropy, Mapping[str, Any]], Regularizer]
    ) -> None:
        super().__init__()
        self.derivation = derivation
        self.name = name
        self._rebind = rebind
        self._ratios: dict[Any, Any] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled and copied without its code, which is made again when it is needed."""
        return Regularizer, (self.derivation, self.name, self._rebind)

    # Formulas

    @property
    def variable(self) -> sympy.Symbol:
        """The variable of h.

        >>> import fysym
        >>> fysym.compile("x*(1 - x)").variable
        x
        """
        return self.derivation.entropy.user_variable

    @property
    def h(self) -> sympy.Expr:
        """The entropy, normalised by an affine term so that h(0) = h(1) = 0.

        >>> import fysym
        >>> fysym.compile("1 - t**2").h
        -t**2 + t
        """
        return self._user(self.derivation.entropy.h)

    @functools.cached_property
    def dh(self) -> sympy.Expr:
        """h', the first derivative.

        >>> import fysym
        >>> fysym.catalog.gini.dh
        1/2 - t
        """
        entropy = self.derivation.entropy
        return self._user(entropy.whole(lambda h: _tidy(sympy.diff(h, entropy.t))))

    @functools.cached_property
    def d2h(self) -> sympy.Expr:
        """h'', the second derivative.

        >>> import fysym
        >>> fysym.catalog.gini.d2h
        -1
        """
        entropy = self.derivation.entropy
        return self._user(entropy.whole(lambda h: _tidy(derivative(h, entropy.t, 2))))

    @property
    def inverse(self) -> sympy.Expr | None:
        """The closed form of (-h')^{-1} in the symbol s, or None.

        >>> import fysym
        >>> fysym.catalog.fermi_dirac.inverse
        exp(s)/(exp(s) + 1)
        """
        return None if self.derivation.inverse is None else self._user(self.derivation.inverse)

    # Facts

    @property
    def facts(self) -> tuple[Fact, ...]:
        """Everything that is known, each with its status and evidence.

        >>> import fysym
        >>> [fact.name for fact in fysym.catalog.gini.facts][:2]
        ['strictly_concave', 'value_at_0']
        """
        found = self.derivation.theory.facts.values()
        return tuple(Fact(f.name, self._user(f.value), f.status, f.evidence) for f in found)

    def fact(self, name: str) -> Fact | None:
        """The fact of that name, or None where it is undetermined.

        >>> import fysym
        >>> fysym.catalog.gini.fact("margin").evidence
        "h'(0+) - h'(1-) (Prop. 7)"
        """
        return next((f for f in self.facts if f.name == name), None)

    @property
    def slopes(self) -> tuple[sympy.Expr | None, sympy.Expr | None]:
        """h' at both ends of the domain: (h'(0+), h'(1-)) where it is [0, 1].

        >>> import fysym
        >>> fysym.catalog.gini.slopes
        (1/2, -1/2)
        """
        low, high = self.derivation.entropy.domain.facts("slope")
        return self._value(low), self._value(high)

    @property
    def margin(self) -> sympy.Expr | None:
        """h'(0) - h'(1), or oo when there is no margin.

        >>> import fysym
        >>> fysym.catalog.gini.margin, fysym.catalog.shannon.margin
        (1, oo)
        """
        return self._value("margin")

    @property
    def sparsity(self) -> str | None:
        """'full' (every face and vertex is reached), 'faces' (zeros, but no vertex) or 'dense'.

        >>> import fysym
        >>> fysym.catalog.gini.sparsity, fysym.catalog.shannon.sparsity
        ('full', 'dense')
        """
        return self._value("sparsity")

    @property
    def strong_concavity(self) -> sympy.Expr | None:
        """The infimum of -h'' on (0, 1).

        >>> import fysym
        >>> fysym.catalog.fermi_dirac.strong_concavity
        4
        """
        return self._value("strong_concavity")

    @property
    def smoothness(self) -> sympy.Expr | None:
        """1/strong_concavity, a Lipschitz constant of the prediction; oo if there is none.

        >>> import fysym
        >>> fysym.catalog.fermi_dirac.smoothness
        1/4
        """
        return self._value("smoothness")

    @property
    def twice_differentiable(self) -> bool | None:
        """Whether the prediction is differentiable everywhere, the cut-off at 0 included.

        >>> import fysym
        >>> fysym.catalog.gini.twice_differentiable
        False
        """
        return self._value("twice_differentiable")

    @property
    def essentially_smooth(self) -> bool | None:
        """Whether h' is infinite at 0, so that every probability is positive.

        >>> import fysym
        >>> fysym.catalog.shannon.essentially_smooth
        True
        """
        return self._value("essentially_smooth")

    def report(self, format: str = "text") -> str:
        """The whole derivation, in words and formulas, as "text", "markdown", "latex" or "html".

        The LaTeX is a fragment for a paper and needs amsmath; the HTML is one <div>.

        >>> import fysym
        >>> print(fysym.catalog.gini.report().splitlines()[1])
          h(t) = t*(1 - t)/2
        >>> fysym.catalog.gini.report(format="latex").splitlines()[3]
        '\\\\[ h(t) = \\\\frac{t \\\\left(1 - t\\\\right)}{2} \\\\]'
        """
        return reports.render(self, format)

    def plot(self, **options: Any) -> Figure:
        """The paper's three panels (entropy, prediction, loss) with the margin marked; see `fysym.plot.panels`.

        >>> import fysym
        >>> fysym.catalog.gini.plot().axes[1].get_title()
        'prediction for the scores [s, 0]'
        """
        from . import plot  # needs Matplotlib

        self._require_bound()
        return plot.panels(self, **options)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        """The card that a notebook shows."""
        return reports.card(self)

    def certificate(self) -> dict[str, Any]:
        """The argument for strict concavity, and for the sign of h''' if known, as data for `fysym.verify`.

        >>> import fysym
        >>> fysym.catalog.gini.certificate()["claims"][0]["claim"]
        "h'' < 0"
        """
        from . import certificate  # needed by few

        entropy, verdict = self.derivation.entropy, self.derivation.verdict
        if not entropy.domain.bounded:
            raise UnsupportedError(f"certificates are about (0, 1); there is none for the {entropy.domain}")
        if verdict.fact.status == "sampled":
            raise UndecidedError(f"there is no proof to export: concavity was only sampled ({verdict.fact.evidence})")
        claims = [("h'' < 0" if proof.strict else "h'' <= 0", proof) for proof in verdict.proofs]
        claims += [(f"switch {'>' if argument.sign > 0 else '<'} 0", argument) for argument in verdict.steady]
        bend = self.derivation.theory.proofs.get("inverse_shape")
        if bend is not None and self.fact("inverse_shape") is not None:
            claims.append((f"h''' {'>' if bend.sign > 0 else '<'}{'' if bend.strict else '='} 0", bend))
        return certificate.export(str(self._user(entropy.given)), claims, self.params)

    def accuracy(self) -> Accuracy:
        """The worst errors of the code of each target, in float64 and float32, against the truth, and where they are.

        The targets are numpy, numba where it is installed, and c where there is a C compiler. It takes a few seconds.
        What it returns prints as a table; `.worst` and iteration give Measurements.

        >>> import fysym
        >>> fysym.catalog.gini.accuracy().worst.ulps < 16
        True
        """
        from . import accuracy  # needed by few
        from .runtime.shared_library import SharedLibrary

        self._require_bound()
        targets = {"numpy": self._module}
        if not isinstance(self._fast, str) and self._fast.fits("predict", "label"):
            targets["numba"] = self._fast
        with contextlib.suppress(UnsupportedError):  # without a compiler, or a function that C lacks
            targets["c"] = SharedLibrary(self.source("c"), self._module)
        return accuracy.measure(self.derivation, targets)

    def __repr__(self) -> str:
        return reports.line(self)

    # Parameters

    @property
    def params(self) -> dict[str, str]:
        """The free parameters and their ranges.

        >>> import fysym
        >>> fysym.catalog.tsallis.params
        {'alpha': 'alpha > 1'}
        """
        return {p.name: p.range.describe(p.name) for p in self.derivation.entropy.parameters}

    def _member(self, values: Mapping[str, Any]) -> Regularizer:
        return self._rebind(self.derivation.entropy, values)

    def _scaled(self, factor: sympy.Expr) -> Regularizer:
        from .compiler import compile

        entropy = self.derivation.entropy
        return compile(factor * self._user(entropy.given), params=self.params, domain=entropy.domain)

    def solve(self, **wanted: Any) -> dict[str, sympy.Expr]:
        """The parameter values at which facts have the values wanted, exactly; other parameters may be given too.

        That no other member has them is shown by monotonicity or, in float64, by intervals that cover the whole range.

        >>> import fysym
        >>> fysym.catalog.tsallis.solve(margin=2)
        {'alpha': 3/2}
        """
        from .solve import solve

        return solve(self, wanted)

    def _with_prior(self, method: str, theta: Any, y: Any, prior: Any, axis: int) -> Any:
        from . import prior as priors

        return priors.call(self, method, theta, y, prior, axis)

    # Code

    def source(self, target: str = "numpy") -> str:
        """The code of a target: "numpy", the module behind predict, loss and the others, "c", or "numba".

        Each is one standalone file with a self-check: run it, or compile the C file with -DFY_SELF_CHECK and run that.

        >>> import fysym
        >>> "#include <math.h>" in fysym.catalog.gini.source("c")
        True
        """
        self._require_bound()
        if target not in TARGETS:
            raise UnsupportedError(f"there is no target {shown(target)}; the targets are {', '.join(TARGETS)}")
        self._module  # noqa: B018 (refuses code that is wrong)
        if target == "numpy":
            return self._source
        from .accuracy import checks

        program = self.derivation.program
        assert program is not None
        if target == "numba":
            from . import fast

            return fast.source(program, reports.header(self, "NumPy and Numba"), checks(self.derivation))
        from .emit import c

        return c.source(program, reports.header(self)[1:], checks(self.derivation))

    @functools.cached_property
    def _source(self) -> str:
        from .accuracy import checks
        from .emit import numpy as numpy_emitter  # brings NumPy, which `import fysym` must not

        program = self.derivation.program
        assert program is not None
        return numpy_emitter.source(program, reports.header(self), checks(self.derivation))

    @functools.cached_property
    def _module(self) -> Any:
        from .emit import numpy as numpy_emitter

        with self._lock:
            module = numpy_emitter.load(self._source, "fysym_emitted")
        program = self.derivation.program
        assert program is not None
        if program.domain.bounded and program.value.ulps == math.inf:
            raise UndecidedError(
                f"the generated code is not used: it has no value of h at t = {program.value.at:g}. Try: an equal form "
                "of h whose parts are no larger than h"
            )
        for theta, expected, allowed in module.CHECKS:
            try:
                p = module.predict(theta).tolist()
            except ArithmeticError as error:
                raise UndecidedError(
                    f"the generated code is not used: it fails for the scores {theta} ({error})"
                ) from None
            if not all(abs(got - exact) <= allowed for got, exact in zip(p, expected, strict=True)):
                raise UndecidedError(
                    f"the generated code is not used: for the scores {theta} it predicts {p}, and the truth is "
                    f"{expected}. Try: an equal form of h with fewer cancelling terms"
                )
        return module

    @property
    def _arrays(self) -> Any:
        return self._module

    @functools.cached_property
    def _fast(self) -> Any:
        """The compiled kernels, or the reason why there are none."""
        from . import fast

        program = self.derivation.program
        assert program is not None
        return fast.kernel(program, self._module)

    def _call(self, method: str, params: Mapping[str, Any], *args: Any, target: str | None = None, axis: int) -> Any:
        if params:
            return self.bind(**params)._call(method, {}, *args, axis=axis, target=target)
        self._require_bound()
        return answer(
            target,
            lambda: self._fast if method in FAST else f"{method} has none",
            lambda kernel: getattr(kernel, method)(*args, axis=axis),
            lambda: self._plain(method, *args, axis=axis),
        )

    def _plain(self, method: str, *args: Any, axis: int) -> Any:
        module = self._module
        try:
            return getattr(module, method)(*args, axis=axis)
        except module.InputError as error:
            raise InputError(str(error)) from None

    def _user(self, value: Any) -> Any:
        entropy = self.derivation.entropy
        if not isinstance(value, sympy.Expr):
            return value
        value = entropy.user(value)
        for p in entropy.parameters:
            value = _without_root(value, p.user)
        return value

    def _value(self, name: str) -> Any:
        return self._user(self.derivation.theory.value(name))


@functools.lru_cache(maxsize=256)
def _without_root(expr: sympy.Expr, c: sympy.Symbol) -> sympy.Expr:
    """The same without sqrt(c^2 + 4) where it cancels; it stems from the coordinate of a c that is any real number."""
    square, root = c**2 + 4, sympy.Dummy("root", positive=True)
    if not expr.has(square):
        return expr

    def hidden(part: sympy.Expr, names: dict[sympy.Expr, sympy.Symbol]) -> sympy.Expr:
        """A rational function of c and the root, with symbols for its other parts."""
        if part.is_Add or part.is_Mul or (part.is_Pow and part.exp.is_Integer):
            return part.func(*(hidden(arg, names) for arg in part.args))
        return names.setdefault(plain(part), sympy.Dummy()) if part.args else part

    def plain(part: sympy.Expr) -> sympy.Expr:
        names: dict[sympy.Expr, sympy.Symbol] = {}
        if not part.has(root):
            return part
        if not (part.is_Add or part.is_Mul or (part.is_Pow and part.exp.is_Integer)):
            return part.func(*map(plain, part.args))
        above, below = sympy.fraction(sympy.cancel(hidden(part, names)))
        below = sympy.rem(below, root**2 - square, root)
        other = below.subs(root, -root)
        above, below = (sympy.rem(sympy.expand(x * other), root**2 - square, root) for x in (above, below))
        return sympy.factor(above / below).xreplace({name: node for node, name in names.items()})

    def is_root(part: sympy.Expr) -> bool:
        return bool(part.is_Pow and part.base == square and (2 * part.exp).is_Integer)

    def work() -> sympy.Expr:
        return plain(sympy.powsimp(expr.replace(is_root, lambda part: root ** (2 * part.exp))))

    try:
        found = run(work, seconds=1.0)
    except Exception:  # also StepTimeout: then it stays as it is
        return expr
    return found.xreplace({root: sympy.sqrt(square)})


def _tidy(expr: sympy.Expr) -> sympy.Expr:
    """The shortest of a few equal forms."""
    forms = [expr]
    for rewrite in (sympy.powsimp, sympy.factor_terms, sympy.expand, lambda e: sympy.powsimp(sympy.expand(e))):
        try:
            forms.append(rewrite(expr))
        except Exception:  # a rewrite that fails is only not offered
            continue
    return min(forms, key=lambda e: (e.count_ops(), str(e)))
