"""The gallery: every story runs, is short, and stands on its page."""

import importlib
import pathlib
import re
import subprocess
import sys

import pytest

pytest.importorskip("matplotlib")
ROOT = pathlib.Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))
build = importlib.import_module("gallery.__main__")
PAGE = (ROOT / "gallery" / "README.md").read_text()
WANTED = {"your_own", "why_margin", "sixteen_entropies", "margins", "sparse_attention", "ecology"}


def test_the_stories_are_there() -> None:
    assert set(build.stories()) >= WANTED


@pytest.mark.parametrize("name", build.stories())
def test_a_story_runs(name: str, tmp_path: pathlib.Path) -> None:
    part = build.run(name, tmp_path, quick=True)
    assert f"[{name}.py]({name}.py)" in part
    pictures = re.findall(r"\]\((pictures/[^)]*)\)", part)
    assert pictures or "```text" in part
    for picture in pictures:
        assert (tmp_path / picture).read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("name", sorted(WANTED))
def test_a_story_is_short_and_opens_with_what_one_learns(name: str) -> None:
    source = (ROOT / "gallery" / f"{name}.py").read_text()
    assert source.count("\n") < 60
    title, blank, *words = source.partition('"""')[2].partition('"""')[0].strip().split("\n")
    assert title and not blank and words


@pytest.mark.parametrize("name", build.stories())
def test_the_page_shows_every_story_as_it_is_now(name: str) -> None:
    title, _, words = (importlib.import_module(f"gallery.{name}").__doc__ or "").strip().partition("\n")
    assert f"## {title.rstrip('.')}\n" in PAGE, "run `python -m gallery`"
    assert words.strip() in PAGE, "run `python -m gallery`"


def test_the_pictures_of_the_page_are_there() -> None:
    pictures = re.findall(r"!\[[^\]]*\]\(([^)]*)\)", PAGE)
    assert len(pictures) >= 5
    for picture in pictures:
        assert (ROOT / "gallery" / picture).is_file()


def test_the_page_links_to_folders_with_a_page(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    (tmp_path / "speed").mkdir()
    (tmp_path / "speed" / "README.md").write_text("# Speed of it all\n\nwords\n")
    monkeypatch.setattr(build, "HERE", tmp_path)
    assert build.page(["## a story"]).endswith("## More\n\n- [Speed of it all](speed/README.md)\n")


def test_the_command_builds_the_page_and_shows_progress(tmp_path: pathlib.Path, monkeypatch, capsys) -> None:
    monkeypatch.setattr(build, "stories", lambda: ["sparse_attention", "your_own"])
    build.main(["--quick", "-o", str(tmp_path)])
    assert "## Sparse attention over a sentence" in (tmp_path / "README.md").read_text()
    shown = capsys.readouterr().err
    assert "0/2 sparse_attention" in shown and "[####################] 2/2" in shown
    before = PAGE
    monkeypatch.setattr(build, "stories", lambda: ["sparse_attention"])
    build.main(["--quick"])
    assert (ROOT / "gallery" / "README.md").read_text() == before


def test_a_script_runs_by_itself(tmp_path: pathlib.Path) -> None:
    script = tmp_path / "sparse_attention.py"
    script.write_text((ROOT / "gallery" / "sparse_attention.py").read_text())
    (tmp_path / "pictures").mkdir()
    subprocess.run([sys.executable, str(script)], check=True)
    assert (tmp_path / "pictures" / "sparse_attention.png").stat().st_size > 1000
