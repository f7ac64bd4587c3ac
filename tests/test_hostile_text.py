"""Hostile texts: no exception but FysymError, nothing run, no time limit missed, memory bounded.

The texts come from tests/fuzz.py, which also runs them by the hundred thousand: python -m tests.fuzz
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import sympy
from hypothesis import given, settings
from hypothesis import strategies as st

import fysym
from fysym import parse, ranges
from fysym.errors import ParseError

from . import fuzz

FOLDER = Path(__file__).parents[1]


def found(stage: str, seed: str, start: int, stop: int, patience: float = 15.0) -> fuzz.Tally:
    """Texts start to stop, in child processes under a watchdog."""
    tally = fuzz.Tally()
    fuzz.run(stage, seed, start, stop, tally, patience)
    return tally


def words(tally: fuzz.Tally) -> str:
    return "\n".join(json.dumps(problem)[:2_000] for problem in tally.problems)


def test_texts_are_parsed_or_refused() -> None:
    tally = found("parse", "ci", 0, 2_000)
    assert not tally.problems, words(tally)
    assert tally.counts["parse accepted"] > 500 and tally.counts["parse refused"] > 500
    assert tally.memory < 2**30


def test_texts_compile_or_are_refused_in_time() -> None:
    tally = found("compile", "ci", 230, 330)
    assert not tally.problems, words(tally)
    assert tally.counts["compile accepted"] + tally.counts["compile refused"] >= 10
    assert tally.memory < 2**30


@pytest.mark.parametrize(
    "index",
    [
        pytest.param(
            k, marks=pytest.mark.xfail(strict=True, reason=row["known"]) if "known" in row else (), id=row["text"][:30]
        )
        for k, row in enumerate(fuzz.regressions())
    ],
)
def test_what_once_went_wrong(index: int) -> None:
    tally = found("kept", "", index, index + 1, patience=8.0)
    assert not tally.problems, words(tally)


@settings(derandomize=True, deadline=None, max_examples=1_000)
@given(st.text(max_size=60))
def test_any_text_is_read_or_refused_with_a_place(text: str) -> None:
    with contextlib.suppress(ranges.ParameterError, ParseError):
        ranges.parse_range("alpha", text)
    try:
        parse.parse_expression(text)
    except ParseError as error:
        assert 0 <= error.position <= len(text)
        assert len(str(error)) < 1_000 and str(error).isprintable() or "\n" in str(error)


# The watch itself: what it must catch, it catches

CAUGHT = {
    "a canary that is called": f"builtins.{fuzz.CANARY}()",
    "a file that is opened": "open('/dev/null').close()",
    "code that is run": "exec('1')",
    "a command": "os.system('true')",
    "a canary that is imported": f"contextlib.suppress(ImportError).__enter__() or __import__('{fuzz.CANARY}')",
}


@pytest.mark.parametrize("act", CAUGHT.values(), ids=CAUGHT.keys())
def test_the_watch_sees(act: str) -> None:
    code = f"""
