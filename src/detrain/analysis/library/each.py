"""One statement about many names: how the tables stay short enough to be read.

Habits of the tables that `Row` leaves open:
- Where a row observes the world, `by` is the first argument, and the observation is not made when
  that is given: `numpy.random.default_rng(0)`. Where `by` of a draw is a seed, the draw is keyed.
- Where a row both mutates and wraps, the mutated thing keeps hold of the arguments: `list.append`.
- What wraps and makes an array gives a view, or possibly the very array that it was given.
- `Class.__call__` says what happens when an instance is called.
"""

from __future__ import annotations

from detrain.analysis.library.row import Row

__all__ = ["HOLDS", "PURE", "each", "methods"]

PURE = Row("")
"""Depends on its arguments only, and gives something new."""

HOLDS = Row("", wraps=True)
"""Pure, but what comes back shares memory or elements with the arguments."""


def each(owner: str, names: str, like: Row = PURE) -> tuple[Row, ...]:
    """The facts of `like` for every one of `names`, which are separated by blanks."""
    return tuple(_renamed(like, f"{owner}.{name}") for name in names.split())


def methods(owner: str, classes: str, names: str, like: Row = PURE) -> tuple[Row, ...]:
    """The facts of `like` for every method in `names` of every class in `classes`."""
    return tuple(row for cls in classes.split() for row in each(f"{owner}.{cls}", names, like))


def _renamed(like: Row, name: str) -> Row:
    """What `dataclasses.replace` gives, in a fraction of its time: there are thousands of rows."""
    row = object.__new__(Row)
    vars(row).update(vars(like), name=name)
    return row
