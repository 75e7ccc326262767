"""Is a program exact? Kill it at several steps, resume it, and compare everything.

The program runs in a copy of its folder, so that what it writes is thrown away. The reference is a
run that is never resumed; each other run is killed with SIGKILL at a step, started again with the
same command, and must leave the same trace (a digest of the state at every step) and the same log.
"""

from __future__ import annotations

import os
import random
import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from detrain.checkpoint.commit import manifest_steps, read_checkpoint
from detrain.checkpoint.store import LocalStore
from detrain.errors import UsageError
from detrain.testing.compare import Difference, first_difference
from detrain.testing.warm import Child, WarmProcess
from detrain.trace.event import Event
from detrain.trace.log import read_trace

__all__ = ["Kill", "Proof", "resume_everywhere"]

_SMALL = 1 << 20
_MOST_FILES = 20_000
_LEFT_OUT = {".git", ".detrain", ".venv", "venv", "node_modules", "__pycache__"}


@dataclass(frozen=True)
class Kill:
    """One kill: after which step, where the run went on, and what came out."""

    step: int
    resumed_at: int
    exact: bool
    first_step: int | None = None
    difference: Difference | None = None
    message: str = ""


@dataclass(frozen=True)
class Proof:
    """What was tried. `steps` is how far the reference went."""

    steps: int
    kills: tuple[Kill, ...]

    @property
    def exact(self) -> bool:
        """Whether every resumed run came out as the one that was never killed."""
        return bool(self.kills) and all(kill.exact for kill in self.kills)


def resume_everywhere(
    script: str | Path,
    argv: Sequence[str] = (),
    *,
    steps: int = 40,
    kills: int = 8,
    seed: int = 0,
    imports: Sequence[str] = ("torch._dynamo", "numpy"),
    tell: Callable[[Kill], None] = lambda _: None,
) -> Proof:
    """Run a program for some steps, kill and resume it at several of them, compare everything.

    `tell` is told of each kill when its outcome is known. Raises `UsageError` if the program fails
    by itself or has no training loop.
    """
    with (
        tempfile.TemporaryDirectory(prefix="detrain-prove-") as folder,
        WarmProcess([name for name in imports if _is_there(name)]) as warm,
    ):
        bench = _Bench(warm, Path(script), tuple(argv), Path(folder), steps, seed)
        reference = bench.run("reference", stop=steps)
        events = bench.events("reference")
        if reference.code not in (0, -9):
            raise UsageError(f"the program fails by itself:\n{reference.stderr.strip()}")
        if len(events) < 3:
            raise UsageError(
                f"only {len(events)} training steps were found, at least 3 are needed:\n"
                f"{reference.stderr.strip()}"
            )
        done = []
        for number, step in enumerate(_choose(events, kills, seed)):
            kill = bench.kill(f"kill{number}", step)
            tell(kill)
            done.append(kill)
        return Proof(len(events), tuple(done))


