"""Rebuild the gallery: run each story, keep its picture and what it prints, and write README.md.

python -m gallery [--quick] [-o FOLDER]
"""

import argparse
import contextlib
import importlib
import inspect
import io
import sys
from pathlib import Path

import fysym

HERE = Path(__file__).parent
# In the order of the page; stories that are not named here come last.
FIRST = ["your_own", "why_margin", "sixteen_entropies", "margins", "sparse_attention", "ecology", "paper_figures"]


def stories() -> list[str]:
    """The names of the scripts."""
    found = sorted(path.stem for path in HERE.glob("*.py") if not path.stem.startswith("_"))
    return sorted(found, key=lambda name: FIRST.index(name) if name in FIRST else len(FIRST))


def run(name: str, out: Path, quick: bool) -> str:
    """Run one story into the folder, and return its part of the page."""
    module = importlib.import_module(f"gallery.{name}")
    printed = io.StringIO()
    options = {"quick": quick} if "quick" in inspect.signature(module.main).parameters else {}
    with contextlib.redirect_stdout(printed):
        figures = module.main(**options)
    figures = figures if isinstance(figures, dict) else {} if figures is None else {name: figures}
    (out / "pictures").mkdir(parents=True, exist_ok=True)
    for title, figure in figures.items():
        fysym.plot.save(figure, out / "pictures" / f"{title}.png")
    return section(name, module.__doc__ or name, list(figures), printed.getvalue())


def section(name: str, words: str, pictures: list[str], printed: str) -> str:
    """The part of the page for one story."""
    title, _, learnt = words.strip().partition("\n")
    parts = [f"## {title.rstrip('.')}", learnt.strip()]
    parts += [f"![{title.rstrip('.')}](pictures/{picture}.png)" for picture in pictures]
    parts += [f"```text\n{printed.rstrip()}\n```"] if printed.strip() else []
    return "\n\n".join([part for part in parts if part] + [f"The script: [{name}.py]({name}.py)"])


def page(sections: list[str]) -> str:
    """The whole of README.md."""
    opening = "# Gallery\n\nMade by `python -m gallery`; each story is one script of less than 60 lines."
    more = []
    for path in sorted(HERE.glob("*/README.md")):
        title = path.read_text().lstrip("# ").partition("\n")[0]
        more.append(f"- [{title}]({path.parent.name}/README.md)")
    return "\n\n".join([opening, *sections, *(["## More", "\n".join(more)] if more else [])]) + "\n"


def progress(done: int, of: int, name: str) -> None:
    """One line on stderr: rewritten in place on a terminal, else a line for each story."""
    bar = "#" * (20 * done // of)
    end = "" if sys.stderr.isatty() and done < of else "\n"
    start = "\r\x1b[K" if sys.stderr.isatty() else ""
    print(f"{start}[{bar:20}] {done}/{of} {name}", end=end, file=sys.stderr, flush=True)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m gallery", description="Rebuild the gallery.")
    parser.add_argument("--quick", action="store_true", help="little of everything, to see that all of it runs")
    parser.add_argument("-o", "--output", type=Path, help="where to write (here; with --quick, nowhere unless told)")
    options = parser.parse_args(arguments)
    names = stories()
    with contextlib.ExitStack() as stack:
        out = options.output
        if out is None and options.quick:
            import tempfile

            out = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        out = out or HERE
        sections = []
        for done, name in enumerate(names):
            progress(done, len(names), name)
            sections.append(run(name, out, options.quick))
        (out / "README.md").write_text(page(sections))
        progress(len(names), len(names), "done")


if __name__ == "__main__":
    main()
