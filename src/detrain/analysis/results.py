"""Results: what calls of libraries give back."""

from __future__ import annotations

import ast
from dataclasses import replace

from detrain.analysis.emit import OWN, unique
from detrain.analysis.expressions import ITERATORS, NAMESPACES, kind_of
from detrain.analysis.given import Arguments
from detrain.analysis.items import Items
from detrain.analysis.library import Row, lookup
from detrain.analysis.program import ELEMENT, Place
from detrain.analysis.values import NOTHING, SCALAR, Tag, Tags, Value

__all__ = ["LISTS", "SCALARS", "Results", "is_class"]

_CHOOSES = frozenset({"builtins.max", "builtins.min", "builtins.sum", "builtins.abs"})
_PICKS = frozenset({"builtins.max", "builtins.min"})
_COPIES = frozenset({"builtins.list", "builtins.tuple", "builtins.sorted"})

SCALARS = frozenset(
    {
        "abs", "all", "any", "bool", "bytes", "chr", "complex", "float", "format", "hasattr",
        "hash", "hex", "id", "int", "isinstance", "issubclass", "len", "oct", "ord", "pow", "range",
        "repr", "round", "str", "callable", "divmod",
    }
)  # fmt: skip
"""Built-in functions that give a number, a text or the like."""

_SCALAR_METHODS = frozenset(
    {
        "item", "numel", "size", "dim", "nelement", "format", "join", "strip",
        "lower", "upper", "startswith", "endswith", "replace", "get_last_lr", "get_lr", "is_alive",
    }
)  # fmt: skip

LISTS = frozenset({"tolist", "split", "rsplit", "splitlines"})
"""What gives a new list of plain values, called on what is no array."""

_SCALAR_MODULES = ("math.", "time.", "os.path.", "datetime.", "random.random", "random.randint",
                   "random.uniform", "random.gauss", "random.randrange")  # fmt: skip

_COPY_METHODS = ("__deepcopy__", "__reduce__", "__reduce_ex__", "__getstate__", "__setstate__")


