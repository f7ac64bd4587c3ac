"""The pipeline: text or SymPy to a `Regularizer`, stage by stage, within a deadline."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import sympy

from . import concavity, domains, inverse, theory, witness
from . import entropy as entropies
from .boundary import Limit
from .concavity import Verdict
from .deadline import Deadline, StepTimeout, run
from .domains import CUBE, ORTHANT, Domain
from .entropy import Entropy
from .errors import FysymError, NotConcaveError, ParameterError, UndecidedError
from .parse import shown
from .regularizer import Derivation, Regularizer

Made = TypeVar("Made")
MOST_SECONDS = 10**6  # threads cannot wait much longer
MOST_FOR_ADVICE = 3.0  # seconds in which to find a domain that h fits


def compile(
    h: sympy.Expr | str,
    *,
    params: Mapping[str, Any] | None = None,
    domain: str | Domain = "simplex",
    deadline: float = 10.0,
    strict: bool = False,
    assume_concave: bool = False,
    name: str | None = None,
) -> Regularizer:
    """Check an entropy, derive its theory, and compile its predictions and losses.

    >>> import fysym
    >>> gini = fysym.compile("t*(1 - t)/2")
    >>> gini.margin, gini.sparsity
    (1, 'full')
    >>> gini.predict([1.0, 0.5, -1.0])
    array([0.75, 0.25, 0.  ])

    `h` is a SymPy expression or a text. A single free symbol is its variable; with several, the variable
    is t and the others are parameters, whose ranges `params` gives: `{"alpha": "alpha > 1"}`. `domain` is the set
    of predictions: "simplex", `fysym.budget(k)`, or, each coordinate by itself, "cube" ([0, 1]), "orthant" ([0, oo))
    or "reals". `deadline` is in seconds. `strict=True` refuses an entropy whose concavity was only sampled;
    `assume_concave=True` accepts one for which even that was impossible.
    """
    clock = started(deadline, name)
    where = domains.read(domain)
    build = Build(float(deadline), strict, assume_concave, name)
    try:
        return guarded(lambda: build(entropies.read(h, params, clock, where), clock), clock)
    except NotConcaveError as error:
        fits = _smaller_domain(h, params, where, build, Deadline(min(MOST_FOR_ADVICE, clock.left())))
        raise error if fits is None else error.or_try(f'domain="{fits}", where it is') from None


@dataclass(frozen=True)
class Build:
    """What the caller of `compile` asked for, kept for the members of a family that are bound later."""

    seconds: float
    strict: bool
    assume_concave: bool
    name: str | None

    def __call__(self, entropy: Entropy, clock: Deadline) -> Regularizer:
        """All stages after reading."""
        slopes, verdict = self.check(entropy, clock)
        if self.strict and verdict.fact.status == "sampled":
            raise UndecidedError(f"strict=True: concavity was only sampled ({verdict.fact.evidence})")
        derived = theory.derive(entropy, slopes, verdict, clock)
        slope = -sympy.diff(entropy.h, entropy.t)
        closed_form, fact = inverse.find(entropy, slope, clock)
        derived.facts["inverse"] = fact
        derived.facts.update({name: verdict.limit(fact) for name, fact in derived.facts.items()})
        lowered = None if entropy.parameters else _lower(entropy, derived, closed_form, clock)
        return Regularizer(Derivation(entropy, verdict, derived, closed_form, lowered), self.name, self.bind)

    def check(self, entropy: Entropy, clock: Deadline) -> tuple[tuple[Limit, Limit], Verdict]:
        """The slopes at both ends and the verdict on concavity; an error where h does not fit its domain."""
        witness.probe(entropy)
        slopes = theory.end_slopes(entropy, clock)
        theory.check_reach(entropy, slopes, ("proved",))
        verdict = concavity.decide(entropy, clock, self.assume_concave)
        theory.check_reach(entropy, slopes, ("proved", "sampled"))
        return slopes, verdict

    def bind(self, entropy: Entropy, values: Mapping[str, Any]) -> Regularizer:
        """The member of a family at these parameter values."""
        clock = Deadline(self.seconds)
        return guarded(lambda: self(entropies.bind(entropy, values, clock), clock), clock)


def _smaller_domain(
    h: Any, params: Mapping[str, Any] | None, larger: Domain, build: Build, clock: Deadline
) -> Domain | None:
    """The largest domain inside a larger one that h fits, where there is time to find out."""
    for domain in (ORTHANT, CUBE):
        if domain.low >= larger.low and domain.high <= larger.high and domain.interval != larger.interval:
            with contextlib.suppress(FysymError):
                guarded(lambda where=domain: build.check(entropies.read(h, params, clock, where), clock), clock)  # type: ignore[misc]
                return domain
    return None


def started(deadline: float, name: str | None) -> Deadline:
    """The clock of a compilation, whose options are read."""
    if isinstance(deadline, bool) or not isinstance(deadline, (int, float)) or not 0 <= deadline <= MOST_SECONDS:
        raise ParameterError(f"deadline must be a number of seconds up to {MOST_SECONDS:g}, not {shown(deadline)}")
    if not isinstance(name, str | None):
        raise ParameterError(f"name must be a text, not {shown(name)}")
    return Deadline(deadline)


def guarded(work: Callable[[], Made], clock: Deadline) -> Made:
    """Nothing but a FysymError leaves the compiler, and nothing keeps it a second past its deadline."""
    try:
        return run(work, seconds=clock.seconds + 0.5)
    except FysymError:
        raise
    except StepTimeout:
        raise UndecidedError("the deadline passed before h was understood; raise it, or simplify h") from None
    except RecursionError:
        raise UndecidedError("h is nested too deeply to be analysed; simplify it") from None
    except Exception as error:
        raise UndecidedError(
            f"h could not be analysed ({type(error).__name__}: {error}); write it in another form"
        ) from error


def _lower(*stage: Any) -> Any:
    from . import program  # brings NumPy, which `import fysym` must not

    return program.lower(*stage)
