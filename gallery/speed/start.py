"""Run in a process of its own: the time of the first prediction, and the memory that predictions take."""

from __future__ import annotations

import json
import sys
import time
import tracemalloc

import numpy as np


def first_call(text: str) -> dict[str, float]:
    """Seconds after `import fysym` to compile the entropy, and then to the first prediction."""
    import fysym

    theta = np.random.default_rng(0).normal(0.0, 2.0, (64, 10))
    start = time.perf_counter()
    reg = fysym.compile(text)
    reg.source()
    compiled = time.perf_counter()
    reg.predict(theta, target="numba")
    return {"compile": compiled - start, "predict": time.perf_counter() - compiled}


def memory(text: str, target: str, n: int, d: int, bits: str) -> dict[str, float]:
    """MiB beyond the output at the peak of `predict`."""
    import fysym

    reg = fysym.compile(text)
    theta = np.random.default_rng(0).normal(0.0, 2.0, (n, d)).astype(f"float{bits}")
    reg.predict(theta[:2, :3].copy(), target=target)
    tracemalloc.start()
    out = reg.predict(theta, target=target)
    peak = tracemalloc.get_traced_memory()[1]
    return {"extra": (peak - out.nbytes) / 2**20}


if __name__ == "__main__":
    what, text, *rest = sys.argv[1:]
    found = first_call(text) if what == "first" else memory(text, rest[0], int(rest[1]), int(rest[2]), rest[3])
    print(json.dumps(found))
