"""One document, four forms: text, Markdown, LaTeX and HTML.

A document is a list of sections; what stands in them are formulas, claims, sentences and proofs. Whatever a user typed
is escaped here, and nowhere else.
"""

from __future__ import annotations

import html as escaping
import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import sympy


@dataclass(frozen=True)
class Formula:
    """left = value, such as h''(t) = -1; `left` in plain text."""

    left: str
    value: sympy.Expr


@dataclass(frozen=True)
class Claim:
    """A fact, or why it is undetermined (then `status` is None and `value` unused)."""

    name: str
    title: str
    value: Any
    status: str | None
    evidence: str


@dataclass(frozen=True)
class Sentence:
    """Words and expressions; `latex` is how a mathematician writes it, where that differs."""

    parts: tuple[str | sympy.Basic, ...]
    latex: str = ""


@dataclass(frozen=True)
class Argument:
    """A proof: a tree of steps."""

    proof: Any


Item = Formula | Claim | Sentence | Argument


@dataclass(frozen=True)
class Section:
    title: str
    items: list[Item] = field(default_factory=list)


@dataclass(frozen=True)
class Document:
    title: str
    sections: list[Section]


def render(document: Document, form: str) -> str:
    """The document in one of FORMS."""
    return FORMS[form](document)


# Text


def text(document: Document) -> str:
    out: list[str] = []
    for place, section in enumerate(document.sections):
        out += ([""] if place else []) + [document.title if place == 0 else section.title]
        width = max((len(item.left) for item in section.items if isinstance(item, Formula)), default=0)
        for item in section.items:
            if isinstance(item, Formula):
                out.append(f"  {item.left:{width}} = {item.value}")
            elif isinstance(item, Sentence):
                out += _wrap("".join(map(str, item.parts)))
            elif isinstance(item, Argument):
                out += [str(step) for step in item.proof.lines(1)]
            elif item.status is None:
                out += _wrap(f"{item.title}: {item.evidence}")
            else:
                out += _wrap(f"{item.title}: {plain(item)}  [{item.status}] {item.evidence}")
    return "\n".join(out)


def plain(claim: Claim) -> str:
    """The value of a claim in words."""
    value = claim.value
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None:
        return "no closed form"
    return "none" if claim.title == "margin" and value.is_infinite else str(value)


def _wrap(sentence: str) -> list[str]:
    return textwrap.wrap(sentence, 110, initial_indent="  ", subsequent_indent="      ", break_long_words=False)


# Markdown


def markdown(document: Document) -> str:
    out: list[str] = []
    for place, section in enumerate(document.sections):
        out += [f"## {_md(document.title)}" if place == 0 else f"### {_md(section.title)}", ""]
        claims = [item for item in section.items if isinstance(item, Claim)]
        if claims:
            out += ["| fact | value | status | how it is known |", "|---|---|---|---|"]
            out += [_md_row(claim) for claim in claims] + [""]
        for item in section.items:
            if isinstance(item, Formula):
                out += [f"$${_left(item.left)} = {latex_of(item.value)}$$", ""]
            elif isinstance(item, Sentence):
                out += ["".join(_md(p) if isinstance(p, str) else f"${latex_of(p)}$" for p in item.parts), ""]
            elif isinstance(item, Argument):
                out += ["```text", *item.proof.lines(0), "```", ""]
    return "\n".join(out)


def _md_row(claim: Claim) -> str:
    value = f"${latex_of(claim.value)}$" if _is_math(claim) else plain(claim) if claim.status else ""
    cells = (claim.title, value.replace("|", r"\vert "), claim.status or "undetermined", claim.evidence)
    return "| " + " | ".join([_md(cells[0]), cells[1], *(_md(cell) for cell in cells[2:])]) + " |"


def _md(words: str) -> str:
    """Words without a meaning in Markdown, or in the HTML that it passes on."""
    return re.sub(r"([\\`*_{}\[\]#|$~])", r"\\\1", escaping.escape(words, quote=False))


# LaTeX

