"""Statements of Python as ops of the language."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from detrain.analysis.calls import Calls
from detrain.analysis.cells import read_by
from detrain.analysis.emit import GRADIENTS, LoopFacts
from detrain.analysis.expressions import NAMESPACES, OPERATORS, Over
from detrain.analysis.given import Arguments
from detrain.analysis.program import ELEMENT, Function, Place, walk_ops
from detrain.analysis.scopes import COMPREHENSION, Code, Scope, last_name, own_nodes
from detrain.analysis.values import DEFINITIONS, SCALAR, Class, Value

__all__ = ["Statements"]

_INTERRUPTS = frozenset({"KeyboardInterrupt", "SystemExit", "GeneratorExit"})


class Statements(Calls):
    """Writes the ops of statements."""

    def statements(self, nodes: list[ast.stmt]) -> None:
        """The ops of a block."""
        self.depth += 1
        for node in nodes:
            method: Callable[[ast.stmt], None] | None = getattr(
                self, f"_{type(node).__name__}", None
            )
            if method is not None:
                begin, before = len(self.out), self.versions
                method(node)
                now, self.versions = self.versions, before
                self._look_at_names(_own_expressions(node), begin, node)
                self.versions = now
        self.depth -= 1

    def _look_at_names(self, nodes: list[ast.AST], begin: int, node: ast.AST) -> None:
        """See to it that every variable that is named is looked at, whatever is made of it."""
        names = dict.fromkeys(
            each.id for one in nodes for each in _own_names(one) if isinstance(each.ctx, ast.Load)
        )
        seen = {place[0] for op in walk_ops(tuple(self.out[begin:])) for place in read_by(op)}
        missing = []
        for name in names:
            place = self.place_of(name)
            tags = self.tags_at(place) if place is not None else SCALAR
            known = len(tags) == 1 and all(tag[0] in DEFINITIONS for tag in tags)
            if place is not None and place[0] not in seen and not known and tags:
                missing.append(place)
        with self.block() as block:
            for place in missing:
                self.bind(self.temporary(), "alias", (place,), node)
        self.out[begin:begin] = block

    def function(self, name: str = "") -> Function:
        """The whole function that this is the scope of, perhaps under another name."""
        scope = self.scope
        node = scope.node
        self.function_name = name or scope.key
        assert isinstance(node, Code)
        self.assigned.update(scope.parameters())
        for each in scope.parameters():
            if each in scope.captured:
                self.bind((f"{scope.key}/{each}",), "alias", ((each,),), node)
        if isinstance(node, ast.Lambda):
            self._returned(self.value(node.body), node)
        else:
            self.statements(node.body)
        return Function(
            name or scope.key,
            scope.parameters(),
            tuple(self.out),
            tuple(sorted(self.bound_globals)),
            self.span(node),
        )

    # ---------------------------------------------------------------- definitions

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
        inner = Statements(self.facts, self.lowered, scope, self.modules)
        inner.out, inner.bound_globals = self.out, self.bound_globals
        inner.statements(node.body)
        self._bind_name(node.name, Value(tags=frozenset({("class", scope.key)})), node)

    def _describe(self, scope: Scope, node: ast.ClassDef) -> None:
        """Write down what a class inherits and defines."""
        known = self.facts.classes.get(scope.key)
        if known is None:
            known = self.facts.classes[scope.key] = Class(scope)
            self.facts.grown = True
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
            self.facts.assigned.update((scope.key, name) for name in known.annotated)

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
            module = self.modules.get(self.scope.imports.get("*", "").removesuffix(".*"))
            for each in sorted(module.scope.bound) if module is not None else ():
                # What a star brings in is bound as if it were written out.
                if not each.startswith("_"):
                    assert module is not None
                    self.scope.module.scope.bound.add(each)
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
        self.facts.learn(self.facts.variables[self.fact_key(place)], value.tags)
        if value.place is not None:
            self.bind_value(place, value, self.scope.node)

    def _Global(self, node: ast.Global) -> None:
        pass

    # ---------------------------------------------------------------- assignments

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
        self.assigned.add(name)
        known = self.facts.variables[self.fact_key(place)]
        self.facts.learn(known, value.tags)
        constant = value.is_definition and value.place is None and not value.reads
        if constant and known <= value.tags:
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
            module.scope.bound.add(name)
            place = (module.prefix + name,)
            self.facts.learn(self.facts.variables[place[0]], value.tags)
            self.bind_value(place, value, node)
            return
        if owner.of("class"):
            for key in owner.of("class"):
                self.facts.classes[key].scope.bound.add(name)
                place = (f"{key}/{name}",)
                self.facts.learn(self.facts.variables[place[0]], value.tags)
                self.bind_value(place, value, node)
            return
        for key in owner.of("function"):
            place = (f"{key}'{name}",)
            self.facts.learn(self.facts.variables[place[0]], value.tags)
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
                if (key, name) not in self.facts.assigned:
                    self.facts.assigned.add((key, name))
                    self.facts.grown = True
                self.facts.learn(self.facts.fields[key, name], value.tags)
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
                self.facts.learn(self.facts.elements[key], value.tags)
        site = self.mutate(owner.place, reads, node, deep=not precise)
        self.lowered.overwritten.append((self.function_name, owner.place))
        if GRADIENTS in reads:
            self.lowered.mark(site, "update")
        self.hold(owner.place, [value], node)
        if not precise:
            self.give_away(value)

    # ---------------------------------------------------------------- control

    def _returned(self, value: Value, node: ast.AST) -> None:
        self.facts.learn(self.facts.returns[self.scope.key], value.tags)
        self._left("return", self.placed(value, node), node)

    def _Return(self, node: ast.Return) -> None:
        if self.scope.kind == "function":
            self._returned(self.value(node.value) if node.value else Value(tags=SCALAR), node)

    def _Raise(self, node: ast.Raise) -> None:
        if node.exc is not None:
            self.look(self.value(node.exc), node)
        if not self.in_try and self.scope.kind == "function":
            self.leave("return", None, node)

    def _Assert(self, node: ast.Assert) -> None:
        test = self.value(node.test)
        with self.block() as block:
            if node.msg is not None:
                self.look(self.value(node.msg), node)
            self.bind(self.temporary(), "pure", (), node)
        self.branch(test.all_reads, block, [], node)

    def _If(self, node: ast.If) -> None:
        if _is_main_test(node.test):
            self.statements(node.body if self.scope.module.is_script else node.orelse)
            return
        test = self.value(node.test)
        for method in ("__bool__", "__len__"):
            self.asked(test, method, node)
        with self.block() as then:
            self.statements(node.body)
        with self.block() as otherwise:
            self.statements(node.orelse)
        self.branch(test.all_reads, then, otherwise, node)

    def _For(self, node: ast.For) -> None:
        self._loop(node)

    def _AsyncFor(self, node: ast.AsyncFor) -> None:
        self._loop(node)

    def _loop(self, node: ast.For | ast.AsyncFor) -> None:
        over = self.over(node.iter)
        label = self._loop_label(node)
        with self.block() as body:
            self.loops += 1
            self.items(node.target, over, node)
            self.statements(node.body)
            self.loops -= 1
        self.loop(label, "for", over.value.all_reads, body, node, listed=over.value.is_list)
        self._after(node)

    def over(self, node: ast.expr) -> Over:
        """What a loop goes over, computed once; `enumerate` and the like are seen through."""
        if not isinstance(node, ast.Call) or any(isinstance(e, ast.Starred) for e in node.args):
            return Over(node, self.value(node))
        name = last_name(node.func)
        builtin = isinstance(node.func, ast.Name) and self.place_of(name) is None
        through = (builtin and name in ("enumerate", "zip")) or name in ("tqdm", "track")
        if not through or not node.args:
            return Over(node, self.value(node))
        callee = self.value(node.func)
        count = len(node.args) if name == "zip" else 1
        parts = [self.over(each) for each in node.args[:count]]
        values = [*(each.value for each in parts), *(self.value(e) for e in node.args[count:])]
        given = self._arguments(ast.copy_location(ast.Call(node.func, [], node.keywords), node))
        given.positional = values
        return Over(node, self.called(callee, given, node), name, parts)

    def _loop_label(self, node: ast.For | ast.AsyncFor | ast.While) -> str:
        label = self.label("L", node)
        self.lowered.loops[label] = LoopFacts(label, node, self.scope)
        return label

    def items(self, target: ast.expr, over: Over, node: ast.AST) -> None:
        """Bind the target of a loop; `enumerate` and `zip` are seen through."""
        targets = target.elts if isinstance(target, ast.Tuple) else []
        if over.by == "enumerate" and len(targets) == 2:
            self.assign(targets[0], Value(tags=SCALAR), node)
            self.items(targets[1], over.parts[0], node)
        elif over.by == "zip" and len(targets) == len(over.parts):
            for each, part in zip(targets, over.parts, strict=True):
                self.items(each, part, node)
        elif over.by in ("tqdm", "track"):
            self.items(target, over.parts[0], node)
        else:
            self.assign(target, self.item_of(over.value, over.node), node)

    def _While(self, node: ast.While) -> None:
        label = self._loop_label(node)
        endless = isinstance(node.test, ast.Constant) and bool(node.test.value)
        with self.block() as body:
            self.loops += 1
            test = self.value(node.test)
            for method in ("__bool__", "__len__"):
                self.asked(test, method, node)
            if self.out:
                self._look_at_names([node.test], 0, node)
            simple = not self.out and bool(test.all_reads)
            if endless:
                self._exceptional(node)
            elif not simple:
                with self.block() as stop:
                    self.leave("break", None, node)
                self.branch(test.all_reads, [], stop, node)
            self.statements(node.body)
            self.loops -= 1
        self.loop(label, "while", test.all_reads if simple else (), body, node)
        self._after(node)

    def _exceptional(self, node: ast.AST) -> None:
        """The ways by which an exception leaves an endless loop for who handles it."""
        for how, there in (("break", self.in_try), ("return", self.is_guarded)):
            if there:
                with self.block() as block:
                    self.leave(how, None, node)
                self.branch((), block, [], node)

    def _after(self, node: ast.For | ast.AsyncFor | ast.While) -> None:
        if not node.orelse:
            return
        with self.block() as block:
            self.statements(node.orelse)
        if any(isinstance(each, ast.Break) for each in own_nodes(node)):
            self.branch((), block, [], node)
        else:
            self.out.extend(block)

    def _Break(self, node: ast.Break) -> None:
        self._left("break", None, node)

    def _Continue(self, node: ast.Continue) -> None:
        self._left("continue", None, node)

    def _left(self, how: str, value: Place | None, node: ast.AST) -> None:
        """Leave; if that leaves a `try`, what it ends with comes first."""
        if self.in_try and (how == "return" or self.loops == self.tried):
            with self.block() as block:
                self.leave(how, value, node)
            self.branch((), block, [], node)
        else:
            self.leave(how, value, node)

    def _With(self, node: ast.With) -> None:
        self._with(node)

    def _AsyncWith(self, node: ast.AsyncWith) -> None:
        self._with(node)

    def _with(self, node: ast.With | ast.AsyncWith) -> None:
        before, tried = self.unsure, self.tried
        entered: list[Value] = []
        suppresses = False
        for item in node.items:
            value = self._kept(self.value(item.context_expr), node)
            entered.append(value)
            self.look(value, node)
            found = self.call_method(value, "__enter__", [], node)
            if value.of("generator"):
                found = self.item_of(value, node)
            if item.optional_vars is not None:
                self.assign(item.optional_vars, found if found is not None else value, node)
            suppresses |= self._suppresses(item.context_expr, value)
        if suppresses and self._may_loop(node.body):
            self.unsure, self.tried = None, self.loops
        with self.block() as body:
            self.statements(node.body)
        self.unsure, self.tried = before, tried
        if suppresses:
            self.branch((), body, [], node)
        else:
            self.out.extend(body)
        for value in reversed(entered):
            self.call_method(value, "__exit__", [Value(tags=SCALAR)] * 3, node)
            if value.of("generator"):
                self.item_of(value, node)

    def _suppresses(self, node: ast.expr, value: Value) -> bool:
        """Whether what a `with` stands on may swallow an exception."""
        if last_name(node) == "suppress":
            return True
        exits = [self.facts.method(key, "__exit__") for key in value.of("instance")]
        own = [each for each in exits if each is not None]
        given = [self.facts.functions[key] for key in value.of("generator")]
        return any(
            isinstance(each, ast.Return) and each.value is not None
            for scope in own
            for each in own_nodes(scope.node)
        ) or any(
            isinstance(each, ast.Try) and each.handlers
            for scope in given
            for each in own_nodes(scope.node)
        )

    def _Try(self, node: ast.Try) -> None:
        self._try(node)

    def _TryStar(self, node: ast.Try) -> None:
        self._try(node)

    def _try(self, node: ast.Try) -> None:
        """What stands in a `try` may be left at any point, for a handler or for what follows."""
        before, tried = self.unsure, self.tried
        handlers = [each for each in node.handlers if not _interrupts(each)]
        if node.finalbody or (handlers and self._may_loop(node.body)):
            names = self._read_after(handlers, node.finalbody)
            self.unsure = None if names is None or before is None else names | before
            self.tried = self.loops
        with self.block() as body:
            self.statements(node.body)
        with self.block() as otherwise:
            self.statements(node.orelse)
        if handlers:
            self.branch((), [*body, *otherwise], [], node)
        else:
            self.out += [*body, *otherwise]
        if not node.finalbody:
            self.unsure, self.tried = before, tried
        for handler in node.handlers:
            with self.block() as block:
                if handler.type is not None:
                    self.look(self.value(handler.type), node)
                if handler.name:
                    self._bind_name(handler.name, Value(tags=SCALAR), handler)
                self.statements(handler.body)
            self.branch((), block, [], handler)
        self.unsure, self.tried = before, tried
        self.statements(node.finalbody)

    def _read_after(
        self, handlers: list[ast.ExceptHandler], finally_: list[ast.stmt]
    ) -> frozenset[str] | None:
        """Variables that matter when an exception has come; None if all may."""
        for handler in handlers:
            last = handler.body[-1]
            exits = isinstance(last, ast.Expr) and isinstance(last.value, ast.Call)
            if not isinstance(last, ast.Raise) and not (
                exits and last_name(last.value.func) in ("exit", "_exit")  # type: ignore[attr-defined]
            ):
                return None
        nodes = [each for part in (*handlers, *finally_) for each in ast.walk(part)]
        if any(isinstance(each, ast.Call) and not self._of_libraries(each) for each in nodes):
            return None
        places = [self.place_of(each.id) for each in nodes if isinstance(each, ast.Name)]
        return frozenset({"", *(place[0] for place in places if place is not None)})

    def _may_loop(self, nodes: list[ast.stmt]) -> bool:
        """Whether a loop may run inside; what has none is done from its start or not at all."""
        inside = [each for node in nodes for each in ast.walk(node)]
        return any(
            isinstance(each, ast.For | ast.While | ast.AsyncFor)
            or (isinstance(each, ast.Call) and not self._of_libraries(each))
            for each in inside
        )

    def _of_libraries(self, node: ast.Call) -> bool:
        """Whether a call surely is one of a library that holds nothing of the project."""
        root: ast.expr = node.func
        while isinstance(root, ast.Attribute | ast.Call | ast.Subscript):
            root = root.func if isinstance(root, ast.Call) else root.value
        tags = self.name(root.id).tags if isinstance(root, ast.Name) else frozenset()
        return bool(tags) and all(tag[0] in ("lib", "made", "scalar", "sequence") for tag in tags)

    def _Match(self, node: ast.Match) -> None:
        subject = self._kept(self.value(node.subject), node)
        self._cases(node.cases, subject, node)

    def _cases(self, cases: list[ast.match_case], subject: Value, node: ast.AST) -> None:
        if not cases:
            return
        case, *rest = cases
        with self.block() as then:
            for each in ast.walk(case.pattern):
                name = getattr(each, "name", None) or getattr(each, "rest", None)
                if isinstance(name, str):
                    self._bind_name(name, self._part(subject), node)
                if isinstance(each, ast.MatchValue):
                    self.look(self.value(each.value), node)
            guard = self.value(case.guard) if case.guard is not None else None
            with self.block() as body:
                self.statements(case.body)
            if guard is not None:
                self.branch(guard.all_reads, body, [], node)
            else:
                self.out.extend(body)
        with self.block() as otherwise:
            self._cases(rest, subject, node)
        self.branch(subject.all_reads, then, otherwise, node)


def _own_expressions(node: ast.stmt) -> list[ast.AST]:
    """The expressions of a statement, without those of the statements in it."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.While):
        return []
    inside = (ast.stmt, ast.ExceptHandler, ast.match_case)
    if isinstance(node, ast.withitem):
        return []
    return [each for each in ast.iter_child_nodes(node) if not isinstance(each, inside)]


