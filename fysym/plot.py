"""Pictures of entropies, with Matplotlib (the extra `fysym[plot]`).

Every function returns a Matplotlib Figure that belongs to no window and to no pyplot state. Lines differ in style and
areas in hatching as well as in colour, so that a print in black and white can be read.

>>> import fysym
>>> figure = fysym.plot.compare(fysym.catalog.shannon, fysym.catalog.gini)
>>> [axes.get_title() for axes in figure.axes]
['entropy H([t, 1-t])', 'prediction for the scores [s, 0]', 'loss of class 1 at [s, 0]']
"""

from __future__ import annotations

import base64
import functools
import io
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from .domains import SIMPLEX, Domain
from .errors import FysymError, InputError
from .regularizer import Regularizer

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from .composite import Composite
    from .errors import NotConcaveError
    from .polyhedral import Polyhedral

Drawable: TypeAlias = "Regularizer | Composite | Polyhedral"

# Okabe and Ito's colours, which the colour-blind tell apart, each with a dash of its own.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#000000", "#56B4E9", "#E69F00")
DASHES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (1, 1.2)), (0, (6, 2, 1, 2)), (0, (3, 1, 1, 1, 1, 1)))
# How many of three probabilities are positive: the colour and hatching of that region.
REGIONS = {1: ("#F3F3F3", ".."), 2: ("#FBE3C4", "//"), 3: ("#CFE5F5", "")}
CORNERS = tuple((math.cos(a), math.sin(a)) for a in (math.pi / 2, math.pi * 7 / 6, math.pi * 11 / 6))
LABELS = {1: "only 1", 2: "only 2", 4: "only 3", 3: "1 and 2", 5: "1 and 3", 6: "2 and 3", 7: "all three"}
# The panels on the simplex of two classes, and for one coordinate of the cube.
TITLES = {
    2: ("entropy H([t, 1-t])", "prediction for the scores [s, 0]", "loss of class 1 at [s, 0]"),
    1: ("entropy h(t)", "prediction for the score s", "loss of the label 1 at s"),
}


@functools.cache
def _figure_class() -> type[Figure]:
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise FysymError("plots need Matplotlib; install it with: pip install 'fysym[plot]'") from None

    class Picture(Figure):
        """A figure that a notebook shows."""

        def _repr_png_(self) -> bytes:
            return encoded(self, "png")

    return Picture


def _figure(width: float, height: float) -> Figure:
    return _figure_class()(figsize=(width, height), layout="constrained")


def panels(reg: Drawable, *, span: float | None = None, size: tuple[float, float] = (10.0, 3.0)) -> Figure:
    """The paper's three panels of one entropy: H([t, 1-t]), the prediction and the loss, with the margin marked.

    `span` is the largest score shown; `size` is in inches.

    >>> import fysym
    >>> len(fysym.plot.panels(fysym.catalog.gini).axes)
    3
    """
    figure = _figure(*size)
    axes = _three(figure, [reg])
    span = _span([reg], span)
    _draw(axes, reg, span, COLOURS[0], DASHES[0], None)
    margin = margin_of(reg)
    if isinstance(reg, Regularizer) and _is_infinite_at_0(reg):
        _note(axes[2], "infinite everywhere:\nh(0) = -oo")
    elif margin is None and reg.margin is not None:
        _note(axes[2], "no margin: the loss\nis never 0")
    elif margin is not None:
        for place, at in ((1, margin), (1, -margin), (2, margin)):
            axes[place].axvline(at, color="0.35", linewidth=0.9, linestyle=(0, (2, 2)))
        axes[2].axvspan(margin, span, facecolor="none", edgecolor="0.75", hatch="//", linewidth=0.0)
        _note(axes[2], f"margin {_short(reg.margin)}:\nno loss beyond")
    return figure