class Results(Items):
    """Gives the value of a call of a library."""

    def _result(
        self,
        row: Row,
        name: str,
        receiver: Value | None,
        given: Arguments,
        reads: tuple[Place, ...],
        node: ast.AST,
    ) -> Value:
        """What a call gives back."""
        short = row.name.rpartition(".")[2]
        if _is_scalar(row.name, short):
            return Value(None, reads, SCALAR)
        if short == "tolist":
            return self._listed(reads, node)
        if row.name in _CHOOSES and all(value.is_scalar for value in given.all):
            return Value(None, reads, SCALAR)
        if row.name == "builtins.next" and given.positional:
            return self.item_of(given.positional[0], node)
        if row.name in _PICKS and len(given.positional) == 1 and given.positional[0].is_list:
            item = self.item_of(given.positional[0], node)
            return replace(item, reads=unique((*item.reads, *reads)))
        if row.name in ITERATORS:
            return self._iterator(row.name, given, reads, node)
        if row.name in _COPIES or row.name == "builtins.set":
            return self._copy(row.name, given, reads, node)
        if row.name == "copy.deepcopy" and given.positional:
            return self._deep_copy(given.positional[0], reads, node)
        values = [*([receiver] if receiver is not None else []), *given.all]
        if row.wraps and row.makes == "model" and not is_class(row.name):
            inner = [
                v
                for v in values
                if v.of("instance") or any(kind_of(m) == "model" for m in v.of("made"))
            ]
            if len(inner) == 1:
                for each in values:
                    if each is not inner[0]:
                        self.look(each, node)
                return inner[0]  # the same model, compiled, wrapped or on another device
        tags: set[Tag] = {("made", row.name)}
        if receiver is not None and row.wraps and "self" in row.mutates and row.makes:
            own = receiver.reads if receiver.place is not None else reads
            return Value(receiver.place, own, receiver.tags or frozenset(tags))
        is_view = row.wraps and not row.mutates and row.makes in ("array", "")
        if receiver is not None and is_view:
            kept = frozenset(t for t in receiver.tags if t[0] in ("sequence", "iterates"))
            return Value(
                receiver.place,
                unique((*receiver.reads, *self.gathered(given.all))),
                frozenset(tags) | (kept if short in ("copy", "values") else NOTHING),
            )
        if row.name in NAMESPACES:
            return self._known(row, self.made((), [], frozenset(tags), node), values, given, node)
        if row.name.startswith("numpy.random.") and row.draws and not row.makes:
            return Value(None, reads, frozenset({("made", "numpy.zeros")}))
        if not row.makes and not row.wraps:
            return Value(
                None, reads, frozenset(tags) if lookup(f"{row.name}.__call__") else NOTHING
            )
        if not row.wraps:
            if row.makes == "array":
                return Value(None, reads, frozenset(tags))
            made = self.made(reads, [], frozenset(tags), node, row.makes)
        else:
            given_places = set(self.gathered(values))
            asked = tuple(place for place in reads if place not in given_places)
            scalars = unique((*self.gathered([v for v in values if v.is_scalar]), *asked))
            made = self.made(scalars, values, frozenset(tags), node, row.makes)
        return self._known(row, made, values, given, node)

    def _listed(self, reads: tuple[Place, ...], node: ast.AST) -> Value:
        """A new list of plain values."""
        key = self.position(node)
        self.facts.learn(self.facts.elements, key, SCALAR)
        return self.made(reads, [], frozenset({("sequence", key)}), node)

    def _known(
        self, row: Row, made: Value, values: list[Value], given: Arguments, node: ast.AST
    ) -> Value:
        """What is known of an object that a library made."""
        assert made.place is not None
        tags = set(made.tags)
        for value in values:
            tags |= {("held", key) for key in (*value.of("instance"), *value.of("held"))}
            tags |= {
                ("kept", key)
                for key in (*value.of("function"), *value.of("bound"), *value.of("kept"))
            }
            for key in value.of("sequence"):
                elements = self.facts.elements.get(key)
                tags |= {("held", tag[1]) for tag in elements if tag[0] == "instance"}
                tags |= {("kept", tag[1]) for tag in elements if tag[0] in ("function", "bound")}
        if row.makes in ("optimizer", "scheduler"):
            self.bind(
                (*made.place, OWN), "new", self.gathered([v for v in values if v.is_scalar]), node
            )
        if made.of("made") and made.of("made")[0] in NAMESPACES:
            self.bind((*made.place, "given"), "new", self.gathered(values), node)
        if row.parallel == "loader":
            tags.add(("workers", _workers(node)))
        return replace(made, tags=frozenset(tags))

    def _iterator(
        self, name: str, given: Arguments, reads: tuple[Place, ...], node: ast.AST
    ) -> Value:
        over = [value for value in given.positional if not value.is_scalar]
        if not over:
            found = self._listed(reads, node)
            return replace(found, tags=found.tags | {("iterator",)})
        inner = frozenset(t for value in over for t in value.tags)
        if name in ("builtins.enumerate", "builtins.zip"):
            return self.made(reads, over, frozenset({("iterates", "pairs")}), node)
        if len(over) > 1 and not any(tag[0] in ("generator", "instance") for tag in inner):
            # One after the other: it gives the items of each, and changes with any of them.
            items = [self.item_of(value, node) for value in over if value.of("sequence")]
            return self.made(reads, [*items, *over], inner | {("made", name)}, node)
        value = over[0]
        return Value(value.place, unique((*value.reads, *reads)), inner | {("made", name)})

    def _copy(self, name: str, given: Arguments, reads: tuple[Place, ...], node: ast.AST) -> Value:
        key = self.position(node)
        tags: set[Tag] = {("sequence", key)}
        items = [self.item_of(v, node) for v in given.positional[:1] if not v.is_scalar]
        scalars = not items
        for item in items:
            self.facts.learn(self.facts.elements, key, item.tags)
        if scalars:
            self.facts.learn(self.facts.elements, key, SCALAR)
        if name == "builtins.set":
            tags.add(("made", "builtins.set"))
        return self.made(reads, items, frozenset(tags), node)

    def _deep_copy(self, value: Value, reads: tuple[Place, ...], node: ast.AST) -> Value:
        """A copy of objects of the project's classes, and of all that they hold, is one object here
        that holds itself: whatever is got at through it is some part of it.
        """
        classes = self._classes_in(value.tags)
        if classes is None or any(
            self.facts.method(key, name) for key in classes for name in _COPY_METHODS
        ):
            return Value(None, reads, NOTHING)
        made = self.made(reads, [], value.tags, node)
        assert made.place is not None
        fields = {name for key, name in self.facts.assigned if key in classes}
        for name in (ELEMENT, *sorted(fields)):
            self.bind((*made.place, name), "alias", (made.place,), node)
        return made

    def _classes_in(self, tags: Tags) -> set[str] | None:
        """The classes of the project that an object, and what it holds, may be of; None if it is
        neither one of them nor a list.
        """
        if not tags or not all(tag[0] in ("instance", "sequence") for tag in tags):
            return None
        found: set[str] = set()
        todo, seen = list(tags), set(tags)
        while todo:
            kind, *key = todo.pop()
            more: set[Tag] = set()
            if kind in ("instance", "held"):
                lineage = self.facts.lineage(key[0])
                found.update(lineage)
                more = {
                    tag
                    for owner, name in self.facts.assigned
                    if owner in lineage
                    for tag in self.facts.fields.get((owner, name))
                }
            elif kind == "sequence":
                more = set(self.facts.elements.get(key[0]))
            todo += more - seen
            seen |= more
        return found


def _is_scalar(name: str, short: str) -> bool:
    if name.startswith("builtins.") and name.count(".") == 1:
        return short in SCALARS
    return short in _SCALAR_METHODS or name.startswith(_SCALAR_MODULES)


def is_class(name: str) -> bool:
    """Whether a thing of a library is named as classes are."""
    return name.rpartition(".")[2][:1].isupper()


def _workers(node: ast.AST) -> str:
    """How many workers a loader is given: "0", another number, or "?"."""
    for keyword in node.keywords if isinstance(node, ast.Call) else ():
        if keyword.arg == "num_workers":
            return str(keyword.value.value) if isinstance(keyword.value, ast.Constant) else "?"
        if keyword.arg is None:
            return "?"
    return "0"