def _own_names(node: ast.AST) -> Iterator[ast.Name]:
    """The names in an expression, but for those that a comprehension or a lambda in it has."""
    if isinstance(node, ast.Name):
        yield node
    elif isinstance(node, COMPREHENSION):
        own = {
            each.id
            for part in node.generators
            for each in ast.walk(part.target)
            if isinstance(each, ast.Name)
        }
        for child in ast.iter_child_nodes(node):
            yield from (each for each in _own_names(child) if each.id not in own)
    elif not isinstance(node, ast.Lambda):
        for child in ast.iter_child_nodes(node):
            yield from _own_names(child)


def _interrupts(handler: ast.ExceptHandler) -> bool:
    """Whether a handler is only for a run that somebody stops."""
    kinds = handler.type
    names = kinds.elts if isinstance(kinds, ast.Tuple) else [kinds] if kinds else []
    return bool(names) and all(last_name(each) in _INTERRUPTS for each in names)


def _loaded(target: ast.expr) -> ast.expr:
    """The target of an assignment, to be read."""
    if isinstance(target, ast.Attribute):
        return ast.Attribute(target.value, target.attr, ast.Load())
    assert isinstance(target, ast.Subscript)
    return ast.Subscript(target.value, target.slice, ast.Load())


def _is_main_test(test: ast.expr) -> bool:
    """Whether a test asks if this file is the script."""
    return (
        isinstance(test, ast.Compare)
        and isinstance(test.left, ast.Name)
        and test.left.id == "__name__"
        and len(test.comparators) == 1
        and isinstance(test.comparators[0], ast.Constant)
        and test.comparators[0].value == "__main__"
    )
