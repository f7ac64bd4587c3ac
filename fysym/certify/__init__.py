"""Certificates by ball arithmetic that a function keeps one sign on (0, 1), with python-flint (`fysym[certify]`)."""

from ..certify_precision import available
from .cover import Cover, certify_sign
from .strips import End

__all__ = ["Cover", "End", "available", "certify_sign"]
