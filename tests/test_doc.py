"""Every public name has a docstring with an example, which the doctests run."""

import inspect

import pytest

import fysym

PUBLIC = [name for name in fysym.__all__ if not inspect.ismodule(getattr(fysym, name)) and name != "catalog"]


@pytest.mark.parametrize("name", PUBLIC)
def test_a_public_name_has_an_example(name: str) -> None:
    assert ">>>" in (inspect.getdoc(getattr(fysym, name)) or "")


@pytest.mark.parametrize("name", [name for name in dir(fysym.Regularizer) if not name.startswith("_")])
def test_a_method_of_a_regularizer_has_an_example(name: str) -> None:
    assert ">>>" in (inspect.getdoc(getattr(fysym.Regularizer, name)) or "")
