"""One function for each command: parsed options in, an Answer out."""

from __future__ import annotations

import argparse
import difflib
import math
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..catalog import ALIASES, ENTRIES
from ..emit import TARGETS
from ..errors import FysymError, NotConcaveError, ParameterError, ParseError, UndecidedError
from . import COMMANDS, EXIT_UNDECIDED, exit_code

if TYPE_CHECKING:
    from ..regularizer import Regularizer


@dataclass
class Answer:
    """What a command found: in words, as data, and remarks that belong on stderr."""

    text: str
    data: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    code: int = 0
    painted: bool = False


def check(options: argparse.Namespace) -> Answer:
    reg = read(options.entropy, options)
    return Answer(reg.report(format=options.format), summary(reg), painted=options.format == "text")


def margin(options: argparse.Namespace) -> Answer:
    reg = read(options.entropy, options)
    fact = reg.fact("margin")
    if fact is None and not hasattr(reg, "h"):
        bound(reg)
    if fact is None:
        why = reg.derivation.theory.undetermined.get("margin", "the margin is undetermined")
        if inapplicable(reg, "margin"):
            raise FysymError(f"a margin is {why}")
        return Answer("", {"margin": None, "reason": why}, [why], EXIT_UNDECIDED)
    text = shown_fact(reg, "margin")
    notes = [fact.evidence] if text == "none" else []
    return Answer(text, {"margin": None if text == "none" else text, **as_data(fact)}, notes)


def emit(options: argparse.Namespace) -> Answer:
    target = options.target or ("c" if str(options.output).endswith(".c") else "numpy")
    if target not in TARGETS:
        close = difflib.get_close_matches(target, TARGETS, n=1)
        hint = f"did you mean {close[0]}?" if close else f"the targets are {', '.join(TARGETS)}"
        raise FysymError(f"there is no target {target!r}; {hint}")
    reg = bound(read(options.entropy, options))
    if target != "numpy" and hasattr(reg, "separable"):
        raise FysymError(f"there is no {target} code of {reg.name}, which is not a sum of h(t); use --target numpy")
    source = reg.source(target)
    data = {"target": target, "source": source}
    if options.output is None:
        return Answer(source.rstrip("\n"), data)
    write(options.output, lambda path: path.write_text(source))
    return Answer("", data, [f"wrote {options.output}, {source.count(chr(10))} lines"])


def plot(options: argparse.Namespace) -> Answer:
    from .. import plot as plots

    regs = read_all(options.entropies, options)
    for reg in regs:
        bound(reg)
    if options.triangle:
        figure = plots.simplex(*regs)
    else:
        figure = regs[0].plot() if len(regs) == 1 else plots.compare(*regs)
    write(options.output, lambda path: plots.save(figure, path))
    return Answer("", notes=[f"wrote {options.output}"])


def catalog(options: argparse.Namespace) -> Answer:
    wanted = ALIASES.get(options.name, options.name)
    if wanted is not None and wanted not in ENTRIES:
        raise FysymError(f"the catalog has no entropy called {options.name!r}; {_hint(options.name, ENTRIES)}")
    chosen = {name: entry for name, entry in ENTRIES.items() if wanted in (None, name)}
    rows = [["name", "h(t), or H", "parameters", "where it comes from"]]
    for name, entry in chosen.items():
        where = "" if entry.domain == "simplex" else f"; on the {entry.domain}"
        rows.append([name, entry.words, ", ".join(entry.params.values()), entry.reference + where])
    data = {
        name: {"h": entry.expression, "outer": entry.outer, "kind": entry.kind, "domain": entry.domain}
        | {"parameters": entry.params, "reference": entry.reference}
        for name, entry in chosen.items()
    }
    return Answer(table(rows), {"entropies": data})


def compare(options: argparse.Namespace) -> Answer:
    rows = [["entropy", "margin", "sparsity", "smoothness", *([] if options.no_speed else ["speed"])]]
    answer = Answer("", {"entropies": []})
    _refuse_unknown_values(options.entropies, options)
    for text in options.entropies:
        try:
            reg = read(text, options, loose=True)
        except FysymError as error:
            answer.notes.append(f"{text.strip()}: {error}")
            answer.code = answer.code or exit_code(error)
            verdict = {1: "refuted", 2: "not read", 3: "undecided"}[exit_code(error)]
            rows.append([text.strip(), verdict, *["-"] * (len(rows[0]) - 2)])
            answer.data["entropies"].append({"h": text.strip(), "verdict": verdict, **problem(error)})
            continue
        speed = {} if options.no_speed else _speed(reg)
        row = [_title(text.strip(), options), *(shown_fact(reg, name) for name in ("margin", "sparsity", "smoothness"))]
        rows.append([*row, *([] if options.no_speed else [speed["words"]])])
        answer.data["entropies"].append({**summary(reg), "speed": speed.get("microseconds")})
    answer.text = table(rows)
    if not options.no_speed:
        answer.notes.append("speed: for one prediction from 1000 scores, and against NumPy's softmax")
    return answer


