"""An entropy of one's own in five minutes

Write a formula; if it will not do, fysym says where and why. Then ask for its margin, and train with its loss: three
classes, a linear model, plain gradient descent.
"""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import fysym


def main(quick: bool = False) -> Figure:
    try:
        fysym.compile("t*(1 - t)*(1 + 3*t)")
    except fysym.NotConcaveError as error:
        print(f"first try: {error}")
    mine = fysym.compile("t*(1 - t)*(3 - t)", name="mine")
    print(f"second try: concavity {mine.fact('strictly_concave').status}, margin {mine.margin}, {mine.sparsity}")

    random = np.random.default_rng(0)
    labels = random.integers(3, size=300)
    centres = np.array([[0.0, 2.0], [-1.8, -1.0], [1.8, -1.0]])
    x = np.c_[centres[labels] + random.normal(size=(300, 2)) * 0.6, np.ones(300)]
    weights, history = np.zeros((3, 3)), []
    for _ in range(5 if quick else 200):
        losses, slopes = mine.value_and_grad(x @ weights, labels)
        history.append(losses.mean())
        weights -= 0.5 * x.T @ slopes / len(x)
    p = mine.predict(x @ weights)
    print(f"loss {history[0]:.3f} -> {history[-1]:.3f}; right {np.mean(p.argmax(1) == labels):.0%}, ", end="")
    print(f"sure (one probability is 1) {np.mean(p.max(1) == 1):.0%}")

    figure = Figure(figsize=(9, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    left.plot(history, color=fysym.plot.COLOURS[0])
    left.set(title="mean loss", xlabel="step")
    for k, marker in enumerate("osD"):
        right.scatter(*x[labels == k, :2].T, s=14, marker=marker, color=fysym.plot.COLOURS[k], label=f"class {k + 1}")
    unsure = p.max(1) < 1
    right.scatter(*x[unsure, :2].T, s=60, facecolor="none", edgecolor="black", linewidth=0.7, label="not sure")
    right.legend(fontsize=8, frameon=False)
    right.set(title="where the prediction is not one-hot", aspect="equal")
    return figure


if __name__ == "__main__":
    fysym.plot.save(main(), Path(__file__).parent / "pictures" / "your_own.png")