def compare(
    *regs: Drawable,
    labels: Sequence[str] | None = None,
    span: float | None = None,
    size: tuple[float, float] = (10.0, 3.6),
) -> Figure:
    """The three panels of several entropies in one figure; the legend gives their margins.

    >>> import fysym
    >>> tsallis = fysym.catalog.tsallis
    >>> members = [tsallis.bind(alpha=a) for a in (1.5, 2, 4)]
    >>> figure = fysym.plot.compare(*members, labels=["alpha = 1.5", "alpha = 2", "alpha = 4"])
    >>> [text.get_text() for text in figure.legends[0].get_texts()]
    ['alpha = 1.5 (margin 2)', 'alpha = 2 (margin 1)', 'alpha = 4 (margin 1/3)']
    """
    if not regs:
        raise InputError("give at least one entropy to compare")
    if labels is not None and len(labels) != len(regs):
        raise InputError(f"{len(regs)} entropies have {len(labels)} labels; give one for each")
    figure = _figure(*size)
    axes = _three(figure, regs)
    span = _span(regs, span)
    for place, reg in enumerate(regs):
        colour, dashes = COLOURS[place % len(COLOURS)], DASHES[place % len(DASHES)]
        label = title_of(reg) if labels is None else str(labels[place])
        margin = margin_of(reg)
        label += " (no margin)" if margin is None else f" (margin {_short(reg.margin)})"
        _draw(axes, reg, span, colour, dashes, _literal(label))
        if margin is not None:
            axes[2].plot([margin], [0.0], marker="v", color=colour, markersize=6, clip_on=False, zorder=5)
    figure.legend(
        *axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=min(len(regs), 3), frameon=False
    )
    return figure


def simplex(
    *regs: Drawable,
    theta: Sequence[float] | None = None,
    labels: Sequence[str] | None = None,
    size: float = 4.2,
    points: int = 241,
) -> Figure:
    """The predictions for three classes, over the plane of scores: where one class, two or all three are positive.

    A score vector is drawn at sum_k theta_k c_k, with c_k the corners of the triangle (scores have no meaning but their
    differences). `theta` marks one, with an arrow to its prediction in the triangle.

    >>> import fysym
    >>> figure = fysym.plot.simplex(fysym.catalog.gini, theta=[1.2, 0.4, -0.5])
    >>> sorted(filter(None, (text.get_text() for text in figure.axes[0].texts)))[:3]
    ['1 and 2', '1 and 3', '2 and 3']
    """
    if not regs:
        raise InputError("give at least one entropy to draw")
    figure = _figure(size * len(regs), size + 0.3)
    all_axes = figure.subplots(1, len(regs), squeeze=False)[0]
    for place, (axes, reg) in enumerate(zip(all_axes, regs)):
        _draw_regions(axes, reg, theta, points)
        axes.set_title(_literal(title_of(reg) if labels is None else str(labels[place])), fontsize=10)
    return figure


def refutation(h: Any, error: NotConcaveError, *, size: tuple[float, float] = (10.0, 3.0)) -> Figure:
    """h and h'' of what is not strictly concave, with the witness marked; `h` is the SymPy expression that was given.

    >>> import fysym, sympy
    >>> h = sympy.Symbol("t")**3
    >>> try:
    ...     reg = fysym.compile(h)
    ... except fysym.NotConcaveError as error:
    ...     figure = fysym.plot.refutation(h, error)
    >>> figure.axes[1].get_title()
    "h''(t)"
    """
    import numpy as np
    import sympy

    symbols = sorted(h.free_symbols, key=str)
    named = [symbol for symbol in symbols if symbol.name not in error.parameters]
    t = named[0] if len(named) == 1 else sympy.Symbol("t")
    h = h.subs({s: error.parameters[s.name] for s in symbols if s.name in error.parameters})
    at = float(error.witness)
    near = at + np.geomspace(1e-6, 0.1, 25)[:, None] * np.array([-1.0, 1.0])
    low, high = (0.0, 1.0) if 0 < at < 1 else (at - 1.0 - abs(at), at + 1.0 + abs(at))  # or on another domain
    wide = low + (high - low) * np.linspace(0.004, 0.996, 120)
    grid = np.unique(np.concatenate([wide, near.ravel(), [at]]))
    grid = grid[(grid > low) & (grid < high)]
    figure = _figure(*size)
    for axes, expr, title in zip(figure.subplots(1, 2), (h, h.diff(t, 2)), ("h(t)", "h''(t)")):
        values = np.array([_real(expr, t, x) for x in grid])
        axes.plot(grid, values, color=COLOURS[0])
        axes.plot([at], [_real(expr, t, at)], "X", color=COLOURS[1], markersize=10, label=f"witness t = {at:.6g}")
        axes.set_title(title, fontsize=10)
        axes.set_xlabel("t")
        axes.legend(frameon=False)
        _plain_spines(axes)
    axes = figure.axes[1]
    axes.axhline(0.0, color="0.35", linewidth=0.8)
    low, high = axes.get_ylim()
    axes.axhspan(0.0, max(high, 0.0), facecolor="none", edgecolor="0.8", hatch="//", linewidth=0.0)
    axes.set_ylim(low, high)
    return figure


