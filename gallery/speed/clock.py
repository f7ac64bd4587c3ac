"""Times that can be compared: best of several runs, all contestants taking turns; and what machine this is."""

from __future__ import annotations

import importlib.metadata
import math
import os
import platform
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any


def best(runners: Mapping[str, Callable[[], Any]], seconds: float, rounds: int = 3) -> dict[str, float]:
    """The shortest time of each runner. They take turns, so that a busy moment of the machine hits all of them.

    Each may use an equal share of the seconds, but runs at least `rounds` times unless that would take many seconds.
    A short one runs several times in its turn, as in a loop, so that caches and threads are its own.
    """
    times = dict.fromkeys(runners, math.inf)
    used = dict.fromkeys(runners, 0.0)
    for name, run in runners.items():
        start = time.perf_counter()
        run()
        used[name] = time.perf_counter() - start
    share = seconds / len(runners)
    done = 0
    while True:
        turn = [
            name for name in runners if done < 1 or used[name] + times[name] < share or done < rounds and used[name] < 5
        ]
        if not turn or done > 100000:
            return times
        for name in turn:
            for _ in range(1 + int(min(9.0, 2e-3 / times[name]))):
                start = time.perf_counter()
                runners[name]()
                took = time.perf_counter() - start
                times[name] = min(times[name], took)
                used[name] += took
        done += 1


def geometric_mean(numbers: Sequence[float]) -> float:
    return math.exp(sum(map(math.log, numbers)) / len(numbers))


def progress(line: str) -> None:
    """What is being measured, on the error stream."""
    print(line, file=sys.stderr, flush=True)


def machine() -> str:
    """Processor, cores, load and versions, in one paragraph."""
    name = platform.processor() or platform.machine()
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                name = line.split(":", 1)[1].strip()
                break
    except OSError:
        pass
    try:
        cores: int | None = len(os.sched_getaffinity(0))
    except AttributeError:
        cores = os.cpu_count()
    versions = [f"Python {platform.python_version()}"]
    for package in ("numpy", "scipy", "numba", "torch", "entmax"):
        try:
            versions.append(f"{package} {importlib.metadata.version(package)}")
        except importlib.metadata.PackageNotFoundError:
            versions.append(f"no {package}")
    try:
        load = f", load {os.getloadavg()[0]:.1f} when it began"
    except (AttributeError, OSError):
        load = ""
    return f"{name}, {cores} cores{load}; {platform.system()}; {', '.join(versions)}"
