"""Emitted source is kept as golden files and compared with a readable diff.

`python -m tests.test_golden --update` rewrites them.
"""

import difflib
import sys
from pathlib import Path

import pytest

import fysym

FOLDER = Path(__file__).parent / "golden"
ENTROPIES = {
    "shannon": lambda: fysym.catalog.shannon,
    "gini": lambda: fysym.catalog.gini,
    "tsallis_1.5": lambda: fysym.catalog.tsallis.bind(alpha=1.5),
    "probit": lambda: fysym.catalog.probit,
    "gini_sine": lambda: fysym.catalog.gini_sine,
}


@pytest.mark.parametrize("name", ENTROPIES)
def test_source_is_what_was_reviewed(name: str) -> None:
    kept = (FOLDER / f"{name}.py.txt").read_text()
    now = ENTROPIES[name]().source()
    diff = "\n".join(difflib.unified_diff(kept.splitlines(), now.splitlines(), "kept", "emitted now", lineterm=""))
    assert not diff, f"\n{diff}\n\nIf this is intended: python -m tests.test_golden --update"


if __name__ == "__main__":
    if sys.argv[1:] != ["--update"]:
        sys.exit(__doc__)
    FOLDER.mkdir(exist_ok=True)
    for name, make in ENTROPIES.items():
        (FOLDER / f"{name}.py.txt").write_text(make().source())
        print(f"wrote {name}")
