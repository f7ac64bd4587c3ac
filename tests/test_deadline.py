"""Time limits that hold on any thread."""

import contextlib
import threading
import time

import pytest

from fysym.deadline import Deadline, StepTimeout, run


def spin() -> None:
    while True:
        with contextlib.suppress(Exception):
            time.sleep(0.001)


def test_a_result_and_an_error_pass_through() -> None:
    assert run(lambda a, b: a + b, 2, 3, seconds=5) == 5
    with pytest.raises(KeyError):
        run(lambda: {}["missing"], seconds=5)


def test_an_endless_step_is_left_and_ends() -> None:
    before = threading.active_count()
    with pytest.raises(StepTimeout):
        run(spin, seconds=0.05)
    assert threading.active_count() == before


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


def test_no_time_left_means_no_start() -> None:
    started: list[int] = []
    with pytest.raises(StepTimeout):
        Deadline(0.0).run(started.append, 1)
    assert started == []
