"""What set predictions live in: an interval for each coordinate and, where there is one, a fixed total."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real
from typing import Any

from .errors import ParameterError


@dataclass(frozen=True)
class Domain:
    """Each coordinate between `low` and `high`, and all of them with the total given, or without one (None).

    `partial` says that h need not have infinite slopes at infinite ends: not every score must have a prediction.

    >>> import fysym
    >>> fysym.compile("-t**2/2", domain="reals").predict([-1.5, 2.0])
    array([-1.5,  2. ])
    """

    name: str
    total: float | None
    low: float = 0.0
    high: float = 1.0
    partial: bool = False

    def __str__(self) -> str:
        return self.name

    @property
    def bounded(self) -> bool:
        """Whether the interval is [0, 1]."""
        return self.high == 1.0

    @property
    def interval(self) -> str:
        """The open interval on which h must be concave, in words."""
        return f"({_end(self.low)}, {_end(self.high)})"

    @property
    def ends(self) -> tuple[str, str]:
        """The names of both ends, as they stand in the names of facts."""
        return _end(self.low), _end(self.high)

    def facts(self, kind: str) -> tuple[str, str]:
        """The names of the facts about both ends: value, slope or curvature."""
        return f"{kind}_at_{self.ends[0]}", f"{kind}_at_{self.ends[1]}"

    @property
    def words(self) -> str:
        """The rule for a prediction, in words."""
        if self.total is None:
            return "p_j = q(theta_j), each coordinate by itself"
        return f"p_j = q(theta_j - tau), tau so that p sums to {_amount(self.total)}"


def _end(number: float) -> str:
    return str(int(number)) if math.isfinite(number) else ("oo" if number > 0 else "-oo")


def _amount(total: float) -> str:
    """A total in words, no two of them in the same."""
    return str(int(total)) if total.is_integer() and total < 1e16 else repr(total)


SIMPLEX = Domain("simplex", 1.0)
CUBE = Domain("cube", None)
ORTHANT = Domain("orthant", None, high=math.inf)
REALS = Domain("reals", None, low=-math.inf, high=math.inf)
NAMED = {domain.name: domain for domain in (SIMPLEX, CUBE, ORTHANT, REALS)}


def budget(k: Real | float) -> Domain:
    """Vectors in [0, 1]^d that sum to k, any positive real number: marginals of k-subsets where k is a whole one.

    >>> import fysym
    >>> two = fysym.compile("t*(1 - t)/2", domain=fysym.budget(2))
    >>> two.predict([0.0, 0.25, 0.5, 0.75, 1.0])
    array([0.   , 0.125, 0.375, 0.625, 0.875])
    """
    try:
        total = float(k) if isinstance(k, Real) and not isinstance(k, bool) else math.nan
    except OverflowError:
        total = math.inf
    if not 0 < total < math.inf:
        from .parse import shown  # brings SymPy, which `import fysym` must not

        raise ParameterError(f"a budget must be a positive number within the range of a double, not {shown(k)}")
    return SIMPLEX if total == 1 else Domain(f"budget({_amount(total)})", total)


def read(domain: Any) -> Domain:
    """A Domain, or the one of that name."""
    if isinstance(domain, Domain):
        return domain
    if isinstance(domain, str) and domain in NAMED:
        return NAMED[domain]
    names = ", ".join(f'"{name}"' for name in NAMED)
    raise ParameterError(f"there is no domain {domain!r}; the domains are {names} and fysym.budget(k)")
