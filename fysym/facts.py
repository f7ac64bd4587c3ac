"""A fact about an entropy, and how it is known; all facts of an entropy, and why others are undetermined."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

STATUSES = ("proved", "certified", "sampled", "refuted")


@dataclass(frozen=True)
class Fact:
    """One claim: `status` says how far to trust it, `evidence` why.

    proved: an exact symbolic argument. certified: rigorous interval arithmetic over the whole interval.
    sampled: numbers only. refuted: the claim fails, at the witness in `evidence`.

    >>> import fysym
    >>> fysym.catalog.gini.fact("strictly_concave").status
    'proved'
    """

    name: str
    value: Any
    status: str
    evidence: str

    def __post_init__(self) -> None:
        assert self.status in STATUSES

    def __str__(self) -> str:
        return f"{self.name}: {self.value} [{self.status}: {self.evidence}]"


def weakest(*statuses: str) -> str:
    """The status of what follows from facts of these: "proved" where it follows from none."""
    return max(("proved", *statuses), key=STATUSES.index)


@dataclass(frozen=True)
class Theory:
    """Facts by name, and for what stays undetermined the reason; values are in canonical symbols.

    `proofs` are the arguments behind some of the facts.
    """

    facts: dict[str, Fact]
    undetermined: dict[str, str] = field(default_factory=dict)
    proofs: dict[str, Any] = field(default_factory=dict)

    def value(self, name: str) -> Any:
        return self.facts[name].value if name in self.facts else None

    def status(self, *names: str) -> str:
        """The weakest status among facts."""
        return weakest(*(self.facts[name].status for name in names))

    def leave(self, name: str, why: str, parameters: Sequence[Any]) -> None:
        """A fact stays undetermined, of a family with these parameters, if any."""
        over = ", ".join(p.range.describe(p.name) for p in parameters)
        remedy = "declare a narrower range, or bind a value" if parameters else "raise the deadline, or simplify h"
        self.undetermined[name] = f"undetermined{' over ' * bool(over)}{over}: {why}; {remedy}"
