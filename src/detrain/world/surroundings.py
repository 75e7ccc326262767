"""Values that speak of where and when a program runs, not of what it computes.

Names of runs with the time in them, paths below the working folder, host names: two runs of one
program differ in them and train the same. Where the types of a program don't tell which values the
clock reaches, this is a rule: Python's floats (what clocks give), texts and integers that contain
an answer of a clock or of a source of unique names that the program asked before its first loop,
texts that contain the working folder, and arrays that libraries are known to put times into. Types
tell nothing of the floats that objects of libraries keep: which clocks these ask is not seen.
"""

from __future__ import annotations

import datetime
import re
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable

    from detrain.state import Node, Ref, Scalar, StateTree
    from detrain.world.observe import Observation

__all__ = ["Surroundings", "without_floats_of_libraries"]

_TIMES = re.compile(r"\.episode_start_times?'*$|\['episode'\]\['t'\]'*$")
"""Arrays of gymnasium's statistics of episodes."""

_EPOCH_DIGITS = 10
_SHORTEST_NAME = 4


class Surroundings:
    """What is known of the surroundings of a run."""

    def __init__(self) -> None:
        self._folder = str(Path.cwd())
        self._moments: set[str] = set()
        """Digits that a text with the time of an answer in it contains."""
        self._names: set[str] = set()

    def learn(self, observation: Observation) -> None:
        """The program got this answer while it was set up."""
        question, (tag, text) = observation
        if question.startswith(("time.", "datetime.")):
            self._moments.update(_digits_of(tag, text))
        elif question.startswith(("uuid.", "secrets.", "socket.")):
            name = text.replace("-", "")
            if len(name) >= _SHORTEST_NAME:
                self._names.add(name)

    def decide(self, scalar: Scalar) -> bool:
        """Whether a value is decided by the surroundings."""
        tag, text = scalar
        if tag == "f":
            return True
        if tag == "array":
            return _TIMES.search(text) is not None
        if tag == "i":
            return len(text) >= _EPOCH_DIGITS and text[:_EPOCH_DIGITS] in self._moments
        if tag != "s":
            return False
        if self._folder in text:
            return True
        if self._moments:
            digits = re.sub("[^0-9]", "", text)
            if any(moment in digits for moment in self._moments):
                return True
        return any(name in text.replace("-", "") for name in self._names)


def without_floats_of_libraries(tree: StateTree, owns: Callable[[str], bool]) -> StateTree:
    """A tree without the floats that objects of libraries keep, in themselves or in containers.

    `owns` says whether a module, by name, is the program's own.
    """
    inside: dict[int, bool] = {}
    nodes = []
    for number, node in enumerate(tree.nodes):
        if node.form == "object":
            inside[number] = not owns(node.type.partition(":")[0])
        kept = inside.setdefault(number, False)
        for ref in (*node.items, *node.keys, *(ref for _, ref in node.fields)):
            if isinstance(ref, int):
                inside.setdefault(ref, kept)  # by who names it first, as its path is
        nodes.append(_without_floats(node) if kept else node)
    return msgspec.structs.replace(tree, nodes=tuple(nodes))


def _without_floats(node: Node) -> Node:
    def blank(ref: Ref) -> Ref:
        return ("f", "") if not isinstance(ref, int) and ref[0] == "f" else ref

    # A long list of plain numbers is one text; that of floats has points, exponents or names in it.
    has_floats = node.form == "list" and re.search("[.a-z]", node.text) is not None
    return msgspec.structs.replace(
        node,
        items=tuple(map(blank, node.items)),
        keys=tuple(map(blank, node.keys)),
        fields=tuple((name, blank(ref)) for name, ref in node.fields),
        text="" if has_floats else node.text,
    )


def _digits_of(tag: str, text: str) -> set[str]:
    """How the digits of a moment may stand in a text: as seconds, as a date and a time of day."""
    if tag == "f":
        seconds = float(text)
        if seconds < 1e9:  # of a clock that counts from the start of the machine
            return set()
        moments = [datetime.datetime.fromtimestamp(seconds)]
        moments.append(datetime.datetime.fromtimestamp(seconds, datetime.UTC))
        found = {str(int(seconds))}
    elif tag == "datetime":
        moments, found = [datetime.datetime.fromisoformat(text)], set()
    else:
        digits = re.sub("[^0-9]", "", text)
        return {digits[:_EPOCH_DIGITS]} if len(digits) >= _EPOCH_DIGITS else set()
    for moment in moments:
        found |= {moment.strftime("%d%H%M%S"), moment.strftime("%m%d%H%M")}
        found |= {moment.strftime("%Y%m%d%H"), moment.strftime("%y%m%d%H%M")}
    return found
