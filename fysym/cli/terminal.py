"""What a terminal gets and a pipe does not: colour, and a spinner that names the stage of a slow step."""

from __future__ import annotations

import os
import re
import sys
import threading
from types import FrameType, TracebackType
from typing import TextIO

COLOURS = {"proved": "32", "certified": "32", "sampled": "33", "refuted": "31", "bold": "1", "faint": "2", "red": "31"}
# The modules of the compiler, in the words that the spinner shows.
STAGES = {
    "fysym.entropy": "reading h",
    "fysym.boundary": "limits at the ends",
    "fysym.witness": "looking for a counterexample",
    "fysym.regularity": "deciding whether h is smooth inside",
    "fysym.concavity": "deciding whether h is concave",
    "fysym.theory": "deriving the theory",
    "fysym.inverse": "inverting the slope",
    "fysym.program": "preparing the code",
    "fysym.emit.numpy": "writing the code",
    "fysym.emit.numba": "writing the code",
    "fysym.runtime.native": "compiling the kernel",
    "fysym.cli.speed": "measuring the speed",
    "fysym.plot": "drawing",
}


def is_coloured(stream: TextIO | None) -> bool:
    """Colour is for terminals, unless NO_COLOR is set or the terminal is a dumb one; a closed stream is None."""
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return stream is not None and stream.isatty() and not plain


def paint(text: str, colour: str, stream: TextIO | None) -> str:
    """The text in a colour, if the stream shows colours.

    >>> paint("margin", "bold", sys.stdout)
    'margin'
    """
    return f"\x1b[{COLOURS[colour]}m{text}\x1b[0m" if is_coloured(stream) else text


def painted_report(text: str, stream: TextIO | None) -> str:
    """A report with bold headings and each status in its colour, if the stream shows colours."""
    if not is_coloured(stream):
        return text
    text = re.sub(r"^(?=\S).*$", lambda m: paint(m[0], "bold", stream), text, flags=re.M)
    return re.sub(r"\[(proved|certified|sampled|refuted)\]", lambda m: paint(m[0], m[1], stream), text)


class UnwritableError(Exception):
    """A result cannot be written to stdout."""


def show(text: str, end: str = "\n") -> None:
    """Print a result; a reader that has seen enough, such as `head`, is no error."""
    if sys.stdout is None:
        raise UnwritableError("the answer cannot be written: stdout is closed")
    try:
        print(text, end=end, flush=True)
    except OSError as error:
        _discard(sys.stdout)
        if not isinstance(error, BrokenPipeError):
            raise UnwritableError(f"the answer cannot be written to stdout: {error.strerror or error}") from None


def remark(text: str, colour: str) -> None:
    """Print a remark to stderr, if that can be written to."""
    if sys.stderr is None:
        return
    try:
        print(f"{paint('fysym:', colour, sys.stderr)} {text}", file=sys.stderr, flush=True)
    except OSError:
        _discard(sys.stderr)


def _discard(stream: TextIO) -> None:
    """Let all that is still to be written go nowhere: Python flushes once more when it ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


class Spinner:
    """While its block runs: after half a second, the current stage on stderr, if that is a terminal."""

    def __init__(self, stream: TextIO | None = None, patience: float = 0.5) -> None:
        self.stream: TextIO | None = stream or sys.stderr
        self.patience = patience
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Spinner:
        if self.stream is not None and self.stream.isatty() and os.environ.get("TERM") != "dumb":
            self._thread = threading.Thread(target=self._turn, name="fysym-spinner", daemon=True)
            self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._ended.set()
        if self._thread is not None:
            self._thread.join()

    def _turn(self) -> None:
        assert self.stream is not None
        if self._ended.wait(self.patience):
            return
        turn = 0
        while True:
            self.stream.write(f"\r\x1b[K{'|/-'[turn % 3]} {current_stage()} ...")
            self.stream.flush()
            turn += 1
            if self._ended.wait(0.1):
                break
        self.stream.write("\r\x1b[K")
        self.stream.flush()


def current_stage() -> str:
    """What the compiler is doing now, read off the stacks of its threads: the outermost stage of the newest."""
    found = "loading SymPy"
    frames = sys._current_frames()
    for thread in threading.enumerate():  # in the order in which they were started
        frame = frames.get(thread.ident or 0)
        if thread is not threading.current_thread() and frame is not None:
            found = _outermost(frame) or found
    return found


def _outermost(frame: FrameType | None) -> str | None:
    found = None
    while frame is not None:
        found = STAGES.get(frame.f_globals.get("__name__", ""), found)
        frame = frame.f_back
    return found
