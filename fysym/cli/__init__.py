"""The command line: `fysym "t*(1-t)/2"` prints the report of an entropy.

Nothing here imports SymPy before a command needs it, so that help, completion and the catalog answer at once.
"""

from __future__ import annotations

import argparse
import contextlib
import difflib
import json
import sys
from collections.abc import Sequence
from typing import Any

from ..emit import TARGETS
from ..errors import FysymError, NotConcaveError, UndecidedError
from .terminal import Spinner, UnwritableError, painted_report, remark, show

EXIT_REFUTED, EXIT_USAGE, EXIT_UNDECIDED, EXIT_INTERRUPTED = 1, 2, 3, 130
VERDICTS = {0: "accepted", EXIT_REFUTED: "refuted", EXIT_USAGE: "error", EXIT_UNDECIDED: "undecided"}

SHORT_OPTIONS = ("-h", "-o")
FORMATS = ("text", "markdown", "latex", "html")
SHELLS = ("bash", "zsh", "fish")

# For each command: what it does, and examples, all of which the tests run.
COMMANDS: dict[str, tuple[str, tuple[str, ...]]] = {
    "check": (
        "Is h strictly concave on (0, 1), and what follows? A bare expression means the same.",
        (
            'fysym "t*(1-t)/2"',
            "fysym check shannon",
            'fysym check "(t - t**alpha)/(alpha*(alpha - 1))" --where "alpha > 1" --set alpha=1.5',
            "fysym check gini --format latex",
            "fysym check gini --json",
        ),
    ),
    "margin": (
        "The margin of the loss: how far the right score must lead for the loss to be 0.",
        ("fysym margin gini", "fysym margin tsallis", "fysym margin tsallis --set alpha=1.5"),
    ),
    "emit": (
        "The code of the prediction and the loss, in one file.",
        ("fysym emit gini", "fysym emit gini --target c -o gini.c", "fysym emit tsallis --set alpha=1.5 -o entmax.py"),
    ),
    "plot": (
        "A picture: entropy, prediction and loss; several entropies side by side; or the triangle of three classes.",
        (
            "fysym plot gini -o gini.png",
            "fysym plot shannon gini -o both.svg",
            "fysym plot gini --triangle -o triangle.pdf",
        ),
    ),
    "catalog": ("The named entropies.", ("fysym catalog", "fysym catalog tsallis")),
    "compare": (
        "Margin, sparsity, smoothness and speed of several entropies side by side.",
        ("fysym compare shannon gini", 'fysym compare gini "sin(pi*t)/pi" --no-speed'),
    ),
    "studio": (
        "A page in the browser where one types an entropy and sees what follows; served to this machine only.",
        ("fysym studio", "fysym studio gini --no-browser"),
    ),
    "completion": (
        "The script that completes commands, options and names of entropies in a shell.",
        ("fysym completion bash", "fysym completion zsh", "fysym completion fish"),
    ),
}
OVERVIEW = ('fysym "t*(1-t)/2"', *(examples[-1] for _, examples in COMMANDS.values()))
EXITS = "exit codes: 0 accepted, 1 refuted, 2 bad usage or parse error, 3 undecided"


