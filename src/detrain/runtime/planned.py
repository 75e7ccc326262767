"""What the plan of a program says about a loop that is running.

A plan names loops by site and places by space and name; here that becomes what a checkpoint at a
head leaves out, what a loop around it needs, and what is not compared. Whatever the plan does not
say in so many words is saved whole and compared as without a plan.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Set
from dataclasses import dataclass, replace
from functools import cached_property

from detrain.plan import Plan, PlanCut, PlanItem

__all__ = ["GRADIENTS", "Cut", "Planned", "Uncompared"]

GRADIENTS = "gradients"
"""The place of the gradients of all parameters."""
_OTHERS = "gradients.others"
"""The place of those that an iteration neither clears nor uses."""

Path = tuple[str, ...]

_PART = re.compile(
    r"""\.[^.\[]+ | \[(?: '(?:[^'\\]|\\.)*' | "(?:[^"\\]|\\.)*" | [^\]]* )\]""", re.VERBOSE
)


@dataclass(frozen=True)
class Cut:
    """What a checkpoint at one head leaves out. Names are those of variables: `__main__/batch`."""

    dead: frozenset[str] = frozenset()
    rebuilt: frozenset[str] = frozenset()
    """Among them are fields: `__main__/trainer.data`."""
    gradients: bool = False
    """Whether gradients are left out."""
    others: bool = False
    """Whether one that an iteration does not touch is cleared before it is used, too."""
    uncompared: tuple[str, ...] = ()
    constants: bool = True
    """Whether a number or text that is rebuilt is left out too."""
    kept: frozenset[str] = frozenset()
    """Places that the plan was wrong about."""

    def keeping(self, kept: Set[str]) -> Cut:
        """The same, with places saved that the plan was wrong about.

        Constants are saved as well: no digest would show that one was made otherwise.
        """
        return replace(
            self,
            constants=False,
            kept=frozenset(kept),
            dead=self.dead - kept,
            rebuilt=self.rebuilt - kept,
            gradients=self.gradients and GRADIENTS not in kept,
        )

    def with_gradients(self) -> Cut:
        """The same, with gradients saved."""
        return replace(self, gradients=False)


class Planned:
    """A plan, by the paths of loops; without one, nothing is known of any of them."""

    def __init__(self, plan: Plan | None) -> None:
        self._plan = plan if plan is not None else Plan()

    def cut(self, path: Path) -> Cut | None:
        """What a checkpoint at the head of a loop leaves out; None if the plan has no such cut."""
        found = [cut for cut in self._plan.cuts if cut.loops == path]
        return self._cut(found[0]) if len(found) == 1 else None

    def outer(self, path: Path) -> tuple[str, ...] | None:
        """The places that a loop around cuts must restore; None if it is all of them."""
        inside = [cut for cut in self._plan.cuts if _begins(cut.loops, path)]
        levels = [cut.levels[len(path) - 1] for cut in inside]
        if not levels or any(level.full for level in levels):
            return None
        places = {
            # A container is taken whole, if not a field of what is in it.
            re.sub(r"(\[\])+$", "", item.place)
            for level in levels
            for item in level.items
            if item.action == "restore"
        }
        return tuple(sorted(places))

    def dropped_within(self, site: str) -> frozenset[str]:
        """Names that some cut inside an outermost loop, or at its own head, leaves out as dead."""
        cuts = [cut for cut in self._plan.cuts if cut.loops[0] == site]
        return frozenset().union(*(self._cut(cut).dead for cut in cuts))

    def _cut(self, cut: PlanCut) -> Cut:
        items = (*self._plan.items, *cut.levels[-1].items)
        dead = _variables(items, "drop")
        return Cut(
            dead,
            _variables(items, "rebuild") | _fields(items),
            GRADIENTS in dead,
            any(item.place == _OTHERS for item in items),
            tuple(item.place for item in items if not item.compared),
        )


def _begins(longer: Path, path: Path) -> bool:
    return len(longer) > len(path) and longer[: len(path)] == path


def _variables(items: Iterable[PlanItem], action: str) -> frozenset[str]:
    """The variables that are treated so, and of which no part is treated otherwise."""
    other = [item.place for item in items if item.action != action]
    return frozenset(
        item.place
        for item in items
        if item.action == action
        and not _PART.search(item.place.rpartition("/")[2])
        and not any(_is_below(place, item.place) for place in other)
    )


def _fields(items: Iterable[PlanItem]) -> frozenset[str]:
    """The fields that are rebuilt, and of which no part is treated otherwise."""
    other = [item.place for item in items if item.action != "rebuild" or not item.compared]
    return frozenset(
        item.place
        for item in items
        if item.action == "rebuild"
        and _is_field(item.place)
        and not any(_is_below(place, item.place) for place in other)
    )


def _is_field(place: str) -> bool:
    """Whether a place is a field, of a field … of a variable: no element of anything."""
    parts = _PART.findall(place.rpartition("/")[2])
    return bool(parts) and all(part[0] == "." for part in parts)


def _is_below(place: str, variable: str) -> bool:
    return place == variable or place.startswith((f"{variable}.", f"{variable}["))


@dataclass(frozen=True)
class Uncompared:
    """Places that are left out of digests; see `trace.digest.Places`."""

    places: tuple[str, ...]

    @cached_property
    def _split(self) -> tuple[tuple[str, ...], ...]:
        return tuple(map(_parts, self.places))

    def covers(self, path: str) -> bool:
        """Whether a path is such a place, or lies below one."""
        parts = _parts(path)
        return any(len(place) <= len(parts) and _agree(place, parts) for place in self._split)

    def reaches(self, path: str) -> bool:
        """Whether such a place lies below a path."""
        parts = _parts(path)
        return any(len(place) > len(parts) and _agree(place, parts) for place in self._split)


def _parts(path: str) -> tuple[str, ...]:
    """The space and the name, then each field and index."""
    space, slash, rest = path.partition("/")
    name = re.match(r"[^.\[]*", rest)
    assert name is not None
    return (f"{space}{slash}{name[0]}", *_PART.findall(rest[name.end() :]))


def _agree(place: tuple[str, ...], path: tuple[str, ...]) -> bool:
    """Whether a place and a path agree as far as both go: `[]` is any index, `.x` also `['x']`."""
    return all(
        one == other
        or (one == "[]" and other.startswith("["))
        or (one[0] == "." and other == f"[{one[1:]!r}]")
        for one, other in zip(place, path, strict=False)
    )