LEFT = {
    "slope_at_-oo": r"h'(-\infty) = ",
    "slope_at_0": r"h'(0^+) = ",
    "slope_at_1": r"h'(1^-) = ",
    "slope_at_oo": r"h'(\infty) = ",
    "margin": r"h'(0^+) - h'(1^-) = ",
    "strong_concavity": r"\inf_{0 < t < 1} -h''(t) = ",
    "smoothness": r"\bigl(\inf_{0 < t < 1} -h''(t)\bigr)^{-1} = ",
    "inverse": r"(-h')^{-1}(s) = ",
}
SPECIAL = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "|": r"\textbar{}"}
GREEK = "alpha|beta|gamma|delta|eps|eta|kappa|lam|mu|nu|omega|phi|pi|psi|rho|sigma|tau|theta|xi|zeta"
H = r"-?h'*\((?:[^()]|\([^()]*\))*\)|(?<![A-Za-z])-?h(?:'+|(?![A-Za-z']))"
ATOM = rf"(?:\(-h'\)\^\{{-1\}}|q\(-h'\(t\)\)|-h'\(q\(s\)\)|{H}|-?\boo\b|\b[01][+-](?![\w.])"
ATOM += rf"|-?\b\d+(?:\.\d+)?(?:/\d+)?\b|\b(?:[A-Za-z]|{GREEK})\b)"
RELATION = r" ?(?:->|>=|<=|<|>|=) ?"
# Formulas inside a sentence: atoms joined by relations, or what is about h, alone.
PIECE = re.compile(rf"{ATOM}(?:{RELATION}{ATOM})+|\(-h'\)\^\{{-1\}}|{H}|-?\boo\b")
SIGNS = {"->": r"\to", ">=": r"\ge", "<=": r"\le", "oo": r"\infty", "**": "^", "*": r"\,"}


def latex(document: Document) -> str:
    out = ["% Made by fysym. Needs \\usepackage{amsmath}."]
    for place, section in enumerate(document.sections):
        out += ["", rf"\paragraph{{{escape_latex(document.title if place == 0 else section.title)}.}}"]
        claims = False
        for item in section.items:
            if isinstance(item, Claim) != claims:
                out.append(rf"\{'end' if claims else 'begin'}{{itemize}}")
                claims = not claims
            out += _latex_item(item)
        out += [r"\end{itemize}"] if claims else []
    return "\n".join(out) + "\n"


def _latex_item(item: Item) -> Iterator[str]:
    if isinstance(item, Formula):
        yield rf"\[ {_left(item.left)} = {latex_of(item.value)} \]"
    elif isinstance(item, Sentence):
        words = (prose(part) if isinstance(part, str) else f"${latex_of(part)}$" for part in item.parts)
        yield item.latex or _sentence(_capital("".join(words)))
    elif isinstance(item, Argument):
        yield r"\begin{list}{}{\setlength{\leftmargin}{1em}\setlength{\itemsep}{0pt}}"
        yield from _latex_steps(item.proof, 0)
        yield r"\end{list}"
    elif item.status is None:
        yield rf"\item {prose(_capital(item.title))}: {prose(item.evidence)}."
    else:
        shown = f"${LEFT.get(item.name, '')}{latex_of(item.value)}$" if _is_math(item) else prose(plain(item))
        title = "" if item.name.startswith("slope") else prose(_capital(item.title)) + ": "
        yield rf"\item {title}{shown} (\emph{{{item.status}}}: {prose(item.evidence)})."


def _latex_steps(proof: Any, depth: int) -> Iterator[str]:
    """The steps of a proof, without those that say that a number or a parameter is positive."""
    children: Any = getattr(proof, "children", ())
    if getattr(proof, "rule", "") == "rewritten" and len(children) == 1 and not proof.note:
        proof, children = children[0], getattr(children[0], "children", ())
    relation = {(1, True): "> 0", (-1, True): "< 0", (1, False): r"\ge 0", (-1, False): r"\le 0"}
    why = getattr(proof, "rule", None) or proof.evidence
    note = getattr(proof, "note", "")
    shift = rf"\hspace*{{{depth}em}}" if depth else ""
    words = prose(why + (f", {note}" if note else ""))
    yield rf"\item {shift}${latex_of(proof.expr)} {relation[proof.sign, proof.strict]}$: {words}."
    for child in children:
        if not child.expr.is_number and not child.expr.is_Symbol:
            yield from _latex_steps(child, depth + 1)


def latex_of(value: sympy.Basic) -> str:
    """An expression in LaTeX; odd names of symbols are spelled out as text."""
    odd = {s: rf"\text{{{escape_latex(s.name)}}}" for s in value.free_symbols if not _is_plain(s)}
    return str(sympy.latex(value, symbol_names=odd))


def prose(words: str) -> str:
    """Words as LaTeX text, with the formulas that are recognised in them as math."""
    out, end = [], 0
    for found in PIECE.finditer(words):
        out.append(escape_latex(words[end : found.start()]))
        out.append(f"${_math(found[0])}$")
        end = found.end()
    return "".join([*out, escape_latex(words[end:])])


def _math(piece: str) -> str:
    if not piece.isascii() or re.search(r"[\\&%$#_~]", piece):
        return rf"\text{{{escape_latex(piece)}}}"
    piece = re.sub(r"\b([01])([+-])(?!\s*[\w.])", r"\1^\2", piece)
    piece = re.sub(r"->|>=|<=|\*\*|\*|\boo\b", lambda sign: SIGNS[sign[0]] + " ", piece)
    return re.sub(r"(?<!\\)\b[A-Za-z]{2,}\b", _word, piece).strip()


