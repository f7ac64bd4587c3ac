"""Write an entropy; get its theory, its Fenchel-Young loss and its fast code.

>>> import fysym
>>> fysym.compile("t*(1 - t)/2").margin
1
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from .cache import cache_dir, clear_cache
from .catalog import catalog
from .domains import Domain, budget
from .errors import (
    FysymError,
    InputError,
    NotConcaveError,
    ParameterError,
    ParseError,
    UndecidedError,
    UnsupportedError,
)
from .facts import Fact

if TYPE_CHECKING:
    from . import plot
    from .certificate import verify
    from .compiler import compile
    from .composite import Composite, compile_composite
    from .polyhedral import Polyhedral
    from .regularizer import Regularizer

__version__ = "0.1.0"
__all__ = [
    "Composite",
    "Domain",
    "Fact",
    "FysymError",
    "InputError",
    "NotConcaveError",
    "ParameterError",
    "ParseError",
    "Polyhedral",
    "Regularizer",
    "UndecidedError",
    "UnsupportedError",
    "budget",
    "cache_dir",
    "catalog",
    "clear_cache",
    "compile",
    "compile_composite",
    "plot",
    "verify",
]

# What brings SymPy is imported when it is first used, so that `fysym --help` and `fysym catalog` answer at once.
_LATER = {
    "Composite": "composite",
    "Polyhedral": "polyhedral",
    "Regularizer": "regularizer",
    "compile": "compiler",
    "compile_composite": "composite",
    "verify": "certificate",
}


def __getattr__(name: str) -> Any:
    if name == "plot":
        return importlib.import_module(".plot", __name__)
    if name not in _LATER:
        raise AttributeError(f"module 'fysym' has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(f".{_LATER[name]}", __name__), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
