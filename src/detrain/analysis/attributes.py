"""Attributes and elements of values.

What is known to be an object of the project has fields of its own; what belongs to a library is
*opaque*: its attributes and elements are the thing itself, to read them is to read all of it.
"""

from __future__ import annotations

import ast

from detrain.analysis.emit import GRADIENTS, OWN, unique
from detrain.analysis.expressions import NAMESPACES, Expressions, kept_iterator, kind_of
from detrain.analysis.program import ELEMENT
from detrain.analysis.values import NOTHING, SCALAR, Tag, Tags, Value

__all__ = ["Attributes"]

_SHOWS_VARIABLES = frozenset({"sys.modules", "sys._getframe", "inspect.currentframe"})
"""What gives away variables that nobody names."""
_FACTS_OF_SHAPE = frozenset({"shape", "dtype", "device", "ndim", "itemsize", "is_cuda", "layout"})
_OWN_PARTS = {"optimizer": frozenset({"param_groups", "defaults"})}


class Attributes(Expressions):
    """Gives the value of what is read of another."""

    def _value_Attribute(self, node: ast.Attribute) -> Value:
        self.lowered.used_up.add(id(node.value))
        return self.attribute(self.value(node.value), node.attr, node)

    def attribute(self, value: Value, name: str, node: ast.AST) -> Value:
        """An attribute of a value."""
        modules, names = value.of("module"), value.of("lib")
        if modules:
            return self._of_module(modules[0], name)
        if names:
            return self._of_library(names, name, node)
        if value.of("class"):
            return self._of_class(value, name)
        for key in value.of("function"):
            if f"{key}'{name}" in self.facts.variables:
                known = self.facts.variables.get(f"{key}'{name}")
                tags = NOTHING if ("unknown",) in known else known
                return Value((f"{key}'{name}",), value.reads, tags)
        if name == "grad" and not any(self.facts.has_field(k, name) for k in value.of("instance")):
            return Value(GRADIENTS, value.all_reads, frozenset({("made", "torch.zeros_like")}))
        if value.of("instance"):
            return self._of_instance(value, name, node)
        for maker in value.of("made"):
            if maker in NAMESPACES and value.place is not None:
                return self._of_namespace(value, name)
            if name in _OWN_PARTS.get(kind_of(maker), ()) and value.place is not None:
                return Value((*value.place, OWN), value.reads)
        return self._opaque(value, name)

    def _opaque(self, value: Value, name: str) -> Value:
        if name in _FACTS_OF_SHAPE:
            reads = value.all_reads if value.form is None else (value.form, *value.reads)
            return Value(None, reads, SCALAR)
        held: Tags = frozenset(("instance", key) for key in value.of("held"))
        if held and value.place is not None:
            return Value((*value.place, ELEMENT), value.reads, held)
        tags = frozenset(t for t in value.tags if t[0] == "made" and kind_of(t[1]) == "array")
        if name == "module":
            tags = value.tags
        return Value(value.place, value.reads, tags)

    def _of_module(self, module: str, name: str) -> Value:
        for each in self.modules.values():
            if each.name == module:
                if name in each.scope.bound:
                    place = (each.prefix + name,)
                    tags = self.facts.variables.get(place[0])
                    if tags and all(t[0] in ("lib", "module", "class", "function") for t in tags):
                        return Value(None, (), tags)
                    return Value(place, (), tags)
                if f"{module}.{name}" in self.modules:
                    return Value(tags=frozenset({("module", f"{module}.{name}")}))
        return Value()

    def _of_library(self, names: tuple[str, ...], name: str, node: ast.AST) -> Value:
        tags: set[Tag] = set()
        for each in names:
            full = f"{each}.{name}"
            if full in _SHOWS_VARIABLES:
                self.lowered.opened.append((self.span(node), True))
            tags.add(("module", full) if full in self.modules else ("lib", full))
        return Value(tags=frozenset(tags))

    def _of_class(self, value: Value, name: str) -> Value:
        for key in value.of("class"):
            method = self.facts.method(key, name)
            if method is not None:
                return Value(tags=frozenset({("function", method.key)}))
            for each in self.facts.lineage(key):
                if name in self.facts.classes[each].scope.bound:
                    place = (f"{each}/{name}",)
                    return Value(place, (), self.facts.variables.get(place[0]))
        return Value(value.place, value.reads)

    def _of_instance(self, value: Value, name: str, node: ast.AST) -> Value:
        keys = value.of("instance")
        tags: set[Tag] = set()
        place = value.place
        for key in keys:
            if self.facts.is_property(key, name):
                found = self.call_method(value, name, [], node)
                if found is not None:
                    return found
            method = self.facts.method(key, name)
            if method is not None:
                tags.add(("bound", method.key))
        if tags:
            return Value(place, value.reads, frozenset(tags))
        if any(self.facts.has_field(key, name) for key in keys) and place is not None:
            for key in keys:
                tags |= self.facts.field_tags(key, name)
            found_tags = NOTHING if ("unknown",) in tags else frozenset(tags)
            if found_tags == SCALAR:
                return Value(None, (*value.reads, (*place, name)), SCALAR)
            return Value((*place, name), value.reads, kept_iterator(found_tags))
        in_class = self._of_class(Value(None, (), frozenset(("class", k) for k in keys)), name)
        if in_class.place is not None:
            return in_class
        if name == "training" and place is not None:
            return Value(None, (*value.reads, (*place, name)), SCALAR)
        if not name.startswith("__"):
            found = self.call_method(value, "__getattr__", [Value(tags=SCALAR)], node)
            if found is not None:
                return found
        return self._opaque(value, name)

    def _of_namespace(self, value: Value, name: str) -> Value:
        """A field of arguments: as given, or as the program has set it since."""
        assert value.place is not None
        reads = ((*value.place, "given"), (*value.place, name))
        tags = self.facts.fields.get(("namespace", name))
        if tags:
            return Value((*value.place, name), ((*value.place, "given"),), tags)
        return Value(None, (*value.reads, *reads), SCALAR)  # command lines give plain values

    def _value_Subscript(self, node: ast.Subscript) -> Value:
        self.lowered.used_up.add(id(node.value))
        value, index = self.value(node.value), self.value(node.slice)
        own = self.call_method(value, "__getitem__", [index], node)
        if own is not None:
            return own
        reads = unique((*value.reads, *index.all_reads))
        if value.of("lib") or value.of("class"):
            return Value(tags=value.tags)  # a generic alias: list[int]
        if value.of("sequence") and all(tag[0] in ("sequence", "made") for tag in value.tags):
            tags = self.elements(value)
            if isinstance(node.slice, ast.Slice):  # a new list, or a part of an array
                return self.made(reads, [self.item_of(value, node), value], value.tags, node)
            if value.place is None or (tags and tags == SCALAR):
                return Value(None, unique((*value.all_reads, *reads)), tags)
            return Value((*value.place, ELEMENT), reads, tags)
        if value.is_scalar:
            return Value(None, unique((*value.all_reads, *reads)), SCALAR)
        kept = frozenset(t for t in value.tags if t[0] == "made" and kind_of(t[1]) == "array")
        held = frozenset(("instance", key) for key in value.of("held"))
        if value.of("sequence"):
            kept = NOTHING
        if value.place is None:
            return Value(None, unique((*value.all_reads, *reads)), kept)
        if held and not kept:
            return Value((*value.place, ELEMENT), reads, held)
        return Value(value.place, reads, kept)
