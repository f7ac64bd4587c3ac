"""Whether an entropy has compiled kernels, and which; importing this does not import Numba."""

from __future__ import annotations

import functools
import importlib.util
from collections.abc import Sequence
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
        emitter.kernel(program, "predict", 64)
        words = emitter.plan(program).words
    except UnsupportedError as error:
        return f"none ({error}); the NumPy code is used"
    try:
        emitter.kernel(program, "label", 64)
    except UnsupportedError as error:
        words += f"; losses by the NumPy code ({error})"
    return words if installed() else f"none, as Numba is not installed; with it, {words}"


def source(program: Program, header: Sequence[str], checks: Sequence[tuple[Any, Any, float]]) -> str:
    """The text of a standalone module of compiled functions."""
    from .emit import numba_module as emitter

    try:
        return emitter.source(program, header, checks)
    except UnsupportedError as error:
        raise UnsupportedError(f"there is no Numba code: {error}; the target numpy always has code") from None


def kernel(program: Program, module: Any) -> Any:
    """The compiled kernels over an emitted NumPy module, or the reason why there are none."""
    if not installed():
        return "Numba is not installed (pip install 'fysym[fast]')"
    from .emit import numba as emitter

    try:
        emitter.kernel(program, "predict", 64)
    except UnsupportedError as error:
        return str(error)
    from .runtime.native import load
    from .runtime.numba import Compiled

    return Compiled(
        lambda kind, bits, problem: load(emitter.kernel(program, kind, bits), problem),
        module,
        functools.partial(emitter.scratch, program),
    )


def describe_composite(program: Program) -> str:
    """How the compiled kernel of a composite entropy around this one works, or why there is none."""
    from .emit import numba_composite as emitter

    try:
        family = emitter.family(program)
    except UnsupportedError as error:
        return f"none ({error}); the NumPy code is used"
    return "Newton for log w and the cut together" + (", among the scores within the margin" * (family != "dense"))


def composite_kernel(program: Program, functions: Any, outer: Any, inner: Any) -> Any:
    """The compiled kernel of a composite entropy, or the reason why there is none."""
    if not installed():
        return "Numba is not installed (pip install 'fysym[fast]')"
    from .emit import numba_composite as emitter

    try:
        text = emitter.source(program, emitter.form(functions, outer, inner))
        few = emitter.family(program) != "dense"
    except UnsupportedError as error:
        return str(error)
    from .runtime.numba_composite import Compiled

    return Compiled(text, functions, few)
