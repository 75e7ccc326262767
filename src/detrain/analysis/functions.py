"""Functions and classes of the project, called: what is passed to them, and what they make."""

from __future__ import annotations

import ast

from detrain.analysis.emit import NONE
from detrain.analysis.expressions import kind_of
from detrain.analysis.given import Arguments, parameter_key
from detrain.analysis.program import ELEMENT
from detrain.analysis.rows import Rows
from detrain.analysis.scopes import Scope
from detrain.analysis.values import NOTHING, SCALAR, Tags, Value

__all__ = ["Functions", "with_self"]


class Functions(Rows):
    """Gives the value of a call of the project's own."""

    def call_project(self, key: str, given: Arguments, node: ast.AST) -> Value:
        """Call a function of the project."""
        facts = self.facts
        scope = facts.functions.get(key)
        if scope is None:
            return self._unknown(key, Value(), given, node)
        values = self._passed(scope, given, node)
        for name, value in zip(scope.parameters(), values, strict=True):
            facts.learn(facts.variables, parameter_key(scope, name), value.tags)
        places = tuple(self.placed(value, node) for value in values)
        if scope.yields:
            # Its code runs where its items are asked for, which may be anywhere.
            facts.reach(key)
            self.note_call(key, node)
            self.lowered.given_away.add(key)
            return self.made(
                (), [Value(place) for place in places if place != NONE],
                frozenset({("generator", key)}), node,
            )  # fmt: skip
        tags = facts.returns.get(key)
        target = self.temporary()
        self.call_function(self._copy_of(scope, node), places, node, target)
        if ("unknown",) in tags:
            tags = NOTHING
        if tags == SCALAR:
            return Value(None, (target,), SCALAR)
        return Value(target, (), tags)

    def _copy_of(self, scope: Scope, node: ast.AST) -> str:
        """The function that a call means: a small one is another for each call.

        So a meter of times and a meter of losses are two, though they share their methods.
        """
        if not scope.is_small:
            return scope.key
        at = f"{getattr(node, 'lineno', 0)}:{getattr(node, 'col_offset', 0)}"
        name = f"{scope.key}@{self.scope.module.prefix}{at}"
        self.lowered.copies[name] = scope.key
        return name

    def _passed(self, scope: Scope, given: Arguments, node: ast.AST) -> list[Value]:
        """The value of each parameter of a function."""
        a = scope.node.args  # type: ignore[attr-defined]
        plain = [each.arg for each in (*a.posonlyargs, *a.args)]
        named = dict(given.named)
        spread = self._spread(given, node)
        values: list[Value] = []
        for number, name in enumerate(plain):
            if number < len(given.positional):
                values.append(given.positional[number])
            elif name in named:
                values.append(named.pop(name))
            else:
                values.append(self._default(scope, name, spread))
        if a.vararg:
            rest = given.positional[len(plain) :]
            values.append(self.container([*rest, *given.spread], node))
        for each in a.kwonlyargs:
            if each.arg in named:
                values.append(named.pop(each.arg))
            else:
                values.append(self._default(scope, each.arg, spread))
        if a.kwarg:
            values.append(self.container([*named.values(), *given.spread], node))
        return values

    def _spread(self, given: Arguments, node: ast.AST) -> Value | None:
        if not given.spread:
            return None
        if len(given.spread) == 1:
            return given.spread[0]
        return self.container([self._of_spread(each) for each in given.spread], node)

    def _of_spread(self, value: Value) -> Value:
        """One of the arguments that are given as `*` or `**`."""
        if not value.of("sequence"):
            return Value(value.place, value.reads)
        at = (*value.place, ELEMENT) if value.place is not None else None
        return Value(at, value.reads, self.elements(value))

    def _default(self, scope: Scope, name: str, spread: Value | None) -> Value:
        if spread is not None:
            return self._of_spread(spread)
        key = f"{scope.key}/{name}="
        if key in self.facts.variables:
            tags = self.facts.variables.get(key)
            return Value((key,), (), tags) if tags != SCALAR else Value(tags=SCALAR)
        return Value(tags=SCALAR)

    def _construct(self, key: str, given: Arguments, node: ast.Call) -> Value:
        """Make an instance of a class of the project."""
        facts = self.facts
        tags: Tags = frozenset({("instance", key)})
        target = self.temporary()
        site = self.bind(target, "new", (), node)
        kinds = [kind_of(base) for base in facts.libraries(key)]
        self.lowered.kinds[site] = next((kind for kind in kinds if kind), "")
        made = Value(target, (), tags)
        init = facts.method(key, "__init__")
        if init is not None:
            self.call_project(init.key, with_self(made, given), node)
        elif facts.classes[key].annotated and (facts.classes[key].is_data or not kinds):
            self._fill(made, key, given, node)
        elif given.all:
            self.mutate(target, self.gathered(given.all), node)
            self.hold(target, given.all, node)
        return made

    def _fill(self, made: Value, key: str, given: Arguments, node: ast.AST) -> None:
        """The fields of a data class, from the arguments."""
        assert made.place is not None
        names = [
            n
            for each in reversed(self.facts.lineage(key))
            for n in self.facts.classes[each].annotated
        ]
        values = dict(zip(names, given.positional, strict=False)) | given.named
        for name, value in values.items():
            self.facts.assign(key, name)
            self.facts.learn(self.facts.fields, (key, name), value.tags)
            self.bind_value((*made.place, name), value, node)


def with_self(receiver: Value, given: Arguments) -> Arguments:
    """The arguments of a method that is called on a receiver."""
    return Arguments([receiver, *given.positional], given.named, given.spread)
