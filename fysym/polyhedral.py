"""Entropies that are not strictly concave, admitted by name only: perceptron, hinge and Berger-Parker.

Their predictions jump, and where several p are optimal a rule chooses one that treats equal scores equally:

perceptron      H = 0: the largest scores share equally
hinge           the perceptron with a cost of 1 for every class but the label's own
berger_parker   H = 1 - max p: uniform over the scores above the sparsemax threshold; those at it are left out
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import sympy

from . import render as rendering
from .composite.report import claims
from .errors import FysymError, InputError, ParameterError, UnsupportedError
from .facts import Fact
from .methods import Methods
from .render import Document, Section, Sentence
from .report import picture
from .runtime.target import plainly

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RULES = {
    "perceptron": ("H(p) = 0", "the largest scores share equally"),
    "hinge": (
        "H(p) = 0, and a cost of 1 for every class but the label's own",
        "the largest scores share equally; in a loss, the largest scores plus costs",
    ),
    "berger_parker": (
        "H(p) = 1 - max p",
        "uniform over the scores above tau = max over k of (S_k - 1)/k, where S_k is the sum of the k largest; "
        "scores equal to tau are left out",
    ),
}
LATEX = {"perceptron": r"\[ H(p) = 0 \]", "berger_parker": r"\[ H(p) = 1 - \max_j p_j \]"}
MARGINS = {
    "perceptron": (0, "the loss max_j theta_j - theta_k is 0 as soon as no score is larger"),
    "hinge": (1, "the loss max_j (theta_j + [j != k]) - theta_k is 0 from a lead of 1 on"),
    "berger_parker": (1, "H(p)/(1 - max p) is 1 for every p that is no vertex (Prop. 5)"),
}


def polyhedral(name: str) -> Polyhedral:
    """The entropy of that name.

    >>> from fysym.polyhedral import polyhedral
    >>> polyhedral("hinge").loss([2.0, 1.5, 0.0], 0).item()
    0.5
    >>> polyhedral("berger_parker").predict([0.6, 0.5, -2.0])
    array([0.5, 0.5, 0. ])
    """
    if name not in RULES:
        raise FysymError(f"there is no polyhedral entropy called {name!r}; there are {', '.join(RULES)}")
    return Polyhedral(name, sympy.S.One)


class Polyhedral(Methods):
    """A piecewise linear entropy, times a factor; its methods are a Regularizer's.

    >>> import fysym
    >>> fysym.catalog.perceptron.predict([1.0, 3.0, 2.0])
    array([0., 1., 0.])
    >>> fysym.catalog.hinge.loss([1.0, 0.5], 0).item()
    0.5
    """

    params: dict[str, str] = {}
    smoothness = sympy.oo
    strong_concavity = sympy.S.Zero
    twice_differentiable = essentially_smooth = False
    slopes = None

    def __init__(self, kind: str, factor: sympy.Expr) -> None:
        self.kind = kind
        self.factor = factor
        self.name = kind if factor == 1 else f"{factor} {kind}"

    def __reduce__(self) -> tuple[Any, ...]:
        return Polyhedral, (self.kind, self.factor)

    # Facts

    @functools.cached_property
    def facts(self) -> tuple[Fact, ...]:
        """Everything that is known, each with its status and evidence."""
        margin, why = MARGINS[self.kind]
        times = "" if self.factor == 1 else f"; times {self.factor}"
        return (
            Fact("strictly_concave", False, "refuted", "H is linear between e_1 and (1/2, 1/2); admitted by name only"),
            Fact("margin", margin * self.factor, "proved", why + times),
            Fact("sparsity", "full", "proved", "every vertex is predicted where its score leads by the margin"),
            Fact("twice_differentiable", False, "proved", "predictions jump where scores tie"),
        )

    def fact(self, name: str) -> Fact | None:
        """The fact of that name, or None where it is undetermined."""
        return next((fact for fact in self.facts if fact.name == name), None)

    @property
    def margin(self) -> sympy.Expr:  # type: ignore[override]
        """How far a score must be ahead for a loss of 0."""
        return self.facts[1].value

    @property
    def sparsity(self) -> str:
        """Every vertex is predicted."""
        return "full"

    def _document(self) -> Document:
        words, rule = RULES[self.kind]
        times = [] if self.factor == 1 else [Sentence((f"all of it times {self.factor}",))]
        return Document(
            f"Entropy {self.name}",
            [
                Section("Entropy", [Sentence((words,), LATEX.get(self.kind, "")), *times]),
                Section("Facts", claims(self.facts)),
                Section("Prediction", [Sentence((rule,))]),
            ],
        )

    def report(self, format: str = "text") -> str:
        """The facts and the rule for ties, as "text", "markdown", "latex" or "html"."""
        if format not in rendering.FORMS:
            raise InputError(f"there is no format {format!r}; the formats are {', '.join(rendering.FORMS)}")
        return rendering.render(self._document(), format)

    def plot(self, **options: Any) -> Figure:
        """The paper's three panels (entropy, prediction, loss) with the margin marked; see `fysym.plot.panels`."""
        from . import plot  # needs Matplotlib

        return plot.panels(self, **options)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        """The card that a notebook shows."""
        found = self._document()
        shown = {"text/latex": rendering.latex(found), "text/html": rendering.html(found, picture(self))}
        return {"text/plain": repr(self), **shown}

    def __repr__(self) -> str:
        return f"<Polyhedral {self.name}: {RULES[self.kind][0]}; margin {self.margin}, full>"

    # Parameters

    def bind(self, **values: Any) -> Polyhedral:
        """Itself: there are no parameters."""
        if values:
            raise ParameterError(f"there is no parameter called {next(iter(values))!r}; it has no parameters")
        return self

    def with_margin(self, m: Any) -> Polyhedral:
        """H scaled so that the margin is m."""
        if self.margin == 0:
            raise ParameterError("the margin of this entropy is 0, so no scale gives it another one")
        return super().with_margin(m)

    def _scaled(self, factor: sympy.Expr) -> Polyhedral:
        return Polyhedral(self.kind, self.factor * factor)

    # Numbers

    @property
    def _arrays(self) -> Any:  # type: ignore[override]
        from .runtime import arrays

        return arrays

    @functools.cached_property
    def _kernel(self) -> Any:
        from .runtime.polyhedral import Kernel

        return Kernel(self.kind, 1.0 if self.kind == "perceptron" else self._double())

    def _double(self) -> float:
        """The factor as a number."""
        try:
            found = float(self.factor)
        except OverflowError:
            found = float("inf")
        if 0.0 < found < float("inf"):
            return found
        which = "small" if found == 0.0 else "large"
        raise UnsupportedError(
            f"the factor of {self.kind} is too {which} for a double. Try: another scale; predictions of c H at theta "
            "are those of H at theta / c, and losses are c times those"
        )

    def _call(self, method: str, params: Mapping[str, Any], *args: Any, target: str | None = None, axis: int) -> Any:
        self.bind(**params)
        return plainly(
            target, "the entropy is piecewise linear", lambda: getattr(self._kernel, method)(*args, axis=axis)
        )

    def _loss(self, method: str, theta: Any, y: Any, *options: Any) -> Any:
        _, _, cost, _, _ = options
        if cost is not None and self.kind == "hinge":  # the cost given takes the place of the hinge's own
            return Polyhedral("perceptron", self.factor)._loss(method, theta, y, *options)
        return super()._loss(method, theta, y, *options)

    def solve(self, **wanted: Any) -> dict[str, sympy.Expr]:
        """There are no parameters to solve for: ParameterError."""
        raise ParameterError(f"{self.name} has no parameters to solve for; with_margin(m) scales it")

    def certificate(self) -> dict[str, Any]:
        """Certificates are about strict concavity: UnsupportedError."""
        raise UnsupportedError(f"certificates are about strict concavity, and {self.name} is not strictly concave")

    def accuracy(self) -> Any:
        """Predictions are shares of whole classes, exact but for one division: UnsupportedError."""
        raise UnsupportedError(f"accuracy is measured where something is solved, and {self.name} picks largest scores")

    def source(self, target: str = "numpy") -> str:
        """There is none: only separable entropies have code of their own."""
        raise UnsupportedError(f"there is no source of {self.name}: it picks the largest scores, nothing is solved")
