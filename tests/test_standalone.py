"""Emitted code stands alone, and holds nothing that the user typed but numbers and comments.

A new target is one more line in TARGETS.
"""

from __future__ import annotations

import ast
import functools
import io
import site
import subprocess
import sys
import tokenize
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sympy

import fysym
from fysym.catalog import SEPARABLE


@dataclass(frozen=True)
class Target:
    """How a regularizer becomes a module, and what that module may import."""

    source: Callable[[fysym.Regularizer], str]
    imports: frozenset[str]
    without: frozenset[str] = frozenset()  # samples that it has no code for
    run: frozenset[str] | None = None  # the samples whose self-check is run, where it takes long


STANDARD = frozenset({"__future__", "functools", "types", "typing", "math"})
TARGETS = {
    "numpy": Target(lambda reg: reg.source(), STANDARD | {"numpy", "scipy"}),
    "numba": Target(
        lambda reg: reg.source("numba"),
        STANDARD
        | {"numpy", "scipy", "numba", "llvmlite"}
        | {"contextlib", "ctypes", "inspect", "operator", "os", "platform", "queue", "struct", "threading", "time"},
        without=frozenset({"kink", "unbounded", "norm", "renyi"}),
        run=frozenset({"shannon", "gini", "tsallis", "fermi_dirac", "gini_sine", "probit", "faces"}),
    ),
}
targets = pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS.keys())

SAMPLES: dict[str, Callable[[], fysym.Regularizer]] = {
    **{name: lambda name=name: fysym.catalog[name] for name, entry in SEPARABLE.items() if not entry.params},
    "tsallis": lambda: fysym.catalog.tsallis.bind(alpha=1.5),
    "tsallis_3": lambda: fysym.catalog.tsallis.bind(alpha=3),
    "kaniadakis": lambda: fysym.catalog.kaniadakis.bind(k=0.5),
    "abe": lambda: fysym.catalog.abe.bind(q=2),
    "borges_roditi": lambda: fysym.catalog.borges_roditi.bind(a=0.5, b=2),
    "kink": lambda: fysym.compile("t*(1-t) + min(t, 2*(1-t))/2"),
    "faces": lambda: fysym.compile("t*sqrt(1-t)"),
    "steep": lambda: fysym.compile("t - t**9"),
    "norm": lambda: fysym.catalog.norm.bind(q=3),
    "renyi": lambda: fysym.catalog.renyi.bind(beta=0.5),
    "unbounded": lambda: fysym.compile("log(t)"),
}


@functools.cache
def sample_named(name: str) -> fysym.Regularizer:
    return SAMPLES[name]()


# Runs a module as a script where fysym and all that it alone needs cannot be imported.
ALONE = """
import runpy, sys
class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {"fysym", "sympy", "mpmath", "flint"}:
            raise ImportError(f"{name} is not here")
sys.meta_path.insert(0, Blocker())
sys.path[:0] = SITE
for name in ("fysym", "sympy"):
    try:
        __import__(name)
    except ImportError:
        pass
    else:
        sys.exit(f"{name} could be imported")
module = runpy.run_path(sys.argv[1], run_name="__main__")
print(module["predict"]([0.4, 0.1, -0.7]).tolist())
"""


