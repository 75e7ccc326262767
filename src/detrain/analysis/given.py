"""What is given away: to libraries, which may call it, and to what nothing is known of.

A call that nothing is known of gets a conservative answer: it reads and may change all that it is
given, may call what it is given, and what it gives back keeps hold of it.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field, replace

from detrain.analysis.attributes import Attributes
from detrain.analysis.emit import NONE
from detrain.analysis.library import Row
from detrain.analysis.program import ELEMENT, Place
from detrain.analysis.scopes import Scope
from detrain.analysis.values import NOTHING, UNKNOWN, Tag, Value

__all__ = ["CALLED", "ITERATED", "TRAIN_OPS", "Arguments", "GivingAway", "parameter_key"]

_METHODS_THAT_TRAIN = frozenset({"step", "apply_gradients", "train_on_batch", "fit"})

TRAIN_OPS = frozenset({"minimize", "apply_gradients", "get_updates"})
"""Methods that, in a graph program, make an op which trains when a session runs it."""

CALLED = ("__call__", "forward", "call")

ITERATED = ("__getitem__", "__iter__", "__next__", "__len__", "__getitems__")


@dataclass
class Arguments:
    """The arguments of a call."""

    positional: list[Value] = field(default_factory=list)
    named: dict[str, Value] = field(default_factory=dict)
    spread: list[Value] = field(default_factory=list)
    """What is given as `*` or `**`."""

    @property
    def all(self) -> list[Value]:
        """All of them."""
        return [*self.positional, *self.named.values(), *self.spread]

    def at(self, name: str) -> Value | None:
        """The argument that a row names: by position or by keyword."""
        if name.isdigit():
            number = int(name)
            return self.positional[number] if number < len(self.positional) else None
        return self.named.get(name)


class GivingAway(Attributes):
    """What may happen to values that the project gives away."""

    def _runs_train_op(self, given: Arguments) -> bool:
        """Whether a call is given an op that trains, alone or in a list."""
        inner = [each for value in given.all for each in self._in_sequence(value)]
        return any(("trains",) in value.tags for value in (*given.all, *inner))

    def _event(self, kind: str, node: ast.AST) -> None:
        """Mark this place as one where something is trained."""
        if not self.out:
            self.bind(self.temporary(), "pure", (), node)
        self.lowered.mark(self.out[-1].site, kind)

    def give_away(self, value: Value) -> None:
        """A function is kept where it can't be followed: it may be called at any time."""
        for key in (*value.of("function"), *value.of("bound")):
            if key in self.facts.functions:
                self.facts.reach(key)
                self.lowered.given_away.add(key)
                self.lowered.stored.add(key)
                self.lowered.registered.add(key)

    def _in_sequence(self, value: Value) -> list[Value]:
        if not value.of("sequence") or value.place is None:
            return []
        return [Value((*value.place, ELEMENT), value.reads, self.elements(value))]

    def _given(
        self, called: list[Value], values: list[Value], row: Row, node: ast.AST, *, kept: bool
    ) -> None:
        """Functions that are given to a call, which may call them with anything it has.

        If they are `kept` by what can't be followed, they may be called at any time later.
        """
        if kept:
            for value in called:
                self.lowered.registered.update((*value.of("function"), *value.of("bound")))
        others = [v for v in values if v not in called and not v.is_scalar]
        everything = self.made((), others, NOTHING, node).place if others else NONE
        assert everything is not None
        how = row.parallel if row.parallel not in ("", "loader") else ""
        for value in called:
            with self.block() as block:
                result = self._call_with(value, everything, node)
            if row.name.startswith("torch.optim.") and row.name.endswith(".step"):
                self.out.extend(block)  # a closure is surely called, and first
            elif how:
                label = self.label("P", node)
                into = self.temporary()
                self.loop(label, "par", (everything,), block, node,
                          result=result, into=into, unordered=row.unordered)  # fmt: skip
            else:
                self.branch((), block, [], node)

    def _call_with(self, value: Value, everything: Place, node: ast.AST) -> Place:
        """Call a function with something unknown for every parameter."""
        target = self.temporary()
        self.bind(target, "pure", (), node)
        for key in (*value.of("function"), *value.of("bound")):
            scope = self.facts.functions.get(key)
            if scope is None:
                continue
            places = [everything for _ in scope.parameters()]
            if value.of("bound") and places and value.place is not None:
                places[0] = value.place
            for number, name in enumerate(scope.parameters()):
                if not (number == 0 and value.of("bound")):
                    parameter = parameter_key(scope, name)
                    self.facts.learn(self.facts.variables, parameter, UNKNOWN)
            self.lowered.given_away.add(key)
            self.note_call(key, node, again=True)
            self.call_function(key, tuple(places), node, target)
        return target

    def _may_call_held(
        self, holder: Value, names: tuple[str, ...], given: Arguments, node: ast.AST
    ) -> Place | None:
        """What a library's object holds of the project may be called."""
        if holder.place is None:
            return None
        others = [v for v in given.all if not v.is_scalar]
        everything = self.made((), others, NOTHING, node).place if others else NONE
        assert everything is not None
        at = Value((*holder.place, ELEMENT), holder.reads)
        methods = (
            self.facts.method(key, name)
            for key in holder.of("held")
            for name in dict.fromkeys(names)
        )
        called: list[Tag] = [("bound", each.key) for each in methods if each is not None]
        called += [("function", key) for key in holder.of("kept")]
        if not called:
            return None
        result = self.temporary()
        self.bind(result, "pure", (), node)
        for tag in called:
            with self.block() as block:
                found = self._call_with(replace(at, tags=frozenset({tag})), everything, node)
                self.bind(result, "alias", (found,), node)
            self.branch((), block, [], node)
        return result

    def _unknown(self, name: str, callee: Value, given: Arguments, node: ast.AST) -> Value:
        """A call that nothing is known of."""
        self.lowered.unknown.append((name, self.span(node)))
        short = name.rpartition(".")[2]
        values = [*([callee] if callee.place is not None else []), *given.all]
        inner = [e for v in given.all for e in self._in_sequence(v)]
        called = [v for v in (*given.all, *inner) if v.of("function") or v.of("bound")]
        if called:
            self._given(called, given.all, Row(name), node, kept=True)
        if callee.of("held") or callee.of("kept"):
            self._may_call_held(callee, (*CALLED, *ITERATED), given, node)
        objects = [v for v in values if not v.is_scalar and v.place is not None]
        reads = self.gathered(values)
        for value in objects:
            assert value.place is not None
            for key in value.of("instance"):
                self._any_method(value, key, node)
            self.mutate(value.place, reads, node, deep=True)
        if (short in _METHODS_THAT_TRAIN and callee.place is not None) or self._runs_train_op(
            given
        ):
            self._event("update", node)
        tags: set[Tag] = {
            ("held", key) for v in values for key in (*v.of("instance"), *v.of("held"))
        }
        tags |= {("kept", key) for v in values for key in (*v.of("function"), *v.of("bound"))}
        if short in TRAIN_OPS:
            tags.add(("trains",))
        if not objects:
            return Value(None, reads, frozenset(tags))
        made = self.made(
            self.gathered([v for v in values if v.is_scalar]), objects, frozenset(tags), node
        )
        assert made.place is not None
        if len(objects) > 1:
            for value in objects:
                assert value.place is not None
                self.hold(value.place, [made], node)
        return made

    def _any_method(self, value: Value, key: str, node: ast.AST) -> None:
        """An object that is given away: any of its methods may be called."""
        for each in self.facts.lineage(key):
            for name, method in self.facts.classes[each].methods.items():
                if name == "__init__" or name.startswith("_abc"):
                    continue
                with self.block() as block:
                    bound = replace(value, tags=frozenset({("bound", method.key)}))
                    self._call_with(bound, NONE, node)
                    self.lowered.registered.add(method.key)
                    self.lowered.guessed.update(op.site for op in self.out)
                self.branch((), block, [], node)


def parameter_key(scope: Scope, name: str) -> str:
    """How facts name a parameter of a function."""
    return f"{scope.key}/{name}" if name in scope.captured else f"{scope.key}:{name}"