class _Bench:
    """Runs of one program, each in a copy of its folder."""

    def __init__(
        self,
        warm: WarmProcess,
        script: Path,
        argv: tuple[str, ...],
        folder: Path,
        steps: int,
        seed: int,
    ) -> None:
        self._warm, self._script, self._argv = warm, script, argv
        self._folder, self._steps, self._seed = folder, steps, seed

    def run(self, name: str, stop: int, *, save: str = "1", keep: int = 2) -> Child:
        """Run until a step is done, or go on with a run until then."""
        copy = self._folder / name
        if not copy.exists():
            _mirror(Path.cwd(), copy)
        inside = self._script.absolute().is_relative_to(Path.cwd())
        script = (
            self._script.absolute().relative_to(Path.cwd()) if inside else self._script.absolute()
        )
        options = ["--runs", str(self._folder / "runs"), "--name", name, "--seed", str(self._seed)]
        options += ["--save-every", save, "--keep", str(keep), "--digest-every", "1", "--quiet"]
        env = {"DETRAIN_CRASH_AT": f"step={stop}", "PYTHONPATH": _search_path(copy)}
        return self._warm.run(["run", *options, str(script), *self._argv], copy, env, timeout=600)

    def events(self, name: str) -> list[tuple[Event, str]]:
        """The trace of a run."""
        return list(read_trace(self._folder / "runs" / name / "trace.jsonl").events)

    def log(self, name: str) -> bytes:
        """What a run has printed."""
        return (self._folder / "runs" / name / "stdout.log").read_bytes()

    def kill(self, name: str, step: int) -> Kill:
        """Kill a run after a step, resume it, and compare it with the reference."""
        self.run(name, stop=step)
        before = manifest_steps(self._store(name))
        resumed_at = before[-1] if before else 0
        again = self.run(name, stop=self._steps)
        if again.code not in (0, -9):
            return Kill(step, resumed_at, False, message=again.stderr.strip())
        expected, found = self.events("reference"), self.events(name)
        for (event, chain), (_, other) in zip(expected, found, strict=False):
            if chain != other:
                difference = self._explain(name, step, event.step)
                return Kill(step, resumed_at, False, event.step, difference)
        if len(found) != len(expected):
            message = f"it came to its end after {len(found)} steps, not {len(expected)}"
            return Kill(step, resumed_at, False, message=message)
        if self.log(name) != self.log("reference"):
            message = _first_other_line(self.log("reference"), self.log(name))
            return Kill(step, resumed_at, False, message=message)
        return Kill(step, resumed_at, True)

    def _explain(self, name: str, step: int, first: int) -> Difference | None:
        """Run both again, keeping every checkpoint, and find the first place that differs."""
        left, right = f"{name}-left", f"{name}-right"
        self.run(left, stop=first + 2, keep=10**6)
        self.run(right, stop=step, keep=10**6)
        self.run(right, stop=first + 2, keep=10**6)
        stores = self._store(left), self._store(right)
        if any(first not in manifest_steps(store) for store in stores):
            return None
        states = [read_checkpoint(store, first).levels[-1].state for store in stores]
        return first_difference(*states)

    def _store(self, name: str) -> LocalStore:
        return LocalStore(self._folder / "runs" / name / "checkpoints")


def _choose(events: Sequence[tuple[Event, str]], count: int, seed: int) -> list[int]:
    """Steps to be killed after: both sides of where an outer loop moves on, and random ones."""
    steps = len(events)
    outer = [event.at[:-1] for event, _ in events]
    boundaries = [n for n in range(1, steps) if outer[n] != outer[n - 1]]
    near = [step for n in boundaries for step in (n, n + 1) if 2 <= step < steps]
    draw = random.Random(seed)
    chosen = set(draw.sample(near, min(len(near), count // 2)))
    rest = [step for step in range(2, steps) if step not in chosen]
    chosen.update(draw.sample(rest, min(len(rest), count - len(chosen))))
    return sorted(chosen)


def _first_other_line(expected: bytes, found: bytes) -> str:
    lines = zip(expected.splitlines(), found.splitlines(), strict=False)
    for number, (left, right) in enumerate(lines, 1):
        if left != right:
            return f"line {number} of the output is {right!r}, it was {left!r}"
    return f"the output has {len(found)} bytes, it had {len(expected)}"


def _search_path(copy: Path) -> str:
    """Where modules are searched for: in the copy, not in the folder that was copied."""
    named = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    folders = [Path(each).absolute() for each in named if each]
    moved = [
        copy / each.relative_to(Path.cwd()) if each.is_relative_to(Path.cwd()) else each
        for each in folders
    ]
    return os.pathsep.join(map(str, moved))


def _is_there(module: str) -> bool:
    import importlib.util

    return importlib.util.find_spec(module.partition(".")[0]) is not None


def _mirror(source: Path, target: Path) -> None:
    """A copy of a folder in which only large files are links."""
    count = 0
    for folder, names, files in os.walk(source):
        names[:] = [name for name in names if name not in _LEFT_OUT]
        here = target / Path(folder).relative_to(source)
        here.mkdir(parents=True, exist_ok=True)
        for name in files:
            count += 1
            if count > _MOST_FILES:
                raise UsageError(
                    f"{source} has more than {_MOST_FILES} files: prove the program from a folder "
                    "that holds little besides it"
                )
            path = Path(folder) / name
            if not path.exists():
                continue
            if path.stat().st_size <= _SMALL:
                shutil.copy2(path, here / name)
            else:
                (here / name).symlink_to(path)
