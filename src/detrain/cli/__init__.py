"""The command line: one file for each verb."""

from __future__ import annotations

import sys

import click

from detrain import __version__
from detrain.cli.check import check
from detrain.cli.compact import compact
from detrain.cli.explain import explain
from detrain.cli.export import export
from detrain.cli.keep import keep, unkeep
from detrain.cli.log import log
from detrain.cli.prove import prove
from detrain.cli.replay import replay
from detrain.cli.run import run
from detrain.cli.runs import runs
from detrain.cli.show import show
from detrain.errors import DetrainError

__all__ = ["main"]


@click.group()
@click.version_option(__version__, message="detrain %(version)s")
def commands() -> None:
    """Training that can be killed and goes on to the same bits."""


for command in (run, check, explain, prove, runs, show, log, replay, keep, unkeep, compact, export):
    commands.add_command(command)


def main() -> None:
    """The console script."""
    try:
        commands(prog_name="detrain")
    except DetrainError as error:
        print(f"detrain: {error}", file=sys.stderr)
        sys.exit(2)
