"""From Python source to the language. Not written yet: this is what its users may rely on."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from detrain.analysis.diagnostics import Diagnostic

__all__ = ["Analysis", "analyse_script"]


@dataclass(frozen=True)
class Analysis:
    """What is known of a program: what was found in it, and the text of each of its files."""

    diagnostics: tuple[Diagnostic, ...] = ()
    sources: dict[str, str] = field(default_factory=dict)


def analyse_script(script: Path, search: tuple[str, ...]) -> Analysis:
    """Analyse a script and the local modules that it imports."""
    raise NotImplementedError(f"programs can't be analysed yet ({script}, {search})")
