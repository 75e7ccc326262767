"""What comes of a signal that asks for a checkpoint: the run ends, or goes on, once it is there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from detrain.runtime.signals import EXIT_CODE, Preempted

if TYPE_CHECKING:
    from collections.abc import Callable

    from detrain.runtime.saving import Saving
    from detrain.runtime.signals import Signals

__all__ = ["answer", "say_out_of_grace"]


def answer(signals: Signals, saving: Saving, step: int, say: Callable[[str], None]) -> None:
    """Asked for at the head of a loop: see whether the checkpoint is there by now."""
    signals.since = step if signals.since is None else signals.since
    if not saving.off and saving.last_step >= signals.since:
        saving.wait()
        saving.tell()
    newest = _newest(saving)
    if saving.off or newest >= signals.since:
        if signals.ends:
            say(f"{signals.asked}: ending; the same command goes on from here")
            raise Preempted(EXIT_CODE)
        there = f"the checkpoint of step {newest} is there" if newest >= 0 else "none is taken"
        say(f"{signals.asked}: {there}")
        signals.done()
    elif saving.last_step >= signals.since:
        signals.since = step  # it could not be written: the next one may be


def say_out_of_grace(saving: Saving, grace: float, say: Callable[[str], None]) -> None:
    """The time to end is over, and the program came to no head of a loop."""
    newest = _newest(saving)
    there = f"the newest is that of step {newest}" if newest >= 0 else "there is none"
    say(f"no checkpoint could be taken within {grace:g} s; {there}. Ending")


def _newest(saving: Saving) -> int:
    """The step of the newest checkpoint of the run; -1 if there is none."""
    return max(saving.newest, saving.resumed_at)