def save(figure: Figure, path: str | Path) -> None:
    """Write a figure to a file whose name ends in .png, .svg or .pdf.

    >>> import fysym, os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     fysym.plot.save(fysym.catalog.gini.plot(), f"{folder}/gini.svg")
    ...     os.listdir(folder)
    ['gini.svg']
    """
    form = Path(path).suffix.lstrip(".").lower()
    forms = figure.canvas.get_supported_filetypes()
    if form not in forms:
        raise InputError(f"{path} does not say what kind of picture it is; end it in .png, .svg or .pdf")
    Path(path).write_bytes(encoded(figure, form))


def encoded(figure: Figure, form: str) -> bytes:
    """The bytes of a picture, without the date that its format may hold.

    >>> import fysym
    >>> fysym.plot.encoded(fysym.catalog.gini.plot(), "pdf")[:5]
    b'%PDF-'
    """
    out = io.BytesIO()
    stamp = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(form, {})
    figure.savefig(out, format=form, dpi=150, metadata=stamp or None)
    return out.getvalue()


def image(figure: Figure, words: str) -> str:
    """A figure as an <img> element that needs no other file; `words` is plain text for those who do not see it.

    >>> import fysym
    >>> fysym.plot.image(fysym.catalog.gini.plot(), "Gini's entropy")[:30]
    '<img alt="Gini&#x27;s entropy"'
    """
    import html

    data = base64.b64encode(encoded(figure, "svg")).decode()
    return f'<img alt="{html.escape(words)}" style="max-width:100%" src="data:image/svg+xml;base64,{data}">'


def margin_of(reg: Drawable) -> float | None:
    """The margin as a number, or None where there is none.

    >>> import fysym
    >>> fysym.plot.margin_of(fysym.catalog.gini), fysym.plot.margin_of(fysym.catalog.shannon)
    (1.0, None)
    """
    return None if reg.margin is None or not reg.margin.is_finite else float(reg.margin)


def title_of(reg: Drawable) -> str:
    """The name of an entropy, or else its formula, cut short.

    >>> import fysym
    >>> fysym.plot.title_of(fysym.compile("t*(1 - t)"))
    't*(1 - t)'
    """
    title = reg.name or (str(reg.h) if isinstance(reg, Regularizer) else repr(reg))
    return title if len(title) <= 40 else title[:37] + "..."


# Drawing


def _three(figure: Figure, regs: Sequence[Drawable]) -> list[Axes]:
    axes = list(figure.subplots(1, 3))
    for each, title, label in zip(axes, TITLES[_coordinates(regs)], ("t", "s", "s")):
        each.set_title(title, fontsize=10)
        each.set_xlabel(label)
        _plain_spines(each)
    if all(_domain(reg).bounded for reg in regs):
        axes[1].set_ylim(-0.04, 1.04)
    return axes


def _is_infinite_at_0(reg: Regularizer) -> bool:
    return _domain(reg).low == 0 and bool(reg.derivation.theory.value("value_at_0").is_infinite)


def _domain(reg: Drawable) -> Domain:
    return reg.derivation.entropy.domain if isinstance(reg, Regularizer) else SIMPLEX


def _plainly(reg: Drawable) -> dict[str, Any]:
    """The options of predict and loss that compile nothing for one picture."""
    return {"target": "numpy"}


