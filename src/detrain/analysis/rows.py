"""Calls of libraries: what their rows say, as ops."""

from __future__ import annotations

import ast
from dataclasses import replace
from functools import cache

from detrain.analysis.emit import GRADIENTS, OWN, unique
from detrain.analysis.expressions import ITERATORS, NAMESPACES, kind_of
from detrain.analysis.given import CALLED, TRAIN_OPS, Arguments
from detrain.analysis.items import Items
from detrain.analysis.library import ROWS, Row, lookup
from detrain.analysis.program import ELEMENT, Place
from detrain.analysis.values import NOTHING, SCALAR, Tag, Tags, Value

__all__ = ["LISTS", "Rows", "rows_named"]

_CHOOSES = frozenset({"builtins.max", "builtins.min", "builtins.sum", "builtins.abs"})
_PICKS = frozenset({"builtins.max", "builtins.min"})
_COPIES = frozenset({"builtins.list", "builtins.tuple", "builtins.sorted"})

_SCALARS = frozenset(
    {
        "abs", "all", "any", "bool", "bytes", "chr", "complex", "float", "format", "hasattr",
        "hash", "hex", "id", "int", "isinstance", "issubclass", "len", "oct", "ord", "pow", "range",
        "repr", "round", "str", "callable", "divmod",
    }
)  # fmt: skip

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

_GRADIENTS = frozenset(
    {
        "jax.grad", "jax.value_and_grad", "jax.vjp", "jax.jacrev", "jax.jacfwd",
        "torch.autograd.grad", "tensorflow.GradientTape.gradient", "flax.nnx.grad",
        "flax.nnx.value_and_grad", "tensorflow.gradients", "torch.func.grad",
        "torch.func.grad_and_value", "torch.Tensor.backward", "torch.autograd.backward",
    }
)  # fmt: skip

_UPDATES = frozenset(
    {"optax.apply_updates", "flax.training.train_state.TrainState.apply_gradients",
     "optax.GradientTransformation.update", "flax.nnx.Optimizer.update"}
)  # fmt: skip

_LOOKS_AT_ALL = frozenset(
    f"builtins.{name}" for name in ("globals", "locals", "vars", "exec", "eval", "dir")
)
_FILLS = frozenset(
    {"uniform_", "normal_", "zero_", "fill_", "copy_", "exponential_", "bernoulli_", "random_",
     "cauchy_", "geometric_", "log_normal_", "fill"}
)  # fmt: skip
_BY_FORM = frozenset({"new_zeros", "new_ones", "new_full", "size", "dim", "numel", "nelement"})
_FORMING = frozenset(
    {"resize_", "resize_as_", "set_", "t_", "transpose_", "swapaxes_", "swapdims_", "squeeze_",
     "unsqueeze_", "as_strided_", "requires_grad_", "detach_", "share_memory_", "apply_", "map_"}
)  # fmt: skip
"""Methods of arrays that change more than the numbers in them."""
_PARTS = frozenset(
    {"parameters", "named_parameters", "buffers", "named_buffers", "children", "named_children",
     "modules", "named_modules"}
)  # fmt: skip
_TEXT = ("__str__", "__repr__", "__format__")
_SPECIAL: dict[str, tuple[str, ...]] = {
    "builtins.len": ("__len__",), "builtins.print": _TEXT, "builtins.str": _TEXT,
    "builtins.repr": _TEXT, "builtins.format": _TEXT, "builtins.bool": ("__bool__", "__len__"),
    "builtins.int": ("__int__", "__index__"), "builtins.float": ("__float__",),
    "builtins.abs": ("__abs__",), "builtins.hash": ("__hash__",), "builtins.round": ("__round__",),
}  # fmt: skip
"""Methods that a built-in function calls on what it is given."""
_COPY_METHODS = ("__deepcopy__", "__reduce__", "__reduce_ex__", "__getstate__", "__setstate__")
_DATES = frozenset({"time.strftime", "time.ctime", "time.asctime"})
_EXECUTES = frozenset({"builtins.exec", "builtins.eval"})
_MODES = frozenset({"torch.nn.Module.train", "torch.nn.Module.eval"})


