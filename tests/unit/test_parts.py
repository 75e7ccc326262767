"""Only what asked for something that has changed is read again, and that changes nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from detrain.analysis.frontend import Source, lower
from detrain.analysis.parts import Asked, Part, Reading, Table
from detrain.analysis.pretty import print_program
from detrain.analysis.project import read_project
from detrain.analysis.statements import Statements

_TESTS = Path(__file__).parents[1]
_PROGRAMS = [
    *sorted((_TESTS / "golden" / "programs").glob("*.py"))[::6],
    *sorted((_TESTS / "golden" / "programs").glob("*/main.py"))[::2],
    *sorted((_TESTS.parent / "examples" / "torch").glob("[01]*.py"))[::5],
]


class _AlwaysStale(Part):
    is_stale = property(lambda self: True, lambda self, value: None)  # type: ignore[assignment]


def _lowered(script: Path) -> Source:
    return lower(read_project(script, ()))


def _known(source: Source) -> object:
    facts = source.facts
    tables = facts.variables, facts.fields, facts.returns, facts.elements
    return print_program(source.program), [dict(table.items()) for table in tables]


def test_a_fact_that_grows_makes_those_stale_that_asked_for_it() -> None:
    reading = Reading()
    table = Table[str](reading)
    function = reading.new_part()
    asks, other = reading.new_part(function), reading.new_part(function)
    for part in (function, other, asks):
        reading.begin(part)
    assert not table.get("x")
    table.add("y", frozenset({("scalar",)}))
    assert not any(part.is_stale for part in (function, asks, other))
    assert table.add("x", frozenset({("scalar",)}))
    assert function.is_stale
    assert asks.is_stale
    assert not other.is_stale
    for part in (function, asks):
        reading.begin(part)
    assert not table.add("x", frozenset({("scalar",)}))
    assert not asks.is_stale


def test_that_there_is_a_thing_is_a_fact() -> None:
    reading = Reading()
    table = Table[str](reading)
    part = reading.new_part()
    reading.begin(part)
    assert "x" not in table
    assert not table.add("x", frozenset())
    assert part.is_stale


def test_what_is_not_stale_need_not_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    found = [_known(_lowered(script)) for script in _PROGRAMS]
    monkeypatch.setattr("detrain.analysis.parts.Part", _AlwaysStale)
    assert found == [_known(_lowered(script)) for script in _PROGRAMS]


def test_who_asks_must_be_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The test before this one can fail."""
    found = [_known(_lowered(script)) for script in _PROGRAMS[:6]]
    monkeypatch.setattr(Asked, "note", lambda self, key: None)
    assert found != [_known(_lowered(script)) for script in _PROGRAMS[:6]]


def test_less_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    count = 0
    assign = Statements._Assign

    def counted(self: Statements, node: object) -> None:
        nonlocal count
        count += not self.facts.is_last
        assign(self, node)  # type: ignore[arg-type]

    monkeypatch.setattr(Statements, "_Assign", counted)
    _lowered(_PROGRAMS[-1])
    some = count
    monkeypatch.setattr("detrain.analysis.parts.Part", _AlwaysStale)
    _lowered(_PROGRAMS[-1])
    assert 2 * some < count - some
