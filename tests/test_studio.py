"""The studio: the workbench behind it, and the page in a real browser.

The browser is Debian's chromium (`apt-get install chromium`), driven by Playwright. Without them, or without marimo,
these tests are skipped, and fail if FYSYM_CI=1. Screenshots go to the folder FYSYM_SCREENSHOTS, if that is set.
"""

import contextlib
import importlib.util
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

import fysym
from fysym.catalog import SEPARABLE as ENTRIES
from fysym.ranges import parse_range
from fysym.workbench import Workbench, study

MUST = os.environ.get("FYSYM_CI") == "1"
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
MISSING = [name for name in ("marimo", "matplotlib", "playwright") if importlib.util.find_spec(name) is None]
MISSING += [] if CHROMIUM else ["chromium"]
QUIET = "no-sandbox disable-gpu disable-quic no-first-run disable-background-networking disable-component-update"
PATIENCE = 90_000  # milliseconds, for a busy machine

needs_plots = pytest.mark.skipif("matplotlib" in MISSING and not MUST, reason="needs Matplotlib")


# The workbench


@pytest.fixture(scope="module")
def bench() -> Iterator[Workbench]:
    with Workbench(deadline=20.0, grace=60.0) as made:
        yield made


@needs_plots
def test_the_workbench_studies(bench: Workbench) -> None:
    answer = bench.ask("study", {"entropy": " t*(1-t)*a ", "where": "a > 0"})
    assert answer["verdict"] == "accepted"
    span = answer["parameters"]["a"]
    assert 0 < span["start"] < span["value"] < span["stop"]
    refuted = bench.ask("study", {"entropy": "t**3", "where": ""})
    assert refuted["verdict"] == "refuted"
    assert refuted["picture"].startswith('<img alt="witness t = ')
    wrong = bench.ask("study", {"entropy": "t^2", "where": ""})
    assert wrong["verdict"] == "parse" and wrong["message"].endswith("\n  t^2\n   ^")
    assert bench.ask("study", {"entropy": "t*(1-t)*a", "where": "a >"})["verdict"] == "parse"
    assert bench.ask("study", {"entropy": "t*(1-t)", "where": "1 > 0"})["verdict"] == "error"


@needs_plots
def test_the_workbench_draws_members(bench: Workbench) -> None:
    question: dict[str, Any] = {"entropy": "t*(1-t)*a", "where": "a > 0", "values": {"a": 0.5}}
    answer = bench.ask("member", question)
    assert answer["margin"] == "1" and answer["sparsity"] == "full"
    assert answer["sources"]["numpy"] == fysym.compile("t*(1-t)*a", params={"a": "a > 0"}).bind(a=0.5).source()
    assert "#include" in answer["sources"]["c"]
    found = bench.ask("triangle", {**question, "theta": [1.0, 0.5, -1.0]})
    assert found["p"] == pytest.approx([0.75, 0.25, 0.0])
    assert bench.ask("member", {**question, "values": {"a": -1}})["verdict"] == "error"
    assert bench.ask("nonsense", {})["verdict"] == "error"


@pytest.mark.parametrize("where", ["0 < a < 1", "0 <= a <= 1", "a > -2", "a < 3", "a >= 1", "-9 < a"])
def test_sliders_stay_inside_the_range(where: str) -> None:
    span = study("t*(1-t)*exp(a)", where, 20.0)["parameters"]["a"]
    inside = parse_range("a", where)
    assert span["start"] <= span["value"] <= span["stop"]
    assert span["start"] in inside and span["stop"] in inside and span["step"] > 0


def test_a_job_that_takes_too_long_is_ended_and_the_next_one_works() -> None:
    with Workbench(deadline=0.0, grace=0.0) as bench:
        process = bench._process
        answer = bench.ask("study", {"entropy": "t*(1-t)", "where": ""})
        assert answer["verdict"] == "undecided" and "was ended" in answer["message"]
        assert process.poll() is not None
        bench.deadline, bench.grace = 20.0, 60.0
        assert bench.ask("study", {"entropy": "t*(1-t)", "where": ""})["verdict"] == "accepted"
        bench._process.kill()
        assert bench.ask("study", {"entropy": "t^2", "where": ""})["verdict"] in ("parse", "undecided")


def test_a_newer_question_ends_an_older_one() -> None:
    with Workbench(deadline=20.0, grace=600.0) as bench:
        os.kill(bench._process.pid, 19)  # stopped: it will never answer
        old = bench.ticket("study")
        answers: list[Any] = ["none yet"]
        waiting = threading.Thread(
            target=lambda: answers.append(bench.run("study", old, {"entropy": "t", "where": ""})), daemon=True
        )
        waiting.start()
        time.sleep(0.2)
        new = bench.ticket("study")
        answer = bench.run("study", new, {"entropy": "t*(1-t)", "where": ""})
        waiting.join(60)
        assert answers == ["none yet", None]
        assert answer["verdict"] == "accepted"
        late = bench.ticket("member")
        bench.ticket("study")
        assert bench.run("member", late, {}) is None


