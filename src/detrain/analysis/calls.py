"""Calls: what is called."""

from __future__ import annotations

import ast
from dataclasses import replace

from detrain.analysis.emit import unique
from detrain.analysis.expressions import kind_of
from detrain.analysis.functions import Functions, with_self
from detrain.analysis.given import CALLED, Arguments
from detrain.analysis.library import lookup
from detrain.analysis.library.named import rows_named
from detrain.analysis.program import ELEMENT, Op
from detrain.analysis.results import LISTS
from detrain.analysis.scopes import Scope
from detrain.analysis.values import DEFINITIONS, NOTHING, SCALAR, Value

__all__ = ["Calls"]

_MAKE_TEXT = frozenset({"strftime", "isoformat", "ctime", "format", "str", "join", "repr"})
_ARRAY_OF = {"torch": "torch.zeros", "torchvision": "torch.zeros", "keras": "tensorflow.zeros",
             "tensorflow": "tensorflow.zeros"}  # fmt: skip


class Calls(Functions):
    """Gives the value of each call."""

    def call(self, node: ast.Call) -> Value:
        """The value of a call, writing all that it may do."""
        if isinstance(node.func, ast.Name) and node.func.id == "super":
            return self._super()
        if isinstance(node.func, ast.Attribute):
            self.lowered.used_up.add(id(node.func.value))
            makes_text = node.func.attr in _MAKE_TEXT
            self.in_text += makes_text
            receiver, given = self.value(node.func.value), self._arguments(node)
            self.in_text -= makes_text
            return self._method(receiver, node.func.attr, given, node)
        if isinstance(node.func, ast.Name) and node.func.id == "getattr" and len(node.args) > 1:
            return self._getattr(node)
        callee = self.value(node.func)
        makes_text = isinstance(node.func, ast.Name) and node.func.id in _MAKE_TEXT
        self.in_text += makes_text
        given = self._arguments(node)
        self.in_text -= makes_text
        return self.called(callee, given, node)

    def _value_Call(self, node: ast.Call) -> Value:
        return self.call(node)

    def _arguments(self, node: ast.Call) -> Arguments:
        found = Arguments()
        for each in node.args:
            value = self.value(each)
            if isinstance(each, ast.Starred):
                found.spread.append(value)
            elif found.spread:  # after a star it is not known which parameter it is for
                found.spread.append(self.container([value], each))
            else:
                found.positional.append(value)
        for keyword in node.keywords:
            value = self.value(keyword.value)
            if keyword.arg is None:
                found.spread.append(value)
            else:
                found.named[keyword.arg] = value
        return found

    def _getattr(self, node: ast.Call) -> Value:
        """`getattr` with a name that is written there, or with any name."""
        value, name = self.value(node.args[0]), node.args[1]
        if isinstance(name, ast.Constant) and isinstance(name.value, str):
            return self.attribute(value, name.value, node)
        reads = self.value(name).all_reads
        methods = {
            ("bound", method.key)
            for key in value.of("instance")
            for each in self.facts.lineage(key)
            for short, method in self.facts.classes[each].methods.items()
            if not short.startswith("__")
        }
        if value.of("lib"):
            return Value(None, reads)  # a class or function of a library, by its name
        return Value(value.place, unique((*value.reads, *reads)), frozenset(methods))

    def _super(self) -> Value:
        """`super()`: the same object, with the methods of the classes above."""
        scope: Scope | None = self.scope
        while scope is not None and not (scope.parent and scope.parent.kind == "class"):
            scope = scope.parent
        if scope is None or scope.parent is None:
            return Value()
        first = scope.parameters()[:1]
        place = self.place_of(first[0]) if first else None
        return Value(place, (), frozenset({("super", scope.parent.key)}))

    def called(self, callee: Value, given: Arguments, node: ast.Call) -> Value:
        """Call a value."""
        found: list[Value] = []
        ways: list[list[Op]] = []

        def way(value: Value, block: list[Op]) -> None:
            found.append(value)
            ways.append(block)

        if callee.all_reads and any(callee.of(kind) for kind in DEFINITIONS):
            self.look(Value(None, callee.all_reads, SCALAR), node)  # it decides what is called
        for key in callee.of("function"):
            with self.block() as block:
                value = self.call_project(key, given, node)
            way(value, block)
        for key in callee.of("bound"):
            with self.block() as block:
                receiver = Value(callee.place, callee.reads)
                value = self.call_project(key, with_self(receiver, given), node)
            way(value, block)
        for key in callee.of("class"):
            with self.block() as block:
                value = self._construct(key, given, node)
            way(value, block)
        for key in callee.of("instance"):
            with self.block() as block:
                value = self._call_instance(callee, key, given, node)
            way(value, block)
        for name in callee.of("lib"):
            with self.block() as block:
                value = self._library(name, None, given, node)
            way(value, block)
        for name in callee.of("made"):
            with self.block() as block:
                value = self._call_made(name, callee, given, node)
            way(value, block)
        if not ways:
            return self._unknown(_spelled(node.func), callee, given, node)
        return self._one_of(found, ways, node)

    def _one_of(self, values: list[Value], ways: list[list[Op]], node: ast.AST) -> Value:
        """What one of several calls gives."""
        if len(ways) == 1:
            self.out.extend(ways[0])
            return values[0]
        if all(value.is_scalar for value in values):
            self._alternatives(ways, node)
            return self.scalar(values)
        target = self.temporary()
        for value, block in zip(values, ways, strict=True):
            with self.block() as bound:
                self.bind_value(target, value, node)
            block.extend(bound)
        self._alternatives(ways, node)
        unknown = any(not value.tags for value in values)
        return Value(
            target, (), NOTHING if unknown else frozenset().union(*(v.tags for v in values))
        )

    def _alternatives(self, ways: list[list[Op]], node: ast.AST) -> None:
        """One of several ways."""
        *others, last = ways
        otherwise = last
        for way in reversed(others):
            with self.block() as both:
                self.branch((), way, otherwise, node)
            otherwise = both
        self.out.extend(otherwise)

    def _method(self, receiver: Value, name: str, given: Arguments, node: ast.Call) -> Value:
        """Call a method, or a function of a module."""
        if receiver.of("super"):
            return self._super_method(receiver, name, given, node)
        for key in receiver.of("class"):
            method = self.facts.method(key, name)
            if method is not None and "classmethod" in self._marks(key, name):
                own = Value(tags=frozenset({("class", key)}))
                return self.call_project(method.key, with_self(own, given), node)
        if receiver.of("lib") or receiver.of("module") or receiver.of("class"):
            return self.called(self.attribute(receiver, name, node), given, node)
        if receiver.of("instance"):
            return self._instance_method(receiver, name, given, node)
        if receiver.of("generator") and name in ("send", "__next__", "throw"):
            return self.item_of(receiver, node)
        found: list[Value] = []
        ways: list[list[Op]] = []
        rows = [(lookup(f"{maker}.{name}"), maker) for maker in receiver.of("made")]
        for row, maker in {row.name: (row, maker) for row, maker in rows if row}.values():
            if row is not None:
                with self.block() as block:
                    value = self._apply(row, f"{maker}.{name}", receiver, given, node)
                found.append(value)
                ways.append(block)
        if ways:
            return self._one_of(found, ways, node)
        if receiver.is_scalar and name in LISTS:
            return self._listed(self.gathered([receiver, *given.all]), node)
        if receiver.is_scalar:
            return self.scalar([receiver, *given.all])
        return self._method_by_name(receiver, name, given, node)

    def _method_by_name(
        self, receiver: Value, name: str, given: Arguments, node: ast.Call
    ) -> Value:
        """Call a method of what is not known: all methods of that name."""
        found: list[Value] = []
        ways: list[list[Op]] = []
        keys = receiver.of("held") or (
            [] if receiver.tags else [k for k, c in self.facts.classes.items() if name in c.methods]
        )
        for key in keys:
            method = self.facts.method(key, name)
            if method is None:
                continue
            at = receiver
            if receiver.of("held") and receiver.place is not None:
                at = Value((*receiver.place, ELEMENT), receiver.reads)
            with self.block() as block:
                value = self.call_project(method.key, with_self(at, given), node)
            found.append(value)
            ways.append(block)
        ordered = bool(receiver.of("sequence")) and "builtins.set" not in receiver.of("made")
        row = None
        if not ways or not receiver.of("held"):
            # What surely is a list, a tuple or a dictionary has no methods of libraries.
            plain = bool(receiver.tags) and all(tag[0] == "sequence" for tag in receiver.tags)
            packages = frozenset[str]() if plain else self.facts.packages
            row = rows_named(name, packages, ordered=ordered)
        if row is not None:
            with self.block() as block:
                value = self._apply(row, row.name, receiver, given, node)
            found.append(value)
            ways.append(block)
        if not ways:
            return self._unknown(_spelled(node.func), receiver, given, node)
        return self._one_of(found, ways, node)

    def _instance_method(
        self, receiver: Value, name: str, given: Arguments, node: ast.Call
    ) -> Value:
        found: list[Value] = []
        ways: list[list[Op]] = []
        for key in receiver.of("instance"):
            with self.block() as block:
                value = self._method_of(receiver, key, name, given, node)
            found.append(value)
            ways.append(block)
        return self._one_of(found, ways, node)

    def _method_of(
        self, receiver: Value, key: str, name: str, given: Arguments, node: ast.Call
    ) -> Value:
        facts = self.facts
        method = facts.method(key, name)
        if method is not None:
            marks = self._marks(key, name)
            if "staticmethod" in marks:
                return self.call_project(method.key, given, node)
            own = replace(receiver, tags=frozenset({("instance", key)}))
            if "classmethod" in marks:
                own = Value(tags=frozenset({("class", key)}))
            return self.call_project(method.key, with_self(own, given), node)
        if facts.has_field(key, name) or name in facts.classes[key].scope.bound:
            return self.called(self.attribute(receiver, name, node), given, node)
        for base in facts.libraries(key):
            row = lookup(f"{base}.{name}")
            if row is not None:
                value = self._apply(row, f"{base}.{name}", receiver, given, node)
                if row.makes and row.makes == kind_of(base) and value.place == receiver.place:
                    return replace(value, tags=receiver.tags)
                return value
        if facts.libraries(key):
            row = rows_named(name, self.facts.packages)
            if row is not None:
                return self._apply(row, row.name, receiver, given, node)
        return self._unknown(_spelled(node.func), receiver, given, node)

    def _marks(self, key: str, name: str) -> set[str]:
        for each in self.facts.lineage(key):
            if name in self.facts.classes[each].methods:
                return self.facts.classes[each].decorators.get(name, set())
        return set()

    def _super_method(self, receiver: Value, name: str, given: Arguments, node: ast.Call) -> Value:
        facts = self.facts
        for key in receiver.of("super"):
            for base in facts.classes[key].bases if key in facts.classes else ():
                method = facts.method(base, name)
                if method is not None:
                    own = replace(receiver, tags=frozenset({("instance", key)}))
                    return self.call_project(method.key, with_self(own, given), node)
            for library in facts.libraries(key) if key in facts.classes else ():
                row = lookup(f"{library}.{name}")
                if row is not None:
                    return self._apply(row, f"{library}.{name}", receiver, given, node)
        if receiver.place is not None and given.all:
            self.mutate(receiver.place, self.gathered(given.all), node)
            self.hold(receiver.place, [v for v in given.all if not v.is_scalar], node)
        return Value(receiver.place, receiver.reads)

    def call_method(
        self, receiver: Value, name: str, arguments: list[Value], node: ast.AST
    ) -> Value | None:
        """Call a method that the project's own classes define, if the receiver is one of them."""
        found: list[Value] = []
        ways: list[list[Op]] = []
        for key in receiver.of("instance"):
            method = self.facts.method(key, name)
            if method is None:
                continue
            own = replace(receiver, tags=frozenset({("instance", key)}))
            with self.block() as block:
                value = self.call_project(method.key, Arguments([own, *arguments]), node)
            found.append(value)
            ways.append(block)
        return self._one_of(found, ways, node) if ways else None

    def _call_instance(self, callee: Value, key: str, given: Arguments, node: ast.Call) -> Value:
        """Call an instance: its `__call__`, or what a framework's own calls."""
        for name in CALLED:
            method = self.facts.method(key, name)
            if method is not None:
                own = replace(callee, tags=frozenset({("instance", key)}))
                return self.call_project(method.key, with_self(own, given), node)
        for base in self.facts.libraries(key):
            row = lookup(f"{base}.__call__")
            if row is not None:
                return self._apply(row, f"{base}.__call__", callee, given, node)
        return self._unknown(_spelled(node.func), callee, given, node)

    def _call_made(self, maker: str, callee: Value, given: Arguments, node: ast.Call) -> Value:
        """Call what a library made: a layer, a compiled function, a transform."""
        if callee.of("held") or callee.of("kept"):
            self._may_call_held(callee, CALLED, given, node)
        row = lookup(f"{maker}.__call__")
        if row is not None:
            return self._apply(row, f"{maker}.__call__", callee, given, node)
        kind = kind_of(maker)
        if kind in ("model", "optimizer", "array"):
            reads = self.gathered([callee, *given.all])
            return Value(
                None,
                reads,
                frozenset({("made", _ARRAY_OF.get(maker.partition(".")[0], ""))})
                if maker.partition(".")[0] in _ARRAY_OF
                else NOTHING,
            )
        return self._unknown(_spelled(node.func), callee, given, node)

    def _library(
        self, name: str, receiver: Value | None, given: Arguments, node: ast.Call
    ) -> Value:
        """Call a function or class of a library."""
        if self.looks_at_all(name, given):
            self.look_at_all(name, node)
            return Value(None, self.gathered(given.all), NOTHING)
        row = lookup(name)
        if row is not None:
            return self._apply(row, name, receiver, given, node)
        made = self._unknown(name, Value(), given, node)
        return replace(made, tags=made.tags | {("made", name)})


def _spelled(node: ast.AST) -> str:
    """A callee as it is written."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    parts.append(node.id if isinstance(node, ast.Name) else "…")
    return ".".join(reversed(parts))
