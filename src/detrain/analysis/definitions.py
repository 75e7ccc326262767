"""Definitions: functions, classes and imports, and what is learnt from them."""

from __future__ import annotations

import ast

from detrain.analysis.assignments import Assignments
from detrain.analysis.given import Arguments
from detrain.analysis.scopes import Scope, imported_from, last_name
from detrain.analysis.values import Class, Value

__all__ = ["Definitions"]


class Definitions(Assignments):
    """Writes what definitions do."""

    def statements(self, nodes: list[ast.stmt]) -> None:
        """The ops of a block; see `Statements`."""
        raise NotImplementedError

    def _FunctionDef(self, node: ast.FunctionDef) -> None:
        self._definition(node)

    def _AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self._definition(node)

    def _definition(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        value = self.function_value(node)
        for decorator in node.decorator_list:
            made = self.value(decorator)
            if made.of("function"):
                # A decorator of the project gives its own function, which calls this one.
                call = ast.copy_location(ast.Call(decorator, [], []), decorator)
                given = self.called(made, Arguments([value]), call)
                value = Value(given.place, given.reads, given.tags | value.tags)
        if self.scope.kind != "class":
            self._bind_name(node.name, value, node)

    def _ClassDef(self, node: ast.ClassDef) -> None:
        scope = next((each for each in self.scope.inner if each.node is node), None)
        if scope is None:
            return
        self._describe(scope, node)
        inner = type(self)(self.facts, self.lowered, scope, self.modules)
        inner.out, inner.bound_globals = self.out, self.bound_globals
        inner.statements(node.body)
        self._bind_name(node.name, Value(tags=frozenset({("class", scope.key)})), node)

    def _describe(self, scope: Scope, node: ast.ClassDef) -> None:
        """Write down what a class inherits and defines."""
        known = self.facts.classes.get(scope.key)
        if known is None:
            known = self.facts.classes[scope.key] = Class(scope)
            self.facts.grown = True
        before = known.described()
        for base in (*node.bases, *(keyword.value for keyword in node.keywords)):
            value = self.value(base)
            known.bases += [key for key in value.of("class") if key not in known.bases]
            known.libraries += [name for name in value.of("lib") if name not in known.libraries]
        for inner in scope.inner:
            if inner.kind == "function":
                marks = {last_name(each) for each in getattr(inner.node, "decorator_list", ())}
                if "setter" in marks:
                    known.setters[inner.name] = inner
                    continue
                if "deleter" in marks:
                    self.give_away(Value(tags=frozenset({("function", inner.key)})))
                    continue
                if inner.is_another and known.methods.get(inner.name) is not inner:
                    # Which of the two it is depends on something.
                    for each in (inner, *(s for s in scope.inner if s.name == inner.name)):
                        self.give_away(Value(tags=frozenset({("function", each.key)})))
                known.methods[inner.name] = inner
                if inner.name[:2] == "__" and inner.name not in ("__init__", "__new__"):
                    # Python calls it where no call is written: printing, adding, comparing.
                    self.facts.reach(inner.key)
                    self.lowered.given_away.add(inner.key)
                if marks & {"property", "cached_property"}:
                    marks.add("property")
                known.decorators[inner.name] = marks
        known.is_data = any(last_name(each) == "dataclass" for each in node.decorator_list)
        known.annotated = [
            each.target.id
            for each in node.body
            if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)
        ]
        if known.is_data or "typing.NamedTuple" in known.libraries:
            for name in known.annotated:
                self.facts.assign(scope.key, name)
        if known.described() != before:
            self.facts.change_all()

    def _Import(self, node: ast.Import) -> None:
        for alias in node.names:
            name = alias.asname or alias.name.partition(".")[0]
            self._imported(name, alias.name if alias.asname else name)

    def _ImportFrom(self, node: ast.ImportFrom) -> None:
        for alias in node.names:
            name = alias.asname or alias.name
            if name != "*":
                self._imported(name, self.scope.imports.get(name, name))
                continue
            module = self.modules.get(imported_from(node, self.scope.module))
            for each in sorted(module.scope.bound) if module is not None else ():
                # What a star brings in is bound as if it were written out.
                if not each.startswith("_"):
                    assert module is not None
                    self.facts.bind(self.scope.module.scope, each)
                    self._imported(each, f"{module.name}.{each}")

    def _imported(self, name: str, target: str) -> None:
        place = self.place_of(name)
        if place is None:
            return
        if target in self.modules:
            value = Value(tags=frozenset({("module", target)}))
        else:
            owner, _, last = target.rpartition(".")
            if owner in self.modules:
                value = self._of_module(owner, last)
            else:
                value = Value(tags=frozenset({("lib", target)}))
        self.facts.learn(self.facts.variables, self.fact_key(place), value.tags)
        if value.place is not None:
            self.bind_value(place, value, self.scope.node)

    def _Global(self, node: ast.Global) -> None:
        pass
