"""Reports: the same facts, in words."""

import html.parser
import pathlib
import re
import shutil
import subprocess

import pytest
import sympy

import fysym
from fysym.render import escape_latex
from fysym.report import TITLES


def test_one_line() -> None:
    text = repr(fysym.catalog.gini)
    assert "\n" not in text
    for words in ("gini", "t*(1 - t)/2", "margin 1", "full", "proved"):
        assert words in text


def test_the_affine_term_is_mentioned() -> None:
    text = " ".join(fysym.compile("log(1 + t)").report().split())
    assert "t*log(2) was subtracted" in text
    assert "does not change the loss" in text


def test_an_unbounded_end_is_mentioned() -> None:
    assert "the loss is +inf for labels that put 0 on a class" in fysym.compile("log(t)").report()


def test_sampled_is_shown_everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fysym.certify.available", lambda: False)
    reg = fysym.compile("-gamma(t + 1)")
    assert reg.fact("strictly_concave").status == "sampled"
    assert "[sampled]" in reg.report()
    assert "sampled" in repr(reg)
    assert "strictly concave: yes [sampled]" in reg.source()
    assert reg.fact("margin").status == "sampled"


def test_a_family_says_what_is_undetermined() -> None:
    text = fysym.catalog.tsallis.report()
    assert "parameter alpha: alpha > 1" in text
    assert "undetermined over alpha > 1" in text
    assert "bind" in text


def test_every_fact_of_the_contract_is_reported() -> None:
    text = fysym.catalog.gini.report()
    for title in ("strictly concave", "h'(0+)", "h'(1-)", "margin", "sparsity", "strong concavity", "smoothness"):
        assert f"\n  {title}: " in text


# Other forms of the same document

FORMS = ("text", "markdown", "latex", "html")
EVIL = "<script>alert('x')</script> \\input{x} $^_%#&~| `*[a](b)"
PREAMBLE = "\\documentclass{article}\n\\usepackage{amsmath}\n\\begin{document}\n"
# Every control sequence that a report may use.
WORDS = r"""
    \[ \] \begin \end \item \paragraph \emph \text \setlength \leftmargin \itemsep \hspace \inf \bigl \bigr \infty
    \left \right \frac \sqrt \pi \log \sin \cos \operatorname \alpha \beta \max \theta \tau \hat \sum \qquad \to \ge \le
    \_ \{ \} \% \# \& \$ \textbackslash \textasciitilde \textasciicircum \textbar \mathrm \atan \,"""
KNOWN = set(WORDS.split())


def strict_parse(source: str) -> None:
    """What pdflatex would stop at: unbalanced groups, brackets and environments, stray signs, unknown commands."""
    source = re.sub(r"^%.*$", "", source, flags=re.M)
    assert source.isascii()
    stack: list[str] = []
    for sign in re.findall(r"\\[A-Za-z]+|\\.|[{}$_^&#~%]|\n\n", source):
        math = "$" in stack or r"\[" in stack
        if sign in ("{", r"\[", r"\left"):
            stack.append(sign)
        elif sign in ("}", r"\]", r"\right"):
            assert stack.pop() == {"}": "{", r"\]": r"\[", r"\right": r"\left"}[sign]
        elif sign == "$":
            stack.pop() if stack[-1:] == ["$"] else stack.append(sign)
        elif sign in ("_", "^"):
            assert math, "a script outside of a formula"
        elif sign == "\n\n":
            assert not math, "an empty line inside a formula"
        else:
            assert sign in KNOWN, sign
    assert not stack
    environments: list[str] = []
    for word, name in re.findall(r"\\(begin|end)\{(\w+)\}", source):
        if word == "begin":
            environments.append(name)
        else:
            assert environments.pop() == name
    assert not environments


def compile_latex(source: str, folder: pathlib.Path) -> None:
    (folder / "report.tex").write_text(PREAMBLE + source + "\\end{document}\n")
    command = ["pdflatex", "-halt-on-error", "-interaction=nonstopmode", "report.tex"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, errors="replace", check=False)
    assert done.returncode == 0, done.stdout[-2000:]