def studio(options: argparse.Namespace) -> Answer:
    from . import launch

    return Answer("", code=launch.studio(options.entropy, options.port, not options.no_browser))


def completion(options: argparse.Namespace) -> Answer:
    from .completion import script

    return Answer(script(options.shell))


# Entropies


def read(text: str, options: argparse.Namespace, loose: bool = False) -> Regularizer:
    """The entropy of a name or an expression, with the ranges and values of the options.

    `loose` leaves out those of parameters that it does not have, which belong to another entropy.
    """
    text = text.strip()
    _refuse_words(text)
    from ..compiler import compile
    from ..parse import parse_expression

    text = ALIASES.get(text, text)
    entry = ENTRIES.get(text)
    present = _names(text) if loose else None
    params: dict[str, Any] = dict(entry.params) if entry else {}
    params.update({name: span for name, span in ranges(options) if name in (present or {name})})
    extra = domain_argument(options.domain if options.domain is not None or not entry else entry.domain)
    if getattr(options, "strict", False):
        extra["strict"] = True
    if entry and entry.kind != "separable":
        return _named(text, entry, params, options).bind(
            **{name: parse_expression(value) for name, value in assignments(options) if name in (present or {name})}
        )
    expression = entry.expression if entry else text
    reg = compile(expression, params=params, deadline=options.deadline, name=text if entry else None, **extra)
    values = {name: parse_expression(value) for name, value in assignments(options) if name in (present or {name})}
    return reg.bind(**values)


def _named(name: str, entry: Any, params: dict[str, Any], options: argparse.Namespace) -> Any:
    """A composite or polyhedral entropy of the catalog."""
    if options.domain not in (None, "simplex"):
        raise FysymError(f"{name} is defined on the simplex only; leave --domain out")
    if entry.kind == "polyhedral":
        from ..polyhedral import polyhedral

        if options.where:
            raise ParameterError(f"{name} has no parameters; leave --where out")
        return polyhedral(name)
    from ..composite import compile_composite

    return compile_composite(entry.outer, entry.expression, params=params, deadline=options.deadline, name=name)


def _names(text: str) -> set[str]:
    """The symbols of what was typed: those of the expression, or those of the entry of that name."""
    from ..parse import names_in

    text = ALIASES.get(text.strip(), text)
    entry = ENTRIES.get(text.strip())
    return {"t", *entry.params} if entry else set(names_in(text))


def read_all(texts: list[str], options: argparse.Namespace) -> list[Regularizer]:
    _refuse_unknown_values(texts, options)
    return [read(text, options, loose=len(texts) > 1) for text in texts]


def assignments(options: argparse.Namespace) -> list[tuple[str, str]]:
    """The values of --set."""
    found = []
    for item in options.set:
        name, equals, value = (part.strip() for part in item.partition("="))
        if not equals or not name.isidentifier() or not value:
            raise ParameterError(f"--set {item!r} is not NAME=VALUE; write for example --set alpha=1.5")
        found.append((name, value))
    _refuse_repeated("--set", [name for name, _ in found])
    return found


def ranges(options: argparse.Namespace) -> list[tuple[str, str]]:
    """The ranges of --where, after the names of their parameters."""
    from ..ranges import name_in_range

    found = [(name_in_range(span), span) for span in options.where]
    _refuse_repeated("--where", [name for name, _ in found])
    return found


def domain_argument(domain: str | None) -> dict[str, Any]:
    """The domain as the compiler takes it: a name, or budget(k)."""
    from ..domains import budget
    from ..parse import parse_expression

    if domain is None:
        return {}
    amount = re.fullmatch(r"budget\((.*)\)", domain.strip())
    try:
        return {"domain": budget(parse_expression(amount[1])) if amount else domain.strip()}
    except FysymError:
        raise ParameterError(f"{domain} is not a budget; write for example --domain 'budget(2)', or 1/2") from None


def bound(reg: Regularizer) -> Regularizer:
    """The same, unless parameters are free."""
    if reg.params:
        example = " ".join(f"--set {name}=..." for name in reg.params)
        ranges = "; ".join(reg.params.values())
        raise ParameterError(f"{reg.name or str(reg.h)} is a family: give {example}; ranges: {ranges}")
    return reg


