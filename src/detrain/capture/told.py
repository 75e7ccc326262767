"""What goes wrong while something is restored, told with the place that it went wrong at."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from detrain.errors import DetrainError, ResumeMismatch

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["checked", "told"]

_Value = TypeVar("_Value")


def checked(path: str, action: Callable[[], _Value]) -> _Value:
    """Do it, and name the place if the program's own classes don't go along."""
    try:
        return action()
    except DetrainError:
        raise
    except Exception as error:
        raise told(path, error) from error


def told(path: str, error: Exception) -> ResumeMismatch:
    """The error to be raised for another one, which is none of DETrain's own."""
    return ResumeMismatch(
        path,
        "to restore it from the checkpoint",
        f"{type(error).__name__}: {error}",
        "Give it a state_dict, or keep it where the loop does not reach it",
    )
