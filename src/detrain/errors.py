"""Every error that DETrain raises on purpose, drawn as one tree.

    DetrainError
    ├── UsageError            what was typed or passed can't be used     → change the call
    │   ├── UnknownRun        no run of that name                        → `detrain runs`
    │   └── RunLocked         another living process owns the run        → wait for it, or --fresh
    ├── ProgramTooLarge       the program is too large to be analysed    → it runs all the same
    ├── ProgramChanged        script or environment are not the run's    → --fresh, --accept-changes
    ├── UncapturableState     a value that a checkpoint can't hold       → the message says where
    ├── ForeignFiles          a run from elsewhere would change files    → look, --trust-files
    ├── StoreUnavailable      a store can't be reached or refuses        → mend it, try again
    ├── Unwritable            a file of the run can't be written         → make room, run it again
    ├── ResumeMismatch        the re-executed program took another way   → make it deterministic
    └── DamagedCheckpoint     a file is missing, torn, altered           → an older one is used
        ├── DamageFoundLate   the program had gone on from it by then    → run it again
        └── NewerFormat       written by a newer DETrain                 → upgrade

A message says what happened, where, what was expected and found, and what to do next; the same
facts are attributes. Nothing else belongs here.
"""

from __future__ import annotations

__all__ = [
    "DamageFoundLate",
    "DamagedCheckpoint",
    "DetrainError",
    "ForeignFiles",
    "NewerFormat",
    "ProgramChanged",
    "ProgramTooLarge",
    "ResumeMismatch",
    "RunLocked",
    "StoreUnavailable",
    "UncapturableState",
    "UnknownRun",
    "Unwritable",
    "UsageError",
]


class DetrainError(Exception):
    """Base of all errors that DETrain raises on purpose."""


class UsageError(DetrainError, ValueError):
    """The call or the command line can't be used as it is."""


class UnknownRun(UsageError):
    """There is no run of that name."""

    def __init__(self, name: str, folder: str, known: tuple[str, ...]) -> None:
        self.name, self.folder, self.known = name, folder, known
        have = f"there are: {', '.join(known)}" if known else "there are none"
        super().__init__(f"no run named {name!r} in {folder}; {have}")


class RunLocked(UsageError):
    """Another living process owns the run."""

    def __init__(self, name: str, owner: str) -> None:
        self.name, self.owner = name, owner
        super().__init__(
            f"run {name!r} is in use by {owner}. "
            "Wait for it or stop it; --fresh starts another run of the same command"
        )


class ProgramTooLarge(DetrainError):
    """What the script reaches is more than is analysed."""

    def __init__(self, script: str, lines: int, files: int, most: int) -> None:
        self.script, self.lines, self.files, self.most = script, lines, files, most
        super().__init__(
            f"{script} is too large to be analysed: in the {lines:,} lines of its {files} files it "
            f"reaches more than {most:,} operations. `detrain run` runs it without a plan; to have "
            "one, install what is not the program's own as a package"
        )


class ProgramChanged(DetrainError):
    """The program or its environment is not the one that the run began with."""

    def __init__(self, name: str, changes: tuple[str, ...]) -> None:
        self.name, self.changes = name, changes
        listed = "".join(f"\n  - {change}" for change in changes)
        super().__init__(
            f"run {name!r} can't go on to the same bits: since it began, this changed:{listed}\n"
            "Undo the change, or choose: --fresh starts a new run, "
            "--accept-changes goes on from the checkpoint all the same"
        )


class ForeignFiles(DetrainError):
    """A run that came from elsewhere says to change files that are not its own."""

    def __init__(self, name: str, files: tuple[str, ...]) -> None:
        self.name, self.files = name, files
        listed = "".join(f"\n  - {file}" for file in files[:5])
        more = f"\n  and {len(files) - 5} more" if len(files) > 5 else ""
        super().__init__(
            f"run {name!r} was not begun by you on this machine, and its journal says to cut back, "
            f"remove or replace files when it goes on:{listed}{more}\n"
            "Nothing was changed. If you know who made the run, --trust-files has it done; "
            "--fresh starts a new run"
        )


class UncapturableState(DetrainError):
    """A value that a checkpoint can't hold."""

    def __init__(self, path: str, found: str, reason: str, action: str) -> None:
        self.path, self.found, self.reason, self.action = path, found, reason, action
        super().__init__(f"{path} is a {found}, which can't be captured: {reason}. {action}")


class Unwritable(DetrainError):
    """A file of the run can't be written: the disk is full, read-only or broken."""

    def __init__(self, file: str, error: OSError) -> None:
        self.file, self.error = file, error
        super().__init__(
            f"{file} can't be written: {error.strerror or error}. What was committed before stays. "
            "Make room, or choose another place with --runs; then the same command goes on"
        )


class StoreUnavailable(DetrainError):
    """A store can't be reached, or does not let us in."""

    def __init__(self, address: str, error: Exception, tried: str) -> None:
        self.address, self.error = address, error
        super().__init__(
            f"{address} can't be reached{tried}: {type(error).__name__}: {error}. What was "
            "committed on this machine stays; check address, credentials and network, then try "
            "again"
        )


class ResumeMismatch(DetrainError):
    """The re-executed program is not where, or not what, the checkpoint describes."""

    def __init__(self, where: str, expected: str, found: str, action: str) -> None:
        self.where, self.expected, self.found, self.action = where, expected, found, action
        super().__init__(f"{where}: expected {expected}, found {found}. {action}")


class DamagedCheckpoint(DetrainError):
    """A checkpoint file is missing, torn or altered."""

    def __init__(self, file: str, reason: str) -> None:
        self.file, self.reason = file, reason
        super().__init__(f"{file}: {reason}")


class DamageFoundLate(DamagedCheckpoint):
    """A checkpoint that a program has gone on from is altered, in what it has not used so far."""


class NewerFormat(DamagedCheckpoint):
    """The file was written by a newer DETrain."""

    def __init__(self, file: str, found: int, known: int) -> None:
        self.found, self.known = found, known
        super().__init__(
            file, f"has format version {found}, this DETrain reads up to {known}; upgrade DETrain"
        )
