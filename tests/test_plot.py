"""Pictures: what they show is what the regularizer says, and nothing global changes."""

import pathlib
import subprocess
import sys

import numpy as np
import pytest
import sympy

import fysym
from fysym.cli import main
from fysym.parse import parse_expression

pytest.importorskip("matplotlib")
plot = fysym.plot


def lines(axes, least: int = 3):
    """The curves of an axes, as (x, y)."""
    return [line.get_data() for line in axes.get_lines() if len(line.get_xdata()) >= least]


def verticals(axes):
    return sorted(line.get_xdata()[0] for line in axes.get_lines() if len(line.get_xdata()) == 2)


def words(axes):
    return {text.get_text() for text in axes.texts}


def test_the_three_panels_show_what_the_regularizer_says() -> None:
    reg = fysym.catalog.tsallis.bind(alpha=1.5)
    entropy, prediction, loss = reg.plot().axes
    ((t, h),) = lines(entropy)
    np.testing.assert_allclose(h, reg.entropy(np.stack([t, 1 - t], -1)))
    ((s, p),) = lines(prediction)
    np.testing.assert_allclose(p, reg.predict(np.stack([s, 0 * s], -1))[:, 0])
    ((s, value),) = lines(loss)
    np.testing.assert_allclose(value, reg.loss(np.stack([s, 0 * s], -1), np.zeros(len(s), int)), atol=1e-15)
    assert verticals(prediction) == [-2.0, 2.0]
    assert verticals(loss) == [2.0]
    assert s[-1] > 2.0 and any("margin 2" in text for text in words(loss))


def test_no_margin_is_said() -> None:
    _, prediction, loss = fysym.catalog.shannon.plot().axes
    assert verticals(prediction) == verticals(loss) == []
    assert any("no margin" in text for text in words(loss))
    assert any("infinite" in text for text in words(fysym.compile("log(t)").plot().axes[2]))


def test_the_cube_has_panels_of_one_coordinate() -> None:
    entropy, prediction, loss = fysym.compile("-t*log(t) - (1-t)*log(1-t)", domain="cube").plot().axes
    ((s, p),) = lines(prediction)
    np.testing.assert_allclose(p, 1 / (1 + np.exp(-s)))
    ((s, value),) = lines(loss)
    np.testing.assert_allclose(value, np.log1p(np.exp(-s)))
    assert "h(t)" in entropy.get_title()


def test_entropies_that_are_not_separable_are_drawn_too() -> None:
    norm = fysym.compile_composite("1 - u**(1/2)", "t**2", name="norm")
    _, prediction, _ = plot.compare(norm, fysym.catalog.gini).axes
    (s, p), _ = lines(prediction)
    np.testing.assert_allclose(p, norm.predict(np.stack([s, 0 * s], -1))[:, 0])
    (axes,) = plot.simplex(norm, points=41).axes
    assert {"only 1", "1 and 2", "all three"} <= words(axes)


def test_compare_differs_in_more_than_colour() -> None:
    regs = [fysym.catalog[name] for name in ("shannon", "gini", "sine", "log1p", "arctan")]
    figure = plot.compare(*regs)
    curves = figure.axes[0].get_lines()
    assert len({str(line.get_linestyle()) + str(line._dash_pattern) for line in curves}) == 5
    assert len({line.get_color() for line in curves}) == 5
    legend = [text.get_text() for text in figure.legends[0].get_texts()]
    assert legend[:2] == ["shannon (no margin)", "gini (margin 1)"]
    marks = [line.get_xdata()[0] for line in figure.axes[2].get_lines() if len(line.get_xdata()) == 1]
    np.testing.assert_allclose(marks, [float(reg.margin) for reg in regs[1:]])


@pytest.mark.parametrize(
    ("entropy", "expected"),
    [
        ("t*(1-t)/2", {"only 1", "only 2", "only 3", "1 and 2", "1 and 3", "2 and 3", "all three"}),
        ("t*sqrt(1-t)", {"1 and 2", "1 and 3", "2 and 3", "all three"}),
        ("-t*log(t)", {"all three"}),
    ],
)
def test_the_triangle_names_the_regions(entropy: str, expected: set[str]) -> None:
    (axes,) = plot.simplex(fysym.compile(entropy), points=61).axes
    assert words(axes) == expected
    width = axes.get_xlim()[1]
    for text in axes.texts:  # each label stands in the region that it names
        x, y = text.get_position()
        theta = np.array(plot.CORNERS) @ np.array([x, y]) * 2 / 3
        active = [str(k + 1) for k in np.flatnonzero(fysym.compile(entropy).predict(theta) > 0)]
        assert text.get_text() in ("only " + " ".join(active), " and ".join(active), "all three"), (x, y, width)
        assert text.get_text() != "all three" or len(active) == 3


def test_the_triangle_marks_scores_and_their_prediction() -> None:
    theta = np.array([5.0, 4.5, 3.0])
    (axes,) = plot.simplex(fysym.catalog.gini, theta=theta, points=21).axes
    marks = {line.get_label(): np.ravel(line.get_data()) for line in axes.get_lines()}
    corners = np.array(plot.CORNERS)
    np.testing.assert_allclose(marks["scores"], (theta - theta.mean()) @ corners)
    np.testing.assert_allclose(marks["prediction"], [0.75, 0.25, 0.0] @ corners)


