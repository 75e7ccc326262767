"""Items: what an iteration takes from what it goes over."""

from __future__ import annotations

import ast

from detrain.analysis.emit import NONE, unique
from detrain.analysis.expressions import kind_of
from detrain.analysis.given import ITERATED, Arguments, GivingAway
from detrain.analysis.library import lookup
from detrain.analysis.program import ELEMENT, Place
from detrain.analysis.values import NOTHING, SCALAR, Tags, Value

__all__ = ["Items"]

_RUNNING = frozenset({"builtins.map", "builtins.filter", "builtins.open", "itertools.count"})
"""What makes iterators."""


class Items(GivingAway):
    """Gives an item of what is iterated over."""

    def item_of(self, value: Value, node: ast.AST) -> Value:
        """An item of what is iterated over."""
        self.advance(value, node)
        for key in value.of("generator"):
            return self._from_generator(value, key, node)
        own = self.call_method(value, "__iter__", [], node)
        if own is not None:
            if own.place != value.place and own.of("generator"):
                return self.item_of(own, node)
            given = self.call_method(value, "__next__", [], node)
            if given is not None:
                return given
            return Value(own.place, own.reads)
        given = self.call_method(value, "__getitem__", [Value(tags=SCALAR)], node)
        if given is not None:
            return given
        if value.is_scalar:
            return Value(None, value.reads, SCALAR)
        if value.of("iterates") and value.place is not None:
            return Value((*value.place, ELEMENT), value.reads)
        kinds = {kind_of(maker) for maker in value.of("made")}
        if "loader" in kinds or "dataset" in kinds:
            return self._loaded(value, node)
        if ("made", "builtins.set") in value.tags:
            order = self.observe("hash order", node)
            place = (*value.place, ELEMENT) if value.place is not None else None
            return Value(place, (*value.reads, order), self.elements(value))
        if value.of("sequence") and value.place is not None:
            return Value((*value.place, ELEMENT), value.reads, self.elements(value))
        held: Tags = frozenset(("instance", key) for key in value.of("held"))
        if held and value.place is not None:
            return Value((*value.place, ELEMENT), value.reads, held)
        tags = frozenset(t for t in value.tags if t[0] == "made" and kind_of(t[1]) == "array")
        if any(
            maker.rpartition(".")[2] in ("parameters", "trainable_variables")
            for maker in value.of("made")
        ):
            tags = frozenset({("made", "torch.nn.Parameter")})
        return Value(value.place, value.reads, tags)

    def advance(self, value: Value, node: ast.AST) -> None:
        """Go on with an iterator, or with what may be one: where it stands is part of it."""
        if value.place is None or value.is_scalar:
            return
        unknown = all(
            tag[0] in ("held", "kept") or (tag[0] == "made" and lookup(tag[1]) is None)
            for tag in value.tags
        )
        kept = any(tag[0] in ("iterator", "iterates", "generator") for tag in value.tags)
        if unknown or kept or _RUNNING & set(value.of("made")):
            self.mutate(value.place, value.reads, node)

    def _from_generator(self, value: Value, key: str, node: ast.AST) -> Value:
        """The next item of a generator of the project: some of its code runs."""
        scope = self.facts.functions[key]
        at = (*value.place, ELEMENT) if value.place is not None else NONE
        target = self.temporary()
        self.bind(target, "pure", (), node)
        with self.block() as block:
            self.call_function(key, tuple(at for _ in scope.parameters()), node, target)
        self.branch((), block, [], node)
        tags = self.facts.returns.get(key)
        return Value(target, value.reads, NOTHING if ("unknown",) in tags else tags)

    def _loaded(self, value: Value, node: ast.AST) -> Value:
        """A batch: the loader draws an order, and loads samples, perhaps in workers."""
        workers = (value.of("workers") or ["0"])[0]
        found: list[Place] = []
        if "torch.utils.data.DataLoader" in value.of("made"):
            found.append(self.draw(("@torch",), node))
        with self.block() as block:
            sample = self._may_call_held(value, ITERATED, Arguments(), node)
        if block:
            if workers == "0" or sample is None:
                self.out.extend(block)
            else:
                into = self.temporary()
                self.loop(
                    self.label("W", node),
                    "par",
                    value.all_reads,
                    block,
                    node,
                    result=sample,
                    into=into,
                )
                sample = into
            if sample is not None:
                found.append(sample)
        # What a loader collates is new, and most likely tensors.
        batch = frozenset({("made", "torch.Tensor")})
        is_torch = any(maker.startswith("torch") for maker in value.of("made"))
        return Value(None, unique((*value.all_reads, *found)), batch if is_torch else NOTHING)
