"""A time limit on symbolic work that holds on any thread.

SymPy has calls that never return. Each step therefore runs on a worker thread of its own; when its
time is up the caller goes on without it, and the worker is told to stop by an asynchronous exception
(the only way to interrupt Python code off the main thread). No deadline can end a single long operation on
integers or polynomials, which holds the interpreter: steps refuse powers with millions of digits, and `factored` and
`simplified` avoid other known ones.
"""

from __future__ import annotations

import contextlib
import contextvars
import copy
import ctypes
import functools
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import mpmath
import sympy

Result = TypeVar("Result")


class StepTimeout(Exception):
    """A step used up its time."""


class _Stop(BaseException):
    """Raised inside a worker; a BaseException so that no `except Exception` in SymPy keeps it."""


class Deadline:
    """The time left for one compilation."""

    def __init__(self, seconds: float) -> None:
        self.seconds = float(seconds)
        self._end = time.monotonic() + self.seconds

    def left(self) -> float:
        return max(0.0, self._end - time.monotonic())

    def run(self, function: Callable[..., Result], *args: Any, share: float = 1.0) -> Result:
        """Return function(*args), or raise StepTimeout after `share` of the whole deadline or what is left."""
        return run(function, *args, seconds=min(self.seconds * share, self.left()))


class _Worker(threading.Thread):
    """The thread of one step, and the step inside it that it waits for.

    Waiting is done with a lock of its own: an interruption inside `join` would mark a running thread as ended.
    """

    def __init__(self, work: Callable[[], None]) -> None:
        super().__init__(target=contextvars.copy_context().run, args=(work,), name="fysym-step", daemon=True)
        self.inner: _Worker | None = None
        self.ended = False
        self.shielded = False  # while it starts a thread: the locks of `threading` do not stand interruptions
        self.turn = threading.Lock()  # held until the work has ended
        self.turn.acquire()
        # an interruption that arrives after the work has ended is nobody's concern
        self._invoke_excepthook = lambda *_: None

    def interrupt(self) -> bool:
        """Raise _Stop in this step and in those inside it; whether any of them is still there."""
        inside = self.inner is not None and self.inner.interrupt()
        if self.ended or self.ident is None:
            return inside
        number = ctypes.c_ulong(self.ident)
        try:
            # A later thread may have the same number. Nothing between this look and the call lets another thread run.
            if _threads[self.ident] is self and not self.shielded:
                return _interrupt(number, _STOP) > 0 or inside
            return _threads[self.ident] is self or inside
        except KeyError:
            return inside


_threads: dict[int, threading.Thread] = threading._active  # type: ignore[attr-defined]
_interrupt = ctypes.pythonapi.PyThreadState_SetAsyncExc
_STOP = ctypes.py_object(_Stop)


class _Shield:
    """Inside, the step that is running is not interrupted; an interruption that was on its way comes first."""

    def __enter__(self) -> None:
        self.step = threading.current_thread()
        if isinstance(self.step, _Worker):
            self.step.shielded = True
            try:
                for _ in range(3):
                    time.monotonic()  # each call takes what is on its way
            except BaseException:
                self.step.shielded = False
                raise

    def __exit__(self, *_: object) -> None:
        if isinstance(self.step, _Worker):
            self.step.shielded = False


def run(function: Callable[..., Result], *args: Any, seconds: float) -> Result:
    """Return function(*args), or raise StepTimeout when it takes longer than `seconds`."""
    if seconds <= 0:
        raise StepTimeout
    _bound_powers()
    _steady_roots()
    outcome: list[tuple[bool, Any]] = []
    precision = mpmath.mp.prec

    def work() -> None:
        try:
            outcome.append((True, function(*args)))
        except _Stop:
            pass
        except BaseException as error:
            outcome.append((False, error))
        finally:
            worker.ended = True
            worker.turn.release()

    worker = _Worker(work)
    outer = threading.current_thread()
    if isinstance(outer, _Worker):
        outer.inner = worker
    with _Shield():
        worker.start()
    try:
        worker.turn.acquire(timeout=seconds)
    except _Stop:  # who stops this step stops those inside it
        raise
    except BaseException:
        _stop(worker)
        raise
    if not worker.ended:
        _stop(worker)
    if not outcome:
        mpmath.mp.prec = precision  # SymPy sets it, and a step that was left may not have set it back
        for forget in _FORGETTERS:
            forget()
        raise StepTimeout
    succeeded, value = outcome[0]
    if not succeeded:
        raise value
    return value  # type: ignore[no-any-return]


