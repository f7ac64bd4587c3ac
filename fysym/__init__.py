"""Write an entropy; get its theory, its Fenchel-Young loss and its fast code.

>>> import fysym
>>> fysym.compile("t*(1 - t)/2").margin
1
"""

from __future__ import annotations

from .cache import cache_dir, clear_cache
from .catalog import catalog
from .certificate import verify
from .compiler import compile
from .composite import Composite, compile_composite
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
    "Regularizer",
    "UndecidedError",
    "UnsupportedError",
    "budget",
    "cache_dir",
    "catalog",
    "clear_cache",
    "compile",
    "compile_composite",
    "verify",
]