def _coordinates(regs: Sequence[Drawable]) -> int:
    """How many coordinates the panels need: two on the simplex, one where each is by itself."""
    totals = {_domain(reg).total for reg in regs}
    if totals == {None}:
        return 1
    if totals == {1.0}:
        return 2
    names = ", ".join(dict.fromkeys(str(_domain(reg)) for reg in regs))
    raise InputError(
        "the three panels are drawn of entropies that are all on the simplex, or all on domains without a total (cube, "
        f"orthant, reals); got {names}"
    )


def _draw(axes: list[Axes], reg: Drawable, span: float, colour: str, dashes: Any, label: str | None) -> None:
    import numpy as np

    domain = _domain(reg)
    t = np.linspace(max(domain.low, -3.0), min(domain.high, 3.0), 201)
    s = np.linspace(-span, span, 401)
    count = _coordinates([reg])
    scores = np.stack([s, np.zeros_like(s)], axis=-1)[:, :count]
    label_one = np.broadcast_to([1.0, 0.0][:count], scores.shape)
    style = {"color": colour, "linestyle": dashes, "linewidth": 1.8, "label": label}
    axes[0].plot(t, _finite(reg.entropy(np.stack([t, 1.0 - t], axis=-1)[:, :count])), **style)
    axes[1].plot(s, reg.predict(scores, **_plainly(reg))[:, 0], **style)
    losses = _finite(reg.loss(scores, label_one, **_plainly(reg)))
    axes[2].plot(s, losses, **style)
    axes[1].set_xlim(-span, span)
    axes[2].set_xlim(-span, span)


def _draw_regions(axes: Axes, reg: Drawable, theta: Sequence[float] | None, points: int) -> None:
    import numpy as np

    if _domain(reg).total != 1.0:
        raise InputError(f"the triangle is the simplex of three classes, not the {_domain(reg)}")
    corners = np.array(CORNERS)
    margin = margin_of(reg)
    reach = 3.0 if margin is None else max(2.0 * margin, 1.3)
    marked = None if theta is None else _scores(theta)
    if marked is not None:
        reach = max(reach, 1.15 * float(np.hypot(*(marked @ corners))))
    side = np.linspace(-reach, reach, points)
    x, y = np.meshgrid(side, side)
    active = _fill_regions(axes, reg, x, y, np.stack([x, y], axis=-1) @ corners.T * (2 / 3))
    axes.add_patch(_polygon(corners))
    which = active @ np.array([1, 2, 4])
    for code, words in LABELS.items():
        inside = which == code
        if inside.mean() > 0.004:
            below = -0.3 if margin is None else -0.36 * margin  # clear of the triangle, or inside it
            middle = (0.0, below) if code == 7 else (float(x[inside].mean()), float(y[inside].mean()))
            box = None if code == 7 else {"facecolor": "white", "edgecolor": "none", "pad": 1.5, "alpha": 0.9}
            axes.text(*middle, words, ha="center", va="center", fontsize=8 if box else 7, bbox=box)
    if marked is not None:
        _mark(axes, marked @ corners, reg.predict(marked, **_plainly(reg)) @ corners)
    axes.set_aspect("equal")
    axes.set_xticks([])
    axes.set_yticks([])
    axes.set_xlim(-reach, reach)
    axes.set_ylim(-reach, reach)


def _fill_regions(axes: Axes, reg: Drawable, x: Any, y: Any, theta: Any) -> Any:
    """Fill the plane by the number of positive probabilities; returns which are positive.

    The second is positive where the lead of the first is below the margin, the third where theta_j - tau exceeds the
    slope -h'(0): both change smoothly, unlike the number itself.
    """
    import numpy as np

    if not isinstance(reg, Regularizer):
        return _fill_by_count(axes, reg, x, y, theta)
    slope = reg.slopes[0]
    if slope is None or not slope.is_finite:
        axes.set_facecolor(REGIONS[3][0])
        return np.ones(theta.shape, dtype=bool)
    axes.set_facecolor(REGIONS[1][0])
    excess = theta - reg.threshold(theta)[..., None] + float(slope)
    scores, margin = np.sort(theta, axis=-1), margin_of(reg)
    second = np.ones(x.shape) if margin is None else margin - (scores[..., 2] - scores[..., 1])
    _fill(axes, x, y, second, excess.min(axis=-1), 0.0)
    return excess > 0


