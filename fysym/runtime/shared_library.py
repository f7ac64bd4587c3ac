"""The functions of an emitted C file, compiled by the system's compiler and called on arrays."""

from __future__ import annotations

import ctypes
import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import UnsupportedError

FLAGS = ("-std=c99", "-O2")


def compiler() -> list[str] | None:
    """The command of a C compiler: what CC says, or the first one found; None without any."""
    candidates = [shlex.split(os.environ["CC"])] if os.environ.get("CC") else [["cc"], ["gcc"], ["clang"]]
    return next((command for command in candidates if command and shutil.which(command[0])), None)


def compile_c(text: str, output: Path, options: Sequence[str] = ()) -> None:
    """Compile a C file to `output`, next to which it is written; UnsupportedError where that is not possible."""
    command = compiler()
    if command is None:
        raise UnsupportedError("there is no C compiler; install one, or name it in the environment variable CC")
    source = output.with_suffix(".c")
    source.write_text(text, encoding="utf-8")
    done = subprocess.run(
        [*command, *FLAGS, *options, "-o", str(output), str(source), "-lm"], capture_output=True, text=True
    )
    if done.returncode != 0:
        raise UnsupportedError(f"{command[0]} does not compile the C file: {done.stderr}")


class SharedLibrary:
    """Predictions and losses by an emitted C file; `module`, an emitted NumPy one, reads arrays by the domain's rules.

    UnsupportedError where there is no compiler, or where it refuses the file.
    """

    def __init__(self, text: str, module: Any, options: Sequence[str] = ()) -> None:
        self.module = module
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            path = Path(folder) / "entropy.so"
            compile_c(text, path, [*options, "-shared", "-fPIC"])
            self.library = ctypes.CDLL(str(path))

    def predict(self, theta: Any, axis: int = -1) -> Any:
        """The predictions."""
        given = self.module.as_rows(theta, axis)
        rows = np.ascontiguousarray(given.rows, dtype=given.dtype)
        p = np.empty_like(rows)
        self._call("fy_predict", rows, rows, p)
        return self.module.back(given, p)

    def value_and_grad(self, theta: Any, y: Any, axis: int = -1) -> tuple[Any, Any]:
        """The loss of each row and its gradient p - y; y are labels or what the domain admits."""
        given = self.module.as_rows(theta, axis)
        rows = np.ascontiguousarray(given.rows, dtype=given.dtype)
        loss, grad = np.empty(len(rows), given.dtype), np.empty_like(rows)
        wanted, labels = self.module.targets(y, given).astype(given.dtype), None
        if np.asarray(y).shape == given.batch:
            wanted, labels = None, np.array(y, dtype=ctypes.c_long).reshape(-1)
        self._call("fy_value_and_grad", rows, rows, wanted, labels, loss, grad)
        return self.module.back_batch(given, loss), self.module.back(given, grad)

    def loss(self, theta: Any, y: Any, axis: int = -1) -> Any:
        """The loss of each row."""
        return self.value_and_grad(theta, y, axis)[0]

    def _call(self, name: str, rows: Any, *arrays: Any) -> None:
        function = getattr(self.library, name + ("f" if rows.dtype == np.float32 else ""))
        function.restype = None
        places = [None if array is None else ctypes.c_void_p(array.ctypes.data) for array in arrays]
        function(*places, *map(ctypes.c_size_t, rows.shape))
