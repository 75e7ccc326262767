"""Run a script as `python script.py args…` would."""

from __future__ import annotations

import sys
import traceback
import types
from collections.abc import Sequence
from pathlib import Path

from detrain.errors import DamageFoundLate

__all__ = ["run_script"]


def run_script(script: Path, argv: Sequence[str], code: types.CodeType) -> BaseException | None:
    """Execute the script's code as `__main__`; gives the exception that ended it, if one did.

    The traceback of an error is printed as Python prints it, from the script's first line on.
    """
    module = types.ModuleType("__main__")
    module.__file__ = str(script.absolute())
    module.__dict__["__builtins__"] = __builtins__
    before = sys.argv, sys.path[:], sys.modules.get("__main__")
    sys.argv = [str(script), *argv]
    sys.path[0] = str(script.absolute().parent)
    sys.modules["__main__"] = module
    try:
        exec(code, module.__dict__)
    except SystemExit as error:
        if isinstance(error.code, str):
            print(error.code, file=sys.stderr)
        return error
    except BaseException as error:
        trimmed = error.with_traceback(_from_script(error.__traceback__, code.co_filename))
        if isinstance(error, DamageFoundLate):  # where the program was has nothing to do with it
            print(f"detrain: {error}", file=sys.stderr)
        elif not isinstance(error, KeyboardInterrupt):
            traceback.print_exception(trimmed)
        return trimmed
    finally:
        sys.argv, sys.path[:] = before[0], before[1]
        _flush()
    return None


def _from_script(trace: types.TracebackType | None, script: str) -> types.TracebackType | None:
    """The part of a traceback that begins in the script; all of it if it never got there."""
    each = trace
    while each is not None and each.tb_frame.f_code.co_filename != script:
        each = each.tb_next
    return each or trace


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
