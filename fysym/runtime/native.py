"""Kernel text to machine code: compiled by Numba, stored as object files, loaded by llvmlite.

A kernel works on raw pointers, allocates nothing and raises nothing, so its object code refers to no symbol of Numba's:
a later process loads it without importing Numba, which takes most of a second.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import os
import platform
import threading
from collections.abc import Callable
from typing import Any

from .. import cache
from ..errors import UnsupportedError

VERSION = b"fysym kernel 3"
UNFIT = b"unfit: "  # in place of a kernel: what it gets wrong


def machine() -> Any:
    """The processor that kernels are compiled for; each engine must have its own, which it takes over."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    features = llvm.get_host_cpu_features()
    if platform.machine() in ("x86_64", "AMD64") and not features.get("fma"):
        raise UnsupportedError("the processor has no fused multiply-add")
    name = os.environ.get("NUMBA_CPU_NAME")
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=name or llvm.get_host_cpu_name(),
        features=os.environ.get("NUMBA_CPU_FEATURES", "") if name else features.flatten(),
        opt=3,
        reloc="default",
        codemodel="jitdefault",
        jit=True,
    )


@functools.cache
def _surroundings() -> str:
    """Everything besides a kernel's text that its machine code and the verdict on it depend on."""
    import llvmlite
    import llvmlite.binding as llvm

    from . import vector_coefficients

    folder = os.path.dirname(inspect.getfile(vector_coefficients))
    parts = [llvmlite.__version__, llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()]
    parts += [os.environ.get(name, "") for name in ("NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES")]
    for name in ("vector.py", "vector_math.py", "vector_coefficients.py", "numba.py", "numpy.py", "numpy_losses.py"):
        with open(os.path.join(folder, name), encoding="utf-8") as file:
            parts.append(file.read())
    return "\n".join(parts)


def key(text: str) -> str:
    """The name under which a kernel is stored."""
    return hashlib.sha256((_surroundings() + text).encode()).hexdigest()[:32]


def compile_text(text: str) -> bytes:
    """Kernel text to what is stored: symbol, checksum and object file."""
    space: dict[str, Any] = {"__name__": "fysym_kernel"}
    exec(compile(text, "<fysym kernel>", "exec"), space)  # our own emitter's text, never user text
    result = next(iter(space["run"].overloads.values()))
    code: bytes = machine().emit_object(result.library._final_module)
    symbol = result.fndesc.llvm_func_name.encode()
    return b"\n".join([VERSION, symbol, hashlib.sha256(code).hexdigest().encode(), code])


class Native:
    """A loaded kernel."""

    def __init__(self, stored: bytes) -> None:
        import llvmlite.binding as llvm

        version, symbol, checksum, code = stored.split(b"\n", 3)
        if version != VERSION or hashlib.sha256(code).hexdigest().encode() != checksum:
            raise ValueError("not a kernel")
        self.engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine())
        self.engine.add_object_file(llvm.ObjectFileRef.from_data(code))
        self.engine.finalize_object()
        self.address = self.engine.get_function_address(symbol.decode())


_lock = threading.Lock()
_loaded: dict[str, Native | str] = {}  # never freed: machine code may be running in any thread


def load(text: str, problem: Callable[[Native], str]) -> Native:
    """The kernel of that text: loaded already, from the cache, or compiled, tried and put there.

    `problem` says what a new kernel gets wrong; that is remembered too, and raised as UnsupportedError.
    """
    name = key(text)
    with _lock:
        if name not in _loaded:
            stored = cache.read(name)
            found = _parsed(stored)
            if found is None:
                stored = compile_text(text)
                found = Native(stored)
                wrong = problem(found)
                if wrong:
                    stored, found = UNFIT + wrong.encode(), wrong
                cache.write(name, stored)
            _loaded[name] = found
        found = _loaded[name]
        if isinstance(found, str):
            raise UnsupportedError(found)
        return found


def _parsed(stored: bytes | None) -> Native | str | None:
    if stored is None:
        return None
    if stored.startswith(UNFIT):
        return stored[len(UNFIT) :].decode(errors="replace")
    try:
        return Native(stored)
    except ValueError:  # damaged: made again
        return None


def _forget() -> None:
    """A forked child may have copied the lock while another thread held it."""
    global _lock
    _lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
