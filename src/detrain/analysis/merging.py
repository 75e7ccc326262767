"""Merging: the plan of a cut that is come to by more than one way of calls."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from detrain.plan import PlanItem, PlanLevel

__all__ = ["both_last", "both_outer"]


def both_outer(one: PlanLevel, other: PlanLevel) -> PlanLevel:
    """A loop around a cut, for two ways there."""
    if one.full or other.full:
        return PlanLevel(one.loop)
    return PlanLevel(one.loop, tuple(sorted({*one.items, *other.items})), full=False)


def both_last(one: PlanLevel, other: PlanLevel) -> PlanLevel:
    """A cut, for two ways there: what one of them needs is saved."""
    mine, theirs = ({i.place: i for i in each.items if i.compared} for each in (one, other))
    kept: list[PlanItem] = [item for item in (*one.items, *other.items) if not item.compared]
    for place in {*mine, *theirs}:
        here = [each[place] for each in (mine, theirs) if place in each]
        if len(here) == 1 and _has_variable(mine, place) and _has_variable(theirs, place):
            continue  # a field that is changed on one of the ways
        if "restore" in (item.action for item in here) or len({i.action for i in here}) == 1:
            kept.append(next((i for i in here if i.action == "restore"), here[0]))
        else:
            why = "needed on one of the ways to this loop"
            kept.append(replace(here[0], action="restore", reason=why))
    if ("gradients" in mine) != ("gradients" in theirs):
        kept = [item for item in kept if item.place != "gradients"]
    return PlanLevel(one.loop, tuple(sorted(set(kept))))


def _has_variable(items: Mapping[str, PlanItem], place: str) -> bool:
    """Whether a level knows the variable of a place."""
    space, slash, rest = place.rpartition("/")
    return f"{space}{slash}{rest.partition('.')[0]}" in items