def _fill_by_count(axes: Axes, reg: Drawable, x: Any, y: Any, theta: Any) -> Any:
    """The same from the probabilities alone."""
    import numpy as np

    axes.set_facecolor(REGIONS[1][0])
    p = reg.predict(theta)
    ranked = np.sort(p, axis=-1)
    _fill(axes, x, y, ranked[..., 1], ranked[..., 0], 1e-9)
    return p > 0


def _fill(axes: Axes, x: Any, y: Any, second: Any, third: Any, least: float) -> None:
    """Fill where the second class, and where the third, has something above `least`."""
    import numpy as np

    for count, rest in ((1, np.ones(x.shape)), (2, second), (3, third)):
        colour, hatch = REGIONS[count]
        if rest.max() <= least:
            continue
        filled = axes.contourf(x, y, rest, levels=[least, math.inf], colors=[colour], hatches=[hatch])
        filled.set_edgecolor("0.6")
        filled.set_linewidth(0.0)
        if count > 1 and rest.min() < least:
            axes.contour(x, y, rest, levels=[least], colors="0.25", linewidths=1.0)


def _mark(axes: Axes, start: Any, end: Any) -> None:
    arrow = {"arrowstyle": "->", "color": "black", "linewidth": 1.0, "shrinkA": 5, "shrinkB": 4}
    axes.annotate("", xy=tuple(end), xytext=tuple(start), arrowprops=arrow)
    axes.plot(*start, marker="*", color=COLOURS[1], markersize=11, linestyle="", label="scores", zorder=6)
    axes.plot(*end, marker="o", color="black", markersize=6, linestyle="", label="prediction", zorder=6)
    axes.legend(loc="upper right", fontsize=8, frameon=True)


def _scores(theta: Sequence[float]) -> Any:
    import numpy as np

    scores = np.asarray(theta, dtype=float)
    if scores.shape != (3,) or not np.isfinite(scores).all():
        raise InputError(f"theta must be three finite scores, not {theta!r}")
    return scores - scores.mean()


def _polygon(corners: Any) -> Any:
    from matplotlib.patches import Polygon

    return Polygon(corners, closed=True, fill=False, edgecolor="black", linewidth=1.6)


def _span(regs: Sequence[Drawable], span: float | None) -> float:
    """How far the scores go: past every margin, unless that is too far."""
    if span is not None:
        if not (isinstance(span, (int, float)) and 0 < span < math.inf):
            raise InputError(f"span must be a positive number, not {span!r}")
        return float(span)
    margins = [margin for reg in regs if (margin := margin_of(reg)) is not None]
    return min(
        max([3.0 if len(margins) < len(regs) or max(margins) == 0.0 else 0.0, *(1.6 * margin for margin in margins)]),
        20.0,
    )


def _finite(values: Any) -> Any:
    import numpy as np

    return np.where(np.isfinite(values), values, np.nan)


def _real(expr: Any, t: Any, x: float) -> float:
    try:
        return float(expr.subs(t, x).evalf(15))
    except (TypeError, ValueError, OverflowError):
        return math.nan


def _note(axes: Axes, words: str) -> None:
    box = {"facecolor": "white", "edgecolor": "0.7", "boxstyle": "round,pad=0.3", "linewidth": 0.6}
    axes.text(0.97, 0.95, words, transform=axes.transAxes, ha="right", va="top", fontsize=9, bbox=box)


def _short(value: Any) -> str:
    """An exact value if it is short, else four digits."""
    text = str(value)
    return text if len(text) <= 8 else f"{float(value):.4g}"


def _literal(words: str) -> str:
    """Words in which a $ is a $, not the start of a formula."""
    return words.replace("$", r"\$")


def _plain_spines(axes: Axes) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(True, linewidth=0.4, color="0.85")
    axes.set_axisbelow(True)
