"""Sixteen entropies on one sheet

What the prediction for two classes looks like under each entropy of the catalog, as the lead of the first score grows:
those with a margin reach 1 and stay there, the others only come near.
"""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import fysym

VALUES = {"tsallis": {"alpha": 1.5}, "kaniadakis": {"k": 0.5}, "abe": {"q": 2}, "borges_roditi": {"a": 0.5, "b": 2}}


def main(quick: bool = False) -> Figure:
    names = fysym.catalog.separable[: 4 if quick else None]
    figure = Figure(figsize=(10, 2.3 * -(-len(names) // 4)), layout="constrained")
    lead = np.linspace(-5, 5, 41 if quick else 401)
    scores = np.stack([lead, np.zeros_like(lead)], axis=-1)
    for axes, name in zip(figure.subplots(-(-len(names) // 4), 4, squeeze=False, sharex=True, sharey=True).flat, names):
        values = VALUES.get(name, {})
        reg = fysym.catalog[name].bind(**values)
        axes.plot(lead, reg.predict(scores, target="numpy")[:, 0], color=fysym.plot.COLOURS[0], linewidth=1.8)
        axes.set_title(" ".join([name, *(f"{key}={value}" for key, value in values.items())]), fontsize=9)
        margin = fysym.plot.margin_of(reg)
        if margin is not None:
            for side in (-margin, margin):
                axes.axvline(side, color="0.4", linewidth=0.9, linestyle=(0, (2, 2)))
        words = f"{reg.sparsity}, no margin" if margin is None else f"{reg.sparsity}, margin {margin:.3g}"
        white = {"facecolor": "white", "edgecolor": "none", "pad": 1}
        axes.text(0.96, 0.1, words, transform=axes.transAxes, ha="right", fontsize=8, bbox=white)
        axes.set_xlim(-5, 5)
        axes.set_xticks([-4, -2, 0, 2, 4])
        axes.grid(True, linewidth=0.4, color="0.88")
    figure.supxlabel("lead s of the first score", fontsize=9)
    figure.supylabel("its probability", fontsize=9)
    return figure


if __name__ == "__main__":
    fysym.plot.save(main(), Path(__file__).parent / "pictures" / "sixteen_entropies.png")
