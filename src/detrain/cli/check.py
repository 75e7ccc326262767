"""`detrain check PATH…`: what in a program would keep it from the same bits."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console

from detrain import __version__
from detrain.analysis.codes import SEVERITIES, Severity
from detrain.analysis.diagnostics import Diagnostic
from detrain.analysis.program import Span
from detrain.analysis.select import Selection, shown, unknown_selectors
from detrain.analysis.settings import Settings, read_settings
from detrain.errors import UsageError
from detrain.instrument.scripts import find_scripts
from detrain.report.diagnostics import FORMATS, Format, render
from detrain.report.findings import Findings
from detrain.report.text import summary, text

if TYPE_CHECKING:
    from detrain.analysis.analyse import Analysis

__all__ = ["check", "check_paths"]

Analyse = Callable[[Path, tuple[str, ...]], "Analysis"]


@click.command(short_help="Say what would keep a program from the same bits.")
@click.option(
    "--format",
    "kind",
    type=click.Choice(FORMATS),
    default="text",
    show_default=True,
    help="How it is shown.",
)
@click.option("--select", metavar="CODES", multiple=True, help="Only these, as DT3,DT101.")
@click.option("--ignore", metavar="CODES", multiple=True, help="Not these.")
@click.option(
    "--severity",
    type=click.Choice(SEVERITIES),
    default="warning",
    show_default=True,
    help="The least that makes the exit code 1.",
)
@click.option("--exit-zero", is_flag=True, help="Exit with 0 whatever is found.")
@click.option("--output", metavar="FILE", type=click.Path(path_type=Path), help="Write it there.")
@click.argument("paths", metavar="[PATH]...", nargs=-1, type=click.Path(path_type=Path))
def check(
    paths: tuple[Path, ...],
    kind: Format,
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    severity: Severity,
    exit_zero: bool,
    output: Path | None,
) -> None:
    """Read programs, without running them, and say what would keep them from the same bits, where,
    and what to do about it.

    PATH is a script, or a folder whose scripts are checked: the files that ask for __name__, that
    have a training loop at their top level, or that no other file there imports. Local modules are
    read along with the scripts that import them.

    Exits with 0 if there is nothing to warn of, with 1 if there is, with 2 if something can't be
    used. Options that are typed replace those of [tool.detrain] in pyproject.toml.
    """
    # Not at the top: other commands shall not wait for it.
    from detrain.analysis.analyse import analyse_script

    findings = check_paths(paths or (Path(),), _codes(select), _codes(ignore), analyse_script)
    _show(findings, kind, output)
    counted = SEVERITIES[: SEVERITIES.index(severity) + 1]
    if not exit_zero and any(each.severity in counted for each in findings.diagnostics):
        sys.exit(1)


def check_paths(
    paths: Iterable[Path], select: tuple[str, ...], ignore: tuple[str, ...], analyse: Analyse
) -> Findings:
    """Analyse scripts and those of folders; `select` and `ignore` are what was typed."""
    places = [_existing(path) for path in paths]
    settings = read_settings(_common_folder(places))
    search = tuple(path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path)
    found: list[Diagnostic] = []
    sources: dict[str, str] = {}
    for script in _scripts(places, settings):
        diagnostics, read = _analysed(script, search, analyse)
        found += diagnostics
        sources |= read
    selection = Selection(
        select or settings.select, ignore or settings.ignore, settings.by_file, settings.root
    )
    found += [*settings.unknown, *_unknown(select, "--select"), *_unknown(ignore, "--ignore")]
    left = shown(found, sources, selection)
    texts = {**sources, settings.file: settings.text}
    return Findings(left, texts, len(sources), Path.cwd(), _documentation())


def _codes(options: tuple[str, ...]) -> tuple[str, ...]:
    parts = (part.strip().upper() for option in options for part in option.split(","))
    return tuple(part for part in parts if part)


def _existing(path: Path) -> Path:
    if not path.exists():
        raise UsageError(f"there is no file or folder {str(path)!r}")
    return Path(os.path.normpath(path.absolute()))


def _common_folder(places: list[Path]) -> Path:
    return Path(os.path.commonpath([each if each.is_dir() else each.parent for each in places]))


def _scripts(places: list[Path], settings: Settings) -> list[Path]:
    """What is to be analysed, each once. A file that was named is, whatever is excluded."""
    scripts: list[Path] = []
    for place in places:
        scripts += find_scripts(place, settings.excludes) if place.is_dir() else [place]
    return list(dict.fromkeys(scripts))


def _analysed(
    script: Path, search: tuple[str, ...], analyse: Analyse
) -> tuple[tuple[Diagnostic, ...], dict[str, str]]:
    """What was found in a program; an error of the analysis must not hide what is in others."""
    try:
        found = analyse(script, search)
    except Exception as error:
        first = (str(error).splitlines() or [""])[0]
        message = f"{type(error).__name__}: {first}".rstrip(": ")
        return (Diagnostic("DT904", message, Span(0, file=str(script))),), {}
    return found.diagnostics, found.sources


def _unknown(selectors: tuple[str, ...], option: str) -> list[Diagnostic]:
    unknown = unknown_selectors(selectors)
    return [Diagnostic("DT902", f"there is no {each!r} ({option})", Span(0)) for each in unknown]


def _documentation() -> str:
    """The address of `docs` that the package gives; nothing if it gives none."""
    try:
        listed: list[str] = metadata.metadata("detrain").get_all("Project-URL") or []
    except metadata.PackageNotFoundError:
        return ""
    addresses = {name.lower(): url for name, _, url in (each.partition(", ") for each in listed)}
    return addresses.get("documentation", "").rstrip("/")


def _show(findings: Findings, kind: Format, output: Path | None) -> None:
    if output is not None:
        try:
            output.write_text(render(findings, kind, __version__), encoding="utf-8")
        except OSError as error:
            raise UsageError(f"{str(output)!r} can't be written: {error.strerror}") from None
        Console(stderr=True, highlight=False, soft_wrap=True).print(summary(findings))
    elif kind == "text":
        # In a file or a pipe each headline stays one line, for tools that read it by line.
        console = Console(highlight=False)
        width = console.width if console.is_terminal else 100
        console.print(text(findings, width), end="", soft_wrap=not console.is_terminal)
    else:
        click.echo(render(findings, kind, __version__), nl=False)
