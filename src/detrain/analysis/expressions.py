"""Expressions of Python as values of the language; attributes and elements are a room apart."""

from __future__ import annotations

import ast
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache

from detrain.analysis.emit import Emitting
from detrain.analysis.library import lookup
from detrain.analysis.program import Place
from detrain.analysis.scopes import Code
from detrain.analysis.values import DEFINITIONS, NOTHING, SCALAR, Tag, Tags, Value

__all__ = [
    "ITERATORS",
    "NAMESPACES",
    "OPERATORS",
    "Expressions",
    "Over",
    "kept_iterator",
    "kind_of",
]

NAMESPACES = frozenset(
    {
        "argparse.ArgumentParser.parse_args", "argparse.ArgumentParser.parse_known_args",
        "argparse.Namespace", "types.SimpleNamespace", "absl.flags.FLAGS",
    }
)  # fmt: skip
"""What makes objects that only have fields: each field is told apart from the others."""

ITERATORS = frozenset(
    {
        "builtins.enumerate", "builtins.iter", "builtins.reversed", "builtins.zip", "tqdm.tqdm",
        "itertools.islice", "itertools.cycle", "itertools.chain", "itertools.repeat",
    }
)  # fmt: skip
"""What goes over its arguments, one item after the other."""


OPERATORS = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.MatMult: "matmul", ast.Div: "truediv",
    ast.FloorDiv: "floordiv", ast.Mod: "mod", ast.Pow: "pow", ast.LShift: "lshift",
    ast.RShift: "rshift", ast.BitOr: "or", ast.BitXor: "xor", ast.BitAnd: "and",
}  # fmt: skip
"""What the special methods of operators are called."""


_COMPARISONS = {
    ast.Eq: "__eq__", ast.NotEq: "__ne__", ast.Lt: "__lt__", ast.LtE: "__le__", ast.Gt: "__gt__",
    ast.GtE: "__ge__", ast.In: "__contains__", ast.NotIn: "__contains__",
}  # fmt: skip


@cache
def kind_of(name: str) -> str:
    """What kind of object calling a thing of a library makes."""
    row = lookup(name)
    return row.makes if row is not None else ""


@dataclass(frozen=True)
class Over:
    """What a loop goes over, and what that goes over by itself, one item with one."""

    node: ast.expr
    value: Value
    by: str = ""
    parts: list[Over] = field(default_factory=list)


