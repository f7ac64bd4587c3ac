"""The small run of the speed gallery: that it runs and has a row for each entropy; never a time."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent


def test_the_small_run(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "gallery.speed", "--quick", "--out", str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "README.md").read_text()
    first = page.split("## ")[1]
    from gallery.speed.promises import ENTROPIES

    for name in ENTROPIES:
        assert f"| {name} |" in first
        assert name in done.stdout
    for title in ("When n or d doubles", "The paper's figure", "Peak memory", "One vector", "Entropies of a sum"):
        assert title in page and title in done.stdout
    assert "grid" in done.stderr  # progress
