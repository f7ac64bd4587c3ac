"""Whether an entropy has compiled kernels, and which; importing this does not import Numba."""

from __future__ import annotations

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
        emitter.source(program, "label", 64)
        return emitter.plan(program).words
    except UnsupportedError as error:
        return f"none ({error}); the NumPy code is used"


def kernel(program: Program, module: Any) -> Any:
    """The compiled kernels over an emitted NumPy module, or the reason why there are none."""
    if not installed():
        return "Numba is not installed (pip install 'fysym[fast]')"
    from .emit import numba as emitter

    try:
        emitter.plan(program)
        texts = {(kind, bits): emitter.source(program, kind, bits) for kind in emitter.KINDS for bits in (64, 32)}
    except UnsupportedError as error:
        return str(error)
    from .runtime.numba import Kernel

    return Kernel(lambda kind, bits: texts[kind, bits], module)