class Expressions(Emitting):
    """Gives the value of each expression, writing the ops that computing it takes."""

    @abstractmethod
    def call(self, node: ast.Call) -> Value:
        """The value of a call."""

    @abstractmethod
    def call_method(
        self, receiver: Value, name: str, arguments: list[Value], node: ast.AST
    ) -> Value | None:
        """The value of a call of a project's method, if the receiver has it."""

    @abstractmethod
    def item_of(self, value: Value, node: ast.AST) -> Value:
        """An item of what can be iterated over."""

    @abstractmethod
    def over(self, node: ast.expr) -> Over:
        """What a loop goes over, computed once."""

    @abstractmethod
    def items(self, target: ast.expr, over: Over, node: ast.AST) -> None:
        """Bind the target of a loop."""

    def value(self, node: ast.expr) -> Value:
        """The value of an expression."""
        method: Callable[[ast.expr], Value] | None = getattr(
            self, f"_value_{type(node).__name__}", None
        )
        if method is not None:
            return method(node)
        return self._combined(list(ast.iter_child_nodes(node)), node)

    def _combined(self, nodes: list[ast.AST], node: ast.AST) -> Value:
        """A value computed from others: a number if they all are, an array if one is."""
        return self._combination(
            [self.value(each) for each in nodes if isinstance(each, ast.expr)], node
        )

    def _combination(self, values: list[Value], node: ast.AST) -> Value:
        if all(value.is_scalar for value in values):
            return self.scalar(values)
        sequences = [value for value in values if value.of("sequence") or value.of("iterates")]
        if sequences:
            tags = frozenset(
                t for v in sequences for t in v.tags if t[0] in ("sequence", "iterates")
            )
            # A sum of lists has the items of both.
            items = [self.item_of(value, node) for value in sequences if value.of("sequence")]
            return self.made(self.gathered(values), [*items, *sequences], tags, node)
        tags = frozenset(
            t for v in values for t in v.tags if t[0] == "made" and kind_of(t[1]) == "array"
        )
        return Value(None, self.gathered(values), tags)

    def _value_Constant(self, node: ast.Constant) -> Value:
        return Value(tags=SCALAR)

    def _value_JoinedStr(self, node: ast.JoinedStr) -> Value:
        parts = [part for part in node.values if isinstance(part, ast.FormattedValue)]
        specs = [part.format_spec for part in parts if part.format_spec is not None]
        self.in_text += 1
        values = [self.value(each) for each in (*(part.value for part in parts), *specs)]
        self.in_text -= 1
        for value in values:
            for method in ("__format__", "__str__", "__repr__"):
                self.asked(value, method, node)
        return self.scalar(values)

    def asked(self, value: Value, method: str, node: ast.AST) -> None:
        """A special method of the project that may be called, if the value has it."""
        with self.block() as block:
            self.call_method(value, method, [], node)
        self.branch((), block, [], node)

    def _value_BinOp(self, node: ast.BinOp) -> Value:
        left, right = self.value(node.left), self.value(node.right)
        name = OPERATORS.get(type(node.op), "")
        found = self.call_method(left, f"__{name}__", [right], node)
        if found is None:
            found = self.call_method(right, f"__r{name}__", [left], node)
        return found if found is not None else self._combination([left, right], node)

    def _value_Compare(self, node: ast.Compare) -> Value:
        values = [self.value(each) for each in (node.left, node.comparators[0])]
        before, self.unsure = self.unsure, None  # `a < b < c` may end at b
        values += [self.value(each) for each in node.comparators[1:]]
        self.unsure = before
        for other, op in zip(values[1:], node.ops, strict=True):
            name = _COMPARISONS.get(type(op), "")
            asked, given = (other, values[0]) if name == "__contains__" else (values[0], other)
            with self.block() as block:
                self.call_method(asked, name, [given], node)
            self.branch((), block, [], node)
        if all(isinstance(op, ast.Is | ast.IsNot | ast.In | ast.NotIn) for op in node.ops):
            return self.scalar(values)
        if all(value.is_scalar for value in values):
            return self.scalar(values)
        return Value(None, self.gathered(values))

    def _value_Name(self, node: ast.Name) -> Value:
        return self.name(node.id)

    def name(self, name: str) -> Value:
        """The value of a variable, of an imported thing, or of what is built in."""
        place = self.place_of(name)
        if place is None:
            return Value(tags=frozenset({("lib", f"builtins.{name}")}))
        tags = self.tags_at(place)
        if tags and all(tag[0] in DEFINITIONS for tag in tags):
            # Definitions and imports are there from the start and never change, if it is one.
            return Value(place if len(tags) > 1 else None, (), tags)
        if tags == SCALAR:
            return Value(None, (place,), tags)
        return Value(place, (), kept_iterator(tags))

    def _value_NamedExpr(self, node: ast.NamedExpr) -> Value:
        value = self.value(node.value)
        self.assign(node.target, value, node)
        return self.name(node.target.id)

    @abstractmethod
    def assign(self, target: ast.expr, value: Value, node: ast.AST) -> None:
        """Bind what stands left of an assignment."""

    def _value_Starred(self, node: ast.Starred) -> Value:
        return self.value(node.value)

    def _value_Await(self, node: ast.Await) -> Value:
        return self.value(node.value)

    def _value_Slice(self, node: ast.Slice) -> Value:
        parts = [each for each in (node.lower, node.upper, node.step) if each is not None]
        return self.scalar([self.value(each) for each in parts])

    def _value_Yield(self, node: ast.Yield) -> Value:
        value = self.value(node.value) if node.value is not None else Value(tags=SCALAR)
        self._yielded(value, node)
        return Value()

    def _value_YieldFrom(self, node: ast.YieldFrom) -> Value:
        value = self.value(node.value)
        self._yielded(self.item_of(value, node), node)
        return Value()

    def _yielded(self, value: Value, node: ast.AST) -> None:
        """What a generator gives is as if returned, and then it goes on."""
        self.facts.learn(self.facts.returns, self.scope.key, value.tags)
        place = self.placed(value, node)
        with self.block() as block:
            self.leave("return", place, node)
        self.branch((), block, [], node)

    # ---------------------------------------------------------------- containers

    def position(self, node: ast.AST) -> str:
        """A name for where a node stands."""
        line, column = getattr(node, "lineno", 0), getattr(node, "col_offset", 0)
        return f"{self.scope.module.name}:{line}:{column}"

    def _value_List(self, node: ast.List) -> Value:
        return self._container(node.elts, node)

    def _value_Tuple(self, node: ast.Tuple) -> Value:
        return self._container(node.elts, node)

    def _value_Set(self, node: ast.Set) -> Value:
        value = self._container(node.elts, node)
        return Value(value.place, value.reads, value.tags | {("made", "builtins.set")})

    def _value_Dict(self, node: ast.Dict) -> Value:
        keys = [each for each in node.keys if each is not None]
        return self._container([*node.values, *keys], node)

    def _container(self, nodes: list[ast.expr], node: ast.AST) -> Value:
        return self.container([self.value(each) for each in nodes], node)

    def container(self, values: list[Value], node: ast.AST) -> Value:
        """A list, a tuple or a dictionary with these elements."""
        key = self.position(node)
        for number, value in enumerate(values):
            self.facts.learn(self.facts.elements, key, value.tags)
            self.facts.learn(self.facts.elements, f"{key}#{number}", value.tags)
        tags: Tags = frozenset({("sequence", key)})
        if all(value.is_scalar for value in values):
            return Value(None, self.gathered(values), tags)
        scalars = [value for value in values if value.is_scalar]
        return self.made(self.gathered(scalars), values, tags, node)

    def elements(self, value: Value, number: int | None = None) -> Tags:
        """What the elements of a container may be, or the one of a number."""
        found: set[Tag] = set()
        for key in value.of("sequence"):
            one = self.facts.elements.get(f"{key}#{number}") if number is not None else None
            found |= one or self.facts.elements.get(key)
        return NOTHING if ("unknown",) in found else frozenset(found)

    def _value_ListComp(self, node: ast.ListComp) -> Value:
        return self._comprehension(node, [node.elt])

    def _value_SetComp(self, node: ast.SetComp) -> Value:
        value = self._comprehension(node, [node.elt])
        return Value(value.place, value.reads, value.tags | {("made", "builtins.set")})

    def _value_DictComp(self, node: ast.DictComp) -> Value:
        return self._comprehension(node, [node.key, node.value])

    def _value_GeneratorExp(self, node: ast.GeneratorExp) -> Value:
        value = self._comprehension(node, [node.elt])
        return Value(value.place, value.reads, value.tags | {("iterator",)})

    def _comprehension(self, node: ast.expr, gives: list[ast.expr]) -> Value:
        """A comprehension is a loop that fills a new container."""
        made = self.made((), [], frozenset({("sequence", self.position(node))}), node)
        assert made.place is not None
        before = dict(self.renamed)
        self._clause(node, list(getattr(node, "generators", ())), gives, made.place)
        self.renamed = before
        return made

    def _clause(
        self, node: ast.expr, clauses: list[ast.comprehension], gives: list[ast.expr], into: Place
    ) -> None:
        if not clauses:
            for each in gives:
                value = self.value(each)
                key = self.position(node)
                self.facts.learn(self.facts.elements, key, value.tags)
                self.mutate(into, value.reads if value.place is None else (), node)
                self.hold(into, [value], node)
            return
        clause, *rest = clauses
        over = self.over(clause.iter)
        label = self.label("C", node)
        with self.block() as body:
            for name in ast.walk(clause.target):
                if isinstance(name, ast.Name):
                    at = f"{name.lineno}:{name.col_offset}"
                    self.renamed[name.id] = (f"%{name.id}@{at}",)
            self.items(clause.target, over, node)
            tests = [self.value(test) for test in clause.ifs]
            with self.block() as inner:
                self._clause(node, rest, gives, into)
            if tests:
                self.branch(self.gathered(tests), inner, [], node)
            else:
                self.out.extend(inner)
        self.loop(label, "for", over.value.all_reads, body, node, listed=over.value.is_list)

    # ---------------------------------------------------------------- choices

    def _value_IfExp(self, node: ast.IfExp) -> Value:
        test = self.value(node.test)
        return self._either(test, [node.body, node.orelse], node)

    def _value_BoolOp(self, node: ast.BoolOp) -> Value:
        first = self.value(node.values[0])
        with self.block() as block:
            others = [self.value(each) for each in node.values[1:]]
        if not block and all(value.is_scalar for value in (first, *others)):
            return self.scalar([first, *others])
        rest = node.values[1] if len(node.values) == 2 else ast.BoolOp(node.op, node.values[1:])
        return self._either(first, [rest], node, own=first)

    def _either(
        self, test: Value, ways: list[ast.expr], node: ast.AST, own: Value | None = None
    ) -> Value:
        """One of two values."""
        target = self.temporary()
        found: list[Value] = [] if own is None else [own]
        blocks = []
        if own is not None:
            with self.block() as block:
                self.bind_value(target, own, node)
            blocks.append(block)
        for way in ways:
            with self.block() as block:
                value = self.value(way)
                self.bind_value(target, value, node)
            found.append(value)
            blocks.append(block)
        if all(value.is_scalar for value in found):
            simple = all(len(block) == 1 for block in blocks)
            if simple:
                return self.scalar([test, *found])
        self.branch(test.all_reads, blocks[0], blocks[1], node)
        unknown = any(not value.tags for value in found)
        none = SCALAR if all(value.is_scalar for value in found) else NOTHING
        tags = frozenset(t for value in found for t in value.tags if t != ("scalar",))
        return Value(target, (), NOTHING if unknown else tags or none)

    def _value_Lambda(self, node: ast.Lambda) -> Value:
        return self.function_value(node)

    def function_value(self, node: Code) -> Value:
        """A function of the project as a value."""
        for inner in self.scope.inner:
            if inner.node is node:
                self._defaults(node, inner.key)
                return Value(tags=frozenset({("function", inner.key)}))
        return Value()

    def _defaults(self, node: Code, key: str) -> None:
        """Default arguments are computed where a function is defined, and kept."""
        a = node.args
        plain = [*a.posonlyargs, *a.args]
        pairs = [
            *zip(plain[len(plain) - len(a.defaults) :], a.defaults, strict=True),
            *((name, each) for name, each in zip(a.kwonlyargs, a.kw_defaults, strict=True) if each),
        ]
        for name, default in pairs:
            if isinstance(default, ast.Constant):
                continue
            found = self.value(default)
            place = (f"{key}/{name.arg}=",)
            self.facts.learn(self.facts.variables, place[0], found.tags)
            self.bind_value(place, found, node)


def kept_iterator(tags: Tags) -> Tags:
    """What a variable or field may be; an iterator that is kept there is gone on with."""
    if any(tag[0] == "made" and tag[1] in ITERATORS for tag in tags):
        return tags | {("iterator",)}
    return tags