def build_parser() -> argparse.ArgumentParser:
    """The parser of the whole command line."""
    parser = argparse.ArgumentParser(
        prog="fysym",
        description="Write an entropy h(t); see what follows from it, and get the code of its loss.",
        epilog=_examples(OVERVIEW) + f"\n\n{EXITS}\nAn ENTROPY is an expression in t or a name of `fysym catalog`.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="store_true", help="print the version")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    made = {}
    for name, (words, examples) in COMMANDS.items():
        made[name] = commands.add_parser(
            name,
            help=words,
            description=words,
            epilog=_examples(examples) + f"\n\n{EXITS}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
    for name in ("check", "margin", "emit"):
        made[name].add_argument("entropy", metavar="ENTROPY", help='an expression such as "t*(1-t)/2", or a name')
    made["plot"].add_argument("entropies", nargs="+", metavar="ENTROPY", help="several are drawn together")
    made["compare"].add_argument("entropies", nargs="+", metavar="ENTROPY")
    made["catalog"].add_argument("name", nargs="?", metavar="NAME", help="only this one")
    made["studio"].add_argument("entropy", nargs="?", metavar="ENTROPY", help="what the page opens with")
    made["completion"].add_argument("shell", choices=SHELLS)
    for name in ("check", "margin", "emit", "plot", "compare"):
        _add_entropy_options(made[name])
    for name in ("check", "margin", "emit", "catalog", "compare"):
        made[name].add_argument("--json", action="store_true", help="the answer, also a refusal, as one JSON object")
    made["check"].add_argument("--format", choices=FORMATS, default="text", help="the form of the report")
    made["check"].add_argument("--strict", action="store_true", help="refuse what was only sampled")
    made["emit"].add_argument("--target", metavar="|".join(TARGETS), help="numpy, or c if FILE ends in .c")
    made["emit"].add_argument("-o", "--output", metavar="FILE", help="write there instead of to stdout")
    made["plot"].add_argument("-o", "--output", metavar="FILE", required=True, help="ends in .png, .svg or .pdf")
    made["plot"].add_argument("--triangle", action="store_true", help="predictions for three classes")
    made["compare"].add_argument("--no-speed", action="store_true", help="do not measure the speed")
    made["studio"].add_argument("--port", type=int, help="the port on 127.0.0.1; a free one unless told")
    made["studio"].add_argument("--no-browser", action="store_true", help="print the address, open nothing")
    return parser


def _add_entropy_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--where", action="append", default=[], metavar="RANGE", help='range of a parameter, such as "alpha > 1"')
    add("--set", action="append", default=[], metavar="NAME=VALUE", help="value of a parameter")
    add("--domain", metavar="DOMAIN", help="simplex (unless told otherwise), cube, orthant, reals or budget(k)")
    add("--deadline", type=float, default=10.0, metavar="SECONDS", help="for all symbolic work (10)")


def _examples(lines: Sequence[str]) -> str:
    return "examples:\n" + "\n".join(f"  {line}" for line in lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit code.

    >>> main(["margin", "gini"])
    1
    0
    """
    try:
        return answered(list(sys.argv[1:] if arguments is None else arguments))
    except UnwritableError as error:
        complain(str(error))
        return EXIT_USAGE


def answered(given: Sequence[str]) -> int:
    """Read a command line and run its command."""
    parser = build_parser()
    if not given:
        parser.print_help(sys.stderr)
        return EXIT_USAGE
    if given[0] not in COMMANDS and len(given) > 1 and given[0].isidentifier() and given[1][:1] != "-":
        close = difflib.get_close_matches(given[0], COMMANDS, n=1)
        complain(f"there is no command {given[0]!r}; " + (f"did you mean {close[0]}?" if close else "see fysym --help"))
        return EXIT_USAGE
    try:
        options = parser.parse_args(arranged(given))
    except SystemExit as stop:
        if not stop.code and sys.stdout is not None:
            show("", end="")  # help is written by now, unless it cannot be
        return int(stop.code or 0)
    if options.version:
        from .. import __version__

        show(f"fysym {__version__}")
        return 0
    return run(options)


def run(options: argparse.Namespace) -> int:
    """Run a parsed command: its answer to stdout, problems to stderr."""
    from . import commands

    as_json = getattr(options, "json", False)
    try:
        with contextlib.nullcontext() if options.command == "studio" else Spinner():
            answer = getattr(commands, options.command)(options)
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except FysymError as error:
        code = exit_code(error)
        if as_json:
            show(_json({"verdict": VERDICTS[code], **commands.problem(error)}))
        complain(str(error))
        return code
    for note in answer.notes:
        remark(note, "faint")
    if as_json:
        show(_json({"verdict": VERDICTS[answer.code], **answer.data}))
    elif answer.text:
        show(painted_report(answer.text, sys.stdout) if answer.painted else answer.text)
    return int(answer.code)


def exit_code(error: FysymError) -> int:
    """What kind of problem it is."""
    if isinstance(error, NotConcaveError):
        return EXIT_REFUTED
    return EXIT_UNDECIDED if isinstance(error, UndecidedError) else EXIT_USAGE


def complain(message: str) -> None:
    remark(message, "red")


def arranged(given: Sequence[str]) -> list[str]:
    """A command line as argparse reads it: a bare expression means check, and "-t*log(t)" is not an option.

    >>> arranged(["-t*log(t)"])
    ['check', ' -t*log(t)']
    """
    words = [f" {word}" if word[:1] == "-" != word[1:2] and word not in SHORT_OPTIONS else word for word in given]
    if words[0] in COMMANDS or words[0] in ("-h", "--help", "--version"):
        return words
    return ["check", *words]


def _json(data: dict[str, Any]) -> str:
    return json.dumps(data, indent=2, allow_nan=False)
