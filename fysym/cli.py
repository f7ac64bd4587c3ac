"""The command line: `fysym "t*(1-t)/2"` prints the report of an entropy."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

EXIT_REFUTED, EXIT_USAGE, EXIT_UNDECIDED = 1, 2, 3


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit codes: 0 accepted, 1 refuted, 2 bad usage or parse error, 3 undecided."""
    parser = argparse.ArgumentParser(
        prog="fysym",
        description="Check an entropy h(t) on (0, 1) and print what follows from it.",
        epilog='example: fysym "(t - t**alpha)/(alpha*(alpha - 1))" --where "alpha > 1" --set alpha=1.5',
    )
    parser.add_argument("entropy", help='an expression in t, such as "t*(1-t)/2"')
    parser.add_argument("--where", action="append", default=[], metavar="RANGE", help='such as "alpha > 1"')
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="bind a parameter")
    parser.add_argument("--deadline", type=float, default=10.0, metavar="SECONDS")
    parser.add_argument("--source", action="store_true", help="print the NumPy module instead of the report")
    options = parser.parse_args(arguments)

    from . import compile, errors
    from .parse import parse_expression
    from .ranges import name_in_range

    try:
        params = {name_in_range(text): text for text in options.where}
        reg = compile(options.entropy, params=params, deadline=options.deadline)
        values = {}
        for item in options.set:
            name, _, value = item.partition("=")
            values[name.strip()] = parse_expression(value)
        reg = reg.bind(**values)
        _show(reg.source() if options.source else reg.report())
        return 0
    except errors.NotConcaveError as error:
        code, message = EXIT_REFUTED, str(error)
    except errors.UndecidedError as error:
        code, message = EXIT_UNDECIDED, str(error)
    except errors.FysymError as error:
        code, message = EXIT_USAGE, str(error)
    print(f"fysym: {message}", file=sys.stderr)
    return code


def _show(text: str) -> None:
    """Print; a reader that has seen enough, such as `head`, is no error."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        # Python flushes once more when it ends, into nothing
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    sys.exit(main())