def alone(text: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run the text of a module by itself: its self-check, and one prediction on the last line."""
    module, runner = folder / "emitted.py", folder / "runner.py"
    module.write_text(text, encoding="utf-8")
    paths = [path for path in (*site.getsitepackages(), site.getusersitepackages()) if Path(path).is_dir()]
    runner.write_text(ALONE.replace("SITE", repr(paths)), encoding="utf-8")
    return subprocess.run(
        [sys.executable, "-I", "-S", str(runner), str(module)], capture_output=True, text=True, cwd=folder, env={}
    )


@pytest.mark.parametrize(
    ("target", "sample"),
    [(name, sample) for name, target in TARGETS.items() for sample in sorted(target.run or SAMPLES)],
)
def test_its_self_check_passes_without_fysym_and_sympy(target: str, sample: str, tmp_path: Path) -> None:
    if target == "numba":
        pytest.importorskip("numba")
    reg = sample_named(sample)
    done = alone(TARGETS[target].source(reg), tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    assert "self-check passed" in done.stdout
    assert target != "numba" or "kernels compiled" in done.stdout
    assert "not used: the float64" not in done.stdout
    p = ast.literal_eval(done.stdout.splitlines()[-1])
    np.testing.assert_allclose(p, reg.predict([0.4, 0.1, -0.7]), rtol=1e-14, atol=1e-15)


@targets
@pytest.mark.parametrize("sample", SAMPLES)
def test_it_imports_nothing_else(target: Target, sample: str) -> None:
    if sample in target.without:
        with pytest.raises(fysym.UnsupportedError, match="there is no (Numba code|target .numba.)"):
            target.source(sample_named(sample))
        return
    tree = ast.parse(target.source(sample_named(sample)))
    found = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    found |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert {name.split(".")[0] for name in found} <= target.imports
    called = {node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
    assert not called & {"exec", "eval", "compile", "__import__", "open", "getattr", "setattr", "globals", "input"}


@targets
def test_a_wrong_number_fails_the_self_check(target: Target, tmp_path: Path) -> None:
    text = target.source(fysym.catalog.exponential)
    found = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef) and "slope" in node.name]
    lines = text.split("\n")
    for node in found:
        if node.name.startswith("entropy_"):
            last = node.body[-1].lineno - 1
            lines[last] = lines[last].replace("return ", "return 1.25 * ", 1)
    assert lines != text.split("\n")
    assert alone("\n".join(lines), tmp_path).returncode != 0


# Nothing typed becomes code

HOSTILE = {
    "quotes": "\"'\"\"\"'''",
    "triple quotes and code": 'x"""\nimport os\nos.system("echo hacked")\n#',
    "newline": "a\nprint('hacked')\n",
    "carriage return": "a\rprint('hacked')\r",
    "CR LF": "a\r\nprint('hacked')",
    "form feed": "a\x0cprint('hacked')\x0b",
    "unicode line separators": "a\u2028print('hacked')\u2029print('hacked')\x85print('hacked')\x1c",
    "backslash": "\\",
    "backslash at the end": "a\\",
    "escapes": "\\n\\x0a\\u000a\\N{LINE FEED}",
    "NUL": "a\x00b",
    "surrogates": "\ud800\udfff",
    "right to left": "\u202e\u2066",
    "an encoding": "coding: raw_unicode_escape \\u000aprint('hacked')\\u000a#",
    "an unknown encoding": "-*- coding: nothing -*-",
    "vim encoding": "vim: set fileencoding=utf-7 : +AAo-print('hacked')",
    "format": "{0.__class__} %s %(x)s {} ${x}",
    "a name of the module": "np",
    "another": "predict",
    "keyword": "lambda",
    "dunder": "__import__",
    "the mark of the runtime": "# -- emitted from here --",
    "html": "<script>alert(1)</script>",
    "long": "x" * 5_000,
    "not ASCII": "λ\u0301é\U0001f600",
    "blank": " ",
    "empty": "",
}
hostile = pytest.mark.parametrize("typed", HOSTILE.values(), ids=HOSTILE.keys())


def code(text: str) -> str:
    """Everything of a module but its comments."""
    return ast.dump(ast.parse(text))


def check_text(text: str, plain: str, folder: Path) -> None:
    """The text is the plain one but for comments, on disk too, and to whatever reads it line by line."""
    assert code(text) == code(plain)
    assert text.splitlines() == text.split("\n") or text.splitlines() == text.split("\n")[:-1]
    assert all(sign.isprintable() or sign == "\n" for sign in text)
    path = folder / "emitted.py"
    path.write_text(text, encoding="utf-8")
    with tokenize.open(path) as file:  # obeys a declaration of the encoding, as Python does
        assert file.encoding == "utf-8"
        assert code(file.read()) == code(plain)
    comments = [
        token for token in tokenize.generate_tokens(io.StringIO(text).readline) if token.type == tokenize.COMMENT
    ]
    assert all(token.string.startswith("#") and "\n" not in token.string for token in comments)


@targets
@hostile
def test_a_name_is_only_a_comment(target: Target, typed: str, tmp_path: Path) -> None:
    plain = target.source(fysym.compile("t*(1-t)/2"))
    reg = fysym.compile("t*(1-t)/2", name=typed)
    check_text(target.source(reg), plain, tmp_path)
    assert "\n" not in repr(reg)


@targets
@hostile
def test_a_variable_is_only_a_comment(target: Target, typed: str, tmp_path: Path) -> None:
    plain = target.source(fysym.compile("t*(1-t)/2"))
    x = sympy.Symbol(typed)
    check_text(target.source(fysym.compile(x * (1 - x) / 2)), plain, tmp_path)


@targets
@hostile
def test_a_parameter_is_only_a_comment(target: Target, typed: str, tmp_path: Path) -> None:
    t = sympy.Symbol("t")

    def bound(name: str) -> fysym.Regularizer:
        a = sympy.Symbol(name, positive=True)
        return fysym.compile(a * t * (1 - t), params={name: (0, None)}).bind(**{name: 2})

    check_text(target.source(bound(typed)), target.source(bound("a")), tmp_path)


@pytest.mark.parametrize("name", [5, b"gini", ["gini"], 1.5, object(), True])
def test_a_name_that_is_no_text_is_refused(name: Any) -> None:
    with pytest.raises(fysym.ParameterError, match="name must be a text"):
        fysym.compile("t*(1-t)/2", name=name)


def test_two_encodings_in_the_first_lines_run_nothing(tmp_path: Path) -> None:
    """Python reads the encoding of a file from a comment in its first two lines, and decodes the rest by it."""
    x = sympy.Symbol("coding: raw_unicode_escape ")
    done = alone(fysym.compile(x * (1 - x) / 2, name="\\u000aprint('hacked')\\u000a#").source(), tmp_path)
    assert done.returncode == 0 and "hacked" not in done.stdout