def _refuse_words(text: str) -> None:
    """A single word that is not in the catalog is a slip: alone, it would be an affine h."""
    if re.fullmatch(r"[A-Za-z_][A-Za-z_0-9-]+", text) and text not in (*ENTRIES, *ALIASES):
        raise FysymError(
            f"{text!r} is neither a command, nor an entropy of the catalog, nor an expression in t; "
            + _hint(text, [*COMMANDS, *ENTRIES])
        )


def _refuse_repeated(option: str, names: list[str]) -> None:
    """A parameter that is given twice: it is not for us to choose."""
    for name in names:
        if names.count(name) > 1:
            raise ParameterError(f"{name} is given more than once; write one {option} for it")


def _refuse_unknown_values(texts: list[str], options: argparse.Namespace) -> None:
    """Values and ranges that no entropy has a use for."""
    present: set[str] = set().union(*map(_names, texts))
    for name, _ in [*assignments(options), *ranges(options)]:
        if name not in present:
            raise ParameterError(f"no entropy here has a parameter called {name}")


def _hint(text: str, known: Any) -> str:
    close = difflib.get_close_matches(text, known, n=3)
    return f"did you mean {' or '.join(close)}?" if close else "`fysym catalog` lists the names"


# Answers


def summary(reg: Regularizer) -> dict[str, Any]:
    """A regularizer as plain data."""
    if not hasattr(reg, "h"):
        facts = {fact.name: as_data(fact) for fact in reg.facts}
        return {"name": reg.name, "entropy": repr(reg), "parameters": reg.params, "facts": facts}
    program = reg.derivation.program
    return {
        "name": reg.name,
        "variable": str(reg.variable),
        "h": str(reg.h),
        "dh": str(reg.dh),
        "d2h": str(reg.d2h),
        "inverse": None if reg.inverse is None else str(reg.inverse),
        "parameters": reg.params,
        "facts": {fact.name: as_data(fact) for fact in reg.facts},
        "undetermined": dict(reg.derivation.theory.undetermined),
        "solver": None if program is None else program.solver,
    }


def as_data(fact: Any) -> dict[str, Any]:
    """A fact as plain data; `number` is there where the value is a number within the range of a double."""
    plain = fact.value is None or isinstance(fact.value, (bool, str))
    number = float(fact.value) if not plain and fact.value.is_number and fact.value.is_finite else math.inf
    return {
        "value": fact.value if plain else str(fact.value),
        "number": number if math.isfinite(number) else None,
        "status": fact.status,
        "evidence": fact.evidence,
    }


def problem(error: FysymError) -> dict[str, Any]:
    """An error as plain data."""
    data: dict[str, Any] = {"error": type(error).__name__, "message": str(error)}
    if isinstance(error, ParseError):
        data |= {"position": error.position}
    elif isinstance(error, NotConcaveError):
        parameters = {name: str(value) for name, value in error.parameters.items()}
        culprit = None if error.culprit is None else str(error.culprit)
        data |= {"witness": str(error.witness), "parameters": parameters, "culprit": culprit}
    elif isinstance(error, UndecidedError):
        ends = error.interval
        data |= {"interval": ends and [end if math.isfinite(end) else None for end in ends]}
    return data


def _title(text: str, options: argparse.Namespace) -> str:
    """What was typed, with the values that were set in it."""
    present = _names(text)
    return ", ".join([text, *(f"{name} = {value}" for name, value in assignments(options) if name in present)])


def shown_fact(reg: Regularizer, name: str) -> str:
    """A fact in a word or two."""
    value: Any = getattr(reg, name, "-")
    if value is None:
        return "not applicable" if inapplicable(reg, name) else "depends"
    return "none" if name == "margin" and value.is_infinite else str(value)


def inapplicable(reg: Regularizer, name: str) -> bool:
    """Whether a fact is about something that the domain does not have."""
    return hasattr(reg, "h") and reg.derivation.theory.undetermined.get(name, "").startswith("not applicable")


def table(rows: list[list[str]]) -> str:
    """Columns, each as wide as its widest entry."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows)


def write(output: str, by: Any) -> None:
    """Write a file, or say why it cannot be written."""
    try:
        by(Path(output))
    except OSError as error:
        raise FysymError(f"{output} cannot be written: {error.strerror or error}; give another -o FILE") from None


def _speed(reg: Regularizer) -> dict[str, Any]:
    from . import speed

    if reg.params:
        return {"words": f"set {', '.join(reg.params)} first"}
    return speed.measured(reg)
