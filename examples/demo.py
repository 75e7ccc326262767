"""The demonstration behind `make demo`: the same program, once in peace and once killed.

Everything here goes through the command line that a user types; this file only types it, kills the
process with SIGKILL in the middle of an epoch, and compares.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

HERE = Path(__file__).parent
SCRIPT = HERE / "digits.py"
EPOCHS = 6
STEPS = EPOCHS * 47
KILL_AT = 123  # 29 batches into the third epoch

console = Console(highlight=False)


def command(name: str) -> list[str]:
    options = ["--name", name, "--quiet"]
    script = os.path.relpath(SCRIPT)
    return [sys.executable, "-m", "detrain", "run", *options, script, "--epochs", str(EPOCHS)]


def typed(name: str) -> str:
    return " ".join(["detrain", *command(name)[3:]])


def lines(path: Path) -> int:
    with contextlib.suppress(FileNotFoundError):
        return path.read_bytes().count(b"\n")
    return 0


def follow(progress: Progress, label: str, name: str, root: Path, kill_at: int | None) -> int:
    """Run the command, show how far it is, and kill it at a step if asked to."""
    trace = root / name / "trace.jsonl"
    bar = progress.add_task(label, total=STEPS, note="")
    process = subprocess.Popen(command(name), stdout=subprocess.DEVNULL)
    while process.poll() is None:
        done = lines(trace)
        progress.update(bar, completed=done, note=f"step {done}")
        if kill_at is not None and done >= kill_at:
            process.send_signal(signal.SIGKILL)
            process.wait()
            progress.update(bar, note=f"[bold red]SIGKILL after step {lines(trace)}")
            break
        time.sleep(0.001 if kill_at is not None else 0.03)
    if kill_at is None:
        progress.update(bar, completed=lines(trace), note=f"step {lines(trace)}")
    progress.stop_task(bar)
    return process.returncode


def show(name: str) -> dict:
    done = subprocess.run(
        [sys.executable, "-m", "detrain", "show", name, "--json"],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    return json.loads(done.stdout)


def main() -> int:
    started = time.monotonic()
    root = Path(tempfile.mkdtemp(prefix="detrain-demo-"))
    os.environ["DETRAIN_RUNS"] = str(root)
    console.print(
        f"\n[bold]DETrain[/] trains a small network on real handwritten digits, {STEPS} steps.\n"
        "Shuffling, dropout and noise are random in every step; the run is killed all the same.\n"
    )
    for name, text in (("peaceful", "never interrupted"), ("killed", "killed, then typed again")):
        console.print(f"  [dim]{text + ':':<26}[/]{typed(name)}")
    console.print()
    columns = (
        SpinnerColumn(finished_text="[green]✓"),
        TextColumn("{task.description:<26}"),
        BarColumn(32),
        TimeElapsedColumn(),
        TextColumn("{task.fields[note]}"),
    )
    with Progress(*columns, console=console) as progress:
        codes = [
            follow(progress, "never interrupted", "peaceful", root, None),
            follow(progress, "killed in epoch 3 of 6", "killed", root, KILL_AT),
            follow(progress, "the same line, typed again", "killed", root, None),
        ]
    peaceful, killed = show("peaceful"), show("killed")
    logs = [(root / name / "stdout.log").read_text() for name in ("peaceful", "killed")]
    resumed = ", ".join(f"step {step}" for step in killed["resumes"])
    rows = [
        ("status", peaceful["status"], killed["status"]),
        ("went on from", "–", resumed),
        ("steps", peaceful["steps"], killed["steps"]),
        ("last line printed", logs[0].splitlines()[-1], logs[1].splitlines()[-1]),
        ("output", *(f"{len(log)} bytes, {hashlib.md5(log.encode()).hexdigest()}" for log in logs)),
        ("digest of every step", peaceful["trace_digest"], killed["trace_digest"]),
        ("digest of the final state", peaceful["state_digest"], killed["state_digest"]),
    ]
    table = Table(box=None, pad_edge=False, padding=(0, 2), header_style="bold")
    for title in ("", "never interrupted", "killed and resumed", ""):
        table.add_column(title, overflow="fold")
    for label, left, right in rows:
        compared = label not in ("went on from", "status")
        mark = ("[green]=" if left == right else "[bold red]≠") if compared else ""
        table.add_row(f"[dim]{label}", str(left), str(right), mark)
    console.print()
    console.print(table)
    equal = (
        codes == [0, -signal.SIGKILL, 0]
        and bool(killed["resumes"])
        and all(peaceful[key] == killed[key] for key in ("trace_digest", "state_digest", "steps"))
        and logs[0] == logs[1]
    )
    console.print()
    if equal:
        console.print(
            "[bold green]Equal, bit for bit:[/] weights, optimizer, schedule, generators,\n"
            "the recorded loss of every step, and every byte of output.\n"
        )
        shutil.rmtree(root)
    else:
        console.print(f"[bold red]NOT equal.[/] The runs are in {root} for inspection.\n")
    console.print(f"[dim]{time.monotonic() - started:.0f} s[/]")
    return 0 if equal else 1


if __name__ == "__main__":
    sys.exit(main())
