"""Facts of families that nobody picked: a line of a table or two with symbols for its constants.

Whatever is said of the family must hold at each of its members, whose facts are known by construction;
`python -m tests.test_random_families --count 500` runs more.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import pytest
import sympy
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from sympy import Expr, Rational, S

import fysym
from fysym.facts import Fact

from .generator import ATOMS, HILLS, SCALARS, Known, chosen, mixed, regular, t, weighted, x
from .generator import a as POWER
from .generator import b as LARGE
from .generator import c as SCALE
from .generator import r as PLACE
from .test_random import DEADLINE, wrong_facts

FAMILIES = 60  # a run of the tests
CHUNK = 10
SPREAD = 10**4
# Ranges of the constants in the tables, each with members of it.
RANGES: dict[Expr, tuple[tuple[str, tuple[Expr, ...]], ...]] = {
    POWER: (
        ("0 < {} < 1", (Rational(1, 50), Rational(1, 2), Rational(9, 10))),
        ("1/5 <= {} <= 4/5", (Rational(1, 5), Rational(1, 2), Rational(4, 5))),
    ),
    LARGE: (
        ("{} > 1", (Rational(11, 10), S(2), Rational(17, 2))),
        ("3/2 <= {} < 3", (Rational(3, 2), S(2), Rational(29, 10))),
    ),
    SCALE: (
        ("{} > 0", (Rational(1, 100), S.One, S(12))),
        ("1 <= {} <= 4", (S.One, Rational(5, 2), S(4))),
    ),
    PLACE: (
        ("0 < {} < 1", (Rational(1, 50), Rational(1, 2), Rational(9, 10))),
        ("1/4 <= {} <= 1/2", (Rational(1, 4), Rational(1, 3), Rational(1, 2))),
    ),
}
WEIGHTS = (
    ("{} > 0", (Rational(1, 100), S.One, S(30))),
    ("{} >= 0", (S.Zero, S.One, S(30))),
    ("1 <= {} < 2", (S.One, Rational(3, 2))),
)
CONSTANTS = {POWER: Rational(3, 10), LARGE: Rational(5, 2), SCALE: S(2), PLACE: Rational(1, 3)}


@dataclass(frozen=True)
class Family:
    """An h with parameters, their ranges, and members at some of their values with what is known of them."""

    h: Expr
    params: Mapping[str, str]
    members: tuple[tuple[Mapping[str, Expr], Known], ...]

    @property
    def text(self) -> str:
        return f"{self.h}, {dict(self.params)}"


@st.composite
def lines(draw: st.DrawFn) -> Known:
    """A line of a table, with its constants."""
    if draw(st.integers(0, 2)):
        return draw(st.sampled_from(ATOMS + HILLS))
    function, top = draw(st.sampled_from([line for line in SCALARS if line[1] is None]))
    return regular(function.subs(x, PLACE + SCALE * t))


@st.composite
def families(draw: st.DrawFn) -> Family:
    """One line, or a parameter times one line and another, with symbols for some of the constants."""
    params: dict[str, str] = {}
    members: list[tuple[dict[str, Expr], Known | None]] = [({}, None)] * 3
    h = S.Zero
    for place in range(draw(st.integers(1, 2))):
        line = draw(lines())
        constants = sorted(line.h.free_symbols & set(RANGES), key=str)
        free = [constant for constant in constants if draw(st.booleans()) or not place]
        values = [dict(CONSTANTS) for _ in members]
        names: dict[Expr, Expr] = dict(CONSTANTS)
        weights = [S.One] * len(members)
        for constant in free:
            name, (span, some) = f"{constant}{place}", draw(st.sampled_from(RANGES[constant]))
            names[constant], params[name] = sympy.Symbol(name), span.format(name)
            for k, own in enumerate(values):
                own[constant] = some[k % len(some)]
                members[k] = ({**members[k][0], name: own[constant]}, members[k][1])
        weight: Expr = S.One
        if draw(st.booleans()) or not params:
            name, (span, some) = f"w{place}", draw(st.sampled_from(WEIGHTS if place else WEIGHTS[::2]))
            weight, params[name] = sympy.Symbol(name), span.format(name)
            weights = [some[k % len(some)] for k in range(len(members))]
            members = [({**bound, name: w}, known) for (bound, known), w in zip(members, weights, strict=True)]
        h += weight * line.h.subs(names)
        parts = [chosen(line, own) for own in values]
        for k, (part, w) in enumerate(zip(parts, weights, strict=True)):
            bound, known = members[k]
            if w != 0:
                known = weighted(w, part) if known is None else mixed(known, weighted(w, part))
            members[k] = (bound, known)
    return Family(h, params, tuple((bound, known) for bound, known in members if known is not None))


class Member:
    """What a family says of its member: facts with values put in; what it leaves open is taken from the truth."""

    def __init__(self, reg: Any, values: Mapping[str, Expr], known: Known) -> None:
        self.reg, self.known, self.variable = reg, known, reg.variable
        self.values = {sympy.Symbol(name): value for name, value in values.items()}
        self.h, self.dh = self.put(reg.h), self.put(reg.dh)

    def put(self, value: Any) -> Any:
        if not isinstance(value, Expr):
            return value
        plain = {
            s: self.values[sympy.Symbol(s.name)] for s in value.free_symbols if sympy.Symbol(s.name) in self.values
        }
        return value.subs(plain)

    def fact(self, name: str) -> Fact | None:
        """None also at a closed end of a range where the formula has no value but tends to the right one."""
        fact = self.reg.fact(name)
        value = None if fact is None else self.put(fact.value)
        without = value is None or str(value) in ("nan", "zoo")
        return None if fact is None or without else replace(fact, value=value)

    def told(self, name: str, truth: Any) -> Any:
        fact = self.fact(name)
        return truth if fact is None else fact.value

    @property
    def margin(self) -> Any:
        return self.told("margin", self.known.margin)

    @property
    def sparsity(self) -> Any:
        return self.told("sparsity", self.known.sparsity)

    @property
    def essentially_smooth(self) -> Any:
        return self.told("essentially_smooth", self.known.sparsity == "dense")

    @property
    def slopes(self) -> tuple[Any, Any]:
        low, high = (self.told(f"slope_at_{end}", self.known.normalised_slopes[end]) for end in (0, 1))
        return low, high

    @property
    def strong_concavity(self) -> Any:
        return self.told("strong_concavity", None)

    @property
    def smoothness(self) -> Any:
        strong = self.strong_concavity
        return self.told("smoothness", None if strong is None else sympy.oo if strong == 0 else 1 / strong)

    @property
    def twice_differentiable(self) -> Any:
        return self.told("twice_differentiable", False)


def judge(family: Family) -> tuple[str, list[str]]:
    """How a family fares, and what is wrong with what is said of it."""
    try:
        reg = fysym.compile(str(family.h), params=dict(family.params), deadline=DEADLINE)
    except fysym.UndecidedError as error:
        return "undecided", [f"internal: {error}"] if "could not be analysed" in str(error) else []
    except fysym.FysymError as error:
        return "refused", [f"a concave family is refused: {error}"]
    wrong = [
        f"at {dict(values)}: {what}"
        for values, known in family.members
        for what in wrong_facts(known, Member(reg, values, known))
    ]
    known_members = [known for _, known in family.members]
    same = len({known.sparsity for known in known_members}) == 1
    status = reg.fact("strictly_concave").status
    answered = (reg.margin is not None and reg.sparsity is not None) or not same
    return status if answered else f"{status}, margin open", wrong


def drawn(number: int) -> Family:
    """The family that a number stands for."""
    found: list[Family] = []

    @seed(number)
    @settings(
        deadline=None, database=None, suppress_health_check=list(HealthCheck), max_examples=2, phases=[Phase.generate]
    )
    @given(families())
    def run(family: Family) -> None:
        found.append(family)

    run()
    return found[-1]


@pytest.mark.parametrize("chunk", range(FAMILIES // CHUNK))
def test_random_families(chunk: int) -> None:
    tally: Counter[str] = Counter()
    for number in range(SPREAD * chunk, SPREAD * chunk + CHUNK):
        family = drawn(number)
        verdict, wrong = judge(family)
        tally[verdict] += 1
        assert not wrong, "\n    ".join([f"{number}: {family.text}", *wrong])
    assert tally["undecided"] <= 3, tally


def main() -> int:
    """Check as many as asked for; 1 when something is wrong or a promise is broken."""
    parser = argparse.ArgumentParser(prog="python -m tests.test_random_families", description=__doc__)
    parser.add_argument("--count", type=int, default=FAMILIES)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--verbose", action="store_true", help="print each that is undecided or has no margin")
    options = parser.parse_args()
    tally: Counter[str] = Counter()
    failed = 0
    for number in range(10**6 * (options.seed + 1), 10**6 * (options.seed + 1) + options.count):
        family = drawn(number)
        verdict, wrong = judge(family)
        tally[verdict] += 1
        failed += bool(wrong)
        if wrong:
            print("WRONG", number, family.text, *wrong, sep="\n    ", flush=True)
        elif options.verbose and verdict not in ("proved", "certified"):
            print(verdict, number, family.text, flush=True)
    print(f"{failed} wrong;", ", ".join(f"{n} {verdict}" for verdict, n in tally.most_common()))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
