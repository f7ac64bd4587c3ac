"""A fact about an entropy, and how it is known."""

from __future__ import annotations

from dataclasses import dataclass
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
