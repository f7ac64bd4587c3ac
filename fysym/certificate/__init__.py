"""Certificates: an argument as plain JSON data, and a check of it that does not trust whoever found it.

A certificate states an entropy, the ranges of its parameters, and claims such as h'' < 0 on (0, 1), each
with its whole argument: a tree of steps, in which a cover by boxes may be a leaf.
"""

from .checking import examine, verify
from .data import CertificateError
from .writing import export

__all__ = ["CertificateError", "examine", "export", "verify"]
