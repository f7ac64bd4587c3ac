"""One module for each target that code can be emitted for; importing this imports none of them."""

TARGETS = ("numpy", "numba", "c")