def odd() -> fysym.Regularizer:
    """An entropy whose name and symbols are hostile."""
    x, a = sympy.Symbol("<b>x_%</b>"), sympy.Symbol("a&\\b{")
    return fysym.compile((a + 3) * x * (1 - x), params={"a&\\b{": (0, 1)}, name=EVIL)


def test_every_form_has_every_fact() -> None:
    reg = fysym.catalog.gini
    for form in FORMS:
        lowered = reg.report(format=form).lower()
        for title in TITLES.values():
            assert title in lowered or title.startswith("h'("), (form, title)
        assert "proved" in lowered
        assert "both slopes are finite" in lowered
    with pytest.raises(fysym.InputError, match="markdown"):
        reg.report(format="word")


@pytest.mark.parametrize("name", list(fysym.catalog))
def test_latex_of_the_catalog_is_well_formed(name: str) -> None:
    strict_parse(fysym.catalog[name].report(format="latex"))


@pytest.mark.skipif(not shutil.which("pdflatex"), reason="there is no pdflatex; the strict parse has to do")
def test_latex_of_the_catalog_compiles(tmp_path: pathlib.Path) -> None:
    reports = [fysym.catalog[name].report(format="latex") for name in fysym.catalog]
    compile_latex("\n\\clearpage\n".join([*reports, escape_latex(EVIL)]), tmp_path)


@pytest.mark.parametrize(
    "bad", ["$a", "{a", r"\[ a $", "a_1", "$x$ $", r"\begin{list} \end{itemize}", r"\nosuch", "a % b", r"$\left( a$"]
)
def test_the_strict_parse_is_strict(bad: str) -> None:
    with pytest.raises((AssertionError, IndexError)):
        strict_parse(bad)


def test_latex_is_a_derivation() -> None:
    text = fysym.catalog.tsallis.bind(alpha=1.5).report(format="latex")
    assert r"h'(0^+) - h'(1^-) = 2" in text
    assert r"\hat y_j(\theta) = q(\theta_j - \tau)" in text
    family = fysym.catalog.tsallis.report(format="latex")
    assert r"$\alpha > 1$" in family
    assert r"h'(0^+) - h'(1^-) = \frac{1}{\alpha - 1}" in family


def test_a_proof_says_what_its_symbols_are() -> None:
    text = fysym.catalog.kaniadakis.report()
    assert "with k = b_k/(b_k + 1), b_k > 0" in text


def test_what_a_user_typed_is_escaped() -> None:
    reg = odd()
    html = reg.report(format="html")
    assert "<script" not in html and "<b>" not in html
    assert "&lt;script&gt;" in html
    assert "<script" not in reg.report(format="markdown")
    latex = reg.report(format="latex")
    assert r"\input" not in latex and r"\textbackslash{}input" in latex
    strict_parse(latex.replace("'", ""))


class Balanced(html.parser.HTMLParser):
    """Every element that is opened is closed."""

    def __init__(self) -> None:
        super().__init__()
        self.stack: list[str] = []
        self.seen: set[str] = set()

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.seen.add(tag)
        if tag not in ("img", "br"):
            self.stack.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.stack.pop() == tag


@pytest.mark.parametrize("name", ["gini", "tsallis", "shannon_gini"])
def test_the_card_of_a_notebook(name: str) -> None:
    card = fysym.catalog[name]._repr_mimebundle_()
    assert list(card) == ["text/plain", "text/latex", "text/html"]
    assert card["text/plain"] == repr(fysym.catalog[name])
    assert "margin" in card["text/html"].lower()
    page = Balanced()
    page.feed(card["text/html"])
    assert page.stack == []
    assert {"math", "table", "details"} <= page.seen
    assert not {"script", "style"} & page.seen


def test_the_card_of_a_hostile_entropy_is_only_words() -> None:
    page = Balanced()
    page.feed(odd()._repr_mimebundle_()["text/html"])
    assert page.stack == []
    assert not {"script", "b"} & page.seen


def test_kernels_that_cannot_run_are_not_claimed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fysym.fast.installed", lambda: False)
    assert "compiled kernels: none, as Numba is not installed" in " ".join(fysym.catalog.gini.report().split())
