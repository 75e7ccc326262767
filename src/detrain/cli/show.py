"""`detrain show RUN`: all that is known of a run."""

from __future__ import annotations

import json
import sys
from typing import Any

import click
from rich.console import Console
from rich.text import Text

from detrain.report.sizes import size_text, time_text
from detrain.runs.choose import find_run
from detrain.runs.folder import summary
from detrain.runs.looking import looking_at

__all__ = ["show"]


@click.command(short_help="Show a run.")
@click.argument("name", metavar="RUN")
@click.option("--runs", "root", metavar="DIR", help="Where runs live [.detrain or DETRAIN_RUNS].")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def show(name: str, root: str | None, as_json: bool) -> None:
    """Show status, steps, checkpoints, digests and surroundings of a run."""
    found = summary(find_run(looking_at(root, name), name))
    if as_json:
        json.dump(found, sys.stdout, indent=2)
        print()
        return
    console = Console(highlight=False, soft_wrap=True)
    for label, value in _rows(found):
        console.print(Text.assemble((f"{label:<13}", "bold"), value))
    if found["traceback"]:
        console.print()
        console.print(Text(found["traceback"].rstrip()))


def _rows(run: dict[str, Any]) -> list[tuple[str, str]]:
    rows = [
        ("run", run["name"]),
        ("status", run["status"]),
        ("command", " ".join((run["script"], *run["argv"]))),
        ("seed", str(run["seed"])),
        ("began", time_text(run["created"], "%Y-%m-%d %H:%M:%S")),
        ("steps", str(run["steps"])),
        ("resumed", ", ".join(f"at step {step}" for step in run["resumes"]) or "never"),
    ]
    if run["exit_code"]:
        rows.append(("exit code", str(run["exit_code"])))
    if run["diverged_at"] is not None:
        rows.append(("DIVERGED", f"step {run['diverged_at']} came out differently after a resume"))
    rows.append(("state", run["state_digest"] or "– (not complete)"))
    rows.append(("trace", run["trace_digest"] or "–"))
    for label, each in _labelled("checkpoints", [_checkpoint(c) for c in run["checkpoints"]]):
        rows.append((label, each))
    facts = [f"{name} {value}" for name, value in run["fingerprint"].items()]
    rows.extend(_labelled("fingerprint", facts))
    return rows


def _labelled(label: str, lines: list[str]) -> list[tuple[str, str]]:
    return [(label if i == 0 else "", line) for i, line in enumerate(lines or ["none"])]


def _checkpoint(found: dict[str, Any]) -> str:
    if "damaged" in found:
        return f"step {found['step']}: damaged ({found['damaged']})"
    when = time_text(found["created"], "%H:%M:%S")
    left_out = f" ({size_text(found['left_out'])} not needed)" if found["left_out"] else ""
    compacted = ", compacted" if found["compacted"] else ""
    names = "".join(f", kept as {name!r}" for name in found["names"])
    return f"step {found['step']}, {size_text(found['bytes'])}{left_out}{compacted}, {when}{names}"
