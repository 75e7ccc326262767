"""What a program calls: `detrain.run`, and the loops of a run."""

from __future__ import annotations

import dis
import sys
import traceback
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, Generic, TypeVar

import msgspec

from detrain import __version__
from detrain.capture.own import not_a_library
from detrain.errors import Unwritable, UsageError
from detrain.plan import Plan
from detrain.runs.choose import Wanted, choose, runs_address, runs_root, script_digest
from detrain.runs.folder import RunFolder
from detrain.runs.mirror import Mirror
from detrain.runtime.attempt import Opening
from detrain.runtime.crash import crash_point
from detrain.runtime.notice import Notices
from detrain.runtime.options import Options
from detrain.runtime.replaying import Replayed, Replaying
from detrain.runtime.roots import Owns
from detrain.runtime.session import Session
from detrain.runtime.signals import EXIT_CODE, Preempted

__all__ = ["Loop", "Run", "active", "loop", "open_replay", "open_session", "run"]

Item = TypeVar("Item")

_GET_ITER = dis.opmap["GET_ITER"]

_active: Session | None = None
"""The session of this process: there is one program, so there is one run."""


def active() -> Session | None:
    """The session that this process is in, if it is in one."""
    return _active


def open_session(
    wanted: Wanted,
    options: Options,
    owns: Owns = not_a_library,
    *,
    world: bool = False,
    plan: Plan | None = None,
) -> Session:
    """Choose the run that is meant and begin to work on it.

    `owns` says which files are the program's; with `world`, what it asks and writes is done once.
    `plan` says what its checkpoints may leave out.
    """
    if _active is not None:
        raise UsageError(f"this process is at work on run {_active.folder.name!r} already")
    mirror = None
    if wanted.address is not None:
        mirror = Mirror(wanted.address, wanted.root, _say)
    try:
        return _open(wanted, options, owns, world, plan, mirror)
    except OSError as error:
        _end(mirror)
        raise Unwritable(str(error.filename or wanted.root), error) from error
    except BaseException:
        _end(mirror)
        raise


def _end(mirror: Mirror | None) -> None:
    if mirror is not None:
        mirror.end()


def _say(text: str) -> None:
    Notices(quiet=False).say(text)


def _open(
    wanted: Wanted,
    options: Options,
    owns: Owns,
    world: bool,
    plan: Plan | None,
    mirror: Mirror | None,
) -> Session:
    if mirror is not None:
        mirror.heads()
    folder, record = choose(msgspec.structs.replace(wanted, choices=options.choices))
    if mirror is not None:
        mirror.open(folder.name)
    opening = Opening(
        folder,
        record,
        script_digest(wanted.script),
        owns,
        crash_point(),
        accept_changes=wanted.accept_changes,
        trust_files=wanted.trust_files,
        world=world,
        quiet=options.quiet,
        plan=plan,
        use_plan=options.use_plan,
        mirror=mirror,
        unordered=options.unordered,
        one_stream=options.one_stream,
    )
    return _begun(opening, options)


def open_replay(
    folder: RunFolder,
    script: Path,
    options: Options,
    owns: Owns,
    plan: Plan | None,
    replaying: Replaying,
    *,
    accept_changes: bool = False,
) -> Session:
    """Begin to do steps again, in the copy of a run."""
    opening = Opening(
        folder,
        folder.record(),
        script_digest(script),
        owns,
        crash_point(),
        accept_changes=accept_changes,
        world=True,
        quiet=options.quiet,
        plan=plan,
        use_plan=options.use_plan,
        unordered=options.unordered,
        one_stream=options.one_stream,
        replaying=replaying,
    )
    return _begun(opening, options)


def _begun(opening: Opening, options: Options) -> Session:
    global _active
    session = Session(opening, options)
    session.attempt.start()
    session.signals.start()
    _active = session
    return session


def close_session(session: Session, status: str, exit_code: int, trace: str = "") -> int:
    """End the attempt; gives the exit code. An error of the very end makes the run a failed one.

    One that ends because the checkpoint was damaged is interrupted, if there is another.
    """
    global _active
    digest = ""
    try:
        if status == "complete":
            digest = session.finish()
    except BaseException as error:
        status, exit_code = "failed", exit_code or 1
        trace = "".join(traceback.format_exception(error))
        raise
    finally:
        _active = None
        if session.attempt.judge_again():
            status, exit_code = "interrupted", EXIT_CODE
        session.close(status, exit_code, state_digest=digest, traceback=trace)
    return exit_code


