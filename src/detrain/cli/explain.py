"""`detrain explain SCRIPT`: what DETrain makes of a program, without running it."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import click

from detrain.errors import UsageError

__all__ = ["explain"]


@click.command(short_help="Show what is made of a program: loops, types, plan.")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@click.option("--no-program", is_flag=True, help="Without the program in the language.")
@click.argument("script", type=click.Path(path_type=Path))
def explain(script: Path, as_json: bool, no_program: bool) -> None:
    """Show the training loops of SCRIPT, what a checkpoint at each of them holds and leaves out and
    why, and the program as DETrain reads it. docs/language.md says how to read that.
    """
    if not script.is_file():
        raise UsageError(f"there is no script {str(script)!r}")
    # Not at the top: other commands shall not wait for it.
    from detrain.analysis.analyse import analyse_script
    from detrain.report.explain import as_data
    from detrain.report.explain import explain as explained

    search = tuple(path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path)
    path = Path(os.path.normpath(script.absolute()))
    analysis = analyse_script(path, search)
    if analysis.source is None:
        raise UsageError(f"{script} can't be parsed; `detrain check` says where")
    if as_json:
        json.dump(as_data(analysis, path.parent), sys.stdout, indent=2)
        print()
    else:
        print(explained(analysis, path.parent, program=not no_program), end="")
