"""Streams whose elements can be indexed, so that one can be had without making those before it.

`__iter__` of an iterable dataset is read as text. It is taken for indexed if it goes through
something light (numbers, a list, the lines of a file) and makes one element of each by work that
leaves nothing behind. Then it is compiled once more with a question before that work: is this
element wanted? All else in it runs as ever, so that the elements keep their numbers:

    for line in open(self.path):                 for line in open(self.path):
        if not line.strip(): continue                if not line.strip(): continue
        yield self.parse(line)            →          if wanted():
                                                         yield self.parse(line)

What can't be told to be so (`light`, `effects`) is not touched.
"""

from __future__ import annotations

import ast
import copy
import functools
import linecache
from collections.abc import Callable, Iterable, Iterator
from types import CellType, CodeType, FunctionType
from typing import Any

from detrain.frameworks import held
from detrain.frameworks.effects import Reach, codes
from detrain.frameworks.light import Light, names_stored

__all__ = ["Maker", "maker"]

Maker = Callable[[Callable[[], bool]], Iterator[Any]]
"""Begins a stream; it is given who is asked before each element is made."""

_WANTED, _ONLY = "__detrain_wanted__", "__detrain_only__"

_NEVER = (
    ast.Return, ast.Break, ast.Continue, ast.Yield, ast.YieldFrom, ast.Await, ast.Global,
    ast.Nonlocal, ast.Delete, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.NamedExpr,
)  # fmt: skip
"""What may not stand in work that is left out."""


def maker(dataset: Any, reach: Reach) -> Maker | None:
    """What makes the wanted elements of a stream alone, if they can be indexed."""
    function = getattr(type(dataset), "__iter__", None)
    if not isinstance(function, FunctionType) or not held.is_own(function):
        return None
    function = held.as_written(function)
    definition = copy.deepcopy(_definition(function.__code__))
    if definition is None or reach.moving:
        return None
    work = _Rewrite(definition, Light(definition, function, dataset)).done()
    if work is None or reach.leaves_something(_names(work)):
        return None
    code = _compiled(definition, function)

    def make(wanted: Callable[[], bool]) -> Iterator[Any]:
        inner = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
        cells = {**inner, _WANTED: CellType(wanted), _ONLY: CellType(_only(wanted))}
        closure = tuple(cells[name] for name in code.co_freevars)
        made = FunctionType(code, function.__globals__, "__iter__", function.__defaults__, closure)
        made.__kwdefaults__ = function.__kwdefaults__
        return iter(made(dataset))

    return make


def _only(wanted: Callable[[], bool]) -> Callable[[Iterable[Any]], Iterator[Any]]:
    def only(items: Iterable[Any]) -> Iterator[Any]:
        return (item for item in items if wanted())

    return only