# The page


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    if MISSING:
        (pytest.fail if MUST else pytest.skip)(f"the page needs {', '.join(MISSING)}")
    command = [sys.executable, "-m", "fysym", "studio", "--no-browser"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        found = process.stdout.readline().strip()
        port = int(re.fullmatch(r"http://127\.0\.0\.1:(\d+)\?access_token=.{20,}", found)[1])
        end = time.monotonic() + PATIENCE / 1000
        while True:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
                break
            assert process.poll() is None and time.monotonic() < end, "the server did not start"
            time.sleep(0.1)
        yield found
    finally:
        process.terminate()
        process.wait()
    with pytest.raises(OSError):  # nothing stays behind
        socket.create_connection(("127.0.0.1", port), timeout=1)


@pytest.fixture(scope="module")
def page(address: str) -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        flags = [f"--{flag}" for flag in QUIET.split()]
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=flags)
        context = browser.new_context(viewport={"width": 1100, "height": 1500})
        context.grant_permissions(["clipboard-read", "clipboard-write"])
        context.set_default_timeout(PATIENCE)
        made = context.new_page()
        made.goto(address)
        yield made
        browser.close()


def picture(page: Any, name: str) -> None:
    folder = os.environ.get("FYSYM_SCREENSHOTS")
    if folder:
        pathlib.Path(folder).mkdir(parents=True, exist_ok=True)
        page.screenshot(path=f"{folder}/{name}.png")


def enter(page: Any, entropy: str, where: str = "") -> None:
    page.get_by_label("where", exact=True).fill(where)
    page.get_by_label("h(t) =").fill(entropy)


def wait_for(page: Any, selector: str, words: str) -> None:
    page.locator(selector).filter(has_text=re.compile(words)).first.wait_for()


def test_the_page_opens_with_an_entropy_of_the_catalog(page: Any) -> None:
    wait_for(page, ".summary", "margin 1, sparsity full")
    wait_for(page, ".probability", "0.7500")
    assert page.locator("select option").all_inner_texts()[-len(ENTRIES) :] == list(ENTRIES)
    picture(page, "opened")


def test_it_listens_on_loopback_only(address: str) -> None:
    server = int(re.search(r":(\d+)\?", address)[1])
    rows = pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]
    rows += pathlib.Path("/proc/net/tcp6").read_text().splitlines()[1:] if os.path.exists("/proc/net/tcp6") else []
    listening = [row.split()[1].split(":") for row in rows if row.split()[3] == "0A"]
    assert {address for address, port in listening if int(port, 16) == server} == {"0100007F"}


def test_without_its_password_the_page_is_closed(address: str) -> None:
    with pytest.raises(urllib.error.HTTPError, match="401"):
        urllib.request.urlopen(address.partition("?")[0] + "/api/status", timeout=60)


def test_a_valid_entropy(page: Any) -> None:
    enter(page, "t*(1-t)")
    wait_for(page, ".summary", "margin 2, sparsity full")
    assert page.locator(".verdict").inner_text() == "strictly concave on (0, 1): proved"
    page.locator("img[alt^='entropy, prediction and loss']").wait_for()
    page.locator("math").first.wait_for(state="attached")
    picture(page, "valid")


def test_what_is_not_an_expression_gets_a_caret(page: Any) -> None:
    enter(page, "t*(1-t)^2")
    wait_for(page, ".verdict", "use")
    assert page.locator(".verdict").inner_text().splitlines()[1:] == ["  t*(1-t)^2", "         ^"]
    assert page.locator(".summary").count() == 0
    picture(page, "caret")


def test_a_refutation_shows_its_witness(page: Any) -> None:
    enter(page, "t*(1-t)*(1+3*t)")
    wait_for(page, ".verdict", "not strictly concave")
    page.locator("img[alt='witness t = 1/10']").wait_for()
    picture(page, "refuted")


def test_a_parameter_has_a_slider(page: Any) -> None:
    enter(page, "a*t*(1-t)", "0 < a <= 4")
    wait_for(page, ".summary", "margin 4, sparsity full")
    page.get_by_role("slider").first.focus()
    page.keyboard.press("End")
    wait_for(page, ".summary", "margin 8, sparsity full")
    picture(page, "parameter")


def test_theta_moves_the_prediction(page: Any) -> None:
    enter(page, "t*(1-t)/2")
    wait_for(page, ".summary", "margin 1, ")
    wait_for(page, ".probability", "0.7500")
    page.get_by_role("slider").first.focus()
    page.keyboard.press("End")
    wait_for(page, ".probability", "1.0000")
    picture(page, "theta")


def test_the_code_is_copied(page: Any) -> None:
    enter(page, "t*(1-t)*3")
    wait_for(page, ".summary", "margin 6, ")
    page.get_by_role("tab", name="code: NumPy").click()
    page.locator(".cm-editor:visible").first.hover()
    page.get_by_label("Copy to clipboard").first.click()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied.strip() == fysym.compile("t*(1-t)*3").source().strip()
    picture(page, "code")


def test_what_is_typed_is_not_markup(page: Any) -> None:
    enter(page, "<img src=x onerror=document.title='hacked'>")
    wait_for(page, ".verdict", "onerror")
    assert page.locator("img[src='x']").count() == 0
    assert page.title() != "hacked"


def test_a_slow_expression_does_not_keep_the_page(page: Any) -> None:
    slow = " + ".join(f"sqrt(sin(t/{k}) + t**(1/{k + 1}))*log(1 + t/{k})" for k in range(2, 9))
    enter(page, slow)
    wait_for(page, "strong", "checking")
    enter(page, "t*(1-t)*5")
    wait_for(page, ".summary", "margin 10, ")


def test_the_catalog_is_a_start(page: Any) -> None:
    page.locator("select").first.select_option("tsallis")
    wait_for(page, ".summary", "margin 2, sparsity full")
    assert page.get_by_label("where", exact=True).input_value() == "alpha > 1"
    picture(page, "catalog")
