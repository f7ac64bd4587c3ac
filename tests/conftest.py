"""FYSYM_PATIENCE=3 gives every compilation three times its usual deadline: for slow machines, and under coverage."""

from __future__ import annotations

import os

import fysym

for _function in (fysym.compile, fysym.compile_composite):
    _function.__kwdefaults__["deadline"] *= float(os.environ.get("FYSYM_PATIENCE", "1"))
