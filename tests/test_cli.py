"""The command line: results on stdout, problems on stderr, an exit code for each kind."""

import io
import json
import os
import pathlib
import pty
import re
import runpy
import shlex
import shutil
import socket
import subprocess
import sys
import time

import pytest

import fysym
from fysym import cli
from fysym.catalog import ENTRIES
from fysym.cli import completion, launch, main, terminal
from fysym.cli.commands import problem
from fysym.emit import TARGETS

FACT = ("value", "number", "status", "evidence")
TSALLIS = ["(t - t**alpha)/(alpha*(alpha - 1))", "--where", "alpha > 1"]


class Screen(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_a_bare_expression_means_check(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["t*(1-t)/2"]) == 0
    bare = capsys.readouterr()
    assert "margin: 1  [proved]" in bare.out
    assert "h'' = -1" in bare.out
    assert bare.err == ""
    assert main(["check", "t*(1-t)/2"]) == 0
    assert capsys.readouterr().out == bare.out


def test_an_expression_may_start_with_a_minus_and_options_may_come_first(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["-t*log(t)"]) == 0
    assert "h(t) = -t*log(t)" in capsys.readouterr().out
    assert main(["margin", "--deadline", "5", "-t**2 + t"]) == 0
    assert capsys.readouterr().out == "2\n"
    assert main(["margin", "a*t*(1-t) + 2*t*(1-t)", "--where", "-1<a<1"]) == 0
    assert capsys.readouterr().out.strip() in ("2*a + 4", "2*(a + 2)")


def test_family_and_bound_member(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(TSALLIS) == 0
    assert "margin: 1/(alpha - 1)" in capsys.readouterr().out
    assert main([*TSALLIS, "--set", "alpha=3/2"]) == 0
    assert "margin: 2 " in capsys.readouterr().out


def test_margin(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["margin", "tsallis"]) == 0
    assert capsys.readouterr().out == "1/(alpha - 1)\n"
    assert main(["margin", "shannon"]) == 0
    captured = capsys.readouterr()
    assert captured.out == "none\n"
    assert "every probability is positive" in captured.err
    assert main(["margin", "(t - t**a)/(a - 1)", "--where", "a > 0"]) == cli.EXIT_UNDECIDED
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "undetermined over a > 0" in captured.err


@pytest.mark.parametrize("target", TARGETS)
def test_emit(target: str, capsys: pytest.CaptureFixture[str], tmp_path: pathlib.Path) -> None:
    assert main(["emit", "gini", "--target", target]) == 0
    printed = capsys.readouterr().out
    assert {"numpy": "def self_check", "numba": "@njit", "c": "#include <math.h>"}[target] in printed
    path = tmp_path / "code"
    assert main(["emit", "gini", "--target", target, "-o", str(path)]) == 0
    captured = capsys.readouterr()
    assert captured.out == ""
    assert f"wrote {path}" in captured.err
    assert path.read_text().rstrip("\n") == printed.rstrip("\n")


def test_a_c_file_gets_c(tmp_path: pathlib.Path) -> None:
    assert main(["emit", "gini", "-o", str(tmp_path / "gini.c")]) == 0
    assert "#include" in (tmp_path / "gini.c").read_text()


def test_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["gini", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["verdict"] == "accepted"
    assert data["facts"]["margin"]["number"] == 1.0
    assert data["facts"]["twice_differentiable"]["value"] is False
    assert main(["margin", "shannon", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["margin"] is None and data["value"] == "oo" and data["number"] is None
    assert main(["catalog", "--json"]) == 0
    assert list(json.loads(capsys.readouterr().out)["entropies"]) == list(ENTRIES)
    assert main(["emit", "gini", "--json"]) == 0
    assert "def predict" in json.loads(capsys.readouterr().out)["source"]


def test_numbers_beyond_a_double_are_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["margin", "t*(1-t)*10**400", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["margin"] == data["value"] == str(2 * 10**400)
    assert data["number"] is None
    assert main(["check", "t*(1-t)*10**400", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["facts"]["margin"] == {k: v for k, v in data.items() if k in FACT}
    undecided = problem(fysym.UndecidedError("open", (0.5, float("inf"))))
    assert undecided["interval"] == [0.5, None]
    assert problem(fysym.UndecidedError("open"))["interval"] is None


@pytest.mark.parametrize(
    ("entropy", "code", "expected"),
    [
        ("t**2", 1, {"verdict": "refuted", "witness": "1/2"}),
        ("t^2", 2, {"verdict": "error", "error": "ParseError", "position": 1}),
        ("sin(1/t)", 3, {"verdict": "undecided"}),
    ],
)
def test_a_refusal_is_json_too(
    entropy: str, code: int, expected: dict[str, object], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([entropy, "--json"]) == code
    data = json.loads(capsys.readouterr().out)
    assert expected.items() <= data.items()


def test_compare(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "shannon", "gini", "tsallis", "--set", "alpha=1.5", "--no-speed"]) == 0
    rows = [re.split(r"  +", line) for line in capsys.readouterr().out.splitlines()]
    assert rows == [
        ["entropy", "margin", "sparsity", "smoothness"],
        ["shannon", "none", "dense", "1"],
        ["gini", "1", "full", "1"],
        ["tsallis, alpha = 1.5", "2", "full", "1"],
    ]


def test_compare_measures_and_goes_on_after_a_refusal(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "t**2", "gini", "tsallis"]) == 1
    captured = capsys.readouterr()
    rows = captured.out.splitlines()
    assert rows[1].split()[:2] == ["t**2", "refuted"]
    assert re.search(r"us \([0-9.e+]+x softmax\)$", rows[2])
    assert rows[3].endswith("set alpha first")
    assert "t**2: h is not strictly concave" in captured.err


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["t**2"], 1, "not strictly concave"),
        (["t^2"], 2, "use ** for powers"),
        (["__import__('os')"], 2, "^"),
        (["sin(1/t)"], 3, "could not be determined"),
        (["t*(1-t)*a", "--where", "1 < b"], 2, "b"),
        (["(t - t**a)/(a - 1)", "--where", "a > 1", "--set", "a=1/2"], 2, "a > 1"),
        (["gini", "--set", "alpha"], 2, "--set alpha=1.5"),
        (["compare", "gini", "shannon", "--set", "beta=1"], 2, "no entropy here has a parameter called beta"),
        (["shanon"], 2, "did you mean shannon"),
        (["emti", "gini"], 2, "did you mean emit"),
        (["whatever", "gini"], 2, "fysym --help"),
        (["emti"], 2, "did you mean emit"),
        (["catalog", "ginni"], 2, "did you mean gini"),
        (["emit", "gini", "--target", "nump"], 2, "did you mean numpy"),
        (["emit", "tsallis"], 2, "--set alpha=..."),
        (["emit", "gini", "-o", "/nowhere/at/all.py"], 2, "cannot be written"),
        (["gini", "--domain", "circle"], 2, "circle"),
        (["gini", "--domain", "budget(1.2.3)"], 2, "budget(2)"),
        (["gini", "--domain", "budget(0)"], 2, "budget(2)"),
        (["gini", "--domain", "budget(1e999999999)"], 2, "budget(2)"),
        (["gini", "--domain", ""], 2, "there is no domain ''"),
        (["norm", "--domain", ""], 2, "leave --domain out"),
        (["tsallis", "--set", "alpha=2", "--set", "alpha=3"], 2, "alpha is given more than once; write one --set"),
        (["compare", "tsallis", "--where", "alpha>1", "--where", "alpha<3"], 2, "alpha is given more than once"),
        (["margin", "poisson"], 2, "a margin is not applicable on the orthant: coordinates do not compete"),
        (["margin", "gini", "--domain", "cube"], 2, "a margin is not applicable on the cube"),
        (["emit", "norm", "--set", "q=2", "--target", "c"], 2, "there is no c code of norm"),
        (["gini", "--deadline", "-1"], 2, "deadline"),
        (["gini", "--deadline", "soon"], 2, "soon"),
        ([], 2, "usage"),
    ],
)
def test_problems(arguments: list[str], code: int, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == code
    captured = capsys.readouterr()
    assert captured.out == ""
    assert words in captured.err


def test_domains(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["margin", "gini", "--domain", "simplex"]) == 0
    assert capsys.readouterr().out == "1\n"
    assert main(["gini", "--domain", "budget(2)"]) == 0
    assert "p sums to 2" in capsys.readouterr().out
    for typed, amount in (("budget( 1/2 )", "0.5"), ("budget(1e-3)", "0.001"), ("budget(2.50)", "2.5")):
        assert main(["gini", "--domain", typed]) == 0
        assert f"on the budget({amount}): p_j = q(theta_j - tau), tau so that p sums to {amount};" in (
            capsys.readouterr().out
        )
    assert main(["gini", "--domain", "cube"]) == 0
    assert "each coordinate by itself" in capsys.readouterr().out


def test_what_does_not_apply_is_not_called_undetermined(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "poisson", "squared", "tsallis", "--no-speed"]) == 0
    rows = [re.split(r"  +", line) for line in capsys.readouterr().out.splitlines()[1:]]
    assert rows == [
        ["poisson", "not applicable", "dense", "oo"],
        ["squared", "not applicable", "not applicable", "1"],
        ["tsallis", "1/(alpha - 1)", "full", "depends"],
    ]


def test_the_target_that_a_message_names_works(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["emit", "norm", "--set", "q=2", "--target", "c"]) == 2
    advice = capsys.readouterr().err.partition("; use ")[2].split()
    assert main(["emit", "norm", "--set", "q=2", *advice]) == 0


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert re.fullmatch(r"fysym \d+\.\d+\.\d+\n", capsys.readouterr().out)


def examples(command: str, capsys: pytest.CaptureFixture[str]) -> list[str]:
    assert main([*([command] if command else []), "--help"]) == 0
    return re.findall(r"^  (fysym .*)$", capsys.readouterr().out, flags=re.M)


@pytest.mark.parametrize("command", ["", *cli.COMMANDS])
def test_the_examples_of_the_help_run(
    command: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    started = []
    monkeypatch.setattr(launch, "studio", lambda *arguments: started.append(arguments) or 0)
    monkeypatch.chdir(tmp_path)
    lines = examples(command, capsys)
    assert lines
    for line in lines:
        if " plot " in line:
            pytest.importorskip("matplotlib")
        words = shlex.split(line)
        assert main(words[1:]) == 0, line
        captured = capsys.readouterr()
        if "-o" in words:
            assert (tmp_path / words[-1]).stat().st_size > 0
        elif "studio" in words:
            assert started
        else:
            assert captured.out.strip()


def test_the_help_lists_every_command_and_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--help"])
    out = capsys.readouterr().out
    assert all(f"    {name}" in out for name in cli.COMMANDS)
    assert "0 accepted, 1 refuted, 2 bad usage or parse error, 3 undecided" in out


def test_help_catalog_and_completion_do_without_sympy() -> None:
    code = (
        "import sys; from fysym.cli import main; main(sys.argv[1:]); print([m for m in ('sympy', 'numpy') if m in "
        "sys.modules], file=sys.stderr)"
    )
    for arguments in (["--help"], ["check", "--help"], ["catalog"], ["completion", "bash"]):
        done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True)
        assert done.stdout
        assert done.stderr.strip() == "[]", arguments


# Terminals


def on_a_terminal(arguments: list[str], **environment: str) -> str:
    """What the command writes when stdout is a terminal."""
    master, slave = pty.openpty()
    env = {k: v for k, v in os.environ.items() if k != "NO_COLOR"} | {"TERM": "xterm", **environment}
    process = subprocess.Popen([sys.executable, "-m", "fysym.cli", *arguments], stdout=slave, stderr=slave, env=env)
    os.close(slave)
    parts = []
    while True:
        try:
            part = os.read(master, 65536)
        except OSError:  # the other side is closed
            break
        if not part:
            break
        parts.append(part)
    os.close(master)
    assert process.wait() == 0
    return b"".join(parts).decode()


def test_colour_on_a_terminal_only() -> None:
    assert "\x1b[32m[proved]\x1b[0m" in on_a_terminal(["gini"])
    assert "\x1b[3" not in on_a_terminal(["gini"], NO_COLOR="1")
    assert "\x1b" not in on_a_terminal(["gini"], TERM="dumb")
    piped = subprocess.run([sys.executable, "-m", "fysym.cli", "gini"], capture_output=True, text=True, check=True)
    assert "\x1b" not in piped.stdout + piped.stderr


def test_the_spinner_names_the_stage(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    screen = Screen()

    def work() -> None:
        end = time.monotonic() + 30
        while "deciding whether h is concave" not in screen.getvalue() and time.monotonic() < end:
            time.sleep(0.01)

    stage = {"__name__": "fysym.concavity", "work": work}
    with terminal.Spinner(screen, patience=0.0):
        exec("def decide():\n    work()\ndecide()", stage)
    assert "deciding whether h is concave" in screen.getvalue()
    assert screen.getvalue().endswith("\r\x1b[K")


def test_no_spinner_for_a_quick_step_or_a_pipe() -> None:
    screen, pipe = Screen(), io.StringIO()
    with terminal.Spinner(screen, patience=60.0), terminal.Spinner(pipe, patience=0.0):
        time.sleep(0.05)
    assert screen.getvalue() == pipe.getvalue() == ""


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
        terminal.show("a report")
        out.write("what Python flushes when it ends")
    assert (tmp_path / "out").read_text() == ""


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no device that is always full")
@pytest.mark.parametrize("arguments", ["check gini", "emit gini", "--version", "t**2 --json"])
def test_an_answer_that_cannot_be_written_is_bad_usage(arguments: str) -> None:
    command = f"{shlex.quote(sys.executable)} -m fysym {arguments}"
    for to, words in ((">/dev/full", "to stdout: No space left on device"), (">&-", "stdout is closed")):
        done = subprocess.run(["bash", "-c", f"{command} {to}"], capture_output=True, text=True, check=False)
        assert done.returncode == 2
        assert re.fullmatch(f"fysym: the answer cannot be written.*{words}\n", done.stderr)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no device that is always full")
def test_help_that_cannot_be_written() -> None:
    command = f"{shlex.quote(sys.executable)} -m fysym --help"
    done = subprocess.run(["bash", "-c", f"{command} >/dev/full"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    done = subprocess.run(["bash", "-c", f"{command} >&-"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr[:6]) == (0, "usage:")  # argparse writes it to stderr then


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no device that is always full")
def test_pipes_that_nobody_reads_are_quiet() -> None:
    command = f"{shlex.quote(sys.executable)} -m fysym"
    for line, code in (
        ("emit gini | head -0", 0),
        ("--help | head -0", 0),
        ("'t**2' 2>/dev/full", 1),
        ("'t**2' 2>&-", 1),
    ):
        script = f"{command} {line}; exit ${{PIPESTATUS[0]}}"
        done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout, done.stderr) == (code, "", ""), line


def test_an_interruption_is_quiet(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def interrupted(options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("fysym.cli.commands.check", interrupted)
    assert main(["gini"]) == 130
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("module", ["fysym.cli", "fysym"])
def test_it_runs_as_a_module(module: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["fysym", "t^2"])
    with pytest.raises(SystemExit) as caught:
        runpy.run_module(module, run_name="__main__")
    assert caught.value.code == 2
    assert "use ** for powers" in capsys.readouterr().err


# The studio's command, and completion


def test_the_studio_is_served_to_this_machine_only() -> None:
    words = launch.command(" -t*log(t)", 8123, browser=False)
    assert words[words.index("--host") + 1] == "127.0.0.1"
    assert words[words.index("--port") + 1] == "8123"
    assert "--headless" in words
    assert words[-2:] == ["--entropy", "-t*log(t)"]
    assert "--headless" not in launch.command(None, 8123, browser=True)
    assert not [word for word in words if "no-token" in word]


def test_a_port_that_is_taken_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("marimo")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        assert main(["studio", "--port", str(taken.getsockname()[1]), "--no-browser"]) == 2
    assert "give another --port" in capsys.readouterr().err
    assert main(["studio", "--port", "99999999"]) == 2


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert main(["studio"]) == 2
    assert "pip install 'fysym[studio]'" in capsys.readouterr().err


def completed(*typed: str) -> list[str]:
    """What bash offers for the last of the words."""
    line = " ".join(shlex.quote(word) for word in typed)
    script = f"{completion.script('bash')}\nCOMP_WORDS=({line}); COMP_CWORD={len(typed) - 1}; _fysym\n"
    script += 'printf "%s\\n" "${COMPREPLY[@]}"'
    return subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True).stdout.split()


@pytest.mark.skipif(not shutil.which("bash"), reason="there is no bash")
def test_bash_completes() -> None:
    assert completed("fysym", "em") == ["emit"]
    assert completed("fysym", "gi") == ["gini", "gini_sine"]
    assert completed("fysym", "emit", "--tar") == ["--target"]
    assert completed("fysym", "emit", "gini", "--target", "") == list(TARGETS)
    assert completed("fysym", "completion", "z") == ["zsh"]
    assert completed("fysym", "t*(1-t)", "--dead") == ["--deadline"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_knows_every_command_and_the_shell_reads_it(shell: str, tmp_path: pathlib.Path) -> None:
    script = completion.script(shell)
    assert all(name in script for name in (*cli.COMMANDS, *ENTRIES, *TARGETS))
    if shutil.which(shell):
        (tmp_path / "script").write_text(script)
        subprocess.run([shell, "-n", str(tmp_path / "script")], check=True)
