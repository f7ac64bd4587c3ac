"""The command line: reports on stdout, problems on stderr, an exit code for each kind."""

import pathlib
import runpy
import sys

import pytest

from fysym import cli
from fysym.cli import main


def test_report(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["t*(1-t)/2"]) == 0
    out = capsys.readouterr().out
    assert "margin: 1  [proved]" in out
    assert "h''  " not in out and "h'' = -1" in out


def test_family_and_bound_member(capsys: pytest.CaptureFixture[str]) -> None:
    family = ["(t - t**alpha)/(alpha*(alpha - 1))", "--where", "alpha > 1"]
    assert main(family) == 0
    assert "margin: 1/(alpha - 1)" in capsys.readouterr().out
    assert main([*family, "--set", "alpha=3/2"]) == 0
    assert "margin: 2 " in capsys.readouterr().out


def test_source(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["t*(1-t)/2", "--source"]) == 0
    assert "def self_check" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["t**2"], 1, "not strictly concave"),
        (["t^2"], 2, "use ** for powers"),
        (["__import__('os')"], 2, "^"),
        (["sin(1/t)"], 3, "could not be determined"),
        (["t*(1-t)*a", "--where", "1 < b"], 2, "b"),
        (["(t - t**a)/(a - 1)", "--where", "a > 1", "--set", "a=1/2"], 2, "a > 1"),
    ],
)
def test_problems(arguments: list[str], code: int, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == code
    captured = capsys.readouterr()
    assert captured.out == ""
    assert words in captured.err


def test_a_reader_that_has_seen_enough_is_no_error(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    with open(tmp_path / "out", "w") as out:

        class Closed:
            def write(self, text: str) -> None:
                raise BrokenPipeError

            def flush(self) -> None:
                raise BrokenPipeError

            def fileno(self) -> int:
                return out.fileno()

        monkeypatch.setattr(sys, "stdout", Closed())
        cli._show("a report")
        out.write("what Python flushes when it ends")
    assert (tmp_path / "out").read_text() == ""


def test_it_runs_as_a_module(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["fysym", "t^2"])
    monkeypatch.delitem(sys.modules, "fysym.cli")
    with pytest.raises(SystemExit) as caught:
        runpy.run_module("fysym.cli", run_name="__main__")
    assert caught.value.code == 2
    assert "use ** for powers" in capsys.readouterr().err
