"""The attempt: this process's hold on a run, from the lock to the outcome.

Here is all that a run does besides looping: who owns it, which checkpoint it goes on from, its
trace and its output, the world that the program sees, the frameworks that it brings in. The loops
are in `session`.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from detrain.capture.forms import FORMS
from detrain.capture.sound import check_tree
from detrain.checkpoint.commit import load_newest, set_aside
from detrain.checkpoint.manifest import Manifest
from detrain.checkpoint.reading import Arrays
from detrain.checkpoint.regular import check_own_files, regular_size
from detrain.checkpoint.store import LocalStore
from detrain.errors import (
    DamagedCheckpoint,
    DamageFoundLate,
    ForeignFiles,
    ProgramChanged,
    Unwritable,
)
from detrain.frameworks import find
from detrain.frameworks.base import Framework
from detrain.plan import Plan, encode_plan
from detrain.runs.folder import RunFolder
from detrain.runs.lock import RunLock
from detrain.runs.mirror import Mirror
from detrain.runs.records import Attempt as AttemptRecord
from detrain.runs.records import Outcome, RunRecord
from detrain.runtime.committing import Marks
from detrain.runtime.notice import Notices
from detrain.runtime.replaying import Replaying
from detrain.runtime.roots import Owns
from detrain.runtime.seeding import Seeding
from detrain.trace.digest import digest_text
from detrain.trace.log import EMPTY, LEAST_LINE, TraceWriter, read_trace
from detrain.world.answers import Answers
from detrain.world.files import Files
from detrain.world.observe import Observation, Observer
from detrain.world.output import OutputLog
from detrain.world.pools.install import Pools
from detrain.world.trackers import flush_trackers, go_on_with, stay_silent

__all__ = ["Attempt", "Opening"]


@dataclass(frozen=True)
class Opening:
    """What an attempt begins with: the run, the program as it is now, and how to treat both."""

    folder: RunFolder
    record: RunRecord
    script_digest: str
    owns: Owns
    reached: Callable[[str], None]
    accept_changes: bool = False
    trust_files: bool = False
    world: bool = False
    quiet: bool = False
    plan: Plan | None = None
    use_plan: bool = True
    mirror: Mirror | None = None
    """Brings what is committed to the store that the run lives in."""
    unordered: bool = False
    one_stream: bool = False
    replaying: Replaying | None = None
    """The steps of a copy of the run that are only looked at."""

    @property
    def plan_digest(self) -> str:
        """What the digests of steps depend on besides the program."""
        if self.plan is None or not self.use_plan:
            return ""
        return digest_text(encode_plan(self.plan))


class Attempt:
    """A run opened for this process, to go on from `manifest` if there is one."""

    def __init__(self, opening: Opening, note: Callable[[Observation], None]) -> None:
        self._opening = opening
        self.folder, self.record = opening.folder, opening.record
        self.notices = Notices(quiet=opening.quiet)
        check_own_files(self.folder.path, self.folder.checkpoints.name)
        self._lock = RunLock(self.folder.path, self.folder.name)
        self.opened: dict[str, Arrays] = {}
        """The arrays of the checkpoint that the run goes on from, by file."""
        self._found_late: list[DamageFoundLate] = []
        try:
            before = self.folder.attempts()
            self.store = LocalStore(self.folder.checkpoints, opening.reached)
            self.store.sweep()
            late = self._found_late.append if opening.replaying is None else None
            self.manifest = self._newest(late) if before else None
        except BaseException:
            self._lock.release()
            raise
        self.folder.clear_outcome()
        self._pinned = before[-1].fingerprint if before else {}
        self.resumed_at = None if not before else (self.manifest.step if self.manifest else 0)

        # Steps that an earlier attempt traced beyond the checkpoint are done again, and compared.
        replaying = opening.replaying
        same_plan = bool(before) and before[-1].plan == opening.plan_digest
        comparable = same_plan or replaying is not None
        earlier = read_trace(self.folder.trace).events if comparable else ()
        self.redone = {event.step: chain for event, chain in earlier}
        rebuilding = self.manifest is not None
        self.trace = None if rebuilding else TraceWriter(self.folder.trace, EMPTY)
        hides = replaying is not None and replaying.first > 1
        self._output = OutputLog(self.folder.path, rebuilding=rebuilding or hides)
        self._answers: Answers | None = None
        self._since_start: list[Observation] = []
        """What an attempt without a checkpoint was answered before; this one begins anew."""
        self._files: Files | None = None
        self._observer: Observer | None = None
        if opening.world:
            path, root = self.folder.path, self.folder.path.parent
            self._observer = Observer(path, opening.owns, note)
            if opening.plan is not None and opening.plan.records:
                self._answers = Answers(path / "answers.jsonl")
                if not rebuilding:
                    self._since_start = self._answers.since(0)
            self._files = Files(
                path,
                opening.owns,
                root,
                self._observer,
                rebuilding=rebuilding or replaying is not None,
                trusted=opening.trust_files,
                looks_only=replaying is not None,
            )
            if before and replaying is None:
                self._refuse_foreign(self._files)
        # With or without it, pools are asked in the same order, so that their draws are the same.
        plan = opening.plan if opening.use_plan else None
        self._pools = Pools(opening.owns, plan, self.attention, unordered=opening.unordered)
        self._frameworks: list[Framework] = []
        self._watch = find.ImportWatch(self._arrived)
        self._one_stream = opening.one_stream
        self._seed = self.record.seed
        self._seeding = Seeding(self.record.seed) if self.record.overrides else None

    def _refuse_foreign(self, files: Files) -> None:
        """`ForeignFiles` if going on would change files because others say so."""
        at = self.manifest
        lengths = at.files if at is not None else {}
        foreign = files.journal.foreign(at.journal if at is not None else 0, lengths)
        if foreign:
            files.close()
            self._lock.release()
            raise ForeignFiles(self.folder.name, tuple(foreign))

    def start(self) -> None:
        """Begin: keep the output, show the world, seed the generators, prepare the frameworks."""
        self._output.start()
        self._watch.start()
        replaying = self._opening.replaying
        if self._files is not None:
            if replaying is not None:
                stay_silent()
            else:
                go_on_with(f"{self.folder.name}-{int(self.record.created)}")
                if self.resumed_at is not None and self.manifest is None:
                    self._report(self._files.begin_again())
            self._files.start()
        if self._observer is not None:
            if self.manifest is not None:
                self._observer.feed(self.manifest.observed)
            elif replaying is not None:
                self._observer.feed(self._since_start or replaying.observed)
            self._observer.start(rebuilding=self.manifest is not None)
        for framework in find.loaded():
            self._arrived(framework)
        self._pools.start()
        self.notices.say(self._greeting())

    def seed(self, seed: int) -> None:
        """Seed all generators, now and when further frameworks are imported."""
        self._seed = seed
        for framework in self._frameworks:
            framework.seed(seed)

    def attention(self, text: str) -> None:
        """Say something that is said even if the run is to be quiet."""
        self.notices.say(text, always=True)

    def ask(self, function: Any, args: Any, kwargs: Any) -> Any:
        """The program calls what may be a clock that can't be replaced."""
        if self._observer is None:
            return function(*args, **kwargs)
        return self._observer.ask(function, args, kwargs)

    def feed(self, observed: Iterable[Observation]) -> None:
        """While rebuilding: answer the program's next questions with these."""
        if self._observer is not None:
            self._observer.feed(observed)

    def first_loop(self) -> None:
        """The program is set up: write down this attempt, now that its surroundings are known."""
        fingerprint: dict[str, str] = {}
        for framework in find.loaded():
            fingerprint.update(framework.fingerprint())
        goes_on = self.manifest is not None or self._opening.replaying is not None
        if goes_on and not self._opening.accept_changes:
            names = sorted(self._pinned.keys() | fingerprint.keys())
            changes = tuple(
                f"{name}: it was {self._pinned.get(name, 'absent')}, "
                f"it is {fingerprint.get(name, 'absent')}"
                for name in names
                if self._pinned.get(name) != fingerprint.get(name)
            )
            if changes:
                raise ProgramChanged(self.folder.name, changes)
        if self._files is not None:
            self._files.first_loop()
        self.folder.add_attempt(
            AttemptRecord(
                pid=os.getpid(),
                host=socket.gethostname(),
                started=time.time(),
                resumed_at=self.resumed_at,
                script_digest=self._opening.script_digest,
                fingerprint=fingerprint,
                plan=self._opening.plan_digest,
            )
        )
        if self._opening.mirror is not None:
            self._opening.mirror.push()

    def keep(self, observation: Observation) -> None:
        """Keep an answer that the running program got, if such answers decide how it goes."""
        if self._answers is not None and self.trace is not None:
            self._answers.add(*observation)

    def marks(self) -> Marks:
        """How far trace, output and files are."""
        assert self.trace is not None
        flush_trackers()
        if self._files is None:
            return Marks(self.trace.mark, self._output.lengths())
        journal, lengths = len(self._files.journal.entries), self._files.lengths()
        answers = self._answers.length if self._answers is not None else 0
        return Marks(self.trace.mark, self._output.lengths(), journal, lengths, answers)

    def sync(self) -> None:
        """Make durable what was written of trace, output and journal. Any thread may call it."""
        assert self.trace is not None
        self.trace.sync_written()
        self._output.sync()
        if self._files is not None:
            self._files.journal.sync()

    def discard(self, oldest: Manifest) -> None:
        """Give up what only checkpoints before the oldest kept one needed."""
        if self._files is not None:
            self._files.journal.discard(oldest.journal)
        if self._opening.mirror is not None:
            self._opening.mirror.push()

    def go_live(self, manifest: Manifest) -> None:
        """The program is rebuilt: cut everything back to the checkpoint and go on from there."""
        self.trace = TraceWriter(self.folder.trace, manifest.trace)
        replaying = self._opening.replaying
        if replaying is None or replaying.first == manifest.step + 1:
            self._output.go_live(manifest.output)
        if self._observer is not None:
            again = self._answers.since(manifest.answers) if self._answers is not None else ()
            self._observer.go_live(again)
        if self._files is not None:
            flush_trackers()
            if replaying is None:
                self._report(self._files.go_live(manifest.journal, manifest.files))
            else:
                self._files.show_at(manifest.journal, manifest.files)
        self.redone = {s: chain for s, chain in self.redone.items() if s > manifest.step}

    def show_output(self) -> None:
        """What the program prints is to be seen from now on."""
        self._output.go_live(self._output.lengths())

    def close(self, outcome: Outcome) -> None:
        """End the attempt and write down how."""
        try:
            if self.trace is not None:
                self.trace.sync()
                self.trace.close()
            self._output.sync()
            self.folder.write_outcome(outcome)
        except (OSError, Unwritable) as error:
            self.attention(
                f"how the run ended could not be written down: {error}. It counts as interrupted"
            )
        finally:
            self._watch.stop()
            self._pools.stop()
            if self._seeding is not None:
                self._seeding.stop()
            if self._observer is not None:
                self._observer.stop()
            if self._files is not None:
                self._files.stop()
                self._files.close()
            if self._answers is not None:
                self._answers.close()
            for framework in self._frameworks:
                framework.release()
            self._output.stop()
            self._output.close()
            if self._opening.mirror is not None:
                self._opening.mirror.end()
            self._lock.release()

    def trace_digest(self) -> str:
        """The digest of the trace so far."""
        if self.trace is not None:
            return self.trace.mark.chain
        return self.manifest.trace.chain if self.manifest is not None else ""

    def judge_again(self) -> bool:
        """Whether damage was found after the program had gone on, and there is another checkpoint.

        The damaged one is set aside, so that the next attempt goes on from that other one.
        """
        if not self._found_late:
            return False
        try:
            return self._newest() is not None
        except (DamagedCheckpoint, OSError) as error:  # the run is to be closed all the same
            self.attention(str(error))
            return False

    def _newest(
        self, found_late: Callable[[DamageFoundLate], None] | None = None
    ) -> Manifest | None:
        """The checkpoint to go on from; damaged ones after it are set aside."""
        damaged: list[int] = []

        def found(error: DamagedCheckpoint, step: int) -> None:
            damaged.append(step)
            self.attention(
                f"the checkpoint of step {step} can't be used: {error}. Trying the one before"
            )

        manifest = load_newest(self.store, found, self._check, self.opened, found_late)
        for step in damaged:
            set_aside(self.store, step)
        return manifest

    def _check(self, manifest: Manifest) -> None:
        """`DamagedCheckpoint` if a checkpoint has other things in it than the run's files have."""
        name = f"the checkpoint of step {manifest.step}"
        for state in manifest.states():
            check_tree(state.tree, FORMS, state.file)
        least = {"trace.jsonl": max(manifest.trace.length, manifest.step * LEAST_LINE)}
        least |= {f"{stream}.log": length for stream, length in manifest.output.items()}
        for file, length in least.items():
            path = self.folder.path / file
            found = regular_size(path) if path.exists() else 0
            if found < length:
                raise DamagedCheckpoint(
                    str(path), f"is {found} bytes long; {name} needs {length} of it"
                )
        if manifest.journal:
            path = self.folder.path / "files.jsonl"
            lines = path.read_bytes().count(b"\n") if path.exists() else 0
            if lines < manifest.journal:
                raise DamagedCheckpoint(
                    str(path), f"has {lines} entries; {name} needs {manifest.journal}"
                )

    def _greeting(self) -> str:
        name = self.folder.name
        if self._opening.replaying is not None:
            start = f"its checkpoint of step {self.manifest.step}" if self.manifest else "its top"
            return f"replaying run {name} from {start}"
        if self.resumed_at is None:
            return f"run {name} (seed {self.record.seed})"
        if self.manifest is None:
            return f"run {name}: it has no checkpoint yet, starting at its first step"
        return f"run {name}: going on from step {self.resumed_at}"

    def _report(self, troubles: Iterable[str]) -> None:
        for trouble in troubles:
            self.attention(f"a file of the program is not as it was: {trouble}")

    def _arrived(self, framework: Framework) -> None:
        """A framework is there, at the start or right after its import."""
        if framework not in self._frameworks:
            self._frameworks.append(framework)
            framework.prepare()
            if self._one_stream:
                framework.have_one_stream()
            if self._files is not None:
                self._files.watch(framework.writers())
            framework.pin(self._pinned)
            framework.seed(self._seed)
            if self._seeding is not None:
                self._seeding.watch(framework.seeders())
