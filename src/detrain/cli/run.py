"""`detrain run script.py args…`: run a program, or go on with it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from detrain import __version__
from detrain.analysis.analyse import analyse
from detrain.analysis.project import Project, read_project
from detrain.checkpoint.packing import require_zstd
from detrain.errors import DetrainError, ProgramTooLarge, UsageError
from detrain.instrument.hook import Instrument
from detrain.plan import Plan
from detrain.runs.choose import Wanted, runs_address, runs_root
from detrain.runtime.api import close_session, ending, open_session
from detrain.runtime.hooks import Hooks
from detrain.runtime.options import Options
from detrain.runtime.script import run_script
from detrain.runtime.session import Session

__all__ = ["execute", "fix_hash_seed", "plan_of", "project_of", "run"]


@click.command(
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
    short_help="Run a program; the same line resumes it.",
)
@click.option("--name", help="Name of the run (default: the script's name and a number).")
@click.option("--resume", metavar="NAME", help="Go on with this run.")
@click.option("--fresh", is_flag=True, help="Start a new run even if one is unfinished.")
@click.option("--accept-changes", is_flag=True, help="Go on though program or machine changed.")
@click.option("--trust-files", is_flag=True, help="Undo what a run from elsewhere did to files.")
@click.option(
    "--seed", type=int, help="Seed of all generators, mixed with the program's own seeds."
)
@click.option("--save-every", metavar="N|Ns|Nm", help="Steps or time between checkpoints [auto].")
@click.option("--budget", metavar="P%", help="Share of the time for checkpoints, if auto [3%].")
@click.option("--grace", metavar="Ns", help="Time to save and end after a SIGTERM [30s].")
@click.option("--keep", type=int, metavar="K", help="How many checkpoints are kept [3].")
@click.option("--keep-every", type=int, metavar="N", help="Also keep one for every N steps.")
@click.option("--compact", is_flag=True, help="Store older checkpoints in less room (zstandard).")
@click.option("--snapshot-memory", metavar="SIZE", help="Most memory that a copy may take [full].")
@click.option("--digest-every", type=int, metavar="N", help="Steps between state digests [100].")
@click.option(
    "--runs", "root", metavar="DIR", help="Folder or s3://… of runs [.detrain or DETRAIN_RUNS]."
)
@click.option("--no-plan", is_flag=True, help="Save all that is reachable, needed or not.")
@click.option("--audit", is_flag=True, help="Watch after every checkpoint what it left out.")
@click.option("--unordered", is_flag=True, help="Give results of pools as they are done.")
@click.option(
    "--one-stream", is_flag=True, help="Iterable datasets give what they give without workers."
)
@click.option("--quiet", is_flag=True, help="Say nothing but what needs attention.")
@click.argument("script", type=click.Path(path_type=Path))
@click.argument("args", nargs=-1, type=click.UNPROCESSED)
def run(
    script: Path,
    args: tuple[str, ...],
    name: str | None,
    resume: str | None,
    fresh: bool,
    accept_changes: bool,
    trust_files: bool,
    seed: int | None,
    save_every: str | None,
    budget: str | None,
    grace: str | None,
    keep: int | None,
    keep_every: int | None,
    compact: bool,
    snapshot_memory: str | None,
    digest_every: int | None,
    root: str | None,
    no_plan: bool,
    audit: bool,
    unordered: bool,
    one_stream: bool,
    quiet: bool,
) -> None:
    """Run SCRIPT with ARGS. The same command line resumes an unfinished run, and otherwise starts a
    new one. Everything after SCRIPT goes to the script.
    """
    if not script.is_file():
        raise UsageError(f"there is no script {str(script)!r}")
    fix_hash_seed()
    wanted = Wanted(
        script=script.absolute(),
        argv=args,
        root=runs_root(root),
        seed=seed,
        overrides=seed is not None,
        name=name,
        resume=resume,
        fresh=fresh,
        accept_changes=accept_changes,
        trust_files=trust_files,
        version=__version__,
        address=runs_address(root),
    )
    if compact:
        require_zstd("--compact")
    options = Options(
        quiet=quiet,
        use_plan=not no_plan,
        audit=audit,
        unordered=unordered,
        one_stream=one_stream,
        compact=compact,
    ).typing(
        save_every=save_every,
        budget=budget,
        grace=grace,
        keep=keep,
        keep_every=keep_every,
        snapshot_memory=snapshot_memory,
        digest_every=digest_every,
        seed=seed,
    )
    project = project_of(wanted.script)
    sys.exit(run_project(project, script, wanted, options, plan_of(project)))


def project_of(script: Path) -> Project:
    """A script, and the modules of the program that it is of."""
    search = tuple(path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path)
    return read_project(script, search)


def plan_of(project: Project) -> Plan | None:
    """What checkpoints of a program may leave out, and its training loops; None if nothing is
    known of it, because it is too large or the analysis failed: loops are found by names then, and
    all is saved.

    Asked with `--no-plan` too: the digest of a complete run must not depend on that.
    """
    if project.imports("detrain"):
        return None  # it says itself what its loops reach
    try:
        return analyse(project).plan
    except ProgramTooLarge as error:
        print(
            f"detrain: {error}. Loops are found by names, and checkpoints hold all that is "
            "reachable",
            file=sys.stderr,
        )
        return None
    except Exception as error:
        print(
            f"detrain: the analysis of {project.script.name} failed ({error!r}): this is a fault "
            "of DETrain. Checkpoints will hold all that is reachable",
            file=sys.stderr,
        )
        return None


def run_project(
    project: Project, script: Path, wanted: Wanted, options: Options, plan: Plan | None
) -> int:
    """Run a project's script, named as it was typed, or go on with it; gives the exit code."""
    session = open_session(wanted, options, project.owns, world=True, plan=plan)
    error = execute(session, project, script, wanted.argv, plan)
    try:
        close_session(session, *ending(error))
    except DetrainError as late:
        print(f"detrain: {late}", file=sys.stderr)
    ended = session.outcome
    session.notices.say(_farewell(ended.status, ended.steps, session.folder.name))
    return ended.exit_code


def fix_hash_seed() -> None:
    """Start Python anew with a fixed hash seed, which must be there before it runs.

    The order of sets of text depends on it. A seed that is set already is kept.
    """
    if "PYTHONHASHSEED" not in os.environ:
        os.environ["PYTHONHASHSEED"] = "0"
        if not sys.flags.ignore_environment and sys.orig_argv:
            os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])


def execute(
    session: Session, project: Project, script: Path, args: tuple[str, ...], plan: Plan | None
) -> BaseException | None:
    """Run the script: as it is if it uses the API, with its training loops found otherwise."""
    instrument, hooks = Instrument(project, plan), Hooks(session)
    if project.imports("detrain"):
        return run_script(script, args, instrument.plain())
    instrument.start()
    hooks.start()
    try:
        return run_script(script, args, instrument.script())
    finally:
        instrument.stop()
        hooks.stop()


def _farewell(status: str, steps: int, name: str) -> str:
    if status == "complete" and steps == 0:
        return (
            f"run {name} is complete, but no training loop was found in it: nothing was "
            "checkpointed. `for … in detrain.loop(…)` marks one"
        )
    return f"run {name} is {status} after {steps} steps"
