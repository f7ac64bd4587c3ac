"""Whether an entropy has compiled kernels, and which; importing this does not import Numba."""

from __future__ import annotations

import functools
import importlib.util
from typing import TYPE_CHECKING, Any

from .errors import UnsupportedError

if TYPE_CHECKING:
    from .program import Program


def installed() -> bool:
    """Whether Numba can be imported."""
    try:
        return importlib.util.find_spec("numba") is not None
    except (ImportError, ValueError):
        return False


def describe(program: Program) -> str:
    """How the compiled kernels find the threshold and why, or why there are none."""
    from .emit import numba as emitter

    try:
        emitter.source(program, "predict", 64)
        words = emitter.plan(program).words
    except UnsupportedError as error:
        return f"none ({error}); the NumPy code is used"
    try:
        emitter.source(program, "label", 64)
    except UnsupportedError as error:
        words += f"; losses by the NumPy code ({error})"
    return words


def kernel(program: Program, module: Any) -> Any:
    """The compiled kernels over an emitted NumPy module, or the reason why there are none."""
    if not installed():
        return "Numba is not installed (pip install 'fysym[fast]')"
    from .emit import numba as emitter

    try:
        emitter.source(program, "predict", 64)
    except UnsupportedError as error:
        return str(error)
    from .runtime.numba import Kernel

    return Kernel(
        functools.partial(emitter.source, program), module, functools.partial(emitter.rows_of_scratch, program)
    )
