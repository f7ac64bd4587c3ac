"""Why sparsemax has a margin and softmax none

A class gets probability 0 once its score falls so far behind that even the steepest slope of the entropy, h'(0), does
not bring it back. Gini's slope at 0 is 1/2, so that happens; Shannon's is infinite, so it never does. The margin is the
fall of the slope over (0, 1): h'(0) - h'(1), which is the area under -h''.
"""

from pathlib import Path

import numpy as np
import sympy
from matplotlib.figure import Figure

import fysym


def main(quick: bool = False) -> Figure:
    figure = Figure(figsize=(9.5, 3.3), layout="constrained")
    slopes, losses = figure.subplots(1, 2)
    t = np.linspace(0.002, 1, 50 if quick else 500)
    lead = np.linspace(-3, 3, 61 if quick else 601)
    for place, reg in enumerate((fysym.catalog.gini, fysym.catalog.shannon)):
        print(f"{reg.name}: slopes {reg.slopes}, margin {reg.margin} because {reg.fact('margin').evidence}")
        colour, dashes = fysym.plot.COLOURS[place], fysym.plot.DASHES[place]
        slope = sympy.lambdify(reg.variable, reg.dh)(t) + 0 * t
        slopes.plot(t, slope, color=colour, linestyle=dashes, label=f"{reg.name}: h' = {reg.dh}")
        value = reg.loss(np.stack([lead, 0 * lead], -1), np.zeros(len(lead), dtype=int))
        losses.plot(lead, value, color=colour, linestyle=dashes, label=reg.name)
    slopes.annotate("", (0.02, -0.5), (0.02, 0.5), arrowprops={"arrowstyle": "<->", "color": fysym.plot.COLOURS[0]})
    slopes.text(0.05, -0.9, "Gini falls by 1, its margin", fontsize=9, color=fysym.plot.COLOURS[0])
    slopes.text(0.05, 3.6, "Shannon falls from infinity", fontsize=9, color=fysym.plot.COLOURS[1])
    slopes.set_ylim(-1.2, 5)
    slopes.set_title("slope of the entropy, h'(t)", fontsize=10)
    losses.axvspan(1, 3, facecolor="none", edgecolor="0.8", hatch="//", linewidth=0)
    losses.text(1.05, 2.6, "sparsemax is content\nbeyond the margin 1", fontsize=9, backgroundcolor="white")
    losses.set_title("loss of the right class by its lead", fontsize=10)
    for axes, label in ((slopes, "t"), (losses, "s")):
        axes.set_xlabel(label)
        axes.legend(frameon=False, loc="upper right" if axes is slopes else "lower left")
        axes.spines[["top", "right"]].set_visible(False)
    return figure


if __name__ == "__main__":
    fysym.plot.save(main(), Path(__file__).parent / "pictures" / "why_margin.png")