class Rows(Items):
    """Writes what a call of a library does."""

    def _apply(
        self, row: Row, name: str, receiver: Value | None, given: Arguments, node: ast.AST
    ) -> Value:
        """Do what a row says."""
        if isinstance(node, ast.Call):
            self.lowered.calls.append((row.name, self.lowered.numbers, node, self.scope))
        if row.varies:
            self.lowered.varies.append((row.name, row.varies, self.span(node)))
        own = [receiver] if receiver is not None else []
        values = [*own, *given.all]
        for method in _SPECIAL.get(row.name, ()):
            for value in given.all:
                self.asked(value, method, node)
        if row.name in _MODES and receiver is not None and receiver.place is not None:
            self.bind((*receiver.place, "training"), "pure", self.gathered(given.all), node)
            return receiver
        filled = self._filled(row, receiver, given)
        if filled is not None and filled.place is None:
            values = [value for value in values if value is not filled]
        reads = self._read_by(row, receiver, values)
        reads += self._asked(row, receiver, given, reads, node)
        self._callbacks(row, receiver, given, node)
        self._changes(row, receiver, given, reads, node)
        if _consumes(row.name):
            for value in given.all:
                self.advance(value, node)
        if row.name in _GRADIENTS:
            self._event("gradient", node)
        if row.emits and row.name != "tqdm.tqdm":
            self.emit(reads, node)
        runs = self._runs_train_op(given)
        if runs and receiver is not None and receiver.place is not None:
            self.mutate(receiver.place, reads, node, deep=True)  # a session holds the variables
        if row.name in _UPDATES or runs:
            self._event("update", node)
        result = self._result(row, name, receiver, given, reads, node)
        if row.name.rpartition(".")[2] in TRAIN_OPS:
            return replace(result, tags=result.tags | {("trains",)})
        return result

    def _filled(self, row: Row, receiver: Value | None, given: Arguments) -> Value | None:
        """The array that a call fills anew, whatever was in it."""
        short = row.name.rpartition(".")[2]
        if row.name.startswith("torch.nn.init."):
            filled = given.positional[0] if given.positional else None
        else:
            filled = receiver if short in _FILLS else None
        if filled is not None and filled.place is not None:
            self.lowered.overwritten.append((self.function_name, filled.place))
        return filled

    def looks_at_all(self, name: str, given: Arguments) -> bool:
        """Whether a call may look at variables that it doesn't name."""
        return name in _LOOKS_AT_ALL and (not given.all or name in _EXECUTES)

    def look_at_all(self, name: str, node: ast.AST) -> None:
        """`globals()`, `exec` and the like: every variable of the module may be looked at."""
        kept = name not in _EXECUTES and not self.lowered.is_used_up(node)
        anytime = self.scope.kind == "function" or kept
        self.lowered.opened.append((self.span(node), anytime))
        module = self.scope.module
        places = tuple((module.prefix + each,) for each in sorted(module.scope.bound))
        self.bind(self.temporary(), "pure", places, node)
        if name in _EXECUTES:
            for place in places:
                with self.block() as block:
                    self.bind(place, "new", (place,), node)
                self.branch((), block, [], node)

    def _read_by(self, row: Row, receiver: Value | None, values: list[Value]) -> tuple[Place, ...]:
        """What a call looks at: of a scheduler's or optimizer's settings, only these; of an array
        of which others are made, only what it is.
        """
        method = row.name.rpartition(".")[2]
        if receiver is not None and receiver.form is not None and method in _BY_FORM:
            rest = [value for value in values if value is not receiver]
            return unique((receiver.form, *receiver.reads, *self.gathered(rest)))
        if receiver is None or receiver.place is None or not self._has_own(receiver):
            return self.gathered(values)
        steps = method == "step" and any(kind_of(m) == "scheduler" for m in receiver.of("made"))
        if steps or method in ("get_last_lr", "get_lr", "zero_grad"):
            rest = [value for value in values if value is not receiver]
            return unique(((*receiver.place, OWN), *self.gathered(rest)))
        return self.gathered(values)

    def _has_own(self, value: Value) -> bool:
        kinds = {kind_of(maker) for maker in value.of("made")}
        return bool(kinds) and kinds <= {"optimizer", "scheduler"}

    def _asked(
        self,
        row: Row,
        receiver: Value | None,
        given: Arguments,
        reads: tuple[Place, ...],
        node: ast.AST,
    ) -> tuple[Place, ...]:
        """Draws, keys, seeds and answers of the world that a call takes."""
        found: list[Place] = []
        if row.draws and row.parallel != "loader":
            generator = self._generator(row, receiver, given)
            if generator is not None:
                found.append(self.draw(generator, node))
        if row.keyed:
            found.append(self.key(reads, node))
        if self._asks_world(row, given):
            # A moment that becomes text is a name: of a folder, of a run.
            as_name = row.observes == "clock" and (self.in_text or row.name in _DATES)
            found.append(self.observe("date" if as_name else row.observes, node))
            self.lowered.observed[self.out[-1].site] = row.name
        if row.unordered and not row.parallel:
            found.append(self.observe("completion order", node))
        if row.seeds and row.seeds not in ("self", "argument"):
            generator = (f"@{row.seeds}",)
            site = self.bind(generator, "pure", (*reads, *found), node)
            self.lowered.seeded.setdefault(row.seeds, []).append(site)
        return tuple(found)

    def _asks_world(self, row: Row, given: Arguments) -> bool:
        if row.name == "torch.Tensor":  # given sizes it is memory as it is, given data a copy
            return bool(row.observes) and all(value.is_scalar for value in given.all)
        return bool(row.observes) and not (row.by and given.all)

    def _generator(self, row: Row, receiver: Value | None, given: Arguments) -> Place | None:
        by = given.at(row.by) if row.by else None
        if by is not None and by.place is not None:
            return by.place
        if row.draws == "self":
            return receiver.place if receiver is not None else None
        if row.draws == "argument":
            return next((v.place for v in given.all if v.place is not None), None)
        return (f"@{row.draws}",)

    def _changes(
        self,
        row: Row,
        receiver: Value | None,
        given: Arguments,
        reads: tuple[Place, ...],
        node: ast.AST,
    ) -> None:
        """What a call changes in place."""
        others = [value for value in given.all if not value.is_scalar]
        if row.name == "builtins.next" and _is_begun_there(node, given):
            return
        for what in row.mutates:
            if what == "gradients":
                if row.name.endswith("zero_grad"):
                    site = self.bind(GRADIENTS, "new", (), node)
                    # Given an argument it may fill them with zeros, which are not nothing.
                    optimizer = _optimizer_at(receiver)
                    if optimizer is not None and not given.all:
                        self.lowered.clears[site] = optimizer
                else:
                    self.mutate(GRADIENTS, reads, node)
                continue
            if what == "parameters":
                for owner in [receiver] if receiver is not None else given.all[:1]:
                    if owner.place is not None:
                        # An optimizer changes numbers, and no field of a model.
                        is_known = _optimizer_at(owner) is not None
                        site = self.mutate(
                            owner.place, (*reads, GRADIENTS), node,
                            deep=True, contents=is_known,
                        )  # fmt: skip
                        if is_known and not given.all:
                            self.lowered.steps[site] = owner.place
                self._event("update", node)
                continue
            changed = receiver if what == "self" else given.at(what)
            if changed is None or changed.place is None:
                continue
            if what == "self" and "parameters" in row.mutates:
                continue  # it has changed with them
            self._change(row, changed, reads, node)
            if row.wraps and what == "self" and not _changes_numbers(row, changed):
                self.hold(changed.place, [v for v in others if v is not changed], node)
                for key in changed.of("sequence"):
                    for value in others:
                        self.facts.learn(self.facts.elements, key, value.tags)

    def _change(self, row: Row, changed: Value, reads: tuple[Place, ...], node: ast.AST) -> None:
        assert changed.place is not None
        if self._has_own(changed):
            own = (*changed.place, OWN)
            if any(kind_of(maker) == "scheduler" for maker in changed.of("made")):
                self.mutate(own, reads, node)
                self.mutate((*changed.place, ELEMENT, OWN), (own,), node)
                return
            if row.makes == "scheduler" or row.name.endswith("add_param_group"):
                self.mutate(own, reads, node)
                return
        precise = bool(changed.of("sequence")) and not changed.of("made")
        numbers = _changes_numbers(row, changed)
        site = self.mutate(changed.place, reads, node, deep=not precise, contents=numbers)
        if GRADIENTS in reads:
            self.lowered.mark(site, "update")

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
        if row.wraps and row.makes == "model" and not _is_class(row.name):
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

    def _callbacks(self, row: Row, receiver: Value | None, given: Arguments, node: ast.AST) -> None:
        """A library may call the functions that it is given, now or in its other methods."""
        values = given.all
        inner = [e for v in values for e in self._in_sequence(v)]
        called = [v for v in (*values, *inner) if v.of("function") or v.of("bound")]
        if called and row.parallel != "loader":
            self._given(called, values, row, node, kept=_keeps(row, receiver))
        if row.parallel in ("threads", "processes", "map"):
            objects = [v for v in (*values, *inner) if v.of("instance")]
            for value in objects:
                for key in value.of("instance"):
                    method = self.facts.method(key, "__call__") or self.facts.method(key, "run")
                    if method is not None:
                        bound = replace(value, tags=frozenset({("bound", method.key)}))
                        self._given([bound], values, row, node, kept=True)
        if receiver is not None and (receiver.of("held") or receiver.of("kept")):
            short = row.name.rpartition(".")[2]
            self._may_call_held(receiver, (*CALLED, short), given, node)


