"""Time limits that hold on any thread."""

import contextlib
import random
import sys
import threading
import time
from collections.abc import Callable

import mpmath
import pytest
import sympy

from fysym import truth
from fysym.deadline import Deadline, StepTimeout, run


def spin() -> None:
    while True:
        with contextlib.suppress(Exception):
            time.sleep(0.001)


def test_a_result_and_an_error_pass_through() -> None:
    assert run(lambda a, b: a + b, 2, 3, seconds=5) == 5
    with pytest.raises(KeyError):
        run(lambda: {}["missing"], seconds=5)


@pytest.mark.parametrize("exponent", [10**10, sympy.Rational(10**10, 3), -(10**10)])
@pytest.mark.parametrize("base", [sympy.Integer(7), sympy.Rational(7, 3)])
def test_a_step_refuses_a_power_that_nothing_could_interrupt(base: sympy.Rational, exponent: sympy.Rational) -> None:
    with pytest.raises(StepTimeout, match="too large"):
        run(lambda: base**exponent, seconds=60)
    with pytest.raises(StepTimeout, match="too large"):
        run(lambda: sympy.logcombine(10**10 * sympy.log(base) + sympy.log(5), force=True), seconds=60)


def test_other_powers_are_as_ever() -> None:
    assert run(lambda: sympy.Integer(-1) ** (10**12) + sympy.Integer(0) ** (10**12), seconds=60) == 1
    assert run(lambda: sympy.Rational(3, 2) ** 1000, seconds=60) == sympy.Rational(3**1000, 2**1000)
    assert (sympy.Integer(2) ** (2**23)).p.bit_length() == 2**23 + 1  # not in a step


def test_an_endless_step_is_left_and_ends() -> None:
    with pytest.raises(StepTimeout):
        run(spin, seconds=0.05)
    wait_for(lambda: not steps())


def test_it_works_off_the_main_thread() -> None:
    seen: list[type[BaseException]] = []

    def elsewhere() -> None:
        try:
            run(spin, seconds=0.05)
        except StepTimeout as error:
            seen.append(type(error))

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join(10)
    assert seen == [StepTimeout]


def steps() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith("fysym-")]


def test_steps_inside_a_step_that_is_left_end_too() -> None:
    def nest(depth: int) -> None:
        run(nest, depth - 1, seconds=60) if depth else spin()

    with pytest.raises(StepTimeout):
        run(nest, 4, seconds=0.2)
    wait_for(lambda: not steps())


def test_a_step_that_swallows_interruptions_ends_when_it_can() -> None:
    swallowed = []
    busy = threading.Event()

    def stubborn() -> None:
        end = time.monotonic() + 1.0
        while time.monotonic() < end:
            try:
                spin()
            except BaseException as error:
                swallowed.append(error)
        busy.set()
        spin()

    with pytest.raises(StepTimeout):
        run(stubborn, seconds=0.05)
    assert busy.wait(10)
    wait_for(lambda: not steps())
    assert len(swallowed) > 3


def test_the_hook_for_what_cannot_be_raised_is_put_back() -> None:
    before = sys.unraisablehook
    for _ in range(3):
        with pytest.raises(StepTimeout):
            run(spin, seconds=0.02)
    wait_for(lambda: sys.unraisablehook is before)


def test_the_precision_of_mpmath_is_put_back() -> None:
    def careless() -> None:
        mpmath.mp.prec = 11
        spin()

    with pytest.raises(StepTimeout):
        run(careless, seconds=0.05)
    assert mpmath.mp.prec == 53


def test_what_a_left_step_was_using_is_not_used_again() -> None:
    mine = truth.context()

    def outer() -> None:
        with contextlib.suppress(StepTimeout):
            run(spin, seconds=0.05)

    run(outer, seconds=10)
    assert truth.context() is not mine


def test_steps_that_time_out_at_every_depth_and_moment() -> None:
    """An interruption may arrive anywhere, also where a step starts, waits for or stops another one."""

    def nest(depth: int, rng: random.Random) -> None:
        if depth == 0:
            spin()
        try:
            run(nest, depth - 1, rng, seconds=0.06 * rng.random())
        except StepTimeout:
            nest(depth - 1, rng)

    def user(seed: int) -> None:
        rng = random.Random(seed)
        for _ in range(25):
            with contextlib.suppress(StepTimeout):
                run(nest, rng.randrange(4), rng, seconds=0.01 + 0.05 * rng.random())
        finished.append(seed)

    finished: list[int] = []
    users = [threading.Thread(target=user, args=(seed,), daemon=True) for seed in range(3)]
    for thread in users:
        thread.start()
    for thread in users:
        thread.join(120)
    assert sorted(finished) == [0, 1, 2]
    wait_for(lambda: not steps())


def wait_for(condition: Callable[[], bool], seconds: float = 10.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, steps()
        time.sleep(0.01)


def test_no_time_left_means_no_start() -> None:
    started: list[int] = []
    with pytest.raises(StepTimeout):
        Deadline(0.0).run(started.append, 1)
    assert started == []


@pytest.mark.parametrize("low", [-2, 1])
def test_a_root_keeps_its_sign_where_a_step_is_stopped(low: int) -> None:
    """SymPy's interval around x**2 - 2 is not changed while its ends are read."""
    from sympy.polys.rootisolation import RealInterval

    run(lambda: None, seconds=5.0)
    interval = RealInterval((sympy.QQ(low), sympy.QQ(low + 1)), [sympy.ZZ(1), sympy.ZZ(0), sympy.ZZ(-2)], sympy.ZZ)
    assert (interval.a, interval.b) == (low, low + 1)

    class Stopped(RealInterval):
        @property
        def a(self):  # type: ignore[no-untyped-def]
            raise KeyboardInterrupt

    stopped = Stopped.__new__(Stopped)
    stopped.__dict__ = interval.__dict__
    with pytest.raises(KeyboardInterrupt):
        _ = stopped.b
    assert (interval.a, interval.b) == (low, low + 1)
