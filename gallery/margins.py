"""Which entropies have a margin

The whole catalog in one table: a margin is there exactly where predictions are fully sparse.
"""

import fysym


def main(quick: bool = False) -> None:
    print(f"{'entropy':16}{'margin':>16}  {'sparsity':10}{'smoothness':>12}  h(t)")
    for name in list(fysym.catalog)[: 4 if quick else None]:
        reg = fysym.catalog[name]
        margin = "none" if reg.margin is not None and reg.margin.is_infinite else reg.margin
        smoothness = "depends" if reg.smoothness is None else str(reg.smoothness)
        print(f"{name:16}{margin!s:>16}  {reg.sparsity!s:10}{smoothness[:11]:>12}  {reg.h}")


if __name__ == "__main__":
    main()
