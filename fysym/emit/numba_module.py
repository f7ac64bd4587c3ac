"""Emits a Program as a standalone module of compiled functions: the NumPy module, and over it the Numba kernels."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from importlib import resources
from typing import Any

from ..errors import UnsupportedError
from ..program import Program
from . import numba as kernels
from . import numpy as numpy_emitter

IMPORTS = """
import contextlib
import ctypes
import os
import platform
import queue
import struct
import threading
import time


class UnsupportedError(Exception):
    \"\"\"There is no compiled code for this.\"\"\"


"""
LOADING = """
class Loaded:
    \"\"\"A kernel, compiled when it is first needed.\"\"\"

    def __init__(self, run: Any) -> None:
        self.run = run  # owns the machine code
        result = next(iter(run.overloads.values()))
        self.address = result.library.get_pointer_to_function(result.fndesc.llvm_func_name)


LOADING = threading.RLock()
MAKERS: dict[Any, Any] = {}


def load(kind: str, bits: int, problem: Any) -> Any:
    \"\"\"A new kernel, compared with the NumPy functions.\"\"\"
    if (kind, bits) not in KINDS:
        raise UnsupportedError(f"there is no float{bits} kernel for {kind}")
    with LOADING:
        if not MAKERS:
            MAKERS.update(kernels())
        made = Loaded(MAKERS[kind, bits]())
    wrong = problem(made)
    if wrong:
        raise UnsupportedError(wrong)
    return made


COMPILED = Compiled(
    load,
    SimpleNamespace(
        F=F, solve=solve, jvp_rows=jvp_rows, gap=gap, predict=predict, jvp=jvp, value_and_grad=value_and_grad,
        threshold=threshold,
    ),
    lambda kind, bits: SCRATCH[kind, bits],
)
"""
CHECK = """
def check_kernels() -> None:
    \"\"\"Compile all kernels; those that do not agree with the NumPy functions are not used, and are named.\"\"\"
    used = 0
    for kind, bits in KINDS:
        try:
            COMPILED.native(kind, bits)
            used += 1
        except UnsupportedError as error:
            print(f"not used: {error}")
    print(f"{used} kernels compiled, which agree with NumPy")

"""
METHOD = """
def {name}({arguments}, axis: int = -1) -> Any:
    \"\"\"{words}\"\"\"
    try:
        return COMPILED.{name}({values}, axis=axis)
    except UnsupportedError:
        return KERNEL.{name}({values}, axis=axis)

"""
METHODS = {
    "predict": ("theta", "The probabilities that maximise <theta, p> + H(p)."),
    "value_and_grad": ("theta y", "The loss of each row and its gradient p - y; y are labels or proportions."),
    "loss": ("theta y", "The loss of each row."),
    "grad": ("theta y", "The gradient p - y of each row's loss."),
    "jvp": ("theta v", "The derivative of the prediction in the direction v."),
    "vjp": ("theta v", "v times the Jacobian, which is symmetric: the same as jvp."),
}
VECTOR = ("vector_coefficients", "vector_math", "vector")


def source(program: Program, header: Sequence[str], checks: Sequence[tuple[Any, Any, float]]) -> str:
    """The text of a module that needs NumPy and Numba, and SciPy where a special function does, and nothing else."""
    texts = {}
    for kind in kernels.KINDS:
        for bits in (64, 32):
            try:
                texts[kind, bits] = kernels.kernel(program, kind, bits)
            except UnsupportedError:
                if (kind, bits) == ("predict", 64):
                    raise
    scratch = {(kind, bits): kernels.scratch(program, kind, bits) for kind, bits in texts}
    more = [
        "# The compiled functions.",
        IMPORTS,
        _runtime("team"),
        _runtime("numba"),
        _makers(texts),
        f"KINDS = {list(texts)!r}\nSCRATCH = {scratch!r}\n",
        LOADING,
        *(_method(name, arguments.split(), words) for name, (arguments, words) in METHODS.items()),
        CHECK,
    ]
    text = numpy_emitter.source(program, header, checks, more)
    return text.rstrip("\n") + "\n    check_kernels()\n"


def _method(name: str, arguments: list[str], words: str) -> str:
    typed, values = ", ".join(f"{argument}: Any" for argument in arguments), ", ".join(arguments)
    return METHOD.format(name=name, arguments=typed, values=values, words=words)


def _makers(texts: dict[tuple[str, int], str]) -> str:
    """A function that imports Numba, defines the vector functions, and gives a function for each kernel."""
    parts = [
        "import inspect\nimport math\nimport operator\nimport struct\n\nfrom llvmlite import ir\n"
        "from numba import float32, float64, intp, njit, types\n"
        "from numba.core.typing.templates import AbstractTemplate, infer_global, signature\n"
        "from numba.extending import intrinsic, lower_builtin, models, register_model\n",
        *(_runtime(name) for name in VECTOR),
    ]
    tables: dict[str, str] = {}
    for (kind, bits), text in texts.items():
        text = re.sub(r"^(import|from) .*\n", "", text, flags=re.M)
        for table in re.findall(r"^TABLE = np.array\((\[.*\]), F\)$", text, re.M):
            if table not in tables:  # the same for several kinds
                tables[table] = f"table_{len(tables)}"
                parts.append(f"{tables[table]} = {table}\n")
            text = text.replace(table, tables[table])
        parts.append(f"\ndef {kind}_{bits}() -> Any:\n{textwrap.indent(text.strip(), '    ')}\n    return run\n")
    made = ", ".join(f"({kind!r}, {bits}): {kind}_{bits}" for kind, bits in texts)
    body = textwrap.indent("\n".join([*parts, f"\nreturn {{{made}}}"]), "    ")
    return f'def kernels() -> dict[Any, Any]:\n    """What compiles the kernels, by kind and bits."""\n{body}\n\n'


def _runtime(name: str) -> str:
    """The part of a runtime module that an emitted one carries; its text is read, as importing it imports Numba."""
    text = resources.files("fysym.runtime").joinpath(f"{name}.py").read_text(encoding="utf-8")
    return text.split(numpy_emitter.MARK)[1].strip() + "\n\n"
