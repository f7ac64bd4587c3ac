"""What all tests share.

FYSYM_PATIENCE=3 gives every compilation three times its usual deadline: for slow machines, and under coverage.
"""

from __future__ import annotations

import os
import sys

import fysym

for _function in (fysym.compile, fysym.compile_composite):
    _function.__kwdefaults__["deadline"] *= float(os.environ.get("FYSYM_PATIENCE", "1"))

# A deadline may interrupt a thread while it holds the lock of coverage, which would then be held for ever.
if "coverage.collector" in sys.modules:
    _collector = sys.modules["coverage.collector"].Collector
    _collector.lock_data = _collector.unlock_data = lambda self: None
