"""`detrain replay RUN --steps A:B`: do steps of a run again, and see what they print."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from pathlib import Path

import click

from detrain.checkpoint.commit import manifest_steps, read_checkpoint
from detrain.checkpoint.store import LocalStore
from detrain.cli.run import execute, fix_hash_seed, plan_of, project_of
from detrain.errors import DamagedCheckpoint, UsageError
from detrain.runs.choose import find_run, runs_address, runs_root, script_digest
from detrain.runs.copies import copy_run, place_for_copies
from detrain.runs.folder import RunFolder
from detrain.runs.looking import looking_at
from detrain.runtime.api import close_session, ending, open_replay
from detrain.runtime.options import Options
from detrain.runtime.replaying import Replayed, Replaying
from detrain.runtime.session import Session
from detrain.trace.log import read_trace
from detrain.world.observe import Observation

__all__ = ["replay"]


@click.command(short_help="Do steps of a run again, and see what they print.")
@click.argument("name", metavar="RUN")
@click.option("--steps", required=True, metavar="A:B", help="The first and the last step.")
@click.option("--runs", "root", metavar="DIR", help="Where runs live [.detrain or DETRAIN_RUNS].")
@click.option("--accept-changes", is_flag=True, help="Replay though this machine is another.")
@click.option("--quiet", is_flag=True, help="Say nothing but what needs attention.")
def replay(name: str, steps: str, root: str | None, accept_changes: bool, quiet: bool) -> None:
    """Do steps A to B of RUN again, from its newest checkpoint before them, and show what the
    program prints in them. Neither the run nor a file of the program is changed. The script may
    have a `print` more than it had then: each step is compared with the run's trace, and the state
    with the digests that it has. Exits with 0 if all is as recorded, with 1 otherwise.
    """
    fix_hash_seed()
    run = find_run(looking_at(root, name, arrays=True), name)
    script = _script_of(run, root)
    replaying = Replaying.of(read_trace(run.trace), steps, _answers(run))
    place = place_for_copies(run.path.parent)
    try:
        copy = copy_run(run, replaying.first - 1, place)
        session = _replayed(copy, script, replaying, accept_changes=accept_changes, quiet=quiet)
    finally:
        shutil.rmtree(place, ignore_errors=True)
    sys.exit(_told(session, replaying))


def _script_of(run: RunFolder, root: str | None) -> Path:
    base = runs_root(root).parent if runs_address(root) is None else Path.cwd()
    script = base / run.record().script
    if not script.is_file():
        raise UsageError(f"the script of run {run.name!r} is not there: expected it at {script}")
    return script


def _answers(run: RunFolder) -> tuple[Observation, ...]:
    """What the world answered the program before its first loop, as far as a checkpoint has it."""
    store = LocalStore(run.checkpoints)
    for step in manifest_steps(store):
        try:
            return read_checkpoint(store, step).observed
        except DamagedCheckpoint:
            continue
    return ()


def _replayed(
    copy: RunFolder, script: Path, replaying: Replaying, *, accept_changes: bool, quiet: bool
) -> Session:
    record, attempts = copy.record(), copy.attempts()
    if not attempts:
        raise UsageError(f"run {copy.name!r} has come to no loop: there is nothing to replay")
    options = Options(
        quiet=quiet,
        use_plan=bool(attempts[-1].plan),
        unordered="--unordered" in record.choices,
        one_stream="--one-stream" in record.choices,
    ).typing(save_every="never", digest_every=1, seed=record.seed if record.overrides else None)
    project = project_of(script)
    plan = plan_of(project)
    session = open_replay(
        copy, script, options, project.owns, plan, replaying, accept_changes=accept_changes
    )
    if script_digest(script) != attempts[-1].script_digest:
        session.notices.say(f"the text of {script.name} is not what it was when the run was made")
    error = execute(session, project, Path(os.path.relpath(script)), record.argv, plan)
    with contextlib.suppress(Replayed):  # a step that ends with the program is done only there
        close_session(session, *ending(error))
    return session


def _told(session: Session, replaying: Replaying) -> int:
    """Say how it went; gives the exit code."""
    first, last, name = replaying.first, replaying.last, session.folder.name
    if session.diverged_at is not None:
        return 1
    if session.step < last:
        session.attempt.attention(
            f"the program ended after step {session.step}: in the run it did step {last}, too"
        )
        return 1
    count = len(replaying.compared)
    compared = f"{count} state{'s' if count > 1 else ''} compared"
    if not count:
        compared = "no state was digested there to compare"
    steps = f"steps {first} to {last}" if last > first else f"step {first}"
    session.notices.say(f"{steps} of run {name}: as recorded ({compared})")
    return 0
