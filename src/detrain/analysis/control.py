"""Control: branches, loops, what handles exceptions, and the names that each statement looks at."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from detrain.analysis.definitions import Definitions
from detrain.analysis.expressions import Over
from detrain.analysis.lowered import LoopFacts
from detrain.analysis.program import Place, read_by, walk_ops
from detrain.analysis.scopes import COMPREHENSION, last_name, own_nodes
from detrain.analysis.values import DEFINITIONS, SCALAR, Value

__all__ = ["Control"]

_INTERRUPTS = frozenset({"KeyboardInterrupt", "SystemExit", "GeneratorExit"})


class Control(Definitions):
    """Writes what decides which statements run."""

    def _returned(self, value: Value, node: ast.AST) -> None:
        self.facts.learn(self.facts.returns, self.scope.key, value.tags)
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
                self._look_at_names(node.test, 0)
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
            for each in scope.nodes
        ) or any(
            isinstance(each, ast.Try) and each.handlers for scope in given for each in scope.nodes
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

    # ---------------------------------------------------------------- names

    def _look_at_names(self, node: ast.stmt | ast.expr, begin: int) -> None:
        """See to it that every variable that is named is looked at, whatever is made of it."""
        if not self.facts.is_last:
            return  # nothing is learnt from looking
        names = self.facts.named.get(node)
        if names is None:
            names = self.facts.named[node] = _names_loaded(node)
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


def _names_loaded(node: ast.stmt | ast.expr) -> tuple[str, ...]:
    """The variables that a statement itself, or an expression, names to look at them."""
    nodes = [node] if isinstance(node, ast.expr) else _own_expressions(node)
    found = (each.id for one in nodes for each in _own_names(one) if isinstance(each.ctx, ast.Load))
    return tuple(dict.fromkeys(found))


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