def _changes_numbers(row: Row, changed: Value) -> bool:
    """Whether a call changes only the numbers in a parameter."""
    return changed.form is not None and row.name.rpartition(".")[2] not in _FORMING


def _is_begun_there(node: ast.AST, given: Arguments) -> bool:
    """Whether what is gone on with goes over the parts of a model, and was begun right there: as in
    `next(model.parameters())`.
    """
    first = node.args[0] if isinstance(node, ast.Call) and node.args else None
    if not isinstance(first, ast.Call):
        return False
    makers = given.positional[0].tags if given.positional else NOTHING
    return bool(makers) and all(
        tag[0] == "made" and tag[1].startswith("torch.nn.") and tag[1].rpartition(".")[2] in _PARTS
        for tag in makers
    )


def _optimizer_at(value: Value | None) -> Place | None:
    """Where a value is that surely is an optimizer of a library; None if it may be another."""
    if value is None or not value.tags:
        return None
    known = all(tag[0] == "made" and kind_of(tag[1]) == "optimizer" for tag in value.tags)
    return value.place if known else None


def _is_scalar(name: str, short: str) -> bool:
    if name.startswith("builtins.") and name.count(".") == 1:
        return short in _SCALARS
    return short in _SCALAR_METHODS or name.startswith(_SCALAR_MODULES)


