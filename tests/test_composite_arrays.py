"""Composite entropies keep the contract of the separable ones: the same tests of arrays, with other entropies."""

from __future__ import annotations

from typing import Any

import pytest

from . import test_arrays as contract
from .families import member

# Every test of the contract, run again; which entropy stands for which name is in `AS`.
for _name in dir(contract):
    if _name.startswith("test_") and _name != "test_the_first_call_is_silent_too":
        globals()[_name] = getattr(contract, _name)
warnings_are_errors = contract.warnings_are_errors
AS = {
    "shannon": "renyi_0.5", "gini": "norm_2", "tsallis_1.5": "norm_1.5", "tsallis_3": "norm_3",
    "abe_1.5": "renyi_0.9", "gini_sine": "squared_norm_2", "fermi_dirac": "squared_norm_1.5", "sine": "norm_6",
}  # fmt: skip


@pytest.fixture(autouse=True, params=["fast", "numpy"])
def other_entropies(monkeypatch: Any, request: Any) -> None:
    def chosen(name: str) -> Any:
        reg = member(AS[name])
        if request.param == "numpy":
            monkeypatch.setattr(reg._kernel, "fast", "the NumPy code is tested")
        return reg

    monkeypatch.setattr(contract, "member", chosen)
