"""What all methods of a name may do, for calls on what is not known."""

from __future__ import annotations

from functools import cache

from detrain.analysis.library import ROWS, Row

__all__ = ["rows_named"]


@cache
def _methods() -> dict[str, list[Row]]:
    """The rows of methods, by the method's name."""
    found: dict[str, list[Row]] = {}
    for name, row in ROWS.items():
        owner, _, method = name.rpartition(".")
        if owner.rpartition(".")[2][:1].isupper() or owner.startswith("builtins."):
            found.setdefault(method, []).append(row)
    return found


@cache
def rows_named(name: str, packages: frozenset[str], *, ordered: bool = False) -> Row | None:
    """What all methods of a name may do, in the libraries that a program imports.

    `ordered` is a list, a tuple or a dictionary, and no set.
    """
    rows = [
        r
        for r in _methods().get(name, [])
        if r.name.partition(".")[0] in packages | {"builtins"}
        and not (ordered and r.name.startswith(("builtins.set.", "builtins.frozenset.")))
    ]
    if not rows:
        return None
    first = rows[0]
    if len(rows) == 1:
        return first
    mutates = tuple(dict.fromkeys(what for row in rows for what in row.mutates))
    return Row(
        first.name if all(_effects(row) == _effects(first) for row in rows) else f"*.{name}",
        draws=first.draws if all(row.draws == first.draws for row in rows) else "",
        by=first.by,
        observes=first.observes if all(row.observes == first.observes for row in rows) else "",
        emits=any(row.emits for row in rows),
        mutates=mutates,
        makes=first.makes if all(row.makes == first.makes for row in rows) else "",
        wraps=any(row.wraps for row in rows),
        unordered=any(row.unordered for row in rows),
        parallel=next((row.parallel for row in rows if row.parallel), ""),
    )


def _effects(row: Row) -> tuple[object, ...]:
    return (row.draws, row.observes, row.emits, row.mutates, row.wraps)
