"""DT2xx: orders that nobody promised."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from detrain.analysis.diagnostics import Diagnostic
from detrain.analysis.program import Loop, Span
from detrain.analysis.rules.subject import Subject

__all__ = ["RULES"]

_LISTS = frozenset({"listdir", "scandir", "walk", "glob", "iglob", "rglob", "iterdir", "fwalk"})

_ANY_ORDER = ("len", "min", "max")
"""Functions that give the same in any order."""


def _is_sorted(subject: Subject, span: Span) -> bool:
    """Whether what comes of a call is sorted: right there, or by the name that it is given."""
    nodes = subject.in_file.get(span.file, [])
    names: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Call) and _sorts(node, *_ANY_ORDER) and _covers(node, span):
            return True
        if isinstance(node, ast.Assign) and _covers(node, span):
            names |= {each.id for each in node.targets if isinstance(each, ast.Name)}
    for node in nodes if names else ():
        if isinstance(node, ast.Call) and _sorts(node):
            owner = node.func.value if isinstance(node.func, ast.Attribute) else None
            given = [each for each in (owner, *node.args) if isinstance(each, ast.Name)]
            if any(each.id in names for each in given):
                return True
    return False


def _sorts(node: ast.Call, *others: str) -> bool:
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    return name in ("sorted", "sort", "natsorted", *others)


def _covers(node: ast.Call | ast.Assign, span: Span) -> bool:
    return node.lineno <= span.line <= (node.end_lineno or node.lineno)


def sets(subject: Subject) -> Iterator[Diagnostic]:
    """DT201: the order of a set."""
    for op in subject.world("hash order"):
        if op.span is not None and not _is_sorted(subject, op.span):
            message = "what is taken from a set here reaches what is trained in any order"
            yield Diagnostic("DT201", message, op.span)


def directories(subject: Subject) -> Iterator[Diagnostic]:
    """DT202: the order of a directory."""
    for op in subject.world("directory"):
        listed = subject.source.lowered.observed.get(op.site, "").rpartition(".")[2] in _LISTS
        if op.span is not None and listed and not _is_sorted(subject, op.span):
            message = (
                "names come in the order of the file system, and what is trained depends on it"
            )
            yield Diagnostic("DT202", message, op.span)


def completion(subject: Subject) -> Iterator[Diagnostic]:
    """DT203: results in the order in which work is done."""
    raced = {cause.site for cause in subject.reaching if cause.kind == "race"}
    found = [
        op
        for site in raced
        for op in (subject.ops.get(site),)
        if isinstance(op, Loop) and op.unordered
    ]
    for op in (*subject.in_order(iter(found)), *subject.world("completion order")):
        if op.span is not None:
            message = "what is trained depends on which task is done first"
            yield Diagnostic("DT203", message, op.span)
    for node, file in subject.nodes:
        if isinstance(node, ast.Call) and _says_unordered(node):
            message = "elements of this data set come in the order in which they are done"
            yield Diagnostic(
                "DT203", message, subject.span(node, file), "leave `deterministic` out"
            )


def _says_unordered(node: ast.Call) -> bool:
    """Whether a step of a data set gives up order: `ds.map(f, deterministic=False)`."""
    is_step = isinstance(node.func, ast.Attribute) and node.func.attr in ("map", "interleave")
    return is_step and any(
        each.arg == "deterministic"
        and isinstance(each.value, ast.Constant)
        and each.value.value is False
        for each in node.keywords
    )


def streams(subject: Subject) -> Iterator[Diagnostic]:
    """DT204: an iterable dataset, loaded by several workers."""
    classes = {node.name: node for node, _ in subject.nodes if isinstance(node, ast.ClassDef)}
    kinds = {
        name
        for name in classes
        for each in _lineage(name, classes)
        if any(ast.unparse(base).endswith("IterableDataset") for base in each.bases)
    }
    for name, _, node, scope in subject.source.lowered.calls if kinds else ():
        given = {each.arg: each.value for each in node.keywords}
        first = node.args[0] if node.args else given.get("dataset")
        workers = given.get("num_workers")
        few = isinstance(workers, ast.Constant) and workers.value in (0, 1)
        if name != "torch.utils.data.DataLoader" or first is None or workers is None or few:
            continue
        made = {
            key.rpartition(".")[2] for kind, key in subject.tags(first, scope) if kind == "instance"
        }
        if isinstance(first, ast.Call) and isinstance(first.func, ast.Name):
            made.add(first.func.id)
        for kind in sorted(made & kinds):
            texts = map(ast.unparse, _lineage(kind, classes))
            asks = "worker_init_fn" in given or any("get_worker_info" in text for text in texts)
            message = (
                f"how {kind} is split among workers depends on their number"
                if asks
                else f"each worker gives all elements of {kind}, which does not ask who it is"
            )
            yield Diagnostic("DT204", message, subject.span(node, scope.module.path))


def _lineage(name: str, classes: dict[str, ast.ClassDef]) -> list[ast.ClassDef]:
    """A class and those of the project that it comes from."""
    todo, found = [name], dict[str, ast.ClassDef]()
    while todo:
        each = todo.pop()
        if each in classes and each not in found:
            found[each] = classes[each]
            todo += map(ast.unparse, classes[each].bases)
    return list(found.values())


RULES = (sets, directories, completion, streams)
