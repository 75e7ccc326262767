"""Who wrote a journal. Entries that this machine wrote carry a seal that nobody else can make.

A journal says which files of the program are to be cut back, removed and put back on resume, and
they may lie anywhere. In a run that came from somebody else such a list could name any file of
yours. So each entry is sealed with a key that never leaves this machine (`DETRAIN_KEY`, or a file
in the user's folder of states), over the seal before it; what a foreign entry may do is decided in
`world.journal`.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
from pathlib import Path

__all__ = ["KEY_VARIABLE", "machine_key", "seal_of"]

KEY_VARIABLE = "DETRAIN_KEY"
_BYTES = 32


def machine_key() -> bytes:
    """The key of this machine and user; it is made if there is none.

    Where none can be kept (a home that can't be written to), a new one is given: what is sealed
    with it counts as foreign in the next attempt.
    """
    given = os.environ.get(KEY_VARIABLE)
    states = os.environ.get("XDG_STATE_HOME") or "~/.local/state"
    path = Path(given or Path(states) / "detrain" / "key").expanduser()
    for _ in range(2):  # another process may be making it
        with contextlib.suppress(OSError):
            found = path.read_bytes()
            if len(found) >= _BYTES:
                return found[:64]
        key = secrets.token_bytes(_BYTES)
        mine = path.with_name(f"{path.name}.{os.getpid()}")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            handle = os.open(mine, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            try:
                os.write(handle, key)
            finally:
                os.close(handle)
            try:
                os.link(mine, path)
            finally:
                mine.unlink()
        except FileExistsError:
            continue
        except OSError:
            break
        return key
    return secrets.token_bytes(_BYTES)


def seal_of(key: bytes, before: str, line: bytes) -> str:
    """The seal of an entry that follows one with the seal `before`."""
    return hashlib.blake2b(before.encode() + b"\n" + line, key=key, digest_size=16).hexdigest()
