"""Reports: the same facts, in words."""

import pytest

import fysym


def test_one_line() -> None:
    text = repr(fysym.catalog.gini)
    assert "\n" not in text
    for words in ("gini", "t*(1 - t)/2", "margin 1", "full", "proved"):
        assert words in text


def test_the_affine_term_is_mentioned() -> None:
    text = " ".join(fysym.compile("log(1 + t)").report().split())
    assert "t*log(2) was subtracted" in text
    assert "does not change the loss" in text


def test_an_unbounded_end_is_mentioned() -> None:
    assert "the loss is +inf for labels that put 0 on a class" in fysym.compile("log(t)").report()


def test_sampled_is_shown_everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fysym.certify.available", lambda: False)
    reg = fysym.compile("-gamma(t + 1)")
    assert reg.fact("strictly_concave").status == "sampled"
    assert "[sampled]" in reg.report()
    assert "sampled" in repr(reg)
    assert "strictly concave: yes [sampled]" in reg.source()
    assert reg.fact("margin").status == "sampled"


def test_a_family_says_what_is_undetermined() -> None:
    text = fysym.catalog.tsallis.report()
    assert "parameter alpha: alpha > 1" in text
    assert "undetermined over alpha > 1" in text
    assert "bind" in text


def test_every_fact_of_the_contract_is_reported() -> None:
    text = fysym.catalog.gini.report()
    for title in ("strictly concave", "h'(0+)", "h'(1-)", "margin", "sparsity", "strong concavity", "smoothness"):
        assert f"\n  {title}: " in text
