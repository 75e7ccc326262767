"""`detrain prove script.py args…`: is this program exact? Tried here and now."""

from __future__ import annotations

import sys
from pathlib import Path

import click
from rich.console import Console
from rich.markup import escape

from detrain.errors import UsageError
from detrain.testing.prove import Kill, resume_everywhere

__all__ = ["prove"]


@click.command(
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
    short_help="Kill and resume a program here and now: is it exact?",
)
@click.option("--steps", type=int, default=40, show_default=True, help="How many steps to run.")
@click.option("--kills", type=int, default=8, show_default=True, help="How many kills to try.")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of runs and kills.")
@click.argument("script", type=click.Path(path_type=Path))
@click.argument("args", nargs=-1, type=click.UNPROCESSED)
def prove(script: Path, args: tuple[str, ...], steps: int, kills: int, seed: int) -> None:
    """Run SCRIPT for some steps, kill it with SIGKILL at several of them, resume it, and compare
    the state at every step and all output with a run that was never killed. Works on a copy of this
    folder. Exits with 0 if everything is equal, with 1 otherwise.
    """
    if not script.is_file():
        raise UsageError(f"there is no script {str(script)!r}")
    console = Console(highlight=False, soft_wrap=True)
    console.print(f"[dim]running {escape(str(script))} for up to {steps} steps …[/]")
    proof = resume_everywhere(
        script, args, steps=steps, kills=kills, seed=seed, tell=lambda kill: _tell(console, kill)
    )
    if proof.exact:
        console.print(
            f"[bold green]exact[/]: {len(proof.kills)} kills in {proof.steps} steps, each resumed "
            "to the same state at every step and the same output"
        )
        return
    bad = [kill for kill in proof.kills if not kill.exact]
    console.print(f"[bold red]not exact[/]: {len(bad)} of {len(proof.kills)} kills")
    sys.exit(1)


def _tell(console: Console, kill: Kill) -> None:
    head = f"killed after step {kill.step}, went on from {kill.resumed_at}: "
    if kill.exact:
        console.print(f"{head}[green]equal")
        return
    console.print(f"{head}[red]different")
    if kill.first_step is not None:
        console.print(f"  first at step {kill.first_step}")
    if kill.difference is not None:
        found = kill.difference
        console.print(f"  in {escape(found.path)}: expected {found.expected}, found {found.found}")
        console.print("  this, or what it depends on, is state that DETrain can't see")
    if kill.message:
        console.print(f"  {escape(kill.message)}")
