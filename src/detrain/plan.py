"""The plan: what a checkpoint at each cut of a program contains, and why.

The only door between the analysis of a program and its run: plain values, with canonical JSON.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from detrain.errors import UsageError

__all__ = [
    "Action",
    "Plan",
    "PlanCut",
    "PlanItem",
    "PlanLevel",
    "PlanLoop",
    "decode_plan",
    "encode_plan",
]

Action = Literal["restore", "drop", "reposition", "rebuild", "record", "rekey", "refuse"]


class PlanItem(msgspec.Struct, frozen=True, omit_defaults=True, order=True):
    """What happens to a place, and the reason in plain words; the line is that of its cause.

    A place of a Python program is `module/name` for a global name, `module:function/name` for a
    variable of a function, with fields below it as `.field` and `[]`; the `gradients` of all
    parameters are a place of their own. What is not `compared` is saved, but its bits are not those
    of another run.
    """

    place: str
    action: Action
    reason: str
    line: int = 0
    file: str = ""
    compared: bool = True
    causes: tuple[str, ...] = ()
    """How its bits come about, in words; nothing is fixed: the same in every run."""


class PlanLevel(msgspec.Struct, frozen=True, omit_defaults=True):
    """A loop around a cut, or the cut itself.

    At the cut all is saved except what its items `drop` or `rebuild`. At a loop around it all is
    saved if the level is `full`, and only what its items `restore` if it is not.
    """

    loop: str
    items: tuple[PlanItem, ...] = ()
    full: bool = True


class PlanCut(msgspec.Struct, frozen=True, omit_defaults=True):
    """The head of a loop, by the loops around it; outermost first, itself last."""

    levels: tuple[PlanLevel, ...]

    @property
    def loops(self) -> tuple[str, ...]:
        """The sites of the loops, outermost first."""
        return tuple(level.loop for level in self.levels)


class PlanLoop(msgspec.Struct, frozen=True, omit_defaults=True):
    """A loop of the program on the way to an update of what is trained, itself or around it.

    Its `site` is the module, the function and the loop's number by structure: it does not change
    when lines are added around it.
    """

    file: str
    line: int
    column: int
    site: str


class Plan(msgspec.Struct, frozen=True, omit_defaults=True):
    """The plan of a program. `items` are those that hold at every cut."""

    cuts: tuple[PlanCut, ...] = ()
    items: tuple[PlanItem, ...] = ()
    loops: tuple[PlanLoop, ...] = ()

    @property
    def records(self) -> bool:
        """Whether answers of the world must be kept, because they decide how the program goes."""
        return any(item.action == "record" for item in self.items)

    @property
    def refused(self) -> tuple[PlanItem, ...]:
        """What can't be replayed."""
        return tuple(item for item in self.items if item.action == "refuse")


_encoder = msgspec.json.Encoder(order="deterministic")


def encode_plan(plan: Plan) -> bytes:
    """A plan as JSON: equal plans give equal bytes."""
    return _encoder.encode(plan)


def decode_plan(data: bytes) -> Plan:
    """Read what `encode_plan` wrote; `UsageError` if it is something else."""
    try:
        return msgspec.json.decode(data, type=Plan)
    except msgspec.DecodeError as error:
        raise UsageError(f"this is no plan: {error}") from None
