"""An entropy from ecology

Ecologists ask how many species a sample of m animals is expected to hold: sum_j 1 - (1 - p_j)^m (Hurlbert, 1971). That
is a separable entropy, so it has a loss. fysym finds its margin, which is m itself: the larger the sample one has in
mind, the longer a rare class matters. m = 2 is Gini's entropy, twice over.
"""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import fysym


def main(quick: bool = False) -> Figure:
    species = fysym.compile("1 - (1 - t)**m", params={"m": "m > 1"}, name="species in a sample of m")
    print(f"margin {species.margin} [{species.fact('margin').status}], sparsity {species.sparsity}")
    animals = np.array([520, 240, 110, 60, 30, 20, 10, 6, 3, 1])
    p = animals / animals.sum()
    sizes = (2, 5) if quick else (2, 3, 4, 6, 8, 12, 16, 20)
    # the affine term that fysym subtracts, h(0) = h(1) = 0, is t, which sums to 1
    expected = [1 + float(species.bind(m=m).entropy(p)) for m in sizes]
    figure = Figure(figsize=(9, 3.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    left.plot(sizes, expected, "o-", color=fysym.plot.COLOURS[0])
    left.set_title("ten species: how many a sample shows", fontsize=10)
    left.set_xlabel("animals in the sample, m")
    lead = np.linspace(-12, 12, 401)
    for place, m in enumerate((2, 5, 10)):
        losses = species.bind(m=m).loss(np.stack([lead, 0 * lead], -1), np.zeros(len(lead), dtype=int))
        right.plot(lead, losses, color=fysym.plot.COLOURS[place], linestyle=fysym.plot.DASHES[place], label=f"m = {m}")
        right.plot([m], [0], "v", color=fysym.plot.COLOURS[place], clip_on=False)
    right.set_title("the loss of class 1 is 0 from s = m on", fontsize=10)
    right.set_xlabel("lead s of the right score")
    right.legend(frameon=False)
    for axes in (left, right):
        axes.grid(True, linewidth=0.4, color="0.88")
        axes.spines[["top", "right"]].set_visible(False)
    return figure


if __name__ == "__main__":
    fysym.plot.save(main(), Path(__file__).parent / "pictures" / "ecology.png")
