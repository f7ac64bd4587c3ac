"""`python -m gallery.speed`: measure, print the tables, write the page and the picture."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

os.environ.setdefault("FYSYM_NUM_THREADS", "2")

from . import clock, composites, grid, page, promises, single


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m gallery.speed", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small arrays and few runs, to see that all of it runs")
    parser.add_argument(
        "--out", type=Path, help="where to write README.md and speed.png (default: here; --quick: nowhere)"
    )
    options = parser.parse_args(arguments)
    quick = options.quick
    out = options.out or (None if quick else Path(__file__).parent)
    machine = clock.machine()
    print(machine, end="\n\n", flush=True)
    tables = []

    def show(table: promises.Table) -> None:
        tables.append(table)
        print(page.plain(table), flush=True)

    times = grid.run_grid(quick)
    for make in (grid.table_softmax, grid.table_peers, grid.table_gradient):
        show(make(times))
    for part in (
        single.table_latency,
        single.table_doubling,
        single.table_memory,
        single.table_start,
        single.table_paper,
        composites.table_separable,
        composites.table_gradient_descent,
    ):
        show(part(quick))
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        drawn = page.draw(times, out / "speed.png")
        (out / "README.md").write_text(page.markdown(machine, tables, "speed.png" if drawn else None))
        clock.progress(f"wrote {out / 'README.md'}")


if __name__ == "__main__":
    main()
