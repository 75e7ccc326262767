"""What checkpoints cost: throughput, stall, time to durable, CPU seconds, restore.

    python benchmarks/checkpoint.py [--quick] [--model large|small] [--every 1|5|auto] [--rounds N]
                                    [--who NAME] [--part saving|restoring]

All of it takes 30 to 50 minutes. What was measured is written to `results/checkpoint.md`.

A small language model is trained with Adam on one torch thread, and saved after every step, every
5th, or as DETrain chooses, by DETrain (its session API: the whole path, with the walk, digests and
publishing) and by its peers: `torch.save` and safetensors, each with fsync, and
`torch.distributed.checkpoint.async_save` in a thread, with cached staging, and in a process. All
train the same model in the same process, one after the other in blocks of steps, and in several
rounds; figures are medians over rounds. Each block is compared with plain ones before and after.
Each model has a process of its own, and so have its restores.

- *lost*: how much longer the median step of a block takes than that of the plain blocks, which are
  reckoned in the same way (of five steps from checkpoint to checkpoint, each has its median). Where
  DETrain chooses, which is one checkpoint in many steps: how much longer the steps around it take
  than the others of the block.
- *stall*: time per checkpoint in which training stands still: in the call that saves, in waiting
  for the checkpoint before, in the head of the loop, before an update that waits for the copy. For
  DETrain the heads of the steps in between count as well: a tenth of a millisecond each, for the
  trace.
- *durable*: from the moment whose state is saved until a crash can't lose it any more. For DETrain
  that includes the iteration which confirms the checkpoint.
- *CPU*: seconds of the processor per checkpoint: of all threads but the one that trains, beyond
  what they take in plain steps, and of that one while it stands still. What a process of its own
  takes (DCP) is not in it.
- *more CPU*: what the whole process takes per checkpoint beyond plain steps, reckoned as *lost* is:
  with what training takes longer because its data is less in the caches, and less exact.
- *restore*: from a file to a model and an optimizer with that state, so that the program can go on.
  torch only maps the optimizer's part of it, so that its bytes are read, and copied, when they are
  used. DETrain verifies all other parts before, and this one, and copies it, while the program goes
  on; *verified* is when that is done if the program does nothing meanwhile. *touched* includes
  reading all of the state once, *a step later* the first step as well.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import gc
import itertools
import mmap
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
import torch.distributed.checkpoint as dcp
from rich.console import Console
from rich.table import Table
from torch import nn
from torch.distributed.checkpoint import _async_process_executor
from torch.distributed.checkpoint.staging import DefaultStager, StagingOptions
from torch.distributed.checkpoint.state_dict_saver import AsyncCheckpointerType, AsyncSaveResponse

import detrain
from detrain.checkpoint.copying import Overlap
from detrain.errors import UsageError
from detrain.frameworks import find
from detrain.runtime.attempt import Attempt
from detrain.runtime.committing import Committing
from detrain.runtime.saving import Saving
from detrain.runtime.states import States

RESULTS = Path(__file__).parent / "results" / "checkpoint.md"
WIDTHS = {"large": (8192, 640, 8), "small": (2048, 256, 4)}
STEP = 0.3
"""Seconds that a plain step is to take."""


class Block(nn.Module):
    """Attention, then two layers."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.heads = heads

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        parts = self.qkv(self.first(x)).view(batch, length, 3, self.heads, width // self.heads)
        q, k, v = parts.permute(2, 0, 3, 1, 4)
        seen = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(seen.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(nn.functional.gelu(self.up(self.second(x))))


class LanguageModel(nn.Module):
    """A stack of blocks."""

    def __init__(self, words: int, width: int, depth: int) -> None:
        super().__init__()
        self.words = words
        self.embedding = nn.Embedding(words, width)
        self.blocks = nn.ModuleList(Block(width, 8) for _ in range(depth))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, words, bias=False)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.embedding(tokens)
        for block in self.blocks:
            x = block(x)
        logits: torch.Tensor = self.head(self.norm(x))
        return logits


class Training:
    """A model, its optimizer, and one step of training."""

    def __init__(self, size: str) -> None:
        torch.manual_seed(0)
        self.size = size
        self.model = LanguageModel(*WIDTHS[size])
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=1e-5)
        self.batch = 1
        self.before_update: Callable[[], None] = lambda: None

    def warm_up(self) -> None:
        """Choose a batch for which a step takes long enough."""
        self.step()
        self.step()
        while self._seconds() < STEP and self.batch < 512:
            self.batch = max(self.batch + 1, int(self.batch * min(4, 0.9 * STEP / self._seconds())))

    def _seconds(self) -> float:
        began = time.perf_counter()
        self.step()
        return time.perf_counter() - began

    def step(self) -> None:
        words = self.model.words
        text = torch.randint(0, words, (self.batch, 33))
        logits = self.model(text[:, :-1])
        loss = nn.functional.cross_entropy(logits.reshape(-1, words), text[:, 1:].reshape(-1))
        loss.backward()
        self.before_update()
        self.optimizer.step()
        # Cleared here, so that none are left at the head, where no peer would save them. In a
        # script it makes no difference: the plan sees that they are cleared before they are used.
        self.optimizer.zero_grad()

    def state(self) -> dict[str, Any]:
        return {"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict()}

    @property
    def nbytes(self) -> int:
        states = self.optimizer.state.values()
        moments = sum(v.nbytes for each in states for v in each.values())
        return moments + sum(p.nbytes for p in self.model.parameters())


@dataclass
class Measured:
    """A block of steps: seconds for each, and what its checkpoints cost."""

    every: int
    """Steps from one checkpoint to the next; 0 if nobody knows."""
    warm: int
    """Steps that are not counted: buffers and files are made in them."""
    seconds: float = 0.0
    cpu: float = 0.0
    """CPU seconds of a step."""
    aside: float = 0.0
    """Those of other threads than the one that trains."""
    steps: int = 0
    stalls: list[float] = field(default_factory=list)
    used: list[float] = field(default_factory=list)
    """CPU seconds of these stalls."""
    durable: list[float] = field(default_factory=list)
    saves: int = 0
    taken: list[int] = field(default_factory=list)
    """The steps before which checkpoints were taken."""
    undisturbed: float | None = None
    """Seconds of a step without a checkpoint, if the block has such steps."""
    _began: list[float] = field(default_factory=list)
    _used: list[float] = field(default_factory=list)
    _aside: list[float] = field(default_factory=list)

    def at(self, step: int) -> None:
        """A step begins."""
        if step == self.warm:
            self.stalls.clear()
            self.used.clear()
            self.durable.clear()
        if step >= self.warm:
            self._note()

    def _note(self) -> None:
        self._began.append(time.perf_counter())
        self._used.append(time.process_time())
        self._aside.append(time.process_time() - time.thread_time())

    def save(self) -> None:
        """A checkpoint is begun: training stands still for it from now on, now and then."""
        self.stalls.append(0.0)
        self.used.append(0.0)

    def stood_still(self, since: tuple[float, float]) -> None:
        """Since what `now` gave then."""
        if self.stalls and not self.steps:  # not those of the loop's end
            self.stalls[-1] += time.perf_counter() - since[0]
            self.used[-1] += time.thread_time() - since[1]

    def end(self, steps: int) -> None:
        """The last step is done."""
        self.steps, self.saves = steps - self.warm, len(self.durable) or 1
        self._note()
        spent, used, aside = map(differences, (self._began, self._used, self._aside))
        self.seconds = typical(spent, self.every)
        self.cpu, self.aside = sum(used) / self.steps, sum(aside) / self.steps
        if self.every:
            self.cpu, self.aside = typical(used, self.every), typical(aside, self.every)
        # One checkpoint in many steps is lost among moods: it is compared with steps beside it.
        disturbed = {step + each - self.warm for step in self.taken for each in (-1, 0, 1, 2)}
        others = [took for step, took in enumerate(spent) if step not in disturbed]
        if not self.every and self.taken and others:
            self.undisturbed = statistics.median(others)
            more = sum(t - self.undisturbed for n, t in enumerate(spent) if n in disturbed)
            self.seconds = self.undisturbed + more / self.steps


def now() -> tuple[float, float]:
    return time.perf_counter(), time.thread_time()


def differences(times: list[float]) -> list[float]:
    return [b - a for a, b in itertools.pairwise(times)]


def typical(steps: list[float], every: int) -> float:
    """What a step takes, as the median has it, so that a mood of the machine does not count.

    Steps right after a checkpoint are compared with each other, those after them likewise.
    """
    each = every or 1
    return sum(statistics.median(steps[place::each]) for place in range(each)) / each


Blocked = Callable[[Training, int, int, Path, Measured], None]


def synced(path: Path) -> None:
    for each in (path, path.parent):
        file = os.open(each, os.O_RDONLY)
        os.fsync(file)
        os.close(file)


# ---------------------------------------------------------------- who saves


def plain(training: Training, steps: int, _every: int, _folder: Path, found: Measured) -> None:
    for step in range(steps):
        found.at(step)
        training.step()
    found.end(steps)


def saved_by(save: Callable[[Training, Path], None]) -> Blocked:
    """A block in which a function saves, and has saved when it returns."""

    def block(training: Training, steps: int, every: int, folder: Path, found: Measured) -> None:
        for step in range(steps):
            found.at(step)
            if step % every == 0:
                began = now()
                found.save()
                save(training, folder)
                found.stood_still(began)
                found.durable.append(found.stalls[-1])
            training.step()
        found.end(steps)

    return block


def torch_save(training: Training, folder: Path) -> None:
    staged = folder / "staged.pt"
    torch.save(training.state(), staged)
    synced(staged)
    staged.replace(folder / "last.pt")
    synced(folder / "last.pt")


def safetensors_save(training: Training, folder: Path) -> None:
    state = training.state()
    arrays = dict(state["model"])
    for number, moments in state["optimizer"]["state"].items():
        arrays |= {f"{number}.{name}": value for name, value in moments.items()}
    staged = folder / "staged.safetensors"
    safetensors.torch.save_file(arrays, staged)
    synced(staged)
    staged.replace(folder / "last.safetensors")
    synced(folder / "last.safetensors")


def saved_by_dcp(**options: Callable[[], Any]) -> Blocked:
    def block(training: Training, steps: int, every: int, folder: Path, found: Measured) -> None:
        pending: Any = None
        given: dict[str, Any] = {name: make() for name, make in options.items()}
        for step in range(steps):
            found.at(step)
            if step % every == 0:
                began = now()
                found.save()
                if pending is not None:
                    pending.result()
                target = folder / f"{step // every % 2}"
                shutil.rmtree(target, ignore_errors=True)
                asked = time.perf_counter()
                answer: Any = dcp.async_save(
                    training.state(), checkpoint_id=target, no_dist=True, **given
                )
                pending = answer
                if isinstance(answer, AsyncSaveResponse):
                    pending = answer.upload_completion
                    # What is staged behind must be there before an update changes it.
                    training.before_update = waiting(answer.staging_completion, found)
                found.stood_still(began)
                pending.add_done_callback(
                    lambda _, asked=asked: found.durable.append(time.perf_counter() - asked)
                )
            training.step()
            training.before_update = lambda: None
        found.end(steps)
        if pending is not None:
            pending.result()
        if "async_stager" in given:
            given["async_stager"].close()
        # DETrain makes no checkpoints while there are processes that could not be brought back.
        _async_process_executor._CHECKPOINT_PROCESS = None

    return block


def waiting(future: Any, found: Measured) -> Callable[[], None]:
    def wait() -> None:
        began = now()
        future.result()
        found.stood_still(began)

    return wait


def by_detrain(training: Training, steps: int, every: int, folder: Path, found: Measured) -> None:
    """The session API; `every` 0 is `auto`."""
    taken: dict[int, float] = {}
    cut, ended = 0.0, now()
    plain_copy, plain_hold, plain_settle = States.copy_cut, Saving.hold, Overlap.settle
    plain_publish = Committing._publish

    def copy_cut(self: Any, level: Any, **how: Any) -> Any:
        nonlocal cut
        cut = time.perf_counter()
        return plain_copy(self, level, **how)

    def hold(self: Any, level: Any, step: int, *rest: Any) -> None:
        taken[step] = cut
        found.taken.append(step)
        found.save()
        plain_hold(self, level, step, *rest)

    def settle(self: Any) -> None:
        began = now()
        plain_settle(self)
        found.stood_still(began)

    def publish(self: Any, order: Any, *rest: Any) -> None:
        plain_publish(self, order, *rest)
        if order.step in taken:
            found.durable.append(time.perf_counter() - taken[order.step])

    options: dict[str, Any] = {"save_every": every or "auto", "keep": 2, "digest_every": 0}

    def body(step: int) -> None:
        nonlocal ended
        found.stood_still(ended)
        found.at(step)
        if step == found.warm:
            taken.clear()
        training.step()
        ended = now()
        if step == steps - 1:
            found.end(steps)  # what the end of a loop costs, it costs once

    with (
        changed(States, copy_cut=copy_cut),
        changed(Saving, hold=hold),
        changed(Overlap, settle=settle),
        changed(Committing, _publish=publish),
        detrain.run(seed=1, runs=folder, fresh=True, **options) as run,
    ):
        looped(run, training, steps, body)
    if not taken and every:
        raise UsageError("DETrain made no checkpoint")


def looped(run: detrain.Run, training: Training, steps: int, body: Callable[[int], None]) -> None:
    """The one loop of all runs."""
    for step in run.loop(range(steps), model=training.model, optimizer=training.optimizer):
        body(step)


@contextlib.contextmanager
def changed(owner: Any, **names: Any) -> Iterator[None]:
    before = {name: getattr(owner, name) for name in names}
    for name, value in names.items():
        setattr(owner, name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            setattr(owner, name, value)


SAVERS: dict[str, Blocked] = {
    "plain": plain,
    "DETrain": by_detrain,
    "torch.save + fsync": saved_by(torch_save),
    "safetensors + fsync": saved_by(safetensors_save),
    "DCP async (thread)": saved_by_dcp(),
    "DCP async (thread, async staging)": saved_by_dcp(
        async_stager=lambda: DefaultStager(StagingOptions(False, False, True, False))
    ),
    "DCP async (process)": saved_by_dcp(
        async_checkpointer_type=lambda: AsyncCheckpointerType.PROCESS
    ),
}


# ---------------------------------------------------------------- restoring


class Stopped(Exception):
    """A run is left as a killed one would be."""


def drop_cached(folder: Path) -> None:
    """Have the next read come from the disk."""
    for path in folder.rglob("*"):
        if path.is_file():
            file = os.open(path, os.O_RDONLY)
            os.fsync(file)
            os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(file)


def read_all(folder: Path) -> None:
    """Have the next read come from the page cache, where all files lie as a read puts them."""
    drop_cached(folder)
    for path in folder.rglob("*"):
        if path.is_file():
            path.read_bytes()


def touch(training: Training) -> None:
    for parameter in training.model.parameters():
        parameter.detach().sum()
        for value in training.optimizer.state[parameter].values():
            value.sum()


def used(training: Training) -> tuple[float, float]:
    """Seconds for touching all of the state, and for a step."""
    began = time.perf_counter()
    touch(training)
    touched = time.perf_counter()
    training.step()
    return touched - began, time.perf_counter() - touched


def restored_by_torch(training: Training, folder: Path) -> tuple[float, ...]:
    began = time.perf_counter()
    state = torch.load(folder / "last.pt", mmap=True, weights_only=True)
    training.model.load_state_dict(state["model"])
    training.optimizer.load_state_dict(state["optimizer"])
    return time.perf_counter() - began, *used(training)


def restored_by_detrain(
    training: Training, folder: Path, *, waits: bool = False
) -> tuple[float, ...]:
    """If it `waits`, until all is verified and copied."""
    spent, after = [0.0], [0.0, 0.0]

    def added(plain: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*args: Any, **how: Any) -> Any:
            began = time.perf_counter()
            try:
                return plain(*args, **how)
            finally:
                spent[0] += time.perf_counter() - began

        return timed

    def body(_: int) -> None:
        if waits:
            added(find.settle)()
            raise Stopped
        after[:] = used(training)
        raise Stopped

    with (
        contextlib.suppress(Stopped),
        changed(Attempt, _newest=added(Attempt._newest)),
        changed(States, put_back=added(States.put_back)),
        detrain.run(name="it", runs=folder, save_every="never", digest_every=0) as run,
    ):
        looped(run, training, 9, body)
    return *spent, *after


RESTORERS: dict[str, Callable[[Training, Path], tuple[float, ...]]] = {
    "torch": restored_by_torch,
    "DETrain": restored_by_detrain,
    "DETrain, verified": functools.partial(restored_by_detrain, waits=True),
}


def restore_times(training: Training, folder: Path, rounds: int) -> dict[str, list[float]]:
    """Seconds by who restores and from where, in rounds that take turns."""
    torch_save(training, folder)

    def body(step: int) -> None:
        if step == 3:
            raise Stopped

    options: dict[str, Any] = {"save_every": 1, "digest_every": 0}
    with (
        contextlib.suppress(Stopped),
        detrain.run(name="it", seed=1, runs=folder, **options) as run,
    ):
        looped(run, training, 9, body)
    kept = folder / "kept"
    shutil.copytree(folder / "it", kept)
    found: dict[str, list[float]] = {}
    for _ in range(rounds):
        for prepare, cache in ((read_all, "cached"), (drop_cached, "from disk")):
            for who, restore in RESTORERS.items():
                shutil.rmtree(folder / "it")
                shutil.copytree(kept, folder / "it")
                fresh = Training(training.size)  # as a new process has it
                fresh.batch = training.batch
                prepare(folder)
                times = itertools.accumulate(restore(fresh, folder))
                wanted = ("", ", touched", ", a step later")
                if who == "DETrain, verified":
                    wanted, times = ("",), itertools.islice(times, 1)
                for until, seconds in zip(wanted, times, strict=True):
                    found.setdefault(f"{who}, {cache}{until}", []).append(seconds)
    return found


# ---------------------------------------------------------------- the table


def middle(values: list[float]) -> float:
    return statistics.median(values) if values else float("nan")


@dataclass(frozen=True)
class Compared:
    """A block, and what a plain step took right before and after it: machines have their moods."""

    block: Measured
    seconds: float
    """Of a plain step."""
    cpu: float
    aside: float

    @property
    def lost(self) -> float:
        return self.block.seconds / self.seconds - 1

    @property
    def cpu_of_a_save(self) -> float:
        aside = max(self.block.aside - self.aside, 0.0)
        return middle(self.block.used) + aside * self._steps_per_save

    @property
    def more_cpu_of_a_save(self) -> float:
        return (self.block.cpu - self.cpu) * self._steps_per_save

    @property
    def _steps_per_save(self) -> float:
        return self.block.every or self.block.steps / self.block.saves


def measure(
    training: Training, who: list[str], every: int, steps: int, rounds: int, console: Console
) -> dict[str, list[Compared]]:
    """Blocks by who saves, in rounds that take turns; the first round only warms up."""
    found: dict[str, list[Compared]] = {name: [] for name in who}
    for number in range(rounds + 1):
        before = measured(training, "plain", every, steps)
        for name in who:
            try:
                block = measured(training, name, every, steps)
            except UsageError as error:
                console.print(f"{name}, every {every}: {error}", style="yellow")
                continue
            after = measured(training, "plain", every, steps)
            compared = Compared(
                block,
                block.undisturbed or (before.seconds + after.seconds) / 2,
                (before.cpu + after.cpu) / 2,
                (before.aside + after.aside) / 2,
            )
            before = after
            if number:
                found[name].append(compared)
                console.print(
                    f"  round {number} every {every} {name}: {block.seconds:.3f} s "
                    f"a step, plain ones {compared.seconds:.3f} s"
                )
    return {name: blocks for name, blocks in found.items() if blocks}


def measured(training: Training, name: str, every: int, steps: int) -> Measured:
    if name == "plain":
        block = Measured(every=every, warm=1)
    else:
        # What DETrain chooses for itself, it chooses by what its first checkpoint took.
        block = Measured(every=every, warm=every + 3 if every else 30)
    with tempfile.TemporaryDirectory(prefix="detrain-bench-", dir=".") as folder:
        gc.collect()
        SAVERS[name](training, block.warm + steps, every, Path(folder), block)
    return block


def rows(found: dict[str, list[Compared]], every: int) -> list[list[str]]:
    """A line for each who saves."""
    lines = []
    for name, blocks in found.items():
        lost = middle([each.lost for each in blocks])
        stall = middle([middle(each.block.stalls) for each in blocks if each.block.stalls])
        durable = middle([middle(each.block.durable) for each in blocks if each.block.durable])
        cpu = middle([each.cpu_of_a_save for each in blocks if each.block.used])
        more = middle([each.more_cpu_of_a_save for each in blocks])
        lines.append(
            [name, "auto" if every == 0 else str(every), f"{100 * lost:.1f} %",
             f"{1000 * stall:.2f} ms", f"{durable:.3f} s", f"{1000 * cpu:.1f} ms",
             f"{1000 * more:.0f} ms"]
        )  # fmt: skip
    return lines


def facts() -> str:
    cpu = platform.processor() or platform.machine()
    with contextlib.suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        cpu = next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    kind = os.statvfs(".")
    return (
        f"{platform.system()} {platform.release()}, {cpu}, {os.cpu_count()} CPUs, load "
        f"{os.getloadavg()[0]:.1f} at the start; Python {platform.python_version()}, torch "
        f"{torch.__version__}; file system with blocks of {kind.f_bsize} bytes"
    )


def disk_seconds(nbytes: int) -> float:
    """What the disk takes for as many bytes, with nothing else to do: nothing durable is faster."""
    size = -(-nbytes // mmap.PAGESIZE) * mmap.PAGESIZE
    memory = mmap.mmap(-1, size)
    memory.write(os.urandom(1 << 20) * (size >> 20))
    path, took = Path("detrain-bench-disk"), []
    for _ in range(6):
        file = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_DIRECT)
        began = time.perf_counter()
        for at in range(0, size, 64 << 20):
            os.pwrite(file, memoryview(memory)[at : at + (64 << 20)], at)
        os.fdatasync(file)
        took.append(time.perf_counter() - began)
        os.close(file)
    path.unlink()
    return middle(took[1:])


TITLES = ("who", "every", "lost", "stall", "durable", "CPU", "more CPU")


def keep_memory() -> None:
    """Begin again with an allocator that gives no memory back between steps.

    Whether it does changes from block to block, and makes a tenth of a step's time.
    """
    wanted = {"MALLOC_TRIM_THRESHOLD_": str(1 << 36), "MALLOC_MMAP_THRESHOLD_": str(1 << 36)}
    if any(os.environ.get(name) != value for name, value in wanted.items()):
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **wanted})


