"""Golden: small programs, each of one shape, with all that the analysis makes of them.

A program is `programs/NAME.py`, or `programs/NAME/main.py` if it has several files; what is
expected of it is `expected/NAME.txt`: what `detrain explain` prints, and the diagnostics. They are
never run. `DETRAIN_GOLDEN=write pytest tests/golden` writes the expected files anew; read the
difference as you would read code.
"""

from __future__ import annotations

import difflib
import os
from functools import cache
from pathlib import Path

import msgspec
import pytest

from detrain.analysis.analyse import Analysis, analyse_script
from detrain.analysis.check import check
from detrain.analysis.pretty import parse, print_program
from detrain.analysis.program import Program
from detrain.analysis.select import in_order
from detrain.plan import decode_plan, encode_plan
from detrain.report.explain import explain

_HERE = Path(__file__).parent
_SCRIPTS = {
    **{path.stem: path for path in (_HERE / "programs").glob("*.py")},
    **{path.parent.name: path for path in (_HERE / "programs").glob("*/main.py")},
}
_NAMES = sorted(_SCRIPTS)


@cache
def _analysed(name: str) -> Analysis:
    return analyse_script(_SCRIPTS[name], ())


def _text(name: str) -> str:
    """What is known of a program, with its diagnostics."""
    root = _SCRIPTS[name].parent
    analysis = _analysed(name)
    found = [
        f"  {each.code} {Path(each.span.file).relative_to(root)}:{each.span.line}  {each.message}"
        for each in in_order(analysis.diagnostics)
    ]
    lines = "\n".join(["Diagnostics", *(found or ["  none"])])
    return f"{explain(analysis, root)}\n{lines}\n"


@pytest.mark.parametrize("name", _NAMES)
def test_what_is_made_of_a_program(name: str) -> None:
    expected = _HERE / "expected" / f"{name}.txt"
    found = _text(name)
    if os.environ.get("DETRAIN_GOLDEN") == "write":
        expected.write_text(found, encoding="utf-8")
        return
    before = expected.read_text(encoding="utf-8") if expected.exists() else ""
    if found != before:
        lines = difflib.unified_diff(
            before.splitlines(), found.splitlines(), f"expected/{name}.txt", "found", lineterm=""
        )
        pytest.fail("\n".join(lines), pytrace=False)


@pytest.mark.parametrize("name", _NAMES)
def test_the_program_is_well_formed(name: str) -> None:
    program = _analysed(name).parts()[0].program
    assert check(program) == []
    assert _bare(parse(print_program(program))) == _bare(program)


@pytest.mark.parametrize("name", _NAMES)
def test_the_plan_survives_being_written_down(name: str) -> None:
    plan = _analysed(name).plan
    assert decode_plan(encode_plan(plan)) == plan


def test_each_expected_file_has_its_program() -> None:
    assert sorted(path.stem for path in (_HERE / "expected").glob("*.txt")) == _NAMES


def _bare(program: Program) -> object:
    """A program without numbers and spans."""

    def plain(value: object) -> object:
        if isinstance(value, msgspec.Struct):
            names = [each for each in value.__struct_fields__ if each not in ("site", "span")]
            return (type(value).__name__, *(plain(getattr(value, name)) for name in names))
        return tuple(map(plain, value)) if isinstance(value, tuple) else value

    return plain(program)
