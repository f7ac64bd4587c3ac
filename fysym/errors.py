"""Every error that fysym raises, under one root that is a ValueError."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class FysymError(ValueError):
    """Something that fysym was given cannot be used; the message says what, where, and what to try.

    >>> import fysym
    >>> issubclass(fysym.FysymError, ValueError)
    True
    """


class ParseError(FysymError):
    """A text is not an expression that fysym reads; the message points at the place with a caret.

    `text` is what was given (shortened if long) and `position` the 0-based column of the caret.

    >>> import fysym
    >>> try:
    ...     fysym.compile("t*(1 - ")
    ... except fysym.ParseError as error:
    ...     print(error.position)
    2
    """

    def __init__(self, problem: str, text: str = "", position: int = 0) -> None:
        self.problem = problem
        self.text = text
        self.position = position
        super().__init__(_with_caret(problem, text, position))


class UnsupportedError(FysymError):
    """An expression contains something that cannot be compiled; the message names the smallest such part.

    >>> import fysym, sympy
    >>> try:
    ...     fysym.compile(sympy.zeta(sympy.Symbol("t")))
    ... except fysym.UnsupportedError as error:
    ...     print(str(error).partition(";")[0])
    zeta(t) (zeta) is not something that fysym compiles
    """


class ParameterError(FysymError):
    """A parameter is missing, unknown, or outside its range; the message names the range.

    >>> import fysym
    >>> try:
    ...     fysym.catalog.tsallis.bind(alpha=0.5)
    ... except fysym.ParameterError as error:
    ...     print(error)
    alpha = 1/2 is outside its range: alpha > 1
    """


class NotConcaveError(FysymError):
    """The entropy is not strictly concave on (0, 1).

    `witness` is a point t of (0, 1) where it fails, `parameters` the parameter values there, and
    `culprit` the sub-expression at fault where one can be named (None otherwise).

    >>> import fysym
    >>> try:
    ...     fysym.compile("t**2")
    ... except fysym.NotConcaveError as error:
    ...     print(error.witness)
    1/2
    """

    def __init__(
        self,
        message: str,
        witness: Any,
        parameters: Mapping[str, Any] | None = None,
        culprit: Any = None,
    ) -> None:
        self.witness = witness
        self.parameters = dict(parameters or {})
        self.culprit = culprit
        super().__init__(message)

    def or_try(self, advice: str) -> NotConcaveError:
        """The same error with one more thing to try."""
        message = f"{str(self).removesuffix('.')}, or {advice}."
        return NotConcaveError(message, self.witness, self.parameters, self.culprit)


class UndecidedError(FysymError):
    """A question that must be settled could be neither proved, refuted nor sampled reliably.

    `interval` is the part of (0, 1) where it stayed open, where one can be named.

    >>> import fysym
    >>> try:
    ...     fysym.compile("t*(1 - t)", deadline=0)
    ... except fysym.UndecidedError as error:
    ...     print(error)
    the expression could not be read within the deadline; simplify it
    """

    def __init__(self, message: str, interval: tuple[float, float] | None = None) -> None:
        self.interval = interval
        super().__init__(message)


class InputError(FysymError):
    """Scores, labels or probabilities have a wrong shape, type or value; the message names the first bad row.

    >>> import fysym
    >>> try:
    ...     fysym.catalog.gini.loss([1.0, 2.0], 2)
    ... except fysym.InputError as error:
    ...     print(error)
    label 2 in the vector is not a class: there are 2, 0 to 1
    """


def _with_caret(problem: str, text: str, position: int, width: int = 72) -> str:
    """The problem, then the line at fault with a caret below the place."""
    if not text:
        return problem
    position = min(max(position, 0), len(text))
    start = text.rfind("\n", 0, position) + 1
    end = text.find("\n", position)
    line = text[start : end if end >= 0 else len(text)]
    column = position - start
    if len(line) > width:
        cut = min(max(column - width // 2, 0), len(line) - width)
        line = ("..." if cut else "") + line[cut : cut + width] + ("..." if cut + width < len(text) else "")
        column = column - cut + (3 if cut else 0)
    line = "".join(c if c.isprintable() else " " for c in line)
    return f"{problem}\n  {line}\n  {' ' * column}^"
