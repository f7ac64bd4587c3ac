"""What set predictions live in: an interval for each coordinate and, where there is one, a fixed total."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from .errors import ParameterError


@dataclass(frozen=True)
class Domain:
    """Each coordinate in [0, 1], and all of them with the total given, or without one (None)."""

    name: str
    total: float | None

    def __str__(self) -> str:
        return self.name

    @property
    def words(self) -> str:
        """The rule for a prediction, in words."""
        if self.total is None:
            return "p_j = q(theta_j), each coordinate by itself"
        return f"p_j = q(theta_j - tau), tau so that p sums to {self.total:g}"


SIMPLEX = Domain("simplex", 1.0)
CUBE = Domain("cube", None)
NAMED = {domain.name: domain for domain in (SIMPLEX, CUBE)}


def budget(k: float) -> Domain:
    """Vectors in [0, 1]^d that sum to k: marginals of k-subsets where k is a whole number.

    >>> import fysym
    >>> two = fysym.compile("t*(1 - t)/2", domain=fysym.budget(2))
    >>> two.predict([0.0, 0.25, 0.5, 0.75, 1.0])
    array([0.   , 0.125, 0.375, 0.625, 0.875])
    """
    if isinstance(k, bool) or not isinstance(k, (int, float)) or not (math.isfinite(k) and k > 0):
        raise ParameterError(f"a budget must be a positive number, not {k!r}")
    return SIMPLEX if k == 1 else Domain(f"budget({k:g})", float(k))


def read(domain: Any) -> Domain:
    """A Domain, or the one of that name."""
    if isinstance(domain, Domain):
        return domain
    if isinstance(domain, str) and domain in NAMED:
        return NAMED[domain]
    names = ", ".join(f'"{name}"' for name in NAMED)
    raise ParameterError(f"there is no domain {domain!r}; the domains are {names} and fysym.budget(k)")
