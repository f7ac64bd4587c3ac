"""Which entropies have a margin

The whole catalog in one table: a margin is there exactly where predictions are fully sparse.
"""

import fysym

VALUES = {"norm": {"q": 3}, "squared_norm": {"q": 1.5}, "renyi": {"beta": 0.5}}


def main(quick: bool = False) -> None:
    print(f"{'entropy':16}{'margin':>16}  {'sparsity':10}{'smoothness':>12}  h(t), or H")
    for name in list(fysym.catalog)[: 4 if quick else None]:
        reg = fysym.catalog[name].bind(**VALUES.get(name, {}))
        margin = "none" if reg.margin is not None and reg.margin.is_infinite else reg.margin
        known = getattr(reg, "smoothness", "-")
        smoothness = "depends" if known is None else str(known)
        formula = getattr(reg, "h", None) or fysym.catalog.entries[name].words
        print(f"{name:16}{margin!s:>16}  {reg.sparsity!s:10}{smoothness[:11]:>12}  {formula}")


if __name__ == "__main__":
    main()
