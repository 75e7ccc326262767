"""What a project says about its checks: `[tool.detrain]` in its pyproject.toml.

    [tool.detrain]
    select = ["DT1", "DT3"]
    ignore = ["DT402"]
    exclude = ["third_party", "*_old.py"]
    per-file-ignores = { "tests/*" = ["DT101"] }

The nearest pyproject.toml that has such a table counts, from the folder that holds all that is to
be checked upwards.
"""

from __future__ import annotations

import tomllib
from pathlib import Path

import msgspec

from detrain.analysis.diagnostics import Diagnostic
from detrain.analysis.program import Span
from detrain.analysis.select import matches_path, unknown_selectors
from detrain.errors import UsageError

__all__ = ["Settings", "read_settings"]


class _Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """The table as it is written."""

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    per_file_ignores: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict)


class Settings(msgspec.Struct, frozen=True):
    """What was read, and where. Patterns are relative to the folder of the file."""

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    by_file: tuple[tuple[str, tuple[str, ...]], ...] = ()
    file: str = ""
    text: str = ""
    unknown: tuple[Diagnostic, ...] = ()

    @property
    def root(self) -> str:
        """The folder that patterns are relative to."""
        return str(Path(self.file).parent) if self.file else ""

    def excludes(self, path: Path) -> bool:
        """Whether a file or a folder is left out when a folder is searched."""
        return any(matches_path(str(path), pattern, self.root) for pattern in self.exclude)


def read_settings(folder: Path) -> Settings:
    """The settings for what is in a folder; `UsageError` with file and key if they are wrong."""
    for each in (folder, *folder.parents):
        file = each / "pyproject.toml"
        if file.is_file():
            text, table = _read(file)
            if table is not None:
                return _settings(file, text, table)
    return Settings()


def _read(file: Path) -> tuple[str, object]:
    """The text of a file, and its table; None if it has none."""
    try:
        text = file.read_text(encoding="utf-8")
        tool = tomllib.loads(text).get("tool", {})
    except (OSError, ValueError) as error:
        raise UsageError(f"{file} can't be read: {error}") from None
    return text, tool.get("detrain") if isinstance(tool, dict) else None


def _settings(file: Path, text: str, table: object) -> Settings:
    try:
        read = msgspec.convert(table, _Table)
    except msgspec.ValidationError as error:
        what, _, where = str(error).partition(" - at ")
        key = "tool.detrain" + where.strip("`").removeprefix("$")
        raise UsageError(f"{file}: {key}: {what[0].lower()}{what[1:]}") from None
    by_file = tuple(read.per_file_ignores.items())
    selectors = [*read.select, *read.ignore, *(code for _, codes in by_file for code in codes)]
    unknown = tuple(_unknown(each, file, text) for each in unknown_selectors(selectors))
    return Settings(read.select, read.ignore, read.exclude, by_file, str(file), text, unknown)


def _unknown(selector: str, file: Path, text: str) -> Diagnostic:
    """A code that there is not; the line is the first one that has it in quotes."""
    for number, line in enumerate(text.split("\n"), 1):
        for quoted in (f'"{selector}"', f"'{selector}'"):
            if quoted in line:
                begin = len(line[: line.index(quoted) + 1].encode())
                end = begin + len(selector.encode())
                span = Span(number, begin, number, end, str(file))
                return Diagnostic("DT902", f"there is no {selector!r}", span)
    return Diagnostic("DT902", f"there is no {selector!r}", Span(0, file=str(file)))