def _stop(worker: _Worker, patience: float = 0.25) -> None:
    """See that a worker ends, and wait a moment for it.

    That is left to a thread which nobody interrupts: the caller may be a step that is being stopped itself.
    """
    with _Shield():
        reaper = threading.Thread(target=_reap, args=(worker,), name="fysym-reaper", daemon=True)
        reaper.start()
        reaper.join(patience)


def _reap(worker: _Worker) -> None:
    """Interrupt a step and all inside it until they have ended: SymPy may swallow an interruption, a long
    operation on integers delays it, and a step that waits for another hears of it only when that one ends."""
    pause = 0.005
    with _silence():
        while worker.interrupt():
            time.sleep(pause)
            pause = min(1.2 * pause, 1.0)


class _Silence:
    """Keeps Python from printing an interruption that hits a garbage-collection callback, where it cannot be raised."""

    def __init__(self) -> None:
        self.lock, self.count = threading.Lock(), 0

    @contextlib.contextmanager
    def __call__(self) -> Iterator[None]:
        with self.lock:
            self.count += 1
            if self.count == 1:
                self.before = before = sys.unraisablehook
                sys.unraisablehook = lambda problem: None if problem.exc_type is _Stop else before(problem)
        try:
            yield
        finally:
            with self.lock:
                self.count -= 1
                if self.count == 0:
                    sys.unraisablehook = self.before


_silence = _Silence()


MOST_BITS = 14000  # less than 4300 digits, the most that Python prints


@functools.cache
def _bound_powers() -> None:
    """Make steps refuse powers of numbers with more than MOST_BITS, such as 7**(10**9), which SymPy writes
    10**9*log(7) with: nothing could interrupt that. Outside of steps SymPy works as ever."""
    for kind in (sympy.Integer, sympy.Rational):
        kind._eval_power = functools.partialmethod(_modest_power, kind._eval_power)


def _modest_power(number: Any, before: Callable[..., Any], exponent: Any) -> Any:
    if exponent.is_Rational and abs(exponent) > 64 and isinstance(threading.current_thread(), _Worker):
        size = max(abs(number.p), number.q)
        if size > 1 and size.bit_length() * abs(exponent) > MOST_BITS:
            raise StepTimeout(f"({number})**({exponent}) is too large to be written out")
    return before(number, exponent)


@functools.cache
def _steady_roots() -> None:
    """Make the upper end of an interval around a root, which SymPy keeps for all to use, without turning that interval
    around for a moment: a step that is stopped just then would leave the root with the other sign."""
    from sympy.polys.rootisolation import RealInterval

    def upper(interval: Any) -> Any:
        mirrored = copy.copy(interval)
        mirrored.neg = not interval.neg
        return -mirrored.a

    RealInterval.b = property(upper)


_FORGETTERS: list[Callable[[], None]] = []


def on_timeout(forget: Callable[[], None]) -> Callable[[], None]:
    """Register what must be forgotten when a step was left half done, such as expressions that it asked about."""
    _FORGETTERS.append(forget)
    return forget


@on_timeout
def _forget_sympy() -> None:
    """Drop SymPy's caches: an interrupted query leaves 'unknown' marked as its answer."""
    from sympy.core.cache import clear_cache

    clear_cache()


def large_exponentials(expr: sympy.Expr, most: int = 64) -> list[sympy.Expr]:
    """exp(10^6 t), exp(10^6), exp((1000 t)^2): SymPy takes them as powers of exp(t), of E and of exp(t^2).

    It keeps a list of as many coefficients.
    """

    def is_large(exponent: sympy.Expr) -> bool:
        if any(power.exp.is_Integer and power.exp > most for power in exponent.atoms(sympy.Pow)):
            return True
        factors = (term.as_coeff_Mul()[0] for term in sympy.Add.make_args(sympy.expand(exponent)))
        return any(c.is_Rational and max(abs(c.p), c.q) > most for c in factors)

    return [power for power in expr.atoms(sympy.exp) if is_large(power.args[0])]


def _shielded(rewrite: Callable[[sympy.Expr], sympy.Expr], expr: sympy.Expr) -> sympy.Expr:
    """A rewrite of the expression with its large exponentials as symbols."""
    names = {power: sympy.Dummy(positive=True) for power in large_exponentials(expr)}
    found = rewrite(expr.xreplace(names))
    return found.xreplace({name: power for power, name in names.items()})


def factored(expr: sympy.Expr) -> sympy.Expr:
    """sympy.factor, with large exponentials as symbols."""
    return _shielded(sympy.factor, expr)


def cancelled(expr: sympy.Expr) -> sympy.Expr:
    """sympy.cancel, with large exponentials as symbols."""
    return _shielded(sympy.cancel, expr)


def simplified(expr: sympy.Expr) -> sympy.Expr:
    """sympy.simplify, with large exponentials as symbols."""
    return _shielded(sympy.simplify, expr)