@functools.cache
def _definition(code: CodeType) -> ast.FunctionDef | None:
    """The text of a function; None if it is not, to the instruction, what runs."""
    try:
        tree = ast.parse("".join(linecache.getlines(code.co_filename)))
        whole = compile(tree, code.co_filename, "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        return None
    if not any(_same(each, code) for each in codes(whole)):
        return None
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name == code.co_name:
            # Names that a class makes its own are other ones outside of it.
            private = any(_is_private(each) for each in ast.walk(node))
            if node.lineno == code.co_firstlineno and not private:
                return node
    return None


def _compiled(definition: ast.FunctionDef, function: FunctionType) -> CodeType:
    """The code of a method, with the names around it free."""
    names = ", ".join((*function.__code__.co_freevars, _WANTED, _ONLY))
    module = ast.parse(f"def around({names}): pass")
    outer: Any = module.body[0]
    outer.body = [definition]
    code = compile(
        ast.fix_missing_locations(module), function.__code__.co_filename, "exec", dont_inherit=True
    )
    for name in ("around", definition.name):
        code = next(
            each for each in code.co_consts if isinstance(each, CodeType) and each.co_name == name
        )
    return code


def _same(one: CodeType, other: CodeType) -> bool:
    names = ("co_firstlineno", "co_code", "co_names", "co_varnames", "co_freevars", "co_cellvars")
    if any(getattr(one, name) != getattr(other, name) for name in names):
        return False
    if len(one.co_consts) != len(other.co_consts):
        return False
    return all(
        _same(a, b) if isinstance(a, CodeType) and isinstance(b, CodeType) else a == b
        for a, b in zip(one.co_consts, other.co_consts, strict=True)
    )


class _Rewrite:
    """Puts the question into `__iter__`, and gives the work that it stands before."""

    def __init__(self, definition: ast.FunctionDef, light: Light) -> None:
        self._definition, self._light = definition, light
        self._work: list[ast.AST] = []

    def done(self) -> list[ast.AST] | None:
        """The work, or None if the elements can't be told to be indexed."""
        yields = [n for n in self._light.own_nodes if isinstance(n, ast.Yield | ast.YieldFrom)]
        if len(yields) > 1:
            return None
        if not yields:
            fits = self._returns()
        elif isinstance(yields[0], ast.Yield):
            fits = self._guards(self._definition.body, yields[0], None)
        else:
            fits = self._hands_on(self._definition.body, yields[0])
        return self._work if fits else None

    # ------------------------------------------------------------ `yield` in a loop

    def _guards(
        self, block: list[ast.stmt], wanted: ast.Yield, loop: ast.For | ast.While | None
    ) -> bool:
        """Find the way to the one `yield`, and guard it and the work before it."""
        place = next(n for n, each in enumerate(block) if _contains(each, wanted))
        at = block[place]
        if isinstance(at, ast.Expr) and at.value is wanted:
            return loop is not None and self._guard(block, place, loop)
        if loop is not None and not all(self._light.in_loop(n) for n in block if n is not at):
            return False
        if not isinstance(at, ast.For | ast.While | ast.If | ast.With):
            return False
        inner = at.body
        if isinstance(at, ast.For | ast.While):
            if not self._goes_lightly(at, outermost=loop is None):
                return False
            loop = at
        elif isinstance(at, ast.If):
            branches = at.body, at.orelse
            inner, other = (
                branches if any(_contains(n, wanted) for n in at.body) else branches[::-1]
            )
            if loop is not None and not all(map(self._light.in_loop, [at.test, *other])):
                return False
        elif loop is not None and not all(self._light.in_loop(n.context_expr) for n in at.items):
            return False
        return bool(inner) and self._guards(inner, wanted, loop)

    def _goes_lightly(self, loop: ast.For | ast.While, *, outermost: bool) -> bool:
        if loop.orelse:
            return False
        if isinstance(loop, ast.While):
            return self._light.in_loop(loop.test)
        return self._light.once(loop.iter) if outermost else self._light.in_loop(loop.iter)

    def _guard(self, block: list[ast.stmt], place: int, loop: ast.For | ast.While) -> bool:
        ways = (n for n in range(place + 1) if self._may_be_left_out(block[n : place + 1], loop))
        first = next(ways, None)
        if first is None or not all(map(self._light.in_loop, block[:first] + block[place + 1 :])):
            return False
        work = block[first : place + 1]
        self._work = list(work)
        question = ast.Call(ast.Name(_WANTED, ast.Load()), [], [])
        block[first : place + 1] = [ast.If(question, work, [])]
        return True

    def _may_be_left_out(self, work: list[ast.stmt], loop: ast.For | ast.While) -> bool:
        """Whether statements, of which the last is the `yield`, leave nothing to other elements."""
        given = names_stored(loop.target) if isinstance(loop, ast.For) else set()
        stored = set().union(*(names_stored(each) for each in work))
        fresh = set(given)
        for each in work:
            last = each is work[-1]
            value = each.value.value if last else each  # type: ignore[attr-defined]
            nodes = list(ast.walk(value)) if value is not None else []
            if any(isinstance(node, _NEVER) or _is_written_part(node) for node in nodes):
                return False
            # What is read before it is written comes from the element before.
            if not last and isinstance(each, ast.Assign | ast.AnnAssign):
                unknown = _names_read(each.value) & stored - fresh
                fresh |= names_stored(each)
            elif last or isinstance(each, ast.If | ast.AugAssign):
                unknown = {n.id for n in nodes if isinstance(n, ast.Name)} & stored - fresh
            else:
                return False
            if unknown:
                return False
        own, around = _ids(work), _ids([loop])
        return not any(
            isinstance(node, ast.Name)
            and node.id in stored
            and id(node) not in (around if node.id in given else own)
            for node in ast.walk(self._definition)
        )

    # ------------------------------------------------------------ iterators that are handed on

    def _returns(self) -> bool:
        found = [n for n in self._light.own_nodes if isinstance(n, ast.Return)]
        for each in found:
            made = self._selected(each.value) if each.value is not None else None
            if made is None:
                return False
            each.value = made
        return bool(found)

    def _hands_on(self, block: list[ast.stmt], wanted: ast.YieldFrom) -> bool:
        """`yield from`, outside of any loop."""
        for each in block:
            if isinstance(each, ast.Expr) and each.value is wanted:
                made = self._selected(wanted.value)
                if made is not None:
                    wanted.value = made
                return made is not None
            if isinstance(each, ast.If | ast.With) and _contains(each, wanted):
                inner = each.body
                if isinstance(each, ast.If) and any(_contains(n, wanted) for n in each.orelse):
                    inner = each.orelse
                return self._hands_on(inner, wanted)
        return False

    def _selected(self, value: ast.expr) -> ast.expr | None:
        """The same iterator with unwanted elements left out before they are made."""
        if isinstance(value, ast.GeneratorExp):
            parts = enumerate(value.generators)
            if not all(self._light.comprehended(each, first=not n) for n, each in parts):
                return None
            self._work.append(value.elt)
            question = ast.Call(ast.Name(_WANTED, ast.Load()), [], [])
            value.generators[-1].ifs.append(question)
            return value
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Name):
            if value.func.id == "iter" and len(value.args) == 1:
                return self._selected(value.args[0])
            if value.func.id == "map" and len(value.args) == 2:
                function, items = value.args
                self._work.append(function)
                chosen = ast.Call(value.func, [function, self._chosen(items)], [])
                return chosen if self._light.once(items) else None
        return self._chosen(value) if self._light.once(value) else None

    def _chosen(self, items: ast.expr) -> ast.expr:
        return ast.Call(ast.Name(_ONLY, ast.Load()), [items], [])


