"""Values that speak of where and when a program runs, not of what it computes.

Names of runs with the time in them, paths below the working folder, host names: two runs of one
program differ in them and train the same. Until the types of a program tell which values the clock
reaches, this is a rule: Python's floats (what clocks give), texts and integers that contain an
answer of a clock or of a source of unique names that the program asked before its first loop,
texts that contain the working folder, and arrays that libraries are known to put times into.
"""

from __future__ import annotations

import datetime
import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from detrain.state import Scalar
    from detrain.world.observe import Observation

__all__ = ["Surroundings"]

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
