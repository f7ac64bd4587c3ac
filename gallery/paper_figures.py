"""The figures of the paper

Four families of entropies, three panels each: the entropy of [t, 1 - t], the probability of the first class for the
scores [s, 0], and the loss of the first class. Where the curve of a prediction reaches 1, its loss reaches 0: that is
the margin. Tsallis moves it with alpha; all norms share the margin 1; Renyi has none. As in Figure 1 and in the
appendix of Blondel, Martins and Niculae (2019).
"""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import fysym

FAMILIES = {
    "Tsallis": {
        r"$\alpha=1$ (logistic)": ("shannon", {}),
        r"$\alpha=1.5$": ("tsallis", {"alpha": 1.5}),
        r"$\alpha=2$ (sparsemax)": ("gini", {}),
        r"$\alpha=4$": ("tsallis", {"alpha": 4}),
        r"$\alpha=\infty$ (perceptron)": ("perceptron", {}),
    },
    "Norm": {
        **{rf"$q={q:g}$": ("norm", {"q": q}) for q in (1.25, 2, 4)},
        r"$q=\infty$ (Berger-Parker)": ("berger_parker", {}),
    },
    "Squared norm": {rf"$q={q:g}$": ("squared_norm", {"q": q}) for q in (1.25, 1.5, 2)},
    "Renyi": {**{rf"$\beta={b:g}$": ("renyi", {"beta": b}) for b in (0.25, 0.5)}, r"$\beta=1$": ("shannon", {})},
}


def main(quick: bool = False) -> dict[str, Figure]:
    """Figure 1, and the figure of the appendix."""
    chosen = {"paper_figure_1": ["Tsallis", "Norm"], "paper_appendix": ["Squared norm", "Renyi"]}
    return {title: drawn(names, 21 if quick else 401) for title, names in chosen.items()}


def drawn(names: list[str], points: int) -> Figure:
    figure = Figure(figsize=(10, 2.9 * len(names)), layout="constrained")
    t, s = np.linspace(0, 1, points), np.linspace(-3, 3, points)
    scores, first = np.stack([s, 0 * s], -1), np.zeros(points, dtype=int)
    for name, row in zip(names, figure.subplots(len(names), 3, squeeze=False)):
        for place, (label, (entry, values)) in enumerate(FAMILIES[name].items()):
            reg = fysym.catalog[entry].bind(**values)
            style = {"color": fysym.plot.COLOURS[place], "linestyle": fysym.plot.DASHES[place], "linewidth": 1.8}
            row[0].plot(t, reg.entropy(np.stack([t, 1 - t], -1)), label=label, **style)
            row[1].plot(s, reg.predict(scores, target="numpy")[:, 0], **style)
            row[2].plot(s, reg.loss(scores, first, target="numpy"), **style)
        titles = (rf"{name}: $H([t, 1-t])$", r"$\hat y([s, 0])_1$", r"$L([s, 0]; e_1)$")
        for axes, title, variable in zip(row, titles, "tss"):
            axes.set(title=title, xlabel=f"${variable}$")
            axes.spines[["top", "right"]].set_visible(False)
        row[2].legend(handles=row[0].lines, frameon=False, fontsize=9, loc="upper right")
    return figure


if __name__ == "__main__":
    for title, figure in main().items():
        fysym.plot.save(figure, Path(__file__).parent / "pictures" / f"{title}.png")
