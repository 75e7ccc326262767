"""Who else holds an object: what the walk can't see into may keep it alive, and use it.

A name that nothing reads any more may name an object that a hook of a tensor calls, or a cache of a
library: it is dead and the object is not. The walk found it by that name alone. So before an object
is left out with its name, Python's garbage collector is asked who refers to it.
"""

from __future__ import annotations

import gc
import types
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from detrain.capture.iterators import ITERATORS

__all__ = ["held_elsewhere", "is_asked_after"]

_ASKED = frozenset({"generator", "held", "method", "named", "object", "partial", "state_dict"})
_PASSING = (tuple, list)
_HERE = str(Path(__file__).parents[1])


def is_asked_after(form: str) -> bool:
    """Whether an object acts, or is acted upon, by itself: arrays and containers only hold."""
    return form in _ASKED


def held_elsewhere(
    objects: Sequence[Any], walked: Iterable[Any], namespaces: Iterable[Any]
) -> set[int]:
    """Which of some objects, by position, something refers to that was not walked."""
    if not objects:
        return set()
    known = {id(objects), *map(id, namespaces)}
    for each in walked:
        known.add(id(each))
        known.update(_parts(each))
    number = {id(each): i for i, each in enumerate(objects)}
    found: set[int] = set()
    referrers = gc.get_referrers(*objects)
    known.add(id(referrers))
    for referrer in referrers:
        if id(referrer) in known or _is_known(referrer, known):
            continue
        found.update(number[id(o)] for o in gc.get_referents(referrer) if id(o) in number)
    return found


def _parts(obj: Any) -> list[int]:
    """What belongs to a walked object and is no object of its own to the walk."""
    parts: list[Any] = [getattr(obj, "__dict__", None)]
    if isinstance(obj, types.FunctionType):
        parts += obj.__closure__ or ()
    return [id(part) for part in parts]


def _is_known(referrer: Any, known: set[int]) -> bool:
    """Whether a referrer is a function's frame, an iterator that is looped over, or ours."""
    if isinstance(referrer, types.FrameType) or type(referrer) in ITERATORS:
        return True
    if isinstance(referrer, types.GeneratorType):
        return referrer.gi_code.co_filename.startswith(_HERE)
    if type(referrer) in _PASSING:  # `enumerate` and `zip` keep the last tuple that they gave
        holders = gc.get_referrers(referrer)
        return all(
            type(each) in ITERATORS or isinstance(each, types.FrameType) or id(each) in known
            for each in holders
        )
    return type(referrer).__module__.startswith("detrain.")
