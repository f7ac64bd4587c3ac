"""A process of its own that compiles and draws for the studio, so that no expression can freeze the page.

The two sides exchange lines of JSON over pipes. A job that outlives its time, or that nobody waits for any longer, ends
with its process, and the next job gets a new one.

>>> with Workbench() as bench:
...     bench.ask("study", {"entropy": "t*(1 - t)/2", "where": ""})["verdict"]
'accepted'
"""

from __future__ import annotations

import functools
import html
import json
import queue
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from .errors import FysymError, NotConcaveError, ParseError, UndecidedError

DEADLINE = 8.0  # for the symbolic work of one job
GRACE = 12.0  # for starting, drawing, and what no deadline can interrupt
PATIENCE = 0.7  # before a job that nobody waits for is ended


# The side that asks


class Workbench:
    """Runs one job at a time in a process that it starts, and ends when need be."""

    def __init__(self, deadline: float = DEADLINE, grace: float = GRACE) -> None:
        self.deadline = deadline
        self.grace = grace
        self._process: subprocess.Popen[str] | None = None
        self._answers: queue.Queue[str | None] = queue.Queue()
        self._turn = threading.Lock()
        self._newest: dict[str, int] = {}
        self._start()

    def __enter__(self) -> Workbench:
        return self

    def __exit__(self, *problem: object) -> None:
        self.close()

    def ticket(self, lane: str) -> int:
        """A place in a lane; it makes all earlier ones of the lane void, and "study" those of every lane."""
        for name in {lane, *(self._newest if lane == "study" else ())}:
            self._newest[name] = self._newest.get(name, 0) + 1
        return self._newest[lane]

    def run(self, lane: str, ticket: int, arguments: Mapping[str, Any]) -> dict[str, Any] | None:
        """The answer, or None if the ticket became void."""
        with self._turn:
            if self._newest.get(lane) != ticket:
                return None
            answer = self.ask(lane, arguments, lambda: self._newest.get(lane) != ticket)
        return answer if self._newest.get(lane) == ticket else None

    def ask(
        self, job: str, arguments: Mapping[str, Any], is_void: Callable[[], bool] = lambda: False
    ) -> dict[str, Any] | None:
        """The answer to one job; one that takes too long is undecided."""
        if self._process is None or self._process.poll() is not None:
            self._start()
        process, answers = self._process, self._answers
        assert process is not None and process.stdin is not None
        start = time.monotonic()
        try:
            process.stdin.write(json.dumps({"job": job, "deadline": self.deadline, **arguments}) + "\n")
            process.stdin.flush()
        except OSError:
            self.close()
            return _failure("the process that computes has ended; try again")
        while True:
            try:
                line = answers.get(timeout=0.05)
            except queue.Empty:
                passed = time.monotonic() - start
                if passed > self.deadline + self.grace:
                    self.close()
                    return _failure(f"this took longer than {self.deadline:g} seconds, and was ended; simplify h")
                if passed > PATIENCE and is_void():
                    self.close()
                    return None
                continue
            if line is None:
                self.close()
                return _failure("the process that computes has ended; try again, or simplify h")
            found: dict[str, Any] = json.loads(line)
            return found

    def close(self) -> None:
        """End the process."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()

    __del__ = close

    def _start(self) -> None:
        command = [sys.executable, "-m", "fysym.workbench"]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._answers = queue.Queue()
        reader = threading.Thread(target=_read, args=(self._process.stdout, self._answers), daemon=True)
        reader.start()


def _read(stream: Any, answers: queue.Queue[str | None]) -> None:
    for line in stream:
        answers.put(line)
    answers.put(None)


def _failure(words: str) -> dict[str, Any]:
    return {"verdict": "undecided", "message": words}


# The side that works


def study(entropy: str, where: str, deadline: float) -> dict[str, Any]:
    """The verdict on what was typed: accepted with its parameters, or why not, with a picture of the witness.

    >>> study("t*(1 - t)*a", "a > 0", 5.0)["parameters"]["a"]["range"]
    'a > 0'
    >>> study("t^2", "", 5.0)["verdict"]
    'parse'
    """
    try:
        reg = compiled(entropy.strip(), where.strip(), deadline)
    except ParseError as error:
        return {"verdict": "parse", "message": str(error)}
    except NotConcaveError as error:
        return {"verdict": "refuted", "message": str(error), "picture": _witness(entropy, error)}
    except UndecidedError as error:
        return {"verdict": "undecided", "message": str(error)}
    except FysymError as error:
        return {"verdict": "error", "message": str(error)}
    parameters = {p.name: _slider(p) for p in reg.derivation.entropy.parameters}
    status = reg.derivation.verdict.fact.status
    return {"verdict": "accepted", "message": f"strictly concave on (0, 1): {status}", "parameters": parameters}


def member(entropy: str, where: str, deadline: float, values: Mapping[str, float]) -> dict[str, Any]:
    """The facts, the panels and the code of an entropy, or of a member of a family.

    >>> member("t*(1 - t)*a", "a > 0", 5.0, {"a": 0.5})["margin"]
    '1'
    """
    from . import plot

    try:
        reg = compiled(entropy.strip(), where.strip(), deadline).bind(**values)
        sources = {"numpy": reg.source("numpy")}
        try:
            sources["c"] = reg.source("c")
        except FysymError as error:
            sources["c"] = f"/* {error} */"
        return {
            "verdict": "accepted",
            "margin": "none" if reg.margin is not None and reg.margin.is_infinite else str(reg.margin),
            "sparsity": reg.sparsity,
            "facts": reg.report(format="html"),
            "panels": plot.image(reg.plot(size=(10.0, 2.8)), f"entropy, prediction and loss of {reg.h}"),
            "sources": sources,
        }
    except FysymError as error:
        return {"verdict": "error", "message": str(error)}


def triangle(
    entropy: str, where: str, deadline: float, values: Mapping[str, float], theta: list[float]
) -> dict[str, Any]:
    """The prediction for three scores, and the triangle with them.

    >>> triangle("t*(1 - t)/2", "", 5.0, {}, [1.0, 0.5, -1.0])["p"]
    [0.75, 0.25, 0.0]
    """
    from . import plot

    try:
        reg = compiled(entropy.strip(), where.strip(), deadline).bind(**values)
        p = [float(each) for each in reg.predict(theta, target="numpy")]
        figure = plot.simplex(reg, theta=theta, labels=["which classes are predicted"], points=161)
        return {"verdict": "accepted", "p": p, "picture": plot.image(figure, f"prediction {p}")}
    except FysymError as error:
        return {"verdict": "error", "message": str(error)}


JOBS: dict[str, Callable[..., dict[str, Any]]] = {"study": study, "member": member, "triangle": triangle}


@functools.lru_cache(maxsize=32)
def compiled(entropy: str, where: str, deadline: float) -> Any:
    """What was typed, compiled once; the ranges are separated by commas."""
    from .compiler import compile
    from .ranges import name_in_range

    ranges = [part.strip() for part in re.split(r"[,;]", where) if part.strip()]
    return compile(entropy, params={name_in_range(part): part for part in ranges}, deadline=deadline)


def _slider(parameter: Any) -> dict[str, Any]:
    """Where a slider starts, stops and stands: inside the range, near its finite ends."""
    span = parameter.range
    step = 0.05
    low = float(span.low) if span.low.is_finite else None
    high = float(span.high) if span.high.is_finite else None
    if low is not None and high is not None:
        step = (high - low) / 50
        start, stop, value = low + step * span.low_open, high - step * span.high_open, (low + high) / 2
    elif low is not None:
        start, stop, value = low + step * span.low_open, low + 4.0, low + 0.5
    elif high is not None:
        start, stop, value = high - 4.0, high - step * span.high_open, high - 0.5
    else:
        start, stop, value = -3.0, 3.0, 1.0
    words = span.describe(parameter.name)
    return {"start": start, "stop": stop, "step": step, "value": value, "range": words}


def _witness(entropy: str, error: NotConcaveError) -> str:
    from . import plot
    from .parse import parse_expression

    try:
        return plot.image(plot.refutation(parse_expression(entropy.strip()), error), f"witness t = {error.witness}")
    except (FysymError, ArithmeticError, TypeError):
        return f"<p>witness t = {html.escape(str(error.witness))}</p>"


def serve() -> None:
    """Answer jobs from stdin, one line each, until it is closed."""
    out, sys.stdout = sys.stdout, sys.stderr  # nothing else may write there
    for module in ("sympy", "numpy", "matplotlib.figure"):
        __import__(module)
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = JOBS[request.pop("job")](**request)
        except Exception as error:  # noqa: BLE001 (the page must hear of whatever it was)
            answer = {"verdict": "error", "message": f"{type(error).__name__}: {error}"}
        out.write(json.dumps(answer) + "\n")
        out.flush()


if __name__ == "__main__":
    serve()
