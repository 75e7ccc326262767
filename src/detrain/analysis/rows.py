"""Calls of libraries: what their rows say, as ops."""

from __future__ import annotations

import ast
from dataclasses import replace

from detrain.analysis.emit import GRADIENTS, OWN, unique
from detrain.analysis.expressions import ITERATORS, kind_of
from detrain.analysis.given import CALLED, TRAIN_OPS, Arguments
from detrain.analysis.library import Row
from detrain.analysis.program import ELEMENT, Place
from detrain.analysis.results import SCALARS, Results, is_class
from detrain.analysis.values import NOTHING, Value

__all__ = ["Rows"]

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
_DATES = frozenset({"time.strftime", "time.ctime", "time.asctime"})
_EXECUTES = frozenset({"builtins.exec", "builtins.eval"})
_MODES = frozenset({"torch.nn.Module.train", "torch.nn.Module.eval"})


class Rows(Results):
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


def _consumes(name: str) -> bool:
    """Whether a call may take items from an iterator: the libraries of arrays take sequences."""
    package, _, short = name.rpartition(".")
    if name in ITERATORS:
        return False
    if package == "builtins":
        return short in ("any", "all") or short not in (*SCALARS, "print")
    return name.startswith(("builtins.", "itertools.", "functools.", "collections.", "*."))


def _keeps(row: Row, receiver: Value | None) -> bool:
    """Whether a call keeps the functions that it is given where they can't be followed.

    What an object that it makes keeps is followed: its methods may call it.
    """
    if row.parallel in ("threads", "processes"):
        return True
    if receiver is not None:
        return row.wraps or row.name.startswith("*.")
    return not (row.wraps or is_class(row.name) or row.name.startswith("builtins."))