def test_a_refutation_marks_its_witness() -> None:
    h = parse_expression("a*t*(1-t) + t**2")
    with pytest.raises(fysym.NotConcaveError) as caught:
        fysym.compile(h, params={"a": "0 < a < 3"})
    figure = plot.refutation(h, caught.value)
    t, a = sympy.Symbol("t"), caught.value.parameters["a"]
    for axes, expr in zip(figure.axes, (h, h.diff(t, 2))):
        ((x, y),) = [line.get_data() for line in axes.get_lines() if line.get_marker() == "X"]
        assert x[0] == float(caught.value.witness)
        assert y[0] == pytest.approx(float(expr.subs({t: caught.value.witness, "a": a})))
    assert y[0] > 0


@pytest.mark.parametrize(("form", "start"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")])
def test_files(form: str, start: bytes, tmp_path: pathlib.Path) -> None:
    assert main(["plot", "gini", "-o", str(tmp_path / f"gini.{form}")]) == 0
    assert (tmp_path / f"gini.{form}").read_bytes().startswith(start)


def test_the_command_line_draws_the_same(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plot", "shannon", "tsallis", "--set", "alpha=2", "--triangle", "-o", str(tmp_path / "a.svg")]) == 0
    assert main(["plot", "shannon", "tsallis", "--set", "alpha=2", "-o", str(tmp_path / "b.svg")]) == 0
    captured = capsys.readouterr()
    assert captured.out == "" and "b.svg" in captured.err
    for arguments, hint in (
        (["tsallis", "-o", "x.png"], "--set alpha=..."),
        (["gini", "-o", "x.doc"], "end it in .png, .svg or .pdf"),
        (["gini", "-o", "/nowhere/x.png"], "cannot be written"),
        (["gini"], "-o"),
    ):
        assert main(["plot", *arguments]) == 2
        assert hint in capsys.readouterr().err


@pytest.mark.parametrize(
    ("draw", "hint"),
    [
        (lambda: plot.compare(), "at least one"),
        (lambda: plot.simplex(), "at least one"),
        (lambda: plot.compare(fysym.catalog.gini, labels=["a", "b"]), "one for each"),
        (lambda: fysym.catalog.gini.plot(span=-1), "positive number"),
        (lambda: plot.simplex(fysym.catalog.gini, theta=[1, 2]), "three finite scores"),
        (lambda: fysym.catalog.tsallis.plot(), "bind"),
        (lambda: fysym.compile("t*(1-t)", domain=fysym.budget(1.5)).plot(), r"cube, orthant, reals.; got budget.1\.5"),
        (lambda: plot.simplex(fysym.compile("t*(1-t)", domain="cube")), "not the cube"),
    ],
)
def test_mistakes(draw, hint: str) -> None:
    with pytest.raises(fysym.FysymError, match=hint):
        draw()


def test_names_are_not_read_as_formulas() -> None:
    reg = fysym.compile("t*(1-t)", name=r"$\frac{$")
    for figure in (plot.compare(reg), plot.simplex(reg, points=11)):
        assert plot.encoded(figure, "svg")


def test_the_card_has_the_picture_and_says_what_it_is() -> None:
    card = fysym.compile("t*(1-t)", name='"><script>')._repr_mimebundle_()["text/html"]
    assert 'src="data:image/svg+xml;base64,' in card
    assert 'alt="entropy, prediction and loss of &quot;&gt;&lt;script&gt;"' in card
    assert "data:image" not in fysym.catalog.tsallis._repr_mimebundle_()["text/html"]


def test_a_notebook_shows_a_figure() -> None:
    assert fysym.catalog.gini.plot()._repr_png_().startswith(b"\x89PNG")


def test_nothing_global_changes() -> None:
    code = """
import sys, fysym
assert "matplotlib" not in sys.modules
import matplotlib
before = {k: matplotlib.rcParams[k] for k in matplotlib.rcParams if k != "backend"}  # reading it would import pyplot
fysym.catalog.gini.plot(); fysym.plot.simplex(fysym.catalog.gini, points=11); fysym.catalog.gini._repr_mimebundle_()
assert {k: matplotlib.rcParams[k] for k in before} == before
assert "matplotlib.pyplot" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_without_matplotlib_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    plot._figure_class.cache_clear()
    with pytest.raises(fysym.FysymError, match=r"pip install 'fysym\[plot\]'"):
        fysym.catalog.gini.plot()
    plot._figure_class.cache_clear()


def test_panels_on_infinite_intervals() -> None:
    poisson, squared = fysym.catalog.poisson.plot(), fysym.catalog.squared.plot()
    assert poisson.axes[1].get_ylim()[1] > 15 and squared.axes[1].get_ylim()[0] < -2.9
    assert not squared.axes[2].texts and squared.axes[0].lines[0].get_xdata().min() == -3
    both = fysym.plot.compare(fysym.catalog.poisson, fysym.catalog.one_vs_all)
    assert both.axes[1].get_ylim()[1] > 15


def test_a_refutation_outside_of_the_unit_interval() -> None:
    t = sympy.Symbol("t")
    with pytest.raises(fysym.NotConcaveError) as raised:
        fysym.compile(-(t**3), domain="reals")
    figure = fysym.plot.refutation(-(t**3), raised.value)
    low, high = figure.axes[0].get_xlim()
    assert low < raised.value.witness < high
