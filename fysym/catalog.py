"""Named entropies, each an expression, the ranges of its parameters and a reference; compiled on first use.

Most are separable, h(t) summed; composite ones are G(u) of the sum u; polyhedral ones are known by their names only.

>>> import fysym
>>> fysym.catalog.gini.margin
1
>>> fysym.catalog["tsallis"].bind(alpha=1.5).margin
2
>>> "shannon" in list(fysym.catalog)
True
"""

from __future__ import annotations

import difflib
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from .errors import FysymError

if TYPE_CHECKING:
    from .composite import Composite
    from .polyhedral import Polyhedral
    from .regularizer import Regularizer


@dataclass(frozen=True)
class Entry:
    """One row of the catalog: h(t), or what is summed where there is an outer function of the sum u.

    `kind` is "separable", "composite" or "polyhedral"; the expression of a polyhedral entropy is only shown.
    """

    expression: str
    reference: str
    params: dict[str, str] = field(default_factory=dict)
    outer: str | None = None
    polyhedral: bool = False
    domain: str = "simplex"

    @property
    def kind(self) -> str:
        """Which compiler it needs."""
        return "polyhedral" if self.polyhedral else "separable" if self.outer is None else "composite"

    @property
    def words(self) -> str:
        """The entropy in one line: h(t), or H."""
        return self.expression if self.outer is None else f"{self.outer}, u = sum of {self.expression}"


ENTRIES: dict[str, Entry] = {
    "shannon": Entry("-t*log(t)", "Shannon (1948); its loss is the logistic loss"),
    "gini": Entry("t*(1 - t)/2", "Gini (1912); its loss is the sparsemax loss of Martins and Astudillo (2016)"),
    "tsallis": Entry("(t - t**alpha)/(alpha*(alpha - 1))", "Tsallis (1988)", {"alpha": "alpha > 1"}),
    "hellinger": Entry("4*(sqrt(t) - t)", "Tsallis with alpha = 1/2; the Hellinger distance to uniform"),
    "fermi_dirac": Entry("-t*log(t) - (1 - t)*log(1 - t)", "the entropy of fermions; a logistic function of t"),
    "jensen_shannon": Entry("(t + 1)*log((t + 1)/2) - t*log(t)", "the generator of the Jensen-Shannon divergence"),
    "kaniadakis": Entry("(t**(1 - k) - t**(1 + k))/(2*k)", "Kaniadakis (2001)", {"k": "0 < k < 1"}),
    "abe": Entry("(t**(1/q) - t**q)/(q - 1/q)", "Abe (1997)", {"q": "q >= 1"}),
    "borges_roditi": Entry("(t**a - t**b)/(b - a)", "Borges and Roditi (1998)", {"a": "0 < a < 1", "b": "b > 1"}),
    "sine": Entry("sin(pi*t)/pi", "an arch of the sine"),
    "arctan": Entry("atan(t) - pi*t/4", "the arc tangent"),
    "log1p": Entry("log(1 + t) - t*log(2)", "the logarithm of 1 + t"),
    "exponential": Entry("1 - exp(t) + t*(E - 1)", "the exponential"),
    "probit": Entry("exp(-erfinv(2*t - 1)**2)/sqrt(2*pi)", "the normal density at the normal quantile"),
    "shannon_gini": Entry("-t*log(t) + t*(1 - t)/2", "an equal mixture; its inverse is Lambert's W"),
    "gini_sine": Entry("t*(1 - t) + sin(pi*t)/pi", "a mixture whose inverse has no closed form"),
    "squared": Entry("-t**2/2", "Gauss (1809); half the squared error", domain="reals"),
    "one_vs_all": Entry(
        "-t*log(t) - (1 - t)*log(1 - t)", "a logistic loss for each class by itself; Bernoulli", domain="cube"
    ),
    "poisson": Entry("t - t*log(t)", "half the Poisson deviance, with the logarithm as its link", domain="orthant"),
    "norm": Entry("t**q", "Boekee and Van der Lubbe (1980); 1 - ||p||_q", {"q": "q > 1"}, outer="1 - u**(1/q)"),
    "squared_norm": Entry(
        "t**q", "half of 1 - ||p||_q^2; q = 2 is Gini's entropy", {"q": "1 < q <= 2"}, outer="(1 - u**(2/q))/2"
    ),
    "renyi": Entry("t**beta", "Renyi (1961)", {"beta": "0 < beta < 1"}, outer="log(u)/(1 - beta)"),
    "berger_parker": Entry("1 - max p", "Berger and Parker (1970); the norms' limit q -> oo", polyhedral=True),
    "perceptron": Entry("0", "Rosenblatt (1958); predicts the largest score", polyhedral=True),
    "hinge": Entry("0", "Crammer and Singer (2001); the perceptron with the zero-one cost", polyhedral=True),
}


# Other names, of losses: the paper's Table 1 and generalized linear models.
ALIASES = {"logistic": "shannon", "sparsemax": "gini", "gaussian": "squared", "bernoulli": "one_vs_all"}


def _compiled(name: str, entry: Entry) -> Regularizer | Composite | Polyhedral:
    """The entry's regularizer; this brings SymPy, which listing the names does not need."""
    if entry.kind == "polyhedral":
        from .polyhedral import polyhedral

        return polyhedral(name)
    if entry.outer is not None:
        from .composite import compile_composite

        return compile_composite(entry.outer, entry.expression, params=entry.params, name=name)
    from .compiler import compile

    return compile(entry.expression, params=entry.params, domain=entry.domain, name=name)


SEPARABLE = {n: entry for n, entry in ENTRIES.items() if entry.kind == "separable" and entry.domain == "simplex"}


class Catalog:
    """The entries by name, as attributes or items; iterating lists the names, without `ALIASES` of them."""

    def __init__(self, entries: dict[str, Entry]) -> None:
        self.entries = entries
        self._compiled: dict[str, Any] = {}
        self._lock = threading.RLock()

    def __getitem__(self, name: str) -> Any:
        name = ALIASES.get(name, name)
        if name not in self.entries:
            close = difflib.get_close_matches(str(name), self.entries, n=3)
            hint = f"did you mean {', '.join(close)}?" if close else f"it has {', '.join(self.entries)}"
            raise FysymError(f"the catalog has no entropy called {name!r}; {hint}")
        with self._lock:
            if name not in self._compiled:
                self._compiled[name] = _compiled(name, self.entries[name])
            return self._compiled[name]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name not in self:
            raise AttributeError(f"the catalog has no entropy called {name!r}")
        return self[name]

    @property
    def separable(self) -> list[str]:
        """The names of those on the simplex that are a sum of h(p_j)."""
        return [name for name in self.entries if name in SEPARABLE]

    def __iter__(self) -> Iterator[str]:
        return iter(self.entries)

    def __len__(self) -> int:
        return len(self.entries)

    def __contains__(self, name: object) -> bool:
        return name in self.entries or name in ALIASES

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self.entries, *ALIASES]

    def __repr__(self) -> str:
        return f"<Catalog of {len(self)} entropies: {', '.join(self)}>"


catalog = Catalog(ENTRIES)
