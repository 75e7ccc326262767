"""The printed form of the language, which people read and tests write."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from detrain.analysis.program import (
    ELEMENT,
    Bind,
    Branch,
    Call,
    Draw,
    Emit,
    Function,
    Key,
    Leave,
    Loop,
    Mutate,
    Observe,
    Op,
    Place,
    Program,
    Span,
    numbered,
)
from detrain.errors import UsageError

__all__ = ["parse", "print_op", "print_place", "print_program"]


# ------------------------------------------------------------------------------------ printing


def print_program(program: Program) -> str:
    """The program as text that `parse` reads back."""
    lines = []
    for function in program.functions:
        head = f"def {function.name}({', '.join(function.parameters)})"
        if function.globals:
            head += f" global {', '.join(function.globals)}"
        lines.append(head + _print_span(function.span))
        lines += _print_block(function.body, 1)
    lines.append("main")
    lines += _print_block(program.main, 1)
    return "\n".join(lines) + "\n"


def _print_block(block: tuple[Op, ...], depth: int) -> Iterator[str]:
    for op in block:
        yield "  " * depth + print_op(op) + _print_span(op.span)
        if isinstance(op, Branch):
            yield from _print_block(op.then, depth + 1)
            if op.otherwise:
                yield "  " * depth + "else"
                yield from _print_block(op.otherwise, depth + 1)
        elif isinstance(op, Loop):
            yield from _print_block(op.body, depth + 1)


def print_op(op: Op) -> str:
    """An op as one line, without what is inside it."""
    match op:
        case Bind(target, "alias", (place, *others)):
            return f"bind {print_place(target)} = {print_place(place)}{_by(tuple(others))}"
        case Bind(target, how, reads):
            return f"bind {print_place(target)} = {how}({_places(reads)})"
        case Mutate(place, reads, deep, contents):
            what = "contents " if contents else "all " if deep else ""
            return f"mutate {what}{print_place(place)}{_by(reads)}"
        case Draw(target, generator):
            return f"draw {print_place(target)} from {print_place(generator)}"
        case Key(target, reads):
            return f"key {print_place(target)} by {_places(reads)}"
        case Observe(target, what):
            return f"observe {print_place(target)} of {what}"
        case Emit(reads):
            return f"emit {_places(reads)}"
        case Call(function, arguments, target):
            made = "" if target is None else f"{print_place(target)} = "
            return f"call {made}{function}({_places(arguments)})"
        case Branch(reads):
            return f"branch {_places(reads)}"
        case Leave(how, value):
            return how if value is None else f"{how} {print_place(value)}"
        case Loop():
            return _print_loop(op)


def _print_loop(op: Loop) -> str:
    if op.how == "while":
        return f"while {op.label} {_places(op.reads)}".rstrip()
    word = "loop" if op.how == "for" else "par"
    target = "_" if op.target is None else print_place(op.target)
    text = f"{word} {op.label} {target} {'over' if op.listed else 'in'} {_places(op.reads)}"
    if op.result is not None and op.into is not None:
        text += f" giving {print_place(op.result)} into {print_place(op.into)}"
    return text + (" unordered" if op.unordered else "")


def print_place(place: Place) -> str:
    """A place as people write it."""
    head, *fields = place
    return head + "".join(ELEMENT if each == ELEMENT else f".{each}" for each in fields)


def _places(places: tuple[Place, ...]) -> str:
    return ", ".join(map(print_place, places))


def _by(places: tuple[Place, ...]) -> str:
    return f" by {_places(places)}" if places else ""


def _print_span(span: Span | None) -> str:
    if span is None:
        return ""
    numbers = f"{span.line}:{span.column}-{span.end_line}:{span.end_column}"
    return f"  ; {numbers} {span.file}".rstrip()


# ------------------------------------------------------------------------------------- parsing


@dataclass
class _Line:
    number: int
    depth: int
    text: str
    span: Span | None


def parse(text: str) -> Program:
    """Read a printed program; `UsageError` with the line if it is none."""
    lines = [_line(n, raw) for n, raw in enumerate(text.splitlines(), 1) if raw.strip()]
    lines.reverse()
    functions: list[Function] = []
    main: tuple[Op, ...] | None = None
    while lines:
        line = lines.pop()
        found = re.fullmatch(r"def (\S+?)\(([^)]*)\)(?: global (.+))?", line.text)
        if line.depth == 0 and found:
            body = _parse_block(lines, 1)
            names, bound = _names(found[2]), _names(found[3] or "")
            functions.append(Function(found[1], names, body, bound, line.span))
        elif line.depth == 0 and line.text == "main" and main is None:
            main = _parse_block(lines, 1)
        else:
            raise _wrong(line, "a `def name(…)` or the one `main`")
    if main is None:
        raise UsageError("the program has no `main`")
    return numbered(Program(tuple(functions), main))


def _line(number: int, raw: str) -> _Line:
    text, _, note = raw.partition("  ; ")
    indent = len(text) - len(text.lstrip(" "))
    span = None
    if found := re.fullmatch(r"(\d+):(\d+)-(\d+):(\d+)(?: (.*))?", note.strip()):
        line, column, end_line, end_column = (int(found[n]) for n in range(1, 5))
        span = Span(line, column, end_line, end_column, found[5] or "")
    return _Line(number, indent // 2, text.strip(), span)


def _parse_block(lines: list[_Line], depth: int) -> tuple[Op, ...]:
    ops: list[Op] = []
    while lines and lines[-1].depth >= depth and lines[-1].text != "else":
        line = lines.pop()
        if line.depth > depth:
            raise _wrong(line, f"an indentation of {2 * depth}")
        ops.append(_parse_op(line, lines))
    return tuple(ops)


_PLACE = r"[@%\w]\S*"


def _parse_op(line: _Line, lines: list[_Line]) -> Op:
    word, _, rest = line.text.partition(" ")
    span = line.span
    match word:
        case "bind" if found := re.fullmatch(r"(\S+) = (new|pure)\((.*)\)", rest):
            reads = _read_places(found[3])
            if found[2] == "new":
                return Bind(_place(found[1]), "new", reads, span=span)
            return Bind(_place(found[1]), "pure", reads, span=span)
        case "bind" if found := re.fullmatch(rf"(\S+) = ({_PLACE})(?: by (.+))?", rest):
            reads = (_place(found[2]), *_read_places(found[3] or ""))
            return Bind(_place(found[1]), "alias", reads, span=span)
        case "mutate" if found := re.fullmatch(r"(all |contents )?(\S+)(?: by (.+))?", rest):
            reads, what = _read_places(found[3] or ""), found[1]
            return Mutate(_place(found[2]), reads, bool(what), what == "contents ", span=span)
        case "draw" if found := re.fullmatch(r"(\S+) from (\S+)", rest):
            return Draw(_place(found[1]), _place(found[2]), span=span)
        case "key" if found := re.fullmatch(r"(\S+) by ?(.*)", rest):
            return Key(_place(found[1]), _read_places(found[2]), span=span)
        case "observe" if found := re.fullmatch(r"(\S+) of (.+)", rest):
            return Observe(_place(found[1]), found[2], span=span)
        case "emit":
            return Emit(_read_places(rest), span=span)
        case "call" if found := re.fullmatch(r"(?:(\S+) = )?(\S+?)\((.*)\)", rest):
            target = _place(found[1]) if found[1] else None
            return Call(found[2], _read_places(found[3]), target, span=span)
        case "branch":
            then = _parse_block(lines, line.depth + 1)
            otherwise: tuple[Op, ...] = ()
            if lines and lines[-1].text == "else" and lines[-1].depth == line.depth:
                lines.pop()
                otherwise = _parse_block(lines, line.depth + 1)
            return Branch(_read_places(rest), then, otherwise, span=span)
        case "loop" | "par" | "while":
            return _parse_loop(line, lines)
        case "return" | "break" | "continue":
            return Leave(word, _place(rest) if rest else None, span=span)
    raise _wrong(line, "an op")


def _parse_loop(line: _Line, lines: list[_Line]) -> Loop:
    word, label, rest = (*line.text.split(" ", 2), "", "")[:3]
    if word == "while":
        body = _parse_block(lines, line.depth + 1)
        return Loop(label, "while", _read_places(rest), body, span=line.span)
    found = re.fullmatch(r"(\S+) (in|over) (.*?)(?: giving (\S+) into (\S+))?( unordered)?", rest)
    if found is None or (word == "par" and found[2] == "over"):
        raise _wrong(line, f"`{word} label target in places`")
    return Loop(
        label,
        "for" if word == "loop" else "par",
        _read_places(found[3]),
        _parse_block(lines, line.depth + 1),
        target=None if found[1] == "_" else _place(found[1]),
        result=_place(found[4]) if found[4] else None,
        into=_place(found[5]) if found[5] else None,
        unordered=bool(found[6]),
        listed=found[2] == "over",
        span=line.span,
    )


def _place(text: str) -> Place:
    return tuple(text.replace(ELEMENT, f".{ELEMENT}").split("."))


def _read_places(text: str) -> tuple[Place, ...]:
    return tuple(_place(each) for each in _names(text))


def _names(text: str) -> tuple[str, ...]:
    return tuple(each.strip() for each in text.split(",") if each.strip())


def _wrong(line: _Line, expected: str) -> UsageError:
    return UsageError(f"line {line.number}: expected {expected}, found {line.text!r}")
