"""States: how the one at a loop is copied, digested, and put back.

At a cut, what the plan of the program leaves out is not copied; at a loop around a cut only what
the way from there to the cut reads is, if the plan can tell. Which loop is where is not known here.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

from detrain.capture.anchors import is_field, root_of
from detrain.capture.content import digest_live
from detrain.capture.frames import is_plain
from detrain.capture.restore import restore
from detrain.capture.returning import Lost, Returning
from detrain.capture.walk import Aside, Walked, walk
from detrain.checkpoint.buffers import Arena
from detrain.checkpoint.manifest import SavedState
from detrain.checkpoint.reading import Arrays
from detrain.checkpoint.snapshot import Snapshot, digest_leaves, take, take_overlapped
from detrain.checkpoint.store import LocalStore
from detrain.checkpoint.streaming import take_live
from detrain.errors import DamagedCheckpoint, ResumeMismatch, UncapturableState
from detrain.frameworks.find import reposition
from detrain.runtime.heads import Head
from detrain.runtime.level import Level
from detrain.runtime.places import split_place, without_elements
from detrain.runtime.planned import GRADIENTS, Cut, Planned, Uncompared
from detrain.runtime.roots import Owns, Roots
from detrain.state import Scalar
from detrain.world.surroundings import Surroundings, without_floats_of_libraries

__all__ = ["States"]


class States:
    """Copies the states of a run's loops and puts them back. On the thread of the loop only.

    `plan` says what is left out of checkpoints, `known` what no digest of a whole run counts: with
    `--no-plan` the first is empty and the second is not, so that the digests are equal. `opened`
    are arrays of saved states, by file, that need not be verified again. `write` makes a snapshot
    durable at once, and says whether it could.
    """

    def __init__(
        self,
        owns: Owns,
        store: LocalStore,
        plan: Planned,
        known: Planned,
        say: Callable[[str], None],
        opened: Mapping[str, Arrays],
        write: Callable[[Snapshot], bool],
    ) -> None:
        self._owns, self._store, self._say = owns, store, say
        self._opened, self._write = opened, write
        self._plan, self._known = plan, known
        self.surroundings = Surroundings()
        self.has_opaque = False
        """Whether something was met whose content can't be captured."""
        self._returning = Returning(owns)
        self.limit: int | None = None
        """Bytes that a copy may take; a larger state is written where it lies."""
        self._arena = Arena()
        self._head = Head((), owns)

    # ---------------------------------------------------------------- copying

    def survey(self, level: Level) -> None:
        """A loop begins: note what must not change in it."""
        if self.has_opaque or level.habits.nests is None:
            walked = self._walk(level, self._cut(level))
            level.opaque = self.opaque_in(walked)
            if level.habits.present is None:
                everything = self._everything(level) or walked
                level.habits.present = self._returning.present(everything.tree, everything)
            level.made = _made(walked, _digests(walked))
            self._note_fields(level, level.made)

    def _everything(self, level: Level) -> Walked | None:
        """What there is, dead names included: on resume they lead to it, too."""
        try:
            return self._walk(level, None)
        except UncapturableState:
            return None

    def check(self, level: Level) -> None:
        """What can't be captured is said now, not an hour later."""
        self._walk(level, self._cut(level))

    def copy_cut(
        self, level: Level, *, thorough: bool, changing: frozenset[str] = frozenset()
    ) -> Walked:
        """Copy the state at a loop's head, to be the innermost of a checkpoint.

        If it is to be `thorough`, it is asked whether an object that is left out is in use. Arrays
        that are known to be `changing` will be written.
        """
        self._note_order(level)
        walked, digests, cut = self._walk_cut(level, thorough)
        gradients = cut is None or not cut.gradients
        if self._is_too_large(walked):
            level.head = take_live(
                walked.tree, walked.leaves, digests, gradients=gradients, left_out=walked.left_out
            )
        else:
            wanted = frozenset[str]() if thorough else changing
            arranged, still = self._head.arrange(walked, level.habits, wanted)
            level.head = take_overlapped(
                walked.tree,
                arranged,
                digests,
                gradients=gradients,
                left_out=walked.left_out,
                arena=self._arena,
                still=still,
                thorough=thorough,
                pace=level.habits.pace,
            )
        # A loop inside may be the innermost of the next checkpoint, before this one is confirmed.
        level.way = self._way(level) if level.habits.nests is not False else None
        return walked

    def lost(self, level: Level, walked: Walked) -> Lost | None:
        """Something of a state that a resumed run could not make anew; None if there is nothing."""
        present = level.habits.present
        if present is None:
            return None
        return next(self._returning.lost(walked, present), None)

    def give_up(self, level: Level) -> None:
        """No checkpoint comes of what was copied at a loop's head."""
        if isinstance(level.head, Snapshot):
            level.head.give_up()
            if level.head.overlap is not None:
                level.head.overlap.end()
            level.head.release()
        level.head = None

    def copy_outer(self, level: Level) -> None:
        """Copy the state at a loop's head, for the way from there to a loop inside it."""
        self._note_order(level)
        level.head = self._way(level)
        if level.head is None:
            cut = self._cut(level)
            # Only the head of an innermost loop is watched for what becomes of gradients.
            walked = self._walk(level, None if cut is None else cut.with_gradients())
            level.head = self._taken(walked, _digests(walked))

    def _is_too_large(self, walked: Walked) -> bool:
        return self.limit is not None and sum(leaf.nbytes for leaf in walked.leaves) > self.limit

    def _taken(self, walked: Walked, digests: dict[str, str] | None = None) -> Snapshot | None:
        """Copy what was walked; what is too large for that is written, or None if it can't be."""
        if self._is_too_large(walked):
            live = take_live(walked.tree, walked.leaves, digests, left_out=walked.left_out)
            return live if self._write(live) else None
        return take(
            walked.tree,
            walked.leaves,
            digests,
            left_out=walked.left_out,
            arena=self._arena,
        )

    def _way(self, level: Level) -> Snapshot | None:
        """Copy what the way to a loop inside this one reads; None if the plan can't tell."""
        places = self._places(level)
        if places is None:
            return None
        roots = Roots.of(level, self._owns)
        found = roots.at(places)
        if found is None:
            level.habits.full = True
            return None
        walked = walk({**roots.own, **found}, self._owns)
        return self._taken(walked)

    def copy_all(self, level: Level) -> Snapshot | None:
        """Copy all that is reachable at a loop; None if it is too large, and can't be written."""
        return self._taken(self._walk(level, None))

    def opaque_in(self, state: Walked | Snapshot | SavedState) -> dict[str, str]:
        """What of a state can't be captured, with digests of it."""
        named = zip(state.tree.paths, state.tree.nodes, strict=True)
        found = {path: node.text for path, node in named if node.form == "opaque"}
        self.has_opaque = self.has_opaque or bool(found)
        return found

    def is_thin(self, level: Level) -> bool:
        """Whether the plan knows the few places that the way from this loop's head reads."""
        return self._places(level) is not None

    def dead_at(self, level: Level) -> frozenset[str]:
        """The names that a checkpoint at a loop's head leaves out because nothing reads them."""
        cut = self._cut(level)
        if cut is None:
            return frozenset()
        return frozenset(Roots.of(level, self._owns).parted(cut)[1].dead)

    def may_leave_gradients(self, level: Level) -> bool:
        """Whether gradients that an iteration of a loop does not touch are cleared later."""
        cut = self._cut(level)
        return cut is not None and cut.others

    def _cut(self, level: Level) -> Cut | None:
        """What a checkpoint leaves out here, without what the plan was wrong about."""
        cut = self._plan.cut(level.path()) if level.whole else None
        if cut is None:
            return None
        cut = cut.keeping(level.habits.kept)
        # A loop that may have others inside it can't be watched from head to head.
        return cut if level.habits.nests is False else cut.with_gradients()

    def _places(self, level: Level) -> tuple[str, ...] | None:
        """What the way from this loop's head to a cut inside it reads; None if all of it may be."""
        if not level.whole or level.habits.full:
            return None
        # Code that gives the items of a loop may look at anything.
        if level.source is not None and level.source.consumes():
            return None
        return self._plan.outer(level.path())

    def _walk(self, level: Level, cut: Cut | None) -> Walked:
        roots, aside = self._parted(level, cut)
        return walk(roots, self._owns, aside)

    def _walk_again(self, level: Level, cut: Cut | None, *, thorough: bool) -> Walked:
        """Walk from a head that most checkpoints are taken at: it was probably walked before."""
        if self._head.path != level.path():
            self._head = Head(level.path(), self._owns)
        return self._head.walk(*self._parted(level, cut, thorough=thorough))

    def _parted(
        self, level: Level, cut: Cut | None, *, thorough: bool = False
    ) -> tuple[dict[str, Any], Aside]:
        roots = Roots.of(level, self._owns)
        return (roots.values(), Aside()) if cut is None else roots.parted(cut, thorough=thorough)

    def _walk_cut(self, level: Level, thorough: bool) -> tuple[Walked, dict[str, str], Cut | None]:
        """Walk from a cut; what was to be rebuilt and has changed in the loop is saved.

        So is what goes by a dead name and is held by something that can't be walked.
        """
        while True:
            cut = self._cut(level)
            walked = self._walk_again(level, cut, thorough=thorough)
            if walked.hidden:
                level.habits.kept |= walked.hidden
                continue
            digests = _digests(walked)
            made = _made(walked, digests)
            level.made = level.made or made
            fixed = self._note_fields(level, made)
            changed = _changed({**level.made, **fixed}, made, cut)
            if cut is None or not changed & cut.rebuilt:
                return walked, digests, cut
            level.habits.kept |= changed
            level.made, level.habits.fixed = {}, {}
            self._say(
                f"{', '.join(sorted(changed))} changed in the loop at line {level.line}, though "
                "the plan of the program has it made once and never changed: it is saved from "
                "now on"
            )

    def _note_fields(self, level: Level, made: Mapping[str, str]) -> dict[str, str]:
        """What is known of fields that are as the setup made them, from when first looked at.

        Unlike variables, they are not made again on the way to a loop.
        """
        cut, fixed = self._cut(level), level.habits.fixed
        if cut is None or not any(map(is_field, cut.rebuilt)):
            return {}
        owners = Roots.of(level, self._owns).owners(cut)
        for path, content in made.items():
            root = root_of(path, owners)
            if root in owners:
                fixed.setdefault(owners[root], {}).setdefault(path, content)
        known = [fixed.get(owner, {}) for owner in owners.values()]
        return {path: content for each in known for path, content in each.items()}

    def _note_order(self, level: Level) -> None:
        level.order = level.source.order() if level.source is not None else ""

    # ---------------------------------------------------------------- digests

    def digest(self, level: Level) -> str:
        """The digest of the state at a loop: of what was declared, or of all that is computed."""
        if not level.whole:
            return self.digest_of(level.objects())
        cut = self._plan.cut(level.path())
        if cut is None:
            walked = self._walk(level, None)
            return digest_leaves(walked.tree, walked.leaves, self.surroundings.decide)
        # What a plan was wrong about makes no difference here: the trace of a run that learned of
        # it is that of a run that knew.
        walked = self._walk(level, cut)
        tree = without_floats_of_libraries(walked.tree, self._owns_module)
        places = Uncompared(cut.uncompared)
        return digest_leaves(tree, walked.leaves, self._but_floats, places)

    def _owns_module(self, name: str) -> bool:
        file = getattr(sys.modules.get(name), "__file__", None)
        return isinstance(file, str) and self._owns(file)

    def digest_end(self, level: Level) -> str:
        """The digest of the state that an outermost loop leaves: the same with and without a plan.

        What is dead in the loop is no part of it, gradients included: whether it is there depends
        on where a run was resumed.
        """
        dead = self._known.dropped_within(level.site)
        walked = self._walk(level, Cut(dead, gradients=GRADIENTS in dead) if dead else None)
        return digest_leaves(walked.tree, walked.leaves, self.surroundings.decide)

    def digest_of(self, roots: Mapping[str, Any]) -> str:
        """The digest of some objects and all that they reach."""
        walked = walk(roots, self._owns)
        return digest_leaves(walked.tree, walked.leaves)

    def _but_floats(self, scalar: Scalar) -> bool:
        """Where a plan says which values a clock reaches, Python's floats are compared."""
        return scalar[0] != "f" and self.surroundings.decide(scalar)

    # ---------------------------------------------------------------- putting back

    def _has_only_places(self, level: Level, captured: set[str]) -> bool:
        """Whether a state has only what the way from a loop's head reads."""
        places = self._places(level)
        if places is None:
            return False
        return {without_elements(name) for name in captured if "/" in name} <= set(places)

    def put_back(self, level: Level, saved: SavedState, *, for_good: bool = False) -> None:
        """Give the program the state that it had at this loop.

        If it is `for_good`, nothing is restored after it: the files are not read any more.
        """
        arrays = self._opened.get(saved.file) or Arrays(self._store, saved)
        level.habits.present = level.habits.present or self._returning.present(saved.tree)
        roots = Roots.of(level, self._owns)
        where = f"the loop {level.site} at line {level.line}"
        captured = {name for name, _ in saved.tree.roots}
        missing = sorted(
            (roots.objects.keys() | roots.own.keys()) ^ {n for n in captured if "/" not in n}
        )
        if missing:
            raise ResumeMismatch(
                where,
                "the objects that were declared in the first attempt",
                f"{missing[0]!r} in only one of the two",
                "Declare the same names in every attempt",
            )
        live = roots.values()
        for name in captured:
            if "/" in name and split_place(name)[1]:
                live.update(roots.at([name]) or {})
        for name, _ in saved.tree.rebuilt:
            if is_field(name):
                live.update(roots.at([name]) or {})
        if self._has_only_places(level, captured):
            # A list that the rebuilt program has there may be one that it also has elsewhere, where
            # the first attempt had two: plain data is made anew, not filled.
            live = {name: value for name, value in live.items() if not is_plain(value)}
        found = restore(
            saved.tree,
            live,
            arrays.__getitem__,
            lambda name: "/" in name,
            self._say,
            saved.rebuilt,
            self._owns,
            arrays.mapped if for_good else None,
        )
        for name, value in roots.objects.items():
            if found[name] is not value:
                raise ResumeMismatch(
                    f"{name}, declared to {where}",
                    f"a {type(found[name]).__name__} that can be filled in place",
                    f"a {type(value).__name__}",
                    "Build it in the same way in every attempt",
                )
        roots.bind(found)
        try:
            reposition(saved.positions)
        except (ValueError, TypeError, LookupError, RuntimeError) as error:
            raise DamagedCheckpoint(
                saved.file, f"expected positions of random generators, found others: {error}"
            ) from error


def _digests(walked: Walked) -> dict[str, str]:
    """Digests of the arrays that the program makes again."""
    return {leaf.name: digest_live(leaf.array) for leaf in walked.rebuilt}


def _made(walked: Walked, digests: Mapping[str, str]) -> dict[str, str]:
    """All that is known of what the program makes again, by path."""
    return {**digests, **{f"{path}.": content for path, content in walked.contents.items()}}


def _changed(before: Mapping[str, str], now: Mapping[str, str], cut: Cut | None) -> set[str]:
    """The variables, and the fields that are left out, whose content is not what it was.

    What is no longer there was taken out of something, which shows there; or something else holds
    it now, and it is saved.
    """
    places = [] if cut is None else [place for place in cut.rebuilt if is_field(place)]
    both = before.keys() & now.keys()
    return {root_of(path, places) for path in both if before[path] != now[path]}
