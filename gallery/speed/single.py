"""One vector, doubled sizes, memory, the first call of a process, and the paper's figure."""

from __future__ import annotations

import functools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from . import peers
from .clock import best, progress
from .promises import ENTROPIES, Table, regularizers, targets

ROOT = Path(__file__).parents[2]


def table_latency(quick: bool) -> Table:
    from scipy import special

    progress("latency of one vector")
    x = np.random.default_rng(0).normal(0.0, 2.0, 10)
    target = targets()[0]
    runners: dict[str, Callable[[], Any]] = {"scipy": lambda: special.softmax(x)}
    for name, reg in regularizers().items():
        runners[name] = functools.partial(reg.predict, x, target=target)
    found = best(runners, 0.1 if quick else 5.0)
    table = Table(
        f"One vector of 10 scores ({target} target)",
        f"Microseconds a call; `scipy.special.softmax` takes {1e6 * found['scipy']:.1f}. Asked: at most 2 times that.",
        ["entropy", "microseconds", "over scipy.special.softmax"],
    )
    for name in ENTROPIES:
        table.rows.append([name, f"{1e6 * found[name]:.1f}", f"{found[name] / found['scipy']:.2f}"])
    return table


def table_doubling(quick: bool) -> Table:
    """Time when the number of rows or of classes doubles."""
    progress("doubling n and d")
    table = Table(
        "When n or d doubles",
        "Time at the size named over time at half of it (Numba target where it is installed, float64); asked: 1.8 to "
        "2.3. Where the output grows past some MiB, fresh memory from the system costs as much as the kernel.",
        ["entropy", *[f"d = {d}" for d in (2000, 4000, 8000, 16000, 32000, 64000)], "n = 2048", "n = 4096"],
    )
    sizes = [(128, d) for d in (1000, 2000, 4000, 8000, 16000, 32000, 64000)]
    more = [(n, 1000) for n in (1024, 2048, 4096)]
    if quick:
        sizes, more = [(1, d) for _, d in sizes], [(n // 64, 100) for n, _ in more]
    scores = {size: np.random.default_rng(size[1]).normal(0.0, 2.0, size) for size in sizes + more}
    for name, reg in regularizers().items():
        predict = functools.partial(reg.predict, target=targets()[0])
        runners = {str(size): functools.partial(predict, x) for size, x in scores.items()}
        found = best(runners, 0.02 if quick else 3.0, 1 if quick else 5)
        row = [name]
        for chain in (sizes, more):
            row += [f"{found[str(b)] / found[str(a)]:.2f}" for a, b in zip(chain, chain[1:], strict=False)]
        table.rows.append(row)
    return table


def process(*arguments: Any, cache: str | None = None) -> dict[str, float]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    if cache is not None:
        environment["FYSYM_CACHE_DIR"] = cache
    command = [sys.executable, str(Path(__file__).with_name("start.py")), *map(str, arguments)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=300)
    return json.loads(done.stdout)


def table_memory(quick: bool) -> Table:
    table = Table(
        "Peak memory of `predict` beyond its output",
        "MiB, measured by tracemalloc in a process of its own; asked: at most 1 MiB for each of two threads.",
        ["entropy", "target", "n x d", "float32", "float64"],
    )
    chosen = ("gini",) if quick else ("gini", "fermi_dirac", "t(1-t) + sin(pi t)/pi")
    for name in chosen:
        for target in targets():
            for n, d in ((16, 1000),) if quick else ((4096, 100), (128, 32000), (16, 256000)):
                progress(f"memory: {name} {target} {n}x{d}")
                text = str(regularizers()[name].h)
                extra = [process("memory", text, target, n, d, bits)["extra"] for bits in (32, 64)]
                table.rows.append([name, target, f"{n}x{d}", *(f"{x:.2f}" for x in extra)])
    return table


def table_start(quick: bool) -> Table:
    """The first prediction of a new process, with an empty and with a filled cache of kernels."""
    table = Table(
        "The first prediction of a process (Numba target)",
        "Seconds after `import fysym`: the symbolic work of `compile`, then the first call of `predict`. Asked of the "
        "first call: 6 s with an empty cache of kernels, 0.5 s with a filled one.",
        ["entropy", "compile, cold", "predict, cold", "compile, warm", "predict, warm"],
    )
    if "numba" not in targets():
        return table
    for name in ("gini",) if quick else ENTROPIES:
        progress(f"first call: {name}")
        text = str(regularizers()[name].h)
        with tempfile.TemporaryDirectory() as folder:
            cold = process("first", text, cache=folder)
            warm = min(
                (process("first", text, cache=folder) for _ in range(1 if quick else 3)), key=lambda r: r["predict"]
            )
        table.rows.append([name, *(f"{r[key]:.2f}" for r in (cold, warm) for key in ("compile", "predict"))])
    return table


def table_paper(quick: bool) -> Table:
    """Median time per vector of the paper's solvers, to 1e-5 in the 2-norm, beside ours, which is exact."""
    table = Table(
        "The paper's figure: Tsallis 1.5, to an error of 1e-5",
        "Median milliseconds a vector; theta ~ N(0, sigma I), log sigma ~ U(-4, 4), sigma a variance. Each solver is "
        "given just the steps it needs; fysym solves to the last digit. In brackets: the paper's machine.",
        ["d", "Brent", "bisection", "FISTA", *[f"fysym, {target}" for target in targets()]],
    )
    reg = regularizers()["tsallis 1.5"]
    kept = {10: (0.09, 0.19, 0.69), 100: (0.10, 0.19, 1.95), 1000: (0.15, 0.28, 26.2)}
    for d, there in kept.items():
        progress(f"the paper's figure: d = {d}")
        rng = np.random.default_rng(d)
        times: dict[str, list[float]] = {}
        for _ in range(2 if quick else 30):
            x = rng.normal(0.0, np.sqrt(np.exp(rng.uniform(-4.0, 4.0))), d)
            truth = reg.predict(x, target="numpy")

            def close(p: Any, truth: Any = truth) -> bool:
                return float(np.linalg.norm(p - truth)) <= 1e-5

            tolerance = next(t for t in 10.0 ** -np.arange(2, 16) if t < 1e-14 or close(peers.brent(x, t)))
            steps = next(k for k in range(1, 60) if k == 59 or close(peers.bisection(x, k)))
            runners = {
                "Brent": functools.partial(peers.brent, x, tolerance),
                "bisection": functools.partial(peers.bisection, x, steps),
                **{target: functools.partial(reg.predict, x, target=target) for target in targets()},
            }
            found = best(runners, 0.01, 1 if quick else 5)
            start = time.perf_counter()
            peers.fista(x, close, 20 if quick else 2000)
            found["FISTA"] = time.perf_counter() - start
            for name, seconds in found.items():
                times.setdefault(name, []).append(1e3 * seconds)
        middle = {name: statistics.median(values) for name, values in times.items()}
        row = [
            f"{middle[name]:.3f} ({old:g})" for name, old in zip(("Brent", "bisection", "FISTA"), there, strict=True)
        ]
        table.rows.append([str(d), *row, *(f"{middle[target]:.4f}" for target in targets())])
    return table
