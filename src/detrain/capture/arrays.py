"""The forms of what frameworks hold: arrays, which are the leaves of a state, and generators."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from detrain.capture.form import Form, Pairs, type_name
from detrain.frameworks import find
from detrain.frameworks.base import Filled
from detrain.frameworks.beside import WORTH_A_THREAD
from detrain.state import Node

if TYPE_CHECKING:
    from detrain.capture.restore import Restore
    from detrain.capture.walk import Walk
    from detrain.frameworks.base import ArrayView, Framework

__all__ = ["ArrayForm", "ComposedForm", "FoundArray", "GeneratorForm"]


class ArrayForm(Form):
    """Arrays of all frameworks: the leaves."""

    name = "array"

    def describe(self, obj: Any, path: str, walk: Walk) -> Node:
        for framework in walk.frameworks:
            view = framework.view(obj)
            if view is not None:
                return FoundArray(framework, view).describe(obj, path, walk)
        raise AssertionError(f"{path} was taken for an array")

    def matches(self, node: Node, live: Any) -> bool:
        if not super().matches(node, live) or node.array is None:
            return False
        view = find.by_name(node.array.framework).view(live)
        return view is not None and (view.dtype, view.device) == (
            node.array.dtype,
            node.array.device,
        )

    def children(self, node: Node, live: Any) -> Pairs:
        assert node.array is not None
        if not node.fields:
            return ()
        view = find.by_name(node.array.framework).view(live)
        fields = {} if view is None else view.fields
        return [(ref, fields[name]) for name, ref in node.fields if name in fields]

    def make(self, node: Node, restore: Restore, path: str) -> Any:
        assert node.array is not None
        framework = restore.framework(node.array.framework, path)
        kind, shared = restore.resolve_type(node, path), restore.sharing(node.array.storage)
        made = restore.new_with(framework, kind, node.array) if shared is None else None
        if made is not None:
            return made
        return framework.create(kind, node.array, restore.data(node.array), shared)

    def fill(self, node: Node, live: Any, restore: Restore, path: str) -> None:
        assert node.array is not None
        framework = restore.framework(node.array.framework, path)
        if not restore.is_complete(node.array):
            data = restore.data(node.array)
            alone = not node.fields and not node.array.storage_bytes
            if alone and len(data) >= WORTH_A_THREAD and framework.address(live) is not None:
                restore.aside(framework, Filled(live, node.array, data), path)
                return
            framework.fill(live, node.array, data)
        for name, ref in node.fields:
            framework.set_field(live, name, restore.get(ref))


class FoundArray(ArrayForm):
    """The form of one array, which its framework has described already."""

    def __init__(self, framework: Framework, view: ArrayView) -> None:
        self.framework, self._view = framework, view

    def describe(self, obj: Any, path: str, walk: Walk) -> Node:
        kept = walk.array_fields(obj, self.framework, self._view)
        if kept:
            walk.save_instead(obj)  # what hangs on it is not in a digest of its bytes
        facts = walk.array(obj, self.framework, self._view, path)
        fields = walk.fields(kept.items(), path)
        return Node("array", type_name(type(obj)), fields=fields, array=facts)


class ComposedForm(Form):
    """Arrays that are no single memory: sparse ones, and those of Python objects."""

    name = "composed"

    def describe(self, obj: Any, path: str, walk: Walk) -> Node:
        for framework in walk.frameworks:
            parts = framework.decompose(obj)
            if parts is not None:
                fields = walk.fields(parts.items(), path)
                return Node("composed", type_name(type(obj)), fields=fields, text=framework.name)
        raise AssertionError(f"{path} was taken for an array of parts")

    def children(self, node: Node, live: Any) -> Pairs:
        # Parts that are arrays are copies: only what else there is has live objects in it.
        parts = next((p for f in find.loaded() if (p := f.decompose(live)) is not None), {})
        lists = {name: part for name, part in parts.items() if isinstance(part, list)}
        return [(ref, lists[name]) for name, ref in node.fields if name in lists]

    def make(self, node: Node, restore: Restore, path: str) -> Any:
        return self._compose(node, None, restore, path)

    def fill(self, node: Node, live: Any, restore: Restore, path: str) -> None:
        self._compose(node, live, restore, path)

    def _compose(self, node: Node, live: Any, restore: Restore, path: str) -> Any:
        parts = {name: restore.get(ref) for name, ref in node.fields}
        for _, ref in node.fields:
            restore.complete(ref)
        return restore.framework(node.text, path).compose(parts, live)


class GeneratorForm(Form):
    """Objects that random numbers are drawn from."""

    name = "generator"

    def describe(self, obj: Any, path: str, walk: Walk) -> Node:
        for framework in walk.frameworks:
            state = framework.generator_state(obj)
            if state is not None:
                items = (walk.ref(state, f"{path}.state"),)
                return Node("generator", type_name(type(obj)), items, text=framework.name)
        raise AssertionError(f"{path} was taken for a generator")

    def children(self, node: Node, live: Any) -> Pairs:
        return ()

    def make(self, node: Node, restore: Restore, path: str) -> Any:
        return restore.framework(node.text, path).new_generator(restore.resolve_type(node, path))

    def fill(self, node: Node, live: Any, restore: Restore, path: str) -> None:
        state = restore.get(node.items[0])
        restore.complete(node.items[0])
        restore.framework(node.text, path).set_generator_state(live, state)
