"""Assignments: names, attributes and elements that are bound, changed and deleted."""

from __future__ import annotations

import ast

from detrain.analysis.calls import Calls
from detrain.analysis.emit import GRADIENTS
from detrain.analysis.expressions import NAMESPACES, OPERATORS
from detrain.analysis.given import Arguments
from detrain.analysis.program import ELEMENT
from detrain.analysis.values import SCALAR, Value

__all__ = ["Assignments"]


class Assignments(Calls):
    """Writes what assignments do."""

    def _Expr(self, node: ast.Expr) -> None:
        self.look(self.value(node.value), node)

    def _Assign(self, node: ast.Assign) -> None:
        first = node.targets[0]
        if (
            isinstance(first, ast.Tuple)
            and isinstance(node.value, ast.Tuple)
            and len(first.elts) == len(node.value.elts)
            and not any(isinstance(e, ast.Starred) for e in (*first.elts, *node.value.elts))
        ):
            values = [self._kept(self.value(each), node) for each in node.value.elts]
            for target, value in zip(first.elts, values, strict=True):
                self._assigned(target, value, node)
            return
        value = self.value(node.value)
        if len(node.targets) > 1 or isinstance(first, ast.Tuple | ast.List):
            value = self._kept(value, node)
        if len(node.targets) == 1 and isinstance(first, ast.Name) and not value.is_scalar:
            self._begin_version(first)
        for target in node.targets:
            self._assigned(target, value, node)

    def _begin_version(self, target: ast.Name) -> None:
        """A variable of a small function is assigned, whatever happened before: it is another one
        from here on, so that what is done to what it now is is not done to what it was.
        """
        scope, name = self.scope, target.id
        if self.depth > 1 or scope.key not in self.facts.straight or not self.is_local(name):
            return
        if name not in self.assigned:
            return
        self.versions = {**self.versions, name: (f"%{name}@{target.lineno}:{target.col_offset}",)}
        self.lowered.versions.add((self.function_name, name))

    def _assigned(self, target: ast.expr, value: Value, node: ast.AST) -> None:
        """Assign, and note what is made from what it was."""
        source = getattr(node, "value", None)
        again = source is not None and not value.is_scalar and self._shares(target, source)
        self.assign(target, value, node)
        if again and self.out:
            self.lowered.mark(self.out[-1].site, "self")

    def _shares(self, target: ast.AST, source: ast.AST) -> bool:
        """Whether two expressions have a variable or an attribute in common."""
        one, other = self.facts.spelling(target), self.facts.spelling(source)
        if not one.attributes.isdisjoint(other.attributes):
            return True
        own = {self.place_of(name) for name in one.names}
        return any(self.place_of(name) in own for name in other.names)

    def _kept(self, value: Value, node: ast.AST) -> Value:
        """A value that stays what it is when variables change."""
        if value.is_scalar or (value.place is not None and value.place[0].startswith("%")):
            return value
        if value.place is None and value.is_definition:
            return value
        target = self.temporary()
        self.bind_value(target, value, node)
        return Value(target, (), value.tags)

    def _AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.assign(node.target, self.value(node.value), node)

    def _AugAssign(self, node: ast.AugAssign) -> None:
        target = node.target
        before = self.value(
            ast.copy_location(_loaded(target), target) if not isinstance(target, ast.Name) else
            ast.copy_location(ast.Name(target.id, ast.Load()), target)
        )  # fmt: skip
        value = self.value(node.value)
        name = f"__i{OPERATORS.get(type(node.op), '')}__"
        self.call_method(before, name, [value], node)
        reads = self.gathered([before, value])
        if before.is_scalar and value.is_scalar:
            self.assign(target, Value(None, reads, SCALAR), node)
            return
        if before.place is not None and not before.is_scalar:
            sure = bool(before.of("sequence"))
            if sure:
                self.hold(before.place, [self.item_of(value, node)], node)
            numbers = before.form is not None
            site = self.mutate(before.place, value.all_reads, node, deep=not sure, contents=numbers)
            self.lowered.mark(site, "self")
            if GRADIENTS in value.all_reads:
                self.lowered.mark(site, "update")
            if before.tags and all(tag[0] in ("made", "sequence") for tag in before.tags):
                return  # it changes in place
        # Perhaps a number, or what can't change in place: then the target is bound anew.
        tags = frozenset(t for t in (*before.tags, *value.tags) if t[0] != "scalar")
        known = bool(before.tags) and bool(value.tags)
        self.assign(target, Value(None, reads, tags if known else frozenset()), node)
        self.lowered.mark(self.out[-1].site, "self")

    def _Delete(self, node: ast.Delete) -> None:
        for target in node.targets:
            if isinstance(target, ast.Name):
                place = self.place_of(target.id)
                if place is not None:
                    self.bind(place, "pure", (place,), node)
            elif isinstance(target, ast.Subscript | ast.Attribute):
                value = self.value(target.value)
                if value.place is not None:
                    self.mutate(value.place, value.reads, node)

    def _bind_name(self, name: str, value: Value, node: ast.AST) -> None:
        place = self.place_of(name)
        if place is None:
            return
        self.assigned[name] = None
        key = self.fact_key(place)
        self.facts.learn(self.facts.variables, key, value.tags)
        constant = value.is_definition and value.place is None and not value.reads
        if constant and self.facts.variables.get(key) <= value.tags:
            return  # it never is anything else
        if constant:
            self.bind(place, "pure", (), node)
        else:
            self.bind_value(place, value, node)

    def assign(self, target: ast.expr, value: Value, node: ast.AST) -> None:
        """Bind what stands left of an assignment."""
        match target:
            case ast.Name():
                self._bind_name(target.id, value, node)
            case ast.Tuple() | ast.List():
                starred = any(isinstance(each, ast.Starred) for each in target.elts)
                for number, each in enumerate(target.elts):
                    if isinstance(each, ast.Starred):
                        item = self.item_of(value, node)
                        self.assign(each.value, self.container([item], each), node)
                    else:
                        part = self._part(value, None if starred else number)
                        self.assign(each, part, node)
            case ast.Starred():
                self.assign(target.value, value, node)
            case ast.Attribute():
                self._assign_attribute(target, value, node)
            case ast.Subscript():
                self._assign_element(target, value, node)

    def _part(self, value: Value, number: int | None = None) -> Value:
        """One of the things that a value is unpacked into."""
        if value.is_scalar or value.place is None:
            return Value(None, value.reads, SCALAR if value.is_scalar else frozenset(
                t for t in value.tags if t[0] == "made"))  # fmt: skip
        if value.of("sequence"):
            elements = self.elements(value, number)
            if elements == SCALAR:
                return Value(None, ((*value.place, ELEMENT), *value.reads), SCALAR)
            return Value((*value.place, ELEMENT), value.reads, elements)
        if value.of("iterates"):
            return Value((*value.place, ELEMENT), value.reads)
        return Value(value.place, value.reads, frozenset(t for t in value.tags if t[0] == "made"))

    def _assign_attribute(self, target: ast.Attribute, value: Value, node: ast.AST) -> None:
        owner, name = self.value(target.value), target.attr
        if owner.of("module"):
            module = self.modules[owner.of("module")[0]]
            self.facts.bind(module.scope, name)
            place = (module.prefix + name,)
            self.facts.learn(self.facts.variables, place[0], value.tags)
            self.bind_value(place, value, node)
            return
        if owner.of("class"):
            for key in owner.of("class"):
                self.facts.bind(self.facts.classes[key].scope, name)
                place = (f"{key}/{name}",)
                self.facts.learn(self.facts.variables, place[0], value.tags)
                self.bind_value(place, value, node)
            return
        for key in owner.of("function"):
            place = (f"{key}'{name}",)
            self.facts.learn(self.facts.variables, place[0], value.tags)
            self.bind_value(place, value, node)
        if owner.place is None:
            return
        self.call_method(owner, "__setattr__", [Value(tags=SCALAR), value], node)
        if name == "grad" and not owner.of("instance"):
            self.mutate(GRADIENTS, self.gathered([owner, value]), node)
            return
        keys = owner.of("instance")
        for key in keys:
            setter = self.facts.setter(key, name)
            if setter is not None:
                self.call_project(setter.key, Arguments([owner, value]), node)
                return
        namespace = any(maker in NAMESPACES for maker in owner.of("made"))
        if keys or namespace:
            for key in keys or ["namespace"]:
                self.facts.grown |= self.facts.assign(key, name)
                self.facts.learn(self.facts.fields, (key, name), value.tags)
            self.bind_value((*owner.place, name), value, node)
            return
        self.mutate(owner.place, self.gathered([value]), node, deep=not owner.of("sequence"))
        self.hold(owner.place, [value], node)
        self.give_away(value)

    def _assign_element(self, target: ast.Subscript, value: Value, node: ast.AST) -> None:
        self.lowered.used_up.add(id(target.value))
        owner, index = self.value(target.value), self.value(target.slice)
        if self.call_method(owner, "__setitem__", [index, value], node) is not None:
            return
        if owner.place is None:
            return
        reads = self.gathered([index, value])
        precise = bool(owner.of("sequence"))
        if precise:
            for key in owner.of("sequence"):
                self.facts.learn(self.facts.elements, key, value.tags)
        site = self.mutate(owner.place, reads, node, deep=not precise)
        self.lowered.overwritten.append((self.function_name, owner.place))
        if GRADIENTS in reads:
            self.lowered.mark(site, "update")
        self.hold(owner.place, [value], node)
        if not precise:
            self.give_away(value)


def _loaded(target: ast.expr) -> ast.expr:
    """The target of an assignment, to be read."""
    if isinstance(target, ast.Attribute):
        return ast.Attribute(target.value, target.attr, ast.Load())
    assert isinstance(target, ast.Subscript)
    return ast.Subscript(target.value, target.slice, ast.Load())
