"""What the analysis knows of a program, for people: its loops, what a checkpoint holds and why.

A plan is shown from the outermost loop inwards, as a run meets it.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from pathlib import Path

from detrain.analysis.analyse import Analysis
from detrain.analysis.pretty import print_program
from detrain.analysis.program import Op, Program, walk_ops
from detrain.plan import Plan, PlanCut, PlanItem, PlanLevel

__all__ = ["as_data", "explain"]

_WIDTH = 96
_LABEL = 14
_MOST_UNKNOWN = 12
_WORDS = {"drop": "dropped", "rebuild": "rebuilt", "restore": "not compared"}


def explain(analysis: Analysis, root: Path, *, program: bool = True) -> str:
    """All that is known of a program, as text."""
    parts = [_heading(analysis, root), _loops(analysis, root)]
    parts += [_cut(cut, analysis, root) for cut in analysis.plan.cuts]
    parts += [_demands(analysis.plan, root), _unknown(analysis, root)]
    if program:
        parts.append("Program\n\n" + textwrap.indent(_program(analysis, root), "  "))
    return "\n\n".join(part.rstrip() for part in parts if part) + "\n"


def as_data(analysis: Analysis, root: Path) -> dict[str, object]:
    """The same as plain values."""
    source, *_ = analysis.parts()
    return {
        "version": 1,
        "files": sorted(_short(path, root) for path in analysis.sources),
        "loops": [
            {"file": _short(loop.file, root), "line": loop.line, "site": loop.site}
            for loop in analysis.plan.loops
        ],
        "cuts": [
            {"loops": cut.loops, "levels": [_level(level, root) for level in cut.levels]}
            for cut in analysis.plan.cuts
        ],
        "demands": [_item(item, root) for item in analysis.plan.items],
        "unknown": [
            {"name": name, "file": _short(span.file, root), "line": span.line}
            for name, span in source.lowered.unknown
        ],
        "program": _program(analysis, root),
    }


def _level(level: PlanLevel, root: Path) -> dict[str, object]:
    items = [_item(item, root) for item in level.items]
    return {"loop": level.loop, "full": level.full, "items": items}


def _item(item: PlanItem, root: Path) -> dict[str, object]:
    return {
        "place": item.place, "action": item.action, "reason": item.reason, "line": item.line,
        "file": _short(item.file, root), "compared": item.compared, "causes": list(item.causes),
    }  # fmt: skip


# ------------------------------------------------------------------------------------- sections


def _heading(analysis: Analysis, root: Path) -> str:
    source, *_ = analysis.parts()
    program = source.program
    script = next(module for module in source.modules if module.is_script)
    lines = sum(text.count("\n") for text in analysis.sources.values())
    files = len(analysis.sources)
    return (
        f"{_short(script.path, root)}: {_count(files, 'file')}, {_count(lines, 'line')}, "
        f"{_count(_size(program), 'op')} in {_count(len(program.functions), 'function')}"
    )


def _loops(analysis: Analysis, root: Path) -> str:
    source, _, _, loops = analysis.parts()
    if not loops.sites:
        return "Training loops: none was found"
    lines = ["Training loops"]
    for label, site in loops.sites.items():
        facts = source.lowered.loops[label]
        text = analysis.sources[facts.scope.module.path].splitlines()[facts.node.lineno - 1]
        where = f"{_short(facts.scope.module.path, root)}:{facts.node.lineno}"
        mark = "  (innermost)" if label in loops.innermost else ""
        lines.append(f"  {where}  {text.strip()}{mark}")
        lines.append(f"      {site}")
    return "\n".join(lines)


def _cut(cut: PlanCut, analysis: Analysis, root: Path) -> str:
    lines = {loop.site: f"{_short(loop.file, root)}:{loop.line}" for loop in analysis.plan.loops}
    *outer, last = cut.levels
    around = "".join(f", inside {lines[level.loop]}" for level in reversed(outer))
    rows = [f"A checkpoint at {lines[last.loop]}{around}"]
    for level in outer:
        rows += _outer(level, lines[level.loop])
    rows += _last(last)
    return "\n".join(rows)


def _outer(level: PlanLevel, where: str) -> Iterator[str]:
    if level.full:
        yield from _row("for " + where, "all that is reachable there")
    elif level.items:
        places = ", ".join(_name(item.place) for item in level.items)
        yield from _row("for " + where, f"{places}: read on the way")
    else:
        yield from _row("for " + where, "nothing but where it and the generators stand")


def _last(level: PlanLevel) -> Iterator[str]:
    for item in level.items:
        if item.action == "restore" and item.compared:
            causes = f": {', '.join(item.causes)}" if item.causes else ": fixed"
            yield from _row("carried", f"{_name(item.place)}{_line(item)}{causes}")
    groups: dict[tuple[str, str], list[str]] = {}
    for item in level.items:
        if item.action != "restore" or not item.compared:
            key = (_WORDS.get(item.action, item.action), item.reason)
            groups.setdefault(key, []).append(_name(item.place))
    for (word, reason), names in sorted(groups.items()):
        yield from _row(
            word, f"{', '.join(names)}: {reason.removeprefix('saved, but not compared: ')}"
        )


def _demands(plan: Plan, root: Path) -> str:
    if not plan.items:
        return ""
    lines = ["Demands"]
    for item in plan.items:
        where = f"{_short(item.file, root)}:{item.line}"
        lines += _row(item.action, f"{item.place} ({where}): {item.reason}")
    return "\n".join(lines)


def _unknown(analysis: Analysis, root: Path) -> str:
    source, *_ = analysis.parts()
    found = list(dict.fromkeys(
        f"{name} ({_short(span.file, root)}:{span.line})" for name, span in source.lowered.unknown
    ))  # fmt: skip
    if not found:
        return ""
    more = len(found) - _MOST_UNKNOWN
    shown = ", ".join(found[:_MOST_UNKNOWN]) + (f" and {more} more" if more > 0 else "")
    title = "Unknown calls, which count as changing all that they are given"
    return title + "\n" + textwrap.fill(shown, _WIDTH, initial_indent="  ", subsequent_indent="  ")


def _program(analysis: Analysis, root: Path) -> str:
    source, *_ = analysis.parts()
    text = print_program(source.program)
    for path in sorted(analysis.sources, key=len, reverse=True):
        text = text.replace(f" {path}", f" {_short(path, root)}")
    return text


# ---------------------------------------------------------------------------------------- words


def _row(label: str, text: str) -> list[str]:
    """A label and a text beside it, over several lines if it is long."""
    indent = " " * (_LABEL + 2)
    first = f"  {label:<{_LABEL}}" if len(label) < _LABEL else f"  {label}  "
    lines = textwrap.wrap(text, _WIDTH - len(indent), break_long_words=False) or [""]
    return [first + lines[0], *(indent + line for line in lines[1:])]


def _name(place: str) -> str:
    """A place as the program's text names it; of a function, with its name."""
    space, _, rest = place.rpartition("/")
    module, _, function = space.partition(":")
    owner = function.replace(".<locals>", "") or ("" if module == "__main__" else module)
    return f"{owner}: {rest}" if owner else rest


def _line(item: PlanItem) -> str:
    return f" (line {item.line})" if item.line else ""


def _short(path: str, root: Path) -> str:
    try:
        return str(Path(path).relative_to(root))
    except ValueError:
        return path


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}" + ("" if number == 1 else "s")


def _size(program: Program) -> int:
    blocks: tuple[tuple[Op, ...], ...] = (program.main, *(f.body for f in program.functions))
    return sum(1 for block in blocks for _ in walk_ops(block))
