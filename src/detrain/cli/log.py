"""`detrain log RUN`: what the program printed, exactly once."""

from __future__ import annotations

import shutil
import sys

import click

from detrain.runs.choose import find_run, runs_root

__all__ = ["log"]


@click.command(short_help="Print a run's output, exactly once.")
@click.argument("name", metavar="RUN")
@click.option("--runs", "root", metavar="DIR", help="Where runs live [.detrain or DETRAIN_RUNS].")
@click.option("--stderr", is_flag=True, help="What went to stderr instead of stdout.")
def log(name: str, root: str | None, stderr: bool) -> None:
    """Print what the program of RUN wrote to stdout, as if it had never been interrupted."""
    folder = find_run(runs_root(root), name)
    path = folder.path / ("stderr.log" if stderr else "stdout.log")
    if path.exists():
        with path.open("rb") as file:
            shutil.copyfileobj(file, sys.stdout.buffer)
        sys.stdout.flush()
