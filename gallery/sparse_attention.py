"""Sparse attention over a sentence

The same scores give every word some weight under softmax, and exactly 0 to most words under sparsemax; Tsallis 1.5 is
in between. The margin says when a single word takes all: when its score leads by the margin. (The scores, of the word
"was" looking for its subject, are made up.)
"""

from pathlib import Path

from matplotlib.figure import Figure

import fysym

WORDS = ["the", "tired", "old", "dog", "that", "the", "two", "cats", "chased", "was"]
SCORES = [0.3, 0.9, 0.8, 2.6, 0.4, 0.2, 0.5, 2.1, 1.4, 0.1]


def main(quick: bool = False) -> Figure:
    shown = {
        "softmax (shannon, no margin)": fysym.catalog.shannon,
        "Tsallis 1.5 (margin 2)": fysym.catalog.tsallis.bind(alpha=1.5),
        "sparsemax (gini, margin 1)": fysym.catalog.gini,
    }
    figure = Figure(figsize=(9, 5.2), layout="constrained")
    hatches = ("", "//", "..")
    for place, (axes, (title, reg)) in enumerate(zip(figure.subplots(3, 1, sharex=True, sharey=True), shown.items())):
        weights = reg.predict(SCORES)
        axes.bar(range(len(WORDS)), weights, color=fysym.plot.COLOURS[place], edgecolor="white", hatch=hatches[place])
        for at, weight in enumerate(weights):
            axes.text(at, weight + 0.03, f"{weight:.2f}" if weight else "0", ha="center", fontsize=8)
        axes.set_title(f"{title}: {int((weights > 0).sum())} of {len(WORDS)} words", fontsize=10, loc="left")
        axes.set_ylim(0, 0.95)
        axes.spines[["top", "right"]].set_visible(False)
    axes.set_xticks(range(len(WORDS)), WORDS)
    return figure


if __name__ == "__main__":
    fysym.plot.save(main(), Path(__file__).parent / "pictures" / "sparse_attention.png")
