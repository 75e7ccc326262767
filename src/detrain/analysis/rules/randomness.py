"""DT1xx: random numbers that are not seeded, or drawn by who comes first."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from detrain.analysis.diagnostics import Diagnostic
from detrain.analysis.program import Bind, Draw, Loop
from detrain.analysis.rules.subject import Subject
from detrain.analysis.scopes import Code

__all__ = ["RULES"]

_HOW = {
    "torch": "torch.manual_seed(seed)",
    "numpy": "numpy.random.seed(seed)",
    "python": "random.seed(seed)",
    "tensorflow": "tf.random.set_seed(seed)",
}
_SEEDERS = ("seed_everything", "set_seed", "set_random_seed", "seed_all", "manual_seed", "setseed")
_SEEDS = frozenset({"seed", "random_seed", "random_state"})
_UNSEEDED = frozenset(
    {
        "numpy.random.default_rng", "random.Random", "numpy.random.RandomState",
        "numpy.random.SeedSequence", "tensorflow.random.Generator.from_non_deterministic_state",
    }
)  # fmt: skip


def unseeded(subject: Subject) -> Iterator[Diagnostic]:
    """DT101: a global generator that is drawn from and never seeded."""
    if not subject.loops.sites or _seeds_by_helper(subject):
        return
    for name, how in _HOW.items():
        if name in subject.source.lowered.seeded:
            continue
        draws = subject.in_order(
            op
            for op in subject.ops.values()
            if isinstance(op, Draw) and op.generator == (f"@{name}",)
        )
        if draws and draws[0].span is not None:
            yield Diagnostic(
                "DT101",
                f"the generator of {name} is drawn from here, and nothing seeds it",
                draws[0].span,
                f"call {how} before anything is drawn",
            )


def _seeds_by_helper(subject: Subject) -> bool:
    """Whether a helper that no table knows seems to seed all generators."""
    return any(name.rpartition(".")[2] in _SEEDERS for name, _ in subject.source.lowered.unknown)


def unused_seed(subject: Subject) -> Iterator[Diagnostic]:
    """DT102: a seed that is asked for and never used."""
    read = {node.attr for node, _ in subject.nodes if isinstance(node, ast.Attribute)}
    texts = {node.value for node, _ in subject.nodes if isinstance(node, ast.Constant)}
    whole = any(
        isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "vars"
        for node, _ in subject.nodes
    )
    for node, file in subject.nodes:
        if isinstance(node, ast.Call) and _is_seed_option(node) and not whole:
            name = _destination(node)
            if name not in read and name not in texts:
                yield Diagnostic(
                    "DT102",
                    f"the option is read into {name!r}, and nothing looks at it",
                    subject.span(node, file),
                    f"seed the generators with args.{name}",
                )
        if isinstance(node, Code) and not isinstance(node, ast.Lambda):
            yield from _unused_parameter(subject, node, file)


def _is_seed_option(node: ast.Call) -> bool:
    if not (isinstance(node.func, ast.Attribute) and node.func.attr in ("add_argument", "option")):
        return False
    names = [each.value for each in node.args if isinstance(each, ast.Constant)]
    return any(isinstance(name, str) and "seed" in name.lower() for name in names)


def _destination(node: ast.Call) -> str:
    for keyword in node.keywords:
        if keyword.arg == "dest" and isinstance(keyword.value, ast.Constant):
            return str(keyword.value.value)
    names = [e.value for e in node.args if isinstance(e, ast.Constant) and isinstance(e.value, str)]
    name = next((each for each in names if each.startswith("--")), names[0])
    return name.lstrip("-").replace("-", "_")


def _unused_parameter(
    subject: Subject, node: ast.FunctionDef | ast.AsyncFunctionDef, file: str
) -> Iterator[Diagnostic]:
    names = {
        each.arg: each for each in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
    }
    if names.keys().isdisjoint(_SEEDS):
        return
    used = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
    bare = all(isinstance(each, ast.Pass | ast.Expr | ast.Raise) for each in node.body)
    for name, argument in names.items():
        if name in _SEEDS and name not in used and not bare:
            yield Diagnostic(
                "DT102",
                f"{node.name}() takes {name!r} and never looks at it",
                subject.span(argument, file),
                "seed what it draws from, or drop the parameter",
            )


def drawn_in_parallel(subject: Subject) -> Iterator[Diagnostic]:
    """DT103, DT104: draws whose order depends on who comes first."""
    loops = [op for op in subject.ops.values() if isinstance(op, Loop) and op.how == "par"]
    raced = {cause.site for cause in subject.causes.everywhere if cause.kind == "race"}
    draws = subject.in_order(
        op for site in raced for op in (subject.ops.get(site),) if isinstance(op, Draw)
    )
    for op in draws:
        assert isinstance(op, Draw)
        assert op.span is not None
        around = next((each.span for each in loops if each.span is not None), None)
        notes = ((around, "the parallel work begins here"),) if around is not None else ()
        if op.generator[0].startswith("@"):
            name = op.generator[0][1:]
            message = f"a number from the global generator of {name} goes to whoever asks first"
            yield Diagnostic("DT103", message, op.span, notes=notes)
        else:
            message = "every worker draws the same numbers from its own copy of this generator"
            yield Diagnostic("DT104", message, op.span, notes=notes)


def seeded_by_chance(subject: Subject) -> Iterator[Diagnostic]:
    """DT105: a seed that is another in every run."""
    varying = ("clock", "entropy")
    for op in subject.in_order(iter(subject.seeding.values())):
        assert isinstance(op, Bind)
        found = [
            c for c in subject.causes_of(op, op.reads) if c.kind == "world" and c.what in varying
        ]
        if found and op.span is not None:
            origin = subject.ops[found[0].site].span
            notes = ((origin, f"the seed comes from the {found[0].what} here"),) if origin else ()
            name = op.target[0].lstrip("@")
            yield Diagnostic(
                "DT105",
                f"the generator of {name} starts elsewhere in every run",
                op.span,
                notes=notes,
            )
    for name, _, node, scope in subject.source.lowered.calls:
        if name in _UNSEEDED and not node.args and not node.keywords:
            yield Diagnostic(
                "DT105",
                f"{name}() without a seed starts elsewhere in every run",
                subject.span(node, scope.module.path),
                "give it a seed",
            )


RULES = (unseeded, unused_seed, drawn_in_parallel, seeded_by_chance)
