"""`detrain compact RUN`: older checkpoints in less room."""

from __future__ import annotations

import click

from detrain.checkpoint.compaction import compact as compact_checkpoints
from detrain.checkpoint.packing import require_zstd
from detrain.checkpoint.regular import check_own_files
from detrain.checkpoint.store import LocalStore
from detrain.errors import UsageError
from detrain.report.sizes import size_text
from detrain.runs.choose import find_run, runs_address, runs_root
from detrain.runs.lock import RunLock
from detrain.runtime.crash import crash_point

__all__ = ["compact"]


@click.command(short_help="Store older checkpoints in less room.")
@click.argument("run", metavar="RUN")
@click.option("--newest", type=click.IntRange(min=1), default=3, show_default=True, metavar="K",
              help="How many of the newest checkpoints stay as they are.")  # fmt: skip
@click.option("--runs", "root", metavar="DIR", help="Where runs live [.detrain or DETRAIN_RUNS].")
def compact(run: str, newest: int, root: str | None) -> None:
    """Store all checkpoints of RUN but the newest in less room. They can be used as before.

    Nobody may be at work on the run meanwhile; `detrain run --compact` does it as it goes.
    """
    if runs_address(root) is not None:
        raise UsageError(
            "runs in a store are compacted by `detrain run --compact`, which brings them there"
        )
    require_zstd("to compact")
    folder = find_run(runs_root(root), run)
    check_own_files(folder.path, folder.checkpoints.name)
    lock = RunLock(folder.path, folder.name)
    try:
        reached = crash_point()
        store = LocalStore(folder.checkpoints, reached)
        done = compact_checkpoints(store, newest, reached, alone=True)
    finally:
        lock.release()
    for trouble in done.troubles:
        print(trouble)
    steps = ", ".join(map(str, done.steps))
    what = f"compacted: step {steps}" if steps else "nothing to compact"
    print(f"{what}; data files took {size_text(done.before)}, they take {size_text(done.after)}")
    if done.troubles:
        raise SystemExit(1)
