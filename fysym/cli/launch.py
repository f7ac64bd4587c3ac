"""Start the studio's server."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

from ..errors import FysymError

HOST = "127.0.0.1"


def command(entropy: str | None, port: int | None, browser: bool) -> list[str]:
    """The command that serves the page, to this machine only."""
    page = Path(__file__).parent.parent / "studio.py"
    words = [sys.executable, "-m", "marimo", "-q", "run", str(page), "--host", HOST, "--no-token"]
    if port is not None:
        words += ["--port", str(port)]
    if not browser:
        words += ["--headless"]
    return [*words, *(["--", "--entropy", entropy.strip()] if entropy else [])]


def studio(entropy: str | None, port: int | None, browser: bool) -> int:
    """Serve the page until it is interrupted."""
    for module, extra in (("marimo", "studio"), ("matplotlib", "studio")):
        if importlib.util.find_spec(module) is None:
            raise FysymError(f"the studio needs {module}; install it with: pip install 'fysym[{extra}]'")
    return subprocess.run(command(entropy, port, browser), check=False).returncode
