"""`detrain runs`: what there is."""

from __future__ import annotations

import json
import sys

import click
from rich.console import Console
from rich.table import Table

from detrain.report.sizes import time_text
from detrain.runs.choose import all_runs, runs_address, runs_root
from detrain.runs.folder import summary
from detrain.runs.looking import looking_at

__all__ = ["runs"]


@click.command(short_help="List the runs.")
@click.option("--runs", "root", metavar="DIR", help="Where runs live [.detrain or DETRAIN_RUNS].")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def runs(root: str | None, as_json: bool) -> None:
    """List all runs, oldest first."""
    found = [summary(folder) for folder in all_runs(looking_at(root))]
    if as_json:
        json.dump(found, sys.stdout, indent=2)
        print()
        return
    if not found:
        print(f"no runs in {runs_address(root) or runs_root(root)}")
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("run", "status", "steps", "checkpoints", "resumed", "began", "command"):
        table.add_column(column, justify="right" if column in ("steps", "checkpoints") else "left")
    for run in found:
        table.add_row(
            run["name"],
            run["status"],
            str(run["steps"]),
            str(len(run["checkpoints"])),
            ", ".join(f"at {step}" for step in run["resumes"]) or "–",
            time_text(run["created"], "%Y-%m-%d %H:%M"),
            " ".join((run["script"], *run["argv"])),
        )
    Console(highlight=False).print(table)