import builtins, contextlib, os
from tests import fuzz
looks = fuzz.watch()
assert next(looks) == ""
fuzz.parse.parse_expression = lambda text: {act}
fuzz.check_parse("t")
assert next(looks) != ""
assert next(looks) == ""
"""
    subprocess.run([sys.executable, "-c", code], cwd=FOLDER, check=True)


def test_the_watchdog_finds_a_text_that_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    """A child that keeps the interpreter to itself is ended, and the next text goes on in a new one."""
    monkeypatch.setenv("PYTHONPATH", str(FOLDER))
    hang = "import re; re.match('(a*)*b', 'a' * 60)"
    monkeypatch.setattr(
        fuzz, "COMMAND", [sys.executable, "-c", f"import sys; from tests import fuzz\n"
        f"real = fuzz.check_parse\n"
        f"def check(given):\n    if given == fuzz.text('ci', 1): {hang}\n    return real(given)\n"
        f"fuzz.check_parse = check\nfuzz.main()"],
    )  # fmt: skip
    tally = found("parse", "ci", 0, 4, patience=2.0)
    assert [(problem["kind"], problem["index"]) for problem in tally.problems] == [("hung", 1)]
    assert tally.problems[0]["text"] == fuzz.text("ci", 1)
    assert "re/__init__.py" in tally.problems[0]["stack"]
    assert tally.counts["parse accepted"] + tally.counts["parse refused"] == 2


@pytest.mark.parametrize(
    "text",
    [
        "max(((5. if beta <= 0 else 1e400))**9999)",
        "(2*t if t < 1 else 3*t)**9999",
        "(2 - N)**(Piecewise((N, t >= 1), (2**64, True)))",
        "t**(10**9*t)",
        "t**(t + 2**64)",
    ],
)
def test_powers_that_grow_once_numbers_are_put_in(text: str) -> None:
    with pytest.raises(ParseError, match="too large"):
        parse.parse_expression(text)
    with pytest.raises(fysym.FysymError):
        fysym.compile(text, params={"N": "N > 0"} if "N" in text else {}, deadline=1.0)


T = sympy.Symbol("t")


@pytest.mark.parametrize("h", [T**10**9, T ** (10**9 * T), sympy.Integer(3) ** (10**9 * T), (3 * T) ** 9999])
def test_powers_in_sympy_expressions_are_bounded_too(h: sympy.Expr) -> None:
    with pytest.raises(fysym.UnsupportedError, match="large|bits"):
        fysym.compile(T * (1 - T) + h, deadline=1.0)


# Options of `compile`


@pytest.mark.parametrize(
    "params",
    [
        {"alpha": "alpha < (not oo)"},
        {"alpha": "alpha > -(-oo)"},
        {"alpha": "not alpha > 1"},
        {"alpha": "alpha > 1 or alpha < 0"},
        {"alpha": "alpha > 1; import os"},
        {"alpha": "alpha > __import__('os')"},
        {"alpha": "alpha > 9**9**9**9"},
        {"alpha": "(" * 5_000},
        {"alpha": "alpha > 1" + " and alpha > 1" * 2_000},
        {"alpha": "alpha > 1" * 100_000},
        {"alpha": "\x00"},
        {"alpha": "\ud800"},
        {"": "alpha > 1"},
        {"alpha\n": "alpha > 1"},
        {"t": "t > 1"},
        {None: "alpha > 1"},
        {("alpha",): "alpha > 1"},
        {"alpha": ("alpha", 3)},
        {"alpha": (0, 10**10_000)},
        {"alpha": [[1], [2]]},
        {"alpha": lambda: 1},
        [("alpha", "alpha > 1", 1)],
        ["alpha"],
        "alpha",
        7,
    ],
)
def test_odd_ranges_are_refused(params: Any) -> None:
    start = time.monotonic()
    with pytest.raises(fysym.FysymError) as caught:
        fysym.compile("(t - t**alpha)/(alpha*(alpha - 1))", params=params, deadline=1.0)
    assert time.monotonic() - start < 3.0
    assert len(str(caught.value)) < 5_000


ODD_SECONDS = {"true": True, "text": "1", "complex": 1j, "infinite": float("inf"), "negative": -0.1, "list": []}
ODD_SECONDS |= {"beyond doubles": 10**400, "beyond printing": 10**5_000, "beyond waiting": 1e12}


@pytest.mark.parametrize("deadline", ODD_SECONDS.values(), ids=ODD_SECONDS.keys())
def test_odd_deadlines_are_refused(deadline: Any) -> None:
    with pytest.raises(fysym.FysymError, match="deadline must be"):
        fysym.compile("t*(1-t)", deadline=deadline)


@pytest.mark.parametrize(
    "value",
    [10**5_000, -(10**5_000), sympy.Integer(10) ** 5_000, sympy.Float("1e5000"), sympy.Float("1e-5000", 15)],
    ids=["huge", "negative", "SymPy", "float", "tiny"],
)
def test_numbers_too_large_to_bind_are_refused(value: Any) -> None:
    with pytest.raises(fysym.ParameterError, match="too large"):
        fysym.compile("a*t*(1 - t)", params={"a": "a > 0"}).bind(a=value)


@pytest.mark.parametrize(
    "set_", ["a=2=3", "a", "=", "a=", "a=oo", "a=1/0", "a=9**9**9", "a=__import__('os')", "b=1", "a=\x00"]
)
def test_odd_values_on_the_command_line_are_refused(set_: str, capsys: pytest.CaptureFixture[str]) -> None:
    from fysym.cli import main

    assert main(["a*t*(1-t)", "--where", "a > 0", "--set", set_]) == 2
    assert capsys.readouterr().err.startswith("fysym: ")


def test_a_reader_that_stops_early_is_no_error() -> None:
    for arguments in (["t*(1-t)/2"], ["emit", "t*(1-t)/2"]):
        process = subprocess.Popen(
            [sys.executable, "-m", "fysym.cli", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=FOLDER
        )
        assert process.stdout is not None and process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(60) == 0