def _consumes(name: str) -> bool:
    """Whether a call may take items from an iterator: the libraries of arrays take sequences."""
    package, _, short = name.rpartition(".")
    if name in ITERATORS:
        return False
    if package == "builtins":
        return short in ("any", "all") or short not in (*_SCALARS, "print")
    return name.startswith(("builtins.", "itertools.", "functools.", "collections.", "*."))


def _keeps(row: Row, receiver: Value | None) -> bool:
    """Whether a call keeps the functions that it is given where they can't be followed.

    What an object that it makes keeps is followed: its methods may call it.
    """
    if row.parallel in ("threads", "processes"):
        return True
    if receiver is not None:
        return row.wraps or row.name.startswith("*.")
    return not (row.wraps or _is_class(row.name) or row.name.startswith("builtins."))


def _is_class(name: str) -> bool:
    return name.rpartition(".")[2][:1].isupper()


def _workers(node: ast.AST) -> str:
    """How many workers a loader is given: "0", another number, or "?"."""
    for keyword in node.keywords if isinstance(node, ast.Call) else ():
        if keyword.arg == "num_workers":
            return str(keyword.value.value) if isinstance(keyword.value, ast.Constant) else "?"
        if keyword.arg is None:
            return "?"
    return "0"


@cache
def _methods() -> dict[str, list[Row]]:
    """The rows of methods, by the method's name."""
    found: dict[str, list[Row]] = {}
    for name, row in ROWS.items():
        owner, _, method = name.rpartition(".")
        if owner.rpartition(".")[2][:1].isupper() or owner.startswith("builtins."):
            found.setdefault(method, []).append(row)
    return found


@cache
def rows_named(name: str, packages: frozenset[str], *, ordered: bool = False) -> Row | None:
    """What all methods of a name may do, in the libraries that a program imports.

    `ordered` is a list, a tuple or a dictionary, and no set.
    """
    rows = [
        r
        for r in _methods().get(name, [])
        if r.name.partition(".")[0] in packages | {"builtins"}
        and not (ordered and r.name.startswith(("builtins.set.", "builtins.frozenset.")))
    ]
    if not rows:
        return None
    first = rows[0]
    if len(rows) == 1:
        return first
    mutates = tuple(dict.fromkeys(what for row in rows for what in row.mutates))
    return Row(
        first.name if all(_effects(row) == _effects(first) for row in rows) else f"*.{name}",
        draws=first.draws if all(row.draws == first.draws for row in rows) else "",
        by=first.by,
        observes=first.observes if all(row.observes == first.observes for row in rows) else "",
        emits=any(row.emits for row in rows),
        mutates=mutates,
        makes=first.makes if all(row.makes == first.makes for row in rows) else "",
        wraps=any(row.wraps for row in rows),
        unordered=any(row.unordered for row in rows),
        parallel=next((row.parallel for row in rows if row.parallel), ""),
    )


def _effects(row: Row) -> tuple[object, ...]:
    return (row.draws, row.observes, row.emits, row.mutates, row.wraps)