class Loop(Generic[Item]):
    """A loop that can be left by a crash and entered again; iterate over it once."""

    def __init__(
        self, session: Session, iterable: Iterable[Item], declared: dict[str, Any], frame: FrameType
    ) -> None:
        self._session, self._iterable, self._declared = session, iterable, declared
        self._frame: FrameType | None = frame

    def __iter__(self) -> Iterator[Item]:
        frame, self._frame = self._frame, None
        if frame is None:
            raise UsageError("a run.loop(...) can be iterated over once: call run.loop again")
        caller = sys._getframe(1)
        if caller is frame and frame.f_code.co_code[frame.f_lasti] != _GET_ITER:
            # enumerate would count from 0 again after a resume, zip would pair wrong items.
            raise UsageError(
                f"line {frame.f_lineno}: give enumerate(…), zip(…) and the like to run.loop, not "
                "run.loop to them: `for i, x in run.loop(enumerate(loader))`"
            )
        return self._session.declared_loop(self._iterable, self._declared, frame)

    def __len__(self) -> int:
        return len(self._iterable)  # type: ignore[arg-type]


class Run:
    """A run that the program is in: a context manager, and the maker of its loops."""

    def __init__(self, session: Session, *, owned: bool) -> None:
        self._session, self._owned = session, owned

    @property
    def name(self) -> str:
        """The name of the run."""
        return self._session.folder.name

    @property
    def step(self) -> int:
        """How many steps are finished."""
        return self._session.step

    def loop(self, iterable: Iterable[Item], **state: Any) -> Loop[Item]:
        """Iterate, so that a killed run goes on here.

        `state` are the objects that the loop changes: models, optimizers, meters, lists. They are
        restored in place. Plain variables (numbers, text, and lists and dictionaries of them) of
        the function that runs the loop are carried by themselves.
        """
        return Loop(self._session, iterable, state, sys._getframe(1))

    def record(self, **values: Any) -> None:
        """Put values of this step, such as the loss, into the trace."""
        self._session.record_values(values)

    def __enter__(self) -> Run:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if not self._owned:
            return
        status, code, text = ending(error)
        close_session(self._session, status, code, text)


def ending(error: BaseException | None) -> tuple[str, int, str]:
    """Status, exit code and traceback of a program that ended with this error, or with none."""
    if error is None:
        return "complete", 0, ""
    if isinstance(error, Preempted):
        return "interrupted", EXIT_CODE, ""
    if isinstance(error, Replayed):
        return "interrupted", 0, ""
    if isinstance(error, SystemExit):
        code = error.code if isinstance(error.code, int) else int(error.code is not None)
        return ("failed" if code else "complete"), code, ""
    if isinstance(error, KeyboardInterrupt):
        return "interrupted", 130, ""
    return "failed", 1, "".join(traceback.format_exception(error))


def run(
    *,
    seed: int | None = None,
    name: str | None = None,
    runs: str | Path | None = None,
    save_every: str | int | None = None,
    budget: str | None = None,
    keep: int | None = None,
    keep_every: int | None = None,
    snapshot_memory: str | int | None = None,
    digest_every: int | None = None,
    fresh: bool = False,
    accept_changes: bool = False,
    **state: Any,
) -> Run:
    """Begin a run, or go on with the unfinished one of the same program and arguments.

    Under `detrain run` this joins the run that the command began; what was typed there rules.
    `state` are objects that are restored at every loop.
    """
    session, owned = _active, False
    before = Options() if session is None else session.options
    options = before.asked(
        save_every=save_every,
        budget=budget,
        keep=keep,
        keep_every=keep_every,
        snapshot_memory=snapshot_memory,
        digest_every=digest_every,
    )
    if session is None:
        script = Path(sys.argv[0]).absolute()
        wanted = Wanted(
            script=script,
            argv=tuple(sys.argv[1:]),
            root=runs_root(runs),
            seed=seed,
            name=name,
            fresh=fresh,
            accept_changes=accept_changes,
            version=__version__,
            address=runs_address(runs),
        )
        session, owned = open_session(wanted, options), True
    else:
        session.use(options)
        if seed is not None and "seed" not in options.typed:
            session.attempt.seed(seed)
    session.declare(state)
    return Run(session, owned=owned)


def loop(iterable: Iterable[Item], **state: Any) -> Loop[Item]:
    """`Run.loop` of the run that this process is in."""
    if _active is None:
        raise UsageError(
            "detrain.loop: this process is in no run. Start it with `detrain run`, or write "
            "`with detrain.run() as run:` around the loop"
        )
    return Loop(_active, iterable, state, sys._getframe(1))
