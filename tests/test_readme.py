"""Everything the README shows runs, and says what it says."""

import contextlib
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import fysym
from fysym.cli import main

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()


def test_python_blocks_run_and_their_comments_hold(tmp_path: Path) -> None:
    namespace: dict[str, object] = {}
    checked = 0
    for block in re.findall(r"```python\n(.*?)```", README, flags=re.S):
        with contextlib.chdir(tmp_path):
            exec(block, namespace)
        for line in block.splitlines():
            code, _, comment = line.partition("  # ")
            if re.match(r"(array|1|\d)", comment.strip()) and "=" not in code.replace("==", ""):
                checked += 1
                shown = eval(code, namespace)
                shown = ", ".join(map(repr, shown)) if isinstance(shown, tuple) else repr(shown)
                assert shown == comment.strip(), line
    assert checked >= 4


def test_command_lines_run_and_print_what_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    commands = 0
    for block in re.findall(r"```console\n(.*?)```", README, flags=re.S):
        for command, shown in re.findall(r"^\$ fysym (.*)\n((?:[^$].*\n)*)", block, flags=re.M):
            code = main(shlex.split(command))
            assert code == (1 if "(1 + 3*t)" in command else 0), command
            out = capsys.readouterr().out
            assert not shown or out == shown, command
            commands += 1
    assert commands >= 5
    assert (tmp_path / "gini.c").is_file()


def test_the_two_commands_are_there() -> None:
    commands = re.findall(r"```sh\n(.*?)\n```", README, flags=re.S)
    assert [c for c in commands if c.startswith("python -m pip install")] == commands
    assert len(commands) == 2


def test_the_gallery_runs() -> None:
    done = subprocess.run([sys.executable, "gallery/margins.py"], cwd=ROOT, capture_output=True, text=True, check=True)
    assert all(name in done.stdout for name in fysym.catalog)


def test_import_brings_no_numeric_framework() -> None:
    names = ("numpy", "scipy", "torch", "jax", "numba", "flint")
    code = f"import sys, fysym; print([m for m in {names} if m in sys.modules])"
    env_free = {"SYMPY_GROUND_TYPES": "python"}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, env=env_free, check=True
    )
    assert done.stdout.strip() == "[]"
