"""DT5xx: state that is out of reach, and checkpoints that leave some out."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from detrain.analysis.diagnostics import Diagnostic
from detrain.analysis.expressions import kind_of
from detrain.analysis.program import Loop
from detrain.analysis.rules.subject import Subject
from detrain.analysis.scopes import Scope

__all__ = ["RULES"]

_LIBRARY_LOOPS = ("fit", "fit_generator", "train", "run", "train_model", "learn")
_TRAINERS = ("Trainer", "Estimator", "Engine", "Learner")
_CHANGES = frozenset({"append", "add", "update", "setdefault", "extend", "pop", "insert"})
_WORDS = {"scheduler": "scheduler", "scaler": "gradient scaler", "average": "averaged weights"}


def live_generators(subject: Subject) -> Iterator[Diagnostic]:
    """DT501: a generator expression that a training loop goes on with."""
    for scope in _scopes(subject):
        made = {
            target.id: each
            for each in scope.nodes
            if isinstance(each, ast.Assign) and isinstance(each.value, ast.GeneratorExp)
            for target in each.targets
            if isinstance(target, ast.Name)
        }
        for facts in subject.source.lowered.loops.values() if made else ():
            if facts.scope is not scope or facts.label not in subject.loops.sites:
                continue
            for node in ast.walk(facts.node):
                if isinstance(node, ast.Call) and _is_next(node, made):
                    name = node.args[0].id  # type: ignore[attr-defined]
                    if facts.node.lineno <= made[name].lineno <= (facts.node.end_lineno or 0):
                        continue
                    message = f"{name} is running code, and how far it is can't be saved"
                    yield Diagnostic(
                        "DT501", message, subject.span(made[name], scope.module.path),
                        "make it a generator function, or a list",
                    )  # fmt: skip


def _is_next(node: ast.Call, made: dict[str, ast.Assign]) -> bool:
    return (
        isinstance(node.func, ast.Name)
        and node.func.id == "next"
        and bool(node.args)
        and isinstance(node.args[0], ast.Name)
        and node.args[0].id in made
    )


def hidden_in_lambdas(subject: Subject) -> Iterator[Diagnostic]:
    """DT502: a lambda that keeps something in a default value and changes it."""
    for node, file in subject.nodes:
        if not isinstance(node, ast.Lambda):
            continue
        names = node.args.args[len(node.args.args) - len(node.args.defaults) :]
        for name, default in zip(names, node.args.defaults, strict=True):
            if isinstance(default, ast.List | ast.Dict | ast.Set) and _changes(node.body, name.arg):
                message = f"the lambda keeps what it has seen in the default of {name.arg!r}"
                yield Diagnostic(
                    "DT502", message, subject.span(node, file), "make it a class with a field"
                )


def _changes(body: ast.expr, name: str) -> bool:
    return any(
        isinstance(each, ast.Call)
        and isinstance(each.func, ast.Attribute)
        and each.func.attr in _CHANGES
        and isinstance(each.func.value, ast.Name)
        and each.func.value.id == name
        for each in ast.walk(body)
    )


def outside_loops(subject: Subject) -> Iterator[Diagnostic]:
    """DT503: updates where no loop can be re-entered."""
    events = subject.source.lowered.events
    if any(True for _ in library_loops(subject)):
        return  # that says it all
    for op, around in subject.walk():
        if "update" not in events.get(op.site, ()) or op.span is None:
            continue
        loops = [each for each in around if isinstance(each, Loop)]
        if loops and loops[-1].label.rpartition(":")[2].startswith("C"):
            message = "a comprehension can't be re-entered in its midst: write it as a loop"
            yield Diagnostic("DT503", message, op.span)
        elif not subject.loops.sites:
            message = "no loop around this update was found, so there is nowhere to stop"
            yield Diagnostic("DT503", message, op.span)


def own_checkpoints(subject: Subject) -> Iterator[Diagnostic]:
    """DT504: a checkpoint to resume from that leaves out state."""
    made = set(subject.source.lowered.kinds.values())
    for name, _, node, scope in subject.source.lowered.calls:
        if name != "torch.save" or not node.args:
            continue
        saved = _saved_dict(node.args[0], scope)
        if saved is None:
            continue
        kinds = _kinds_in(subject, saved, scope)
        if "optimizer" not in kinds:
            continue  # weights alone: not meant to go on from
        left_out = [word for kind, word in _WORDS.items() if kind in made and kind not in kinds]
        if "rng" not in ast.unparse(saved).lower() and "random" not in ast.unparse(saved).lower():
            left_out.append("random generators")
        if left_out:
            yield Diagnostic(
                "DT504",
                f"it holds an optimizer, but no {' and no '.join(left_out)}",
                subject.span(node, scope.module.path),
            )


def _saved_dict(node: ast.expr, scope: Scope) -> ast.Dict | None:
    """The dictionary that is saved, written there or bound to a name in the same function."""
    if isinstance(node, ast.Dict):
        return node
    if isinstance(node, ast.Name):
        for each in scope.nodes:
            if not (isinstance(each, ast.Assign) and isinstance(each.value, ast.Dict)):
                continue
            if any(isinstance(t, ast.Name) and t.id == node.id for t in each.targets):
                return each.value
    return None


def _kinds_in(subject: Subject, saved: ast.Dict, scope: Scope) -> set[str]:
    found: set[str] = set()
    for each in ast.walk(saved):
        if isinstance(each, ast.Attribute) and each.attr == "state_dict":
            tags = subject.tags(each.value, scope)
            found |= {kind_of(tag[1]) for tag in tags if tag[0] == "made"}
            found |= {
                word for word in ("optimizer", *_WORDS) if word[:5] in ast.unparse(each.value)
            }
    return found


def library_loops(subject: Subject) -> Iterator[Diagnostic]:
    """DT505: the loop is a library's."""
    if subject.loops.sites:
        return
    for node, file in subject.nodes:
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            continue
        if node.func.attr in _LIBRARY_LOOPS and _is_trainer(subject, node.func.value, file):
            message = f"{ast.unparse(node.func)} loops inside a library, where nothing is seen"
            yield Diagnostic("DT505", message, subject.span(node, file))


def _is_trainer(subject: Subject, owner: ast.expr, file: str) -> bool:
    for scope in _scopes(subject):
        if scope.module.path != file:
            continue
        for tag in subject.tags(owner, scope):
            if tag[0] == "made" and (
                kind_of(tag[1]) == "model" or tag[1].rpartition(".")[2].endswith(_TRAINERS)
            ):
                return True
            if tag[0] == "instance" and any(
                kind_of(base) == "model" or base.rpartition(".")[2].endswith(_TRAINERS)
                for base in subject.source.facts.libraries(tag[1])
            ):
                return True
    return False


def unknown_calls(subject: Subject) -> Iterator[Diagnostic]:
    """DT903: calls that nothing is known of."""
    for name, span in subject.source.lowered.unknown:
        message = f"nothing is known of {name}: what it is given counts as changed by it"
        yield Diagnostic("DT903", message, span)


def _scopes(subject: Subject) -> Iterator[Scope]:
    for module in subject.source.modules:
        yield module.scope
    yield from subject.source.facts.functions.values()


RULES = (
    live_generators, hidden_in_lambdas, outside_loops, own_checkpoints, library_loops,
    unknown_calls,
)  # fmt: skip
