"""`detrain run script.py args…`: run a program, or go on with it."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from detrain import __version__
from detrain.errors import DetrainError, UsageError
from detrain.runs.choose import Wanted, runs_root
from detrain.runtime.api import close_session, ending, open_session
from detrain.runtime.options import Options
from detrain.runtime.script import run_script

__all__ = ["run"]


@click.command(
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
    short_help="Run a program; the same line resumes it.",
)
@click.option("--name", help="Name of the run (default: the script's name and a number).")
@click.option("--resume", metavar="NAME", help="Go on with this run.")
@click.option("--fresh", is_flag=True, help="Start a new run even if one is unfinished.")
@click.option("--accept-changes", is_flag=True, help="Go on though program or machine changed.")
@click.option("--seed", type=int, help="Seed of all generators (default: a random one, recorded).")
@click.option("--save-every", metavar="N|Ns|Nm", help="Steps or time between checkpoints [60s].")
@click.option("--keep", type=int, metavar="K", help="How many checkpoints are kept [3].")
@click.option("--digest-every", type=int, metavar="N", help="Steps between state digests [100].")
@click.option("--runs", "root", metavar="DIR", help="Where runs live [.detrain or DETRAIN_RUNS].")
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
    seed: int | None,
    save_every: str | None,
    keep: int | None,
    digest_every: int | None,
    root: str | None,
    quiet: bool,
) -> None:
    """Run SCRIPT with ARGS. The same command line resumes an unfinished run, and otherwise starts a
    new one. Everything after SCRIPT goes to the script.
    """
    if not script.is_file():
        raise UsageError(f"there is no script {str(script)!r}")
    wanted = Wanted(
        script=script.absolute(),
        argv=args,
        root=runs_root(root),
        seed=seed,
        name=name,
        resume=resume,
        fresh=fresh,
        accept_changes=accept_changes,
        version=__version__,
    )
    options = Options(quiet=quiet).typing(
        save_every=save_every, keep=keep, digest_every=digest_every, seed=seed
    )
    session = open_session(wanted, options)
    error = run_script(script, args)
    status, code, trace = ending(error)
    try:
        close_session(session, status, code, trace)
    except DetrainError as late:
        print(f"detrain: {late}", file=sys.stderr)
        status, code = "failed", 1
    session.notices.say(_farewell(status, session.step, session.folder.name))
    sys.exit(code)


def _farewell(status: str, steps: int, name: str) -> str:
    if status == "complete" and steps == 0:
        return (
            f"run {name} is complete, but it met no loop of DETrain's: nothing was checkpointed. "
            "Write `for … in detrain.loop(…)`"
        )
    return f"run {name} is {status} after {steps} steps"