def _word(found: re.Match[str]) -> str:
    spelled = {"lam": "lambda", "eps": "epsilon"}.get(found[0], found[0])
    return rf"\{spelled}" if re.fullmatch(GREEK, found[0]) else rf"\mathrm{{{found[0]}}}"


def escape_latex(words: str) -> str:
    """Words without a meaning in LaTeX."""
    kept = (c if c.isascii() else "?" for c in words)
    return "".join(SPECIAL.get(c, "\\" + c if c in "&%$#_{}" else f"${c}$" if c in "<>" else c) for c in kept)


def _left(left: str) -> str:
    """h, h' or h'' of its variable, which may have an odd name."""
    name, bracket, variable = left.partition("(")
    if not bracket:
        return name.strip()
    return f"{name}({latex_of(sympy.Symbol(variable.removesuffix(')')))})"


def _is_plain(symbol: sympy.Basic) -> bool:
    return re.fullmatch(r"[A-Za-z][A-Za-z0-9]*(_[A-Za-z0-9]+)*", getattr(symbol, "name", "")) is not None


def _capital(words: str) -> str:
    return words if words.startswith("h'") else words[:1].upper() + words[1:]


def _sentence(words: str) -> str:
    return words if words.endswith(".") else words + "."


def _is_math(claim: Claim) -> bool:
    """Whether the value of a claim is shown as a formula rather than in words."""
    return isinstance(claim.value, sympy.Basic) and claim.status is not None and plain(claim) != "none"


# HTML

INK = {"proved": "#1b6e3c", "certified": "#1b6e3c", "sampled": "#8a5a00", "refuted": "#a3211b", None: "#666666"}
MARK = {"proved": "&#10003;", "certified": "&#10003;", "sampled": "&#8776;", "refuted": "&#10007;", None: "?"}
CELL = "padding:2px 10px 2px 0;vertical-align:top;text-align:left"
BOX = "font-family:system-ui,sans-serif;font-size:14px;line-height:1.45;max-width:60em"


def html(document: Document, picture: str = "") -> str:
    """One <div> with its own styles; `picture` is HTML that stands below the title."""
    out = [f'<div class="fysym" style="{BOX}">']
    for place, section in enumerate(document.sections):
        title = document.title if place == 0 else section.title
        claims = [item for item in section.items if isinstance(item, Claim)]
        others = [item for item in section.items if not isinstance(item, Claim)]
        folded = any(isinstance(item, Argument) for item in others)
        head = f"<strong>{escaping.escape(title)}</strong>"
        out.append(f"<details><summary>{head}</summary>" if folded else f'<div style="margin-top:8px">{head}</div>')
        out += [_html_item(item) for item in others]
        if claims:
            rows = "".join(_html_row(claim) for claim in claims)
            out.append(f'<table style="border-collapse:collapse;font-size:inherit">{rows}</table>')
        out += ["</details>"] if folded else []
        out += [picture] if place == 0 and picture else []
    return "\n".join([*out, "</div>"])


def _html_item(item: Item) -> str:
    if isinstance(item, Formula):
        left = escaping.escape(item.left.strip())
        return f'<div style="margin:2px 0 2px 1em"><i>{left}</i> = {html_of(item.value)}</div>'
    if isinstance(item, Argument):
        steps = escaping.escape("\n".join(item.proof.lines(0)))
        return f'<pre style="margin:2px 0 2px 1em;overflow-x:auto;font-size:12px">{steps}</pre>'
    assert isinstance(item, Sentence)
    words = "".join(escaping.escape(part) if isinstance(part, str) else html_of(part) for part in item.parts)
    return f'<div style="margin:2px 0 2px 1em">{words}</div>'


def _html_row(claim: Claim) -> str:
    value = html_of(claim.value) if _is_math(claim) else escaping.escape(plain(claim)) if claim.status else ""
    status = claim.status or "undetermined"
    badge = f'<span style="color:{INK[claim.status]};white-space:nowrap">{MARK[claim.status]} {status}</span>'
    title = f'<span style="white-space:nowrap">{escaping.escape(claim.title)}</span>'
    cells: Sequence[str] = (title, value, badge, escaping.escape(claim.evidence))
    return "<tr>" + "".join(f'<td style="{CELL}">{cell}</td>' for cell in cells) + "</tr>"


def html_of(value: sympy.Basic) -> str:
    """An expression as MathML, which browsers draw by themselves; with odd names, as code.

    SymPy's printer does not escape the names of symbols.
    """
    words = escaping.escape(str(value))
    if not all(_is_plain(symbol) for symbol in value.free_symbols):
        return f"<code>{words}</code>"
    try:
        inside = sympy.mathml(value, printer="presentation")
    except Exception:  # noqa: BLE001 (a printer that fails is not worth an error)
        return f"<code>{words}</code>"
    return f'<math title="{words}" displaystyle="true" style="font-size:1.1em">{inside}</math>'


FORMS = {"text": text, "markdown": markdown, "latex": latex, "html": html}
