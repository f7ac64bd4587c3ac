"""Serve the studio, in this process, so that nothing stays behind when it ends."""

from __future__ import annotations

import importlib.util
import io
import runpy
import secrets
import socket
import sys
from pathlib import Path

from ..errors import FysymError
from .terminal import show

HOST = "127.0.0.1"


def command(entropy: str | None, port: int, browser: bool) -> list[str]:
    """The command line of marimo that serves the page, to this machine only; the password comes on stdin."""
    page = Path(__file__).parent.parent / "studio.py"
    words = ["marimo", "-q", "run", str(page), "--host", HOST, "--port", str(port), "--token-password-file", "-"]
    if not browser:
        words += ["--headless"]
    return [*words, *(["--", "--entropy", entropy.strip()] if entropy else [])]


def studio(entropy: str | None, port: int | None, browser: bool) -> int:
    """Print the address and serve the page until it is interrupted.

    The address holds a password that is made anew each time, so that neither another user of this machine nor another
    page in the browser can reach the studio.
    """
    for module in ("marimo", "matplotlib"):
        if importlib.util.find_spec(module) is None:
            raise FysymError(f"the studio needs {module}; install it with: pip install 'fysym[studio]'")
    port = free_port(port)
    password = secrets.token_urlsafe(16)
    show(f"http://{HOST}:{port}?access_token={password}")
    sys.argv = command(entropy, port, browser)
    sys.stdin = io.StringIO(password)
    try:
        runpy.run_module("marimo", run_name="__main__", alter_sys=True)
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    return 0


def free_port(wanted: int | None) -> int:
    """The port that was asked for, or one that is free."""
    with socket.socket() as probe:
        try:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((HOST, wanted or 0))
        except (OSError, OverflowError) as error:
            raise FysymError(f"port {wanted} cannot be used ({error}); give another --port, or none") from None
        return int(probe.getsockname()[1])
