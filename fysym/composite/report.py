"""A composite entropy in words: one line, the derivation in four forms, and a notebook's card."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from .. import fast
from .. import render as rendering
from ..errors import InputError
from ..facts import Fact
from ..render import Claim, Document, Formula, Item, Section, Sentence
from ..report import picture, printable

if TYPE_CHECKING:
    from . import Composite

RULE = (
    r"\[ \hat y(\theta) = \hat y_v(\theta / w), \qquad w = F'(v(\hat y(\theta))), \]"
    "\nwhere $v$ is the sum inside, or minus it, whichever is concave, and $H = F(v)$."
)


def line(reg: Composite) -> str:
    """One line: the entropy, its margin and sparsity, and how its concavity is known."""
    name = f"{printable(reg.name)}: " if reg.name else ""
    what = f"<Composite {name}{reg.outer}, u = sum of {reg.inner}"
    if reg.params:
        return f"{what}, {'; '.join(reg.params.values())}>"
    concave = reg.fact("strictly_concave")
    assert concave is not None
    margin = "undetermined" if reg.margin is None else reg.margin
    return f"{what}; margin {margin}, {reg.sparsity or 'undetermined'}; concavity {concave.status}>"


def document(reg: Composite) -> Document:
    """The derivation: the entropy, each fact with its evidence, and what the code does."""
    entropy = Section("Entropy", [Formula("H", reg.outer), Formula("s(t)", reg.inner)])
    entropy.items.append(Sentence(("u is the sum of s over the probabilities",)))
    entropy.items.extend(Sentence((f"parameter {name}: {span}",)) for name, span in reg.params.items())
    rule = "that of v at theta / w, where w is the root of w = F'(v); v is the sum inside or minus it, and H = F(v)"
    prediction = Section("Prediction", [Sentence((rule,), RULE)])
    sections = [entropy]
    if reg.params:
        prediction.items.append(Sentence(("bind the parameters to get code: " + ", ".join(reg.params),)))
    else:
        sections.append(Section("Facts", claims(reg.facts)))
        program = reg.separable.derivation.program
        assert program is not None
        inside = f"v: {reg.separable.h} summed; its threshold: {program.solver}"
        compiled = f"compiled kernels: {fast.describe_composite(program)}"
        prediction.items.extend(Sentence((words,)) for words in (inside, compiled))
    title = f"Entropy{f' {printable(reg.name)}' if reg.name else ''}"
    return Document(title, [*sections, prediction])


def claims(facts: Iterable[Fact]) -> list[Item]:
    """Facts about H; that they are not about h is in their names."""
    return [Claim(f"H_{f.name}", f.name.replace("_", " "), f.value, f.status, f.evidence) for f in facts]


def render(reg: Composite, form: str) -> str:
    """The whole derivation as "text", "markdown", "latex" or "html"."""
    if form not in rendering.FORMS:
        raise InputError(f"there is no format {form!r}; the formats are {', '.join(rendering.FORMS)}")
    return rendering.render(document(reg), form)


def card(reg: Composite) -> dict[str, str]:
    """What a notebook shows."""
    found = document(reg)
    return {
        "text/plain": line(reg),
        "text/latex": rendering.latex(found),
        "text/html": rendering.html(found, picture(reg)),
    }
