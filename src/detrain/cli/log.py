"""`detrain log RUN`: what the program printed, exactly once."""

from __future__ import annotations

import sys

import click

from detrain.runs.choose import find_run
from detrain.runs.looking import looking_at
from detrain.world.screen import settled

__all__ = ["log"]


@click.command(short_help="Print a run's output, exactly once.")
@click.argument("name", metavar="RUN")
@click.option("--runs", "root", metavar="DIR", help="Where runs live [.detrain or DETRAIN_RUNS].")
@click.option("--stderr", is_flag=True, help="What went to stderr instead of stdout.")
@click.option("--raw", is_flag=True, help="Every byte, also what progress bars wrote over.")
def log(name: str, root: str | None, stderr: bool, raw: bool) -> None:
    """Print what the program of RUN wrote to stdout, as if it had never been interrupted.

    Progress bars are shown as they stood in the end.
    """
    folder = find_run(looking_at(root, name), name)
    path = folder.path / ("stderr.log" if stderr else "stdout.log")
    if not path.exists():
        return
    content = path.read_bytes()
    if not raw:
        content = settled(content.decode(errors="surrogateescape")).encode(errors="surrogateescape")
    sys.stdout.buffer.write(content)
    sys.stdout.flush()
