"""Tables as text and as a Markdown page, and the picture."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from .clock import geometric_mean, progress
from .grid import Times
from .promises import ENTROPIES, EXACT, TSALLIS, Table

WORDS = """# Speed

`python -m gallery.speed` measures this and writes this page (`--quick`: a small run that writes nothing).

Scores are N(0, 4), that is of variance 4, on the grid (n, d) = (4096, 10), (4096, 100), (1024, 1000), (128, 32000); two
threads. All contestants of a cell take turns in one process; each number is the best of its runs."""


def plain(table: Table) -> str:
    """A table in columns."""
    rows = [table.head, *table.rows]
    widths = [max(len(row[k]) for row in rows) for k in range(len(table.head))]
    body = [
        "  ".join(text.rjust(w) if k else text.ljust(w) for k, (text, w) in enumerate(zip(row, widths))) for row in rows
    ]
    return "\n".join([table.title, table.words, "", *body, ""])


def markdown(machine: str, tables: Sequence[Table], picture: str | None) -> str:
    parts = [WORDS, f"Machine: {machine}.", *([f"![ratios to torch.softmax]({picture})"] if picture else [])]
    for table in tables:
        lines = ["| " + " | ".join(text.replace("|", "/") for text in row) + " |" for row in (table.head, *table.rows)]
        lines.insert(1, "|" + "---|" * len(table.head))
        parts += [f"## {table.title}", table.words, "\n".join(lines)]
    return "\n\n".join(parts) + "\n"


def draw(times: Times, path: Path) -> bool:
    """Bars: predictions and peers as multiples of torch.softmax, with the worst cell and the promise."""
    try:
        import matplotlib
    except ImportError:
        progress("matplotlib is not installed: no picture")
        return False
    matplotlib.use("Agg")
    from matplotlib import pyplot

    bars = [(name, f"numba {name}", "tab:blue") for name in ENTROPIES]
    bars += [(f"{name}, NumPy target", f"numpy {name}", "tab:cyan") for name in TSALLIS]
    bars += [(f"entmax.{EXACT[name]}", f"exact {name}", "tab:orange") for name in EXACT]
    bars += [(f"entmax_bisect, {name}", f"bisect {name}", "tab:orange") for name in TSALLIS]
    bars += [(f"brentq loop, {name}", f"brentq {name}", "tab:red") for name in TSALLIS]
    found = [(label, times.ratios(key, "softmax"), color) for label, key, color in bars]
    found = [bar for bar in found if bar[1]][::-1]
    if not found:
        return False
    figure, axes = pyplot.subplots(figsize=(8, 0.32 * len(found) + 1), layout="constrained")
    for place, (label, ratios, color) in enumerate(found):
        axes.barh(place, geometric_mean(ratios), color=color)
        axes.plot([min(ratios), max(ratios)], [place, place], color="black", lw=0.8)
        if label in ENTROPIES:
            axes.plot(ENTROPIES[label][1], place, "|", color="tab:green", ms=14, mew=2)
    axes.set_yticks(range(len(found)), [label for label, _, _ in found])
    axes.set_xscale("log")
    axes.axvline(1.0, color="gray", lw=0.8)
    axes.set_xlabel(
        "time over torch.softmax: geometric mean over the grid, line: best to worst cell\ngreen: promised mean"
    )
    figure.savefig(path, dpi=110, metadata={"Software": None})
    pyplot.close(figure)
    return True