def _names(work: list[ast.AST]) -> list[str]:
    """All names in some work; `self[…]` is a call of `__getitem__`."""
    found: list[str] = []
    for node in (each for part in work for each in ast.walk(part)):
        if isinstance(node, ast.Name):
            found.append(node.id)
        elif isinstance(node, ast.Attribute):
            found.append(node.attr)
        elif isinstance(node, ast.Subscript):
            found.append("__getitem__")
        elif isinstance(node, ast.Call):
            found.append("__call__")
    return found


def _is_private(node: ast.AST) -> bool:
    name = getattr(node, "attr", None) or getattr(node, "id", None) or ""
    return name.startswith("__") and not name.endswith("__")


def _contains(tree: ast.AST, node: ast.AST) -> bool:
    return any(each is node for each in ast.walk(tree))


def _is_written_part(node: ast.AST) -> bool:
    """Whether a field or an element of something is written."""
    return isinstance(node, ast.Attribute | ast.Subscript) and not isinstance(node.ctx, ast.Load)


def _names_read(tree: ast.AST | None) -> set[str]:
    nodes = ast.walk(tree) if tree is not None else ()
    return {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}


def _ids(trees: Iterable[ast.AST]) -> set[int]:
    return {id(node) for tree in trees for node in ast.walk(tree)}
