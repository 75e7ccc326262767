"""The plan: what a checkpoint at each cut of a program contains, and why.

The only door between the analysis of a program and its run: plain values, with canonical JSON.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from detrain.errors import UsageError

__all__ = ["Action", "Plan", "PlanCut", "PlanItem", "PlanLevel", "decode_plan", "encode_plan"]

Action = Literal["restore", "drop", "reposition", "rebuild", "record", "rekey", "refuse"]


class PlanItem(msgspec.Struct, frozen=True, omit_defaults=True, order=True):
    """What happens to a place, and the reason in plain words; the line is that of its cause."""

    place: str
    action: Action
    reason: str
    line: int = 0


class PlanLevel(msgspec.Struct, frozen=True, omit_defaults=True):
    """A loop around a cut, or the cut itself."""

    loop: str
    items: tuple[PlanItem, ...] = ()


class PlanCut(msgspec.Struct, frozen=True, omit_defaults=True):
    """The head of a loop, by the loops around it; outermost first, itself last."""

    levels: tuple[PlanLevel, ...]


class Plan(msgspec.Struct, frozen=True, omit_defaults=True):
    """The plan of a program. `items` are those that hold at every cut."""

    cuts: tuple[PlanCut, ...] = ()
    items: tuple[PlanItem, ...] = ()

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