def main() -> None:
    keep_memory()
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true", help="one round, few steps, fewer peers")
    parser.add_argument("--model", choices=WIDTHS, action="append")
    parser.add_argument("--every", choices=("1", "5", "auto"), action="append")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--who", choices=[*SAVERS][1:], action="append", help="no results kept")
    parser.add_argument("--part", choices=PARTS, help="only this, here: no results kept")
    parser.add_argument("--into", type=Path, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.part:
        lines = PARTS[chosen.part](chosen, (chosen.model or ["large"])[0], Console())
        if chosen.into:
            chosen.into.write_text("\n".join(lines))
        return
    rounds = 1 if chosen.quick else chosen.rounds
    lines = [
        "# Checkpoints",
        "",
        "By `python benchmarks/checkpoint.py`, which says what the columns mean; medians of "
        f"{rounds} rounds. {facts()}.",
        "",
    ]
    for size in chosen.model or list(WIDTHS):
        for part in PARTS:
            with tempfile.NamedTemporaryFile("r") as into:
                own = ["--model", size, "--part", part, "--into", into.name]
                subprocess.run([sys.executable, *sys.argv, *own], check=True)
                lines += [*into.read().splitlines(), ""]
        if not chosen.quick and not chosen.who:
            RESULTS.parent.mkdir(exist_ok=True)
            RESULTS.write_text("\n".join(lines))


def prepared(size: str) -> Training:
    """A model that has been trained for a while."""
    torch.set_num_threads(1)
    # As DETrain does in its blocks: what is measured is checkpoints, not determinism.
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.utils.deterministic.fill_uninitialized_memory = False
    training = Training(size)
    training.warm_up()
    return training


def saving(chosen: argparse.Namespace, size: str, console: Console) -> list[str]:
    """What it costs to save."""
    warnings.filterwarnings("ignore", module="torch.distributed")
    # DCP in a process of its own asks the group for its address, alone as it is.
    torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0,
                                         world_size=1)  # fmt: skip
    training = prepared(size)
    title = (
        f"{training.nbytes / 1e6:.0f} MB of parameters and Adam state, "
        f"batches of {training.batch} × 32"
    )
    console.print(f"[bold]{title}")
    step, disk = measured(training, "plain", 1, 20).seconds, disk_seconds(training.nbytes)
    least = (
        f"A plain step takes {step:.3f} s. The disk takes {disk:.3f} s for as many bytes, with "
        "nothing else to do."
    )
    console.print(least)
    rounds = 1 if chosen.quick else chosen.rounds
    peers = [name for name in SAVERS if name != "plain"]
    who = chosen.who or [name for name in peers if not chosen.quick or "process" not in name]
    table: list[list[str]] = []
    wanted = [0 if each == "auto" else int(each) for each in chosen.every or ("1", "5", "auto")]
    for every, steps in ((1, 8), (5, 25), (0, 30)):
        if every not in wanted:
            continue
        names = who if every else ["DETrain"]
        found = measure(
            training, names, every, steps // (2 if chosen.quick else 1), rounds, console
        )
        if "DETrain" in found:
            table += rows(found, every)
    shown = Table(*TITLES, box=None, pad_edge=False)
    for row in table:
        shown.add_row(*row)
    console.print(shown)
    lines = [f"## {title}", "", least, ""]
    lines += [f"| {' | '.join(TITLES)} |", "| --- | --- |" + " ---: |" * 5]
    return lines + [f"| {' | '.join(row)} |" for row in table]


def restoring(chosen: argparse.Namespace, size: str, console: Console) -> list[str]:
    """What it costs to restore."""
    training = prepared(size)
    rounds = 1 if chosen.quick else chosen.rounds
    with tempfile.TemporaryDirectory(prefix="detrain-bench-", dir=".") as folder:
        times = restore_times(training, Path(folder), rounds)
    lines = ["| restore | seconds |", "| --- | ---: |"]
    for name, seconds in times.items():
        console.print(f"restore by {name}: {middle(seconds):.3f} s")
        lines.append(f"| {name} | {middle(seconds):.3f} |")
    return lines


PARTS = {"saving": saving, "restoring": restoring}
"""Each is done in a process of its own, as in a user's: nothing of the other is left there."""


if __name__ == "__main__":
    main()
